//! Damaged bits: whatever bit changes in the needed parts of a store, it is found, and no damaged
//! data is returned; whatever bytes a device holds, nothing panics.

mod common;

use common::titles::{Model, assert_holds, formatted, holdings, noise, put};
use common::{PowerCutDevice, cut_at_every_event};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::{CheckOptions, Rebuild, RebuildReport, Store, TitleRecord};
use units::ByteCount;

const CHUNK: usize = 64 << 10;

/// The chunks of the metadata on a store of 3 MiB: superblock copy, journal, two checkpoints.
const MIDDLE: std::ops::Range<usize> = 24 * CHUNK..31 * CHUNK;

/// A store with a history: titles written, removed and renamed, and more than one checkpoint.
fn image() -> (Vec<u8>, Model, Vec<TitleRecord>) {
    let mut random = fastrand::Rng::with_seed(1);
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    let mut model = Model::new();
    for i in 0..8 {
        let tracks = vec![noise(&mut random, 50_000), noise(&mut random, 1000)];
        put(&store, &format!("title {i}"), &tracks).unwrap();
        model.insert(format!("title {i}"), tracks);
    }
    for i in 0..4 {
        store.remove(&format!("title {i}")).unwrap();
        model.remove(&format!("title {i}"));
    }
    for i in 0..30 {
        let (old, new) = if i % 2 == 0 { ("title 5", "renamed") } else { ("renamed", "title 5") };
        store.rename(old, new).unwrap();
    }
    (device.image(), model, store.titles())
}

fn read_back(image: Vec<u8>) -> Result<(Model, Vec<String>), String> {
    let store = Store::open_on(PowerCutDevice::from_image(image)).map_err(|e| e.to_string())?;
    let report = store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
    let told = report.findings.iter().chain(&report.healed);
    let told = told.map(|finding| format!("{:?}", finding.kind)).collect();
    holdings(&store).map(|model| (model, told)).map_err(|e| e.to_string())
}

#[test]
fn one_bit_anywhere_in_the_metadata_is_found_and_nothing_is_lost() {
    let (image, model, _) = image();
    let mut random = fastrand::Rng::with_seed(2);
    let mut kinds = BTreeSet::new();
    // Every block of 4 KiB that is not all zeros: superblocks, checkpoints, journal.
    let metadata = (0..2 * CHUNK).chain(MIDDLE).chain(47 * CHUNK..48 * CHUNK);
    let mut needed = 0;
    for block in metadata.step_by(4096) {
        if image[block..block + 4096].iter().all(|byte| *byte == 0) {
            continue;
        }
        let mut rotten = image.clone();
        rotten[block + random.usize(..200)] ^= 1 << random.u32(..8);
        let (held, told) = read_back(rotten).unwrap_or_else(|e| panic!("block {block}: {e}"));
        assert!(held == model, "block {block}: something else came back");
        needed += usize::from(!told.is_empty());
        kinds.extend(told);
    }
    // Blocks that are no longer needed (the journal before both checkpoints) may be damaged unseen.
    assert!(needed > 20, "only {needed} blocks are looked at");
    let kinds: Vec<String> = kinds.into_iter().collect();
    assert_eq!(kinds, ["Checkpoint", "Journal", "Superblock"]);
}

