//! Winding: a session goes on with a track of key frames alone, and back.

use super::*;

/// A title like the one of all others, with one piece of `of` as key frames due `each` ms apart.
fn with_key_frames(title: u64, of: usize, each: u32) -> Arc<Layout> {
    let mut layout = Arc::into_inner(layout(title)).expect("made just now");
    let stored: Vec<u32> = (0..PIECES).step_by(of).collect();
    let frames = u32::try_from(stored.len()).expect("few");
    let due = (0..frames).map(|number| number * each).collect();
    let runs = track(PIECES).runs;
    layout.tracks.push(TrackLayout { due, stored, key_frames_of: Some(0), runs, ..track(frames) });
    Arc::new(layout)
}

fn admit(fixture: &mut Fixture, layout: Arc<Layout>) -> SessionId {
    let answer = fixture.engine.admit(fixture.now, request(layout));
    fixture.drain();
    let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
    session
}

/// Requests a key frame.
fn wind(fixture: &mut Fixture, session: SessionId, frame: u32) {
    wind_to(fixture, session, u64::from(frame * PIECE)..u64::from((frame + 1) * PIECE));
}

/// Requests a key frame that is part of a piece.
fn wind_to(fixture: &mut Fixture, session: SessionId, bytes: std::ops::Range<u64>) {
    fixture.next_request += 1;
    let request = RequestId(fixture.next_request);
    fixture.engine.request(
        fixture.now,
        MediaRequest { request, session, parts: vec![Part { track: 1, bytes }] },
    );
    fixture.drain();
}

#[test]
fn key_frames_are_read_instead_of_the_pictures_and_the_pictures_again_afterwards() {
    // One stream fits, so the key frames fit only in place of the pictures.
    let mut fixture = Fixture::new(config(2, 40));
    let viewer = admit(&mut fixture, with_key_frames(1, 4, 500));
    assert!(fixture.admit(2).is_err(), "the disk is full");
    for piece in 0..4 {
        fixture.want(viewer, piece..piece + 1);
        fixture.pass(500);
    }
    fixture.log.clear();
    wind(&mut fixture, viewer, 1);
    let changes = |said: &[String], kind: &str| -> Vec<String> {
        said.iter().filter(|text| text.starts_with(kind)).cloned().collect()
    };
    let said = fixture.take_log("");
    let released = changes(&said, "Released");
    assert_eq!(released, [format!("Released {{ track: 0 }} for {}", viewer.0)], "{said:?}");
    assert!(changes(&said, "Readmitted")[0].contains("tracks: [1]"), "{said:?}");
    fixture.pass(2500);
    for frame in 2..5 {
        wind(&mut fixture, viewer, frame);
        fixture.pass(500);
    }
    let said = fixture.take_log("");
    assert!(changes(&said, "Readmitted").is_empty(), "frame after frame is no seek: {said:?}");
    assert_eq!(changes(&said, "complete").len(), 4, "{said:?}");
    let read = changes(&said, "read");
    let key = |text: &String| text["read 1:".len()..].parse::<u32>().is_ok_and(|at| at % 4 == 0);
    assert!(read.iter().all(key), "key frames alone are read: {read:?}");
    fixture.want(viewer, 16..17);
    let said = fixture.take_log("");
    let released = changes(&said, "Released");
    assert_eq!(released, [format!("Released {{ track: 1 }} for {}", viewer.0)], "{said:?}");
    assert!(changes(&said, "Readmitted")[0].contains("tracks: [0]"), "{said:?}");
    fixture.pass(2500);
    fixture.engine.close(fixture.now, viewer);
    fixture.drain();
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
    assert!(fixture.engine.is_empty(), "nothing is booked when all have left");
}

#[test]
fn a_viewer_who_winds_slower_or_faster_than_reserved_misses_nothing_and_harms_nobody() {
    for each_ms in [50, 1500] {
        let mut fixture = Fixture::new(config(8, 200));
        let viewer = admit(&mut fixture, with_key_frames(1, 4, 500));
        let other = fixture.admit(2).expect("two fit");
        fixture.want(viewer, 0..1);
        fixture.want(other, 0..1);
        fixture.pass(500);
        let (mut next, mut piece, mut passed) = (0, 1, 0);
        while next < 10 {
            wind(&mut fixture, viewer, next);
            next += 1;
            fixture.pass(each_ms);
            passed += each_ms;
            if passed >= 500 * u64::from(piece) && piece < PIECES {
                fixture.want(other, piece..piece + 1);
                piece += 1;
            }
        }
        fixture.pass(4000);
        let said = fixture.take_log("");
        let bad = ["refused", "failed", "declined"];
        assert!(!said.iter().any(|text| bad.iter().any(|b| text.starts_with(b))), "{said:?}");
        let misses = fixture.engine.status(fixture.now).counters.deadline_misses;
        assert_eq!(misses, 0, "{each_ms} ms a frame");
    }
}

#[test]
fn winding_that_does_not_fit_is_refused_and_the_pictures_go_on() {
    let mut fixture = Fixture::new(config(4, 200));
    // Forty key frames in a slot are more than the disk reads in all slots of a start-up.
    let viewer = admit(&mut fixture, with_key_frames(1, 1, 10));
    let other = fixture.admit(2).expect("two fit");
    for piece in 0..4 {
        fixture.want(viewer, piece..piece + 1);
        fixture.want(other, piece..piece + 1);
        fixture.pass(500);
    }
    // Nothing is read ahead for the others any more.
    while fixture.admit(3).is_ok() {}
    fixture.log.clear();
    wind(&mut fixture, viewer, 2);
    let said = fixture.take_log("");
    assert!(said.iter().any(|text| text.starts_with("refused")), "{said:?}");
    assert!(!said.iter().any(|text| text.starts_with("Readmitted")), "{said:?}");
    for piece in 4..12 {
        fixture.want(viewer, piece..piece + 1);
        fixture.want(other, piece..piece + 1);
        fixture.pass(500);
    }
    let said = fixture.take_log("");
    assert!(!said.iter().any(|text| text.starts_with("Readmitted")), "{said:?}");
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
}

#[test]
fn backwards_a_piece_is_read_once_for_all_its_key_frames() {
    // Four key frames in each piece, a piece due every 125 ms.
    let wound = |frames: &mut dyn Iterator<Item = u32>| -> (usize, usize) {
        let mut fixture = Fixture::new(config(12, 64));
        let viewer = admit(&mut fixture, with_key_frames(1, 1, 125));
        let other = fixture.admit(2).expect("two fit");
        let frame_size = u64::from(PIECE / 4);
        let (mut next, mut passed) = (0, 0);
        for frame in frames {
            let start = u64::from(frame) * frame_size;
            wind_to(&mut fixture, viewer, start..start + 1000);
            if passed % 500 < 32 && next < PIECES {
                fixture.want(other, next..next + 1);
                next += 1;
            }
            fixture.pass(32);
            passed += 32;
        }
        let said = fixture.take_log("");
        assert!(!said.iter().any(|text| text.starts_with("refused")), "{said:?}");
        assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
        let count = |kind: &str| said.iter().filter(|text| text.starts_with(kind)).count();
        (count("read 1:"), count("Readmitted"))
    };
    let frames = PIECES * 4;
    let (forwards, seeks) = wound(&mut (0..frames));
    let (backwards, back_seeks) = wound(&mut (0..frames).rev());
    assert_eq!(seeks, 1, "forwards");
    assert!(back_seeks <= PIECES as usize, "one for each piece at most: {back_seeks}");
    let most = forwards + forwards / 10;
    assert!(backwards <= most, "{backwards} reads backwards, {forwards} forwards");
}
