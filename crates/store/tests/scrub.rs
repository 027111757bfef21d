//! Reading all titles in steps: from any position everything behind it is read, damage is found
//! where it is, and titles that come and go meanwhile are no damage.

mod common;

use common::PowerCutDevice;
use common::titles::{formatted, noise, put};
use std::sync::Arc;
use store::{
    ScrubPosition, ScrubResult, ScrubState, ScrubStep, Store, StoreError, TitleId, TitleRecord,
    Unthrottled,
};
use units::ByteCount;

const CHUNK: u64 = 64 << 10;

/// A store with titles of these lengths, of one track each.
fn store_of(lengths: &[usize]) -> (Arc<PowerCutDevice>, Store, Vec<TitleRecord>) {
    let mut random = fastrand::Rng::with_seed(1);
    let device = PowerCutDevice::new(ByteCount::mib(16));
    let store = formatted(&device);
    let titles = lengths.iter().enumerate().map(|(i, length)| {
        put(&store, &format!("title {i}"), &[noise(&mut random, *length)]).unwrap()
    });
    let titles = titles.collect();
    (device, store, titles)
}

fn steps(store: &Store, from: ScrubPosition) -> Vec<ScrubStep> {
    let mut steps = Vec::new();
    let mut on_step = |step| {
        steps.push(step);
        Ok(())
    };
    store.scrub(from, &Unthrottled, &mut on_step).unwrap();
    steps
}

/// Flips a bit of a title's data.
fn rot(device: &PowerCutDevice, title: &TitleRecord, offset: u64) {
    let place = title.tracks[0].extents[0].start.0 * CHUNK + offset;
    device.tamper(|bytes| bytes[usize::try_from(place).unwrap()] ^= 1);
}

#[test]
fn a_scrub_goes_on_where_it_was_ended() {
    let (device, store, titles) = store_of(&[1_300_000, 10, 0, 2_100_000, 70_000]);
    rot(&device, &titles[0], 1_200_000);
    rot(&device, &titles[3], 100);
    rot(&device, &titles[3], 2_000_000);
    let whole = steps(&store, ScrubPosition::START);
    let bytes = |steps: &[ScrubStep]| steps.iter().map(|step| step.bytes).sum::<u64>();
    let all: u64 = titles.iter().map(|title| title.bytes + title.index_bytes).sum();
    assert_eq!((bytes(&whole), store.bytes_to_scrub(ScrubPosition::START)), (all, all));
    let found: Vec<String> = whole
        .iter()
        .flat_map(|step| &step.findings)
        .map(|it| format!("{}: {}", it.title.as_deref().unwrap_or(""), it.text))
        .collect();
    expect_test::expect![[r#"
        title 0: damaged data in title 'title 0', track 0: 65536 bytes at 1179648 (47.16s into it)
        title 3: damaged data in title 'title 3', track 0: 65536 bytes at 0 (0us into it)
        title 3: damaged data in title 'title 3', track 0: 65536 bytes at 1966080 (78.64s into it)"#]].assert_eq(&found.join("\n"));
    // Ended behind any step, a scrub finds the rest, and only that.
    for (done, step) in whole.iter().enumerate() {
        assert_eq!(store.bytes_to_scrub(step.next), bytes(&whole[done + 1..]), "{step:?}");
        let rest = steps(&store, step.next);
        let findings = |steps: &[ScrubStep]| -> Vec<_> {
            steps.iter().flat_map(|step| step.findings.clone()).collect()
        };
        assert_eq!(findings(&rest), findings(&whole[done + 1..]), "{step:?}");
        assert_eq!(bytes(&rest), bytes(&whole[done + 1..]), "{step:?}");
    }
    let end = whole.last().unwrap().next;
    assert_eq!(steps(&store, end), [], "behind the last title");
}

#[test]
fn titles_that_come_and_go_meanwhile_are_no_damage() {
    let (_, store, _) = store_of(&[1_300_000, 3_000_000, 50_000]);
    let mut random = fastrand::Rng::with_seed(2);
    let mut read = Vec::new();
    let mut on_step = |step: ScrubStep| {
        assert_eq!(step.findings, []);
        // In the middle of title 1: it goes, and others take its space and the next ids.
        if (step.next.title, step.next.offset) == (TitleId(1), 2 << 20) {
            store.remove("title 1").unwrap();
            put(&store, "other", &[noise(&mut random, 3_000_000)]).unwrap();
            store.rename("title 2", "renamed").unwrap();
        }
        read.push(step.next.title.0);
        Ok(())
    };
    store.scrub(ScrubPosition::START, &Unthrottled, &mut on_step).unwrap();
    read.dedup();
    assert_eq!(read, [0, 1, 2, 3, 4]);
    let mut ended = |_| Err(StoreError::Cancelled);
    let error = store.scrub(ScrubPosition::START, &Unthrottled, &mut ended).unwrap_err();
    assert_eq!(error.code(), "cancelled");
}

#[test]
fn the_state_of_a_scrub_is_kept_with_the_store() {
    let (device, store, _) = store_of(&[]);
    assert_eq!(store.scrub_state(), None);
    let next = ScrubPosition { title: TitleId(7), track: 3, offset: 5 << 40 };
    let mut state = ScrubState { begun: 1_700_000_000, next, bytes: 9 << 40, found: 2, last: None };
    for number in 0..200 {
        // More than one checkpoint.
        state.last = (number > 0).then_some(ScrubResult { finished: number, found: 4 });
        store.change_scrub_state(|_| state).unwrap();
    }
    assert_eq!(store.scrub_state(), Some(state));
    drop(store);
    let store = Store::open_on(device).unwrap();
    assert_eq!(store.scrub_state(), Some(state));
    // A check that has found everything beside it.
    let result = ScrubResult { finished: 1_800_000_000, found: 1 };
    store.keep_scrub_result(result).unwrap();
    let checked = ScrubState { found: 0, last: Some(result), ..state };
    assert_eq!(store.scrub_state(), Some(checked));
    assert!(store.check(&store::CheckOptions::default(), &mut |_| {}).unwrap().is_clean());
}
