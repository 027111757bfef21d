//! A disk that does not answer for a while: its viewers fail over to the replica, and the disk is
//! used again when it answers.

use simulator::{FaultClass, Scenario, WorldOutcome, draw, run, run_observed};
use std::time::Duration;

#[test]
fn sessions_with_a_replica_fail_over_from_a_disk_that_hangs() {
    let (mut failed_over, mut restored, mut ended) = (0, 0, 0);
    for seed in 0..200 {
        let mut scenario = draw(FaultClass::DiskLoss, seed);
        for disk in scenario.disks.iter_mut().filter(|disk| !disk.dies_at.is_zero()) {
            disk.stalls_at = std::mem::take(&mut disk.dies_at);
            disk.stalls_for = Duration::from_secs(20);
        }
        let outcome = run(&scenario);
        assert!(outcome.violations.is_empty(), "{outcome}\n{}", scenario.to_toml());
        failed_over += outcome.failed_over;
        restored += outcome.disks_restored;
        ended += outcome.ended_by_loss;
    }
    assert!(failed_over > 20 && restored > 8, "{failed_over} failed over, {restored} restored");
    assert!(ended * 10 < failed_over, "{ended} ended, {failed_over} failed over");
}

/// Runs two disks with every title on both; the first hangs at 30 s for the time `hang`.
fn run_with_hang(hang: &str) -> WorldOutcome {
    let text = format!(
        "survive_loss = true
         [titles]
         copies = 1.0
         longest = '60s'
         [viewers]
         count = 60
         every = '2s'
         seek = 0.0
         pause = 0.0
         [[disks]]
         stalls_at = '30s'
         stalls_for = '{hang}'
         [[disks]]"
    );
    let scenario = Scenario::parse(&text).unwrap();
    let (mut is_restored, mut admitted_after) = (false, 0);
    let outcome = run_observed(&scenario, &mut |line| {
        is_restored |= line.what.starts_with("restored");
        admitted_after += u64::from(is_restored && line.what.starts_with("admitted"));
    });
    assert!(outcome.violations.is_empty(), "{outcome}");
    assert_eq!(is_restored, outcome.disks_restored > 0);
    assert!(!is_restored || admitted_after > 0, "no admission after the disk is restored");
    outcome
}

#[test]
fn a_short_hang_causes_no_failover_and_a_long_one_is_a_loss_until_the_disk_answers() {
    let (short, long) = (run_with_hang("2s"), run_with_hang("15s"));
    assert_eq!((short.failed_over, short.disks_restored), (0, 0), "{short}");
    assert!(long.failed_over > 0 && long.ended_by_loss == 0, "{long}");
    assert_eq!(long.disks_restored, 1, "{long}");
}
