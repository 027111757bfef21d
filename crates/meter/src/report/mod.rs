//! Turns numbers into one HTML page that needs nothing else: no script, no network, no files
//! beside it. A page is a title, what was done, tables, and plots that each say how to read them.
//! [`Report`] is a published result made again, of which there is a page, too.
//!
//! It knows nothing of what the numbers mean; whoever makes a page writes the words.

mod findings;
mod heat;
mod page;
mod plot;
mod rounds;

pub use findings::{Cell, Figure, Report, Table};
pub use heat::{HeatMap, Square};
pub use page::{Block, Finding, Page};
pub use plot::{Plot, PlotError, Series, Shape, shares};
pub use rounds::{rounds_chart, spread_chart};
