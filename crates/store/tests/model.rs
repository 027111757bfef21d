//! The catalogue compared with a map: random steps with reopening in between; and the refusals of
//! opening, formatting and naming.

mod common;
mod temp_dir;

use common::titles::{Model, assert_holds, formatted, get, put, small, step};
use common::{DeviceEvent, PowerCutDevice};
use device::MemoryDevice;
use disk::{Calibration, ReadGuarantee, WriteCost};
use media::{LduIndex, TitleKind, TrackKind};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{
    BackgroundIo, FormatOptions, Permit, Store, StoreError, TitleId, TitleRecord, TitleSelection,
    Unthrottled,
};
use temp_dir::TempDir;
use units::{BitRate, ByteCount};

#[test]
fn random_steps_agree_with_a_map_across_reopening() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let device = PowerCutDevice::new(ByteCount::mib(3));
        let mut store = formatted(&device);
        let mut model = Model::new();
        let mut followed = FollowedTitles::default();
        for number in 0..150 {
            let told = step(&store, &mut model, &mut random);
            if random.u32(..3) == 0 {
                followed.follow(&store);
            }
            if random.u32(..10) == 0 {
                drop(store);
                store = Store::open_on(device.clone()).unwrap();
                followed = FollowedTitles::of(&store);
                let context = format!("seed {seed}, step {number}: {told}");
                assert_holds(&store, &model, &context);
                let report = store.check(&Default::default(), &mut |_| {}).unwrap();
                assert_eq!(report.healed, [], "{context}: nothing was cut");
            }
        }
        assert_holds(&store, &model, &format!("seed {seed}, at the end"));
    }
}

/// The names of titles as a program knows them that looks at those that have changed.
#[derive(Debug, Default)]
struct FollowedTitles {
    changes: u64,
    names: BTreeMap<TitleId, String>,
}

impl FollowedTitles {
    fn of(store: &Store) -> Self {
        let names = store.titles().into_iter().map(|title| (title.id, title.name)).collect();
        Self { changes: store.changes(), names }
    }

    fn follow(&mut self, store: &Store) {
        let changed = store.changed_since(self.changes).expect("a few changes");
        self.changes = store.changes();
        for id in changed {
            match store.record_of(id) {
                Some(title) => self.names.insert(id, title.name),
                None => self.names.remove(&id),
            };
        }
        assert_eq!(self.names, Self::of(store).names);
    }
}

#[test]
fn so_many_changes_are_known_by_their_titles() {
    let device = Arc::new(MemoryDevice::new(ByteCount::mib(3)));
    Store::format_on(device.clone(), &small("")).unwrap();
    let store = Store::open_on(device).unwrap();
    let title = put(&store, "a", &[vec![1]]).unwrap();
    let first = store.changes();
    for change in 0..4097 {
        let names = [["a", "b"], ["b", "a"]][change % 2];
        store.rename(names[0], names[1]).unwrap();
    }
    assert_eq!(store.changed_since(first), None);
    assert_eq!(store.changed_since(first + 1), Some(vec![title.id; 4096]));
    assert_eq!(store.changed_since(store.changes()), Some(Vec::new()));
}

