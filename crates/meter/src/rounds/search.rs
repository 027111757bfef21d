//! The most streams that are held, looked for as the paper does, one more at a time; or in fewer
//! attempts, where each takes minutes.

use super::Outcome;

/// What was found.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// So many are held.
    pub most: u32,
    /// What came of one more.
    pub failing: Outcome,
}

/// Tries `about` streams, then one more (or less) at a time until one more is too many. With no
/// stream at all nothing is late, so it ends; `attempt` is never called with zero.
pub fn most_streams<E>(
    about: u32,
    holds: impl Fn(&Outcome) -> bool,
    mut attempt: impl FnMut(u32) -> Result<Outcome, E>,
) -> Result<Capacity, E> {
    let mut streams = about.max(1);
    let mut outcome = attempt(streams)?;
    if holds(&outcome) {
        while holds(&outcome) {
            streams += 1;
            outcome = attempt(streams)?;
        }
        return Ok(Capacity { most: streams - 1, failing: outcome });
    }
    while streams > 1 {
        let fewer = attempt(streams - 1)?;
        if holds(&fewer) {
            break;
        }
        (streams, outcome) = (streams - 1, fewer);
    }
    Ok(Capacity { most: streams - 1, failing: outcome })
}

/// As [`most_streams`], in fewer attempts: takes what holds some streams to hold fewer. From
/// `about` on in ever larger steps until some number is held and a larger one is not, then halves
/// what is between them. Never more than `limit`: if that is held, it is the most, and `failing`
/// what came of it.
pub fn most_streams_by_halves<E>(
    about: u32,
    limit: u32,
    holds: impl Fn(&Outcome) -> bool,
    mut attempt: impl FnMut(u32) -> Result<Outcome, E>,
) -> Result<Capacity, E> {
    let limit = limit.max(1);
    let (mut most, mut failing) = (0, None::<(u32, Outcome)>);
    let (mut streams, mut step) = (about.clamp(1, limit), 1);
    loop {
        let outcome = attempt(streams)?;
        if holds(&outcome) {
            most = streams;
            if most == limit {
                return Ok(Capacity { most, failing: outcome });
            }
        } else {
            // How far it fell short says where to look, if that is far.
            let times = outcome.round_times();
            let part = outcome.deadline.as_secs_f64() / times.mean.max(f64::MIN_POSITIVE);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a part of few streams"
            )]
            let fit = (f64::from(streams) * part.min(1.0)) as u32;
            step = step.max(streams.saturating_sub(fit));
            failing = Some((streams, outcome));
        }
        match failing {
            Some((least, failing)) if least == most + 1 => return Ok(Capacity { most, failing }),
            Some((least, _)) if most > 0 => streams = most.midpoint(least),
            Some((least, _)) => streams = least.saturating_sub(step).max(1),
            None => streams = most.saturating_add(step).min(limit),
        }
        step *= 2;
    }
}
