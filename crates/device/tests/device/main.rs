//! The devices of this crate from outside, as the store and the schedule use them.

mod calibrate;
mod emulated;
mod every_method;
mod every_method_writes;
mod file;
mod methods;
mod polled;
mod refused;
mod released;
mod scratch;
mod slow_and_faulty;
