//! Fills of caches: sessions of a few pieces, of which there is a most.

use super::*;

/// A fill of these stored pieces of a title, which waits so many seconds.
fn fill(title: u64, stored: std::ops::Range<u32>, seconds: u64) -> AdmitRequest {
    let mut layout = Arc::into_inner(layout(title)).expect("made just now");
    let count = stored.end - stored.start;
    layout.tracks[0].bytes = u64::from(count * PIECE);
    layout.tracks[0].due = vec![0; stored.len()];
    layout.tracks[0].stored = stored.collect();
    layout.duration = Duration::from_millis(u64::from(count) * 500);
    let max_wait = chosen_wait(seconds);
    AdmitRequest { max_wait, fill: Some(FillFor::Cache), ..request(Arc::new(layout)) }
}

fn with_fills(fills: u32, config: EngineConfig) -> Fixture {
    Fixture::new(EngineConfig { fills, ..config })
}

#[track_caller]
fn admitted(answer: AdmissionDecision) -> (SessionId, Duration) {
    match answer {
        AdmissionDecision::Admitted { session, wait, .. } => (session, wait),
        AdmissionDecision::Refused(refusal) => panic!("{refusal:?}"),
    }
}

#[test]
fn no_more_fills_are_under_way_than_there_may_be() {
    let mut fixture = with_fills(2, config(40, 1000));
    let fills = [fill(1, 3..5, 0), fill(2, 0..2, 0)].map(|fill| admitted(fixture.ask(fill)).0);
    let AdmissionDecision::Refused(refusal) = fixture.ask(fill(3, 0..2, 5)) else {
        panic!("two are under way")
    };
    assert_eq!((refusal.cause, refusal.resource), (RefusalCause::Fills, None));
    // All is in memory by the end of the start-up.
    assert_eq!(refusal.retry, RetryAfter::Estimated(Duration::from_secs(2)));
    assert!(!fixture.engine.has_room_for_fill(FillFor::Cache));
    assert!(fixture.admit(3).is_ok(), "viewers are no fills");
    fixture.want(fills[0], 0..2);
    fixture.pass(500);
    assert_eq!(fixture.take_log("deliver"), ["deliver 1 4096", "deliver 1 4096"]);
    fixture.engine.end(fixture.now, fills[0]);
    fixture.drain();
    assert!(fixture.engine.has_room_for_fill(FillFor::Cache));
    let status = fixture.engine.status(fixture.now);
    assert_eq!((status.fills, status.sessions), (1, 2));
    let counters = status.counters;
    assert_eq!((counters.fills_admitted, counters.fills_refused), (2, 1));
    assert_eq!(counters.fill_bytes, 2 * u64::from(PIECE));
    admitted(fixture.ask(fill(3, 0..2, 0)));
    let mut without = Fixture::new(config(40, 1000));
    assert!(matches!(without.ask(fill(1, 0..2, 0)), AdmissionDecision::Refused(_)));
}

#[test]
fn a_fill_of_a_full_disk_waits_and_makes_no_viewer_late() {
    let mut fixture = with_fills(8, config(4, 1000));
    fixture.now = Moment::from_secs(100);
    let viewers: Vec<SessionId> = (0..9).map_while(|title| fixture.admit(title).ok()).collect();
    let AdmissionDecision::Refused(refusal) = fixture.ask(fill(20, 4..12, 0)) else {
        panic!("{} viewers leave room at once", viewers.len())
    };
    let retry = refusal.retry.after().expect("a time");
    let (cache, wait) = admitted(fixture.ask(fill(20, 4..12, 20)));
    // Whoever waits is given whole slots.
    let slot = Duration::from_millis(500);
    assert!(!wait.is_zero() && wait <= retry + slot, "{wait:?}, {retry:?}");
    let begins = fixture.now + wait;
    let mut asked = false;
    for piece in 0..PIECES {
        if !asked && fixture.now >= begins {
            fixture.want(cache, 0..8);
            asked = true;
        }
        viewers.iter().for_each(|viewer| {
            fixture.want(*viewer, piece..piece + 1);
        });
        fixture.pass(500);
    }
    assert!(asked);
    fixture.engine.end(fixture.now, cache);
    fixture.drain();
    let counters = fixture.engine.status(fixture.now).counters;
    assert_eq!(counters.deadline_misses, 0);
    assert_eq!(counters.fill_bytes, 8 * u64::from(PIECE));
}

#[test]
fn fills_of_the_same_bytes_share_their_reads() {
    let mut fixture = with_fills(8, config(4, 100));
    let fills = [fill(1, 7..9, 0), fill(1, 7..9, 0)].map(|fill| admitted(fixture.ask(fill)).0);
    for session in fills {
        fixture.want(session, 0..2);
    }
    fixture.pass(1000);
    assert_eq!(fixture.take_log("read"), ["read 1:7", "read 1:8"]);
    let status = fixture.engine.status(fixture.now);
    assert_eq!(status.counters.deadline_misses, 0);
}

#[test]
fn fills_for_other_nodes_are_bounded_and_counted_apart_from_those_of_caches() {
    let mut fixture = with_fills(1, config(200, 1000));
    admitted(fixture.ask(fill(1, 0..2, 0)));
    let for_node = |title| AdmitRequest { fill: Some(FillFor::Node), ..fill(title, 0..2, 0) };
    let fills: Vec<SessionId> = (0..u64::from(MOST_NODE_FILLS))
        .map(|title| admitted(fixture.ask(for_node(title))).0)
        .collect();
    let AdmissionDecision::Refused(refusal) = fixture.ask(for_node(20)) else {
        panic!("as many as there may be")
    };
    assert_eq!(refusal.cause, RefusalCause::Fills);
    fixture.want(fills[0], 0..2);
    fixture.pass(500);
    fixture.engine.end(fixture.now, fills[0]);
    fixture.drain();
    assert!(fixture.engine.has_room_for_fill(FillFor::Node));
    assert!(!fixture.engine.has_room_for_fill(FillFor::Cache));
    let status = fixture.engine.status(fixture.now);
    let counters = status.counters;
    assert_eq!((status.fills, counters.fills_admitted, counters.fill_bytes), (1, 1, 0));
    assert_eq!((counters.node_fills_admitted, counters.node_fills_refused), (8, 1));
    assert_eq!(counters.node_fill_bytes, 2 * u64::from(PIECE));
    fixture.engine.audit().unwrap();
}
