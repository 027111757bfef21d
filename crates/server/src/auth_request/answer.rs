//! The answer to the question whether a viewer may begin.

use crate::access::Allowance;
use crate::config::Unanswered;
use uuid::Uuid;

/// The decision on a viewer, and the question that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthAnswer {
    pub(crate) id: Uuid,
    pub(crate) verdict: AuthVerdict,
}

/// A decision on a viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthVerdict {
    /// The viewer may begin, within these limits.
    Allowed(Allowance),
    /// The viewer may not begin; the reason is for the log.
    Refused { status: u16, reason: String },
    /// The service gave no answer that can be used.
    Unanswered { why: String, then: Unanswered },
    /// Too many viewers wait for answers.
    Busy,
}
