//! The decision which streams of a file are taken, which are left out, and whether the file is
//! refused.
//!
//! The decision is separate from the probe, so that it can be tested without a file.

use super::codecs::{RAW_IN_MOV, container, holder};
use super::kinds;
use super::probe::{ProbeOutput, ProbedPacket, ProbedStream, tag};
use super::text::TextStream;
use media::TextDescription;
use units::{ByteCount, Reason};

/// The plan for the remux of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RemuxPlan {
    /// The streams in the order of the title's tracks.
    pub(super) streams: Vec<SelectedStream>,
    /// The container: `mp4`, or `mov` where a codec needs it.
    pub(super) container: &'static str,
    /// The text tracks, of the title's own file.
    pub(super) texts: Vec<TextStream>,
    pub(super) left_out: Vec<String>,
    /// Seconds from the start after which the edit lists show nothing more; `None` if they show all
    /// up to the end.
    pub(super) ends: Option<f64>,
    /// Seconds by which each further file begins later than FFmpeg would have it: its first picture
    /// then has the time of the first file's, which has sound before it perhaps.
    pub(super) later: Vec<f64>,
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
    /// Whether its packets have decoding times only, which are its presentation times, too.
    pub(super) decoding_times_only: bool,
    /// The clean aperture of its pictures, which FFmpeg leaves out: the content of the box `clap`.
    pub(super) aperture: Option<[u8; 32]>,
    /// The estimated length of its data in bytes; zero if unknown.
    pub(super) expected: ByteCount,
}

impl RemuxPlan {
    /// Adds the pictures of another rendition; `name` is that of its file.
    pub(super) fn add_rendition(
        &mut self,
        other: Self,
        file: usize,
        name: &str,
    ) -> Result<(), Reason> {
        let (videos, sound): (Vec<SelectedStream>, Vec<SelectedStream>) =
            other.streams.into_iter().partition(|stream| stream.video);
        let [video] = <[SelectedStream; 1]>::try_from(videos).map_err(|videos| {
            Reason::from(format!("{name} has {} video tracks, not one", videos.len()))
        })?;
        let pictures = self.streams.iter().filter(|stream| stream.video).count();
        // Behind the other pictures and before the sound, which is the order of a title's tracks.
        self.streams.insert(pictures, SelectedStream { file, ..video });
        let left = sound.iter().map(|taken| format!("{} stream {}", taken.codec, taken.index));
        let left = left.chain(other.texts.into_iter().map(|text| text.name));
        self.left_out.extend(left.chain(other.left_out).map(|what| format!("{what} of {name}")));
        // Decided again: another rendition's codec may need another container.
        self.container = container(self.streams.iter().map(|stream| stream.codec.as_str()))?;
        Ok(())
    }
}

/// The refusal of an input that has these programmes, and not the one that is wanted.
pub(super) fn no_program(wanted: u32, names: &[String]) -> Reason {
    match names {
        [] => Reason::new("it has no programmes", "leave --program out"),
        _ => {
            let message = format!("it has no programme {wanted}");
            Reason::new(message, format!("it has: {}", names.join(", ")))
        }
    }
}

