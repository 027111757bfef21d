//! A title as one file: MP4 or QuickTime for media, its own bytes for a file. Export and mounts
//! write and read this file; its text tracks are files beside it.

use crate::{StoreAccess, StoreError, TitleReader, TitleRecord, TrackRecord};
use media::{Body, Packaging, PackagingOptions, Slice, TitleKind};
use std::ops::Range;
use std::sync::Arc;

impl<A: StoreAccess> TitleReader<A> {
    /// The title as one file, as a list of generated and stored bytes. Takes time and memory
    /// proportional to the number of LDUs.
    ///
    /// # Errors
    /// [`StoreError::NotExported`] for a title that cannot be packaged.
    pub fn file(&self) -> Result<Arc<Body>, StoreError> {
        if self.record().kind == TitleKind::File {
            return Ok(Arc::new(whole_tracks(self.record())));
        }
        Ok(media_file(self.record(), &self.packaging()?))
    }

    /// The packaging of a media title.
    pub(crate) fn packaging(&self) -> Result<Packaging, StoreError> {
        let packaging = Packaging::new(self.index().clone(), &PackagingOptions::default());
        packaging.map_err(|error| StoreError::NotExported {
            title: self.record().name.clone(),
            reason: error.to_string(),
        })
    }

    /// Passes a part of the file to `write`, in pieces and in order. Stored bytes are verified.
    ///
    /// # Errors
    /// Those of the reads, of which [`StoreError::DataDamaged`] names the damaged span; and those
    /// of `write`.
    pub fn copy(
        &self,
        file: &Body,
        range: Range<u64>,
        write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for slice in file.range(range).slices() {
            match slice {
                Slice::Generated { bytes, range } => write(&bytes[range.clone()])?,
                Slice::Stored { track, bytes } => {
                    let mut at = bytes.start;
                    while at < bytes.end {
                        let most = usize::try_from(bytes.end - at).unwrap_or(usize::MAX);
                        let piece = self.piece(*track, at, most)?;
                        at += piece.len() as u64;
                        write(&piece)?;
                    }
                }
                Slice::Packets { .. }
                | Slice::Filled { .. }
                | Slice::Encrypted { .. }
                | Slice::Chained { .. } => {
                    unreachable!("a file is no transport stream, and not encrypted")
                }
            }
        }
        Ok(())
    }
}

/// All tracks of a media title in one file.
pub(crate) fn media_file(record: &TitleRecord, packaging: &Packaging) -> Arc<Body> {
    let all: Vec<u16> =
        (0..record.tracks.len()).map(|i| u16::try_from(i).expect("tracks are few")).collect();
    packaging.progressive(&all)
}

/// The bytes of an opaque file.
fn whole_tracks(record: &TitleRecord) -> Body {
    let whole = |(track, it): (usize, &TrackRecord)| Slice::Stored {
        track: u16::try_from(track).expect("tracks are few"),
        bytes: 0..it.bytes,
    };
    record.tracks.iter().enumerate().map(whole).collect()
}
