//! Errors of requests for objects.

use std::fmt;
use units::{Hinted, Reason};

/// Why a request for an object failed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Error {
    /// The kind of error.
    pub kind: S3ErrorKind,
    /// The message and the remedy.
    pub reason: Reason,
}

/// The kind of an [`S3Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum S3ErrorKind {
    /// The address, the endpoint or the certificates are not usable.
    Usage,
    /// The request was refused, or its answer is of no use; it would be again.
    Failed,
    /// No answer, or one that asks to try again: the request may succeed later.
    Unavailable,
    /// No object has this key.
    NoSuchKey,
    /// The object is larger than the caller takes.
    TooLarge,
}

impl S3Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { kind: S3ErrorKind::Failed, reason: message.into().into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: S3ErrorKind::Usage, ..Self::new(message) }
    }

    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.reason.hint = Some(hint.to_owned());
        self
    }
}

impl fmt::Display for S3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for S3Error {}

impl Hinted for S3Error {
    fn hint(&self) -> Option<String> {
        self.reason.hint.clone()
    }
}
