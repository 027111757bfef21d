//! Worlds made by hand: what must go wrong does, and is seen; what the guard is for, it does.

use scheduler::PolicyKind;
use simulator::{DiskSpec, Scenario, Timing, Titles, Viewers, run};
use std::time::Duration;
use units::ByteCount;

/// Sixty viewers within half a minute on a disk that carries a handful of them.
fn overload() -> Scenario {
    Scenario {
        memory: ByteCount(96 << 20),
        titles: Titles { count: 40, progressive: 0.0, ..Titles::default() },
        viewers: Viewers {
            count: 60,
            every: Duration::from_millis(500),
            resume: 0.0,
            seek: 0.0,
            pause: 0.0,
            quit: 0.0,
            ..Viewers::default()
        },
        disks: vec![DiskSpec {
            min_read: 8,
            really: 8,
            timing: Timing::Late,
            ..DiskSpec::default()
        }],
        ..Scenario::default()
    }
}

#[test]
fn with_admission_some_are_refused_and_nobody_suffers() {
    let outcome = run(&overload());
    assert_eq!(outcome.violations, [], "{outcome}");
    assert!(outcome.admitted >= 5 && outcome.refused[0] >= 20, "{outcome}");
    assert_eq!(
        (outcome.deadline_misses, outcome.checked_late, outcome.stalls),
        (0, 0, 0),
        "{outcome}"
    );
    assert!(outcome.checked_on_time > 1_000, "{outcome}");
}

#[test]
fn without_admission_everybody_comes_in_and_suffers_and_the_checker_sees_it() {
    let outcome = run(&Scenario { policy: PolicyKind::None, ..overload() });
    assert_eq!(outcome.refused, [0, 0, 0], "{outcome}");
    assert!(outcome.checked_late > 100 && outcome.deadline_misses > 100, "{outcome}");
    assert!(outcome.stalls > 10, "{outcome}");
}

#[test]
fn a_disk_that_lies_is_found_out() {
    let slow = DiskSpec { kind: "slow".to_owned(), min_read: 16, really: 6, ..DiskSpec::default() };
    let outcome = run(&Scenario { disks: vec![slow], ..overload() });
    assert!(outcome.checked_late > 0, "its promise was broken: {outcome}");
    assert!(
        outcome.lowest_min_read_share < 0.7,
        "and it is believed less: {}",
        outcome.lowest_min_read_share
    );
}
