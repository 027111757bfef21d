//! The streams that FFmpeg finds in a file, and the decision which are taken, which are left out,
//! and whether the file is refused.
//!
//! The decision is separate from the probe, so that it can be tested without a file.

use super::IngestJob;
use super::process::{Process, last_words, tail};
use crate::StoreError;
use serde::Deserialize;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};
use units::ByteCount;

/// The output of `ffprobe`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ProbeOutput {
    #[serde(default)]
    streams: Vec<ProbedStream>,
    #[serde(default)]
    format: ProbedFormat,
    /// The first few packets of the file.
    #[serde(default)]
    packets: Vec<ProbedPacket>,
}

#[derive(Debug, Default, Deserialize)]
struct ProbedFormat {
    #[serde(default)]
    format_name: String,
    duration: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct ProbedStream {
    index: u32,
    #[serde(default)]
    codec_type: String,
    codec_name: Option<String>,
    #[serde(default)]
    codec_tag_string: String,
    bit_rate: Option<String>,
    duration: Option<String>,
    /// Frames of a video stream that are decoded before one can be shown.
    #[serde(default)]
    has_b_frames: u32,
    /// Pixel format of a video stream.
    #[serde(default)]
    pix_fmt: String,
    #[serde(default)]
    disposition: StreamDisposition,
    #[serde(default)]
    tags: StreamTags,
}

#[derive(Debug, Default, Deserialize)]
struct StreamDisposition {
    #[serde(default)]
    attached_pic: u8,
    #[serde(default)]
    timed_thumbnails: u8,
}

#[derive(Debug, Default, Deserialize)]
struct StreamTags {
    #[serde(alias = "LANGUAGE")]
    language: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct ProbedPacket {
    #[serde(default)]
    stream_index: u32,
    pts: Option<i64>,
    dts: Option<i64>,
    #[serde(default)]
    side_data_list: Vec<SideData>,
}

#[derive(Debug, Default, Deserialize)]
struct SideData {
    #[serde(default)]
    side_data_type: String,
}

/// The plan for the remux of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemuxPlan {
    /// The streams in the order of the title's tracks.
    pub(super) streams: Vec<SelectedStream>,
    /// The container: `mp4`, or `mov` where a codec needs it.
    pub(super) container: &'static str,
    pub(super) left_out: Vec<String>,
}

/// A stream that is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SelectedStream {
    /// The index of its file: 0 is the title's own, then its other renditions.
    pub(super) file: usize,
    /// FFmpeg's stream index in that file.
    pub(super) index: u32,
    pub(super) video: bool,
    pub(super) codec: String,
    /// The estimated length of its data in bytes; zero if unknown.
    pub(super) expected: ByteCount,
}

