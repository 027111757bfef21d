//! The LDUs that a client receives, and the account of their arrival.
//!
//! ```text
//!   e_i = max(0, A_i - I_i)     A_i  arrival of the last byte of LDU i
//!                               I_i  its decode time on a clock that started with the first picture
//!                                    (or after the last seek), stops in pauses and not in stalls
//! ```
//!
//! An LDU that arrives before its time waits in the player's buffer and is delivered on time, so
//! that its drift is zero (Lee & Srivastava, 2001, section 5.2, with a buffer at the client).

use crate::fragments::LduPlace;
use player::{DriftFactors, Player};
use std::time::{Duration, Instant};
use units::Moment;

/// A logical data unit that has arrived: a video frame or an audio packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ldu {
    /// Index into [`crate::OpenTitle::tracks`].
    pub track: usize,
    /// Decode time on the track's clock, as the container has it.
    pub decode: Duration,
    /// Presentation time minus decode time, in nanoseconds.
    pub shift: i64,
    /// Time until the next one.
    pub duration: Duration,
    /// Whether decoding can begin here.
    pub sync: bool,
    /// When its last byte arrived.
    pub arrived: Instant,
    /// When play-out needs it, on a clock that does not stop for stalls; `None` before play-out has
    /// started and in a pause.
    pub due: Option<Instant>,
    /// The bytes of the LDU, as the container has them.
    pub bytes: Vec<u8>,
}

impl Ldu {
    pub(crate) fn new(
        track: usize,
        place: &LduPlace,
        bytes: Vec<u8>,
        now: Moment,
        due: Option<Moment>,
        begun: Instant,
    ) -> Self {
        let instant = |moment: Moment| begun + moment.since(Moment::ZERO);
        Self {
            track,
            decode: place.decode,
            shift: place.shift,
            duration: place.duration,
            sync: place.sync,
            arrived: instant(now),
            due: due.map(instant),
            bytes,
        }
    }
}

/// The drift of one track's LDUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct LduAccount {
    /// LDUs whose due time is not known, because the clock does not run: position and arrival.
    waiting: Vec<(Duration, Moment)>,
    pub(crate) drift: DriftFactors,
}

impl LduAccount {
    /// An account in which lateness within `dead_band` ends a run.
    pub(crate) fn new(dead_band: Duration) -> Self {
        Self { waiting: Vec::new(), drift: DriftFactors::new(dead_band) }
    }

    /// Notes the arrival of the LDU at a position on the player's timeline.
    pub(crate) fn arrived(&mut self, position: Duration, at: Moment, player: Option<&Player>) {
        self.waiting.push((position, at));
        self.settle(player);
    }

    /// Another timeline is played: what waits for a due time has none.
    pub(crate) fn forget_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Counts the LDUs that wait for a due time, if the clock runs.
    pub(crate) fn settle(&mut self, player: Option<&Player>) {
        let Some(player) = player else { return };
        if player.ideal_moment(Duration::ZERO).is_none() {
            return;
        }
        for (position, at) in self.waiting.drain(..) {
            let due = player.ideal_moment(position).expect("the clock runs, as seen above");
            self.drift.push(i64::try_from(at.since(due).as_nanos()).unwrap_or(i64::MAX));
        }
    }
}
