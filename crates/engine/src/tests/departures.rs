//! Viewers who go: their places are for those who come, and theirs again if they come back first.

use super::*;
use std::collections::BTreeMap;

/// Memory for one viewer, who plays.
fn full_house() -> (Fixture, SessionId) {
    let mut fixture = Fixture::new(config(50, 10));
    let viewer = fixture.admit(1).unwrap();
    for piece in 0..6 {
        fixture.want(viewer, piece..piece + 1);
        fixture.pass(500);
    }
    assert!(fixture.admit(2).is_err(), "the house is full");
    fixture.log.clear();
    (fixture, viewer)
}

impl Fixture {
    fn disconnect(&mut self, session: SessionId, how: Disconnection) {
        self.engine.disconnected(self.now, session, how);
        self.drain();
    }

    fn connect(&mut self, session: SessionId) {
        self.engine.connected(session);
        self.drain();
    }

    fn revocable(&self) -> u64 {
        self.engine.status(self.now).revocable
    }
}

#[test]
fn the_place_of_a_viewer_who_has_left_is_the_next_newcomers() {
    let (mut fixture, viewer) = full_house();
    assert_eq!(fixture.revocable(), 0);
    assert_eq!(fixture.engine.viewers(fixture.now), BTreeMap::from([(TitleKey(1), 1)]));
    fixture.disconnect(viewer, Disconnection::Left);
    assert_eq!(fixture.revocable(), 1);
    assert!(fixture.engine.viewers(fixture.now).is_empty(), "for all that is known, it has gone");
    fixture.pass(500);
    assert_eq!(fixture.engine.status(fixture.now).active, 1, "kept while nobody needs it");
    let newcomer = fixture.admit(2).expect("there is a place");
    assert_eq!(fixture.take_log("Released"), ["Released { track: 0 } for 1"]);
    fixture.want(newcomer, 0..1);
    // The one that left comes back: it is evaluated anew, and there is no room.
    fixture.connect(viewer);
    let request = fixture.want(viewer, 6..7);
    assert_eq!(fixture.take_log("refused"), [format!("refused {} Memory", request.0)]);
    let status = fixture.engine.status(fixture.now);
    assert_eq!((status.counters.revoked, status.counters.deadline_misses), (1, 0));
}

#[test]
fn a_viewer_who_comes_back_first_finds_its_place_as_it_was() {
    let (mut fixture, viewer) = full_house();
    fixture.disconnect(viewer, Disconnection::Left);
    fixture.pass(500);
    fixture.connect(viewer);
    assert!(fixture.admit(2).is_err());
    for piece in 6..12 {
        fixture.want(viewer, piece..piece + 1);
        fixture.pass(500);
    }
    let said = fixture.take_log("");
    let decided = |text: &&String| text.contains("Readmitted") || text.contains("refused");
    assert_eq!(said.iter().find(decided), None, "no evaluation, and no gap");
}

#[test]
fn an_open_connection_or_request_keeps_a_place() {
    let (mut fixture, viewer) = full_house();
    // Longer than the whole of the clock's grace, and shorter than the time-out of a silent viewer.
    fixture.pass(3000);
    assert_eq!((fixture.revocable(), fixture.admit(2).is_err()), (0, true));
    fixture.disconnect(viewer, Disconnection::Unclear);
    assert_eq!(fixture.revocable(), 1, "it should have fetched long ago");
    fixture.connect(viewer);
    fixture.want(viewer, 6..30);
    fixture.disconnect(viewer, Disconnection::Unclear);
    assert_eq!((fixture.revocable(), fixture.admit(2).is_err()), (0, true));
}

#[test]
fn a_viewer_who_has_left_and_still_asks_does_not_give_way_to_itself() {
    let mut refused = 0;
    // With some of these, a second viewer fits once the first one plays, and no seek beside it.
    for buffers in 11..20 {
        let mut fixture = Fixture::new(config(50, buffers));
        let viewer = fixture.admit(1).unwrap();
        for piece in 0..8 {
            fixture.want(viewer, piece..piece + 1);
            fixture.pass(500);
        }
        if let Ok(second) = fixture.admit(2) {
            fixture.want(second, 0..1);
        }
        fixture.log.clear();
        // Its side of the connection is closed, and it asks for another place.
        fixture.disconnect(viewer, Disconnection::Left);
        fixture.want(viewer, 30..31);
        refused += fixture.take_log("refused").len();
    }
    assert!(refused > 0, "each seek fits");
}

#[test]
fn a_player_without_a_connection_keeps_its_place_until_it_should_have_fetched_again() {
    let mut fixture = Fixture::new(config(4, 1000));
    let viewer = fixture.admit(1).unwrap();
    fixture.want(viewer, 0..8);
    fixture.pass(1000);
    fixture.disconnect(viewer, Disconnection::Unclear);
    // Piece 8 must be in memory at 3.5 s, is shown at 4 s, and fetched by 4.5 s.
    fixture.pass(3000);
    assert_eq!((fixture.now, fixture.revocable()), (Moment::from_secs(4), 0));
    fixture.pass(500);
    assert_eq!(fixture.revocable(), 1);
}

#[test]
fn those_who_never_play_give_way_after_the_start_up_time() {
    let mut fixture = Fixture::new(config(50, 10));
    let ghost = fixture.admit(1).unwrap();
    assert!(fixture.admit(2).is_err(), "it may still be about to play");
    fixture.pass(2000);
    fixture.admit(2).expect("it has not begun to play");
    assert_eq!(fixture.take_log("Released"), [format!("Released {{ track: 0 }} for {}", ghost.0)]);
}

