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

use super::{Cell, Table};

/// The claims of one report.
pub(super) struct Claims(Table);

/// Whether a result goes the way that the paper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// A comparison of our own results, computed.
    Judged(bool),
    /// The model could not give any other result.
    BuiltIn,
    /// A parameter of the model was chosen for this result.
    Fitted,
    /// The paper says how large, and nothing else.
    NotStated,
}

/// A figure that the paper prints, and ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    /// The least and the greatest that the paper allows; the same twice for a single figure.
    paper: (f64, f64),
    ours: f64,
    /// Digits after the point in the paper.
    decimals: usize,
    unit: &'static str,
    /// Whether a parameter of the model was chosen for this result.
    fitted: bool,
}

impl Size {
    /// A single figure, which the paper prints with so many digits after the point.
    pub(super) fn of(paper: f64, ours: f64, decimals: usize, unit: &'static str) -> Self {
        Self { paper: (paper, paper), ours, decimals, unit, fitted: false }
    }

    /// A range of whole numbers.
    pub(super) fn within(least: f64, greatest: f64, ours: f64, unit: &'static str) -> Self {
        Self { paper: (least, greatest), ours, decimals: 0, unit, fitted: false }
    }

    /// A size that a parameter of the model was chosen for: it is no result.
    pub(super) fn fitted(self) -> Self {
        Self { fitted: true, ..self }
    }

    /// Whether ours, rounded as the paper rounds, is what the paper prints.
    fn agrees(&self) -> bool {
        let ours = self.rounded();
        (self.paper.0..=self.paper.1).contains(&ours)
    }

    fn rounded(&self) -> f64 {
        // Rounded by the same code as the printed figure, so that the verdict matches what is read.
        let text = format!("{:.*}", self.decimals, self.ours);
        text.parse().expect("a number as just printed")
    }

    /// In percent of the paper's figure.
    fn deviation(&self) -> f64 {
        let nearest = self.ours.clamp(self.paper.0, self.paper.1);
        100.0 * (self.ours / nearest - 1.0)
    }

    fn there(&self) -> String {
        let (Self { decimals, unit, .. }, (least, greatest)) = (self, self.paper);
        if least == greatest {
            return format!("{least:.decimals$}{unit}");
        }
        format!("{least:.decimals$} to {greatest:.decimals$}{unit}")
    }
}

impl Claims {
    pub(super) fn new() -> Self {
        Self::titled("Claims of the paper, and our results")
    }

    /// For results of a model of which the title states what was fitted to the paper.
    pub(super) fn titled(title: &'static str) -> Self {
        Self(Table::new("claims", title, COLUMNS))
    }

    /// Adds a claim without a printed figure; `ours` states the results that decide it.
    pub(super) fn direction(&mut self, figure: &str, says: &str, ours: String, holds: bool) {
        self.add(figure, says, ours, Direction::Judged(holds), None);
    }

    /// Adds a claim with its direction and, where the paper prints a figure, its size.
    pub(super) fn add(
        &mut self,
        figure: &str,
        says: &str,
        ours: String,
        direction: Direction,
        size: Option<Size>,
    ) {
        let yes = |holds: bool| if holds { "yes" } else { "no" };
        let direction: Cell = match direction {
            Direction::Judged(holds) => yes(holds).into(),
            Direction::BuiltIn => "built in".into(),
            Direction::Fitted => "fitted".into(),
            Direction::NotStated => Cell::Missing,
        };
        let [there, here, deviation, size] = size.map_or([const { Cell::Missing }; 4], |size| {
            let here = format!("{:.*}{}", size.decimals, size.ours, size.unit);
            let deviation = format!("{:+.0} %", size.deviation());
            let verdict = if size.fitted { "fitted" } else { yes(size.agrees()) };
            [size.there(), here, deviation, verdict.to_owned()].map(Cell::from)
        });
        let (figure, says, ours) = (figure.into(), says.into(), ours.into());
        self.0.row([figure, says, ours, direction, there, here, deviation, size]);
    }

    pub(super) fn into_table(self) -> Table {
        self.0
    }
}

const COLUMNS: &[(&str, &str)] = &[
    ("figure", "figure"),
    ("says", "the paper says"),
    ("ours", "here"),
    ("direction", "direction"),
    ("paper_size", ">size there"),
    ("our_size", ">size here"),
    ("deviation", ">deviation"),
    ("size", "size"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_agrees_where_it_rounds_to_the_printed_figure_and_nowhere_else() {
        for (paper, ours, decimals, agrees) in
            [(2.3, 2.34, 1, true), (2.3, 2.36, 1, false), (2.3, 1.9, 1, false), (3.0, 2.6, 0, true)]
        {
            assert_eq!(Size::of(paper, ours, decimals, "").agrees(), agrees, "{paper} {ours}");
        }
        let range = |ours| Size::within(8.0, 12.0, ours, " %");
        assert!(range(8.0).agrees() && range(12.4).agrees() && !range(13.0).agrees());
        assert_eq!(range(18.0).deviation(), 50.0);
        assert_eq!(range(4.0).deviation(), -50.0);
        assert_eq!(range(4.0).there(), "8 to 12 %");
    }
}
