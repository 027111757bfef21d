//! Parts of a title, other speeds, replaced sessions, delayed starts, and retries after a refusal.

use super::*;

/// A layout of the stored pieces `stored` of a title, each `each_ms` milliseconds long.
fn part(title: u64, stored: Vec<u32>, each_ms: u32) -> Arc<Layout> {
    let mut layout = Arc::into_inner(layout(title)).expect("made just now");
    let count = u32::try_from(stored.len()).unwrap();
    layout.tracks[0].bytes = u64::from(count * PIECE);
    layout.tracks[0].due = (0..count).map(|piece| piece * each_ms).collect();
    layout.tracks[0].stored = stored;
    Arc::new(layout)
}

impl Fixture {
    pub(super) fn ask(&mut self, request: AdmitRequest) -> AdmissionDecision {
        let answer = self.engine.admit(self.now, request);
        self.drain();
        answer
    }

    #[track_caller]
    fn begin_session(&mut self, request: AdmitRequest) -> (SessionId, Duration) {
        match self.ask(request) {
            AdmissionDecision::Admitted { session, wait, .. } => (session, wait),
            answer @ AdmissionDecision::Refused(_) => panic!("{answer:?}"),
        }
    }

    /// Bytes within pieces, in thousandths of one.
    fn want_bytes(&mut self, session: SessionId, thousandths: std::ops::Range<u64>) {
        self.next_request += 1;
        let byte = |at: u64| at * u64::from(PIECE) / 1000;
        let parts = vec![Part { track: 0, bytes: byte(thousandths.start)..byte(thousandths.end) }];
        let request = RequestId(self.next_request);
        self.engine.request(self.now, MediaRequest { request, session, parts });
        self.drain();
    }
}

#[test]
fn a_part_of_a_title_reads_only_its_pieces_in_its_order() {
    let mut fixture = Fixture::new(config(4, 100));
    let (viewer, _) = fixture.begin_session(request(part(1, vec![2, 9, 5, 30, 31], 500)));
    // Each request ends within a piece, and the next one begins within the one after.
    for from in [0, 1300, 2300, 3300] {
        fixture.want_bytes(viewer, from..from + 400);
        fixture.pass(500);
    }
    assert_eq!(fixture.take_log("Readmitted"), Vec::<String>::new());
    fixture.want_bytes(viewer, 4300..5000);
    fixture.pass(2000);
    let said = fixture.take_log("");
    assert!(said.iter().all(|text| !text.starts_with("Readmitted")), "{said:?}");
    assert_eq!(fixture.engine.status(fixture.now).disks[0].reads, 5);
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
}

#[test]
fn all_presentations_of_a_title_share_its_buffers() {
    let mut fixture = Fixture::new(config(4, 100));
    let (whole, _) = fixture.begin_session(request(layout(1)));
    fixture.want(whole, 0..8);
    fixture.pass(3000);
    let before = fixture.engine.status(fixture.now).disks[0].reads;
    let (part, _) = fixture.begin_session(request(part(1, vec![7, 5, 3, 3], 500)));
    fixture.want(part, 0..4);
    fixture.pass(3000);
    let status = fixture.engine.status(fixture.now);
    assert_eq!(status.counters.cache_hits, 4, "backwards, and one twice");
    assert_eq!(fixture.take_log("complete"), ["complete 1", "complete 2"]);
    assert!(status.disks[0].reads >= before);
}

#[test]
fn twice_the_speed_books_twice_the_reads() {
    let admitted = |each_ms| {
        let mut fixture = Fixture::new(config(4, 200));
        (0..20)
            .filter(|title| {
                let layout = part(*title, (0..PIECES).collect(), each_ms);
                matches!(fixture.ask(request(layout)), AdmissionDecision::Admitted { .. })
            })
            .count()
    };
    let (slow, normal, fast) = (admitted(1000), admitted(500), admitted(250));
    assert!(slow > normal && normal > fast, "{slow}, {normal}, {fast}");
}

#[test]
fn a_replaced_session_keeps_its_reservation_until_the_new_one_is_admitted() {
    let mut fixture = Fixture::new(config(2, 100));
    let viewers = [1, 2].map(|title| {
        let (viewer, _) = fixture.begin_session(request(layout(title)));
        fixture.want(viewer, 0..2);
        fixture.pass(3000);
        viewer
    });
    let books =
        |fixture: &Fixture| fixture.engine.streams.bookings.disks[0].dispatcher.books.total();
    let before = books(&fixture);
    let faster = || AdmitRequest {
        replaces: Some(viewers[0]),
        ..request(part(1, (0..PIECES).collect(), 100))
    };
    assert!(matches!(fixture.ask(faster()), AdmissionDecision::Refused(_)), "five times as much");
    assert_eq!(books(&fixture), before, "as it was");
    assert_eq!(fixture.engine.status(fixture.now).sessions, 2);
    fixture.want(viewers[0], 2..4);
    fixture.pass(1000);
    assert_eq!(fixture.take_log("complete").last().unwrap(), "complete 3", "it plays on");

    fixture.engine.close(fixture.now, viewers[1]);
    fixture.drain();
    let slower =
        AdmitRequest { replaces: Some(viewers[0]), ..request(part(1, (0..PIECES).collect(), 600)) };
    fixture.take_log("");
    let (new, _) = fixture.begin_session(slower);
    assert_ne!(new, viewers[0]);
    assert_eq!(fixture.engine.status(fixture.now).counters.admitted, 3);
    // What takes the place of a reservation before anything was sent is the same viewer.
    let again =
        AdmitRequest { replaces: Some(new), ..request(part(1, (0..PIECES).collect(), 600)) };
    let (new, _) = fixture.begin_session(again);
    assert_eq!(fixture.engine.status(fixture.now).counters.admitted, 3);
    let ended = fixture.take_log("ended");
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert_eq!(fixture.engine.status(fixture.now).sessions, 1);
    fixture.want(new, 0..4);
    fixture.pass(30_000);
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
    fixture.engine.close(fixture.now, new);
    assert!(fixture.engine.is_empty(), "all that was booked is off the books");
}

