//! A disk that does not answer for a while: its viewers fail over to the replica, and the disk is
//! used again when it answers.

use simulator::{FaultClass, Scenario, WorldOutcome, draw, run, run_observed};
use std::time::Duration;

#[test]
fn whoever_has_a_copy_does_not_wait_for_a_disk_that_hangs() {
    let (mut moved, mut back, mut ended) = (0, 0, 0);
    for seed in 0..200 {
        let mut scenario = draw(FaultClass::DiskLoss, seed);
        for disk in scenario.disks.iter_mut().filter(|disk| !disk.dies_at.is_zero()) {
            disk.stalls_at = std::mem::take(&mut disk.dies_at);
            disk.stalls_for = Duration::from_secs(20);
        }
        let outcome = run(&scenario);
        assert!(outcome.violations.is_empty(), "{outcome}\n{}", scenario.to_toml());
        moved += outcome.failed_over;
        back += outcome.disks_restored;
        ended += outcome.ended_by_loss;
    }
    assert!(moved > 20 && back > 8, "{moved} moved, {back} back");
    assert!(ended * 10 < moved, "{ended} ended, {moved} moved");
}

/// Two disks, every title on both; the first hangs at 30 s, for as long as is said.
fn house(hangs: &str) -> WorldOutcome {
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
         stalls_for = '{hangs}'
         [[disks]]"
    );
    let scenario = Scenario::parse(&text).unwrap();
    let (mut is_back, mut came_after) = (false, 0);
    let outcome = run_observed(&scenario, &mut |line| {
        is_back |= line.what.starts_with("back");
        came_after += u64::from(is_back && line.what.starts_with("admitted"));
    });
    assert!(outcome.violations.is_empty(), "{outcome}");
    assert_eq!(is_back, outcome.disks_restored > 0);
    assert!(!is_back || came_after > 0, "somebody comes after it is back");
    outcome
}

#[test]
fn a_short_silence_is_waited_for_and_a_long_one_is_a_loss_that_ends() {
    let (short, long) = (house("2s"), house("15s"));
    assert_eq!((short.failed_over, short.disks_restored), (0, 0), "{short}");
    assert!(long.failed_over > 0 && long.ended_by_loss == 0, "{long}");
    assert_eq!(long.disks_restored, 1, "{long}");
}
