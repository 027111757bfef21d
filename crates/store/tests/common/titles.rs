//! Small stores and titles for tests, and a model to compare them with.

use media::{IndexPart, LduIndex, TitleKind, TrackDescription, TrackKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::{
    BackgroundIo, CheckOptions, FormatOptions, Store, StoreError, TitleRecord, Unthrottled,
    copy_title,
};
use units::{ByteCount, Timescale};

/// The expected content of a store: the bytes of each title's tracks, by name.
pub type Model = BTreeMap<String, Vec<Vec<u8>>>;

/// Options with small chunks, so that a small device has many.
pub fn small(label: &str) -> FormatOptions {
    let chunk = ByteCount::kib(64);
    FormatOptions { size: None, chunk, label: label.to_owned(), destroy: false }
}

pub fn description(kind: TrackKind) -> TrackDescription {
    TrackDescription::plain(kind, Timescale(25))
}

/// An index of LDUs of 1,000 bytes, one per tick of 1/25 s.
pub fn ldus(bytes: usize) -> LduIndex {
    let mut index = LduIndex::default();
    for start in (0..bytes).step_by(1000) {
        let size = u32::try_from((bytes - start).min(1000)).unwrap();
        index.push(size, 1, 0, start % 10_000 == 0, false);
    }
    index
}

/// Writes a media title with these tracks.
pub fn put(store: &Store, name: &str, tracks: &[Vec<u8>]) -> Result<TitleRecord, StoreError> {
    let mut writer = store.begin(name, TitleKind::Media)?;
    let expected: Vec<ByteCount> = tracks.iter().map(|t| ByteCount(t.len() as u64)).collect();
    writer.declare(&expected)?;
    for (number, bytes) in tracks.iter().enumerate() {
        for piece in bytes.chunks(70_001) {
            writer.write(u16::try_from(number).unwrap(), piece)?;
        }
    }
    let sealed = tracks.iter().map(|t| (description(TrackKind::Video), ldus(t.len()))).collect();
    writer.seal(sealed)
}

/// Begins a title, writes some of it and drops it.
pub fn abandon(store: &Store, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let mut writer = store.begin(name, TitleKind::File)?;
    writer.declare(&[ByteCount(0)])?;
    writer.write(0, bytes)
}

/// The verified content of a title's tracks.
pub fn get(store: &Store, title: &TitleRecord) -> Result<Vec<Vec<u8>>, StoreError> {
    let reader = store.reader(title.id, &Unthrottled)?;
    let mut tracks = Vec::new();
    for (number, track) in title.tracks.iter().enumerate() {
        let (number, length) = (u16::try_from(number).unwrap(), track.bytes.try_into().unwrap());
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let left = length - bytes.len();
            bytes.extend_from_slice(&reader.piece(number, bytes.len() as u64, left)?);
        }
        tracks.push(bytes);
    }
    Ok(tracks)
}

/// The verified content of a store.
pub fn holdings(store: &Store) -> Result<Model, StoreError> {
    store.titles().iter().map(|title| Ok((title.name.clone(), get(store, title)?))).collect()
}

/// Panics unless the store holds exactly `model`, nothing is damaged and all other space is free.
pub fn assert_holds(store: &Store, model: &Model, context: &str) {
    let held = holdings(store).unwrap_or_else(|error| panic!("{context}: {error}"));
    let names = |model: &Model| model.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&held), names(model), "{context}");
    assert!(held == *model, "{context}: bytes differ");
    let report = store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
    assert_eq!(report.findings, [], "{context}");
    let info = store.info();
    let used: u64 = store.titles().iter().map(TitleRecord::chunks).sum();
    assert_eq!(info.free_chunks, info.data_chunks - used, "{context}: space was lost");
}

/// Panics unless the store is undamaged, and all space that no title has is free.
pub fn assert_sound(store: &Store, context: &str) {
    let report = store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
    assert_eq!(report.findings, [], "{context}");
    let info = store.info();
    let used: u64 = store.titles().iter().map(TitleRecord::chunks).sum();
    assert_eq!(info.free_chunks, info.data_chunks - used, "{context}: space was lost");
}

/// What is told of a track of a recording with these LDUs, one per tick, since its LDU `from`: the
/// LDUs that are among the first `arrived` bytes. The last duration is a guess, which the next part
/// corrects.
pub fn index_part(ldus: &[Vec<u8>], from: usize, arrived: u64) -> IndexPart {
    let before: usize = ldus[..from].iter().map(Vec::len).sum();
    let mut left = usize::try_from(arrived).unwrap() - before;
    let fits = |ldu: &&Vec<u8>| {
        let within = ldu.len() <= left;
        left -= if within { ldu.len() } else { 0 };
        within
    };
    let here: Vec<&Vec<u8>> = ldus[from..].iter().take_while(fits).collect();
    let mut index = LduIndex::default();
    for (i, ldu) in here.iter().enumerate() {
        let guess = if i + 1 == here.len() { LAST_GUESSED } else { 1 };
        index.push(
            u32::try_from(ldu.len()).unwrap(),
            guess,
            0,
            (from + i).is_multiple_of(10),
            false,
        );
    }
    let last_duration = match from {
        // The first LDU is at the beginning.
        0 => 0,
        _ if here.is_empty() => LAST_GUESSED,
        _ => 1,
    };
    IndexPart { last_duration, ldus: index, checksums: Vec::new() }
}

