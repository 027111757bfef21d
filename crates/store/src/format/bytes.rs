//! The error for bytes that violate the format. [`units`] reads and writes numbers.

/// Bytes that violate the format, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) String);

impl From<&str> for Malformed {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<units::Malformed> for Malformed {
    fn from(error: units::Malformed) -> Self {
        Self(error.0.to_owned())
    }
}
