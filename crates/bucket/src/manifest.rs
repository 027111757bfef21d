//! The manifest of a title: a JSON object in the bucket.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::TitleRecord;
use units::to_hex;

/// What a bucket knows of a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this form: 1.
    pub format: u32,
    /// The title's name.
    pub title: String,
    /// The Unix time in seconds at which it was sealed first.
    pub created: u64,
    /// The identity of its content, as `tenuto ls --json` has it.
    pub content: String,
    /// Bytes of all tracks.
    pub bytes: u64,
    /// The play-out time in nanoseconds; zero for files.
    pub duration_ns: u64,
    /// The encoded index.
    pub index: Part,
    /// The data of each track, in the order of the index.
    pub tracks: Vec<Vec<Part>>,
}

/// An object under `parts/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// SHA-256 of its content, in hexadecimal digits: its name.
    pub sha256: String,
    /// Bytes.
    pub bytes: u64,
}

impl Part {
    /// The part that has this content.
    pub fn of(content: &[u8]) -> Self {
        Self { sha256: to_hex(&Sha256::digest(content)), bytes: content.len() as u64 }
    }

    /// Whether the name is a hash and no path of the bucket.
    fn is_valid(&self) -> bool {
        is_part_name(&self.sha256) && (1..=LARGEST_PART).contains(&self.bytes)
    }
}

impl Manifest {
    /// A manifest without tracks.
    pub(crate) fn of(record: &TitleRecord, index: Part) -> Self {
        Self {
            format: FORMAT,
            title: record.name.clone(),
            created: record.created,
            content: record.content().to_string(),
            bytes: record.bytes,
            duration_ns: u64::try_from(record.duration.as_nanos()).unwrap_or(u64::MAX),
            index,
            tracks: Vec::new(),
        }
    }

    /// Reads the manifest of a title; what is wrong with it otherwise.
    pub(crate) fn parse(title: &str, json: &[u8]) -> Result<Self, String> {
        let manifest: Self = serde_json::from_slice(json)
            .map_err(|error| format!("its manifest is not one: {error}"))?;
        if manifest.format != FORMAT {
            let format = manifest.format;
            return Err(format!("its manifest has version {format}, this program knows {FORMAT}"));
        }
        if manifest.title != title {
            return Err(format!("its manifest is of '{}'", manifest.title.escape_debug()));
        }
        if !manifest.parts().all(Part::is_valid) {
            return Err("its manifest names a part that cannot be".to_owned());
        }
        let bytes = manifest.tracks.iter().flatten().map(|part| part.bytes);
        if bytes.fold(0, u64::saturating_add) != manifest.bytes {
            return Err("its manifest names parts of another length".to_owned());
        }
        Ok(manifest)
    }

    /// All parts: the index, and those of the tracks.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.index).chain(self.tracks.iter().flatten())
    }
}

/// Whether a name can be that of a part: a SHA-256 in hexadecimal digits.
pub(crate) fn is_part_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

/// The version of the form.
const FORMAT: u32 = 1;

/// Bytes of the largest part: the index of the longest title that a store takes.
const LARGEST_PART: u64 = 4 << 30;
