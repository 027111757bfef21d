//! mpv and VLC play titles to their ends from HLS, also with transport streams, and from
//! progressive MP4, without a complaint.
//!
//! Neither needs a screen or a sound card here: mpv's filter prints the checksum of each decoded
//! picture, VLC writes the pictures that it shows into a file, and both write the sound.
//! `benches/players.py` plays many more titles in these players.

use crate::files::ADMITS_ALL;
use crate::films::{self, FILMS, Film, INSTANTS, OnceEach, PICTURES};
use crate::program::TestDir;
use crate::transport;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A title of each video codec and of sound alone. From MP4 and HLS, the packets of all others are
/// compared with those of the source in FFmpeg, whose libraries both players use.
const TITLES: &[&str] = &[
    "h264-aac",
    "h264-opus",
    "hevc-aac",
    "av1-opus",
    "vp9-opus",
    "mpeg2-ac3",
    "mpeg4-mp3",
    "prores-pcm",
    "aac",
];

#[test]
fn mpv_decodes_the_pictures_of_the_source() {
    each_title(2, |dir, play| {
        let address = &play.address;
        let [log, sound] = play.files(dir, ["log", "wav"]);
        let output = Command::new("timeout")
            .args(["180", "mpv", "--no-config", "--no-terminal", "--hwdec=no", "--framedrop=no"])
            .args(["--vo=null", "--ao=pcm", "--untimed", "--vf=lavfi=[showinfo]"])
            .args([&format!("--log-file={log}"), &format!("--ao-pcm-file={sound}"), address])
            .output()
            .expect("timeout runs");
        let said = std::fs::read_to_string(&log).expect("just made");
        assert!(
            output.status.success(),
            "mpv (apt-get install mpv) does not play {address}: {output:?}\n{said}"
        );
        let complaints: Vec<&str> = said.lines().filter(|line| is_complaint_of_mpv(line)).collect();
        assert!(complaints.is_empty(), "mpv on {address}:\n{}", complaints.join("\n"));
        let wanted = checksums_of_source(play.film, &play.film.path(dir));
        assert_eq!(checksums(&said), wanted, "{address}: pictures");
        assert_whole_sound(address, &sound);
    });
}

#[test]
fn vlc_shows_the_pictures_of_the_source() {
    each_title(6, |dir, play| {
        let address = &play.address;
        let [pictures, sound] = play.files(dir, ["yuv", "wav"]);
        let mut player = Command::new("timeout");
        player
            .args(["180", "vlc", "-I", "dummy", "--no-dbus", "--no-lua", "--no-spu"])
            .args(["--no-video-title-show", "--no-drop-late-frames", "--no-skip-frames"])
            .args(["--vout", "yuv", "--yuv-file", &pictures])
            .args(["--aout", "afile", "--audiofile-file", &sound])
            .args(["--play-and-exit", address])
            .env("HOME", dir.at(""));
        as_nobody(dir, &mut player, &[&pictures, &sound]);
        let output = player.output().expect("timeout runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "VLC (apt-get install vlc-bin vlc-plugin-base) does not play {address}:\n{said}"
        );
        let complaints: Vec<&str> = said.lines().filter(|line| is_complaint_of_vlc(line)).collect();
        assert!(complaints.is_empty(), "VLC on {address}:\n{}", complaints.join("\n"));
        assert!(said.contains("end of playlist"), "VLC did not reach the end of {address}");
        let shown = std::fs::read(&pictures).expect("just made");
        let shown = shown.windows(6).filter(|bytes| bytes == b"FRAME\n").count();
        let wanted = if play.film.layout.is_empty() { 0 } else { PICTURES };
        let (least, most) = (wanted.saturating_sub(SET_UP), wanted + SET_UP);
        assert!((least..=most).contains(&shown), "{address}: {shown} pictures");
        assert_whole_sound(address, &sound);
    });
}

/// One title by one way.
struct Play<'a> {
    number: usize,
    film: &'a Film,
    address: String,
}

impl Play<'_> {
    /// Makes empty files for what a player writes.
    fn files<const N: usize>(&self, dir: &TestDir, extensions: [&str; N]) -> [String; N] {
        extensions.map(|extension| {
            let path = dir.at(&format!("{}.{extension}", self.number));
            std::fs::write(&path, "").expect("a file in the test's folder");
            path
        })
    }
}

