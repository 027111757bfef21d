//! The streams that FFmpeg finds in a file: `ffprobe`, and its output as data.

use super::matroska::cropped_streams;
use super::movie::MovieFacts;
use super::process::{Process, last_words};
use super::transport::Transport;
use super::{IngestJob, kinds};
use crate::StoreError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use units::Reason;

/// The output of `ffprobe`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProbeOutput {
    pub(super) program_version: ProbedVersion,
    pub(super) streams: Vec<ProbedStream>,
    pub(super) programs: Vec<ProbedProgram>,
    pub(super) chapters: Vec<ProbedChapter>,
    pub(super) format: ProbedFormat,
    /// The first few packets of the file.
    pub(super) packets: Vec<ProbedPacket>,
    /// What FFmpeg does not tell of a transport stream; empty for other files.
    #[serde(skip)]
    pub(super) transport: Transport,
    /// What FFmpeg does not tell of an MP4 or QuickTime file; empty for other files.
    #[serde(skip)]
    pub(super) movie: MovieFacts,
    /// The streams of a Matroska file of whose pictures a part is to be shown.
    #[serde(skip)]
    pub(super) cropped: Vec<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProbedVersion {
    pub(super) version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProbedFormat {
    pub(super) format_name: String,
    pub(super) duration: Option<String>,
    /// Seconds at which the first of all streams begins.
    pub(super) start_time: Option<String>,
    pub(super) tags: Tags,
}

/// Tags by name; containers differ in upper and lower case.
pub(super) type Tags = BTreeMap<String, String>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProbedProgram {
    pub(super) program_id: u32,
    pub(super) tags: Tags,
    pub(super) streams: Vec<ProgramStream>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProgramStream {
    pub(super) index: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProbedChapter {
    pub(super) start_time: String,
    pub(super) tags: Tags,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProbedStream {
    pub(super) index: u32,
    /// The packet identifier in a transport stream, the number of a track in MP4: `0x100`.
    pub(super) id: Option<String>,
    pub(super) codec_type: String,
    pub(super) codec_name: Option<String>,
    pub(super) codec_tag_string: String,
    pub(super) bit_rate: Option<String>,
    pub(super) duration: Option<String>,
    /// The duration in units of the stream's own time scale.
    pub(super) duration_ts: Option<i64>,
    pub(super) start_time: Option<String>,
    /// Packets by the container's header.
    pub(super) nb_frames: Option<String>,
    /// Frames of a video stream that are decoded before one can be shown.
    pub(super) has_b_frames: u32,
    /// Pixel format of a video stream.
    pub(super) pix_fmt: String,
    pub(super) width: Option<u32>,
    pub(super) height: Option<u32>,
    pub(super) r_frame_rate: String,
    /// Seconds of a unit of its times, as a fraction.
    pub(super) time_base: String,
    pub(super) sample_rate: Option<String>,
    pub(super) channels: Option<u32>,
    pub(super) bits_per_raw_sample: Option<String>,
    pub(super) disposition: StreamDisposition,
    pub(super) tags: Tags,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamDisposition {
    pub(super) default: u8,
    pub(super) attached_pic: u8,
    pub(super) timed_thumbnails: u8,
    pub(super) still_image: u8,
    pub(super) forced: u8,
    pub(super) hearing_impaired: u8,
    pub(super) visual_impaired: u8,
    pub(super) comment: u8,
    pub(super) dub: u8,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProbedPacket {
    pub(super) stream_index: u32,
    pub(super) pts: Option<i64>,
    pub(super) dts: Option<i64>,
    pub(super) size: Option<String>,
    pub(super) flags: String,
    pub(super) side_data_list: Vec<SideData>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SideData {
    pub(super) side_data_type: String,
}

/// The value of a tag, whatever the case of its name.
pub(super) fn tag<'a>(tags: &'a Tags, name: &str) -> Option<&'a str> {
    let found = tags.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str()).filter(|value| !value.trim().is_empty())
}

/// The input arguments that keep FFmpeg from reading any other file, and make it probe long enough.
pub(super) fn input(file: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = INPUT.iter().map(OsString::from).collect();
    words.push(local(file));
    words
}

/// The name of a file for FFmpeg: with `file:` and an absolute path no file name can be an option
/// or another protocol.
pub(super) fn local(file: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    name
}

/// Runs `ffprobe` on a file.
pub(super) fn probe(job: &mut IngestJob<'_>, file: &Path) -> Result<ProbeOutput, StoreError> {
    job.tell("probing", 0)?;
    let words = if file == job.file { job.input() } else { input(file) };
    let probed = run(words, None, &mut || job.tell("probing", 0).is_ok())?;
    job.tell("probing", 0)?;
    let mut found = probed.map_err(|failed| {
        job.refused(match failed {
            ProbeFailure::TooLong => {
                let seconds = PROBE_TIME.as_secs();
                let message = format!("FFmpeg has not found its streams within {seconds} s");
                Reason::new(message, "take it in with --as file")
            }
            ProbeFailure::NotJson(error) => kinds::unknown("FFmpeg cannot describe it", &error),
            ProbeFailure::Said(words) => kinds::unreadable(file, &words),
        })
    })?;
    let failed = StoreError::file("read", file);
    match found.format.format_name.as_str() {
        "mpegts" => found.transport = Transport::of(file).map_err(failed)?,
        name if name.starts_with("matroska") => {
            found.cropped = cropped_streams(file).map_err(failed)?;
        }
        name if name.starts_with("mov") => found.movie = MovieFacts::of(file).map_err(failed)?,
        _ => {}
    }
    Ok(found)
}

/// Why `ffprobe` has not described its input.
#[derive(Debug)]
pub(super) enum ProbeFailure {
    /// The program was killed: it took too long, or was not wanted any more.
    TooLong,
    /// The output cannot be read, for this reason.
    NotJson(String),
    /// The program failed, with these words.
    Said(String),
}

/// Runs `ffprobe` with these input arguments, and with a beginning of a stream at its standard
/// input if there is one, as long as `goes_on`.
pub(super) fn run(
    input: Vec<OsString>,
    beginning: Option<&[u8]>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Result<ProbeOutput, ProbeFailure>, StoreError> {
    ask(ASK, input, beginning, goes_on)
}

/// The numbers of the streams of which there is a packet in the beginning of a stream; as [`run`].
pub(super) fn streams_with_packets(
    input: Vec<OsString>,
    beginning: &[u8],
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Result<BTreeSet<u32>, ProbeFailure>, StoreError> {
    let counted = ask::<PacketCounts>(COUNT_PACKETS, input, Some(beginning), goes_on)?;
    Ok(counted.map(|counted| {
        let has_packets = |it: &PacketCount| {
            it.nb_read_packets.as_deref().is_some_and(|count| count != "0" && count != "N/A")
        };
        counted.streams.into_iter().filter(has_packets).map(|it| it.index).collect()
    }))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PacketCounts {
    streams: Vec<PacketCount>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PacketCount {
    index: u32,
    /// The number in words; absent for a stream without packets.
    nb_read_packets: Option<String>,
}

fn ask<T: DeserializeOwned>(
    question: &[&str],
    input: Vec<OsString>,
    beginning: Option<&[u8]>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Result<T, ProbeFailure>, StoreError> {
    let mut words: Vec<OsString> = question.iter().map(OsString::from).collect();
    words.extend(input);
    let stdin = if beginning.is_some() { Stdio::piped() } else { Stdio::null() };
    let process = Process::start_reading(stdin, "ffprobe", &words, PROBE_TIME)?;
    let started = Instant::now();
    // A hostile file must not fill the memory.
    let ended = process.finish(beginning.unwrap_or_default(), MAX_JSON, || {
        goes_on() && started.elapsed() <= PROBE_TIME
    });
    if started.elapsed() > PROBE_TIME {
        return Ok(Err(ProbeFailure::TooLong));
    }
    Ok(match (ended.output, ended.status) {
        (Ok(json), Ok(status)) if status.success() => {
            serde_json::from_slice(&json).map_err(|error| ProbeFailure::NotJson(error.to_string()))
        }
        _ => Err(ProbeFailure::Said(last_words(&ended.complaints))),
    })
}

/// Demuxers of containers that hold media themselves. Those that refer to other files (playlists,
/// image sequences, edit decision lists) are excluded: an untrusted file must not make FFmpeg read
/// another.
pub(super) const FORMATS: &str = "mov,matroska,mpegts,mpeg,mpegvideo,avi,mxf,mxf_opatom,gxf,ogg,flv,live_flv,asf,rm,wtv,ivf,nut,\
     h264,hevc,m4v,av1,obu,dv,mjpeg,vc1,wav,w64,aiff,au,caf,flac,aac,mp3,ac3,eac3,dts,dtshd,truehd,\
     amr,loas,wv,tta,ape";

/// The input arguments of a file.
const INPUT: &[&str] = &[
    "-protocol_whitelist",
    "file",
    "-format_whitelist",
    FORMATS,
    // In transport streams audio may begin late.
    "-probesize",
    "50M",
    "-analyzeduration",
    "20M",
    "-i",
];

const ASK: &[&str] = &[
    "-v",
    "error",
    "-print_format",
    "json",
    "-read_intervals",
    "%+#32",
    "-show_entries",
    "program_version=version:format=format_name,duration,start_time:\
     format_tags=major_brand,title,artist,album,album_artist,composer,performer,comment,\
     description,synopsis,lyrics,date,genre,copyright,publisher,encoded_by,track,disc,show,\
     season_number,episode_id,episode_sort,network,location,time_reference,timecode:\
     stream=index,id,codec_type,codec_name,codec_tag_string,bit_rate,start_time,duration,\
     duration_ts,nb_frames,has_b_frames,pix_fmt,width,height,r_frame_rate,time_base,sample_rate,channels,bits_per_raw_sample:\
     stream_disposition=default,attached_pic,timed_thumbnails,still_image,forced,hearing_impaired,\
     visual_impaired,comment,dub:\
     stream_tags=language,enc_key_id,alpha_mode,title,artist,album,album_artist,composer,performer,comment,\
     description,synopsis,lyrics,date,genre,copyright,publisher,encoded_by,track,disc,show,\
     season_number,episode_id,episode_sort,network,location,time_reference,timecode:\
     program=program_id:program_tags=service_name:program_stream=index:\
     chapter=start_time:chapter_tags=title:\
     packet=stream_index,pts,dts,size,flags:packet_side_data=side_data_type",
];

const COUNT_PACKETS: &[&str] = &[
    "-v",
    "error",
    "-print_format",
    "json",
    "-count_packets",
    "-show_entries",
    "stream=index,nb_read_packets",
];

/// The largest output of a probe: enough for thousands of streams.
const MAX_JSON: u64 = 8 << 20;

/// The time limit of a probe: reading the first 50 MB takes less, also on a busy disk.
const PROBE_TIME: Duration = Duration::from_secs(120);
