//! The replies of an agent to its controller, written by a thread of their own: a write to a
//! controller that hangs blocks for ever, and the agent must stop its workers meanwhile.

use super::channel::Sender;
use super::messages::AgentReply;
use std::io::Write;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::locked;

/// Replies on their way to the controller. Its thread ends with the connection.
pub(super) struct ReplyWriter {
    replies: SyncSender<AgentReply>,
    /// When the write began that has not returned yet.
    began: Arc<Mutex<Option<Instant>>>,
}

/// The largest number of replies that wait: some seconds of those of all workers.
const MAX_WAITING: usize = 4096;

impl ReplyWriter {
    pub(super) fn start<W: Write + Send + 'static>(mut sender: Sender<W>) -> Self {
        let (replies, waiting) = mpsc::sync_channel::<AgentReply>(MAX_WAITING);
        let began = Arc::new(Mutex::new(None));
        let writes = Arc::clone(&began);
        std::thread::spawn(move || {
            for reply in waiting {
                *locked(&writes) = Some(Instant::now());
                if sender.send(&reply).is_err() {
                    return;
                }
                *locked(&writes) = None;
            }
        });
        Self { replies, began }
    }

    /// Has a reply written. Returns false when the connection is gone, or so many replies wait that
    /// the controller does not read them.
    pub(super) fn send(&self, reply: AgentReply) -> bool {
        self.replies.try_send(reply).is_ok()
    }

    /// The time for which the controller has not taken a reply.
    pub(super) fn blocked(&self) -> Duration {
        locked(&self.began).map_or(Duration::ZERO, |began| began.elapsed())
    }
}
