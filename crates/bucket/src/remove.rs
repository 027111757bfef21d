//! Removes titles from a bucket, also damaged ones, and beside damaged ones.
//!
//! A part goes when no title names it. While the manifest of another title cannot be read, nobody
//! knows which parts that one names: then all parts stay, and the removal of that title takes the
//! parts that no title names.

use crate::manifest::is_part_name;
use crate::{BucketError, PARTS, TitleBucket, tried};
use std::collections::BTreeMap;

/// What was removed from a bucket with a title, and what stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// What was wrong with the manifest of the title, if it could not be read.
    pub damage: Option<String>,
    /// Number of parts that were removed.
    pub parts: u64,
    /// Number of parts that stay because of [`Self::unreadable`], though no title is known to use
    /// them.
    pub kept_parts: u64,
    /// Bytes of those parts.
    pub kept_bytes: u64,
    /// Other titles, whose manifests cannot be read.
    pub unreadable: Vec<String>,
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
                let folder = self.key(PARTS, "");
                let objects = tried(|| client.list(&folder))?;
                let parts = objects.iter().filter_map(|object| {
                    let name = object.key.strip_prefix(&folder)?;
                    is_part_name(name).then(|| (name.to_owned(), object.size))
                });
                parts.collect()
            }
            Err(error) => return Err(error),
        };
        tried(|| client.delete(&self.manifest_key(title)))?;
        for other in self.titles()? {
            match self.read_manifest(&client, &other) {
                Ok(manifest) => {
                    for part in manifest.parts() {
                        unused.remove(&part.sha256);
                    }
                }
                // Removed since it was listed.
                Err(BucketError::NoTitle { .. }) => {}
                Err(BucketError::Damaged { .. } | BucketError::BadName { .. }) => {
                    removed.unreadable.push(other);
                }
                Err(error) => return Err(error),
            }
        }
        if !removed.unreadable.is_empty() {
            removed.kept_parts = unused.len() as u64;
            removed.kept_bytes = unused.values().sum();
            return Ok(removed);
        }
        for part in unused.keys() {
            tried(|| client.delete(&self.key(PARTS, part)))?;
            removed.parts += 1;
        }
        Ok(removed)
    }
}
