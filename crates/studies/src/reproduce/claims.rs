//! Claims of a paper, compared with our results in two respects: their direction and their size.
//!
//! ```text
//!   "two nodes give more, up to 2.3 times"     direction: more?     size: 2.3 and 1.9: -17 %
//! ```
//!
//! The verdict on a size is `yes` only where our value rounds to the figure that the paper prints,
//! or lies within the range that it prints. The deviation is that from the figure, or from the
//! nearer end of the range. A result that the model gives for any parameters is `built in`, and one
//! that a parameter was fitted to is `fitted`: both count as neither.

use super::texts;
use super::{Cell, Table};
use meter::report::cell;
use serde::Deserialize;

/// A claim of a paper, as `reports.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// The figure or the section of the paper.
    figure: String,
    says: String,
    /// The number or the range that the paper prints.
    size: Option<String>,
    /// In place of a verdict: `built in` or `fitted`.
    direction: Option<String>,
}

/// The claims of one report, which are compared with our results one after another.
pub(super) struct Claims {
    table: Table,
    claims: Vec<Claim>,
    /// Number of the claim that is compared next.
    next: usize,
}

/// A figure that the paper prints.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Size<'a> {
    /// The least and the greatest that the paper allows; equal for a single figure.
    least: f64,
    greatest: f64,
    /// Digits after the point in the paper.
    decimals: usize,
    unit: &'a str,
}

impl<'a> Size<'a> {
    /// Parses a figure or a range of a paper: `2.3 times`, `8 to 12 %`.
    fn parse(text: &'a str) -> Option<Self> {
        let (least, unit) = text.split_once(' ')?;
        let (greatest, unit) = match unit.strip_prefix("to ") {
            Some(rest) => rest.split_once(' ')?,
            None => (least, unit),
        };
        let decimals = least.split_once('.').map_or(0, |(_, digits)| digits.len());
        Some(Self { least: least.parse().ok()?, greatest: greatest.parse().ok()?, decimals, unit })
    }

    /// Our result, as the paper would print it.
    fn shown(&self, ours: f64) -> String {
        format!("{ours:.*} {}", self.decimals, self.unit)
    }

    /// Whether ours, rounded as the paper rounds, is what the paper prints.
    fn agrees(&self, ours: f64) -> bool {
        // Rounded by the same code as the printed figure, so that the verdict matches what is read.
        let rounded = format!("{ours:.*}", self.decimals).parse().expect("a number as printed");
        (self.least..=self.greatest).contains(&rounded)
    }

    /// In percent of the paper's figure.
    fn deviation(&self, ours: f64) -> f64 {
        let nearest = ours.clamp(self.least, self.greatest);
        100.0 * (ours / nearest - 1.0)
    }
}

impl Claims {
    /// The claims that `reports.toml` has for a reproduction.
    pub(super) fn of(name: &str) -> Self {
        Self::titled(name, "Claims of the paper, and our results")
    }

    /// For results of a model of which the title states what was fitted to the paper.
    pub(super) fn titled(name: &str, title: &'static str) -> Self {
        Self { table: Table::new("claims", title), claims: texts::of(name).claims, next: 0 }
    }

    /// Compares the next claim, which is about `figure`, with our results: `ours` states them,
    /// `holds` whether they go the way that the paper says, and `size` is ours beside the figure
    /// that the paper prints. Begins again after the last claim.
    pub(super) fn add(
        &mut self,
        figure: &str,
        ours: String,
        holds: impl Into<Option<bool>>,
        size: impl Into<Option<f64>>,
    ) {
        let claim = self.claims[self.next].clone();
        self.next = (self.next + 1) % self.claims.len();
        assert_eq!(claim.figure, figure, "claims are compared in their order in reports.toml");
        let yes = |holds: bool| if holds { "yes" } else { "no" };
        let fitted = claim.direction.as_deref() == Some("fitted");
        let direction = claim.direction.or_else(|| holds.into().map(|holds| yes(holds).to_owned()));
        let printed = claim.size.as_deref().zip(size.into());
        let [there, here, deviation, size] = match printed {
            None => [const { Cell::Missing }; 4],
            Some((text, ours)) => {
                let size = Size::parse(text).expect("a test reads every size");
                // A size that a parameter of the model was chosen for is no result.
                let verdict = if fitted { "fitted" } else { yes(size.agrees(ours)) };
                let deviation = format!("{:+.0} %", size.deviation(ours));
                [text.into(), size.shown(ours).into(), deviation.into(), verdict.into()]
            }
        };
        self.table.add([
            cell("figure", "figure", claim.figure),
            cell("says", "the paper says", claim.says),
            cell("ours", "here", ours),
            cell("direction", "direction", direction),
            cell("paper_size", ">size there", there),
            cell("our_size", ">size here", here),
            cell("deviation", ">deviation", deviation),
            cell("size", "size", size),
        ]);
    }

    /// Goes on with the claim that says `says`, so that several results can be compared with some
    /// of the claims only.
    pub(super) fn go_on_at(&mut self, says: &str) {
        let claim = self.claims.iter().position(|claim| claim.says == says);
        self.next = claim.expect("the report has this claim");
    }

    pub(super) fn into_table(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;

    #[test]
    fn a_size_agrees_where_it_rounds_to_the_printed_figure_and_nowhere_else() {
        for (paper, ours, agrees) in [
            ("2.3 x", 2.34, true),
            ("2.3 x", 2.36, false),
            ("2.3 x", 1.9, false),
            ("3 x", 2.6, true),
        ] {
            assert_eq!(Size::parse(paper).unwrap().agrees(ours), agrees, "{paper} {ours}");
        }
        let range = Size::parse("8 to 12 %").unwrap();
        assert!(range.agrees(8.0) && range.agrees(12.4) && !range.agrees(13.0));
        assert_eq!(range.deviation(18.0), 50.0);
        assert_eq!(range.deviation(4.0), -50.0);
        assert_eq!(range.shown(9.6), "10 %");
    }

    #[test]
    fn every_size_of_a_paper_can_be_read() {
        let claims = || ALL.iter().flat_map(|one| texts::of(one.name).claims);
        assert!(claims().filter(|claim| claim.size.is_some()).count() > 20);
        for text in claims().filter_map(|claim| claim.size) {
            assert!(Size::parse(&text).is_some(), "{text}");
        }
    }
}
