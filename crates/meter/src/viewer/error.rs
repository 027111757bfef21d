//! Errors between a viewer and a server, each with the remedy.

use crate::tls::{IdentityError, TrustError};
use std::io;
use std::path::PathBuf;

/// An error that prevents playback. Errors of single viewers are in the report instead.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// No address was given.
    #[error("no address was given; try http://127.0.0.1:8080/ for all titles of a local server")]
    NoUrl,
    /// The number of viewers is zero.
    #[error("with no viewers there is nothing to measure; give --viewers 1 or more")]
    NoViewers,
    /// The server has no titles.
    #[error("{url} offers no titles; put some in with 'tenuto ingest STORE FILE...'")]
    NoTitles {
        /// The server's address.
        url: String,
    },
    /// The first request failed.
    #[error(transparent)]
    Viewer(#[from] ViewerError),
    /// The media could not be saved.
    #[error("cannot write {}: {source}; choose another place with --save", path.display())]
    Save {
        /// The path of the file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The machine lacks resources for the number of viewers.
    #[error("{what}: {source}; try fewer viewers, or raise the limit with 'ulimit -n'")]
    System {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// An error of one viewer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewerError {
    /// The address is invalid.
    #[error("'{url}' is not an address of the form http[s]://HOST[:PORT]/PATH")]
    Url {
        /// The address as the user gave it.
        url: String,
    },
    /// The trusted certificates cannot be loaded.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The client certificate cannot be loaded.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The TLS handshake failed.
    #[error("{url}: no secure connection: {reason}")]
    Tls {
        /// The address of the request.
        url: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// The host is unknown.
    #[error("cannot find the host '{host}': {reason}; check the name")]
    Host {
        /// The host as the user gave it.
        host: String,
        /// The resolver's error.
        reason: String,
    },
    /// The connection was refused or timed out.
    #[error(
        "cannot connect to {address}: {reason}; is 'tenuto serve' running there, with this address \
         after --listen?"
    )]
    Connect {
        /// The host and port.
        address: String,
        /// The kernel's error.
        reason: String,
    },
    /// The connection was lost.
    #[error("{url}: the connection was lost ({reason}); look at the server's log")]
    Lost {
        /// The address of the request.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The server sent nothing.
    #[error("{url}: nothing came for {seconds} s; the server hangs, or the network does")]
    Silent {
        /// The address of the request.
        url: String,
        /// The time without a byte.
        seconds: u64,
    },
    /// The server answered 404.
    #[error("{url}: not found (404); 'tenuto ls STORE' or the server's /titles say what there is")]
    NotFound {
        /// The address of the request.
        url: String,
    },
    /// The server answered with another error status.
    #[error("{url}: the server answered {status}{}", what(body))]
    Status {
        /// The address of the request.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of the response body.
        body: String,
    },
    /// The response is not HTTP.
    #[error("{url}: the answer is not HTTP ({reason}); is this a web server's port?")]
    NotHttp {
        /// The address of the request.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A playlist was expected.
    #[error(
        "{url}: not a playlist that can be played ({reason}); give the address of a .m3u8, .mpd or \
         .mp4, or of a server's root"
    )]
    NotAPlaylist {
        /// The address of the request.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A DASH manifest was expected.
    #[error(
        "{url}: not a DASH manifest that can be played ({reason}); give an MPD of type static, or \
         the title's HLS playlist or MP4 file"
    )]
    NotAManifest {
        /// The address of the request.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The renditions have different segment boundaries.
    #[error(
        "{url}: this rendition is cut into other pieces than the one before it, so that no player \
         could change between them piece by piece; measure with --switching never"
    )]
    CutElsewhere {
        /// The address of the playlist or manifest.
        url: String,
    },
    /// An MP4 file was expected.
    #[error("{url}: not an MP4 file that can be played ({reason})")]
    NotMp4 {
        /// The address of the request.
        url: String,
        /// The reason.
        reason: String,
    },
}

fn what(body: &str) -> String {
    if body.is_empty() { String::new() } else { format!(": {body}") }
}
