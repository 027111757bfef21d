//! Figures of a run of transfers while it is in progress, from the records of its blocks.

use super::TransfersPlan;
use crate::log::{NONE, Record, RecordSink};
use crate::progress::RunProgress;
use crate::streams::{Heat, LiveFigures, LiveKind, Times};
use std::cell::RefCell;
use std::time::Duration;
use units::grown;
use units::{BitRate, ByteCount};

/// Counts the records of a run for its live figures.
pub(crate) struct LiveTally {
    counted: RefCell<BlockCounts>,
    clients: u32,
    duration: Duration,
    asked: BitRate,
}

#[derive(Default)]
struct BlockCounts {
    response: Times,
    heat: Heat,
    /// Bytes that were moved in each second.
    seconds: Vec<u64>,
    failed: u64,
    /// The time of the next figures.
    next: Duration,
}

/// A log whose records a [`LiveTally`] counts, too.
pub(crate) struct CountedLog<'a> {
    pub(crate) log: &'a mut dyn RecordSink,
    pub(crate) tally: Option<&'a LiveTally>,
}

impl LiveTally {
    pub(crate) fn new(plan: &TransfersPlan) -> Self {
        Self {
            counted: RefCell::default(),
            clients: plan.clients,
            duration: plan.duration,
            asked: plan.rate.unwrap_or(BitRate(0)),
        }
    }

    fn count(&self, record: &Record) {
        let counted = &mut *self.counted.borrow_mut();
        if record.errno != 0 || record.end == NONE {
            counted.failed += 1;
            return;
        }
        let second = record.end / 1_000_000_000;
        let response = record.end.saturating_sub(record.intended);
        counted.response.record_nanos(response);
        counted.heat.count(second, response);
        let index = usize::try_from(second).unwrap_or(usize::MAX);
        *grown(&mut counted.seconds, index) += u64::from(record.bytes);
    }

    /// The figures at this progress; `None` if those before are too recent to be replaced.
    pub(crate) fn figures(&self, progress: &RunProgress) -> Option<LiveFigures> {
        let counted = &mut *self.counted.borrow_mut();
        if progress.elapsed < counted.next {
            return None;
        }
        counted.next = progress.elapsed + LiveFigures::EVERY;
        let now = usize::try_from(progress.elapsed.as_secs()).unwrap_or(usize::MAX);
        let last = now.checked_sub(1).and_then(|second| counted.seconds.get(second));
        let [p50, p99] = counted.response.two_quantiles([0.5, 0.99]);
        Some(LiveFigures {
            kind: LiveKind::Clients,
            streams: self.clients,
            asked: self.asked,
            elapsed: progress.elapsed,
            duration: self.duration,
            frames: progress.judged,
            failed: counted.failed,
            rate: BitRate::of(ByteCount(last.copied().unwrap_or(0)), Duration::from_secs(1)),
            response: [p50, p99, counted.response.max()],
            heat: counted.heat.last(now, LiveFigures::SECONDS),
            ..LiveFigures::default()
        })
    }
}

impl RecordSink for CountedLog<'_> {
    fn keep(&mut self, record: &Record) {
        self.tally.into_iter().for_each(|tally| tally.count(record));
        self.log.keep(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles;
    use crate::transfers::TransferMix;

    #[test]
    fn blocks_are_counted_by_second_and_figures_five_times_a_second() {
        let profile = profiles::named("ebu3362-read").unwrap();
        let plan = TransfersPlan {
            mix: TransferMix::of(&profile, 1, ByteCount(1 << 30)),
            clients: 3,
            duration: Duration::from_secs(60),
            most: None,
            seed: 1,
            rate: None,
        };
        let (tally, ms) = (LiveTally::new(&plan), 1_000_000);
        let mut kept = Vec::new();
        let mut log = CountedLog { log: &mut kept, tally: Some(&tally) };
        for end in [100, 900, 1100] {
            let (intended, end) = (end * ms - 20 * ms, end * ms);
            log.keep(&Record { bytes: 500_000, intended, end, ..Record::default() });
        }
        log.keep(&Record { errno: 5, end: 2, ..Record::default() });
        assert_eq!(kept.len(), 4);
        let progress = |elapsed| RunProgress {
            elapsed: Duration::from_millis(elapsed),
            judged: 2,
            ..RunProgress::default()
        };
        let figures = tally.figures(&progress(1200)).unwrap();
        assert_eq!((figures.kind, figures.streams, figures.frames), (LiveKind::Clients, 3, 2));
        assert_eq!((figures.rate, figures.failed), (BitRate(8_000_000), 1));
        assert_eq!(figures.response[2], Duration::from_millis(20));
        let columns: Vec<u32> = figures.heat.iter().map(|bands| bands.iter().sum()).collect();
        assert_eq!(columns[LiveFigures::SECONDS - 2..], [2, 1]);
        assert_eq!(tally.figures(&progress(1300)), None, "too soon");
        assert!(tally.figures(&progress(1400)).is_some());
    }
}
