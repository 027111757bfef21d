//! Errors of titles in a bucket, each with a text that tells the user the next step.

use s3::S3Error;
use store::StoreError;
use units::Hinted;

/// Why a title could not be pushed, filled or read. Nothing is left of a title that was not filled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BucketError {
    /// A request to the bucket failed.
    #[error(transparent)]
    S3(#[from] S3Error),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bucket has no title of this name.
    #[error("there is no title '{title}' in {address}")]
    NoTitle {
        /// The requested name.
        title: String,
        /// The address of the bucket.
        address: String,
    },
    /// The bucket has another title of this name.
    #[error("the bucket has another title '{title}'")]
    Exists {
        /// The name.
        title: String,
    },
    /// The name cannot be that of an object.
    #[error("'{title}' cannot be the name of an object: a part of it is empty, '.' or '..'")]
    BadName {
        /// The name.
        title: String,
    },
    /// A manifest or a part is not what was written.
    #[error("title '{title}' of the bucket is damaged: {what}")]
    Damaged {
        /// The title.
        title: String,
        /// What is wrong.
        what: String,
        /// Where it is wrong.
        place: DamagedPlace,
    },
}

/// The place of damage in a bucket, which decides how it is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamagedPlace {
    /// The manifest of a title: it is removed, and the title pushed again.
    Manifest,
    /// A part of a title: a push that verifies writes it again, for all titles that share it.
    Part,
}

impl DamagedPlace {
    /// What repairs damage here.
    pub fn repair(self) -> &'static str {
        match self {
            Self::Manifest => {
                "remove the title from the bucket (`tenuto bucket rm`), then push it again from a \
                 store that has it (`tenuto bucket push`)"
            }
            Self::Part => {
                "`tenuto bucket push --verify` with a store that has the title writes the damaged \
                 objects again"
            }
        }
    }
}

impl BucketError {
    /// A stable word for the kind of failure, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::S3(_) => "bucket",
            Self::Store(error) => error.code(),
            Self::NoTitle { .. } => "no-title",
            Self::Exists { .. } => "exists",
            Self::BadName { .. } => "bad-name",
            Self::Damaged { .. } => "damaged",
        }
    }
}

impl Hinted for BucketError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::S3(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::NoTitle { .. } => "`tenuto bucket ls` lists the titles",
            Self::Exists { .. } => "remove it from the bucket first, or rename yours",
            Self::BadName { .. } => "rename it first",
            Self::Damaged { place, .. } => {
                let repair = place.repair();
                return Some(format!("{repair}; `tenuto bucket check --scrub` finds all damage"));
            }
        };
        Some(hint.to_owned())
    }
}
