//! The texts of the reports, from `reports.toml`: what a report says beside its numbers. Texts with
//! computed numbers are written where the numbers are computed.

use super::claims::Claim;
use super::{Figure, Report, Table};
use meter::report::{Plot, Series};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The texts of one report.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Texts {
    pub(super) source: String,
    pub(super) method: String,
    pub(super) notes: Vec<String>,
    pub(super) claims: Vec<Claim>,
    figures: Vec<FigureText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureText {
    name: String,
    title: String,
    explanation: String,
}

/// The texts of a reproduction, or those that all of one paper share; none if its report is written
/// elsewhere.
pub(super) fn of(name: &str) -> Texts {
    let mut all: BTreeMap<String, Texts> =
        toml::from_str(include_str!("reports.toml")).expect("a test reads it");
    all.remove(name).unwrap_or_default()
}

/// A figure without title and explanation, which [`report`] takes from `reports.toml`.
pub(super) fn figure(name: &'static str, [x, y]: [&str; 2], series: Vec<Series>) -> Figure {
    Figure { name, plot: Plot::new("", x, y, series), explanation: String::new() }
}

/// A report with the texts of a reproduction.
pub(super) fn report(name: &str, tables: Vec<Table>, mut figures: Vec<Figure>) -> Report {
    let Texts { source, method, notes, figures: texts, .. } = of(name);
    for figure in figures.iter_mut().filter(|figure| figure.plot.title.is_empty()) {
        let text = texts.iter().find(|text| text.name == figure.name);
        let text = text.expect("reports.toml has the texts of each figure");
        figure.plot.title.clone_from(&text.title);
        figure.explanation.clone_from(&text.explanation);
    }
    Report { source, method, tables, notes, figures }
}
