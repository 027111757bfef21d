//! Disks as arithmetic: models with one parameter set each, calibration records, bounds.
//!
//! The crate is pure: a model gives the time of a request for a position of the head; it never
//! waits and never reads. The simulated disk, the disk model in real time, the planner and
//! admission use it.

#![warn(missing_docs)]

mod actuator;
pub mod bounds;
mod calibration;
mod calibration_record;
mod characterization;
mod checks;
mod costs;
mod fit;
mod guarantee;
mod head;
mod model;
mod models;
mod parameters;
pub mod plan;
mod platters;
mod seek;
mod write_cache;

pub use actuator::Actuator;
pub use bounds::ReadCost;
pub use calibration::{
    Calibration, LONGER, MeasuredPart, Outlier, ReadGuarantee, ReadLine, ReadPace, WriteCost,
};
pub use characterization::{Characterization, TimedRead};
pub use costs::Costs;
pub use head::{Head, Service};
pub use model::DiskModel;
pub use parameters::{Flash, Mechanics, Parameters, SeekTimes, Spinning, Zone};
