//! Accepts connections, and gives each a thread of its own, in the clear or over TLS. What is
//! spoken over them is not known here.
//!
//! ```text
//!   accept ──too many──▶ ConnectionHandler::too_many, closed
//!      └──▶ thread:  TLS ──▶ ConnectionHandler::serve
//!                     └ clear text ──▶ ConnectionHandler::refuse_clear_text, closed
//! ```

use crate::connection::{Connection, Opened};
use rustls::ServerConfig;
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use units::locked;

/// What a service needs beside its listener, whatever is spoken.
pub struct AcceptSetup {
    /// The name of its threads.
    pub thread: &'static str,
    /// The connections that are open, with their bounds.
    pub open: Arc<OpenConnections>,
    /// TLS, where the service speaks it.
    pub tls: Option<Arc<ServerConfig>>,
}

/// What is spoken over the connections of a service.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Answers the client of a connection until it ends. `stopping` is set when the service is to
    /// end: then what was asked is answered, and nothing more.
    fn serve(&self, connection: &mut Connection, client: IpAddr, stopping: &AtomicBool);

    /// Answers a client that does not begin with TLS where it is spoken.
    fn refuse_clear_text(&self, connection: &mut Connection);

    /// What a client is told for which there is no room; empty for nothing.
    fn too_many(&self) -> Vec<u8>;
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

/// A service that runs. Dropped, it accepts nobody any more; what was asked is answered.
pub struct ConnectionService {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

struct AcceptService {
    setup: AcceptSetup,
    handler: Box<dyn ConnectionHandler>,
    stopping: Arc<AtomicBool>,
}

/// One open connection, counted until it is dropped.
struct CountedConnection {
    service: Arc<AcceptService>,
    client: IpAddr,
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

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.service.setup.open.close(self.client);
    }
}

impl ConnectionService {
    /// Starts a service, with a thread for each connection.
    ///
    /// # Errors
    /// A thread that cannot be started, a listener without an address.
    pub fn start(
        listener: TcpListener,
        setup: AcceptSetup,
        handler: impl ConnectionHandler,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let stopping = Arc::<AtomicBool>::default();
        let (handler, flag) = (Box::new(handler), Arc::clone(&stopping));
        let service = Arc::new(AcceptService { setup, handler, stopping: flag });
        let accepting =
            Builder::new().name("accept".to_owned()).spawn(move || accept(&listener, &service))?;
        Ok(Self { address, stopping, accepting: Some(accepting) })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ConnectionService {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
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

fn accept(listener: &TcpListener, service: &Arc<AcceptService>) {
    loop {
        let accepted = listener.accept();
        if service.stopping.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            Ok((stream, from)) => take(stream, from.ip().to_canonical(), service),
            // Too many open files, or a connection that has gone before it was accepted.
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn take(mut stream: TcpStream, client: IpAddr, service: &Arc<AcceptService>) {
    let setup = &service.setup;
    if !setup.open.open(client) {
        // Over TLS the response would need a handshake first.
        if setup.tls.is_none() {
            // A client that has gone needs no response. This fits the empty buffer of the socket.
            let _ = stream.write_all(&service.handler.too_many());
        }
        return;
    }
    let counted = CountedConnection { service: Arc::clone(service), client };
    let work = move || serve(stream, counted);
    // Without a thread the connection is dropped, and with it its count.
    let _ = Builder::new().name(setup.thread.to_owned()).stack_size(STACK).spawn(work);
}

fn serve(stream: TcpStream, counted: CountedConnection) {
    let CountedConnection { service, client } = &counted;
    let mut connection = match Connection::open(stream, service.setup.tls.as_ref(), PATIENCE) {
        Ok(Opened::Connection(mut connection)) => {
            service.handler.serve(&mut connection, *client, &service.stopping);
            connection
        }
        Ok(Opened::ClearText(mut connection)) => {
            service.handler.refuse_clear_text(&mut connection);
            connection
        }
        Err(_) => return,
    };
    connection.finish();
    // A client that sees the end may connect again at once, and is not counted twice.
    drop(counted);
    connection.close();
}

/// Time for a single read or write.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Time before the next connection is accepted after an error.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);
/// Time for a connection to this process.
const TO_WAKE: Duration = Duration::from_secs(2);
/// Stack of a thread: a request head, TLS, and what a handler needs: a response of another machine.
const STACK: usize = 512 * 1024;
