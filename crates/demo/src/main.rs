//! `make demo`: from a film to streams that do not stall, by calling `tenuto` as a user would.
//! `make cluster` is in [`cluster`].
//!
//! ```text
//!   footage ─ format ─ ingest ─ calibrate ─┬─ serve ── play N viewers ──┬─ summary.json
//!                                          │         └─ play an evening └─ report.html
//!                                          ├─ nginx ── play that evening (where it can run)
//!                                          └─ serve --admission none
//!                                             └─ play the same N
//! ```
//!
//! Each step prints the command that it runs, so that a reader learns the tool. All files lie under
//! `target/demo`. No process outlives the demo, however it ends, unless KEEP=1. The demo measures
//! nothing itself: the figures are those of `tenuto play` and of the server's `/status`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to watch")]

mod children;
mod cluster;
mod media;
mod nginx;
mod page;
mod server;
mod summary;

use children::{Call, Problem, check};
use serde_json::Value;
use server::{Server, Watch};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use summary::{Capacity, DemoRound, Results};
use tenuto_client::PlayReport;
use units::show::count;

const HELP: &str = "\
Usage: demo [cluster] [DIRECTORY]

Runs the demo with the program target/release/tenuto under DIRECTORY (the working directory unless
given), and writes target/demo/report.html and summary.json there. With the word cluster: several
nodes and directors with an etcd, and what viewers notice when one of them is lost.

Environment:
  MEDIA=PATH...      your own footage beside the generated titles
  DEMO_SECONDS=N     playing time of Tenuto's three rounds together, 10 to 3600 (default 60)
  AS_DISK=MODEL      the disk model that reads are slowed down to; none: the disk as it is
  KEEP=1             leave a server running at the end, with viewers for half an hour
  CLUSTER_SECONDS=N  playing time of the cluster's rounds together, 60 to 3600 (default 125)
  CLUSTER_LOAD=N     its viewers, in per cent of the streams that four nodes guarantee (default 60)
  CLUSTER_FULL=N     minutes of a full house before them: more viewers than there are places (default 0)
  TENUTO=PATH        another program than target/release/tenuto
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let of_cluster = words.next_if(|word| word == "cluster").is_some();
    let root = match words.next().as_deref() {
        Some("--help" | "-h" | "help") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from("."),
    };
    let outcome = if of_cluster { cluster::run(&root) } else { run(&root).map(|()| true) };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        // The table says why.
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the demo in `root`; the environment variables of [`HELP`] set its options.
fn run(root: &Path) -> Result<(), Problem> {
    let demo = Demo::new(root)?;
    let footage = demo.footage()?;
    demo.fill_store(&footage.files)?;
    let calibration = demo.calibrate()?;
    let disk = demo.choose_disk(&calibration);
    let server = demo.serve(&disk, None, "serve.log")?;
    let titles = server.get("/titles")?;
    let capacity = Capacity::of(&server.opened()?, &titles, MEMORY_MIB << 20);
    let crowd = Crowd::for_capacity(&capacity, demo.seconds);
    println!("\nDisk: {}.\n{}\n", disk.words, capacity.sentence());
    let with = demo.play(&server, &crowd, "with admission")?;
    // The first crowd has left: its places are free at once for those who come now.
    let evening = demo.play(&server, &crowd.of_an_evening(), "popular evening")?;
    drop(server);
    let nginx = demo.evening_of_nginx(&footage.files, &titles, &disk, &crowd.of_an_evening())?;
    let server = demo.serve(&disk, Some("none"), "serve-none.log")?;
    // The first server is stopped by now, so that each round has the disk to itself.
    let without = demo.play(&server, &crowd, "without admission")?;
    drop(server);
    let commands = demo.commands.lock().expect("one thread").clone();
    let results = Results {
        origin: footage.origin,
        disk: disk.words.clone(),
        calibration,
        capacity,
        with,
        evening,
        nginx,
        without,
        commands,
    };
    demo.write_results(&results)?;
    if demo.keep {
        demo.start_kept_server(&disk, results.capacity.viewers)?;
    }
    Ok(())
}

/// The files that are ingested, and a phrase on their origin.
struct Footage {
    files: Vec<PathBuf>,
    origin: String,
}

/// Settings and state that all steps share.
struct Demo {
    folder: PathBuf,
    tenuto: PathBuf,
    media: Option<Vec<PathBuf>>,
    /// Playing time of one round.
    seconds: u64,
    keep: bool,
    as_disk: Option<String>,
    stop: std::sync::Arc<AtomicBool>,
    /// The commands that were run, as printed.
    commands: Mutex<Vec<String>>,
}

