//! What a server leaves to the one that goes on in its place: its sessions, its sockets and its
//! clock. The new server may be another program (`exec`): then the state is JSON in memory that has
//! no name, and descriptors stay open.
//!
//! ```text
//!   SIGUSR2, POST /api/v1/restart
//!     │ the program that is to come checks itself and the configuration ── not valid ─▶ nothing
//!     ▼                                                                                 changes
//!   connections: none is accepted, idle ones are closed, responses are sent ──▶ Handover
//!     │            (new ones wait in the kernel: the listening sockets stay open)
//!     ▼
//!   exec ─▶ the new program: stores, sessions by their tokens, then the listening sockets
//! ```
//!
//! Each session is checked against the title as the new server packages it: a player counts on what
//! it was given before (`Presentation::fingerprint`).

use crate::access::TokenOwner;
use crate::clock::Clock;
use crate::layout::DeliveryFormat;
use crate::playback_params::PlaybackParams;
use crate::telemetry::SessionTrace;
use device::{keep_open, monotonic_clock, take_kept};
use engine::{HandedSession, Priority};
use media::Excerpt;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::time::Duration;
use units::{BitRate, Hinted, Reason};

/// The version of what is handed over: a server takes over from one with the same only.
pub const HANDOVER_VERSION: u32 = 1;

/// What a server leaves to the one that goes on in its place.
pub struct Handover {
    pub(crate) left: LeftState,
    pub(crate) clock: Clock,
    pub(crate) sockets: Vec<KeptSocket>,
}

/// What the core of a server leaves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LeftState {
    pub(crate) sessions: Vec<SessionRecord>,
    /// The stores whose disks are drained, by their uuids.
    pub(crate) draining: Vec<String>,
    /// The stores of which it was told that their disks are drained, by their uuids.
    #[serde(default)]
    pub(crate) told_drained: Vec<String>,
    /// The number that the next session gets: those that have ended are not used again.
    #[serde(default)]
    pub(crate) next_session: u64,
}

/// A listening socket that outlives its server.
#[derive(Debug)]
pub(crate) struct KeptSocket {
    /// The address as it was configured; port 0 for any.
    pub(crate) configured: SocketAddr,
    pub(crate) socket: TcpListener,
}

/// A session as its player knows it, and as the engine does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    pub(crate) state: HandedSession,
    /// The credential in its addresses.
    pub(crate) token: String,
    /// The title's name in its addresses.
    pub(crate) name: String,
    /// The title's content: its name may have changed.
    pub(crate) content: String,
    pub(crate) part: PartRecord,
    pub(crate) format: DeliveryFormat,
    pub(crate) offer: usize,
    pub(crate) max_height: Option<u32>,
    pub(crate) priority: Priority,
    /// The only address that it may be played from.
    #[serde(default)]
    pub(crate) bound_to: Option<IpAddr>,
    pub(crate) client: IpAddr,
    /// Whose access token began it.
    #[serde(default)]
    pub(crate) owner: Option<TokenOwner>,
    /// When it ends, in seconds since 1970.
    #[serde(default)]
    pub(crate) until: Option<u64>,
    /// Time since its admission.
    pub(crate) age: Duration,
    pub(crate) wait: Duration,
    /// Whether a director asked for it.
    #[serde(default)]
    pub(crate) is_directed: bool,
    pub(crate) has_played: bool,
    /// What is known of its span.
    #[serde(default)]
    pub(crate) trace: Option<SessionTrace>,
    /// What its player was given.
    pub(crate) fingerprint: String,
}

/// A part of a title, and the speed at which it is played.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartRecord {
    start: Duration,
    stop: Option<Duration>,
    skip: u32,
    backwards: bool,
    speed_milli: u32,
    #[serde(default)]
    rate: Option<BitRate>,
}

impl From<&PlaybackParams> for PartRecord {
    fn from(PlaybackParams { excerpt, speed_milli, rate }: &PlaybackParams) -> Self {
        let Excerpt { start, stop, skip, backwards } = *excerpt;
        Self { start, stop, skip, backwards, speed_milli: *speed_milli, rate: *rate }
    }
}

