//! Arguments of `serve` and `play`.

use super::shared::{OverwriteArgs, ReportArgs, SwitchingArgs, TlsArgs};
use super::values::{address, model, speed, text, whole, words};
use disk::DiskModel;
use meter::viewer::{Arrivals, Choice, Form};
use scheduler::PolicyKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount, parse_duration};

/// Arguments of `tenuto serve`.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// The stores to serve: files or block devices.
    #[arg(required = true, value_name = "STORE")]
    pub(crate) stores: Vec<PathBuf>,
    /// Where viewers connect.
    ///
    /// 0.0.0.0:8080 opens it to the network; port 0 takes any free port.
    #[arg(long, default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// The admission policy.
    ///
    /// docs/concepts/admission.md explains each. `tenuto simulate admission` compares more.
    #[arg(long, default_value = "time-domain", value_parser = words(POLICIES))]
    pub(crate) admission: PolicyKind,
    /// Admit only streams that the loss of any one disk delays in nothing.
    ///
    /// For titles in two of the stores: room for them is reserved on the disk of the other copy.
    /// Without it, when a disk is lost, as many streams as fit go on there, and the sessions of the
    /// others end. Start-up is at least three slots.
    #[arg(long)]
    pub(crate) survive_loss: bool,
    /// Memory for media in flight.
    ///
    /// More memory lets the disk work further ahead and take larger reads.
    #[arg(long, default_value = "512MiB")]
    pub(crate) memory: ByteCount,
    /// Rate that the network may carry.
    ///
    /// Without it no stream is refused because of the network.
    #[arg(long)]
    pub(crate) network: Option<BitRate>,
    /// The scheduling period.
    #[arg(long, default_value = "500ms", value_parser = parse_duration)]
    pub(crate) slot: Duration,
    /// From admission until the first media is in memory.
    ///
    /// At least two slots. More admits more viewers at once.
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    pub(crate) startup: Duration,
    /// Bytes of one disk read.
    ///
    /// Without it chosen from the calibration, the titles' rates and the memory.
    #[arg(long)]
    pub(crate) read_size: Option<ByteCount>,
    /// Length of an HLS segment.
    ///
    /// As nearly as the key frames allow.
    #[arg(long, default_value = "4s", value_parser = parse_duration)]
    pub(crate) segment: Duration,
    /// Slow each store down to this rate.
    ///
    /// To see how a slower disk would do.
    #[arg(long)]
    pub(crate) throttle: Option<BitRate>,
    /// Slow each store down to this disk: a model's name or a file.
    ///
    /// Reads are real, but complete when the modelled disk would have completed them, seeks and
    /// rotation included; the store's length is stretched over the whole disk. `tenuto disk models`
    /// lists the names.
    #[arg(long, value_name = "MODEL", value_parser = model)]
    pub(crate) as_disk: Option<DiskModel>,
    /// Write a line per request to this file; `-` is standard error.
    #[arg(long)]
    pub(crate) access_log: Option<PathBuf>,
    /// Connections at once.
    ///
    /// One more is answered 503 and closed.
    #[arg(long, default_value = "10000", value_parser = whole::<usize>(1, 1_000_000))]
    pub(crate) max_connections: usize,
    /// How long viewers may go on after a signal to stop.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub(crate) grace: Duration,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// The admission policies that `serve` offers; `simulate` and `plan` have more, for comparison.
const POLICIES: [(&str, &str, PolicyKind); 5] = [
    (
        "time-domain",
        "guarantees every deadline, counted in the disk's time. As service-curve where no disk times \
         are known",
        PolicyKind::TimeDomain,
    ),
    (
        "service-curve",
        "guarantees every deadline, by the fewest reads measured in any number of slots. As vbrsim \
         where no such numbers were measured",
        PolicyKind::ServiceCurve,
    ),
    ("vbrsim", "guarantees every deadline, counted in reads of one size", PolicyKind::VbrSim),
    (
        "observed",
        "vbrsim with the fewest reads observed in a slot; no guarantee. As vbrsim before there is an \
         observation",
        PolicyKind::Observed,
    ),
    ("none", "admits every session; no guarantee", PolicyKind::None),
];

/// Arguments of `tenuto play`.
#[derive(clap::Args)]
pub(crate) struct PlayArgs {
    /// Playlists, manifests, MP4 files, or a server with all its titles.
    #[arg(required = true, value_name = "URL", value_parser = text())]
    pub(crate) urls: Vec<String>,
    /// Number of viewers.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 100_000))]
    pub(crate) viewers: u32,
    /// When viewers arrive.
    ///
    /// `all`: at once; `every:200ms`: one after the other; `poisson:500ms`: independently, with
    /// this mean time between two.
    #[arg(long, default_value = "all")]
    pub(crate) arrivals: Arrivals,
    /// Which viewer takes which title.
    #[arg(long, default_value = "in-turn", value_parser = words([
        ("in-turn", "the first viewer the first title, the second the second, and round again",
            Choice::RoundRobin),
        ("random", "each draws one, by the seed", Choice::Random),
    ]))]
    pub(crate) choice: Choice,
    /// How a server's titles are played.
    #[arg(long, default_value = "hls", value_parser = words([
        ("hls", "playlists and segments", Form::Hls),
        ("mp4", "one file, with byte ranges", Form::Progressive),
    ]))]
    pub(crate) form: Form,
    /// Decides arrivals and choices.
    ///
    /// The same seed gives the same viewers.
    #[arg(long, default_value = "1", value_parser = whole::<u64>(0, u64::MAX))]
    pub(crate) seed: u64,
    /// All viewers leave after this time.
    ///
    /// Without it the run ends when the last title has been played to its end.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Media that a player buffers before it begins to play.
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    pub(crate) start_buffer: Duration,
    /// Media that a player keeps ahead.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub(crate) buffer: Duration,
    #[command(flatten)]
    pub(crate) switching: SwitchingArgs,
    /// Play from here in the title.
    ///
    /// From the key frame at or before it. A Tenuto server sends only what is played.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) from: Option<Duration>,
    /// Play to here in the title.
    ///
    /// To the key frame at or after it.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) to: Option<Duration>,
    /// Play at this speed; negative: backwards.
    ///
    /// A Tenuto server reserves disk time for it: twice the speed takes twice the rate.
    #[arg(long, allow_negative_numbers = true, value_parser = speed)]
    pub(crate) speed: Option<f64>,
    /// Leave out this many groups of pictures after each one shown.
    ///
    /// A group begins with a key frame. Sound is left out, too.
    #[arg(long, value_parser = whole::<u32>(0, 1_000_000))]
    pub(crate) skip: Option<u32>,
    /// Wait at most this long for admission instead of being refused.
    ///
    /// A Tenuto server answers when there is room for the viewer, within 30 s.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) wait: Option<Duration>,
    /// A file that says what each viewer does.
    ///
    /// One act per line: `10s pause`, `15s resume`, `20s seek 2min`, `40s stop`. Times count from
    /// the viewer's arrival.
    #[arg(long)]
    pub(crate) behaviour: Option<PathBuf>,
    /// Save what the first viewer gets in this file.
    ///
    /// For HLS one file per track: film.mp4 becomes film.video.mp4 and film.audio.mp4.
    #[arg(long)]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    /// Refused viewers come again after Retry-After.
    #[arg(long)]
    pub(crate) retry: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    // Last: the heading of its options goes on until the next one.
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}
