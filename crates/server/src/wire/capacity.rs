//! JSON of what a server can still hold: `/api/v1/headroom`, and the rate of a title over its time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many more viewers of a title a server would admit now (`/api/v1/headroom`), in its
/// best rendition, without a wait and without the end of another session. They start at places that
/// are spread over the first half of the title; of viewers who start together many more fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeadroomReport {
    /// The title's name.
    pub title: String,
    /// How many more fit.
    pub fits: u32,
    /// Whether more may fit, which were not counted.
    pub at_least: bool,
    /// Why the next one would be refused: the cause, as in a refusal; `null` where it was not
    /// counted.
    pub cause: Option<String>,
    /// The resource that is short then: `disk`, `memory` or `network`; `null` where none is.
    pub resource: Option<String>,
    /// The refusal in a sentence.
    pub message: Option<String>,
    /// The shortage in numbers.
    pub detail: Option<String>,
    /// Unix seconds at which the next one would be admitted, as far as it is known; else `null`.
    pub until: Option<f64>,
}

/// The rate that a title needs over its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateOverTime {
    /// Seconds of an interval.
    pub interval: f64,
    /// Bits per second in each interval, from the beginning of the title.
    pub bit_rates: Vec<u64>,
}
