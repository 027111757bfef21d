//! Lee and Srivastava's 23 streams against 16 on the emulated disk, through a whole server: a real
//! `serve` with real players, whose titles are in a store on the raw disk (their PFS), or in files
//! of ext2 (their UFS).
//!
//! ```text
//!   raw    25 titles, one store ─ O_DIRECT, sweeps, admission by disk time ──┐
//!   ext2   25 files of one title, a reader each ─ page cache, read-ahead     ├─ HLS ─ 25 players
//!          of 128 KiB, no admission ─────────────────────────────────────────┘
//! ```
//!
//! The server is the same program in both cases. It runs by this machine's clock, so that the disk
//! is no faster than the model. What is counted are viewers who stall, and no frames within what a
//! player has buffered.

use super::bench::Bench;
use super::programs::{self, RunFolder, Running};
use super::{Cost, EmulatedOptions, EmulatedResult, FileSystem, MJPEG, MJPEG_FRAME, Mounted};
use super::{MPEG1, lateness, p99_ms};
use crate::error::MeterError;
use crate::report::{Cell, Report, Table, cell};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{ByteCount, float};

/// The size of the disk, which has the model's whole stroke and all of its zones. The titles fill
/// four fifths of it.
pub(super) const DISK: ByteCount = ByteCount(2_000_000_000);

