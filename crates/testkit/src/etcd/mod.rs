//! An etcd in memory, for the part of its JSON gateway that is in use: ranges, transactions, leases
//! and watches, with the faults that a test wants.
//!
//! ```text
//!   TestEtcd ── records, leases, history ─┬─ TestEtcdMember  127.0.0.1:A   refuses, is slow
//!                                         └─ TestEtcdMember  127.0.0.1:B
//! ```
//!
//! Leases never end by themselves: a test ends them. Requests of users are answered when the state
//! in which their token was given is reached. Answers have the form of etcd 3.4: 64-bit
//! numbers as texts, zeros left out.

mod answers;
mod records;

pub use records::TestEtcdState;

use records::Records;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An etcd in memory.
#[derive(Clone, Default)]
pub struct TestEtcd {
    shared: Arc<SharedRecords>,
}

#[derive(Default)]
struct SharedRecords {
    records: Mutex<Records>,
    changed: Condvar,
}

/// One address of an etcd in memory.
#[derive(Clone)]
pub struct TestEtcdMember {
    address: String,
    faults: Arc<Mutex<MemberFaults>>,
}

#[derive(Default)]
struct MemberFaults {
    refuses: bool,
    delay: Duration,
    date: Option<String>,
    connections: Vec<TcpStream>,
}

impl TestEtcd {
    /// An etcd without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a member that answers until the test's process ends.
    ///
    /// # Panics
    /// Where no port can be had.
    pub fn listen(&self) -> TestEtcdMember {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let member = TestEtcdMember { address, faults: Arc::default() };
        let (etcd, of_thread) = (self.clone(), member.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut faults = lock(&of_thread.faults);
                if faults.refuses {
                    continue;
                }
                faults.connections.push(stream.try_clone().unwrap());
                let (etcd, member) = (etcd.clone(), of_thread.clone());
                std::thread::spawn(move || etcd.serve(stream, &member));
            }
        });
        member
    }

    /// Puts a record, as another client would.
    pub fn put(&self, key: &str, value: &str) {
        lock(&self.shared.records).put(key.as_bytes(), value.as_bytes(), 0);
        self.shared.changed.notify_all();
    }

    /// Deletes a record, as another client would.
    pub fn delete(&self, key: &str) {
        lock(&self.shared.records).delete(key.as_bytes());
        self.shared.changed.notify_all();
    }

    /// The records as text, by key.
    pub fn records(&self) -> Vec<(String, String)> {
        lock(&self.shared.records).as_text()
    }

    /// Whether a record is held by a lease; `None` where there is none of this key.
    pub fn is_leased(&self, key: &str) -> Option<bool> {
        lock(&self.shared.records).lease_of(key.as_bytes()).map(|lease| lease != 0)
    }

    /// Ends the lease that holds a record.
    ///
    /// # Panics
    /// Where no lease holds it.
    pub fn expire_lease_of(&self, key: &str) {
        let mut records = lock(&self.shared.records);
        let lease = records.lease_of(key.as_bytes()).expect("a record of this key");
        assert!(records.end_lease(lease), "no lease holds '{key}'");
        self.shared.changed.notify_all();
    }

    /// Forgets all changes before the present.
    pub fn compact(&self) {
        lock(&self.shared.records).compact();
        self.shared.changed.notify_all();
    }

    /// Ends the connections of all watches, and no others.
    pub fn end_watches(&self) {
        lock(&self.shared.records).generation += 1;
        self.shared.changed.notify_all();
    }

    /// Takes requests of this user only.
    pub fn want_user(&self, name: &str, password: &str) {
        lock(&self.shared.records).user = Some((name.to_owned(), password.to_owned()));
    }

    /// The present state, to be restored later.
    pub fn snapshot(&self) -> TestEtcdState {
        lock(&self.shared.records).snapshot()
    }

    /// Restores an older state; watches end. Leases that were granted since then are unknown.
    pub fn restore(&self, state: TestEtcdState) {
        lock(&self.shared.records).restore(state);
        self.shared.changed.notify_all();
    }

    /// Transactions of clients that changed records.
    pub fn writes(&self) -> u64 {
        lock(&self.shared.records).writes
    }

    fn serve(&self, stream: TcpStream, member: &TestEtcdMember) {
        let mut input = BufReader::new(stream);
        while let Some((path, body, token)) = request(&mut input) {
            let (refuses, delay, date) = {
                let faults = lock(&member.faults);
                (faults.refuses, faults.delay, faults.date.clone())
            };
            let date = date.map_or_else(String::new, |date| format!("Date: {date}\r\n"));
            std::thread::sleep(delay);
            let Ok(body) = serde_json::from_slice(&body) else { return };
            if refuses {
                return;
            }
            if path != "/v3/auth/authenticate" {
                self.wait_for_state_of(&token);
            }
            if path == "/v3/watch" {
                self.watch(input.get_mut(), &body);
                return;
            }
            let (status, answer) =
                answers::to(&path, &body, &token, &mut lock(&self.shared.records));
            self.shared.changed.notify_all();
            let answer = answer.to_string();
            let whole = format!(
                "HTTP/1.1 {status}\r\n{date}Content-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{answer}",
                answer.len()
            );
            if input.get_mut().write_all(whole.as_bytes()).is_err() {
                return;
            }
        }
    }

    /// Waits for the state in which a token was given, as etcd does.
    fn wait_for_state_of(&self, token: &str) {
        let state = token.rsplit_once('.').and_then(|(_, state)| state.parse().ok()).unwrap_or(0);
        let mut records = lock(&self.shared.records);
        while records.revision() < state {
            records = self.shared.changed.wait(records).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sends changes until the connection ends.
    fn watch(&self, stream: &mut TcpStream, body: &serde_json::Value) {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
        let mut records = lock(&self.shared.records);
        let generation = records.generation;
        let mut watch = answers::TestWatch::of(body, &records);
        let mut line = Some(watch.created(&records));
        loop {
            if let Some(line) = line.take() {
                drop(records);
                let chunk = format!("{:x}\r\n{line}\n\r\n", line.to_string().len() + 1);
                if stream.write_all(chunk.as_bytes()).is_err() {
                    return;
                }
                records = lock(&self.shared.records);
            }
            if records.generation != generation {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            line = watch.next(&records);
            if line.is_none() {
                let waited = self.shared.changed.wait_timeout(records, LOOK_AGAIN);
                records = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl TestEtcdMember {
    /// The address, `http://127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether the member ends every connection, the present ones included.
    pub fn refuse(&self, refuses: bool) {
        let mut faults = lock(&self.faults);
        faults.refuses = refuses;
        if refuses {
            for connection in faults.connections.drain(..) {
                // A connection that the client has ended cannot be ended again.
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
    }

    /// The `Date` of each answer; without one the member says none.
    pub fn tell_date(&self, date: &str) {
        lock(&self.faults).date = Some(date.to_owned());
    }

    /// The time before each answer.
    pub fn delay(&self, delay: Duration) {
        lock(&self.faults).delay = delay;
    }
}

/// The path, the body and the token of the next request; a request without a user has no token.
fn request(input: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if input.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
    }
    let field = |wanted: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map_or("", |(_, value)| value)
    };
    let len = field("content-length").parse().unwrap_or(0);
    let token = field("authorization").to_owned();
    let mut body = vec![0; len];
    input.read_exact(&mut body).ok()?;
    Some((head.split(' ').nth(1)?.to_owned(), body, token))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time after which a watch sees that its test has ended its connection.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
