//! Footage for tests: made by FFmpeg in a temporary directory, read through the pipe format, and
//! held in memory as a store would hold it on disk.

use media::{
    Body, CHECKSUM_SPAN, ChainWriter, ChainedSegment, CipherBlock, CipherWriter, CueClock,
    Encryption, FilledPart, FilledWriter, FragmentReader, FragmentSink, Links, Packaging,
    PackagingOptions, PacketBlock, PacketWriter, Slice, TextForm, TitleIndex, TitleKind,
    TrackDescription, TrackIndex, checksum,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use testkit::dash::CheckedRepresentation;

/// A directory that is removed when the test succeeds; after a failure it stays for inspection.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tenuto-media-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A folder within it.
    pub(crate) fn within(&self, name: &str) -> Self {
        let path = self.file(name);
        std::fs::create_dir_all(&path).expect("a folder within the test's");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Runs `ffmpeg` and returns its standard output. `args` are split at spaces; each `FILE` among
/// them is the next of `files`.
pub(crate) fn ffmpeg(args: &str, files: &[&Path]) -> Vec<u8> {
    run("error", args, files)
}

/// Runs [`ffmpeg`] with warnings as errors: players must have no reason for complaints.
pub(crate) fn ffmpeg_strict(args: &str, files: &[&Path]) -> Vec<u8> {
    run("warning", args, files)
}

fn run(verbosity: &str, args: &str, files: &[&Path]) -> Vec<u8> {
    let mut files = files.iter();
    let args: Vec<_> = args
        .split_whitespace()
        .map(|arg| match arg {
            "FILE" => files.next().expect("a file for each FILE").as_os_str().to_owned(),
            arg => arg.into(),
        })
        .collect();
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-hide_banner", "-y", "-v", verbosity])
        .args(&args)
        .env("SVT_LOG", "1")
        .output()
        .unwrap_or_else(|error| {
            panic!("these tests need the ffmpeg program ({error}): apt-get install ffmpeg")
        });
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().filter(|line| !line.starts_with("Svt[")).collect();
    assert!(
        output.status.success() && said.is_empty(),
        "ffmpeg {args:?} ended with {} and said:\n{}",
        output.status,
        said.join("\n")
    );
    output.stdout
}

/// Makes footage: test pictures and a tone, encoded with the options `how`.
pub(crate) fn make(folder: &Folder, name: &str, how: &str) -> PathBuf {
    let pictures = "-f lavfi -i testsrc2=s=160x90:r=25:d=2.4";
    let tone = "-f lavfi -i sine=d=2.4:r=48000";
    clip(folder, name, &format!("{pictures} {tone} {how}"))
}

/// Makes a clip of FFmpeg's own pictures and sounds: once for all tests that want the same one.
pub(crate) fn clip(folder: &Folder, name: &str, words: &str) -> PathBuf {
    let path = folder.file(name);
    let words: Vec<&str> = words.split_whitespace().collect();
    testkit::clips::make(&path, &words).unwrap_or_else(|said| panic!("making {name}: {said}"));
    path
}

/// What was made of a file by a muxer and its options.
type Remuxed = BTreeMap<(Vec<u8>, String), Vec<u8>>;

/// Remuxes to the pipe format: once for all tests that remux the same file. `muxer` is `mp4` or
/// `mov`, `extra` precedes the output.
pub(crate) fn remux(source: &Path, muxer: &str, extra: &str) -> Vec<u8> {
    static MADE: Mutex<Remuxed> = Mutex::new(Remuxed::new());
    let key = (std::fs::read(source).expect("a file"), format!("{muxer} {extra}"));
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = made().get(&key) {
        return bytes.clone();
    }
    let flags = "empty_moov+delay_moov+default_base_moof";
    let args = format!(
        "-fflags +genpts -i FILE -map 0:v? -map 0:a? -c copy {extra} -strict experimental -write_tmcd 0 -f {muxer} \
         -movflags {flags} -frag_duration 1000000 -movie_timescale 1000000 pipe:1"
    );
    let bytes = ffmpeg(&args, &[source]);
    made().insert(key, bytes.clone());
    bytes
}

/// A title and the data of its tracks.
#[derive(Clone, Debug)]
pub(crate) struct Title {
    pub(crate) index: TitleIndex,
    pub(crate) data: Vec<Vec<u8>>,
}

/// A writer of what is made from stored bytes on their way to a socket.
trait Making {
    fn is_done(&self) -> bool;
    fn write(&mut self, stored: &mut &[u8], room: &mut [u8]) -> Range<usize>;
}

macro_rules! making {
    ($($writer:ty),*) => {$(
        impl Making for $writer {
            fn is_done(&self) -> bool {
                self.is_done()
            }

            fn write(&mut self, stored: &mut &[u8], room: &mut [u8]) -> Range<usize> {
                self.write(stored, room)
            }
        }
    )*};
}
making!(PacketWriter, FilledWriter, CipherWriter, ChainWriter);

/// All that a writer makes of stored bytes that come in pieces of at most `piece` bytes, into a
/// buffer of `room` bytes.
fn made(mut writer: impl Making, stored: &[u8], piece: usize, room: usize) -> Vec<u8> {
    let (mut all, mut room) = (Vec::new(), vec![0; room]);
    let (mut pieces, mut rest) = (stored.chunks(piece), &[][..]);
    while !writer.is_done() {
        let made = writer.write(&mut rest, &mut room);
        all.extend_from_slice(&room[made.clone()]);
        if made.is_empty() && !writer.is_done() {
            assert!(rest.is_empty(), "stored bytes are used before more are wanted");
            rest = pieces.next().expect("the stored bytes are all that is needed");
        }
    }
    // The writer takes what it need not use.
    for mut rest in pieces {
        assert!(writer.write(&mut rest, &mut room).is_empty() && rest.is_empty());
    }
    all
}

/// The stored bytes of parts of tracks, one behind the other.
fn stored(parts: impl IntoIterator<Item = (u16, Range<u64>)>, data: &[Vec<u8>]) -> Vec<u8> {
    let at = |byte| usize::try_from(byte).unwrap();
    let parts = parts.into_iter();
    parts.fold(Vec::new(), |mut all, (track, bytes)| {
        all.extend_from_slice(&data[usize::from(track)][at(bytes.start)..at(bytes.end)]);
        all
    })
}

/// The packets of a range of a block, whose stored bytes come in pieces of at most `piece` bytes.
pub(crate) fn packets(
    block: &Arc<PacketBlock>,
    range: Range<u64>,
    data: &[Vec<u8>],
    piece: usize,
) -> Vec<u8> {
    let stored = stored(block.parts(&range), data);
    made(PacketWriter::new(Arc::clone(block), range), &stored, piece, 188 * 7)
}

/// The packets of a range of a part at a constant rate, whose stored bytes come in pieces of at
/// most `piece` bytes.
pub(crate) fn filled(
    part: &Arc<FilledPart>,
    range: Range<u64>,
    data: &[Vec<u8>],
    piece: usize,
) -> Vec<u8> {
    let stored = stored(part.parts(&range), data);
    made(FilledWriter::new(Arc::clone(part), range), &stored, piece, 188 * 7)
}

/// The bytes of a range of a block, whose stored bytes come in pieces of at most `piece` bytes.
pub(crate) fn encrypted(
    block: &Arc<CipherBlock>,
    range: Range<u64>,
    data: &[Vec<u8>],
    piece: usize,
) -> Vec<u8> {
    let (track, bytes) = block.part(&range);
    // The key frames of a track are a track of their own, behind all others.
    let track = usize::from(track) % data.len();
    let stored = stored([(u16::try_from(track).unwrap(), bytes)], data);
    made(CipherWriter::new(Arc::clone(block), range), &stored, piece, 1000)
}

/// The bytes of a range of a segment that is encrypted as a whole, whose stored bytes come in
/// pieces of at most `piece` bytes.
pub(crate) fn chained(
    segment: &Arc<ChainedSegment>,
    range: Range<u64>,
    data: &[Vec<u8>],
    piece: usize,
) -> Vec<u8> {
    let stored = stored(segment.parts(&range), data);
    made(ChainWriter::new(Arc::clone(segment), range), &stored, piece, 1000)
}

/// A sink that collects everything.
#[derive(Debug, Default)]
pub(crate) struct Collect {
    pub(crate) tracks: Vec<TrackDescription>,
    pub(crate) data: Vec<Vec<u8>>,
}

impl FragmentSink for Collect {
    type Error = std::convert::Infallible;

    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), Self::Error> {
        assert!(self.tracks.is_empty(), "tracks are told once");
        self.tracks = tracks.to_vec();
        self.data = vec![Vec::new(); tracks.len()];
        Ok(())
    }

    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), Self::Error> {
        assert!(!bytes.is_empty());
        self.data[track].extend_from_slice(bytes);
        Ok(())
    }
}

