//! Packaging: a title in the form that players get, computed from its index alone.
//!
//! One stored copy of each track serves HLS and DASH with fragmented MP4, HLS with MPEG transport
//! streams ([`transport`]), and progressive MP4:
//!
//! ```text
//!              TitleIndex
//!                  |  cut (segments), place on the time line (timeline)
//!              Packaging
//!        /         |           \
//!   manifests   init, moof     moov with tables       generated here
//!                  |           /
//!               stored slices of the tracks' data     fetched by the sender of the Body
//! ```
//! Equal requests always give equal bytes. Nothing is decoded here, and no codec is refused, except
//! where a transport stream has no form for it: players decide which codecs they can play.

mod body;
mod clip;
mod cuts;
mod encryption;
mod excerpt;
mod growing;
mod growing_file;
mod iframes;
mod imsc;
mod manifest;
mod media_segment;
mod on_demand;
mod picture;
mod playlist;
mod progressive;
mod pushed;
mod rates;
mod segments;
mod settled;
mod steering;
mod text;
mod thumbnails;
mod timeline;
mod track_boxes;
mod transport;

pub use body::{Body, Slice};
pub use encryption::{
    ChainWriter, ChainedSegment, CipherBlock, CipherWriter, ContentKey, DrmSystem, Encryption,
    EncryptionScheme, HlsSignaling, KeyAccess, uuid,
};
pub use excerpt::{Excerpt, ExcerptError};
pub use growing::Growth;
pub use growing_file::{GrowingFile, LATE_TRACK};
pub use on_demand::NoSegmentIndex;
pub use pushed::PushedLdu;
pub use settled::SettledSegments;
pub use text::{CueClock, TextForm};
pub use transport::{
    ConstantRate, FilledPart, FilledWriter, NoTransportForm, PacketBlock, PacketWriter,
    TransportCounters, TransportPush, TransportUnit,
};

use crate::codec::SampleEntry;
use crate::{TitleIndex, TitleKind, TrackDescription, TrackKind};
use clip::Clip;
use encryption::TrackCipher;
use iframes::IFrames;
use manifest::ManifestProfile;
use rates::Rates;
use segments::Segments;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use text::TextLine;
use timeline::Timeline;
use transport::StreamForm;
use units::{BitRate, ByteCount, MediaTime};

/// The options of packaging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagingOptions {
    /// The length of a segment, as far as key frames allow it. A complete title shorter than three
    /// of them has segments of a third of it, of a second at least.
    pub segment: Duration,
    /// How segments are encrypted; `None`: they are sent in the clear.
    pub encryption: Option<Arc<Encryption>>,
    /// Whether further segments will follow those of the title.
    pub growth: Growth,
}

impl Default for PackagingOptions {
    fn default() -> Self {
        Self { segment: DEFAULT_SEGMENT, encryption: None, growth: Growth::Complete }
    }
}

/// What stands around the names in a manifest. The other playlists and the segments are named from
/// there on, relative to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links<'a> {
    /// The folder of all that a manifest names, relative to it: empty, or with a slash at its end.
    pub folder: &'a str,
    /// What is appended to each address: `?s=TOKEN`, or empty.
    pub query: &'a str,
    /// The form in which text tracks are named.
    pub text: TextForm,
    /// The address from which players fetch the DASH manifest of a growing title again; empty: the
    /// one that they have used. HLS has no such address.
    pub location: &'a str,
    /// The address of the server's clock, which players of a growing title in DASH read; empty:
    /// there is none.
    pub clock: &'a str,
    /// Where else players find the same, if they lose the server that they have; `None`: nowhere.
    pub steering: Option<ContentSteering<'a>>,
}

/// The pathways of a title: the servers that have it, for players that lose theirs or should go to
/// another one. HLS names the own pathway and the steering server (content steering: RFC 8216bis,
/// 4.4.6.6); DASH names all of them as base addresses (ISO/IEC 23009-1, 5.6), and the steering
/// server (ETSI TS 103 998).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentSteering<'a> {
    /// The address of the steering server, at whose end names are to stand, with commas between
    /// them: in HLS those of all media playlists, in DASH the identifiers of all pathways.
    pub server_uri: &'a str,
    /// The identifier of each pathway, and the address of the title's folder there, with a slash at
    /// its end. The first pathway is that of this manifest.
    pub pathways: &'a [(String, String)],
}