#[test]
fn one_bit_in_an_index_or_in_data_is_found_by_title() {
    let (image, _, titles) = image();
    let mut random = fastrand::Rng::with_seed(3);
    for title in &titles {
        for track in 0..2 {
            let at = usize::try_from(title.tracks[track].extents[0].start.0).unwrap() * CHUNK;
            let mut rotten = image.clone();
            rotten[at + random.usize(..1000)] ^= 1 << random.u32(..8);
            let device = PowerCutDevice::from_image(rotten);
            let store = Store::open_on(device).unwrap();
            let quick = store.check(&CheckOptions { scrub: false }, &mut |_| {}).unwrap();
            assert!(quick.is_clean(), "only a scrub reads data");
            let report = store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
            let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
            let named = format!("damaged data in title '{}', track {track}: ", title.name);
            assert!(finding.text.starts_with(&named), "{}", finding.text);
            assert_eq!(finding.title.as_ref(), Some(&title.name));
            let error = holdings(&store).unwrap_err();
            assert_eq!(error.code(), "data-damaged", "{error}");
        }
        let at = usize::try_from(title.index[0].start.0).unwrap() * CHUNK + (16 << 10);
        let mut rotten = image.clone();
        rotten[at + random.usize(..50)] ^= 1 << random.u32(..8);
        let store = Store::open_on(PowerCutDevice::from_image(rotten)).unwrap();
        let report = store.check(&CheckOptions { scrub: false }, &mut |_| {}).unwrap();
        let text = format!("the index of title '{}' does not", title.name);
        assert!(report.findings[0].text.starts_with(&text), "{:?}", report.findings);
    }
}

#[test]
fn one_bit_in_a_label_is_found_and_the_title_still_plays() {
    let (image, model, titles) = image();
    let mut random = fastrand::Rng::with_seed(4);
    for title in &titles {
        let at = usize::try_from(title.index[0].start.0).unwrap() * CHUNK;
        let mut rotten = image.clone();
        rotten[at + random.usize(..16 << 10)] ^= 1 << random.u32(..8);
        let store = Store::open_on(PowerCutDevice::from_image(rotten)).unwrap();
        let report = store.check(&CheckOptions::default(), &mut |_| {}).unwrap();
        let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
        assert!(finding.text.contains("label"), "{}", finding.text);
        // The finding has the title's current name.
        assert_eq!(finding.title.as_ref(), Some(&title.name));
        assert!(holdings(&store).unwrap() == model);
    }
}

#[test]
fn a_damaged_span_is_named_with_its_time() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    // 1,000 bytes in each 1/25 s.
    let title = put(&store, "film", &[vec![3; 300_000]]).unwrap();
    let at = usize::try_from(title.tracks[0].extents[0].start.0).unwrap() * CHUNK;
    device.tamper(|bytes| bytes[at + 200_000] ^= 1);
    let error = holdings(&store).unwrap_err();
    assert_eq!(
        error.to_string(),
        "damaged data in title 'film', track 0: 65536 bytes at 196608 (7.84s into it)"
    );
    let out = std::env::temp_dir().join(format!("tenuto-damaged-{}", std::process::id()));
    let cancel = std::sync::atomic::AtomicBool::new(false);
    let result = store::export(&store, "film", &out, &store::Unthrottled, &mut |_| {}, &cancel);
    assert_eq!(result.unwrap_err().code(), "data-damaged");
    assert!(!out.exists());
}

#[test]
fn a_lost_entry_in_the_middle_of_the_journal_is_reported_as_damage() {
    let device = PowerCutDevice::new(ByteCount::mib(3));
    let store = formatted(&device);
    for i in 0..3 {
        put(&store, &format!("{i}"), &[vec![i; 10]]).unwrap();
    }
    drop(store);
    // Entry 2 is the second in the ring, which starts behind the middle superblock.
    let ring = (3 << 19) + CHUNK;
    device.tamper(|bytes| bytes[ring + 8192..ring + 16384].fill(0));
    let error = Store::open_on(device).unwrap_err();
    assert!(error.to_string().contains("journal entry 2 cannot be read"), "{error}");
}

