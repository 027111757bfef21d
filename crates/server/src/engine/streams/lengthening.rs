//! Streams of a title that has become longer, in place of what they were.

use super::Streams;
use crate::engine::Layout;
use crate::engine::bookings::evaluate::Approval;
use crate::engine::stream::{Stream, StreamId};
use scheduler::Demand;
use std::sync::Arc;

/// Streams that are off the books while it is decided whether they go on as longer ones.
#[derive(Debug)]
pub(in crate::engine) struct Lengthening {
    before: Vec<(StreamId, Stream)>,
    longer: Vec<Stream>,
    /// What the longer streams want of their disk.
    pub(in crate::engine) demand: Demand,
}

impl Streams {
    /// Takes these streams off the books. One that follows another is to read by itself: what the
    /// other reads ends where its title ended for it.
    pub(in crate::engine) fn begin_lengthening(
        &mut self,
        ids: &[StreamId],
        layout: &Arc<Layout>,
    ) -> Lengthening {
        let before: Vec<(StreamId, Stream)> =
            ids.iter().map(|id| (*id, self.remove(*id))).collect();
        let mut longer: Vec<Stream> =
            before.iter().map(|(_, stream)| stream.lengthened(layout)).collect();
        for stream in &mut longer {
            stream.leave_feed();
        }
        // The memory for its session's sockets is still reserved.
        let demand = self.bookings.demand_of(&mut longer, 0);
        Lengthening { before, longer, demand }
    }

    /// Books the longer streams.
    pub(in crate::engine) fn end_lengthening(&mut self, streams: Lengthening, approval: Approval) {
        let Lengthening { before, longer, demand } = streams;
        self.bookings.put_demand(demand);
        self.adopt(approval);
        for ((id, before), mut stream) in before.into_iter().zip(longer) {
            let slack = self.bookings.slack_of_plan(&stream);
            stream.guaranteed_slack = before.guaranteed_slack.into_iter().chain(slack).min();
            self.leaving.extend(before.fed.map(|fed| (fed.feed, id)));
            self.to_serve.push(stream.session);
            self.insert(id, stream);
        }
    }

    /// Puts the streams back on the books as they were.
    pub(in crate::engine) fn give_up_lengthening(&mut self, streams: Lengthening) {
        self.bookings.put_demand(streams.demand);
        streams.before.into_iter().for_each(|(id, stream)| self.insert(id, stream));
    }
}
