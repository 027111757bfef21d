//! Which stream gets disk, memory and network in which slot.
//!
//! ```text
//!   due list, position, origin ─▶ Demand ─┐
//!                                         ├─▶ Policy::decide ─▶ Admit { slack, plan }
//!   who is in already ──────────▶ Books ──┘                    │ Refuse(Shortage)
//!
//!   streams' next reads, earliest deadline first ─▶ Dispatcher ─▶ order of issue (SCAN)
//! ```
//!
//! Pure arithmetic over slots. It knows neither titles nor sessions nor files, never waits, and
//! holds no media: the engine owns those and tells the books of every read that starts and every
//! buffer that is let go. The same rule is used to promise (admission) and to keep (the
//! dispatcher): earliest deadline first, never beyond the memory there is.
//!
//! Two units are booked side by side: *reads*, against a number of them that the disk completes in
//! any slot, and the disk's *time*, where it is known what a read takes ([`DiskTimings`]). Who
//! counts time answers with a [`WindowPlan`], by which the disk is then driven; a policy is one
//! file in `admission`.
//!
//! # Contract
//!
//! Evaluate a demand against the books; book it if it fits; tell the books of each read that starts
//! and of each buffer that is released. When all streams have left, the books are empty.
//!
//! ```
//! use scheduler::{
//!     Demand, DiskBooks, DiskTimings, Lead, PieceDue, PlayoutClock, PolicyKind, Supply, TrackPieces,
//! };
//! use std::time::Duration;
//! use units::{Moment, SlotIndex};
//!
//! let slot = Duration::from_millis(500);
//! let (mut books, mut demand) = (DiskBooks::default(), Demand::default());
//!
//! // Four pieces of 1 MiB, due at 0, 2, 4 and 6 s of media time.
//! let due = [0, 2000, 4000, 6000];
//! let track = TrackPieces::of_size(4 << 20, 1 << 20, Lead::default()).due_at(&due);
//! let clock = PlayoutClock {
//!     origin: Moment::ZERO,
//!     startup: Duration::from_secs(2),
//!     opens_after: Duration::ZERO,
//!     with_first_ms: 0,
//!     from_ms: 0,
//!     kept_from_ms: 0,
//!     kept_longer: 0,
//!     slot,
//!     early: 0,
//! };
//! let pieces: Vec<PieceDue> = clock.pieces(track, 0).collect();
//! demand.begin(SlotIndex(0));
//! demand.add_track(pieces.iter().copied());
//!
//! // A disk that completes two reads in any slot, with 8 MiB of buffers.
//! let timings = DiskTimings::default();
//! let supply = Supply {
//!     min_read: 2,
//!     read_size: 1 << 20,
//!     memory: 8 << 20,
//!     slot,
//!     free_at: Moment::ZERO,
//!     owed: 0,
//!     timings: &timings,
//! };
//! let policy = PolicyKind::VbrSim.policy();
//! assert!(policy.verdict(&books, &supply, &demand).is_admit());
//!
//! books.book_demand(&demand);
//! for piece in pieces {
//!     books.start_read(piece);
//!     books.release(piece);
//! }
//! assert!(books.is_empty());
//! ```

#![warn(missing_docs)]

pub mod admission;
mod blocks;
mod books;
mod budget;
mod busy;
mod capacity_sim;
mod curve;
mod demand;
mod disk_history;
mod disk_timings;
mod dispatch;
mod failover;
mod guard;
mod ledger;
mod observed_curve;
mod piece;
mod playout;
mod rates;
mod sums;
mod supply;
mod visits;
mod windows;
mod writes;

pub use admission::{AdmissionRequest, PolicyKind, Resource, Shortage, Slack, Supply, Verdict};
pub use books::{DiskBooks, NetworkBooks};
pub use budget::{SEND_WINDOW, sending_reserve, shares};
pub use busy::BusySlots;
pub use capacity_sim::{CapacityResult, CapacitySim, viewers_of_copies};
pub use curve::ServiceCurve;
pub use demand::{Demand, MEAN_UNIT, RateSummary};
pub use disk_history::{DiskHistory, HistoryError, HistoryKey};
pub use disk_timings::DiskTimings;
pub use dispatch::{
    Batch, BatchLimit, ChosenRead, Dispatcher, EdfQueue, Forecast, NextRead, PathCharge,
    ReadSource, ReleaseQueue, ScanDirection, SweepCharge,
};
pub use failover::{DiskState, Failover, FailoverRequest, FailoverVerdict};
pub use guard::{EASE_SLOTS, Guard, TimeGuard, slowdown_part};
pub use ledger::{BookedLoad, Ledger, SlotLoad};
pub use observed_curve::ObservedCurve;
pub use piece::PieceDue;
pub use playout::{HOLD_SLOTS, Lead, MAX_HORIZON_SLOTS, PlayoutClock, TrackPieces};
pub use rates::Rates;
pub use visits::SequentialReads;
pub use windows::{NextSweep, WindowPlan};
pub use writes::{WriteDemand, WriteJob, WriteShare, WriteTokens};
