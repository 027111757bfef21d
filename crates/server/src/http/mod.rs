//! HTTP/1.1 for viewers: reading requests, routing, and sending bodies that are lists of slices.
//!
//! ```text
//!   socket ─▶ request ─▶ route ─▶ page, playlist ───────────────▶ reply
//!                          │
//!                          └─▶ media::Body ─▶ Transfer ─want──▶ core
//!                                    socket ◀─slices─ ▲ ◀─deliver─┘
//! ```
//!
//! A few threads, each with its own socket loop and its own connections. Nothing here reads a
//! disk or waits for one; it asks the core and is told.

mod answer;
mod connection;
mod date;
mod range;
mod request;
mod response;
mod routes;
mod transfer;
mod undone;
mod worker;

pub(crate) use date::iso_date;
pub(crate) use request::Request;
#[cfg(test)]
pub(crate) use request::{Parsed, parse};
pub(crate) use routes::escape;
pub(crate) use worker::{Patience, Prepared};
