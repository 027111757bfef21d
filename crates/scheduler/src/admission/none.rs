//! Everybody comes in. The contrast: what happens when nobody counts.

use super::{Policy, Slack, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::windows::Plan;

pub(super) struct None;

impl Policy for None {
    fn verdict(&self, _: &DiskBooks, _: &Supply<'_>, _: &Demand, _: &mut Plan) -> Verdict {
        Verdict::Admit { slack: Slack::Unknown }
    }
}
