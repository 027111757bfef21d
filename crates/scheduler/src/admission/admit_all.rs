//! Everybody comes in. The contrast: what happens when nobody counts.

use super::{AdmissionRequest, Policy, Slack, Verdict};
use crate::windows::WindowPlan;

pub(super) struct AdmitAll;

impl Policy for AdmitAll {
    fn decide(&self, _: AdmissionRequest<'_>, _: &mut WindowPlan) -> Verdict {
        Verdict::Admit { slack: Slack::Unknown }
    }
}
