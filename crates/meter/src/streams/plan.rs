//! The plan of a run: what is read and written, where, and by which deadline.

use crate::log::OperationKind;
use crate::profiles::{Fps, Profile};
use crate::target::{FilePositions, FileSet, Handle, Layout, slot};
use std::time::Duration;
use units::{BitRate, ByteCount, Hinted, Moment, Reason, nanos};

/// A plan of paced streams: files, positions, phases and deadlines. Made by [`StreamsPlan::new`]
/// and constant afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsPlan {
    /// The number of streams.
    pub streams: u32,
    /// The size of each frame, or of the group of frames that one operation moves.
    pub frame: ByteCount,
    /// The rate of each stream's frames, or of such groups.
    pub fps: Fps,
    /// The largest number of a stream's operations in flight: as many as hold the frames that a
    /// client buffers.
    pub buffer: u32,
    /// The time in which frames become due.
    pub duration: Duration,
    /// Whether the run goes on, for at most as long again, while its backlog grows.
    pub continues: bool,
    /// The files.
    pub shape: FileSet,
    /// The largest number of operations in flight, of all streams together.
    pub at_once: u32,
    /// Whether a wait for a read performs the read: with read methods that make one read after
    /// another, time in a read is the storage's and not the meter's.
    pub blocking: bool,
    /// Whether the clock is polled shortly before each frame is due. Polling is impossible in
    /// virtual time, which only the plan itself advances.
    pub spin: bool,
    read_percent: u8,
    random_percent: u8,
    places: FilePositions,
    frames: u64,
    allowed: Duration,
    /// The time from frame to frame in nanoseconds, where it is a whole number.
    period: Option<u64>,
    /// The phase of each stream within the time of a frame, in nanoseconds.
    phases: Vec<u64>,
}

/// The operation of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The direction.
    pub kind: OperationKind,
    /// Whether the position is random rather than after the frame before.
    pub random: bool,
    /// The index of the file.
    pub file: u32,
    /// The offset in the file.
    pub offset: u64,
}

/// An error that makes a run impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A profile that paced streams cannot use, and the reason.
    #[error("profile {name} cannot be run: {why}")]
    Profile {
        /// The profile's name.
        name: String,
        /// The reason, as it reads after a colon.
        why: Reason,
    },
    /// The target is too small.
    #[error("{} is too small for {}", as_used(*size), units::show::count(*streams, "stream"))]
    TooSmall {
        /// The size of the target.
        size: ByteCount,
        /// The requested number of streams.
        streams: u32,
        /// The size that would suffice.
        needed: ByteCount,
    },
    /// The target has too few files.
    #[error(
        "there is room for {}, and {streams} streams have one each",
        units::show::count(*files, "file")
    )]
    TooFew {
        /// The number of files.
        files: u32,
        /// The requested number of streams.
        streams: u32,
    },
    /// The run is so short that no frame becomes due.
    #[error("{duration:?} is too short for a frame")]
    TooShort {
        /// The duration of the run.
        duration: Duration,
        /// The shortest duration in which a frame becomes due.
        needed: Duration,
    },
}

impl Hinted for PlanError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Profile { why, .. } => why.hint.clone(),
            Self::TooSmall { needed, .. } => Some(format!("{needed} hold a frame of each")),
            Self::TooFew { .. } => Some("make --size larger".to_owned()),
            Self::TooShort { needed, .. } => Some(format!("make it at least {needed:?}")),
        }
    }
}

