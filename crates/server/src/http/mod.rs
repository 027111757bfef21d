//! HTTP/1.1 for players: requests, routes, and responses whose bodies are lists of slices.
//!
//! ```text
//!   socket ─▶ request ─▶ route ─▶ page, playlist ───────────────▶ response
//!                          │
//!                          └─▶ media::Body ─▶ Transfer ─request─▶ core
//!                                    socket ◀─slices─ ▲ ◀─deliver─┘
//! ```
//!
//! A few threads, each with its own socket loop and its own connections. They never read a disk or
//! wait for one: media comes from the core as messages.

mod answer;
mod authorize;
mod cmcd;
mod cmsd;
mod coding;
mod conditions;
mod connection;
mod error_response;
mod failover;
mod multipart;
mod origin;
mod over_rtsp;
mod parts;
mod preflight;
mod range;
mod ranged;
mod refusals;
mod request;
mod resource;
mod response;
mod routes;
mod transfer;
mod watch;
mod worker;

pub(crate) use cmcd::Cmcd;
pub(crate) use error_response::of as request_failed;
pub(crate) use parts::PartRequest;
pub(crate) use refusals::{not_admitted, not_opened, open_failed};
#[cfg(test)]
pub(crate) use request::parsed;
pub(crate) use request::{HttpRequest, Method, SignedQuestion, bearer_token, without_token};
pub(crate) use response::{
    PROBLEM_TYPE, Response, refusal_message, refusal_without_wait, whole_seconds,
};
pub(crate) use routes::escape;
pub(crate) use worker::{ConnectionLimits, serve};
