//! Viewers of one title share its reads and the memory between them.

use super::*;

/// Viewers who come one slot after the other, most of them to title 1, and ask for each piece as it
/// is due.
struct Crowd {
    fixture: Fixture,
    /// The viewers' sessions, each with the next piece that it asks for.
    viewers: Vec<(SessionId, u32)>,
}

impl Crowd {
    fn new(config: EngineConfig) -> Self {
        Self { fixture: Fixture::new(config), viewers: Vec::new() }
    }

    fn comes(&mut self) -> Result<SessionId, Refusal> {
        self.comes_to(1)
    }

    fn comes_to(&mut self, title: u64) -> Result<SessionId, Refusal> {
        let viewer = self.fixture.admit(title)?;
        self.viewers.push((viewer, 0));
        Ok(viewer)
    }

    fn leaves(&mut self, viewer: SessionId) {
        self.viewers.retain(|(other, _)| *other != viewer);
        self.fixture.engine.close(self.fixture.now, viewer);
        self.fixture.drain();
    }

    fn follows(&self, viewer: SessionId) -> bool {
        let streams = &self.fixture.engine.sessions[&viewer].streams;
        streams.iter().any(|id| self.fixture.engine.streams[id].fed.is_some())
    }

    /// A slot passes, in which each viewer asks for one piece.
    fn plays(&mut self) {
        for (viewer, next) in self.viewers.iter_mut().filter(|(_, next)| *next < PIECES) {
            self.fixture.want(*viewer, *next..*next + 1);
            *next += 1;
        }
        self.fixture.pass(500);
        assert_eq!(self.fixture.engine.audit(), Ok(()));
    }

    /// All play to the end and leave. Returns the number of reads of the disk.
    fn ends(mut self) -> u64 {
        while self.viewers.iter().any(|(_, next)| *next < PIECES) {
            self.plays();
        }
        self.fixture.pass(4000);
        let status = self.fixture.engine.status(self.fixture.now);
        assert_eq!(status.counters.deadline_misses, 0);
        for (viewer, _) in std::mem::take(&mut self.viewers) {
            self.leaves(viewer);
        }
        assert!(self.fixture.engine.is_empty(), "nothing is booked when all have left");
        status.disks[0].reads
    }
}

#[test]
fn ten_viewers_of_a_title_are_one_stream_of_the_disk() {
    // Two reads in a slot are one stream and its start.
    let mut crowd = Crowd::new(config(2, 100));
    for _ in 0..10 {
        crowd.comes().unwrap();
        crowd.plays();
    }
    assert_eq!(crowd.fixture.engine.status(crowd.fixture.now).following, 10);
    assert!(crowd.fixture.admit(2).is_ok(), "the disk has room for another title");
    crowd.viewers.push((SessionId(11), 0));
    assert_eq!(crowd.ends(), 2 * u64::from(PIECES));
}

#[test]
fn when_the_one_ahead_leaves_the_next_goes_on_with_its_reads() {
    let mut crowd = Crowd::new(config(2, 100));
    let viewers: Vec<SessionId> = (0..4)
        .map(|_| {
            let viewer = crowd.comes().unwrap();
            crowd.plays();
            viewer
        })
        .collect();
    for viewer in &viewers[..3] {
        crowd.leaves(*viewer);
        crowd.plays();
    }
    let status = crowd.fixture.engine.status(crowd.fixture.now);
    assert_eq!((status.sessions, status.following), (1, 0), "the last has the feed's reads");
    assert_eq!(crowd.ends(), u64::from(PIECES));
}

#[test]
fn a_leader_that_seeks_again_and_again_leaves_its_followers_on_time() {
    let mut crowd = Crowd::new(config(4, 100));
    let leader = crowd.comes().unwrap();
    crowd.plays();
    for _ in 0..3 {
        crowd.comes().unwrap();
    }
    crowd.viewers.retain(|(viewer, _)| *viewer != leader);
    for seek in 0..1000 {
        crowd.fixture.want(leader, seek * 7 % PIECES..seek * 7 % PIECES + 1);
        assert_eq!(crowd.fixture.engine.audit(), Ok(()));
    }
    crowd.leaves(leader);
    assert!(crowd.ends() < 3 * u64::from(PIECES));
}

