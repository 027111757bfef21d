//! Attempts as dialogues: what is asked, the answers, and the end.

use super::*;
use crate::names::{ContentTag, NodeDisk, NodeId, TitleName};
use crate::records::{ClusterChange, ClusterEvent, CopyRecord};
use crate::view::tests::{NEED, view};
use crate::view::{ClusterView, CopyPlace};
use AdmissionClass::{Again, New};
use NodeAnswer::{Accepted, Refused, Unreachable};
use units::Moment;

const NOW: Moment = Moment::from_secs(1);

fn at(place: CopyPlace) -> String {
    format!("{}.{}", place.node.0, place.disk.0)
}

/// The dialogue of one attempt for title 0, with these answers in turn.
fn dialogue(
    view: &mut ClusterView,
    settings: DirectorSettings,
    class: AdmissionClass,
    answers: &[NodeAnswer],
) -> (String, DirectorCounters) {
    let mut director = Director::new(settings);
    let mut attempt = director.begin(TitleNumber(0), NEED, class, 1);
    let mut lines = Vec::new();
    let mut answers = answers.iter();
    loop {
        let step = attempt.step(view, NOW);
        assert_eq!(step, attempt.step(view, NOW), "the same until it is answered");
        match step {
            DirectorStep::Ask(place) => lines.push(format!("ask {}", at(place))),
            DirectorStep::Move(stream) => {
                let StreamMove { title, from, to, .. } = stream;
                lines.push(format!("move t{} {} to {}", title.0, at(from), at(to)));
            }
            DirectorStep::Admitted(Admitted { place }) => {
                lines.push(format!("admitted {}", at(place)));
                break;
            }
            DirectorStep::Refused(refusal) => {
                let seconds = refusal.retry_after.map(|time| time.as_secs());
                lines.push(format!("refused {:?} {seconds:?}", refusal.reason));
                break;
            }
        }
        attempt.answered(view, *answers.next().expect("an answer"), NOW);
    }
    director.end(&attempt);
    (lines.join(", "), *director.counters())
}

fn after(secs: u64) -> NodeAnswer {
    Refused(Some(Duration::from_secs(secs)))
}

fn settings() -> DirectorSettings {
    DirectorSettings { headroom: Headroom::None, ..DirectorSettings::default() }
}

#[test]
fn the_copy_with_most_room_is_asked_first_and_then_the_next() {
    let nodes: &[&[u64]] = &[&[30, 50], &[90], &[60]];
    let titles: &[&[(u32, u16)]] = &[&[(0, 1), (1, 0), (2, 0)]];
    let rows: [(&[NodeAnswer], &str); 4] = [
        (&[Accepted], "ask 1.0, admitted 1.0"),
        (&[after(9), Accepted], "ask 1.0, ask 2.0, admitted 2.0"),
        // The refusal has the earliest of the times.
        (&[after(9), after(4), Refused(None)], "ask 1.0, ask 2.0, ask 0.1, refused Full Some(4)"),
        (
            &[Unreachable, Unreachable, Unreachable],
            "ask 1.0, ask 2.0, ask 0.1, refused Unreachable None",
        ),
    ];
    for (answers, expected) in rows {
        let (lines, counters) = dialogue(&mut view(nodes, titles), settings(), New, answers);
        assert_eq!(lines, expected);
        assert_eq!(counters.asked, answers.len() as u64);
        assert_eq!(counters.health_misses, u64::from(answers.len() > 1));
        assert_eq!(counters.content_misses, 0);
    }
}

#[test]
fn a_view_learns_from_answers_so_that_the_next_viewer_is_not_sent_in_vain() {
    let mut view = view(&[&[90], &[10]], &[&[(0, 0), (1, 0)]]);
    let mut told = |answers: &[NodeAnswer]| dialogue(&mut view, settings(), New, answers).0;
    assert_eq!(told(&[after(9), Accepted]), "ask 0.0, ask 1.0, admitted 1.0");
    assert_eq!(told(&[Accepted]), "ask 1.0, admitted 1.0");
    // Both seem full now. The view may be old, so that they are asked all the same.
    let last = told(&[after(5), after(5)]);
    assert!(last.ends_with("refused Full Some(5)"), "{last}");
    // A node that does not answer is left alone for a while.
    let mut view = self::view(&[&[90], &[10]], &[&[(0, 0), (1, 0)]]);
    let mut told = |answers: &[NodeAnswer]| dialogue(&mut view, settings(), New, answers).0;
    assert_eq!(told(&[Unreachable, Accepted]), "ask 0.0, ask 1.0, admitted 1.0");
    assert_eq!(told(&[Accepted]), "ask 1.0, admitted 1.0");
}

