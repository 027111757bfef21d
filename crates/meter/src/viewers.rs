//! The experience of viewers, counted in the same way as the frames of streams.
//!
//! ```text
//!   streams              viewers
//!   frame                piece of the first track whose rendering became due
//!   deadline             end of the picture before it
//!   late                 playback stalled, for longer than the player's dead-band
//!   frame number, round  number of the piece
//!   response             from the player's decision to fetch a piece to its last byte
//!   service              from the sending of the request (on an open connection) to the last byte
//!   late by the meter    stalled no longer than the meter itself was late in these seconds
//! ```
//!
//! A piece in a lower rendition than necessary ([`tenuto_client::play`]) is counted separately, in
//! time or not: playback that is smooth only because of a small picture does not count as held. Its
//! round counts as a late one.
//!
//! A viewer who is refused, or gets an error or no response, counts as one late frame: with this
//! number of viewers one of them saw nothing. The play-out clock continues where it stopped: a
//! piece is late by its own delay, without the delay of the pieces before it.

use crate::error::MeterError;
use crate::log::{NONE, OperationKind, Record, RecordSink};
use crate::streams::{
    CompletedOperation, FrameVerdict, StreamStats, StreamsOutcome, growth_of_lack,
};
use player::{PlayerOptions, PlayerReport};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tenuto_client::{
    OwnLateness, PlayOptions, PlayRecords, PlayReport, ViewerOutcome as Fate, ViewerRecord,
    ViewerSample, play_recorded, second,
};
use units::{ByteCount, Moment, nanos};

/// The result of a run of viewers.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The viewers' experience in the form of streams.
    pub outcome: StreamsOutcome,
    /// The report of each viewer.
    pub report: PlayReport,
}

/// A piece on the play-out clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rendered {
    piece: usize,
    /// The end of the piece before.
    due: Moment,
    /// The start of its rendering.
    at: Moment,
}

/// Runs players and counts the result as [`crate::streams`] does: a viewer is a stream, a segment
/// is a frame, and a segment that playback had to wait for is late. After the run, every segment
/// that arrived is written to `log`. For viewers with [`player::Behaviour::default`] only.
pub fn count(
    options: &PlayOptions,
    stop: &AtomicBool,
    log: &mut dyn RecordSink,
    progress: &mut dyn FnMut(&ViewerSample),
) -> Result<Counted, MeterError> {
    let (report, records) = play_recorded(options, stop, progress)?;
    Ok(Counted { outcome: outcome(&options.player, &records, log), report })
}

fn outcome(player: &PlayerOptions, run: &PlayRecords, log: &mut dyn RecordSink) -> StreamsOutcome {
    let viewers: Vec<Vec<Duration>> =
        run.viewers.iter().map(|viewer| leads(viewer, player.buffer)).collect();
    let backlog_growth = growth_of_lack(&most_lacking(&viewers, player.buffer), player.buffer);
    let mut tally = ViewersTally {
        dead_band: player.dead_band,
        own: &run.own,
        late_rounds: BTreeSet::new(),
        outcome: StreamsOutcome {
            issue: run.own.waking.clone(),
            took: run.took,
            complete: run.complete,
            method: METHOD.to_owned(),
            // Of a run that was stopped the end is not known.
            backlog_growth: backlog_growth.filter(|_| run.complete),
            ..StreamsOutcome::default()
        },
    };
    for viewer in &run.viewers {
        tally.viewer(viewer, log);
        tally.outcome.below_best += viewer.below_best.len() as u64;
        for piece in &viewer.below_best {
            tally.late_rounds.insert(*piece as u64);
            tally.outcome.rounds = tally.outcome.rounds.max(*piece as u64 + 1);
        }
    }
    tally.outcome.late_rounds = tally.late_rounds.len() as u64;
    tally.outcome
}

const METHOD: &str = "HTTP/1.1, as players do, in one thread";

struct ViewersTally<'a> {
    dead_band: Duration,
    own: &'a OwnLateness,
    late_rounds: BTreeSet<u64>,
    outcome: StreamsOutcome,
}

