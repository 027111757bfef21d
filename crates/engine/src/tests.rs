//! The engine, driven by hand: inputs as calls, outputs compared as text.
//!
//! The fixture: slots of 500 ms, pieces of 4 KiB, titles of 20 s with one piece due every 500 ms.
//! A viewer needs one read per slot, and six in the first three to start within 2 s.

mod best_effort;
mod departures;
mod drain;
mod extension;
mod fills;
mod handover;
mod headroom;
mod history;
mod losses;
mod memory;
mod overload;
mod preemption;
mod progress;
mod refusals;
mod resident;
mod seeks;
mod sharing;
mod views;
mod winding;

use super::*;
use scheduler::{Lead, PolicyKind};
use std::sync::{Arc, OnceLock};
use units::{BitRate, ByteCount};

const PIECE: u32 = 4096;
const PIECES: u32 = 40;

impl Engine {
    /// A disk is no more, as after failures in a row.
    fn fail_disk(&mut self, now: Moment, disk: DiskNumber) {
        self.input(now, |engine| {
            if let Some(disk) = engine.streams.bookings.disk_index(disk) {
                engine.lose_disk_once(now, disk);
            }
        });
    }
}

struct Fixture {
    engine: Engine,
    now: Moment,
    reads: Vec<ReadId>,
    unsent: Vec<(RequestId, ReadId)>,
    log: Vec<String>,
    next_request: u64,
}

fn config(min_read: u32, buffers: u64) -> EngineConfig {
    EngineConfig {
        slot: Duration::from_millis(500),
        policy: PolicyKind::VbrSim,
        startup: Duration::from_secs(2),
        buffers: ByteCount(buffers * u64::from(PIECE)),
        network: None,
        reservation_hold: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(5),
        session_timeout: Duration::from_secs(30),
        survive_loss: false,
        fills: 0,
        disks: vec![DiskGuarantee {
            min_read,
            read_size: ByteCount(u64::from(PIECE)),
            longest_read: Duration::from_millis(100),
            queue_depth: 1,
        }],
    }
}

fn track(pieces: u32) -> TrackLayout {
    TrackLayout {
        bytes: u64::from(pieces * PIECE),
        piece: PIECE,
        lead: Lead::default(),
        runs: std::iter::once(0..u64::from(pieces * PIECE)).collect(),
        due: (0..pieces).map(|piece| piece * 500).collect(),
        stored: Vec::new(),
        key_frames_of: None,
        times: OnceLock::new(),
    }
}

fn layout(title: u64) -> Arc<Layout> {
    Arc::new(Layout {
        title: TitleKey(title),
        disk: DiskNumber(0),
        duration: Duration::from_secs(20),
        tracks: vec![track(PIECES)],
    })
}

fn request(layout: Arc<Layout>) -> AdmitRequest {
    AdmitRequest {
        layout,
        copies: vec![],
        offers: vec![vec![0]],
        start: Duration::ZERO,
        max_wait: MaxWait::default(),
        replaces: None,
        fill: None,
        priority: Priority::default(),
    }
}

/// A wait that the viewer has chosen.
fn chosen_wait(seconds: u64) -> MaxWait {
    MaxWait { time: Duration::from_secs(seconds), is_chosen: true, ..MaxWait::default() }
}

impl Fixture {
    fn new(config: EngineConfig) -> Self {
        Self {
            engine: Engine::new(config),
            now: Moment::ZERO,
            reads: Vec::new(),
            unsent: Vec::new(),
            log: Vec::new(),
            next_request: 0,
        }
    }

    fn admit(&mut self, title: u64) -> Result<SessionId, Refusal> {
        let answer = self.engine.admit(self.now, request(layout(title)));
        self.drain();
        match answer {
            AdmissionDecision::Admitted { session, .. } => Ok(session),
            AdmissionDecision::Refused(refusal) => Err(refusal),
        }
    }

    fn next(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId(self.next_request)
    }

    fn want(&mut self, session: SessionId, pieces: std::ops::Range<u32>) -> RequestId {
        let request = self.next();
        self.want_for(session, request, ResponsePlace::default(), pieces);
        request
    }