#[test]
fn tries_are_bounded_and_a_title_without_copies_is_a_content_miss() {
    let copies: Vec<(u32, u16)> = (0..20).map(|disk| (0, disk)).collect();
    let mut wide = view(&[&[50; 20]], &[&copies]);
    let two = DirectorSettings { tries: 2, ..settings() };
    let (lines, counters) = dialogue(&mut wide, two, New, &[after(3), after(3)]);
    assert!(lines.ends_with("refused Full Some(3)"), "{lines}");
    assert_eq!((counters.asked, counters.node_refusals, counters.refused), (2, 2, 1));
    let (lines, counters) = dialogue(&mut view(&[&[50]], &[&[]]), settings(), New, &[]);
    assert_eq!(lines, "refused NoCopy None");
    assert_eq!((counters.content_misses, counters.health_misses), (1, 0));
}

#[test]
fn viewers_of_a_replaced_title_get_the_new_content_while_there_is_room() {
    let mut view = view(&[&[90], &[10], &[80]], &[&[(0, 0), (1, 0), (2, 0)]]);
    let title = || TitleName::new("t0").unwrap();
    let [old, new] = ["old", "new"].map(ContentTag::of);
    for (node, content) in [(0, old), (1, new), (2, old)] {
        let id = NodeId::new(format!("n{node}")).unwrap();
        let copy = CopyRecord::ready(NodeDisk(0), Some(content));
        let change = ClusterChange::Copies(title(), id, vec![copy]);
        view.apply(ClusterEvent { revision: 1_000, change }, Moment::ZERO);
    }
    let change = ClusterChange::Contents(title(), vec![new, old]);
    view.apply(ClusterEvent { revision: 1_000, change }, Moment::ZERO);
    let (lines, _) = dialogue(&mut view, settings(), New, &[Accepted]);
    assert_eq!(lines, "ask 1.0, admitted 1.0");
    let (lines, _) = dialogue(&mut view, settings(), New, &[after(9), Accepted]);
    assert_eq!(lines, "ask 1.0, ask 0.0, admitted 0.0");
}

#[test]
fn copies_that_are_being_written_hide_no_ready_one() {
    let copies: Vec<(u32, u16)> = (0..60).map(|node| (node, 0)).collect();
    let nodes: Vec<&[u64]> = vec![&[50]; 60];
    let mut view = view(&nodes, &[&copies]);
    for node in (0..60).filter(|node| *node != 41) {
        let title = TitleName::new("t0").unwrap();
        let id = NodeId::new(format!("n{node}")).unwrap();
        let filling = CopyRecord::filling(NodeDisk(0));
        let change = ClusterChange::Copies(title, id, vec![filling]);
        view.apply(ClusterEvent { revision: 1_000, change }, Moment::ZERO);
    }
    let (lines, _) = dialogue(&mut view, settings(), New, &[Accepted]);
    assert_eq!(lines, "ask 41.0, admitted 41.0");
}

#[test]
fn a_viewer_of_another_title_makes_room() {
    // Title 0 is on two full disks; title 1 shares one of them, and has a copy where there is room.
    let titles: &[&[(u32, u16)]] = &[&[(0, 0), (1, 0)], &[(1, 0), (2, 0)]];
    let nodes: &[&[u64]] = &[&[0], &[4], &[50]];
    let told = |settings, answers: &[NodeAnswer]| {
        dialogue(&mut view(nodes, titles), settings, Again, answers)
    };
    let (lines, counters) = told(settings(), &[Accepted, Accepted]);
    assert_eq!(lines, "move t1 1.0 to 2.0, ask 1.0, admitted 1.0");
    assert_eq!((counters.moved, counters.asked, counters.admitted), (1, 2, 1));
    // The same move is not tried twice.
    let (lines, _) = told(settings(), &[Refused(None), after(7), after(8)]);
    assert!(lines.starts_with("move t1 1.0 to 2.0, ask"), "{lines}");
    assert!(lines.ends_with("refused Full Some(7)"), "{lines}");
    let none = DirectorSettings { moves: 0, ..settings() };
    let (lines, counters) = told(none, &[after(7), after(8)]);
    assert!(lines.ends_with("refused Full Some(7)"), "{lines}");
    assert_eq!((counters.moved, counters.refused), (0, 1));
}

#[test]
fn new_viewers_leave_headroom_and_others_use_it() {
    let nodes: &[&[u64]] = &[&[20], &[20], &[50]];
    let titles: &[&[(u32, u16)]] = &[&[(0, 0), (1, 0)]];
    let told = |settings, class, answers: &[NodeAnswer]| {
        dialogue(&mut view(nodes, titles), settings, class, answers).0
    };
    // Of 300, 100 could be lost and 90 are free.
    let whole = DirectorSettings { headroom: Headroom::Node, ..settings() };
    assert_eq!(told(whole, New, &[]), "refused Headroom None");
    assert!(told(whole, Again, &[Accepted]).contains("admitted"));
    // A fifth of each disk is kept: nobody is asked for a new viewer.
    let kept = DirectorSettings { kept: 0.2, moves: 0, ..settings() };
    assert_eq!(told(kept, New, &[]), "refused Headroom None");
    assert!(told(kept, Again, &[Accepted]).contains("admitted"));
    // The other copy of the title has no room for one more, if the first were lost.
    let per_title = DirectorSettings { headroom: Headroom::Title, ..settings() };
    assert!(told(per_title, New, &[Accepted]).contains("admitted"));
    let full: &[&[u64]] = &[&[20], &[4], &[50]];
    let lines = dialogue(&mut view(full, titles), per_title, New, &[]).0;
    assert_eq!(lines, "refused Headroom None");
}

