//! Writes FFmpeg's fragmented stream into a title's tracks.

use crate::{StoreError, TitleWriter};
use media::{BadStream, FragmentError, FragmentReader, FragmentSink, LduIndex, TrackDescription};
use units::ByteCount;

/// Parses a fragmented stream and passes its payload to a [`TitleSink`].
pub(super) struct StreamIngest<'a> {
    reader: FragmentReader,
    sink: TitleSink<'a>,
}

/// The receiver of the parsed stream: declares the tracks and writes their payload.
struct TitleSink<'a> {
    writer: TitleWriter<'a>,
    expected: Vec<ByteCount>,
}

impl<'a> StreamIngest<'a> {
    /// `latm`: the numbers of the tracks in LATM framing.
    pub(super) fn new(writer: TitleWriter<'a>, expected: Vec<ByteCount>, latm: Vec<usize>) -> Self {
        let reader = FragmentReader::new().unpacking_latm(latm);
        Self { reader, sink: TitleSink { writer, expected } }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), FragmentError<StoreError>> {
        self.reader.push(bytes, &mut self.sink)
    }

    /// The number of audio packets that could not be read and are left out.
    pub(super) fn unreadable(&self) -> u64 {
        self.reader.unreadable()
    }

    /// What changes in the middle of tracks, in words.
    pub(super) fn changes(&self) -> Vec<String> {
        self.reader.changes()
    }

    /// Ends the stream; returns the writer and the tracks with which it can be sealed.
    #[expect(clippy::type_complexity, reason = "a pair, and the list that seals it")]
    pub(super) fn finish(
        mut self,
    ) -> Result<(TitleWriter<'a>, Vec<(TrackDescription, LduIndex)>), FragmentError<StoreError>>
    {
        let tracks = self.reader.finish(&mut self.sink)?;
        if tracks.iter().all(|(_, ldus)| ldus.is_empty()) {
            return Err(BadStream::NoTracks.into());
        }
        Ok((self.sink.writer, tracks))
    }
}

impl FragmentSink for TitleSink<'_> {
    type Error = StoreError;

    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), StoreError> {
        // The estimates are in the order of FFmpeg's streams, which is that of the tracks.
        self.expected.resize(tracks.len(), ByteCount::ZERO);
        self.writer.declare(&self.expected)
    }

    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), StoreError> {
        self.writer.write(u16::try_from(track).expect("tracks are few"), bytes)
    }
}
