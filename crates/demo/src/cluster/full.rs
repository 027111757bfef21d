//! A full house: for minutes more viewers come than the nodes guarantee, and nothing is lost.
//!
//! ```text
//!   CLUSTER_FULL=30 ─▶ directors that keep nothing free ─▶ viewers of both, of the popular titles
//!                                                          most, OFFERED % of the guarantee
//!        looks at a director: what each node has reserved ─▶ mean and least, once it is full
//! ```
//!
//! Viewers come independently of each other, see the film to its end, and leave: each second some
//! go, and others take their places.

use super::parts::{Parts, director_rtsp};
use super::round::LossRound;
use super::{ClusterCrowd, ClusterDemo, LOOK, Loss, RTSP_SHARE, RoundViewers};
use crate::children::{Problem, check};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

impl ClusterDemo {
    /// Plays a full house for so many minutes.
    pub(super) fn full_house(
        &self,
        parts: &mut Parts,
        minutes: u64,
        guaranteed: u64,
    ) -> Result<LossRound, Problem> {
        println!("== {}", Loss::Nothing.words());
        parts.keep_free(self, 0)?;
        let before = parts.counted();
        let seconds = minutes * 60;
        // Viewers who come in the time of one film.
        let per_film = guaranteed * OFFERED / 100;
        let all = per_film * seconds / FILM_SECONDS;
        let [first, second] = parts.directors(self);
        let (rtsp, third) = (all / RTSP_SHARE, all / 3);
        let (done, reserved) = (AtomicBool::new(false), Mutex::new(BTreeMap::new()));
        let parts = &*parts;
        let (crowd, rtsp, newcomers) = std::thread::scope(|scope| {
            let play = |director: String, viewers: RoundViewers, count: u64, name: &'static str| {
                let gap = seconds * 1000 / count.max(1);
                let crowd =
                    ClusterCrowd { viewers, arrivals: format!("poisson:{gap}ms"), seconds, name };
                scope.spawn(move || self.play(&director, Loss::Nothing, &crowd))
            };
            let looks = scope.spawn(|| parts.watch_reserved(self, &done, &reserved));
            let rest = all - rtsp - third;
            let threads = [
                play(first, RoundViewers::Http(rest), rest, "full"),
                play(director_rtsp(self, 1), RoundViewers::Rtsp(rtsp), rtsp, "full"),
                play(second, RoundViewers::Http(third), third, "full-second"),
            ];
            let reports = threads.map(|thread| {
                thread.join().map_err(|_| "a thread panicked".to_owned()).and_then(|it| it)
            });
            done.store(true, Ordering::Relaxed);
            looks.join().map_err(|_| "a thread panicked".to_owned())?;
            let [crowd, rtsp, newcomers] = reports;
            Ok::<_, Problem>((crowd?, rtsp?, newcomers?))
        })?;
        let counted = parts.counted().since(&before);
        let reserved = reserved.into_inner().expect("no thread panics while it holds this");
        println!("{}", reserved_words(&reserved));
        check(&self.stop)?;
        Ok(LossRound { loss: Loss::Nothing.words(), crowd, rtsp, newcomers, counted })
    }
}

impl Parts {
    /// Looks at what each node has reserved, from when all have come until `done`.
    fn watch_reserved(&self, demo: &ClusterDemo, done: &AtomicBool, seen: &Mutex<Reserved>) {
        let begun = Instant::now();
        while !done.load(Ordering::Relaxed) && check(&demo.stop).is_ok() {
            if begun.elapsed() > FILLS
                && let Some(status) = self.director_status()
            {
                let mut seen = seen.lock().expect("no thread panics while it holds this");
                for node in status["nodes"].as_array().into_iter().flatten() {
                    let name = node["name"].as_str().unwrap_or_default().to_owned();
                    seen.entry(name).or_default().push(share_reserved(node));
                }
            }
            let next = Instant::now() + BETWEEN_LOOKS;
            while Instant::now() < next && !done.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// The parts of each node's guarantee that were reserved, in the order of time.
type Reserved = BTreeMap<String, Vec<f64>>;

/// The part of a node's guarantee that is reserved, of its network or its disks, whichever is more.
fn share_reserved(node: &Value) -> f64 {
    let sum = |rates: &[&Value], name: &str| -> f64 {
        rates.iter().filter_map(|rate| rate[name].as_f64()).sum()
    };
    let disks: Vec<&Value> = node["disks"].as_array().into_iter().flatten().collect();
    let share = |rates: &[&Value]| match sum(rates, "guaranteed") {
        0.0 => 0.0,
        guaranteed => 1.0 - sum(rates, "free") / guaranteed,
    };
    share(&disks).max(share(&[&node["network"]]))
}

fn reserved_words(reserved: &Reserved) -> String {
    let of_node = |(name, shares): (&String, &Vec<f64>)| {
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        format!("{name} {:.0} % (at least {:.0} %)", mean * 100.0, least * 100.0)
    };
    let nodes: Vec<String> = reserved.iter().map(of_node).collect();
    format!("reserved of the guarantee of {}", nodes.join(", "))
}

/// Viewers who come in the time of one film, in per cent of the streams that are guaranteed.
const OFFERED: u64 = 150;

/// Length of the film.
const FILM_SECONDS: u64 = 60;

/// Time until as many viewers as there are places have come.
const FILLS: Duration = Duration::from_secs(90);

const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
