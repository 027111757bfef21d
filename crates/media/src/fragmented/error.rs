//! Why a fragmented stream could not be read.

use mp4_atom::FourCC;

/// What [`super::FragmentReader`] ran into: the stream, or the sink that it feeds.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError<E> {
    /// The sink failed.
    #[error("{0}")]
    Sink(E),
    /// The stream is not what it should be.
    #[error(transparent)]
    Stream(#[from] BadStream),
}

/// What is wrong with a stream. Places are bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStream {
    /// It does not begin as an MP4 or QuickTime file does.
    #[error("no fragmented MP4: the stream does not begin with 'ftyp'")]
    NotFragmented,
    /// It ended, or came to media, without having said what is in it.
    #[error("the stream has no 'moov': nothing says which tracks it has")]
    NoHeader,
    /// It ended inside something.
    #[error("the stream ends in mid-air at byte {at}")]
    CutShort {
        /// Where it ended.
        at: u64,
    },
    /// A box is smaller than its own header.
    #[error("box '{kind}' at byte {at} has the impossible size {size}")]
    BoxSize {
        /// Its four characters.
        kind: FourCC,
        /// Where it starts.
        at: u64,
        /// What it says.
        size: u64,
    },
    /// A box that must be held in memory would take too much of it.
    #[error("box '{kind}' at byte {at} has {size} bytes; at most {limit} are read")]
    BoxTooLarge {
        /// Its four characters.
        kind: FourCC,
        /// Where it starts.
        at: u64,
        /// What it says.
        size: u64,
        /// What would be accepted.
        limit: usize,
    },
    /// A box's content contradicts itself or its size.
    #[error("box '{0}' is malformed")]
    Malformed(&'static str),
    /// A second `moov`.
    #[error("a second 'moov' at byte {at}")]
    SecondHeader {
        /// Where it starts.
        at: u64,
    },
    /// More tracks than a title may have.
    #[error("more than {limit} tracks")]
    TooManyTracks {
        /// What would be accepted.
        limit: usize,
    },
    /// Neither pictures nor sound.
    #[error("no track with pictures or sound")]
    NoTracks,
    /// The `moov` describes samples itself: not written for a pipe.
    #[error("the 'moov' has samples of its own: have it written with empty_moov")]
    SamplesInHeader,
    /// A track's configuration changes midway.
    #[error("track {track} has {count} sample entries; only one is supported")]
    SampleEntries {
        /// The track's number in the stream.
        track: u32,
        /// How many it has.
        count: u32,
    },
    /// The payload cannot be played without a key.
    #[error("track {track} is encrypted")]
    Encrypted {
        /// The track's number in the stream.
        track: u32,
    },
    /// A fragment speaks of a track that the `moov` does not have.
    #[error("a fragment has data of track {track}, which the header does not have")]
    UnknownTrack {
        /// The track's number in the stream.
        track: u32,
    },
    /// A track does not begin at time zero: an edit list would have to say so.
    #[error("track {track} starts at {ticks} ticks instead of 0")]
    LateStart {
        /// The track's number in the stream.
        track: u32,
        /// Its first decode time.
        ticks: u64,
    },
    /// Decode times run backwards.
    #[error("decode times of track {track} run back to {ticks} ticks")]
    TimesRunBack {
        /// The track's number in the stream.
        track: u32,
        /// Where to.
        ticks: u64,
    },
    /// A pause longer than an LDU can last.
    #[error("track {track} pauses until {ticks} ticks, longer than can be written down")]
    PauseTooLong {
        /// The track's number in the stream.
        track: u32,
        /// When it goes on.
        ticks: u64,
    },
    /// More LDUs than an index may have.
    #[error("more than {limit} LDUs {place}")]
    TooManyLdus {
        /// What would be accepted.
        limit: usize,
        /// Where they would all be.
        place: &'static str,
    },
    /// Runs of data overlap or come in another order than decoding needs.
    #[error("the fragment at byte {at} has its data out of order")]
    OutOfOrder {
        /// Where the fragment starts.
        at: u64,
    },
    /// Data that a fragment promised is not where it said.
    #[error("data promised for byte {at} did not come")]
    PayloadMissing {
        /// Where it should have been.
        at: u64,
    },
    /// The caller went on after an error.
    #[error("the stream was given up after an error")]
    AfterError,
}

/// For boxes read by `mp4-atom`, or by hand.
pub(super) fn malformed<E>(kind: &'static str) -> impl Fn(E) -> BadStream {
    move |_| BadStream::Malformed(kind)
}