    fn want_for(
        &mut self,
        session: SessionId,
        request: RequestId,
        place: ResponsePlace,
        pieces: std::ops::Range<u32>,
    ) {
        let bytes = u64::from(pieces.start * PIECE)..u64::from(pieces.end * PIECE);
        let parts = vec![Part { track: 0, bytes }];
        self.engine.request_for(self.now, place, MediaRequest { request, session, parts });
        self.drain();
    }

    /// Time passes: reads end within their slot, sockets take what they are given.
    fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.read_all(ReadOutcome::Good);
            self.send_all();
            self.now = self.engine.next_wakeup().min(end);
            self.engine.tick(self.now);
            self.drain();
        }
    }

    fn read_all(&mut self, outcome: ReadOutcome) {
        while !self.reads.is_empty() {
            let read = self.reads.remove(0);
            self.engine.read_done(self.now, read, outcome);
            self.drain();
        }
    }

    fn send_all(&mut self) {
        while !self.unsent.is_empty() {
            let (request, read) = self.unsent.remove(0);
            self.engine.sent(self.now, request, read);
            self.drain();
        }
    }

    fn drain(&mut self) {
        for action in self.engine.take_actions() {
            let text = match &action {
                Action::Read { read, title, start, .. } => {
                    self.reads.push(*read);
                    format!("read {}:{}", title.0, start / u64::from(PIECE))
                }
                Action::Deliver { request, read, bytes } => {
                    self.unsent.push((*request, *read));
                    format!("deliver {} {}", request.0, bytes.end - bytes.start)
                }
                Action::Complete { request } => format!("complete {}", request.0),
                Action::Forget { .. } => "forget".to_owned(),
                Action::Refused { request, refusal } => {
                    format!("refused {} {:?}", request.0, refusal.resource.expect("one is short"))
                }
                Action::Declined { request, why } => format!("declined {} {why:?}", request.0),
                Action::Failed { request, outcome } => format!("failed {} {outcome:?}", request.0),
                Action::Ended { session, summary } => {
                    format!(
                        "ended {} {} on time {} late",
                        session.0, summary.deadlines_met, summary.deadline_misses
                    )
                }
                Action::DiskLost { disk, moved, ended } => {
                    format!("lost {}: {moved} moved, {ended} ended", disk.0)
                }
                Action::DiskBack { disk } => format!("back {}", disk.0),
                Action::Granted { permit } => format!("granted {}", permit.0),
                Action::TitleIdle { title } => format!("idle {}", title.0),
                Action::Rescheduled { session, change } => format!("{change:?} for {}", session.0),
            };
            self.log.push(text);
        }
        self.engine.audit().expect("the books agree after every event");
    }

    /// What was said since the last time, all of a kind together.
    fn take_log(&mut self, kind: &str) -> Vec<String> {
        let said = std::mem::take(&mut self.log);
        said.into_iter().filter(|text| text.starts_with(kind)).collect()
    }
}

#[test]
fn a_viewer_gets_all_requested_bytes_on_time() {
    let mut fixture = Fixture::new(config(2, 20));
    let viewer = fixture.admit(1).unwrap();
    fixture.want(viewer, 0..2);
    fixture.pass(0);
    assert_eq!(fixture.take_log(""), ["read 1:0"], "the disk is free: at once, one at a time");
    fixture.pass(500);
    fixture.pass(500);
    let said = fixture.take_log("");
    let served: Vec<_> = said.iter().filter(|text| !text.starts_with("read")).collect();
    assert_eq!(served, ["deliver 1 4096", "deliver 1 4096", "complete 1"], "{said:?}");
    for piece in 2..PIECES {
        fixture.want(viewer, piece..piece + 1);
        fixture.pass(500);
    }
    fixture.log.clear();
    fixture.engine.close(fixture.now, viewer);
    fixture.drain();
    assert_eq!(fixture.take_log("ended"), ["ended 1 40 on time 0 late"]);
    assert!(fixture.engine.is_empty(), "nothing is booked when all have left");
}

#[test]
fn two_viewers_of_a_title_share_its_reads() {
    let mut fixture = Fixture::new(config(4, 100));
    let viewers = [fixture.admit(1).unwrap(), fixture.admit(1).unwrap()];
    for piece in 0..PIECES {
        viewers.iter().for_each(|viewer| {
            fixture.want(*viewer, piece..piece + 1);
        });
        fixture.pass(500);
    }
    assert_eq!(fixture.take_log("read").len(), PIECES as usize, "each piece is read once");
    assert_eq!(fixture.engine.status(fixture.now).counters.shared_reads, u64::from(PIECES));
}

