//! Executes the engine's actions, in their order. Nothing is decided here.

use super::Core;
use super::decisions::EXPIRED;
use crate::disk_thread::ReadJob;
use crate::messages::RequestError;
use crate::recovery_probe;
use device::{Buffer, Pool};
use engine::{
    Action, CutShort, DiskNumber, ReadId, ReadOutcome, ScheduleChange, SessionId, SessionSummary,
};
use serde_json::json;
use std::sync::Arc;
use units::ByteCount;

impl Core {
    /// Executes all actions that the engine has ready, and those that follow from them.
    pub(super) fn execute_actions(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        loop {
            // An action may cause further ones: a read of a title that has ended fails at once.
            self.engine.drain_actions(&mut actions);
            if actions.is_empty() {
                break;
            }
            for action in actions.drain(..) {
                self.execute(action);
            }
        }
        // Kept for its capacity: this list is filled at every event.
        self.actions = actions;
    }

    fn execute(&mut self, action: Action) {
        match action {
            Action::Read { read, disk, device_offset, len, title, track, start } => {
                let Some(playing) = self.titles.get(&title) else {
                    // The title's last session has ended in this burst of events.
                    self.engine.read_done(self.clock.now(), read, ReadOutcome::Failed);
                    return;
                };
                let title = Arc::clone(&playing.title);
                let job = ReadJob { read, offset: device_offset, len, title, track, start };
                let buffer = self.buffer(len as usize);
                self.disks[usize::from(disk.0)].start(job, buffer);
            }
            Action::Deliver { request, read, bytes } => self.deliver(request, read, bytes),
            // The HTTP thread needs no message: it knows how many bytes it has requested.
            Action::Complete { request } => {
                self.remove_request(request);
            }
            Action::Forget { read } => self.drop_buffer(read),
            Action::Refused { request, refusal } => {
                self.show_refused_seek(request, &refusal);
                self.trace_refused_seek(request, &refusal);
                self.request_failed(request, RequestError::Refused(refusal));
            }
            Action::Declined { request, why } => {
                self.request_failed(request, RequestError::Declined(why));
            }
            Action::Failed { request, outcome } => {
                self.request_failed(request, RequestError::ReadFailed(outcome));
            }
            Action::Ended { session, summary } => self.session_ended(session, &summary),
            Action::Granted { permit } => {
                if let Some(grant) = self.grants.remove(&permit) {
                    // After its timeout nobody waits for this permit any more.
                    let _ = grant.send(());
                }
            }
            Action::DiskLost { disk, moved, ended } => self.disk_lost(disk, moved, ended),
            Action::DiskBack { disk } => {
                let store = self.store_name(disk);
                self.shared.log.line(|| json!({ "event": "disk-restored", "store": store }));
                self.shared.notice(format!("{store}: the disk is back"));
            }
            Action::Rescheduled { change: ScheduleChange::Readmitted { request, .. }, .. } => {
                self.note_seek(request);
            }
            // No player is told of its schedule.
            Action::Rescheduled { .. } => {}
            Action::TitleIdle { title } => self.title_idle(title),
        }
    }

    /// Memory for a read. The engine has counted it as free; where pieces of other sizes have left
    /// it fragmented, unused pieces are dropped; if that does not help, memory beyond the pool is
    /// used until the read is forgotten. A read on schedule never waits for memory.
    fn buffer(&mut self, len: usize) -> Buffer {
        loop {
            if let Some(buffer) = self.pool.take(len) {
                return buffer;
            }
            let Some(read) = self.engine.evict_oldest() else { break };
            self.drop_buffer(read);
        }
        self.shared.log.line(|| json!({ "event": "buffer-pool-fragmented", "length": len }));
        let bytes = ByteCount(len as u64);
        Pool::new(bytes, bytes).take(len).expect("a new pool of this size")
    }

    fn drop_buffer(&mut self, read: ReadId) {
        self.buffers.remove(&read);
    }

    fn session_ended(&mut self, id: SessionId, summary: &SessionSummary) {
        self.shared.session_ended(summary);
        let is_expired = self.sessions.get(&id).is_some_and(|open| open.is_expired);
        self.trace_end(id, Some(summary), is_expired.then_some(EXPIRED));
        self.log_end(id, summary, summary.cut_short.map(CutShort::word));
        if let Some(why) = summary.cut_short {
            self.show_cut_short(id, why);
        } else if is_expired {
            self.show_end(id, EXPIRED);
        }
        self.end_session(
            id,
            summary.cut_short.map_or(RequestError::SessionEnded, RequestError::CutShort),
        );
    }

    fn disk_lost(&self, disk: DiskNumber, failed_over: u64, ended: u64) {
        // What returns in its place may be older, and must not be written over.
        self.shared.content.stores[usize::from(disk.0)].store.suspend_writes();
        let store = self.store_name(disk);
        self.shared.tell("disk-lost", || {
            json!({
                "store": store,
                "sessions_failed_over": failed_over,
                "sessions_ended": ended,
            })
        });
        self.shared.notice(format!(
            "{store}: the disk is lost: it fails its reads, or does not answer; sessions that went \
             on with another copy: {failed_over}, that ended: {ended}"
        ));
        let core = self.handle.clone();
        if let Err(error) = recovery_probe::spawn_recovery_probe(disk, &self.shared, core) {
            self.shared
                .log
                .line(|| json!({ "event": "recovery-probe-failed", "error": error.to_string() }));
        }
    }

    fn store_name(&self, disk: DiskNumber) -> String {
        self.shared.content.stores[usize::from(disk.0)].path.display().to_string()
    }
}
