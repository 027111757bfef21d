//! A series in virtual time, with random operations, on a store that becomes full, whose power is
//! cut: no part is lost but by its age or, the oldest first, for want of room, nothing else is
//! removed, and time of the disk is kept once.
//!
//! To run one seed again: `TENUTO_SEED=n cargo test -p store --lib series`.

use super::super::parts::PartsSink;
use super::*;
use crate::RecordingLoad;
use crate::common::titles::{
    assert_recorded, assert_sound, description, formatted, get, index_part, noise, put,
};
use crate::common::{DeviceEvent, PowerCutDevice, apply, cut};
use crate::series::SeriesPart;
use crate::{Permit, TitleId};
use media::{FragmentSink, TrackKind};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use units::{BitRate, ByteCount, Reason};

/// For each track of a part its LDUs, and the number of those that were committed.
type Recorded = Vec<(Vec<Vec<u8>>, usize)>;

/// The acknowledged state after a step.
#[derive(Clone, Debug, Default)]
struct State {
    /// The parts that are recorded or are titles, by name.
    parts: BTreeMap<String, Recorded>,
    /// Parts that are to stay, with the names that they had.
    kept: BTreeMap<String, (String, Recorded)>,
    /// Titles that are no parts.
    others: BTreeMap<String, Vec<u8>>,
}

/// What the keeper has told, and whether it was right.
#[derive(Debug, Default)]
struct Told {
    ended: Vec<(TitleId, String)>,
    removed: Vec<String>,
    /// The numbers of parts that have expired, and that had to make room.
    counts: [usize; 2],
    /// Whether the part that was removed last was the oldest, and whether it had expired.
    was: (bool, bool),
}

struct Host<'a> {
    store: &'a Store,
    keep: Duration,
    told: &'a RefCell<Told>,
    clock: &'a Cell<u64>,
}

impl RecordingHost for Host<'_> {
    fn progress(&mut self, _: JobProgress) {}

    fn event(&mut self, event: RecordingEvent) {
        let mut told = self.told.borrow_mut();
        match event {
            RecordingEvent::Part(title) => told.ended.push((title.id, title.name)),
            RecordingEvent::Removed { title, is_expired } => {
                let (was_oldest, had_expired) = told.was;
                assert!(if is_expired { had_expired } else { was_oldest }, "{title} is removed");
                told.removed.push(title);
                told.counts[usize::from(!is_expired)] += 1;
            }
            RecordingEvent::Short { .. }
            | RecordingEvent::LeftOut { .. }
            | RecordingEvent::Lost { .. } => {}
        }
    }

    fn remove(&mut self, title: &str) -> Result<(), StoreError> {
        let parts = self.store.parts_of(NAME);
        let at = parts.iter().position(|part| part.name == title).expect("it is a part");
        let had_expired = parts[at].is_expired(self.keep, self.clock.get());
        self.told.borrow_mut().was = (at == 0, had_expired);
        self.store.remove(title).map(drop)
    }
}

/// Counts how often time is kept.
#[derive(Debug, Default)]
struct CountedKeeps(AtomicU64);

impl BackgroundIo for CountedKeeps {
    fn acquire(&self, _: ByteCount) -> Permit {
        Permit::unlimited()
    }

    fn keep_time(&self, _: RecordingLoad) -> Result<(), Reason> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The workload as it goes on.
struct Workload<'a> {
    store: &'a Store,
    keep: Duration,
    device: &'a PowerCutDevice,
    told: &'a RefCell<Told>,
    clock: &'a Cell<u64>,
    random: fastrand::Rng,
    states: Vec<State>,
    state: State,
    /// The names of the present part and of the next one.
    running: Vec<String>,
    /// Whether each track has come to the next part.
    is_cut: [bool; TRACKS],
}

