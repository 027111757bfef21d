//! Titles with copies on two disks, and the loss of a disk.

use super::*;
use crate::stream::{Counted, Hold, Stream};
use scheduler::{DiskTimings, PlayoutClock};

pub(super) fn two_disks(min_read: u32, survive_loss: bool) -> EngineConfig {
    let config = config(min_read, 400);
    let disks = vec![config.disks[0]; 2];
    EngineConfig { disks, survive_loss, ..config }
}

pub(super) fn copied(title: u64) -> AdmitRequest {
    let there = |layout: Layout| Arc::new(Layout { disk: DiskNumber(1), ..layout });
    let copy = there(Arc::into_inner(layout(title)).expect("made just now"));
    AdmitRequest { copies: vec![copy], ..request(layout(title)) }
}

/// Lets in as many as come in; title 1 has the first.
fn fill(fixture: &mut Fixture) -> Vec<SessionId> {
    let mut sessions = Vec::new();
    for title in 1.. {
        let answer = fixture.engine.admit(fixture.now, copied(title));
        fixture.drain();
        match answer {
            AdmissionDecision::Admitted { session, .. } => sessions.push(session),
            AdmissionDecision::Refused(refusal) => {
                let survives = refusal.detail.starts_with("if disk ");
                assert_eq!(
                    survives,
                    fixture.engine.streams.bookings.survives_loss(),
                    "{}",
                    refusal.detail
                );
                return sessions;
            }
        }
    }
    unreachable!("a disk is full some time")
}

#[test]
fn a_newcomer_is_placed_on_the_disk_with_more_slack() {
    let mut fixture = Fixture::new(two_disks(8, false));
    fill(&mut fixture);
    let status = fixture.engine.status(fixture.now);
    let here: Vec<u64> = status.disks.iter().map(|disk| disk.sessions).collect();
    assert!(here[0].abs_diff(here[1]) <= 1 && here[0] > 2, "{here:?}");
    fixture.engine.audit().unwrap();
}

#[test]
fn sessions_survive_the_loss_of_either_disk_at_any_moment() {
    for (lost, after) in (0..2).flat_map(|lost| (0..24).map(move |n| (lost, 130 * n))) {
        let mut fixture = Fixture::new(two_disks(8, true));
        let sessions = fill(&mut fixture);
        assert!(sessions.len() > 2, "{}", sessions.len());
        for session in &sessions {
            fixture.want(*session, 0..PIECES);
        }
        fixture.pass(after);
        fixture.engine.fail_disk(fixture.now, DiskNumber(lost));
        fixture.drain();
        fixture.engine.audit().unwrap();
        fixture.pass(60_000);
        let status = fixture.engine.status(fixture.now);
        assert_eq!(
            (status.counters.deadline_misses, status.counters.ended_by_disk_loss),
            (0, 0),
            "{lost} after {after}"
        );
        assert!(status.counters.failed_over > 0 && status.disks[usize::from(lost)].lost);
        let whole = sessions.len() as u64 * u64::from(PIECES);
        assert_eq!(status.counters.deadlines_met, whole, "{lost} after {after}");
        fixture.engine.audit().unwrap();
        assert!(fixture.engine.is_empty());
    }
}

#[test]
fn without_survive_loss_more_sessions_are_admitted_and_some_end() {
    let mut careful = Fixture::new(two_disks(8, true));
    let survivors = fill(&mut careful).len();
    let mut fixture = Fixture::new(two_disks(8, false));
    let sessions = fill(&mut fixture);
    assert!(sessions.len() > survivors, "{} and {survivors}", sessions.len());
    for session in &sessions {
        fixture.want(*session, 0..PIECES);
    }
    fixture.pass(3000);
    fixture.engine.fail_disk(fixture.now, DiskNumber(0));
    fixture.drain();
    let status = fixture.engine.status(fixture.now);
    assert_eq!(status.disks[0].sessions, 0);
    assert_eq!(status.disks[1].sessions, status.sessions);
    assert_eq!(
        status.counters.failed_over + status.counters.ended_by_disk_loss,
        sessions.len() as u64 / 2
    );
    fixture.pass(120_000);
    fixture.engine.audit().unwrap();
    assert!(fixture.engine.is_empty());
}

