//! Seeks: which requests are readmitted, and how delivery of a new position starts.

use super::*;

/// A title with two tracks like the one of all others.
fn two_tracks(title: u64) -> Arc<Layout> {
    let mut layout = Arc::into_inner(layout(title)).expect("made just now");
    let second = u64::from(PIECES * PIECE)..u64::from(2 * PIECES * PIECE);
    layout.tracks.push(TrackLayout { runs: vec![second], ..track(PIECES) });
    Arc::new(layout)
}

fn admit_two_tracks(fixture: &mut Fixture) -> SessionId {
    let request = AdmitRequest { offers: vec![vec![0, 1]], ..request(two_tracks(1)) };
    let answer = fixture.engine.admit(fixture.now, request);
    fixture.drain();
    let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
    session
}

fn want_both(fixture: &mut Fixture, session: SessionId, pieces: std::ops::Range<u32>) {
    want_each(fixture, session, [pieces.clone(), pieces]);
}

fn want_each(fixture: &mut Fixture, session: SessionId, pieces: [std::ops::Range<u32>; 2]) {
    let request = fixture.next();
    let bytes = pieces.map(|of| u64::from(of.start * PIECE)..u64::from(of.end * PIECE));
    let parts = (0..).zip(bytes).map(|(track, bytes)| Part { track, bytes }).collect();
    fixture.engine.request(fixture.now, MediaRequest { request, session, parts });
    fixture.drain();
}

#[test]
fn delivery_waits_until_all_start_up_pieces_are_in_memory() {
    let mut fixture = Fixture::new(config(2, 20));
    let viewer = fixture.admit(1).unwrap();
    fixture.want(viewer, 0..6);
    let mut delivered = Vec::new();
    for _ in 0..6 {
        fixture.read_all(ReadOutcome::Good);
        let in_memory = fixture.engine.status(fixture.now).buffers_used / u64::from(PIECE);
        delivered.push((in_memory, fixture.take_log("deliver").len()));
        fixture.now = fixture.engine.next_wakeup();
        fixture.engine.tick(fixture.now);
        fixture.drain();
    }
    // Six pieces are due before play-out may start; the socket takes two at once.
    assert!(delivered.iter().all(|(pieces, handed)| *handed == 0 || *pieces >= 6), "{delivered:?}");
    assert!(delivered.iter().any(|(_, handed)| *handed == 2), "{delivered:?}");
}

#[test]
fn a_contiguous_request_is_not_readmitted_and_a_seek_is() {
    let mut fixture = Fixture::new(config(8, 200));
    let viewer = fixture.admit(1).unwrap();
    let mut anew = Vec::new();
    for pieces in [0..2, 2..4, 4..6, 20..22, 22..24, 3..5, 5..6, 7..8, 7..8] {
        fixture.want(viewer, pieces.clone());
        fixture.pass(500);
        anew.extend(fixture.take_log("Readmitted").into_iter().map(|_| pieces.start));
    }
    assert_eq!(anew, [20, 3, 7, 7], "forward, back, one left out, the same again");
}

#[test]
fn a_session_starts_with_a_short_segment_in_the_last_read_of_a_long_one() {
    // Segments of 2 s: the one at 2 s begins in read 3 and ends in read 9, and the one at 4 s lies
    // wholly in read 9. So no read is due at 4 s.
    let due = (0..PIECES).map(|piece| match piece {
        0..4 => 0,
        4..10 => 2000,
        _ => (piece - 7) / 3 * 2000 + 4000,
    });
    let mut layout = Arc::into_inner(layout(1)).expect("made just now");
    layout.tracks[0].due = due.collect();
    let layout = Arc::new(layout);
    let mut fixture = Fixture::new(config(8, 200));
    let admit = |fixture: &mut Fixture, seconds| {
        let from = Duration::from_secs(seconds);
        let request = AdmitRequest { start: from, ..request(Arc::clone(&layout)) };
        let answer = fixture.engine.admit(fixture.now, request);
        fixture.drain();
        let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
        session
    };
    let earlier = admit(&mut fixture, 2);
    fixture.want(earlier, 9..10);
    assert_eq!(fixture.take_log("Readmitted").len(), 1, "admitted to start with the long segment");
    fixture.engine.close(fixture.now, earlier);
    fixture.drain();
    fixture.log.clear();
    let session = admit(&mut fixture, 4);
    fixture.want(session, 9..10);
    fixture.pass(3000);
    let log = fixture.take_log("");
    assert!(log.iter().any(|text| text == "complete 2"), "{log:?}");
    assert!(log.iter().all(|text| !text.starts_with("Readmitted")), "{log:?}");
    fixture.want(session, 12..13);
    assert_eq!(fixture.take_log("Readmitted").len(), 1, "any other segment is a seek");
}