/// Reads the pipe format in pieces of `piece` bytes.
pub(crate) fn read(stream: &[u8], piece: usize) -> Title {
    let (mut reader, mut sink) = (FragmentReader::new(), Collect::default());
    for bytes in stream.chunks(piece) {
        reader.push(bytes, &mut sink).unwrap();
    }
    let tracks = reader.finish(&mut sink).unwrap();
    let track = |((description, ldus), data): ((_, media::LduIndex), &Vec<u8>)| TrackIndex {
        description,
        data_len: ldus.data_len(),
        ldus,
        checksums: data.chunks(usize::try_from(CHECKSUM_SPAN).unwrap()).map(checksum).collect(),
    };
    let tracks = tracks.into_iter().zip(&sink.data).map(track).collect();
    Title {
        index: TitleIndex { kind: TitleKind::Media, tracks, texts: Vec::new(), thumbnails: None },
        data: sink.data,
    }
}

impl Title {
    pub(crate) fn packaging(&self, segment: Duration) -> Packaging {
        self.encrypted(segment, None)
    }

    pub(crate) fn encrypted(&self, segment: Duration, how: Option<Encryption>) -> Packaging {
        let encryption = how.map(Arc::new);
        let options = PackagingOptions { segment, encryption, ..PackagingOptions::default() };
        Packaging::new(Arc::new(self.index.clone()), &options).unwrap()
    }