#[test]
fn a_waiting_viewer_is_admitted_later_and_plays_without_a_deadline_miss() {
    let mut fixture = Fixture::new(config(2, 100));
    let (viewer, _) = fixture.begin_session(request(layout(1)));
    fixture.want(viewer, 0..PIECES);
    let patient = |seconds| AdmitRequest { max_wait: chosen_wait(seconds), ..request(layout(2)) };
    let AdmissionDecision::Refused(refusal) = fixture.ask(patient(0)) else { panic!("it is full") };
    let RetryAfter::Exact(retry) = refusal.retry else { panic!("{refusal:?}") };
    let (late, wait) = fixture.begin_session(patient(60));
    assert!(!wait.is_zero(), "there is no room now");
    assert!(wait <= retry, "its first pieces may be read before it comes");
    fixture.pass(u64::try_from(wait.as_millis()).unwrap());
    assert_eq!(fixture.engine.status(fixture.now).sessions, 2, "the place is held until then");
    fixture.want(late, 0..PIECES);
    fixture.pass(40_000);
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
}

#[test]
fn the_pace_of_a_crowd_delays_nobody_who_goes_on_with_a_reservation() {
    let mut fixture = Fixture::new(config(16, 400));
    let patient = MaxWait { time: Duration::from_secs(5), ..MaxWait::default() };
    // They come in one moment, reserve, and say then from where they play.
    let reserved = [1, 2, 3].map(|title| fixture.begin_session(request(layout(title))).0);
    let waits = [0, 1, 2].map(|number: usize| {
        let (start, replaces) = (Duration::from_secs(7), Some(reserved[number]));
        let title = layout(number as u64 + 1);
        let asked = AdmitRequest { start, replaces, max_wait: patient, ..request(title) };
        fixture.begin_session(asked).1
    });
    assert_eq!(waits, [Duration::ZERO; 3]);
    let (_, wait) = fixture.begin_session(AdmitRequest { max_wait: patient, ..request(layout(4)) });
    assert!(!wait.is_zero(), "one who comes only now starts after them");
}

#[test]
fn a_request_repeated_at_the_exact_retry_time_is_admitted() {
    let (mut refused, mut came_back) = (0, 0);
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut config = config(random.u32(4..10), random.u64(60..400));
        // No time is left of a slot: the disk does what it guarantees and no more.
        config.disks[0].longest_read = config.slot;
        let mut fixture = Fixture::new(config);
        let mut title = 0;
        for _ in 0..50 {
            title += 1;
            let pieces: Vec<u32> = (0..random.u32(1..=PIECES)).collect();
            let view = part(title, pieces, random.u32(200..900));
            let ask = || request(view.clone());
            let mut answer = fixture.ask(ask());
            refused += u32::from(matches!(answer, AdmissionDecision::Refused(_)));
            if let AdmissionDecision::Refused(refusal) = answer.clone()
                && let RetryAfter::Exact(wait) = refusal.retry
            {
                let wait = u64::try_from(wait.as_millis()).unwrap();
                fixture.pass(wait);
                answer = fixture.ask(ask());
                assert!(
                    matches!(answer, AdmissionDecision::Admitted { .. }),
                    "seed {seed}: waiters {refusal:?}, then {answer:?}"
                );
                came_back += 1;
            }
            if let AdmissionDecision::Admitted { session, .. } = answer {
                let bytes = 0..view.tracks[0].bytes;
                fixture.next_request += 1;
                let want = RequestId(fixture.next_request);
                let parts = vec![Part { track: 0, bytes }];
                fixture.engine.request(fixture.now, MediaRequest { request: want, session, parts });
            }
            fixture.pass(random.u64(1..700));
        }
        assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0, "seed {seed}");
    }
    assert!(came_back > 500 && came_back * 10 > refused * 8, "{came_back} of {refused}");
}

#[test]
fn a_hundred_thousand_requests_in_a_second_are_answered_and_the_books_stay_exact() {
    let mut fixture = Fixture::new(config(8, 400));
    let (mut admitted, mut named, mut exact) = (0u64, 0, 0);
    for number in 0..100_000u64 {
        fixture.now = Moment(number * 10_000);
        if fixture.now >= fixture.engine.next_wakeup() {
            fixture.engine.tick(fixture.now);
        }
        match fixture.engine.admit(fixture.now, request(layout(number % 50))) {
            AdmissionDecision::Admitted { .. } => admitted += 1,
            AdmissionDecision::Refused(refusal) => {
                named += u64::from(refusal.retry.after().is_some_and(|wait| !wait.is_zero()));
                exact += u64::from(matches!(refusal.retry, RetryAfter::Exact(_)));
            }
        }
    }
    fixture.drain();
    let status = fixture.engine.status(fixture.now);
    let refused = status.counters.refused.of_cause(RefusalCause::Sessions);
    assert_eq!((admitted, named), (status.counters.admitted, refused), "each has an answer");
    assert_eq!(admitted + refused, 100_000);
    // A follower has one piece of the memory for its socket, and those of one title share the rest.
    assert!((300..400).contains(&admitted), "{admitted}");
    assert!((1..=20).contains(&exact), "answers that cost are few in a slot: {exact}");
    for session in (1..=admitted).map(SessionId) {
        fixture.engine.close(fixture.now, session);
    }
    fixture.drain();
    assert!(fixture.engine.is_empty(), "all that was booked is off the books");
}
