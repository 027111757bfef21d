//! Refusals: their cause, and the time that they name.

use super::*;
use disk::DiskModel;
use scheduler::{DiskTimings, ServiceCurve};

/// A title with a piece due each `every_ms`.
fn dense(title: u64, pieces: u32, every_ms: u32) -> Arc<Layout> {
    let due = (0..pieces).map(|piece| piece * every_ms).collect();
    let track = TrackLayout { due, ..track(pieces) };
    let duration = Duration::from_millis(u64::from(pieces * every_ms));
    Arc::new(Layout { title: TitleKey(title), disk: DiskNumber(0), duration, tracks: vec![track] })
}

impl Fixture {
    fn refusal_of(&mut self, layout: &Arc<Layout>) -> Option<Refusal> {
        match self.ask(request(Arc::clone(layout))) {
            AdmissionDecision::Admitted { .. } => None,
            AdmissionDecision::Refused(refusal) => Some(refusal),
        }
    }
}

#[test]
fn a_title_that_an_empty_server_cannot_serve_is_refused_for_ever() {
    let network = |pieces: u64| Some(BitRate(u64::from(PIECE) * 8 * 2 * pieces));
    let table = [
        (Resource::Disk, "five reads a slot, four are made", config(4, 1000)),
        (Resource::Memory, "a piece for its socket, and one to read", config(40, 1)),
        (
            Resource::Network,
            "five pieces a slot, four are sent",
            EngineConfig { network: network(4), ..config(40, 1000) },
        ),
    ];
    for (resource, why, config) in table {
        for millis in [0, 1, 250, 499, 1234] {
            let mut fixture = Fixture::new(config.clone());
            fixture.now = Moment::ZERO + Duration::from_millis(millis);
            let refusal = fixture.refusal_of(&dense(1, 200, 100)).expect(why);
            assert_eq!(refusal.cause, RefusalCause::Title, "{why}: {refusal:?}");
            assert_eq!(refusal.resource, Some(resource), "{why}: {refusal:?}");
            assert_eq!(refusal.retry, RetryAfter::Never, "{why}: {refusal:?}");
            let counted = fixture.engine.status(fixture.now).counters.refused;
            assert_eq!(counted.of_cause(RefusalCause::Title), 1);
            assert_eq!(counted.of_resource(resource), 1);
        }
    }
}

#[test]
fn a_refusal_for_ever_says_if_a_viewer_who_waits_fits() {
    // Six reads are due when a start-up of one slot is over; two are made in a slot.
    let short = EngineConfig { startup: Duration::from_millis(500), ..config(2, 1000) };
    let rows =
        [(config(2, 1000), 6, None), (short.clone(), 6, Some(true)), (short, 80, Some(false))];
    for (config, pieces, waiting_helps) in rows {
        let mut fixture = Fixture::new(config);
        let refusal = fixture.refusal_of(&dense(1, pieces, 50));
        let never = |refusal: &Refusal| refusal.retry == RetryAfter::Never;
        assert!(refusal.iter().all(never), "{refusal:?}");
        let helps = refusal.map(|refusal| refusal.waiting_helps);
        assert_eq!(helps, waiting_helps, "{pieces} pieces");
    }
}

