//! What the viewer does besides watching: pause, resume, seek, leave.

use std::str::FromStr;
use std::time::Duration;
use units::parse_duration;

/// A viewer's acts in order of time. Empty: watches to the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    steps: Vec<TimedAction>,
}

/// One act at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedAction {
    /// Time since the player was started, by the clock on the wall.
    pub at: Duration,
    /// What is done.
    pub act: ViewerAction,
}

/// What a viewer can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerAction {
    /// Hold the picture. Fetching goes on until the buffer is full.
    Pause,
    /// Go on after a pause; nothing when not paused.
    Resume,
    /// Go to this media time. What is buffered there is used, everything else is dropped.
    Seek(Duration),
    /// Leave.
    Stop,
}

impl Behaviour {
    /// Acts in any order; those at the same time keep theirs.
    pub fn new(mut steps: Vec<TimedAction>) -> Self {
        steps.sort_by_key(|step| step.at);
        Self { steps }
    }

    /// The acts in order of time.
    pub fn steps(&self) -> &[TimedAction] {
        &self.steps
    }
}

/// A line that is no act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not something a viewer does: write a time and an act, such as '10s pause', \
     '15s resume', '20s seek 2min' or '40s stop'"
)]
pub struct ParseBehaviourError(String);

/// One act per line (or `;`): `TIME pause`, `TIME resume`, `TIME seek TIME`, `TIME stop`. Empty
/// lines and what follows a `#` are ignored.
impl FromStr for Behaviour {
    type Err = ParseBehaviourError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let steps = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default())
            .flat_map(|line| line.split(';'))
            .map(str::trim)
            .filter(|act| !act.is_empty())
            .map(|act| step(act).ok_or_else(|| ParseBehaviourError(act.to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Self::new(steps))
    }
}

fn step(text: &str) -> Option<TimedAction> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (at, act) = match words[..] {
        [at, "pause"] => (at, ViewerAction::Pause),
        [at, "resume"] => (at, ViewerAction::Resume),
        [at, "stop"] => (at, ViewerAction::Stop),
        [at, "seek", to] => (at, ViewerAction::Seek(parse_duration(to).ok()?)),
        _ => return None,
    };
    Some(TimedAction { at: parse_duration(at).ok()?, act })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_read_as_written_and_put_in_order() {
        let behaviour: Behaviour =
            "20s seek 2min # to the chase\n\n 5s pause; 7500ms resume\n10s stop".parse().unwrap();
        let secs = Duration::from_secs;
        assert_eq!(
            behaviour.steps(),
            [
                TimedAction { at: secs(5), act: ViewerAction::Pause },
                TimedAction { at: Duration::from_millis(7500), act: ViewerAction::Resume },
                TimedAction { at: secs(10), act: ViewerAction::Stop },
                TimedAction { at: secs(20), act: ViewerAction::Seek(secs(120)) },
            ]
        );
    }

    #[test]
    fn what_nobody_does_is_named() {
        for bad in ["5s dance", "pause", "5 pause", "5s seek", "5s seek here"] {
            let error = bad.parse::<Behaviour>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{bad}' is not")), "{error}");
        }
    }
}
