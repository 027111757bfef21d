//! Reads fragmented MP4 or QuickTime as FFmpeg writes it on a pipe.

use crate::{LduIndex, TrackDescription};

/// Takes what a [`FragmentReader`] finds.
pub trait FragmentSink {
    /// What can go wrong in taking it.
    type Error;
    /// All tracks, once, before any payload. Edits and codec are as yet what the header says.
    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), Self::Error>;
    /// Bytes of a track's data, in decode order.
    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// Why a stream could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError<E> {
    /// The sink failed.
    #[error("{0}")]
    Sink(E),
}

/// A push parser: bytes in as they come, tracks and payload out to a sink.
#[derive(Debug, Default)]
pub struct FragmentReader {}

impl FragmentReader {
    /// Ready for the first byte.
    pub fn new() -> Self {
        Self::default()
    }
    /// Takes the next bytes of the stream, in pieces of any size.
    pub fn push<S: FragmentSink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        let _ = (bytes, sink);
        todo!()
    }
    /// The stream has ended: the final descriptions and indexes.
    pub fn finish<S: FragmentSink>(
        self,
        sink: &mut S,
    ) -> Result<Vec<(TrackDescription, LduIndex)>, FragmentError<S::Error>> {
        let _ = sink;
        todo!()
    }
}
