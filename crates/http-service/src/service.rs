//! Accepts connections, and gives each a thread that answers its requests.

use crate::connection::{Connection, Opened};
use crate::request::{self, HttpRequest, RequestContext};
use crate::response::HttpResponse;
use rustls::ServerConfig;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use units::locked;

/// What a service needs beside its listener.
pub struct ServiceSetup {
    /// The name of its threads.
    pub thread: &'static str,
    /// The connections that are open, with their bounds.
    pub open: Arc<OpenConnections>,
    /// Bytes that the body of a request may have; 0: no request has a body.
    pub largest_body: usize,
    /// Header fields of all responses, each line with its end.
    pub fields_of_all: &'static str,
    /// TLS, where the service speaks it.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Connections that are open, by client, and how many may be.
#[derive(Debug)]
pub struct OpenConnections {
    most: usize,
    most_of_a_client: usize,
    counts: Mutex<ConnectionCounts>,
}

#[derive(Debug, Default)]
struct ConnectionCounts {
    all: usize,
    clients: HashMap<IpAddr, usize>,
}

/// A service that runs. Dropped, it accepts nobody any more; requests that were taken are answered.
pub struct HttpService {
    address: SocketAddr,
    shared: Arc<SharedService>,
    accepting: Option<JoinHandle<()>>,
}

type AnswerRequest = dyn Fn(&HttpRequest<'_>) -> HttpResponse + Send + Sync;

struct SharedService {
    setup: ServiceSetup,
    answer: Box<AnswerRequest>,
    stopping: AtomicBool,
}

impl SharedService {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

impl OpenConnections {
    /// No connection yet. `most_of_a_client` does not bind this machine itself, which may be a
    /// proxy before the service.
    pub fn new(most: usize, most_of_a_client: usize) -> Self {
        Self { most, most_of_a_client, counts: Mutex::default() }
    }

    /// Connections that are open.
    pub fn count(&self) -> usize {
        locked(&self.counts).all
    }

    /// Counts a connection more; false where there are too many.
    fn open(&self, client: IpAddr) -> bool {
        let mut counts = locked(&self.counts);
        let of_client = counts.clients.get(&client).copied().unwrap_or(0);
        let is_too_many = of_client >= self.most_of_a_client && !client.is_loopback();
        if counts.all >= self.most || is_too_many {
            return false;
        }
        counts.all += 1;
        counts.clients.insert(client, of_client + 1);
        true
    }

    fn close(&self, client: IpAddr) {
        let mut counts = locked(&self.counts);
        counts.all -= 1;
        match counts.clients.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.clients.remove(&client);
            }
        }
    }
}

/// One open connection, counted until it is dropped.
struct CountedConnection {
    shared: Arc<SharedService>,
    client: IpAddr,
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.shared.setup.open.close(self.client);
    }
}

