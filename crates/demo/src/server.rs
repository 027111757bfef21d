//! The demo's `tenuto serve`, and samples of its `/status` while viewers play.

use super::children::{Call, Problem, Running, check};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A running server.
pub(crate) struct Server {
    running: Running,
    address: String,
}

impl Server {
    /// Starts `call` (`tenuto serve ... --json`) and waits until the server accepts connections.
    pub(crate) fn start(call: &Call, log: &Path, stop: &AtomicBool) -> Result<Self, Problem> {
        let mut running = call.start(log)?;
        let stdout = running.stdout();
        let (sender, receiver) = std::sync::mpsc::channel();
        // Reads to the end, because a server with a full pipe waits for its reader.
        std::thread::spawn(move || {
            let mut text = String::new();
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                text.push_str(&line);
                if let Ok(value) = serde_json::from_str::<Value>(&text) {
                    let _ = sender.send(value);
                    text.clear();
                }
            }
        });
        let deadline = Instant::now() + START;
        loop {
            if let Ok(value) = receiver.recv_timeout(Duration::from_millis(50)) {
                let address = value["address"].as_str().unwrap_or_default().to_owned();
                return Ok(Self { running, address });
            }
            check(stop)?;
            if let Some(code) = running.ended()? {
                return Err(call.failure(code, log));
            }
            if Instant::now() > deadline {
                return Err(format!("'{}' did not start to serve in time", call.typed()));
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A GET request whose response body is JSON.
    pub(crate) fn get(&self, path: &str) -> Result<Value, Problem> {
        ask(&self.address, "GET", path, "")
            .map_err(|error| format!("{}{path}: {error}", self.url()))
    }

    /// The first `/status` that lists a disk.
    pub(crate) fn opened(&self) -> Result<Value, Problem> {
        let deadline = Instant::now() + START;
        loop {
            let status = self.get("/status")?;
            // Connections are accepted before the store is open and calibrated.
            if status["disks"][0].is_object() {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(format!("{}/status lists no disk", self.url()));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Ends the server with SIGKILL.
    pub(crate) fn kill(self) {
        self.running.kill();
    }

    /// Leaves the server running after the demo; returns its process id.
    pub(crate) fn keep(mut self) -> u32 {
        self.running.keep();
        self.running.id()
    }

    /// Samples `/status` until `done`.
    pub(crate) fn watch(&self, done: &AtomicBool, seen: &Mutex<Watch>) {
        while !done.load(Ordering::Relaxed) {
            // A failed sample is a gap in a plot; a server that has ended fails the play.
            if let Ok(status) = self.get("/status") {
                seen.lock().expect("no thread panics while it holds this").note(&status);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}

/// A request whose response body is JSON.
pub(crate) fn ask(
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<Value, Box<dyn std::error::Error>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER))?;
    // HTTP/1.0, because the end of the connection is then the end of the body.
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").ok_or("no answer")?.1;
    Ok(serde_json::from_str(body)?)
}

/// Samples of a server's first disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// Slot number to reads completed and reads guaranteed in it.
    pub(crate) slots: BTreeMap<u64, (u64, u64)>,
    /// The last `/status`.
    pub(crate) last: Value,
    /// The largest buffer memory in use, in bytes.
    pub(crate) buffers: u64,
    /// The first slot that counts.
    pub(crate) from: u64,
}

impl Watch {
    /// Samples from a status on: its slots belong to the round before.
    pub(crate) fn from(status: &Value) -> Self {
        let last = slots(status).next_back();
        Self { from: last.map_or(0, |(slot, _)| slot + 1), ..Self::default() }
    }

    fn note(&mut self, status: &Value) {
        self.slots.extend(slots(status).filter(|(slot, _)| *slot >= self.from));
        self.buffers = self.buffers.max(status["buffers_used"].as_u64().unwrap_or_default());
        self.last = status.clone();
    }

    /// Slots with at least one read, in order: slot, reads, guaranteed reads.
    pub(crate) fn busy(&self) -> Vec<(u64, u64, u64)> {
        let slots = self.slots.iter().map(|(slot, (reads, min))| (*slot, *reads, *min));
        let first = slots.clone().find(|slot| slot.1 > 0).map_or(u64::MAX, |slot| slot.0);
        let last = slots.clone().rfind(|slot| slot.1 > 0).map_or(0, |slot| slot.0);
        slots.filter(|slot| slot.0 >= first && slot.0 <= last).collect()
    }
}

/// The slots of a status: number, reads completed and reads guaranteed.
fn slots(status: &Value) -> impl DoubleEndedIterator<Item = (u64, (u64, u64))> {
    status["disks"][0]["slots"].as_array().into_iter().flatten().map(|slot| {
        let number = |key: &str| slot[key].as_u64().unwrap_or_default();
        (number("slot"), (number("reads"), number("min_read")))
    })
}

/// Time for a server to start, which includes the calibration of a new store.
const START: Duration = Duration::from_secs(30);

/// Timeout of a response.
const ANSWER: Duration = Duration::from_secs(5);

/// The time between samples: one slot; the status keeps many more slots than that.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_slot_is_recorded_once_without_idle_ends() {
        let status = |slots: &[(u64, u64)]| {
            let slots: Vec<Value> = slots
                .iter()
                .map(|(slot, reads)| json!({"slot": slot, "reads": reads, "min_read": 9}))
                .collect();
            json!({ "disks": [{ "slots": slots }], "buffers_used": slots.len() })
        };
        let mut watch = Watch::default();
        watch.note(&status(&[(3, 0), (4, 7), (5, 0)]));
        watch.note(&status(&[(5, 0), (6, 8), (7, 0)]));
        assert_eq!(watch.busy(), [(4, 7, 9), (5, 0, 9), (6, 8, 9)]);
        assert_eq!(watch.buffers, 3);
        assert_eq!(Watch::default().busy(), []);
        // The round before is over at slot 6.
        let mut watch = Watch::from(&status(&[(5, 7), (6, 8)]));
        watch.note(&status(&[(5, 7), (6, 8), (7, 3)]));
        assert_eq!(watch.busy(), [(7, 3, 9)]);
    }
}
