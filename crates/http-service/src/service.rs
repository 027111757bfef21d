//! HTTP over the connections of a service: each request is answered by a closure.

use crate::accepting::{
    AcceptSetup, ConnectionHandler, ConnectionService, OpenConnections, PATIENCE, PAUSE,
};
use crate::connection::Connection;
use crate::request::{self, HttpRequest, RequestContext};
use crate::response::HttpResponse;
use rustls::ServerConfig;
use serde_json::json;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// A service that runs. Dropped, it accepts nobody any more; requests that were taken are answered.
pub struct HttpService(ConnectionService);

type AnswerRequest = dyn Fn(&HttpRequest<'_>) -> HttpResponse + Send + Sync;

struct HttpHandler {
    largest_body: usize,
    fields_of_all: &'static str,
    answer: Box<AnswerRequest>,
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
        let ServiceSetup { thread, open, largest_body, fields_of_all, tls } = setup;
        let handler = HttpHandler { largest_body, fields_of_all, answer: Box::new(answer) };
        ConnectionService::start(listener, AcceptSetup { thread, open, tls }, handler).map(Self)
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

impl ConnectionHandler for HttpHandler {
    fn serve(&self, connection: &mut Connection, client: IpAddr, stopping: &AtomicBool) {
        let context = RequestContext {
            client,
            over_tls: connection.is_secure(),
            largest_body: self.largest_body,
        };
        let mut bytes: Vec<u8> = Vec::with_capacity(2048);
        while let Some(len) = self.next(connection, stopping, context, &mut bytes) {
            drop(bytes.drain(..len));
        }
    }

    fn refuse_clear_text(&self, connection: &mut Connection) {
        let message = "TLS is spoken here: use https://";
        let response = HttpResponse::problem(400, "tls-needed", message, json!({}));
        let _ = self.send(connection, response, false, false);
    }

    fn too_many(&self) -> Vec<u8> {
        let message = "there are as many connections as there may be";
        let response = HttpResponse::problem(503, "too-many-connections", message, json!({}))
            .retry_after(Some(PAUSE));
        response.into_bytes(false, false, self.fields_of_all).0
    }
}

impl HttpHandler {
    /// Reads a request and answers it. The length of the request; `None` where the connection ends.
    fn next(
        &self,
        connection: &mut Connection,
        stopping: &AtomicBool,
        context: RequestContext,
        bytes: &mut Vec<u8>,
    ) -> Option<usize> {
        let mut memory = [0; 4096];
        connection.limit(PATIENCE);
        loop {
            match request::parse(bytes, &mut request::no_fields(), context) {
                Ok(Some(parsed)) => {
                    let keeps = parsed.keeps_connection && !stopping.load(Ordering::Acquire);
                    let is_head = parsed.request.method == "HEAD";
                    let response = (self.answer)(&parsed.request);
                    let len = parsed.len;
                    self.send(connection, response, keeps, is_head).ok()?;
                    return keeps.then_some(len);
                }
                Ok(None) => {}
                Err(bad) => {
                    let _ = self.send(connection, *bad, false, false);
                    return None;
                }
            }
            match connection.read(&mut memory) {
                Ok(0) => return None,
                Ok(len) => bytes.extend_from_slice(&memory[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let is_late =
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                    if is_late && !bytes.is_empty() {
                        let message = "a request has to come within 10 s";
                        let late = HttpResponse::problem(408, "timeout", message, json!({}));
                        let _ = self.send(connection, late, false, false);
                    }
                    return None;
                }
            }
        }
    }

    /// Sends a response to a client that takes all of it in time.
    fn send(
        &self,
        connection: &mut Connection,
        response: HttpResponse,
        keeps: bool,
        is_head: bool,
    ) -> io::Result<()> {
        let (bytes, held) = response.into_bytes(keeps, is_head, self.fields_of_all);
        connection.limit(TO_TAKE);
        let sent = connection.write_all(&bytes).and_then(|()| connection.flush());
        drop(held);
        sent
    }
}

#[cfg(test)]
mod tests;

/// Time for taking all of a response.
const TO_TAKE: Duration = Duration::from_secs(30);
