//! The texts of the reports, from `reports.toml`: what a report says beside its numbers. Texts with
//! computed numbers are written where the numbers are computed.

use super::claims::Claim;
use super::{Figure, Report, Table};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The texts of one report.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Texts {
    source: String,
    method: String,
    notes: Vec<String>,
    pub(super) claims: Vec<Claim>,
}

/// The texts of a reproduction; none if its report is written elsewhere.
pub(super) fn of(name: &str) -> Texts {
    let mut all: BTreeMap<String, Texts> =
        toml::from_str(include_str!("reports.toml")).expect("a test reads it");
    all.remove(name).unwrap_or_default()
}

/// A report with the texts of a reproduction.
pub(super) fn report(name: &str, tables: Vec<Table>, figures: Vec<Figure>) -> Report {
    let Texts { source, method, notes, .. } = of(name);
    Report { source, method, tables, notes, figures }
}
