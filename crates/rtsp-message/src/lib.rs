//! Messages of RTSP 1.0 (RFC 2326): requests out of received bytes, replies into bytes, and the
//! fields of them that say what is played and where it goes.
//!
//! ```text
//!   bytes of a connection ─▶ next ─▶ Incoming: a request, part of one, a tunnel, a refusal
//!   RtspReply ─────────────▶ to_bytes ─▶ bytes
//! ```
//!
//! - `message`: requests, replies, and the bounds of what is received
//! - `headers`: `Transport`, `Range`, `Scale`, addresses
//! - `tunnel`: the two HTTP connections of a tunnel
//!
//! Pure. Not here: sessions, sockets, and what a request leads to, which a node (`server`) and a
//! director answer differently; and the requests of players (`tenuto-client`).

#![warn(missing_docs)]

pub mod headers;
mod message;
pub mod tunnel;

pub use message::{
    Incoming, MAX_INPUT, NOT_ENOUGH_BANDWIDTH, RtspReply, next, sequence_number, value,
};
pub use rtsp_types::headers as names;
pub use rtsp_types::{HeaderName, Method, Request, Version};
