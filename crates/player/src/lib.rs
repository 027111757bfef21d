//! How a pull player behaves: what it fetches next, when it starts, when it stalls, and what its
//! viewer saw of it in numbers (start-up, stalls, drift).
//!
//! ```text
//!                 arrived(now, fetch)                 poll(now)
//!   transport ───────────────────────▶  Player  ─────────────────▶  Action::Fetch(track, piece)
//!                                     │ clock, buffer,               Action::{Started, Stalled,
//!   time      ── wake_at() ──────────▶│ behaviour                     Resumed, Over}
//!                                     └─▶ report(now): startup, stalls, drift, margin
//! ```
//!
//! Pure: it holds no media, opens no socket and reads no clock. Whoever drives it (the meter over
//! real sockets, the simulator in virtual time, a test) says what time it is and does the fetching.
//!
//! Which rendition a piece is fetched in is not the player's business but that of
//! [`RenditionSelector`] beside it, which the driver asks: by default the one that was offered
//! first (what was admitted is what is measured), or by the rule of a player in use.
//!
//! It deliberately does not decode, and knows neither HLS nor MP4: a title is a [`Timeline`] of
//! pieces with durations.

#![warn(missing_docs)]

mod behaviour;
mod drift;
mod machine;
mod renditions;
mod report;
mod throughput;
mod timeline;

pub use behaviour::{Behaviour, ParseBehaviourError, TimedAction, ViewerAction};
pub use drift::{Drift, percentile};
pub use machine::{Action, Fetch, Player, PlayerOptions};
pub use renditions::{AbrRule, Rendition, RenditionSelector};
pub use report::{PlaybackState, PlayerReport, Stalls};
pub use throughput::Download;
pub use timeline::{Timeline, TrackTimeline};
