//! The books against what they stand for: everything booked is added up anew from the streams and
//! sessions, and compared. Slow, and obviously right; tests and the simulator call it often.

use super::{Engine, FillFor, RequestId, StreamId};

impl Engine {
    /// Checks that books, buffers and queues agree with the sessions; says what does not. Slow.
    pub fn audit(&mut self) -> Result<(), String> {
        let reserves = self.sessions.values().map(|s| (s.placement(), s.reserve));
        let detached = self.requests.values().filter_map(|request| request.detached);
        let detached = detached.map(|detached| (detached.disk, detached.reserve));
        let unsent: usize = self.requests.values().map(|request| request.unsent.len()).sum();
        self.streams.audit(reserves, detached, unsent)?;
        for fill in [FillFor::Cache, FillFor::Node] {
            let counted = self.fills.of(fill);
            let all = self.sessions.values();
            let fills = all.filter(|session| session.fill == Some(fill)).count();
            if fills as u64 != u64::from(counted) {
                return Err(format!("{counted} fills are counted for {fill:?}, there are {fills}"));
            }
        }
        self.audit_names()
    }

    // Every id that is kept names an entry of its table.
    fn audit_names(&self) -> Result<(), String> {
        let of = |session: &super::Session| session.streams.clone();
        let mut listed: Vec<StreamId> = self.sessions.values().flat_map(of).collect();
        listed.sort_unstable();
        let streams: Vec<StreamId> = self.streams.iter().map(|(id, _)| *id).collect();
        if listed != streams {
            return Err(format!("sessions list {listed:?}, there are {streams:?}"));
        }
        let is_gone = |id: &&RequestId| self.requests.get(id).is_none_or(|request| request.over);
        match self.streams.awaited.requests().find(is_gone) {
            Some(request) => Err(format!("{request:?} is over and waits for a piece")),
            None => Ok(()),
        }
    }
}
