//! The measurement that runs: a process of the same program with the same arguments as by hand, so
//! that it can be stopped, has its own memory and descriptors, and gives the same report.
//!
//! ```text
//!   order ─▶ start ─▶ tenuto meter run ... --out DIR/NAME --json --live
//!                          │ stderr: a line for each event       │ SIGINT: stop
//!                          ▼                                     │
//!                    RunningState ─▶ GET /status            POST stop
//! ```

use super::order::MeasureOrder;
use super::reports::KeptReports;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use units::{Hinted, Reason, locked};

/// The one measurement of a console: the present or the last one.
#[derive(Default)]
pub(super) struct Measuring {
    state: Arc<Mutex<Option<RunningState>>>,
    reader: Mutex<Option<JoinHandle<()>>>,
}

/// A measurement that runs or has ended.
struct RunningState {
    /// Counts the measurements of this console: tells a reader that another one has begun.
    number: u64,
    name: String,
    order: MeasureOrder,
    began: Instant,
    /// Until the process was waited for.
    child: Option<Child>,
    is_stopping: bool,
    ended: Option<ExitStatus>,
    /// The present state in a line.
    state: Value,
    /// Runs of a search, notes and errors, in order.
    lines: VecDeque<Value>,
    /// The latest figures, as the event has them.
    figures: Value,
    /// The index of the first sample that is kept.
    first: usize,
    samples: VecDeque<Value>,
}

impl RunningState {
    /// A measurement that begins.
    fn of(number: u64, name: String, order: MeasureOrder, child: Option<Child>) -> Self {
        Self {
            number,
            name,
            order,
            began: Instant::now(),
            child,
            is_stopping: false,
            ended: None,
            state: Value::Null,
            lines: VecDeque::new(),
            figures: Value::Null,
            first: 0,
            samples: VecDeque::new(),
        }
    }
}

/// Why a measurement was not started.
#[derive(Debug)]
pub(super) enum NotStarted {
    /// Another one runs.
    Busy(String),
    /// The process could not be started.
    Failed(Reason),
}