impl ContentSteering<'_> {
    /// The identifier of the pathway of this manifest.
    fn own_pathway(&self) -> &str {
        self.pathways.first().map_or("", |(id, _)| id)
    }
}

/// Addresses beside the manifest, with this query.
impl<'a> From<&'a str> for Links<'a> {
    fn from(query: &'a str) -> Self {
        Self { query, ..Self::default() }
    }
}

/// The kind of manifest that names segments to a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ManifestKind {
    /// HLS playlists.
    Hls,
    /// A DASH manifest.
    Dash { cmaf: bool },
}

/// The reason why a title cannot be packaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackagingError {
    /// A title of opaque bytes has no tracks with times.
    #[error("the title was taken in as a file, not as media")]
    File,
    /// The title has no media.
    #[error("the title has no playable track")]
    NoTracks,
    /// The title is to be encrypted, and the codec of its video is not one that can be.
    #[error(
        "the title is to be encrypted, which is done for H.264 and HEVC, and its video is {0}; \
         take it out of the key file, or encode it again"
    )]
    NotEncryptable(String),
}

/// A packaged title. Built once per opened title and shared.
#[derive(Debug)]
pub struct Packaging {
    index: Arc<TitleIndex>,
    /// The timeline of each track, edit list applied.
    lines: Vec<Timeline>,
    /// The timeline of each track in segments: from the first picture that can be decoded. Players
    /// on Media Source Extensions cannot decode pictures without showing them.
    segment_lines: Vec<Timeline>,
    tracks: Vec<PackagedTrack>,
    /// Planned when the first player asks for a transport stream.
    transport: OnceLock<transport::Plan>,
    /// The video tracks that show the same content, best first.
    videos: Vec<u16>,
    /// The length of a segment, as far as key frames allow it.
    target: Duration,
    /// `EXT-X-TARGETDURATION` of all media playlists, in seconds.
    target_duration: u64,
    duration: Duration,
    /// Where the cues of text tracks are; `None` if the presentation has no text.
    text_line: Option<TextLine>,
    /// The rates of each text track, by [`TextForm`].
    text_rates: [Vec<Rates>; 2],
    /// Whether it presents the whole title.
    is_whole: bool,
    /// The time from the beginning of the segments at which playback starts: what is before it is
    /// only decoded.
    playback_start: MediaTime,
    /// The bounds of its file; `None` for the whole title, and where there is no file.
    file_clip: Option<Clip>,
    encryption: Option<Arc<Encryption>>,
    growth: Growth,
}

/// The values that are computed once per track.
#[derive(Debug)]
struct PackagedTrack {
    segments: Segments,
    /// The boundaries of the segments in ticks, exactly.
    boundaries: Vec<u64>,
    /// The bytes of each segment, headers included.
    sizes: Vec<u64>,
    init: Arc<[u8]>,
    rates: Rates,
    /// The largest frame rate of video in pictures per 1000 s.
    frame_rate: Option<u64>,
    /// Whether each segment can be decoded without the others, those to come included.
    independent: bool,
    /// What a player shows of it while its viewer winds.
    iframes: Option<IFrames>,
    /// How it is encrypted, if it is.
    cipher: Option<Arc<TrackCipher>>,
    /// How it goes out in a transport stream.
    form: Result<Arc<StreamForm>, NoTransportForm>,
}

/// The segments of a track, with what follows from them.
#[derive(Debug)]
struct CutTrack {
    segments: Segments,
    /// The boundaries of the segments in ticks, exactly.
    boundaries: Vec<u64>,
    /// The bytes of each segment, headers included.
    sizes: Vec<u64>,
    /// The largest frame rate of video in pictures per 1000 s.
    frame_rate: Option<u64>,
}

