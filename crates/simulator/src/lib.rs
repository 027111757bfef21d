//! The whole system in one thread from one seed: viewers, disks, faults and checkers around the
//! very engine that ships.
//!
//! Nothing here is real: time is a number, a disk is arithmetic, a viewer is a state machine and
//! chance is one seed. What is real is [`server::engine`], so that what holds here holds there.
