//! What went wrong, and what to do about it, as two texts.
//!
//! The `Display` of an error is its message: one sentence without the remedy. Whoever shows it to a
//! user asks for the [`Reason`] and prints the hint as a line of its own; a log line has both.

use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// What went wrong in one sentence without a full stop, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The sentence.
    pub message: String,
    /// The remedy, where one is known.
    pub hint: Option<String>,
}

impl Reason {
    /// A message with its remedy.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }

    /// This reason with the thing that it is about before its message: `film.mkv: it is empty`.
    #[must_use]
    pub fn about(mut self, subject: impl fmt::Display) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }
}

/// A message without a remedy.
impl From<String> for Reason {
    fn from(message: String) -> Self {
        Self { message, hint: None }
    }
}

/// A message without a remedy.
impl From<&str> for Reason {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Reason {}

/// An error that may know its remedy. Its `Display` is the message alone.
pub trait Hinted: fmt::Display {
    /// The remedy, where one is known.
    fn hint(&self) -> Option<String>;

    /// Message and hint.
    fn reason(&self) -> Reason {
        Reason { message: self.to_string(), hint: self.hint() }
    }

    /// Message and hint in one line, for logs.
    fn one_line(&self) -> String {
        self.hint().map_or_else(|| self.to_string(), |hint| format!("{self}; {hint}"))
    }
}

impl Hinted for Reason {
    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

/// The hint of an error that was made from a [`Reason`]; the kernel's errors have none.
impl Hinted for io::Error {
    fn hint(&self) -> Option<String> {
        self.get_ref()?.downcast_ref::<Reason>()?.hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_apart_from_the_message_and_travels_in_an_io_error() {
        let reason = Reason::new("it is not there", "check the path").about("a; b");
        assert_eq!(reason.to_string(), "a; b: it is not there");
        assert_eq!(reason.one_line(), "a; b: it is not there; check the path");
        let error = io::Error::other(reason.clone());
        assert_eq!(error.reason(), reason);
        assert_eq!(Reason::from("cut; short").one_line(), "cut; short");
        assert_eq!(io::Error::from(io::ErrorKind::NotFound).hint(), None);
    }
}