/// Panics unless the title has at least the committed LDUs of a recording, and otherwise only what
/// was written: of each track the bytes of its LDUs, and the number of those that were committed.
pub fn assert_recorded(
    store: &Store,
    title: &TitleRecord,
    tracks: &[(Vec<Vec<u8>>, usize)],
    context: &str,
) {
    let index = store.index(title.id).unwrap_or_else(|error| panic!("{context}: {error}"));
    let held = get(store, title).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(held.len(), tracks.len(), "{context}");
    for (number, (ldus, committed)) in tracks.iter().enumerate() {
        let track = &index.tracks[number];
        let count = track.ldus.len();
        assert!(
            (*committed..=ldus.len()).contains(&count),
            "{context}: track {number} has {count} LDUs, {committed} were committed"
        );
        assert!(held[number] == ldus[..count].concat(), "{context}: bytes of track {number}");
        for (i, ldu) in track.ldus.iter().enumerate() {
            let duration = if i + 1 == count { LAST_GUESSED } else { 1 };
            let wanted = (ldus[i].len(), duration, i % 10 == 0);
            let size = usize::try_from(ldu.size).unwrap();
            assert_eq!((size, ldu.duration, ldu.sync), wanted, "{context}: LDU {i}");
        }
    }
}

/// The duration of the last LDU of each part of an index, in ticks.
const LAST_GUESSED: u32 = 7;

/// Random bytes.
pub fn noise(random: &mut fastrand::Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

/// Makes one random step on a store and on the model; returns its description.
pub fn step(store: &Store, model: &mut Model, random: &mut fastrand::Rng) -> String {
    let names: Vec<String> = model.keys().cloned().collect();
    let existing = random.choice(&names).cloned();
    let fresh = format!("title {}", random.u32(..12));
    match (random.u32(..11), existing) {
        (0..=1, Some(name)) => {
            store.remove(&name).unwrap();
            model.remove(&name);
            format!("remove {name}")
        }
        (2..=3, Some(name)) => {
            let renamed = store.rename(&name, &fresh);
            let clash = model.contains_key(&fresh) && fresh != name;
            assert_eq!(renamed.is_err(), clash, "rename {name} to {fresh}");
            if clash {
                let gone = store.replace(&name, &fresh).unwrap();
                assert_eq!(gone.name, fresh);
                store.release(gone.id);
            }
            let tracks = model.remove(&name).unwrap();
            model.insert(fresh.clone(), tracks);
            format!("rename {name} to {fresh}")
        }
        (4, _) => {
            let bytes = random.usize(..1_300_000);
            let bytes = noise(random, bytes);
            let _ = abandon(store, &fresh, &bytes);
            format!("abandon {fresh}")
        }
        (which, _) => {
            let tracks: Vec<Vec<u8>> = (0..random.usize(1..3))
                .map(|_| {
                    let length = random.usize(..200_000);
                    noise(random, length)
                })
                .collect();
            let is_copy = which == 10;
            match if is_copy { copied(store, &fresh, &tracks) } else { put(store, &fresh, &tracks) }
            {
                Ok(_) => {
                    assert!(model.insert(fresh.clone(), tracks).is_none(), "{fresh} twice");
                }
                Err(StoreError::Exists { .. }) => assert!(model.contains_key(&fresh)),
                Err(StoreError::Full { .. } | StoreError::CatalogueFull { .. }) => {}
                Err(error) => panic!("store {fresh}: {error}"),
            }
            format!("{} {fresh}", if is_copy { "copy" } else { "put" })
        }
    }
}

/// Copies a title with these tracks from another store.
fn copied(store: &Store, name: &str, tracks: &[Vec<u8>]) -> Result<TitleRecord, StoreError> {
    let source = formatted(&super::PowerCutDevice::new(ByteCount::mib(3)));
    put(&source, name, tracks).expect("it is empty");
    let io: &dyn BackgroundIo = &Unthrottled;
    copy_title(&(store, io), &[&(&source, io)], name, &mut |_| {}, &AtomicBool::new(false))
}

/// A formatted store on a device in memory.
pub fn formatted(device: &Arc<super::PowerCutDevice>) -> Store {
    formatted_as(device, &small("test"))
}

/// A formatted store on a device in memory.
pub fn formatted_as(device: &Arc<super::PowerCutDevice>, options: &FormatOptions) -> Store {
    Store::format_on(device.clone(), options).unwrap();
    Store::open_on(device.clone()).unwrap()
}
