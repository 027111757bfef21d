//! Streams of a title that has become longer, in place of what they were.

use super::Streams;
use crate::Layout;
use crate::bookings::evaluate::Approval;
use crate::stream::{Stream, StreamId};
use scheduler::Demand;
use std::sync::Arc;
use units::Moment;

/// Streams that are off the books while it is decided whether they go on as longer ones.
#[derive(Debug)]
pub(crate) struct Lengthening {
    before: Vec<(StreamId, Stream)>,
    longer: Vec<Stream>,
    /// Pieces of the shorter streams that were late before their schedule moved, by stream.
    late: Vec<Vec<(u32, Moment)>>,
    /// The slots by which the schedule moves later: pieces are kept so much longer, and no deadline
    /// of the session moves by more.
    pub(crate) slots: u32,
    /// What the longer streams want of their disk.
    pub(crate) demand: Demand,
}

impl Streams {
    /// Takes these streams off the books. One that follows another is to read by itself: what the
    /// other reads ends where its title ended for it. What is new is due at `earliest` or later.
    pub(crate) fn begin_lengthening(
        &mut self,
        now: Moment,
        ids: &[StreamId],
        layout: &Arc<Layout>,
        earliest: Moment,
    ) -> Lengthening {
        let before: Vec<(StreamId, Stream)> =
            ids.iter().map(|id| (*id, self.remove(*id))).collect();
        let mut longer: Vec<Stream> =
            before.iter().map(|(_, stream)| stream.lengthened(layout)).collect();
        let slot = self.bookings.slot_length();
        // The slots by which a stream's first new piece is due too early.
        let slots_of = |(before, longer): (&(StreamId, Stream), &Stream)| {
            let end = before.1.end;
            if end == longer.end {
                return 0;
            }
            let too_early = earliest.since(longer.deadline(end));
            u32::try_from(too_early.as_nanos().div_ceil(slot.as_nanos())).unwrap_or(u32::MAX)
        };
        let each: Vec<u32> = before.iter().zip(&longer).map(slots_of).collect();
        let beyond = |(own, stream): (&u32, &Stream)| own.saturating_sub(stream.kept_longer());
        let slots = each.iter().zip(&longer).map(beyond).max().unwrap_or(0);
        let mut late = Vec::new();
        for (((_, before), stream), own) in before.iter().zip(&mut longer).zip(each) {
            late.push(if own > 0 { before.overdue(now) } else { Vec::new() });
            stream.leave_feed();
            stream.hold_as_followed(before.end);
            // After a seek the clock of a track of long pieces is earlier than it must be, and
            // those of pictures and sound differ. No track's new pieces are due later for that of
            // another; but while the player waits for one, it needs the pieces of all that it has.
            stream.delay_and_keep(own, slots);
            stream.read_as_needed(before.end, earliest);
        }
        // The memory for its session's sockets is still reserved.
        let demand = self.bookings.demand_of(&mut longer, 0);
        Lengthening { before, longer, late, slots, demand }
    }

    /// Books the longer streams.
    pub(crate) fn end_lengthening(
        &mut self,
        now: Moment,
        streams: Lengthening,
        approval: Approval,
    ) {
        let Lengthening { before, mut longer, late, demand, .. } = streams;
        self.bookings.put_demand(demand);
        self.adopt(approval);
        // What was late is not made good by a later schedule.
        for (stream, late) in longer.iter_mut().zip(late) {
            for (piece, deadline) in late {
                stream.account(piece);
                self.count_unserved(now, stream, deadline);
            }
        }
        for ((id, before), mut stream) in before.into_iter().zip(longer) {
            let slack = self.bookings.slack_of_plan(&stream);
            stream.guaranteed_slack = before.guaranteed_slack.into_iter().chain(slack).min();
            self.leaving.extend(before.fed.map(|fed| (fed.feed, id)));
            self.to_serve.push(stream.session);
            self.insert(id, stream);
        }
    }

    /// Puts the streams back on the books as they were.
    pub(crate) fn give_up_lengthening(&mut self, streams: Lengthening) {
        self.bookings.put_demand(streams.demand);
        streams.before.into_iter().for_each(|(id, stream)| self.insert(id, stream));
    }
}