impl Measuring {
    /// Starts a measurement: `program` with `arguments`, and the options that the console needs.
    pub(super) fn start(
        &self,
        program: &[OsString],
        arguments: Vec<OsString>,
        order: MeasureOrder,
        name: &str,
        reports: &KeptReports,
    ) -> Result<(), NotStarted> {
        let mut state = locked(&self.state);
        if let Some(running) = state.as_ref().filter(|running| running.ended.is_none()) {
            return Err(NotStarted::Busy(running.name.clone()));
        }
        let failed = |reason: Reason| NotStarted::Failed(reason);
        let Some((program, words)) = program.split_first() else {
            return Err(failed("the console has no program to start".into()));
        };
        let directory = reports.directory().join(name);
        let mut child = Command::new(program)
            .args(words)
            .args(arguments)
            .arg("--out")
            .arg(&directory)
            .args(["--json", "--live"])
            .stdin(Stdio::null())
            // Ctrl-C in the terminal of the console would be a second signal beside the one of
            // `stop`, and end the process before it has removed its files.
            .process_group(0)
            // The results are in the files, too.
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.reason().about("cannot start the measurement")))?;
        let events = child.stderr.take().expect("it is a pipe");
        let number = state.as_ref().map_or(1, |before| before.number + 1);
        *state = Some(RunningState::of(number, name.to_owned(), order, Some(child)));
        drop(state);
        let of_reader = Arc::clone(&self.state);
        let read = move || follow(events, &of_reader, directory);
        let reader = std::thread::Builder::new().name("measuring".to_owned()).spawn(read);
        match reader {
            Ok(reader) => {
                // The last one has ended with its process.
                *locked(&self.reader) = Some(reader);
                Ok(())
            }
            Err(error) => {
                self.kill();
                *locked(&self.state) = None;
                Err(failed(error.reason().about("cannot start a thread")))
            }
        }
    }

    /// Stops the measurement: it reports what it has until then. False where none runs.
    pub(super) fn stop(&self) -> bool {
        let mut state = locked(&self.state);
        let Some(running) = state.as_mut() else { return false };
        // The process is still this one: it is waited for under the same lock.
        let Some(child) = &running.child else { return false };
        // A second signal would end the process at once.
        if !running.is_stopping {
            running.is_stopping = true;
            return kill_process(Pid::from_child(child), Signal::INT).is_ok();
        }
        true
    }

    /// Stops the measurement, and waits until it has removed its files.
    pub(super) fn end(&self) {
        if !self.stop() {
            return;
        }
        let start = Instant::now();
        let is_running =
            || locked(&self.state).as_ref().is_some_and(|running| running.ended.is_none());
        while is_running() && start.elapsed() < TO_STOP {
            std::thread::sleep(LOOK_AGAIN);
        }
        self.kill();
        let _ = locked(&self.reader).take().map(JoinHandle::join);
    }

    fn kill(&self) {
        if let Some(running) = locked(&self.state).as_mut()
            && let Some(child) = running.child.as_mut()
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The state for a reader who has the samples before index `after` of measurement `number`.
    pub(super) fn json(&self, number: u64, after: usize) -> Value {
        let state = locked(&self.state);
        let Some(running) = state.as_ref() else { return Value::Null };
        let known = if running.number == number { after } else { 0 };
        let from = known.max(running.first);
        let samples: Vec<&Value> = running.samples.iter().skip(from - running.first).collect();
        let RunningState { order, .. } = running;
        json!({
            "number": running.number,
            "name": running.name,
            "kind": order.kind.word(),
            "target": order.target,
            "profile": order.profile,
            "elapsed": running.began.elapsed().as_secs_f64(),
            "running": running.ended.is_none(),
            "stopping": running.is_stopping,
            "result": running.ended.map(result),
            "state": running.state,
            "lines": running.lines,
            "figures": running.figures,
            "samples": { "from": from, "items": samples },
        })
    }
}

/// The result that an exit code stands for, in one word.
fn result(status: ExitStatus) -> &'static str {
    match status.code() {
        Some(0) => "held",
        Some(3) => "not-held",
        Some(5) => "invalid",
        _ => "failed",
    }
}

/// Reads the events of a measurement until it has ended, and waits for its process.
fn follow(events: ChildStderr, state: &Mutex<Option<RunningState>>, directory: PathBuf) {
    let mut events = BufReader::new(events);
    let mut line = Vec::new();
    loop {
        line.clear();
        match events.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(read) if read > 0 => {}
            _ => break,
        }
        if let Some(running) = locked(state).as_mut() {
            running.take(&String::from_utf8_lossy(&line));
        }
    }
    loop {
        let ended = {
            let mut state = locked(state);
            let Some(child) = state.as_mut().and_then(|running| running.child.as_mut()) else {
                return;
            };
            child.try_wait()
        };
        match ended {
            Ok(None) => std::thread::sleep(LOOK_AGAIN),
            ended => {
                // A measurement that has failed leaves a directory without a report. It is removed
                // before others hear of the end.
                if !directory.join("summary.json").is_file() {
                    let _ = std::fs::remove_dir_all(&directory);
                }
                if let Some(running) = locked(state).as_mut() {
                    running.child = None;
                    running.ended = Some(ended.ok().flatten().unwrap_or_default());
                }
                return;
            }
        }
    }
}

impl RunningState {
    /// Takes a line of the process: an event, a note, an error or a hint.
    fn take(&mut self, line: &str) {
        let line = line.trim_end();
        let event: Value = serde_json::from_str(line).unwrap_or(Value::Null);
        match event["event"].as_str() {
            Some("figures") => self.figures(&event["groups"]),
            Some("state" | "fill") => self.state = event,
            Some("run") => self.add(json!({ "kind": "run", "text": event["text"] })),
            Some(_) => {}
            None => {
                let known = ["note", "error", "hint"].iter().find_map(|kind| {
                    let text = line.strip_prefix(kind)?.strip_prefix(": ")?;
                    Some(json!({ "kind": kind, "text": text }))
                });
                let other = || json!({ "kind": "note", "text": line });
                self.add(known.unwrap_or_else(other));
            }
        }
    }

