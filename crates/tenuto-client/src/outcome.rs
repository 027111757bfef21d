//! The report of a run: the JSON of `tenuto play --json`. The names are stable;
//! `docs/reference/play.md` explains each. Times are in the unit that their name ends with.

use player::percentile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The report of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayReport {
    /// The parameters of the run.
    pub parameters: Parameters,
    /// Whether the run was complete; false when it was interrupted, and the report covers the time
    /// until then.
    pub complete: bool,
    /// Time from the first arrival to the end of the run.
    pub seconds: f64,
    /// Sums over all viewers.
    pub totals: Totals,
    /// Time from arrival to first picture, for each viewer who saw one.
    pub startup_ms: Distribution,
    /// Time from arrival to the response of the manifest request, for each viewer that got one.
    pub answer_ms: Distribution,
    /// TCP connect time per connection, in milliseconds.
    #[serde(default)]
    pub connect_ms: Distribution,
    /// TLS handshake time per TLS connection, in milliseconds.
    #[serde(default)]
    pub handshake_ms: Distribution,
    /// Time from sending a request for a piece to the first byte of the response's body.
    #[serde(default)]
    pub first_byte_ms: Distribution,
    /// The total stalled time of each admitted viewer.
    pub stalled_ms: Distribution,
    /// Unit granule drift of every piece of every admitted viewer.
    pub drift_ms: Distribution,
    /// Segments of the first track by rendition, over all viewers, the lowest rendition first.
    /// Empty where the server does not declare rates.
    #[serde(default)]
    pub renditions: Vec<RenditionReport>,
    /// The reports of viewers in order of arrival.
    pub viewers: Vec<ViewerReport>,
    /// Samples of the state every half second.
    pub samples: Vec<ViewerSample>,
    /// Files written for the first viewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<PathBuf>,
}

/// The parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// The addresses as the user gave them.
    pub urls: Vec<String>,
    /// The number of titles behind these addresses.
    pub titles: usize,
    /// The number of viewers.
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
    /// How RTP came from addresses of RTSP: `tcp` or `udp`.
    #[serde(default)]
    pub rtsp_transport: String,
    /// See [`super::PlayOptions::bandwidth`].
    #[serde(default)]
    pub bandwidth_bits_per_s: Option<u64>,
    /// Whether refused viewers tried again.
    pub retry: bool,
    /// The query added to each address, see [`super::View`]; empty for none.
    #[serde(default)]
    pub view: String,
}

/// Sums over all viewers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Viewers that arrived: `admitted + refused + failed + unanswered`.
    pub arrived: u32,
    /// Viewers that were admitted and did not fail later.
    pub admitted: u32,
    /// Viewers that were refused.
    pub refused: u32,
    /// Refused viewers by the resource that was short.
    pub refused_by: BTreeMap<String, u32>,
    /// Viewers with an error, while loading the manifest or later.
    pub failed: u32,
    /// Viewers whose manifest request was unanswered at the end of the run.
    pub unanswered: u32,
    /// Viewers that played to the end of the title.
    pub finished: u32,
    /// Changes of viewers to another node or base address, because theirs did not answer.
    #[serde(default)]
    pub failovers: u64,
    /// Viewers with at least one such change.
    #[serde(default)]
    pub viewers_with_failovers: u32,
    /// Changes of speed that the server refused.
    #[serde(default)]
    pub refused_speeds: u64,
    /// Seeks over RTSP that the server refused.
    #[serde(default)]
    pub refused_seeks: u64,
    /// Stalls longer than the dead-band.
    pub stalls: u64,
    /// Viewers with at least one stall.
    pub viewers_with_stalls: u32,
    /// The total stalled time of all viewers.
    pub stalled_s: f64,
    /// The media time rendered by all viewers together.
    pub played_s: f64,
    /// `stalled / (stalled + played)`; 0 when nothing was played.
    pub stall_ratio: f64,
    /// Bytes of media received.
    pub bytes: u64,
    /// LDUs of the first tracks that arrived, where the form shows them.
    #[serde(default)]
    pub ldus: u64,
    /// LDUs of the first tracks that arrived after their time, by more than the dead-band.
    #[serde(default)]
    pub late_ldus: u64,
    /// RTP packets that viewers of RTSP missed.
    #[serde(default)]
    pub lost_packets: u64,
    /// The mean rate: these bytes over the time of the run.
    pub bits_per_s: f64,
    /// Changes to a higher rendition, from one piece to the next.
    #[serde(default)]
    pub switches_up: u64,
    /// Changes to a lower rendition, from one piece to the next.
    #[serde(default)]
    pub switches_down: u64,
    /// Pieces in a lower rendition than the best that any viewer of the address was offered; those
    /// during which a player measures its throughput do not count.
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

/// The pieces received in one rendition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenditionReport {
    /// The peak rate, as declared by the server.
    pub bits_per_s: u64,
    /// The number of segments.
    pub pieces: u64,
    /// Length of these segments in the title.
    pub media_s: f64,
}

/// The outcome of the manifest request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewerOutcome {
    /// The viewer was admitted.
    Admitted,
    /// The viewer was refused with a reason.
    Refused,
    /// An error occurred; see `error`.
    Failed,
    /// The run ended before there was a response.
    Unanswered,
}

