//! The outcome of a run as far as its log contains it: for the plots of a run that left nothing
//! else, or for new plots. [`recount`](super::recount) decides what was late and does not use this.

use super::{NONE, Record};
use crate::streams::{CompletedOperation, FrameVerdict, StreamsOutcome, growth};
use std::time::Duration;
use units::grown;
use units::{ByteCount, nanos};

/// Collects the outcome of a run from its records, in any order.
#[derive(Debug, Default)]
pub(crate) struct OutcomeFromLog {
    outcome: StreamsOutcome,
    allowed: Option<Duration>,
    /// Operations that never completed: round, second of the deadline, and intended start.
    waited: Vec<(usize, usize, u64)>,
}

impl OutcomeFromLog {
    /// Adds one record.
    pub(crate) fn count(&mut self, record: &Record) {
        let Some(place) = RecordPosition::of(record) else { return };
        let outcome = &mut self.outcome;
        let came = record.end != NONE && record.errno == 0;
        let response = record.end.saturating_sub(record.intended);
        // Even for a record that counts nothing, so that a stream without results is in the list.
        grown(&mut outcome.streams, place.stream);
        // An operation that never completed lasts at least until it was due.
        let last = if record.end == NONE { record.intended } else { record.end };
        outcome.took = outcome.took.max(Duration::from_nanos(last));
        outcome.failed += u64::from(record.errno != 0);
        outcome.never += u64::from(record.end == NONE);
        if came {
            let (kind, bytes) = (record.kind, ByteCount(record.bytes.into()));
            let service = record.end.saturating_sub(record.start);
            let operation = CompletedOperation { kind, bytes, service, response };
            outcome.count_operation(place.end, operation);
        }
        // Transfers have no deadlines and therefore neither frames nor rounds.
        if record.deadline == NONE {
            return;
        }
        if record.end == NONE {
            self.waited.push((place.round, place.deadline, record.intended));
        }
        self.allowed = Some(Duration::from_nanos(record.deadline.saturating_sub(record.intended)));
        // As in the live tally, the time of an error message is no response time.
        let response = if came { response } else { 0 };
        let (late, by_meter) = (record.is_late(), record.is_late_by_meter());
        let own = record.meter;
        let stream = &mut outcome.streams[place.stream];
        stream.frames += 1;
        stream.late += u64::from(late);
        // Frames count in the second of their deadline, bytes above in that of their arrival.
        outcome.count_frame(place.deadline, &FrameVerdict { late, by_meter, own, response });
        outcome.raise_round(place.round, response);
        outcome.rounds = outcome.round_times.len() as u64;
    }

    /// The time from a frame's intended start to its deadline; `None` where nothing had a deadline.
    pub(crate) fn allowed(&self) -> Option<Duration> {
        self.allowed
    }

    /// The outcome of all records added: without drift, outages, and the read method. Whether the
    /// backlog grew at the end is judged as for a run that was as long as this one was planned.
    pub(crate) fn outcome(mut self) -> StreamsOutcome {
        // An operation that never completed was awaited at least until the last completion.
        for (round, second, intended) in self.waited {
            let waited = self.outcome.took.saturating_sub(Duration::from_nanos(intended));
            self.outcome.raise_round(round, nanos(waited));
            self.outcome.response.record(waited);
            let second = &mut self.outcome.seconds[second].longest_response;
            *second = waited.max(*second);
        }
        let times = &self.outcome.round_times;
        let took = self.outcome.took;
        let growing = self.allowed.and_then(|allowed| growth(times, times.len(), took, allowed));
        self.outcome.backlog_growth = growing;
        self.outcome
    }
}

/// The indices of the stream, round and seconds that a record belongs to.
struct RecordPosition {
    stream: usize,
    round: usize,
    /// The second of its completion.
    end: usize,
    deadline: usize,
}

impl RecordPosition {
    /// `None` for values that no run has; they would claim too much memory.
    fn of(record: &Record) -> Option<Self> {
        let within = |number: u64, most: u64| {
            let number = (number <= most).then_some(number)?;
            usize::try_from(number).ok()
        };
        let seconds =
            |time: u64| within(if time == NONE { 0 } else { time / 1_000_000_000 }, MONTH);
        // Frames of transfers are not rounds.
        let round = if record.deadline == NONE { 0 } else { record.frame };
        Some(Self {
            stream: within(record.stream.into(), STREAMS)?,
            round: within(round, ROUNDS)?,
            end: seconds(record.end)?,
            deadline: seconds(record.deadline)?,
        })
    }
}

/// The largest number of streams in a run.
const STREAMS: u64 = 1_000_000;

/// The longest run, one month, in seconds.
const MONTH: u64 = 31 * 86_400;

/// The largest number of rounds: one month at 25 frames per second.
const ROUNDS: u64 = MONTH * 25;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn rounds_seconds_and_responses_match_the_records() {
        let frame = |stream, frame, intended, end| Record {
            stream,
            frame,
            bytes: 100,
            intended: intended * MS,
            start: intended * MS,
            end: end * MS,
            deadline: (intended + 320) * MS,
            ..Record::default()
        };
        let never = Record { end: NONE, start: NONE, ..frame(1, 1, 1000, 0) };
        let failed = Record { errno: 5, ..frame(0, 1, 1000, 1010) };
        let mad = Record { frame: u64::MAX - 1, ..frame(0, 0, 0, 1) };
        let mut again = OutcomeFromLog::default();
        for record in [frame(0, 0, 0, 10), frame(1, 0, 20, 420), failed, never, mad] {
            again.count(&record);
        }
        assert_eq!(again.allowed(), Some(Duration::from_millis(320)));
        let outcome = again.outcome();
        assert_eq!((outcome.frames, outcome.late, outcome.failed, outcome.never), (4, 3, 1, 1));
        // An operation that never completed was awaited until the last completion.
        assert_eq!(outcome.round_times, [400, 10].map(Duration::from_millis));
        let seconds: Vec<(u64, u64)> = outcome.seconds.iter().map(|s| (s.frames, s.late)).collect();
        assert_eq!(seconds, [(2, 1), (2, 2)]);
        assert_eq!((outcome.reads.bytes, outcome.response.count()), (ByteCount(200), 3));
        let late: Vec<u64> = outcome.streams.iter().map(|stream| stream.late).collect();
        assert_eq!(late, [1, 2]);
    }

    #[test]
    fn a_backlog_that_grows_is_seen_in_the_log() {
        let grows = |nanos_a_frame: u64| {
            let mut again = OutcomeFromLog::default();
            for frame in 0..200 {
                let (intended, end) = (frame * 40 * MS, frame * (40 * MS + nanos_a_frame) + MS);
                let deadline = intended + 320 * MS;
                again.count(&Record { frame, intended, end, deadline, ..Record::default() });
            }
            again.outcome().backlog_growth.is_some()
        };
        assert_eq!((grows(0), grows(MS)), (false, true));
    }

    #[test]
    fn blocks_of_transfers_have_no_rounds() {
        let block = Record { frame: 1 << 40, start: 0, end: 5 * MS, bytes: 7, ..Record::default() };
        let mut again = OutcomeFromLog::default();
        again.count(&block);
        assert_eq!(again.allowed(), None);
        let outcome = again.outcome();
        assert_eq!((outcome.frames, outcome.rounds), (0, 0));
        assert_eq!((outcome.bytes(), outcome.took), (ByteCount(7), Duration::from_millis(5)));
    }
}
