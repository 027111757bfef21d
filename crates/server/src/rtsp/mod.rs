//! RTSP 1.0 (RFC 2326): media pushed to a player at the tracks' own times, as RTP over the
//! connection or over UDP.
//!
//! ```text
//!   player ──DESCRIBE, SETUP──▶ worker ── title ──▶ SDP, transports     nothing is reserved
//!          ──PLAY─────────────▶ worker ──Admit──▶ core                  one engine session
//!                               Playback ──Request──▶ core ──Deliver──▶ Playback
//!          ◀──RTP, RTCP──────── worker ◀── each LDU at its time ───────── Playback
//!          ──PAUSE, TEARDOWN──▶ worker ──Cancel, End──▶ core
//! ```
//!
//! One thread with its own socket loop. It is one more HTTP thread to the core: the same messages,
//! admission requests and requests for bytes. What differs is who sets the pace. An HTTP player
//! fetches when it likes; here an LDU is sent at its decode time, counted from the end of the
//! start-up, by when the engine has its piece in memory.
//!
//! - `offered`: the streams that a title is described with
//! - `session`: the tracks that a player has set up, and where their packets go
//! - `playback`: which LDU is sent when (no I/O)
//! - `replay`: the choices and the header extension of ONVIF
//! - `multiplex`: which packets of a transport stream are sent when (no I/O)
//! - `track_bytes`: the bytes of a track on their way from the engine (no I/O)
//! - `worker`: connections, requests, timers
//! - `deliveries`: the engine's messages about bytes, for connections and channels
//! - `channels`: transport streams to addresses that an operator names, in another thread
//!
//! A session belongs to one connection and ends with it. Packets over UDP go to the address of that
//! connection only. `rtsp-message` parses requests. Not here: recording, multicast to players,
//! RTSP 2.0.

mod channels;
mod deliveries;
mod multiplex;
mod offered;
mod playback;
mod replay;
mod session;
mod track_bytes;
mod worker;

pub(crate) use channels::serve as serve_channels;
pub(crate) use offered::{OfferedStream, described};
pub(crate) use worker::{RtspLimits, serve};

use engine::SessionId;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use units::locked;

/// Counters of the thread that sends channels.
#[derive(Debug, Default)]
pub(crate) struct ChannelCounters {
    pub(crate) active: AtomicU64,
    pub(crate) datagrams: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    /// Datagrams that the kernel did not take.
    pub(crate) dropped: AtomicU64,
    /// Times that there was no room for a channel that had begun.
    pub(crate) not_admitted: AtomicU64,
    /// Times that the bytes of a channel that had begun could not be had.
    pub(crate) not_served: AtomicU64,
    /// The channels by the numbers that operators have for them, and whether each is to end: one
    /// that repeats has another session each time through, and none in between.
    numbers: Mutex<BTreeMap<SessionId, bool>>,
}

impl ChannelCounters {
    fn begin(&self, number: SessionId) {
        locked(&self.numbers).insert(number, false);
    }

    /// The channel of this number is to end; false if there is none.
    pub(crate) fn end(&self, number: SessionId) -> bool {
        locked(&self.numbers).get_mut(&number).map(|ends| *ends = true).is_some()
    }

    fn is_to_end(&self, number: SessionId) -> bool {
        locked(&self.numbers).get(&number).is_some_and(|ends| *ends)
    }

    fn forget(&self, number: SessionId) {
        locked(&self.numbers).remove(&number);
    }
}

/// Counters of the RTSP thread.
#[derive(Debug, Default)]
pub(crate) struct RtspCounters {
    pub(crate) connections: AtomicU64,
    /// Sessions that are sending packets.
    pub(crate) playing: AtomicU64,
    pub(crate) packets: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    /// UDP packets that the kernel had no room for.
    pub(crate) dropped_packets: AtomicU64,
    /// Replies by the first digit of their status, from 1.
    pub(crate) responses: [AtomicU64; 5],
    /// Connections closed because the peer took no bytes for the send timeout.
    pub(crate) send_timeouts: AtomicU64,
    /// Sessions ended because their player was silent.
    pub(crate) session_timeouts: AtomicU64,
}