#[test]
fn a_newcomer_reads_only_what_the_others_no_longer_have() {
    let mut crowd = Crowd::new(config(4, 100));
    crowd.comes().unwrap();
    (0..14).for_each(|_| crowd.plays());
    // Memory that other titles need takes the cache, and only what is ahead stays.
    while crowd.fixture.engine.evict_oldest().is_some() {}
    crowd.comes().unwrap();
    let reads = crowd.ends();
    let patch = reads - u64::from(PIECES);
    assert!((1..15).contains(&patch), "{patch} of 14 pieces are read again");
}

#[test]
fn a_viewer_who_seeks_to_a_place_behind_another_follows_it() {
    let mut crowd = Crowd::new(config(4, 100));
    crowd.comes().unwrap();
    (0..14).for_each(|_| crowd.plays());
    let seeker = crowd.comes().unwrap();
    crowd.plays();
    let place = 12;
    crowd.fixture.log.clear();
    crowd.fixture.want(seeker, place..place + 1);
    assert_eq!(crowd.fixture.take_log("Readmitted").len(), 1);
    crowd.viewers.retain(|(viewer, _)| *viewer != seeker);
    crowd.viewers.push((seeker, place + 1));
    crowd.plays();
    assert_eq!(crowd.fixture.engine.status(crowd.fixture.now).following, 2);
    let reads = crowd.ends();
    assert!(reads < u64::from(PIECES) + 10, "{reads} reads of {PIECES} pieces");
}

#[test]
fn when_the_one_ahead_leaves_nothing_is_read_that_its_followers_have_skipped() {
    let mut crowd = Crowd::new(config(40, 400));
    // A segment has two pieces, so that a viewer who seeks may need the second alone.
    let due = (0..PIECES).map(|piece| piece / 2 * 1000).collect();
    let tracks = vec![TrackLayout { due, ..track(PIECES) }];
    let (title, duration) = (TitleKey(1), Duration::from_secs(20));
    let layout = Arc::new(Layout { title, disk: DiskNumber(0), duration, tracks });
    let mut viewers = Vec::new();
    for _ in 0..3 {
        let answer = crowd.fixture.engine.admit(crowd.fixture.now, request(Arc::clone(&layout)));
        let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
        viewers.push(session);
    }
    // Away, and back to the first piece of the first segment or to the second.
    for (viewer, piece) in viewers.iter().zip([0, 1, 1]) {
        crowd.fixture.want(*viewer, 9..10);
        crowd.fixture.want(*viewer, piece..piece + 1);
    }
    for follower in &viewers[1..] {
        assert!(crowd.follows(*follower));
        crowd.viewers.push((*follower, 2));
    }
    crowd.leaves(viewers[0]);
    crowd.plays();
    assert_eq!(crowd.fixture.engine.status(crowd.fixture.now).following, 2);
    // The audit of each slot finds a piece that is held for nobody.
    crowd.ends();
}

#[test]
fn titles_with_copies_and_disks_that_may_be_lost_are_not_shared() {
    let survive_loss = EngineConfig { survive_loss: true, ..config(4, 100) };
    let mut fixture = Fixture::new(survive_loss);
    for _ in 0..2 {
        fixture.admit(1).unwrap();
    }
    assert_eq!(fixture.engine.status(fixture.now).following, 0);
}

#[test]
fn a_title_that_is_removed_is_played_to_the_end_by_those_who_follow() {
    let mut crowd = Crowd::new(config(2, 100));
    let leader = crowd.comes().unwrap();
    crowd.plays();
    crowd.comes().unwrap();
    assert!(crowd.fixture.engine.withdraw_title(crowd.fixture.now, TitleKey(1)), "in use");
    assert!(crowd.comes().is_err(), "nobody is admitted to it");
    crowd.leaves(leader);
    assert_eq!(crowd.ends(), u64::from(PIECES));
}

