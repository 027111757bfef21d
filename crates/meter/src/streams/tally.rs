//! The statistics of streams in progress: each operation is counted as it completes.
//!
//! This runs for every operation, millions of times a second on a fast target: it allocates nothing
//! and calculates in nanoseconds.

use super::backlog::{growth, tested_every};
use super::in_order::{FrameArrival, OrderedStream};
use super::issuer::{IssuedRead, Issuer};
use super::live_sample::{LiveFigures, LiveKind};
use super::{BacklogGrowth, CompletedOperation, FrameVerdict, StreamsOutcome, StreamsPlan};
use crate::log::{NONE, Record, RecordSink, errno};
use crate::progress::RunProgress;
use crate::target::IoCompletion;
use std::collections::BTreeMap;
use std::time::Duration;
use units::grown;
use units::{BitRate, ByteCount, Hinted, Moment, index, nanos};

pub(super) struct StreamsTally<'a> {
    plan: &'a StreamsPlan,
    origin: Moment,
    /// [`StreamsPlan::allowed`] in nanoseconds.
    allowed: u64,
    outcome: StreamsOutcome,
    rounds: Vec<RoundTally>,
    /// The number of complete rounds from the first on.
    complete_rounds: usize,
    /// The number of complete rounds at which a continued run is tested next.
    tested_at: usize,
    viewers: Vec<OrderedStream>,
    log: &'a mut dyn RecordSink,
}

/// The frames with one number.
#[derive(Clone, Copy, Default)]
struct RoundTally {
    /// Judged frames.
    judged: u32,
    /// Whether a frame was late because of the storage.
    late: bool,
    /// The longest response, in nanoseconds.
    longest_response: u64,
}

impl<'a> StreamsTally<'a> {
    pub(super) fn new(plan: &'a StreamsPlan, origin: Moment, log: &'a mut dyn RecordSink) -> Self {
        Self {
            plan,
            origin,
            allowed: nanos(plan.allowed()),
            outcome: StreamsOutcome::default(),
            rounds: Vec::new(),
            complete_rounds: 0,
            tested_at: usize::try_from(plan.frames()).unwrap_or(usize::MAX),
            viewers: (0..plan.streams).map(|_| OrderedStream::default()).collect(),
            log,
        }
    }

    /// Counts a completed operation. `overslept` is the time by which the meter may have noticed it
    /// late.
    #[inline]
    pub(super) fn arrived(&mut self, asked: &IssuedRead, arrival: &IoCompletion, overslept: u64) {
        let (at, ok) = (arrival.at, arrival.result.is_ok());
        let deadline = Moment(asked.intended.0 + self.allowed);
        // A failed operation delivered nothing, so that its frame is late even if it failed early.
        let late = !ok || at > deadline;
        // From the intended start: a storage that stalls is charged for the requests that it held
        // back.
        let response = at.0.saturating_sub(asked.intended.0);
        let end = self.nanos(at);
        self.outcome.issue.record_nanos(asked.own);
        if ok {
            // From the real start: what the storage took for this one request.
            let service = at.0.saturating_sub(asked.start.0);
            let (kind, bytes) = (asked.ask.kind, self.plan.frame);
            let operation = CompletedOperation { kind, bytes, service, response };
            self.outcome.count_operation(second_of(end), operation);
        } else {
            self.outcome.failed += 1;
        }
        if let Err(error) = &arrival.result {
            self.outcome.first_failure.get_or_insert_with(|| error.reason());
        }
        // The meter's share: late when issuing, or late when noticing the completion.
        let meter = asked.inherited + overslept;
        let by_meter = late && ok && at.0.saturating_sub(deadline.0) <= meter;
        self.log.keep(&Record {
            first: arrival.first.map_or(NONE, |first| self.nanos(first)),
            end,
            open: nanos(arrival.open),
            close: nanos(arrival.close),
            meter,
            errno: errno(&arrival.result),
            ..self.record(asked)
        });
        // The time of a failure is no response time.
        let response = if ok { response } else { 0 };
        self.judge(asked.frame, deadline, &FrameVerdict { late, by_meter, own: meter, response });
        // Frames arrive in any order, but a viewer shows them one after another. In place of a
        // frame that failed there is no picture until the next one is due.
        let shown = if ok { at } else { at.max(deadline + self.plan.fps.moment(1)) };
        let came = FrameArrival { at: shown, late };
        let viewer = &mut self.viewers[index(asked.stream)];
        if viewer.next() == asked.frame {
            viewer.shows(deadline, came);
        } else {
            viewer.waits(asked.frame, came);
        }
        while let Some(came) = viewer.next_early() {
            let intended = self.plan.intended(self.origin, asked.stream, viewer.next());
            viewer.shows(Moment(intended.0 + self.allowed), came);
        }
    }

