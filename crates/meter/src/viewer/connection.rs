//! One keep-alive connection of one viewer: one request at a time over a non-blocking socket.
//!
//! A server may close an idle connection at any moment. A request that finds it closed before a
//! single byte of the answer came is therefore sent once more over a new one.

use super::ViewerError;
use super::http::{Head, ResponseReader};
use super::source::Request;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Connection {
    token: Token,
    stream: Option<TcpStream>,
    /// Whom `stream` leads to.
    peer: Option<SocketAddr>,
    /// The request, and how much of it has been sent.
    out: Vec<u8>,
    sent: usize,
    reader: ResponseReader,
    /// The stream has brought an answer before.
    used: bool,
}

impl Connection {
    pub(crate) fn new(token: Token) -> Self {
        Self {
            token,
            stream: None,
            peer: None,
            out: Vec::new(),
            sent: 0,
            reader: ResponseReader::default(),
            used: false,
        }
    }

    /// Sends `request`; the answer comes through `ready`.
    pub(crate) fn ask(
        &mut self,
        registry: &Registry,
        hosts: &mut Hosts,
        request: &Request,
    ) -> Result<(), ViewerError> {
        let address = hosts.resolve(&request.url.host_and_port())?;
        if self.peer != Some(address) {
            self.close();
        }
        self.out = render(request);
        self.sent = 0;
        self.reader = ResponseReader::default();
        self.peer = Some(address);
        if self.stream.is_none() {
            self.connect(registry)?;
        }
        // If it cannot be sent now, `ready` does it; if the peer has closed, `ready` finds out.
        let _ = self.send();
        Ok(())
    }

    /// The socket can be read or written. Gives the body's bytes to `sink` through `scratch`, and
    /// the head once the answer is complete.
    pub(crate) fn ready(
        &mut self,
        registry: &Registry,
        request: &Request,
        scratch: &mut [u8],
        sink: &mut dyn FnMut(&Head, &[u8]),
    ) -> Result<Option<Head>, ViewerError> {
        let lost = |reason: String| ViewerError::Lost { url: request.url.to_string(), reason };
        if let Err(error) = self.send() {
            return self.again(registry, &lost(error.to_string()));
        }
        loop {
            let Some(stream) = &mut self.stream else { return Ok(None) };
            match stream.read(scratch) {
                Ok(0) if self.reader.is_untouched() => {
                    return self.again(registry, &lost("closed before an answer".into()));
                }
                Ok(0) => {
                    self.close();
                    self.reader.closed().map_err(|error| lost(error.0.to_owned()))?;
                }
                Ok(len) => {
                    self.reader.push(&scratch[..len], sink).map_err(|error| {
                        ViewerError::NotHttp {
                            url: request.url.to_string(),
                            reason: error.0.to_owned(),
                        }
                    })?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.again(registry, &lost(error.to_string())),
            }
            if let Some(head) = self.reader.take_complete() {
                self.used = true;
                if !head.keep_alive {
                    self.close();
                }
                return Ok(Some(head));
            }
        }
    }

    /// Closes the socket; the next request opens a new one.
    pub(crate) fn close(&mut self) {
        self.stream = None;
        self.used = false;
    }

    /// After a loss: once more if the stream was an old one, otherwise the loss stands.
    fn again(
        &mut self,
        registry: &Registry,
        lost: &ViewerError,
    ) -> Result<Option<Head>, ViewerError> {
        let retry = self.used && self.reader.is_untouched();
        self.close();
        if !retry {
            return Err(lost.clone());
        }
        self.sent = 0;
        self.connect(registry)?;
        Ok(None)
    }

    fn connect(&mut self, registry: &Registry) -> Result<(), ViewerError> {
        let peer = self.peer.expect("an address comes with each request");
        let open = || -> io::Result<TcpStream> {
            let mut stream = TcpStream::connect(peer)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            registry.register(&mut stream, self.token, interest)?;
            Ok(stream)
        };
        let stream = open().map_err(|error| ViewerError::Connect {
            address: peer.to_string(),
            reason: error.to_string(),
        })?;
        // Requests are small and must not wait for each other's acknowledgement.
        let _ = stream.set_nodelay(true);
        self.stream = Some(stream);
        self.used = false;
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while self.sent < self.out.len() {
            match stream.write(&self.out[self.sent..]) {
                Ok(len) => self.sent += len,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::NotConnected
                            | io::ErrorKind::Interrupted
                    ) =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

pub(crate) fn render(request: &Request) -> Vec<u8> {
    let range = request.range.as_ref().map_or(String::new(), |range| {
        format!("Range: bytes={}-{}\r\n", range.start, range.end.saturating_sub(1))
    });
    format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tenuto-play\r\nAccept: */*\r\n{range}\r\n",
        request.url.target, request.url.authority
    )
    .into_bytes()
}

/// Where hosts are: each is looked up and knocked at once, so that a wrong address is told before
/// hundreds of viewers run into it.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    known: BTreeMap<String, SocketAddr>,
}

impl Hosts {
    /// An address at which `host_and_port` listens.
    pub(crate) fn resolve(&mut self, host_and_port: &str) -> Result<SocketAddr, ViewerError> {
        if let Some(address) = self.known.get(host_and_port) {
            return Ok(*address);
        }
        let addresses = host_and_port.to_socket_addrs().map_err(|error| ViewerError::Host {
            host: host_and_port.to_owned(),
            reason: error.to_string(),
        })?;
        let mut reason = "it has no address".to_owned();
        for address in addresses {
            match std::net::TcpStream::connect_timeout(&address, CONNECT) {
                Ok(_) => {
                    self.known.insert(host_and_port.to_owned(), address);
                    return Ok(address);
                }
                Err(error) => reason = error.to_string(),
            }
        }
        Err(ViewerError::Connect { address: host_and_port.to_owned(), reason })
    }
}

/// Whoever does not answer a knock within this time is not there.
const CONNECT: Duration = Duration::from_secs(5);
