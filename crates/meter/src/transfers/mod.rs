//! Transfers: as fast as possible, one after another in each client (closed loop), drawn as in EBU
//! TECH 3362 (sections 5.1 and 5.4, figures 13 and 16).
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
//! In a sequential transfer block follows block; in a random one each block has its own random
//! position. [`TransferMix`] says what is drawn; [`Dice`] is the generator: a uniform one, or that
//! of the tool behind the published figures, whose percentages and lengths differ from its
//! settings. [`run`] makes the transfers through a [`Port`](crate::target::Port). Every block goes
//! into the log.
//!
//! Latency by this definition includes the meter's own time between blocks;
//! [`TransferRow::meter`] has that part. There are no deadlines, so that nothing is late.

mod cells;
mod dice;
mod draw;
mod live_tally;
mod mix;
mod outcome;
mod run;

pub(crate) use cells::Cells;
pub use dice::{Dice, Glibc};
pub use draw::{DrawnTransfer, TransferDraw};
pub(crate) use live_tally::{CountedLog, LiveTally};
pub use mix::{Length, TransferMix};
pub use outcome::{PerClient, PerSecond, TransferRow, TransferRowKey, TransfersOutcome};
pub use run::{TransfersPlan, run};

#[cfg(test)]
mod tests;