/// The input arguments that keep FFmpeg from reading any other file, and make it probe long enough.
pub(super) fn input(file: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = INPUT.iter().map(OsString::from).collect();
    let mut name = OsString::from("file:");
    // With `file:` and an absolute path no file name can be an option or another protocol.
    name.push(std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    words.push(name);
    words
}

/// Runs `ffprobe`.
pub(super) fn probe(job: &mut IngestJob<'_>, file: &Path) -> Result<ProbeOutput, StoreError> {
    job.tell("probing", 0)?;
    let mut words: Vec<OsString> = ASK.iter().map(OsString::from).collect();
    words.extend(input(file));
    let mut process = Process::start("ffprobe", &words)?;
    let (mut stdout, stderr) = process.pipes();
    let started = Instant::now();
    let (json, complaints, status) = std::thread::scope(|scope| {
        let json = scope.spawn(move || {
            let mut json = Vec::new();
            // A hostile file must not fill the memory.
            stdout.by_ref().take(MAX_JSON).read_to_end(&mut json).map(|_| json)
        });
        let complaints = scope.spawn(|| tail(stderr));
        // Checked often, so that a cancelled job ends at once.
        while !json.is_finished() {
            let called_off = job.tell("probing", 0).is_err();
            if called_off || started.elapsed() > PROBE_TIME {
                // The reader's pipe then ends, so the joins below return.
                process.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let json = json.join().expect("it does not panic");
        let status = process.wait();
        (json, complaints.join().expect("it does not panic"), status)
    });
    job.tell("probing", 0)?;
    if started.elapsed() > PROBE_TIME {
        return Err(job.refused("FFmpeg finds no end in looking at it"));
    }
    match (json, status) {
        (Ok(json), Ok(status)) if status.success() => serde_json::from_slice(&json)
            .map_err(|error| job.refused(format!("FFmpeg's answer makes no sense: {error}"))),
        _ => Err(job.refused(unreadable(&complaints))),
    }
}

fn unreadable(complaints: &str) -> String {
    if complaints.contains("Format not on whitelist") {
        return "it is of a kind that is no media, or refers to other files (a playlist, an image \
                sequence); take it in with --as file"
            .to_owned();
    }
    let said = last_words(complaints);
    let reason = if said.is_empty() { "it gave no reason" } else { &said };
    format!("FFmpeg cannot read it ({reason}); if its bytes are wanted, take it in with --as file")
}

impl RemuxPlan {
    /// Adds the pictures of another rendition; `name` is that of its file.
    pub(super) fn add_rendition(
        &mut self,
        other: Self,
        file: usize,
        name: &str,
    ) -> Result<(), String> {
        let (videos, sound): (Vec<SelectedStream>, Vec<SelectedStream>) =
            other.streams.into_iter().partition(|stream| stream.video);
        let [video] = <[SelectedStream; 1]>::try_from(videos)
            .map_err(|videos| format!("{name} has {} video tracks, not one", videos.len()))?;
        let pictures = self.streams.iter().filter(|stream| stream.video).count();
        // Behind the other pictures and before the sound, which is the order of a title's tracks.
        self.streams.insert(pictures, SelectedStream { file, ..video });
        let left = sound.iter().map(|taken| format!("{} stream {}", taken.codec, taken.index));
        self.left_out.extend(left.chain(other.left_out).map(|what| format!("{what} of {name}")));
        // Decided again: another rendition's codec may need another container.
        self.container = container(&self.streams)?;
        Ok(())
    }
}

impl ProbeOutput {
    /// Makes the plan; `Err` is the reason for which the file is refused.
    pub(super) fn plan(&self, size: u64) -> Result<RemuxPlan, String> {
        let mut streams = Vec::new();
        let mut left_out = Vec::new();
        for stream in &self.streams {
            let media = matches!(stream.codec_type.as_str(), "video" | "audio");
            let picture =
                stream.disposition.attached_pic != 0 || stream.disposition.timed_thumbnails != 0;
            if media && !picture {
                self.refuse_stream(stream)?;
                streams.push(stream);
            } else {
                left_out.push(stream.describe(picture));
            }
        }
        if streams.is_empty() {
            let only = match left_out.join(", ") {
                only if only.is_empty() => String::new(),
                only => format!(", but {only}"),
            };
            return Err(format!(
                "FFmpeg finds neither pictures nor sound in it{only}; take it in with --as file"
            ));
        }
        // Video goes first, whatever the file's order, because players expect it.
        streams.sort_by_key(|stream| (stream.codec_type != "video", stream.index));
        let expected = self.expected(&streams, size);
        let taken = |(stream, expected): (&&ProbedStream, ByteCount)| SelectedStream {
            file: 0,
            index: stream.index,
            video: stream.codec_type == "video",
            codec: stream.codec().to_owned(),
            expected,
        };
        let streams: Vec<SelectedStream> = streams.iter().zip(expected).map(taken).collect();
        let container = container(&streams)?;
        Ok(RemuxPlan { streams, container, left_out })
    }

    fn refuse_stream(&self, stream: &ProbedStream) -> Result<(), String> {
        // Some containers mark encryption only at the packets, others only by the sample entry's
        // tag.
        let encrypted = |packet: &ProbedPacket| {
            packet.side_data_list.iter().any(|side| side.side_data_type.starts_with("Encryption"))
        };
        let tag = stream.codec_tag_string.as_str();
        if self.packets.iter().any(encrypted) || matches!(tag, "encv" | "enca" | "drms" | "drmi") {
            return Err("it is encrypted; decrypt it first, with whoever holds the key".to_owned());
        }
        if matches!(stream.codec(), "unknown" | "none" | "") {
            return Err(format!(
                "FFmpeg does not know the codec of {}; take it in with --as file",
                stream.describe(false)
            ));
        }
        // Without reordering the times follow from the frame rate.
        if stream.has_b_frames > 0 && self.has_no_times(stream) {
            return Err("its pictures are out of order and have no times, and FFmpeg cannot work \
                 them out; give them some first, for instance with `mkvmerge -o FILM.mkv FILE`"
                .to_owned());
        }
        // A QuickTime file already has a tag that readers know.
        let tagged = self.format.format_name.starts_with("mov");
        if stream.codec() == "rawvideo" && !tagged && !RAW_IN_MOV.contains(&&*stream.pix_fmt) {
            return Err(format!(
                "no player finds out of QuickTime how its raw {} pictures lie in memory; convert \
                 them first, or take it in with --as file",
                stream.pix_fmt
            ));
        }
        Ok(())
    }

    /// Whether a stream's packets have neither decoding nor presentation times.
    fn has_no_times(&self, stream: &ProbedStream) -> bool {
        let mut packets =
            self.packets.iter().filter(|it| it.stream_index == stream.index).peekable();
        // A stream without a packet in the probed part has said nothing yet.
        packets.peek().is_some() && packets.all(|it| it.pts.is_none() && it.dts.is_none())
    }

    /// The estimated length of each stream: audio by its bit rate, which is steady; video shares
    /// the rest of the file.
    fn expected(&self, streams: &[&ProbedStream], size: u64) -> Vec<ByteCount> {
        let by_rate: Vec<Option<u64>> = streams
            .iter()
            .map(|stream| {
                let seconds = stream.duration.as_ref().or(self.format.duration.as_ref());
                let seconds: f64 = seconds?.parse().ok()?;
                let rate: f64 = stream.bit_rate.as_ref()?.parse().ok()?;
                let bytes = seconds * rate / 8.0;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "an estimate, bounded by the file's size"
                )]
                (0.0..=size as f64).contains(&bytes).then_some(bytes as u64)
            })
            .collect();
        // Video first: its bit rate varies, so the rest of the file is a better guess than its
        // header.
        let largest = (0..streams.len())
            .max_by_key(|i| (streams[*i].codec_type == "video", by_rate[*i]))
            .unwrap_or(0);
        let others: u64 =
            by_rate.iter().enumerate().filter(|(i, _)| *i != largest).filter_map(|(_, r)| *r).sum();
        (0..streams.len())
            .map(|i| match by_rate[i] {
                _ if i == largest => ByteCount(size.saturating_sub(others)),
                rate => ByteCount(rate.unwrap_or(0)),
            })
            .collect()
    }

    /// The duration in seconds that the header declares, if it has the header of a format in which
    /// FFmpeg reads one and does not itself detect a premature end.
    pub(super) fn promised(&self) -> Option<f64> {
        let telling = matches!(self.format.format_name.as_str(), "flac" | "mxf");
        self.format.duration.as_ref().filter(|_| telling)?.parse().ok()
    }

    /// Whether a packet may contain several pictures, as old AVI encoders packed them to hide that
    /// they reorder.
    pub(super) fn may_pack_pictures(&self) -> bool {
        let reordered =
            |stream: &ProbedStream| stream.codec() == "mpeg4" && stream.has_b_frames > 0;
        self.format.format_name == "avi" && self.streams.iter().any(reordered)
    }
}

impl ProbedStream {
    fn codec(&self) -> &str {
        self.codec_name.as_deref().unwrap_or("unknown")
    }

    /// A description for the user: `subtitle stream 3 (subrip, eng)`.
    fn describe(&self, picture: bool) -> String {
        let kind = match self.codec_type.as_str() {
            _ if picture => "still picture",
            "" => "unknown",
            kind => kind,
        };
        let tag = self.codec_tag_string.as_str();
        let codec = match self.codec() {
            "unknown" if !tag.is_empty() && !tag.contains('[') => tag,
            codec => codec,
        };
        match self.tags.language.as_deref() {
            Some(language) if language != "und" => {
                format!("{kind} stream {} ({codec}, {language})", self.index)
            }
            _ => format!("{kind} stream {} ({codec})", self.index),
        }
    }
}

/// MP4 if it can hold all streams, else QuickTime if it can.
fn container(streams: &[SelectedStream]) -> Result<&'static str, String> {
    if let Some(lost) = streams.iter().find(|s| LOST_IN_MOV.contains(&s.codec.as_str())) {
        return Err(format!(
            "no player finds its {} again in QuickTime, and MP4 holds none; convert it first, or take \
             it in with --as file",
            lost.codec
        ));
    }
    let needs_mov = streams.iter().find(|s| !MP4_CODECS.contains(&s.codec.as_str()));
    let needs_mp4 = streams.iter().find(|s| MP4_ONLY.contains(&s.codec.as_str()));
    match (needs_mov, needs_mp4) {
        (None, _) => Ok("mp4"),
        (Some(_), None) => Ok("mov"),
        (Some(mov), Some(mp4)) => Err(format!(
            "no one container holds its {} together with its {}; convert one of them first, or \
             take it in with --as file",
            mp4.codec, mov.codec
        )),
    }
}

