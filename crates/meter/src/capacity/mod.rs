//! Capacity: the largest number of streams that a storage holds, and how sure that is.
//!
//! ```text
//!   up        1, 4, 16, ...                   until one fails
//!   narrow    near what the failing one still delivered, then halves
//!   above     one more than the largest held  fails once more, and leaves the storage overloaded
//!   confirm   the largest held, for longer    must hold on the way down as it did on the way up
//! ```
//!
//! Storage has a memory: caches are warm, write-back has its cliffs, neighbours come and go. So no
//! single answer is believed. What fails is asked again from above, what holds is asked again for
//! longer and from the other direction, and a number that did not pass both is not called
//! confirmed. Where the longer run fails, a slight overload has taken its time to show: the search
//! goes on with long runs only. Where runs contradict each other, as on a disk that others use too,
//! each failure is believed, and confirming runs go down from the smallest count that ever failed
//! until one holds. A run that says nothing, since the machine that measures was late itself, is
//! made again; a count at which every run is invalid is the limit of what can be measured from
//! there, and the verdict says so ([`SearchResult::by_meter`]). Steps up are fourfold, so that
//! 4,096 streams take seven and leave enough for the rest.
//!
//! [`Search`] only says what to try next; [`HoldRule`] says what counts as held. Neither reads.
//! [`SimulatedCapacity`] is what the search is judged by.

mod rule;
mod search;
mod simulated_capacity;

pub use rule::{HoldRule, at_most};
pub use search::{Purpose, RunResult, RunVerdict, Search, SearchResult, SearchStep};
pub use simulated_capacity::SimulatedCapacity;

#[cfg(test)]
mod tests;