#[test]
fn a_store_open_for_reading_only_reports_damage_and_repairs_nothing() {
    let (mut image, model, _) = image();
    image[..4096].fill(0xee);
    let path = std::env::temp_dir().join(format!("tenuto-read-only-{}", std::process::id()));
    std::fs::write(&path, &image).unwrap();
    let store = Store::open_read_only(&path).unwrap();
    assert_eq!(holdings(&store).unwrap(), model);
    let report = store.check(&CheckOptions::default(), &mut |_| {}).unwrap();
    assert_eq!((report.healed.len(), report.findings.len()), (0, 1), "{report:?}");
    drop(store);
    assert!(std::fs::read(&path).unwrap() == image, "nothing is written");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn two_lost_superblocks_are_repaired_and_three_are_damage() {
    let (image, model, _) = image();
    let places = [0, CHUNK, 3 << 19, (3 << 20) - CHUNK];
    for lost in 0..16u32 {
        let mut rotten = image.clone();
        for (i, place) in places.iter().enumerate() {
            if lost & 1 << i != 0 {
                rotten[*place..place + 4096].fill(0xee);
            }
        }
        let device = PowerCutDevice::from_image(rotten);
        match Store::open_on(device.clone()) {
            Ok(store) => {
                assert!(lost.count_ones() <= 2, "{lost:04b}");
                assert_holds(&store, &model, "healed");
                drop(store);
                let again = Store::open_on(device).unwrap();
                let report = again.check(&CheckOptions::default(), &mut |_| {}).unwrap();
                assert_eq!(report.healed, [], "repaired permanently");
            }
            Err(error) => {
                let expected = if lost == 15 { "not-a-store" } else { "damaged" };
                assert_eq!(error.code(), expected, "{lost:04b}: {error}");
                assert!(lost.count_ones() > 2);
            }
        }
    }
}

#[test]
fn hostile_images_are_refused_without_panic() {
    let (image, ..) = image();
    let mut opened = 0;
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut hostile = image.clone();
        match seed % 4 {
            // Fields are changed and every checksum is made valid again.
            0 | 1 => {
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(16..280);
                    let any = random.u8(..);
                    let value = random.choice([0, 1, 0x7f, 0xff, any]).unwrap();
                    for place in [0, CHUNK, 3 << 19, (3 << 20) - CHUNK] {
                        hostile[place + at] = value;
                    }
                }
                for place in [0, CHUNK, 3 << 19, (3 << 20) - CHUNK] {
                    let block = &mut hostile[place..place + 4096];
                    block[12..16].fill(0);
                    let sum = media::checksum(block);
                    block[12..16].copy_from_slice(&sum.to_le_bytes());
                }
            }
            2 => {
                for _ in 0..50 {
                    let at = random.usize(MIDDLE);
                    hostile[at] = random.u8(..);
                }
            }
            _ => {
                let at = random.usize(MIDDLE);
                let length = random.usize(..CHUNK);
                let noise = noise(&mut random, length);
                hostile[at..at + length].copy_from_slice(&noise);
            }
        }
        rebuild(PowerCutDevice::from_image(hostile.clone()));
        if let Ok(store) = Store::open_on(PowerCutDevice::from_image(hostile)) {
            let _ = store.check(&CheckOptions { scrub: true }, &mut |_| {});
            let _ = holdings(&store);
            let _ = put(&store, "one more", &[vec![1; 70_000]]);
            opened += 1;
        }
    }
    assert!((20..380).contains(&opened), "{opened} of 400 opened");
}

/// Rebuilds whatever there is.
fn rebuild(device: Arc<PowerCutDevice>) {
    if let Ok(found) = Rebuild::scan_on(device, &mut |_| {}, &AtomicBool::new(false)) {
        let _ = found.write();
    }
}

#[test]
fn hostile_labels_are_given_up_without_panic() {
    let (image, model, titles) = image();
    let (mut given_up, mut held) = (0, 0);
    for seed in 0..2_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut hostile = image.clone();
        // With the catalogue, whose titles are not looked for, and without it.
        if seed % 4 > 0 {
            hostile[25 * CHUNK..31 * CHUNK].fill(0);
        }
        for title in &titles {
            let at = usize::try_from(title.index[0].start.0).unwrap() * CHUNK;
            let label = &mut hostile[at..at + (16 << 10)];
            for _ in 0..random.usize(0..3) {
                let any = random.u8(..);
                let value = random.choice([0, 1, 0x7f, 0xff, any]).unwrap();
                label[random.usize(32..300)] = value;
            }
            label[8..12].fill(0);
            let sum = media::checksum(label);
            label[8..12].copy_from_slice(&sum.to_le_bytes());
        }
        let device = PowerCutDevice::from_image(hostile);
        let Ok(found) = Rebuild::scan_on(device.clone(), &mut |_| {}, &AtomicBool::new(false))
        else {
            continue;
        };
        given_up += found.report().given_up.len();
        // What is written opens, and what it holds is what was there, or named as damaged.
        let kept = found.report().kept;
        if found.write().is_ok() {
            let store = Store::open_on(device).unwrap();
            match holdings(&store) {
                Ok(all) => {
                    let bytes: BTreeSet<_> = model.values().collect();
                    assert!(all.values().all(|title| bytes.contains(title)), "seed {seed}");
                    assert!(kept.is_none() || all == model, "seed {seed}");
                    held += all.len();
                }
                Err(error) => assert_eq!(error.code(), "data-damaged", "seed {seed}: {error}"),
            }
        }
    }
    assert!(given_up > 500 && held > 500, "{given_up} given up, {held} held");
}