#[test]
fn of_the_sessions_of_a_lost_disk_the_highest_priority_moves_first_and_then_the_oldest() {
    let mut fixture = Fixture::new(two_disks(8, false));
    let sessions = fill(&mut fixture);
    let engine = &mut fixture.engine;
    let priorities = [Priority::Low, Priority::Normal, Priority::High];
    let here: Vec<SessionId> = sessions
        .into_iter()
        .filter(|session| engine.sessions[session].layout.disk == DiskNumber(0))
        .collect();
    for (session, priority) in here.iter().zip(priorities.iter().cycle()) {
        engine.sessions[session].priority = *priority;
    }
    let mut order: Vec<SessionId> = here.clone();
    order.sort_by_key(|session| (std::cmp::Reverse(engine.sessions[session].priority), *session));
    fixture.log.clear();
    fixture.engine.fail_disk(fixture.now, DiskNumber(0));
    fixture.drain();
    // There is room for all of them, and for most only later.
    let later: Vec<String> = fixture.take_log("Delayed");
    let of = |session: &SessionId| format!(" for {}", session.0);
    let last = order.iter().skip(order.len() - later.len());
    assert!(later.len() > 1, "{later:?}");
    assert!(last.zip(&later).all(|(session, said)| said.ends_with(&of(session))), "{later:?}");
}

#[test]
fn a_failed_read_is_repeated_from_the_other_copy() {
    let mut fixture = Fixture::new(two_disks(8, false));
    let AdmissionDecision::Admitted { session, .. } = fixture.engine.admit(fixture.now, copied(1))
    else {
        panic!("there is room")
    };
    fixture.pass(500);
    let again = end_one(&mut fixture, ReadOutcome::Damaged);
    assert!(again.contains(&DiskNumber(1)), "{again:?}");
    fixture.want(session, 0..PIECES);
    fixture.pass(60_000);
    assert_eq!(fixture.engine.status(fixture.now).counters.deadline_misses, 0);
    fixture.engine.audit().unwrap();
}

/// The first read in a device ends so. Says on which disks reads begin then.
fn end_one(fixture: &mut Fixture, outcome: ReadOutcome) -> Vec<DiskNumber> {
    let read = fixture.reads.remove(0);
    fixture.engine.read_done(fixture.now, read, outcome);
    begun(fixture)
}

/// The next slot begins. Says on which disks reads begin.
fn next_slot(fixture: &mut Fixture) -> Vec<DiskNumber> {
    fixture.now = fixture.engine.next_wakeup();
    fixture.engine.tick(fixture.now);
    begun(fixture)
}

fn begun(fixture: &mut Fixture) -> Vec<DiskNumber> {
    let mut disks = Vec::new();
    for action in fixture.engine.take_actions() {
        if let Action::Read { read, disk, .. } = action {
            fixture.reads.push(read);
            disks.push(disk);
        }
    }
    fixture.engine.audit().unwrap();
    disks
}

/// One viewer of title 1, which is read from disk 0, and its first reads.
fn first_viewer(survive_loss: bool) -> (Fixture, SessionId) {
    let mut fixture = Fixture::new(two_disks(8, survive_loss));
    let answer = fixture.engine.admit(fixture.now, copied(1));
    let AdmissionDecision::Admitted { session, .. } = answer else { panic!("there is room") };
    assert_eq!(begun(&mut fixture), [DiskNumber(0)]);
    (fixture, session)
}

fn doubtful(fixture: &Fixture) -> usize {
    fixture.engine.streams.bookings.disks[0].doubtful.len()
}

#[test]
fn a_failed_read_waits_for_the_next_slot_where_a_loss_is_survived() {
    for (outcome, survive_loss, waits) in [
        (ReadOutcome::Failed, true, true),
        (ReadOutcome::Failed, false, false),
        (ReadOutcome::Damaged, true, false),
    ] {
        let (mut fixture, session) = first_viewer(survive_loss);
        let other = DiskNumber(1);
        assert_eq!(end_one(&mut fixture, outcome).contains(&other), !waits, "{outcome:?}");
        assert_eq!(doubtful(&fixture), usize::from(waits));
        assert_eq!(next_slot(&mut fixture).contains(&other), waits, "{outcome:?}");
        assert_eq!(doubtful(&fixture), 0);
        fixture.want(session, 0..PIECES);
        fixture.pass(60_000);
        let counters = fixture.engine.status(fixture.now).counters;
        assert_eq!(
            (counters.deadlines_met, counters.deadline_misses),
            (u64::from(PIECES), 0),
            "{outcome:?}"
        );
    }
}

