//! One plot as SVG text: lines over a grid, with a legend.

use super::Block;
use plotters::coord::Shift;
use plotters::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use units::Reason;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A plot of series against common axes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plot {
    /// The title above the plot.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    #[serde(rename = "x")]
    pub x_label: String,
    /// The label of the vertical axis, with its unit.
    #[serde(rename = "y")]
    pub y_label: String,
    /// The series in drawing order: the last is on top.
    pub series: Vec<Series>,
    /// The least upper end of the vertical axis, so that plots can have the same one.
    #[serde(skip)]
    pub least_top: f64,
}

/// A named series of points.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// How the points are joined.
    #[serde(skip)]
    pub shape: LineShape,
    /// The points in order of `x`. Points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// The way in which points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineShape {
    /// A line from point to point.
    Line,
    /// Each value holds until the next point.
    Step,
    /// Steps that are filled down to zero.
    Area,
    /// Unconnected points.
    Dots,
    /// Ranges: the first point with the second, the third with the fourth, and so on.
    Spans,
    /// A limit: a dashed line from side to side at the first point's height.
    Limit,
}

impl LineShape {
    /// The word for programs.
    fn word(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Step => "step",
            Self::Area => "area",
            Self::Dots => "dots",
            Self::Spans => "spans",
            Self::Limit => "limit",
        }
    }
}

/// Why a plot with this title could not be drawn.
pub(super) fn not_drawn(title: &str, error: &dyn std::error::Error) -> Reason {
    format!("cannot draw '{title}': {error}").into()
}

impl Series {
    /// A series with a name, a shape and points.
    pub fn new(name: impl Into<String>, shape: LineShape, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), shape, points }
    }

    /// A series for each name, in the order of the names.
    pub(crate) fn by_name(
        shape: LineShape,
        points: impl Iterator<Item = (String, (f64, f64))>,
    ) -> Vec<Self> {
        let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        points.for_each(|(name, point)| lines.entry(name).or_default().push(point));
        lines.into_iter().map(|(name, points)| Self::new(name, shape, points)).collect()
    }
}

impl Plot {
    /// A plot with a title, labels and series.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
        series: Vec<Series>,
    ) -> Self {
        let (title, x_label, y_label) = (title.into(), x_label.into(), y_label.into());
        Self { title, x_label, y_label, series, least_top: 0.0 }
    }

    /// Gives these plots, which are compared with each other, the same vertical axis.
    #[must_use]
    pub fn with_same_axis(plots: Vec<Self>) -> Vec<Self> {
        let top = plots.iter().map(|plot| plot.extent().1).fold(0.0, f64::max);
        plots.into_iter().map(|plot| Self { least_top: top, ..plot }).collect()
    }

    /// A plot over the seconds of a run.
    pub(crate) fn by_second(title: &str, y_label: &str, series: Vec<Series>) -> Self {
        Self::new(title, "seconds since the start", y_label, series)
    }

    /// The SVG text from `<svg` to `</svg>`. The same plot always gives the same text.
    pub fn svg(&self) -> Result<String, Reason> {
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let drawn = self.draw(&area);
        // The area borrows the text until here.
        drop(area);
        drawn.map(|()| text).map_err(|error| not_drawn(&self.title, &*error))
    }

    /// The plot on a page, with a caption on how to read it.
    pub fn block(&self, explanation: &str) -> Result<Block, Reason> {
        let explanation = explanation.to_owned();
        Ok(Block::Plot { svg: self.svg()?, data: self.data(), explanation })
    }

    /// The plot as data, of which the page's script draws it.
    fn data(&self) -> Value {
        let series = |Series { name, shape, points }: &Series| json!({ "name": name, "shape": shape.word(), "points": points });
        json!({
            "kind": "lines",
            "title": self.title,
            "x": self.x_label,
            "y": self.y_label,
            "series": self.series.iter().map(series).collect::<Vec<_>>(),
            "top": self.least_top,
        })
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        area.fill(&WHITE)?;
        // The legend has a place of its own, because lines may go everywhere in the picture.
        let (picture, legend) = area.split_horizontally(SIZE.0 - LEGEND_WIDTH);
        let (right, top) = self.extent();
        let mut chart = ChartBuilder::on(&picture)
            .caption(&self.title, (FONT, 20))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        chart
            .configure_mesh()
            .light_line_style(RGBColor(245, 245, 245))
            .bold_line_style(RGBColor(220, 220, 220))
            .x_label_formatter(&number)
            .y_label_formatter(&number)
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()?;
        for (series, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let points = series.drawn(right);
            let line = colour.stroke_width(2);
            match series.shape {
                LineShape::Line | LineShape::Step => {
                    chart.draw_series(LineSeries::new(points, line))?
                }
                LineShape::Spans => {
                    // Each pair of points is a line of its own.
                    let span = |ends: &[(f64, f64)]| PathElement::new(ends.to_vec(), line);
                    chart.draw_series(points.chunks_exact(2).map(span))?
                }
                LineShape::Limit => chart.draw_series(DashedLineSeries::new(points, 8, 5, line))?,
                LineShape::Area => {
                    // The edge is drawn over the area: one area behind another stays visible.
                    chart.draw_series(AreaSeries::new(points.clone(), 0.0, colour.mix(0.25)))?;
                    chart.draw_series(LineSeries::new(points, line))?
                }
                LineShape::Dots => {
                    let dot = |point| Circle::new(point, 3, colour.filled());
                    chart.draw_series(points.into_iter().map(dot))?
                }
            };
        }
        self.draw_legend(&legend)?;
        area.present()?;
        Ok(())
    }

    /// Draws the legend beside the plot, where it hides nothing.
    fn draw_legend(&self, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let mut y = 56;
        for (series, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            area.draw(&Rectangle::new([(0, y), (14, y + 10)], colour.filled()))?;
            area.draw(&Text::new(series.name.clone(), (20, y - 1), (FONT, 13)))?;
            y += 22;
        }
        if self.series.iter().all(|series| series.points.is_empty()) {
            area.draw(&Text::new("nothing was measured", (0, y), (FONT, 13)))?;
        }
        Ok(())
    }

    /// The right and upper ends of the axes: the largest values and a small margin.
    fn extent(&self) -> (f64, f64) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let most = |values: &mut dyn Iterator<Item = f64>| {
            let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
            if most > 0.0 { most } else { 1.0 }
        };
        let top = most(&mut points().map(|point| point.1)) * 1.08;
        (most(&mut points().map(|point| point.0)), top.max(self.least_top))
    }
}

