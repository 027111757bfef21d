//! A piece of damage, as `check` reports it and as opening a store heals it.

/// Where on a store damage was found.
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
    /// A title's index region, the label in front of it included.
    Index,
    /// A title's data.
    Data,
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where it was found.
    pub kind: FindingKind,
    /// The title that it belongs to; `None` for the store's own metadata.
    pub title: Option<String>,
    /// What is damaged and at which place, for people.
    pub text: String,
}

impl Finding {
    /// Damage of the store's own metadata.
    pub(crate) fn of_store(kind: FindingKind, text: impl Into<String>) -> Self {
        Self { kind, title: None, text: text.into() }
    }
}