#[test]
fn the_pages_of_a_list_are_together_the_list() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let names = ["a", "a-b", "a/b", "a/b/c", "a/c", "a//d", "a0", "b", "b/a", "ä/a"];
    for name in names {
        put(&store, name, &[vec![1]]).unwrap();
    }
    for folder in [None, Some("a"), Some("a/b"), Some("b"), Some("ä"), Some("a/"), Some("none")] {
        let folder = folder.map(str::to_owned);
        let selection = TitleSelection { folder, ..TitleSelection::default() };
        let is_inside = |name: &&str| selection.has(name);
        let mut expected: Vec<&str> = names.into_iter().filter(is_inside).collect();
        expected.sort_unstable();
        for limit in [0, 1, 2, 3, 50] {
            let (mut listed, mut pages, mut after) = (Vec::new(), 0, None);
            loop {
                let folder = selection.folder.clone();
                let limit = NonZeroU32::new(limit);
                let wanted = TitleSelection { folder, after, limit, ..TitleSelection::default() };
                let page = store.page(&wanted);
                pages += 1;
                listed.extend(page.titles.into_iter().map(|title| title.name));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(listed, expected, "{selection:?} {limit}");
            let whole = if limit == 0 { 50 } else { limit as usize };
            assert_eq!(pages, expected.len().div_ceil(whole).max(1), "{selection:?} {limit}");
        }
    }
    // Behind a name that no title has.
    let folder = Some("a".to_owned());
    let behind = |after: &str| {
        let (folder, after) = (folder.clone(), Some(after.to_owned()));
        let wanted = TitleSelection { folder, after, ..TitleSelection::default() };
        let titles = store.page(&wanted).titles;
        titles.into_iter().map(|title| title.name).collect::<Vec<_>>()
    };
    assert_eq!(behind("a/b/d"), ["a/c"]);
    assert_eq!((behind("").len(), behind("b").len()), (4, 0));
    // A search looks at the names of the selection alone.
    let search = |part: &str, folder: Option<&str>, limit| {
        let (folder, search) = (folder.map(str::to_owned), Some(part.to_owned()));
        let limit = NonZeroU32::new(limit);
        let page = store.page(&TitleSelection { folder, search, limit, after: None });
        let names: Vec<String> = page.titles.into_iter().map(|title| title.name).collect();
        format!("{}; {}", names.join(" "), page.next.unwrap_or_default())
    };
    for (part, folder, limit, found) in [
        ("B", None, 0, "a-b a/b a/b/c b b/a; "),
        ("B", None, 2, "a-b a/b; a/b"),
        ("/C", Some("a"), 9, "a/b/c a/c; "),
        ("Ä", None, 0, "ä/a; "),
        ("z", None, 9, "; "),
    ] {
        assert_eq!(search(part, folder, limit), found, "{part} {folder:?} {limit}");
    }
}

#[test]
fn a_title_is_opened_in_two_reads_whatever_the_number_of_titles() {
    let device = PowerCutDevice::new(ByteCount::mib(64));
    let store = formatted(&device);
    let mut reads = Vec::new();
    for number in 1..=400 {
        put(&store, &format!("folder/{number}"), &[vec![1; 5_000]]).unwrap();
        if [1, 20, 400].contains(&number) {
            let before = device.reads();
            let title = store.find("folder/1").unwrap();
            let reader = store.reader(title.id, &Unthrottled).unwrap();
            assert_eq!(*reader.piece(0, 0, 2).unwrap(), [1, 1]);
            reads.push(device.reads() - before);
        }
    }
    assert_eq!(reads, [2, 2, 2], "the index, and the data");
}

#[test]
fn a_hidden_title_can_be_read_until_it_is_released() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let tracks = vec![vec![5; 300_000]];
    let title = put(&store, "going", &tracks).unwrap();
    let free = store.info().free_chunks;
    store.hide("going").unwrap();
    assert_eq!(store.title("going"), None);
    assert_eq!(get(&store, &title).unwrap(), tracks);
    assert_eq!(store.runs(title.id, 0).unwrap().len(), 1);
    assert_eq!(store.info().free_chunks, free, "its space is kept");
    // The name is free immediately.
    put(&store, "going", &[vec![6; 10]]).unwrap();
    store.release(title.id);
    assert_eq!(store.info().free_chunks, free + title.chunks() - 2);
    assert_eq!(store.runs(title.id, 0), None);
    assert_eq!(store.index(title.id).unwrap_err().code(), "no-title");
    store.release(title.id);
}

