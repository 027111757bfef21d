//! Power cuts at any write and any sector. Acknowledged changes are there afterwards; others are
//! there whole or not at all; `check` finds nothing; no space is lost; and the store continues to
//! work.
//!
//! One seed is one random workload on a small store, recorded write by write. Every position in the
//! recording is cut several times. To run one again: `TENUTO_SEED=n cargo test -p store --test
//! power_cut`.

mod common;

use common::titles::{
    Model, assert_holds, formatted, formatted_as, holdings, noise, put, small, step,
};
use common::{DeviceEvent, PowerCutDevice, apply, cut, cut_at_every_event, flushed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{FormatOptions, Store};
use units::ByteCount;

/// A recorded workload.
struct RecordedRun {
    /// The device when the recording starts; all of it is durable.
    image: Vec<u8>,
    events: Vec<DeviceEvent>,
    /// The model after each acknowledged step; the first is the empty store's.
    states: Vec<Model>,
    steps: Vec<String>,
}

fn record(seed: u64, steps: usize) -> RecordedRun {
    let mut random = fastrand::Rng::with_seed(seed);
    // Odd seeds: a store that does not use all of its device.
    let device = PowerCutDevice::new(ByteCount::mib(3 + seed % 2));
    let size = Some(ByteCount::mib(3));
    let store = formatted_as(&device, &FormatOptions { size, ..small("test") });
    let image = device.image();
    device.take_events();
    let mut model = Model::new();
    let (mut states, mut told) = (vec![model.clone()], Vec::new());
    for number in 1..=steps {
        told.push(step(&store, &mut model, &mut random));
        states.push(model.clone());
        device.acknowledge(number);
    }
    assert_holds(&store, &model, &format!("seed {seed}, uncut"));
    RecordedRun { image, events: device.take_events(), states, steps: told }
}

/// Opens the remains after a power cut; the state is that of the last acknowledged step or the
/// next.
fn assert_recovers(image: Vec<u8>, recording: &RecordedRun, acknowledged: usize, context: &str) {
    let device = PowerCutDevice::from_image(image.clone());
    let store = Store::open_on(device.clone()).unwrap_or_else(|error| panic!("{context}: {error}"));
    let held = holdings(&store).unwrap_or_else(|error| panic!("{context}: {error}"));
    let expected = recording.states[acknowledged..].iter().take(2).find(|state| **state == held);
    let Some(expected) = expected else {
        panic!(
            "{context}: holds {:?}, acknowledged was {:?}",
            held.keys().collect::<Vec<_>>(),
            recording.states[acknowledged].keys().collect::<Vec<_>>()
        );
    };
    assert_holds(&store, expected, context);
    // The writes that repair the store at open can be cut, too.
    let healing = device.take_events();
    drop(store);
    cut_at_every_event(&image, &healing, 1, |left, _, again| {
        let context = format!("{context}, healing {again}");
        let store = Store::open_on(PowerCutDevice::from_image(left))
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_holds(&store, expected, &context);
    });
}

fn cut_everywhere(seed: u64, steps: usize, cuts_per_place: u64) -> u64 {
    let recording = record(seed, steps);
    let mut durable = recording.image.clone();
    let (mut flushed, mut acknowledged, mut cuts) = (0, 0, 0);
    for until in 0..=recording.events.len() {
        for again in 0..cuts_per_place {
            let mut random = fastrand::Rng::with_seed(seed << 32 ^ (until as u64) << 8 ^ again);
            let left = cut(&durable, &recording.events[flushed..until], &mut random);
            let doing = recording.steps.get(acknowledged).map_or("nothing", String::as_str);
            let context = format!("seed {seed}, cut {again} at {until}, during '{doing}'");
            assert_recovers(left, &recording, acknowledged, &context);
            cuts += 1;
        }
        match recording.events.get(until) {
            Some(DeviceEvent::Flush) => {
                apply(&mut durable, &recording.events[flushed..until]);
                flushed = until + 1;
            }
            Some(DeviceEvent::Acknowledged(step)) => acknowledged = *step,
            _ => {}
        }
    }
    cuts
}

#[test]
fn acknowledged_changes_survive_and_others_leave_no_trace() {
    let seeds = match std::env::var("TENUTO_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..4).collect(),
    };
    let cuts: u64 = seeds.iter().map(|seed| cut_everywhere(*seed, 60, 2)).sum();
    assert!(cuts > 300 * seeds.len() as u64, "only {cuts} cuts");
}

#[test]
fn an_interrupted_format_can_be_repeated() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let before = device.image();
    drop(formatted(&device));
    let events = device.take_events();
    for until in 0..events.len() {
        let left = cut(&before, &events[..until], &mut fastrand::Rng::with_seed(until as u64));
        let device = PowerCutDevice::from_image(left);
        if let Ok(store) = Store::open_on(device.clone()) {
            assert_holds(&store, &Model::new(), &format!("cut at {until}"));
        } else {
            let options = FormatOptions { destroy: true, ..small("again") };
            Store::format_on(device, &options).unwrap();
        }
    }
}

