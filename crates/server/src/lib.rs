//! The media-on-demand server: HTTP, sessions, control socket and metrics around a pure engine.
//!
//! `engine` decides (which read, for whom, when; who is admitted) and owns nothing real; the rest
//! of this room owns sockets, threads, the clock and the devices, and carries out what the engine
//! says. It never looks into a title's payload.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only `engine` is pure in this room; it denies both again"
)]

mod calibration;
mod clock;
mod config;
mod console;
pub mod control;
mod core;
mod disks;
pub mod engine;
mod http;
mod keeper;
mod layout;
mod library;
mod log;
mod metrics;
mod opener;
mod pace;
mod prober;
mod server;
mod sessions;
mod shared;
mod shelving;
mod showing;
mod wanted;
pub mod wire;

pub use config::{MAX_HTTP_THREADS, ServerConfig};
pub use layout::piece_size;
pub use server::{Server, ServerError};