#[test]
fn the_space_of_a_title_is_kept_while_it_is_read_and_while_nothing_is_written() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let titles = ["read", "kept", "other"].map(|name| put(&store, name, &[vec![5; 300_000]]));
    let [read, kept, _other] = titles.map(Result::unwrap);
    let free = || store.info().free_chunks;
    let before = free();
    store.keep(read.id);
    store.keep(read.id);
    store.hide("read").unwrap();
    store.release(read.id);
    store.let_go(read.id);
    assert_eq!((free(), store.is_kept(read.id)), (before, true), "one reads on");
    store.hide("kept").unwrap();
    // The disk is lost: what returns in its place may be older, and must not be written over.
    store.suspend_writes();
    store.let_go(read.id);
    store.release(kept.id);
    assert_eq!(free(), before);
    device.take_events();
    let refused = [
        store.hide("other").map(drop),
        store.rename("other", "name"),
        store.begin("new", TitleKind::File).map(drop),
    ];
    assert_eq!(refused.map(|result| result.unwrap_err().code()), ["disk-lost"; 3]);
    assert_eq!(device.take_events().len(), 0, "nothing is written");
    store.resume_writes();
    assert_eq!(free(), before + read.chunks() + kept.chunks());
    store.rename("other", "name").unwrap();
    assert_eq!(get(&store, &store.title("name").unwrap()).unwrap(), [vec![5; 300_000]]);
}