/// The report of one viewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewerReport {
    /// The viewer's number: 0 for the first to arrive.
    pub viewer: u32,
    /// The address that it requested.
    pub url: String,
    /// Time from the start of the run to its arrival.
    pub arrived_s: f64,
    /// The outcome of its manifest request.
    pub outcome: ViewerOutcome,
    /// The number of its manifest requests: one, and one more for each retry after a refusal.
    pub attempts: u32,
    /// The last refusal, also if it was admitted later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<RefusalReport>,
    /// The error, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What to do about the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Time from arrival to the response of the manifest request.
    pub answer_ms: Option<f64>,
    /// Time from arrival to first picture.
    pub startup_ms: Option<f64>,
    /// `waiting`, `playing`, `stalled`, `paused`, `finished` or `stopped`, as it was before the
    /// run's end. `none` if it never began to play.
    pub stage: String,
    /// The media time rendered.
    pub played_s: f64,
    /// Stalls longer than the dead-band.
    pub stalls: u64,
    /// The total time stalled, in milliseconds.
    pub stalled_ms: f64,
    /// The longest stall.
    pub longest_stall_ms: f64,
    /// Times from each seek or change of speed to the next picture.
    pub seeks_ms: Vec<f64>,
    /// The smallest margin between the arrival of a piece and its due time; negative: late.
    pub least_margin_ms: Option<f64>,
    /// The drift of the first track's pieces.
    pub drift: DriftReport,
    /// The arrival of the first track's LDUs, where the form shows them (fragmented MP4, RTP).
    #[serde(default)]
    pub ldus: LduReport,
    /// The RTP packets, where the viewer used RTSP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtp: Option<RtpReport>,
    /// Pieces received; over RTSP, LDUs of the first track.
    pub pieces: u64,
    /// Bytes of media received.
    pub bytes: u64,
    /// Number of `503` responses to requests for media after admission, and over RTSP of refusals
    /// of `PLAY` after a pause: the viewer waited and asked again.
    pub put_off: u32,
    /// Changes to another node or base address, because the present one did not answer.
    #[serde(default)]
    pub failovers: u32,
    /// Changes of speed that the server refused: the viewer went on as before.
    #[serde(default)]
    pub refused_speeds: u32,
    /// Seeks over RTSP that the server refused: the viewer went on as before.
    #[serde(default)]
    pub refused_seeks: u32,
    /// Changes to a higher rendition.
    #[serde(default)]
    pub switches_up: u64,
    /// Changes to a lower rendition.
    #[serde(default)]
    pub switches_down: u64,
    /// Pieces below the best rendition, see [`Totals::below_best`].
    #[serde(default)]
    pub below_best: u64,
    /// The mean rate of the renditions, see [`Totals::mean_rendition_bits_per_s`].
    #[serde(default)]
    pub mean_rendition_bits_per_s: Option<f64>,
    /// Pieces of the first track by rendition, see [`PlayReport::renditions`].
    #[serde(default)]
    pub renditions: Vec<RenditionReport>,
}

/// The arrival of the LDUs of the first track; the formulas are in `docs/reference/play.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LduReport {
    /// LDUs that arrived.
    pub received: u64,
    /// LDUs that arrived after their time, by more than the dead-band.
    pub late: u64,
    /// ADF: the sum of the time that LDUs were late.
    pub adf_ms: f64,
    /// ADF divided by the number of LDUs.
    pub normalised_adf_ms: f64,
    /// CDF: the largest sum over consecutive LDUs that were late by more than the dead-band.
    pub cdf_ms: f64,
    /// The longest time that an LDU was late.
    pub max_ms: f64,
}

/// The RTP packets of a viewer of RTSP, of all its tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RtpReport {
    /// Packets received.
    pub packets: u64,
    /// Packets that are missing: expected by their sequence numbers, and not received.
    pub lost: u64,
    /// Interarrival jitter of the first track at the end (RFC 3550, 6.4.1).
    pub jitter_ms: f64,
}

/// The server's reason for a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalReport {
    /// The scarce resource: `disk`, `memory` or `network`; another word of the server for other
    /// reasons (`stopping`); `unknown` when it named none.
    pub resource: String,
    /// Why the request did not fit, in a word of a Tenuto server, such as `sessions` or `title`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The value of the `Retry-After` header.
    pub retry_after_s: Option<u64>,
    /// The reason in one sentence.
    pub reason: String,
    /// Figures that explain the reason; not stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Drift after Lee & Srivastava; the formulas are in `docs/reference/play.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriftReport {
    /// Number of pieces whose rendering began.
    pub pieces: usize,
    /// ADF: the sum of all drifts.
    pub adf_ms: f64,
    /// ADF divided by the number of pieces.
    pub normalised_adf_ms: f64,
    /// CDF: the largest sum of consecutive drifts above the dead-band.
    pub cdf_ms: f64,
    /// The median drift.
    pub p50_ms: f64,
    /// The 99th percentile of the drift.
    pub p99_ms: f64,
    /// The largest drift.
    pub max_ms: f64,
}

/// The distribution of values; percentiles by nearest rank. All zero without values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The number of values.
    pub count: usize,
    /// The smallest value.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

impl Distribution {
    /// The distribution of finite values, in any order.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let rank = |q| percentile(&values, q).copied().unwrap_or(0.0);
        #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
        let mean = values.iter().fold(0.0, |sum, value| sum + value) / values.len().max(1) as f64;
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

/// The state at one time of the run. Each viewer who arrived is in exactly one of the counts from
/// `waiting` to `gone`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewerSample {
    /// Time from the start of the run.
    pub at_s: f64,
    /// Viewers that have arrived.
    pub arrived: u32,
    /// Viewers that load the manifest, or buffer before the first picture.
    pub waiting: u32,
    /// Viewers whose picture moves, or who have paused.
    pub playing: u32,
    /// Viewers whose playback has stalled for lack of media.
    pub stalled: u32,
    /// Viewers that were refused.
    pub refused: u32,
    /// Viewers with an error.
    pub failed: u32,
    /// Viewers that have played to the end, or left.
    pub gone: u32,
    /// Stalls that have begun.
    pub stalls: u64,
    /// Bytes of media received.
    pub bytes: u64,
}