/// Takes the titles in and calls `play` for each of them by each way, `at_once` at a time.
fn each_title(at_once: usize, play: impl Fn(&TestDir, &Play<'_>) + Sync) {
    let dir = films::stored();
    let films: Vec<&Film> = FILMS.iter().filter(|film| TITLES.contains(&film.title)).collect();
    assert_eq!(films.len(), TITLES.len());
    let server = dir.serve(ADMITS_ALL);
    let mut plays = Vec::new();
    for film in films {
        // VLC 3.0 cannot write AC-3 of a transport stream into a WAV file.
        let has_form = transport::TITLES.contains(&film.title) && !film.title.ends_with("-ac3");
        let transport = has_form.then_some("/master-ts.m3u8");
        for end in ["/master.m3u8", ".mp4"].into_iter().chain(transport) {
            let address = server.url(&format!("/t/{}{end}", film.title));
            plays.push(Play { number: plays.len(), film, address });
        }
    }
    let (next, play, plays, dir) = (AtomicUsize::new(0), &play, &plays, &dir);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(one) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    play(dir, one);
                }
            });
        }
    });
}

/// The checksums that FFmpeg's filter `showinfo` printed, in order.
pub(crate) fn checksums(said: &str) -> Vec<&str> {
    said.lines()
        .filter_map(|line| line.split_once(" checksum:"))
        .filter_map(|(_, rest)| rest.split(' ').next())
        .collect()
}

pub(crate) fn checksums_of_source(film: &Film, source: &str) -> Vec<String> {
    static FOUND: OnceEach<Vec<String>> = OnceEach::new();
    if film.layout.is_empty() {
        return Vec::new();
    }
    FOUND.get(film, || {
        let output = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "info", "-i", source, "-an", "-vf", "showinfo"])
            .args(["-fps_mode", "passthrough", "-f", "null", "-"])
            .output()
            .expect("ffmpeg runs (apt-get install ffmpeg)");
        let said = String::from_utf8_lossy(&output.stderr);
        let checksums: Vec<String> = checksums(&said).into_iter().map(str::to_owned).collect();
        assert_eq!(checksums.len(), PICTURES, "{source}");
        checksums
    })
}

/// Whether mpv's log has a warning or an error in this line.
fn is_complaint_of_mpv(line: &str) -> bool {
    let is_bad = ["[w]", "[e]", "[f]"].iter().any(|level| line.contains(level));
    // Without a clock, sound that is written into a file is ahead of the pictures.
    const WITHOUT_CLOCK: &[&str] = &[
        "Audio/Video desynchronisation",
        "hardware, temporary CPU spikes",
        "position will not match to the video",
    ];
    let text = line.rsplit(']').next().unwrap_or_default();
    is_bad && !text.trim().is_empty() && !WITHOUT_CLOCK.iter().any(|words| line.contains(words))
}

/// Whether VLC prints an error in this line that is about the title.
fn is_complaint_of_vlc(line: &str) -> bool {
    const OF_ITS_OWN: &[&str] = &[
        // It looks for a desktop, and tries to decode with a graphics card first.
        "interface",
        "PulseAudio",
        "level of recursion",
        "video converter",
        "Failed to adapt decoder format",
        "video output creation failed",
        "failed to create video output",
        // It opens the output before AC-3 tells its sampling rate, from any HLS, and then again.
        "too low audio sample frequency (0)",
        "module not functional",
        "failed to create audio output",
    ];
    line.contains(" error: ") && !OF_ITS_OWN.iter().any(|words| line.contains(words))
}

/// VLC does not run as root: it gets the rights of nobody, and the files that it writes.
fn as_nobody(dir: &TestDir, player: &mut Command, files: &[&String]) {
    const NOBODY: u32 = 65534;
    if std::fs::metadata("/proc/self").expect("procfs").uid() != 0 {
        return;
    }
    for path in files.iter().map(|path| path.as_str()).chain([dir.at("").as_str()]) {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    player.uid(NOBODY).gid(NOBODY);
}

/// Checks the length of the sound in a WAV file.
fn assert_whole_sound(address: &str, path: &str) {
    let sound = std::fs::read(path).expect("the player wrote it");
    let two = |at: usize| usize::from(u16::from_le_bytes([sound[at], sound[at + 1]]));
    let (channels, bits) = (two(22), two(34));
    let instants = (sound.len() - 44) / (channels * bits / 8);
    let range = INSTANTS - PACKETS..INSTANTS + PACKETS;
    assert!(range.contains(&instants), "{address}: {instants} instants of sound");
}

/// Pictures that VLC loses or shows twice while it sets up its output: more on a busy machine.
const SET_UP: usize = 5;

/// What encoders add at the ends, and what players cut off there: at most three packets.
const PACKETS: usize = 3 * 1536;