#[test]
fn tracks_are_side_by_side_in_one_extent_each_if_a_hole_holds_them() {
    let device = PowerCutDevice::new(ByteCount::mib(8));
    let store = formatted(&device);
    let chunks = |n: usize| vec![1u8; n << 16];
    let show = |title: &TitleRecord| {
        let extents = |track: &store::TrackRecord| {
            let each = track.extents.iter().map(|e| format!("{}+{}", e.start.0, e.chunks));
            each.collect::<Vec<_>>().join(" ")
        };
        let tracks: Vec<String> = title.tracks.iter().map(extents).collect();
        format!("{}: {}; index {}", title.name, tracks.join(", "), title.index[0].start.0)
    };
    let mut told = Vec::new();
    told.push(show(&put(&store, "a", &[chunks(10), chunks(2)]).unwrap()));
    told.push(show(&put(&store, "b", &[chunks(4)]).unwrap()));
    told.push(show(&put(&store, "c", &[chunks(6)]).unwrap()));
    store.remove("b").unwrap();
    told.push(show(&put(&store, "fits b's hole", &[chunks(3)]).unwrap()));
    told.push(show(&put(&store, "does not", &[chunks(7)]).unwrap()));
    let left = usize::try_from(store.info().free_chunks).unwrap() - 1;
    told.push(show(&put(&store, "all that is left", &[chunks(left)]).unwrap()));
    expect_test::expect![[r#"
        a: 4+10, 2+2; index 14
        b: 15+4; index 19
        c: 20+6; index 26
        fits b's hole: 15+3; index 18
        does not: 27+7; index 19
        all that is left: 34+29 71+56; index 63"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn a_track_of_unknown_size_grows_in_place_and_is_trimmed() {
    let device = PowerCutDevice::new(ByteCount::mib(8));
    let store = formatted(&device);
    let before = store.info().free_chunks;
    let mut writer = store.begin("grows", TitleKind::File).unwrap();
    writer.declare(&[ByteCount(100)]).unwrap();
    let bytes: Vec<u8> = (0..2_000_000u32).map(|i| i.to_le_bytes()[1]).collect();
    for piece in bytes.chunks(12_345) {
        writer.write(0, piece).unwrap();
    }
    let description = common::titles::description(media::TrackKind::File);
    let title = writer.seal(vec![(description, Default::default())]).unwrap();
    assert_eq!(get(&store, &title).unwrap(), [bytes]);
    assert_eq!(title.tracks[0].extents.len(), 1, "{title:?}");
    assert_eq!(store.info().free_chunks, before - 31 - 1);
}

/// Large writes, and the bytes of each.
#[derive(Default)]
struct LargeWrites(Mutex<Vec<u64>>);

impl BackgroundIo for LargeWrites {
    fn buffer_size(&self) -> ByteCount {
        ByteCount::mib(4)
    }

    fn most_at_once(&self) -> ByteCount {
        ByteCount::mib(3)
    }

    fn acquire(&self, bytes: ByteCount) -> Permit {
        self.0.lock().unwrap().push(bytes.0);
        Permit::unlimited()
    }
}

#[test]
fn a_title_is_written_in_as_large_writes_as_the_disk_is_to_take() {
    let device = PowerCutDevice::new(ByteCount::mib(24));
    let store = formatted(&device);
    let io = LargeWrites::default();
    let bytes: Vec<u8> = (0..9_500_000u32).map(|i| i.to_le_bytes()[1]).collect();
    let mut writer = store.begin("large", TitleKind::File).unwrap().with_io(&io);
    writer.declare(&[ByteCount(bytes.len() as u64)]).unwrap();
    bytes.chunks(700_000).for_each(|piece| writer.write(0, piece).unwrap());
    let description = common::titles::description(media::TrackKind::File);
    let title = writer.seal(vec![(description, Default::default())]).unwrap();
    assert_eq!(get(&store, &title).unwrap(), [bytes]);
    let mebibytes: Vec<u64> = io.0.lock().unwrap().iter().map(|bytes| bytes >> 20).collect();
    assert_eq!(mebibytes, [3, 1, 3, 1, 1, 0], "two buffers, the rest, the index");
}

#[test]
fn a_calibration_is_kept() {
    let calibration = Calibration {
        slot: Duration::from_millis(500),
        guarantees: vec![ReadGuarantee::of_slot(
            Duration::from_millis(500),
            ByteCount::MIB,
            41,
            55.5,
            Duration::from_micros(23_456),
        )],
        queue_depth: 4,
        r0: BitRate(1_600_000_000),
        t0: Duration::from_micros(8_100),
        zones: vec![(ByteCount(0), BitRate(2_000_000_000)), (ByteCount::mib(1024), BitRate(1))],
        actuator: None,
        writing: None,
        method: "direct".to_owned(),
        measured_at: 1_800_000_000,
        measured: None,
        outliers: Vec::new(),
    };
    let ms = Duration::from_millis;
    let cost = WriteCost { write_size: ByteCount::MIB, mean: ms(9), slowest: ms(31) };
    let with_writes = Calibration { writing: Some(cost), ..calibration.clone() };
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    assert_eq!(store.calibration(), None);
    for _ in 0..50 {
        store.set_calibration(&calibration).unwrap();
    }
    drop(store);
    let store = Store::open_on(device.clone()).unwrap();
    assert_eq!(store.calibration(), Some(calibration));
    store.set_calibration(&with_writes).unwrap();
    drop(store);
    assert_eq!(Store::open_on(device).unwrap().calibration(), Some(with_writes));
}

#[test]
fn a_disk_history_is_kept_unchanged_and_its_length_is_limited() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    assert_eq!(store.disk_history(), None);
    for last in 0..200u8 {
        store.set_disk_history(&[vec![7; 4095], vec![last]].concat()).unwrap();
    }
    let error = store.set_disk_history(&[0; 4097]).unwrap_err();
    assert_eq!(error.code(), "too-much", "{error}");
    drop(store);
    let store = Store::open_on(device.clone()).unwrap();
    assert_eq!(store.disk_history(), Some([vec![7; 4095], vec![199]].concat()));
    assert!(store.check(&Default::default(), &mut |_| {}).unwrap().is_clean());
    store.set_disk_history(b"").unwrap();
    drop(store);
    assert_eq!(Store::open_on(device).unwrap().disk_history(), Some(Vec::new()));
}

#[test]
fn two_writers_cannot_have_one_name_and_a_dropped_one_frees_it() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let mut first = store.begin("name", TitleKind::Media).unwrap();
    first.declare(&[ByteCount(1_000_000)]).unwrap();
    assert_eq!(store.begin("name", TitleKind::Media).unwrap_err().code(), "being-written");
    put(&store, "other", &[vec![1]]).unwrap();
    assert_eq!(store.rename("other", "name").unwrap_err().code(), "being-written");
    drop(first);
    store.rename("other", "name").unwrap();
    let long = "x".repeat(256);
    for name in ["", ".", "..", "two\nlines", long.as_str()] {
        assert_eq!(store.begin(name, TitleKind::File).unwrap_err().code(), "bad-name", "{name}");
    }
    put(&store, "Ein Käfer / ../b %2e \\", &[vec![1]]).unwrap();
    assert_eq!(store.rename("nobody", "x").unwrap_err().code(), "no-title");
    assert_eq!(store.remove("nobody").unwrap_err().code(), "no-title");
    assert_eq!(store.info().titles, 2);
}

