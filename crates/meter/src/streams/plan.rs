//! What is read and written, where, and by when it must be there.

use super::nanos;
use crate::log::OperationKind;
use crate::profiles::{Fps, Profile};
use crate::target::{FilePositions, FileSet, Handle, Layout, slot};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment};

/// A plan of paced streams: files, positions, phases and deadlines. Made by [`StreamsPlan::new`]
/// and constant afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsPlan {
    /// How many.
    pub streams: u32,
    /// Bytes of each frame.
    pub frame: ByteCount,
    /// The frame rate of each stream.
    pub fps: Fps,
    /// Frames that a client keeps (B): so late may a frame be, and so many of a stream are under
    /// way at most.
    pub buffer: u32,
    /// For so long frames become due.
    pub duration: Duration,
    /// The files.
    pub shape: FileSet,
    /// Operations under way at most, of all streams together.
    pub at_once: u32,
    /// Whether waiting for a read is making it: with ways of reading that make one read after
    /// another, time in a read is the storage's and not the meter's.
    pub blocking: bool,
    /// Whether the clock is watched shortly before each frame is due, rather than slept until then.
    /// Polling is impossible in virtual time, which only the plan itself advances.
    pub spin: bool,
    read_percent: u8,
    random_percent: u8,
    places: FilePositions,
    frames: u64,
    allowed: Duration,
    /// From one frame to the next in nanoseconds, where that is a whole number.
    period: Option<u64>,
    /// Where in the time of a frame each stream begins, in nanoseconds.
    phases: Vec<u64>,
}

/// What a frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Read or write.
    pub kind: OperationKind,
    /// Elsewhere than after the frame before.
    pub random: bool,
    /// Which file.
    pub file: u32,
    /// From which byte on.
    pub offset: u64,
}

/// There can be no such run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A profile that paced streams cannot use, and the reason.
    #[error("profile {name} cannot be run: {why}")]
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
    /// There are fewer files.
    #[error("{files} files are too few for {streams} streams with their own; make --size larger")]
    TooFew {
        /// How many there are.
        files: u32,
        /// How many were asked for.
        streams: u32,
    },
    /// Nothing would become due.
    #[error("{0:?} is too short for a frame; make it longer")]
    TooShort(Duration),
}

impl StreamsPlan {
    /// A plan for `streams` streams of one profile. `buffer` is at least one frame.
    pub fn new(
        profile: &Profile,
        streams: u32,
        buffer: u32,
        duration: Duration,
        shape: FileSet,
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
        let slot = slot(frame);
        if shape.most_streams(slot) < streams {
            let own = !shape.layout.is_single() && shape.each.0 >= slot;
            let needed = ByteCount(slot.saturating_mul(streams.into()));
            let (size, files) = (shape.size(), shape.files);
            return Err(match own {
                true => PlanError::TooFew { files, streams },
                false => PlanError::TooSmall { size, streams, needed },
            });
        }
        let room = u32::try_from(MEMORY / slot).unwrap_or(u32::MAX).max(1);
        let at_once = streams.saturating_mul(buffer).min(room).min(MOST_AT_ONCE);
        let mut chance = fastrand::Rng::with_seed(SEED);
        let period = nanos(fps.moment(1));
        let phases = (0..streams).map(|_| chance.u64(..period)).collect();
        let whole = fps.moment(fps.frames.into()) == fps.moment(1) * fps.frames;
        Ok(Self {
            streams,
            frame,
            fps,
            buffer,
            duration,
            shape,
            at_once,
            blocking: false,
            spin: false,
            read_percent: profile.read_percent,
            random_percent: profile.random_percent,
            places: shape.places(streams, slot),
            frames: fps.frames_before(duration),
            allowed: fps.moment(buffer.into()),
            period: whole.then_some(period),
            phases,
        })
    }

    /// The bytes that a frame takes on storage, padding included.
    pub fn stride(&self) -> u64 {
        slot(self.frame)
    }

    /// What all streams ask for together.
    pub fn rate(&self) -> BitRate {
        let bytes = self.frame.0 * u64::from(self.streams) * u64::from(self.fps.frames);
        BitRate::of(ByteCount(bytes), Duration::from_secs(self.fps.seconds.into()))
    }

    /// The number of frames of each stream.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// When this frame is to be asked for.
    pub fn intended(&self, origin: Moment, stream: u32, frame: u64) -> Moment {
        Moment(origin.0 + self.phase(stream) + self.begins(frame))
    }

    /// When the frames of this number begin to become due, in nanoseconds.
    pub(super) fn begins(&self, frame: u64) -> u64 {
        match self.period {
            Some(period) => period.saturating_mul(frame),
            None => nanos(self.fps.moment(frame)),
        }
    }

    /// How long after that it must be there.
    pub fn allowed(&self) -> Duration {
        self.allowed
    }

    /// Whether any frame is written.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// What this frame asks for: always the same, drawn from stream and frame alone.
    pub fn ask(&self, stream: u32, frame: u64) -> Ask {
        let percent = |salt| drawn(stream, frame, salt) % 100;
        let read = self.read_percent == 100 || percent(1) < u64::from(self.read_percent);
        let random = self.random_percent > 0 && percent(2) < u64::from(self.random_percent);
        let number = if random { drawn(stream, frame, 3) } else { frame };
        let (file, offset) = self.places.of(stream, number);
        let kind = if read { OperationKind::Read } else { OperationKind::Write };
        Ask { kind, random, file, offset }
    }

    /// Whose opening of the file a frame uses.
    pub(super) fn handle(&self, stream: u32) -> Handle {
        match self.shape.layout {
            Layout::FilePerFrame => Handle::Own { client: stream, open: true, close: true },
            Layout::OneFile | Layout::SharedFile | Layout::FilePerStream => Handle::Kept,
        }
    }

    /// Where in the time of a frame this stream begins, in nanoseconds.
    pub(super) fn phase(&self, stream: u32) -> u64 {
        self.phases[super::index(stream)]
    }

    /// When everything is there or late.
    pub(crate) fn end(&self, origin: Moment) -> Moment {
        let last = self.frames() - 1;
        let intended = |stream| self.intended(origin, stream, last);
        let all = (0..self.streams).map(intended).max().unwrap_or(origin);
        all + self.allowed() + Duration::from_nanos(1)
    }
}

/// A number for this stream and frame; `salt` tells draws for different ends apart. The mixing is
/// the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn drawn(stream: u32, frame: u64, salt: u64) -> u64 {
    let mixed = u64::from(stream) << 40 ^ frame << 2 ^ salt;
    let mut z = mixed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// For operations under way.
const MEMORY: u64 = 1 << 30;

/// More at once help no device, and io_uring takes no more in one ring on small machines.
const MOST_AT_ONCE: u32 = 1024;

/// The seed of the streams' phases: two runs with the same number of streams begin alike.
const SEED: u64 = 1;
