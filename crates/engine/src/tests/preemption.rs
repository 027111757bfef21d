//! Priorities: whose place a viewer takes who would be refused otherwise.

use super::*;
use Priority::{High, Low, Normal};

/// A disk of six reads in a slot, on which three viewers start, and viewers of these priorities,
/// who play.
fn house(priorities: &[Priority]) -> (Fixture, Vec<SessionId>) {
    let mut fixture = Fixture::new(config(6, 1000));
    let mut sessions = Vec::new();
    for (title, priority) in (1..).zip(priorities) {
        sessions.push(fixture.come(title, *priority).expect("there is room").0);
    }
    play(&mut fixture, &sessions, 0);
    (fixture, sessions)
}

/// All of these ask for the next piece.
fn play(fixture: &mut Fixture, sessions: &[SessionId], piece: u32) {
    for session in sessions {
        fixture.want(*session, piece..piece + 1);
    }
}

impl Fixture {
    /// A viewer of a title of its own comes; who ends for it.
    fn come(
        &mut self,
        title: u64,
        priority: Priority,
    ) -> Result<(SessionId, Vec<SessionId>), Refusal> {
        self.come_with(AdmitRequest { priority, ..request(layout(title)) })
    }

    fn come_with(&mut self, request: AdmitRequest) -> Result<(SessionId, Vec<SessionId>), Refusal> {
        let answer = self.engine.admit(self.now, request);
        self.drain();
        match answer {
            AdmissionDecision::Admitted { session, preempted, .. } => Ok((session, preempted)),
            AdmissionDecision::Refused(refusal) => Err(refusal),
        }
    }

    fn is_open(&self, session: SessionId) -> bool {
        self.engine.session(self.now, session).is_some()
    }
}

/// As many viewers of each priority as fit, in this order.
fn full(priorities: &[Priority]) -> (Fixture, Vec<SessionId>) {
    let (mut fixture, mut sessions) = house(priorities);
    let last = *priorities.last().expect("one");
    while let Ok((session, preempted)) = fixture.come(100 + sessions.len() as u64, last) {
        assert_eq!(preempted, [], "nobody is lower");
        sessions.push(session);
    }
    (fixture, sessions)
}

#[test]
fn a_viewer_takes_the_place_of_the_newest_of_the_lowest_priority_and_of_no_other() {
    for (there, comes, wanted) in [
        // The number of the session whose place is taken, in the order in which they came.
        ([Low, Low, Normal], Normal, Some(1)),
        ([Low, Normal, Low], High, Some(2)),
        ([Low, Normal, Normal], High, Some(0)),
        ([Normal, High, Normal], High, Some(2)),
        ([Normal, High, Normal], Normal, None),
        ([High, Normal, High], Low, None),
        ([High, High, High], High, None),
    ] {
        let (mut fixture, sessions) = house(&there);
        let before = fixture.engine.status(fixture.now);
        assert_eq!(
            fixture.come(8, Low).map(drop).map_err(|it| it.cause),
            Err(RefusalCause::Sessions)
        );
        let came = fixture.come(9, comes);
        let preempted = came.as_ref().map(|(_, ended)| ended.clone()).unwrap_or_default();
        let wanted: Vec<SessionId> = wanted.iter().map(|number| sessions[*number]).collect();
        assert_eq!(preempted, wanted, "{there:?}, then {comes:?}");
        assert_eq!(came.is_ok(), !wanted.is_empty());
        for session in &sessions {
            assert_eq!(fixture.is_open(*session), !wanted.contains(session), "{there:?}");
        }
        let status = fixture.engine.status(fixture.now);
        assert_eq!(status.counters.preempted_by_priority, wanted.len() as u64);
        let mut of_priority = [0; 3];
        for session in &wanted {
            let number = sessions.iter().position(|other| other == session).unwrap();
            of_priority[there[number] as usize] += 1;
        }
        assert_eq!(status.counters.preempted_of_priority, of_priority, "{there:?}");
        assert_eq!(status.sessions, before.sessions, "one for one");
        let here = sessions.iter().filter(|session| fixture.is_open(**session));
        let mut next: Vec<(SessionId, u32)> = here.map(|session| (*session, 1)).collect();
        next.extend(came.map(|(session, _)| (session, 0)).ok());
        for _ in 0..12 {
            for (session, piece) in &mut next {
                fixture.want(*session, *piece..*piece + 1);
                *piece += 1;
            }
            fixture.pass(500);
        }
        assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0, "{there:?}");
    }
}

#[test]
fn a_session_that_is_preempted_says_why_and_its_viewer_may_come_back() {
    let (mut fixture, sessions) = house(&[Low, Normal, Normal]);
    let request = fixture.want(sessions[0], 1..3);
    fixture.log.clear();
    let answer = fixture
        .engine
        .admit(fixture.now, AdmitRequest { priority: High, ..super::request(layout(9)) });
    let ends: Vec<(SessionId, Option<CutShort>, Priority)> = fixture
        .engine
        .take_actions()
        .into_iter()
        .filter_map(|action| match action {
            Action::Ended { session, summary } => {
                Some((session, summary.cut_short, summary.priority))
            }
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(sessions[0], Some(CutShort::Priority), Low)]);
    fixture.engine.cancel(fixture.now, request);
    let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(fixture.come(1, Low).map_err(|it| it.cause), Err(RefusalCause::Sessions));
    fixture.engine.close(fixture.now, session);
    fixture.drain();
    assert!(fixture.come(1, Low).is_ok(), "there is room again");
}