    /// Adds polling time that ended at `at`.
    pub(super) fn watched(&mut self, at: Moment, nanos: u64) {
        if nanos > 0 {
            let second = second_of(self.nanos(at));
            grown(&mut self.outcome.seconds, second).spun += Duration::from_nanos(nanos);
        }
    }

    fn nanos(&self, moment: Moment) -> u64 {
        moment.0.saturating_sub(self.origin.0)
    }

    /// The record of an operation before its completion.
    fn record(&self, asked: &IssuedRead) -> Record {
        let intended = self.nanos(asked.intended);
        Record {
            stream: asked.stream,
            file: asked.ask.file,
            frame: asked.frame,
            bytes: u32::try_from(self.plan.frame.0).unwrap_or(u32::MAX),
            offset: asked.ask.offset,
            intended,
            start: self.nanos(asked.start),
            deadline: intended + self.allowed,
            meter: asked.inherited,
            kind: asked.ask.kind,
            random: asked.ask.random,
            ..Record::default()
        }
    }

    /// The record of an operation that was due and was never issued.
    fn never_asked(&self, stream: u32, frame: u64) -> Record {
        let (ask, start) = (self.plan.ask(stream, frame), Moment::ZERO);
        let intended = self.plan.intended(self.origin, stream, frame);
        let asked = IssuedRead { stream, frame, ask, intended, start, own: 0, inherited: 0 };
        Record { start: NONE, ..self.record(&asked) }
    }

    #[inline]
    fn judge(&mut self, frame: u64, deadline: Moment, judged: &FrameVerdict) {
        let second = second_of(self.nanos(deadline));
        self.outcome.count_frame(second, judged);
        let tally = grown(&mut self.rounds, usize::try_from(frame).unwrap_or(usize::MAX));
        tally.longest_response = tally.longest_response.max(judged.response);
        // A round counts once, however many of its streams are late.
        if judged.late && !judged.by_meter && !std::mem::replace(&mut tally.late, true) {
            self.outcome.late_rounds += 1;
        }
        tally.judged += 1;
        if tally.judged == self.plan.streams {
            self.count_complete_rounds();
        }
    }

    fn count_complete_rounds(&mut self) {
        let judged = self.rounds[self.complete_rounds..].iter().map(|round| round.judged);
        self.complete_rounds += judged.take_while(|judged| *judged == self.plan.streams).count();
    }

    /// The longest response of each of the first `rounds` rounds.
    fn round_times(&self, rounds: usize) -> Vec<Duration> {
        let rounds = self.rounds[..rounds].iter();
        rounds.map(|round| Duration::from_nanos(round.longest_response)).collect()
    }

    /// Whether the planned rounds are complete and the backlog does not grow. Computed once for
    /// each part of a continued run.
    pub(super) fn is_settled(&mut self) -> bool {
        if self.complete_rounds < self.tested_at {
            return false;
        }
        let step = usize::try_from(tested_every(self.plan.frames())).unwrap_or(usize::MAX);
        self.tested_at = self.complete_rounds.saturating_add(step);
        self.growth().is_none()
    }

    fn growth(&self) -> Option<BacklogGrowth> {
        let planned = usize::try_from(self.plan.frames()).unwrap_or(usize::MAX);
        let times = self.round_times(self.complete_rounds);
        growth(&times, planned, self.plan.duration, self.plan.allowed())
    }

    pub(super) fn progress(&self, now: Moment) -> RunProgress {
        RunProgress {
            elapsed: now.since(self.origin),
            judged: self.outcome.frames,
            late: self.outcome.late_by_storage(),
            late_rounds: self.outcome.late_rounds,
            ..RunProgress::default()
        }
    }

