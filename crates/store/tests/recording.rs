//! Recordings: what was committed is there after a power cut at any write and any sector, and is a
//! title; nothing else is lost, and no space.
//!
//! The expected content is made here, LDU by LDU. To run one seed again: `TENUTO_SEED=n cargo test
//! -p store --test recording`.

mod common;

use common::titles::{
    assert_recorded, assert_sound, description, formatted, get, index_part, noise, put,
};
use common::{DeviceEvent, PowerCutDevice, apply, cut, cut_at_every_event};
use media::{TitleKind, TrackKind};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use store::{
    BackgroundIo, CheckOptions, FindingKind, Permit, RecordingFile, RecordingLoad, RecordingReader,
    Store, StoreError, TitleRecorder, Unthrottled,
};
use units::{BitRate, ByteCount};

/// A title as it is being recorded, beside the recorder: the LDUs of each track.
#[derive(Clone, Debug, Default)]
struct Expected {
    /// For each track the bytes of its LDUs, and the number of those that were committed.
    tracks: Vec<(Vec<Vec<u8>>, usize)>,
    /// Whether it was finished.
    is_title: bool,
}

impl Expected {
    fn with_tracks(tracks: usize) -> Self {
        Self { tracks: vec![(Vec::new(), 0); tracks], is_title: false }
    }

    fn is_empty(&self) -> bool {
        self.tracks.iter().all(|(_, committed)| *committed == 0)
    }
}

/// A recorder with what is expected of it.
struct Recorded<'a> {
    recorder: TitleRecorder<'a>,
    expected: Expected,
    /// For each track the bytes of an LDU of which only a part was written.
    begun: Vec<Vec<u8>>,
}

impl<'a> Recorded<'a> {
    /// Records fifty LDUs of one track, a commit after each, to the end.
    fn record_whole<const LENGTH: usize>(mut self, store: &Store) {
        for i in 0..50u8 {
            self.write(0, &[i; LENGTH], true).unwrap();
            self.commit().unwrap();
        }
        let title = self.recorder.finish().unwrap().unwrap();
        assert_recorded(store, &title, &self.expected.tracks, &title.name);
    }

    fn start(store: &'a Store, name: &str, tracks: usize) -> Result<Self, StoreError> {
        let writer = store.begin(name, TitleKind::Media)?;
        let descriptions = vec![description(TrackKind::Video); tracks];
        let recorder = TitleRecorder::start(writer, &descriptions, None)?;
        let expected = Expected::with_tracks(tracks);
        Ok(Self { recorder, expected, begun: vec![Vec::new(); tracks] })
    }

