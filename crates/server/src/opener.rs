//! The thread that opens titles and builds presentations and files of them: work that may wait for
//! a disk or takes long, and must not block an HTTP thread.
//!
//! While no task waits it opens the titles of all stores ahead of demand, as far as memory allows:
//! on a disk full of sessions, reading a title's index would wait behind their media.

use crate::library::{OpenError, OpenTitle, StoredCopy};
use crate::messages::{Caller, CoreHandle, WorkerHandle, WorkerMessage};
use crate::playback_params::PlaybackParams;
use crate::presentation::{BuiltFile, Presentation};
use crate::shared::Shared;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde_json::json;
use std::collections::VecDeque;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Work for the opener, answered with [`WorkerMessage::Opened`].
#[derive(Debug)]
pub(crate) enum Task {
    /// Open the title of this name.
    Open { caller: Caller, name: String },
    /// Look at a recording.
    Look { caller: Caller, copy: StoredCopy, name: String },
    /// Build a file of a presentation of a title.
    BuildFile {
        caller: Caller,
        title: Arc<OpenTitle>,
        presentation: Arc<Presentation>,
        file: BuiltFile,
    },
    /// Build the presentation of a part of a title.
    BuildPresentation { caller: Caller, title: Arc<OpenTitle>, params: PlaybackParams },
    /// Plan the transport streams of a presentation of a title.
    PlanTransport { caller: Caller, title: Arc<OpenTitle>, presentation: Arc<Presentation> },
}

/// Submits tasks to the opener's thread, which ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    tasks: Sender<Task>,
}

impl Opener {
    /// A handle and the queue that it feeds.
    pub(crate) fn new() -> (Self, Receiver<Task>) {
        let (tasks, queue) = bounded(QUEUE);
        (Self { tasks }, queue)
    }

    /// Queues a task; false where the queue is full.
    pub(crate) fn submit(&self, task: Task) -> bool {
        self.tasks.try_send(task).is_ok()
    }
}

/// Starts the thread.
pub(crate) fn spawn(
    queue: Receiver<Task>,
    shared: Arc<Shared>,
    core: CoreHandle,
    workers: Vec<WorkerHandle>,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("opener".to_owned()).spawn(move || {
        let answer = |task: Task| {
            let caller = task.caller();
            let result = guarded(|| perform(task, &shared, &core));
            let connection = caller.connection;
            workers[caller.worker].send(WorkerMessage::Opened { connection, result });
        };
        let mut ahead: VecDeque<_> = shared.content.without_key_server().into();
        let mut pause = Duration::ZERO;
        while !ahead.is_empty() && !shared.content.is_full() {
            // Players' requests come first: a title is opened ahead only if none waits.
            match queue.recv_timeout(pause) {
                Ok(task) => answer(task),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let Some(name) = ahead.front() else { break };
                    if shared.content.open_ahead(name, &core) {
                        ahead.pop_front();
                        pause = Duration::ZERO;
                    } else {
                        pause = PAUSE;
                    }
                }
            }
        }
        queue.into_iter().for_each(answer);
    })
}

impl Task {
    fn caller(&self) -> Caller {
        match self {
            Self::Open { caller, .. }
            | Self::Look { caller, .. }
            | Self::BuildFile { caller, .. }
            | Self::BuildPresentation { caller, .. }
            | Self::PlanTransport { caller, .. } => *caller,
        }
    }
}

/// The result of a task. A title on which this program fails is a failure for those who ask for it,
/// and the others go on.
fn guarded<T>(task: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
    // What the task has begun is dropped with it, and locks are taken whatever has happened.
    panic::catch_unwind(AssertUnwindSafe(task)).unwrap_or_else(|_| {
        let message = "this server failed to prepare the title, which is a fault of the program; its \
                       standard error has where: report that";
        Err(OpenError::Failed(message.to_owned()))
    })
}

fn perform(task: Task, shared: &Shared, core: &CoreHandle) -> Result<Arc<OpenTitle>, OpenError> {
    match task {
        Task::Open { name, .. } => {
            let opened = shared.content.open(&name, core);
            if let Err(OpenError::NoKeys(why)) = &opened {
                shared.log.line(|| json!({ "event": "no-keys", "title": name, "error": why }));
            }
            opened
        }
        Task::Look { copy, name, .. } => shared.content.look(copy, &name, core),
        Task::BuildFile { title, presentation, file, .. } => {
            presentation.build_file(&file);
            Ok(title)
        }
        Task::BuildPresentation { title, params, .. } => {
            // A failure is cached with the title: the HTTP thread finds it when it answers again.
            let _ = title.build_presentation(&params);
            Ok(title)
        }
        Task::PlanTransport { title, presentation, .. } => {
            presentation.packaging.plan_transport();
            Ok(title)
        }
    }
}

/// The pause before a busy disk is tried again for a title that no viewer has requested.
const PAUSE: Duration = Duration::from_secs(5);

/// Tasks that wait; one more is refused with a 503. A title opens in some milliseconds, so a full
/// queue is seconds of waiting.
const QUEUE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_panics_is_a_failure_of_its_own() {
        let failed = guarded::<()>(|| panic!("a title that this program cannot do"));
        assert!(matches!(failed, Err(OpenError::Failed(why)) if why.contains("report")));
        assert!(matches!(guarded(|| Ok(7)), Ok(7)));
    }
}
