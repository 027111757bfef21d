//! Sessions that go on in another engine: at their deadlines, as far as these can be kept.

use super::*;

impl Fixture {
    /// Another engine that goes on with the sessions of this one, `gap` milliseconds later. Says
    /// how each goes on.
    fn hand_over(self, gap: u64, config: EngineConfig) -> (Self, Vec<TakenOver>) {
        self.hand_over_with(gap, config, |session| request(layout(session.0)))
    }

    fn hand_over_with(
        self,
        gap: u64,
        config: EngineConfig,
        title: impl Fn(SessionId) -> AdmitRequest,
    ) -> (Self, Vec<TakenOver>) {
        let mut next = Self::new(config);
        next.now = self.now + Duration::from_millis(gap);
        next.next_request = self.next_request;
        let states = self.engine.handed_sessions();
        let gone_on = states.into_iter().map(|state| {
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<HandedSession>(&text).unwrap(), state);
            let wanted = AdmitRequest { max_wait: chosen_wait(5), ..title(state.session) };
            let gone_on = next.engine.take_over(next.now, state, wanted);
            next.drain();
            gone_on
        });
        let gone_on = gone_on.collect();
        (next, gone_on)
    }

    /// The player fetches pieces, each when the one before has been sent.
    fn play(&mut self, session: SessionId, pieces: std::ops::Range<u32>) {
        for piece in pieces {
            self.want(session, piece..piece + 1);
            self.pass(500);
        }
    }
}

fn booked(delay: u64) -> TakenOver {
    TakenOver::Booked { delay: Duration::from_millis(delay) }
}

#[test]
fn a_player_that_has_fetched_ahead_does_not_notice() {
    for gap in [0, 300, 1700] {
        let mut before = Fixture::new(config(4, 40));
        let viewer = before.admit(1).unwrap();
        before.want(viewer, 0..10);
        before.pass(2000);
        let said = before.take_log("");
        assert!(said.contains(&"complete 1".to_owned()), "five seconds are fetched: {said:?}");
        let (mut next, gone_on) = before.hand_over(gap, config(4, 40));
        assert_eq!(gone_on, [booked(0)], "{gap} ms");
        next.play(viewer, 10..PIECES);
        assert_eq!(next.take_log("Readmitted"), [] as [&str; 0], "no request is a seek");
        assert_ne!(next.admit(2).unwrap(), viewer, "its id is taken");
        next.engine.close(next.now, viewer);
        next.drain();
        assert_eq!(next.take_log("ended"), ["ended 1 40 on time 0 late"]);
        assert_eq!(next.engine.status(next.now).counters.violations_by_scheduler, 0);
    }
}

#[test]
fn the_schedule_of_a_player_at_its_clock_moves_by_what_the_handover_took() {
    let mut before = Fixture::new(config(4, 40));
    let viewer = before.admit(1).unwrap();
    before.play(viewer, 0..8);
    // Piece 8 was due at 3.5 s, half a second before it is shown. Now it can be there at 5.5 s.
    let (mut next, gone_on) = before.hand_over(700, config(4, 40));
    assert_eq!(gone_on, [booked(2000)]);
    next.pass(1000);
    next.play(viewer, 8..PIECES);
    next.engine.close(next.now, viewer);
    next.drain();
    let said = next.take_log("ended");
    assert_eq!(said, ["ended 1 40 on time 0 late"], "what was read before is counted once");
    assert_eq!(next.engine.status(next.now).counters.violations_by_scheduler, 0);
}

