//! Two runs compared: which figures differ by more than chance, and by how much.
//!
//! ```text
//!   run A ─▶ a series of seconds ─┐          ┌─▶ interval of the difference ─▶ better, worse,
//!                                 ├─ blocks ─┤                                 or not shown, and
//!   run B ─▶ a series of seconds ─┘ drawn    └─▶ 2,000 replicates              what would have been
//! ```
//!
//! Seconds of a run are not independent of each other: slow seconds follow slow seconds. So whole
//! blocks of seconds are drawn, as long as the correlation lasts (Künsch, "The jackknife and the
//! bootstrap for general stationary observations", Annals of Statistics 17, 1989), and each
//! replicate is measured in its own standard errors (bootstrap-t: Efron and Tibshirani, "An
//! Introduction to the Bootstrap", chapter 12), which keeps the stated level also with few blocks.
//! With several figures the level is divided among them (Bonferroni), so that it is the probability
//! of *any* false alarm.
//!
//! The same two runs give the same verdicts: the draws come from a seed. The comparison cannot tell
//! a change of the program from a storage that was different on that day: repeat runs, interleaved,
//! before attributing a difference to a change.

mod blocks;
mod figures;
mod interval;
mod known_pair;

pub use figures::{Comparison, Difference, DifferenceVerdict, FigureSeries, compare};
pub use interval::Interval;
pub use known_pair::known_pair;

#[cfg(test)]
mod tests;
