//! Sessions of a title that is still being recorded go on with more of it.

use super::*;

/// The first pieces of a title.
fn part(title: u64, pieces: u32) -> Layout {
    let duration = Duration::from_millis(500) * pieces;
    Layout { title: TitleKey(title), disk: DiskNumber(0), duration, tracks: vec![track(pieces)] }
}

fn admitted(fixture: &mut Fixture, layout: Layout) -> SessionId {
    let answer = fixture.engine.admit(fixture.now, request(Arc::new(layout)));
    fixture.drain();
    let AdmissionDecision::Admitted { session, .. } = answer else { panic!("{answer:?}") };
    session
}

fn extend(fixture: &mut Fixture, session: SessionId, layout: Layout) -> Result<Duration, Shortage> {
    let extended = fixture.engine.extend(fixture.now, session, Arc::new(layout));
    fixture.drain();
    extended
}

/// Eight pieces are offered at first, and four more every two seconds, of which the viewers are
/// told as they ask.
#[test]
fn viewers_of_a_growing_title_get_each_piece_on_time() {
    for (policy, viewers) in
        [(PolicyKind::VbrSim, 1), (PolicyKind::VbrSim, 3), (PolicyKind::TimeDomain, 3)]
    {
        let context = format!("{policy:?}, {viewers} viewers");
        let mut fixture = Fixture::new(EngineConfig { policy, ..config(8, 200) });
        let sessions: Vec<SessionId> =
            (0..viewers).map(|_| admitted(&mut fixture, part(1, 8))).collect();
        let (mut offered, mut asked) = (8, 0);
        while asked < PIECES {
            if asked % 4 == 0 && offered < PIECES {
                offered += 4;
                for session in &sessions {
                    assert_eq!(
                        extend(&mut fixture, *session, part(1, offered)),
                        Ok(Duration::ZERO),
                        "{context}"
                    );
                }
            }
            for session in &sessions {
                fixture.want(*session, asked..asked + 1);
            }
            asked += 1;
            fixture.pass(500);
        }
        fixture.pass(2000);
        assert_eq!(fixture.take_log("refused"), [""; 0], "{context}");
        fixture.log.clear();
        for session in &sessions {
            fixture.engine.close(fixture.now, *session);
            fixture.drain();
        }
        for ended in fixture.take_log("ended") {
            assert!(ended.ends_with("40 on time 0 late"), "{context}: {ended}");
        }
        assert!(fixture.engine.is_empty(), "{context}: nothing is booked when all have left");
    }
}

#[test]
fn what_does_not_fit_leaves_the_session_with_what_it_has() {
    let mut fixture = Fixture::new(config(2, 200));
    let session = admitted(&mut fixture, part(1, 8));
    let request = fixture.want(session, 0..8);
    fixture.pass(0);
    // Eight of the new pieces are due in each slot.
    let mut due = track(8).due;
    due.extend((0..392).map(|piece| 4000 + piece / 8 * 500));
    let longer = Layout { tracks: vec![TrackLayout { due, ..track(400) }], ..part(1, 400) };
    let short = extend(&mut fixture, session, longer).expect_err("eight reads in a slot");
    assert_eq!(short.resource, Resource::Disk);
    for _ in 0..12 {
        fixture.pass(500);
    }
    let said = fixture.take_log("complete");
    assert_eq!(said, [format!("complete {}", request.0)]);
}

#[test]
fn only_what_continues_a_session_extends_it() {
    let whole = || track(12);
    let shifted = (0..12).map(|piece| piece * 400).collect();
    let table: [(&str, Layout); 6] = [
        ("another title", part(2, 12)),
        ("fewer pieces", part(1, 6)),
        (
            "other due times",
            Layout { tracks: vec![TrackLayout { due: shifted, ..whole() }], ..part(1, 12) },
        ),
        (
            "larger pieces",
            Layout { tracks: vec![TrackLayout { piece: 2 * PIECE, ..whole() }], ..part(1, 12) },
        ),
        ("one more track", Layout { tracks: vec![whole(), whole()], ..part(1, 12) }),
        (
            "no place for all",
            Layout { tracks: vec![TrackLayout { runs: track(8).runs, ..whole() }], ..part(1, 12) },
        ),
    ];
    for (case, layout) in table {
        let mut fixture = Fixture::new(config(8, 200));
        let session = admitted(&mut fixture, part(1, 8));
        assert!(extend(&mut fixture, session, layout).is_err(), "{case}");
        assert_eq!(extend(&mut fixture, session, part(1, 12)), Ok(Duration::ZERO), "after {case}");
    }
    let mut fixture = Fixture::new(config(8, 200));
    assert!(extend(&mut fixture, SessionId(7), part(1, 12)).is_err(), "there is no such session");
}