    /// Writes an LDU, or only a part of it, or the rest of the one before.
    fn write(&mut self, track: usize, bytes: &[u8], whole: bool) -> Result<(), StoreError> {
        let number = u16::try_from(track).unwrap();
        self.recorder.write(number, bytes)?;
        self.begun[track].extend(bytes);
        if whole {
            let ldu = std::mem::take(&mut self.begun[track]);
            self.expected.tracks[track].0.push(ldu);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let tracks = &self.expected.tracks;
        self.recorder
            .commit(&mut |track, from, arrived| index_part(&tracks[track].0, from, arrived))?;
        for (ldus, committed) in &mut self.expected.tracks {
            *committed = ldus.len();
        }
        Ok(())
    }
}

/// The acknowledged state after a step: recordings, and other titles.
#[derive(Clone, Debug, Default)]
struct Model {
    recordings: BTreeMap<String, Expected>,
    titles: BTreeMap<String, Vec<u8>>,
}

fn assert_model(store: &Store, models: &[Model], context: &str) {
    let (model, next) = (&models[0], models.get(1).unwrap_or(&models[0]));
    for title in store.titles() {
        let name = &title.name;
        if let Some(bytes) = next.titles.get(name).or(model.titles.get(name)) {
            assert!(get(store, &title).unwrap() == [bytes.clone()], "{context}: '{name}'");
            continue;
        }
        // What may be there is in the later state, and what must be there in the earlier one.
        let later = next.recordings.get(name).or(model.recordings.get(name));
        let mut expected = later.unwrap_or_else(|| panic!("{context}: '{name}'")).clone();
        for (number, (_, committed)) in expected.tracks.iter_mut().enumerate() {
            *committed = model.recordings.get(name).map_or(0, |it| it.tracks[number].1);
        }
        assert_recorded(store, &title, &expected.tracks, context);
    }
    for (name, expected) in &model.recordings {
        let gone = expected.is_empty() && !expected.is_title;
        assert!(gone || store.title(name).is_some(), "{context}: '{name}' is lost");
    }
    for name in model.titles.keys().filter(|name| next.titles.contains_key(*name)) {
        assert!(store.title(name).is_some(), "{context}: '{name}' is lost");
    }
    assert_sound(store, context);
}

/// Two recordings at a time beside titles that come and go, recorded write by write.
fn workload(seed: u64, steps: usize) -> (Vec<u8>, Vec<DeviceEvent>, Vec<Model>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let image = device.image();
    device.take_events();
    let mut models = vec![Model::default()];
    let mut running: Vec<(String, Recorded<'_>)> = Vec::new();
    for number in 1..=steps {
        let mut model = models[number - 1].clone();
        match if number == 1 { 0 } else { random.u32(..12) } {
            0 if running.len() < 2 => {
                let name = format!("recording {number}");
                match Recorded::start(&store, &name, random.usize(1..3)) {
                    Ok(recorded) => running.push((name, recorded)),
                    Err(StoreError::Full { .. } | StoreError::CatalogueFull { .. }) => {}
                    Err(error) => panic!("seed {seed}, step {number}: {error}"),
                }
            }
            1 if !running.is_empty() => {
                let (name, mut recorded) = running.swap_remove(random.usize(..running.len()));
                let full = recorded.commit().is_err();
                let title = recorded.recorder.finish();
                let title = title.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                let expected = &mut recorded.expected;
                expected.is_title = title.is_some();
                assert!(title.is_some() || expected.is_empty(), "seed {seed}: '{name}' is lost");
                // A full store takes more than what was committed, as far as there is room.
                if let Some(title) = title.filter(|_| full) {
                    let index = store.index(title.id).unwrap();
                    for ((_, committed), track) in expected.tracks.iter_mut().zip(&index.tracks) {
                        assert!(*committed <= track.ldus.len(), "seed {seed}: '{name}'");
                        *committed = track.ldus.len();
                    }
                }
                for (ldus, committed) in &mut expected.tracks {
                    ldus.truncate(*committed);
                }
                model.recordings.insert(name, recorded.expected);
            }
            2 => {
                let name = format!("title {}", random.u32(..3));
                if model.titles.remove(&name).is_some() {
                    store.remove(&name).unwrap();
                } else {
                    let length = random.usize(1..100_000);
                    let bytes = noise(&mut random, length);
                    match put(&store, &name, std::slice::from_ref(&bytes)) {
                        Ok(_) => drop(model.titles.insert(name, bytes)),
                        Err(StoreError::Full { .. } | StoreError::CatalogueFull { .. }) => {}
                        Err(error) => panic!("seed {seed}, step {number}: {error}"),
                    }
                }
            }
            3 => {
                // Finished recordings make room.
                let done = model.recordings.iter().find(|(_, it)| it.is_title);
                if let Some(name) = done.map(|(name, _)| name.clone()) {
                    store.remove(&name).unwrap();
                    // It may be there until the removal is durable.
                    device.acknowledge(number - 1);
                    model.recordings.get_mut(&name).unwrap().is_title = false;
                    model
                        .recordings
                        .get_mut(&name)
                        .unwrap()
                        .tracks
                        .iter_mut()
                        .for_each(|it| it.1 = 0);
                    models[number - 1]
                        .recordings
                        .insert(name.clone(), model.recordings[&name].clone());
                }
            }
            _ => {
                for (name, recorded) in &mut running {
                    for track in 0..recorded.begun.len() {
                        for _ in 0..random.usize(..12) {
                            let length = random.usize(1..4_000);
                            let bytes = noise(&mut random, length);
                            let _ = recorded.write(track, &bytes, random.u32(..4) != 0);
                        }
                    }
                    let codec = "x".repeat(random.usize(1..100));
                    recorded.recorder.describe(&mut |_, track| track.codec.clone_from(&codec));
                    match recorded.commit() {
                        Ok(()) => {
                            drop(model.recordings.insert(name.clone(), recorded.expected.clone()));
                        }
                        // It may have committed some of it.
                        Err(StoreError::Full { .. } | StoreError::CatalogueFull { .. }) => {
                            let kept = model.recordings.entry(name.clone());
                            let kept = kept.or_insert_with(|| recorded.expected.clone());
                            for (kept, now) in kept.tracks.iter_mut().zip(&recorded.expected.tracks)
                            {
                                kept.0.clone_from(&now.0);
                            }
                        }
                        Err(error) => panic!("seed {seed}, step {number}: {error}"),
                    }
                }
            }
        }
        models.push(model);
        device.acknowledge(number);
    }
    (image, device.take_events(), models)
}

/// Opens the remains after a power cut, and if `again`, also after further ones during the opening.
fn assert_recovers(image: Vec<u8>, models: &[Model], again: bool, context: &str) {
    let device = PowerCutDevice::from_image(image.clone());
    let store = Store::open_on(device.clone()).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_model(&store, models, context);
    let sealing = device.take_events();
    drop(store);
    if !again {
        return;
    }
    cut_at_every_event(&image, &sealing, 1, |left, _, again| {
        let context = format!("{context}, sealing {again}");
        let store = Store::open_on(PowerCutDevice::from_image(left))
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_model(&store, models, &context);
    });
}

#[test]
fn what_was_committed_survives_a_power_cut_at_any_write() {
    let seeds: Vec<u64> = match std::env::var("TENUTO_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..3).collect(),
    };
    for seed in seeds {
        let (image, events, models) = workload(seed, 40);
        let recorded: usize = models.last().unwrap().recordings.len();
        assert!(recorded > 0, "seed {seed} records nothing");
        let (mut durable, mut flushed, mut acknowledged) = (image, 0, 0);
        for until in 0..=events.len() {
            let mut random = fastrand::Rng::with_seed(seed << 32 ^ (until as u64));
            let left = cut(&durable, &events[flushed..until], &mut random);
            let context = format!("seed {seed}, cut at {until}, after step {acknowledged}");
            let states = &models[acknowledged..models.len().min(acknowledged + 2)];
            assert_recovers(left, states, until % 8 == 0, &context);
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
}

#[test]
fn a_long_recording_leaves_the_catalogue_small_and_is_whole() {
    let device = PowerCutDevice::new(ByteCount::mib(24));
    let store = formatted(&device);
    let mut recorded = Recorded::start(&store, "long", 2).unwrap();
    for second in 0..1_500u32 {
        for i in 0..25 {
            let bytes =
                vec![u8::try_from(i).unwrap(); usize::try_from(second % 5 * 40 + i).unwrap() + 1];
            recorded.write(0, &bytes, true).unwrap();
            recorded.write(1, &bytes[..1], true).unwrap();
        }
        recorded.commit().unwrap();
    }
    // It goes on from a reopened store only as a title, but the title is the same.
    let image = device.image();
    let expected = recorded.expected.clone();
    let title = recorded.recorder.finish().unwrap().unwrap();
    assert_recorded(&store, &title, &expected.tracks, "finished");
    assert_sound(&store, "finished");
    let reopened = Store::open_on(PowerCutDevice::from_image(image)).unwrap();
    let again = reopened.title("long").unwrap();
    assert_recorded(&reopened, &again, &expected.tracks, "reopened");
    assert_sound(&reopened, "reopened");
    let healed = reopened.check(&CheckOptions::default(), &mut |_| {}).unwrap().healed;
    let told: Vec<_> = healed.iter().map(|it| (it.kind, it.text.as_str())).collect();
    assert_eq!(
        told,
        [(FindingKind::Recording, "the recording was interrupted; 25:00 of it are a title")]
    );
}

#[test]
fn a_full_store_ends_a_recording_and_keeps_what_was_committed() {
    let device = PowerCutDevice::new(ByteCount::mib(4));
    let store = formatted(&device);
    let mut recorded = Recorded::start(&store, "full", 2).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let error = loop {
        let ldu = noise(&mut random, 30_000);
        let written = recorded.write(0, &ldu, true).and_then(|()| recorded.write(1, &ldu, true));
        if let Err(error) = written.and_then(|()| recorded.commit()) {
            break error;
        }
    };
    assert_eq!(error.code(), "full", "{error}");
    let expected = recorded.expected.clone();
    let title = recorded.recorder.finish().unwrap().unwrap();
    assert!(title.bytes > 1 << 20, "{title:?}");
    assert_recorded(&store, &title, &expected.tracks, "full");
    assert_sound(&store, "full");
}

#[test]
fn a_recording_does_not_go_on_where_nothing_more_is_written() {
    let device = PowerCutDevice::new(ByteCount::mib(4));
    let store = formatted(&device);
    let mut recorded = Recorded::start(&store, "camera", 1).unwrap();
    recorded.write(0, b"a picture", true).unwrap();
    recorded.commit().unwrap();
    assert_eq!(store.recordings().len(), 1);
    recorded.write(0, b"lost", true).unwrap();
    device.fail_after(0);
    assert!(recorded.commit().is_err());
    assert_eq!((store.recordings().len(), store.recording("camera")), (0, None));
    drop(recorded);
    device.fail_after(1_000_000);
    drop(store);
    let store = Store::open_on(device.clone()).unwrap();
    assert_eq!(get(&store, &store.title("camera").unwrap()).unwrap(), [b"a picture".to_vec()]);
}

#[test]
fn a_recording_in_use_or_without_anything_is_refused_or_leaves_nothing() {
    let device = PowerCutDevice::new(ByteCount::mib(4));
    let store = formatted(&device);
    {
        let recorded = Recorded::start(&store, "camera", 1).unwrap();
        let error = Recorded::start(&store, "camera", 1).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "being-recorded");
        assert_eq!(recorded.recorder.finish().unwrap(), None);
        assert_sound(&store, "given up");
        // The name is free again, and dropping a recorder is like a crash of the process.
        let mut recorded = Recorded::start(&store, "camera", 1).unwrap();
        recorded.write(0, b"a picture", true).unwrap();
        recorded.commit().unwrap();
        recorded.write(0, b"lost", true).unwrap();
    }
    drop(store);
    let store = Store::open_on(device.clone()).unwrap();
    let title = store.title("camera").unwrap();
    assert_eq!(get(&store, &title).unwrap(), [b"a picture".to_vec()]);
    assert_sound(&store, "reopened");
    store.rename("camera", "hall").unwrap();
}

#[test]
fn recordings_side_by_side_have_few_extents_also_when_the_store_fills() {
    let device = PowerCutDevice::new(ByteCount::mib(64));
    let store = formatted(&device);
    let mut all: Vec<Recorded<'_>> =
        (0..4).map(|i| Recorded::start(&store, &format!("camera {i}"), 1).unwrap()).collect();
    for i in 0..280u32 {
        for recorded in &mut all {
            recorded.write(0, &vec![u8::try_from(i % 251).unwrap(); 50_000], true).unwrap();
            if i % 20 == 19 {
                recorded.commit().unwrap();
            }
        }
    }
    for recorded in all {
        let title = recorded.recorder.finish().unwrap().unwrap();
        assert!(title.bytes == 14_000_000, "{title:?}");
        assert!(title.tracks[0].extents.len() <= 8, "{:?}", title.tracks[0].extents);
    }
    assert_sound(&store, "all ended");
}

/// The places and bytes of each permit that was asked for.
#[derive(Default)]
struct Asked(Mutex<Vec<(u32, u64)>>);

impl BackgroundIo for Asked {
    fn acquire(&self, bytes: ByteCount) -> Permit {
        self.acquire_writes(1, bytes)
    }

    fn acquire_writes(&self, places: u32, bytes: ByteCount) -> Permit {
        self.0.lock().unwrap().push((places, bytes.0));
        Permit::unlimited()
    }
}

/// What [`RecordingLoad`] says of a recording is all that it writes, whatever its rate: nothing by
/// itself when a buffer is full.
#[test]
fn a_recording_writes_what_its_disk_keeps_time_for() {
    for (megabits, tracks) in [(1, 1), (4, 1), (20, 2), (200, 2)] {
        let device = PowerCutDevice::new(ByteCount::mib(64));
        let store = formatted(&device);
        let load = RecordingLoad { rate: BitRate(megabits * 1_000_000), tracks };
        let io = Asked::default();
        let descriptions = vec![description(TrackKind::Video); tracks as usize];
        let writer = store.begin("camera", TitleKind::Media).unwrap().with_io(&io);
        let recorder = TitleRecorder::start(writer, &descriptions, Some(load)).unwrap();
        let expected = Expected::with_tracks(tracks as usize);
        let begun = vec![Vec::new(); tracks as usize];
        let mut recorded = Recorded { recorder, expected, begun };
        let in_period = usize::try_from(load.rate.bytes_in(RecordingLoad::PERIOD).0).unwrap();
        let periods = 4_000_000 / in_period + 3;
        for period in 0..periods {
            for track in 0..tracks as usize {
                let bytes = vec![u8::try_from(period).unwrap(); in_period / tracks as usize / 5];
                (0..5).for_each(|_| recorded.write(track, &bytes, true).unwrap());
            }
            recorded.commit().unwrap();
        }
        let asked = std::mem::take(&mut *io.0.lock().unwrap());
        assert_eq!(asked.len(), periods, "{megabits} Mb/s: {asked:?}");
        let ((places, bytes), commit) = (load.blocks(), RecordingLoad::COMMIT);
        let most = (places + commit.0, bytes.0 + commit.1.0);
        // Where a track's extent ends, a commit has one place more.
        let beyond = asked.iter().filter(|it| it.0 > most.0).count();
        assert!(beyond <= 8, "{megabits} Mb/s: {asked:?}");
        assert!(asked.iter().all(|it| it.1 <= most.1), "{megabits} Mb/s, {most:?}: {asked:?}");
    }
}

#[test]
fn many_recordings_commit_at_the_same_time() {
    // A track that grows takes 8 MiB of room.
    let device = PowerCutDevice::new(ByteCount::mib(128));
    let store = formatted(&device);
    std::thread::scope(|scope| {
        for camera in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let recorded = Recorded::start(store, &format!("camera {camera}"), 1).unwrap();
                recorded.record_whole::<500>(store);
            });
        }
    });
    assert_sound(&store, "all ended");
    assert_eq!(store.titles().len(), 8);
}

