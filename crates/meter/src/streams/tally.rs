//! Counts while streams run: each operation as it comes, each stream's frames in their order.

use super::desk::{Asked, Desk};
use super::{Outcome, Plan, Progress, Second, Stream, index};
use crate::log::{Keep, Kind, NONE, Record, errno};
use crate::target::Arrived;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Moment;

pub(super) struct Tally<'a> {
    plan: &'a Plan,
    origin: Moment,
    outcome: Outcome,
    late_rounds: Vec<bool>,
    viewers: Vec<Viewer>,
    log: &'a mut dyn Keep,
}

/// A stream, and what is to be said of it in the order of its frames.
#[derive(Default)]
struct Viewer {
    so_far: Stream,
    /// Came before a frame before them.
    early: BTreeMap<u64, Came>,
    /// The outage that is on: from when, until when the frame came.
    outage: Option<(Moment, Moment)>,
    /// The sum of lateness over the late frames just before.
    run: Duration,
}

#[derive(Clone, Copy)]
struct Came {
    at: Moment,
    late: bool,
}

/// What is known of a frame.
struct Judged {
    late: bool,
    /// Whether that is the meter's doing.
    by_meter: bool,
    /// How late the meter was itself.
    own: Duration,
    /// If it came.
    response: Option<Duration>,
}

impl Judged {
    fn never_came() -> Self {
        Self { late: true, by_meter: false, own: Duration::ZERO, response: None }
    }
}

impl<'a> Tally<'a> {
    pub(super) fn new(plan: &'a Plan, origin: Moment, log: &'a mut dyn Keep) -> Self {
        let viewers = (0..plan.streams).map(|_| Viewer::default()).collect();
        let outcome = Outcome::default();
        Self { plan, origin, outcome, late_rounds: Vec::new(), viewers, log }
    }

    /// An operation is over. `overslept`: the meter may have noticed it so late.
    pub(super) fn arrived(&mut self, asked: &Asked, arrival: &Arrived, overslept: Duration) {
        let (at, ok) = (arrival.at, arrival.result.is_ok());
        let deadline = asked.intended + self.plan.allowed();
        let late = !ok || at > deadline;
        let response = at.since(asked.intended);
        self.outcome.issue.record(asked.own);
        if ok {
            let moved = match asked.ask.kind {
                Kind::Read => &mut self.outcome.reads,
                Kind::Write => &mut self.outcome.writes,
            };
            moved.operations += 1;
            moved.bytes += self.plan.frame;
            moved.service.record(at.since(asked.start));
            self.outcome.response.record(response);
            let (frame, second) = (self.plan.frame, self.second(at));
            match asked.ask.kind {
                Kind::Read => second.bytes_read += frame,
                Kind::Write => second.bytes_written += frame,
            }
        } else {
            self.outcome.failed += 1;
        }
        if let Err(error) = &arrival.result {
            self.outcome.first_failure.get_or_insert_with(|| error.to_string());
        }
        let meter = asked.inherited + overslept;
        let by_meter = late && ok && at.since(deadline) <= meter;
        self.outcome.late_by_meter += u64::from(by_meter);
        let asked_for = self.record(asked);
        self.log.keep(Record {
            first: arrival.first.map_or(NONE, |first| self.nanos(first)),
            end: self.nanos(at),
            open: nanos(arrival.open),
            close: nanos(arrival.close),
            meter: nanos(meter),
            errno: errno(&arrival.result),
            ..asked_for
        });
        let judged = Judged { late, by_meter, own: meter, response: Some(response).filter(|_| ok) };
        self.judge(asked.frame, deadline, &judged);
        let came = Came { at, late };
        let viewer = &mut self.viewers[index(asked.stream)];
        if viewer.so_far.frames == asked.frame {
            viewer.shows(deadline, came);
        } else {
            viewer.early.insert(asked.frame, came);
        }
        while let Some(came) = viewer.next_early() {
            let frame = viewer.so_far.frames;
            let due = self.plan.intended(self.origin, asked.stream, frame) + self.plan.allowed();
            viewer.shows(due, came);
        }
    }

    fn nanos(&self, moment: Moment) -> u64 {
        moment.0.saturating_sub(self.origin.0)
    }

    /// What is known of it before it comes.
    fn record(&self, asked: &Asked) -> Record {
        let intended = self.nanos(asked.intended);
        Record {
            stream: asked.stream,
            file: asked.ask.file,
            frame: asked.frame,
            bytes: u32::try_from(self.plan.frame.0).unwrap_or(u32::MAX),
            offset: asked.ask.offset,
            intended,
            start: self.nanos(asked.start),
            deadline: intended + nanos(self.plan.allowed()),
            meter: nanos(asked.inherited),
            kind: asked.ask.kind,
            random: asked.ask.random,
            ..Record::default()
        }
    }

