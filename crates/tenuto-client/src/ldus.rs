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

use player::{DriftFactors, Player};
use std::time::{Duration, Instant};
use units::Moment;

/// A logical data unit that has arrived: a video frame or an audio packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ldu {
    /// Number of its track, see [`crate::OpenTitle::tracks`].
    pub track: usize,
    /// Presentation time: on the track's clock, as the container has it; over RTSP in the title,
    /// from the start that the answer to `PLAY` names.
    pub time: Duration,
    /// Decode time on the same clock; `None` in RTP, which has none.
    pub decode: Option<Duration>,
    /// Time until the next one, where it is stated: in fragmented MP4.
    pub duration: Option<Duration>,
    /// Whether decoding can begin here. In RTP this is known of H.264, HEVC, MPEG video and sound.
    pub sync: bool,
    /// When its last byte arrived.
    pub arrived: Instant,
    /// When play-out needs it, on a clock that does not stop for stalls; `None` before play-out has
    /// started and in a pause.
    pub due: Option<Instant>,
    /// The bytes of the LDU: as in MP4 (NAL units behind their lengths; of RTP in four bytes), or
    /// the content of a PES packet, as the transport stream has it.
    pub bytes: Vec<u8>,
}

/// A logical data unit as its container describes it, without its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LduPlace {
    /// Decode time, from the zero of the track's clock.
    pub(crate) decode: Duration,
    /// Presentation time minus decode time, in nanoseconds.
    pub(crate) shift: i64,
    pub(crate) duration: Option<Duration>,
    /// Whether decoding can begin here.
    pub(crate) sync: bool,
    pub(crate) size: u32,
}

impl LduPlace {
    /// Presentation time; what would be shown before the zero of the clock is at zero.
    pub(crate) fn presentation(&self) -> Duration {
        let shift = Duration::from_nanos(self.shift.unsigned_abs());
        if self.shift < 0 { self.decode.saturating_sub(shift) } else { self.decode + shift }
    }
}

/// An LDU that was found in a piece, or in a stream.
#[derive(Clone, Debug)]
pub(crate) struct FoundLdu {
    /// The number of its elementary stream in a transport stream, pictures first; else zero.
    pub(crate) stream: usize,
    pub(crate) place: LduPlace,
    /// The bytes, where they are wanted.
    pub(crate) bytes: Vec<u8>,
    /// The arrival of the last byte.
    pub(crate) at: Moment,
}

impl Ldu {
    /// An LDU of a piece.
    pub(crate) fn new(track: usize, found: FoundLdu, due: Option<Moment>, begun: Instant) -> Self {
        let FoundLdu { place, bytes, at, .. } = found;
        Self {
            track,
            time: place.presentation(),
            decode: Some(place.decode),
            duration: place.duration,
            sync: place.sync,
            arrived: instant(at, begun),
            due: due.map(|due| instant(due, begun)),
            bytes,
        }
    }

    /// An LDU of a stream.
    pub(crate) fn pushed(ldu: PushedLdu, begun: Instant) -> Self {
        Self {
            track: ldu.track,
            time: ldu.time,
            decode: ldu.decode,
            duration: None,
            sync: ldu.sync,
            arrived: instant(ldu.at, begun),
            due: ldu.due.map(|due| instant(due, begun)),
            bytes: ldu.bytes,
        }
    }
}

/// A moment of the run that has begun then.
fn instant(moment: Moment, begun: Instant) -> Instant {
    begun + moment.since(Moment::ZERO)
}

/// An LDU of a stream that a server paces, on the clock of the run.
#[derive(Debug)]
pub(crate) struct PushedLdu {
    pub(crate) track: usize,
    /// Presentation and decode time in the title.
    pub(crate) time: Duration,
    pub(crate) decode: Option<Duration>,
    pub(crate) sync: bool,
    pub(crate) at: Moment,
    pub(crate) due: Option<Moment>,
    pub(crate) bytes: Vec<u8>,
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
