//! Time limits: whoever is silent, slow to ask or slow to take is let go.

use super::Worker;
use crate::http::connection::{Doing, Exchange};
use crate::http::response::Reply;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Worker {
    /// Ends the patience of those who have used it up.
    pub(super) fn look_at_all(&mut self) {
        let now = Instant::now();
        let mut over = Vec::new();
        for (id, connection) in &mut self.connections {
            if connection.is_sending() {
                let taken = self.sockets.taken(*id);
                if taken != connection.taken.0 {
                    connection.taken = (taken, now);
                } else if now.duration_since(connection.taken.1) > self.patience.send {
                    over.push((*id, Over::Stalled));
                }
            } else if now > connection.deadline {
                match connection.doing {
                    Doing::Reading if connection.input.is_empty() => over.push((*id, Over::Idle)),
                    Doing::Reading => over.push((*id, Over::Head)),
                    Doing::Lingering => over.push((*id, Over::Idle)),
                    _ => {}
                }
            }
        }
        for (id, why) in over {
            match why {
                Over::Idle => self.close(id),
                Over::Head => {
                    let message = "the request head did not come in time";
                    let reply = Reply::error(408, "head-too-slow", message);
                    self.reply(id, Exchange::of_nothing(), reply);
                }
                Over::Stalled => {
                    self.shared.http.stalled.fetch_add(1, Ordering::Relaxed);
                    self.abandon(id, "the viewer stopped reading");
                }
            }
        }
    }
}

enum Over {
    Idle,
    Head,
    Stalled,
}
