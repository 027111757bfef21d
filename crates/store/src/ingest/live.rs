//! Recording of a live input: what can be recorded, and as one title of which all is kept.
//!
//! How an input is read is in `connection`; recordings of many titles are in `series`.

use super::address;
use super::connection::{self, Connected, ConnectionEnd, LiveError};
use super::parts::PartKeeper;
use super::probe::{FORMATS, local};
use super::series::{RecordingEvent, RecordingHost};
use crate::{
    BackgroundIo, JobProgress, RecordingLoad, Store, StoreError, TitleRecord, TitleRecorder,
    TitleWriter,
};
use media::{TitleKind, TrackDescription};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::{BitRate, Hinted, Reason};

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingInput {
    /// The standard input of this process.
    StandardInput,
    /// A named pipe, or a file, which is read to its end.
    File(PathBuf),
    /// An address with one of the schemes of [`RecordingInput::SCHEMES`].
    Address(String),
}

impl RecordingInput {
    /// The schemes of addresses that can be recorded, each with the protocols that FFmpeg may use
    /// for it.
    pub const SCHEMES: &'static [(&'static str, &'static str)] = address::SCHEMES;

    /// The input arguments, and what the receiver has as its standard input.
    pub(super) fn open(&self) -> Result<(Vec<OsString>, Stdio), StoreError> {
        let piped = |stdin| {
            let words =
                ["-protocol_whitelist", "pipe", "-format_whitelist", FORMATS, "-i", "pipe:0"];
            (words.iter().map(OsString::from).collect(), stdin)
        };
        Ok(match self {
            Self::StandardInput => piped(Stdio::inherit()),
            Self::File(path) => {
                std::fs::metadata(path).map_err(StoreError::file("open", path))?;
                // FFmpeg opens it, because opening a named pipe waits for its writer, and the
                // process can be killed while it waits.
                let words = ["-protocol_whitelist", "file", "-format_whitelist", FORMATS, "-i"];
                let words = words.iter().map(OsString::from).chain([local(path)]);
                (words.collect(), Stdio::null())
            }
            Self::Address(address) => {
                let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
                let known = Self::SCHEMES.iter().find(|(name, _)| *name == scheme);
                let protocols = known.expect("an input that was parsed").1;
                let mut words = vec!["-protocol_whitelist", protocols];
                if scheme.starts_with("rtsp") {
                    // Over UDP a lost packet is a damaged picture.
                    words.extend(["-rtsp_flags", "prefer_tcp"]);
                } else if scheme != "rtp" {
                    words.extend(["-format_whitelist", FORMATS]);
                }
                words.extend(["-i", address]);
                (words.into_iter().map(OsString::from).collect(), Stdio::null())
            }
        })
    }

    /// Whether it comes by RTSP.
    pub(super) fn is_rtsp(&self) -> bool {
        matches!(self, Self::Address(address) if address.starts_with("rtsp"))
    }

    /// Whether its sender comes to this machine.
    pub(super) fn is_listened_at(&self) -> bool {
        matches!(self, Self::Address(address) if address::is_listened_at(address))
    }

    /// Whether it is a file that can be read at any place.
    pub(super) fn is_regular_file(&self) -> bool {
        let Self::File(path) = self else { return false };
        std::fs::metadata(path).is_ok_and(|about| about.is_file())
    }

    /// What FFmpeg says, which may have the whole address in it, without passwords.
    pub(super) fn without_secrets(&self, said: &str) -> String {
        match self {
            Self::Address(address) => address::masked_in(address, said),
            _ => said.to_owned(),
        }
    }
}

impl FromStr for RecordingInput {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        if text.contains("://") {
            address::check(text)?;
            return Ok(Self::Address(text.to_owned()));
        }
        Ok(match text {
            "-" => Self::StandardInput,
            path => Self::File(path.into()),
        })
    }
}

/// The input without passwords.
impl fmt::Display for RecordingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => f.write_str("the standard input"),
            Self::File(path) => path.display().fmt(f),
            Self::Address(address) => f.write_str(&address::masked(address)),
        }
    }
}

/// The options of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingOptions {
    /// The title's name.
    pub name: String,
    /// The play-out time after which the recording ends; `None`: when the input ends.
    pub duration: Option<Duration>,
    /// The programme to record of an input with several; `None`: all streams.
    pub program: Option<u32>,
    /// The time without a byte after which an input counts as lost.
    pub silence: Duration,
    /// The rate that the disk is to hold for it; `None`: what others leave.
    pub rate: Option<BitRate>,
}

