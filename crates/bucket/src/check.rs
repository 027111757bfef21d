//! Looks whether all parts of the titles in a bucket are there.

use crate::{BucketError, DamagedPlace, PARTS, TitleBucket};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use store::{JobProgress, StoreError};

/// The state of the titles in a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketCheck {
    /// Number of titles, with those that are damaged.
    pub titles: u64,
    /// Number of parts that titles use.
    pub parts: u64,
    /// Bytes of those parts.
    pub bytes: u64,
    /// Number of parts that no title uses: of removed titles, or of a push that goes on.
    pub unused_parts: u64,
    /// Bytes of those parts.
    pub unused_bytes: u64,
    /// Keys of foreign objects below `titles/` and `parts/`, which are neither titles nor parts.
    pub foreign: Vec<String>,
    /// All damage; that of a part for each title that uses it.
    pub findings: Vec<BucketFinding>,
}

/// Damage of a title in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketFinding {
    /// The title.
    pub title: String,
    /// What is wrong.
    pub what: String,
    /// Where it is wrong.
    pub place: DamagedPlace,
}

impl TitleBucket {
    /// Looks for the parts of all titles, and with `scrub` reads and verifies them.
    ///
    /// # Errors
    /// [`StoreError::Cancelled`], and those of the bucket.
    pub fn check(
        &self,
        scrub: bool,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<BucketCheck, BucketError> {
        let client = self.client()?;
        let folder = self.key(PARTS, "");
        let in_parts = self.part_objects(&client)?;
        let there = in_parts.parts;
        let mut used: BTreeSet<String> = BTreeSet::new();
        // What was found of each part that was looked at, by its name and length.
        let mut looked_at: BTreeMap<(String, u64), Option<String>> = BTreeMap::new();
        let mut check = BucketCheck::default();
        let in_titles = self.title_objects(&client)?;
        check.titles = in_titles.titles.len() as u64;
        let foreign = in_titles.foreign.into_iter().chain(in_parts.foreign);
        check.foreign = foreign.map(|object| object.key).collect();
        for title in in_titles.titles.iter().map(|title| &title.name) {
            let manifest = match self.read_manifest(&client, title) {
                Ok(manifest) => manifest,
                Err(error @ BucketError::S3(_)) => return Err(error),
                Err(error) => {
                    let (title, place) = (title.clone(), DamagedPlace::Manifest);
                    check.findings.push(BucketFinding { title, what: what(error), place });
                    continue;
                }
            };
            let mut of_title = BTreeSet::new();
            for part in manifest.parts() {
                let key = (part.sha256.clone(), part.bytes);
                if !of_title.insert(key.clone()) {
                    continue;
                }
                let mut report = |what: &Option<String>| {
                    let (title, place) = (title.clone(), DamagedPlace::Part);
                    let finding = |what| BucketFinding { title, what, place };
                    check.findings.extend(what.clone().map(finding));
                };
                if let Some(found) = looked_at.get(&key) {
                    report(found);
                    continue;
                }
                if cancel.load(Ordering::Relaxed) {
                    return Err(StoreError::Cancelled.into());
                }
                if used.insert(part.sha256.clone()) {
                    check.parts += 1;
                    check.bytes += part.bytes;
                }
                let found = match there.get(part.sha256.as_str()) {
                    None => Some(format!("{folder}{} is not there", part.sha256)),
                    Some(size) if *size != part.bytes => {
                        let (name, bytes) = (&part.sha256, part.bytes);
                        Some(format!("{folder}{name} has {size} bytes instead of {bytes}"))
                    }
                    Some(_) if scrub => match self.get_part(&client, title, part) {
                        Ok(_) => None,
                        Err(error @ BucketError::S3(_)) => return Err(error),
                        Err(error) => Some(what(error)),
                    },
                    Some(_) => None,
                };
                report(&found);
                looked_at.insert(key, found);
                progress(JobProgress { stage: "checking", done: check.bytes, total: None });
            }
        }
        let unused = there.iter().filter(|(part, _)| !used.contains(*part));
        for (_, size) in unused {
            check.unused_parts += 1;
            check.unused_bytes += size;
        }
        Ok(check)
    }
}

/// The damage alone, without the title that it is of.
fn what(error: BucketError) -> String {
    match error {
        BucketError::Damaged { what, .. } => what,
        other => other.to_string(),
    }
}
