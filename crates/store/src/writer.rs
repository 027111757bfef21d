//! Writing a title.

use crate::{Pace, Store, StoreError, TitleRecord};
use media::{LduIndex, TrackDescription};
use units::ByteCount;

/// A title being written. Dropped before [`TitleWriter::seal`], it leaves nothing behind.
pub struct TitleWriter<'a> {
    store: &'a Store,
}

impl<'a> TitleWriter<'a> {
    /// Asks `pace` before each write.
    pub fn paced(self, pace: &'a dyn Pace) -> Self {
        let _ = (&self.store, pace);
        todo!()
    }
    /// Declares the tracks in the order of their numbers and reserves what they are expected to
    /// take.
    pub fn declare(&mut self, expected: &[ByteCount]) -> Result<(), StoreError> {
        let _ = expected;
        todo!()
    }
    /// Appends to a track's data.
    pub fn write(&mut self, track: u16, bytes: &[u8]) -> Result<(), StoreError> {
        let _ = (track, bytes);
        todo!()
    }
    /// Makes it durable and enters it into the catalogue.
    pub fn seal(
        self,
        tracks: Vec<(TrackDescription, LduIndex)>,
    ) -> Result<TitleRecord, StoreError> {
        let _ = tracks;
        todo!()
    }
}