impl ProbeOutput {
    /// Makes the plan for a file of `size` bytes, from one of its programmes if it has several;
    /// `Err` is the reason for which the file is refused.
    pub(super) fn plan(&self, size: u64, program: Option<u32>) -> Result<RemuxPlan, Reason> {
        if self.movie.cuts_the_middle {
            return Err(Reason::new(CUT, CUT_HINT));
        }
        let (mut left_out, mut texts) = (Vec::new(), Vec::new());
        let mut streams = Vec::new();
        for stream in self.streams_of_program(program, &mut left_out)? {
            // A scrambled stream looks like an absent one to FFmpeg.
            if stream.is_media() && stream.pid().is_some_and(|pid| self.transport.is_scrambled(pid))
            {
                return Err(kinds::encrypted());
            }
            match self.left_out_as(stream) {
                Some(what) => left_out.extend(what),
                None if stream.is_media() => {
                    self.refuse_stream(stream)?;
                    streams.push(stream);
                }
                None => texts.push(stream.text()),
            }
        }
        if streams.is_empty() {
            left_out.extend(texts.into_iter().map(|text| text.name));
            return Err(nothing_to_play(&left_out));
        }
        // The title has room for no more.
        left_out.extend(texts.drain(texts.len().min(MAX_TEXTS)..).map(|text| text.name));
        leave_out_unplayable(&mut streams, &mut left_out)?;
        self.choose_video(&mut streams, &mut left_out);
        // Video goes first, whatever the file's order, because players expect it.
        streams.sort_by_key(|stream| (!stream.is_video(), stream.index));
        let cropped = streams.iter().filter(|stream| self.cropped.contains(&stream.index));
        left_out.extend(cropped.map(|stream| format!("the cropping of {}", stream.describe(""))));
        let expected = self.expected(&streams, size);
        let ends = self.cut_end(&streams);
        let taken = |(stream, expected): (&&ProbedStream, ByteCount)| SelectedStream {
            file: 0,
            index: stream.index,
            video: stream.is_video(),
            codec: stream.codec().to_owned(),
            decoding_times_only: self.has_decoding_times_only(stream),
            aperture: self.aperture(stream),
            expected,
        };
        let streams: Vec<SelectedStream> = streams.iter().zip(expected).map(taken).collect();
        let container = container(streams.iter().map(|stream| stream.codec.as_str()))?;
        Ok(RemuxPlan { streams, container, texts, left_out, ends, later: Vec::new() })
    }