impl HttpService {
    /// Starts a service that answers requests by a closure, on many threads at a time.
    ///
    /// # Errors
    /// A thread that cannot be started, a listener without an address.
    pub fn start(
        listener: TcpListener,
        setup: ServiceSetup,
        answer: impl Fn(&HttpRequest<'_>) -> HttpResponse + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (answer, stopping) = (Box::new(answer), AtomicBool::new(false));
        let shared = Arc::new(SharedService { setup, answer, stopping });
        let of_thread = Arc::clone(&shared);
        let accepting = Builder::new()
            .name("accept".to_owned())
            .spawn(move || accept(&listener, &of_thread))?;
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpService {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        let here: IpAddr = match self.address {
            SocketAddr::V4(_) if self.address.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) if self.address.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            address => address.ip(),
        };
        // The connection ends the wait of the thread that accepts.
        let at = SocketAddr::new(here, self.address.port());
        if TcpStream::connect_timeout(&at, TO_WAKE).is_ok() {
            let _ = self.accepting.take().map(JoinHandle::join);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<SharedService>) {
    loop {
        let accepted = listener.accept();
        if shared.is_stopping() {
            return;
        }
        match accepted {
            Ok((stream, from)) => take(stream, from.ip().to_canonical(), shared),
            // Too many open files, or a connection that has gone before it was accepted.
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn take(mut stream: TcpStream, client: IpAddr, shared: &Arc<SharedService>) {
    let setup = &shared.setup;
    if !setup.open.open(client) {
        // Over TLS the response would need a handshake first.
        if setup.tls.is_none() {
            let message = "there are as many connections as there may be";
            let response = HttpResponse::problem(503, "too-many-connections", message, json!({}))
                .retry_after(Some(PAUSE));
            // A client that has gone needs no response. This fits the empty buffer of the socket.
            let (bytes, _) = response.into_bytes(false, false, setup.fields_of_all);
            let _ = stream.write_all(&bytes);
        }
        return;
    }
    let counted = CountedConnection { shared: Arc::clone(shared), client };
    let work = move || serve(stream, &counted);
    // Without a thread the connection is dropped, and with it its count.
    let _ = Builder::new().name(setup.thread.to_owned()).stack_size(STACK).spawn(work);
}

fn serve(stream: TcpStream, counted: &CountedConnection) {
    let CountedConnection { shared, client } = counted;
    let tls = shared.setup.tls.as_ref();
    let mut connection = match Connection::open(stream, tls, PATIENCE) {
        Ok(Opened::Connection(connection)) => connection,
        Ok(Opened::ClearText(mut connection)) => {
            let message = "TLS is spoken here: use https://";
            let response = HttpResponse::problem(400, "tls-needed", message, json!({}));
            let _ = send(&mut connection, shared, response, false, false);
            return connection.close();
        }
        Err(_) => return,
    };
    let setup = &shared.setup;
    let context = RequestContext {
        client: *client,
        over_tls: connection.is_secure(),
        largest_body: setup.largest_body,
    };
    let mut bytes: Vec<u8> = Vec::with_capacity(2048);
    while let Some(len) = next(&mut connection, shared, context, &mut bytes) {
        drop(bytes.drain(..len));
    }
    connection.close();
}

/// Reads a request and answers it. The length of the request; `None` where the connection ends.
fn next(
    connection: &mut Connection,
    shared: &SharedService,
    context: RequestContext,
    bytes: &mut Vec<u8>,
) -> Option<usize> {
    let mut memory = [0; 4096];
    connection.limit(PATIENCE);
    loop {
        match request::parse(bytes, &mut request::no_fields(), context) {
            Ok(Some(parsed)) => {
                let keeps = parsed.keeps_connection && !shared.is_stopping();
                let is_head = parsed.request.method == "HEAD";
                let response = (shared.answer)(&parsed.request);
                let len = parsed.len;
                send(connection, shared, response, keeps, is_head).ok()?;
                return keeps.then_some(len);
            }
            Ok(None) => {}
            Err(bad) => {
                let _ = send(connection, shared, *bad, false, false);
                return None;
            }
        }
        match connection.read(&mut memory) {
            Ok(0) => return None,
            Ok(len) => bytes.extend_from_slice(&memory[..len]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                if is_late && !bytes.is_empty() {
                    let message = "a request has to come within 10 s";
                    let late = HttpResponse::problem(408, "timeout", message, json!({}));
                    let _ = send(connection, shared, late, false, false);
                }
                return None;
            }
        }
    }
}

/// Sends a response to a client that takes all of it in time.
fn send(
    connection: &mut Connection,
    shared: &SharedService,
    response: HttpResponse,
    keeps: bool,
    is_head: bool,
) -> io::Result<()> {
    let (bytes, held) = response.into_bytes(keeps, is_head, shared.setup.fields_of_all);
    connection.limit(TO_TAKE);
    let sent = connection.write_all(&bytes).and_then(|()| connection.flush());
    drop(held);
    sent
}

#[cfg(test)]
mod tests;

/// Time for a request, for the next one, and for taking any part of a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for taking all of a response.
const TO_TAKE: Duration = Duration::from_secs(30);
/// Time before the next connection is accepted after an error.
const PAUSE: Duration = Duration::from_millis(50);
/// Time for a connection to this process.
const TO_WAKE: Duration = Duration::from_secs(2);
/// Stack of a thread: a request head, TLS, and what a closure needs: a response of another machine.
const STACK: usize = 512 * 1024;
