//! The server side of the control socket: a thread that listens, and one for each client.

use super::client::is_trusted;
use super::served::ServedStore;
use super::socket::{BindError, ControlSocket};
use super::{Client, Line, Reply, Request, socket_path};
use crate::opening::{copy_of, not_served};
use crate::wire;
use rustix::net::RecvFlags;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use store::StoreAccess;
use units::{Hinted, Reason};
use uuid::Uuid;

/// A listening control socket. Dropping it cancels its clients' requests and removes the socket.
#[derive(Debug)]
pub(crate) struct ControlServer {
    socket: Arc<ControlSocket>,
    // Set when the server is dropped.
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens for requests to the store. The server holds the store exclusively, so that another
    /// server with its socket has a copy of the store.
    pub(crate) fn start(served: ServedStore) -> Result<Self, Reason> {
        let uuid = served.store().info().uuid;
        let failed = |error: io::Error| error.reason().about("cannot listen for control requests");
        let socket = match ControlSocket::bind(&socket_path(uuid)) {
            Ok(socket) => Arc::new(socket),
            Err(BindError::Io(error)) => return Err(failed(error)),
            Err(BindError::Served) => {
                let other = served_path(uuid).unwrap_or_else(|| "another store".to_owned());
                return Err(not_served(served.path(), copy_of(&other)));
            }
        };
        let closed = Arc::new(AtomicBool::new(false));
        let (flag, listening, served) =
            (Arc::clone(&closed), Arc::clone(&socket), Arc::new(served));
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listen(listening.listener(), &served, &flag))
            .map_err(failed)?;
        Ok(Self { socket, closed, thread: Some(thread) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        self.socket.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The path of the store that is served under this uuid, as far as its server tells.
fn served_path(uuid: Uuid) -> Option<String> {
    match Client::open(uuid).ok()??.call(&Request::ServedFile, |_| {}).ok()? {
        Reply::ServedFile(served) => Some(served.path),
        _ => None,
    }
}

fn listen(listener: &UnixListener, served: &Arc<ServedStore>, closed: &Arc<AtomicBool>) {
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if closed.load(Ordering::Relaxed) {
            break;
        }
        let Ok(stream) = stream else {
            // Out of descriptors, for example: the next attempt would fail at once, too.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        // The list holds the clients that are open, whose number is limited.
        clients.retain(|client| !client.is_finished());
        if let Some(failure) = refusal(&stream, clients.len()) {
            let _ = write_line(&stream, &Line::Failed(failure));
            continue;
        }
        let (served, closed) = (Arc::clone(served), Arc::clone(closed));
        let client = thread::Builder::new().name("control-client".to_owned()).spawn(move || {
            // A failed connection needs no report: the client sees it, too.
            let _ = serve_client(&stream, &served, &closed);
        });
        clients.extend(client);
    }
    for client in clients {
        let _ = client.join();
    }
}

/// Why a client is not served; `None` if it is.
fn refusal(stream: &UnixStream, clients: usize) -> Option<wire::Failure> {
    let failure = |code, message, hint| Some(wire::Failure::new(code, message, hint));
    if !is_trusted(stream) {
        let message = "only root and the server's user may give it commands";
        return failure("not-allowed", message, "run the command as one of them");
    }
    if clients >= MAX_CLIENTS {
        return failure("busy", "too many commands run on this store", "try again later");
    }
    None
}

/// Executes a client's requests, one after another, until it disconnects.
fn serve_client(stream: &UnixStream, served: &ServedStore, closed: &AtomicBool) -> io::Result<()> {
    // A silent client must not delay the end of the server.
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        match (&mut lines).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => {}
            // The client has disconnected, or its line is too long.
            Ok(_) => return Ok(()),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                if closed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error),
        }
        let result = match serde_json::from_slice(&line) {
            Ok(request) => execute_for(stream, served, closed, &request),
            Err(error) => Line::Failed(wire::Failure {
                code: "request".to_owned(),
                message: format!("this is not a request: {error}"),
                hint: Some("use the server's version of tenuto".to_owned()),
            }),
        };
        // Not before a read that timed out: a part of a line stays for the next read.
        line.clear();
        write_line(stream, &result)?;
    }
}

/// Executes one request, and sends its progress. Cancels it when the client has closed its side or
/// the server ends.
fn execute_for(
    stream: &UnixStream,
    served: &ServedStore,
    closed: &AtomicBool,
    request: &Request,
) -> Line {
    let cancel = AtomicBool::new(false);
    let mut sent_at = Instant::now();
    let mut send_progress = |progress: wire::Progress| {
        if closed.load(Ordering::Relaxed) {
            cancel.store(true, Ordering::Relaxed);
        }
        if sent_at.elapsed() > PROGRESS_INTERVAL || progress.event.is_some() {
            sent_at = Instant::now();
            // A client that has gone is noticed only by a write that fails.
            let sent = write_line(stream, &Line::Progress(progress));
            if sent.is_err() || asks_no_more(stream) {
                cancel.store(true, Ordering::Relaxed);
            }
        }
    };
    match served.execute(request, &cancel, &mut send_progress) {
        Ok(reply) => Line::Reply(Box::new(reply)),
        Err(failure) => Line::Failed(failure),
    }
}

/// Whether a client has closed its side: it may wait for the reply to a request that it ends so.
fn asks_no_more(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    rustix::net::recv(stream, &mut [0_u8], flags).is_ok_and(|(got, _)| got == 0)
}

fn write_line(mut stream: &UnixStream, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    stream.write_all(&text)
}

/// The most clients of one store at a time: a wall of cameras, each with its recording, and some
/// more.
const MAX_CLIENTS: usize = 256;
/// The longest request in bytes; it names files.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// Interval at which a thread that waits for a request checks whether the server ends.
const READ_TIMEOUT: Duration = Duration::from_millis(250);
/// A client that takes no bytes for this long counts as disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
