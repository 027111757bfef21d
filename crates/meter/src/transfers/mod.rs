//! Transfers: as fast as they go, one after another in each client (closed loop), drawn as EBU
//! TECH 3362 draws them (sections 5.1 and 5.4, figures 13 and 16).
//!
//! ```text
//!   delay? ─ draw: file, read or write, sequential or random, length, start, block size
//!     │
//!     ├─ open ─┬─ block ─┬·┬─ block ─┬·┬─ block ─┬─ close ─┤       ·  the meter, between blocks
//!     │        └─────────┴ ┴─ data transfer time ┘         │
//!     └───────────────────── total time ───────────────────┘
//!
//!   rate    = number of blocks × block size / data transfer time       (section 5.1)
//!   latency = total time − data transfer time
//! ```
//!
//! In a sequential transfer block follows block; in a random one each block is at a place of its
//! own. [`TransferMix`] says what is drawn, [`Dice`] by which dice: honest ones, or those of the
//! tool that made the published figures, whose percentages and lengths are not what they say.
//! [`run`] does it through a [`Port`](crate::target::Port). Every block goes into the log.
//!
//! Latency as defined has the meter's own time between blocks in it; [`TransferRow::meter`] says
//! how much. It judges nothing: there are no deadlines, and nothing is late.

mod cells;
mod client;
mod dice;
mod draw;
mod mix;
mod outcome;
mod run;

pub(crate) use cells::Cells;
pub use dice::{Dice, Glibc};
pub use draw::{Transfer, TransferDraw};
pub use mix::{Length, MixError, TransferMix};
pub use outcome::{PerClient, PerSecond, TransferRow, TransferRowKey, TransfersOutcome};
pub use run::{TransfersPlan, TransfersProgress, run};

#[cfg(test)]
mod tests;