#[test]
fn sockets_that_stop_one_after_another_hold_a_piece_each() {
    let mut crowd = Crowd::new(config(2, 100));
    let last = crowd.comes().unwrap();
    let stopping: Vec<SessionId> = (0..6).map(|_| crowd.comes().unwrap()).collect();
    (0..4).for_each(|_| crowd.plays());
    let mut held = std::collections::BTreeSet::new();
    for viewer in stopping {
        // It asks for all that is left, and takes nothing of it. The others play on.
        let at = crowd.viewers.iter().position(|(other, _)| *other == viewer).unwrap();
        let (_, next) = crowd.viewers.remove(at);
        crowd.fixture.want(viewer, next..PIECES);
        held.extend(crowd.fixture.unsent.drain(..).map(|(_, read)| read));
        (0..4).for_each(|_| crowd.plays());
    }
    assert_eq!(held.len(), 6, "each has been given another piece");
    let buffers = &crowd.fixture.engine.streams.buffers;
    assert!(held.iter().all(|read| buffers.is_pinned(*read)), "whatever the others have released");
    assert_eq!(crowd.viewers[0].0, last);
    assert_eq!(crowd.fixture.engine.status(crowd.fixture.now).counters.deadline_misses, 0);
}

/// The title with its pictures in track 0, and sound of which a piece is played for 4 s.
fn with_sound(title: u64) -> Arc<Layout> {
    let sound = TrackLayout { due: (0..5).map(|piece| piece * 4000).collect(), ..track(5) };
    let (tracks, duration) = (vec![track(PIECES), sound], Duration::from_secs(20));
    Arc::new(Layout { title: TitleKey(title), disk: DiskNumber(0), duration, tracks })
}

#[test]
fn pictures_come_while_a_paced_socket_holds_sound() {
    // The sockets of a viewer who follows another have memory for a piece of each track. Those of
    // one who is alone have it for two of each, until a newcomer needs it.
    for (follows, buffers) in [(true, 100), (false, 21)] {
        let mut fixture = Fixture::new(config(40, buffers));
        let admit = |fixture: &mut Fixture, title| {
            let wanted = AdmitRequest { offers: vec![vec![0, 1]], ..request(with_sound(title)) };
            let answer = fixture.engine.admit(fixture.now, wanted);
            fixture.drain();
            let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
            session
        };
        let first = admit(&mut fixture, 1);
        let viewer = if follows { admit(&mut fixture, 1) } else { first };
        fixture.pass(500);
        // All of a track in one request, as over RTSP: the socket gets sound when it is in memory.
        let want_all = |fixture: &mut Fixture, number, track, pieces: u32| {
            let parts = vec![Part { track, bytes: 0..u64::from(pieces * PIECE) }];
            let media = MediaRequest { request: RequestId(number), session: viewer, parts };
            fixture.engine.request(fixture.now, media);
            fixture.drain();
        };
        want_all(&mut fixture, 1, 1, 5);
        if !follows {
            let wide = fixture.engine.sessions[&viewer].reserve;
            admit(&mut fixture, 2);
            assert!(fixture.engine.sessions[&viewer].reserve < wide);
        }
        let pictures = RequestId(2);
        want_all(&mut fixture, pictures.0, 0, PIECES);
        let mut taken = 0;
        for _ in 0..2 * PIECES {
            let unsent = std::mem::take(&mut fixture.unsent);
            for (request, read) in unsent {
                if request == pictures {
                    taken += 1;
                    fixture.engine.sent(fixture.now, request, read);
                    fixture.drain();
                } else {
                    fixture.unsent.push((request, read));
                }
            }
            fixture.read_all(ReadOutcome::Good);
            fixture.now = fixture.now + Duration::from_millis(500);
            fixture.engine.tick(fixture.now);
            fixture.drain();
        }
        assert_eq!(taken, PIECES, "follows: {follows}");
        assert!(!fixture.unsent.is_empty(), "the socket holds sound all the time");
    }
}

