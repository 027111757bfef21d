//! The bytes of one connection, in the clear or over TLS, with a limit on the time of each step.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection to a client.
pub struct Connection(Transport);

enum Transport {
    Plain(TimedStream),
    Secure(Box<StreamOwned<ServerConnection, TimedStream>>),
}

/// A socket whose reads and writes fail when the time of a step is over. A client that sends a byte
/// now and then would otherwise hold its thread for ever, in a handshake as in a request.
struct TimedStream {
    stream: TcpStream,
    until: Instant,
}

/// What a client does who connects.
pub(crate) enum Opened {
    Connection(Connection),
    /// The client speaks HTTP where TLS is wanted.
    ClearText(Connection),
}

impl Connection {
    /// The connection of a socket. `patience` is the limit of a single read or write.
    pub(crate) fn open(
        stream: TcpStream,
        tls: Option<&Arc<ServerConfig>>,
        patience: Duration,
    ) -> io::Result<Opened> {
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        let Some(tls) = tls else {
            let timed = TimedStream { stream, until: Instant::now() + patience };
            return Ok(Opened::Connection(Self(Transport::Plain(timed))));
        };
        let mut first = [0];
        if stream.peek(&mut first)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let timed = TimedStream { stream, until: Instant::now() + patience };
        if first != [HANDSHAKE] {
            return Ok(Opened::ClearText(Self(Transport::Plain(timed))));
        }
        let connection = ServerConnection::new(Arc::clone(tls)).map_err(io::Error::other)?;
        let secure = Transport::Secure(Box::new(StreamOwned::new(connection, timed)));
        Ok(Opened::Connection(Self(secure)))
    }

    /// Whether TLS is spoken.
    pub fn is_secure(&self) -> bool {
        matches!(self.0, Transport::Secure(_))
    }

    /// Gives the next step, of as many reads or writes as it needs, this time.
    pub fn limit(&mut self, time: Duration) {
        self.socket().until = Instant::now() + time;
    }

    fn socket(&mut self) -> &mut TimedStream {
        match &mut self.0 {
            Transport::Plain(timed) => timed,
            Transport::Secure(secure) => &mut secure.sock,
        }
    }

    /// Tells a client over TLS that nothing was cut off.
    pub(crate) fn finish(&mut self) {
        if let Transport::Secure(secure) = &mut self.0 {
            secure.conn.send_close_notify();
            // A client that has gone needs no end.
            let _ = secure.flush();
        }
    }

    /// Ends the connection, without waiting for the client.
    pub(crate) fn close(mut self) {
        let _ = self.socket().stream.shutdown(Shutdown::Both);
    }
}

impl Read for Connection {
    fn read(&mut self, memory: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Transport::Plain(timed) => timed.read(memory),
            Transport::Secure(secure) => secure.read(memory),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Transport::Plain(timed) => timed.write(bytes),
            Transport::Secure(secure) => secure.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Transport::Plain(timed) => timed.flush(),
            Transport::Secure(secure) => secure.flush(),
        }
    }
}

impl TimedStream {
    fn in_time(&self) -> io::Result<()> {
        let is_over = Instant::now() > self.until;
        if is_over { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl Read for TimedStream {
    fn read(&mut self, memory: &mut [u8]) -> io::Result<usize> {
        self.in_time()?;
        self.stream.read(memory)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.in_time()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The type of a record with which TLS begins (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
