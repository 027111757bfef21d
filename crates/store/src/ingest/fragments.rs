//! From FFmpeg's stream into a title's tracks.

use crate::{StoreError, TitleWriter};
use media::{BadStream, FragmentError, FragmentReader, FragmentSink, LduIndex, TrackDescription};
use units::ByteCount;

/// A title being filled from a fragmented stream.
pub(super) struct Filling<'a> {
    reader: FragmentReader,
    sink: Sink<'a>,
}

struct Sink<'a> {
    writer: TitleWriter<'a>,
    expected: Vec<ByteCount>,
}

impl<'a> Filling<'a> {
    pub(super) fn new(writer: TitleWriter<'a>, expected: Vec<ByteCount>) -> Self {
        Self { reader: FragmentReader::new(), sink: Sink { writer, expected } }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), FragmentError<StoreError>> {
        self.reader.push(bytes, &mut self.sink)
    }

    /// The writer, ready to be sealed with what follows it.
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

impl FragmentSink for Sink<'_> {
    type Error = StoreError;

    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), StoreError> {
        // The estimates are by FFmpeg's order of streams, which is that of the tracks.
        self.expected.resize(tracks.len(), ByteCount::ZERO);
        self.writer.declare(&self.expected)
    }

    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), StoreError> {
        self.writer.write(u16::try_from(track).expect("tracks are few"), bytes)
    }
}
