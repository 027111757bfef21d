//! The most streams that are held, looked for as the paper does: one more at a time.

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
