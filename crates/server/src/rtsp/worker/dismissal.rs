//! Players are let go before the server ends: each gets a BYE and goes on elsewhere, if it can.
//!
//! ```text
//!   stop ──────────▶ the last seconds of the time of grace ────────▶ end
//!                    │ every 250 ms an equal part of the players │
//!                    └ report, BYE, end of the session and of the connection
//! ```
//!
//! A REDIRECT is not sent: few players know it, and those that came through a director know its
//! address. They heed a BYE: the stream ends, and is not awaited any more.

use super::{CHECK_INTERVAL, RtspWorker};
use device::sockets::ConnectionId;
use std::time::{Duration, Instant};

impl RtspWorker {
    /// The server ends after this time.
    pub(super) fn begin_to_dismiss(&mut self, within: Duration) {
        self.dismiss_by = Some(Instant::now() + within.saturating_sub(LAST_PACKETS));
    }

    /// Lets as many players go as must go now, so that directors are not asked for all at once.
    pub(super) fn dismiss_some(&mut self, now: Instant) {
        let Some(by) = self.dismiss_by else { return };
        let with_session = self.connections.iter().filter(|(_, it)| it.session.is_some());
        let mut ids: Vec<ConnectionId> = with_session.map(|(id, _)| *id).collect();
        ids.truncate(part_of(ids.len(), by.saturating_duration_since(now)));
        ids.into_iter().for_each(|id| self.dismiss(id));
    }

    fn dismiss(&mut self, id: ConnectionId) {
        self.log_end(id, "stopping");
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

/// How many of `count` players go now, where the last ones must have gone when `left` is over.
fn part_of(count: usize, left: Duration) -> usize {
    let checks = left.as_millis() / CHECK_INTERVAL.as_millis() + 1;
    count.div_ceil(usize::try_from(checks).unwrap_or(usize::MAX))
}

/// Time for the last packets and BYE to reach players.
const LAST_PACKETS: Duration = Duration::from_secs(1);

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