#[test]
fn a_seek_of_two_tracks_is_granted_or_refused_whole() {
    let mut fixture = Fixture::new(config(8, 1000));
    let viewer = admit_two_tracks(&mut fixture);
    want_both(&mut fixture, viewer, 0..1);
    fixture.pass(500);
    fixture.log.clear();
    want_both(&mut fixture, viewer, 20..21);
    let granted = fixture.take_log("Readmitted");
    assert_eq!(granted.len(), 1, "{granted:?}");
    assert!(granted[0].contains("tracks: [0, 1]"), "{granted:?}");
    fixture.pass(500);
    // A disk that does one read a slot has no room for another start.
    let slow = DiskGuarantee { min_read: 1, ..config(1, 0).disks[0] };
    fixture.engine.set_guarantee(fixture.now, DiskNumber(0), slow);
    fixture.drain();
    let before = fixture.engine.status(fixture.now);
    fixture.log.clear();
    want_both(&mut fixture, viewer, 5..6);
    let said = fixture.take_log("");
    assert!(said.iter().any(|text| text.starts_with("refused")), "{said:?}");
    assert!(said.iter().all(|text| !text.starts_with("Readmitted")), "{said:?}");
    let after = fixture.engine.status(fixture.now);
    assert_eq!(after.disks[0].slack_reads, before.disks[0].slack_reads, "nothing has moved");
    assert_eq!(after.active, before.active);
    want_both(&mut fixture, viewer, 21..22);
    fixture.pass(500);
    assert_eq!(fixture.take_log("refused").len(), 0, "and it goes on where it was");
}

#[test]
fn a_refused_seek_leaves_the_places_at_which_the_player_continues() {
    let mut fixture = Fixture::new(config(8, 1000));
    let viewer = admit_two_tracks(&mut fixture);
    want_both(&mut fixture, viewer, 0..2);
    fixture.pass(500);
    // A disk that does one read a slot has no room for another start.
    let slow = DiskGuarantee { min_read: 1, ..config(1, 0).disks[0] };
    fixture.engine.set_guarantee(fixture.now, DiskNumber(0), slow);
    fixture.drain();
    fixture.log.clear();
    want_both(&mut fixture, viewer, 1..2);
    assert_eq!(fixture.take_log("refused").len(), 1, "a part of the first request again");
    want_both(&mut fixture, viewer, 2..3);
    let said = fixture.take_log("");
    let continues =
        said.iter().all(|text| !text.starts_with("refused") && !text.starts_with("Readmitted"));
    assert!(continues, "both requests end here, and only one was accepted: {said:?}");
}

#[test]
fn a_track_that_seeks_and_one_whose_data_was_released_are_readmitted_together() {
    let mut fixture = Fixture::new(config(8, 1000));
    let viewer = admit_two_tracks(&mut fixture);
    want_both(&mut fixture, viewer, 0..2);
    // Long enough for piece 2 to be released, and not for the reservation.
    fixture.pass(6000);
    while fixture.engine.evict_oldest().is_some() {}
    assert_eq!(fixture.take_log("Released"), Vec::<String>::new());
    want_each(&mut fixture, viewer, [2..3, 20..21]);
    let anew = fixture.take_log("Readmitted");
    assert!(anew.len() == 1 && anew[0].contains("tracks: [0, 1]"), "{anew:?}");
}

