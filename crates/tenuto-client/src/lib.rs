//! A client of media servers: it opens titles, controls them and receives their LDUs
//! ([`OpenTitle`]), or plays them as one or thousands of viewers and reports what each of them
//! experienced ([`play`]).
//!
//! ```no_run
//! use std::time::Duration;
//! use tenuto_client::{ClientError, OpenTitle, Received, TitleOptions};
//!
//! fn main() -> Result<(), ClientError> {
//!     // Or http://127.0.0.1:8080/t/film/master.m3u8, and any other playlist or manifest.
//!     let mut title = OpenTitle::open("rtsp://127.0.0.1:8554/t/film", TitleOptions::default())?;
//!     loop {
//!         match title.receive(Duration::from_millis(100))? {
//!             Received::Ldu(ldu) => println!("{} {:?} {} B", ldu.track, ldu.time, ldu.bytes.len()),
//!             Received::Nothing => {}
//!             Received::End => return Ok(()),
//!         }
//!     }
//! }
//! ```
//!
//! Media comes over real sockets (HLS or DASH with fragmented MP4, HLS with transport streams,
//! progressive MP4 by byte ranges, or RTP over UDP or TCP). Each viewer has a play-out clock and
//! a buffer ([`player`]); media is discarded as it arrives, so that one core and little memory
//! suffice for hundreds of viewers. The client uses HTTP/1.1 and RTSP 1.0 with or without TLS,
//! works with any server, and shares no code with Tenuto's.
//!
//! A player stays in the rendition that it was offered first, or changes by
//! [`player::AbrRule`].
//!
//! Nothing is decoded: a picture that arrives in time counts as seen.

#![warn(missing_docs)]

mod access_link;
mod boxes;
mod connection;
mod dash;
mod error;
mod fetched;
mod fragments;
mod hosts;
mod http;
mod ldus;
mod options;
mod outcome;
mod pathways;
mod piece_reader;
mod progressive;
mod records;
mod rendition_account;
mod renditions;
mod rtsp;
mod run;
mod save;
mod session;
mod source;
mod summary;
mod title;
mod titles;
pub mod tls;
mod transport;
mod url;
mod wire;

pub use error::{ClientError, RequestError};
pub use fetched::{Fetched, OwnLateness, second};
pub use ldus::Ldu;
pub use options::{Arrivals, Choice, Form, PlayOptions, RtspTransport, View, ViewerTrace};
pub use outcome::{
    Distribution, DriftReport, LduReport, Parameters, PlayReport, RefusalReport, RenditionReport,
    RtpReport, Totals, ViewerOutcome, ViewerReport, ViewerSample,
};
pub use records::{PlayRecords, ViewerRecord};
pub use title::{OpenTitle, Received, TitleOptions};

use std::sync::atomic::AtomicBool;
use units::Reason;

/// Plays until every viewer is done, `options.duration` is over, or `stop` is set (then the report
/// is marked as incomplete). `progress` receives the current state twice a second.
///
/// Refusals and errors of single viewers are in the report. An error is returned when there is
/// nothing to play, when the very first viewer gets no response, when media cannot be saved, or
/// when the machine has no sockets left.
pub fn play(
    options: &PlayOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&ViewerSample),
) -> Result<PlayReport, ClientError> {
    let (titles, run) = perform(options, stop, progress)?;
    Ok(summary::summarize(options, titles, run))
}

/// Plays as [`play`] does, and also returns the records that its report was made of.
pub fn play_recorded(
    options: &PlayOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&ViewerSample),
) -> Result<(PlayReport, PlayRecords), ClientError> {
    let (titles, run) = perform(options, stop, progress)?;
    let records = records::of(&run);
    Ok((summary::summarize(options, titles, run), records))
}

fn perform(
    options: &PlayOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&ViewerSample),
) -> Result<(usize, run::PlayRun), ClientError> {
    let mut hosts = hosts::Hosts::new(options.trust.clone(), options.identity.clone());
    if options.viewers == 0 {
        let none = Reason::new("the number of viewers is zero", "give --viewers 1 or more");
        return Err(none.into());
    }
    let urls = titles::discover(options, &mut hosts)?;
    let audience = match &options.trace {
        None => None,
        Some(trace) => {
            let names: Vec<String> = urls.iter().map(titles::name_of).collect();
            Some(trace.of_titles(&names)?)
        }
    };
    Ok((urls.len(), run::run(options, &urls, audience, hosts, stop, progress)?))
}
