//! A heat map as SVG text: counts by time and duration.

use super::Block;
use super::plot::{FONT, SIZE, not_drawn, number};
use plotters::prelude::*;
use serde_json::{Value, json};
use units::Reason;

/// A heat map over time with a logarithmic vertical axis.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// The title above the plot.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    pub x_label: String,
    /// The label of the vertical axis, with its unit.
    pub y_label: String,
    /// The cells. Those that reach down to zero begin at the lower edge.
    pub cells: Vec<Square>,
    /// A height that is marked by a horizontal line.
    pub limit: Option<f64>,
    /// The least right end of the horizontal axis.
    pub end: f64,
}

/// One cell of a heat map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Square {
    /// The horizontal range.
    pub x: (f64, f64),
    /// The vertical range.
    pub y: (f64, f64),
    /// The count, more than zero.
    pub weight: f64,
}

impl HeatMap {
    /// The SVG text from `<svg` to `</svg>`. The same map always gives the same text.
    pub fn svg(&self) -> Result<String, Reason> {
        let mut text = String::new();
        let drawn = self.draw(&mut text);
        drawn.map(|()| text).map_err(|error| not_drawn(&self.title, &*error))
    }

    /// The map on a page, with a caption on how to read it.
    pub fn block(&self, explanation: String) -> Result<Block, Reason> {
        Ok(Block::Plot { svg: self.svg()?, data: self.data(), explanation })
    }

    /// The map as data, of which the page's script draws it.
    fn data(&self) -> Value {
        let cell = |Square { x, y, weight }: &Square| [x.0, x.1, y.0, y.1, *weight];
        json!({
            "kind": "heat",
            "title": self.title,
            "x": self.x_label,
            "y": self.y_label,
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
            "limit": self.limit,
            "end": self.end,
        })
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (right, low, high) = self.extent();
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, (FONT, 20))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..right, (low..high).log_scale())?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_label_formatter(&number)
            .y_label_formatter(&number)
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()?;
        let most = self.cells.iter().map(|cell| cell.weight).fold(1.0, f64::max);
        let square = |cell: &Square| {
            let ends = [(cell.x.0, cell.y.0.max(low)), (cell.x.1, cell.y.1)];
            Rectangle::new(ends, shade(cell.weight, most).filled())
        };
        chart.draw_series(self.cells.iter().map(square))?;
        if let Some(limit) = self.limit {
            let line = RED.stroke_width(2);
            chart.draw_series(DashedLineSeries::new([(0.0, limit), (right, limit)], 8, 5, line))?;
        }
        area.present()?;
        Ok(())
    }

    /// The right end, and the lowest and the highest value that are shown.
    fn extent(&self) -> (f64, f64, f64) {
        let right = self.cells.iter().map(|cell| cell.x.1).fold(self.end.max(1.0), f64::max);
        let ends = || self.cells.iter().flat_map(|cell| [cell.y.0, cell.y.1]).chain(self.limit);
        // Zero has no place on a logarithmic axis.
        let low = ends().filter(|end| *end > 0.0).fold(f64::INFINITY, f64::min);
        let high = ends().fold(0.0, f64::max);
        if low.is_finite() && high > low {
            (right, low / 1.5, high * 1.2)
        } else {
            (right, 1.0, 10.0)
        }
    }
}

/// A colour from pale to dark blue on a logarithmic scale, so that one among thousands is visible.
fn shade(weight: f64, most: f64) -> RGBColor {
    let share = (1.0 + weight).ln() / (1.0 + most).ln();
    let mix = |pale: f64, dark: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
        let mixed = (pale + (dark - pale) * share.clamp(0.0, 1.0)).round() as u8;
        mixed
    };
    RGBColor(mix(214.0, 3.0), mix(230.0, 45.0), mix(244.0, 94.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_values_are_dark_and_an_empty_map_is_drawn() {
        assert_eq!(shade(1000.0, 1000.0), RGBColor(3, 45, 94));
        assert!(shade(1.0, 1000.0).2 > shade(100.0, 1000.0).2);
        let cell = |at: f64, weight| Square { x: (at, at + 1.0), y: (0.0, 2.0), weight };
        let map = HeatMap {
            title: "Responses".into(),
            cells: vec![cell(0.0, 1.0), cell(1.0, 50.0)],
            limit: Some(40.0),
            ..HeatMap::default()
        };
        assert_eq!(map.data()["cells"][1], json!([1.0, 2.0, 0.0, 2.0, 50.0]));
        let svg = map.svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("Responses"), "{svg}");
        // The background, and one square for each cell.
        assert_eq!(svg.matches("<rect").count(), 3, "{svg}");
        // A run in which nothing came at the end is drawn to its end.
        let longer = HeatMap { end: 12.0, ..map };
        assert_eq!((longer.extent().0, HeatMap::default().extent().0), (12.0, 1.0));
        assert!(!svg.contains("NaN") && HeatMap::default().svg().unwrap().contains("</svg>"));
    }
}
