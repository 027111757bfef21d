//! Titles on two disks, and losing one.

use super::*;

fn two_disks(min_read: u32, survive_loss: bool) -> EngineConfig {
    let config = config(min_read, 400);
    let disks = vec![config.disks[0]; 2];
    EngineConfig { disks, survive_loss, ..config }
}

fn copied(title: u64) -> AdmitRequest {
    let there = |layout: Layout| Arc::new(Layout { disk: DiskNumber(1), ..layout });
    let copy = there(Arc::into_inner(layout(title)).expect("made just now"));
    AdmitRequest { copies: vec![copy], ..request(layout(title)) }
}

/// Lets in as many as come in; title 1 has the first.
fn fill(house: &mut House) -> Vec<SessionId> {
    let mut sessions = Vec::new();
    for title in 1.. {
        let answer = house.engine.admit(house.now, copied(title));
        house.hear();
        match answer {
            Answer::Admitted { session, .. } => sessions.push(session),
            Answer::Refused(refusal) => {
                let survives = refusal.detail.starts_with("if disk ");
                assert_eq!(survives, house.engine.standby.is_wanted(), "{}", refusal.detail);
                return sessions;
            }
        }
    }
    unreachable!("a disk is full some time")
}

#[test]
fn newcomers_go_to_the_disk_with_more_room() {
    let mut house = House::new(two_disks(8, false));
    fill(&mut house);
    let status = house.engine.status(house.now);
    let here: Vec<u64> = status.disks.iter().map(|disk| disk.sessions).collect();
    assert!(here[0].abs_diff(here[1]) <= 1 && here[0] > 2, "{here:?}");
    house.engine.audit().unwrap();
}

#[test]
fn who_must_survive_a_loss_does_at_any_moment_and_on_either_disk() {
    for (lost, after) in (0..2).flat_map(|lost| (0..24).map(move |n| (lost, 130 * n))) {
        let mut house = House::new(two_disks(8, true));
        let sessions = fill(&mut house);
        assert!(sessions.len() > 2, "{}", sessions.len());
        for session in &sessions {
            house.want(*session, 0..PIECES);
        }
        house.pass(after);
        house.engine.lose_disk(house.now, DiskNumber(lost));
        house.hear();
        house.engine.audit().unwrap();
        house.pass(60_000);
        let status = house.engine.status(house.now);
        assert_eq!((status.glitches, status.ended_by_loss), (0, 0), "{lost} after {after}");
        assert!(status.moved > 0 && status.disks[usize::from(lost)].lost);
        let whole = sessions.len() as u64 * u64::from(PIECES);
        assert_eq!(status.on_time, whole, "{lost} after {after}");
        house.engine.audit().unwrap();
        assert!(house.engine.is_empty());
    }
}

#[test]
fn without_that_more_come_in_and_some_end() {
    let mut careful = House::new(two_disks(8, true));
    let survivors = fill(&mut careful).len();
    let mut house = House::new(two_disks(8, false));
    let sessions = fill(&mut house);
    assert!(sessions.len() > survivors, "{} and {survivors}", sessions.len());
    for session in &sessions {
        house.want(*session, 0..PIECES);
    }
    house.pass(3000);
    house.engine.lose_disk(house.now, DiskNumber(0));
    house.hear();
    let status = house.engine.status(house.now);
    assert_eq!(status.disks[0].sessions, 0);
    assert_eq!(status.disks[1].sessions, status.sessions);
    assert_eq!(status.moved + status.ended_by_loss, sessions.len() as u64 / 2);
    house.pass(120_000);
    house.engine.audit().unwrap();
    assert!(house.engine.is_empty());
}

#[test]
fn a_read_that_fails_is_made_again_from_the_other_copy() {
    let mut house = House::new(two_disks(8, false));
    let Answer::Admitted { session, .. } = house.engine.admit(house.now, copied(1)) else {
        panic!("there is room")
    };
    house.pass(500);
    house.engine.tick(house.now);
    let reads: Vec<Action> = house.engine.take_actions();
    assert!(reads.is_empty(), "{reads:?}");
    let read = house.reads.remove(0);
    house.engine.read_done(house.now, read, ReadOutcome::Damaged);
    let again: Vec<DiskNumber> = house
        .engine
        .take_actions()
        .into_iter()
        .filter_map(|action| match action {
            Action::Read { read, disk, .. } => {
                house.reads.push(read);
                Some(disk)
            }
            _ => None,
        })
        .collect();
    assert!(again.contains(&DiskNumber(1)), "{again:?}");
    house.want(session, 0..PIECES);
    house.pass(60_000);
    assert_eq!(house.engine.status(house.now).glitches, 0);
    house.engine.audit().unwrap();
}

