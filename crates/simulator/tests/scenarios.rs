//! Scenarios written by hand: admission protects the admitted viewers, and the checkers detect
//! overload without admission and a disk that is slower than its guarantee.

use scheduler::PolicyKind;
use simulator::{DiskSpec, Scenario, Timing, Titles, Viewers, run};
use std::time::Duration;
use units::ByteCount;

/// Sixty viewers within half a minute on a disk that can serve only a few of them.
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
            actual_reads: 8,
            timing: Timing::Late,
            ..DiskSpec::default()
        }],
        ..Scenario::default()
    }
}

#[test]
fn with_admission_some_viewers_are_refused_and_no_deadline_is_missed() {
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
fn without_admission_all_viewers_are_admitted_and_the_checker_detects_the_misses() {
    let outcome = run(&Scenario { policy: PolicyKind::None, ..overload() });
    assert_eq!(outcome.refused, [0, 0, 0], "{outcome}");
    assert!(outcome.checked_late > 100 && outcome.deadline_misses > 100, "{outcome}");
    assert!(outcome.stalls > 10, "{outcome}");
}

#[test]
fn a_disk_slower_than_its_guarantee_is_detected() {
    let slow =
        DiskSpec { kind: "slow".to_owned(), min_read: 16, actual_reads: 6, ..DiskSpec::default() };
    let outcome = run(&Scenario { disks: vec![slow], ..overload() });
    assert!(outcome.checked_late > 0, "the checker detects no miss: {outcome}");
    assert!(
        outcome.lowest_min_read_share < 0.7,
        "the engine's estimate is still {} of the guarantee",
        outcome.lowest_min_read_share
    );
}