#[test]
fn followers_get_second_pieces_of_sockets_where_the_disk_is_full_and_memory_short() {
    // Eight pieces for the one ahead, two for its socket, and one for that of each follower.
    let mut crowd = Crowd::new(config(2, 14));
    crowd.comes().unwrap();
    let refusal = crowd.fixture.admit(2).unwrap_err();
    assert_eq!(refusal.resource, Some(Resource::Disk));
    let followers = std::iter::repeat_with(|| crowd.comes()).take_while(Result::is_ok).count();
    assert_eq!(followers, 5, "one of them has the second piece of the first socket");
    crowd.ends();
}

/// What happens in the slot after an interval may have been given up.
#[derive(Clone, Copy, Debug)]
enum Then {
    AllPlayOn,
    ItsFollowerSeeks,
    ItsFollowerPauses,
    ItsFollowerLeaves,
    ItsLeaderLeaves,
    TheNewcomerLeaves,
    AnotherComes,
}

/// Where a newcomer finds memory short.
#[derive(Clone, Copy, Debug)]
struct Short {
    /// Reads of the disk in a slot, and pieces that memory has room for.
    reads: u32,
    buffers: u64,
    /// Slots between two viewers of title 1, of whom the second follows the first.
    apart: u32,
    /// Slots between a viewer of title 2 and the newcomer to it.
    behind: u32,
}

#[test]
fn a_long_interval_is_given_up_for_a_newcomer_and_nobody_is_late() {
    use Then::*;
    let short = |reads, buffers, apart, behind| Short { reads, buffers, apart, behind };
    // Whether the interval is given up, and the newcomer follows; `None`: it is refused.
    let cases = [
        (short(8, 25, 14, 5), Some((true, true))),
        (short(3, 31, 14, 7), Some((true, true))),
        // The newcomer's interval is not much shorter, so it gets a stream of its own.
        (short(8, 27, 10, 5), Some((true, false))),
        (short(4, 27, 10, 5), Some((true, false))),
        // The disk has no room for two more streams.
        (short(3, 27, 10, 5), None),
        (short(2, 38, 14, 7), None),
        // There is room for both.
        (short(8, 45, 14, 5), Some((false, true))),
    ];
    let after = [
        AllPlayOn,
        ItsFollowerSeeks,
        ItsFollowerPauses,
        ItsFollowerLeaves,
        ItsLeaderLeaves,
        TheNewcomerLeaves,
        AnotherComes,
    ];
    for (short, expected) in cases {
        after.into_iter().for_each(|then| short.play(expected, then));
    }
}

impl Short {
    fn play(self, expected: Option<(bool, bool)>, then: Then) {
        let mut crowd = Crowd::new(config(self.reads, self.buffers));
        let leader = crowd.comes().expect("the first");
        (0..self.apart).for_each(|_| crowd.plays());
        let follower = crowd.comes().expect("a follower");
        crowd.plays();
        crowd.comes_to(2).expect("a stream of its own");
        (0..self.behind).for_each(|_| crowd.plays());
        assert!(crowd.follows(follower), "{self:?}");
        let newcomer = crowd.comes_to(2).ok();
        let found = newcomer.map(|id| (!crowd.follows(follower), crowd.follows(id)));
        assert_eq!(found, expected, "{self:?}");
        assert!(newcomer.is_some() || crowd.follows(follower), "a refusal leaves no trace");
        crowd.plays();
        match then {
            Then::AllPlayOn => {}
            Then::ItsFollowerSeeks => {
                let of = |(id, _): &&mut (SessionId, u32)| *id == follower;
                crowd.viewers.iter_mut().filter(of).for_each(|(_, next)| *next += 5);
            }
            Then::ItsFollowerPauses => {
                let at = crowd.viewers.iter().position(|(id, _)| *id == follower);
                let paused = crowd.viewers.remove(at.expect("it plays"));
                (0..6).for_each(|_| crowd.plays());
                crowd.viewers.push(paused);
            }
            Then::ItsFollowerLeaves => crowd.leaves(follower),
            Then::ItsLeaderLeaves => crowd.leaves(leader),
            Then::TheNewcomerLeaves => newcomer.into_iter().for_each(|id| crowd.leaves(id)),
            Then::AnotherComes => drop(crowd.comes_to(2)),
        }
        crowd.ends();
    }
}
