//! Reads all titles of each store once in a period, and compares them with their checksums, in disk
//! time that no session has reserved. A thread for each store.
//!
//! ```text
//!   begun ─────────────────────────── begun + period
//!   │ read, pause, read, pause, ...  │ next pass
//!   └ position, damage ──▶ store, once a minute: a new start goes on there
//! ```
//!
//! The pauses spread the rest of the bytes over the rest of the period. Each read waits for a
//! permit, so that a full disk delays the pass and no session. A pass that is late reads ten times
//! as fast as one that is not, at most. Titles are read again and not repaired: `check --repair`
//! does that.

use crate::background_io::EngineBackgroundIo;
use crate::damage::{FoundBy, TOLD};
use crate::library::OpenStore;
use crate::messages::CoreHandle;
use crate::shared::Shared;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use store::{BackgroundIo, ScrubPosition, ScrubResult, ScrubState, ScrubStep, StoreError};
use units::{ByteCount, Hinted};

/// Ends the threads when it is dropped.
#[derive(Debug)]
pub(crate) struct Scrubbing {
    _running: Sender<()>,
}

/// Starts a thread for each store.
pub(crate) fn start(
    period: Duration,
    shared: &Arc<Shared>,
    core: &CoreHandle,
    threads: &mut Vec<JoinHandle<()>>,
) -> io::Result<Scrubbing> {
    let (running, stopped) = bounded(0);
    for number in 0..shared.content.stores.len() {
        let (shared, core, stopped) = (Arc::clone(shared), core.clone(), stopped.clone());
        let builder = thread::Builder::new().name("scrub".to_owned());
        threads.push(builder.spawn(move || {
            let opened = &shared.content.stores[number];
            let io = EngineBackgroundIo::new(core, opened);
            StoreScrub { number, opened, shared: &shared, io, period, stopped }.run();
        })?);
    }
    Ok(Scrubbing { _running: running })
}

/// The scrub of one store.
struct StoreScrub<'a> {
    /// Index of the store, which is its disk's number.
    number: usize,
    opened: &'a OpenStore,
    shared: &'a Shared,
    io: EngineBackgroundIo,
    period: Duration,
    stopped: Receiver<()>,
}

impl StoreScrub<'_> {
    fn run(&self) {
        // A server that starts has more urgent work for the disk.
        if self.waits(AFTER_START.min(self.period / 10)) {
            return;
        }
        loop {
            let begins = || ScrubState::beginning(unix_seconds());
            let state = self.opened.store.scrub_state().unwrap_or_else(begins);
            let early = Duration::from_secs(state.begun.saturating_sub(unix_seconds()));
            if self.waits(early) || !self.pass(state) {
                return;
            }
        }
    }

    /// Reads what the present pass has not read; false if the server ends before.
    fn pass(&self, start: ScrubState) -> bool {
        let store = &self.opened.store;
        let end = Duration::from_secs(start.begun) + self.period;
        let mut left = store.bytes_to_scrub(start.next);
        let (mut unsaved, mut saved) = (Unsaved::at(start.next), Instant::now());
        let mut told = 0;
        let mut on_step = |ScrubStep { next, bytes, findings }: ScrubStep| {
            unsaved.next = next;
            unsaved.bytes += bytes;
            left = left.saturating_sub(bytes);
            for finding in &findings {
                unsaved.found += 1;
                let what = (finding.title.as_deref(), &*finding.text);
                self.shared.damage_found(self.number, FoundBy::Scrub, what, told < TOLD);
                told += 1;
            }
            if !findings.is_empty() || saved.elapsed() >= SAVED_EACH {
                self.save(&mut unsaved, start);
                saved = Instant::now();
                // Titles come and go.
                left = store.bytes_to_scrub(next);
            }
            let time = end.saturating_sub(since_1970());
            let ends = self.waits(pause(bytes, left, time, self.period)) || self.ends_while_lost();
            if ends { Err(StoreError::Cancelled) } else { Ok(()) }
        };
        let result = store.scrub(start.next, &self.io, &mut on_step);
        self.save(&mut unsaved, start);
        result.is_ok() && self.finish(start)
    }

    /// Keeps and tells the result of a pass that has read everything, and sets the time of the next
    /// one. False if the server ends.
    fn finish(&self, start: ScrubState) -> bool {
        let now = unix_seconds();
        let mut done = start;
        let is_kept = self.change(|state| {
            done = state.unwrap_or(start);
            // A pass that is late does not shorten the next one.
            let next = now.max(done.begun.saturating_add(self.period.as_secs().max(1)));
            // A check meanwhile has found what this pass had, too, and more.
            let checked = done.last.filter(|last| last.finished > done.begun);
            let found = done.found.max(checked.map_or(0, |last| last.found));
            done.found = found;
            let last = Some(ScrubResult { finished: now, found });
            ScrubState { last, ..ScrubState::beginning(next) }
        });
        if !is_kept {
            return !self.waits(SAVED_EACH);
        }
        let store = self.opened.path.display().to_string();
        self.shared.tell("scrub-done", || {
            json!({
                "store": store,
                "bytes": done.bytes,
                "damage": done.found,
                "seconds": now.saturating_sub(done.begun),
            })
        });
        true
    }

    /// Waits; returns whether the server ends.
    fn waits(&self, pause: Duration) -> bool {
        self.stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)
    }

    /// Waits as long as the disk is lost; returns whether the server ends meanwhile.
    fn ends_while_lost(&self) -> bool {
        let is_lost = || {
            let snapshot = self.shared.snapshot();
            snapshot.engine.disks.get(self.number).is_some_and(|disk| disk.lost)
        };
        while is_lost() {
            if self.waits(LOOK) {
                return true;
            }
        }
        false
    }

    /// Adds what was read to the state. A check may have changed that meanwhile.
    fn save(&self, unsaved: &mut Unsaved, start: ScrubState) {
        let Unsaved { next, bytes, found } = *unsaved;
        let is_saved = self.change(|state| {
            let state = state.unwrap_or(start);
            ScrubState {
                next,
                bytes: state.bytes + bytes,
                found: state.found.saturating_add(found),
                ..state
            }
        });
        if is_saved {
            *unsaved = Unsaved::at(next);
        }
    }

    /// Changes the state; false where that failed.
    fn change(&self, change: impl FnOnce(Option<ScrubState>) -> ScrubState) -> bool {
        let permit = self.io.acquire(ByteCount::kib(64).min(self.opened.read_size));
        let result = self.opened.store.change_scrub_state(change);
        drop(permit);
        let Err(failure) = &result else { return true };
        let (store, error) = (self.opened.path.display().to_string(), failure.one_line());
        self.shared
            .log
            .line(|| json!({ "event": "scrub-not-written", "store": store, "error": error }));
        false
    }
}

