//! Stores of a set that were away, and what became of their titles.

use super::*;
use crate::common::PowerCutDevice;
use crate::common::titles::{assert_sound, formatted, put};
use crate::copy_title;
use std::sync::atomic::AtomicBool;
use units::ByteCount;

/// A store of a set, on a device that outlives it.
struct Member {
    device: Arc<PowerCutDevice>,
    store: Arc<Store>,
}

impl Member {
    fn new() -> Self {
        let device = PowerCutDevice::new(ByteCount::mib(3));
        let store = Arc::new(formatted(&device));
        Self { device, store }
    }

    /// Opens what is on the device now: it was closed, and it or its disk was away.
    fn reopen(&mut self) {
        self.store = Arc::new(Store::open_on(self.device.clone()).unwrap());
    }

    fn titles(&self) -> String {
        let names = self.store.titles().into_iter().map(|title| title.name);
        names.collect::<Vec<_>>().join(" ")
    }
}

/// Two stores with copies of `film` and `song` that know each other; the second is closed then, and
/// is not there.
fn set_with_one_away() -> [Member; 2] {
    let mut members = [Member::new(), Member::new()];
    for (name, byte) in [("film", 1), ("song", 2)] {
        put(&members[0].store, name, &[vec![byte; 100_000]]).unwrap();
        copy(&members[0].store, &members[1].store, name);
    }
    let set = members.each_ref().map(|member| (Path::new("/absent/store"), &member.store));
    keep_siblings(&set, true).unwrap();
    members[1].reopen();
    members[0].reopen();
    keep_siblings(&[(Path::new("/absent/store"), &members[0].store)], false).unwrap();
    members
}

fn copy(from: &Store, to: &Store, name: &str) {
    let io = &crate::Unthrottled as &dyn crate::BackgroundIo;
    copy_title(&(to, io), &[&(from, io)], name, &mut |_| {}, &AtomicBool::new(false)).unwrap();
}

/// As before, with a third store, which has `film` and `words` and is there.
fn set_of_three() -> [Member; 3] {
    let [first, away] = set_with_one_away();
    let mut members = [first, away, Member::new()];
    copy(&members[0].store, &members[2].store, "film");
    put(&members[2].store, "words", &[vec![7; 1000]]).unwrap();
    let path = Path::new("/absent/store");
    members.iter_mut().for_each(Member::reopen);
    let set = members.each_ref().map(|member| (path, &member.store));
    keep_siblings(&set, true).unwrap();
    members.iter_mut().for_each(Member::reopen);
    let there = [(path, &members[0].store), (path, &members[2].store)];
    keep_siblings(&there, false).unwrap();
    members
}

/// What there was to do when all are there: `film -> x` or `film -> none`.
fn return_all(members: &[Member]) -> String {
    let stores: Vec<&Store> = members.iter().map(|member| &*member.store).collect();
    let made = catch_up(&stores, &|number, id| stores[number].release(id));
    let line = |it: CatchUpStep| {
        it.result.unwrap();
        format!("{} -> {}", it.change.name, it.change.new_name.as_deref().unwrap_or("none"))
    };
    made.into_iter().map(line).collect::<Vec<_>>().join(", ")
}