#[test]
fn of_the_failed_reads_of_a_dying_disk_each_slot_repeats_what_the_other_disk_guarantees() {
    let (mut fixture, session) = first_viewer(true);
    for _ in 0..12 {
        assert_eq!(end_one(&mut fixture, ReadOutcome::Failed), [DiskNumber(0)], "read ahead");
    }
    assert_eq!(doubtful(&fixture), 12);
    let on_other = |disks: Vec<DiskNumber>| disks.iter().filter(|disk| disk.0 == 1).count();
    assert_eq!(on_other(next_slot(&mut fixture)), 8, "min_read of them, the most urgent first");
    assert_eq!(doubtful(&fixture), 4);
    fixture.want(session, 0..PIECES);
    fixture.pass(60_000);
    let counters = fixture.engine.status(fixture.now).counters;
    assert_eq!((counters.deadlines_met, counters.deadline_misses), (u64::from(PIECES), 0));
}

#[test]
fn a_failed_read_that_nobody_needs_any_more_is_not_repeated() {
    let (mut fixture, session) = first_viewer(true);
    end_one(&mut fixture, ReadOutcome::Failed);
    assert_eq!(doubtful(&fixture), 1);
    fixture.engine.close(fixture.now, session);
    while !fixture.reads.is_empty() {
        end_one(&mut fixture, ReadOutcome::Good);
    }
    assert_eq!(next_slot(&mut fixture), []);
    assert_eq!(doubtful(&fixture), 0);
    assert!(fixture.engine.is_empty());
}

#[test]
fn a_late_piece_counts_once_however_often_it_is_read() {
    let mut fixture = Fixture::new(two_disks(8, false));
    let AdmissionDecision::Admitted { session, .. } = fixture.engine.admit(fixture.now, copied(1))
    else {
        panic!("there is room")
    };
    // Two requests at once: the second is served while the first waits for pieces 0 and 1.
    fixture.want(session, 0..2);
    fixture.want(session, 2..PIECES);
    let mut hanging = vec![fixture.reads.remove(0)];
    fixture.now = Moment::from_millis(500);
    fixture.engine.tick(fixture.now);
    fixture.drain();
    // The batch goes inward: the piece that lies first is read last.
    hanging.extend(fixture.reads.pop());
    fixture.pass(2000);
    assert!(!fixture.take_log("deliver 2").is_empty(), "what it has had is read once more");
    fixture.engine.fail_disk(fixture.now, DiskNumber(0));
    fixture.drain();
    fixture.pass(60_000);
    let status = fixture.engine.status(fixture.now);
    assert_eq!(
        (status.counters.failed_over, status.counters.deadline_misses),
        (1, hanging.len() as u64)
    );
    assert_eq!(status.counters.deadlines_met, u64::from(PIECES) - status.counters.deadline_misses);
}

#[test]
fn a_piece_that_is_dropped_is_counted_again_until_its_delayed_deadline() {
    let timing = PlayoutClock {
        origin: Moment::ZERO,
        startup: Duration::from_secs(2),
        opens_after: Duration::ZERO,
        with_first_ms: 0,
        from_ms: 0,
        kept_from_ms: 0,
        kept_longer: 0,
        slot: Duration::from_millis(500),
        early: 0,
    };
    for (dropped_at, counted_again) in [(2_500, true), (3_500, true), (3_501, false)] {
        let mut stream = Stream::new(SessionId(1), layout(1), 0, timing, 0);
        stream.hold_next(stream.due(0), ReadId(1));
        let Some(Hold::Held { counted, .. }) = stream.hold_mut(0) else { panic!("held") };
        *counted = Some(Counted::OnTime);
        assert_eq!(stream.deadline(0), Moment::from_millis(2_000));
        stream.delay(3);
        let back = stream.unread_last(Moment::from_millis(dropped_at)).expect("held");
        assert_eq!(back.on_time, counted_again, "{dropped_at}");
    }
}