#[test]
fn two_requests_for_two_renditions_are_served_beside_each_other_where_both_fit() {
    // (reads in a slot, whether both fit)
    for (min_read, both_fit) in [(2, false), (4, true)] {
        let mut fixture = Fixture::new(config(min_read, 30));
        let request = AdmitRequest { offers: vec![vec![0], vec![1]], ..request(two_tracks(1)) };
        let answer = fixture.engine.admit(fixture.now, request);
        let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
        let older = want_of(&mut fixture, session, 0, 0..20);
        let younger = want_of(&mut fixture, session, 1, 0..2);
        fixture.pass(12_000);
        let said = fixture.take_log("");
        let end = if both_fit { "complete" } else { "declined" };
        let has = |text: String| said.iter().any(|said| said.starts_with(&text));
        assert!(has(format!("{end} {}", older.0)), "{min_read}, the older: {said:?}");
        assert!(has(format!("complete {}", younger.0)), "{min_read}, the younger: {said:?}");
        // Who falls silent in one leaves it.
        assert!(has("Released { track: 1 }".to_owned()), "{said:?}");
    }
}

// As FFmpeg does: the next segment is asked for before this one is read. A response is made of
// several requests.
#[test]
fn a_response_whose_socket_takes_nothing_does_not_hold_up_an_older_one() {
    for buffers in [100, 11] {
        let mut fixture = Fixture::new(config(8, buffers));
        let viewer = fixture.admit(1).unwrap();
        let first = fixture.next();
        let ends = Arc::from([(0, u64::from(20 * PIECE))]);
        let place = ResponsePlace { before: None, ends };
        fixture.want_for(viewer, first, place.clone(), 0..10);
        let younger = fixture.want(viewer, 20..40);
        let (mut second, mut stuck) = (None, 0);
        let mut said = Vec::new();
        for _ in 0..60 {
            fixture.read_all(ReadOutcome::Good);
            said.extend(fixture.take_log(""));
            if second.is_none() && said.contains(&format!("complete {}", first.0)) {
                let request = fixture.next();
                let place = ResponsePlace { before: Some(first), ..place.clone() };
                fixture.want_for(viewer, request, place, 10..20);
                second = Some(request);
            }
            for (request, read) in std::mem::take(&mut fixture.unsent) {
                match request == younger {
                    true => stuck += 1,
                    false => fixture.engine.sent(fixture.now, request, read),
                }
            }
            fixture.now = fixture.engine.next_wakeup();
            fixture.engine.tick(fixture.now);
            fixture.drain();
        }
        said.extend(fixture.take_log(""));
        let second = second.unwrap_or_else(|| panic!("{buffers}: {said:?}"));
        assert!(said.contains(&format!("complete {}", second.0)), "{buffers}: {said:?}");
        assert!(stuck > 0, "{buffers}: then the younger gets its bytes: {said:?}");
        let sought = said.iter().filter(|text| text.starts_with("Readmitted")).count();
        assert_eq!(sought, 0, "{buffers}: nobody has sought: {said:?}");
    }
}

#[test]
fn a_response_that_is_broken_off_between_two_requests_continues_there() {
    for (from, continues) in [(10, true), (20, false)] {
        let mut fixture = Fixture::new(config(8, 100));
        let viewer = fixture.admit(1).unwrap();
        let first = fixture.next();
        let ends = Arc::from([(0, u64::from(20 * PIECE))]);
        fixture.want_for(viewer, first, ResponsePlace { before: None, ends }, 0..10);
        while fixture.take_log("complete").is_empty() {
            fixture.read_all(ReadOutcome::Good);
            let last = fixture.unsent.split_off(fixture.unsent.len().min(1));
            for (request, read) in std::mem::replace(&mut fixture.unsent, last) {
                fixture.engine.sent(fixture.now, request, read);
                fixture.drain();
            }
            fixture.now = fixture.engine.next_wakeup();
            fixture.engine.tick(fixture.now);
            fixture.drain();
        }
        assert!(!fixture.unsent.is_empty(), "its socket holds something");
        fixture.engine.cancel(fixture.now, first);
        fixture.unsent.clear();
        fixture.drain();
        fixture.take_log("");
        fixture.want(viewer, from..from + 5);
        let sought = fixture.take_log("Readmitted").len();
        assert_eq!(sought == 0, continues, "from piece {from}");
    }
}

