//! JSON of a server's decisions on viewers: `/api/v1/decisions`, and lines of the log.

use super::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The latest decisions of a server (`/api/v1/decisions`), the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionList {
    /// Number of all decisions since the server's start; at most 256 are listed.
    pub total: u64,
    /// The listed decisions.
    pub decisions: Vec<ViewerDecision>,
}

/// A decision on a viewer: whether it is admitted, may seek or change its rendition, or has to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ViewerDecision {
    /// When it was taken: Unix seconds.
    pub at: f64,
    /// What was decided on: `session` (a new one), `fill` (of a cache), `seek` (another place or
    /// rendition in a session), or `end` (of a session that plays).
    #[schemars(extend("enum" = ["session", "fill", "seek", "end"]))]
    pub subject: String,
    /// `admitted`, `smaller` (admitted to a smaller rendition than the best), `later` (admitted,
    /// and starts later), `refused`, or `ended`.
    #[schemars(extend("enum" = ["admitted", "smaller", "later", "refused", "ended"]))]
    pub verdict: String,
    /// The session's number; `null` where none has begun.
    pub session: Option<u64>,
    /// The title's name.
    pub title: String,
    /// The viewer's priority: `low`, `normal` or `high`.
    #[schemars(extend("enum" = words::priorities()))]
    pub priority: String,
    /// The viewer's address; of an IPv6 address the network.
    pub client: String,
    /// The rendition that was admitted, counted from the best, which is 0; `null` where none was.
    pub offer: Option<usize>,
    /// The resource that was short: `disk`, `memory` or `network`; `null` where none was.
    #[schemars(extend("enum" = words::resources_or_none()))]
    pub resource: Option<String>,
    /// Why: the cause of a refusal, or `priority`, `overload` or `disk-lost` for an end; `null` for
    /// an acceptance.
    #[schemars(extend("enum" = words::reasons_or_none()))]
    pub reason: Option<String>,
    /// The shortage in numbers; `null` where nothing was short.
    pub detail: Option<String>,
    /// Unix seconds: the start of a session that is admitted for later, or the time at which a
    /// refused request would be admitted, as far as it is known; else `null`.
    pub until: Option<f64>,
    /// The sessions of a lower priority that ended for this one.
    pub preempted: Vec<u64>,
}
