//! Plays titles from an HTTP server as a number of viewers, and reports the experience of each.
//!
//! Media is fetched over real sockets (HLS or DASH with fragmented MP4, or progressive MP4 by byte
//! ranges). Each viewer has a play-out clock and a buffer ([`player`]); media is discarded as it
//! arrives, so that one core and little memory suffice for hundreds of viewers. The client uses
//! HTTP/1.1 with or without TLS and works with any server.
//!
//! A player stays in the rendition that it was offered first, or changes by
//! [`player::AbrRule`].
//!
//! Nothing is decoded: a picture that arrives in time counts as seen.

mod boxes;
mod connection;
mod counted;
mod dash;
mod error;
mod fetched;
mod hosts;
mod http;
mod options;
mod outcome;
mod progressive;
mod rendition_account;
mod renditions;
mod run;
mod save;
mod session;
mod source;
mod summary;
mod titles;
mod url;
mod wire;

pub use counted::Counted;
pub use error::{RequestError, ViewerError};
pub use options::{Arrivals, Choice, Form, PlayOptions, View};
pub use outcome::{
    Distribution, DriftReport, Parameters, PlayReport, RefusalReport, RenditionReport, Totals,
    ViewerOutcome, ViewerReport, ViewerSample,
};

use crate::error::MeterError;
use crate::log::RecordSink;
use std::sync::atomic::AtomicBool;

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
) -> Result<PlayReport, MeterError> {
    let (titles, run) = perform(options, stop, progress)?;
    Ok(summary::summarize(options, titles, run))
}

/// Runs players and counts the result as [`crate::streams`] does: a viewer is a stream, a segment
/// is a frame, and a segment that playback had to wait for is late. After the run, every segment
/// that arrived is written to `log`. For viewers with [`player::Behaviour::default`] only.
pub fn count(
    options: &PlayOptions,
    stop: &AtomicBool,
    log: &mut dyn RecordSink,
    progress: &mut dyn FnMut(&ViewerSample),
) -> Result<Counted, MeterError> {
    let (titles, run) = perform(options, stop, progress)?;
    let outcome = counted::outcome(&options.player, &run, log);
    Ok(Counted { outcome, report: summary::summarize(options, titles, run) })
}

fn perform(
    options: &PlayOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&ViewerSample),
) -> Result<(usize, run::PlayRun), MeterError> {
    let mut hosts = hosts::Hosts::new(options.trust.clone(), options.identity.clone());
    if options.viewers == 0 {
        return Err(
            MeterError::new("the number of viewers is zero").hint("give --viewers 1 or more")
        );
    }
    let urls = titles::discover(options, &mut hosts)?;
    Ok((urls.len(), run::run(options, &urls, hosts, stop, progress)?))
}