#[test]
fn no_more_sessions_end_than_are_needed_and_none_for_nothing() {
    // A title of two tracks needs the places of two.
    let two = |title| {
        let mut wide = Arc::into_inner(layout(title)).expect("made just now");
        let second = u64::from(PIECES * PIECE)..u64::from(2 * PIECES * PIECE);
        wide.tracks.push(TrackLayout { runs: vec![second], ..track(PIECES) });
        AdmitRequest { offers: vec![vec![0, 1]], priority: High, ..request(Arc::new(wide)) }
    };
    let (mut fixture, sessions) = full(&[Low, Low, Low]);
    let (_, preempted) = fixture.come_with(two(50)).expect("in place of two");
    let newest: Vec<SessionId> = sessions.iter().rev().take(2).copied().collect();
    assert_eq!(preempted, newest, "the newest first");
    // A third of its kind would need more than the one that is left.
    let third = fixture.come_with(two(51)).map(drop);
    assert!(third.is_err() && fixture.is_open(sessions[0]), "{third:?}");
    assert_eq!(fixture.engine.status(fixture.now).counters.preempted_by_priority, 2);
}

#[test]
fn only_sessions_on_the_disk_that_is_short_give_way() {
    let disks = vec![config(6, 0).disks[0]; 2];
    let mut fixture = Fixture::new(EngineConfig { disks, ..config(6, 2000) });
    let on = |title, disk| {
        let there = Arc::into_inner(layout(title)).expect("made just now");
        Arc::new(Layout { disk: DiskNumber(disk), ..there })
    };
    let mut come = |title, disk, priority| {
        let wanted = AdmitRequest { priority, ..request(on(title, disk)) };
        fixture.come_with(wanted).expect("there is room, or is made")
    };
    let first: Vec<SessionId> = (1..4).map(|title| come(title, 0, Low).0).collect();
    let second: Vec<SessionId> = (4..7).map(|title| come(title, 1, Low).0).collect();
    assert_eq!(come(9, 0, Normal).1, [first[2]], "although those of disk 1 are newer");
    assert_eq!(come(10, 1, Normal).1, [second[2]]);
}

#[test]
fn a_viewer_who_waits_ends_nobody_and_one_who_has_gone_comes_first() {
    let (mut fixture, sessions) = house(&[Low, Low, Low]);
    let patient = AdmitRequest { priority: High, max_wait: chosen_wait(30), ..request(layout(9)) };
    let (waits, preempted) = fixture.come_with(patient).expect("later");
    assert_eq!(preempted, []);
    fixture.engine.close(fixture.now, waits);
    fixture.drain();
    fixture.engine.disconnected(fixture.now, sessions[0], Disconnection::Left);
    fixture.drain();
    assert_eq!(fixture.come(10, High).expect("in its place").1, []);
    assert_eq!(fixture.engine.status(fixture.now).counters.revoked, 1);
}

#[test]
fn a_seek_of_a_higher_priority_is_readmitted_in_place_of_a_lower_one() {
    // Memory for one viewer.
    let mut fixture = Fixture::new(config(50, 10));
    let (high, _) = fixture.come(1, High).expect("there is room");
    fixture.want(high, 0..1);
    // It is silent, and its place is free.
    fixture.pass(9000);
    let (low, _) = fixture.come(2, Low).expect("there is room");
    fixture.want(low, 0..1);
    fixture.log.clear();
    fixture.want(high, 1..2);
    let said = fixture.take_log("");
    assert!(said.iter().any(|text| text.starts_with("Readmitted")), "{said:?}");
    assert!(!fixture.is_open(low), "{said:?}");
    assert_eq!(fixture.engine.status(fixture.now).counters.preempted_by_priority, 1);
}

#[test]
fn with_one_priority_a_refusal_costs_no_evaluation_more() {
    let (mut fixture, sessions) = full(&[Normal, Normal, Normal]);
    let who = super::super::departure::GiveWay::for_shortfalls([(
        fixture.engine.sessions[&sessions[0]].placement(),
        Resource::Disk,
    )]);
    let mut evaluations = 0;
    for priority in [Low, Normal, High] {
        let now = fixture.now;
        fixture.engine.fit_in_place_of_lower(now, priority, &who, |_| -> Option<()> {
            evaluations += 1;
            None
        });
        let any = usize::from(priority == High);
        assert_eq!(evaluations > 0, any > 0, "{priority:?}");
    }
    let bound = 2 * (sessions.len() + 1);
    assert!(evaluations <= bound, "{evaluations} evaluations");
    fixture.engine.audit().expect("all are as they were");
}
