//! What can go wrong between a viewer and a server, each with what to do about it.

use crate::tls::{IdentityError, TrustError};
use std::io;
use std::path::PathBuf;

/// Why nothing could be played. What befell single viewers is in the report instead.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// Nothing to play.
    #[error("no address was given; try http://127.0.0.1:8080/ for all titles of a local server")]
    NoUrl,
    /// Nobody to play to.
    #[error("with no viewers there is nothing to measure; give --viewers 1 or more")]
    NoViewers,
    /// A server without titles.
    #[error("{url} offers no titles; put some in with 'tenuto ingest STORE FILE...'")]
    NoTitles {
        /// The server.
        url: String,
    },
    /// An address that cannot be asked, or an answer that cannot be used.
    #[error(transparent)]
    Viewer(#[from] ViewerError),
    /// The media could not be kept.
    #[error("cannot write {}: {source}; choose another place with --save", path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The machine lacks resources for the number of viewers.
    #[error("{what}: {source}; try fewer viewers, or raise the limit with 'ulimit -n'")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What can befall one viewer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewerError {
    /// Not an address.
    #[error("'{url}' is not an address of the form http[s]://HOST[:PORT]/PATH")]
    Url {
        /// As given.
        url: String,
    },
    /// Nobody is trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// No viewers are given.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The two do not trust, or understand, each other.
    #[error("{url}: no secure connection: {reason}")]
    Tls {
        /// What was asked for.
        url: String,
        /// Why, and what to do.
        reason: String,
    },
    /// No such host.
    #[error("cannot find the host '{host}': {reason}; check the name")]
    Host {
        /// As given.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// Nobody listens, or the network is in the way.
    #[error(
        "cannot connect to {address}: {reason}; is 'tenuto serve' running there, with this address \
         after --listen?"
    )]
    Connect {
        /// Host and port.
        address: String,
        /// What the kernel said.
        reason: String,
    },
    /// The connection broke.
    #[error("{url}: the connection was lost ({reason}); look at the server's log")]
    Lost {
        /// What was asked for.
        url: String,
        /// How.
        reason: String,
    },
    /// Nothing came.
    #[error("{url}: nothing came for {seconds} s; the server hangs, or the network does")]
    Silent {
        /// What was asked for.
        url: String,
        /// How long.
        seconds: u64,
    },
    /// 404.
    #[error("{url}: not found (404); 'tenuto ls STORE' or the server's /titles say what there is")]
    NotFound {
        /// What was asked for.
        url: String,
    },
    /// Another status than was hoped for.
    #[error("{url}: the server answered {status}{}", what(body))]
    Status {
        /// What was asked for.
        url: String,
        /// The status.
        status: u16,
        /// The beginning of the response body.
        body: String,
    },
    /// An answer that is no HTTP.
    #[error("{url}: the answer is not HTTP ({reason}); is this a web server's port?")]
    NotHttp {
        /// What was asked for.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A playlist was expected.
    #[error(
        "{url}: not a playlist that can be played ({reason}); give the address of a .m3u8, .mpd or \
         .mp4, or of a server's root"
    )]
    NotAPlaylist {
        /// What was asked for.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A DASH manifest was expected.
    #[error(
        "{url}: not a DASH manifest that can be played ({reason}); give an MPD of type static, or \
         the title's HLS playlist or MP4 file"
    )]
    NotAManifest {
        /// What was asked for.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A player cannot go from one rendition to the other.
    #[error(
        "{url}: this rendition is cut into other pieces than the one before it, so that no player \
         could change between them piece by piece; measure with --switching never"
    )]
    CutElsewhere {
        /// The playlist, or the manifest.
        url: String,
    },
    /// An MP4 file was expected.
    #[error("{url}: not an MP4 file that can be played ({reason})")]
    NotMp4 {
        /// What was asked for.
        url: String,
        /// What is wrong.
        reason: String,
    },
}

fn what(body: &str) -> String {
    if body.is_empty() { String::new() } else { format!(": {body}") }
}
