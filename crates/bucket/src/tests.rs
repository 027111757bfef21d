//! Titles pushed to a bucket in memory and filled from it, and what a bucket may do to them.

use crate::{
    BucketCheck, BucketError, BucketListing, DamagedPlace, FillOptions, PartPeers, PushOptions,
    Pushed, Removed, TitleBucket, WantedPart,
};
use device::MemoryDevice;
use media::{LduIndex, TitleKind, TrackDescription, TrackKind};
use s3::{S3Access, S3Address, S3ErrorKind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use store::{
    CheckOptions, FormatOptions, SoleOwner, Store, StoreAccess, StoreError, TitleRecord,
    Unthrottled,
};
use testkit::bucket::{BucketFault, TestBucket, WrongAnswer};
use units::{ByteCount, Hinted, Timescale};

fn store() -> SoleOwner {
    let device = Arc::new(MemoryDevice::new(ByteCount(100 << 20)));
    let options = FormatOptions { chunk: ByteCount::kib(64), ..FormatOptions::default() };
    Store::format_on(device.clone(), &options).unwrap();
    SoleOwner(Store::open_on(device).unwrap())
}

/// Writes a title with tracks of these lengths, whose bytes come from `seed`.
fn put(store: &SoleOwner, name: &str, tracks: &[usize], seed: u64) -> TitleRecord {
    let mut writer = store.0.begin(name, TitleKind::Media).unwrap();
    let sizes: Vec<ByteCount> = tracks.iter().map(|length| ByteCount(*length as u64)).collect();
    writer.declare(&sizes).unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut sealed = Vec::new();
    for (number, length) in (0..).zip(tracks) {
        let mut bytes = vec![0; *length];
        random.fill(&mut bytes);
        writer.write(number, &bytes).unwrap();
        let mut index = LduIndex::default();
        for ldu in bytes.chunks(1 << 20) {
            index.push(u32::try_from(ldu.len()).unwrap(), 1, 0, true, false);
        }
        sealed.push((TrackDescription::plain(TrackKind::Video, Timescale(25)), index));
    }
    writer.seal(sealed).unwrap()
}

fn bucket_of(bucket: &TestBucket, wrong: WrongAnswer) -> TitleBucket {
    let keys = Some(("key".to_owned(), "secret".to_owned(), None));
    let access = S3Access { endpoint: bucket.listen(wrong), keys, ..S3Access::default() };
    TitleBucket::new(access, S3Address::parse("s3://films/house").unwrap())
}

fn right(bucket: &TestBucket) -> TitleBucket {
    bucket_of(bucket, |_| None)
}

fn push(titles: &TitleBucket, store: &SoleOwner, title: &str) -> Result<Pushed, BucketError> {
    titles.push(store, title, &mut |_| {}, &AtomicBool::new(false))
}

fn fill(titles: &TitleBucket, store: &SoleOwner, title: &str) -> Result<TitleRecord, BucketError> {
    titles.fill(store, title, &mut |_| {}, &AtomicBool::new(false))
}

fn push_verified(titles: &TitleBucket, store: &SoleOwner, title: &str) -> Pushed {
    let options = PushOptions { verify: true };
    titles.push_with(store, title, options, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

fn scrub(titles: &TitleBucket) -> BucketCheck {
    titles.check(true, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

/// The store has nothing, and nothing is taken of it.
fn assert_empty(store: &SoleOwner) {
    let info = store.store().info();
    assert_eq!((info.titles, info.free_chunks), (0, info.data_chunks));
}

const MIB: usize = 1 << 20;

#[test]
fn a_title_comes_back_with_its_content_and_its_time() {
    let bucket = TestBucket::default();
    let (titles, from, to) = (right(&bucket), store(), store());
    // Several parts, a part exactly, a track without a byte, and one byte.
    let pushed = put(&from, "a/film, with ünusual % name", &[35 * MIB, 16 * MIB, 0, 1], 1);
    let result = push(&titles, &from, &pushed.name).unwrap();
    let wanted = Pushed { bytes: pushed.bytes, parts: 6, written: 6, keeps_conditions: Some(true) };
    assert_eq!(result, wanted);
    assert_eq!(titles.titles().unwrap(), [pushed.name.as_str()]);
    let filled = fill(&titles, &to, &pushed.name).unwrap();
    assert_eq!((filled.content(), filled.created), (pushed.content(), pushed.created));
    let report = to.0.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
    assert_eq!(report.findings, []);
    // A store that was filled can be pushed from, and is found to be the same.
    let again = push(&titles, &to, &pushed.name).unwrap();
    assert_eq!((again.parts, again.written, again.keeps_conditions), (6, 0, None));
    assert_eq!(titles.manifest(&pushed.name).unwrap().content, filled.content().to_string());
}

#[test]
fn equal_parts_are_one_object_and_are_kept_while_a_title_has_them() {
    let bucket = TestBucket::default();
    let (titles, from) = (right(&bucket), store());
    put(&from, "one", &[20 * MIB], 7);
    put(&from, "two", &[20 * MIB], 7);
    put(&from, "three", &[MIB], 8);
    let written: Vec<u64> =
        ["one", "two", "three"].map(|title| push(&titles, &from, title).unwrap().written).into();
    assert_eq!(written, [3, 0, 2]);
    titles.remove("one").unwrap();
    let check = || titles.check(true, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    let now = check();
    assert_eq!((now.titles, now.parts, now.unused_parts), (2, 5, 0));
    assert_eq!(now.findings, []);
    titles.remove("two").unwrap();
    assert_eq!((check().titles, check().parts), (1, 2));
    let to = store();
    fill(&titles, &to, "three").unwrap();
    assert!(matches!(fill(&titles, &to, "one"), Err(BucketError::NoTitle { .. })));
}

#[test]
fn another_title_of_the_same_name_is_refused() {
    // Also where the bucket does not keep to conditions.
    for ignores_conditions in [false, true] {
        let bucket = TestBucket { ignores_conditions, ..TestBucket::default() };
        let (titles, here, there) = (right(&bucket), store(), store());
        put(&here, "film", &[MIB], 1);
        put(&there, "film", &[MIB], 2);
        let pushed = push(&titles, &here, "film").unwrap();
        assert_eq!(pushed.keeps_conditions, Some(!ignores_conditions));
        let error = push(&titles, &there, "film").unwrap_err();
        assert_eq!(error.to_string(), "the bucket has another title 'film'");
        let wanted = here.0.find("film").unwrap().content().to_string();
        assert_eq!(titles.manifest("film").unwrap().content, wanted);
    }
}

/// How an object is changed, and what is said of it.
type Change = (&'static str, fn(&mut Vec<u8>), &'static str);

#[test]
fn what_was_changed_in_the_bucket_is_found_and_not_filled() {
    let changes: [Change; 5] = [
        ("parts", |part| part[100] ^= 1, "has other content than its name says"),
        ("parts", |part| part.push(0), "longer than its manifest says"),
        ("parts", |part| part.truncate(part.len() - 1), "has other content than its name says"),
        ("titles", |manifest| manifest.truncate(manifest.len() / 2), "its manifest is not one"),
        (
            "titles",
            |manifest| {
                let json = String::from_utf8(manifest.clone()).unwrap();
                *manifest = json.replacen("\"bytes\":", "\"bytes\":1", 1).into_bytes();
            },
            "its manifest names parts",
        ),
    ];
    for (folder, change, wanted) in changes {
        let bucket = TestBucket::default();
        let (titles, from, to) = (right(&bucket), store(), store());
        put(&from, "film", &[3 * MIB], 1);
        push(&titles, &from, "film").unwrap();
        let largest = {
            let objects = bucket.objects.lock().unwrap();
            let those = objects.iter().filter(|(path, _)| path.contains(folder));
            those.max_by_key(|(_, object)| object.len()).unwrap().0.clone()
        };
        change(bucket.objects.lock().unwrap().get_mut(&largest).unwrap());
        let error = fill(&titles, &to, "film").unwrap_err();
        assert!(matches!(error, BucketError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
        assert_empty(&to);
        let check = titles.check(true, &mut |_| {}, &AtomicBool::new(false)).unwrap();
        assert_eq!(check.findings.len(), 1, "{wanted}");

        bucket.objects.lock().unwrap().remove(&largest);
        assert!(fill(&titles, &to, "film").is_err());
        assert_empty(&to);
        let check = titles.check(false, &mut |_| {}, &AtomicBool::new(false)).unwrap();
        assert_eq!(check.findings.len(), usize::from(folder == "parts"), "{wanted}");
    }
}

/// How a part is changed, and how many are written then.
type Rewrite = (&'static str, fn(&mut Vec<u8>), u64);

#[test]
fn a_push_again_writes_what_is_missing_or_of_another_size() {
    let changes: [Rewrite; 4] = [
        ("whole", |_| {}, 0),
        ("cut off", |part| part.truncate(part.len() - 1), 1),
        ("longer", |part| part.push(0), 1),
        ("other bytes", |part| part[100] ^= 1, 0),
    ];
    for (name, change, written) in changes {
        let bucket = TestBucket::default();
        let (titles, from, to) = (right(&bucket), store(), store());
        put(&from, "film", &[20 * MIB], 1);
        push(&titles, &from, "film").unwrap();
        {
            let mut objects = bucket.objects.lock().unwrap();
            let parts = objects.iter_mut().filter(|(path, _)| path.contains("parts"));
            change(parts.max_by_key(|(_, object)| object.len()).unwrap().1);
        }
        let again = push(&titles, &from, "film").unwrap();
        assert_eq!((again.written, again.keeps_conditions), (written, None), "{name}");
        assert_eq!(fill(&titles, &to, "film").is_ok(), name != "other bytes", "{name}");
    }
}

#[test]
fn a_push_that_verifies_repairs_all_titles_that_share_a_part() {
    for (name, change) in [
        ("other bytes", (|part| part[100] ^= 1) as fn(&mut Vec<u8>)),
        ("cut off", |part| part.truncate(part.len() - 1)),
        ("longer", |part| part.push(0)),
    ] {
        let bucket = TestBucket::default();
        let (titles, from) = (right(&bucket), store());
        for (title, seed) in [("film", 1), ("same", 1), ("other", 2), ("new", 1)] {
            put(&from, title, &[20 * MIB], seed);
        }
        for title in ["film", "same", "other"] {
            push(&titles, &from, title).unwrap();
        }
        let shared = titles.manifest("film").unwrap().tracks[0][0].sha256.clone();
        let path = format!("/films/house/parts/{shared}");
        let damage = || change(bucket.objects.lock().unwrap().get_mut(&path).unwrap());
        damage();
        let found = scrub(&titles);
        assert_eq!((found.titles, found.parts), (3, 6), "{name}");
        let damaged: Vec<_> =
            found.findings.iter().map(|one| (one.title.as_str(), one.place)).collect();
        assert_eq!(damaged, [("film", DamagedPlace::Part), ("same", DamagedPlace::Part)], "{name}");
        let repaired = push_verified(&titles, &from, "same");
        let wanted = (20 * MIB as u64, 3, 1, None);
        let Pushed { bytes, parts, written, keeps_conditions } = repaired;
        assert_eq!((bytes, parts, written, keeps_conditions), wanted, "{name}");
        assert_eq!(scrub(&titles).findings, [], "{name}");
        assert_eq!(push_verified(&titles, &from, "film").written, 0, "{name}");
        // Also with a title that was not in the bucket.
        damage();
        let new = push_verified(&titles, &from, "new");
        assert_eq!((new.parts, new.written, new.keeps_conditions), (3, 1, Some(true)), "{name}");
        assert_eq!(scrub(&titles).findings, [], "{name}");
    }
}

#[test]
fn a_push_that_verifies_ends_with_the_error_of_a_bucket_that_fails() {
    let bucket = TestBucket::default();
    let (titles, from) = (right(&bucket), store());
    put(&from, "film", &[MIB], 1);
    put(&from, "same", &[MIB], 1);
    push(&titles, &from, "film").unwrap();
    // After the manifest, which is not there, the index and the part are read.
    let refuses = BucketFault::Answers("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let faults = [BucketFault::None, refuses, refuses].map(|fault| ("GET", fault));
    *bucket.faults.lock().unwrap() = faults.to_vec();
    bucket.asked.lock().unwrap().clear();
    let (options, none) = (PushOptions { verify: true }, AtomicBool::new(false));
    let error = titles.push_with(&from, "same", options, &mut |_| {}, &none).unwrap_err();
    assert!(matches!(error, BucketError::S3(_)), "{error}");
    let asked = bucket.asked.lock().unwrap();
    assert!(asked.iter().filter(|what| *what == "GET").count() > 1, "{asked:?}");
    assert!(asked.iter().all(|what| what != "PUT"), "what cannot be read is not written");
}

/// The path of a manifest in the bucket.
fn manifest_path(title: &str) -> String {
    format!("/films/house/titles/{title}.json")
}

#[test]
fn titles_beside_a_damaged_manifest_are_pushed_and_removed() {
    for content in ["", "{}"] {
        let bucket = TestBucket::default();
        let (titles, from) = (right(&bucket), store());
        for (title, seed) in [("bad", 1), ("same", 1), ("alone", 2), ("late", 3)] {
            put(&from, title, &[MIB], seed);
        }
        for title in ["bad", "same", "alone"] {
            push(&titles, &from, title).unwrap();
        }
        bucket.objects.lock().unwrap().insert(manifest_path("bad"), content.into());
        assert_eq!(push(&titles, &from, "late").unwrap().written, 2);
        let error = push(&titles, &from, "bad").unwrap_err();
        let hint = error.hint().unwrap();
        assert!(
            hint.starts_with("remove the title from the bucket (`tenuto bucket rm`)"),
            "{hint}"
        );

        // The parts of the other may be of the damaged one.
        let parts: Vec<_> = titles.manifest("alone").unwrap().parts().cloned().collect();
        let removed = titles.remove("alone").unwrap();
        let wanted = Removed {
            kept_parts: 2,
            kept_bytes: parts.iter().map(|part| part.bytes).sum(),
            unreadable: vec!["bad".to_owned()],
            ..Removed::default()
        };
        assert_eq!(removed, wanted);
        assert!(matches!(titles.remove("alone"), Err(BucketError::NoTitle { .. })));
        assert_eq!(scrub(&titles).unused_parts, 2);

        // They go with it. What the others have stays, and what is no part.
        let foreign = "/films/house/parts/readme.txt";
        bucket.objects.lock().unwrap().insert(foreign.to_owned(), b"mine".to_vec());
        let removed = titles.remove("bad").unwrap();
        assert!(
            removed.damage.as_ref().unwrap().contains("its manifest is not one"),
            "{removed:?}"
        );
        let Removed { parts, kept_parts, unreadable, .. } = removed;
        assert_eq!((parts, kept_parts, unreadable.len()), (2, 0, 0));
        assert!(bucket.objects.lock().unwrap().remove(foreign).is_some());
        let found = scrub(&titles);
        assert_eq!((found.titles, found.parts, found.unused_parts), (2, 4, 0));
        assert_eq!(found.findings, []);
        let again = push(&titles, &from, "bad").unwrap();
        assert_eq!((again.written, again.keeps_conditions), (0, Some(true)), "it is there again");
    }
}

/// Keys below `titles/` that are those of no title.
const FOREIGN: [&str; 5] = [
    "titles/a//b.json",
    "titles/../up.json",
    "titles/film.json.bak",
    "titles/.json",
    "titles/a/./c.json",
];

#[test]
fn foreign_objects_hold_nobody_up_and_keep_the_parts_that_they_name() {
    let bucket = TestBucket::default();
    let (titles, from) = (right(&bucket), store());
    for (title, seed) in [("copied", 1), ("film", 2)] {
        put(&from, title, &[MIB], seed);
        push(&titles, &from, title).unwrap();
    }
    let path = |key: &str| format!("/films/house/{key}");
    let insert = |key: &str, content: Vec<u8>| {
        bucket.objects.lock().unwrap().insert(path(key), content);
    };
    // Somebody has copied the manifest of one title, and something else elsewhere.
    let manifest = bucket.objects.lock().unwrap()[&manifest_path("copied")].clone();
    for key in FOREIGN {
        insert(key, b"an object with other content, of more bytes than a hash has digits".to_vec());
    }
    insert("titles/a//b.json", manifest);
    insert("parts/readme.txt", b"mine".to_vec());
    insert("titles/folder/", Vec::new());

    let mut listing = BucketListing::new(titles.clone());
    assert_eq!(listing.refresh().unwrap().keys().collect::<Vec<_>>(), ["copied", "film"]);
    assert_eq!((listing.damaged().len(), titles.titles().unwrap().len()), (0, 2));
    let found = scrub(&titles);
    let mut foreign: Vec<String> =
        FOREIGN.into_iter().chain(["parts/readme.txt"]).map(|key| format!("house/{key}")).collect();
    foreign.sort();
    let mut shown = found.foreign.clone();
    shown.sort();
    assert_eq!(shown, foreign);
    assert_eq!((found.titles, found.unused_parts, found.findings), (2, 0, vec![]));

    let removed = titles.remove("film").unwrap();
    assert_eq!(removed, Removed { parts: 2, ..Removed::default() });
    let kept: Vec<_> = titles.manifest("copied").unwrap().parts().cloned().collect();
    let removed = titles.remove("copied").unwrap();
    let wanted = Removed {
        kept_parts: 2,
        kept_bytes: kept.iter().map(|part| part.bytes).sum(),
        foreign: vec!["house/titles/a//b.json".to_owned()],
        ..Removed::default()
    };
    assert_eq!(removed, wanted);
    // It can be put back.
    let manifest = bucket.objects.lock().unwrap().remove(&path("titles/a//b.json")).unwrap();
    insert("titles/copied.json", manifest);
    assert_eq!(scrub(&titles).findings, []);
    assert_eq!(titles.remove("copied").unwrap(), Removed { parts: 2, ..Removed::default() });
    // What is foreign is still there.
    assert_eq!(scrub(&titles).foreign.len(), FOREIGN.len());
}

#[test]
fn of_two_damaged_titles_the_last_takes_the_parts() {
    let bucket = TestBucket::default();
    let (titles, from) = (right(&bucket), store());
    for (title, seed) in [("one", 1), ("two", 2), ("sound", 3)] {
        put(&from, title, &[MIB], seed);
        push(&titles, &from, title).unwrap();
    }
    for title in ["one", "two"] {
        bucket.objects.lock().unwrap().insert(manifest_path(title), Vec::new());
    }
    let first = titles.remove("one").unwrap();
    assert_eq!((first.parts, first.kept_parts, &first.unreadable[..]), (0, 4, &["two".into()][..]));
    let last = titles.remove("two").unwrap();
    assert_eq!((last.parts, last.kept_parts, last.unreadable.len()), (4, 0, 0));
    assert_eq!((scrub(&titles).findings, scrub(&titles).unused_parts), (vec![], 0));
}

#[test]
fn a_push_goes_on_where_it_was() {
    let bucket = TestBucket::default();
    let (titles, from) = (right(&bucket), store());
    put(&from, "film", &[60 * MIB], 1);
    let cancel = AtomicBool::new(false);
    let mut seen = 0;
    let stopped = titles.push(
        &from,
        "film",
        &mut |done| {
            seen += 1;
            cancel.store(seen == 2 && done.done > 0, std::sync::atomic::Ordering::Relaxed);
        },
        &cancel,
    );
    assert!(matches!(stopped, Err(BucketError::Store(StoreError::Cancelled))));
    assert_eq!(titles.titles().unwrap(), [""; 0]);
    let check = titles.check(false, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert!(check.unused_parts > 0, "{check:?}");
    let pushed = push(&titles, &from, "film").unwrap();
    assert_eq!(pushed.parts, 5);
    assert_eq!(pushed.written, 5 - check.unused_parts);
}

#[test]
fn a_bucket_that_fails_leaves_nothing_in_the_store() {
    let bucket = TestBucket::default();
    let (from, to) = (store(), store());
    put(&from, "film", &[20 * MIB], 1);
    push(&right(&bucket), &from, "film").unwrap();
    let refusing = bucket_of(&bucket, |what| {
        (what == "GET").then_some("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    });
    let error = fill(&refusing, &to, "film").unwrap_err();
    let BucketError::S3(refused) = &error else { panic!("{error}") };
    assert_eq!(refused.kind, S3ErrorKind::Failed);
    assert!(error.hint().unwrap().contains("AWS_ACCESS_KEY_ID"));
    assert_empty(&to);
    let refusing = bucket_of(&TestBucket::default(), |what| {
        (what == "PUT").then_some("HTTP/1.1 507 Full\r\nContent-Length: 0\r\n\r\n")
    });
    let error = push(&refusing, &from, "film").unwrap_err();
    assert!(error.hint().unwrap().contains("free some space"), "{error}");
}

#[test]
fn names_that_are_no_keys_are_refused() {
    let bucket = TestBucket::default();
    let (titles, from) = (right(&bucket), store());
    for name in ["a/../b", "../parts", "a//b", "/a", "a/", "a/./b"] {
        put(&from, name, &[10], 1);
        let error = push(&titles, &from, name).unwrap_err();
        assert!(matches!(error, BucketError::BadName { .. }), "{name}: {error}");
        assert!(matches!(fill(&titles, &from, name), Err(BucketError::BadName { .. })), "{name}");
    }
    assert_eq!(bucket.asked.lock().unwrap().len(), 0, "nothing was asked");
}

#[test]
fn a_full_store_takes_nothing() {
    let bucket = TestBucket::default();
    let (titles, from, to) = (right(&bucket), store(), store());
    put(&from, "film", &[40 * MIB], 1);
    put(&to, "other", &[70 * MIB], 2);
    push(&titles, &from, "film").unwrap();
    let free = to.store().info().free_chunks;
    let error = fill(&titles, &to, "film").unwrap_err();
    assert!(matches!(error, BucketError::Store(StoreError::Full { .. })), "{error}");
    assert_eq!(to.store().info().free_chunks, free);
    assert!(matches!(
        fill(&titles, &from, "film"),
        Err(BucketError::Store(StoreError::Exists { .. }))
    ));
}

#[test]
fn a_store_with_room_for_all_but_the_index_is_full_before_a_part_is_read() {
    let bucket = TestBucket::default();
    let (titles, from, to) = (right(&bucket), store(), store());
    let film = put(&from, "film", &[40 * MIB], 1);
    push(&titles, &from, "film").unwrap();
    // In chunks of 64 KiB: all but the film and the index of the other title.
    let room = to.store().info().free_chunks;
    put(&to, "other", &[(usize::try_from(room).unwrap() - 640 - 1) * 64 * 1024], 2);
    assert_eq!((film.bytes / (64 * 1024), to.store().info().free_chunks), (640, 640));
    let asked = bucket.asked.lock().unwrap().len();
    let error = fill(&titles, &to, "film").unwrap_err();
    assert!(matches!(error, BucketError::Store(StoreError::Full { .. })), "{error}");
    assert_eq!(to.store().info().free_chunks, 640);
    assert_eq!(bucket.asked.lock().unwrap()[asked..], ["GET", "GET"], "the manifest and the index");
    to.store().remove("other").unwrap();
    fill(&titles, &to, "film").unwrap();
}

#[test]
fn a_request_that_fails_is_repeated_and_a_silent_bucket_is_not_waited_for() {
    let bucket = TestBucket::default();
    let (titles, from, to) = (right(&bucket), store(), store());
    let film = put(&from, "film", &[40 * MIB], 1);
    push(&titles, &from, "film").unwrap();
    let answers = BucketFault::Answers("HTTP/1.1 500 Internal\r\nContent-Length: 0\r\n\r\n");
    *bucket.faults.lock().unwrap() =
        [answers, BucketFault::Truncates, BucketFault::Truncates].map(|it| ("GET", it)).to_vec();
    assert_eq!(fill(&titles, &to, "film").unwrap().content(), film.content());
    assert_eq!(bucket.faults.lock().unwrap().len(), 0);
    // Silent from the manifest, the first part and the last part on.
    for answered in [0, 2, 4] {
        let (to, cancel) = (store(), AtomicBool::new(false));
        let silent = vec![BucketFault::IsSilent; 20];
        let faults = [vec![BucketFault::None; answered], silent].concat();
        *bucket.faults.lock().unwrap() = faults.into_iter().map(|it| ("GET", it)).collect();
        let has_come_to_it = || bucket.faults.lock().unwrap().len() < 20;
        let mut on_progress = |_| cancel.store(has_come_to_it(), Relaxed);
        let error = titles.fill(&to, "film", &mut on_progress, &cancel).unwrap_err();
        assert!(matches!(error, BucketError::Store(StoreError::Cancelled)), "{answered}: {error}");
        assert_empty(&to);
    }
}

#[test]
fn a_listing_reads_each_manifest_once() {
    let bucket = TestBucket::default();
    let (titles, from) = (right(&bucket), store());
    for (name, length, seed) in [("film", 5 * MIB, 1), ("song", MIB, 2)] {
        put(&from, name, &[length], seed);
        push(&titles, &from, name).unwrap();
    }
    let mut listing = BucketListing::new(titles.clone());
    let reads = || bucket.asked.lock().unwrap().iter().filter(|what| *what == "GET").count();
    let before = reads();
    let first = listing.refresh().unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["film", "song"]);
    let film = first["film"].clone();
    assert!((5 << 20..6 << 20).contains(&film.size.0), "{film:?}");
    // Five LDUs at 25 a second.
    assert_eq!(film.rate.0, 5 * (1 << 20) * 8 * 5);
    assert_eq!((listing.refresh().unwrap(), reads() - before), (first, 2));
    // Another film of this name.
    titles.remove("film").unwrap();
    titles.remove("song").unwrap();
    let other = store();
    put(&other, "film", &[2 * MIB], 3);
    push(&titles, &other, "film").unwrap();
    let second = listing.refresh().unwrap();
    assert_eq!(second.len(), 1);
    assert!(second["film"].size.0 < 3 << 20, "{second:?}");
    assert_ne!(second["film"].content, film.content);
    // A damaged manifest is another one than a removed one.
    assert_eq!(listing.damaged().len(), 0);
    let key = "/films/house/titles/film.json";
    bucket.objects.lock().unwrap().get_mut(key).unwrap().truncate(9);
    assert_eq!((listing.refresh().unwrap().len(), listing.damaged().len()), (0, 1));
}

/// A peer with a store that knows what it was asked, and may do wrong.
struct TestPeer {
    store: SoleOwner,
    wrong: PeerFaults,
    asked: Mutex<Vec<WantedPart>>,
}

/// The fault of each request, by its number from 1.
type PeerFaults = fn(usize) -> PeerFault;

#[derive(PartialEq)]
enum PeerFault {
    None,
    Refuses,
    Lies,
}

impl PartPeers for TestPeer {
    fn part(&self, wanted: &WantedPart, is_right: &dyn Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let record = self.store.0.find(&wanted.title).unwrap();
        assert_eq!(record.content().to_string(), wanted.content);
        let mut asked = self.asked.lock().unwrap();
        asked.push(wanted.clone());
        let fault = (self.wrong)(asked.len());
        drop(asked);
        if fault == PeerFault::Refuses {
            return None;
        }
        let reader = self.store.0.reader(record.id, &Unthrottled).unwrap();
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < wanted.range.end - wanted.range.start {
            let at = wanted.range.start + bytes.len() as u64;
            let left = usize::try_from(wanted.range.end - at).unwrap();
            bytes.extend_from_slice(&reader.piece(wanted.track, at, left).unwrap());
        }
        bytes[0] ^= u8::from(fault == PeerFault::Lies);
        is_right(&bytes).then_some(bytes)
    }
}

#[test]
fn parts_of_peers_are_those_of_the_bucket_or_the_bucket_has_them() {
    let bucket = TestBucket::default();
    let (titles, from) = (right(&bucket), store());
    let pushed = put(&from, "film", &[35 * MIB, 16 * MIB, 0, 1], 1);
    push(&titles, &from, "film").unwrap();
    let peer = |wrong| {
        let peer = Arc::new(TestPeer { store: store(), wrong, asked: Mutex::default() });
        fill(&titles, &peer.store, "film").unwrap();
        peer
    };
    let fill_from = |peer: Arc<TestPeer>, to: &SoleOwner| {
        let options = FillOptions { peers: Some(peer), ..FillOptions::default() };
        titles.fill_with(to, "film", options, &mut |_| {}, &AtomicBool::new(false)).unwrap()
    };
    // The manifest and the index are read of the bucket. Of five parts, some come from the peer.
    let rows: [(PeerFaults, usize); 4] = [
        (|_| PeerFault::None, 2),
        (|_| PeerFault::Refuses, 7),
        (|_| PeerFault::Lies, 7),
        (|asked| if asked == 2 { PeerFault::Lies } else { PeerFault::None }, 3),
    ];
    for (number, (wrong, wanted)) in rows.into_iter().enumerate() {
        let (peer, to) = (peer(wrong), store());
        bucket.asked.lock().unwrap().clear();
        let filled = fill_from(Arc::clone(&peer), &to);
        assert_eq!(filled.title.content(), pushed.content());
        let reads = bucket.asked.lock().unwrap().iter().filter(|what| *what == "GET").count();
        assert_eq!(reads, wanted, "row {number}");
        assert_eq!(filled.peer_bytes == pushed.bytes, wanted == 2, "row {number}");
        assert_eq!(filled.peer_bytes == 0, wanted == 7, "row {number}");
        let mut asked = peer.asked.lock().unwrap().clone();
        asked.sort_by_key(|wanted| (wanted.track, wanted.range.start));
        let places: Vec<_> = asked.into_iter().map(|it| (it.track, it.range)).collect();
        let mib = |from: u64, to: u64| from << 20..to << 20;
        let all = [(0, mib(0, 16)), (0, mib(16, 32)), (0, mib(32, 35)), (1, mib(0, 16)), (3, 0..1)];
        assert_eq!(places, all);
        let report = to.0.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
        assert_eq!(report.findings, []);
    }
}

#[test]
fn a_replaced_title_is_filled_in_the_place_of_the_old_one_or_the_old_one_stays() {
    let bucket = TestBucket::default();
    let (titles, to) = (right(&bucket), store());
    let replace = |to: &SoleOwner| {
        let options = FillOptions { replaces: true, ..FillOptions::default() };
        titles.fill_with(to, "film", options, &mut |_| {}, &AtomicBool::new(false))
    };
    let push_film = |bytes, seed| {
        let from = store();
        let film = put(&from, "film", &[bytes], seed);
        let _ = titles.remove("film");
        push(&titles, &from, "film").unwrap();
        film
    };
    push_film(20 * MIB, 1);
    let old = fill(&titles, &to, "film").unwrap();
    // The store has 100 MiB: there is no room beside the old one.
    push_film(90 * MIB, 2);
    let error = replace(&to).unwrap_err();
    assert_eq!(error.code(), "full", "{error}");
    // A part is damaged.
    let new = push_film(30 * MIB, 3);
    let damage = || {
        let mut objects = bucket.objects.lock().unwrap();
        let parts = objects.iter_mut().filter(|(path, _)| path.contains("/parts/"));
        parts.max_by_key(|(_, part)| part.len()).unwrap().1[100] ^= 1;
    };
    damage();
    assert_eq!(replace(&to).unwrap_err().code(), "damaged");
    assert_eq!(to.0.titles(), std::slice::from_ref(&old));
    damage();
    let filled = replace(&to).unwrap();
    assert_eq!(filled.replaced.as_ref(), Some(&old));
    assert_eq!(filled.title.content(), new.content());
    to.0.release(old.id);
    assert_eq!(to.0.titles(), [filled.title]);
    to.0.remove("film").unwrap();
    assert_empty(&to);
}