/// The cost of the attempts, with the most that a search takes.
pub(super) fn cost(options: &EmulatedOptions) -> Cost {
    let raw = u32::from(options.has_raw());
    let attempts = raw + USUAL_ATTEMPTS * u32::from(options.file_systems().next().is_some());
    let time = (RUN + BETWEEN) * attempts + CALIBRATION * raw;
    let rounds = time.as_secs_f64() / options.block.time_at(MPEG1).as_secs_f64();
    let rounds = u32::try_from(units::rounded(rounds)).unwrap_or(u32::MAX);
    Cost { ways: attempts, rounds, sequential: 0 }
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<EmulatedResult, MeterError> {
    let mut attempts = Table::new("attempts", "Players of the server, by their number");
    let mut held = [None, None];
    let done = fill(bench, &mut attempts, &mut held);
    let report = Report {
        source: "Lee and Srivastava, Experiences with Evaluating System QoS and Channel \
                 Performance on Media-On-Demand Systems, section 5.1 and figure 4"
            .to_owned(),
        method: format!(
            "{MOST} titles of {} s of motion JPEG, 540 KB/s in frames of 18 KB, on an emulated \
             ST39183W in place of the paper's unnamed disk, of which they fill four fifths; players \
             of HLS, each of a title of its own, for {} s, who begin to play with {} s of media and \
             buffer {} s. raw: one store on the disk, calibrated by the server's own program; all \
             {MOST} players ask, and the server, with 512 MiB of memory, admits as many as it \
             guarantees. ext2: a file for each title, which the server, with 64 MiB of its own, \
             reads one after another in pieces of 64 KiB through the page cache, with a read-ahead \
             of {READ_AHEAD_KIB} KiB and without admission; the number of players is searched. A \
             number is held if all of them are admitted and none stalls.",
            TITLE.as_secs(),
            RUN.as_secs(),
            START_BUFFER.as_secs(),
            BUFFER.as_secs()
        ),
        tables: vec![most(held), attempts],
        notes: lateness(bench),
        figures: Vec::new(),
    };
    EmulatedResult::of(bench, report, done)
}

/// The number that is held on the raw disk and on ext2, beside the paper's.
fn most([raw, files]: [Option<u32>; 2]) -> Table {
    let ratio = |raw: Option<u32>, files: Option<u32>| match (raw, files) {
        (Some(raw), Some(files)) if files > 0 => Cell::Number(f64::from(raw) / f64::from(files), 2),
        _ => Cell::Missing,
    };
    let rows = [
        ("store on the raw disk (PFS)", Cell::from(Some(PAPER[0])), Cell::from(raw)),
        ("files on ext2 (UFS)", Cell::from(Some(PAPER[1])), Cell::from(files)),
        ("ratio", ratio(Some(PAPER[0]), Some(PAPER[1])), ratio(raw, files)),
    ];
    let cells = rows.map(|(what, paper, ours)| {
        [cell("what", "what", what), cell("paper", ">paper", paper), cell("ours", ">ours", ours)]
    });
    Table::of("streams", "Most streams of 540 KB/s of the same server", cells)
}

fn fill(
    bench: &mut Bench<'_>,
    table: &mut Table,
    held: &mut [Option<u32>; 2],
) -> Result<(), MeterError> {
    let program = bench.options.program.clone();
    let program = program.ok_or_else(|| MeterError::usage("no server can be started"))?;
    let folder = RunFolder::make()?;
    let films = films(bench, &folder)?;
    let server = ServerUnderTest { program, folder, films };
    if bench.options.has_raw() {
        server.make_store(bench)?;
        let store = bench.device().to_owned();
        let played = server.attempt(bench, &RAW, &[store], MOST)?;
        add(table, bench, RAW.name, MOST, &played);
        held[0] = Some(if played.stalled == 0 { played.admitted } else { 0 });
    }
    if bench.options.file_systems().next().is_some() {
        let (mut mounted, stores) = server.make_files(bench)?;
        let mut tried = Vec::new();
        while let Some(players) = next_number(&tried) {
            mount_cold(bench, &mut mounted)?;
            let played = server.attempt(bench, &FILES, &stores, players)?;
            add(table, bench, FILES.name, players, &played);
            tried.push((players, played.holds(players)));
        }
        held[1] = most_held(&tried);
    }
    Ok(())
}

/// Mounts the files anew. The kernel removes the rings of a server, which keep its files open, a
/// little after its end.
fn mount_cold(bench: &Bench<'_>, mounted: &mut Mounted) -> Result<(), MeterError> {
    let mut looks = 0..LOOKS;
    while let Err(error) = mounted.mount_cold(Some(READ_AHEAD_KIB)) {
        if looks.next().is_none() {
            return Err(error);
        }
        bench.still()?;
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn add(table: &mut Table, bench: &mut Bench<'_>, system: &str, players: u32, played: &Played) {
    let late = float(played.late_ldus) / float(played.ldus.max(1)) * 100.0;
    table.add([
        cell("system", "system", system),
        cell("players", ">players", players),
        cell("admitted", ">admitted", played.admitted),
        cell("stalled", ">stalled", played.stalled),
        cell("late_percent", ">frames late, %", Cell::Number(late, 2)),
        cell("rate_mb_s", ">MB/s", Cell::Number(played.rate / 8e6, 2)),
        cell("disk_late_p99_ms", ">late p99, ms", p99_ms(&bench.disk.statistics())),
    ]);
    bench.done += 1;
    let Played { admitted, stalled, .. } = *played;
    let found = format!("{system}, {players} players: {admitted} admitted, {stalled} stalled");
    bench.tell(&found, true);
}

/// The next number of players to try, after those that were held or not; `None` when the most is
/// known.
fn next_number(tried: &[(u32, bool)]) -> Option<u32> {
    let most = most_held(tried);
    let failing = tried.iter().filter(|(_, held)| !held).map(|(players, _)| *players).min();
    let next = match (most, failing) {
        (None, None) => PAPER[1],
        (Some(most), None) => (most + STEP).min(MOST),
        (None, Some(failing)) => failing.saturating_sub(STEP),
        (Some(most), Some(failing)) => most.midpoint(failing),
    };
    (next > 0 && tried.iter().all(|(players, _)| *players != next)).then_some(next)
}

/// The most players that were held below the fewest that were not.
fn most_held(tried: &[(u32, bool)]) -> Option<u32> {
    let failing = tried.iter().filter(|(_, held)| !held).map(|(players, _)| *players).min();
    let held = tried.iter().filter(|(_, held)| *held).map(|(players, _)| *players);
    held.filter(|players| failing.is_none_or(|failing| *players < failing)).max()
}

/// What players of the server saw.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Played {
    admitted: u32,
    /// Players with a stall.
    stalled: u32,
    ldus: u64,
    late_ldus: u64,
    /// Bits a second of all.
    rate: f64,
}

impl Played {
    /// The result of `play --json`.
    fn of(report: &Value) -> Option<Self> {
        let number = |name: &str| report["totals"][name].as_u64();
        let few = |name: &str| number(name).and_then(|number| u32::try_from(number).ok());
        Some(Self {
            admitted: few("admitted")?,
            stalled: few("viewers_with_stalls")?,
            ldus: number("ldus")?,
            late_ldus: number("late_ldus")?,
            rate: report["totals"]["bits_per_s"].as_f64()?,
        })
    }

    fn holds(&self, players: u32) -> bool {
        self.admitted == players && self.stalled == 0
    }
}

/// The program, the films, and the directory of the run.
struct ServerUnderTest {
    program: PathBuf,
    folder: RunFolder,
    films: Vec<PathBuf>,
}

/// How the server reads.
struct Serving {
    /// The name in tables.
    name: &'static str,
    /// Options of `serve`.
    options: &'static str,
}

impl ServerUnderTest {
    fn run(&self, bench: &mut Bench<'_>, words: &str, paths: &[&Path]) -> Result<(), MeterError> {
        let arguments = arguments(words, paths);
        programs::output(bench, &self.folder, &self.program, &arguments, &[0]).map(drop)
    }

    /// Makes a store with all titles on the raw disk, and calibrates it.
    fn make_store(&self, bench: &mut Bench<'_>) -> Result<(), MeterError> {
        let device = bench.device().to_owned();
        bench.disk.set_fast(true);
        bench.say("filling the store");
        self.run(bench, "format --destroy", &[&device])?;
        let mut paths = vec![device.as_path()];
        paths.extend(self.films.iter().map(PathBuf::as_path));
        self.run(bench, "ingest", &paths)?;
        bench.say("calibrating the store");
        bench.disk.set_fast(false);
        let calibrated = self.run(bench, "calibrate", &[&device]);
        bench.disk.set_fast(true);
        calibrated
    }

    /// Makes ext2 with a file for each title, a store that has nothing else.
    fn make_files(&self, bench: &mut Bench<'_>) -> Result<(Mounted, Vec<PathBuf>), MeterError> {
        bench.disk.set_fast(true);
        bench.say("making ext2");
        let range = units::align_down(bench.model.capacity().0, 1 << 20);
        let mounted = FileSystem::Ext2.make(bench.device(), range)?;
        let mut stores = Vec::new();
        for number in 0..self.films.len() {
            bench.say(&format!("filling ext2: {number} of {} files", self.films.len()));
            let store = mounted.folder().join(format!("film-{number:02}.store"));
            let stop = bench.stop;
            let written = mounted.write(&store, FILE.0, &|| !stop.is_asked());
            bench.still()?;
            written.map_err(MeterError::cannot("write", &store))?;
            stores.push(store);
        }
        // Only now, so that the files are written one after another and lie in one piece.
        for (number, (store, film)) in stores.iter().zip(&self.films).enumerate() {
            bench.say(&format!("filling ext2: {number} of {} titles", stores.len()));
            self.run(bench, "format --destroy", &[store])?;
            self.run(bench, "ingest", &[store, film])?;
        }
        Ok((mounted, stores))
    }

    /// Starts the server, lets players play, and stops it.
    fn attempt(
        &self,
        bench: &mut Bench<'_>,
        how: &Serving,
        stores: &[PathBuf],
        players: u32,
    ) -> Result<Played, MeterError> {
        bench.say(&format!("{}, {players} players", how.name));
        bench.reset_statistics();
        bench.disk.set_fast(false);
        let played = self.served(bench, how, stores, players);
        bench.disk.set_fast(true);
        bench.still()?;
        played
    }

    fn served(
        &self,
        bench: &mut Bench<'_>,
        how: &Serving,
        stores: &[PathBuf],
        players: u32,
    ) -> Result<Played, MeterError> {
        let stores: Vec<&Path> = stores.iter().map(PathBuf::as_path).collect();
        let serve = format!("serve {SERVE} {}", how.options);
        let mut server = Running::start(&self.folder, &self.program, &arguments(&serve, &stores))?;
        let ready = server.ready()?;
        let url = ready["url"].as_str().unwrap_or_default();
        let play = arguments(&play_words(players, url), &[]);
        // 1: a player failed, such as one that got nothing for long; 3: none was admitted.
        let said = programs::output(bench, &self.folder, &self.program, &play, &[0, 1, 3])?;
        let report: Option<Value> = serde_json::from_slice(&said).ok();
        report.as_ref().and_then(Played::of).ok_or_else(|| {
            MeterError::new("the players' report cannot be read")
                .hint("reproduce with the program that measures")
        })
    }
}

/// The words of `play` for so many players.
fn play_words(players: u32, url: &str) -> String {
    let [run, wait, start, buffer] = [RUN, WAIT, START_BUFFER, BUFFER].map(|time| time.as_secs());
    format!(
        "play {url} --viewers {players} --duration {run}s --wait {wait}s --start-buffer {start}s \
         --buffer {buffer}s --json"
    )
}

fn arguments(words: &str, paths: &[&Path]) -> Vec<OsString> {
    let words = words.split_whitespace().map(OsString::from);
    words.chain(paths.iter().map(|path| path.as_os_str().to_owned())).collect()
}

/// Makes the film, and a name of it for each title.
fn films(bench: &mut Bench<'_>, folder: &RunFolder) -> Result<Vec<PathBuf>, MeterError> {
    bench.say("making the film");
    let [picture, frames, film] =
        ["picture.jpg", "film.mjpeg", "film.mov"].map(|name| folder.file(name));
    let ffmpeg = |bench: &mut Bench<'_>, words: &str, from: Option<&Path>, to: &Path| {
        let mut all = arguments("-nostdin -v error", &[]);
        all.extend(arguments(words, &from.into_iter().collect::<Vec<_>>()));
        all.extend(arguments("-c:v", &[]));
        all.extend(arguments(if from.is_some() { "copy" } else { "mjpeg" }, &[to]));
        programs::output(bench, folder, Path::new("ffmpeg"), &all, &[0])
            .map_err(|error| error.hint("install ffmpeg, which `ingest` needs as well"))
    };
    let source = "-f lavfi -i testsrc2=s=640x480 -frames:v 1 -q:v 20";
    ffmpeg(bench, source, None, &picture)?;
    let jpeg = std::fs::read(&picture).map_err(MeterError::cannot("read", &picture))?;
    let frame = padded(&jpeg, MJPEG_FRAME).ok_or_else(|| {
        MeterError::new(format!("a test picture has {} bytes, and no {MJPEG_FRAME}", jpeg.len()))
    })?;
    write_frames(&frames, &frame).map_err(MeterError::cannot("write", &frames))?;
    ffmpeg(bench, "-framerate 30 -f mjpeg -i", Some(&frames), &film)?;
    let named = |number: u32| {
        let path = folder.file(&format!("film-{number:02}.mov"));
        std::fs::hard_link(&film, &path).map_err(MeterError::cannot("make", &path))?;
        Ok(path)
    };
    (0..MOST).map(named).collect()
}

fn write_frames(path: &Path, frame: &[u8]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for _ in 0..TITLE.as_nanos() / MJPEG_FRAME.time_at(MJPEG).as_nanos() {
        file.write_all(frame)?;
    }
    file.flush()
}

/// A JPEG picture made as long as `len` by a comment; `None` if it is longer, or too short for one.
fn padded(jpeg: &[u8], len: ByteCount) -> Option<Vec<u8>> {
    let (start, rest) = jpeg.split_at_checked(START_OF_IMAGE.len())?;
    let comment = usize::try_from(len.0).ok()?.checked_sub(jpeg.len() + COMMENT.len())?;
    let length = u16::try_from(comment).ok().filter(|length| *length >= 2)?;
    let fill = vec![b' '; comment - 2];
    let is_jpeg = start == START_OF_IMAGE;
    is_jpeg.then(|| [start, &COMMENT, &length.to_be_bytes(), &fill, rest].concat())
}

/// Streams of the paper's PFS and UFS.
const PAPER: [u32; 2] = [23, 16];

/// Titles on the disk, and the most players: more than its mean rate is enough for.
const MOST: u32 = 25;

/// The length of a title: longer than a run.
const TITLE: Duration = Duration::from_secs(120);

/// The time from the first player to the end of a run. All who are admitted play together for the
/// last minute.
const RUN: Duration = Duration::from_secs(90);

/// How long a player waits for its admission.
const WAIT: Duration = Duration::from_secs(30);

/// What a player buffers before it plays, and at most.
const START_BUFFER: Duration = Duration::from_secs(2);
const BUFFER: Duration = Duration::from_secs(10);

/// Read-ahead of ext2 in KiB, as in `lee-drift`: the paper does not state that of UFS.
const READ_AHEAD_KIB: u32 = 128;

/// The store of one title: 65 MB of it, and room for the index and the log.
const FILE: ByteCount = ByteCount::mib(72);

/// Options of the server in every case: nothing that reads beside the players.
const SERVE: &str = "--listen 127.0.0.1:0 --scrub 0s --recalibrate-after 0s --grace 0s --json";

/// The server as it is.
const RAW: Serving = Serving { name: "raw", options: "--memory 512MiB --startup 10s" };

/// The server as a program that reads files, with five seconds of media for each in memory. With
/// more it reads ahead for some players while others wait, because it admits all.
const FILES: Serving = Serving {
    name: "ext2",
    options: "--buffered --admission none --read-size 64KiB --memory 64MiB",
};

/// Looks whether the files of a server that has ended are closed, and the time between two.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The step of the search until one number is held and another is not.
const STEP: u32 = 3;

/// Attempts of a search, by experience, for the estimate.
const USUAL_ATTEMPTS: u32 = 5;

/// The start and the end of a server, and the time of a calibration, for the estimate.
const BETWEEN: Duration = Duration::from_secs(8);
const CALIBRATION: Duration = Duration::from_secs(95);

/// The marker at the beginning of a JPEG file, and that of a comment.
const START_OF_IMAGE: [u8; 2] = [0xff, 0xd8];
const COMMENT: [u8; 2] = [0xff, 0xfe];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_at_the_most_that_is_held() {
        for (most, trials) in [
            (0, "16 13 10 7 4 1"),
            (1, "16 13 10 7 4 1 2"),
            (12, "16 13 10 11 12"),
            (16, "16 19 17"),
            (18, "16 19 17 18"),
            (25, "16 19 22 25"),
        ] {
            let mut tried = Vec::new();
            while let Some(next) = next_number(&tried) {
                tried.push((next, next <= most));
            }
            let numbers: Vec<String> = tried.iter().map(|(next, _)| next.to_string()).collect();
            assert_eq!(numbers.join(" "), trials);
            assert_eq!(most_held(&tried).unwrap_or(0), most);
        }
        // Where more were held than failed once, the fewer count.
        assert_eq!(most_held(&[(16, true), (19, true), (17, false)]), Some(16));
    }

    #[test]
    fn a_number_is_held_if_all_are_admitted_and_none_stalls() {
        for (admitted, stalled, holds) in [(16, 0, true), (15, 0, false), (16, 1, false)] {
            let report = serde_json::json!({ "totals": {
                "admitted": admitted, "viewers_with_stalls": stalled, "ldus": 10, "late_ldus": 1,
                "bits_per_s": 69.5e6,
            }});
            let played = Played::of(&report).expect("all fields");
            assert_eq!((played.holds(16), played.rate), (holds, 69.5e6));
        }
        assert_eq!(Played::of(&serde_json::json!({ "error": "..." })), None);
    }

    #[test]
    fn the_verdict_is_beside_the_papers() {
        let ratio = |held| most(held).cell("ratio", "ours").cloned();
        assert_eq!(ratio([Some(23), Some(16)]), Some(Cell::Number(23.0 / 16.0, 2)));
        assert_eq!(ratio([Some(23), None]), Some(Cell::Missing));
        assert_eq!(most([None; 2]).cell("ratio", "paper"), Some(&Cell::Number(1.4375, 2)));
    }

    #[test]
    fn a_frame_has_the_papers_length() {
        let jpeg = [&START_OF_IMAGE[..], &[7; 100]].concat();
        let frame = padded(&jpeg, MJPEG_FRAME).expect("shorter than a frame");
        assert_eq!(frame.len(), 18_000);
        assert_eq!((&frame[..4], &frame[17_900..]), (&[0xff, 0xd8, 0xff, 0xfe][..], &[7; 100][..]));
        assert_eq!(u16::from_be_bytes([frame[4], frame[5]]), 18_000 - 102 - 2);
        assert_eq!(padded(&frame, MJPEG_FRAME), None);
        assert_eq!(padded(&[0; 100], MJPEG_FRAME), None);
    }

    #[test]
    fn players_and_servers_are_called_as_a_user_would() {
        let words = play_words(16, "http://127.0.0.1:8080/");
        assert_eq!(
            words,
            "play http://127.0.0.1:8080/ --viewers 16 --duration 90s --wait 30s --start-buffer 2s \
             --buffer 10s --json"
        );
        let all = arguments("serve --json", &[Path::new("/a b")]);
        assert_eq!(all, ["serve", "--json", "/a b"].map(OsString::from));
    }
}
