//! Plans as data, and random libraries whose steps are followed by a model.

use super::{LibraryGoal, LibraryPlan, LibraryStep, LibraryStore, LibraryTitle, TitleLeft};
use std::collections::{BTreeMap, BTreeSet};

const MIB: u64 = 1 << 20;

fn title(name: &str, mib: u64) -> LibraryTitle {
    LibraryTitle { name: name.into(), content: name.into(), bytes: mib * MIB, tracks: 2 }
}

/// A store of 1,000 MiB from the names and sizes of its titles.
fn store(titles: &[(&str, u64)]) -> LibraryStore {
    let titles: Vec<_> = titles.iter().map(|(name, mib)| title(name, *mib)).collect();
    let used: u64 = titles.iter().map(|title| title.bytes + 3 * MIB).sum();
    let (size, chunk) = (1000 * MIB, MIB);
    LibraryStore { size, free: size - used, chunk, titles, ..LibraryStore::default() }
}

/// A plan in short: `film:0->1` is copied, `film:0-` removed, `!film` is left.
fn planned(stores: &[LibraryStore], copies: usize, balance: bool) -> String {
    let plan = LibraryPlan::new(stores, LibraryGoal { copies, balance });
    let steps = plan.steps.iter().map(|step| match step {
        LibraryStep::Copy { title, from, to } => format!("{}:{}->{to}", title.name, from[0]),
        LibraryStep::Remove { title, from, .. } => format!("{}:{from}-", title.name),
    });
    let left = plan.left.iter().map(|left| match left {
        TitleLeft::TooFew { title, copies } => format!("!{title}={copies}"),
        TitleLeft::Unlike { title } => format!("!{title}"),
    });
    steps.chain(left).collect::<Vec<_>>().join(" ")
}

#[test]
fn plans_are_as_expected() {
    let two = || vec![store(&[("a", 100), ("b", 10)]), store(&[("b", 10)])];
    assert_eq!(planned(&two(), 1, false), "");
    assert_eq!(planned(&two(), 2, false), "a:0->1");
    assert_eq!(planned(&two(), 3, false), "a:0->1 !a=2 !b=2");

    // A lost store is left out, and an empty one takes its place.
    let replaced = [store(&[("a", 100), ("b", 10)]), store(&[])];
    assert_eq!(planned(&replaced, 2, false), "a:0->1 b:0->1");

    // To the emptiest; where two are about equal, to the one with fewer sessions.
    let mut three = vec![store(&[("a", 100)]), store(&[("x", 30)]), store(&[])];
    assert_eq!(planned(&three, 2, false), "a:0->2 x:1->0");
    three[2].sessions = 5;
    assert_eq!(planned(&three, 2, false), "a:0->1 x:1->2");

    // A store that all titles leave; what has no other place stays.
    let mut leaving = two();
    leaving[0].leaves = true;
    assert_eq!(planned(&leaving, 1, false), "a:0->1 a:0- b:0-");
    leaving[1].free = 50 * MIB;
    assert_eq!(planned(&leaving, 1, false), "b:0- !a=0");
    assert_eq!(planned(&leaving, 2, false), "!a=0 !b=1");

    // A store whose disk is drained gets no copy and has none that counts; it loses what leaves it.
    let mut drained = vec![store(&[("a", 100)]), store(&[]), store(&[("b", 10)])];
    drained[1].is_drained = true;
    assert_eq!(planned(&drained, 1, true), "");
    assert_eq!(planned(&drained, 2, false), "a:0->2 b:2->0");
    drained[0].is_drained = true;
    assert_eq!(planned(&drained, 1, false), "a:0->2");
    drained[0].leaves = true;
    assert_eq!(planned(&drained, 1, false), "a:0->2 a:0-");

    // A store that cannot be written to has no copies that count, and loses nothing.
    let mut failing = vec![store(&[("a", 100)]), store(&[("a", 100), ("b", 10)]), store(&[])];
    failing[1].fails_writes = true;
    assert_eq!(planned(&failing, 1, false), "b:1->2");
    assert_eq!(planned(&failing, 2, false), "a:0->2 b:1->0 b:1->2");
    assert_eq!(planned(&failing[..2], 2, false), "b:1->0 !a=1 !b=1");
    failing[1].leaves = true;
    assert_eq!(planned(&failing, 1, true), "b:1->2");

    // Equal names with other content.
    let mut unlike = two();
    unlike[1].titles[0].content = "other".into();
    assert_eq!(planned(&unlike, 2, false), "a:0->1 !b");

    let uneven = [store(&[("a", 300), ("b", 200), ("c", 100)]), store(&[])];
    assert_eq!(planned(&uneven, 1, true), "a:0->1 a:0-");
    // With a copy everywhere there is nothing to move.
    let even = [store(&[("a", 300)]), store(&[("a", 300), ("b", 200)])];
    assert_eq!(planned(&even, 2, true), "b:1->0");
}

