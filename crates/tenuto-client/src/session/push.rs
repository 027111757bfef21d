//! A viewer whose server sends at its own pace, over RTSP: what happens to it becomes the state and
//! the account of the session.

use super::{PlayContext, Session, SessionState};
use crate::ldus::Ldu;
use crate::outcome::ViewerOutcome;
use crate::rtsp::{PushEvent, RtspViewer};
use player::ViewerAction;

impl Session {
    /// Connects to the server, which decides on admission later.
    pub(super) fn connect_push(&mut self, shared: &mut PlayContext) {
        let (url, network) = (self.url.clone(), &mut shared.network);
        let (options, receives) = (&shared.options, shared.received.is_some());
        let behaviour = &self.behaviour;
        match RtspViewer::connect(url, self.number, behaviour, options, receives, network) {
            Ok(viewer) => self.push = Some(Box::new(viewer)),
            Err(error) => self.fail(shared.now, error),
        }
    }

    pub(super) fn tick_push(&mut self, shared: &mut PlayContext) {
        let Some(push) = &mut self.push else { return };
        let events = push.tick(shared.now, shared.options.patience, &mut shared.network);
        self.note_push(events, shared);
    }

    /// Does what the viewer does now.
    pub(crate) fn act_push(&mut self, action: ViewerAction, shared: &mut PlayContext) {
        let Some(push) = &mut self.push else { return };
        let events = push.act(action, shared.now, &mut shared.network);
        self.note_push(events, shared);
    }

    /// Handles a socket of the viewer.
    pub(super) fn ready_push(&mut self, socket: usize, shared: &mut PlayContext) {
        let Some(push) = &mut self.push else { return };
        let events = push.ready(socket, shared.now, &mut shared.network, &mut shared.scratch);
        self.note_push(events, shared);
    }

    fn note_push(&mut self, events: Vec<PushEvent>, shared: &mut PlayContext) {
        let (now, retry) = (shared.now, shared.options.retry);
        if let Some(push) = &self.push {
            (self.bytes, self.stalls) = (push.bytes, push.stalls());
            (self.failovers, self.put_off) = (push.failovers(), push.put_off);
            (self.refused_speeds, self.refused_seeks) = (push.refused_speeds, push.refused_seeks);
        }
        for event in events {
            match event {
                PushEvent::Admitted => {
                    self.answered = Some(now);
                    self.state = SessionState::Playing;
                }
                PushEvent::Refused(refusal) => {
                    self.push = None;
                    self.refused_with(now, *refusal, retry);
                }
                PushEvent::RefusedLater(refusal) => {
                    self.refusal = Some(*refusal);
                    self.state = SessionState::Done(ViewerOutcome::Refused);
                    self.last = self.report(now);
                    self.close();
                }
                PushEvent::Failed(error) => self.fail(now, error),
                PushEvent::Ldu(late) => {
                    self.ldus.drift.push(i64::try_from(late.as_nanos()).unwrap_or(i64::MAX));
                }
                PushEvent::Received(ldu) => {
                    if let Some(received) = &mut shared.received {
                        received.push_back(Ldu::pushed(*ldu, shared.network.begun));
                    }
                }
                PushEvent::Ended => {
                    self.state = SessionState::Done(ViewerOutcome::Admitted);
                    self.last = self.report(now);
                    self.close();
                }
            }
        }
    }
}
