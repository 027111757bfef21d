//! The places at which segments begin: those nearest to the multiples of the target length.
//!
//! The multiples do not depend on earlier cuts, so that two renditions whose key frames differ at
//! one place are cut alike after it.
//!
//! ```text
//! multiples   0         1         2         3         4
//! possible    x  x   x    x    x  x     x         x
//! cuts        |           |       |               |         2 and 3: a gap of 1.6 targets
//! cuts        |           |       |     |         |         divided, where a place allows it
//! ```

/// The indexes of the places at which segments begin; the first place always is one. `places` are
/// in order; `end` is the end of the last segment. All times and `target` have one unit.
pub(super) fn nearest_cuts(places: &[i64], end: i64, target: i64) -> Vec<usize> {
    let target = target.max(1);
    let Some(&start) = places.first() else { return Vec::new() };
    // The end is the cut at a multiple to which it is as near as the place.
    let cuts = nearest_places(places, start, target, |multiple, place| {
        distance(end - start, multiple, target) <= place
    });
    let mut cuts = divide_gaps(places, &cuts, end, target);
    join_rest(places, &mut cuts, end, target);
    cuts
}

/// The cuts of a title that is played while it is recorded. They differ from [`nearest_cuts`] at
/// the end only, where a short rest stays a segment: the end counts like any other place, so that
/// the places before one of the [`final_cuts`] are cut the same with that place as their end.
///
/// Multiples count from `origin`: the first place of the title, or of places that begin with a
/// final cut the one with which the title begins.
pub(super) fn growing_cuts(places: &[i64], origin: i64, end: i64, target: i64) -> Vec<usize> {
    let target = target.max(1);
    let last = nearest_multiple(end - origin, target);
    let cuts = nearest_places(places, origin, target, |multiple, place| {
        multiple == last && distance(end - origin, multiple, target) < place
    });
    divide_gaps(places, &cuts, end, target)
}

/// The cuts among [`growing_cuts`] that stay whatever places follow at `known` or later, without
/// those that divide a gap between them.
pub(super) fn final_cuts(places: &[i64], origin: i64, known: i64, target: i64) -> Vec<usize> {
    let target = target.max(1);
    let open = nearest_multiple(known - origin, target);
    nearest_places(places, origin, target, |multiple, _| multiple >= open)
}

/// The first place, and for each multiple of the target the nearest of the places that compete for
/// it: those that are nearer to no other multiple. `is_left_out`: whether a place that is this far
/// from its multiple is no candidate.
fn nearest_places(
    places: &[i64],
    origin: i64,
    target: i64,
    is_left_out: impl Fn(i64, u64) -> bool,
) -> Vec<usize> {
    let Some(&start) = places.first() else { return Vec::new() };
    let mut cuts = vec![0];
    let mut last_multiple = nearest_multiple(start - origin, target);
    for (i, place) in places.iter().enumerate().skip(1) {
        let multiple = nearest_multiple(place - origin, target);
        let from_multiple = |place: i64| distance(place - origin, multiple, target);
        if is_left_out(multiple, from_multiple(*place)) {
            continue;
        }
        if multiple > last_multiple {
            cuts.push(i);
            last_multiple = multiple;
        } else if let Some(last) = cuts.last_mut().filter(|_| multiple > 0)
            && from_multiple(*place) < from_multiple(places[*last])
        {
            *last = i;
        }
    }
    cuts
}

/// The multiple of the target that is nearest to a time.
fn nearest_multiple(at: i64, target: i64) -> i64 {
    at.saturating_add(target / 2) / target
}

fn distance(at: i64, multiple: i64, target: i64) -> u64 {
    at.abs_diff(multiple.saturating_mul(target))
}

/// The cuts with further ones where two are more than one and a half targets apart and a place
/// between them leaves at least half a target on both sides.
fn divide_gaps(places: &[i64], cuts: &[usize], end: i64, target: i64) -> Vec<usize> {
    let mut all = Vec::with_capacity(cuts.len());
    for (k, &cut) in cuts.iter().enumerate() {
        all.push(cut);
        let next = cuts.get(k + 1).copied().unwrap_or(places.len());
        let until = places.get(next).copied().unwrap_or(end);
        let mut from = cut;
        while is_longer_than_one_and_a_half(until - places[from], target) {
            let wanted = places[from].saturating_add(target);
            let between = (from + 1..next).filter(|&i| {
                let shorter = (places[i] - places[from]).min(until - places[i]);
                shorter >= target - target / 2
            });
            let Some(best) = between.min_by_key(|&i| places[i].abs_diff(wanted)) else { break };
            all.push(best);
            from = best;
        }
    }
    all
}

/// Removes the last cut if less than half a target follows and the segment before has room for it.
fn join_rest(places: &[i64], cuts: &mut Vec<usize>, end: i64, target: i64) {
    let &[.., before, last] = cuts.as_slice() else { return };
    let short = end - places[last] < target - target / 2;
    if short && !is_longer_than_one_and_a_half(end - places[before], target) {
        cuts.pop();
    }
}