/// A uuid given to a copy is whole or not there, and every title, label and journal entry, which
/// keep the uuid of the format, belongs to the store under either.
#[test]
fn a_power_cut_while_a_copy_gets_its_uuid_leaves_the_old_or_the_new_one() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let tracks = vec![vec![7; 100_000], vec![8; 10]];
    put(&store, "kept", &tracks).unwrap();
    let before = store.info().uuid;
    drop(store);
    let model = Model::from([("kept".to_owned(), tracks)]);
    let image = device.image();
    device.take_events();
    let given = Store::relabel_on(device.clone()).unwrap();
    assert_ne!(given, before);
    let events = device.take_events();
    let mut seen = [0, 0];
    cut_at_every_event(&image, &events, 8, |left, until, context| {
        let store = Store::open_on(PowerCutDevice::from_image(left))
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        let uuid = store.info().uuid;
        assert!(uuid == before || uuid == given, "{context}: {uuid}");
        assert!(uuid == given || until < events.len(), "{context}: done and not durable");
        seen[usize::from(uuid == given)] += 1;
        assert_holds(&store, &model, context);
        put(&store, "later", &[vec![1]]).unwrap();
    });
    assert!(seen.iter().all(|times| *times >= 8), "{seen:?}");
}

/// Small growth keeps journal and checkpoints; from 32 MiB on they are larger, and move.
#[test]
fn a_power_cut_while_a_store_grows_leaves_the_old_or_the_new_size() {
    let old = ByteCount::mib(3);
    for new in [ByteCount::kib(3 * 1024 + 64), ByteCount::mib(5), ByteCount::mib(33)] {
        let device = PowerCutDevice::new(new);
        let store = formatted_as(&device, &FormatOptions { size: Some(old), ..small("test") });
        let mut model = Model::new();
        let mut random = fastrand::Rng::with_seed(new.0);
        for _ in 0..20 {
            step(&store, &mut model, &mut random);
        }
        let free = store.info().free_chunks;
        drop(store);
        let image = device.image();
        device.take_events();
        let grown = Store::resize_on(device.clone(), new).unwrap();
        assert_eq!(grown.size, new);
        let added = (new.0 - old.0) / grown.chunk.0;
        assert!(grown.free_chunks > free || added < 3, "{added} chunks, {free} free: {grown:?}");
        let events = device.take_events();
        let mut seen = [0, 0];
        cut_at_every_event(&image, &events, 4, |left, until, context| {
            let context = &format!("to {new}, {context}");
            let device = PowerCutDevice::from_image(left);
            let store =
                Store::open_on(device.clone()).unwrap_or_else(|error| panic!("{context}: {error}"));
            let size = store.info().size;
            assert!(size == old || size == new, "{context}: {size}");
            assert!(size == new || until < events.len(), "{context}: done and not durable");
            seen[usize::from(size == new)] += 1;
            assert_holds(&store, &model, context);
            drop(store);
            if size == old {
                Store::resize_on(device.clone(), new)
                    .unwrap_or_else(|error| panic!("{context}, again: {error}"));
            }
            let store = Store::open_on(device).unwrap();
            assert_eq!(store.info().free_chunks, grown.free_chunks, "{context}");
            let mut model = model.clone();
            for _ in 0..3 {
                step(&store, &mut model, &mut random);
            }
            assert_holds(&store, &model, context);
        });
        assert!(seen.iter().all(|times| *times >= 8), "{seen:?}");
    }
}

/// What is discarded was free before the power failed, whatever the disk has done of it.
#[test]
fn a_power_cut_while_free_space_is_discarded_touches_no_title() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let mut model = Model::new();
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..20 {
        step(&store, &mut model, &mut random);
    }
    let tracks = vec![vec![7; 300_000]];
    put(&store, "removed", &tracks).unwrap();
    let image = device.image();
    device.take_events();
    store.remove("removed").unwrap();
    let report = store.trim(&store::Unthrottled, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    let info = store.info();
    assert_eq!(report.bytes, ByteCount(info.free_chunks * info.chunk.0));
    assert_holds(&store, &model, "trimmed");
    let events = device.take_events();
    let mut with_it = model.clone();
    with_it.insert("removed".to_owned(), tracks);
    let mut seen = [0, 0];
    cut_at_every_event(&image, &events, 8, |left, _, context| {
        let store = Store::open_on(PowerCutDevice::from_image(left)).unwrap();
        let is_there = store.title("removed").is_some();
        seen[usize::from(is_there)] += 1;
        let expected = if is_there { &with_it } else { &model };
        assert_holds(&store, expected, context);
    });
    assert!(seen.iter().all(|times| *times >= 8), "{seen:?}");
}

