//! The clients and the server of the study: blocks of bytes by HTTP/1.1, one after another.

use super::pair::{Namespace, NamespacePair, SERVER};
use super::{TcpCounters, system};
use crate::error::MeterError;
use crate::streams::Times;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::{Duration, Instant};
use units::ByteCount;

/// A server in the far namespace, stopped when it is dropped.
pub(super) struct FarServer {
    pub(super) address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The results of the clients.
#[derive(Default)]
pub(super) struct ExchangeResult {
    pub(super) bytes: ByteCount,
    pub(super) took: Duration,
    pub(super) response: Times,
}

impl FarServer {
    pub(super) fn start(pair: &NamespacePair) -> Result<Self, MeterError> {
        let (place, over) = (pair.far(), Arc::new(AtomicBool::new(false)));
        let (sender, receiver) = std::sync::mpsc::channel();
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || match listen(&place) {
            Ok((listener, address)) => {
                let _ = sender.send(Ok(address));
                serve(&listener, &until);
            }
            Err(error) => {
                let _ = sender.send(Err(error));
            }
        });
        let gone = |_| system("the server's thread ended")(io::ErrorKind::BrokenPipe.into());
        let address = receiver.recv().map_err(gone)??;
        Ok(Self { address, over, thread: Some(thread) })
    }
}

impl Drop for FarServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn listen(place: &Namespace) -> Result<(TcpListener, SocketAddr), MeterError> {
    place.enter()?;
    let listener = TcpListener::bind((SERVER, 0)).map_err(system("cannot listen"))?;
    listener.set_nonblocking(true).map_err(system("cannot listen"))?;
    let address = listener.local_addr().map_err(system("cannot listen"))?;
    Ok((listener, address))
}

fn serve(listener: &TcpListener, over: &AtomicBool) {
    std::thread::scope(|scope| {
        while !over.load(Ordering::Relaxed) {
            match listener.accept() {
                // A client that closed the connection needs no answer.
                Ok((stream, _)) => drop(scope.spawn(move || answer(stream).ok())),
                Err(_) => std::thread::sleep(NAP),
            }
        }
    });
}

/// Answers `GET /LENGTH` until the client closes the connection.
fn answer(stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut out = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let length = line.split(['/', ' ']).nth(2).and_then(|length| length.parse().ok());
        while !matches!(line.as_str(), "\r\n" | "\n" | "") {
            line.clear();
            input.read_line(&mut line)?;
        }
        body.clear();
        write!(body, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", length.unwrap_or(0))?;
        // Head and body in one write, so that a small answer is one packet.
        body.resize(body.len() + length.unwrap_or(0), b'.');
        out.write_all(&body)?;
    }
}

/// Runs the clients for `length`. The sender's socket counters are read before the connections
/// close.
pub(super) fn load(
    pair: &NamespacePair,
    server: SocketAddr,
    clients: u32,
    length: Duration,
) -> Result<(ExchangeResult, TcpCounters), MeterError> {
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let (sockets, parts) = std::thread::scope(|scope| {
        let client = |_| {
            let (place, over) = (pair.near(), &over);
            scope.spawn(move || ask(&place, server, over))
        };
        let clients: Vec<_> = (0..clients).map(client).collect();
        std::thread::sleep(length);
        let sockets = pair.sockets();
        over.store(true, Ordering::Relaxed);
        let parts: Vec<_> = clients.into_iter().map(ScopedJoinHandle::join).collect();
        (sockets, parts)
    });
    let mut all = ExchangeResult { took: begun.elapsed(), ..ExchangeResult::default() };
    for part in parts {
        let part = part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        all.bytes += part.bytes;
        all.response.add(&part.response);
    }
    Ok((all, TcpCounters::of_sockets(&sockets?)))
}

fn ask(
    place: &Namespace,
    server: SocketAddr,
    over: &AtomicBool,
) -> Result<ExchangeResult, MeterError> {
    place.enter()?;
    let failed = system("asking the server in the other namespace");
    let stream = TcpStream::connect_timeout(&server, PATIENCE).map_err(failed)?;
    talk(stream, over).map_err(failed)
}

fn talk(stream: TcpStream, over: &AtomicBool) -> io::Result<ExchangeResult> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut out = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut came = ExchangeResult::default();
    let mut body = vec![0; BLOCK];
    while !over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        write!(out, "GET /{BLOCK} HTTP/1.1\r\nHost: far\r\n\r\n")?;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        input.read_exact(&mut body)?;
        came.bytes += ByteCount(BLOCK as u64);
        came.response.record(asked.elapsed());
    }
    Ok(came)
}

/// The block that most of the paper's clients read.
const BLOCK: usize = 64 * 1024;

/// The interval at which new connections are accepted.
const NAP: Duration = Duration::from_millis(5);

/// The time limit of an exchange: none between two namespaces takes longer, whatever is lost.
const PATIENCE: Duration = Duration::from_secs(30);