/// The catalogue of a store of 1 GiB has 256 KiB. Without a bound for all recordings together, each
/// of these would have 16 KiB of index parts there.
#[test]
fn many_recordings_leave_the_catalogue_of_a_small_store_small() {
    let device = PowerCutDevice::new(ByteCount::mib(1024));
    let store = formatted(&device);
    let names: Vec<String> = (0..20).map(|camera| format!("camera {camera}")).collect();
    let mut all: Vec<Recorded<'_>> =
        names.iter().map(|name| Recorded::start(&store, name, 1).unwrap()).collect();
    for round in 0..100u32 {
        for recorded in &mut all {
            for ldu in 0..300u32 {
                // Of sizes that do not repeat, which take the most to describe.
                let size = 1 + (round * 7919 + ldu * 104_729) % 251;
                recorded.write(0, &vec![1; size as usize], true).unwrap();
            }
            recorded.commit().unwrap();
        }
    }
    for (name, recorded) in names.iter().zip(all) {
        let expected = recorded.expected.clone();
        let title = recorded.recorder.finish().unwrap().unwrap();
        assert_recorded(&store, &title, &expected.tracks, name);
    }
    assert_sound(&store, "all ended");
}

/// A disk that gives one permit at a time, as a served one does in time that nobody keeps.
#[derive(Clone, Default)]
struct OneAtATime(Arc<(Mutex<Option<ThreadId>>, Condvar)>);