    /// The figures of the run so far.
    pub(super) fn figures(&self, now: Moment, desk: &Issuer<'_>) -> LiveFigures {
        let (outcome, (in_flight, waiting)) = (&self.outcome, desk.queue());
        let second = second_of(self.nanos(now));
        let last = second.checked_sub(1).and_then(|second| outcome.seconds.get(second));
        let rate = last.map_or(BitRate(0), |last| {
            BitRate::of(ByteCount(last.bytes()), Duration::from_secs(1))
        });
        let [p50, p99] = outcome.response.two_quantiles([0.5, 0.99]);
        LiveFigures {
            kind: LiveKind::Streams,
            name: String::new(),
            streams: self.plan.streams,
            asked: self.plan.rate(),
            elapsed: now.since(self.origin),
            duration: self.plan.duration,
            allowed: self.plan.allowed(),
            frames: outcome.frames,
            late: outcome.late_by_storage(),
            late_by_meter: outcome.late_by_meter,
            failed: outcome.failed,
            rate,
            response: [p50, p99, outcome.response.max()],
            in_flight,
            waiting,
            heat: outcome.heat.last(second, LiveFigures::SECONDS),
        }
    }

    /// Ends the run: frames that were due by now and have not arrived are late. It is not known
    /// when such a frame would have arrived. The meter is the cause if its own lateness is longer
    /// than the time since the deadline: a punctual meter would have seen that much less of the
    /// wait.
    pub(super) fn outcome(
        &mut self,
        now: Moment,
        complete: bool,
        method: String,
        desk: &Issuer<'_>,
    ) -> StreamsOutcome {
        let waiting: BTreeMap<(u32, u64), &IssuedRead> =
            desk.waiting_for().map(|asked| ((asked.stream, asked.frame), asked)).collect();
        let mut least_inherited: BTreeMap<u32, u64> = BTreeMap::new();
        for asked in waiting.values() {
            let least = least_inherited.entry(asked.stream).or_insert(asked.inherited);
            *least = asked.inherited.min(*least);
        }
        // Taken out, because judging a viewer's frames needs the rest of the tally.
        let mut viewers = std::mem::take(&mut self.viewers);
        for (stream, viewer) in (0..).zip(&mut viewers) {
            loop {
                let frame = viewer.next();
                let due = self.plan.intended(self.origin, stream, frame) + self.plan.allowed();
                match viewer.next_early() {
                    // Judged when it arrived; only its place in the order was open.
                    Some(came) => viewer.shows(due, came),
                    None if frame < desk.frames() && due < now => {
                        self.outcome.never += 1;
                        // The time waited so far is a lower bound of the response: so a storage
                        // that hangs is visible in the figures.
                        let intended = self.plan.intended(self.origin, stream, frame);
                        let response = nanos(now.since(intended));
                        self.outcome.response.record_nanos(response);
                        let second = second_of(self.nanos(now)) as u64;
                        self.outcome.heat.count(second, response);
                        let asked = waiting.get(&(stream, frame));
                        // The room that a frame waits for comes from one of its stream's.
                        let own = match asked {
                            Some(asked) => asked.inherited,
                            None => least_inherited.get(&stream).copied().unwrap_or(0),
                        };
                        // Of a punctual meter the wait so far would end before the deadline.
                        let by_meter = own > 0 && nanos(now.since(due)) <= own;
                        let own = if by_meter { own } else { 0 };
                        let judged = FrameVerdict { late: true, by_meter, own, response };
                        self.judge(frame, due, &judged);
                        let record = match asked {
                            Some(asked) => self.record(asked),
                            None => self.never_asked(stream, frame),
                        };
                        self.log.keep(&Record { meter: own, ..record });
                        viewer.shows(due, FrameArrival { at: now, late: true });
                    }
                    // Not due yet: no verdict, as if the run had not planned it.
                    None => break,
                }
            }
        }
        let backlog_growth = self.growth();
        StreamsOutcome {
            backlog_growth,
            rounds: self.rounds.len() as u64,
            round_times: self.round_times(self.rounds.len()),
            streams: viewers.iter().map(OrderedStream::so_far).collect(),
            took: now.since(self.origin),
            complete,
            method,
            ..std::mem::take(&mut self.outcome)
        }
    }
}

/// The second of the run that a time in nanoseconds is in.
fn second_of(nanos: u64) -> usize {
    usize::try_from(nanos / 1_000_000_000).unwrap_or(usize::MAX)
}
