//! A non-blocking connection to a server, with or without TLS, and the time of opening it.
//!
//! ```text
//!   open ──▶ connected ──▶ (handshake) ──▶ bytes both ways
//!       connect        handshake
//! ```
//!
//! As edge-triggered polling requires, `read` continues until the socket has nothing more. Nothing
//! is sent before the handshake is complete, so that every request goes to an authenticated server.

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// The bytes of a connection, in the clear or over TLS.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: TcpStream,
    tls: Option<Box<Tls>>,
    begun: Moment,
    connected: Option<Moment>,
    open: bool,
}

#[derive(Debug)]
struct Tls {
    session: ClientConnection,
    /// The bytes from the socket, and the part of them that TLS has not processed.
    sealed: Vec<u8>,
    from: usize,
    to: usize,
}

/// The times of opening a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) connect: Duration,
    pub(crate) handshake: Option<Duration>,
}

impl Wire {
    pub(crate) fn open(
        peer: SocketAddr,
        secure: Option<(Arc<ClientConfig>, ServerName<'static>)>,
        registry: &Registry,
        token: Token,
        begun: Moment,
    ) -> io::Result<Self> {
        let tls = match secure {
            None => None,
            Some((config, name)) => {
                let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
                Some(Box::new(Tls { session, sealed: vec![0; SEALED], from: 0, to: 0 }))
            }
        };
        let mut socket = TcpStream::connect(peer)?;
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        // Requests are small and must not wait for each other's acknowledgement.
        let _ = socket.set_nodelay(true);
        Ok(Self { socket, tls, begun, connected: None, open: false })
    }

    /// Continues the handshake; returns its times, once, when the connection is open.
    pub(crate) fn advance(&mut self, now: &dyn Fn() -> Moment) -> io::Result<Option<Opened>> {
        if self.open {
            return Ok(None);
        }
        let connected = match self.connected {
            Some(at) => at,
            None => {
                // A refused connection also becomes writable.
                if let Some(error) = self.socket.take_error()? {
                    return Err(error);
                }
                // A socket that is writable may still be unconnected; only this call tells.
                match self.socket.peer_addr() {
                    Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(None),
                    Err(error) => return Err(error),
                    Ok(_) => *self.connected.insert(now()),
                }
            }
        };
        let connect = connected.since(self.begun);
        let Some(tls) = &mut self.tls else {
            self.open = true;
            return Ok(Some(Opened { connect, handshake: None }));
        };
        while tls.session.is_handshaking() {
            // The server waits for these bytes before it answers.
            tls.flush(&mut self.socket)?;
            match tls.take_in(&mut self.socket) {
                Ok(true) => {}
                Ok(false) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        tls.flush(&mut self.socket)?;
        self.open = true;
        Ok(Some(Opened { connect, handshake: Some(now().since(connected)) }))
    }
}

impl Tls {
    /// Sends encrypted bytes, as far as the socket accepts them.
    fn flush(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Passes received bytes to TLS; false at the end of the connection.
    fn take_in(&mut self, socket: &mut TcpStream) -> io::Result<bool> {
        if self.from == self.to {
            let len = loop {
                match socket.read(&mut self.sealed) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
            (self.from, self.to) = (0, len);
        }
        // TLS may take only a part: its buffer is bounded, and the rest is offered again.
        let taken = self.session.read_tls(&mut &self.sealed[self.from..self.to])?;
        self.from += taken;
        if let Err(error) = self.session.process_new_packets() {
            // A TLS alert tells the peer the reason, if it still reads.
            let _ = self.flush(socket);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        Ok(taken > 0)
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.open {
            return Err(ErrorKind::WouldBlock.into());
        }
        let Some(tls) = &mut self.tls else { return self.socket.read(into) };
        loop {
            match tls.session.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            tls.take_in(&mut self.socket)?;
            tls.flush(&mut self.socket)?;
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.open {
            return Err(ErrorKind::WouldBlock.into());
        }
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        let taken = tls.session.writer().write(bytes)?;
        tls.flush(&mut self.socket)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) if self.open => tls.flush(&mut self.socket),
            _ => Ok(()),
        }
    }
}

/// The TLS buffer of an open connection: two records.
const SEALED: usize = 32 * 1024;
