//! One keep-alive connection of one viewer: one request at a time over a non-blocking socket.
//!
//! A server may close an idle connection at any moment. A request on a reused connection that was
//! closed before the first byte of a response is therefore repeated once on a new connection.

use super::hosts::Network;
use super::http::{NotHttp, ResponseHead, ResponseReader};
use super::source::FetchRequest;
use super::wire::Wire;
use super::{ClientError, RequestError};
use crate::tls::explain_io;
use mio::Token;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use units::Moment;

/// A keep-alive connection with at most one request in flight.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    token: Token,
    stream: Option<Wire>,
    /// The address that `stream` leads to, with the server's name if it uses TLS.
    peer: Option<(SocketAddr, Option<String>)>,
    /// The bytes of the request, and how many of them have been sent.
    out: Vec<u8>,
    sent: usize,
    /// The moment at which the whole request was sent.
    sent_at: Option<Moment>,
    reader: ResponseReader,
    /// Whether the stream has delivered a response before.
    used: bool,
}

impl HttpConnection {
    pub(crate) fn new(token: Token) -> Self {
        Self {
            token,
            stream: None,
            peer: None,
            out: Vec::new(),
            sent: 0,
            sent_at: None,
            reader: ResponseReader::default(),
            used: false,
        }
    }

    /// Sends `request`; the response is delivered by `ready`.
    pub(crate) fn ask(
        &mut self,
        network: &mut Network,
        request: &FetchRequest,
    ) -> Result<(), ClientError> {
        let address = network.hosts.resolve(&request.url.host_and_port())?;
        let name = request.url.is_secure().then(|| request.url.host().to_owned());
        let peer = Some((address, name));
        // A redirect may lead to another host in the middle of a title.
        if self.peer != peer {
            self.close();
        }
        self.out = render(request);
        (self.sent, self.sent_at) = (0, None);
        self.reader = ResponseReader::default();
        self.peer = peer;
        if self.stream.is_none() {
            self.connect(network, request)?;
        }
        // If it cannot be sent now, `ready` does it; if the peer has closed, `ready` finds out.
        let _ = self.send(network);
        Ok(())
    }

    /// The moment at which the last request was sent: it may have waited for a connection.
    pub(crate) fn sent_at(&self) -> Option<Moment> {
        self.sent_at
    }

    /// Handles a socket that is readable or writable. Gives the body's bytes to `sink` through
    /// `scratch`, and returns the head once the response is complete.
    pub(crate) fn ready(
        &mut self,
        network: &mut Network,
        request: &FetchRequest,
        scratch: &mut [u8],
        sink: &mut dyn FnMut(&ResponseHead, &[u8]),
    ) -> Result<Option<ResponseHead>, ClientError> {
        let lost = |reason: &str| request.url.failed(RequestError::Lost(reason.to_owned()));
        let failed = |error: &io::Error| match explain_io(error) {
            Some(reason) => request.url.failed(RequestError::Tls(reason)),
            None => lost(&error.to_string()),
        };
        if let Err(error) = self.send(network) {
            return self.again(network, request, &failed(&error));
        }
        loop {
            let Some(stream) = &mut self.stream else { return Ok(None) };
            let Some(into) = network.readable(scratch) else { return Ok(None) };
            match stream.read(into) {
                // The server closed an idle connection, so the request is sent again on a new one.
                Ok(0) if self.reader.is_untouched() => {
                    return self.again(network, request, &lost("closed before an answer"));
                }
                Ok(0) => {
                    self.close();
                    // A response without a length ends with the connection.
                    self.reader.closed().map_err(|error| lost(error.0))?;
                }
                Ok(len) => {
                    network.has_read(len);
                    let not_http =
                        |error: NotHttp| request.url.failed(RequestError::NotHttp(error.0));
                    self.reader.push(&scratch[..len], sink).map_err(not_http)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.again(network, request, &failed(&error)),
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

    /// Handles a lost connection: retries once on a reused connection, otherwise fails.
    fn again(
        &mut self,
        network: &mut Network,
        request: &FetchRequest,
        lost: &ClientError,
    ) -> Result<Option<ResponseHead>, ClientError> {
        // On a fresh connection the server refuses on purpose, and repeating would hide that.
        let retry = self.used && self.reader.is_untouched();
        self.close();
        if !retry {
            return Err(lost.clone());
        }
        (self.sent, self.sent_at) = (0, None);
        self.connect(network, request)?;
        Ok(None)
    }

    fn connect(
        &mut self,
        network: &mut Network,
        request: &FetchRequest,
    ) -> Result<(), ClientError> {
        let (address, _) = self.peer.clone().expect("an address comes with each request");
        let secure = network.hosts.secure(&request.url)?;
        let begun = network.now();
        let stream = Wire::open(address, secure, &network.registry, self.token, begun);
        self.stream = Some(stream.map_err(|error| ClientError::Connect {
            address: address.to_string(),
            reason: error.to_string(),
        })?);
        self.used = false;
        Ok(())
    }

    fn send(&mut self, network: &mut Network) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        network.opened.extend(stream.advance(&|| network.now())?);
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
        if self.sent == self.out.len() {
            self.sent_at.get_or_insert_with(|| network.now());
        }
        stream.flush()
    }
}

pub(crate) fn render(request: &FetchRequest) -> Vec<u8> {
    let range = request.range.as_ref().map_or(String::new(), |range| {
        format!("Range: bytes={}-{}\r\n", range.start, range.end.saturating_sub(1))
    });
    format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tenuto-play\r\nAccept: */*\r\n{range}\r\n",
        request.url.target(),
        request.url.authority()
    )
    .into_bytes()
}
