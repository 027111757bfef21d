//! Blame: what a machine did while the meter ran on it, and the cause of each miss.
//!
//! ```text
//!   /proc, /sys ──Counters──┐ each second                   ┌─▶ Faults: storage, meter, agent CPU, clock
//!                           ├─ difference ─▶ Sample ─ all ──┤
//!   sleeps of 20 ms ────────┘                               └─▶ First: which resource was full first
//! ```
//!
//! A miss that the meter's own lateness does not explain is put down to the storage. A miss that it
//! does explain is put down to what the samples of those seconds show: a clock that was set;
//! threads that waited for a processor (the kernel counts this for each thread, and a second
//! thread that only sleeps was also woken late); or neither, and then the meter itself was slow.
//!
//! The module reads what the kernel publishes and changes nothing. A counter that a kernel does not
//! publish is `None`, and no cause is assigned from it.
mod broke;
mod counters;
mod faults;
mod proc;
mod sample;
mod sampler;
mod stack;

pub(crate) use broke::{First, Resource, first_full};
pub(crate) use counters::SystemCounters;
pub(crate) use faults::{Faults, faults};
pub(crate) use sample::SystemSample;
#[cfg(test)]
pub(crate) use sample::{Device, Processor};
pub(crate) use sampler::{Sampler, Watched};
pub(crate) use stack::{Stack, beneath};