#[test]
fn a_device_without_discard_is_named_and_stays_as_it_is() {
    let device = Arc::new(device::MemoryDevice::new(ByteCount::mib(3)));
    Store::format_on(device.clone(), &small("test")).unwrap();
    let store = Store::open_on(device).unwrap();
    let never = AtomicBool::new(false);
    let error = store.trim(&store::Unthrottled, &mut |_| {}, &never).unwrap_err();
    assert_eq!(error.code(), "no-discard", "{error}");
    assert_holds(&store, &Model::new(), "all is free again");
    let ended = AtomicBool::new(true);
    let error = store.trim(&store::Unthrottled, &mut |_| {}, &ended).unwrap_err();
    assert_eq!(error.code(), "cancelled");
}

#[test]
fn titles_are_written_and_removed_while_free_space_is_discarded() {
    let device = PowerCutDevice::new(ByteCount::mib(8));
    let store = formatted(&device);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let trimming = scope.spawn(|| {
            let mut times = 0;
            while !done.load(Ordering::Relaxed) {
                store.trim(&store::Unthrottled, &mut |_| {}, &AtomicBool::new(false)).unwrap();
                device.take_events();
                times += 1;
            }
            times
        });
        let mut random = fastrand::Rng::with_seed(6);
        for number in 0..60 {
            let tracks = vec![noise(&mut random, 400_000), noise(&mut random, 70_000)];
            put(&store, "title", &tracks).unwrap();
            let title = store.title("title").unwrap();
            assert!(common::titles::get(&store, &title).unwrap() == tracks, "title {number}");
            store.remove("title").unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(trimming.join().unwrap() > 0);
    });
    assert_holds(&store, &Model::new(), "afterwards");
}

/// All copies that are written between two flushes are torn at the same time. The size of the
/// device gives no copy of a shorter store.
#[test]
fn torn_superblocks_do_not_hide_a_store_that_is_shorter_than_its_device() {
    // `None`: a new uuid. From 32 MiB on the regions move.
    for grown in [None, Some(ByteCount::kib(3500)), Some(ByteCount::mib(33))] {
        let device = PowerCutDevice::new(ByteCount::mib(34));
        let size = Some(ByteCount::mib(3));
        drop(formatted_as(&device, &FormatOptions { size, ..small("test") }));
        let image = device.image();
        device.take_events();
        if let Some(size) = grown {
            Store::resize_on(device.clone(), size).unwrap();
        } else {
            Store::relabel_on(device.clone()).unwrap();
        }
        let events = device.take_events();
        for until in 0..=events.len() {
            let flushed = flushed(&events[..until]);
            let mut left = image.clone();
            apply(&mut left, &events[..flushed]);
            for event in &events[flushed..until] {
                // New numbers and checksum in front of old contents.
                if let DeviceEvent::Write(offset, data) = event {
                    apply(&mut left, &[DeviceEvent::Write(*offset, data[..100].to_vec())]);
                }
            }
            if let Err(error) = Store::open_on(PowerCutDevice::from_image(left)) {
                panic!("{grown:?}, cut at {until} of {}: {error}", events.len());
            }
        }
    }
}

#[test]
fn a_failed_write_stops_all_writing_and_loses_nothing() {
    // The n-th write or flush of a seal fails, for every n.
    for operations in 0..20 {
        let device = PowerCutDevice::new(ByteCount::mib(3));
        let store = formatted(&device);
        let kept = vec![vec![7; 100_000]];
        put(&store, "kept", &kept).unwrap();
        device.fail_after(operations);
        let tracks = vec![vec![8; 150_000], vec![9; 10]];
        let result = put(&store, "new", &tracks);
        device.fail_after(1_000_000);
        let mut model = Model::from([("kept".to_owned(), kept)]);
        if result.is_ok() {
            model.insert("new".to_owned(), tracks);
            assert_holds(&store, &model, "no write failed");
            assert!(operations >= 5, "a seal writes data, index, entry and flushes twice");
            return;
        }
        let refused = put(&store, "later", &[vec![1]]).unwrap_err();
        assert_eq!(refused.code(), "stopped", "{refused}");
        assert_eq!(store.remove("kept").unwrap_err().code(), "stopped");
        drop(store);
        let store = Store::open_on(device).unwrap();
        let held = holdings(&store).unwrap();
        if held.len() == 2 {
            // The entry was written, and only its flush failed.
            model.insert("new".to_owned(), tracks);
        }
        assert_holds(&store, &model, &format!("failed after {operations}"));
        put(&store, "later", &[vec![1]]).unwrap();
    }
    panic!("a seal takes less than 20 writes");
}