impl BackgroundIo for OneAtATime {
    fn acquire(&self, _: ByteCount) -> Permit {
        let (holder, is_free) = &*self.0;
        let this = std::thread::current().id();
        let mut held = holder.lock().unwrap();
        assert_ne!(*held, Some(this), "a permit is asked for beside another");
        while held.is_some() {
            held = is_free.wait(held).unwrap();
        }
        *held = Some(this);
        Permit::holding(HeldAlone(self.clone()))
    }
}

/// The one permit of [`OneAtATime`].
struct HeldAlone(OneAtATime);

impl Drop for HeldAlone {
    fn drop(&mut self) {
        let (holder, is_free) = &*self.0.0;
        *holder.lock().unwrap() = None;
        is_free.notify_one();
    }
}

#[test]
fn many_recordings_need_one_permit_at_a_time() {
    // A track that grows takes 8 MiB of room.
    let device = PowerCutDevice::new(ByteCount::mib(128));
    let store = formatted(&device);
    let io = OneAtATime::default();
    std::thread::scope(|scope| {
        for camera in 0..8 {
            let (store, io) = (&store, &io);
            scope.spawn(move || {
                let name = format!("camera {camera}");
                let writer = store.begin(&name, TitleKind::Media).unwrap().with_io(io);
                let tracks = [description(TrackKind::Video)];
                let recorder = TitleRecorder::start(writer, &tracks, None).unwrap();
                let (expected, begun) = (Expected::with_tracks(1), vec![Vec::new()]);
                let recorded = Recorded { recorder, expected, begun };
                recorded.record_whole::<5000>(store);
            });
        }
    });
    assert_sound(&store, "all ended");
    assert_eq!(store.titles().len(), 8);
}

