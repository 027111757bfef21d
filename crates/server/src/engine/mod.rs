//! The engine: events in, actions out. It knows every session, what each track owes and when, what
//! is in memory and what each disk guarantees; it decides admission, the order of reads and which
//! buffer to let go.
//!
//! Sans-IO: it never touches a clock, a device, a socket or a thread. The server's shell and the
//! simulator drive the very same code.
//!
//! ```text
//!   admit, want, sent, cancel, close        Answer (at once)
//!   read_done, tick                ┌────────┐
//!   ──────────────────────────────▶│ Engine │──▶ Action: Read, Deliver, Forget, Refused, Failed,
//!                                  └────────┘            Ended, Granted
//! ```
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod api;

pub use api::*;