#[test]
fn a_refusal_names_the_short_resource_and_the_time_to_try_again() {
    let mut fixture = Fixture::new(config(4, 1000));
    fixture.now = Moment::from_secs(100);
    let viewers: Vec<SessionId> = (0..2).map(|title| fixture.admit(title).unwrap()).collect();
    let refusal = fixture.admit(9).unwrap_err();
    assert_eq!(refusal.resource, Some(Resource::Disk));
    assert_eq!(refusal.cause, RefusalCause::Sessions);
    let retry = refusal.retry.after().expect("a time");
    assert!(retry < Duration::from_secs(20), "{refusal:?}");
    // As was said: nobody leaves, but what is booked has been read by then.
    for piece in 0..PIECES {
        viewers.iter().for_each(|viewer| {
            fixture.want(*viewer, piece..piece + 1);
        });
        fixture.pass(500);
        if fixture.now >= Moment::from_secs(100) + retry {
            break;
        }
    }
    assert!(fixture.admit(9).is_ok());
}

#[test]
fn requests_are_refused_for_memory_and_for_the_network() {
    let mut fixture = Fixture::new(config(50, 10));
    let admitted = (0..9).map_while(|title| fixture.admit(title).ok()).count();
    assert_eq!(admitted, 1, "two for its socket, eight for its schedule");
    assert_eq!(fixture.admit(9).unwrap_err().resource, Some(Resource::Memory));

    let network = Some(BitRate(u64::from(PIECE) * 8 * 2 * 3));
    let mut fixture = Fixture::new(EngineConfig { network, ..config(50, 10_000) });
    let admitted = (0..9).map_while(|title| fixture.admit(title).ok()).count();
    assert_eq!(admitted, 2, "six each to start with, three per slot");
    assert_eq!(fixture.admit(9).unwrap_err().resource, Some(Resource::Network));
}

#[test]
fn read_ahead_is_dropped_for_a_newcomer() {
    let mut fixture = Fixture::new(config(4, 30));
    let first = fixture.admit(1).unwrap();
    fixture.want(first, 0..1);
    fixture.pass(3000);
    assert!(
        fixture.engine.status(fixture.now).buffers_used > 20 * u64::from(PIECE),
        "read far ahead"
    );
    assert_eq!(fixture.admit(2).map(|_| ()), Ok(()), "what is far ahead can be read again");
    fixture.pass(500);
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
}

#[test]
fn a_refused_seek_changes_nothing() {
    let mut fixture = Fixture::new(config(4, 1000));
    let viewers = [fixture.admit(1).unwrap(), fixture.admit(2).unwrap()];
    fixture.want(viewers[0], 0..1);
    fixture.pass(1000);
    // As many as are admitted; then the first viewer seeks back, to the end, and back.
    while fixture.admit(3).is_ok() {}
    fixture.log.clear();
    let seek = fixture.want(viewers[0], 35..36);
    let answer = fixture.take_log("");
    assert!(
        answer.iter().all(|text| *text != format!("failed {} Failed", seek.0)),
        "a seek is granted or refused: {answer:?}"
    );
    for piece in 1..10 {
        fixture.want(viewers[1], piece - 1..piece);
        fixture.pass(500);
    }
    assert_eq!(
        fixture.engine.status(fixture.now).counters.deadline_misses,
        0,
        "nobody pays for it"
    );
}

#[test]
fn a_silent_session_loses_its_reservation_and_is_readmitted_when_it_goes_on() {
    let mut fixture = Fixture::new(config(2, 100));
    let viewer = fixture.admit(1).unwrap();
    fixture.want(viewer, 0..1);
    fixture.pass(9000);
    assert_eq!(fixture.engine.status(fixture.now).active, 0);
    assert!(fixture.engine.is_empty(), "a pause holds nothing");
    fixture.want(viewer, 1..2);
    fixture.pass(500);
    assert_eq!(fixture.engine.status(fixture.now).active, 1);
    fixture.pass(60_000);
    assert_eq!(fixture.take_log("ended").len(), 1, "and in the end it has left");
    let unheard = fixture.admit(1).unwrap();
    fixture.pass(5500);
    assert_eq!(fixture.take_log("ended").len(), 1, "a reservation is held for five seconds");
    assert!(fixture.engine.sessions(fixture.now, 9).iter().all(|open| open.session != unheard));
}

