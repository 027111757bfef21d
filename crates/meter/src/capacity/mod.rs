//! Capacity: the largest number of streams that a storage holds, and how sure that is.
//!
//! ```text
//!   up        1, 4, 16, ...                   until one fails
//!   narrow    near what the failing one still delivered, then halves
//!   above     one more than the largest held  fails once more, and leaves the storage overloaded
//!   confirm   the largest held, for longer    must hold on the way down as it did on the way up
//!   endure    the result, for hours           where that was asked for, or time is virtual
//! ```
//!
//! Storage has state: caches are warm, write-back has thresholds, neighbours come and go. So the
//! search relies on no single result. A count that fails is tried again from above; a count that
//! holds is tried again for longer and from the other direction; a count that did not pass both is
//! not confirmed. If the longer run fails, a slight overload has taken time to show, and the search
//! continues with long runs only. If runs contradict each other, as on a disk that others use too,
//! each failure counts, and confirming runs go down from the smallest count that ever failed until
//! one holds. A run is invalid, and is repeated, if the measuring machine itself was late; a count
//! at which every run is invalid is the limit of what this machine can measure, and the verdict
//! names it ([`SearchResult::by_meter`]). Steps up are fourfold, so that 4,096 streams take seven
//! runs and leave enough for the rest.
//!
//! [`Search`] only chooses the next run, and after it [`Endurance`]; [`HoldRule`] defines what
//! counts as held. None does I/O. Tests judge the search on [`SimulatedCapacity`].

mod burst;
mod endurance;
mod known_storage;
mod rule;
mod search;
#[cfg(test)]
mod simulated_capacity;

pub(crate) use burst::{Burst, DeliveredRun, burst};
pub(crate) use endurance::Endurance;
pub use known_storage::StorageKind;
pub(crate) use known_storage::{KnownStorage, StreamNeeds};
pub use rule::HoldRule;
pub(crate) use search::{Purpose, RunResult, RunVerdict, Search, SearchResult, SearchStep};
#[cfg(test)]
use simulated_capacity::SimulatedCapacity;

#[cfg(test)]
mod tests;