#[test]
fn a_silent_session_is_extended_when_it_goes_on() {
    let mut fixture = Fixture::new(config(8, 200));
    let session = admitted(&mut fixture, part(1, 30));
    fixture.want(session, 0..1);
    fixture.pass(12_000);
    assert!(!fixture.take_log("Released").is_empty(), "its player was silent");
    assert_eq!(extend(&mut fixture, session, part(1, 36)), Ok(Duration::ZERO));
    fixture.want(session, 30..36);
    fixture.pass(6000);
    assert_eq!(fixture.take_log("complete").len(), 1);
}

/// Twelve pieces of half a second each.
#[test]
fn a_player_that_waits_at_the_end_gets_what_is_new_as_a_newcomer_does() {
    // What is new was due 5.5 s after the start, and is due 2 s after the extension at the
    // earliest.
    // Milliseconds until the extension, and by which the schedule moves.
    for (asked, later) in [(3000, 0), (3500, 0), (4000, 500), (4500, 1000)] {
        let mut fixture = Fixture::new(config(8, 200));
        let session = admitted(&mut fixture, part(1, 12));
        fixture.want(session, 0..12);
        (0..asked / 500).for_each(|_| fixture.pass(500));
        let moved = extend(&mut fixture, session, part(1, 16));
        assert_eq!(moved, Ok(Duration::from_millis(later)), "after {asked} ms");
        fixture.want(session, 12..16);
        (0..20).for_each(|_| fixture.pass(500));
        assert_eq!(fixture.take_log("refused"), [""; 0], "after {asked} ms");
        fixture.log.clear();
        fixture.engine.close(fixture.now, session);
        fixture.drain();
        let ended = fixture.take_log("ended");
        assert!(ended[0].ends_with("16 on time 0 late"), "after {asked} ms: {ended:?}");
        assert!(fixture.engine.is_empty(), "nothing is booked when all have left");
    }
}

#[test]
fn what_is_refused_is_extended_when_there_is_room() {
    let mut fixture = Fixture::new(config(3, 200));
    let session = admitted(&mut fixture, part(1, 8));
    fixture.want(session, 0..8);
    fixture.pass(500);
    let other = admitted(&mut fixture, part(2, 120));
    // Three of the new pieces are due in each slot: all that the disk reads.
    let longer = || {
        let mut due = track(8).due;
        due.extend((0..300).map(|piece| 4000 + piece / 3 * 500));
        Layout { tracks: vec![TrackLayout { due, ..track(308) }], ..part(1, 308) }
    };
    let before = extend(&mut fixture, session, longer());
    assert!(before.is_err(), "the other viewer has a part of it: {before:?}");
    let counted = |fixture: &Fixture| {
        let counters = fixture.engine.status(fixture.now).counters;
        (counters.extended, counters.extensions_refused)
    };
    assert_eq!(counted(&fixture), (0, 1));
    fixture.engine.close(fixture.now, other);
    fixture.drain();
    assert_eq!(extend(&mut fixture, session, longer()), Ok(Duration::ZERO));
    assert_eq!(counted(&fixture), (1, 1));
}

#[test]
fn viewers_who_share_reads_go_on_sharing_after_a_refused_extension() {
    let mut fixture = Fixture::new(config(2, 200));
    let ahead = admitted(&mut fixture, part(1, 8));
    let behind = admitted(&mut fixture, part(1, 8));
    // Eight of the new pieces are due in each slot.
    let longer = || {
        let mut due = track(8).due;
        due.extend((0..392).map(|piece| 4000 + piece / 8 * 500));
        Layout { tracks: vec![TrackLayout { due, ..track(400) }], ..part(1, 400) }
    };
    let following = |fixture: &Fixture| fixture.engine.status(fixture.now).following;
    let before = following(&fixture);
    assert!(before > 0, "they share");
    for session in [ahead, behind, ahead] {
        assert!(extend(&mut fixture, session, longer()).is_err(), "eight reads in a slot");
        assert_eq!(following(&fixture), before);
    }
    for session in [ahead, behind] {
        fixture.want(session, 0..8);
    }
    (0..12).for_each(|_| fixture.pass(500));
    assert_eq!(fixture.take_log("complete").len(), 2);
}