fn is_longer_than_one_and_a_half(length: i64, target: i64) -> bool {
    length > target.saturating_add(target / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of the segments of places at a constant distance.
    fn lengths(distance: i64, end: i64, target: i64) -> Vec<i64> {
        let places: Vec<i64> = (0..).map(|i| i * distance).take_while(|&at| at < end).collect();
        let cuts = nearest_cuts(&places, end, target);
        let ends = cuts.iter().skip(1).map(|&i| places[i]).chain([end]);
        cuts.iter().zip(ends).map(|(&i, end)| end - places[i]).collect()
    }

    #[test]
    fn segments_of_even_groups_are_as_near_to_the_target_as_groups_allow() {
        // (distance of key frames, end, target, lengths)
        let table: &[(i64, i64, i64, &[i64])] = &[
            (3840, 19_200, 4000, &[3840; 5]),
            (2400, 12_000, 4000, &[4800, 2400, 4800]),
            (1000, 12_000, 4000, &[4000; 3]),
            (10_000, 25_000, 4000, &[10_000, 10_000, 5000]),
            (40, 12_000, 4000, &[4000; 3]),
            (1000, 9000, 4000, &[4000, 5000]),
            (1000, 10_000, 4000, &[4000, 4000, 2000]),
            (5000, 5000, 4000, &[5000]),
            (7, 21, 0, &[7, 7, 7]),
        ];
        for (distance, end, target, wanted) in table {
            let given = lengths(*distance, *end, *target);
            assert_eq!(given, *wanted, "{distance} {end} {target}");
        }
        // For two hours no multiple leaves out a group.
        assert!(lengths(3840, 7_200_000, 4000).iter().all(|&length| length == 3840));
    }

    #[test]
    fn any_places_give_segments_in_order_that_are_never_empty() {
        for seed in 0..500 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut at, mut places) = (0, Vec::new());
            for _ in 0..random.usize(1..60) {
                places.push(at);
                at += random.i64(1..3000);
            }
            let target = random.i64(1..5000);
            let cuts = nearest_cuts(&places, at, target);
            assert_eq!(cuts[0], 0, "seed {seed}");
            assert!(cuts.is_sorted_by(|a, b| a < b), "seed {seed}: {cuts:?}");
            // A long segment has no place that divides it into parts of half a target or more.
            for (k, &cut) in cuts.iter().enumerate() {
                let next = cuts.get(k + 1).copied().unwrap_or(places.len());
                let until = places.get(next).copied().unwrap_or(at);
                let divides = |&i: &usize| {
                    (places[i] - places[cut]) * 2 >= target && (until - places[i]) * 2 >= target
                };
                let long = (until - places[cut]) * 2 > target * 3;
                assert!(!long || !(cut + 1..next).any(|i| divides(&i)), "seed {seed}: {cuts:?}");
            }
        }
    }

    #[test]
    fn places_before_a_final_cut_are_cut_the_same_with_it_as_their_end() {
        for seed in 0..2000 {
            let mut random = fastrand::Rng::with_seed(seed);
            // Small numbers, so that many distances are equal.
            let (mut at, mut places) = (0, Vec::new());
            for _ in 0..random.usize(1..30) {
                places.push(at);
                at += random.i64(1..12);
            }
            let target = random.i64(1..10);
            let end = at + random.i64(0..12);
            let whole = growing_cuts(&places, 0, end, target);
            let known = random.usize(0..places.len());
            for cut in final_cuts(&places[..known], 0, places[known], target) {
                let before = whole.iter().position(|&it| it == cut).unwrap();
                let part = growing_cuts(&places[..cut], 0, places[cut], target);
                let what = format!("seed {seed}: {cut} of {whole:?}, {places:?}");
                assert_eq!(part, whole[..before], "{what}");
                // What follows needs nothing of what is before.
                let mut rest = growing_cuts(&places[cut..], 0, end, target);
                rest.iter_mut().for_each(|it| *it += cut);
                assert_eq!(rest, whole[before..], "{what}");
                let of_whole = final_cuts(&places[..known], 0, places[known], target);
                let mut of_rest = final_cuts(&places[cut..known], 0, places[known], target);
                of_rest.iter_mut().for_each(|it| *it += cut);
                assert!(of_whole.ends_with(&of_rest), "{what}");
                assert_eq!(of_rest.first(), Some(&cut), "{what}");
            }
        }
    }

    #[test]
    fn renditions_with_one_different_key_frame_are_cut_alike_after_it() {
        let even: Vec<i64> = (0..100).map(|i| i * 2500).collect();
        let mut more = even.clone();
        more.push(11_900);
        more.sort_unstable();
        let times = |places: &[i64]| -> Vec<i64> {
            let cuts = nearest_cuts(places, 250_000, 4000);
            cuts.into_iter().map(|i| places[i]).filter(|&at| at > 16_000).collect()
        };
        assert_eq!(times(&even), times(&more));
    }
}