    /// The bytes that a server would send.
    pub(crate) fn bytes(&self, body: &Body) -> Vec<u8> {
        let mut all = Vec::new();
        for slice in body.slices() {
            match slice {
                Slice::Generated { bytes, range } => all.extend_from_slice(&bytes[range.clone()]),
                Slice::Stored { track, bytes } => {
                    let range =
                        usize::try_from(bytes.start).unwrap()..usize::try_from(bytes.end).unwrap();
                    // Behind the tracks of the title are their I-frames.
                    let track = usize::from(*track) % self.data.len();
                    all.extend_from_slice(&self.data[track][range]);
                }
                Slice::Packets { block, range } => {
                    all.extend(packets(block, range.clone(), &self.data, 1 << 16));
                }
                Slice::Filled { part, range } => {
                    all.extend(filled(part, range.clone(), &self.data, 1 << 16));
                }
                Slice::Chained { segment, range } => {
                    all.extend(chained(segment, range.clone(), &self.data, 1 << 16));
                }
                Slice::Encrypted { block, range } => {
                    all.extend(encrypted(block, range.clone(), &self.data, 1 << 16));
                }
            }
        }
        assert_eq!(all.len() as u64, body.len());
        all
    }

    /// Writes everything that an HLS player may request; returns the multivariant playlist's path.
    pub(crate) fn write_hls(&self, packaging: &Packaging, folder: &Folder) -> PathBuf {
        let videos: Vec<u16> = packaging.offers().iter().map(|offer| offer[0]).collect();
        for track in 0..u16::try_from(self.index.tracks.len()).unwrap() {
            let place = folder.file(&track.to_string());
            // An excerpt may leave a track out.
            let Some(init) = packaging.init_segment(track) else { continue };
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("init.mp4"), init).unwrap();
            for k in 0..packaging.segment_count(track) {
                let segment = self.bytes(&packaging.segment(track, k).unwrap());
                std::fs::write(place.join(format!("{k}.m4s")), segment).unwrap();
            }
            let playlist = packaging.media_playlist(track, "").unwrap();
            std::fs::write(folder.file(&format!("{track}.m3u8")), playlist).unwrap();
            for (number, body) in (0..).map_while(|k| Some((k, packaging.iframe(track, k)?))) {
                let path = place.join(format!("iframe-{number}.m4s"));
                std::fs::write(path, self.bytes(&body)).unwrap();
            }
            if let Some(playlist) = packaging.iframe_playlist(track, "") {
                std::fs::write(folder.file(&format!("{track}-iframes.m3u8")), playlist).unwrap();
            }
        }
        self.check_manifests(packaging, &folder.0.display().to_string());
        let master = folder.file("master.m3u8");
        std::fs::write(&master, packaging.multivariant_playlist(&videos, "")).unwrap();
        master
    }

    /// Checks the manifests and all that they name by the rules of RFC 8216 and ISO/IEC 23009-1.
    pub(crate) fn check_manifests(&self, packaging: &Packaging, what: &str) {
        let videos: Vec<u16> = packaging.offers().iter().map(|offer| offer[0]).collect();
        for text in [TextForm::WebVtt, TextForm::Imsc] {
            let links = Links { text, ..Links::default() };
            let multivariant = packaging.multivariant_playlist(&videos, links);
            testkit::hls::check(what, &multivariant, &mut |uri| self.fetch(packaging, uri));
            self.check_dash(packaging, what, &packaging.dash_manifest(&videos, links));
            assert_eq!(packaging.on_demand(), Ok(()), "{what}");
            self.check_dash(packaging, what, &packaging.on_demand_manifest(&videos, links));
            if self.index.texts.is_empty() {
                break;
            }
        }
    }

    /// Checks a DASH manifest and all that it names by the rules of ISO/IEC 23009-1.
    pub(crate) fn check_dash(
        &self,
        packaging: &Packaging,
        what: &str,
        manifest: &str,
    ) -> Vec<CheckedRepresentation> {
        testkit::dash::check(what, manifest, &mut |uri| self.find(packaging, uri))
    }

    /// The bytes of a URI of a playlist.
    pub(crate) fn fetch(&self, packaging: &Packaging, uri: &str) -> Vec<u8> {
        let found = self.find(packaging, uri);
        found.unwrap_or_else(|| panic!("a playlist names {uri}, which does not exist"))
    }

    fn find(&self, packaging: &Packaging, uri: &str) -> Option<Vec<u8>> {
        match uri.split_once('/') {
            None if uri == "thumbnails.m3u8" => {
                packaging.thumbnail_playlist("").map(String::into_bytes)
            }
            None if uri.ends_with(".mp4") => {
                let name = uri.strip_suffix(".mp4")?;
                let file = match name.strip_suffix("-iframes") {
                    Some(track) => packaging.iframe_file(track.parse().ok()?),
                    None => packaging.track_file(name.parse().ok()?),
                };
                file.map(|body| self.bytes(&body))
            }
            None => {
                let name = uri.strip_suffix(".m3u8")?;
                let playlist = match name.strip_suffix("-iframes") {
                    Some(track) => packaging.iframe_playlist(track.parse().ok()?, ""),
                    None => packaging.media_playlist(name.parse().ok()?, ""),
                };
                playlist.map(String::into_bytes)
            }
            Some(("text", text)) => Self::find_text(packaging, text),
            Some(("thumbnails", image)) => {
                let number = image.strip_suffix(".jpg")?.parse().ok()?;
                packaging.thumbnail_image(number).map(|image| image.to_vec())
            }
            Some((track, "init.mp4")) => {
                let init = track.parse().ok().and_then(|track| packaging.init_segment(track));
                init.map(|bytes| bytes.to_vec())
            }
            Some((track, "init-dash.mp4")) => {
                let init = track.parse().ok().and_then(|track| packaging.dash_init_segment(track));
                init.map(|bytes| bytes.to_vec())
            }
            Some((track, segment)) => segment.strip_suffix(".m4s").and_then(|number| {
                let track = track.parse().ok()?;
                let body = match number.strip_prefix("iframe-") {
                    Some(number) => packaging.iframe(track, number.parse().ok()?)?,
                    None => packaging.segment(track, number.parse().ok()?)?,
                };
                Some(self.bytes(&body))
            }),
        }
    }

    fn find_text(packaging: &Packaging, uri: &str) -> Option<Vec<u8>> {
        let of = |name: &str| name.parse::<u16>().ok();
        let (name, extension) = uri.split_once('.')?;
        let (webvtt, imsc, clock) = (TextForm::WebVtt, TextForm::Imsc, CueClock::Segments);
        let text = match (name.split_once('/'), extension) {
            (Some((text, "init")), "mp4") => return packaging.text_init(of(text)?),
            (Some((text, segment)), extension) => {
                let form = if extension == "m4s" { imsc } else { webvtt };
                return packaging.text_segment(of(text)?, segment.parse().ok()?, form);
            }
            (None, "m3u8") => match name.strip_suffix("-imsc") {
                Some(text) => packaging.text_playlist(of(text)?, imsc, ""),
                None => packaging.text_playlist(of(name)?, webvtt, ""),
            },
            (None, "ttml") => packaging.text_file(of(name)?, imsc, clock),
            (None, _) => packaging.text_file(of(name)?, webvtt, clock),
        };
        text.map(String::into_bytes)
    }

    /// Writes the progressive file of all tracks.
    pub(crate) fn write_progressive(&self, packaging: &Packaging, folder: &Folder) -> PathBuf {
        let all: Vec<u16> = (0..u16::try_from(self.index.tracks.len()).unwrap()).collect();
        let path = folder.file("progressive.mp4");
        std::fs::write(&path, self.bytes(&packaging.progressive(&all))).unwrap();
        path
    }
}
