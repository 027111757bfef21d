//! The thread that opens titles and makes progressive files: what may wait for a disk or take a
//! while to work out, so that threads that speak HTTP never do either.
//!
//! While nobody asks for anything it opens what is on the shelves already, as far as memory goes: on
//! a disk that viewers have filled, a title's index would wait behind everybody's media.

use crate::core::{Caller, CoreHandle, Notice, WorkerHandle};
use crate::library::{NotOpened, OpenTitle};
use crate::shared::Shared;
use crate::wanted::Wanted;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Work for the opener; answered with [`Notice::Opened`].
#[derive(Debug)]
pub(crate) enum Task {
    /// Open the title of this name.
    Open { caller: Caller, name: String },
    /// Make the file of these tracks.
    Make { caller: Caller, title: Arc<OpenTitle>, tracks: Vec<u16> },
    /// Make what a viewer wants of a title.
    Show { caller: Caller, title: Arc<OpenTitle>, wanted: Wanted },
}

/// Where tasks go in. The thread ends when the last clone is gone.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    tasks: Sender<Task>,
}

impl Opener {
    /// Where tasks go in and come out.
    pub(crate) fn new() -> (Self, Receiver<Task>) {
        let (tasks, queue) = bounded(QUEUE);
        (Self { tasks }, queue)
    }

    /// False: too much is waiting already.
    pub(crate) fn ask(&self, task: Task) -> bool {
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
        let answer = |task| {
            let (caller, result) = work(task, &shared, &core);
            let connection = caller.connection;
            workers[caller.worker].tell(Notice::Opened { connection, result });
        };
        let mut ahead: VecDeque<_> = shared.titles.playable().into();
        let mut pause = Duration::ZERO;
        while !ahead.is_empty() && !shared.titles.is_full() {
            match queue.recv_timeout(pause) {
                Ok(task) => answer(task),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let Some(name) = ahead.front() else { break };
                    if shared.titles.open_ahead(name, &core) {
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

fn work(
    task: Task,
    shared: &Shared,
    core: &CoreHandle,
) -> (Caller, Result<Arc<OpenTitle>, NotOpened>) {
    match task {
        Task::Open { caller, name } => {
            let opened = shared.titles.open(&name, core);
            (caller, opened)
        }
        Task::Make { caller, title, tracks } => {
            title.body(&tracks);
            (caller, Ok(title))
        }
        Task::Show { caller, title, wanted } => {
            // Why there is no such part is kept, too, for who answers.
            let _ = title.showing(&wanted);
            (caller, Ok(title))
        }
    }
}

/// How long a disk that has viewers to serve is not asked for titles that nobody has asked for.
const PAUSE: Duration = Duration::from_secs(5);

/// Viewers waiting for titles to open; one more is told to come again. A title opens in some
/// milliseconds, so that this is seconds of waiting.
const QUEUE: usize = 1024;
