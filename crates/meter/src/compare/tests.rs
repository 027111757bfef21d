//! Runs with a known true difference: the comparison finds it, and finds none where there is none.

use super::*;
use crate::streams::Second;
use std::time::Duration;
use units::Hinted;

/// Counts how many of 200 pairs are called better, and how many worse.
fn pairs(factor: f64) -> (u32, u32) {
    let (mut better, mut worse) = (0, 0);
    for seed in 0..200 {
        let (a, b) = known_pair(factor, seed);
        let said = compare(&[a], &[b], 0.05, seed).unwrap();
        match said.figures[0].verdict {
            DifferenceVerdict::Better => better += 1,
            DifferenceVerdict::Worse => worse += 1,
            DifferenceVerdict::NoDifferenceShown => {}
        }
    }
    (better, worse)
}

#[test]
fn false_alarms_are_as_rare_as_stated() {
    let (better, worse) = pairs(1.0);
    // More than 17 of 200 at 5 % have a probability of 1.3 % (binomial).
    assert!(better + worse <= 17, "{better} better, {worse} worse");
}

#[test]
fn a_change_of_five_percent_is_found() {
    let (better, worse) = pairs(1.05);
    assert!(worse >= 190 && better == 0, "{better} better, {worse} worse");
    let (better, worse) = pairs(0.95);
    assert!(better >= 190 && worse == 0, "{better} better, {worse} worse");
}

#[test]
fn the_same_runs_always_give_the_same_verdict() {
    let (a, b) = known_pair(1.0, 1);
    let once = || compare(std::slice::from_ref(&a), std::slice::from_ref(&b), 0.05, 7);
    assert_eq!(once(), once());
}

fn seconds(count: u64, late: fn(u64) -> u64) -> Vec<FigureSeries> {
    let second = |at| Second {
        frames: 100,
        late: late(at),
        longest_response: Duration::from_millis(20 + at % 3),
        ..Second::default()
    };
    FigureSeries::of_seconds(&(0..count).map(second).collect::<Vec<_>>())
}

#[test]
fn shares_of_late_frames_are_compared_in_their_own_unit() {
    let (none, some) = (seconds(61, |_| 0), seconds(61, |at| at % 2 * 4));
    let said = compare(&none, &some, 0.05, 1).unwrap();
    let late = &said.figures[0];
    assert_eq!((late.name, late.absolute, late.verdict), ("late", true, DifferenceVerdict::Worse));
    assert_eq!((late.a, late.b), (0.0, 0.02));
    assert_eq!(said.figures[1].verdict, DifferenceVerdict::NoDifferenceShown);
    let same = compare(&none, &none, 0.05, 1).unwrap();
    assert!(same.figures.iter().all(|f| f.verdict == DifferenceVerdict::NoDifferenceShown));
}

#[test]
fn one_bad_second_is_no_difference() {
    // 60 frames are late in one second of a minute, which may never happen again.
    let (none, once) = (seconds(61, |_| 0), seconds(61, |at| if at == 30 { 60 } else { 0 }));
    let said = compare(&none, &once, 0.05, 1).unwrap();
    assert_eq!(
        said.figures[0].verdict,
        DifferenceVerdict::NoDifferenceShown,
        "{:?}",
        said.figures[0]
    );
}

#[test]
fn short_runs_are_refused() {
    let few = seconds(12, |_| 0);
    let error = compare(&few, &few, 0.05, 1).unwrap_err().one_line();
    assert!(error.starts_with("11 seconds are too short"), "{error}");
}