fn scan(device: &Arc<PowerCutDevice>) -> Rebuild {
    Rebuild::scan_on(device.clone(), &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_rebuild_of_a_whole_store_changes_nothing() {
    let (image, model, _) = image();
    let device = PowerCutDevice::from_image(image);
    let before = device.image();
    let report = scan(&device).write().unwrap();
    let kept = Some(model.len() as u64);
    assert_eq!(report, RebuildReport { kept, ..RebuildReport::default() });
    assert!(device.image() == before, "nothing to write");
    assert_holds(&Store::open_on(device).unwrap(), &model, "as before");
}

#[test]
fn a_rebuild_names_what_it_gives_up() {
    let (image, mut model, titles) = image();
    let device = PowerCutDevice::from_image(image);
    // One title's index is damaged before the catalogue is lost.
    let at = usize::try_from(titles[0].index[0].start.0).unwrap() * CHUNK + (16 << 10);
    device.tamper(|bytes| {
        bytes[at] ^= 1;
        bytes[25 * CHUNK..31 * CHUNK].fill(0);
    });
    let report = scan(&device).write().unwrap();
    let [given_up] = report.given_up.as_slice() else { panic!("{:?}", report.given_up) };
    assert_eq!(given_up.name, titles[0].name);
    assert!(given_up.reason.contains("does not match its checksum"), "{}", given_up.reason);
    model.remove(&titles[0].name);
    assert_holds(&Store::open_on(device).unwrap(), &model, "rebuilt");
}

/// The last entries of the journal are lost in both copies, as if they had never been written.
fn lose_entries_after(device: &Arc<PowerCutDevice>, before: &[u8]) {
    device.tamper(|bytes| {
        for metadata in [0..2 * CHUNK, MIDDLE, 47 * CHUNK..48 * CHUNK] {
            bytes[metadata.clone()].copy_from_slice(&before[metadata]);
        }
    });
}

#[test]
fn titles_of_lost_last_entries_are_found_by_their_labels() {
    let (image, mut model, _) = image();
    let device = PowerCutDevice::from_image(image.clone());
    let store = Store::open_on(device.clone()).unwrap();
    let opened = device.image();
    let lost: &[(&str, &[u8])] = &[("lost", &[1; 90_000]), ("again", &[2; 50_000])];
    for (name, bytes) in lost {
        put(&store, name, &[bytes.to_vec()]).unwrap();
    }
    drop(store);
    lose_entries_after(&device, &opened);
    let store = Store::open_on(device.clone()).unwrap();
    assert_holds(&store, &model, "the loss is silent");
    // Their ids are given again, and one of their names; where their chunks are, they are in the
    // way of neither.
    store.rename(model.keys().next().unwrap(), "again").unwrap();
    let renamed = model.pop_first().unwrap().1;
    model.insert("again".to_owned(), renamed);
    drop(store);
    let found = scan(&device);
    assert_eq!(found.report().damage, None);
    let names: Vec<&str> = found.report().titles.iter().map(|it| it.name.as_str()).collect();
    let [other, "lost"] = names.as_slice() else { panic!("{names:?}") };
    assert!(other.starts_with("again (number "), "{other}");
    model.insert((*other).to_owned(), vec![lost[1].1.to_vec()]);
    model.insert("lost".to_owned(), vec![lost[0].1.to_vec()]);
    let report = found.write().unwrap();
    assert_eq!(report.given_up, []);
    let store = Store::open_on(device.clone()).unwrap();
    assert_holds(&store, &model, "found");
    drop(store);
    assert_eq!(scan(&device).report().titles, [], "none is missing any more");
}

#[test]
fn a_found_title_whose_id_is_used_again_gets_another() {
    let (image, mut model, _) = image();
    let device = PowerCutDevice::from_image(image);
    let store = Store::open_on(device.clone()).unwrap();
    let opened = device.image();
    // Two titles take the place and the id of the first, and the id of the second.
    put(&store, "overwritten", &[vec![0; 3 * CHUNK]]).unwrap();
    let lost = vec![vec![1; 90_000]];
    let id = put(&store, "lost", &lost).unwrap().id;
    drop(store);
    lose_entries_after(&device, &opened);
    let store = Store::open_on(device.clone()).unwrap();
    for name in ["new", "newer"] {
        put(&store, name, &[vec![3; CHUNK]]).unwrap();
        model.insert(name.to_owned(), vec![vec![3; CHUNK]]);
    }
    assert_eq!(store.title("newer").unwrap().id, id);
    drop(store);
    let report = scan(&device).write().unwrap();
    let [title] = report.titles.as_slice() else { panic!("{report:?}") };
    assert_eq!((title.name.as_str(), title.id > id), ("lost", true));
    model.insert("lost".to_owned(), lost);
    let store = Store::open_on(device.clone()).unwrap();
    assert_holds(&store, &model, "found");
    let check = store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
    assert!(check.is_clean(), "{:?}", check.findings);
}

/// The superblock copies of a store of 3 MiB.
const SUPERBLOCKS: [usize; 4] = [0, CHUNK, 24 * CHUNK, 47 * CHUNK];

#[test]
fn one_superblock_copy_is_enough_for_a_rebuild() {
    let (image, model, _) = image();
    for left in SUPERBLOCKS {
        let device = PowerCutDevice::from_image(image.clone());
        device.tamper(|bytes| {
            for copy in SUPERBLOCKS.into_iter().filter(|copy| *copy != left) {
                bytes[copy..copy + 4096].fill(0xee);
            }
        });
        let error = Store::open_on(device.clone()).unwrap_err();
        assert_eq!(error.code(), "damaged", "{error}");
        let report = scan(&device).write().unwrap();
        let damage = report.damage.as_ref().expect("it did not open");
        assert!(damage.contains("1 of the 4 superblock copies"), "{damage}");
        // The catalogue is whole: names that titles were given later are kept, too.
        assert_eq!(report.kept, Some(model.len() as u64));
        assert_holds(&Store::open_on(device).unwrap(), &model, "all four are there again");
    }
}

#[test]
fn one_superblock_copy_and_the_labels_are_enough_for_a_rebuild() {
    let (image, model, _) = image();
    let device = PowerCutDevice::from_image(image);
    device.tamper(|bytes| {
        bytes[..4096].fill(0);
        bytes[CHUNK..CHUNK + 4096].fill(0);
        // And the copy in the middle, the journal and the checkpoints.
        bytes[MIDDLE].fill(0);
    });
    let report = scan(&device).write().unwrap();
    assert_eq!((report.kept, report.titles.len()), (None, model.len()));
    assert_holds(&Store::open_on(device).unwrap(), &model, "rebuilt");
}

#[test]
fn a_rebuild_survives_power_cuts() {
    let (image, mut model, _) = image();
    let device = PowerCutDevice::from_image(image);
    let store = Store::open_on(device.clone()).unwrap();
    let opened = device.image();
    put(&store, "lost", &[vec![1; 90_000]]).unwrap();
    drop(store);
    lose_entries_after(&device, &opened);
    let missing = device.image();
    let without = model.clone();
    model.insert("lost".to_owned(), vec![vec![1; 90_000]]);
    // With the catalogue; with one superblock copy, the last one of all that are rewritten; with
    // that copy and the labels.
    let damages: [(bool, &[std::ops::Range<usize>]); 3] = [
        (true, &[]),
        (false, &[0..4096, CHUNK..CHUNK + 4096, 24 * CHUNK..24 * CHUNK + 4096]),
        (false, &[CHUNK..CHUNK + 4096, MIDDLE, 47 * CHUNK..48 * CHUNK]),
    ];
    for (opens, damaged) in damages {
        let mut image = missing.clone();
        damaged.iter().for_each(|range| image[range.clone()].fill(0xee));
        let device = PowerCutDevice::from_image(image.clone());
        scan(&device).write().unwrap();
        let events = device.take_events();
        cut_at_every_event(&image, &events, 8, |left, _, context| {
            let device = PowerCutDevice::from_image(left);
            if opens {
                let store = Store::open_on(device.clone()).unwrap();
                let expected = if store.title("lost").is_some() { &model } else { &without };
                assert_holds(&store, expected, context);
            }
            scan(&device).write().unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_holds(&Store::open_on(device).unwrap(), &model, context);
        });
    }
}

#[test]
fn a_stale_superblock_copy_loses_nothing() {
    let (image, mut model, _) = image();
    let device = PowerCutDevice::from_image(image);
    let store = Store::open_on(device.clone()).unwrap();
    let stale = device.image()[..4096].to_vec();
    // How many updates the copy is old; a checkpoint is written for each.
    for i in 0..150 {
        let (old, new) = if i % 2 == 0 { ("title 6", "changed") } else { ("changed", "title 6") };
        store.rename(old, new).unwrap();
    }
    put(&store, "newest", &[vec![7; 70_000]]).unwrap();
    model.insert("newest".to_owned(), vec![vec![7; 70_000]]);
    drop(store);
    device.tamper(|bytes| {
        SUPERBLOCKS.iter().for_each(|copy| bytes[*copy..*copy + 4096].fill(0));
        bytes[..4096].copy_from_slice(&stale);
    });
    scan(&device).write().unwrap();
    assert_holds(&Store::open_on(device).unwrap(), &model, "whatever it leads to");
}

#[test]
fn a_lost_catalogue_is_rebuilt_from_the_titles() {
    let (image, model, _) = image();
    let device = PowerCutDevice::from_image(image);
    // The journal and both checkpoints are lost.
    device.tamper(|bytes| bytes[25 * CHUNK..31 * CHUNK].fill(0xee));
    let error = Store::open_on(device.clone()).unwrap_err();
    assert_eq!(error.code(), "damaged", "{error}");
    let before = device.image();
    let rebuild = scan(&device);
    let damage = rebuild.report().damage.clone().expect("the catalogue is lost");
    assert!(damage.contains("neither checkpoint can be read"), "{damage}");
    assert!(device.image() == before, "a scan writes nothing");
    let report = rebuild.write().unwrap();
    assert_eq!(report.given_up, []);
    let store = Store::open_on(device).unwrap();
    assert_holds(&store, &model, "rebuilt");
    put(&store, "new", &[vec![1; 100_000]]).unwrap();
    assert!(store.title("new").unwrap().id > report.titles.last().unwrap().id);
}

#[test]
fn a_rebuild_restores_whole_titles_and_nothing_else() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let device = PowerCutDevice::new(ByteCount::mib(3));
        let store = formatted(&device);
        let mut model = Model::new();
        for _ in 0..80 {
            common::titles::step(&store, &mut model, &mut random);
        }
        let expected: BTreeSet<Vec<Vec<u8>>> = model.into_values().collect();
        drop(store);
        device.tamper(|bytes| bytes[25 * CHUNK..31 * CHUNK].fill(0));
        scan(&device).write().unwrap();
        let store = Store::open_on(device).unwrap();
        let held = holdings(&store).unwrap();
        assert_holds(&store, &held, &format!("seed {seed}"));
        // Titles have their first names after a rebuild.
        assert_eq!(held.into_values().collect::<BTreeSet<_>>(), expected, "seed {seed}");
    }
}