/// Why a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingEnd {
    /// The input ended, or the recording had the wanted length.
    Complete,
    /// The caller ended it.
    Stopped,
    /// The input or the store failed, for this reason.
    Failed(Reason),
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingReport {
    /// The new title.
    pub title: TitleRecord,
    /// Why it is not longer.
    pub end: RecordingEnd,
    /// The streams of the input that are not in the title.
    pub left_out: Vec<String>,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

/// Records an input until it ends, `cancel` is set, or something fails. What has been recorded is a
/// title in each case; it is an error if that is nothing.
pub fn record(
    store: &Store,
    input: &RecordingInput,
    options: &RecordingOptions,
    io: &dyn BackgroundIo,
    host: &mut dyn RecordingHost,
    cancel: &AtomicBool,
) -> Result<RecordingReport, StoreError> {
    // Reserves the name before the input is opened.
    let writer = Some(store.begin(&options.name, TitleKind::Media)?.with_io(io));
    let kept = KeptTime::begin(io, options.rate)?;
    let mut keeper = OneTitle { kept, host, writer, title: None };
    let connected = connection::record(input, options, &mut keeper, cancel);
    let connected = connected.map_err(|error| error.of_input(input))?;
    let Connected { end, left_out, said } = connected;
    let end = match end {
        ConnectionEnd::Complete => RecordingEnd::Complete,
        ConnectionEnd::Stopped => RecordingEnd::Stopped,
        ConnectionEnd::Lost(reason) | ConnectionEnd::Changed(reason) => {
            RecordingEnd::Failed(reason)
        }
        ConnectionEnd::Full(error) => RecordingEnd::Failed(error.reason()),
    };
    let Some(title) = keeper.title else {
        return Err(LiveError::Input(match end {
            RecordingEnd::Failed(reason) => reason,
            _ => connection::nothing(&said),
        })
        .of_input(input));
    };
    let notes = connection::notes(&said);
    Ok(RecordingReport { title, end, left_out, notes })
}

/// Makes one title of all that comes.
struct OneTitle<'a, 'p> {
    kept: KeptTime<'a>,
    host: &'p mut dyn RecordingHost,
    writer: Option<TitleWriter<'a>>,
    title: Option<TitleRecord>,
}

impl<'a> PartKeeper<'a> for OneTitle<'a, '_> {
    fn begin(&mut self, tracks: &[TrackDescription]) -> Result<TitleRecorder<'a>, StoreError> {
        let writer = self.writer.take().expect("the tracks come once");
        let load = self.kept.for_tracks(tracks)?;
        TitleRecorder::start(writer, tracks, load)
    }

    fn end(&mut self, recorder: TitleRecorder<'a>) -> Result<Option<TitleRecord>, StoreError> {
        self.title = recorder.finish()?;
        Ok(self.title.clone())
    }

    fn make_room(&mut self, _: &StoreError) -> bool {
        false
    }

    fn tell(&mut self, progress: JobProgress) {
        self.host.progress(progress);
    }

    fn leave_out(&mut self, streams: Vec<String>) {
        if !streams.is_empty() {
            self.host.event(RecordingEvent::LeftOut { streams });
        }
    }

    fn opens_again(&self) -> bool {
        false
    }

    fn part_length(&self) -> Option<Duration> {
        None
    }
}

/// Time of the disk that is kept for a recording: from its start, so that one that does not fit is
/// refused at once, and not when its input comes.
pub(super) struct KeptTime<'a> {
    io: &'a dyn BackgroundIo,
    load: Option<RecordingLoad>,
    are_tracks_known: bool,
}

impl<'a> KeptTime<'a> {
    /// Keeps time for pictures and sound at this rate; nothing without one.
    pub(super) fn begin(
        io: &'a dyn BackgroundIo,
        rate: Option<BitRate>,
    ) -> Result<Self, StoreError> {
        let load = rate.map(|rate| RecordingLoad { rate, tracks: USUAL_TRACKS });
        load.map_or(Ok(()), |load| Self::keep(io, load))?;
        Ok(Self { io, load, are_tracks_known: false })
    }

    /// What time is kept for. For the first tracks it is more if they are many; later ones have the
    /// time that is kept, so that a recording is not refused in its middle.
    pub(super) fn for_tracks(
        &mut self,
        tracks: &[TrackDescription],
    ) -> Result<Option<RecordingLoad>, StoreError> {
        let tracks = u32::try_from(tracks.len()).expect("tracks are few");
        if let Some(load) = self.load.as_mut().filter(|load| load.tracks < tracks)
            && !self.are_tracks_known
        {
            load.tracks = tracks;
            Self::keep(self.io, *load)?;
        }
        self.are_tracks_known = true;
        Ok(self.load)
    }

    fn keep(io: &dyn BackgroundIo, load: RecordingLoad) -> Result<(), StoreError> {
        io.keep_time(load).map_err(|reason| StoreError::RateNotHeld { rate: load.rate, reason })
    }
}

/// Tracks that time is kept for while the input is not known: pictures and sound.
const USUAL_TRACKS: u32 = 2;