/// Codecs that FFmpeg writes into MP4.
const MP4_CODECS: &[&str] = &[
    "h264",
    "hevc",
    "av1",
    "vp9",
    "mpeg2video",
    "mpeg1video",
    "mpeg4",
    "mjpeg",
    "vc1",
    "aac",
    "mp3",
    "mp2",
    "ac3",
    "eac3",
    "opus",
    "flac",
    "alac",
    "dts",
    "truehd",
];

/// Codecs of these that it does not write into QuickTime.
const MP4_ONLY: &[&str] = &["av1", "vp9", "opus", "flac", "truehd"];

/// Demuxers of containers that hold media themselves. Those that refer to other files (playlists,
/// image sequences, edit decision lists) are excluded: an untrusted file must not make FFmpeg read
/// another.
const INPUT: &[&str] = &[
    "-protocol_whitelist",
    "file",
    "-format_whitelist",
    "mov,matroska,mpegts,mpeg,mpegvideo,avi,mxf,mxf_opatom,gxf,ogg,flv,live_flv,asf,rm,wtv,ivf,nut,\
     h264,hevc,m4v,av1,obu,dv,mjpeg,vc1,wav,w64,aiff,au,caf,flac,aac,mp3,ac3,eac3,dts,dtshd,truehd,\
     amr,wv,tta,ape",
    // In transport streams audio may begin late.
    "-probesize",
    "50M",
    "-analyzeduration",
    "20M",
    "-i",
];

