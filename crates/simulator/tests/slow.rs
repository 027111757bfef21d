//! A disk that keeps working at a lower rate (fail-stutter): within some seconds admission uses the
//! reduced rate, until the disk has recovered; guarantee violations are counted.

use simulator::{Scenario, WorldOutcome, run_observed};
use units::Moment;

/// A viewer arrives every few seconds and stays. At 60 s admission can still accept more viewers if
/// the disk keeps its rate. With 70 titles few choose one that another viewer watches, so that few
/// share reads.
const LONG_TITLES: &str = "
    [titles]
    count = TITLES
    shortest = '300s'
    longest = '300s'
    slowest = '2Mbps'
    fastest = '3Mbps'
    progressive = 0.0
    ladders = 0.0
    [viewers]
    count = 60
    every = 'EVERY'
    zipf = 0.001
    resume = 0.0
    seek = 0.0
    pause = 0.0
    quit = 0.0
";

/// What varies between the tests of [`LONG_TITLES`].
#[derive(Clone, Copy)]
struct Audience {
    titles: u32,
    /// Mean time between two arrivals.
    every: &'static str,
}

/// Runs the scenario; returns the times of all admissions, and the outcome.
fn admissions(
    policy: &str,
    memory: &str,
    audience: Audience,
    disk: &str,
) -> (Vec<f64>, WorldOutcome) {
    let Audience { titles, every } = audience;
    let long_titles = LONG_TITLES.replace("TITLES", &titles.to_string()).replace("EVERY", every);
    let text = format!("policy = '{policy}'\nmemory = '{memory}'\n{long_titles}[[disks]]\n{disk}");
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
fn no_viewer_is_admitted_while_a_disk_is_too_slow_if_admission_counts_time() {
    let audience = Audience { titles: 70, every: "3s" };
    let outcome = check_slow_minute("time-domain", "96MiB", audience, "kind = 'st39183w'");
    assert!(outcome.violations_by_disk > 0, "the slow disk violates no guarantee");
}

#[test]
fn no_viewer_is_admitted_while_a_disk_is_too_slow_if_admission_counts_reads() {
    let disk = "min_read = 12\nlongest_read = '100ms'\ntiming = 'even'";
    check_slow_minute("service-curve", "768MiB", Audience { titles: 12, every: "3s" }, disk);
}

#[test]
fn sessions_end_on_a_disk_that_stays_too_slow_and_the_others_go_on() {
    let audience = Audience { titles: 70, every: "500ms" };
    for (policy, disk) in [
        ("time-domain", "kind = 'st39183w'"),
        ("service-curve", "min_read = 12\nlongest_read = '100ms'\ntiming = 'even'"),
    ] {
        let slows = format!("{disk}\nslows_at = '60s'\nslows_for = '120s'\nslow_factor = 3.0");
        let (_, outcome) = admissions(policy, "192MiB", audience, &slows);
        assert!(outcome.overloaded > 0, "{policy}: nobody ended\n{outcome}");
    }
}

#[test]
fn a_crowd_whose_disk_slows_in_the_middle_breaks_no_rule() {
    // Sixty viewers of three titles in 12 s; the disk is five times as slow from 6 s to 26 s.
    let slows = "kind = 'st39183w'\nslows_at = '6s'\nslows_for = '20s'\nslow_factor = 5.0";
    let audience = Audience { titles: 3, every: "200ms" };
    let (admitted, outcome) = admissions("time-domain", "192MiB", audience, slows);
    assert!(outcome.violations_by_disk > 0, "the slow disk violates no guarantee");
    assert!(outcome.highest_slowdown > 0.5, "{}", outcome.highest_slowdown);
    let [before, meanwhile, after] =
        [(0.0, 6.0), (8.0, 26.0), (26.0, 120.0)].map(|(from, to)| between(&admitted, from, to));
    assert_eq!((outcome.checked_late, outcome.stalls), (0, 0), "{outcome}");
    // While it is slow, viewers come in whom others or the beginnings in memory let start.
    assert!(before > 10 && after > 5 && meanwhile < before, "{admitted:?}");
}

#[test]
fn admission_by_observed_reads_accepts_more_than_by_guaranteed_reads() {
    // A disk that completes half as many reads again as it guarantees, one after another.
    let disk = "kind = 'slow'\nmin_read = 8\nactual_reads = 12\nlongest_read = '100ms'";
    // All come while the disk is behind, so that it is seen busy.
    let audience = Audience { titles: 70, every: "500ms" };
    let admitted = |policy| admissions(policy, "3GiB", audience, disk).0.len();
    let (guaranteed, observed) = (admitted("vbrsim"), admitted("observed"));
    assert!(observed > guaranteed + 2, "{guaranteed} guaranteed, {observed} observed");
}

/// Runs the scenario with and without a minute in which the disk is slow, and checks that admission
/// stops and resumes; returns the outcome with the slow minute.
fn check_slow_minute(policy: &str, memory: &str, audience: Audience, disk: &str) -> WorldOutcome {
    let slows = "slows_at = '60s'\nslows_for = '60s'\nslow_factor = 5.0";
    let (normal_times, normal) = admissions(policy, memory, audience, disk);
    let (slow_times, slow) = admissions(policy, memory, audience, &format!("{disk}\n{slows}"));
    let counts = |admitted: &[f64]| {
        [(0.0, 60.0), (70.0, 110.0), (130.0, 500.0)].map(|(from, to)| between(admitted, from, to))
    };
    let ([before, meanwhile, _], [same, none, later]) =
        (counts(&normal_times), counts(&slow_times));
    assert!(
        before == same && before > 5 && meanwhile > 3,
        "admissions at normal speed: {normal_times:?}"
    );
    assert_eq!(none, 0, "admissions while the disk is slow: {slow_times:?}");
    assert!(later > 3, "admissions after the recovery: {slow_times:?}");
    assert_eq!(
        (normal.highest_slowdown, normal.violations_by_scheduler, normal.violations_by_disk),
        (0.0, 0, 0)
    );
    assert!(slow.highest_slowdown > 0.5, "{}", slow.highest_slowdown);
    slow
}
