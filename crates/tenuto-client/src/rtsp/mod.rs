//! A viewer over RTSP 1.0 (RFC 2326): the server sends RTP at its own pace.
//!
//! ```text
//!   connect ─▶ OPTIONS ─▶ DESCRIBE ─▶ SETUP of each track ─▶ PLAY ─▶ RTP, over UDP or interleaved
//!                            │ SDP                             │ 453, 503: refused
//!                                             receiver: LDUs, losses, jitter ─▶ PushPlayer
//! ```
//!
//! [`viewer`] speaks the protocol over a socket; [`description`] reads SDP, [`receiver`] RTP
//! packets, which [`order`] puts in order, and [`assembler`] their payloads, all without any I/O.
//! Receiver reports are sent every 5 s, which also shows the server that the viewer is there.

mod assembler;
mod description;
mod going_on;
mod order;
mod receiver;
#[cfg(test)]
mod tests;
mod viewer;

pub(crate) use receiver::Reception;
pub(crate) use viewer::{PushEvent, RtspViewer, SOCKETS};
