//! A title copied from other stores that have it.

use crate::repair::copies_of;
use crate::{JobProgress, StoreAccess, StoreError, TitleRecord};
use std::sync::atomic::{AtomicBool, Ordering};
use units::ByteCount;

/// Copies a title into a store. Each part is taken from the first source that has it undamaged.
/// The copy has the same content, and the time of the original.
///
/// # Errors
/// [`StoreError::NoTitle`] where no source has it, [`StoreError::Exists`] where the store has it,
/// [`StoreError::Full`], [`StoreError::Cancelled`], and a part that no source has undamaged.
/// Nothing of the copy is left then.
///
/// # Panics
/// Without a source.
pub fn copy_title(
    target: &dyn StoreAccess,
    sources: &[&dyn StoreAccess],
    title: &str,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<TitleRecord, StoreError> {
    let found = sources.iter().map(|source| source.store().find(title));
    let record = found.reduce(Result::or).expect("a copy has a source")?;
    let mut done = 0;
    copy(target, sources, &record, &mut |bytes| {
        done += bytes;
        progress(JobProgress { stage: "copying", done, total: Some(record.bytes) });
        if cancel.load(Ordering::Relaxed) { Err(StoreError::Cancelled) } else { Ok(()) }
    })
}

/// Copies a title of which the sources have copies. `seen`: called with the bytes of each part.
pub(crate) fn copy(
    target: &dyn StoreAccess,
    sources: &[&dyn StoreAccess],
    title: &TitleRecord,
    seen: &mut dyn FnMut(u64) -> Result<(), StoreError>,
) -> Result<TitleRecord, StoreError> {
    let copies = copies_of(title, sources);
    let Some((first, others)) = copies.split_first() else {
        return Err(why_unreadable(title, sources));
    };
    let writer = target.store().begin(&title.name, title.kind)?;
    let mut writer = writer.with_io(target.background_io()).created(title.created);
    let sizes: Vec<ByteCount> = title.tracks.iter().map(|track| ByteCount(track.bytes)).collect();
    writer.declare(&sizes)?;
    for (number, track) in (0..).zip(&title.tracks) {
        let mut at = 0;
        while at < track.bytes {
            let bytes = first.piece(number, at, PIECE).or_else(|error| {
                let whole = others.iter().find_map(|copy| copy.piece(number, at, PIECE).ok());
                whole.ok_or(error)
            })?;
            writer.write(number, &bytes)?;
            at += bytes.len() as u64;
            seen(bytes.len() as u64)?;
        }
    }
    let index = first.index();
    writer.set_texts(index.texts.clone());
    if let Some(thumbnails) = &index.thumbnails {
        writer.set_thumbnails(thumbnails.clone());
    }
    let tracks = index.tracks.iter();
    writer.seal(tracks.map(|track| (track.description.clone(), track.ldus.clone())).collect())
}

/// Why no source has a readable copy of a title: its index is damaged, or it was removed.
fn why_unreadable(title: &TitleRecord, sources: &[&dyn StoreAccess]) -> StoreError {
    let errors = sources.iter().map(|source| {
        let record = source.store().find(&title.name)?;
        source.store().reader(record.id, source.background_io()).map(|_| ())
    });
    let removed = || StoreError::NoTitle { name: title.name.clone(), nearest: None };
    errors.filter_map(Result::err).next_back().unwrap_or_else(removed)
}

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;