/// The disk that the server reads from, perhaps slowed down to a model.
struct ServedDisk {
    as_disk: Option<String>,
    words: String,
}

/// The viewers of a round: their number, the mean time between arrivals, the playing time.
struct Crowd {
    viewers: u64,
    gap_ms: u64,
    seconds: u64,
    /// Some titles are popular, and viewers leave; otherwise each has a title of its own, as far as
    /// there are enough.
    evening: bool,
}

impl Crowd {
    /// Three times the predicted capacity, which arrives in the first two fifths of a round.
    fn for_capacity(capacity: &Capacity, seconds: u64) -> Self {
        let viewers = (capacity.viewers * 3).clamp(6, MOST_VIEWERS);
        let gap_ms = (seconds * 400 / viewers).max(1);
        Self { viewers, gap_ms, seconds, evening: false }
    }

    /// As many viewers, most of them of the popular titles; each stays for a while.
    fn of_an_evening(&self) -> Self {
        Self { evening: true, ..*self }
    }
}

/// An environment variable of [`HELP`].
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Makes `root` the working directory; returns the program, and the folder for files.
fn enter(root: &Path, folder: &str) -> Result<(PathBuf, PathBuf), Problem> {
    let root = std::path::absolute(root)
        .map_err(|error| format!("cannot find {}: {error}", root.display()))?;
    let release = root.join("target/release/tenuto");
    let tenuto = setting("TENUTO").map_or(release, PathBuf::from);
    if !tenuto.exists() {
        let path = tenuto.display();
        return Err(format!("{path} is not built; run 'make build' first"));
    }
    // Commands are then printed with the relative paths that a user would type.
    std::env::set_current_dir(&root)
        .map_err(|error| format!("cannot work in {}: {error}", root.display()))?;
    let folder = PathBuf::from(folder);
    // After the change of directory: the folder is relative to it.
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    Ok((tenuto, folder))
}

impl Demo {
    fn new(root: &Path) -> Result<Self, Problem> {
        let seconds = match setting("DEMO_SECONDS") {
            None => SECONDS,
            Some(text) => match text.parse() {
                Ok(seconds @ 10..=3600) => seconds,
                _ => return Err(format!("DEMO_SECONDS={text} is not a number from 10 to 3600")),
            },
        };
        let media = setting("MEDIA").map(|given| media::users_footage(&given)).transpose()?;
        let (tenuto, folder) = enter(root, "target/demo")?;
        Ok(Self {
            folder,
            tenuto,
            media,
            // All rounds are equally long.
            seconds: seconds / 3,
            keep: setting("KEEP").is_some_and(|keep| keep != "0"),
            as_disk: setting("AS_DISK"),
            stop: children::interrupts()?,
            commands: Mutex::new(Vec::new()),
        })
    }

    fn store(&self) -> PathBuf {
        self.folder.join("store.tenuto")
    }

    fn call(&self, command: &str) -> Call {
        Call::new(&self.tenuto).arg(command)
    }

    /// Prints a command before it is run, as a user would type it, and adds it to the report.
    fn print_command(&self, call: &Call) {
        println!("$ {}", call.typed());
        self.commands.lock().expect("one thread").push(call.typed());
    }

    /// Runs a command to its end; returns its standard output.
    fn run(&self, call: &Call) -> Result<String, Problem> {
        self.print_command(call);
        call.output(&self.log(), &self.stop)
    }

    /// The file with the last command's standard error.
    fn log(&self) -> PathBuf {
        self.folder.join("last.log")
    }

    fn footage(&self) -> Result<Footage, Problem> {
        let own = self.media.clone().unwrap_or_default();
        if own.len() >= ENOUGH_TITLES {
            return Ok(Footage { origin: count(own.len(), "file") + " of your own", files: own });
        }
        println!("making footage with FFmpeg (kept in target/demo/media for the next time)");
        let made = media::generated(&self.folder.join("media"), &self.stop)?;
        let mut origin = count(made.len(), "title") + " made with FFmpeg";
        if !own.is_empty() {
            let own = count(own.len(), "file");
            origin = format!("{own} of your own and, to have enough titles, {origin}");
        }
        Ok(Footage { files: own.into_iter().chain(made).collect(), origin })
    }