impl Workload<'_> {
    /// Notes what was told during a step, which is acknowledged now.
    fn acknowledge(&mut self, context: &str) {
        let told = std::mem::take(&mut *self.told.borrow_mut());
        for (id, name) in &told.ended {
            let index = self.store.index(*id).ok();
            let Some(index) = index.filter(|_| !told.removed.contains(name)) else { continue };
            let tracks = self.state.parts.get_mut(name).expect("it was recorded");
            for ((ldus, committed), track) in tracks.iter_mut().zip(&index.tracks) {
                assert!(*committed <= track.ldus.len(), "{context}: {name} has lost LDUs");
                *committed = track.ldus.len();
                ldus.truncate(*committed);
            }
        }
        for name in &told.removed {
            assert!(self.state.parts.remove(name).is_some(), "{context}: {name}");
        }
        self.told.borrow_mut().counts = told.counts;
        // What is neither a title nor a recording had nothing.
        let is_there = |name: &String| {
            self.store.title(name).is_some() || self.store.recording(name).is_some()
        };
        self.state.parts.retain(|name, tracks| {
            let had_nothing = tracks.iter().all(|(_, committed)| *committed == 0);
            assert!(is_there(name) || had_nothing, "{context}: {name} is lost");
            is_there(name)
        });
        self.states.push(self.state.clone());
        self.device.acknowledge(self.states.len() - 1);
    }

    /// Notes that a part has begun, whose name is that of the latest recording.
    fn begun(&mut self) {
        let name = self.store.recordings().pop().expect("it has begun").title;
        self.state.parts.insert(name.clone(), vec![(Vec::new(), 0); TRACKS]);
        self.running.push(name);
    }

    fn commit(&mut self, sink: &mut PartsSink<'_, '_>) -> Result<(), StoreError> {
        let (state, running) = (&self.state, &self.running);
        sink.commit_parts(&mut |is_next, track, from, arrived| {
            index_part(&state.parts[&running[usize::from(is_next)]][track].0, from, arrived)
        })?;
        for name in &self.running {
            let tracks = self.state.parts.get_mut(name).expect("it is recorded");
            tracks.iter_mut().for_each(|(ldus, committed)| *committed = ldus.len());
        }
        Ok(())
    }

    /// Makes one step of a recording; an error ends the connection.
    fn step(&mut self, sink: &mut PartsSink<'_, '_>) -> Result<(), StoreError> {
        self.clock.set(self.clock.get() + self.random.u64(..3));
        match self.random.u32(..10) {
            // A track comes to the next part. When all have, the present one is whole.
            0..=2 => {
                let track = self.random.usize(..TRACKS);
                if !self.is_cut[track] {
                    let has_begun = self.running.len() > 1;
                    sink.cut(track, &tracks())?;
                    self.is_cut[track] = true;
                    if !has_begun {
                        self.begun();
                    }
                }
                if self.is_cut == [true; TRACKS] {
                    self.commit(sink)?;
                    (self.is_cut, _) = ([false; TRACKS], self.running.remove(0));
                    sink.go_on()?;
                }
            }
            3 => {
                self.clock.set(self.clock.get() + self.random.u64(..20));
                sink.keeper.tell(JobProgress { stage: "recording", done: 0, total: None });
                let (keep, now) = (self.keep, self.clock.get());
                let expired = |part: &SeriesPart| part.is_expired(keep, now);
                assert!(!self.store.parts_of(NAME).iter().any(expired), "an old part is there");
            }
            4 => {
                // Somebody keeps a part.
                let parts = self.store.parts_of(NAME);
                if let Some(part) = self.random.choice(&parts)
                    && self.state.kept.is_empty()
                {
                    let to = format!("{NAME}/accident");
                    self.store.rename(&part.name, &to)?;
                    let tracks = self.state.parts.remove(&part.name).expect("it is a title");
                    self.state.kept.insert(to, (part.name.clone(), tracks));
                }
            }
            5 => {
                let name = format!("title {}", self.random.u32(..2));
                if self.state.others.remove(&name).is_some() {
                    self.store.remove(&name)?;
                } else {
                    let length = self.random.usize(1..100_000);
                    let bytes = noise(&mut self.random, length);
                    if put(self.store, &name, std::slice::from_ref(&bytes)).is_ok() {
                        self.state.others.insert(name, bytes);
                    }
                }
            }
            _ => {
                for track in 0..TRACKS {
                    for _ in 0..self.random.usize(1..12) {
                        let length = self.random.usize(1..30_000);
                        let bytes = noise(&mut self.random, length);
                        let name = &self.running[usize::from(self.is_cut[track])];
                        let tracks = self.state.parts.get_mut(name).expect("it is recorded");
                        tracks[track].0.push(bytes.clone());
                        sink.payload(track, &bytes)?;
                    }
                }
                self.commit(sink)?;
            }
        }
        Ok(())
    }
}

fn tracks() -> Vec<TrackDescription> {
    vec![description(TrackKind::Video); TRACKS]
}

/// Panics unless the store has what was acknowledged, or the step after that made of it.
fn assert_holds(store: &Store, states: &[State], context: &str) {
    let (state, next) = (&states[0], states.get(1).unwrap_or(&states[0]));
    for title in store.titles() {
        let name = &title.name;
        if let Some(bytes) = next.others.get(name).or(state.others.get(name)) {
            assert!(get(store, &title).unwrap() == [bytes.clone()], "{context}: {name}");
            continue;
        }
        let kept = next.kept.get(name).or(state.kept.get(name)).map(|(_, tracks)| tracks);
        let later = kept.or(next.parts.get(name)).or(state.parts.get(name));
        let mut tracks = later.unwrap_or_else(|| panic!("{context}: {name} is there")).clone();
        if kept.is_none() {
            // What may be there is in the later state, and what must be there in the earlier one.
            for (track, (_, committed)) in tracks.iter_mut().enumerate() {
                *committed = state.parts.get(name).map_or(0, |it| it[track].1);
            }
        }
        assert_recorded(store, &title, &tracks, &format!("{context}: {name}"));
    }
    for (name, tracks) in &state.parts {
        let had_nothing = tracks.iter().all(|(_, committed)| *committed == 0);
        let may_be_gone = had_nothing || !next.parts.contains_key(name);
        assert!(may_be_gone || store.title(name).is_some(), "{context}: {name} is lost");
    }
    for (name, (before, _)) in &next.kept {
        let is_there = [name, before].iter().any(|name| store.title(name).is_some());
        assert!(is_there, "{context}: {name} is lost");
    }
    for name in state.others.keys().filter(|name| next.others.contains_key(*name)) {
        assert!(store.title(name).is_some(), "{context}: {name} is lost");
    }
    assert_sound(store, context);
}

