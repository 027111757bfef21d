//! Connections of viewers: one thread for each, with bounds on their number and their time.
//!
//! ```text
//!   accept ──too many──▶ 503, closed
//!      └──▶ thread:  head ──▶ answer ──▶ head ──▶ ...
//!                     │ 10 s without a byte, or for one head: closed
//! ```
//!
//! A redirect is short, and a thread waits for a node meanwhile, so that a thread for each viewer
//! costs less than a loop that keeps them apart.

use super::answer::ViewerAnswer;
use super::request::ViewerRequest;
use super::{ServiceState, routes};
use serde_json::json;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};
use units::locked;

/// Connections that are open, by client.
#[derive(Default)]
pub(super) struct OpenConnections {
    clients: Mutex<HashMap<IpAddr, usize>>,
}

/// One open connection, counted until it is dropped.
struct CountedConnection {
    state: Arc<ServiceState>,
    client: IpAddr,
}

impl OpenConnections {
    pub(super) fn count(&self) -> usize {
        locked(&self.clients).values().sum()
    }

    /// Counts a connection more; false where there are too many.
    fn open(&self, client: IpAddr) -> bool {
        let mut clients = locked(&self.clients);
        let all: usize = clients.values().sum();
        let of_client = clients.get(&client).copied().unwrap_or(0);
        // This machine itself may be a proxy before the director.
        let is_too_many = of_client >= MOST_OF_A_CLIENT && !client.is_loopback();
        if all >= MOST_CONNECTIONS || is_too_many {
            return false;
        }
        clients.insert(client, of_client + 1);
        true
    }

    fn close(&self, client: IpAddr) {
        let mut clients = locked(&self.clients);
        match clients.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                clients.remove(&client);
            }
        }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.state.open.close(self.client);
    }
}

/// Accepts connections until the director stops.
pub(super) fn accept(listener: &TcpListener, state: &Arc<ServiceState>) {
    loop {
        let accepted = listener.accept();
        if state.is_stopping() {
            return;
        }
        match accepted {
            Ok((stream, from)) => take(stream, client_of(from.ip()), state),
            // Too many open files, or a connection that has gone before it was accepted.
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// An IPv4 address that comes over IPv6 is one of IPv4.
fn client_of(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn take(mut stream: TcpStream, client: IpAddr, state: &Arc<ServiceState>) {
    let limits = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
        .and_then(|()| stream.set_nodelay(true));
    if limits.is_err() {
        return;
    }
    if !state.open.open(client) {
        let message = "this director has as many connections as it may";
        let answer = ViewerAnswer::problem(503, "too-many-connections", message, json!({}))
            .retry_after(Some(PAUSE));
        // A client that has gone needs no answer. This fits the empty buffer of the socket.
        let _ = stream.write_all(&answer.into_bytes(false, false));
        return;
    }
    let counted = CountedConnection { state: Arc::clone(state), client };
    let serve = move || {
        serve(&mut stream, &counted);
        let _ = stream.shutdown(Shutdown::Both);
    };
    // Without a thread the connection is dropped, and with it its count.
    let _ = Builder::new().name("viewer".to_owned()).stack_size(STACK).spawn(serve);
}

fn serve(stream: &mut TcpStream, connection: &CountedConnection) {
    let CountedConnection { state, client } = connection;
    let mut bytes: Vec<u8> = Vec::with_capacity(2048);
    loop {
        let mut permit = None;
        let (answer, len) = match read_head(stream, &mut bytes) {
            ReadHead::Gone => return,
            ReadHead::Bad(answer) => (answer.into_bytes(false, false), None),
            ReadHead::Complete => match ViewerRequest::parse(&bytes) {
                Ok(Some((request, len))) => {
                    let keeps = request.keeps_connection && !state.is_stopping();
                    let is_head = request.method == "HEAD";
                    permit = if routes::is_page(&request) { state.page() } else { None };
                    let answer = if routes::is_page(&request) && permit.is_none() {
                        let message = "too many pages are being sent";
                        ViewerAnswer::problem(503, "busy", message, json!({}))
                            .retry_after(Some(PAUSE))
                    } else {
                        routes::answer(state, &request, *client)
                    };
                    (answer.into_bytes(keeps, is_head), keeps.then_some(len))
                }
                Ok(None) => return,
                Err(bad) => {
                    let answer =
                        ViewerAnswer::problem(bad.status, bad.error, bad.message, json!({}));
                    (answer.into_bytes(false, false), None)
                }
            },
        };
        if !send(stream, &answer) {
            return;
        }
        drop(permit);
        match len {
            Some(len) => drop(bytes.drain(..len)),
            None => return,
        }
    }
}

/// Sends an answer; false for a client that has gone or takes too long.
fn send(stream: &mut TcpStream, answer: &[u8]) -> bool {
    let (start, mut rest) = (Instant::now(), answer);
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(0) => return false,
            Ok(len) => rest = &rest[len..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
        if start.elapsed() > TO_TAKE {
            return false;
        }
    }
    true
}

/// How the reading of a head has ended.
enum ReadHead {
    /// Whole, or at least so that it can be told what is wrong.
    Complete,
    Bad(ViewerAnswer),
    Gone,
}

fn read_head(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> ReadHead {
    let start = Instant::now();
    let mut memory = [0; 2048];
    let late = || {
        let message = "a request head has to come within 10 s";
        ReadHead::Bad(ViewerAnswer::problem(408, "timeout", message, json!({})))
    };
    loop {
        if !matches!(ViewerRequest::parse(bytes), Ok(None)) {
            return ReadHead::Complete;
        }
        if start.elapsed() > PATIENCE && !bytes.is_empty() {
            return late();
        }
        match stream.read(&mut memory) {
            Ok(0) => return ReadHead::Gone,
            Ok(len) => bytes.extend_from_slice(&memory[..len]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && !bytes.is_empty() => {
                return late();
            }
            Err(_) => return ReadHead::Gone,
        }
    }
}

/// Connections of all viewers.
const MOST_CONNECTIONS: usize = 4096;
/// Connections of one client.
const MOST_OF_A_CLIENT: usize = 512;
/// Time for a head, for the next request, and for taking any part of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for taking all of an answer.
const TO_TAKE: Duration = Duration::from_secs(30);
/// Time before the next connection is accepted after an error.
const PAUSE: Duration = Duration::from_millis(50);
/// Stack of a thread: a request head, an answer of a node, and TLS to it.
const STACK: usize = 512 * 1024;