    /// Of one that was due, never came, and was not even asked for.
    fn never_asked(&self, stream: u32, frame: u64) -> Record {
        let (ask, start) = (self.plan.ask(stream, frame), Moment::ZERO);
        let intended = self.plan.intended(self.origin, stream, frame);
        let (own, inherited) = (Duration::ZERO, Duration::ZERO);
        let asked = Asked { stream, frame, ask, intended, start, own, inherited };
        Record { start: NONE, ..self.record(&asked) }
    }

    fn second(&mut self, at: Moment) -> &mut Second {
        let number = usize::try_from(self.nanos(at) / 1_000_000_000).unwrap_or(usize::MAX);
        if self.outcome.seconds.len() <= number {
            self.outcome.seconds.resize(number + 1, Second::default());
        }
        &mut self.outcome.seconds[number]
    }

    fn judge(&mut self, frame: u64, deadline: Moment, judged: &Judged) {
        self.outcome.frames += 1;
        self.outcome.late += u64::from(judged.late);
        let second = self.second(deadline);
        second.frames += 1;
        second.late += u64::from(judged.late);
        second.late_by_meter += u64::from(judged.by_meter);
        second.longest_own = second.longest_own.max(judged.own);
        second.longest_response = second.longest_response.max(judged.response.unwrap_or_default());
        let round = usize::try_from(frame).unwrap_or(usize::MAX);
        if self.late_rounds.len() <= round {
            self.late_rounds.resize(round + 1, false);
        }
        if judged.late && !judged.by_meter && !self.late_rounds[round] {
            self.late_rounds[round] = true;
            self.outcome.late_rounds += 1;
        }
    }

    pub(super) fn progress(&self, now: Moment) -> Progress {
        Progress {
            elapsed: now.since(self.origin),
            judged: self.outcome.frames,
            late: self.outcome.late_by_storage(),
            late_rounds: self.outcome.late_rounds,
        }
    }

    /// The run is over: what was due by now and has not come is late.
    pub(super) fn outcome(
        mut self,
        now: Moment,
        complete: bool,
        method: String,
        desk: &Desk<'_>,
    ) -> Outcome {
        let waiting: BTreeMap<(u32, u64), &Asked> =
            desk.waiting_for().map(|asked| ((asked.stream, asked.frame), asked)).collect();
        let mut viewers = std::mem::take(&mut self.viewers);
        for (stream, viewer) in (0..).zip(&mut viewers) {
            loop {
                let frame = viewer.so_far.frames;
                let due = self.plan.intended(self.origin, stream, frame) + self.plan.allowed();
                match viewer.early.remove(&frame) {
                    Some(came) => viewer.shows(due, came),
                    None if frame < self.plan.frames() && due < now => {
                        self.outcome.never += 1;
                        self.judge(frame, due, &Judged::never_came());
                        let record = match waiting.get(&(stream, frame)) {
                            Some(asked) => self.record(asked),
                            None => self.never_asked(stream, frame),
                        };
                        self.log.keep(record);
                        viewer.shows(due, Came { at: now, late: true });
                    }
                    None => break,
                }
            }
        }
        Outcome {
            rounds: self.late_rounds.len() as u64,
            streams: viewers.into_iter().map(|viewer| viewer.so_far).collect(),
            took: now.since(self.origin),
            complete,
            method,
            ..self.outcome
        }
    }
}

impl Viewer {
    fn next_early(&mut self) -> Option<Came> {
        // Most frames come in their order.
        if self.early.is_empty() { None } else { self.early.remove(&self.so_far.frames) }
    }

    /// The next frame, to be shown at `due`.
    fn shows(&mut self, due: Moment, came: Came) {
        let so_far = &mut self.so_far;
        so_far.frames += 1;
        if !came.late {
            self.run = Duration::ZERO;
            return;
        }
        let drift = came.at.since(due);
        so_far.late += 1;
        so_far.aggregate_drift += drift;
        self.run += drift;
        so_far.consecutive_drift = so_far.consecutive_drift.max(self.run);
        let (from, until) = match self.outage {
            Some((from, until)) if due <= until => (from, until.max(came.at)),
            _ => (due, came.at),
        };
        self.outage = Some((from, until));
        so_far.longest_outage = so_far.longest_outage.max(until.since(from));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
