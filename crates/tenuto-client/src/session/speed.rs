//! A viewer changes the speed or the direction: the title is opened again from where it is.
//!
//! ```text
//!   change_speed ─▶ requests dropped ─▶ manifest?start=..&speed=..&s=TOKEN
//!                                         ├─ 200 ─▶ the new timeline, from its start
//!                                         ├─ 503, 400 ─▶ the old one, as before; counted
//!                                         └─ error ─▶ failed
//! ```
//!
//! `s=TOKEN` replaces the session on a Tenuto server, which keeps the old one if it refuses; of a
//! file the new session stands beside the old one. Other servers have no token in their addresses,
//! and no other speed.

use super::failover::STEERING;
use super::renditions::Ladder;
use super::{MoovFinder, PlayContext, Session, is_listed};
use crate::View;
use crate::source::TrackSource;
use player::Timeline;
use std::sync::Arc;
use std::time::Duration;
use units::Reason;

/// A change of speed that the server has not answered.
#[derive(Debug)]
pub(super) struct SpeedChange {
    /// What is played after it.
    view: View,
    /// The tracks before it, and their renditions.
    tracks: Vec<TrackSource>,
    ladder: Option<Ladder>,
}

impl Session {
    /// The part of the title that it plays, and the speed.
    pub(super) fn view(&self, shared: &PlayContext) -> View {
        self.view.unwrap_or(shared.options.view)
    }

    /// Requests the title from here on at another speed, in thousandths of the normal one.
    pub(super) fn change_speed(&mut self, milli: i32, shared: &mut PlayContext) {
        let (Some(player), Some(timeline)) = (&self.player, self.timeline()) else { return };
        let Some(token) = self.token() else {
            let reason = Reason::new(
                "only a Tenuto server plays at another speed while a viewer watches",
                "leave the action 'speed' out of --behaviour",
            );
            return self.fail(shared.now, reason.into());
        };
        let speed = f64::from(milli) / 1e3;
        let asked = shared.options.view;
        let view = self.view(shared).onwards(player.position(), timeline.duration(), speed, asked);
        // What is under way is of no use at the new speed.
        for lane in self.lanes.iter_mut().take(STEERING) {
            (lane.job, lane.again) = (None, None);
            lane.connection.close();
        }
        let (tracks, ladder) = (std::mem::take(&mut self.tracks), self.ladder.take());
        self.change = Some(SpeedChange { view, tracks, ladder });
        self.finder = MoovFinder::default();
        // The session of a file is not replaced: the new one is admitted beside it.
        let replaces = if is_listed(&self.url) { format!("&s={token}") } else { String::new() };
        let query = view.query() + &replaces;
        self.open(self.url.with_parameters(&query), shared);
    }

    /// Handles a refusal of a change of speed; false if none is under way.
    pub(super) fn speed_refused(&mut self, shared: &PlayContext) -> bool {
        let Some(SpeedChange { tracks, ladder, .. }) = self.change.take() else { return false };
        (self.tracks, self.ladder) = (tracks, ladder);
        self.refused_speeds += 1;
        if let Some(player) = &mut self.player {
            player.keep_timeline(shared.now);
        }
        true
    }

    /// Goes on at the new speed; false if no change is under way.
    pub(super) fn speed_changed(&mut self, timeline: &Arc<Timeline>, shared: &PlayContext) -> bool {
        let (Some(change), Some(player)) = (self.change.take(), &mut self.player) else {
            return false;
        };
        self.view = Some(change.view);
        self.lanes.iter_mut().for_each(|lane| lane.init = None);
        self.ldus.forget_waiting();
        player.change_timeline(shared.now, Arc::clone(timeline));
        true
    }

    /// The view that the new timeline belongs to.
    pub(super) fn next_view(&self, shared: &PlayContext) -> View {
        self.change.as_ref().map_or_else(|| self.view(shared), |change| change.view)
    }
}

impl View {
    /// This view from a play-out time on at another speed, to the end of the part of the title that
    /// was `asked` for (its start, if the new speed is negative). `length`: play-out time of this
    /// view.
    fn onwards(self, at: Duration, length: Duration, speed: f64, asked: Self) -> Self {
        let pace = self.pace();
        let here = match self.speed {
            Some(old) if old < 0.0 => {
                let end =
                    self.to.unwrap_or_else(|| self.from.unwrap_or_default() + length.mul_f64(pace));
                end.saturating_sub(at.mul_f64(pace))
            }
            _ => self.from.unwrap_or_default() + at.mul_f64(pace),
        };
        let (from, to) = match speed < 0.0 {
            true => (asked.from, Some(here.max(asked.from.unwrap_or_default() + SHORTEST_PART))),
            false => (Some(here), asked.to),
        };
        Self { from, to, speed: Some(speed), ..self }
    }
}

/// The shortest part of a title that is asked for: backwards from its start there is none.
const SHORTEST_PART: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_goes_on_from_where_it_is_in_both_directions() {
        let secs = Duration::from_secs;
        let view = |from: Option<u64>, to: Option<u64>, speed| View {
            from: from.map(secs),
            to: to.map(secs),
            speed,
            ..View::default()
        };
        let asked = view(Some(60), None, None);
        // The view before, where it is played, its length, the new speed; the view after.
        let rows = [
            (asked, 30, 540, 4.0, view(Some(90), None, Some(4.0))),
            (view(Some(90), None, Some(4.0)), 10, 127, 1.0, view(Some(130), None, Some(1.0))),
            (view(Some(90), None, Some(4.0)), 10, 127, -2.0, view(Some(60), Some(130), Some(-2.0))),
            (view(Some(60), Some(130), Some(-2.0)), 5, 35, 1.0, view(Some(120), None, Some(1.0))),
            // Backwards from the end, which no parameter names.
            (view(Some(60), None, Some(-2.0)), 5, 270, 1.0, view(Some(590), None, Some(1.0))),
        ];
        for (before, at, length, speed, after) in rows {
            assert_eq!(before.onwards(secs(at), secs(length), speed, asked), after, "{before:?}");
        }
        let start = asked.onwards(Duration::ZERO, secs(540), -1.0, asked);
        assert_eq!(start.to, Some(secs(60) + SHORTEST_PART));
    }
}
