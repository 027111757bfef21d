//! Viewers who see a part of a title, or at another speed; who change that while they watch; who
//! wait for their place; and those who come back when they were told to.

use super::*;

/// Of the title of all others these pieces, each for so many milliseconds.
fn part(title: u64, stored: Vec<u32>, each_ms: u32) -> Arc<Layout> {
    let mut layout = Arc::into_inner(layout(title)).expect("made just now");
    let count = u32::try_from(stored.len()).unwrap();
    layout.tracks[0].bytes = u64::from(count * PIECE);
    layout.tracks[0].due = (0..count).map(|piece| piece * each_ms).collect();
    layout.tracks[0].stored = stored;
    Arc::new(layout)
}

impl House {
    fn ask(&mut self, request: AdmitRequest) -> Answer {
        let answer = self.engine.admit(self.now, request);
        self.hear();
        answer
    }

    #[track_caller]
    fn let_in(&mut self, request: AdmitRequest) -> (SessionId, Duration) {
        match self.ask(request) {
            Answer::Admitted { session, wait, .. } => (session, wait),
            answer @ Answer::Refused(_) => panic!("{answer:?}"),
        }
    }

    /// Bytes within pieces, in thousandths of one.
    fn want_bytes(&mut self, session: SessionId, thousandths: std::ops::Range<u64>) {
        self.next_request += 1;
        let byte = |at: u64| at * u64::from(PIECE) / 1000;
        let parts = vec![Part { track: 0, bytes: byte(thousandths.start)..byte(thousandths.end) }];
        let request = RequestId(self.next_request);
        self.engine.want(self.now, Want { request, session, parts });
        self.hear();
    }
}

#[test]
fn only_the_pieces_of_a_part_are_read_in_its_order_and_who_goes_on_is_not_let_in_anew() {
    let mut house = House::new(config(4, 100));
    let (viewer, _) = house.let_in(request(part(1, vec![2, 9, 5, 30, 31], 500)));
    // Each request ends within a piece, and the next one begins within the one after.
    for from in [0, 1300, 2300, 3300] {
        house.want_bytes(viewer, from..from + 400);
        house.pass(500);
    }
    assert_eq!(house.said("Anew"), Vec::<String>::new());
    house.want_bytes(viewer, 4300..5000);
    house.pass(2000);
    let said = house.said("");
    assert!(said.iter().all(|text| !text.starts_with("Anew")), "{said:?}");
    assert_eq!(house.engine.status(house.now).disks[0].reads, 5);
    assert_eq!(house.engine.status(house.now).glitches, 0);
}

#[test]
fn whichever_way_a_title_is_watched_its_bytes_are_in_memory_once() {
    let mut house = House::new(config(4, 100));
    let (whole, _) = house.let_in(request(layout(1)));
    house.want(whole, 0..8);
    house.pass(3000);
    let before = house.engine.status(house.now).disks[0].reads;
    let (part, _) = house.let_in(request(part(1, vec![7, 5, 3, 3], 500)));
    house.want(part, 0..4);
    house.pass(3000);
    let status = house.engine.status(house.now);
    assert_eq!(status.cache_hits, 4, "backwards, and one twice");
    assert_eq!(house.said("complete"), ["complete 1", "complete 2"]);
    assert!(status.disks[0].reads >= before);
}

#[test]
fn twice_the_speed_books_twice_the_reads() {
    let admitted = |each_ms| {
        let mut house = House::new(config(4, 200));
        let layout = || part(1, (0..PIECES).collect(), each_ms);
        (0..20).filter(|_| matches!(house.ask(request(layout())), Answer::Admitted { .. })).count()
    };
    let (slow, normal, fast) = (admitted(1000), admitted(500), admitted(250));
    assert!(slow > normal && normal > fast, "{slow}, {normal}, {fast}");
}

#[test]
fn who_changes_what_it_sees_keeps_its_place_until_it_has_the_new_one() {
    let mut house = House::new(config(2, 100));
    let viewers = [1, 2].map(|title| {
        let (viewer, _) = house.let_in(request(layout(title)));
        house.want(viewer, 0..2);
        house.pass(3000);
        viewer
    });
    let books = |house: &House| house.engine.disks[0].books.total();
    let before = books(&house);
    let faster = || AdmitRequest {
        instead_of: Some(viewers[0]),
        ..request(part(1, (0..PIECES).collect(), 100))
    };
    assert!(matches!(house.ask(faster()), Answer::Refused(_)), "five times as much");
    assert_eq!(books(&house), before, "as it was");
    assert_eq!(house.engine.status(house.now).sessions, 2);
    house.want(viewers[0], 2..4);
    house.pass(1000);
    assert_eq!(house.said("complete").last().unwrap(), "complete 3", "it plays on");

    house.engine.close(house.now, viewers[1]);
    house.hear();
    let slower = AdmitRequest {
        instead_of: Some(viewers[0]),
        ..request(part(1, (0..PIECES).collect(), 600))
    };
    house.said("");
    let (new, _) = house.let_in(slower);
    assert_ne!(new, viewers[0]);
    let ended = house.said("ended");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(house.engine.status(house.now).sessions, 1);
    house.want(new, 0..4);
    house.pass(30_000);
    assert_eq!(house.engine.status(house.now).glitches, 0);
    house.engine.close(house.now, new);
    assert!(house.engine.is_empty(), "all that was booked is off the books");
}