impl Series {
    /// The points to join with straight lines.
    fn drawn(&self, right: f64) -> Vec<(f64, f64)> {
        let points = self.points.iter().copied();
        // A figure without a value (0 / 0) leaves a gap instead of spoiling the axes.
        let finite = points.filter(|(x, y)| x.is_finite() && y.is_finite());
        match self.shape {
            LineShape::Line | LineShape::Dots | LineShape::Spans => finite.collect(),
            LineShape::Limit => finite.take(1).flat_map(|(_, y)| [(0.0, y), (right, y)]).collect(),
            LineShape::Step | LineShape::Area => {
                let mut steps: Vec<(f64, f64)> = Vec::new();
                for (x, y) in finite {
                    if let Some((_, before)) = steps.last().copied() {
                        steps.push((x, before));
                    }
                    steps.push((x, y));
                }
                steps
            }
        }
    }
}

/// The distribution of values: for each value, in ascending order, the percentage of all that are
/// at most as large, to be drawn with `LineShape::Step`.
pub fn shares(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let all = values.len();
    #[expect(clippy::cast_precision_loss, reason = "a percentage")]
    let share = |count: usize| 100.0 * count as f64 / all as f64;
    let start = values.first().map(|_| (0.0, 0.0));
    let points = values.into_iter().enumerate().map(|(i, value)| (value, share(i + 1)));
    start.into_iter().chain(points).collect()
}

/// A label on an axis, without decimals for whole numbers.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "what plotters calls")]
pub(super) fn number(value: &f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The size in pixels; the page scales it to its width.
pub(super) const SIZE: (u32, u32) = (900, 400);

/// The width of the legend, which has room for about 25 letters, in pixels.
const LEGEND_WIDTH: u32 = 200;

/// The font: any that the reader's machine has.
pub(super) const FONT: &str = "sans-serif";

/// Okabe and Ito's palette, which people with colour-vision deficiencies can distinguish.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn series(shape: LineShape, points: &[(f64, f64)]) -> Series {
        Series { name: "a < b".into(), shape, points: points.to_vec() }
    }

    #[test]
    fn a_plot_is_svg_that_contains_its_labels() {
        let plot = Plot {
            title: "Viewers".into(),
            x_label: "seconds".into(),
            y_label: "viewers".into(),
            series: vec![
                series(LineShape::Area, &[(0.0, 1.0), (1.0, 3.0), (2.0, f64::NAN)]),
                series(LineShape::Limit, &[(0.0, 2.0)]),
                series(LineShape::Dots, &[(0.5, 0.5)]),
                series(LineShape::Spans, &[(1.0, 0.5), (1.0, 0.7)]),
            ],
            least_top: 0.0,
        };
        let svg = plot.svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        for word in ["Viewers", "seconds", "a &lt; b", "<circle", "<polygon", "<polyline"] {
            assert!(svg.contains(word), "{word} is missing in {svg}");
        }
        assert!(!svg.contains("NaN"), "{svg}");
        assert_eq!(svg, plot.svg().unwrap());
        let data = plot.data();
        let points = json!([[0.0, 1.0], [1.0, 3.0], [2.0, null]]);
        let area = json!({ "name": "a < b", "shape": "area", "points": points });
        assert_eq!((&data["series"][0], &data["y"]), (&area, &json!("viewers")));
    }

    #[test]
    fn an_empty_plot_says_that_nothing_was_measured() {
        let svg = Plot::default().svg().unwrap();
        assert!(svg.contains("nothing was measured"), "{svg}");
    }

    #[test]
    fn plots_that_are_compared_have_the_same_axis() {
        let plot = |top| Plot::new("", "", "", vec![series(LineShape::Dots, &[(1.0, top)])]);
        let plots = Plot::with_same_axis(vec![plot(20.0), plot(100.0)]);
        let [low, high] = &plots[..] else { panic!("as many plots as before") };
        assert_eq!((low.extent().1, high.extent().1), (108.0, 108.0));
    }

    #[test]
    fn steps_hold_their_value_and_limits_span_the_plot() {
        let step = series(LineShape::Step, &[(0.0, 1.0), (2.0, 5.0)]);
        assert_eq!(step.drawn(9.0), [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)]);
        let limit = series(LineShape::Limit, &[(3.0, 7.0), (4.0, 8.0)]);
        assert_eq!(limit.drawn(9.0), [(0.0, 7.0), (9.0, 7.0)]);
    }

    #[test]
    fn shares_rise_to_100_percent() {
        let wanted = [(0.0, 0.0), (1.0, 25.0), (2.0, 50.0), (2.0, 75.0), (9.0, 100.0)];
        assert_eq!(shares([9.0, 2.0, 1.0, 2.0]), wanted);
        assert_eq!(shares([]), []);
    }
}