/// What a look finds can be read from the device, and is what the title has in the end.
#[test]
fn a_recording_can_be_read_while_it_goes_on() {
    let device = PowerCutDevice::new(ByteCount::mib(24));
    let store = formatted(&device);
    let mut recorded = Recorded::start(&store, "match", 2).unwrap();
    let running = store.recording("match").unwrap();
    let mut reader = RecordingReader::new(running.id);
    let (mut looks, mut random) = (Vec::new(), fastrand::Rng::with_seed(3));
    for second in 0..1_500 {
        for _ in 0..25 {
            let length = random.usize(1..200);
            recorded.write(0, &noise(&mut random, length), true).unwrap();
            recorded.write(1, &noise(&mut random, 3), true).unwrap();
        }
        recorded.commit().unwrap();
        if second % 100 == 7 {
            let look = reader.look(&store).unwrap().expect("it goes on");
            assert_eq!((look.name.as_str(), look.created), ("match", running.since));
            for (number, (ldus, _)) in recorded.expected.tracks.iter().enumerate() {
                let track = &look.index.tracks[number];
                assert_eq!(track.ldus.len(), ldus.len(), "at {second} s");
                let data = ldus.concat();
                assert_eq!(track.data_len, data.len() as u64);
                let held = usize::try_from(look.in_place[number]).unwrap();
                assert!(data.len() - held < 4096, "only a part of a block is missing");
                let mut there = Vec::new();
                for run in &look.runs()[number] {
                    let mut bytes = vec![0; usize::try_from(run.end - run.start).unwrap()];
                    store.device().read_at(run.start, &mut bytes).unwrap();
                    there.extend(bytes);
                }
                assert!(there[..held] == data[..held], "at {second} s, track {number}");
            }
            looks.push(look);
        }
    }
    let title = recorded.recorder.finish().unwrap().unwrap();
    assert_eq!(title.id, running.id);
    assert!(reader.look(&store).unwrap().is_none(), "it has ended");
    assert_eq!(store.recording("match"), None);
    let index = store.index(title.id).unwrap();
    for look in looks {
        for (part, whole) in look.index.tracks.iter().zip(&index.tracks) {
            let but_last = part.ldus.len() - 1;
            let (part_ldus, ldus) = (part.ldus.iter(), whole.ldus.iter());
            assert!(part_ldus.zip(ldus).take(but_last).all(|(a, b)| a == b));
            assert_eq!(whole.checksums.prefix(part.checksums.len()), part.checksums);
        }
    }
}

