//! Counts while streams run: each read as it comes, each stream's frames in their order.

use super::{Asked, Operation, Outcome, Plan, Progress, Second, Stream, Times, index};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{ByteCount, Moment};

pub(super) struct Tally<'a> {
    plan: &'a Plan,
    origin: Moment,
    outcome: Outcome,
    late_rounds: Vec<bool>,
    viewers: Vec<Viewer>,
    log: bool,
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
    pub(super) fn new(plan: &'a Plan, origin: Moment, log: bool) -> Self {
        let outcome = Outcome {
            frames: 0,
            late: 0,
            late_by_meter: 0,
            failed: 0,
            never: 0,
            rounds: 0,
            late_rounds: 0,
            service: Times::default(),
            response: Times::default(),
            issue: Times::default(),
            streams: Vec::new(),
            seconds: Vec::new(),
            operations: Vec::new(),
            all_operations: log,
            bytes: ByteCount::ZERO,
            took: Duration::ZERO,
            complete: true,
            method: String::new(),
        };
        let viewers = (0..plan.streams).map(|_| Viewer::default()).collect();
        Self { plan, origin, outcome, late_rounds: Vec::new(), viewers, log }
    }

    /// A read is over. `overslept`: the meter may have noticed it so late.
    pub(super) fn arrived(&mut self, asked: &Asked, at: Moment, ok: bool, overslept: Duration) {
        let deadline = asked.intended + self.plan.allowed();
        let late = !ok || at > deadline;
        let response = at.since(asked.intended);
        self.outcome.issue.record(asked.own);
        if ok {
            self.outcome.service.record(at.since(asked.start));
            self.outcome.response.record(response);
            self.outcome.bytes.0 += self.plan.frame.0;
        } else {
            self.outcome.failed += 1;
        }
        let meter = asked.inherited + overslept;
        let by_meter = late && ok && at.since(deadline) <= meter;
        self.outcome.late_by_meter += u64::from(by_meter);
        if self.log && self.outcome.operations.len() < MOST_LOGGED {
            self.outcome.operations.push(Operation {
                stream: asked.stream,
                frame: asked.frame,
                intended: asked.intended.since(self.origin),
                start: asked.start.since(self.origin),
                end: at.since(self.origin),
                ok,
                meter,
            });
        } else {
            self.outcome.all_operations = false;
        }
        let judged = Judged { late, by_meter, own: meter, response: Some(response).filter(|_| ok) };
        self.judge(asked.frame, deadline, &judged);
        let viewer = &mut self.viewers[index(asked.stream)];
        viewer.early.insert(asked.frame, Came { at, late });
        while let Some(came) = viewer.early.remove(&viewer.so_far.frames) {
            let frame = viewer.so_far.frames;
            let due = self.plan.intended(self.origin, asked.stream, frame) + self.plan.allowed();
            viewer.shows(due, came);
        }
    }

    fn judge(&mut self, frame: u64, deadline: Moment, judged: &Judged) {
        self.outcome.frames += 1;
        self.outcome.late += u64::from(judged.late);
        let second = usize::try_from(deadline.since(self.origin).as_secs()).unwrap_or(usize::MAX);
        if self.outcome.seconds.len() <= second {
            self.outcome.seconds.resize(second + 1, Second::default());
        }
        let second = &mut self.outcome.seconds[second];
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
    pub(super) fn outcome(mut self, now: Moment, complete: bool, method: String) -> Outcome {
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

/// Memory for the log: about 300 MB.
const MOST_LOGGED: usize = 4_000_000;