    fn fill_store(&self, files: &[PathBuf]) -> Result<(), Problem> {
        let bytes: u64 = files.iter().flat_map(|f| f.metadata()).map(|data| data.len()).sum();
        let size = format!("{}MiB", ((bytes + bytes / 10) >> 20) + SPARE_MIB);
        let format = self.call("format").arg(self.store()).args(["--size", &size, "--destroy"]);
        print!("{}", self.run(&format)?);
        // Not by `self.run`: an ingest that took in some of the files has failed, and the demo goes
        // on.
        let ingest = self.call("ingest").arg(self.store()).args(files);
        self.print_command(&ingest);
        let log = self.log();
        let (said, code) = ingest.run(&log, &self.stop)?;
        if code != Some(0) {
            // A file that cannot be ingested is left out; it is a failure if none could be.
            let problem = ingest.failure(code, &log);
            if said.is_empty() {
                return Err(problem);
            }
            println!("{problem}");
        }
        let lines: Vec<&str> = said.lines().collect();
        let (shown, more) = lines.split_at(lines.len().min(LINES_SHOWN));
        println!("{}", shown.join("\n"));
        if !more.is_empty() {
            println!("... and {} more", more.len());
        }
        Ok(())
    }

    fn calibrate(&self) -> Result<Value, Problem> {
        let call = self.call("calibrate").arg(self.store()).arg("--json");
        let text = self.run(&call)?;
        serde_json::from_str(&text).map_err(|error| format!("calibrate printed no JSON: {error}"))
    }

    /// The disk of this machine, slowed down to a model if it holds more viewers than one machine
    /// can play.
    fn choose_disk(&self, calibration: &Value) -> ServedDisk {
        let own = summary::guaranteed_rate(calibration);
        let own_words = format!("this machine's disk, which guarantees {}", summary::rate(own));
        let model = match self.as_disk.as_deref() {
            Some("none") => None,
            Some(model) => Some(model),
            None if own > FAST => Some(MODEL),
            None => None,
        };
        match model {
            None => ServedDisk { as_disk: None, words: own_words },
            Some(model) => ServedDisk {
                as_disk: Some(model.to_owned()),
                words: format!("{own_words}, slowed down to the disk model {model}"),
            },
        }
    }

    fn serve(&self, disk: &ServedDisk, policy: Option<&str>, log: &str) -> Result<Server, Problem> {
        // Any free port: another server may run on this machine.
        let mut call = self.call("serve").arg(self.store()).args(["--listen", "127.0.0.1:0"]);
        call = call.args(["--memory", &format!("{MEMORY_MIB}MiB"), "--grace", "1s"]);
        if let Some(model) = &disk.as_disk {
            call = call.args(["--as-disk", model]);
        }
        if let Some(policy) = policy {
            call = call.args(["--admission", policy]);
        }
        let call = call.arg("--json");
        self.print_command(&call);
        Server::start(&call, &self.folder.join(log), &self.stop)
    }

    /// Plays one round and samples the server's status meanwhile.
    fn play(&self, server: &Server, crowd: &Crowd, name: &str) -> Result<DemoRound, Problem> {
        let before = server.get("/status")?;
        let (done, watch) = (AtomicBool::new(false), Mutex::new(Watch::from(&before)));
        let report = std::thread::scope(|scope| {
            scope.spawn(|| server.watch(&done, &watch));
            let report = self.report(&[server.url()], crowd, name);
            done.store(true, Ordering::Relaxed);
            report
        })?;
        let watch = watch.into_inner().expect("no thread panics while it holds this");
        let round = DemoRound { name: name.to_owned(), report, watch };
        println!("{}\n", round.sentence());
        Ok(round)
    }

    /// The report of the viewers of `urls`.
    fn report(&self, urls: &[String], crowd: &Crowd, name: &str) -> Result<PlayReport, Problem> {
        let mut call = self
            .call("play")
            .args(urls)
            .args(["--viewers", &crowd.viewers.to_string()])
            // With one seed the same viewers arrive at the same times in all rounds.
            .args(["--arrivals", &format!("poisson:{}ms", crowd.gap_ms)])
            .args(["--duration", &format!("{}s", crowd.seconds), "--seed", "1", "--json"]);
        if crowd.evening {
            let stay = format!("{}s", crowd.seconds);
            call = call.args(["--choice", "zipf:1.0", "--stay", &stay]);
        }
        self.print_command(&call);
        let log = self.log();
        println!("playing for {} s", crowd.seconds);
        // Refused and failed viewers are results; the demo goes on.
        let (text, code) = call.run(&log, &self.stop)?;
        if text.is_empty() {
            return Err(call.failure(code, &log));
        }
        // Saved before it is parsed, so that a report that does not parse can be read.
        let saved = self.folder.join(format!("play-{}.json", name.replace(' ', "-")));
        children::write(&saved, &text)?;
        serde_json::from_str(&text)
            .map_err(|error| format!("'{}' printed no report: {error}", call.typed()))
    }

