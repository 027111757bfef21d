//! Where copies of titles come from, and when they are written.

use crate::daily_window::DailyWindow;
use bucket::TitleBucket;
use jiff::Zoned;
use units::BitRate;

/// Where a node of a cluster gets copies of titles from, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// The bucket with the titles of record.
    pub bucket: TitleBucket,
    /// The times of day at which copies are written, by the clock of this machine; empty: any.
    pub windows: Vec<DailyWindow>,
    /// The rate of all copies that are written at a time, together.
    pub rate: BitRate,
}

impl CopySource {
    /// Whether copies are written at this time of day.
    pub(crate) fn is_open_now(&self) -> bool {
        let now = Zoned::now();
        let minute =
            u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs());
        self.windows.is_empty() || self.windows.iter().any(|window| window.contains(minute))
    }
}