impl StreamsPlan {
    /// A plan for `streams` streams of one profile. `buffer` is the number of frames that a client
    /// buffers (B), at least one: a frame, or the first of a group, is late when it arrives B
    /// frames after its request was due.
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
        let shown = profile.fps.ok_or_else(|| refused("it has no fps".into()))?;
        let allowed = shown.moment(buffer.into());
        // From here on a group of frames is as one large frame.
        let (fps, buffer) = (profile.reads_per_second(shown), buffer.div_ceil(profile.read_frames));
        // Checked before the files are made, which may take minutes.
        let needed = fps.moment(1);
        if duration < needed {
            return Err(PlanError::TooShort { duration, needed });
        }
        let frame = profile.read();
        let slot = slot(frame);
        if shape.most_streams(slot) < streams {
            // With a file per stream the number of files is the limit, otherwise their size.
            let own = !shape.layout.is_single() && shape.each.0 >= slot;
            let needed = ByteCount(slot.saturating_mul(streams.into()));
            let (size, files) = (shape.size(), shape.files);
            return Err(match own {
                true => PlanError::TooFew { files, streams },
                false => PlanError::TooSmall { size, streams, needed },
            });
        }
        // Each read has a buffer of its own, so memory bounds the number of reads.
        let room = u32::try_from(MEMORY / slot).unwrap_or(u32::MAX).max(1);
        let at_once = streams.saturating_mul(buffer).min(room).min(MOST_AT_ONCE);
        let period = nanos(fps.moment(1));
        // A constant period saves a division per frame, but is exact only in whole nanoseconds.
        let whole = fps.moment(fps.frames.into()) == fps.moment(1) * fps.frames;
        Ok(Self {
            streams,
            frame,
            fps,
            buffer,
            duration,
            continues: false,
            shape,
            at_once,
            blocking: false,
            spin: false,
            read_percent: profile.read_percent,
            random_percent: profile.random_percent,
            places: shape.places(streams, slot),
            frames: fps.frames_before(duration),
            allowed,
            period: whole.then_some(period),
            phases: phases(period, 0, streams),
        })
    }

    /// The plan of streams that run together with `before` others, of other processes, which come
    /// first.
    #[must_use]
    pub(crate) fn after(self, before: u32) -> Self {
        let phases = phases(nanos(self.fps.moment(1)), before, self.streams);
        Self { phases, ..self }
    }

    /// The plan of streams in the part of a single file that begins at `base`.
    #[must_use]
    pub(crate) fn from(self, base: u64) -> Self {
        Self { places: self.places.from(base), ..self }
    }

    /// The bytes that a frame takes on storage, padding included.
    pub fn stride(&self) -> u64 {
        slot(self.frame)
    }

    /// The demand of all streams together.
    pub fn rate(&self) -> BitRate {
        let bytes = self.frame.0 * u64::from(self.streams) * u64::from(self.fps.frames);
        BitRate::of(ByteCount(bytes), Duration::from_secs(self.fps.seconds.into()))
    }

    /// The number of frames of each stream, of a run that is not continued.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The largest number of frames of each stream.
    pub(super) fn most_frames(&self) -> u64 {
        if self.continues { self.frames * 2 } else { self.frames }
    }

    /// The intended start of a frame.
    pub fn intended(&self, origin: Moment, stream: u32, frame: u64) -> Moment {
        Moment(origin.0 + self.phase(stream) + self.begins(frame))
    }

    /// The moment at which the frames with this number begin to become due, in nanoseconds.
    pub(super) fn begins(&self, frame: u64) -> u64 {
        match self.period {
            Some(period) => period.saturating_mul(frame),
            None => nanos(self.fps.moment(frame)),
        }
    }

    /// The time from the intended start of a frame to its deadline.
    pub fn allowed(&self) -> Duration {
        self.allowed
    }

    /// Whether any frame is written.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// The operation of a frame: always the same, drawn from stream and frame alone.
    pub fn ask(&self, stream: u32, frame: u64) -> Ask {
        let percent = |salt| drawn(stream, frame, salt) % 100;
        let read = self.read_percent == 100 || percent(1) < u64::from(self.read_percent);
        let random = self.random_percent > 0 && percent(2) < u64::from(self.random_percent);
        // Drawn from stream and frame alone, so that runs with other numbers of streams read the
        // same.
        let number = if random { drawn(stream, frame, 3) } else { frame };
        let (file, offset) = self.places.of(stream, number);
        let kind = if read { OperationKind::Read } else { OperationKind::Write };
        Ask { kind, random, file, offset }
    }

    /// The file handle that a frame uses.
    pub(super) fn handle(&self, stream: u32) -> Handle {
        match self.shape.layout {
            Layout::FilePerFrame => Handle::Own { client: stream, open: true, close: true },
            Layout::OneFile | Layout::SharedFile | Layout::FilePerStream => Handle::Kept,
        }
    }

    /// The phase of a stream within the time of a frame, in nanoseconds.
    pub(super) fn phase(&self, stream: u32) -> u64 {
        self.phases[units::index(stream)]
    }

    /// The moment at which every frame of `frames` of each stream has arrived or is late.
    pub(crate) fn end(&self, origin: Moment, frames: u64) -> Moment {
        let last = frames.saturating_sub(1);
        let intended = |stream| self.intended(origin, stream, last);
        // Phases are random, so that the stream with the last frame has to be searched.
        let all = (0..self.streams).map(intended).max().unwrap_or(origin);
        // A frame that arrives at its deadline is in time, so the run ends just behind it.
        all + self.allowed() + Duration::from_nanos(1)
    }
}

/// The size of a target, of which whole pages are used.
fn as_used(size: ByteCount) -> String {
    if size.0 == 0 { "a target without a whole page of 4 KiB".to_owned() } else { size.to_string() }
}

/// The phases of `streams` streams after the first `before`, within `period`. They are random:
/// otherwise the frames of all streams would be due at the same moment.
fn phases(period: u64, before: u32, streams: u32) -> Vec<u64> {
    let mut chance = fastrand::Rng::with_seed(SEED);
    let all = std::iter::repeat_with(|| chance.u64(..period));
    all.skip(units::index(before)).take(units::index(streams)).collect()
}

/// A pseudo-random number for a stream and frame; `salt` distinguishes draws for different
/// purposes. The mixing is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn drawn(stream: u32, frame: u64, salt: u64) -> u64 {
    // The fields do not overlap: a frame number of 38 bits is 300 years at 25 a second.
    let mixed = u64::from(stream) << 40 ^ frame << 2 ^ salt;
    let mut z = mixed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The largest memory for operations in flight.
const MEMORY: u64 = 1 << 30;

/// The largest queue depth: more helps no device, and io_uring on small machines takes no more in
/// one ring.
const MOST_AT_ONCE: u32 = 1024;

/// The seed of the streams' phases: two runs with the same number of streams begin alike.
const SEED: u64 = 1;
