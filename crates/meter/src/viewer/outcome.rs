//! What came of it: the JSON of `tenuto play --json`. The names are stable;
//! `docs/reference/play.md` explains each. Times are in the unit their name ends with.

use player::percentile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayReport {
    /// What was asked for.
    pub parameters: Parameters,
    /// False when the run was interrupted: then what follows is what had happened until then.
    pub complete: bool,
    /// From the first arrival to the end of the run.
    pub seconds: f64,
    /// Sums over all viewers.
    pub totals: Totals,
    /// From arrival to first picture, per viewer who saw one.
    pub startup_ms: Distribution,
    /// From arrival to the response of the manifest request, per viewer that got one.
    pub answer_ms: Distribution,
    /// TCP connect time per connection, in milliseconds.
    #[serde(default)]
    pub connect_ms: Distribution,
    /// TLS handshake time per TLS connection, in milliseconds.
    #[serde(default)]
    pub handshake_ms: Distribution,
    /// From when the request for a piece was sent to the first byte of the answer's body.
    #[serde(default)]
    pub first_byte_ms: Distribution,
    /// All stalls of a viewer together, per admitted viewer.
    pub stalled_ms: Distribution,
    /// Unit granule drift of every piece of every admitted viewer.
    pub drift_ms: Distribution,
    /// Segments of the first track by rendition, over all viewers, the lowest rendition first.
    /// Empty where the server does not declare rates.
    #[serde(default)]
    pub renditions: Vec<RenditionReport>,
    /// In order of arrival.
    pub viewers: Vec<ViewerReport>,
    /// The state of things every half second.
    pub samples: Vec<ViewerSample>,
    /// Files written for the first viewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<PathBuf>,
}

/// What the run was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// As given.
    pub urls: Vec<String>,
    /// How many titles these stand for.
    pub titles: usize,
    /// How many viewers were to come.
    pub viewers: u32,
    /// `all`, `every:TIME` or `poisson:TIME`.
    pub arrivals: String,
    /// See [`super::PlayOptions::seed`].
    pub seed: u64,
    /// See [`super::PlayOptions::duration`].
    pub duration_s: Option<f64>,
    /// See [`player::PlayerOptions::start`].
    pub start_s: f64,
    /// See [`player::PlayerOptions::buffer`].
    pub buffer_s: f64,
    /// See [`player::PlayerOptions::dead_band`].
    pub dead_band_ms: f64,
    /// See [`super::PlayOptions::switching`]: `never` or `hls.js`.
    #[serde(default)]
    pub switching: String,
    /// Whether refused viewers came again.
    pub retry: bool,
    /// What was put behind each address: see [`super::View`]. Empty: nothing.
    #[serde(default)]
    pub view: String,
}

/// Sums over all viewers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Who came at all. `admitted + refused + failed + unanswered`.
    pub arrived: u32,
    /// Let in, and not failed later.
    pub admitted: u32,
    /// Sent away.
    pub refused: u32,
    /// Refused viewers by the resource that was short.
    pub refused_by: BTreeMap<String, u32>,
    /// Viewers with an error, while loading the manifest or later.
    pub failed: u32,
    /// Viewers whose manifest request was unanswered at the end of the run.
    pub unanswered: u32,
    /// Played to the end of the title.
    pub finished: u32,
    /// Stalls longer than the dead-band.
    pub stalls: u64,
    /// Viewers with at least one stall.
    pub viewers_with_stalls: u32,
    /// All stalls together.
    pub stalled_s: f64,
    /// Media time rendered by all together.
    pub played_s: f64,
    /// `stalled / (stalled + played)`; 0 when nothing was played.
    pub stall_ratio: f64,
    /// Bytes of media received.
    pub bytes: u64,
    /// These over the time of the run.
    pub bits_per_s: f64,
    /// Changes to a higher rendition, from one piece to the next.
    #[serde(default)]
    pub switches_up: u64,
    /// And to a lower one.
    #[serde(default)]
    pub switches_down: u64,
    /// Pieces of a lower rendition than the best that any viewer of the address was offered; those
    /// in which a player finds out how wide its way is do not count.
    #[serde(default)]
    pub below_best: u64,
    /// The mean rate of the renditions played, weighted by time; `None` where rates are not
    /// declared.
    #[serde(default)]
    pub mean_rendition_bits_per_s: Option<f64>,
    /// The mean rate as a share of the best rendition's.
    #[serde(default)]
    pub share_of_best: Option<f64>,
}

