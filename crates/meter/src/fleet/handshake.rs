//! Bounds on peers that have not proven that they know the token: a time for the handshake as a
//! whole, and a number of them that leaves room for a controller.

use super::channel::WireError;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{Reason, locked};

/// The time for a whole handshake, however its bytes are spread: some round trips on any network.
pub(crate) const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// A connection whose reads and writes fail after a deadline for all of them together, until the
/// deadline is lifted. Clones are the same connection.
#[derive(Clone, Debug)]
pub(crate) struct HandshakeStream {
    stream: Arc<TcpStream>,
    deadline: Instant,
    limit: Duration,
    lifted: Arc<AtomicBool>,
}

impl HandshakeStream {
    /// A connection whose handshake begins now and may take `limit`.
    pub(crate) fn new(stream: TcpStream, limit: Duration) -> Self {
        let deadline = Instant::now() + limit;
        Self { stream: Arc::new(stream), deadline, limit, lifted: Arc::default() }
    }

    /// The handshake is over. From now on each read and write may take `each`; `None` for as long
    /// as it likes.
    ///
    /// # Errors
    /// The time of `each` is zero.
    pub(crate) fn lift(&self, each: Option<Duration>) -> io::Result<()> {
        self.lifted.store(true, Ordering::Relaxed);
        self.stream.set_read_timeout(each)?;
        self.stream.set_write_timeout(each)
    }

    /// Ends the connection: reads and writes that wait fail now.
    pub(crate) fn end(&self) {
        // A connection that the peer has closed cannot be ended once more.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// The time that is left; `None` without a deadline.
    fn left(&self) -> io::Result<Option<Duration>> {
        if self.lifted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.too_late()) } else { Ok(Some(left)) }
    }

    fn too_late(&self) -> io::Error {
        let limit = self.limit.as_secs_f64();
        let message = format!("the handshake was not complete within {limit} s");
        let hint = "is the other side `tenuto meter`?";
        io::Error::new(ErrorKind::TimedOut, Reason::new(message, hint))
    }

    fn named(&self, error: io::Error) -> io::Error {
        let timeout = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        if timeout && !self.lifted.load(Ordering::Relaxed) { self.too_late() } else { error }
    }
}

impl Read for HandshakeStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.stream.set_read_timeout(Some(left))?;
        }
        (&*self.stream).read(into).map_err(|error| self.named(error))
    }
}

impl Write for HandshakeStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.stream.set_write_timeout(Some(left))?;
        }
        (&*self.stream).write(bytes).map_err(|error| self.named(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The connections of an agent: those in their handshake, and the number of proven controllers.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<OpenConnections>);

#[derive(Debug, Default)]
struct OpenConnections {
    /// Oldest first.
    unproven: Vec<(u64, IpAddr, HandshakeStream)>,
    controllers: usize,
    next: u64,
}

/// A connection in [`Connections`], until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    connections: Arc<Connections>,
    number: u64,
    controls: bool,
}

/// Connections in their handshake at the same time.
const MAX_UNPROVEN: usize = 64;
/// Controllers at the same time. One is served; the others wait.
const MAX_CONTROLLERS: usize = 16;

impl Connections {
    /// Enters a new connection. Where there is no room for it, the oldest one of the address that
    /// has the most is ended: a crowd from one address ends its own first, and never a controller
    /// that has proven itself.
    pub(crate) fn enter(
        self: &Arc<Self>,
        from: IpAddr,
        stream: &HandshakeStream,
    ) -> ConnectionPlace {
        let mut open = locked(&self.0);
        if open.unproven.len() >= MAX_UNPROVEN {
            let of = |address: IpAddr| open.unproven.iter().filter(|it| it.1 == address).count();
            let most = open.unproven.iter().map(|it| of(it.1)).max();
            if let Some(at) = open.unproven.iter().position(|it| Some(of(it.1)) == most) {
                let (_, _, ended) = open.unproven.remove(at);
                // Its thread ends by the read that fails now.
                ended.end();
            }
        }
        let number = open.next;
        open.next += 1;
        open.unproven.push((number, from, stream.clone()));
        ConnectionPlace { connections: Arc::clone(self), number, controls: false }
    }
}

