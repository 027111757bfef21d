//! JSON of what a server can still hold (`/api/v1/headroom`), of the rate of a title over its time,
//! and of plans for other disks.

use super::words;
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
    #[schemars(extend("enum" = words::causes_or_none()))]
    pub cause: Option<String>,
    /// The resource that is short then: `disk`, `memory` or `network`; `null` where none is.
    #[schemars(extend("enum" = words::resources_or_none()))]
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

/// The streams that a disk would hold (`plan`, `/api/v1/plan`). `A`: what is told of the policies
/// with each size of read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanReport<A> {
    /// The disk in words.
    pub disk: String,
    /// Seconds of the scheduling period.
    pub slot: f64,
    /// Bits per second of a stream.
    pub bit_rate: u64,
    /// Bytes of buffers, of all disks together; `null` if unlimited.
    pub memory: Option<u64>,
    /// Number of such disks.
    pub disks: u64,
    /// Streams of one disk by its transfer rate alone.
    pub ratio: u64,
    /// Streams of one disk by equation 5 of Lee and Srivastava.
    pub s_max: u64,
    /// Bits per second of the fitted line of read times.
    pub r0: u64,
    /// Seconds of the fitted line of read times.
    pub t0: f64,
    /// The streams of one disk by size of read.
    pub rows: Vec<PlanRow<A>>,
    /// The best size of read; `null` if no stream is admitted.
    pub best: Option<BestPlan>,
    /// The viewers that share reads; `null` if the question has no popularity of titles or no limit
    /// of memory, or if no stream is admitted.
    #[serde(default)]
    pub shared: Option<SharedPlan>,
}

/// An estimate of how many viewers of popular titles disks and memory hold together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedPlan {
    /// Number of titles.
    pub titles: u64,
    /// Exponent of Zipf's law, by which viewers choose.
    pub zipf: f64,
    /// Seconds within which the viewers who watch at the same time have come.
    pub within: f64,
    /// Bytes of a read.
    pub read_size: u64,
    /// Viewers of all disks.
    pub viewers: u64,
    /// Streams that the disks read for them; the other viewers follow one of these.
    pub streams: u64,
    /// The resource that is short for more: `disk` or `memory`.
    #[schemars(extend("enum" = ["disk", "memory"]))]
    pub short_of: String,
}

/// The streams that one disk would hold with reads of one size. A bound is `null` where it is not
/// known for this disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRow<A> {
    /// Bytes of a read.
    pub read_size: u64,
    /// Seconds that a read plays.
    pub lasts: f64,
    /// Bound by Özden, Rastogi and Silberschatz.
    pub ozden: Option<u64>,
    /// Bound for streams at any place of the disk.
    pub any_place: Option<u64>,
    /// Bound for streams that are spread evenly over the disk.
    pub zone_exact: Option<u64>,
    /// Streams by mean times, which nothing guarantees.
    pub usual: Option<u64>,
    /// Streams for which the memory suffices; `null` if it is unlimited.
    pub in_memory: Option<u64>,
    /// The streams that admission takes; `null` for a size that a server does not use for them.
    pub admitted: Option<A>,
}

/// The streams that a policy admits to one disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdmittedStreams {
    /// Number of streams.
    pub streams: u64,
    /// The resource that is short for one more: `disk`, `memory` or `network`; `null`: none was.
    #[schemars(extend("enum" = words::resources_or_none()))]
    pub short_of: Option<String>,
    /// The most bytes of buffers that were booked.
    pub memory_booked: u64,
    /// Reads done too late; 0 with a policy that guarantees.
    pub late_reads: u64,
}

/// A plan's best size of read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BestPlan {
    /// Bytes of a read.
    pub read_size: u64,
    /// Streams of one disk.
    pub streams: u64,
    /// Streams of all disks.
    pub streams_in_all: u64,
    /// The resource that is short for one more: `disk`, `memory` or `network`; `null`: none was.
    #[schemars(extend("enum" = words::resources_or_none()))]
    pub short_of: Option<String>,
    /// Seconds of the service cycle (equation 3 of Lee and Srivastava); `null` where there is none.
    pub cycle: Option<f64>,
    /// Bytes of the buffer of a stream (equation 4); `null` where there is none.
    pub buffer: Option<u64>,
    /// Bytes for two reads of each stream of all disks.
    pub memory_needed: Option<u64>,
    /// The most bytes that admission books for all disks.
    pub memory_booked: u64,
    /// Seconds from admission until the first media is in memory.
    pub startup: f64,
    /// Seconds of the same in rounds, at most.
    pub startup_in_rounds: f64,
}

/// A plan of one policy (`/api/v1/plan`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyPlan {
    /// The admission policy.
    pub policy: String,
    /// Whether an admitted stream is sure to be on time while the disk keeps its guarantee.
    pub guaranteed: bool,
    /// The plan.
    #[serde(flatten)]
    pub plan: PlanReport<AdmittedStreams>,
}

/// What a plan can be made for (`/api/v1/planning`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanChoices {
    /// The built-in models of disks.
    pub models: Vec<PlannedModel>,
    /// The admission policies, the default first.
    pub policies: Vec<PlannedPolicy>,
    /// Bytes of the reads that are compared for a model.
    pub read_sizes: Vec<u64>,
}

/// A built-in model of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedModel {
    /// The model's name.
    pub name: String,
    /// The disk in words.
    pub title: String,
    /// `hdd` or `ssd`.
    #[schemars(extend("enum" = ["hdd", "ssd"]))]
    pub kind: String,
    /// Bytes of the disk.
    pub capacity: u64,
}

/// An admission policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedPolicy {
    /// The policy's name.
    pub name: String,
    /// Whether an admitted stream is sure to be on time while the disk keeps its guarantee.
    pub guaranteed: bool,
}
