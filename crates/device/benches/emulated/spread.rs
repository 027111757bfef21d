//! How long each stream took, and how long it ever waited for its next bytes.

use std::time::Duration;

/// A stream's end and its longest wait, both from the moment at which all began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    last: Duration,
    gap: Duration,
}

impl Stream {
    /// Bytes came at this time.
    pub(crate) fn came(&mut self, at: Duration) {
        self.gap = self.gap.max(at.saturating_sub(self.last));
        self.last = at;
    }
}

/// All of them, in seconds.
pub(crate) struct Spread(pub(crate) Vec<Stream>);

impl Spread {
    fn ends(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().map(|stream| stream.last.as_secs_f64())
    }

    /// Until the last one was done.
    pub(crate) fn wall(&self) -> f64 {
        self.ends().fold(0.0, f64::max)
    }

    pub(crate) fn min(&self) -> f64 {
        self.ends().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.ends().sum::<f64>() / self.0.len() as f64
    }

    /// Of all of them, not of a sample.
    pub(crate) fn sd(&self) -> f64 {
        let mean = self.mean();
        (self.ends().map(|end| (end - mean).powi(2)).sum::<f64>() / self.0.len() as f64).sqrt()
    }

    pub(crate) fn longest_gap(&self) -> f64 {
        self.0.iter().map(|stream| stream.gap.as_secs_f64()).fold(0.0, f64::max)
    }
}
