//! Errors of experiments, and results that are not valid.
//!
//! The message has no full stop; the hint names the remedy.

use crate::streams::PlanError;
use device::DeviceError;
use s3::{S3Error, S3ErrorKind};
use std::fmt::Display;
use std::path::Path;
use tenuto_client::ClientError;
use units::{Hinted, Reason};

/// Why an experiment failed, or why its results are not valid, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MeterError {
    /// What kind of error it is.
    pub kind: MeterErrorKind,
    /// One sentence without a full stop.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
}

/// The kind of a [`MeterError`], from which a program derives its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterErrorKind {
    /// The experiment was tried and failed.
    Failed,
    /// The configuration is wrong.
    Usage,
    /// The experiment ran, but its results cannot be relied on.
    Invalid,
    /// The storage did not hold what was asked of it; the report has the figures.
    NotHeld,
    /// The storage returned other data than was written to it.
    Damaged,
    /// The user interrupted the experiment; the figures until then are reported.
    Interrupted,
}

impl MeterError {
    /// An experiment that failed.
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: MeterErrorKind::Failed, message: message.into(), hint: None }
    }

    /// A wrong configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: MeterErrorKind::Usage, ..Self::new(message) }
    }

    /// A complete run in which the storage did not hold what was asked of it.
    pub(crate) fn not_held(message: impl Into<String>) -> Self {
        Self { kind: MeterErrorKind::NotHeld, ..Self::new(message) }
    }

    /// Storage that returned other data than was written to it.
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self { kind: MeterErrorKind::Damaged, ..Self::new(message) }
    }

    /// A run that the user interrupted; `message` says what the report holds.
    pub(crate) fn interrupted(message: &str) -> Self {
        Self { kind: MeterErrorKind::Interrupted, ..Self::new(message) }
    }

    /// Takes another module's error with its hint.
    pub fn of(error: &dyn Hinted) -> Self {
        Self { hint: error.hint(), ..Self::new(error.to_string()) }
    }

    /// Adds a hint to this error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// This error with the thing that it is about before its message.
    pub(crate) fn about(self, subject: impl Display) -> Self {
        Self { message: format!("{subject}: {}", self.message), ..self }
    }

    /// Turns this error into one about the configuration.
    pub(crate) fn into_usage(self) -> Self {
        Self { kind: MeterErrorKind::Usage, ..self }
    }

    /// Turns this error into one about invalid results.
    pub(crate) fn invalid(self) -> Self {
        Self { kind: MeterErrorKind::Invalid, ..self }
    }

    pub(crate) fn cannot<E: Display>(verb: &str, path: &Path) -> impl Fn(E) -> Self + Copy {
        move |error| Self::new(format!("cannot {verb} {}: {error}", path.display()))
    }
}

impl Hinted for MeterError {
    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

macro_rules! from {
    ($kind:ident: $($error:ty),*) => {
        $(impl From<$error> for MeterError {
            fn from(error: $error) -> Self {
                Self { kind: MeterErrorKind::$kind, ..Self::of(&error) }
            }
        })*
    };
}

impl From<S3Error> for MeterError {
    fn from(error: S3Error) -> Self {
        let made = Self::of(&error);
        if error.kind == S3ErrorKind::Usage { made.into_usage() } else { made }
    }
}

from!(Failed: DeviceError, ClientError, Reason);
from!(Usage: PlanError);