#[test]
fn what_never_fits_is_refused_at_all_times() {
    let (mut never, mut title_for_now) = (0, 0);
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut config = config(random.u32(1..6), random.u64(6..60));
        config.policy = [PolicyKind::VbrSim, PolicyKind::TimeDomain, PolicyKind::ServiceCurve]
            [random.usize(..3)];
        config.startup = Duration::from_millis(random.u64(1000..3000));
        config.network = random.bool().then(|| BitRate(u64::from(PIECE) * random.u64(8..160)));
        // By time the disk does some thirty of these reads in a slot.
        let by_time = config.policy == PolicyKind::TimeDomain;
        let (pieces, every_ms) = if by_time { (1..600, 5..40) } else { (1..60, 50..400) };
        let view = dense(1, random.u32(pieces), random.u32(every_ms));
        let model = DiskModel::preset("st39183w").expect("a known disk");
        let ask_at = |millis| {
            let mut fixture = Fixture::new(config.clone());
            if by_time {
                let timings = DiskTimings::of_model(&model, ByteCount(u64::from(PIECE)), 1);
                fixture.engine.set_timings(Moment::ZERO, DiskNumber(0), timings);
            }
            fixture.now = Moment::ZERO + Duration::from_millis(millis);
            fixture.refusal_of(&view)
        };
        let answers: Vec<_> = (0..40).map(|_| ask_at(random.u64(0..2000))).collect();
        let said_never = |refusal: &Refusal| refusal.retry == RetryAfter::Never;
        let refused = answers.iter().flatten();
        if refused.clone().any(said_never) {
            assert!(answers.iter().all(Option::is_some), "seed {seed}: {answers:?}");
            never += 1;
        }
        // Nobody is named as the cause, and no time at which it is the same again.
        for refusal in refused {
            assert_eq!(refusal.cause, RefusalCause::Title, "seed {seed}: {refusal:?}");
            assert_eq!(refusal.retry.after(), None, "seed {seed}: {refusal:?}");
            title_for_now += u32::from(refusal.retry == RetryAfter::Unknown);
        }
    }
    assert!(never > 50 && title_for_now > 50, "{never} never, {title_for_now} not then");
}

#[test]
fn a_title_that_fits_alone_at_another_moment_is_refused_because_of_the_sessions() {
    let mut seen = 0;
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let config = config(random.u32(1..6), 1000);
        let (pieces, every_ms) = (random.u32(1..60), random.u32(50..400));
        let at = |millis| {
            let mut fixture = Fixture::new(config.clone());
            fixture.now = Moment::ZERO + Duration::from_millis(millis);
            fixture
        };
        // A session shows that such a title fits; the next request comes early in the next slot.
        let (first, second) = (random.u64(250..500), random.u64(500..750));
        let mut fixture = at(first);
        let view = dense(1, pieces, every_ms);
        let fits_then = at(second).refusal_of(&view).is_none();
        if fixture.refusal_of(&view).is_some() || fits_then {
            continue;
        }
        fixture.now = Moment::ZERO + Duration::from_millis(second);
        let refusal = fixture.refusal_of(&dense(2, pieces, every_ms)).expect("not even alone");
        assert_eq!(refusal.cause, RefusalCause::Sessions, "seed {seed}: {refusal:?}");
        seen += 1;
    }
    assert!(seen > 5, "{seen} were refused that would fit at another moment");
}

#[test]
fn a_disk_slower_than_its_calibration_is_the_cause_and_is_tried_again_after_a_while() {
    let mut fixture = Fixture::new(config(8, 1000));
    let viewers: Vec<SessionId> = (10..16).map_while(|title| fixture.admit(title).ok()).collect();
    // It makes one read in each slot, however many are to be made, for less than the time that
    // viewers may ask for nothing.
    for _ in 0..8 {
        fixture.now = fixture.engine.next_wakeup();
        fixture.engine.tick(fixture.now);
        fixture.drain();
        if !fixture.reads.is_empty() {
            let read = fixture.reads.remove(0);
            fixture.engine.read_done(fixture.now, read, ReadOutcome::Good);
            fixture.drain();
        }
    }
    viewers.iter().for_each(|viewer| fixture.engine.close(fixture.now, *viewer));
    fixture.drain();
    fixture.read_all(ReadOutcome::Good);
    fixture.pass(600);
    let film = dense(2, 100, 150);
    let refusal = fixture.refusal_of(&film).expect("four reads a slot");
    assert_eq!(refusal.cause, RefusalCause::SlowDisk, "{refusal:?}");
    let wait = refusal.retry.after().expect("the guard eases then");
    assert_eq!(wait, Duration::from_secs(2));
    // Nothing is read meanwhile, because nobody is admitted.
    let mut attempts = 0;
    while fixture.refusal_of(&film).is_some() {
        fixture.now = fixture.now + wait;
        attempts += 1;
        assert!(attempts < 20, "it is never tried again");
    }
    assert!(attempts > 0);
}