impl From<&PartRecord> for PlaybackParams {
    fn from(part: &PartRecord) -> Self {
        let PartRecord { start, stop, skip, backwards, speed_milli, rate } = *part;
        Self { excerpt: Excerpt { start, stop, skip, backwards }, speed_milli, rate }
    }
}

/// All of a handover as JSON.
#[derive(Serialize, Deserialize)]
struct HandoverRecord {
    version: u32,
    /// When the server's clock was zero, by the monotonic clock.
    zero: Duration,
    sockets: Vec<SocketRecord>,
    left: LeftState,
}

#[derive(Serialize, Deserialize)]
struct SocketRecord {
    configured: SocketAddr,
    descriptor: RawFd,
}

impl Handover {
    /// The number of sessions.
    pub fn sessions(&self) -> usize {
        self.left.sessions.len()
    }

    /// Lets a program have it that takes the place of this one. It stays with this process, too, in
    /// case the program cannot be executed. What is returned must live until then.
    pub fn pass_to(&self, program: &mut Command) -> io::Result<OwnedFd> {
        let record = |kept: &KeptSocket| SocketRecord {
            configured: kept.configured,
            descriptor: kept.socket.as_raw_fd(),
        };
        let state = HandoverRecord {
            version: HANDOVER_VERSION,
            zero: monotonic_clock().saturating_sub(self.clock.uptime()),
            sockets: self.sockets.iter().map(record).collect(),
            left: self.left.clone(),
        };
        let mut memory = File::from(memfd_create(c"tenuto-handover", MemfdFlags::CLOEXEC)?);
        memory.write_all(&serde_json::to_vec(&state)?)?;
        memory.rewind()?;
        keep_open(&memory, true)?;
        self.sockets.iter().try_for_each(|kept| keep_open(&kept.socket, true))?;
        // With the process, so that no child takes the number of a descriptor for its own.
        program.env(VARIABLE, format!("{}:{}", std::process::id(), memory.as_raw_fd()));
        Ok(memory.into())
    }

    /// The program was not executed: no child of this process is to have the sockets.
    pub fn not_passed(&self) {
        for kept in &self.sockets {
            // A child that has one keeps its port, and nothing else.
            let _ = keep_open(&kept.socket, false);
        }
    }

    /// What the program before this one has left, if there was one. To be called once.
    pub fn inherited() -> Result<Option<Self>, Reason> {
        let Some(descriptor) = std::env::var(VARIABLE).ok().and_then(|text| named_in(&text)) else {
            return Ok(None);
        };
        let failed = |error: io::Error| {
            error.reason().about("cannot take over the sessions of the server before")
        };
        let mut text = Vec::new();
        let mut memory = File::from(take_kept(descriptor).map_err(failed)?);
        memory.read_to_end(&mut text).map_err(failed)?;
        let state: HandoverRecord = serde_json::from_slice(&text).map_err(|e| failed(e.into()))?;
        if state.version != HANDOVER_VERSION {
            let found = state.version;
            let why =
                format!("they are in version {found}, and this is version {HANDOVER_VERSION}");
            return Err(failed(io::Error::other(why)));
        }
        let kept = |SocketRecord { configured, descriptor }| {
            Ok(KeptSocket { configured, socket: take_kept(descriptor)?.into() })
        };
        let sockets = state.sockets.into_iter().map(kept).collect::<io::Result<_>>();
        let clock = Clock::with_zero(monotonic_clock().saturating_sub(state.zero));
        Ok(Some(Self { left: state.left, clock, sockets: sockets.map_err(failed)? }))
    }

    /// The socket that listens on an address by its configuration.
    pub(crate) fn socket(&mut self, configured: SocketAddr) -> Option<TcpListener> {
        let at = self.sockets.iter().position(|kept| kept.configured == configured)?;
        Some(self.sockets.swap_remove(at).socket)
    }
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are credentials.
        write!(f, "Handover({} sessions, {:?})", self.left.sessions.len(), self.sockets)
    }
}

/// The descriptor in a variable's text, if it is for this process.
fn named_in(text: &str) -> Option<RawFd> {
    let (process, descriptor) = text.split_once(':')?;
    let is_ours = process.parse() == Ok(std::process::id());
    descriptor.parse().ok().filter(|_| is_ours)
}

/// The environment variable that names the process and the descriptor of the state.
const VARIABLE: &str = "TENUTO_HANDOVER";
