//! One piece of damage, as reported by `check` and by the repair at open.

/// The part of a store in which damage was found.
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
    /// A title's index region, including the label in front of it.
    Index,
    /// A title's data.
    Data,
    /// A recording that a power cut or a crash interrupted.
    Recording,
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The damaged part.
    pub kind: FindingKind,
    /// The title that it belongs to; `None` for the store's own metadata.
    pub title: Option<String>,
    /// The damage and its position, for the user.
    pub text: String,
}

impl Finding {
    /// Damage in the store's own metadata.
    pub(crate) fn of_store(kind: FindingKind, text: impl Into<String>) -> Self {
        Self { kind, title: None, text: text.into() }
    }
}
