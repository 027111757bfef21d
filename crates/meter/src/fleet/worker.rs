//! A worker: the process of `meter run --hold`, its start and its output.
//!
//! ```text
//!   standard input    a line: begin          end of file: stop
//!   standard error    ready                  prepared and waiting
//!                     progress 12.5 300 2    seconds, frames judged, late
//!                     anything else          for the user
//!   standard output   the summary, as JSON, at the end
//! ```

use super::messages::{AgentReply, WorkerJob};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;

/// The line that a held run prints when it is prepared.
pub const READY: &str = "ready";
/// The first word of a line of progress.
pub const PROGRESS: &str = "progress";

/// A running worker. Dropping it stops the worker and waits for its end.
pub(super) struct WorkerProcess {
    input: Option<ChildStdin>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The options that an agent passes on. None writes outside of the target's directory, and none
/// destroys data.
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

/// The first option that is not passed on; `None` if all are.
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

    /// Starts the worker's run.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(b"begin\n").and_then(|()| input.flush()),
            None => Ok(()),
        }
    }
}

/// The command line of a worker. A controller's text is the value of an option and nothing else,
/// whatever it contains.
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

/// The largest size of notes and an error; the output of a program that prints more is cut off.
const MOST_SAID: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_inside_a_value_is_not_taken_for_an_option() {
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