#[test]
fn two_requests_far_apart_do_not_take_the_schedule_from_each_other_for_ever() {
    let mut fixture = Fixture::new(config(2, 30));
    let viewer = fixture.admit(1).unwrap();
    let first = fixture.want(viewer, 0..20);
    let second = fixture.want(viewer, 30..31);
    fixture.pass(5000);
    let said = fixture.take_log("");
    let granted = said.iter().filter(|text| text.starts_with("Readmitted")).count();
    assert_eq!(granted, 1, "the younger request seeks: {said:?}");
    let told = format!("declined {} Superseded", first.0);
    assert!(said.contains(&told), "the older is told: {said:?}");
    assert!(said.contains(&format!("complete {}", second.0)), "the younger is served: {said:?}");
    assert_eq!(
        fixture.engine.status(fixture.now).counters.refused.of_resource(Resource::Disk),
        0,
        "there was room"
    );
}

#[test]
fn the_limit_of_open_requests_is_per_session() {
    let mut fixture = Fixture::new(config(4, 100));
    let (busy, other) = (fixture.admit(1).unwrap(), fixture.admit(2).unwrap());
    for piece in 0..17 {
        fixture.want(busy, piece..piece + 1);
    }
    fixture.want(other, 0..1);
    assert_eq!(fixture.take_log("declined"), ["declined 17 TooManyRequests { most: 16 }"]);
    fixture.pass(5000);
    fixture.want(busy, 16..17);
    assert_eq!(fixture.take_log("declined").len(), 0, "they are served, so there is room again");
    assert_eq!(
        fixture.engine.status(fixture.now).counters.refused.of_resource(Resource::Memory),
        0
    );
}

#[test]
fn a_seek_waits_for_a_start_within_the_start_up_time_or_is_refused_with_a_time() {
    // Six reads to start within four slots, one in each after: two reads a slot carry one start.
    let mut fixture = Fixture::new(config(2, 1000));
    let viewer = fixture.admit(1).unwrap();
    fixture.want(viewer, 0..1);
    fixture.pass(1000);
    let mut waits = Vec::new();
    for (title, piece) in [(2, 10), (3, 15), (4, 20), (5, 25)] {
        let _there_may_be_no_room = fixture.admit(title);
        fixture.log.clear();
        fixture.want(viewer, piece..piece + 1);
        let said = fixture.take_log("");
        waits.extend(said.into_iter().filter(|text| {
            text.starts_with("Readmitted") && !text.contains("wait: 0ns")
                || text.starts_with("refused")
        }));
    }
    assert!(!waits.is_empty(), "a fixture that is nearly full makes some wait");
    fixture.pass(3000);
    assert_eq!(
        fixture.engine.status(fixture.now).counters.deadline_misses,
        0,
        "and nobody pays for it"
    );
}

#[test]
fn a_seek_that_is_granted_for_later_gets_nothing_before_then() {
    let mut fixture = Fixture::new(config(2, 1000));
    let viewer = fixture.admit(1).unwrap();
    // All that it needs to start with again is in memory before it seeks back.
    fixture.want(viewer, 0..12);
    fixture.pass(6000);
    fixture.want(viewer, 30..31);
    fixture.pass(2000);
    let _newcomer = fixture.admit(2).unwrap();
    fixture.pass(1000);
    fixture.log.clear();
    fixture.want(viewer, 0..12);
    let said = fixture.take_log("");
    // The newcomer still has to start, so this one waits.
    let granted = "Readmitted { request: RequestId(3), tracks: [0], wait: 500ms } for 1";
    assert!(said.iter().any(|text| text == granted), "{said:?}");
    assert!(!said.iter().any(|text| text.starts_with("deliver")), "{said:?}");
    fixture.pass(499);
    assert_eq!(fixture.take_log("deliver"), [""; 0]);
    fixture.pass(1);
    assert_ne!(fixture.take_log("deliver"), [""; 0], "at its time it gets what is in memory");
}

