//! A port whose clock runs faster by a factor: for disks that are emulated faster than real ones.

use crate::target::{IoCompletion, IoRequest, Port};
use device::DeviceError;
use units::Moment;

/// A port whose clock runs faster than real time by a constant factor.
pub struct Faster<'a> {
    inner: Box<dyn Port + 'a>,
    speed: u32,
}

impl<'a> Faster<'a> {
    /// Makes a port over `inner` whose clock runs `speed` times as fast; a `speed` of zero counts
    /// as one.
    pub fn new(inner: Box<dyn Port + 'a>, speed: u32) -> Self {
        Self { inner, speed: speed.max(1) }
    }

    fn ours(&self, theirs: Moment) -> Moment {
        Moment(theirs.0.saturating_mul(self.speed.into()))
    }
}

impl Port for Faster<'_> {
    fn now(&self) -> Moment {
        self.ours(self.inner.now())
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        self.inner.begin(request)
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let speed = u64::from(self.speed);
        let theirs = if until == Moment::MAX { until } else { Moment(until.0.div_ceil(speed)) };
        let before = done.len();
        self.inner.wait(theirs, done)?;
        for arrived in &mut done[before..] {
            arrived.at = self.ours(arrived.at);
            arrived.first = arrived.first.map(|first| self.ours(first));
            arrived.open *= self.speed;
            arrived.close *= self.speed;
        }
        Ok(())
    }

    fn held_until(&self) -> Moment {
        self.ours(self.inner.held_until())
    }

    fn method(&self) -> String {
        self.inner.method()
    }
}
