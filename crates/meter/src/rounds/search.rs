//! The largest number of streams that is held: searched one at a time as in the paper, or by
//! bisection, where each attempt takes minutes.

use super::RoundsOutcome;

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// The largest number of streams held.
    pub most: u32,
    /// The outcome with `most` streams; `None` if not a single one is held.
    pub held: Option<RoundsOutcome>,
    /// The outcome with one stream more.
    pub failing: RoundsOutcome,
}

/// Tries `about` streams, then one more (or less) at a time until the boundary is found. With no
/// stream nothing is late, so the search ends; `attempt` is never called with zero.
pub fn most_streams<E>(
    about: u32,
    holds: impl Fn(&RoundsOutcome) -> bool,
    mut attempt: impl FnMut(u32) -> Result<RoundsOutcome, E>,
) -> Result<Capacity, E> {
    let mut streams = about.max(1);
    let mut outcome = attempt(streams)?;
    let mut held = None;
    if holds(&outcome) {
        while holds(&outcome) {
            streams += 1;
            held = Some(std::mem::replace(&mut outcome, attempt(streams)?));
        }
        return Ok(Capacity { most: streams - 1, held, failing: outcome });
    }
    while streams > 1 {
        let fewer = attempt(streams - 1)?;
        if holds(&fewer) {
            held = Some(fewer);
            break;
        }
        (streams, outcome) = (streams - 1, fewer);
    }
    Ok(Capacity { most: streams - 1, held, failing: outcome })
}

/// Finds the same as [`most_streams`] in fewer attempts, under the assumption that fewer streams
/// than a held number are held. From `about` it goes in growing steps until one number is held and
/// a larger one is not, then bisects. It tries at most `limit` streams: if those are held, they are
/// the result, and `failing` is their outcome.
pub fn most_streams_by_halves<E>(
    about: u32,
    limit: u32,
    holds: impl Fn(&RoundsOutcome) -> bool,
    mut attempt: impl FnMut(u32) -> Result<RoundsOutcome, E>,
) -> Result<Capacity, E> {
    let limit = limit.max(1);
    let (mut held, mut failing) = (None::<(u32, RoundsOutcome)>, None::<(u32, RoundsOutcome)>);
    let (mut streams, mut step) = (about.clamp(1, limit), 1);
    loop {
        let outcome = attempt(streams)?;
        // The distance from saturation predicts the next number, if it is large.
        step = step.max(streams.abs_diff(outcome.streams_by_the_mean()));
        if holds(&outcome) {
            if streams == limit {
                return Ok(Capacity { most: limit, held: Some(outcome.clone()), failing: outcome });
            }
            held = Some((streams, outcome));
        } else {
            failing = Some((streams, outcome));
        }
        let most = held.as_ref().map_or(0, |(most, _)| *most);
        match failing {
            Some((least, failing)) if least == most + 1 => {
                return Ok(Capacity { most, held: held.map(|(_, outcome)| outcome), failing });
            }
            Some((least, _)) if most > 0 => streams = most.midpoint(least),
            Some((least, _)) => streams = least.saturating_sub(step).max(1),
            None => streams = most.saturating_add(step).min(limit),
        }
        step = step.saturating_mul(2);
    }
}

/// The fewest units in a block, from `least` to `most`, with which `holds` is true; `None` if it is
/// not even with `most`. More units never hold less.
pub fn fewest_units(least: u32, most: u32, mut holds: impl FnMut(u32) -> bool) -> Option<u32> {
    let (mut units, mut fails) = (least.max(1), least.max(1) - 1);
    while !holds(units) {
        (fails, units) = (units, units * 2);
        if units > most {
            return None;
        }
    }
    while units - fails > 1 {
        let middle = fails + (units - fails) / 2;
        if holds(middle) { units = middle } else { fails = middle }
    }
    Some(units)
}
