//! What is read, and by when it must be there.

use crate::profiles::{Fps, Profile};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment};

/// See the head of the room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many.
    pub streams: u32,
    /// Bytes of each frame.
    pub frame: ByteCount,
    /// Of each stream.
    pub fps: Fps,
    /// Frames that a client keeps (B): so late may a frame be, and so many of a stream are under
    /// way at most.
    pub buffer: u32,
    /// For so long frames become due.
    pub duration: Duration,
    /// Of what is read: every stream has an equal part, and goes on at its part's beginning when
    /// it comes to the end.
    pub size: ByteCount,
    /// Reads under way at most, of all streams together.
    pub at_once: u32,
    /// Whether waiting for a read is making it: with ways of reading that make one read after
    /// another, time in a read is the storage's and not the meter's.
    pub blocking: bool,
    /// Where in the time of a frame each stream begins.
    phases: Vec<Duration>,
}

/// There can be no such run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Of this kind of stream.
    #[error("profile {name} cannot be run: {why}; `tenuto meter profiles` lists others")]
    Profile {
        /// Its name.
        name: String,
        /// As it reads after a colon.
        why: &'static str,
    },
    /// It is too small.
    #[error("{size} is too small for {streams} streams; {needed} hold a frame of each")]
    TooSmall {
        /// What there is.
        size: ByteCount,
        /// How many were asked for.
        streams: u32,
        /// So much would do.
        needed: ByteCount,
    },
    /// Nothing would become due.
    #[error("{0:?} is too short for a frame; make it longer")]
    TooShort(Duration),
}

impl Plan {
    /// So many streams of this profile. `buffer` is at least one.
    pub fn new(
        profile: &Profile,
        streams: u32,
        buffer: u32,
        duration: Duration,
        size: ByteCount,
    ) -> Result<Self, PlanError> {
        let refused = |why| PlanError::Profile { name: profile.name.clone(), why };
        if let Some(why) = profile.cannot_run() {
            return Err(refused(why));
        }
        let fps = profile.fps.ok_or_else(|| refused("it has no fps"))?;
        if duration < fps.moment(1) {
            return Err(PlanError::TooShort(duration));
        }
        let frame = ByteCount(profile.bytes);
        let needed = stride(frame).saturating_mul(streams.into());
        if needed > size.0 {
            return Err(PlanError::TooSmall { size, streams, needed: ByteCount(needed) });
        }
        let room = u32::try_from(MEMORY / stride(frame)).unwrap_or(u32::MAX).max(1);
        let at_once = streams.saturating_mul(buffer).min(room).min(MOST_AT_ONCE);
        let mut chance = fastrand::Rng::with_seed(SEED);
        let period = u64::try_from(fps.moment(1).as_nanos()).unwrap_or(u64::MAX);
        let phases = (0..streams).map(|_| Duration::from_nanos(chance.u64(..period))).collect();
        let blocking = false;
        Ok(Self { streams, frame, fps, buffer, duration, size, at_once, blocking, phases })
    }

    /// Of the place, what a frame takes.
    pub fn stride(&self) -> u64 {
        stride(self.frame)
    }

    /// What all streams ask for together.
    pub fn rate(&self) -> BitRate {
        let bytes = self.frame.0 * u64::from(self.streams) * u64::from(self.fps.frames);
        BitRate::of(ByteCount(bytes), Duration::from_secs(self.fps.seconds.into()))
    }

    /// Of each stream.
    pub fn frames(&self) -> u64 {
        self.fps.frames_before(self.duration)
    }

    /// When this frame is to be asked for.
    pub fn intended(&self, origin: Moment, stream: u32, frame: u64) -> Moment {
        origin + self.phases[super::index(stream)] + self.fps.moment(frame)
    }

    /// How long after that it must be there.
    pub fn allowed(&self) -> Duration {
        self.fps.moment(self.buffer.into())
    }

    /// When everything is there or late.
    pub(crate) fn end(&self, origin: Moment) -> Moment {
        let last = self.frames() - 1;
        let intended = |stream| self.intended(origin, stream, last);
        let all = (0..self.streams).map(intended).max().unwrap_or(origin);
        all + self.allowed() + Duration::from_nanos(1)
    }

    /// Where this frame lies.
    pub fn offset(&self, stream: u32, frame: u64) -> u64 {
        let stride = stride(self.frame);
        let part = self.size.0 / u64::from(self.streams) / stride;
        (u64::from(stream) * part + frame % part) * stride
    }
}

/// From frame to frame: whole pages, so that reading past the page cache reads nothing twice.
fn stride(frame: ByteCount) -> u64 {
    units::align_up(frame.0, 4096)
}

/// For reads under way.
const MEMORY: u64 = 1 << 30;

/// More at once help no device, and io_uring takes no more in one ring on small machines.
const MOST_AT_ONCE: u32 = 1024;

/// Of the phases: two runs of as many streams begin alike.
const SEED: u64 = 1;
