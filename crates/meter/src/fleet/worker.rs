//! A worker: a process that runs streams for an agent; its input, its output, and its start.
//!
//! ```text
//!   standard input    a line of JSON         the task
//!                     a line: begin          end of file: stop
//!   standard error    ready                  prepared, and waiting
//!                     progress 12.5 300 2    seconds, frames judged, late
//!                     other lines            for people
//!   standard output   the summary, as JSON, at the end
//! ```

use super::messages::{AgentReply, WorkerTask};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;

/// The line that a held run prints when it is prepared.
pub(crate) const READY: &str = "ready";
/// The first word of a line of progress.
pub(crate) const PROGRESS: &str = "progress";

/// A running worker. Dropping it stops the worker and waits for its end.
pub(super) struct WorkerProcess {
    input: Option<ChildStdin>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl WorkerProcess {
    /// Starts a worker by this command line, gives it its task, and passes its output on to
    /// `replies`.
    pub(super) fn start(
        number: usize,
        command: &[OsString],
        task: &WorkerTask,
        replies: Sender<AgentReply>,
    ) -> io::Result<Self> {
        let (program, words) =
            command.split_first().ok_or_else(|| io::Error::other("no command starts a worker"))?;
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let task = serde_json::to_string(task)?;
        let mut input = child.stdin.take().expect("piped");
        // A worker that has ended already fails this write. Its error is in what it printed.
        let _ = writeln!(input, "{task}");
        let work = move || follow(number, child, &replies);
        let thread = std::thread::Builder::new().name(format!("worker {number}")).spawn(work)?;
        Ok(Self { input: Some(input), thread: Some(thread) })
    }

    /// Starts the worker's run.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(b"begin\n").and_then(|()| input.flush()),
            None => Ok(()),
        }
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

fn follow(number: usize, mut child: Child, replies: &Sender<AgentReply>) {
    let mut said = String::new();
    let output = child.stdout.take().map(|mut output| {
        // Both outputs are read at once: a worker whose pipe is full would stop measuring.
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = output.read_to_end(&mut text);
            text
        })
    });
    for line in BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok) {
        let reply = match line.split_whitespace().collect::<Vec<_>>()[..] {
            [READY] => Some(AgentReply::Ready(number)),
            [PROGRESS, seconds, frames, late] => progress(number, seconds, frames, late),
            _ => None,
        };
        match reply {
            Some(reply) => {
                let _ = replies.send(reply);
            }
            None if said.len() < MOST_SAID => said += &(line + "\n"),
            None => {}
        }
    }
    let text = output.and_then(|output| output.join().ok()).unwrap_or_default();
    let code = child.wait().ok().and_then(|status| status.code());
    let summary = serde_json::from_slice(&text).ok();
    let _ = replies.send(AgentReply::Done { worker: number, code, summary, said });
}

fn progress(worker: usize, seconds: &str, frames: &str, late: &str) -> Option<AgentReply> {
    let (seconds, frames, late) = (seconds.parse().ok()?, frames.parse().ok()?, late.parse().ok()?);
    Some(AgentReply::Progress { worker, seconds, frames, late })
}

/// The largest size of notes and an error; the output of a program that prints more is cut off.
const MOST_SAID: usize = 64 << 10;
