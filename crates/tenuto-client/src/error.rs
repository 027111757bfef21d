//! Errors between a client and a server, each with the remedy.

use crate::outcome::RefusalReport;
use units::{Hinted, Reason};

/// Why a title cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The address is invalid.
    #[error("'{url}' is not an address of the form http[s]:// or rtsp[s]://HOST[:PORT]/PATH")]
    Url {
        /// The address as the user gave it.
        url: String,
    },
    /// The fault is here and not at a server: certificates that cannot be read, a file that cannot
    /// be written, no sockets left, nothing to play.
    #[error(transparent)]
    Local(#[from] Reason),
    /// The host is unknown.
    #[error("cannot find the host '{host}': {reason}")]
    Host {
        /// The host as the user gave it.
        host: String,
        /// The resolver's error.
        reason: String,
    },
    /// The connection was refused or timed out.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        /// The host and port.
        address: String,
        /// The kernel's error.
        reason: String,
    },
    /// The server has no room for the title now; nothing was opened.
    #[error("{url}: refused: {}", refusal.reason)]
    Refused {
        /// The address of the title.
        url: String,
        /// What is short, why, and when to ask again.
        refusal: Box<RefusalReport>,
    },
    /// A request failed.
    #[error("{url}: {error}")]
    Request {
        /// The address of the request.
        url: String,
        /// The failure.
        error: RequestError,
    },
}

/// The failure of one request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The TLS handshake failed, for this reason.
    #[error("no secure connection: {0}")]
    Tls(Reason),
    /// The connection was lost, for this reason.
    #[error("the connection was lost ({0})")]
    Lost(String),
    /// The server sent nothing for so many seconds.
    #[error("the server sent nothing for {0} s")]
    Silent(u64),
    /// The server answered 404.
    #[error("not found (404){}", what(message))]
    NotFound {
        /// The error message of the server, if it sent one.
        message: String,
        /// The hint of the server.
        hint: Option<String>,
    },
    /// The server answered with another error status.
    #[error("the server answered {status}{}", what(message))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The error message of the server, or the beginning of the response body.
        message: String,
        /// The hint of the server.
        hint: Option<String>,
    },
    /// The response is not HTTP, for this reason.
    #[error("the answer is not HTTP ({0})")]
    NotHttp(&'static str),
    /// The response is not RTSP.
    #[error("the answer is not RTSP")]
    NotRtsp,
    /// A description of a title was expected, and this is none for this reason.
    #[error("not a description (SDP) that can be played ({0})")]
    NotADescription(&'static str),
    /// A playlist was expected, and this is none for this reason.
    #[error("not a playlist that can be played ({0})")]
    NotAPlaylist(&'static str),
    /// A DASH manifest was expected, and this is none for this reason.
    #[error("not a DASH manifest that can be played ({0})")]
    NotAManifest(String),
    /// The renditions have different segment boundaries.
    #[error("the segments of this rendition have other boundaries than those of the one before it")]
    CutElsewhere,
    /// An MP4 file was expected, and this is none for this reason.
    #[error("not an MP4 file that can be played ({0})")]
    NotMp4(&'static str),
}

impl Hinted for ClientError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Local(reason) => return reason.hint.clone(),
            Self::Request { error, .. } => return error.hint(),
            Self::Url { .. } => return None,
            Self::Refused { refusal, .. } => {
                let retry = refusal.retry_after_s;
                return retry.map(|seconds| format!("ask again after {seconds} s"));
            }
            Self::Host { .. } => "check the name",
            Self::Connect { .. } => "start `tenuto serve` there, with this address after --listen",
        };
        Some(hint.to_owned())
    }
}

impl Hinted for RequestError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotFound { hint: Some(hint), .. } | Self::Status { hint: Some(hint), .. } => hint,
            Self::NotFound { .. } => {
                "`tenuto ls STORE`, or /titles of the server, lists the titles"
            }
            Self::Tls(reason) => return reason.hint.clone(),
            Self::Status { .. } | Self::NotMp4(_) => return None,
            Self::Lost(_) => "look at the log of the server",
            Self::Silent(_) => "look at the log of the server, and test the network",
            Self::NotHttp(_) => "give the port of a web server",
            Self::NotRtsp => "give the port of an RTSP server, as `tenuto serve --rtsp` names it",
            Self::NotADescription(_) => return None,
            Self::NotAPlaylist(_) => {
                "give the address of a .m3u8, .mpd or .mp4, or of the root of a server"
            }
            Self::NotAManifest(_) => {
                "give an MPD of type static, or the HLS playlist or MP4 file of the title"
            }
            Self::CutElsewhere => "measure with --switching never",
        };
        Some(hint.to_owned())
    }
}

fn what(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
