//! `make cluster`: five nodes, two directors, three members of etcd and a bucket on this machine,
//! and what viewers notice when one after the other is killed.
//!
//! ```text
//!   footage ─ bucket ─ etcd × 3 ─ nodes × 5 ─ directors × 2 ─ copies as the directors order
//!     then for each of: a node, the link of a node, the leader of etcd, a director, the server of
//!     the bucket while new titles are copied from it, a node in order, a node that is drained
//!       play ───────────────── crowd ──────────────▶ report
//!            loss ─▶ newcomers by the other director ▶ report ─▶ table, started again
//! ```
//!
//! With `CLUSTER_FULL` more viewers come before than there are places ([`full`]).
//!
//! Without a server for the bucket, the titles are put on the nodes by hand. All have addresses of
//! their own, as on several machines, and nodes their links ([`network`]). All files lie under
//! `target/demo/cluster`. No process outlives the program, however it ends, unless KEEP=1.

mod drain;
mod full;
mod gateway;
mod network;
mod parts;
mod round;

use crate::children::{self, Call, Problem, check};
use gateway::NEW_TITLES;
use network::ClusterNetwork;
use parts::{Parts, TITLES};
use round::{LossRound, table};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Settings and places that all parts share.
pub(crate) struct ClusterDemo {
    folder: PathBuf,
    tenuto: PathBuf,
    stop: Arc<AtomicBool>,
    /// Playing time of one round.
    seconds: u64,
    network: ClusterNetwork,
}

/// Runs the rounds; whether every admitted viewer went on without a stall.
pub(crate) fn run(root: &Path) -> Result<bool, Problem> {
    let seconds = number("CLUSTER_SECONDS", 60..=3600, SECONDS)?;
    let load = number("CLUSTER_LOAD", 10..=100, LOAD)?;
    let full = number("CLUSTER_FULL", 0..=600, 0)?;
    let (tenuto, folder) = crate::enter(root, "target/demo/cluster")?;
    let stop = children::interrupts()?;
    let network = ClusterNetwork::make(folder.join("network.log"))?;
    let mut demo = ClusterDemo { folder, tenuto, stop, seconds, network };
    let begun = Instant::now();
    let (guaranteed, mut parts) = demo.start()?;
    // What four of the five nodes guarantee is there when one is lost.
    let crowd = guaranteed * 4 * load / 500;
    println!(
        "\n5 nodes guarantee {guaranteed} streams; {crowd} viewers are {load} % of what 4 of them do. \
         Started in {} s.\n",
        begun.elapsed().as_secs()
    );
    let mut rounds = Vec::new();
    if full > 0 {
        let round = demo.full_house(&mut parts, full, guaranteed)?;
        println!("{}\n", round.sentence());
        rounds.push(round);
        parts.keep_free(&demo, parts::KEEP_FREE)?;
    }
    let mut losses = vec![Loss::Node, Loss::EtcdLeader, Loss::Director];
    if demo.network.has_links() {
        losses.insert(1, Loss::Link);
    }
    if parts.has_gateway() {
        losses.push(Loss::Gateway);
    } else {
        println!(
            "There is no bucket: versitygw is not installed (`scripts/deps.sh cluster` builds it, \
             with Go).\n"
        );
    }
    losses.push(Loss::NodeInOrder);
    let each = seconds / losses.len() as u64;
    if parts.has_gateway() {
        losses.push(Loss::Drained);
    }
    for loss in losses {
        if loss == Loss::Gateway {
            parts.publish(&demo)?;
        }
        // Two titles alone are played then, which fewer nodes have.
        let (seconds, viewers) = match loss {
            Loss::Drained => (DRAIN_SECONDS, crowd * 2 / 3),
            _ => (each, crowd),
        };
        demo.seconds = seconds;
        let round = demo.round(&mut parts, loss, viewers)?;
        println!("{}\n", round.sentence());
        rounds.push(round);
        parts.restore(&demo)?;
    }
    println!("{}", table(&rounds));
    if crate::setting("KEEP").is_some_and(|keep| keep != "0") {
        println!("\n{}", parts.keep(&mut demo));
    }
    Ok(rounds.iter().all(LossRound::is_undisturbed))
}

/// A setting that is a number.
fn number(name: &str, range: RangeInclusive<u64>, default: u64) -> Result<u64, Problem> {
    let Some(text) = crate::setting(name) else { return Ok(default) };
    let (first, last) = (range.start(), range.end());
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("{name}={text} is not a number from {first} to {last}"))
}

/// What is lost in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// A full house.
    Nothing,
    Node,
    /// The link of a node, whose viewers and directors hear nothing more of it.
    Link,
    EtcdLeader,
    Director,
    /// The server of the bucket, while nodes copy from it.
    Gateway,
    NodeInOrder,
    /// A node that its viewers leave before it is stopped.
    Drained,
}