/// Viewers of a title that grows by two pieces a second come one after the other, and learn of what
/// is new at different times: they share the reads as viewers of any title do.
#[test]
fn a_crowd_of_a_growing_title_is_read_for_once() {
    // A disk with room for two viewers who read for themselves.
    for (policy, leaves) in [
        (PolicyKind::VbrSim, None),
        (PolicyKind::TimeDomain, None),
        // The one who was the first, and the last.
        (PolicyKind::VbrSim, Some(0)),
        (PolicyKind::TimeDomain, Some(9)),
    ] {
        let context = format!("{policy:?}, {leaves:?} leaves");
        let mut fixture = Fixture::new(EngineConfig { policy, ..config(2, 400) });
        // Of each the session and the pieces that it knows of.
        let mut viewers: Vec<(SessionId, u32)> = Vec::new();
        let mut following = 0;
        for step in 0..PIECES + 20 {
            let offered = (12 + step).min(PIECES);
            if step < 10 {
                viewers.push((admitted(&mut fixture, part(1, offered)), offered));
            }
            for (viewer, (session, known)) in (0..).zip(&mut viewers) {
                if leaves == Some(viewer) && step >= 20 {
                    continue;
                }
                if (step + viewer * 3) % 4 == 0 && *known < offered {
                    let extended = extend(&mut fixture, *session, part(1, offered));
                    assert_eq!(extended, Ok(Duration::ZERO), "{context}");
                    *known = offered;
                }
                if let Some(asked) = step.checked_sub(viewer).filter(|asked| asked < known) {
                    fixture.want(*session, asked..asked + 1);
                }
            }
            if let Some(gone) = leaves.filter(|_| step == 20) {
                fixture.engine.close(fixture.now, viewers[gone as usize].0);
                fixture.drain();
            }
            if step == 30 {
                following = fixture.engine.status(fixture.now).following;
            }
            fixture.pass(500);
        }
        fixture.pass(2000);
        let said = std::mem::take(&mut fixture.log);
        let count = |kind: &str| said.iter().filter(|text| text.starts_with(kind)).count();
        assert_eq!((count("read"), count("refused")), (PIECES as usize, 0), "{context}");
        assert_eq!(following, if leaves.is_some() { 9 } else { 10 }, "{context}");
        for (session, _) in viewers {
            fixture.engine.close(fixture.now, session);
            fixture.drain();
        }
        let ended = fixture.take_log("ended");
        assert_eq!(ended.len(), if leaves.is_some() { 9 } else { 10 }, "{context}");
        assert!(ended.iter().all(|ended| ended.ends_with("40 on time 0 late")), "{ended:?}");
        assert!(fixture.engine.is_empty(), "{context}: nothing is booked when all have left");
    }
}

/// Viewers come, learn of what is new, and leave at any time.
#[test]
fn nobody_is_late_for_others_who_know_more_or_less_of_a_title() {
    let (mut extensions, mut together) = (0, 0);
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let policy = [PolicyKind::VbrSim, PolicyKind::TimeDomain][random.usize(0..2)];
        let mut fixture = Fixture::new(EngineConfig { policy, ..config(3, 400) });
        // Of each viewer the session, the pieces that it knows of, and which it asks for next.
        let mut viewers: Vec<(SessionId, u32, u32)> = Vec::new();
        let mut pauses: Vec<u32> = Vec::new();
        for step in 0..PIECES * 2 {
            let offered = (10 + step).min(PIECES);
            if step < 30 && random.u32(0..3) == 0 {
                let request = request(Arc::new(part(1, offered)));
                let answer = fixture.engine.admit(fixture.now, request);
                fixture.drain();
                if let AdmissionDecision::Admitted { session, .. } = answer {
                    viewers.push((session, offered, 0));
                    pauses.push(0);
                }
            }
            if !viewers.is_empty() && random.u32(0..25) == 0 {
                let gone = random.usize(0..viewers.len());
                fixture.engine.close(fixture.now, viewers.swap_remove(gone).0);
                pauses.swap_remove(gone);
                fixture.drain();
            }
            for ((session, known, asked), pause) in viewers.iter_mut().zip(&mut pauses) {
                if random.u32(0..6) == 0
                    && *known < offered
                    && let Ok(later) = extend(&mut fixture, *session, part(1, offered))
                {
                    *known = offered;
                    *pause += u32::try_from(later.as_millis() / 500).unwrap();
                    extensions += 1;
                }
                if *pause > 0 {
                    *pause -= 1;
                } else if *asked < *known {
                    fixture.want(*session, *asked..*asked + 1);
                    *asked += 1;
                }
            }
            together = together.max(fixture.engine.status(fixture.now).following);
            fixture.pass(500);
        }
        for (session, ..) in viewers {
            fixture.engine.close(fixture.now, session);
            fixture.drain();
        }
        let said = fixture.take_log("");
        let bad = |text: &&String| text.starts_with("ended") && !text.ends_with(" 0 late");
        assert_eq!(said.iter().find(bad), None, "seed {seed}");
        assert!(fixture.engine.is_empty(), "seed {seed}: nothing is booked when all have left");
    }
    assert!(extensions > 300 && together > 3, "{extensions} extensions, {together} together");
}
