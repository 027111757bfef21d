//! A worker: a process that measures for an agent; its input, its output, and its start.
//!
//! ```text
//!   standard input    a line: the task        WorkerTask
//!                     a line: an order        WorkerOrder: begin a step, or end it
//!                     end of file: stop
//!   standard output   a line: a report        WorkerReply: ready, progress, done
//!   standard error    for people
//! ```

use super::messages::{AgentReply, WorkerReply, WorkerTask};
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A running worker. Dropping it stops the worker and waits for its end.
pub(super) struct WorkerProcess {
    input: Option<ChildStdin>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl WorkerProcess {
    /// Starts a worker by this command line, gives it its task, and passes its reports on.
    pub(super) fn start(
        number: usize,
        command: &[OsString],
        task: &WorkerTask,
        pass_on: impl Fn(AgentReply) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (program, words) =
            command.split_first().ok_or_else(|| io::Error::other("no command starts a worker"))?;
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let work = move || follow(number, child, &pass_on);
        let thread = std::thread::Builder::new().name(format!("worker {number}")).spawn(work)?;
        let mut worker = Self { input, thread: Some(thread) };
        // A worker that has ended already fails this write. Its error is in what it printed.
        let _ = worker.tell(task);
        Ok(worker)
    }

    /// Gives the worker its task, or an order.
    pub(super) fn tell(&mut self, what: &impl Serialize) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        let text = serde_json::to_string(what)? + "\n";
        input.write_all(text.as_bytes()).and_then(|()| input.flush())
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // The end of its input stops the worker.
        self.input = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(
    number: usize,
    mut child: Child,
    pass_on: &(impl Fn(AgentReply) + Clone + Send + 'static),
) {
    let errors = child.stderr.take().map(|errors| {
        // Both outputs are read at once: a worker whose pipe is full would stop measuring.
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let mut errors = BufReader::new(errors);
            let _ = errors.by_ref().take(MOST_SAID).read_to_end(&mut text);
            // The rest is read, too, and not kept.
            let _ = io::copy(&mut errors, &mut io::sink());
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let output = child.stdout.take().expect("piped");
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Ok(reply) = serde_json::from_str::<WorkerReply>(&line) {
            pass_on(AgentReply::Worker(number, reply));
        }
    }
    let _ = child.wait();
    let said = errors.and_then(|errors| errors.join().ok()).unwrap_or_default();
    pass_on(AgentReply::Ended(number, said));
}

/// The largest size of notes and an error; the output of a program that prints more is cut off.
const MOST_SAID: u64 = 64 << 10;