    /// The streams of the chosen programme; all streams where there is only one.
    fn streams_of_program(
        &self,
        wanted: Option<u32>,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<&ProbedStream>, Reason> {
        let plays = |index: u32| self.streams.iter().any(|s| s.index == index && s.is_media());
        let programs: Vec<_> =
            self.programs.iter().filter(|p| p.streams.iter().any(|s| plays(s.index))).collect();
        let named = |program: &&&super::probe::ProbedProgram| {
            let name = tag(&program.tags, "service_name");
            let in_brackets = name.map_or(String::new(), |name| format!(" ({name})"));
            format!("{}{in_brackets}", program.program_id)
        };
        let names = || programs.iter().map(|program| named(&program)).collect::<Vec<_>>();
        let Some(wanted) = wanted else {
            if programs.len() > 1 {
                let message =
                    format!("it has {} programmes: {}", programs.len(), names().join(", "));
                return Err(Reason::new(message, "take one in with --program NUMBER"));
            }
            return Ok(self.streams.iter().collect());
        };
        let chosen = programs.iter().find(|program| program.program_id == wanted);
        let chosen = chosen.ok_or_else(|| no_program(wanted, &names()))?;
        let others = programs.iter().filter(|program| program.program_id != wanted);
        left_out.extend(others.map(|program| format!("programme {}", named(&program))));
        let of_it = |stream: &&ProbedStream| chosen.streams.iter().any(|s| s.index == stream.index);
        Ok(self.streams.iter().filter(of_it).collect())
    }

    /// Whether a stream is to be a track of the title, if something comes of it.
    pub(super) fn is_wanted(&self, stream: &ProbedStream) -> bool {
        stream.is_media() && self.left_out_as(stream).is_none()
    }

    /// The words for a stream that is no track of the title, `None` for one that may be; no words
    /// for one that `metadata` names.
    fn left_out_as(&self, stream: &ProbedStream) -> Option<Option<String>> {
        if stream.disposition.attached_pic != 0 || stream.disposition.timed_thumbnails != 0 {
            return Some(Some(stream.describe("cover picture")));
        }
        if stream.is_media() {
            // A transport stream may announce a track that it does not have, and FFmpeg may know no
            // more of a codec than its name.
            let absent = match stream.is_video() {
                true => stream.width == Some(0),
                false => stream.channels == Some(0),
            };
            let has_packets = self.packets.iter().any(|it| it.stream_index == stream.index);
            let why = if has_packets { "which FFmpeg cannot read" } else { "which is empty" };
            return absent.then(|| Some(format!("{}, {why}", stream.describe(""))));
        }
        let chapters = !self.chapters.is_empty() && stream.codec_tag_string == "text";
        let timecode = stream.codec_tag_string == "tmcd" && tag(&stream.tags, "timecode").is_some();
        if stream.codec_type == "subtitle" && !chapters {
            return stream.not_text().map(|why| Some(format!("{}{why}", stream.describe(""))));
        }
        Some((!chapters && !timecode).then(|| stream.describe("")))
    }

    fn refuse_stream(&self, stream: &ProbedStream) -> Result<(), Reason> {
        // Some containers mark encryption only at the packets, others only by the sample entry's
        // tag or by the identifier of a key.
        let encrypted = |packet: &ProbedPacket| {
            packet.side_data_list.iter().any(|side| side.side_data_type.starts_with("Encryption"))
        };
        let mark = stream.codec_tag_string.as_str();
        if self.packets.iter().any(encrypted)
            || matches!(mark, "encv" | "enca" | "drms" | "drmi")
            || tag(&stream.tags, "enc_key_id").is_some()
        {
            return Err(kinds::encrypted());
        }
        let brand = tag(&self.format.tags, "major_brand").unwrap_or_default().trim();
        // Pictures of a HEIF file are items without a sample entry, sequences are tracks.
        if matches!(brand, "avif" | "heic" | "heix" | "mif1") && mark.starts_with("[0]") {
            return Err(kinds::still_picture("an AVIF or HEIF picture"));
        }
        if stream.codec() == "aac"
            && let Some(layouts) = stream.pid().and_then(|pid| self.transport.changing_aac(pid))
        {
            let track = stream.describe("");
            return Err(Reason::new(
                format!(
                    "{track} changes its form in the middle ({layouts}), which a track of MP4 \
                     cannot"
                ),
                "convert it first, for instance with `ffmpeg -i FILE -c:v copy -c:a aac NEW.mkv`, \
                 or take it in with --as file",
            ));
        }
        if stream.track().is_some_and(|track| self.movie.several_entries.contains(&track)) {
            let message = format!(
                "{} changes its parameter sets in the middle, by a second sample entry, and FFmpeg \
                 copies one alone",
                stream.describe("")
            );
            return Err(Reason::new(message, CUT_HINT));
        }
        if stream.codec() == "flac" && stream.bits_per_raw_sample.as_deref() == Some("32") {
            self.refuse_flac_of_32_bits()?;
        }
        let is_wave = matches!(self.format.format_name.as_str(), "wav" | "w64");
        if is_wave && matches!(stream.codec(), "vorbis" | "speex") {
            return Err(Reason::new(
                format!(
                    "its audio is {} in a WAVE file, which does not say where a packet ends",
                    stream.codec()
                ),
                "convert the original again, into Ogg or Matroska, or take it in with --as file",
            ));
        }
        // Without reordering the times follow from the frame rate or the decoding times.
        let untimed = self.has_no_times(stream) || self.has_decoding_times_only(stream);
        if stream.has_b_frames > 0 && untimed {
            return Err(Reason::new(
                "its pictures are not in the order in which they are shown, and have no times",
                "add times first, for instance with `mkvmerge -o NEW.mkv FILE`",
            ));
        }
        // FFmpeg keeps this code of QuickTime, and writes it for the others, too.
        let kept = self.format.format_name.starts_with("mov") && mark == "raw ";
        if stream.codec() == "rawvideo" && !kept {
            return self.refuse_raw_pictures(stream);
        }
        Ok(())
    }

    fn refuse_raw_pictures(&self, stream: &ProbedStream) -> Result<(), Reason> {
        let layout = RAW_IN_MOV.iter().find(|(name, _)| *name == stream.pix_fmt);
        let Some((_, bits)) = layout else {
            let message = format!(
                "its pictures are uncompressed in the pixel format {}, for which QuickTime has no \
                 code",
                stream.pix_fmt
            );
            let hint = "convert it first, for instance with `ffmpeg -i FILE -c:v ffv1 -c:a copy \
                        NEW.mkv`, or take it in with --as file";
            return Err(Reason::new(message, hint));
        };
        // AVI files of codecs that have no code there are marked as uncompressed by some writers.
        let pixels = u64::from(stream.width.unwrap_or(0)) * u64::from(stream.height.unwrap_or(0));
        let whole = pixels * bits / 8;
        let mut own = self.packets.iter().filter(|it| it.stream_index == stream.index);
        match own.find_map(|it| it.size.as_ref()?.parse::<u64>().ok().filter(|it| *it < whole)) {
            Some(size) => Err(Reason::new(
                format!(
                    "its pictures are marked as uncompressed ({}), but one has {size} bytes \
                     instead of {whole}: no player can decode them",
                    stream.pix_fmt
                ),
                "convert the original again, into a container that has a code for its codec, or \
                 take it in with --as file",
            )),
            None => Ok(()),
        }
    }

    fn refuse_flac_of_32_bits(&self) -> Result<(), Reason> {
        let version = self.program_version.version.as_str();
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        match major {
            Some(major) if major < FLAC_OF_32_BITS => Err(Reason::new(
                format!("its audio is FLAC of 32 bits, which FFmpeg {version} cannot read"),
                format!(
                    "use FFmpeg {FLAC_OF_32_BITS} or later, or convert it first, for instance \
                     with `flac -d -o NEW.wav FILE`"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The clean aperture of a stream of an MP4 or QuickTime file.
    fn aperture(&self, stream: &ProbedStream) -> Option<[u8; 32]> {
        let track = stream.track().filter(|_| stream.is_video())?;
        let found = self.movie.apertures.iter().find(|(number, _)| *number == track);
        found.map(|(_, aperture)| *aperture)
    }

    /// Whether a stream's packets have neither decoding nor presentation times.
    fn has_no_times(&self, stream: &ProbedStream) -> bool {
        let mut packets =
            self.packets.iter().filter(|it| it.stream_index == stream.index).peekable();
        // A stream without a packet in the probed part has said nothing yet.
        packets.peek().is_some() && packets.all(|it| it.pts.is_none() && it.dts.is_none())
    }

    /// Seconds from the start of the file to the first picture of the stream that a plan takes of
    /// it; zero where that is not known.
    pub(super) fn first_picture(&self, plan: &RemuxPlan) -> f64 {
        let seconds = |text: &Option<String>| text.as_ref()?.parse::<f64>().ok();
        let video = plan.streams.iter().find(|taken| taken.video && taken.file == 0);
        let stream = video.and_then(|video| self.streams.iter().find(|it| it.index == video.index));
        let first = stream.and_then(|stream| seconds(&stream.start_time));
        first.zip(seconds(&self.format.start_time)).map_or(0.0, |(first, start)| first - start)
    }

    /// Whether a stream's packets have no presentation times and FFmpeg does not derive them: AVI
    /// and ASF have none, and of H.264 and HEVC FFmpeg takes those of the next packet instead.
    fn has_decoding_times_only(&self, stream: &ProbedStream) -> bool {
        let mut packets =
            self.packets.iter().filter(|it| it.stream_index == stream.index).peekable();
        matches!(stream.codec(), "h264" | "hevc")
            && packets.peek().is_some_and(|it| it.dts.is_some())
            && packets.all(|it| it.pts.is_none())
    }

    /// Seconds after which an edit list of MP4 or QuickTime hides pictures that FFmpeg copies.
    fn cut_end(&self, streams: &[&ProbedStream]) -> Option<f64> {
        let hides = |stream: &&&ProbedStream| {
            let count = stream.nb_frames.as_ref().and_then(|count| count.parse::<f64>().ok());
            let rate = stream.frame_rate();
            // The durations that FFmpeg tells are those of the edit lists.
            let shown = stream.seconds().zip(rate).map(|(seconds, rate)| seconds * rate);
            count.zip(shown).is_some_and(|(count, shown)| count > shown * 1.02 + 1.0)
        };
        let is_mov = self.format.format_name.starts_with("mov");
        if !is_mov || !streams.iter().filter(|stream| stream.is_video()).any(|it| hides(&it)) {
            return None;
        }
        let start = |stream: &&&ProbedStream| stream.start_time.as_ref()?.parse::<f64>().ok();
        let starts: Option<Vec<f64>> = streams.iter().map(|stream| start(&stream)).collect();
        let lengths: Option<Vec<f64>> = streams.iter().map(|stream| stream.seconds()).collect();
        let (starts, lengths) = (starts?, lengths?);
        // Writers that do not know the length of an edit say zero.
        if lengths.iter().any(|length| *length <= 0.0) {
            return None;
        }
        let first = starts.iter().copied().fold(f64::MAX, f64::min);
        let ends = starts.iter().zip(lengths).map(|(start, length)| start + length - first);
        // A picture or two more than are shown, so that rounding loses none.
        Some(ends.fold(0.0, f64::max) + 0.05)
    }

    /// Keeps one video track: the default one, of several the longest, of these the largest. What
    /// lasts less than half of the longest is not the film: phones put a track of one or two
    /// pictures first.
    fn choose_video(&self, streams: &mut Vec<&ProbedStream>, left_out: &mut Vec<String>) {
        let lengths = streams.iter().filter(|stream| stream.is_video());
        let longest = lengths.filter_map(|stream| stream.milliseconds()).max().unwrap_or(0);
        let rank = |stream: &ProbedStream| {
            let area = u64::from(stream.width.unwrap_or(0)) * u64::from(stream.height.unwrap_or(0));
            let length = stream.milliseconds();
            let is_film = length.is_none_or(|length| length >= longest / 2);
            (is_film, stream.disposition.default, length.unwrap_or(0), area)
        };
        let videos = streams.iter().filter(|stream| stream.is_video());
        // The first of equal ones.
        let best = videos.rev().max_by_key(|stream| rank(stream)).map(|stream| stream.index);
        let (kept, others): (Vec<&ProbedStream>, Vec<_>) =
            streams.iter().partition(|it| !it.is_video() || Some(it.index) == best);
        *streams = kept;
        left_out.extend(others.into_iter().map(ProbedStream::describe_video));
    }

    /// The estimated length of each stream: audio by its bit rate, which is steady; video shares
    /// the rest of the file.
    fn expected(&self, streams: &[&ProbedStream], size: u64) -> Vec<ByteCount> {
        let by_rate: Vec<Option<u64>> = streams
            .iter()
            .map(|stream| {
                let duration = stream.duration.as_ref().or(self.format.duration.as_ref());
                let seconds: f64 = duration?.parse().ok()?;
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
        let largest =
            (0..streams.len()).max_by_key(|i| (streams[*i].is_video(), by_rate[*i])).unwrap_or(0);
        let others: u64 =
            by_rate.iter().enumerate().filter(|(i, _)| *i != largest).filter_map(|(_, r)| *r).sum();
        (0..streams.len())
            .map(|i| match by_rate[i] {
                _ if i == largest => ByteCount(size.saturating_sub(others)),
                rate => ByteCount(rate.unwrap_or(0)),
            })
            .collect()
    }

    /// Whether a packet may contain several pictures, as old AVI encoders packed them to hide that
    /// they reorder.
    pub(super) fn may_pack_pictures(&self) -> bool {
        let reordered =
            |stream: &ProbedStream| stream.codec() == "mpeg4" && stream.has_b_frames > 0;
        self.format.format_name == "avi" && self.streams.iter().any(reordered)
    }
}

fn nothing_to_play(left_out: &[String]) -> Reason {
    let only = match left_out.join(", ") {
        only if only.is_empty() => String::new(),
        only => format!(", but {only}"),
    };
    let message = format!("FFmpeg finds neither pictures nor sound in it{only}");
    Reason::new(message, "take it in with --as file")
}

/// Leaves out tracks in codecs that are not taken in, as long as another track of the same kind
/// remains: a film without its only sound would be another film.
fn leave_out_unplayable(
    streams: &mut Vec<&ProbedStream>,
    left_out: &mut Vec<String>,
) -> Result<(), Reason> {
    let (taken, others): (Vec<&ProbedStream>, Vec<&ProbedStream>) =
        streams.iter().partition(|stream| holder(stream.codec()).is_some());
    for other in others {
        if !taken.iter().any(|stream| stream.codec_type == other.codec_type) {
            let track = other.describe("");
            return Err(match other.codec() {
                "unknown" | "none" | "" => Reason::new(
                    format!("FFmpeg does not know the codec of {track}"),
                    "take it in with --as file",
                ),
                codec => kinds::codec_refusal(codec, &track, other.is_video()),
            });
        }
        left_out.push(format!("{}, in a codec that no player reads from MP4", other.describe("")));
    }
    *streams = taken;
    Ok(())
}

impl ProbedStream {
    pub(super) fn codec(&self) -> &str {
        self.codec_name.as_deref().unwrap_or("unknown")
    }

    /// The packet identifier in a transport stream.
    fn pid(&self) -> Option<u16> {
        u16::from_str_radix(self.id.as_ref()?.strip_prefix("0x")?, 16).ok()
    }

    /// The number of the track in MP4 and QuickTime.
    pub(super) fn track(&self) -> Option<u32> {
        u32::from_str_radix(self.id.as_ref()?.strip_prefix("0x")?, 16).ok()
    }

    pub(super) fn is_video(&self) -> bool {
        self.codec_type == "video"
    }

    fn is_media(&self) -> bool {
        matches!(self.codec_type.as_str(), "video" | "audio")
    }

    /// The duration that the container declares.
    pub(super) fn seconds(&self) -> Option<f64> {
        // All bits set: not known when the header was written (ISO/IEC 14496-12, 8.4.2.3).
        let unknown = self.duration_ts == Some(i64::from(u32::MAX));
        self.duration.as_ref().filter(|_| !unknown)?.parse().ok()
    }

    /// The frames per second of video whose distances are equal.
    pub(super) fn frame_rate(&self) -> Option<f64> {
        quotient(&self.r_frame_rate)
    }

    /// Seconds of a unit of its times.
    pub(super) fn time_unit(&self) -> Option<f64> {
        quotient(&self.time_base)
    }

    /// The reason, behind its name, why a subtitle track is no text track.
    fn not_text(&self) -> Option<&'static str> {
        match self.codec() {
            codec if TEXT_CODECS.contains(&codec) => None,
            "hdmv_pgs_subtitle" | "dvd_subtitle" | "dvb_subtitle" | "xsub" => {
                Some(", which is pictures and not text")
            }
            _ => Some(", which FFmpeg does not convert to text"),
        }
    }

    /// A text track.
    fn text(&self) -> TextStream {
        let text = |name: &str| tag(&self.tags, name).unwrap_or_default();
        let shown =
            |text: &str| text.trim().chars().filter(|c| !c.is_control()).take(MAX_TITLE).collect();
        TextStream {
            index: self.index,
            name: self.describe(""),
            description: TextDescription {
                language: text("language").to_owned(),
                title: shown(text("title")),
                default: self.disposition.default != 0,
                forced: self.disposition.forced != 0,
                hearing_impaired: self.disposition.hearing_impaired != 0,
            },
        }
    }

    fn milliseconds(&self) -> Option<u64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates; durations are compared only"
        )]
        self.seconds().map(|seconds| (seconds * 1000.0) as u64)
    }

    /// A description for the user: `subtitle stream 3 (subrip, eng)`. `kind`: empty for FFmpeg's.
    pub(super) fn describe(&self, kind: &str) -> String {
        let kind = match (kind, self.codec_type.as_str()) {
            ("", "") => "unknown",
            ("", kind) | (kind, _) => kind,
        };
        let mark = self.codec_tag_string.as_str();
        let codec = match self.codec() {
            "unknown" if !mark.is_empty() && !mark.contains('[') => mark,
            codec => codec,
        };
        match tag(&self.tags, "language") {
            Some(language) if language != "und" => {
                format!("{kind} stream {} ({codec}, {language})", self.index)
            }
            _ => format!("{kind} stream {} ({codec})", self.index),
        }
    }

    /// A description of a further video track: `video stream 1 (h264, 640x360, 3.0 s)`.
    fn describe_video(&self) -> String {
        let mut about = vec![self.codec().to_owned()];
        if let (Some(width), Some(height)) = (self.width, self.height) {
            about.push(format!("{width}x{height}"));
        }
        about.extend(self.seconds().map(|seconds| format!("{seconds:.1} s")));
        format!("video stream {} ({})", self.index, about.join(", "))
    }
}

const CUT: &str = "its edit list cuts out or repeats a part in the middle, which cannot be kept \
                   without converting it";
const CUT_HINT: &str = "convert it first, for instance with `ffmpeg -i FILE -c:v libx264 -c:a aac \
                        NEW.mp4`, or take it in with --as file";

/// The text formats that FFmpeg decodes, by its names.
const TEXT_CODECS: &[&str] = &[
    "ass",
    "eia_608",
    "jacosub",
    "microdvd",
    "mov_text",
    "mpl2",
    "pjs",
    "realtext",
    "sami",
    "srt",
    "ssa",
    "stl",
    "subrip",
    "subviewer",
    "subviewer1",
    "text",
    "vplayer",
    "webvtt",
];

/// The most text tracks of a title: two for each language of the European Union.
const MAX_TEXTS: usize = 64;

/// The most characters of the title of a text track: more than a menu shows.
const MAX_TITLE: usize = 200;

/// The first FFmpeg version that reads FLAC of 32 bits.
const FLAC_OF_32_BITS: u32 = 6;

/// The value of `25/1`.
fn quotient(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/')?;
    let value = above.parse::<f64>().ok()? / below.parse::<f64>().ok()?;
    Some(value).filter(|value| value.is_finite() && *value > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Hinted;

    fn decide(json: &str) -> String {
        let probe: ProbeOutput = serde_json::from_str(json).unwrap();
        match probe.plan(1_000_000, None) {
            Err(reason) => format!("refused: {}", reason.one_line()),
            Ok(plan) => {
                let streams: Vec<String> = plan
                    .streams
                    .iter()
                    .map(|s| format!("{} {} {}", s.index, s.codec, s.expected))
                    .collect();
                let texts: Vec<&str> = plan.texts.iter().map(|text| text.name.as_str()).collect();
                let text = if texts.is_empty() { String::new() } else { format!("; {texts:?}") };
                let (container, left_out) = (plan.container, plan.left_out);
                format!("{container}: {}{text}; left out: {left_out:?}", streams.join(", "))
            }
        }
    }

    fn bare(has_b_frames: u32, packet: &str) -> String {
        format!(
            r#"{{"streams":[{{"index":0,"codec_type":"video","codec_name":"h264","has_b_frames":{has_b_frames}}}],
            "packets":[{{"stream_index":0,{packet}}}]}}"#
        )
    }

    fn raw(format: &str, code: &str, layout: &str) -> String {
        format!(
            r#"{{"streams":[{{"index":0,"codec_type":"video","codec_name":"rawvideo",
            "codec_tag_string":"{code}","pix_fmt":"{layout}"}}],
            "format":{{"format_name":"{format}"}}}}"#
        )
    }

    fn raw_packet(size: &str) -> String {
        format!(
            r#"{{"streams":[{{"index":0,"codec_type":"video","codec_name":"rawvideo",
            "pix_fmt":"bgra","width":4,"height":4}}],
            "packets":[{{"stream_index":0,"size":"64"}},{{"stream_index":0,"size":"{size}"}}],
            "format":{{"format_name":"avi"}}}}"#
        )
    }

    #[test]
    fn of_several_video_tracks_the_default_one_is_taken_unless_it_is_a_scrap() {
        let video = |index, default, duration, width| {
            format!(
                r#"{{"index":{index},"codec_type":"video","codec_name":"h264","duration":"{duration}",
                "width":{width},"height":90,"disposition":{{"default":{default}}}}}"#
            )
        };
        let cases = [
            ("the default one", [video(0, 0, "9.0", 320), video(1, 1, "8.0", 160)], 1),
            ("a scrap is the default", [video(0, 1, "0.08", 320), video(1, 0, "4.0", 160)], 1),
            ("the longer one", [video(0, 0, "4.0", 320), video(1, 0, "4.5", 160)], 1),
            ("the larger one", [video(0, 0, "4.0", 160), video(1, 0, "4.0", 320)], 1),
            ("the first of equal ones", [video(0, 0, "4.0", 160), video(1, 0, "4.0", 160)], 0),
            ("lengths are not known", [video(0, 0, "", 320), video(1, 1, "", 160)], 1),
        ];
        for (name, streams, taken) in cases {
            let said = decide(&format!(r#"{{"streams":[{}]}}"#, streams.join(",")));
            assert!(said.starts_with(&format!("mp4: {taken} h264 ")), "{name}: {said}");
            assert!(said.contains(&format!("[\"video stream {} (", 1 - taken)), "{name}: {said}");
        }
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
                {{"index":3,"codec_type":"data","codec_tag_string":"tmcd"}},
                {{"index":4,"codec_type":"subtitle","codec_name":"hdmv_pgs_subtitle"}},
                {{"index":5,"codec_type":"subtitle","codec_name":"ttml"}}]}}"#
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
            bare(0, r#""dts":0"#),
            bare(0, r#""size":"9""#),
            bare(2, r#""size":"9""#),
            r#"{"streams":[{"index":0,"codec_type":"audio","codec_name":"wmav2"}]}"#.to_owned(),
            raw("avi", "I420", "yuv420p"),
            raw("mov,mp4,m4a,3gp,3g2,mj2", "I420", "yuv420p"),
            raw("mov,mp4,m4a,3gp,3g2,mj2", "raw ", "gray"),
            raw("matroska,webm", "UYVY", "uyvy422"),
            raw_packet("63"),
            raw_packet("64"),
            r#"{"streams":[{"index":0,"codec_type":"audio","codec_name":"vorbis"}],
            "format":{"format_name":"w64"}}"#
                .to_owned(),
            r#"{"streams":[{"index":0,"codec_type":"audio","codec_name":"vorbis","duration":"1"}],
            "format":{"format_name":"ogg"}}"#
                .to_owned(),
        ];
        let decided: Vec<String> = cases.iter().map(|json| decide(json)).collect();
        expect_test::expect![[r#"
            mp4: 1 h264 840 kB, 0 aac 160 kB; left out: []
            mp4: 0 aac 1 MB; ["subtitle stream 2 (subrip, eng)"]; left out: ["cover picture stream 1 (mjpeg)", "data stream 3 (tmcd)", "subtitle stream 4 (hdmv_pgs_subtitle), which is pictures and not text", "subtitle stream 5 (ttml), which FFmpeg does not convert to text"]
            mov: 1 h264 1 MB, 2 pcm_s16le 0 B; left out: []
            refused: only MP4 holds its vp9 and only QuickTime its pcm_s16le, so that no file holds both; convert the sound first, for instance with `ffmpeg -i FILE -c:v copy -c:a flac NEW.mkv`, or take it in with --as file
            refused: FFmpeg does not know the codec of video stream 0 (ZYGO); take it in with --as file
            refused: FFmpeg finds neither pictures nor sound in it, but subtitle stream 0 (ass); take it in with --as file
            refused: FFmpeg finds neither pictures nor sound in it; take it in with --as file
            refused: it is encrypted; decrypt it first, with the key of whoever encrypted it
            refused: its pictures are not in the order in which they are shown, and have no times; add times first, for instance with `mkvmerge -o NEW.mkv FILE`
            mp4: 0 h264 1 MB; left out: []
            mp4: 0 h264 1 MB; left out: []
            refused: its pictures are not in the order in which they are shown, and have no times; add times first, for instance with `mkvmerge -o NEW.mkv FILE`
            refused: audio stream 0 (wmav2) is Windows Media Audio, which no player reads from MP4 or QuickTime; convert it first, for instance with `ffmpeg -i FILE -c:v copy -c:a aac NEW.mkv`, or take it in with --as file
            refused: its pictures are uncompressed in the pixel format yuv420p, for which QuickTime has no code; convert it first, for instance with `ffmpeg -i FILE -c:v ffv1 -c:a copy NEW.mkv`, or take it in with --as file
            refused: its pictures are uncompressed in the pixel format yuv420p, for which QuickTime has no code; convert it first, for instance with `ffmpeg -i FILE -c:v ffv1 -c:a copy NEW.mkv`, or take it in with --as file
            mov: 0 rawvideo 1 MB; left out: []
            mov: 0 rawvideo 1 MB; left out: []
            refused: its pictures are marked as uncompressed (bgra), but one has 63 bytes instead of 64: no player can decode them; convert the original again, into a container that has a code for its codec, or take it in with --as file
            mov: 0 rawvideo 1 MB; left out: []
            refused: its audio is vorbis in a WAVE file, which does not say where a packet ends; convert the original again, into Ogg or Matroska, or take it in with --as file
            mp4: 0 vorbis 1 MB; left out: []"#]]
        .assert_eq(&decided.join("\n"));
    }
}