    /// Plays an evening with nginx; `None` where it cannot run: it is a comparison, without which
    /// the demo is complete.
    fn evening_of_nginx(
        &self,
        files: &[PathBuf],
        titles: &Value,
        disk: &ServedDisk,
        crowd: &Crowd,
    ) -> Result<Option<DemoRound>, Problem> {
        let name = "evening with nginx";
        let played = nginx::prepare(self, files, titles, disk.as_disk.as_deref())
            .and_then(|peer| self.report(peer.urls(), crowd, name));
        match played {
            Ok(report) => {
                let round = DemoRound { name: name.to_owned(), report, watch: Watch::default() };
                println!("{}\n", round.sentence());
                Ok(Some(round))
            }
            Err(problem) => {
                check(&self.stop)?;
                println!("nginx is left out: {problem}\n");
                Ok(None)
            }
        }
    }

    /// Writes the files of results, and prints the table.
    fn write_results(&self, results: &Results) -> Result<(), Problem> {
        let write = |name: &str, text: String| children::write(&self.folder.join(name), &text);
        let json = serde_json::to_string_pretty(&results.json()).map_err(|e| e.to_string())?;
        write("summary.json", json + "\n")?;
        write("report.html", page::page(results).map_err(|error| error.to_string())?)?;
        println!("{}", results.text());
        println!("saved target/demo/summary.json, and target/demo/report.html with plots");
        Ok(())
    }

    /// KEEP=1: starts a server that runs after the demo has ended, for a browser, and viewers who
    /// come and go for half an hour: a few more than fit, so that some are refused.
    fn start_kept_server(&self, disk: &ServedDisk, fitting: u64) -> Result<(), Problem> {
        // Ctrl-C during the report means that nothing is kept running.
        check(&self.stop)?;
        let server = self.serve(disk, None, "serve-kept.log")?;
        let watching = (fitting * 13 / 10 + 1).min(MOST_VIEWERS);
        let gap_ms = (KEPT_STAY_SECONDS * 1000 / watching).max(1);
        let call = self
            .call("play")
            .args([server.url()])
            .args(["--viewers", &(KEPT_SECONDS * 1000 / gap_ms).to_string()])
            .args(["--arrivals", &format!("poisson:{gap_ms}ms")])
            .args(["--stay", &format!("{KEPT_STAY_SECONDS}s")])
            .args(["--duration", &format!("{KEPT_SECONDS}s"), "--seed", "1", "--json"]);
        self.print_command(&call);
        let mut viewers = call.start(&self.folder.join("play-kept.log"))?;
        viewers.keep();
        println!("\nwatch the server and its titles at {}/console/", server.url());
        println!("viewers come and go for {} minutes; the server runs on", KEPT_SECONDS / 60);
        println!("stop both with: kill {} {}", viewers.id(), server.keep());
        Ok(())
    }
}

/// Playing time of all rounds together; the whole demo then takes less than three minutes.
const SECONDS: u64 = 60;

/// A disk of 1999. It holds so few viewers that each can watch a title of its own: viewers of one
/// title share reads, which would hide the disk's limit.
const MODEL: &str = "st39183w";

/// A disk faster than this (bits per second) holds more viewers than the demo has titles.
const FAST: f64 = 150e6;

/// Buffer memory: enough for the disk's streams, too little to cache the titles.
const MEMORY_MIB: u64 = 64;

/// The number of viewers that one machine can play while it serves.
const MOST_VIEWERS: u64 = 400;

/// For how long viewers come and go after the demo (KEEP=1).
const KEPT_SECONDS: u64 = 1800;

/// How long one of them stays on average.
const KEPT_STAY_SECONDS: u64 = 60;

/// With fewer titles most viewers would share reads.
const ENOUGH_TITLES: usize = 8;

/// Lines of the ingest's output that are shown; it prints one per title.
const LINES_SHOWN: usize = 4;

/// Room for the store's metadata.
const SPARE_MIB: u64 = 128;