impl ConnectionPlace {
    /// The peer has proven that it knows the token.
    ///
    /// # Errors
    /// As many controllers as an agent accepts are connected.
    pub(crate) fn prove(&mut self) -> Result<(), WireError> {
        let mut open = locked(&self.connections.0);
        open.unproven.retain(|it| it.0 != self.number);
        if open.controllers >= MAX_CONTROLLERS {
            let message = format!("{MAX_CONTROLLERS} controllers are connected");
            return Err(WireError::Refused(Reason::new(message, "end one of them")));
        }
        open.controllers += 1;
        self.controls = true;
        Ok(())
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut open = locked(&self.connections.0);
        open.unproven.retain(|it| it.0 != self.number);
        open.controllers -= usize::from(self.controls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Token, connect};
    use std::net::TcpListener;
    use units::Hinted;

    fn pair(limit: Duration) -> (HandshakeStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (HandshakeStream::new(listener.accept().unwrap().0, limit), peer)
    }

    #[test]
    fn a_byte_from_time_to_time_does_not_extend_a_handshake() {
        let (mut stream, mut peer) = pair(Duration::from_millis(300));
        let sender = std::thread::spawn(move || {
            // Until the other end is closed.
            while peer.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let error = stream.read_exact(&mut vec![0; 1 << 20]).unwrap_err();
        let said = error.one_line();
        assert!(said.starts_with("the handshake was not complete within 0.3 s; is"), "{said}");
        drop(stream);
        sender.join().unwrap();
    }

    #[test]
    fn a_silent_peer_fails_the_handshake_and_not_what_follows_it() {
        let (mut stream, peer) = pair(Duration::from_millis(50));
        // Not by `read`, which a signal may interrupt.
        assert_eq!(stream.read_exact(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
        stream.lift(None).unwrap();
        (&peer).write_all(b"x").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 1);
    }

    #[test]
    fn a_controller_gives_up_at_a_port_that_accepts_and_says_nothing() {
        let (stream, _silent) = pair(Duration::from_millis(50));
        let token = Token::new(b"a secret of some length").unwrap();
        let (from, to) = (Box::new(stream.clone()), Box::new(stream));
        let failed = connect("a:7070", from, to, &token, Instant::now()).err().unwrap();
        let said = failed.to_string();
        assert!(said.starts_with("agent a:7070: ") && said.contains("not complete"), "{said}");
    }

    #[test]
    fn a_crowd_from_one_address_ends_its_own_connections_first() {
        let connections = Arc::default();
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let ended = |peer: &TcpStream| {
            peer.set_nonblocking(true).unwrap();
            (&*peer).read(&mut [0]).is_ok_and(|read| read == 0)
        };
        let enter = |from: u8| {
            let (stream, peer) = pair(HANDSHAKE_LIMIT);
            (Connections::enter(&connections, address(from), &stream), peer, stream)
        };
        let (mut controller, controllers_peer, _stream) = enter(1);
        let crowd: Vec<_> = (0..3 * MAX_UNPROVEN).map(|_| enter(2)).collect();
        let open = crowd.iter().filter(|(_, peer, _)| !ended(peer)).count();
        assert_eq!(open, MAX_UNPROVEN - 1, "one place is the controller's");
        assert!(!ended(&controllers_peer));
        controller.prove().unwrap();
        let _more: Vec<_> = (0..MAX_UNPROVEN).map(|_| enter(3)).collect();
        assert!(!ended(&controllers_peer), "a proven one is never ended");
    }

    #[test]
    fn the_number_of_controllers_is_limited() {
        let connections = Arc::default();
        let mut places: Vec<ConnectionPlace> = Vec::new();
        for number in 0..=MAX_CONTROLLERS {
            let (stream, _) = pair(HANDSHAKE_LIMIT);
            let from = IpAddr::from([127, 0, 0, 1]);
            let mut place = Connections::enter(&connections, from, &stream);
            assert_eq!(place.prove().is_ok(), number < MAX_CONTROLLERS, "{number}");
            places.push(place);
        }
        places.remove(0);
        let (stream, _) = pair(HANDSHAKE_LIMIT);
        Connections::enter(&connections, IpAddr::from([127, 0, 0, 1]), &stream).prove().unwrap();
    }
}
