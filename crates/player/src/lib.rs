//! A pull player: what it fetches next, when it starts, when it stalls, and the measurements of its
//! viewer (start-up, stalls, drift).
//!
//! ```text
//!                 arrived(now, fetch)                 poll(now)
//!   transport ───────────────────────▶  Player  ─────────────────▶  Action::Fetch(track, piece)
//!                                     │ clock, buffer,               Action::{Started, Stalled,
//!   time      ── wake_at() ──────────▶│ behaviour                     Resumed, Ended}
//!                                     └─▶ report(now): startup, stalls, drift, margin
//! ```
//!
//! [`PushPlayer`] is the other kind: the server sends at its own pace (RTP).
//!
//! Pure: it holds no media, opens no socket and reads no clock. Its driver (the meter over real
//! sockets, the simulator in virtual time, a test) passes the time and fetches the pieces.
//!
//! The driver asks [`RenditionSelector`] for the rendition of each piece: by default the one that
//! the server lists first, so that the admitted rendition is the measured one; or the choice of an
//! adaptation rule.
//!
//! It deliberately decodes nothing and contains neither HLS nor MP4: a title is a [`Timeline`] of
//! pieces with durations.

#![warn(missing_docs)]

mod behaviour;
mod drift;
mod machine;
mod push;
mod renditions;
mod report;
mod throughput;
mod timeline;

pub use behaviour::{Behaviour, TimedAction, ViewerAction};
pub use drift::{Drift, DriftFactors, percentile};
pub use machine::{Action, Fetch, Player, PlayerOptions};
pub use push::{PushAction, PushPlayer};
pub use renditions::{AbrRule, Rendition, RenditionSelector};
pub use report::{PlaybackState, PlayerReport, Stalls};
pub use throughput::Download;
pub use timeline::{Timeline, TrackTimeline};
