//! The measured actuator of a disk, and the disk model that follows from a calibration.

use crate::characterization::{Characterization, spinning};
use crate::parameters::{Parameters, SeekTimes};
use crate::{Calibration, DiskModel, ReadCost};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::{BitRate, ByteCount, float, rounded};

/// The actuator of a disk as fitted to timed reads: never faster than observed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Actuator {
    /// The bytes over which the head moved.
    pub capacity: ByteCount,
    /// The time of one revolution of the platters.
    pub revolution: Duration,
    /// The time of a seek by the share of the stroke, including the overhead of a command before
    /// it.
    pub seek: SeekTimes,
    /// The largest observed time of a sequential read beside its transfer at the guaranteed rate,
    /// if the read was in the device before the last one ended. `None` if it was not measured.
    pub following: Option<Duration>,
}

impl Calibration {
    /// A disk model that is nowhere faster than the measured disk, for guarantees; `None` without
    /// an actuator and zones.
    ///
    /// Rates were measured at places. Between two of them the slower one is used, because rates
    /// fall towards the inner tracks, less the error of a measurement.
    pub fn model(&self) -> Option<DiskModel> {
        let arm = self.actuator?;
        let next = self.zones.iter().skip(1).map(|zone| zone.1);
        let slower = self.zones.iter().zip(next.chain(self.zones.last().map(|zone| zone.1)));
        let sure = |rate: BitRate| BitRate(rounded(float(rate.0) * SURE_RATE));
        let zones: Vec<(ByteCount, BitRate)> =
            slower.map(|((offset, rate), next)| (*offset, sure((*rate).min(next)))).collect();
        // The model's zones are shares of the crossed bytes; one beyond them would be empty.
        let inside = zones.iter().skip(1).all(|zone| zone.0 < arm.capacity);
        if zones.is_empty() || !inside || arm.capacity == ByteCount::ZERO {
            return None;
        }
        let parameters = Parameters {
            name: "measured".to_owned(),
            title: format!("a measured disk of {}", arm.capacity),
            sources: vec![self.method.clone()],
            capacity: arm.capacity.0,
            mechanics: spinning(arm.revolution, arm.seek, &zones, arm.capacity.0)?,
        };
        DiskModel::new(parameters).ok()
    }

    /// The parameters of a disk of `capacity` like the measured one: [`Calibration::model`] where
    /// an actuator was measured, else a solid-state disk by eq. 1, which serves one command at a
    /// time and writes as fast as it reads. `None` where too little was measured.
    pub fn parameters(&self, name: &str, capacity: ByteCount) -> Option<Parameters> {
        let parameters = if self.actuator.is_some() {
            self.model()?.parameters().clone()
        } else {
            let cost = Some(ReadCost { r0: self.r0, t0: self.t0 });
            Characterization { cost, ..Characterization::default() }.parameters(name, capacity)?
        };
        let sources = vec![format!("`tenuto calibrate`: {}", self.method)];
        Some(Parameters { name: name.to_owned(), sources, ..parameters })
    }
}

/// The factor for the error of a measured rate: rates of a few reads are accurate to a percent.
const SURE_RATE: f64 = 0.99;
