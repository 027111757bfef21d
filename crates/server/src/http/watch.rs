//! Server-sent events for a client that watches the server (HTML Living Standard, 9.2).
//!
//! ```text
//!   every 500 ms   event: status      data: what `/status` has, and only the slots that are new
//!                  event: decision    data: one decision, for each since the last time
//! ```
//!
//! A client that is slow gets fewer events, each with all that is new since the one before: nothing
//! waits in memory for it but one send.

use crate::shared::Shared;
use serde::Serialize;
use std::time::{Duration, Instant};

/// What a watching client has been sent.
#[derive(Debug)]
pub(super) struct Watch {
    /// When the next events are due.
    next: Instant,
    /// The decisions that it knows of, by their number.
    decisions: u64,
    /// The last slot that it knows of; `None` before the first event.
    slot: Option<u64>,
    /// The number of the send that the socket has not taken.
    pub(super) sending: Option<u64>,
}

impl Watch {
    /// A watch from now on; `head` is the number of the send of the response's head.
    pub(super) fn new(shared: &Shared, head: u64) -> Self {
        let decisions = shared.decisions_after(u64::MAX).total;
        Self { next: Instant::now(), decisions, slot: None, sending: Some(head) }
    }

    /// The events that are due, if any are and the client has taken the last ones.
    pub(super) fn due(&mut self, shared: &Shared, now: Instant) -> Option<Vec<u8>> {
        if now < self.next || self.sending.is_some() {
            return None;
        }
        // A late look is not made up for.
        self.next = (self.next + INTERVAL).max(now);
        let mut events = Vec::new();
        let mut status = shared.status();
        for disk in &mut status.disks {
            let known = match self.slot {
                Some(last) => disk.slots.partition_point(|slot| slot.slot <= last),
                None => disk.slots.len().saturating_sub(FIRST_SLOTS),
            };
            disk.slots.drain(..known);
        }
        let newest = status.disks.iter().filter_map(|disk| disk.slots.last()).map(|slot| slot.slot);
        self.slot = newest.max().or(self.slot);
        add(&mut events, "status", &status);
        let new = shared.decisions_after(self.decisions);
        self.decisions = new.total;
        // They are listed with the newest first, and happened the other way round.
        new.decisions.iter().rev().for_each(|decision| add(&mut events, "decision", decision));
        Some(events)
    }
}

/// Adds one event. JSON has no line breaks of its own.
fn add(events: &mut Vec<u8>, name: &str, data: &impl Serialize) {
    events.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
    events.extend(serde_json::to_vec(data).unwrap_or_default());
    events.extend_from_slice(b"\n\n");
}

/// Time between two events of the same kind.
const INTERVAL: Duration = Duration::from_millis(500);
/// Slots of the first event, for plots: two minutes of the default 500 ms.
const FIRST_SLOTS: usize = 240;
