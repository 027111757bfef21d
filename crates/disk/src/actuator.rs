//! A disk's actuator as measured, and the model that it and the measured zones make, or that a disk
//! without one makes.

use crate::characterization::{Characterization, spinning};
use crate::parameters::{Parameters, SeekTimes};
use crate::{Calibration, DiskModel, ReadCost};
use std::time::Duration;
use units::{BitRate, ByteCount, float, rounded};

/// What timed reads showed of a disk with an actuator: never quicker than it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Actuator {
    /// Bytes over which the head moved.
    pub capacity: ByteCount,
    /// One turn of the platters.
    pub revolution: Duration,
    /// The time of a movement by the part of the stroke, everything that a command costs before it
    /// included.
    pub seek: SeekTimes,
    /// What a read that goes on where the one before ended takes beside its transfer at the rate
    /// that is sure there, if it was in the device before that one had ended: never less than was
    /// seen. `None` where that was not measured.
    pub following: Option<Duration>,
}

impl Calibration {
    /// A disk that is nowhere faster than the one that was measured, if that showed an actuator and
    /// zones: for what must be certain.
    ///
    /// Rates were measured at places; between two of them the slower one is taken, as rates fall
    /// inwards, less what a measurement may be wrong by.
    pub fn model(&self) -> Option<DiskModel> {
        let arm = self.actuator?;
        let next = self.zones.iter().skip(1).map(|zone| zone.1);
        let slower = self.zones.iter().zip(next.chain(self.zones.last().map(|zone| zone.1)));
        let sure = |rate: BitRate| BitRate(rounded(float(rate.0) * SURE_RATE));
        let zones: Vec<(ByteCount, BitRate)> =
            slower.map(|((offset, rate), next)| (*offset, sure((*rate).min(next)))).collect();
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

    /// The content of a parameter file of a disk of `capacity` like the one that was measured:
    /// [`Calibration::model`] where an actuator was measured, else a solid-state disk by eq. 1,
    /// which serves one command after another and writes as it reads. `None` where too little was
    /// measured.
    pub fn parameters(&self, name: &str, capacity: ByteCount) -> Option<Parameters> {
        let parameters = if self.actuator.is_some() {
            self.model()?.parameters().clone()
        } else {
            let cost = Some(ReadCost { r0: self.r0, t0: self.t0 });
            let survey = Characterization {
                cost,
                zones: Vec::new(),
                revolution: None,
                seek: None,
                seek_error_ms: 0.0,
            };
            survey.parameters(name, capacity)?
        };
        let sources = vec![format!("`tenuto calibrate`: {}", self.method)];
        Some(Parameters { name: name.to_owned(), sources, ..parameters })
    }
}

/// Rates of a few reads are good to a percent.
const SURE_RATE: f64 = 0.99;