/// Codecs that FFmpeg writes into QuickTime with a tag that no reader recognises.
const LOST_IN_MOV: &[&str] = &["wmav1", "wmav2", "wmapro", "wmalossless", "wmavoice"];

/// Layouts of raw pictures that FFmpeg marks in QuickTime and recognises again.
const RAW_IN_MOV: &[&str] = &[
    "abgr", "argb", "ayuv64le", "bgr24", "bgra", "gray16be", "rgb24", "rgb48be", "rgb555be",
    "rgb555le", "rgb565le", "rgba", "uyvy422", "yuv444p", "yuyv422",
];

const ASK: &[&str] = &[
    "-v",
    "error",
    "-print_format",
    "json",
    "-read_intervals",
    "%+#32",
    "-show_entries",
    "format=format_name,duration:\
     stream=index,codec_type,codec_name,codec_tag_string,bit_rate,duration,has_b_frames,pix_fmt:\
     stream_disposition=attached_pic,timed_thumbnails:stream_tags=language:\
     packet=stream_index,pts,dts:packet_side_data=side_data_type",
];

/// The largest output of a probe: enough for thousands of streams.
const MAX_JSON: u64 = 8 << 20;

/// The time limit of a probe: reading the first 50 MB takes less, also on a busy disk.
const PROBE_TIME: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(json: &str) -> String {
        let probe: ProbeOutput = serde_json::from_str(json).unwrap();
        match probe.plan(1_000_000) {
            Err(reason) => format!("refused: {reason}"),
            Ok(plan) => {
                let streams: Vec<String> = plan
                    .streams
                    .iter()
                    .map(|s| format!("{} {} {}", s.index, s.codec, s.expected))
                    .collect();
                format!("{}: {}; left out: {:?}", plan.container, streams.join(", "), plan.left_out)
            }
        }
    }

    fn bare(has_b_frames: u32, packet: &str) -> String {
        format!(
            r#"{{"streams":[{{"index":0,"codec_type":"video","codec_name":"h264","has_b_frames":{has_b_frames}}}],
            "packets":[{{"stream_index":0,{packet}}}]}}"#
        )
    }

    fn raw(format: &str, layout: &str) -> String {
        format!(
            r#"{{"streams":[{{"index":0,"codec_type":"video","codec_name":"rawvideo","pix_fmt":"{layout}"}}],
            "format":{{"format_name":"{format}"}}}}"#
        )
    }

    #[test]
    fn streams_are_taken_left_out_or_refused_as_planned() {
        let video = r#"{"index":1,"codec_type":"video","codec_name":"h264"}"#;
        let audio = r#"{"index":0,"codec_type":"audio","codec_name":"aac","bit_rate":"128000","duration":"10.0"}"#;
        let cases = [
            format!(r#"{{"streams":[{audio},{video}]}}"#),
            format!(
                r#"{{"streams":[{audio},
                {{"index":1,"codec_type":"video","codec_name":"mjpeg","disposition":{{"attached_pic":1}}}},
                {{"index":2,"codec_type":"subtitle","codec_name":"subrip","tags":{{"language":"eng"}}}},
                {{"index":3,"codec_type":"data","codec_tag_string":"tmcd"}}]}}"#
            ),
            format!(
                r#"{{"streams":[{video},{{"index":2,"codec_type":"audio","codec_name":"pcm_s16le"}}]}}"#
            ),
            r#"{"streams":[{"index":0,"codec_type":"video","codec_name":"vp9"},
                {"index":1,"codec_type":"audio","codec_name":"pcm_s16le"}]}"#
                .to_owned(),
            r#"{"streams":[{"index":0,"codec_type":"video","codec_tag_string":"ZYGO"}]}"#
                .to_owned(),
            r#"{"streams":[{"index":0,"codec_type":"subtitle","codec_name":"ass"}]}"#.to_owned(),
            "{}".to_owned(),
            format!(
                r#"{{"streams":[{video}],"packets":[{{"side_data_list":[{{"side_data_type":"Encryption info"}}]}}]}}"#
            ),
            bare(2, r#""dts":0"#),
            bare(0, r#""size":"9""#),
            bare(2, r#""size":"9""#),
            r#"{"streams":[{"index":0,"codec_type":"audio","codec_name":"wmav2"}]}"#.to_owned(),
            raw("avi", "yuv420p"),
            raw("mov,mp4,m4a,3gp,3g2,mj2", "yuv420p"),
            raw("matroska,webm", "uyvy422"),
        ];
        let decided: Vec<String> = cases.iter().map(|json| decide(json)).collect();
        expect_test::expect![[r#"
            mp4: 1 h264 820.3 KiB, 0 aac 156.2 KiB; left out: []
            mp4: 0 aac 976.6 KiB; left out: ["still picture stream 1 (mjpeg)", "subtitle stream 2 (subrip, eng)", "data stream 3 (tmcd)"]
            mov: 1 h264 976.6 KiB, 2 pcm_s16le 0 B; left out: []
            refused: no one container holds its vp9 together with its pcm_s16le; convert one of them first, or take it in with --as file
            refused: FFmpeg does not know the codec of video stream 0 (ZYGO); take it in with --as file
            refused: FFmpeg finds neither pictures nor sound in it, but subtitle stream 0 (ass); take it in with --as file
            refused: FFmpeg finds neither pictures nor sound in it; take it in with --as file
            refused: it is encrypted; decrypt it first, with whoever holds the key
            mp4: 0 h264 976.6 KiB; left out: []
            mp4: 0 h264 976.6 KiB; left out: []
            refused: its pictures are out of order and have no times, and FFmpeg cannot work them out; give them some first, for instance with `mkvmerge -o FILM.mkv FILE`
            refused: no player finds its wmav2 again in QuickTime, and MP4 holds none; convert it first, or take it in with --as file
            refused: no player finds out of QuickTime how its raw yuv420p pictures lie in memory; convert them first, or take it in with --as file
            mov: 0 rawvideo 976.6 KiB; left out: []
            mov: 0 rawvideo 976.6 KiB; left out: []"#]]
        .assert_eq(&decided.join("\n"));
    }
}