/// A recorded workload: the device before it, what reached the device, and the states.
fn workload(seed: u64, counts: &mut [usize; 2]) -> (Vec<u8>, Vec<DeviceEvent>, Vec<State>) {
    // Of even seeds parts expire, of odd ones they fill the store.
    let keep = Duration::from_secs(if seed.is_multiple_of(2) { 30 } else { 86_400 });
    let device = PowerCutDevice::new(ByteCount::mib(6));
    let store = formatted(&device);
    let image = device.image();
    device.take_events();
    let (told, clock, io) = (RefCell::default(), Cell::new(1_795_854_912), CountedKeeps::default());
    let options = RecordingOptions {
        name: NAME.to_owned(),
        duration: None,
        program: None,
        silence: Duration::ZERO,
        rate: Some(BitRate(4_000_000)),
    };
    let series = SeriesOptions { keep: Some(keep), part: Duration::from_secs(1), reconnect: true };
    let mut host = Host { store: &store, keep, told: &told, clock: &clock };
    let read_clock = || clock.get();
    let mut keeper =
        SeriesKeeper::new(&store, &options, &series, &mut host, &io, &read_clock).unwrap();
    let mut work = Workload {
        store: &store,
        keep,
        device: &device,
        told: &told,
        clock: &clock,
        random: fastrand::Rng::with_seed(seed),
        states: vec![State::default()],
        state: State::default(),
        running: Vec::new(),
        is_cut: [false; TRACKS],
    };
    let is_full = |error: &StoreError| {
        matches!(error, StoreError::Full { .. } | StoreError::CatalogueFull { .. })
    };
    while work.states.len() < STEPS {
        // A connection, until the input is lost or there is no room.
        let mut sink = PartsSink::new(&mut keeper, Vec::new());
        (work.running, work.is_cut) = (Vec::new(), [false; TRACKS]);
        let mut result = sink.tracks(&tracks());
        if result.is_ok() {
            work.begun();
        }
        while result.is_ok() && work.random.u32(..40) != 0 && work.states.len() < STEPS {
            work.acknowledge(&format!("seed {seed}, step {}", work.states.len()));
            result = work.step(&mut sink);
        }
        for result in [result, sink.finish()] {
            assert!(result.as_ref().err().is_none_or(is_full), "seed {seed}: {result:?}");
        }
        work.acknowledge(&format!("seed {seed}, step {}, at an end", work.states.len()));
    }
    assert_eq!(io.0.load(Ordering::Relaxed), 1, "seed {seed}: time is kept once");
    for (count, here) in counts.iter_mut().zip(told.borrow().counts) {
        *count += here;
    }
    (image, device.take_events(), work.states)
}

#[test]
fn no_part_of_a_series_is_lost_but_by_its_age_or_for_want_of_room() {
    let seeds: Vec<u64> = match std::env::var("TENUTO_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..SEEDS).collect(),
    };
    let mut removed = [0, 0];
    for &seed in &seeds {
        let (image, events, states) = workload(seed, &mut removed);
        let (mut durable, mut flushed, mut acknowledged) = (image, 0, 0);
        for until in 0..=events.len() {
            // Cuts at some of the places: others have other seeds.
            if (until as u64 + seed).is_multiple_of(CUT_EVERY) || until == events.len() {
                let mut random = fastrand::Rng::with_seed(seed << 32 ^ (until as u64));
                let left = cut(&durable, &events[flushed..until], &mut random);
                let context = format!("seed {seed}, cut at {until}, after step {acknowledged}");
                let store = Store::open_on(PowerCutDevice::from_image(left));
                let store = store.unwrap_or_else(|error| panic!("{context}: {error}"));
                let states = &states[acknowledged..states.len().min(acknowledged + 2)];
                assert_holds(&store, states, &context);
            }
            match events.get(until) {
                Some(DeviceEvent::Flush) => {
                    apply(&mut durable, &events[flushed..until]);
                    flushed = until + 1;
                }
                Some(DeviceEvent::Acknowledged(step)) => acknowledged = *step,
                _ => {}
            }
        }
    }
    if seeds.len() > 1 {
        assert!(removed.iter().all(|count| *count >= 3), "expired, or made room: {removed:?}");
    }
}

/// The folder of the series.
const NAME: &str = "camera";

const TRACKS: usize = 2;

/// Steps of one workload.
const STEPS: usize = 80;

/// Workloads, and the part of the writes at which power is cut: some seconds.
const SEEDS: u64 = 4;
const CUT_EVERY: u64 = 12;