/// What a pass has read since its state was written.
struct Unsaved {
    next: ScrubPosition,
    bytes: u64,
    found: u32,
}

impl Unsaved {
    fn at(next: ScrubPosition) -> Self {
        Self { next, bytes: 0, found: 0 }
    }
}

/// The pause after a read of `bytes`, when `left` bytes are to be read in the `time` that remains
/// of the period.
fn pause(bytes: u64, left: u64, time: Duration, period: Duration) -> Duration {
    // Behind the last one the next pass waits for its time.
    if left == 0 {
        return Duration::ZERO;
    }
    // Late, or nearly: the rest is read in a tenth of the period, not at once.
    let time = time.max(period / 10);
    #[expect(clippy::cast_precision_loss, reason = "a share, which need not be exact")]
    let share = bytes as f64 / bytes.saturating_add(left).max(1) as f64;
    time.mul_f64(share)
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn unix_seconds() -> u64 {
    since_1970().as_secs()
}

/// Time from the start of a server to its first read for a scrub.
const AFTER_START: Duration = Duration::from_secs(60);
/// How often the position is written: a server that is killed reads so much again.
const SAVED_EACH: Duration = Duration::from_secs(60);
/// Time between two looks at a lost disk.
const LOOK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_spread_over_the_rest_of_the_period() {
        let day = Duration::from_secs(86_400);
        // GiB read, GiB left, days left of 30: the pause in hours.
        let table = [
            (1, 29, 30, 24.0),
            (1, 14, 15, 24.0),
            // Behind, far behind, and too late.
            (1, 29, 15, 12.0),
            (1, 29, 1, 2.4),
            (1, 29, 0, 2.4),
            // Ahead, the last read, and nothing.
            (1, 14, 30, 48.0),
            (1, 0, 6, 0.0),
            (0, 29, 30, 0.0),
            (0, 0, 30, 0.0),
        ];
        for (bytes, left, days, hours) in table {
            let found = pause(bytes << 30, left << 30, day * days, day * 30);
            let case = format!("{bytes} GiB, {left} GiB left, {days} days");
            assert!((found.as_secs_f64() / 3600.0 - hours).abs() < 0.001, "{case}: {found:?}");
        }
    }
}
