//! Everybody comes in. The contrast: what happens when nobody counts.

use super::{Policy, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;

pub(super) struct None;

impl Policy for None {
    fn verdict(&self, _: &DiskBooks, _: &Supply, _: &Demand) -> Verdict {
        Verdict::Admit { slack: 0 }
    }
}