#[test]
fn what_was_delivered_to_its_end_is_not_read_again_and_nothing_of_it_is_late() {
    // The last piece is not a whole one.
    let title = || {
        let track = TrackLayout { bytes: u64::from(PIECES * PIECE) - 100, ..track(PIECES) };
        let (title, disk) = (TitleKey(1), DiskNumber(0));
        let duration = Duration::from_secs(20);
        request(Arc::new(Layout { title, disk, duration, tracks: vec![track] }))
    };
    let hour = Duration::from_secs(3600);
    let patient = || EngineConfig { reservation_hold: hour, idle_timeout: hour, ..config(4, 400) };
    for idle in [0, 12_000, 19_000] {
        let mut before = Fixture::new(patient());
        let answer = before.engine.admit(before.now, title());
        before.drain();
        let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
        before.engine.connected(session);
        let (request, whole) = (before.next(), 0..u64::from(PIECES * PIECE) - 100);
        let parts = vec![Part { track: 0, bytes: whole }];
        let media = MediaRequest { request, session, parts };
        before.engine.request_for(before.now, ResponsePlace::default(), media);
        before.drain();
        before.pass(6_000);
        assert_eq!(before.take_log("complete"), ["complete 1"]);
        // Its play-out is under way, or over.
        before.pass(idle);
        let (mut next, gone_on) = before.hand_over_with(200, patient(), |_| title());
        assert_eq!(gone_on, [booked(0)], "after {idle} ms");
        next.pass(4_000);
        next.engine.close(next.now, session);
        next.drain();
        assert_eq!(next.take_log(""), ["ended 1 40 on time 0 late"], "after {idle} ms");
    }
}

#[test]
fn a_session_that_does_not_fit_goes_on_without_a_reservation() {
    let mut before = Fixture::new(config(4, 40));
    let viewers = [before.admit(1).unwrap(), before.admit(2).unwrap()];
    for piece in 0..6 {
        for viewer in viewers {
            before.want(viewer, piece..piece + 1);
        }
        before.pass(500);
    }
    // The next engine's disk holds one of them.
    let (mut next, gone_on) = before.hand_over(100, config(1, 40));
    assert!(
        matches!(gone_on[..], [TakenOver::Booked { .. }, TakenOver::Refused(_)]),
        "{gone_on:?}"
    );
    let status = next.engine.status(next.now);
    assert_eq!((status.sessions, status.active), (2, 1));
    let request = next.want(viewers[1], 6..7);
    assert_eq!(next.take_log("refused"), [format!("refused {} Disk", request.0)]);
    next.engine.close(next.now, viewers[0]);
    next.want(viewers[1], 6..7);
    assert_eq!(next.take_log("refused"), [] as [&str; 0], "there is room");
}

#[test]
fn what_has_no_reservation_or_is_cut_otherwise_has_none_afterwards() {
    let mut before = Fixture::new(config(4, 40));
    let silent = before.admit(1).unwrap();
    before.want(silent, 0..1);
    before.pass(12_000);
    assert_eq!(before.engine.status(before.now).active, 0);
    let (mut next, gone_on) = before.hand_over(100, config(4, 40));
    assert_eq!(gone_on, [TakenOver::Silent]);
    next.want(silent, 1..2);
    assert_eq!(next.take_log("Readmitted").len(), 1);
    let shorter = |title| {
        let tracks = vec![track(PIECES / 2)];
        let (title, disk) = (TitleKey(title), DiskNumber(0));
        request(Arc::new(Layout { title, disk, duration: Duration::from_secs(10), tracks }))
    };
    let (next, gone_on) = next.hand_over_with(100, config(4, 40), |session| shorter(session.0));
    assert_eq!(gone_on, [TakenOver::Silent]);
    assert_eq!(next.engine.status(next.now).sessions, 1);
}

#[test]
fn those_who_share_a_title_share_it_again() {
    let policy = PolicyKind::VbrSim;
    let mut before = Fixture::new(EngineConfig { policy, ..config(3, 400) });
    let of_one = || request(layout(1));
    let mut viewers = Vec::new();
    for _ in 0..3 {
        let answer = before.engine.admit(before.now, of_one());
        before.drain();
        let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
        viewers.push(session);
        before.want(session, 0..4);
        before.pass(500);
    }
    before.pass(1000);
    let following = before.engine.status(before.now).following;
    let again = EngineConfig { policy, ..config(3, 400) };
    let (next, gone_on) = before.hand_over_with(100, again, |_| of_one());
    assert!(gone_on.iter().all(|it| matches!(it, TakenOver::Booked { .. })), "{gone_on:?}");
    assert_eq!(next.engine.status(next.now).following, following);
}
