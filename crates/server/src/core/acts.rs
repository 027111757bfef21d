//! The core's hands: what the engine says is carried out, in its order. Nothing is decided here.

use super::{Asked, Caller, Core, Notice, Undone};
use crate::disks::Job;
use crate::engine::{Action, ReadOutcome, RequestId, SessionId};
use crate::prober;
use device::sockets::ConnectionId;
use device::{Buffer, Pool};
use serde_json::json;
use std::sync::Arc;
use units::ByteCount;

impl Core {
    /// Carries out what the engine says, in its order.
    pub(super) fn act(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        loop {
            self.engine.drain_actions(&mut actions);
            if actions.is_empty() {
                break;
            }
            for action in actions.drain(..) {
                self.carry_out(action);
            }
        }
        self.actions = actions;
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Read { read, disk, device_offset, len, title, track, start } => {
                let Some(played) = self.titles.get(&title) else {
                    // Its last session has ended in this very moment: nobody wants it any more.
                    self.engine.read_done(self.clock.now(), read, ReadOutcome::Failed);
                    return;
                };
                let title = Arc::clone(&played.title);
                let buffer = self.buffer(len as usize);
                let job = Job { read, offset: device_offset, len, title, track, start };
                self.disks[usize::from(disk.0)].start(job, buffer);
            }
            Action::Deliver { request, read, bytes } => {
                let Some(asked) = self.requests.get(&request) else {
                    self.engine.cancel(self.clock.now(), request);
                    return;
                };
                let buffer = self.buffers.get(&read).expect("delivered from memory").clone();
                let connection = asked.caller.connection;
                let range = bytes.start as usize..bytes.end as usize;
                let seat = self.sessions.get(&asked.session);
                if seat.is_some_and(|seat| seat.session.starts()) {
                    let session = &self.sessions[&asked.session].session;
                    self.shared.startup.observe(session.admitted.elapsed().as_secs_f64());
                }
                let worker = asked.caller.worker;
                self.tell(worker, Notice::Deliver { connection, request, read, buffer, range });
            }
            Action::Complete { request } => {
                self.forget_request(request);
            }
            Action::Forget { read } => {
                self.buffers.remove(&read);
            }
            Action::Refused { request, refusal } => self.undone(request, Undone::Refused(refusal)),
            Action::Declined { request, why } => self.undone(request, Undone::Declined(why)),
            Action::Failed { request, outcome } => self.undone(request, Undone::Failed(outcome)),
            Action::Ended { session, summary } => {
                self.shared.session_ended(&summary);
                let name = self.sessions.get(&session).map(|seat| seat.session.name.clone());
                self.shared.log.line(|| {
                    json!({
                        "event": "session-ended",
                        "title": name,
                        "on_time": summary.on_time,
                        "glitches": summary.glitches,
                        "worst_lateness": summary.worst_lateness.as_secs_f64(),
                        "promised_slack": summary.promised_slack.map(|slack| slack.as_secs_f64()),
                        "least_slack": summary.least_slack.map(|slack| slack.as_secs_f64()),
                        "broken_certificates": summary.broken,
                        "void_certificates": summary.void,
                        "delivered": summary.delivered,
                        "disk_lost": summary.lost,
                    })
                });
                self.end(session, if summary.lost { Undone::Lost } else { Undone::Ended });
            }
            Action::Granted { ticket } => {
                if let Some(grant) = self.grants.remove(&ticket) {
                    let _ = grant.send(());
                }
            }
            Action::DiskLost { disk, moved, ended } => {
                let shelf = &self.shared.titles.shelves[usize::from(disk.0)];
                let store = shelf.path.display().to_string();
                self.shared.log.line(|| {
                    json!({ "event": "disk-lost", "store": store, "moved": moved, "ended": ended })
                });
                let (shared, core) = (Arc::clone(&self.shared), self.handle.clone());
                if let Err(error) = prober::look_after(disk, shared, core) {
                    self.shared
                        .log
                        .line(|| json!({ "event": "no-probe", "error": error.to_string() }));
                }
            }
            Action::DiskBack { disk } => {
                let shelf = &self.shared.titles.shelves[usize::from(disk.0)];
                let store = shelf.path.display().to_string();
                self.shared.log.line(|| json!({ "event": "disk-back", "store": store }));
            }
            // For whoever checks the engine; a player hears of it by what it gets.
            Action::Rescheduled { .. } => {}
            Action::TitleIdle { title } => self.title_idle(title),
        }
    }

    /// Memory for a read. The engine says that there is room; where pieces of other sizes have left
    /// it in crumbs, what nobody needs any more makes way, and in the end memory beyond the pool
    /// is used until the read is forgotten: a read on schedule never waits for memory.
    fn buffer(&mut self, len: usize) -> Buffer {
        loop {
            if let Some(buffer) = self.pool.take(len) {
                return buffer;
            }
            let Some(read) = self.engine.give_up_oldest() else { break };
            self.buffers.remove(&read);
        }
        self.shared.log.line(|| json!({ "event": "memory-in-crumbs", "length": len }));
        let len_in_bytes = ByteCount(len as u64);
        Pool::new(len_in_bytes, len_in_bytes).take(len).expect("a pool of its own")
    }

    /// A session is over: its token dies, its open requests are answered.
    pub(super) fn end(&mut self, id: SessionId, why: Undone) {
        let Some(seat) = self.sessions.remove(&id) else { return };
        self.shared.sessions.remove(seat.session.token);
        for request in seat.requests {
            self.undone(request, why.clone());
        }
        let key = seat.session.title.key;
        if let Some(played) = self.titles.get_mut(&key) {
            played.sessions -= 1;
            if played.sessions == 0 {
                self.titles.remove(&key);
            }
        }
    }

    fn undone(&mut self, request: RequestId, why: Undone) {
        if let Some(asked) = self.forget_request(request) {
            self.tell_undone(asked.caller, request, why);
        }
    }

    pub(super) fn tell_undone(&self, caller: Caller, request: RequestId, why: Undone) {
        let connection: ConnectionId = caller.connection;
        self.tell(caller.worker, Notice::Undone { connection, request, why });
    }

    pub(super) fn forget_request(&mut self, request: RequestId) -> Option<Asked> {
        let asked = self.requests.remove(&request)?;
        if let Some(seat) = self.sessions.get_mut(&asked.session) {
            seat.requests.remove(&request);
        }
        Some(asked)
    }

    pub(super) fn tell(&self, worker: usize, notice: Notice) {
        self.workers[worker].tell(notice);
    }
}