#[test]
fn a_request_in_the_tick_in_which_the_reservation_expires_renews_it() {
    let begin = || {
        let mut fixture = Fixture::new(config(2, 100));
        let viewer = fixture.admit(1).unwrap();
        fixture.want(viewer, 0..1);
        (fixture, viewer)
    };
    let (mut silent, _) = begin();
    let mut slots = 0;
    while silent.take_log("Released").is_empty() {
        silent.pass(500);
        slots += 1;
    }
    let (mut fixture, viewer) = begin();
    fixture.pass(500 * slots - 1);
    fixture.now = silent.now;
    fixture.log.clear();
    // It comes over a new connection.
    fixture.engine.connected(viewer);
    fixture.want(viewer, 1..2);
    assert_eq!(fixture.take_log("Released"), Vec::<String>::new());
    assert_eq!(fixture.engine.status(fixture.now).active, 1);
}

#[test]
fn a_failed_read_is_repeated_once_and_the_stream_continues() {
    let mut fixture = Fixture::new(config(2, 100));
    let viewer = fixture.admit(1).unwrap();
    let request = fixture.want(viewer, 0..1);
    fixture.engine.read_done(fixture.now, fixture.reads[0], ReadOutcome::Damaged);
    fixture.reads.clear();
    fixture.drain();
    assert_eq!(fixture.take_log(""), ["read 1:0", "forget", "read 1:0"]);
    fixture.engine.read_done(fixture.now, fixture.reads[0], ReadOutcome::Failed);
    fixture.reads.clear();
    fixture.drain();
    let failed = format!("failed {} Failed", request.0);
    assert_eq!(fixture.take_log("")[..2], ["forget".to_owned(), failed]);
    fixture.want(viewer, 1..2);
    fixture.pass(1000);
    assert_eq!(fixture.take_log("complete").len(), 1);
    assert_eq!(fixture.engine.status(fixture.now).disks[0].failures, 2);
}

#[test]
fn a_removed_title_plays_on_in_open_sessions() {
    let mut fixture = Fixture::new(config(4, 100));
    let viewer = fixture.admit(1).unwrap();
    assert!(fixture.engine.withdraw_title(fixture.now, TitleKey(1)), "in use");
    assert!(fixture.admit(1).unwrap_err().detail.contains("removed"));
    fixture.want(viewer, 0..3);
    fixture.pass(1000);
    assert_eq!(fixture.take_log("complete").len(), 1);
    fixture.engine.close(fixture.now, viewer);
    fixture.drain();
    fixture.read_all(ReadOutcome::Good);
    let said = fixture.take_log("");
    assert_eq!(said.last().unwrap(), "idle 1", "when its last read is in: {said:?}");
    assert_eq!(fixture.engine.status(fixture.now).buffers_used, 0, "nothing of it is in memory");
    assert!(!fixture.engine.withdraw_title(fixture.now, TitleKey(2)), "never used");
}

#[test]
fn a_stalled_socket_holds_two_pieces_at_most() {
    let mut fixture = Fixture::new(config(4, 100));
    let viewer = fixture.admit(1).unwrap();
    let request = fixture.want(viewer, 0..20);
    for _ in 0..10 {
        fixture.read_all(ReadOutcome::Good);
        fixture.now = fixture.engine.next_wakeup();
        fixture.engine.tick(fixture.now);
        fixture.drain();
    }
    assert_eq!(fixture.take_log("deliver").len(), 2);
    fixture.pass(0);
    // Its session ends; what the socket holds stays until the connection is closed.
    fixture.now = fixture.now + Duration::from_secs(60);
    fixture.engine.tick(fixture.now);
    fixture.drain();
    fixture.now = fixture.now + Duration::from_secs(60);
    fixture.engine.tick(fixture.now);
    fixture.drain();
    assert_eq!(fixture.take_log("ended").len(), 1);
    assert!(!fixture.engine.is_empty());
    fixture.engine.cancel(fixture.now, request);
    fixture.drain();
    assert!(fixture.engine.is_empty());
}

