//! Experiments in virtual time, from seeds: admission policies compared, a store as it ages,
//! and published results made again.
//!
//! ```text
//!   admission   requests ─▶ policies, books and plans of `scheduler` ─▶ one disk model ─▶ report
//!   ageing      a library over months ─▶ extents of `store` ─▶ streams, aged and fresh
//!   fleet       a million viewers ─▶ director and placement of `cluster` ─▶ books of 500 nodes
//!   reproduce   the setup of a paper ─▶ disk models, `meter`'s instruments ─▶ report: ours, theirs
//! ```
//!
//! An experiment reads no clock and opens no device: time is a number, a disk is arithmetic, and
//! chance comes from seeds that are named. It gives the same result on every machine.
//!
//! The whole server in virtual time, with viewers, faults and checkers, is the crate `simulator`:
//! a test harness that no program links.

#![warn(missing_docs)]

pub mod admission;
pub mod ageing;
pub mod fleet;
pub mod reproduce;