#[test]
fn what_came_late_counts_once_whoever_reads_it_again() {
    let mut house = House::new(two_disks(8, false));
    let Answer::Admitted { session, .. } = house.engine.admit(house.now, copied(1)) else {
        panic!("there is room")
    };
    // Two requests at once: the second is served while the first waits for pieces 0 and 1.
    house.want(session, 0..2);
    house.want(session, 2..PIECES);
    let mut hanging = vec![house.reads.remove(0)];
    house.now = Moment::from_millis(500);
    house.engine.tick(house.now);
    house.hear();
    // The batch goes inward: the piece that lies first is read last.
    hanging.extend(house.reads.pop());
    house.pass(2000);
    assert!(!house.said("deliver 2").is_empty(), "what it has had is read once more");
    house.engine.lose_disk(house.now, DiskNumber(0));
    house.hear();
    house.pass(60_000);
    let status = house.engine.status(house.now);
    assert_eq!((status.moved, status.glitches), (1, hanging.len() as u64));
    assert_eq!(status.on_time, u64::from(PIECES) - status.glitches);
}

#[test]
fn memory_that_moves_with_its_viewer_is_nobody_elses_until_it_is_free() {
    let config = config(8, 60);
    let disks = vec![config.disks[0]; 3];
    let mut house = House::new(EngineConfig { disks, ..config });
    let on = |disk, title| {
        let layout = Arc::into_inner(layout(title)).expect("made just now");
        Arc::new(Layout { disk: DiskNumber(disk), ..layout })
    };
    // One on the disk that is lost and one on that with the copy. Both are read far ahead for.
    let moves = AdmitRequest { copies: vec![on(1, 2)], ..request(on(0, 2)) };
    for request in [request(on(1, 1)), moves] {
        let Answer::Admitted { session, .. } = house.engine.admit(house.now, request) else {
            panic!("there is room")
        };
        house.hear();
        house.want(session, 0..1);
    }
    house.pass(3000);
    house.engine.lose_disk(house.now, DiskNumber(0));
    house.hear();
    assert_eq!(house.said("lost"), ["lost 0: 1 moved, 0 ended"]);
    let memory = |house: &House| -> Vec<u64> {
        house.engine.disks.iter().map(|disk| disk.memory / u64::from(PIECE)).collect()
    };
    let there = memory(&house);
    assert_eq!(there.iter().sum::<u64>(), 60, "{there:?}");
    assert!(there[1] > 30, "more than its share, and half of that of the lost one: {there:?}");
    assert!(house.engine.disks.iter().all(|disk| disk.lacks() == 0), "{there:?}");
    house.pass(60_000);
    assert_eq!(memory(&house), [0, 30, 30], "even again");
}

#[test]
fn the_device_says_so_or_fails_again_and_again() {
    for (outcome, reads, lost) in [
        (ReadOutcome::Gone, 1, true),
        (ReadOutcome::Failed, 40, true),
        (ReadOutcome::Damaged, 40, false),
    ] {
        let mut house = House::new(two_disks(8, false));
        // Without copies: all of them lie on disk 0.
        for title in 1..5 {
            house.admit(title).unwrap();
        }
        let mut left = reads;
        for _ in 0..40 {
            house.now = house.engine.next_wakeup().min(house.now + Duration::from_millis(500));
            house.engine.tick(house.now);
            house.hear();
            while left > 0 && !house.reads.is_empty() {
                let read = house.reads.remove(0);
                house.engine.read_done(house.now, read, outcome);
                house.hear();
                left -= 1;
            }
        }
        let status = house.engine.status(house.now);
        assert_eq!(status.disks[0].lost, lost, "{outcome:?}");
        assert_eq!(status.ended_by_loss > 0, lost, "{outcome:?}");
        let refusal = house.admit(9).err().map(|refusal| refusal.detail);
        assert_eq!(refusal.is_some_and(|why| why.contains("no disk that it lies on")), lost);
        house.engine.audit().unwrap();
    }
}