impl Packaging {
    /// Plans the segments. Fails only for a title without media, for example a growing one of which
    /// no segment is settled.
    pub fn new(index: Arc<TitleIndex>, options: &PackagingOptions) -> Result<Self, PackagingError> {
        if index.kind == TitleKind::File {
            return Err(PackagingError::File);
        }
        if options.encryption.is_some()
            && let Some(track) = index.tracks.iter().find(|it| !encryption::is_possible(it))
        {
            return Err(PackagingError::NotEncryptable(encryption::codec_name(track)));
        }
        let lines: Vec<_> = index.tracks.iter().map(Timeline::new).collect();
        let preroll = timeline::longest_preroll(&index.tracks, &lines);
        let packaging = Self::unpackaged(index, lines, preroll, options);
        let cuts = packaging.cut_tracks().into_iter().enumerate();
        let cuts = cuts.map(|(number, segments)| packaging.measured(number, segments)).collect();
        packaging.packaged(cuts)
    }

    /// A title on these timelines, in segments `preroll` later, that has no segments yet.
    fn unpackaged(
        index: Arc<TitleIndex>,
        lines: Vec<Timeline>,
        preroll: MediaTime,
        options: &PackagingOptions,
    ) -> Self {
        let segment_lines = lines.iter().map(|line| line.beginning(preroll)).collect();
        let end = lines.iter().map(|line| line.time(line.end)).max();
        let duration = end.unwrap_or_default().since_start();
        let (videos, target) = match options.growth {
            Growth::Complete => (
                picture::variants(&index, &lines, options.segment),
                segment_length(options.segment, duration),
            ),
            // Neither may change while the title grows.
            _ => (picture::all_videos(&index), options.segment),
        };
        Self {
            index,
            lines,
            segment_lines,
            tracks: Vec::new(),
            transport: OnceLock::new(),
            videos,
            target,
            target_duration: 0,
            duration,
            text_line: Some(TextLine { later: preroll, end: None }),
            text_rates: Default::default(),
            is_whole: true,
            playback_start: MediaTime::ZERO,
            file_clip: None,
            encryption: options.encryption.clone(),
            growth: options.growth,
        }
    }

    /// The title in these segments.
    fn packaged(mut self, cuts: Vec<CutTrack>) -> Result<Self, PackagingError> {
        self.package(cuts);
        if self.playable(None).next().is_none() {
            return Err(PackagingError::NoTracks);
        }
        Ok(self)
    }

    /// The index from which it was built.
    pub fn index(&self) -> &Arc<TitleIndex> {
        &self.index
    }

    /// Whether further segments will follow.
    pub fn growth(&self) -> Growth {
        self.growth
    }

    /// The duration of the title, or of this part of it: the end of its longest track.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Combinations of tracks that a viewer can choose, best first: each video track with the
    /// default audio track; for a title without video each audio track.
    pub fn offers(&self) -> Vec<Vec<u16>> {
        let default = self.default_audio();
        let videos = self.videos();
        if !videos.is_empty() {
            return videos.into_iter().map(|v| [v].into_iter().chain(default).collect()).collect();
        }
        let mut audios = self.audio_tracks();
        // `false` sorts first: the default track leads.
        audios.sort_by_key(|&a| (Some(a) != default, std::cmp::Reverse(self.mean_rate(a))));
        audios.into_iter().map(|audio| vec![audio]).collect()
    }

    /// The tracks of the file that a viewer can choose, best first: each video track with all audio
    /// tracks, the default one first; for a title without video all audio tracks.
    pub fn file_offers(&self) -> Vec<Vec<u16>> {
        let default = self.default_audio();
        let others = self.audio_tracks().into_iter().filter(|&audio| Some(audio) != default);
        let audios: Vec<u16> = default.into_iter().chain(others).collect();
        let videos = self.videos();
        if videos.is_empty() {
            return vec![audios];
        }
        videos.into_iter().map(|video| [&[video], &audios[..]].concat()).collect()
    }

    /// The mean bit rate of a track over its own duration; zero if there is no such track.
    pub fn mean_rate(&self, track: u16) -> BitRate {
        let Some(track) = self.index.tracks.get(usize::from(track)) else { return BitRate(0) };
        let ticks = timeline::ticks(track.ldus.duration_ticks());
        let time = MediaTime::from_ticks(ticks, track.description.timescale);
        BitRate::of(ByteCount(track.ldus.data_len()), time.since_start())
    }

    /// The peak bit rate of a track's segments as playlists state it; zero if there is no such
    /// track.
    pub fn peak_rate(&self, track: u16) -> BitRate {
        BitRate(self.rates(track).peak)
    }