/// The stores as a model: what is in them, and how full they are with the largest index.
struct Model {
    holds: Vec<BTreeMap<String, u64>>,
    free: Vec<u64>,
}

impl Model {
    fn copies(&self, name: &str) -> usize {
        self.holds.iter().filter(|store| store.contains_key(name)).count()
    }

    fn follow(&mut self, step: &LibraryStep) {
        match step {
            LibraryStep::Copy { title, from, to } => {
                assert!(from.iter().all(|from| self.holds[*from].contains_key(&title.name)));
                // Two tracks and an index that fills its last chunk.
                let takes = title.bytes + title.bytes / 200 + 3 * MIB;
                assert!(self.holds[*to].insert(title.name.clone(), takes).is_none());
                self.free[*to] = self.free[*to].checked_sub(takes).expect("there is room");
            }
            LibraryStep::Remove { title, from, .. } => {
                let freed = self.holds[*from].remove(&title.name).expect("it is there");
                self.free[*from] += freed;
            }
        }
    }
}

#[test]
fn random_libraries_come_to_their_goal() {
    let mut steps = 0;
    for seed in 0..3000 {
        let again = format!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stores = vec![LibraryStore::default(); random.usize(1..6)];
        for store in &mut stores {
            store.size = random.u64(200..2000) * MIB;
            (store.free, store.chunk) = (store.size, MIB);
            store.leaves = random.u8(0..5) == 0;
            store.sessions = random.u64(0..3);
        }
        let mut model = Model { holds: vec![BTreeMap::new(); stores.len()], free: vec![] };
        for number in 0..random.usize(0..30) {
            let mib = random.u64(0..200);
            let title = title(&number.to_string(), mib);
            let takes = title.bytes + title.bytes / 200 + 3 * MIB;
            let wanted = random.usize(1..=stores.len());
            for (at, store) in stores.iter_mut().enumerate().take(wanted) {
                if store.free >= takes {
                    store.free -= takes;
                    store.titles.push(title.clone());
                    model.holds[at].insert(title.name.clone(), takes);
                }
            }
        }
        model.free = stores.iter().map(|store| store.free).collect();
        let goal = LibraryGoal { copies: random.usize(1..4), balance: random.bool() };
        let plan = LibraryPlan::new(&stores, goal);
        let names: BTreeSet<String> =
            model.holds.iter().flatten().map(|(n, _)| n.clone()).collect();
        assert_eq!(plan.titles, names.len(), "{again}");
        for step in &plan.steps {
            let (LibraryStep::Copy { title, .. } | LibraryStep::Remove { title, .. }) = step;
            let before = model.copies(&title.name);
            model.follow(step);
            let after = model.copies(&title.name);
            assert!(after >= before.min(goal.copies), "{again}: {step:?} leaves {after}");
            steps += 1;
        }
        let few: Vec<&str> = plan.left.iter().map(TitleLeft::title).collect();
        for name in &names {
            let has = |at: &usize| model.holds[*at].contains_key(name);
            let at: Vec<usize> = (0..stores.len()).filter(has).collect();
            let staying = at.iter().filter(|store| !stores[**store].leaves).count();
            assert_eq!(staying < goal.copies, few.contains(&&**name), "{again}: {name}");
            if !few.contains(&&**name) {
                assert_eq!(staying, at.len(), "{again}: {name} is still in a store that it leaves");
            }
        }
        // A title stays where it is rather than have no place.
        assert!(names.iter().all(|name| model.copies(name) > 0), "{again}");
        // What was done is not done again.
        for (store, (holds, free)) in stores.iter_mut().zip(model.holds.iter().zip(&model.free)) {
            store.free = *free;
            let bytes = |takes: &u64| (takes - 3 * MIB) * 200 / 201;
            let titles = holds.iter().map(|(name, takes)| title(name, bytes(takes).div_ceil(MIB)));
            store.titles = titles.collect();
        }
        let again_planned = LibraryPlan::new(&stores, LibraryGoal { balance: false, ..goal });
        let more = |step: &LibraryStep| match step {
            // A removal may have made room.
            LibraryStep::Copy { title, .. } => !few.contains(&&*title.name),
            LibraryStep::Remove { .. } => false,
        };
        assert!(!again_planned.steps.iter().any(more), "{again}: {:?}", again_planned.steps);
    }
    assert!(steps > 3000, "{steps} steps: the libraries are trivial");
}
