//! How a command ends when it does not end well: one sentence, a hint, an exit code.

use device::DeviceError;
use store::StoreError;

/// The exit codes, documented in `docs/reference/exit-codes.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// It was tried and did not work.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Admission let nobody in.
    Refused = 3,
    /// Bytes on disk are not what was written.
    Damage = 4,
    /// A measurement ran, but what it says cannot be relied on.
    Invalid = 5,
}

/// What went wrong and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    /// Without a full stop. Empty: it has been reported already; only the code is left to give.
    pub(crate) sentence: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { code: Code::Failed, sentence: sentence.into(), hint: None }
    }

    /// A wrong command line that the parser could not see.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self { code: Code::Usage, ..Self::new(sentence) }
    }

    /// Somebody pressed Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self::new("interrupted: the store is as it was")
    }

    /// The report on standard output says it all.
    pub(crate) fn reported(code: Code) -> Self {
        Self { code, sentence: String::new(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// Of an error's text. The rooms below end theirs with `; do this`: that is the hint.
    pub(crate) fn of(text: &str) -> Self {
        match text.rsplit_once("; ") {
            // A quote left open before it: the semicolon belongs to a name.
            Some((sentence, hint)) if quotes(sentence).is_multiple_of(2) => {
                Self::new(sentence).hint(hint)
            }
            _ => Self::new(text),
        }
    }
}

/// Quotes around names, without the apostrophes in words.
fn quotes(text: &str) -> usize {
    let ends_word = |before: &str| before.ends_with(char::is_alphanumeric);
    let starts_word = |after: &str| after.starts_with(char::is_alphanumeric);
    let quote = |at: &usize| !(ends_word(&text[..*at]) && starts_word(&text[at + 1..]));
    text.match_indices('\'').map(|(at, _)| at).filter(quote).count()
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = if error.is_damage() { Code::Damage } else { Code::Failed };
        let failure = Self::of(&error.to_string()).code(code);
        match error {
            StoreError::Cancelled => Self::interrupted(),
            StoreError::SizeNeeded { .. } => failure.hint("for example --size 40GiB"),
            _ => failure,
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self::of(&error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_on_a_line_of_its_own() {
        let failure = Failure::from(StoreError::NotAStore { what: "film.mkv".to_owned() });
        assert_eq!(failure.sentence, "film.mkv is not a Tenuto store");
        assert_eq!(failure.hint.as_deref(), Some("`tenuto format` makes one"));
        assert_eq!(failure.code, Code::Failed);

        let failure = Failure::from(StoreError::NoTitle { name: "a; b".to_owned() });
        assert_eq!(failure.sentence, "there is no title 'a; b'");
        assert_eq!(failure.hint, None);

        let failure = Failure::from(StoreError::BadName { name: "..".to_owned(), reason: "no" });
        assert_eq!(failure.sentence, "'..' cannot be a title's name: no");
        assert_eq!(failure.hint.as_deref(), Some("choose another name"));

        let failure = Failure::from(StoreError::Damaged { what: "no superblock".to_owned() });
        assert_eq!(failure.code, Code::Damage);
    }
}