    /// The duration of a segment as playlists state it; `None` if there is no such segment.
    pub fn segment_duration(&self, track: u16, number: u32) -> Option<Duration> {
        let number = usize::try_from(number).ok()?;
        self.track(track)?.segments.length(number).map(Duration::from_micros)
    }

    /// The HLS multivariant playlist for these video tracks, with all audio tracks. Without a video
    /// track among them: for each of these audio tracks, or for all if there are none of these
    /// either. `links` must be valid in a quoted string.
    pub fn multivariant_playlist<'a>(&self, videos: &[u16], links: impl Into<Links<'a>>) -> String {
        let links = links.into();
        let playlist = playlist::multivariant(self, videos, links);
        match links.steering {
            Some(pathways) => steering::with_steering(&playlist, links.folder, pathways),
            None => playlist,
        }
    }

    /// The HLS media playlist of a track; `None` if there is no such track.
    pub fn media_playlist(&self, track: u16, query: &str) -> Option<String> {
        self.track(track).map(|_| playlist::media(self, track, query))
    }

    /// The DASH manifest for these video tracks, with all audio tracks. Without a video track among
    /// them: for these audio tracks, or for all if there are none of these either. `links` must be
    /// valid in XML.
    pub fn dash_manifest<'a>(&self, videos: &[u16], links: impl Into<Links<'a>>) -> String {
        manifest::mpd(self, videos, links.into(), ManifestProfile::Live)
    }

    /// The DASH manifest for the same tracks in which each is one file, whose segments players
    /// fetch as ranges; of a title that has such files ([`Self::on_demand`]).
    pub fn on_demand_manifest<'a>(&self, videos: &[u16], links: impl Into<Links<'a>>) -> String {
        manifest::mpd(self, videos, links.into(), ManifestProfile::OnDemand)
    }

    /// The number of segments of a track; zero if there is no such track.
    pub fn segment_count(&self, track: u16) -> u32 {
        let count = self.track(track).map_or(0, |track| track.segments.count());
        u32::try_from(count).expect("fewer segments than LDUs")
    }

    /// The time at which a segment of a track starts; `None` if there is no such segment.
    pub fn segment_start(&self, track: u16, number: u32) -> Option<Duration> {
        let segments = &self.track(track)?.segments;
        let number = usize::try_from(number).ok().filter(|number| *number < segments.count())?;
        Some(Duration::from_millis(millis(segments.time(number).start).into()))
    }

    /// The initialization segment of a track for HLS; `None` if there is no such track.
    pub fn init_segment(&self, track: u16) -> Option<Arc<[u8]>> {
        self.track(track).map(|track| track.init.clone())
    }

    /// The initialization segment of a track for DASH; `None` if there is no such track.
    pub fn dash_init_segment(&self, track: u16) -> Option<Arc<[u8]>> {
        self.track(track)?;
        let i = usize::from(track);
        let (stored, line) = (&self.index.tracks[i], &self.segment_lines[i]);
        let cmaf = manifest::is_cmaf(self, &[track]);
        let manifest = ManifestKind::Dash { cmaf };
        Some(media_segment::init(stored, line, manifest, self.cipher(track)).into())
    }

    /// One media segment: `moof` and `mdat` header, then one stored slice (none if all its LDUs are
    /// empty); several of these for an excerpt that leaves something out.
    pub fn segment(&self, track: u16, number: u32) -> Option<Body> {
        let segments = &self.track(track)?.segments;
        let number = usize::try_from(number).ok()?;
        let (parts, first) = (segments.parts(number)?, segments.first_of(number));
        let i = usize::from(track);
        let (stored, line) = (&self.index.tracks[i], &self.segment_lines[i]);
        // Fragments are numbered from one across all segments of the track.
        let cipher = self.tracks[i].cipher.as_ref();
        Some(media_segment::segment(stored, line, track, parts, first + 1, cipher))
    }

    /// The HLS I-frame playlist of a video track; `None` if it has none: it has no second key frame
    /// that is decoded by itself, or is an excerpt that leaves out groups of pictures, or of a
    /// title that is, or was, played while it is recorded ([`Growth`]).
    pub fn iframe_playlist(&self, track: u16, query: &str) -> Option<String> {
        self.iframes(track).map(|iframes| playlist::iframes(self, iframes, track, query))
    }

    /// One I-frame of a track as a media segment: `moof` with one sample and `mdat` header, then
    /// one stored slice, which is of the track's [`Packaging::iframe_track`].
    pub fn iframe(&self, track: u16, number: u32) -> Option<Body> {
        let (ldu, time) = self.iframes(track)?.get(usize::try_from(number).ok()?)?;
        let i = usize::from(track);
        let (stored, line) = (&self.index.tracks[i], &self.segment_lines[i]);
        let of = self.iframe_track(track)?;
        let (number, cipher) = (number.saturating_add(1), self.tracks[i].cipher.as_ref());
        Some(media_segment::picture(stored, line, of, ldu, time, number, cipher))
    }

    /// The number of a track's I-frames where they stand beside the tracks of the title, in
    /// [`Slice::Stored`]: they are behind all of them. `None` if there is no such number.
    pub fn iframe_track(&self, track: u16) -> Option<u16> {
        u16::try_from(self.index.tracks.len()).ok()?.checked_add(track)
    }

    /// The title's track whose bytes [`Slice::Stored`] means by this number: itself, or of I-frames
    /// the track that they are of.
    pub fn stored_track(&self, number: u16) -> u16 {
        let tracks = u16::try_from(self.index.tracks.len()).unwrap_or(u16::MAX);
        number.checked_sub(tracks).unwrap_or(number)
    }

    /// The byte range of each I-frame in a track's data, and when it is due in ms of the played
    /// time.
    pub fn iframe_runs(&self, track: u16) -> Vec<(Range<u64>, u32)> {
        let stored = self.index.tracks.get(usize::from(track));
        let iframes = self.iframes(track).zip(stored);
        iframes.map_or_else(Vec::new, |(iframes, stored)| iframes.runs(stored).collect())
    }

    /// The byte ranges of a track's data that are played, in order, each with the start of its
    /// segment in ms of the played time.
    pub fn runs_shown(&self, track: u16) -> Vec<(Range<u64>, u32)> {
        let Some(packaged) = self.track(track) else { return Vec::new() };
        let (ldus, segments) = (&self.index.tracks[usize::from(track)].ldus, &packaged.segments);
        let mut runs: Vec<(Range<u64>, u32)> = Vec::new();
        for number in 0..segments.count() {
            let due = millis(segments.time(number).start);
            for part in segments.parts(number).unwrap_or_default() {
                let bytes = segments::data(ldus, part.ldus.clone());
                match runs.last_mut() {
                    // Bytes with different due times stay apart: each is read by its own deadline.
                    Some((last, at)) if last.end == bytes.start && *at == due => {
                        last.end = bytes.end;
                    }
                    _ => runs.push((bytes, due)),
                }
            }
        }
        runs
    }

    /// These tracks as one file with the header in front: MP4, or QuickTime if a codec needs it.
    /// Tracks that do not exist are left out. There is no file of a presentation that skips or
    /// reverses groups of pictures. It takes time and memory proportional to the number
    /// of LDUs, so that the result should be kept.
    pub fn progressive(&self, tracks: &[u16]) -> Arc<Body> {
        let tracks: Vec<u16> =
            tracks.iter().copied().filter(|&track| self.track(track).is_some()).collect();
        Arc::new(progressive::file(&self.index, &self.lines, &tracks, self.file_clip.as_ref()))
    }

    /// The duration of the file: of a part of a title exactly that of the part.
    pub fn file_duration(&self) -> Duration {
        let clip = self.file_clip.as_ref().and_then(|clip| Some(clip.stop? - clip.start));
        let start = self.file_clip.map_or(MediaTime::ZERO, |clip| clip.start);
        let to_end = || self.lines.iter().map(|line| line.time(line.end) - start).max();
        clip.or_else(to_end).unwrap_or_default().since_start()
    }

    /// The byte ranges of a track's data in the file, in order, each with its due time in ms of the
    /// played time: the start of its second. Empty where there is no file.
    pub fn runs_in_file(&self, track: u16) -> Vec<(Range<u64>, u32)> {
        let (Some(_), Some(clip)) = (self.track(track), &self.file_clip) else {
            return Vec::new();
        };
        let i = usize::from(track);
        let (stored, line) = (&self.index.tracks[i], &self.lines[i]);
        let ldus = clip.ldus(stored, line);
        // A track of which nothing is shown is not in the file.
        if clip.edits(stored, line, &ldus).is_empty() {
            return Vec::new();
        }
        let chunks = progressive::chunks(stored, line, ldus).into_iter();
        let due = |chunk: &progressive::Chunk| millis(progressive::due(chunk) - clip.start);
        chunks.map(|chunk| (chunk.bytes.clone(), due(&chunk))).collect()
    }

    /// The due time of each piece of a track's data when played in segments, in ms of media time:
    /// the start of the first segment that touches it. Never decreases. `pieces` has the first byte
    /// of each, in order.
    pub fn due_segmented(&self, track: u16, pieces: impl Iterator<Item = u64>) -> Vec<u32> {
        match self.track(track) {
            Some(_) => due_by_piece(self.segment_starts(track), pieces),
            None => Vec::new(),
        }
    }

    /// The ends of a track's segments but the last, as bytes of its data.
    pub fn segment_ends(&self, track: u16) -> impl Iterator<Item = u64> + '_ {
        self.segment_starts(track).skip(1).map(|(start, _)| start)
    }

    /// The bytes of a track's data that a segment ends with, and the time at which it ends; `None`
    /// if there is no such segment.
    pub fn segment_end(&self, track: u16, number: u32) -> Option<(Range<u64>, Duration)> {
        let (segments, number) = (&self.track(track)?.segments, usize::try_from(number).ok()?);
        let ldus = &self.index.tracks[usize::from(track)].ldus;
        let bytes = segments::data(ldus, segments.parts(number)?.last()?.ldus.clone());
        Some((bytes, segments.time(number).end.since_start()))
    }

    // First byte and time of each segment of a track.
    fn segment_starts(&self, track: u16) -> impl Iterator<Item = (u64, MediaTime)> + '_ {
        self.track(track).into_iter().flat_map(move |packaged| {
            let stored = &self.index.tracks[usize::from(track)];
            let segments = &packaged.segments;
            (0..segments.count()).filter_map(move |k| {
                let bytes = segments::data(&stored.ldus, segments.parts(k)?.first()?.ldus.clone());
                Some((bytes.start, segments.time(k).start))
            })
        })
    }

    /// The due time of each piece of `piece` bytes of a track's data when played progressively
    /// together with `tracks`, in ms of media time: the start of the first second that touches it.
    /// Never decreases. Empty if `track` is not among `tracks`.
    pub fn due_progressive(&self, tracks: &[u16], track: u16, piece: u32) -> Vec<u32> {
        if self.track(track).is_none() || !tracks.contains(&track) {
            return Vec::new();
        }
        let i = usize::from(track);
        let stored = &self.index.tracks[i];
        let chunks = progressive::chunks(stored, &self.lines[i], 0..stored.ldus.len());
        let starts = chunks.iter().map(|chunk| (chunk.bytes.start, progressive::due(chunk)));
        let size = usize::try_from(piece).unwrap_or(usize::MAX);
        due_by_piece(starts, (0..stored.data_len).step_by(size))
    }

    /// The segments of each track of the whole title.
    fn cut_tracks(&self) -> Vec<Segments> {
        if self.growth != Growth::Complete {
            return growing::cut(&self.index.tracks, &self.segment_lines, self.target);
        }
        let pairs = || self.index.tracks.iter().zip(&self.segment_lines);
        // All audio follows the first video track; aligned renditions have the same boundaries
        // anyway.
        let pictures = self.videos.iter().min().map(|&video| {
            let video = usize::from(video);
            let (track, line) = (&self.index.tracks[video], &self.segment_lines[video]);
            segments::cut_video(track, line, self.target)
        });
        pairs()
            .map(|(track, line)| match track.description.kind {
                TrackKind::Video => segments::cut_video(track, line, self.target),
                _ => segments::cut_audio(track, line, pictures.as_ref(), self.target),
            })
            .collect()
    }

    /// What follows from the segments of a track and is in proportion to its length.
    fn measured(&self, number: usize, segments: Segments) -> CutTrack {
        let (track, line) = (&self.index.tracks[number], &self.segment_lines[number]);
        let cipher = self.new_cipher(number);
        CutTrack {
            boundaries: manifest::boundaries(track, line, &segments, self.growth),
            sizes: media_segment::sizes(&track.ldus, &segments, cipher.as_ref()),
            frame_rate: picture::frame_rate(track),
            segments,
        }
    }

    /// How a track of the title is to be encrypted, if it is.
    fn new_cipher(&self, number: usize) -> Option<TrackCipher> {
        let track = &self.index.tracks[number];
        TrackCipher::of(self.encryption.as_deref()?, track, u16::try_from(number).ok()?)
    }

    /// Computes everything that follows from the segments of each track.
    fn package(&mut self, cuts: Vec<CutTrack>) {
        let lengths = cuts.iter().flat_map(|cut| cut.segments.lengths());
        // One value for all media playlists of a title (RFC 8216, 6.2.4), at least each length
        // rounded to the nearest second (4.3.3.1).
        let longest = lengths.max().unwrap_or(0);
        self.target_duration = ((longest + 500_000) / 1_000_000).max(1);
        let complete = self.growth == Growth::Complete;
        let clear_keys = self.encryption.as_ref().is_none_or(|it| it.has_clear_keys());
        if !complete {
            // What is longer is listed with gaps.
            self.target_duration =
                growing::target_duration_of(&self.index.tracks, &cuts, self.target);
        }
        let tracks = cuts.into_iter().enumerate().map(|(number, cut)| {
            let CutTrack { segments, boundaries, sizes, frame_rate } = cut;
            let (track, line) = (&self.index.tracks[number], &self.segment_lines[number]);
            let cipher = self.new_cipher(number);
            let (by, of) = (cipher.as_ref(), self.encryption.as_deref().zip(cipher.as_ref()));
            let (lengths, scale) =
                (segments.lengths().collect::<Vec<_>>(), track.description.timescale);
            PackagedTrack {
                rates: Rates::of_sizes(&sizes, &lengths, &boundaries, scale, self.target_duration),
                frame_rate,
                independent: if complete {
                    segments::are_independent(&segments, track)
                } else {
                    // Of pictures to come that is not known, and an EVENT playlist cannot take
                    // it back.
                    track.description.kind == TrackKind::Audio
                },
                iframes: if complete { IFrames::of(track, line, &segments, by) } else { None },
                form: if !complete {
                    Err(NoTransportForm::growing(track.description.kind))
                } else if clear_keys {
                    StreamForm::of(track).map(Arc::new)
                } else {
                    Err(NoTransportForm::without_key(track.description.kind))
                },
                init: media_segment::init(track, line, ManifestKind::Hls, of).into(),
                cipher: cipher.map(Arc::new),
                segments,
                boundaries,
                sizes,
            }
        });
        self.tracks = tracks.collect();
        self.text_rates = self.rates_of_texts();
    }

    /// The numbers of playable tracks of one kind, or of all.
    fn playable(&self, kind: Option<TrackKind>) -> impl Iterator<Item = u16> + '_ {
        (0..=u16::MAX).zip(&self.index.tracks).filter_map(move |(number, track)| {
            let wanted = kind.is_none_or(|kind| track.description.kind == kind);
            (wanted && self.track(number).is_some()).then_some(number)
        })
    }

    /// A playable track.
    fn track(&self, number: u16) -> Option<&PackagedTrack> {
        let i = usize::from(number);
        let stored = self.index.tracks.get(i)?;
        let playable = stored.description.kind != TrackKind::File;
        self.tracks.get(i).filter(|track| playable && track.segments.count() > 0)
    }

    /// The description of an existing track.
    fn description(&self, track: u16) -> &TrackDescription {
        &self.index.tracks[usize::from(track)].description
    }

    /// How an existing track is encrypted, if it is.
    fn cipher(&self, track: u16) -> Option<(&Encryption, &TrackCipher)> {
        let cipher = self.tracks[usize::from(track)].cipher.as_deref();
        self.encryption.as_deref().zip(cipher)
    }

    /// How its segments are encrypted, if they are.
    pub fn encryption(&self) -> Option<&Arc<Encryption>> {
        self.encryption.as_ref()
    }

    /// The segments of an existing track.
    fn segments(&self, track: u16) -> &Segments {
        &self.tracks[usize::from(track)].segments
    }

    /// When the first LDU of an existing track is shown, in microseconds of the title.
    fn first_shown(&self, track: u16) -> u64 {
        let track = usize::from(track);
        let (stored, line) = (&self.index.tracks[track], &self.segment_lines[track]);
        if stored.ldus.is_empty() { 0 } else { segments::micros(line.begins(stored, 0)) }
    }

    /// The boundaries of an existing track's segments in its ticks.
    fn boundaries(&self, track: u16) -> &[u64] {
        &self.tracks[usize::from(track)].boundaries
    }

    /// The I-frames of a track, if it has any that a player can use.
    fn iframes(&self, track: u16) -> Option<&IFrames> {
        self.track(track)?.iframes.as_ref()
    }

    /// The video track whose I-frames a player shows while its viewer winds, and these: of tracks
    /// of one codec and one colour space that of the least rate. See [`iframes`].
    fn winding(&self, videos: &[u16]) -> Option<(u16, &IFrames)> {
        let listed = videos.iter().filter_map(|&video| Some((video, self.iframes(video)?)));
        listed.min_by_key(|(video, _)| self.mean_rate(*video))
    }

    /// Video tracks between which a player can change: by codec and colours, in their order.
    fn video_sets(&self, videos: &[u16]) -> Vec<Vec<u16>> {
        let alike = |track: u16| {
            let track = self.description(track);
            (track.codec.split('.').next(), SampleEntry(&track.sample_entry).colours())
        };
        let mut sets: Vec<Vec<u16>> = Vec::new();
        for &video in videos {
            match sets.iter_mut().find(|set| alike(set[0]) == alike(video)) {
                Some(set) => set.push(video),
                None => sets.push(vec![video]),
            }
        }
        sets
    }

    /// The playable video tracks that show the same content, best first.
    fn videos(&self) -> Vec<u16> {
        let playable = |video: &u16| self.track(*video).is_some();
        self.videos.iter().copied().filter(playable).collect()
    }

    fn audio_tracks(&self) -> Vec<u16> {
        self.playable(Some(TrackKind::Audio)).collect()
    }

    fn default_audio(&self) -> Option<u16> {
        let audios = self.audio_tracks();
        let default = audios.iter().copied().find(|&audio| self.description(audio).default);
        default.or(audios.first().copied())
    }

    fn is_independent(&self, track: u16) -> bool {
        self.track(track).is_some_and(|track| track.independent)
    }

    /// The bit rates of a track's segments; zero if there is no such track.
    fn rates(&self, track: u16) -> Rates {
        self.track(track).map(|track| track.rates).unwrap_or_default()
    }
}

