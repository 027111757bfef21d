//! The error of bytes that are not what the format says. Numbers are read and written by [`units`].

/// Bytes that violate the format; the text says where and how.
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