#[test]
fn a_title_takes_the_name_of_another_whose_readers_keep_it() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let old = put(&store, "old", &[vec![1; 5_000]]).unwrap();
    put(&store, "new", &[vec![2; 5_000]]).unwrap();
    let free = store.info().free_chunks;
    assert_eq!(store.replace("new", "old").unwrap(), old);
    assert_eq!(common::titles::get(&store, &old).unwrap(), [vec![1; 5_000]]);
    assert_eq!(store.info().free_chunks, free);
    store.release(old.id);
    assert!(store.info().free_chunks > free);
    let title = store.find("old").unwrap();
    assert_eq!(common::titles::get(&store, &title).unwrap(), [vec![2; 5_000]]);
    for (from, to) in [("none", "old"), ("old", "none"), ("old", "old")] {
        assert_eq!(store.replace(from, to).unwrap_err().code(), "no-title", "{from} {to}");
    }
}

#[test]
fn a_title_is_written_beside_the_one_whose_place_it_takes() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let old = put(&store, "film", &[vec![1; 5_000]]).unwrap();
    let free = store.info().free_chunks;
    // One that is given up leaves the old one, and its name free for the next.
    let begin = || store.begin_beside("film", TitleKind::File);
    let mut given_up = begin().unwrap();
    given_up.declare(&[ByteCount(5_000)]).unwrap();
    assert_eq!(begin().unwrap_err().code(), "being-written");
    drop(given_up);
    assert_eq!((store.find("film").unwrap(), store.info().free_chunks), (old.clone(), free));
    let mut writer = begin().unwrap();
    writer.declare(&[ByteCount(5_000)]).unwrap();
    writer.write(0, &[2; 5_000]).unwrap();
    assert_eq!(store.find("film").unwrap(), old, "until it is sealed");
    let description = common::titles::description(TrackKind::File);
    let sealed = vec![(description, LduIndex::default())];
    let (new, replaced) = writer.seal_in_place(sealed.clone()).unwrap();
    assert_eq!((replaced.as_ref(), store.titles()), (Some(&old), vec![new.clone()]));
    assert_eq!(get(&store, &old).unwrap(), [vec![1; 5_000]], "its readers go on");
    store.release(old.id);
    drop(store);
    let store = Store::open_on(device).unwrap();
    assert_eq!(get(&store, &store.find("film").unwrap()).unwrap(), [vec![2; 5_000]]);
    // Where none has the name, it is as any other.
    store.remove("film").unwrap();
    let mut writer = store.begin_beside("film", TitleKind::File).unwrap();
    writer.declare(&[ByteCount(0)]).unwrap();
    assert_eq!(writer.seal_in_place(sealed).unwrap().1, None);
}

#[test]
fn a_name_is_reserved_while_a_renaming_is_written() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    put(&store, "old", &[vec![1]]).unwrap();
    let meanwhile = || {
        assert_eq!(store.begin("new", TitleKind::Media).unwrap_err().code(), "being-written");
    };
    device.during_a_flush(|| store.rename("old", "new"), meanwhile).unwrap();
    // A refused renaming frees the name that it reserved.
    assert_eq!(store.rename("nobody", "third").unwrap_err().code(), "no-title");
    put(&store, "third", &[vec![2]]).unwrap();
    drop(store);
    let titles = Store::open_on(device).unwrap().titles();
    let names: Vec<&str> = titles.iter().map(|title| title.name.as_str()).collect();
    assert_eq!(names, ["new", "third"]);
}

