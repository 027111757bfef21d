//! Players are let go before the server ends, or when its node is drained: each gets a BYE and goes
//! on elsewhere, if it can.
//!
//! ```text
//!   stop ──────────▶ the last seconds of the time of grace ────────▶ end
//!                    │ every 250 ms an equal part of the players │
//!                    └ report, BYE, end of the session and of the connection
//!   drained ───────▶ every 250 ms one player, of a title of which more are here than remain
//! ```
//!
//! A REDIRECT is not sent: few players know it, and those that came through a director know its
//! address. They heed a BYE: the stream ends, and is not awaited any more. While a node is only
//! drained, nobody is let go for whom this would be the end: only players that have said that they
//! go on by themselves ([`GOES_ON`]).

use super::{CHECK_INTERVAL, RtspConnection, RtspWorker};
use device::sockets::ConnectionId;
use rtsp_message::names::SUPPORTED;
use rtsp_message::{Request, value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

impl RtspWorker {
    /// The server ends after this time.
    pub(super) fn begin_to_dismiss(&mut self, within: Duration) {
        self.dismiss_by = Some(Instant::now() + within.saturating_sub(LAST_PACKETS));
    }

    /// Lets as many players go as must go now, so that directors are not asked for all at once.
    pub(super) fn dismiss_some(&mut self, now: Instant) {
        let Some(by) = self.dismiss_by else { return self.release_one() };
        let with_session = self.connections.iter().filter(|(_, it)| it.session.is_some());
        let mut ids: Vec<ConnectionId> = with_session.map(|(id, _)| *id).collect();
        ids.truncate(part_of(ids.len(), by.saturating_duration_since(now)));
        ids.into_iter().for_each(|id| self.dismiss(id, "stopping"));
    }

    /// Lets one player go for whom another node has room, where this one is drained.
    fn release_one(&mut self) {
        let Some(membership) = &self.shared.membership else { return };
        let remain = membership.remaining_viewers();
        if remain.is_empty() {
            return;
        }
        let snapshot = self.shared.snapshot();
        let here = snapshot.playing.iter().map(|title| (title.title.as_str(), title.viewers));
        let over = titles_over(here, &remain);
        let leaves = |it: &RtspConnection| {
            let name = it.session.as_ref().map(|session| session.name.as_str());
            it.goes_on && it.adopted.is_some() && name.is_some_and(|name| over.contains(&name))
        };
        let leaving = self.connections.iter().find(|(_, connection)| leaves(connection));
        if let Some(id) = leaving.map(|(id, _)| *id) {
            self.dismiss(id, "drained");
        }
    }

    fn dismiss(&mut self, id: ConnectionId, why: &str) {
        self.log_end(id, why);
        if self.session(id).is_some_and(|session| session.is_playing()) {
            self.finish(id);
        }
        self.end_session(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.closing = true;
        if connection.outstanding == 0 {
            self.close(id);
        }
    }
}

/// Whether the player of a request asks its director again when the stream ends early.
pub(super) fn goes_on(request: &Request<Vec<u8>>) -> bool {
    let supported = value(request, &SUPPORTED).unwrap_or_default();
    supported.split(',').any(|feature| feature.trim().eq_ignore_ascii_case(GOES_ON))
}

/// The titles of which more viewers are here than should remain.
fn titles_over<'a>(
    here: impl Iterator<Item = (&'a str, u64)>,
    remain: &BTreeMap<String, u32>,
) -> Vec<&'a str> {
    let is_over = |(title, viewers): &(&str, u64)| {
        remain.get(*title).is_some_and(|remain| *viewers > u64::from(*remain))
    };
    here.filter(is_over).map(|(title, _)| title).collect()
}

/// How many of `count` players go now, where the last ones must have gone when `left` is over.
fn part_of(count: usize, left: Duration) -> usize {
    let checks = left.as_millis() / CHECK_INTERVAL.as_millis() + 1;
    count.div_ceil(usize::try_from(checks).unwrap_or(usize::MAX))
}

/// Time for the last packets and BYE to reach players.
const LAST_PACKETS: Duration = Duration::from_secs(1);
/// The feature, in `Supported` (RFC 7826, 18.51), of a player that goes on through its director.
const GOES_ON: &str = "tenuto.goes-on";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_go_in_equal_parts_and_the_last_ones_in_time() {
        for (count, total) in [(0, 9000), (1, 9000), (40, 9000), (1000, 1000), (7, 0)] {
            let (mut left, mut parts) = (count, Vec::new());
            for at in (0..=total).step_by(250) {
                let part = part_of(left, Duration::from_millis(total - at));
                parts.push(part);
                left -= part;
            }
            let (least, most) = (parts.iter().min().unwrap(), parts.iter().max().unwrap());
            assert_eq!(left, 0, "{count} players in {total} ms");
            assert!(most - least <= 1, "{count} players in {total} ms: {parts:?}");
        }
    }
}
