//! How many more viewers of a title would be admitted, counted on a copy of the engine.

use super::{AdmissionDecision, AdmitRequest, Engine, Refusal};
use units::Moment;

/// How many more sessions fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Headroom {
    /// Sessions that are admitted at the same moment, one after the other.
    pub fits: u32,
    /// Why the next one is not; `None`: as many as were asked about fit.
    pub refusal: Option<Refusal>,
}

impl Engine {
    /// How many more sessions of a request fit, at most `most`. They start at places that are
    /// spread over the first half of the title: viewers who start together share their reads, and
    /// many more of them fit.
    ///
    /// The engine is a copy, on which they are admitted until one is refused: each decision is the
    /// one that the engine itself would take. A request of the lowest priority that does not wait
    /// ends no other session.
    pub fn headroom(mut self, now: Moment, request: &AdmitRequest, most: u32) -> Headroom {
        let spread = request.layout.duration / 2;
        for fits in 0..most {
            // Each start is as far from all others as it can be, however many follow.
            let part = (f64::from(fits) * GOLDEN_RATIO).fract();
            let request = AdmitRequest { start: spread.mul_f64(part), ..request.clone() };
            if let AdmissionDecision::Refused(refusal) = self.admit(now, request) {
                return Headroom { fits, refusal: Some(refusal) };
            }
            // Nobody carries them out.
            self.take_actions();
        }
        Headroom { fits: most, refusal: None }
    }
}

/// Multiples of it, without their whole parts, are spread evenly from 0 to 1.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
