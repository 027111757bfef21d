//! Errors in reading a fragmented stream.

use mp4_atom::FourCC;

/// An error of [`super::FragmentReader`]: in the stream, or in its sink.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError<E> {
    /// The sink failed.
    #[error("{0}")]
    Sink(E),
    /// The stream is invalid.
    #[error(transparent)]
    Stream(#[from] BadStream),
}

/// The reason why a stream is invalid. Places are bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStream {
    /// The stream does not begin like an MP4 or QuickTime file.
    #[error("no fragmented MP4: the stream does not begin with 'ftyp'")]
    NotFragmented,
    /// The stream ended, or contained media, before its `moov`.
    #[error("the stream has no 'moov', which describes the tracks")]
    NoHeader,
    /// The stream ended inside a box.
    #[error("the stream ends inside a box at byte {at}")]
    CutShort {
        /// The place of the end.
        at: u64,
    },
    /// A box is smaller than its own header.
    #[error("box '{kind}' at byte {at} has the impossible size {size}")]
    BoxSize {
        /// The type of the box.
        kind: FourCC,
        /// The place of the box.
        at: u64,
        /// The size in its header.
        size: u64,
    },
    /// A box that must be held in memory is too large.
    #[error("box '{kind}' at byte {at} has {size} bytes; at most {limit} are read")]
    BoxTooLarge {
        /// The type of the box.
        kind: FourCC,
        /// The place of the box.
        at: u64,
        /// The size in its header.
        size: u64,
        /// The largest accepted size.
        limit: usize,
    },
    /// A box's content contradicts itself or its size.
    #[error("box '{0}' is malformed")]
    Malformed(&'static str),
    /// The stream has a second `moov`.
    #[error("a second 'moov' at byte {at}")]
    SecondHeader {
        /// The place of the second one.
        at: u64,
    },
    /// The stream has more tracks than a title may have.
    #[error("more than {limit} tracks")]
    TooManyTracks {
        /// The largest accepted number.
        limit: usize,
    },
    /// The stream has neither video nor audio.
    #[error("no track with pictures or sound")]
    NoTracks,
    /// The `moov` describes samples itself, so that the stream was not written for a pipe.
    #[error("the 'moov' has samples of its own: have it written with empty_moov")]
    SamplesInHeader,
    /// The configuration of a track changes midway.
    #[error("track {track} has {count} sample entries; only one is supported")]
    SampleEntries {
        /// The track's number in the stream.
        track: u32,
        /// The number of its sample entries.
        count: u32,
    },
    /// The sample entry names no codec.
    #[error("track {track} has a codec that neither MP4 nor QuickTime has a name for")]
    NoCodec {
        /// The track's number in the stream.
        track: u32,
    },
    /// AAC in LATM framing has a form that is not read.
    #[error("its AAC in LATM framing cannot be read: {0}")]
    Latm(&'static str),
    /// The payload is encrypted.
    #[error("track {track} is encrypted")]
    Encrypted {
        /// The track's number in the stream.
        track: u32,
    },
    /// A fragment refers to a track that the `moov` does not have.
    #[error("a fragment has data of track {track}, which the header does not have")]
    UnknownTrack {
        /// The track's number in the stream.
        track: u32,
    },
    /// A track does not begin at time zero, and no edit list explains that.
    #[error("track {track} starts at {ticks} ticks instead of 0")]
    LateStart {
        /// The track's number in the stream.
        track: u32,
        /// The first decode time.
        ticks: u64,
    },
    /// Decode times decrease.
    #[error("decode times of track {track} run back to {ticks} ticks")]
    TimesRunBack {
        /// The track's number in the stream.
        track: u32,
        /// The time after the decrease.
        ticks: u64,
    },
    /// A pause is longer than the longest duration of an LDU.
    #[error("track {track} pauses until {ticks} ticks, longer than an LDU can last")]
    PauseTooLong {
        /// The track's number in the stream.
        track: u32,
        /// The time after the pause.
        ticks: u64,
    },
    /// There are more LDUs than an index may have.
    #[error("more than {limit} LDUs {place}")]
    TooManyLdus {
        /// The largest accepted number.
        limit: usize,
        /// The part of the stream with too many.
        place: &'static str,
    },
    /// Runs of data overlap or are not in decoding order.
    #[error("the fragment at byte {at} has its data out of order")]
    OutOfOrder {
        /// The place of the fragment.
        at: u64,
    },
    /// The data of a fragment is missing at its place.
    #[error("the data for byte {at} is missing")]
    PayloadMissing {
        /// The place of the data.
        at: u64,
    },
    /// The pictures or the sound change their form, of a stream that is to be read
    /// [up to there](super::FragmentReader::ending_at_new_format).
    #[error("the input changes from {before} to {after}")]
    NewFormat {
        /// What came so far, in words.
        before: String,
        /// What follows.
        after: String,
    },
    /// The caller continued after an error.
    #[error("the stream is not read any further after an error")]
    AfterError,
}

/// Converts errors of box parsers to [`BadStream::Malformed`].
pub(super) fn malformed<E>(kind: &'static str) -> impl Fn(E) -> BadStream {
    move |_| BadStream::Malformed(kind)
}
