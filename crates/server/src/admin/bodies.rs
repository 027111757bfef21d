//! What the bodies and the query of requests say, besides those of other modules.

use schemars::JsonSchema;
use serde::Deserialize;

/// The body of a rename.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewName {
    /// The new name, unique in its store.
    pub(super) name: String,
}

/// The body of a calibration.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CalibrationTime {
    /// Seconds of the measurement's first part, 1 to 600; the long run takes 2.7 times as long.
    #[schemars(range(min = 1, max = 600))]
    pub(super) seconds: f64,
}

/// The body of a request to stop.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopTime {
    /// Seconds after which the server ends at the latest, 1 to 86400. A further request may shorten
    /// the time.
    #[schemars(range(min = 1, max = 86_400))]
    pub(super) seconds: f64,
}

/// The body of a request to send a title.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SentTitle {
    /// The title's name.
    pub(super) title: String,
    /// Where it goes: `udp://ADDRESS:PORT` for the transport stream alone, `rtp://ADDRESS:PORT` for
    /// the stream in RTP (RFC 2250). An IP address, of a receiver or of a multicast group.
    pub(super) to: String,
    /// Routers that datagrams to a multicast group of IPv4 may pass, and one; 1 unless said
    /// otherwise.
    #[schemars(range(min = 1, max = 255))]
    pub(super) ttl: Option<u8>,
    /// Constant rate in bits per second, up to which null packets fill the stream. Without it the
    /// stream has the rate of the title.
    #[schemars(range(min = 64_000, max = 150_000_000))]
    pub(super) rate: Option<u64>,
    /// Whether it begins again when it is over.
    #[serde(default, rename = "loop")]
    pub(super) repeats: bool,
}

/// The body of a request to ingest the file of an address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DownloadedTitle {
    /// The address of the file, over HTTP or HTTPS: below one of the server's `--ingest-from`.
    pub(super) url: String,
}

/// What `as` says of an uploaded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum UploadedAs {
    /// Media, which players can play.
    Media,
    /// Opaque bytes.
    File,
}
