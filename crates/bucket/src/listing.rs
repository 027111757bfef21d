//! The titles of record with their rates and sizes, listed again and again: the manifest of a title
//! is read once, and again when the object is another one.

use crate::{BucketError, Manifest, TitleBucket};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// What viewers and disks need of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketTitle {
    /// The mean rate of the whole title; zero for files.
    pub rate: BitRate,
    /// Bytes of all tracks and the index.
    pub size: ByteCount,
    /// The identity of its content.
    pub content: String,
}

/// The titles of record, as they were when they were last listed.
#[derive(Debug)]
pub struct BucketListing {
    bucket: TitleBucket,
    /// The titles by name, with the tag of the manifest that was read.
    known: BTreeMap<String, (Option<String>, BucketTitle)>,
    damaged: BTreeSet<String>,
}

impl BucketListing {
    /// A listing that knows nothing yet.
    pub fn new(bucket: TitleBucket) -> Self {
        Self { bucket, known: BTreeMap::new(), damaged: BTreeSet::new() }
    }

    /// Lists the titles, and reads the manifests that are new. A title whose manifest is damaged is
    /// left out and is one of [`Self::damaged`]: it cannot be filled. Foreign objects are left out.
    ///
    /// # Errors
    /// Those of the bucket. What was read until then is not read again.
    pub fn refresh(&mut self) -> Result<BTreeMap<String, BucketTitle>, BucketError> {
        let client = self.bucket.client()?;
        let objects = self.bucket.title_objects(&client)?;
        let (mut titles, mut damaged) = (BTreeMap::new(), BTreeSet::new());
        for object in objects.titles {
            let name = object.name.as_str();
            let known = self.known.get(name).filter(|(tag, _)| tag.is_some() && *tag == object.tag);
            let title = match known {
                Some((_, title)) => title.clone(),
                None => match self.bucket.read_manifest(&client, name) {
                    Ok(manifest) => BucketTitle::of(&manifest),
                    Err(BucketError::Damaged { .. }) => {
                        damaged.insert(name.to_owned());
                        continue;
                    }
                    // Removed since it was listed.
                    Err(BucketError::NoTitle { .. }) => continue,
                    Err(error) => return Err(error),
                },
            };
            titles.insert(name.to_owned(), title.clone());
            self.known.insert(object.name, (object.tag, title));
        }
        self.known.retain(|name, _| titles.contains_key(name));
        self.damaged = damaged;
        Ok(titles)
    }

    /// The titles whose manifests were damaged when they were last listed.
    pub fn damaged(&self) -> &BTreeSet<String> {
        &self.damaged
    }
}

impl BucketTitle {
    fn of(manifest: &Manifest) -> Self {
        let duration = Duration::from_nanos(manifest.duration_ns);
        let rate = match duration.is_zero() {
            true => BitRate(0),
            false => BitRate::of(ByteCount(manifest.bytes), duration),
        };
        let size = ByteCount(manifest.bytes + manifest.index.bytes);
        Self { rate, size, content: manifest.content.clone() }
    }
}
