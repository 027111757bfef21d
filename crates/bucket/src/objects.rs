//! The objects of a bucket below `titles/` and `parts/`: manifests and parts, and foreign ones,
//! which are no objects of this program.

use crate::manifest::is_part_name;
use crate::{LARGEST_MANIFEST, MANIFEST, PARTS, TITLES, TitleBucket, check_name, tried};
use s3::{ListedObject, S3Client, S3Error, S3ErrorKind};
use std::collections::{BTreeMap, BTreeSet};

/// What is below `titles/`.
#[derive(Debug, Default)]
pub(crate) struct TitleObjects {
    /// The manifests, in the order of the titles' keys.
    pub(crate) titles: Vec<ManifestObject>,
    pub(crate) foreign: Vec<ListedObject>,
}

/// An object with the name of a manifest.
#[derive(Debug)]
pub(crate) struct ManifestObject {
    pub(crate) name: String,
    pub(crate) tag: Option<String>,
}

/// What is below `parts/`.
#[derive(Debug, Default)]
pub(crate) struct PartObjects {
    /// The sizes of the parts, by their names.
    pub(crate) parts: BTreeMap<String, u64>,
    pub(crate) foreign: Vec<ListedObject>,
}

impl TitleBucket {
    pub(crate) fn title_objects(&self, client: &S3Client) -> Result<TitleObjects, S3Error> {
        let folder = self.key(TITLES, "");
        let mut found = TitleObjects::default();
        for object in tried(|| client.list(&folder))? {
            let name = object.key.strip_prefix(&folder).unwrap_or_default();
            match name.strip_suffix(MANIFEST).filter(|name| is_title_name(name)) {
                Some(name) => {
                    found.titles.push(ManifestObject { name: name.to_owned(), tag: object.tag });
                }
                None if is_folder_mark(&object) => {}
                None => found.foreign.push(object),
            }
        }
        Ok(found)
    }

    pub(crate) fn part_objects(&self, client: &S3Client) -> Result<PartObjects, S3Error> {
        let folder = self.key(PARTS, "");
        let mut found = PartObjects::default();
        for object in tried(|| client.list(&folder))? {
            let name = object.key.strip_prefix(&folder).unwrap_or_default();
            match name {
                name if is_part_name(name) => {
                    found.parts.insert(name.to_owned(), object.size);
                }
                _ if is_folder_mark(&object) => {}
                _ => found.foreign.push(object),
            }
        }
        Ok(found)
    }

    /// The names of parts that occur in a foreign object; none where it cannot be read for good.
    pub(crate) fn parts_named_in(
        &self,
        client: &S3Client,
        object: &ListedObject,
    ) -> Result<BTreeSet<String>, S3Error> {
        if !(PART_NAME as u64..=LARGEST_MANIFEST).contains(&object.size) {
            return Ok(BTreeSet::new());
        }
        match tried(|| client.get_exact(&object.key, LARGEST_MANIFEST)) {
            Ok(bytes) => Ok(part_names(&bytes).collect()),
            Err(error) if error.kind == S3ErrorKind::Unavailable => Err(error),
            Err(_) => Ok(BTreeSet::new()),
        }
    }
}

/// Whether a title can have this name.
fn is_title_name(name: &str) -> bool {
    check_name(name).is_ok() && name.len() <= LONGEST_NAME && !name.chars().any(char::is_control)
}

/// Whether this is how programs that show buckets as folders mark a folder.
fn is_folder_mark(object: &ListedObject) -> bool {
    object.size == 0 && object.key.ends_with('/')
}

/// The names of parts in any bytes.
fn part_names(bytes: &[u8]) -> impl Iterator<Item = String> {
    let words = bytes.split(|byte| !byte.is_ascii_alphanumeric());
    let words = words.filter(|word| word.len() == PART_NAME);
    words
        .filter_map(|word| std::str::from_utf8(word).ok())
        .filter(|it| is_part_name(it))
        .map(str::to_owned)
}

/// Bytes of the longest name of a title in a store.
const LONGEST_NAME: usize = 255;
/// Bytes of the name of a part.
const PART_NAME: usize = 64;
