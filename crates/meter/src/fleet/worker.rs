//! A worker: `meter run --hold` as a process, its output, and its start.
//!
//! ```text
//!   standard input    a line: begin          end of file: stop
//!   standard error    ready                  prepared, and waiting
//!                     progress 12.5 300 2    seconds, frames judged, late
//!                     anything else          for people
//!   standard output   the summary, as JSON, at the end
//! ```

use super::messages::{AgentReply, WorkerJob};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;

/// The line that a held run prints when it is prepared.
pub const READY: &str = "ready";
/// What a line of progress begins with.
pub const PROGRESS: &str = "progress";

/// A running worker. On drop it is stopped and waited for.
pub(super) struct WorkerProcess {
    input: Option<ChildStdin>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Options that an agent passes on. Nothing that writes anywhere but into the target's directory,
/// nothing that destroys.
const PASSED: [&str; 9] = [
    "duration",
    "buffer-frames",
    "size",
    "method",
    "layout",
    "fill-level",
    "buffered",
    "iodepth",
    "busy-poll",
];

/// An option that is not passed on; `None`: all are.
pub(super) fn not_passed(job: &WorkerJob) -> Option<&str> {
    job.options.keys().map(String::as_str).find(|name| !PASSED.contains(name))
}

impl WorkerProcess {
    /// Starts a worker whose output goes to `replies`.
    pub(super) fn start(
        number: usize,
        program: &Path,
        job: &WorkerJob,
        profile: &Path,
        replies: Sender<AgentReply>,
    ) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(words(job, number, profile))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let work = move || follow(number, child, &replies);
        let thread = std::thread::Builder::new().name(format!("worker {number}")).spawn(work)?;
        Ok(Self { input, thread: Some(thread) })
    }

    /// Lets it begin.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(b"begin\n").and_then(|()| input.flush()),
            None => Ok(()),
        }
    }
}

/// The command line of a worker. What a controller says is the value of an option and nothing else,
/// whatever it looks like.
fn words(job: &WorkerJob, number: usize, profile: &Path) -> Vec<String> {
    let own = ["meter", "run", "--hold", "--json"].map(str::to_owned);
    let given = [
        format!("--profile={}", profile.display()),
        format!("--target={}", job.target),
        format!("--streams={}", job.streams[number]),
    ];
    let passed = job.options.iter().map(|(name, value)| match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    });
    own.into_iter().chain(given).chain(passed).collect()
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.input = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(number: usize, mut child: Child, replies: &Sender<AgentReply>) {
    let mut said = String::new();
    let output = child.stdout.take().map(|mut output| {
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

/// Notes and an error; a program that goes wild is cut off.
const MOST_SAID: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_lies_about_a_value_gets_no_option_by_it() {
        let options = [
            ("buffered", Some("--destroy=/mnt/films/film.mov")),
            ("size", Some("--out")),
            ("busy-poll", None),
        ];
        let job = WorkerJob {
            target: "/mnt/films".to_owned(),
            profile: String::new(),
            streams: vec![3, 4],
            options: options.map(|(name, value)| (name.into(), value.map(str::to_owned))).into(),
        };
        let said = words(&job, 1, Path::new("/proc/7/fd/3")).join(" ");
        assert_eq!(
            said,
            "meter run --hold --json --profile=/proc/7/fd/3 --target=/mnt/films --streams=4 \
             --buffered=--destroy=/mnt/films/film.mov --busy-poll --size=--out"
        );
    }
}