#[test]
fn what_was_done_while_a_store_was_away_is_done_there_when_it_is_back() {
    type Work = fn(&Store);
    let all: [(&str, Work, &str, &str); 8] = [
        ("nothing", |_| {}, "", "film song"),
        ("removed", |it| drop(it.remove("film").unwrap()), "film -> none", "song"),
        ("renamed", |it| it.rename("film", "x").unwrap(), "film -> x", "song x"),
        (
            "renamed twice, then removed",
            |it| {
                it.rename("film", "x").unwrap();
                it.rename("x", "y").unwrap();
                it.remove("y").unwrap();
            },
            "film -> x, x -> y, y -> none",
            "song",
        ),
        (
            "one in the place of the other",
            |it| drop(it.replace("film", "song").unwrap()),
            "song -> none, film -> song",
            "song",
        ),
        (
            "the two names changed over",
            |it| {
                it.rename("film", "x").unwrap();
                it.rename("song", "film").unwrap();
                it.rename("x", "song").unwrap();
            },
            "film -> x, song -> film, x -> song",
            "film song",
        ),
        (
            "removed, and another one taken in under the name",
            |it| {
                it.remove("film").unwrap();
                put(it, "film", &[vec![3; 1000]]).unwrap();
            },
            "film -> none",
            "song",
        ),
        (
            "removed, and the same one taken in again",
            |it| {
                it.remove("film").unwrap();
                put(it, "film", &[vec![1; 100_000]]).unwrap();
            },
            "",
            "film song",
        ),
    ];
    for (case, work, made, titles) in all {
        let mut members = set_with_one_away();
        work(&members[0].store);
        // As after a power cut: the notes are in the journal, or in a checkpoint.
        members[0].reopen();
        assert_eq!(return_all(&members), made, "{case}");
        assert_eq!(members[1].titles(), titles, "{case}");
        assert_sound(&members[1].store, case);
        assert_eq!(members[0].store.missed_changes(), [], "{case}: it misses nothing any more");
        assert_eq!(return_all(&members), "", "{case}");
        members[0].reopen();
        assert_sound(&members[0].store, case);
    }
}

#[test]
fn a_copy_is_no_title_and_another_store_misses_nothing() {
    let members = set_with_one_away();
    let elsewhere = Member::new();
    copy(&members[0].store, &elsewhere.store, "film");
    // Moved to another disk: the copy in the store that is away is as good as before.
    members[0].store.hide_copy("film").unwrap();
    assert_eq!(members[0].store.missed_changes(), []);
    members[0].store.remove("song").unwrap();
    copy(&members[1].store, &elsewhere.store, "song");
    // A backup was never in the set: it keeps what was removed.
    let stores = [&*members[0].store, &*elsewhere.store];
    assert!(catch_up(&stores, &|_, _| {}).is_empty());
    assert_eq!(elsewhere.titles(), "film song");
    assert_eq!(return_all(&members), "song -> none");
}

#[test]
fn a_title_that_another_store_still_has_is_not_gone() {
    let [first, away, third] = &set_of_three();
    first.store.remove("film").unwrap();
    assert_eq!(first.store.missed_changes(), [], "the third has it");
    third.store.remove("film").unwrap();
    let missed = third.store.missed_changes();
    assert_eq!((missed.len(), missed[0].store), (1, away.store.identity()));
    // A lost disk is away, and its catalogue in memory tells what is on it.
    copy(&first.store, &third.store, "song");
    first.store.suspend_writes();
    third.store.rename("words", "poem").unwrap();
    third.store.remove("song").unwrap();
    let missed = third.store.missed_changes();
    let by = |store: &Member, name: &str| {
        missed.iter().any(|it| it.store == store.store.identity() && it.name == name)
    };
    let noted = ["words", "song"].map(|name| (by(first, name), by(away, name)));
    assert_eq!(noted, [(false, true), (true, true)]);
}

#[test]
fn notes_have_a_bound_and_the_oldest_go_first() {
    let members = set_with_one_away();
    let store = &members[0].store;
    for number in 0..300 {
        let (old, new) = match number {
            0 => ("film".to_owned(), "film 0".to_owned()),
            _ => (format!("film {}", number - 1), format!("film {number}")),
        };
        store.rename(&old, &new).unwrap();
    }
    let missed = store.missed_changes();
    assert!((20..200).contains(&missed.len()), "{}", missed.len());
    assert_eq!(missed.last().unwrap().new_name.as_deref(), Some("film 299"));
    put(store, "one more", &[vec![1; 1000]]).unwrap();
}

#[test]
fn what_is_younger_than_the_loss_of_a_store_is_not_in_it() {
    let sibling = |away_since| Sibling { uuid: Uuid::nil(), path: String::new(), away_since };
    let members = set_with_one_away();
    let title = |created| TitleRecord { created, ..members[0].store.title("film").unwrap() };
    for (away_since, created, has_none) in
        [(0, 5, false), (7, 5, false), (7, 0, false), (7, 9, true)]
    {
        assert_eq!(sibling(away_since).has_none_as_young(&title(created)), has_none);
    }
}
