//! Removes titles from a bucket, also damaged ones, and beside damaged ones.
//!
//! A part goes when no title names it. While the manifest of another title cannot be read, nobody
//! knows which parts that one names: then all parts stay, and the removal of that title takes the
//! parts that no title names. A part that a foreign object below `titles/` names stays, too.

use crate::{BucketError, PARTS, TitleBucket, tried};
use std::collections::BTreeMap;

/// What was removed from a bucket with a title, and what stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// What was wrong with the manifest of the title, if it could not be read.
    pub damage: Option<String>,
    /// Number of parts that were removed.
    pub parts: u64,
    /// Number of parts that stay because of [`Self::unreadable`] or [`Self::foreign`], though no
    /// title is known to use them.
    pub kept_parts: u64,
    /// Bytes of those parts.
    pub kept_bytes: u64,
    /// Other titles, whose manifests cannot be read.
    pub unreadable: Vec<String>,
    /// Keys of foreign objects that name parts which no title uses any more. These parts stay, and
    /// are among [`Self::kept_parts`].
    pub foreign: Vec<String>,
}

impl TitleBucket {
    /// Removes a title, and its parts that no other title has; of a title whose manifest is damaged
    /// all parts that no title has. All parts stay while the manifest of another title is damaged.
    /// A push at the same time may rely on a part that is removed here; `check` finds it.
    ///
    /// # Errors
    /// [`BucketError::NoTitle`], and those of the bucket. The title is gone before its parts are.
    pub fn remove(&self, title: &str) -> Result<Removed, BucketError> {
        let client = self.client()?;
        let mut removed = Removed::default();
        let mut unused: BTreeMap<String, u64> = match self.read_manifest(&client, title) {
            Ok(manifest) => {
                manifest.parts().map(|part| (part.sha256.clone(), part.bytes)).collect()
            }
            Err(BucketError::Damaged { what, .. }) => {
                removed.damage = Some(what);
                self.part_objects(&client)?.parts
            }
            Err(error) => return Err(error),
        };
        tried(|| client.delete(&self.manifest_key(title)))?;
        let objects = self.title_objects(&client)?;
        for other in objects.titles.into_iter().map(|title| title.name) {
            match self.read_manifest(&client, &other) {
                Ok(manifest) => {
                    for part in manifest.parts() {
                        unused.remove(&part.sha256);
                    }
                }
                // Removed since it was listed.
                Err(BucketError::NoTitle { .. }) => {}
                Err(BucketError::Damaged { .. }) => removed.unreadable.push(other),
                Err(error) => return Err(error),
            }
        }
        if !removed.unreadable.is_empty() {
            removed.kept_parts = unused.len() as u64;
            removed.kept_bytes = unused.values().sum();
            return Ok(removed);
        }
        for object in objects.foreign {
            if unused.is_empty() {
                break;
            }
            let kept = self.parts_named_in(&client, &object)?;
            let kept: Vec<u64> = kept.iter().filter_map(|part| unused.remove(part)).collect();
            if !kept.is_empty() {
                removed.kept_parts += kept.len() as u64;
                removed.kept_bytes += kept.iter().sum::<u64>();
                removed.foreign.push(object.key);
            }
        }
        for part in unused.keys() {
            tried(|| client.delete(&self.key(PARTS, part)))?;
            removed.parts += 1;
        }
        Ok(removed)
    }
}
