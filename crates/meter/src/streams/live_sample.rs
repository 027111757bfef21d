//! Figures of a run while it is in progress, sampled from its tallies.
//!
//! Nothing is counted for them: a few times a second the measuring thread copies what it has
//! counted anyway, which takes it some ten microseconds.

use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;
use units::{BitRate, Moment, locked};

/// What moves the data of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveKind {
    /// Streams, whose frames have deadlines.
    #[default]
    Streams,
    /// Clients, which make one transfer after another.
    Clients,
}

/// The figures of streams, or of clients of transfers, whose run is in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveFigures {
    /// Streams or clients. Clients have no deadlines, no late frames and no queue.
    pub kind: LiveKind,
    /// The group's name in a run of several; empty in other runs.
    pub name: String,
    /// The number of streams or clients.
    pub streams: u32,
    /// The rate that they demand together; zero for as fast as the storage allows.
    pub asked: BitRate,
    /// Time since the start.
    pub elapsed: Duration,
    /// The time in which frames become due.
    pub duration: Duration,
    /// The time within which a frame is not late.
    pub allowed: Duration,
    /// Frames whose verdict is known, or completed transfers.
    pub frames: u64,
    /// Late frames, not counting those that the meter delayed.
    pub late: u64,
    /// Late frames because of the meter.
    pub late_by_meter: u64,
    /// Operations that failed.
    pub failed: u64,
    /// The rate of the last full second.
    pub rate: BitRate,
    /// Response times until now: the median, the 99th percentile, and the longest.
    pub response: [Duration; 3],
    /// Operations in flight.
    pub in_flight: usize,
    /// Frames that are due and wait for room in the queue.
    pub waiting: usize,
    /// The numbers of responses in each of the last seconds, by length; the present second is
    /// last. [`heat_band`](crate::report::heat_band) is the index of a length.
    pub heat: Vec<Vec<u32>>,
}

impl LiveFigures {
    /// The number of seconds in `heat`.
    pub const SECONDS: usize = 60;

    /// The interval of figures: a reader follows no more, and the run notices nothing.
    pub(crate) const EVERY: Duration = Duration::from_millis(200);

    /// The figures for programs, without the heat map; times in seconds.
    pub fn json(&self) -> Value {
        let [p50, p99, max] = self.response.map(|time| time.as_secs_f64());
        let kind = match self.kind {
            LiveKind::Streams => "streams",
            LiveKind::Clients => "clients",
        };
        json!({
            "name": self.name,
            "kind": kind,
            "streams": self.streams,
            "asked_bits_per_s": self.asked.0,
            "bits_per_s": self.rate.0,
            "elapsed": self.elapsed.as_secs_f64(),
            "duration": self.duration.as_secs_f64(),
            "allowed": self.allowed.as_secs_f64(),
            "frames": self.frames,
            "late": self.late,
            "late_by_meter": self.late_by_meter,
            "failed": self.failed,
            "response": { "p50": p50, "p99": p99, "max": max },
            "in_flight": self.in_flight,
            "waiting": self.waiting,
        })
    }
}

/// The place where a run leaves its latest figures for another thread or for its caller.
#[derive(Debug, Default)]
pub(crate) struct LiveSample(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    next: Option<Moment>,
    figures: Option<LiveFigures>,
}

impl LiveSample {
    /// Whether figures are to be left at `now`.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        locked(&self.0).next.is_none_or(|next| now >= next)
    }

    /// Leaves figures that were taken at `now`.
    pub(super) fn take(&self, now: Moment, figures: LiveFigures) {
        *locked(&self.0) = Latest { next: Some(now + LiveFigures::EVERY), figures: Some(figures) };
    }

    /// The figures that were left since the last call.
    pub(crate) fn figures(&self) -> Option<LiveFigures> {
        locked(&self.0).figures.take()
    }
}