    fn add(&mut self, line: Value) {
        self.lines.push_back(line);
        if self.lines.len() > MOST_LINES {
            self.lines.pop_front();
        }
    }

    fn figures(&mut self, groups: &Value) {
        // A run of the console has one group.
        let Some(group) = groups.as_array().and_then(|groups| groups.first()) else { return };
        self.samples.push_back(json!({
            "at": self.began.elapsed().as_secs_f64(),
            "elapsed": group["elapsed"],
            "streams": group["streams"],
            "bits_per_s": group["bits_per_s"],
            "asked_bits_per_s": group["asked_bits_per_s"],
            "frames": group["frames"],
            "late": group["late"],
            "p99": group["response"]["p99"],
            "longest": group["response"]["max"],
        }));
        if self.samples.len() > MOST_SAMPLES {
            self.samples.pop_front();
            self.first += 1;
        }
        self.figures = group.clone();
    }
}

/// Time for a measurement to end when the console ends: it removes its files.
const TO_STOP: Duration = Duration::from_secs(10);
/// Time between two looks at a process that ends.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Bytes of a line; the longest has the figures of one group.
const LONGEST_LINE: u64 = 64 << 10;
/// Lines that are kept: a search has at most 40 runs.
const MOST_LINES: usize = 200;
/// Samples that are kept: ten minutes with two in a second.
const MOST_SAMPLES: usize = 1200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::order::OrderKind;

    fn running() -> RunningState {
        let order = MeasureOrder {
            kind: OrderKind::Run,
            name: None,
            target: "null:".to_owned(),
            profile: "xdcam422".to_owned(),
            streams: None,
            duration: None,
            max_streams: None,
            confirm: None,
            size: None,
        };
        RunningState::of(1, "a".to_owned(), order, None)
    }

    #[test]
    fn lines_of_the_process_become_state_notes_and_samples() {
        let mut state = running();
        for line in [
            r#"{"event":"state","text":"16 streams"}"#,
            r#"{"event":"figures","groups":[{"streams":16,"response":{"p99":0.25}}]}"#,
            r#"{"event":"run","text":"16 streams: held"}"#,
            r#"{"event":"threshold","at":1}"#,
            "note: a: b",
            "error: it failed",
            "hint: repair it",
            "something else {",
        ] {
            state.take(line);
        }
        let lines: Vec<String> =
            state.lines.iter().map(|line| format!("{} {}", line["kind"], line["text"])).collect();
        assert_eq!(
            lines.join("\n").replace('"', ""),
            "run 16 streams: held\nnote a: b\nerror it failed\nhint repair it\n\
             note something else {"
        );
        assert_eq!(
            (&state.state["text"], &state.samples[0]["p99"]),
            (&json!("16 streams"), &json!(0.25))
        );
    }

    #[test]
    fn a_reader_gets_the_samples_that_it_does_not_have() {
        let mut state = running();
        for _ in 0..MOST_SAMPLES + 5 {
            state.figures(&json!([{ "streams": 1 }]));
        }
        let measuring =
            Measuring { state: Arc::new(Mutex::new(Some(state))), reader: Mutex::default() };
        let of = |number, after| {
            let samples = &measuring.json(number, after)["samples"];
            (samples["from"].as_u64().unwrap(), samples["items"].as_array().unwrap().len())
        };
        assert_eq!(
            [of(1, 0), of(1, 1203), of(1, 1205), of(7, 1203)],
            [(5, 1200), (1203, 2), (1205, 0), (5, 1200)]
        );
    }
}
