//! The answering side of the control socket: a thread that listens, and one for each client.

use super::work::Worker;
use super::{Line, is_ours, socket_path};
use crate::ServerConfig;
use crate::core::CoreHandle;
use crate::shared::Shared;
use crate::wire;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a control socket has at hand.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) shelf: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: CoreHandle,
    pub(crate) config: Arc<ServerConfig>,
}

/// A listening control socket. Dropping it calls off what its clients wait for and removes it.
#[derive(Debug)]
pub(crate) struct ControlServer {
    path: PathBuf,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens for the store's commands. The store is ours, so a socket that is there already was
    /// left behind by a server that was killed.
    pub(crate) fn start(served: Served) -> io::Result<Self> {
        let store = &served.shared.titles.shelves[served.shelf].store;
        let path = socket_path(store.info().uuid);
        let directory = path.parent().unwrap_or(&path);
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if !is_ours(directory)? {
            let why = format!("{} belongs to somebody else", directory.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        let over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&over);
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listen(&listener, &served, &flag))?;
        Ok(Self { path, over, thread: Some(thread) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Ends the wait for the next client.
        let _ = UnixStream::connect(&self.path);
        let _ = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(listener: &UnixListener, served: &Served, over: &Arc<AtomicBool>) {
    let open = Arc::new(AtomicUsize::new(0));
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        clients.retain(|client| !client.is_finished());
        if open.load(Ordering::Relaxed) >= MOST_CLIENTS {
            let message = "too many commands at once for one store; try again".to_owned();
            let failure = wire::Failure { code: "busy".to_owned(), message };
            let _ = write_line(&stream, &Line::Failed(failure));
            continue;
        }
        let (served, over, count) = (served.clone(), Arc::clone(over), Arc::clone(&open));
        count.fetch_add(1, Ordering::Relaxed);
        let client = thread::Builder::new().name("control-client".to_owned()).spawn(move || {
            let _ = answer(&stream, &served, &over);
            count.fetch_sub(1, Ordering::Relaxed);
        });
        clients.extend(client);
    }
    for client in clients {
        let _ = client.join();
    }
}

/// Answers a client's requests, one after another, until it hangs up.
fn answer(stream: &UnixStream, served: &Served, over: &AtomicBool) -> io::Result<()> {
    // So that a client that says nothing does not hold up the end.
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(WRITE))?;
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        match (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => {}
            Ok(_) => return Ok(()),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error),
        }
        let request = serde_json::from_slice(&line);
        line.clear();
        let result = match request {
            Err(error) => {
                let message = format!("this is not a request: {error}; use the same version");
                Line::Failed(wire::Failure { code: "request".to_owned(), message })
            }
            Ok(request) => {
                let cancel = AtomicBool::new(false);
                let mut told = Instant::now();
                let mut tell = |progress: wire::Progress| {
                    if over.load(Ordering::Relaxed) {
                        cancel.store(true, Ordering::Relaxed);
                    }
                    if told.elapsed() > TELL_EVERY {
                        told = Instant::now();
                        if write_line(stream, &Line::Progress(progress)).is_err() {
                            // Nobody waits for it any more.
                            cancel.store(true, Ordering::Relaxed);
                        }
                    }
                };
                match (Worker { served, cancel: &cancel }).answer(request, &mut tell) {
                    Ok(reply) => Line::Reply(Box::new(reply)),
                    Err(failure) => Line::Failed(failure),
                }
            }
        };
        write_line(stream, &result)?;
    }
}

fn write_line(mut stream: &UnixStream, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    stream.write_all(&text)
}

/// Clients of one store at once.
const MOST_CLIENTS: usize = 16;
/// A request names files; more than this is none.
const LONGEST_LINE: u64 = 16 << 20;
const LOOK: Duration = Duration::from_millis(250);
/// A client that does not read for so long has hung up.
const WRITE: Duration = Duration::from_secs(10);
const TELL_EVERY: Duration = Duration::from_millis(100);