#[test]
fn a_byte_every_ten_seconds_holds_no_place() {
    let timeouts = EngineConfig {
        idle_timeout: Duration::from_secs(30),
        session_timeout: Duration::from_secs(120),
        ..config(50, 10)
    };
    let mut fixture = Fixture::new(timeouts);
    let holder = fixture.admit(1).unwrap();
    let mut seconds = 0;
    while fixture.admit(2).is_err() {
        let request = fixture.next();
        let parts = vec![Part { track: 0, bytes: 0..1 }];
        fixture.engine.request(fixture.now, MediaRequest { request, session: holder, parts });
        fixture.pass(10_000);
        seconds += 10;
        assert!(seconds < 300, "the place is held for ever");
    }
    assert_eq!(seconds, 30, "as long as a silent viewer keeps its place");
    // One who plays keeps it.
    let (mut fixture, viewer) = full_house();
    for piece in (6..PIECES).step_by(2) {
        fixture.want(viewer, piece..piece + 2);
        fixture.pass(1000);
        assert_eq!(fixture.revocable(), 0);
    }
}

#[test]
fn thousands_of_ghosts_keep_nobody_out() {
    let mut fixture = Fixture::new(config(50, 10));
    for ghost in 0..2000 {
        // Each is gone before the next comes.
        if let Ok(session) = fixture.admit(ghost) {
            fixture.engine.disconnected(fixture.now, session, Disconnection::Left);
        }
    }
    let viewer = fixture.admit(3000).expect("the last ghost gives way");
    fixture.want(viewer, 0..1);
    assert!(fixture.admit(3001).is_err(), "and those who play do not");
}

#[test]
fn when_all_have_left_as_many_are_admitted_as_by_an_empty_server() {
    // Two seconds of newcomers, more than fit.
    let crowd = |fixture: &mut Fixture| {
        let mut admitted = 0;
        for newcomer in 0..32 {
            admitted += usize::from(fixture.admit(100 + newcomer).is_ok());
            if newcomer % 8 == 7 {
                fixture.pass(500);
            }
        }
        assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
        admitted
    };
    let mut fixture = Fixture::new(config(12, 400));
    let (mut viewers, mut refused, mut title) = (Vec::new(), 0, 0);
    while refused < 4 {
        title += 1;
        match fixture.admit(title) {
            Ok(viewer) => {
                fixture.want(viewer, 0..4);
                viewers.push(viewer);
                refused = 0;
            }
            Err(_) => refused += 1,
        }
        if title % 4 == 0 {
            fixture.pass(500);
        }
    }
    for viewer in &viewers {
        fixture.disconnect(*viewer, Disconnection::Left);
    }
    let (again, empty) = (crowd(&mut fixture), crowd(&mut Fixture::new(config(12, 400))));
    assert!(again >= empty && empty >= 6, "{again} of {empty}, after {}", viewers.len());
}

#[test]
fn a_newcomer_takes_the_reads_of_a_whole_audience_that_has_gone() {
    let mut fixture = Fixture::new(config(2, 100));
    let audience: Vec<SessionId> = (0..4).map(|_| fixture.admit(1).unwrap()).collect();
    assert_eq!(fixture.engine.status(fixture.now).following, 4);
    assert!(fixture.admit(2).is_err(), "the disk is full");
    for (gone, viewer) in audience.iter().enumerate() {
        assert!(fixture.admit(2).is_err(), "{gone} have gone, and the others need all reads");
        fixture.disconnect(*viewer, Disconnection::Left);
    }
    let newcomer = fixture.admit(2).unwrap();
    for piece in 0..PIECES {
        fixture.want(newcomer, piece..piece + 1);
        fixture.pass(500);
    }
    fixture.engine.close(fixture.now, newcomer);
    fixture.drain();
    let ended = format!("ended {} 40 on time 0 late", newcomer.0);
    assert!(fixture.take_log("ended").contains(&ended));
}

#[test]
fn a_request_that_is_refused_leaves_the_feed_of_those_who_have_gone() {
    // A read in a slot is left, and a newcomer needs two at its start.
    let mut fixture = Fixture::new(config(2, 100));
    let audience: Vec<SessionId> = (0..2).map(|_| fixture.admit(1).unwrap()).collect();
    fixture.pass(2000);
    fixture.admit(2).unwrap();
    let booked = |fixture: &Fixture| {
        let books = &fixture.engine.streams.bookings.disks[0].dispatcher.books;
        (books.unread(), books.held(), books.reserved())
    };
    let before = booked(&fixture);
    audience.iter().for_each(|viewer| fixture.disconnect(*viewer, Disconnection::Left));
    assert!(fixture.admit(3).is_err());
    assert_eq!(booked(&fixture), before);
    assert_eq!(fixture.engine.status(fixture.now).following, 2);
}

#[test]
fn memory_is_kept_for_no_longer_than_those_who_are_left_need_it() {
    let mut fixture = Fixture::new(config(4, 200));
    let near: Vec<SessionId> = (0..2).map(|_| fixture.admit(1).unwrap()).collect();
    for piece in 0..8 {
        near.iter().for_each(|viewer| {
            fixture.want(*viewer, piece..piece + 1);
        });
        fixture.pass(500);
    }
    let booked_slots = |fixture: &Fixture| {
        fixture.engine.streams.bookings.disks[0].dispatcher.books.ahead_of_now().len()
    };
    let before = booked_slots(&fixture);
    let far = fixture.admit(1).unwrap();
    assert_eq!(fixture.engine.status(fixture.now).following, 3);
    assert_eq!(booked_slots(&fixture), before + 8);
    fixture.engine.close(fixture.now, far);
    fixture.drain();
    assert_eq!(booked_slots(&fixture), before);
    for piece in 8..PIECES {
        near.iter().for_each(|viewer| {
            fixture.want(*viewer, piece..piece + 1);
        });
        fixture.pass(500);
    }
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
}
