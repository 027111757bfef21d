//! Which stream gets disk, memory and network in which slot.
//!
//! ```text
//!   due list, position, origin ─▶ Demand ─┐
//!                                         ├─▶ Policy::verdict ─▶ Admit { slack } │ Refuse(Shortage)
//!   who is in already ──────────▶ Books ──┘
//!
//!   streams' next reads, earliest deadline first ─▶ Batch ─▶ order of issue (SCAN)
//! ```
//!
//! Pure arithmetic over slots. It knows neither titles nor sessions nor files, never waits, and
//! holds no media: the engine owns those and tells the books of every read that starts and every
//! buffer that is let go. The same rule is used to promise (admission) and to keep (the batch):
//! earliest deadline first, never beyond the memory there is.
//!
//! Two units are booked side by side: *reads*, against a number of them that the disk completes in
//! any slot, and the disk's *time*, where it is known what a read takes ([`Facts`]). Who counts time
//! leaves a [`Plan`] of windows, by which the disk is then driven; a policy is one file in
//! `admission`.

#![warn(missing_docs)]

pub mod admission;
mod blocks;
mod books;
mod budget;
mod busy;
mod curve;
mod demand;
mod facts;
mod failover;
mod guard;
mod ledger;
mod plan;
mod rates;
mod rehearsal;
mod remembered;
mod seen;
mod view;
mod visits;
mod windows;

pub use admission::{PolicyKind, Resource, Shortage, Slack, Supply, Verdict};
pub use books::{DiskBooks, NetworkBooks};
pub use budget::{SEND_WINDOW, sending_reserve, shares};
pub use busy::BusySlots;
pub use curve::ServiceCurve;
pub use demand::{
    Curve, Demand, HOLD_SLOTS, MAX_HORIZON_SLOTS, MEAN_UNIT, PieceDue, Summary, Timing,
};
pub use facts::Facts;
pub use failover::{Failover, Placed, Standing, Survival};
pub use guard::{Guard, TimeGuard, behind_part};
pub use ledger::{Ledger, Load, Planned};
pub use plan::{Batch, EdfQueue, Sweep};
pub use rates::Rates;
pub use rehearsal::{Rehearsal, Rehearsed};
pub use remembered::{NotRemembered, Remembered, Seeing};
pub use seen::Seen;
pub use view::{BadView, Groups, View};
pub use visits::Follows;
pub use windows::{Next, Plan};