impl ViewersTally<'_> {
    fn viewer(&mut self, viewer: &ViewerRecord, log: &mut dyn RecordSink) {
        let rendered = viewer.player.as_ref().map_or(Vec::new(), |last| rendered(viewer, last));
        self.fetched(viewer, &rendered, log);
        let mut stream = StreamStats::default();
        for piece in &rendered {
            stream.frames += 1;
            stream.late += u64::from(self.shown(*piece));
        }
        let last = viewer.player.as_ref();
        let stalls = last.map_or(0, |last| last.stalls.count);
        // A stall that is still going on, or one of another track than the first.
        let waiting = stalls.saturating_sub(stream.late);
        let nothing =
            viewer.outcome != Fate::Admitted || last.is_none_or(|last| last.startup.is_none());
        let missing = waiting.max(u64::from(nothing));
        for _ in 0..missing {
            let number = stream.frames;
            stream.frames += 1;
            stream.late += 1;
            self.late_rounds.insert(number);
            let missed = FrameVerdict { late: true, ..FrameVerdict::default() };
            self.outcome.count_frame(second(Moment::ZERO + self.outcome.took), &missed);
        }
        self.outcome.never += missing;
        self.outcome.failed += u64::from(viewer.outcome == Fate::Failed);
        if let Some(last) = last {
            stream.longest_outage = last.stalls.longest;
            stream.accumulated_drift = last.drift.accumulated();
            stream.consecutive_drift = last.drift.consecutive();
        }
        self.outcome.rounds = self.outcome.rounds.max(stream.frames);
        self.outcome.streams.push(stream);
    }

    /// Counts a rendered piece; returns whether it was late.
    fn shown(&mut self, piece: Rendered) -> bool {
        let stood = piece.at.since(piece.due);
        let late = stood > self.dead_band;
        // The time in which the picture stood: lateness before or after it did not matter.
        let own = self.own.longest(piece.due, piece.at);
        let by_meter = late && stood <= own;
        if late && !by_meter {
            self.late_rounds.insert(piece.piece as u64);
        }
        let judged = FrameVerdict { late, by_meter, own: nanos(own), response: 0 };
        self.outcome.count_frame(second(piece.due), &judged);
        late
    }

    fn fetched(&mut self, viewer: &ViewerRecord, rendered: &[Rendered], log: &mut dyn RecordSink) {
        for fetched in &viewer.fetched {
            let took = fetched.end.since(fetched.asked);
            let end = second(fetched.end);
            let operation = CompletedOperation {
                kind: OperationKind::Read,
                bytes: ByteCount(fetched.bytes),
                service: nanos(fetched.end.since(fetched.sent)),
                response: nanos(took),
            };
            self.outcome.count_operation(end, operation);
            let longest = &mut self.outcome.seconds[end].longest_response;
            *longest = took.max(*longest);
            // The first piece has no picture before it whose end could be its deadline.
            let has_deadline = fetched.track == 0 && fetched.piece > 0;
            let due = rendered.iter().find(|shown| has_deadline && shown.piece == fetched.piece);
            log.keep(&Record {
                stream: viewer.number,
                file: u32::try_from(fetched.track).unwrap_or(u32::MAX),
                frame: fetched.piece as u64,
                bytes: u32::try_from(fetched.bytes).unwrap_or(u32::MAX),
                intended: fetched.asked.0,
                start: fetched.sent.0,
                first: fetched.first.map_or(NONE, |first| first.0),
                end: fetched.end.0,
                deadline: due.map_or(NONE, |shown| (shown.due + self.dead_band).0),
                kind: OperationKind::Read,
                ..Record::default()
            });
        }
    }
}

/// How long before its rendering each piece of the first track arrived, at most `buffer`. A piece
/// that is still in the buffer is expected as late as the last one that was rendered.
fn leads(viewer: &ViewerRecord, buffer: Duration) -> Vec<Duration> {
    let last = viewer.player.as_ref();
    let (Some(timeline), Some(startup)) = (&viewer.timeline, last.and_then(|last| last.startup))
    else {
        return Vec::new();
    };
    let drifts = last.map_or(&[][..], |last| last.drift.units());
    let mut leads = Vec::new();
    for fetched in viewer.fetched.iter().filter(|fetched| fetched.track == 0) {
        // A piece that is fetched again, in another rendition, is not the next one.
        if fetched.piece == leads.len() {
            let drift = drifts.get(fetched.piece).or(drifts.last()).copied().unwrap_or(0);
            let late = Duration::from_nanos(u64::try_from(drift).unwrap_or(0));
            let due = viewer.admission_asked + startup + timeline.tracks[0].start(fetched.piece);
            leads.push((due + late).since(fetched.end).min(buffer));
        }
    }
    leads
}

/// What the emptiest buffer lacks at each piece that all viewers have. A viewer without any piece
/// counts as a late frame.
fn most_lacking(viewers: &[Vec<Duration>], buffer: Duration) -> Vec<Duration> {
    let played = || viewers.iter().filter(|leads| !leads.is_empty());
    let pieces = played().map(Vec::len).min().unwrap_or(0);
    let lacks = |piece| played().map(move |leads| buffer - leads[piece]).max();
    (0..pieces).filter_map(lacks).collect()
}

/// The rendered pieces of the first track, from the player's drift. The drift is measured against a
/// clock that does not stop for stalls, so that the drift of the piece before gives the due time of
/// the next one.
fn rendered(viewer: &ViewerRecord, last: &PlayerReport) -> Vec<Rendered> {
    let (Some(timeline), Some(startup)) = (&viewer.timeline, last.startup) else {
        return Vec::new();
    };
    let began = viewer.admission_asked + startup;
    let late = |nanos: i64| Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
    let mut before = Duration::ZERO;
    let drifts = last.drift.units().iter().enumerate().take(timeline.tracks[0].len());
    drifts
        .map(|(piece, drift)| {
            let ideal = began + timeline.tracks[0].start(piece);
            let drift = late(*drift);
            let due = ideal + before.min(drift);
            before = drift;
            Rendered { piece, due, at: ideal + drift }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emptiest_buffer_counts_at_each_piece_that_all_have() {
        let seconds = |all: &[u64]| all.iter().copied().map(Duration::from_secs).collect();
        let viewers: [Vec<Duration>; 3] = [seconds(&[2, 9, 30, 30]), seconds(&[3, 7, 5]), vec![]];
        let lacks: Vec<Duration> = seconds(&[28, 23, 25]);
        assert_eq!(most_lacking(&viewers, Duration::from_secs(30)), lacks);
        assert!(most_lacking(&[], Duration::ZERO).is_empty());
    }
}