/// All bytes of the file of a recording as it is now, read in pieces of any size.
fn file_now(file: &RecordingFile<(&Store, &dyn BackgroundIo)>) -> (Vec<u8>, bool) {
    let look = file.look().unwrap();
    let (mut bytes, mut piece) = (Vec::new(), 1);
    while (bytes.len() as u64) < look.body().len() {
        let more = look.read(bytes.len() as u64, piece).unwrap();
        assert!(!more.is_empty() && more.len() <= piece);
        bytes.extend(more);
        piece = piece * 3 % 200_001;
    }
    assert_eq!(look.read(bytes.len() as u64, 10).unwrap(), [0; 0], "the end of the file");
    assert!(look.modified() <= std::time::SystemTime::now());
    (bytes, look.has_ended())
}

#[test]
fn the_file_of_a_recording_only_grows() {
    let device = PowerCutDevice::new(ByteCount::mib(48));
    let store = formatted(&device);
    let mut recorded = Recorded::start(&store, "match", 2).unwrap();
    let id = store.recording("match").unwrap().id;
    let new_file = || RecordingFile::new((&store, &Unthrottled as &dyn BackgroundIo), id);
    let file = new_file();
    assert_eq!(file_now(&file), (Vec::new(), false));
    let (mut random, mut before, mut sizes) = (fastrand::Rng::with_seed(4), Vec::new(), 0);
    for second in 0..60 {
        for _ in 0..25 {
            let length = random.usize(1..20_000);
            recorded.write(0, &noise(&mut random, length), true).unwrap();
            recorded.write(1, &noise(&mut random, 3000), true).unwrap();
        }
        recorded.commit().unwrap();
        if second % 5 == 4 {
            // One that is looked at for the first time has the same.
            let (bytes, has_ended) = file_now(&new_file());
            assert!(bytes.starts_with(&before) && !has_ended, "at {second} s");
            sizes += usize::from(bytes.len() > before.len());
            before = bytes;
        }
    }
    assert!(sizes > 8, "it has grown {sizes} times");
    let title = recorded.recorder.finish().unwrap().unwrap();
    // It has been looked at before all of this.
    let (bytes, has_ended) = file_now(&file);
    assert!(bytes.starts_with(&before) && has_ended);
    assert!(bytes.len() as u64 > title.bytes, "it has all of the title");
    assert_eq!(file_now(&new_file()), (bytes, true));
    store.remove("match").unwrap();
    assert_eq!(new_file().look().unwrap_err().code(), "no-title");
}