#[test]
fn what_was_due_before_a_disk_was_lost_is_late_for_that_disk() {
    let mut fixture =
        Fixture::new(EngineConfig { policy: PolicyKind::TimeDomain, ..two_disks(8, false) });
    let model = disk::DiskModel::preset("st39183w").expect("a known disk");
    for number in 0..2 {
        let timings = DiskTimings::of_model(&model, ByteCount(u64::from(PIECE)), 1);
        fixture.engine.set_timings(Moment::ZERO, DiskNumber(number), timings);
    }
    let AdmissionDecision::Admitted { session, .. } = fixture.engine.admit(fixture.now, copied(1))
    else {
        panic!("there is room")
    };
    fixture.drain();
    fixture.want(session, 0..PIECES / 2);
    while fixture.take_log("lost").is_empty() {
        fixture.now = fixture.engine.next_wakeup();
        fixture.engine.tick(fixture.now);
        fixture.drain();
    }
    let lost_at = fixture.now;
    // With its plan the moved session is guaranteed some slack again.
    fixture.engine.admit(fixture.now, copied(2));
    fixture.drain();
    fixture.pass(1_000);
    let counters = fixture.engine.status(fixture.now).counters;
    assert!(counters.violations_by_disk > 0, "{counters:?}");
    assert_eq!(counters.violations_by_scheduler, 0, "the new disk was given no time for them");
    let streams = &mut fixture.engine.streams;
    let (_, stream) = streams.iter().find(|(_, stream)| stream.session == session).unwrap();
    let stream = stream.clone();
    for (due, by_scheduler) in [(lost_at, 0), (lost_at + Duration::from_nanos(1), 1)] {
        streams.count_unserved(fixture.now, &stream, due);
        assert_eq!(streams.accounts.counters.violations_by_scheduler, by_scheduler);
    }
}

#[test]
fn memory_that_moved_with_its_session_is_not_given_out_before_it_is_free() {
    let config = config(8, 60);
    let disks = vec![config.disks[0]; 3];
    let mut fixture = Fixture::new(EngineConfig { disks, ..config });
    let on = |disk, title| {
        let layout = Arc::into_inner(layout(title)).expect("made just now");
        Arc::new(Layout { disk: DiskNumber(disk), ..layout })
    };
    // One on the disk that is lost and one on that with the copy. Both are read far ahead for.
    let moves = AdmitRequest { copies: vec![on(1, 2)], ..request(on(0, 2)) };
    for request in [request(on(1, 1)), moves] {
        let AdmissionDecision::Admitted { session, .. } =
            fixture.engine.admit(fixture.now, request)
        else {
            panic!("there is room")
        };
        fixture.drain();
        fixture.want(session, 0..1);
    }
    fixture.pass(3000);
    fixture.engine.fail_disk(fixture.now, DiskNumber(0));
    fixture.drain();
    assert_eq!(fixture.take_log("lost"), ["lost 0: 1 moved, 0 ended"]);
    let memory = |fixture: &Fixture| -> Vec<u64> {
        fixture
            .engine
            .streams
            .bookings
            .disks
            .iter()
            .map(|disk| disk.memory / u64::from(PIECE))
            .collect()
    };
    let there = memory(&fixture);
    assert_eq!(there.iter().sum::<u64>(), 60, "{there:?}");
    assert!(there[1] > 30, "more than its share, and half of that of the lost one: {there:?}");
    assert!(
        fixture.engine.streams.bookings.disks.iter().all(|disk| disk.lacks() == 0),
        "{there:?}"
    );
    fixture.pass(60_000);
    assert_eq!(memory(&fixture), [0, 30, 30], "even again");
}

#[test]
fn a_disk_is_lost_when_the_device_is_gone_or_keeps_failing() {
    for (outcome, reads, lost) in [
        (ReadOutcome::Gone, 1, true),
        (ReadOutcome::Failed, 40, true),
        (ReadOutcome::Damaged, 40, false),
    ] {
        let mut fixture = Fixture::new(two_disks(8, false));
        // Without copies: all of them lie on disk 0.
        for title in 1..5 {
            fixture.admit(title).unwrap();
        }
        let mut left = reads;
        for _ in 0..40 {
            fixture.now =
                fixture.engine.next_wakeup().min(fixture.now + Duration::from_millis(500));
            fixture.engine.tick(fixture.now);
            fixture.drain();
            while left > 0 && !fixture.reads.is_empty() {
                let read = fixture.reads.remove(0);
                fixture.engine.read_done(fixture.now, read, outcome);
                fixture.drain();
                left -= 1;
            }
        }
        let status = fixture.engine.status(fixture.now);
        assert_eq!(status.disks[0].lost, lost, "{outcome:?}");
        assert_eq!(status.counters.ended_by_disk_loss > 0, lost, "{outcome:?}");
        let cause = fixture.admit(9).err().map(|refusal| refusal.cause);
        assert_eq!(cause == Some(RefusalCause::DiskLost), lost, "{cause:?}");
        fixture.engine.audit().unwrap();
    }
}