/// A title in two renditions: track 0 has a piece for every 500 ms, track 1 one for every 2 s.
fn ladder(title: u64) -> Arc<Layout> {
    let mut layout = Arc::into_inner(layout(title)).expect("made just now");
    let pieces = PIECES / 4;
    let second = u64::from(PIECES * PIECE)..u64::from((PIECES + pieces) * PIECE);
    let due = (0..pieces).map(|piece| piece * 2000).collect();
    layout.tracks.push(TrackLayout { runs: vec![second], due, ..track(pieces) });
    Arc::new(layout)
}

fn want_of(
    fixture: &mut Fixture,
    session: SessionId,
    track: u16,
    pieces: std::ops::Range<u32>,
) -> RequestId {
    let request = fixture.next();
    let bytes = u64::from(pieces.start * PIECE)..u64::from(pieces.end * PIECE);
    let parts = vec![Part { track, bytes }];
    fixture.engine.request(fixture.now, MediaRequest { request, session, parts });
    fixture.drain();
    request
}

/// A disk with as many viewers as it holds; the first has a title in two renditions, and plays
/// `track` of it. Then the disk guarantees less than that, and is behind.
fn ladder_on_a_slow_disk(track: u16) -> (Fixture, SessionId) {
    let mut fixture = Fixture::new(config(6, 1000));
    let offers = if track == 0 { vec![vec![0], vec![1]] } else { vec![vec![1], vec![0]] };
    let request = AdmitRequest { offers, ..request(ladder(1)) };
    let answer = fixture.engine.admit(fixture.now, request);
    let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
    let mut title = 2;
    while fixture.admit(title).is_ok() {
        title += 1;
    }
    let first = if track == 0 { 0..4 } else { 0..1 };
    want_of(&mut fixture, session, track, first);
    (0..4).for_each(|_| fixture.slot_with(6));
    let slow = DiskGuarantee { min_read: 1, ..config(1, 0).disks[0] };
    fixture.engine.set_guarantee(fixture.now, DiskNumber(0), slow);
    fixture.drain();
    fixture.log.clear();
    (fixture, session)
}

#[test]
fn a_switch_to_a_smaller_rendition_is_never_refused_for_lack_of_room() {
    let (mut fixture, session) = ladder_on_a_slow_disk(0);
    assert!(fixture.admit(99).is_err(), "there is no room for anybody");
    // A seek is not accepted in this way: its data would come when it is played to there.
    want_of(&mut fixture, session, 0, 30..31);
    assert_eq!(fixture.take_log("refused").len(), 1);
    want_of(&mut fixture, session, 1, 1..2);
    let said = fixture.take_log("");
    assert!(said.iter().any(|text| text.starts_with("Readmitted")), "{said:?}");
    assert!(said.iter().any(|text| text.starts_with("Released { track: 0 }")), "{said:?}");
    want_of(&mut fixture, session, 1, 2..3);
    assert_eq!(fixture.take_log("Readmitted"), [""; 0], "it goes on");
    fixture.pass(20_000);
    assert_eq!(fixture.take_log("complete").len(), 2);
}

#[test]
fn a_switch_to_a_larger_rendition_that_does_not_fit_leaves_the_smaller_one() {
    let (mut fixture, session) = ladder_on_a_slow_disk(1);
    want_of(&mut fixture, session, 0, 4..8);
    assert_eq!(fixture.take_log("refused").len(), 1);
    want_of(&mut fixture, session, 1, 1..2);
    let said = fixture.take_log("");
    let goes_on = |text: &String| !text.starts_with("Readmitted") && !text.starts_with("refused");
    assert!(said.iter().all(goes_on), "{said:?}");
}