#[test]
fn who_waits_is_let_in_for_later_and_plays_without_a_glitch() {
    let mut house = House::new(config(2, 100));
    let (viewer, _) = house.let_in(request(layout(1)));
    house.want(viewer, 0..PIECES);
    let patient =
        |seconds| AdmitRequest { patience: Duration::from_secs(seconds), ..request(layout(2)) };
    let Answer::Refused(refusal) = house.ask(patient(0)) else { panic!("it is full") };
    assert!(refusal.exact, "{refusal:?}");
    assert!(matches!(house.ask(patient(1)), Answer::Refused(_)), "not so soon");
    let (late, wait) = house.let_in(patient(60));
    assert!(wait <= refusal.retry_after, "its first pieces may be read before it comes");
    house.pass(u64::try_from(wait.as_millis()).unwrap());
    assert_eq!(house.engine.status(house.now).sessions, 2, "the place is held until then");
    house.want(late, 0..PIECES);
    house.pass(40_000);
    assert_eq!(house.engine.status(house.now).glitches, 0);
}

#[test]
fn who_comes_back_when_told_to_is_let_in() {
    let (mut refused, mut came_back) = (0, 0);
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut config = config(random.u32(4..10), random.u64(60..400));
        // No time is left of a slot: the disk does what it guarantees and no more.
        config.disks[0].longest_read = config.slot;
        let mut house = House::new(config);
        let mut title = 0;
        for _ in 0..50 {
            title += 1;
            let pieces: Vec<u32> = (0..random.u32(1..=PIECES)).collect();
            let view = part(title, pieces, random.u32(200..900));
            let ask = || request(view.clone());
            let mut answer = house.ask(ask());
            refused += u32::from(matches!(answer, Answer::Refused(_)));
            if let Answer::Refused(refusal) = answer.clone()
                && refusal.exact
            {
                let wait = u64::try_from(refusal.retry_after.as_millis()).unwrap();
                house.pass(wait);
                answer = house.ask(ask());
                assert!(
                    matches!(answer, Answer::Admitted { .. }),
                    "seed {seed}: told {refusal:?}, then {answer:?}"
                );
                came_back += 1;
            }
            if let Answer::Admitted { session, .. } = answer {
                let bytes = 0..view.tracks[0].bytes;
                house.next_request += 1;
                let want = RequestId(house.next_request);
                let parts = vec![Part { track: 0, bytes }];
                house.engine.want(house.now, Want { request: want, session, parts });
            }
            house.pass(random.u64(1..700));
        }
        assert_eq!(house.engine.status(house.now).glitches, 0, "seed {seed}");
    }
    assert!(came_back > 500 && came_back * 10 > refused * 8, "{came_back} of {refused}");
}

#[test]
fn a_hundred_thousand_viewers_in_a_second_are_all_answered_and_the_books_stay_exact() {
    let mut house = House::new(config(8, 400));
    let (mut admitted, mut named, mut exact) = (0u64, 0, 0);
    for number in 0..100_000u64 {
        house.now = Moment(number * 10_000);
        if house.now >= house.engine.next_wakeup() {
            house.engine.tick(house.now);
        }
        match house.engine.admit(house.now, request(layout(number % 50))) {
            Answer::Admitted { .. } => admitted += 1,
            Answer::Refused(refusal) => {
                named += u64::from(refusal.retry_after > Duration::ZERO);
                exact += u64::from(refusal.exact);
            }
        }
    }
    house.hear();
    let status = house.engine.status(house.now);
    let refused = status.refused_disk + status.refused_memory;
    assert_eq!((admitted, named), (status.admitted, refused), "each has an answer");
    assert_eq!(admitted + refused, 100_000);
    assert!((1..50).contains(&admitted), "{admitted}");
    assert!((1..=20).contains(&exact), "answers that cost are few in a slot: {exact}");
    for session in (1..=admitted).map(SessionId) {
        house.engine.close(house.now, session);
    }
    house.hear();
    assert!(house.engine.is_empty(), "all that was booked is off the books");
}