// As many viewers as there are buffers for, all of them of different titles.
fn full_house(buffers: u64) -> (Fixture, Vec<SessionId>) {
    let mut fixture = Fixture::new(config(50, buffers));
    let viewers = (0..20).map_while(|title| fixture.admit(title).ok()).collect();
    (fixture, viewers)
}

#[test]
fn sockets_hold_one_piece_where_memory_is_short() {
    // A viewer needs eight buffers for its reads, and one or two for its socket.
    let (mut fixture, viewers) = full_house(27);
    assert_eq!(viewers.len(), 3, "two would be all with two pieces for each socket");
    for viewer in viewers {
        fixture.log.clear();
        let request = fixture.want(viewer, 0..20);
        fixture.read_all(ReadOutcome::Good);
        for _ in 0..4 {
            fixture.now = fixture.engine.next_wakeup();
            fixture.engine.tick(fixture.now);
            fixture.drain();
        }
        assert_eq!(fixture.take_log(&format!("deliver {} ", request.0)).len(), 1);
    }
}

#[test]
fn the_room_of_a_response_that_fails_is_left_to_the_next_one() {
    // One piece for each socket.
    let (mut fixture, viewers) = full_house(27);
    let first = fixture.want(viewers[0], 0..1);
    let next = fixture.want(viewers[0], 1..2);
    // All but the first piece come.
    let damaged = fixture.reads.remove(0);
    for _ in 0..4 {
        fixture.read_all(ReadOutcome::Good);
        fixture.now = fixture.engine.next_wakeup();
        fixture.engine.tick(fixture.now);
        fixture.drain();
    }
    assert_eq!(fixture.take_log("deliver"), Vec::<String>::new(), "the first is waited for");
    fixture.read_all(ReadOutcome::Good);
    fixture.engine.read_done(fixture.now, damaged, ReadOutcome::Damaged);
    fixture.drain();
    fixture.read_all(ReadOutcome::Damaged);
    let said = fixture.take_log("");
    let said: Vec<&String> =
        said.iter().filter(|s| s.starts_with("failed") || s.starts_with("deliver")).collect();
    let failed = format!("failed {} Damaged", first.0);
    assert_eq!(said, [&failed, &format!("deliver {} {PIECE}", next.0)]);
}

#[test]
fn best_effort_work_gets_the_time_that_streams_leave() {
    let mut fixture = Fixture::new(config(2, 1000));
    let free = fixture.engine.request_best_effort(fixture.now, DiskNumber(0), ByteCount(1));
    fixture.drain();
    assert_eq!(fixture.take_log(""), [format!("granted {}", free.0)], "an idle disk");
    fixture.engine.best_effort_done(fixture.now, free);
    fixture.drain();
    let viewer = fixture.admit(1).unwrap();
    fixture.want(viewer, 0..1);
    fixture.read_all(ReadOutcome::Good);
    for _ in 0..20 {
        fixture.engine.request_best_effort(fixture.now, DiskNumber(0), ByteCount(1));
    }
    fixture.drain();
    for _ in 0..40 {
        fixture.now = fixture.engine.next_wakeup();
        fixture.engine.tick(fixture.now);
        fixture.drain();
        fixture.read_all(ReadOutcome::Good);
        let granted = fixture.take_log("granted");
        for text in granted {
            let permit = PermitId(text["granted ".len()..].parse().unwrap());
            fixture.engine.best_effort_done(fixture.now, permit);
            fixture.drain();
        }
    }
    assert_eq!(
        fixture.engine.status(fixture.now).counters.deadline_misses,
        0,
        "never at a viewer's cost"
    );
    fixture.engine.request_best_effort(fixture.now, DiskNumber(7), ByteCount(1));
    fixture.drain();
    assert_eq!(fixture.take_log("granted").len(), 1, "nothing protects a disk that is not there");
}

#[test]
fn a_disk_that_slows_down_guarantees_less_at_once() {
    let mut fixture = Fixture::new(config(8, 1000));
    (1..5).for_each(|title| {
        fixture.admit(title).unwrap();
    });
    for _ in 0..4 {
        fixture.now = fixture.engine.next_wakeup();
        fixture.engine.tick(fixture.now);
        fixture.drain();
    }
    let status = fixture.engine.status(fixture.now);
    assert!(status.disks[0].min_read < 8, "{status:?}");
    assert!(status.disks[0].in_flight <= 8, "and is not given more than it takes");
    let better = DiskGuarantee { min_read: 20, ..config(8, 0).disks[0] };
    fixture.engine.set_guarantee(fixture.now, DiskNumber(0), better);
    assert_eq!(
        fixture.engine.status(fixture.now).disks[0].min_read,
        20,
        "until it is calibrated anew"
    );
}

