//! Viewers who go on elsewhere, and how what they asked for starts: the door that every jump
//! passes through, whole or not at all.

use super::*;

/// A title with two tracks like the one of all others.
fn two_tracks(title: u64) -> Arc<Layout> {
    let mut layout = Arc::into_inner(layout(title)).expect("made just now");
    let second = u64::from(PIECES * PIECE)..u64::from(2 * PIECES * PIECE);
    layout.tracks.push(TrackLayout { runs: vec![second], ..track(PIECES) });
    Arc::new(layout)
}

fn admit_two_tracks(house: &mut House) -> SessionId {
    let request = AdmitRequest { offers: vec![vec![0, 1]], ..request(two_tracks(1)) };
    let answer = house.engine.admit(house.now, request);
    house.hear();
    let Answer::Admitted { session, .. } = answer else { panic!("{answer:?}") };
    session
}

fn want_both(house: &mut House, session: SessionId, pieces: std::ops::Range<u32>) {
    house.next_request += 1;
    let request = RequestId(house.next_request);
    let bytes = u64::from(pieces.start * PIECE)..u64::from(pieces.end * PIECE);
    let parts = [0, 1].map(|track| Part { track, bytes: bytes.clone() });
    house.engine.want(house.now, Want { request, session, parts: parts.into() });
    house.hear();
}

#[test]
fn nothing_is_shown_before_what_the_start_needs_is_in_memory() {
    let mut house = House::new(config(2, 20));
    let viewer = house.admit(1).unwrap();
    house.want(viewer, 0..6);
    let mut delivered = Vec::new();
    for _ in 0..6 {
        house.read_all(ReadOutcome::Good);
        let in_memory = house.engine.status(house.now).buffers_used / u64::from(PIECE);
        delivered.push((in_memory, house.said("deliver").len()));
        house.now = house.engine.next_wakeup();
        house.engine.tick(house.now);
        house.hear();
    }
    // Six pieces are due before play-out may start; the socket takes two at once.
    assert!(delivered.iter().all(|(pieces, handed)| *handed == 0 || *pieces >= 6), "{delivered:?}");
    assert!(delivered.iter().any(|(_, handed)| *handed == 2), "{delivered:?}");
}

#[test]
fn who_goes_on_is_not_let_in_anew_and_who_jumps_is_each_time() {
    let mut house = House::new(config(8, 200));
    let viewer = house.admit(1).unwrap();
    let mut anew = Vec::new();
    for pieces in [0..2, 2..4, 4..6, 20..22, 22..24, 3..5, 5..6, 7..8, 7..8] {
        house.want(viewer, pieces.clone());
        house.pass(500);
        anew.extend(house.said("Anew").into_iter().map(|_| pieces.start));
    }
    assert_eq!(anew, [20, 3, 7, 7], "forward, back, one left out, the same again");
}

#[test]
fn a_jump_of_two_tracks_is_granted_or_refused_whole() {
    let mut house = House::new(config(8, 1000));
    let viewer = admit_two_tracks(&mut house);
    want_both(&mut house, viewer, 0..1);
    house.pass(500);
    house.said.clear();
    want_both(&mut house, viewer, 20..21);
    let granted = house.said("Anew");
    assert_eq!(granted.len(), 1, "{granted:?}");
    assert!(granted[0].contains("tracks: [0, 1]"), "{granted:?}");
    house.pass(500);
    // A disk that does one read a slot has no room for another start.
    let slow = DiskGuarantee { min_read: 1, ..config(1, 0).disks[0] };
    house.engine.set_guarantee(house.now, DiskNumber(0), slow);
    house.hear();
    let before = house.engine.status(house.now);
    house.said.clear();
    want_both(&mut house, viewer, 5..6);
    let said = house.said("");
    assert!(said.iter().any(|text| text.starts_with("refused")), "{said:?}");
    assert!(said.iter().all(|text| !text.starts_with("Anew")), "{said:?}");
    let after = house.engine.status(house.now);
    assert_eq!(after.disks[0].least_slack, before.disks[0].least_slack, "nothing has moved");
    assert_eq!(after.active, before.active);
    want_both(&mut house, viewer, 21..22);
    house.pass(500);
    assert_eq!(house.said("refused").len(), 0, "and it goes on where it was");
}

#[test]
fn two_requests_far_apart_do_not_take_the_schedule_from_each_other_for_ever() {
    let mut house = House::new(config(2, 30));
    let viewer = house.admit(1).unwrap();
    let first = house.want(viewer, 0..20);
    let second = house.want(viewer, 30..31);
    house.pass(5000);
    let said = house.said("");
    let granted = said.iter().filter(|text| text.starts_with("Anew")).count();
    assert_eq!(granted, 1, "the younger one jumped: {said:?}");
    let told = format!("declined {} Elsewhere", first.0);
    assert!(said.contains(&told), "the older is told: {said:?}");
    assert!(said.contains(&format!("complete {}", second.0)), "the younger is served: {said:?}");
    assert_eq!(house.engine.status(house.now).refused_disk, 0, "there was room");
}

#[test]
fn a_session_has_so_many_requests_open_and_others_have_theirs() {
    let mut house = House::new(config(4, 100));
    let (busy, other) = (house.admit(1).unwrap(), house.admit(2).unwrap());
    for piece in 0..17 {
        house.want(busy, piece..piece + 1);
    }
    house.want(other, 0..1);
    assert_eq!(house.said("declined"), ["declined 17 TooMany { most: 16 }"]);
    house.pass(5000);
    house.want(busy, 16..17);
    assert_eq!(house.said("declined").len(), 0, "they are served, so there is room again");
    assert_eq!(house.engine.status(house.now).refused_memory, 0);
}

#[test]
fn a_jump_that_fits_a_moment_later_waits_and_one_that_does_not_is_told_when() {
    // Six reads to start within four slots, one in each after: two reads a slot carry one start.
    let mut house = House::new(config(2, 1000));
    let viewer = house.admit(1).unwrap();
    house.want(viewer, 0..1);
    house.pass(1000);
    let mut waits = Vec::new();
    for (title, piece) in [(2, 10), (3, 15), (4, 20), (5, 25)] {
        let _there_may_be_no_room = house.admit(title);
        house.said.clear();
        house.want(viewer, piece..piece + 1);
        let said = house.said("");
        waits.extend(said.into_iter().filter(|text| {
            text.starts_with("Anew") && !text.contains("wait: 0ns") || text.starts_with("refused")
        }));
    }
    assert!(!waits.is_empty(), "a house that is nearly full makes some wait");
    house.pass(3000);
    assert_eq!(house.engine.status(house.now).glitches, 0, "and nobody pays for it");
}
