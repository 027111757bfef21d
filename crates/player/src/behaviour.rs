//! Actions of a viewer: pause, resume, seek, change the speed, leave.

use std::str::FromStr;
use std::time::Duration;
use units::{Reason, parse_duration};

/// The actions of a viewer in order of time. Empty: the viewer watches to the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    steps: Vec<TimedAction>,
}

/// One action and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedAction {
    /// Real time since the start of the player.
    pub at: Duration,
    /// The action.
    pub action: ViewerAction,
}

/// An action of a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerAction {
    /// Pause play-out. Fetching continues until the buffer is full.
    Pause,
    /// Resume play-out after a pause; without a pause it has no effect.
    Resume,
    /// Seek to this media time. Media buffered there is used; all other media is dropped.
    Seek(Duration),
    /// Play from here on at this speed, in thousandths of the normal one; negative: backwards.
    /// Never zero. The title is opened anew for it, so that all buffered media is dropped.
    Speed(i32),
    /// Leave.
    Stop,
}

impl Behaviour {
    /// A behaviour of these actions, in any order; actions at one time keep their order.
    pub fn new(mut steps: Vec<TimedAction>) -> Self {
        steps.sort_by_key(|step| step.at);
        Self { steps }
    }

    /// The behaviour of a viewer that acts like this and leaves after `time` at the latest.
    #[must_use]
    pub fn leaving(mut self, time: Option<Duration>) -> Self {
        if let Some(at) = time {
            self.steps.retain(|step| step.at <= at);
            self.steps.push(TimedAction { at, action: ViewerAction::Stop });
        }
        self
    }

    /// The actions in order of time.
    pub fn steps(&self) -> &[TimedAction] {
        &self.steps
    }
}

/// One action per line or between `;`: `TIME pause`, `TIME resume`, `TIME seek TIME`,
/// `TIME speed X`, `TIME stop`. Empty lines and text after a `#` are ignored.
impl FromStr for Behaviour {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let steps = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default())
            .flat_map(|line| line.split(';'))
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(|text| step(text).ok_or_else(|| not_an_action(text)))
            .collect::<Result<_, _>>()?;
        Ok(Self::new(steps))
    }
}

fn not_an_action(text: &str) -> Reason {
    Reason::new(
        format!("'{text}' is not an action of a viewer"),
        "write a time and an action, such as '10s pause', '15s resume', '20s seek 2min', \
         '30s speed -4' (0.016 to 64) or '40s stop'",
    )
}

fn step(text: &str) -> Option<TimedAction> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (at, action) = match words[..] {
        [at, "pause"] => (at, ViewerAction::Pause),
        [at, "resume"] => (at, ViewerAction::Resume),
        [at, "stop"] => (at, ViewerAction::Stop),
        [at, "speed", speed] => (at, ViewerAction::Speed(milli(speed)?)),
        [at, "seek", to] => (at, ViewerAction::Seek(parse_duration(to).ok()?)),
        _ => return None,
    };
    Some(TimedAction { at: parse_duration(at).ok()?, action })
}

/// A speed in thousandths, within the limits of a Tenuto server.
#[expect(clippy::cast_possible_truncation, reason = "within the limits")]
fn milli(text: &str) -> Option<i32> {
    let speed: f64 = text.parse().ok()?;
    SPEEDS.contains(&speed.abs()).then(|| (speed * 1e3).round() as i32)
}

/// The speeds that a Tenuto server plays at, forwards and backwards.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.016..=64.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_parsed_and_sorted_by_time() {
        let behaviour: Behaviour =
            "20s seek 2min # to the chase\n\n 5s pause; 7500ms resume\n10s stop;21s speed -2.5"
                .parse()
                .unwrap();
        let secs = Duration::from_secs;
        assert_eq!(
            behaviour.steps(),
            [
                TimedAction { at: secs(5), action: ViewerAction::Pause },
                TimedAction { at: Duration::from_millis(7500), action: ViewerAction::Resume },
                TimedAction { at: secs(10), action: ViewerAction::Stop },
                TimedAction { at: secs(20), action: ViewerAction::Seek(secs(120)) },
                TimedAction { at: secs(21), action: ViewerAction::Speed(-2500) },
            ]
        );
    }

    #[test]
    fn a_line_that_is_not_an_action_is_named_in_the_error() {
        for bad in
            ["5s dance", "pause", "5 pause", "5s seek", "5s seek here", "5s speed 0", "5s speed 65"]
        {
            let error = bad.parse::<Behaviour>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{bad}' is not")), "{error}");
        }
    }
}