#[test]
fn an_abandoned_title_writes_nothing_into_the_metadata() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let before = store.info();
    device.take_events();
    common::titles::abandon(&store, "gone", &[1; 1_200_000]).unwrap();
    assert_eq!(store.info(), before);
    let data = |chunk| (2..24).contains(&chunk) || (31..47).contains(&chunk);
    for event in device.take_events() {
        let DeviceEvent::Write(offset, _) = event else { panic!("{event:?}") };
        assert!(data(offset >> 16), "a write at {offset}");
    }
}

fn code<T>(result: Result<T, StoreError>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "done")
}

fn sized(mib: u64) -> FormatOptions {
    FormatOptions { size: Some(ByteCount::mib(mib)), label: "Kino".into(), ..Default::default() }
}

#[test]
fn a_file_becomes_a_store_only_if_no_content_is_lost() {
    let dir = TempDir::new("format");
    let path = dir.0.join("store");
    let format = |options: &FormatOptions| code(Store::format(&path, options));
    assert_eq!(format(&FormatOptions::default()), "size-needed");
    assert_eq!(format(&FormatOptions { chunk: ByteCount(100_000), ..sized(64) }), "bad-chunk");
    assert_eq!(format(&sized(1)), "too-small");
    assert!(!path.exists(), "a refusal leaves no file");
    assert_eq!(format(&sized(64)), "done");
    assert_eq!(format(&sized(64)), "would-destroy");
    let destroy = FormatOptions { destroy: true, ..sized(32) };
    assert_eq!(format(&destroy), "done");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 32 << 20);
    let again = FormatOptions { size: None, ..destroy.clone() };
    assert_eq!(format(&again), "done");

    let store = Store::open(&path).unwrap();
    let info = store.info();
    assert_eq!((info.label.as_str(), info.sparse), ("Kino", false));
    assert_eq!(code(Store::open(&path)), "owned");
    assert_eq!(format(&destroy), "owned");
    let peeked = Store::peek(&path).unwrap();
    assert_eq!((peeked.uuid, peeked.size), (info.uuid, ByteCount::mib(32)));
    drop(store);

    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    assert_eq!(code(Store::open(&path)), "not-a-store");
    assert_eq!(format(&sized(64)), "would-destroy", "somebody's file");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 20);

    let sparse = dir.0.join("sparse");
    std::fs::File::create(&sparse).unwrap().set_len(64 << 20).unwrap();
    let info = Store::format(&sparse, &FormatOptions::default()).unwrap();
    assert!(info.sparse && Store::open(&sparse).unwrap().info().sparse);
    assert_eq!(code(Store::open(&dir.0.join("nothing"))), "device");
    assert_eq!(code(Store::open(&dir.0)), "device");
}

#[test]
fn a_device_that_shrank_or_has_another_version_is_reported() {
    let whole = PowerCutDevice::new(ByteCount::mib(3));
    drop(formatted(&whole));
    let mut image = whole.image();
    let shrunk = PowerCutDevice::from_image(image[..2 << 20].to_vec());
    let error = Store::open_on(shrunk).unwrap_err();
    assert!(matches!(error, StoreError::Shrunk { .. }), "{error}");
    let mut larger = image.clone();
    larger.resize(5 << 20, 0);
    assert_eq!(Store::open_on(PowerCutDevice::from_image(larger)).unwrap().info().titles, 0);
    for place in [0, 64 << 10, (3 << 19), (3 << 20) - (64 << 10)] {
        image[place + 8] = 2;
    }
    let error = Store::open_on(PowerCutDevice::from_image(image)).unwrap_err();
    assert!(matches!(error, StoreError::Version { found: 2, known: 1 }), "{error}");
    let blank = Arc::new(MemoryDevice::new(ByteCount::mib(3)));
    assert_eq!(Store::open_on(blank.clone()).unwrap_err().code(), "not-a-store");
    Store::format_on(blank.clone(), &small("")).unwrap();
    let again = Store::format_on(blank, &small("")).unwrap_err();
    assert_eq!(again.code(), "would-destroy");
}
