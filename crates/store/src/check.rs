//! Looking for damage.

/// What to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// Read all data and compare it with its checksums.
    pub scrub: bool,
}

/// Where damage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// A superblock copy.
    Superblock,
    /// A journal entry.
    Journal,
    /// A checkpoint.
    Checkpoint,
    /// Extents out of range, or overlapping.
    Extents,
    /// A title's index region.
    Index,
    /// A title's data.
    Data,
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub kind: FindingKind,
    /// Whose, if a title's.
    pub title: Option<String>,
    /// What, and where, for people.
    pub text: String,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Damage found now.
    pub findings: Vec<Finding>,
    /// What was found and put right from a good copy when the store was opened.
    pub healed: Vec<Finding>,
    /// Titles looked at.
    pub titles: u64,
    /// Bytes read.
    pub bytes_read: u64,
}

impl CheckReport {
    /// Whether there is nothing to repair.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