impl Loss {
    /// For the names of files.
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "full",
            Self::Node => "node",
            Self::Link => "link",
            Self::EtcdLeader => "etcd",
            Self::Director => "director",
            Self::Gateway => "bucket",
            Self::NodeInOrder => "order",
            Self::Drained => "drain",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Nothing => "a full house, nothing lost",
            Self::Node => "node n1 killed",
            Self::Link => "link of a node cut",
            Self::EtcdLeader => "leader of etcd killed",
            Self::Director => "director killed",
            Self::Gateway => "bucket's server killed",
            Self::NodeInOrder => "node n2 stopped in order",
            Self::Drained => "a node drained",
        }
    }

    /// The titles that are played: those last as long as the round does.
    fn titles(self) -> Vec<&'static str> {
        match self {
            Self::Drained => NEW_TITLES.to_vec(),
            _ => TITLES.map(|title| title.name).to_vec(),
        }
    }
}

impl ClusterDemo {
    fn call(&self, command: &str) -> Call {
        Call::new(&self.tenuto).arg(command)
    }

    /// The store of a node.
    fn store(&self, number: usize) -> PathBuf {
        self.folder.join(format!("n{number}.store"))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Makes the stores and starts everything; returns the streams that the nodes guarantee.
    fn start(&self) -> Result<(u64, Parts), Problem> {
        Call::new("etcd").arg("--version").output(&self.log("etcd"), &self.stop).map_err(
            |problem| {
                format!("{problem}\nhint: `scripts/deps.sh cluster` installs etcd (etcd-server)")
            },
        )?;
        self.make_film(Film::Short)?;
        let has_gateway = self.has_gateway();
        if has_gateway {
            self.make_film(Film::Long)?;
            self.make_studio()?;
        }
        for number in 1..=parts::NODES {
            check(&self.stop)?;
            self.format(self.store(number), STORE_SIZE)?;
            // From the bucket, each node is filled as the directors order.
            let by_hand = TITLES.iter().filter(|_| !has_gateway);
            for title in by_hand.filter(|title| title.nodes.contains(&number)) {
                self.ingest(self.store(number), Film::Short, title.name)?;
            }
        }
        let parts = Parts::start(self, has_gateway)?;
        println!("copies: {}", parts.placement());
        if let Some(links) = self.network.sentence() {
            println!("{links}");
        }
        let streams = parts.guaranteed(self)?;
        Ok((streams, parts))
    }

    fn format(&self, store: PathBuf, size: &str) -> Result<(), Problem> {
        let format = self.call("format").arg(store).args(["--size", size, "--destroy"]);
        format.output(&self.log("format"), &self.stop).map(drop)
    }

    fn ingest(&self, store: PathBuf, film: Film, title: &str) -> Result<(), Problem> {
        let ingest = self.call("ingest").arg(store).arg(self.film(film));
        let ingest = ingest.args(["--title", title]);
        ingest.output(&self.log("ingest"), &self.stop).map(drop)
    }

    fn film(&self, film: Film) -> PathBuf {
        self.folder.join(match film {
            Film::Short => "short.mkv",
            Film::Long => "long.mkv",
        })
    }

    /// Makes a film, of one constant rate, if it is not there.
    fn make_film(&self, film: Film) -> Result<(), Problem> {
        let path = self.film(film);
        if path.exists() {
            return Ok(());
        }
        let part = self.folder.join("part.mkv");
        let call = Call::new("ffmpeg").args(["-nostdin", "-y", "-v", "error"]);
        let call = match film {
            Film::Short => {
                println!(
                    "making a film with FFmpeg (kept in {} for the next time)",
                    path.display()
                );
                let picture = "testsrc2=s=480x270:r=25:d=60,noise=alls=12:allf=t,format=yuv420p";
                call.args(["-f", "lavfi", "-i", picture])
                    .args(["-f", "lavfi", "-i", "sine=440:d=60", "-c:a", "aac", "-c:v", "libx264"])
                    .args(["-preset", "ultrafast", "-g", "50", "-sc_threshold", "0"])
                    .args(["-b:v", "1900k", "-minrate", "1900k", "-maxrate", "1900k"])
                    .args(["-bufsize", "1900k"])
            }
            Film::Long => {
                let short =
                    call.args(["-stream_loop", TIMES_MORE, "-i"]).arg(self.film(Film::Short));
                short.args(["-c", "copy"])
            }
        };
        call.arg(&part).output(&self.log("ffmpeg"), &self.stop)?;
        std::fs::rename(&part, &path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Plays a crowd, and loses something meanwhile.
    fn round(&self, parts: &mut Parts, loss: Loss, crowd: u64) -> Result<LossRound, Problem> {
        println!("== {}", loss.words());
        let before = parts.counted();
        let begun = Instant::now();
        let newcomers = (crowd / 10).max(1);
        let [first, second] = parts.directors(self);
        let first_rtsp = parts::director_rtsp(self, 1);
        let by_rtsp = (crowd / RTSP_SHARE).max(1);
        std::thread::scope(|scope| {
            let play = |director, viewers| {
                let crowd = ClusterCrowd::within_a_quarter(viewers, self.seconds, loss.name());
                scope.spawn(move || self.play(director, loss, &crowd))
            };
            let played = play(&first, RoundViewers::Http(crowd - by_rtsp));
            let rtsp = play(&first_rtsp, RoundViewers::Rtsp(by_rtsp));
            // All have come, and their buffers are full.
            let full = if loss == Loss::Drained { self.seconds / 4 } else { self.seconds / 3 };
            self.wait(begun + Duration::from_secs(full) + LOOK)?;
            let lost = parts.lose(self, loss)?;
            println!("{lost}, after {} s", begun.elapsed().as_secs());
            self.wait(Instant::now() + Duration::from_secs(2))?;
            let left = self.seconds.saturating_sub(begun.elapsed().as_secs()).max(5);
            let late =
                ClusterCrowd::within_a_quarter(RoundViewers::Http(newcomers), left, "newcomers");
            let late = scope.spawn(move || self.play(&second, loss, &late));
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().map_err(|_| "a thread panicked".to_owned())?
            };
            let (crowd, rtsp, newcomers) = (join(played)?, join(rtsp)?, join(late)?);
            // Before the nodes are asked what they have counted.
            parts.mend_link(self)?;
            let counted = parts.counted().since(&before);
            Ok(LossRound { loss: loss.words(), crowd, rtsp, newcomers, counted })
        })
    }

    /// Sleeps, but for Ctrl-C.
    fn wait(&self, until: Instant) -> Result<(), Problem> {
        while Instant::now() < until {
            check(&self.stop)?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Viewers of the titles of a round, of the first one most.
    fn play(
        &self,
        director: &str,
        loss: Loss,
        crowd: &ClusterCrowd,
    ) -> Result<tenuto_client::PlayReport, Problem> {
        let name = crowd.name;
        // Media that a viewer has when its node is lost.
        let (viewers, playlist, buffer, kind) = match crowd.viewers {
            RoundViewers::Http(viewers) => (viewers, "/master.m3u8", ["--buffer", "10s"], "play"),
            RoundViewers::Rtsp(viewers) => {
                // Silence is noticed later than an end, and the director asks the silent node, too.
                let start = if loss == Loss::Link { "10s" } else { "5s" };
                (viewers, "", ["--start-buffer", start], "play-rtsp")
            }
        };
        // In other rounds they see a connection end.
        let timeout: &[&str] = if loss == Loss::Link { &["--timeout", "2s"] } else { &[] };
        let titles = loss.titles().into_iter();
        let titles = titles.map(|title| format!("{director}/t/{title}{playlist}"));
        let call = self
            .call("play")
            .args(titles)
            .args(["--viewers", &viewers.to_string(), "--choice", "zipf:1.0"])
            .args(["--arrivals", &crowd.arrivals, "--seed", "1"])
            .args(buffer)
            .args(timeout)
            .args(["--duration", &format!("{}s", crowd.seconds), "--json"]);
        println!("$ {}", call.typed());
        let log = self.log(&format!("{kind}-{name}"));
        // Refused and failed viewers are results.
        let (text, code) = call.run(&log, &self.stop)?;
        if text.is_empty() {
            return Err(call.failure(code, &log));
        }
        children::write(&self.folder.join(format!("{kind}-{name}.json")), &text)?;
        serde_json::from_str(&text).map_err(|error| format!("play printed no report: {error}"))
    }
}

/// Viewers who play together.
struct ClusterCrowd {
    viewers: RoundViewers,
    /// As `--arrivals` has it.
    arrivals: String,
    /// When all leave.
    seconds: u64,
    /// For the names of files.
    name: &'static str,
}

impl ClusterCrowd {
    /// All come within a quarter of the time: a disk fills few buffers at once.
    fn within_a_quarter(viewers: RoundViewers, seconds: u64, name: &'static str) -> Self {
        let (RoundViewers::Http(count) | RoundViewers::Rtsp(count)) = viewers;
        let arrivals = format!("every:{}ms", (seconds * 250 / count).max(1));
        Self { viewers, arrivals, seconds, name }
    }
}

/// How many viewers play, and by which protocol.
#[derive(Clone, Copy, Debug)]
enum RoundViewers {
    Http(u64),
    Rtsp(u64),
}

/// What titles are made of.
#[derive(Clone, Copy, Debug)]
enum Film {
    Short,
    /// The short one several times, so that copying it takes a while.
    Long,
}

/// How many times more the long film has the short one.
const TIMES_MORE: &str = "2";

/// Size of the store of a node: its part of all copies, also while another node is away.
const STORE_SIZE: &str = "320MiB";

/// Playing time of all rounds together.
const SECONDS: u64 = 150;

/// Playing time of the round in which a node is drained: a quarter until all play, and time for
/// them to leave. The long film has more.
const DRAIN_SECONDS: u64 = 175;

/// Viewers in per cent of the streams that four nodes guarantee. With two copies of a title, all
/// its viewers on a lost node need room at one other.
const LOAD: u64 = 60;

/// One of so many viewers plays over RTSP.
const RTSP_SHARE: u64 = 5;

const LOOK: Duration = Duration::from_millis(50);
