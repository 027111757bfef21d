//! A failed command: one sentence, a hint, an exit code.

use bucket::BucketError;
use device::DeviceError;
use meter::{MeterError, MeterErrorKind};
use mount::MountError;
use s3::S3ErrorKind;
use std::path::Path;
use store::StoreError;
use tenuto_client::ClientError;
use units::{Hinted, Reason};

/// The exit codes other than 0, documented in `docs/reference/exit-codes.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The command was tried and did not work.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Admission refused, or the storage did not hold.
    Refused = 3,
    /// Damage was found: bytes on disk are not what was written.
    Damage = 4,
    /// A measurement ran, but its figures cannot be relied on.
    Invalid = 5,
}

/// Why a command failed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    /// One sentence without a full stop; empty where the report on standard output has it all.
    pub(crate) sentence: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { code: Code::Failed, sentence: sentence.into(), hint: None }
    }

    /// A wrong command line that the parser cannot detect.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self { code: Code::Usage, ..Self::new(sentence) }
    }

    /// A command on a store that a signal interrupted.
    pub(crate) fn interrupted() -> Self {
        Self::new("interrupted: the store is as it was")
    }

    /// A failure that the report on standard output describes; only the exit code is left.
    pub(crate) fn reported(code: Code) -> Self {
        Self { code, sentence: String::new(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure of one of several stores: where it is dead, the others are used without it.
    pub(crate) fn of_one_store(self) -> Self {
        match self {
            Self { code: Code::Damage, .. } => self.hint(
                "leave it out of the command; `tenuto check STORE --rebuild` may recover it, or a \
                 new store in its place gets the titles of the others",
            ),
            _ => self,
        }
    }

    /// The failure, with the store that it is about.
    pub(crate) fn about(self, store: &Path) -> Self {
        Self { sentence: format!("{}: {}", store.display(), self.sentence), ..self }
    }

    pub(crate) fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// A failure from an error, with its hint.
    pub(crate) fn of(error: &impl Hinted) -> Self {
        error.reason().into()
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self { hint: reason.hint, ..Self::new(reason.message) }
    }
}

impl From<Failure> for Reason {
    fn from(failure: Failure) -> Self {
        Self { message: failure.sentence, hint: failure.hint }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = if error.is_damage() { Code::Damage } else { Code::Failed };
        match error {
            StoreError::Cancelled => Self::interrupted(),
            StoreError::BadChunk { .. } => Self::of(&error).code(Code::Usage),
            _ => Self::of(&error).code(code),
        }
    }
}

impl From<BucketError> for Failure {
    fn from(error: BucketError) -> Self {
        match error {
            BucketError::Store(error) => error.into(),
            BucketError::S3(error) if error.kind == S3ErrorKind::Usage => {
                Self::of(&error).code(Code::Usage)
            }
            BucketError::Damaged { .. } => Self::of(&error).code(Code::Damage),
            _ => Self::of(&error),
        }
    }
}

impl From<MeterError> for Failure {
    fn from(error: MeterError) -> Self {
        let MeterError { kind, message, hint } = error;
        let code = match kind {
            MeterErrorKind::Failed => Code::Failed,
            MeterErrorKind::Usage => Code::Usage,
            MeterErrorKind::NotHeld => Code::Refused,
            MeterErrorKind::Damaged => Code::Damage,
            // An interrupted run has measured something, but too little to rely on.
            MeterErrorKind::Invalid | MeterErrorKind::Interrupted => Code::Invalid,
        };
        Self { code, sentence: message, hint }
    }
}

macro_rules! from_hinted {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::of(&error)
            }
        })*
    };
}

from_hinted!(DeviceError, ClientError, MountError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_on_a_line_of_its_own() {
        let failure = Failure::from(StoreError::NotAStore { what: "film.mkv".to_owned() });
        assert_eq!(failure.sentence, "film.mkv is not a Tenuto store");
        assert_eq!(
            failure.hint.as_deref(),
            Some("check the path; `tenuto format` makes a store, and destroys what is there")
        );
        assert_eq!(failure.code, Code::Failed);

        let failure = Failure::from(StoreError::NoTitle {
            name: "a; b".to_owned(),
            nearest: Some("a; c".to_owned()),
        });
        assert_eq!(failure.sentence, "there is no title 'a; b'");
        assert_eq!(failure.hint.as_deref(), Some("did you mean 'a; c'?"));

        let failure =
            Failure::from(StoreError::BadName { name: "..".to_owned(), reason: "no".to_owned() });
        assert_eq!(failure.sentence, "'..' cannot be a title's name: no");
        assert_eq!(failure.hint.as_deref(), Some("choose another name"));

        let failure = Failure::from(StoreError::Damaged { what: "no superblock".to_owned() });
        assert_eq!(failure.code, Code::Damage);
    }
}
