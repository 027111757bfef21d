//! A wall of cameras: a hundred recordings of 4 Mb/s on one disk, beside viewers and best-effort
//! work.

use simulator::{Scenario, WorldOutcome, run};

/// A hundred cameras, each with pictures and sound, that begin within two minutes. A round is what
/// comes in the 0.4 s from one commit to the next.
fn wall(disk: &str, vary: f64) -> WorldOutcome {
    let text = format!(
        "
        seed = 100
        policy = 'time-domain'
        memory = '512MiB'
        [titles]
        count = 6
        shortest = '60s'
        longest = '240s'
        progressive = 0.0
        [viewers]
        count = 120
        every = '1s'
        [background]
        best_effort_every = '200ms'
        recordings = 100
        recording_period = '400ms'
        recording_round = '200000'
        recordings_vary = {vary:?}
        [[disks]]
        kind = '{disk}'
        read_size = '1MiB'
        "
    );
    let outcome = run(&Scenario::parse(&text).expect("a valid scenario"));
    assert!(outcome.violations.is_empty(), "{disk}, {vary}: {outcome}");
    assert_eq!(outcome.not_recorded, 0, "{disk}, {vary}: bytes were dropped");
    outcome
}

#[test]
fn a_solid_state_disk_holds_a_hundred_cameras_beside_viewers() {
    for vary in [0.0, 0.5, 1.0] {
        let outcome = wall("ssd-sata", vary);
        assert_eq!((outcome.recordings, outcome.refused_recordings), (100, 0), "{vary}");
        assert_eq!((outcome.checked_late, outcome.stalls), (0, 0), "{vary}");
        // A recording goes on for 20 s on average, or until the last viewer has left.
        assert!(outcome.rounds > 10_000, "{vary}: only {} rounds", outcome.rounds);
        assert!(outcome.recorded > 1_000_000_000, "{vary}: {} bytes", outcome.recorded);
        assert!(outcome.admitted >= 100, "{vary}: only {} viewers", outcome.admitted);
    }
}

#[test]
fn a_hard_disk_takes_what_it_holds_and_refuses_the_rest() {
    let outcome = wall("hdd-20tb", 0.0);
    assert!(outcome.recordings > 5 && outcome.refused_recordings > 20, "{outcome}");
    assert_eq!(outcome.recordings + outcome.refused_recordings, 100);
    assert_eq!((outcome.checked_late, outcome.stalls), (0, 0));
}
