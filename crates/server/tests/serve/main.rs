//! The server end to end, over loopback: a real store in a file, small titles made with FFmpeg,
//! real sockets. One file for each property; `fixture.rs` and `client.rs` are shared.
//!
//! `cargo test -p server --test serve NAME` runs one test again.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only the engine is pure; tests use sockets, programs and clocks"
)]

mod admin;
mod authorizations;
mod certificates;
mod channels;
mod client;
mod cmcd;
mod coding;
mod collector;
mod commands;
mod conditional;
mod copies;
mod dash;
mod directed;
mod directed_rtsp;
mod downloads;
mod draining;
mod faults;
mod fixture;
mod guarantees;
mod history;
mod hostile;
mod http2;
mod languages;
mod leaving;
mod lifecycle;
mod memory;
mod monitoring;
mod origin;
mod peers;
mod playing;
mod preflight;
mod priorities;
mod ranges;
mod refusals;
mod reload;
mod renditions;
mod restart;
mod rtsp;
mod scrubbing;
mod telemetry;
mod thumbnails;
mod tls;
mod tokens;
mod transport;
mod views;
mod watching;
mod webhooks;
mod winding;