/// A recording is described by what has come of it, at any moment and after a power cut.
#[test]
fn a_description_that_changes_is_durable_with_what_it_describes() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let first = description(TrackKind::Video).codec;
    let mut recorded = Recorded::start(&store, "described", 2).unwrap();
    let mut reader = RecordingReader::new(store.recordings()[0].id);
    let mut codecs = || {
        let look = reader.look(&store).unwrap().unwrap();
        look.index.tracks.iter().map(|it| it.description.codec.clone()).collect::<Vec<_>>()
    };
    let mut before = first.clone();
    for (step, name) in [(1, "one"), (2, "one"), (3, "another"), (4, &*first)] {
        device.take_events();
        let image = device.image();
        recorded.write(0, &[step; 5000], true).unwrap();
        recorded.recorder.describe(&mut |track, description| {
            assert_eq!(description.codec, first, "the one at the beginning");
            if track == 1 {
                name.clone_into(&mut description.codec);
            }
        });
        assert_eq!(codecs(), [&*first, &*before], "step {step}, before the commit");
        recorded.commit().unwrap();
        assert_eq!(codecs(), [&*first, name], "step {step}");
        let events = device.take_events();
        cut_at_every_event(&image, &events, 1, |left, _, cut| {
            let store = Store::open_on(PowerCutDevice::from_image(left)).unwrap();
            let Some(title) = store.title("described") else { return };
            let index = store.index(title.id).unwrap();
            let found = &index.tracks[1].description.codec;
            // With the LDUs of this step, or without both.
            let is_new = index.tracks[0].ldus.len() == usize::from(step);
            let wanted = if is_new { name } else { &before };
            assert_eq!(found, wanted, "step {step}, cut {cut}");
        });
        name.clone_into(&mut before);
    }
}
