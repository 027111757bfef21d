//! Turns numbers into one HTML page that needs nothing else: no script, no network, no files
//! beside it. A page is a title, what was done, tables, and plots that each say how to read them.
//!
//! It knows nothing of what the numbers mean; whoever makes a page writes the words.

mod page;
mod plot;

pub use page::{Block, Page};
pub use plot::{Plot, PlotError, Series, Shape, shares};