#[test]
fn invalid_requests_get_defined_answers() {
    let mut fixture = Fixture::new(config(4, 100));
    let viewer = fixture.admit(1).unwrap();
    fixture.pass(1000);
    let size = u64::from(PIECES * PIECE);
    let part = |track, bytes| Part { track, bytes };
    let absurd = [
        (viewer, vec![]),
        (viewer, vec![part(0, 5..5)]),
        (viewer, vec![part(0, 0..size + 1)]),
        (viewer, vec![part(7, 0..1)]),
        (viewer, vec![part(0, 0..1), part(0, u64::MAX - 1..u64::MAX)]),
        (SessionId(99), vec![part(0, 0..1)]),
    ];
    fixture.log.clear();
    for (number, (session, parts)) in absurd.into_iter().enumerate() {
        let request = RequestId(1000 + number as u64);
        fixture.engine.request(fixture.now, MediaRequest { request, session, parts });
        fixture.drain();
        assert_eq!(fixture.take_log(""), [format!("failed {} Failed", request.0)]);
    }
    fixture.engine.sent(fixture.now, RequestId(5), ReadId(5));
    fixture.engine.cancel(fixture.now, RequestId(5));
    fixture.engine.close(fixture.now, SessionId(99));
    fixture.engine.read_done(fixture.now, ReadId(99), ReadOutcome::Good);
    fixture.engine.best_effort_done(fixture.now, PermitId(99));
    fixture.engine.set_guarantee(fixture.now, DiskNumber(9), config(1, 1).disks[0]);
    fixture.drain();
    assert_eq!(fixture.take_log(""), [""; 0]);
    let requests = (0..20).map(|_| fixture.want(viewer, 0..20)).count();
    assert_eq!(requests - fixture.take_log("declined").len(), 16, "so many at once and no more");
}

#[test]
fn invalid_layouts_are_refused_with_their_reason() {
    let mut fixture = Fixture::new(config(4, 100));
    let absurd: [(&str, TrackLayout); 8] = [
        ("not whole blocks", TrackLayout { piece: 0, ..track(4) }),
        ("not whole blocks", TrackLayout { piece: 1000, ..track(4) }),
        ("calibrated", TrackLayout { piece: 8192, ..track(4) }),
        ("go back", TrackLayout { due: vec![5, 4, 3, 2], ..track(4) }),
        ("no place", TrackLayout { runs: std::iter::once(0..4096).collect(), ..track(4) }),
        ("no place", TrackLayout { bytes: u64::MAX, ..track(4) }),
        ("no place", TrackLayout { stored: vec![0, 1, 2, 4], ..track(4) }),
        ("not as long", TrackLayout { stored: vec![0, 1, 2], ..track(4) }),
    ];
    for (reason, track) in absurd {
        let layout = Layout { tracks: vec![track], ..Arc::into_inner(layout(1)).unwrap() };
        let AdmissionDecision::Refused(refusal) =
            fixture.engine.admit(fixture.now, request(Arc::new(layout)))
        else {
            panic!("{reason}: admitted");
        };
        assert!(refusal.detail.contains(reason) || reason == "no place", "{}", refusal.detail);
    }
    let empty = Layout { tracks: vec![track(0)], ..Arc::into_inner(layout(1)).unwrap() };
    let far = AdmitRequest { start: Duration::from_secs(1 << 40), ..request(layout(1)) };
    let none = AdmitRequest { offers: vec![], ..request(layout(1)) };
    let nothing = AdmitRequest { offers: vec![vec![], vec![9]], ..request(layout(1)) };
    let mut admit = |request| {
        matches!(fixture.engine.admit(fixture.now, request), AdmissionDecision::Admitted { .. })
    };
    assert!(admit(request(Arc::new(empty))), "an empty track asks for nothing");
    assert!(admit(far), "beyond the end is at the end");
    assert!(!admit(none) && !admit(nothing));
    assert_eq!(
        Engine::new(EngineConfig { disks: vec![], ..config(1, 1) }).next_wakeup(),
        Moment::MAX
    );
}