#[test]
fn where_no_start_is_found_the_end_of_the_next_reservation_is_named() {
    // Memory for one viewer, whose title lasts longer than starts are searched for.
    let mut fixture = Fixture::new(config(50, 10));
    let (long, pieces) = (dense(1, 4000, 500), 4000);
    let AdmissionDecision::Admitted { session, .. } = fixture.ask(request(long)) else {
        panic!("it fits")
    };
    fixture.want(session, 0..pieces);
    let refusal = fixture.refusal_of(&layout(2)).expect("memory is for one viewer");
    assert_eq!((refusal.cause, refusal.resource), (RefusalCause::Sessions, Some(Resource::Memory)));
    let RetryAfter::Estimated(wait) = refusal.retry else { panic!("{refusal:?}") };
    let lasts = Duration::from_secs(2000);
    assert!(wait >= lasts && wait < lasts + Duration::from_secs(10), "{wait:?}");
}

#[test]
fn a_server_that_stops_and_a_title_that_goes_refuse_without_a_resource() {
    let mut fixture = Fixture::new(config(4, 1000));
    let lost = DiskNumber(0);
    fixture.engine.fail_disk(fixture.now, lost);
    let refusal = fixture.refusal_of(&layout(1)).expect("its disk is lost");
    assert_eq!((refusal.cause, refusal.resource), (RefusalCause::DiskLost, Some(Resource::Disk)));
    assert_eq!(refusal.retry, RetryAfter::Unknown);

    let mut fixture = Fixture::new(config(4, 1000));
    fixture.engine.stop_admitting();
    let refusal = fixture.refusal_of(&layout(1)).expect("the server stops");
    assert_eq!((refusal.cause, refusal.resource), (RefusalCause::Server, None));
}

#[test]
fn a_refusal_leaves_the_memory_of_other_viewers_sockets_as_it_was() {
    let mut fixture = Fixture::new(config(400, 30));
    assert!((1..=3).all(|title| fixture.admit(title).is_ok()));
    let reserved = |fixture: &Fixture| -> Vec<u64> {
        fixture.engine.sessions.values().map(|session| session.reserve).collect()
    };
    let two_pieces_each = vec![2 * u64::from(PIECE); 3];
    assert_eq!(reserved(&fixture), two_pieces_each);
    // A slot of it has 25 pieces, for which less memory for sockets makes no room.
    let refusal = fixture.refusal_of(&dense(9, 500, 20)).expect("it does not fit");
    assert_eq!(refusal.resource, Some(Resource::Memory), "{refusal:?}");
    assert_eq!(reserved(&fixture), two_pieces_each);
    assert_eq!(fixture.engine.audit(), Ok(()));
}

// A disk that may pause for three seconds has everybody wait for one, also behind others.
#[test]
fn nobody_is_refused_for_a_wait_that_the_empty_disk_needs_too() {
    let patient = MaxWait { time: Duration::from_secs(5), ..MaxWait::default() };
    // Who waits for the disk only, as a viewer for whom a director asks.
    let for_disk = MaxWait { for_disk: Duration::from_secs(5), ..MaxWait::default() };
    let disks = [(0, 30), (6, 30), (12, 30), (16, 0)];
    let waits = [patient, for_disk];
    for ((slots_paused, viewers), max_wait) in
        disks.into_iter().flat_map(|disk| waits.map(|max_wait| (disk, max_wait)))
    {
        let config = EngineConfig { policy: PolicyKind::ServiceCurve, ..config(100, 10_000) };
        let mut fixture = Fixture::new(config);
        let pauses = (1..=slots_paused).map(|slots| (slots, 0));
        let curve = ServiceCurve::of_fewest(pauses.chain([(slots_paused + 1, 100)]));
        let timings = DiskTimings { curve: Some(curve), ..DiskTimings::default() };
        fixture.engine.set_timings(Moment::ZERO, DiskNumber(0), timings);
        let admitted = (0..30).filter(|title| {
            let request = AdmitRequest { max_wait, ..request(layout(*title)) };
            let answer = fixture.ask(request);
            fixture.pass(200);
            matches!(answer, AdmissionDecision::Admitted { .. })
        });
        assert_eq!(admitted.count(), viewers, "{slots_paused} slots without a read, {max_wait:?}");
    }
}
