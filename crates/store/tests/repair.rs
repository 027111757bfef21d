//! Stores that repair each other: damage at any place, and titles that are missing.

mod common;

use common::PowerCutDevice;
use common::titles::{assert_holds, formatted, holdings, noise, put};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::{FindingKind, RepairReport, Store, StoreAccess, Unthrottled, repair};
use units::ByteCount;

fn repaired(target: &Store, source: &Store) -> RepairReport {
    let (target, source) = ((target, &Unthrottled as _), (source, &Unthrottled as _));
    let sources: [&dyn StoreAccess; 1] = [&source];
    repair(&target, &sources, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

/// Two stores with the same titles, at different places.
fn copies() -> (Arc<PowerCutDevice>, Store, Store) {
    let device = PowerCutDevice::new(ByteCount::mib(4));
    let (store, other) = (formatted(&device), formatted(&PowerCutDevice::new(ByteCount::mib(6))));
    let mut random = fastrand::Rng::with_seed(7);
    put(&other, "before", &[vec![1; 300_000]]).unwrap();
    for (name, sizes) in [("one", &[200_000, 70_000][..]), ("two", &[5]), ("three", &[65_536])] {
        let tracks: Vec<_> = sizes.iter().map(|size| noise(&mut random, *size)).collect();
        put(&store, name, &tracks).unwrap();
        put(&other, name, &tracks).unwrap();
    }
    other.remove("before").unwrap();
    (device, store, other)
}

#[test]
fn every_damaged_block_of_a_title_is_repaired_from_its_copy() {
    let (device, store, other) = copies();
    let model = holdings(&other).unwrap();
    let chunk = store.info().chunk.0;
    let mut tried = 0;
    for title in store.titles() {
        for (what, extents) in title
            .tracks
            .iter()
            .map(|track| (FindingKind::Data, &track.extents))
            .chain([(FindingKind::Index, &title.index)])
        {
            let bytes: u64 = extents.iter().map(|extent| extent.chunks * chunk).sum();
            for at in (0..bytes).step_by(4096) {
                let place = usize::try_from(extents[0].start.0 * chunk + at).unwrap();
                device.tamper(|image| image[place] ^= 0x40);
                let report = repaired(&store, &other);
                let context = format!("{what:?} of '{}' at {at}", title.name);
                assert_eq!((&report.left[..], &report.copied[..]), (&[][..], &[][..]), "{context}");
                // Padding and the zeros behind a label have no checksum to violate.
                if let Some(found) = report.repaired.first() {
                    assert_eq!((found.kind, found.title.as_deref()), (what, Some(&*title.name)));
                    tried += 1;
                }
                assert_eq!(repaired(&store, &other).repaired, [], "{context}");
                assert_holds(&store, &model, &context);
            }
        }
    }
    assert!(tried > 80, "only {tried} blocks had something that matters");
}

#[test]
fn an_empty_store_gets_all_titles_as_they_are() {
    let (_, store, other) = copies();
    store.remove("two").unwrap();
    put(&store, "three again", &[vec![3; 10]]).unwrap();
    let report = repaired(&store, &other);
    assert_eq!(report.copied.iter().map(|title| &*title.name).collect::<Vec<_>>(), ["two"]);
    let original = other.title("two").unwrap();
    let copy = store.title("two").unwrap();
    assert_eq!((copy.content(), copy.created), (original.content(), original.created));

    let new = formatted(&PowerCutDevice::new(ByteCount::mib(4)));
    let report = repaired(&new, &store);
    assert_eq!((report.copied.len(), &report.left[..]), (4, &[][..]));
    assert_holds(&new, &holdings(&store).unwrap(), "a new store");
    // One that is too small gets what there is room for, and says what is missing.
    let small = formatted(&PowerCutDevice::new(ByteCount(1_703_936)));
    put(&small, "filler", &[vec![0; 500_000]]).unwrap();
    let report = repaired(&small, &store);
    let missing = &report.not_copied;
    assert_eq!(report.copied.len() + missing.len(), 4, "{report:?}");
    assert!(missing.iter().all(|it| it.text.contains("the store is full")), "{report:?}");
    assert!(!missing.is_empty() && !report.copied.is_empty(), "{report:?}");
    assert_eq!(report.left, [], "no damage");
}

#[test]
fn damage_that_both_have_or_that_has_no_copy_is_told() {
    let (device, store, other) = copies();
    let title = store.title("one").unwrap();
    let chunk = store.info().chunk.0;
    let place = usize::try_from(title.tracks[0].extents[0].start.0 * chunk).unwrap();
    device.tamper(|image| image[place..place + 8].fill(0));
    // Another title of this name is no copy.
    other.remove("one").unwrap();
    put(&other, "one", &[vec![1; 200_000], vec![2; 70_000]]).unwrap();
    let report = repaired(&store, &other);
    assert_eq!((&report.repaired[..], report.left.len()), (&[][..], 1), "{report:?}");
    assert!(report.left[0].text.contains("damaged data in title 'one'"), "{report:?}");

    // A store that never had the title has no damage by that.
    let new = formatted(&PowerCutDevice::new(ByteCount::mib(4)));
    let report = repaired(&new, &store);
    assert_eq!((&report.left[..], report.copied.len()), (&[][..], 2), "{report:?}");
    let missing = &report.not_copied[..];
    assert!(matches!(missing, [it] if it.title == "one" && it.text.contains("damaged data")));
}