/// The length of the segments of a title: some players fail more often where a playlist has one
/// segment, which they have to fetch as a whole at once.
fn segment_length(wanted: Duration, title: Duration) -> Duration {
    wanted.min((title / 3).max(SHORTEST_SEGMENT))
}

/// The due time of each piece, by its first byte. `starts` has the offsets and due times of the
/// data's parts, both in order.
fn due_by_piece(
    starts: impl Iterator<Item = (u64, MediaTime)>,
    pieces: impl Iterator<Item = u64>,
) -> Vec<u32> {
    let mut starts = starts.peekable();
    let mut due = 0;
    pieces
        .map(|begins| {
            // The last part that begins at or before the piece's first byte is the first to touch
            // it.
            while let Some((_, time)) = starts.next_if(|&(at, _)| at <= begins) {
                due = due.max(millis(time));
            }
            due
        })
        .collect()
}

/// The time since the start in whole milliseconds.
fn millis(time: MediaTime) -> u32 {
    u32::try_from(time.since_start().as_millis()).unwrap_or(u32::MAX)
}

/// The default length of a segment: long enough for few requests and short enough for a quick
/// start. Apple's authoring guide allows 6 s, and most services use 2 to 6 s.
const DEFAULT_SEGMENT: Duration = Duration::from_secs(4);
/// The shortest length that a short title is divided by: playlists state whole seconds.
const SHORTEST_SEGMENT: Duration = Duration::from_secs(1);

/// The first of these numbers for which `before` is false; it is false for all behind that.
pub(super) fn partition(numbers: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (numbers.start, numbers.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
