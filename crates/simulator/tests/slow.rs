//! A disk that keeps working, slower (fail-stutter): within some seconds admission counts with its
//! reduced rate, until it has recovered; guarantee violations are counted.

use simulator::{Scenario, WorldOutcome, run_observed};
use units::Moment;

/// A viewer arrives every few seconds and stays. At 60 s there is still room if the disk keeps its
/// rate.
const HOUSE: &str = "
    [titles]
    count = 12
    shortest = '300s'
    longest = '300s'
    slowest = '2Mbps'
    fastest = '3Mbps'
    progressive = 0.0
    ladders = 0.0
    [viewers]
    count = 60
    every = '3s'
    resume = 0.0
    seek = 0.0
    pause = 0.0
    quit = 0.0
";

/// When viewers were let in, and what came of it all.
fn visit(policy: &str, memory: &str, disk: &str) -> (Vec<f64>, WorldOutcome) {
    let text = format!("policy = '{policy}'\nmemory = '{memory}'\n{HOUSE}[[disks]]\n{disk}");
    let scenario = Scenario::parse(&text).unwrap();
    let mut admitted = Vec::new();
    let outcome = run_observed(&scenario, &mut |line| {
        if line.what.starts_with("admitted") {
            admitted.push(line.at.since(Moment::ZERO).as_secs_f64());
        }
    });
    assert!(outcome.violations.is_empty(), "{outcome}");
    (admitted, outcome)
}

fn between(admitted: &[f64], from: f64, until: f64) -> usize {
    admitted.iter().filter(|at| (from..until).contains(at)).count()
}

#[test]
fn nobody_comes_in_while_a_disk_is_too_slow_where_its_time_is_counted() {
    let stuttered = closes_while_slow("time-domain", "96MiB", "kind = 'st39183w'");
    assert!(stuttered.violations_by_disk > 0, "this disk cannot keep what it promised");
}

#[test]
fn nobody_comes_in_while_a_disk_is_too_slow_where_reads_are_counted() {
    let disk = "min_read = 12\nlongest_read = '100ms'\ntiming = 'even'";
    closes_while_slow("service-curve", "768MiB", disk);
}

#[test]
fn what_a_disk_is_observed_to_do_lets_more_in_than_it_guarantees() {
    // A disk that does half as much again as it promises, one read after another.
    let disk = "kind = 'slow'\nmin_read = 8\nreally = 12\nlongest_read = '100ms'";
    let came = ["vbrsim", "observed"].map(|policy| visit(policy, "768MiB", disk).0.len());
    assert!(came[1] > came[0] + 2, "{came:?}");
}

/// Runs the scenario with and without a minute in which the disk is slow; returns the outcome with
/// it.
fn closes_while_slow(policy: &str, memory: &str, disk: &str) -> WorldOutcome {
    let slows = "slows_at = '60s'\nslows_for = '60s'\nslows_times = 5.0";
    let (calm, as_promised) = visit(policy, memory, disk);
    let (slow, stuttered) = visit(policy, memory, &format!("{disk}\n{slows}"));
    let of = |admitted: &[f64]| {
        [(0.0, 60.0), (70.0, 110.0), (130.0, 500.0)].map(|(from, to)| between(admitted, from, to))
    };
    let ([before, meanwhile, _], [same, none, later]) = (of(&calm), of(&slow));
    assert!(before == same && before > 5 && meanwhile > 3, "there was room: {calm:?}");
    assert_eq!(none, 0, "there is none now: {slow:?}");
    assert!(later > 3, "and not for ever: {slow:?}");
    assert_eq!(
        (
            as_promised.highest_slowdown,
            as_promised.violations_by_scheduler,
            as_promised.violations_by_disk
        ),
        (0.0, 0, 0)
    );
    assert!(stuttered.highest_slowdown > 0.5, "{}", stuttered.highest_slowdown);
    stuttered
}
