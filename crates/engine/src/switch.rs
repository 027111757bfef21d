//! A switch to a smaller rendition is accepted however full or slow a disk is: it takes over the
//! deadlines of the rendition before, and asks for less by each of them.
//!
//! ```text
//!   readmission (seek)   deadlines count from now       evaluated; may be refused
//!   this                 deadlines of the rendition     within what that had booked: accepted
//!                          that is left                 without an evaluation
//! ```
//!
//! A player goes on with the segment behind the one that it asked for last, and has played what it
//! has by the time at which the rendition before would have been needed there. So it misses
//! nothing, unless its segments were read ahead: then the deadlines are later by as much. What is
//! tried first is the readmission from now on, which delivers sooner.
//!
//! A seek is never decided so: its data would come when the player would have come there by
//! playing. Neither is a larger rendition, which asks for more.

use super::Engine;
use super::bookings::evaluate::{Accepted, Approval, Candidate};
use super::stream::{Stream, StreamId};
use scheduler::{PlayoutClock, Slack};
use std::collections::BTreeSet;
use units::Moment;

impl Engine {
    /// The streams of a readmission on the clock of the streams that they replace, which are off
    /// the books; with the time, in slots from a start-up from now, at which the first is due.
    /// `None`: it is no switch, or asks for more.
    pub(super) fn take_over_deadlines(
        &mut self,
        now: Moment,
        candidate: &Candidate,
        replaced: &[(StreamId, Stream)],
        reserve: u64,
    ) -> Option<(Accepted, u32)> {
        let [new] = &candidate.streams[..] else { return None };
        let left = |(_, old): &&(StreamId, Stream)| old.track != new.track && old.fed.is_none();
        let (_, old) = replaced.iter().find(left)?;
        let next = old.curve().due(old.expected_from().saturating_add(1));
        if replaced.len() != 1 || new.curve().due(new.cursor) > next {
            return None;
        }
        let mut before = old.clone();
        let asked = self.streams.bookings.demand_of([&mut before], reserve);
        // What was read ahead of the other is of no use for this one, which then is due with the
        // first piece that was not.
        let due = |timing: PlayoutClock, stream: &Stream| {
            timing.due_slot(stream.curve().due(stream.cursor))
        };
        let behind = due(old.timing, old).0.saturating_sub(due(old.timing, new).0);
        let found = [0, behind].into_iter().find_map(|slots| {
            let late = self.config.slot * u32::try_from(slots).unwrap_or(u32::MAX);
            let timing = PlayoutClock { origin: old.timing.origin + late, ..old.timing };
            let mut stream =
                Stream::new(new.session, new.layout.clone(), new.track, timing, new.cursor);
            stream.replica = new.replica;
            // The play-out has begun.
            (stream.opens, stream.last_activity) = (None, now);
            let reserve = candidate.demand.reserve;
            let demand = self.streams.bookings.demand_of([&mut stream], reserve);
            if demand.is_within(&asked) {
                return Some((stream, demand));
            }
            self.streams.bookings.put_demand(demand);
            None
        });
        self.streams.bookings.put_demand(asked);
        let (stream, demand) = found?;
        let first = stream.deadline(stream.cursor).since(now + self.config.startup);
        let slots = first.as_nanos() / self.config.slot.as_nanos();
        let (layout, copies) = (candidate.layout.clone(), candidate.copies.clone());
        let (sent, is_new, gives_up, replica) = (None, false, None, candidate.replica);
        let streams = vec![stream];
        let candidate =
            Candidate { layout, replica, copies, streams, demand, sent, is_new, gives_up };
        let approval = self.unchanged_plan(candidate.disk());
        Some((candidate.accepted(approval), u32::try_from(slots).unwrap_or(u32::MAX)))
    }

    // Approves of what the books had before: the plan stays.
    fn unchanged_plan(&self, disk: usize) -> Approval {
        let state = &self.streams.bookings.disks[disk];
        let slack = state.scan.slack().map_or(Slack::Unknown, Slack::Time);
        let plan = state.dispatcher.plan().clone();
        Approval { disk, plan, slack, unchosen: BTreeSet::new() }
    }
}