/// What came in one rendition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenditionReport {
    /// The peak rate, as declared by the server.
    pub bits_per_s: u64,
    /// The number of segments.
    pub pieces: u64,
    /// So much of the title.
    pub media_s: f64,
}

/// The outcome of the manifest request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewerOutcome {
    /// Let in.
    Admitted,
    /// Sent away with a reason.
    Refused,
    /// Something went wrong; see `error`.
    Failed,
    /// The run ended before there was an answer.
    Unanswered,
}

/// One viewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewerReport {
    /// 0 for the first to arrive.
    pub viewer: u32,
    /// What it wanted to see.
    pub url: String,
    /// From the start of the run to its arrival.
    pub arrived_s: f64,
    /// How it went.
    pub outcome: ViewerOutcome,
    /// Times it knocked: one more for each time it came again after a refusal.
    pub attempts: u32,
    /// The last refusal, also when it got in later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<RefusalReport>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// From arrival to the response of the manifest request.
    pub answer_ms: Option<f64>,
    /// From arrival to first picture.
    pub startup_ms: Option<f64>,
    /// `waiting`, `playing`, `stalled`, `paused`, `finished` or `stopped`; as it was before the
    /// run's end sent it home. `none` if it never came to play.
    pub stage: String,
    /// Media time rendered.
    pub played_s: f64,
    /// Stalls longer than the dead-band.
    pub stalls: u64,
    /// The total time stalled, in milliseconds.
    pub stalled_ms: f64,
    /// The longest of them.
    pub longest_stall_ms: f64,
    /// From each seek to the next picture.
    pub seeks_ms: Vec<f64>,
    /// The least time by which a piece came before it was due; negative: late.
    pub least_margin_ms: Option<f64>,
    /// Drift of the first track's pieces.
    pub drift: DriftReport,
    /// Pieces received.
    pub pieces: u64,
    /// Bytes of media received.
    pub bytes: u64,
    /// Answers `503` to requests for media after admission: the viewer waited and asked again.
    pub put_off: u32,
    /// As in [`Totals`].
    #[serde(default)]
    pub switches_up: u64,
    /// As in [`Totals`].
    #[serde(default)]
    pub switches_down: u64,
    /// As in [`Totals`].
    #[serde(default)]
    pub below_best: u64,
    /// As in [`Totals`].
    #[serde(default)]
    pub mean_rendition_bits_per_s: Option<f64>,
    /// As in [`PlayReport`].
    #[serde(default)]
    pub renditions: Vec<RenditionReport>,
}

/// Why a viewer was sent away, as the server put it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusalReport {
    /// `disk`, `memory` or `network`; another word of the server's when it is about none of them
    /// (`stopping`); `unknown` when it did not say.
    pub resource: String,
    /// From the `Retry-After` header.
    pub retry_after_s: Option<u64>,
    /// One sentence.
    pub reason: String,
    /// Figures, for people who ask why; not stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Drift after Lee & Srivastava; the formulas are in `docs/reference/play.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriftReport {
    /// Pieces whose rendering began.
    pub pieces: usize,
    /// ADF: sum of all.
    pub adf_ms: f64,
    /// ADF per piece.
    pub normalised_adf_ms: f64,
    /// CDF: largest sum of consecutive ones above the dead-band.
    pub cdf_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Largest.
    pub max_ms: f64,
}

/// How values are spread; percentiles by nearest rank. All zero when there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many values.
    pub count: usize,
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half are at most this.
    pub p50: f64,
    /// 95 % are at most this.
    pub p95: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Distribution {
    /// The distribution of finite values, in any order.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let rank = |q| percentile(&values, q).copied().unwrap_or(0.0);
        #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self {
            count: values.len(),
            min: rank(0.0),
            mean,
            p50: rank(0.50),
            p95: rank(0.95),
            p99: rank(0.99),
            max: rank(1.0),
        }
    }
}

/// The state of things at one time of the run. Each viewer who came is in exactly one of the
/// counts from `waiting` to `gone`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewerSample {
    /// From the start of the run.
    pub at_s: f64,
    /// Who came until now.
    pub arrived: u32,
    /// Loading the manifest, or accepted and buffering before the first picture.
    pub waiting: u32,
    /// The picture moves (or is paused by the viewer).
    pub playing: u32,
    /// Playback stands still for lack of media.
    pub stalled: u32,
    /// Sent away.
    pub refused: u32,
    /// Something went wrong.
    pub failed: u32,
    /// Played to the end, or left.
    pub gone: u32,
    /// Stalls begun until now.
    pub stalls: u64,
    /// Bytes of media received until now.
    pub bytes: u64,
}
