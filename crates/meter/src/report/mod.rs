//! Turns numbers into one HTML page that needs nothing else: no network, no further files. A page
//! is a title, a summary, tables, and plots with captions that explain how to read them. [`Report`]
//! is a reproduced result, which also becomes a page.
//!
//! The module does not interpret the numbers; the caller writes the text.

mod environment;
mod findings;
mod format;
mod heat;
mod page;
mod plot;
mod renditions;
mod rounds;
mod run_plots;
mod text;

pub(crate) use environment::Environment;
pub(crate) use format::{
    heat_block, late, late_and_lost, late_rounds, moved, quantiles, round_spread, time, times_json,
};
pub use renditions::renditions;
pub(crate) use run_plots::{StreamDemand, in_time, run_plots};
pub use text::{TextTable, facts};

pub use crate::streams::{LiveFigures, LiveKind, heat_band, heat_band_begins};
pub use findings::{Cell, Figure, NamedCell, Report, Table, cell};
pub use heat::{HeatMap, Square};
pub use page::{Block, KeyFigure, Page, VerdictKind};
pub use plot::{LineShape, Plot, Series, shares};
pub(crate) use rounds::spread_spans;
pub use rounds::{rounds_chart, spread_cells, spread_chart};