#[test]
fn nodes_that_are_drained_get_new_viewers_only_of_titles_that_no_other_node_has() {
    let nodes: &[&[u64]] = &[&[90], &[30], &[20], &[50]];
    // Title 0 is on all but the last; of those, node 0 and sometimes others are drained.
    let rows: [(&[u32], AdmissionClass, &[NodeAnswer], &str); 8] = [
        (&[], New, &[Accepted], "ask 0.0, admitted 0.0"),
        (&[0], New, &[Accepted], "ask 1.0, admitted 1.0"),
        (&[0], New, &[after(9), Accepted], "ask 1.0, ask 2.0, admitted 2.0"),
        // The others have the title and are full.
        (&[0], New, &[after(9), after(4)], "ask 1.0, ask 2.0, refused Full Some(4)"),
        // Whoever was admitted before is better off there than nowhere.
        (&[0], Again, &[after(9), after(4), Accepted], "ask 1.0, ask 2.0, ask 0.0, admitted 0.0"),
        // None of the others answers.
        (
            &[0],
            New,
            &[Unreachable, Unreachable, Accepted],
            "ask 1.0, ask 2.0, ask 0.0, admitted 0.0",
        ),
        (&[0, 1, 2], New, &[after(9), Accepted], "ask 0.0, ask 1.0, admitted 1.0"),
        (&[0, 1, 2], New, &[after(9); 3], "ask 0.0, ask 1.0, ask 2.0, refused Full Some(9)"),
    ];
    for (drained, class, answers, expected) in rows {
        let mut view = view(nodes, &[&[(0, 0), (1, 0), (2, 0)], &[(3, 0)]]);
        for node in drained {
            drain(&mut view, *node, true);
        }
        assert_eq!(dialogue(&mut view, settings(), class, answers).0, expected, "{drained:?}");
        drained.iter().for_each(|node| drain(&mut view, *node, false));
        let (staying, drained) = view.staying_copies(TitleNumber(0));
        assert_eq!((staying.len(), drained.len()), (3, 0));
    }
}

#[test]
fn nodes_that_are_drained_are_no_headroom_and_no_room_for_moves() {
    // Of 300, 100 could be lost and 120 are free: too much of it on the node that is drained.
    let mut one = view(&[&[80], &[20], &[20]], &[&[(1, 0), (2, 0)]]);
    let whole = DirectorSettings { headroom: Headroom::Node, ..settings() };
    assert!(dialogue(&mut one.clone(), whole, New, &[Accepted]).0.contains("admitted"));
    drain(&mut one, 0, true);
    assert_eq!(dialogue(&mut one.clone(), whole, New, &[]).0, "refused Headroom None");
    drain(&mut one, 0, false);
    assert!(dialogue(&mut one, whole, New, &[Accepted]).0.contains("admitted"));
    // Title 0 is full; the viewer of title 1 could go to a node that is drained only.
    let mut view = view(&[&[0], &[4], &[50]], &[&[(0, 0), (1, 0)], &[(1, 0), (2, 0)]]);
    drain(&mut view, 2, true);
    let (lines, _) = dialogue(&mut view, settings(), Again, &[after(7), after(8)]);
    assert!(!lines.contains("move"), "{lines}");
}

fn drain(view: &mut ClusterView, node: u32, is_drained: bool) {
    let change = ClusterChange::Drained(NodeId::new(format!("n{node}")).unwrap(), is_drained);
    view.apply(ClusterEvent { revision: view.revision(), change }, NOW);
}

#[test]
fn viewers_spread_over_copies_with_equal_room() {
    let copies: Vec<(u32, u16)> = (0..40).map(|node| (node, 0)).collect();
    let nodes: Vec<&[u64]> = vec![&[100]; 40];
    let mut view = view(&nodes, &[&copies]);
    let mut counts = [0; 40];
    let director = Director::new(settings());
    for seed in 0..600 {
        let mut attempt = director.begin(TitleNumber(0), NEED, New, seed);
        let DirectorStep::Ask(place) = attempt.step(&view, NOW) else { panic!("room") };
        attempt.answered(&mut view, Accepted, NOW);
        counts[units::index(place.node.0)] += 1;
    }
    // 15 each; a random choice would give some more than 20 and some less than 10.
    assert!(counts.iter().all(|count| (12..=18).contains(count)), "{counts:?}");
}
