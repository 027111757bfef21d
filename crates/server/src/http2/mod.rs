//! HTTP/2 for players whose TLS has agreed on it: a layer between TLS and an HTTP thread.
//!
//! ```text
//!   HTTP thread
//!     │ send(lane, slices)  ▲ Lane, Received(lane, request), Sent(lane), SendFailed(lane)
//!   ┌─▼─────────────────────┴──┐
//!   │ HttpSockets              │  HTTP/1.1: calls and events are passed on
//!   │   └ Carrier of each      │  HTTP/2: slices ─▶ frames, at most 128 KiB ahead of the kernel
//!   └─┬─────────────────────▲──┘          frames ─▶ requests
//!     │ send(frames)        │ Received(frames), Sent
//!   tls::ClientSockets
//! ```
//!
//! A *carrier* is a connection that speaks HTTP/2. Each of its streams becomes a *lane*: for the
//! thread above, a connection of one request, which arrives as the head of HTTP/1.1 and is answered
//! with one. So no answer is written twice, and the limits of a connection (the time in which its
//! peer takes bytes, what is queued for it) are those of a lane. What a client may hold counts
//! lanes as connections.
//!
//! Frames and header compression are those of the `h2` crate, which is polled when bytes have come
//! or are queued: there is no runtime. What waits in it for a client's windows are slices, as they
//! wait for a socket.
//!
//! It pushes nothing, follows no priorities, and speaks with nobody in the clear.

mod carrier;
mod heads;
mod lane;
mod pipe;
mod resets;
mod sockets;
#[cfg(test)]
mod tests;

pub(crate) use sockets::{HttpEvent, HttpSockets};

/// Streams of one carrier at a time. RFC 9113 recommends 100 at least; a browser that loads a page
/// has some 30.
const MOST_LANES: u32 = 100;
/// The header list of a request as HTTP/2 counts it; that of HTTP/1.1 may have as many bytes.
const MOST_HEADER_BYTES: u32 = 16 * 1024;
/// Bytes of request bodies that a carrier takes ahead of their operations, and one of its lanes.
const BODY_WINDOW: u32 = 1024 * 1024;
/// Streams that this side has ended, and of which frames may still be on their way.
const MOST_ENDED_EARLY: usize = 50;
/// Streams that the client has opened and ended before one of them was looked at: more are an
/// attack (CVE-2023-44487).
const MOST_UNSEEN_RESETS: usize = 20;
/// Streams that are ended for errors of their client in the life of a carrier.
const MOST_ERRORS: usize = 1000;
