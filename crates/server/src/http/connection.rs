//! One viewer's connection: what has come in, what is being answered, and since when.
//!
//! State and bookkeeping only; `worker.rs` moves the bytes.

use super::request::{Method, Request};
use super::transfer::Transfer;
use crate::layout::Shape;
use std::net::SocketAddr;
use std::time::Instant;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    /// What has come and is not yet understood.
    pub(super) input: Vec<u8>,
    /// Whether the socket loop has a buffer of ours.
    pub(super) receiving: bool,
    /// The peer sends no more.
    pub(super) ended: bool,
    pub(super) doing: Doing,
    /// When patience ends, for what waits for the peer.
    pub(super) deadline: Instant,
    /// Bytes that the kernel had taken when last looked at, and since when it is so many.
    pub(super) taken: (u64, Instant),
    /// Number of the next send.
    pub(super) next_number: u64,
}

/// What a connection is busy with.
#[derive(Debug)]
pub(super) enum Doing {
    /// Waiting for a request, or for the rest of one.
    Reading,
    /// Waiting for the opener or the core.
    Waiting(Exchange, Request, Asked),
    /// Sending a reply as a whole; its send's number.
    Replying(Exchange, u64),
    /// Sending a body.
    Sending(Exchange, Box<Transfer>),
    /// All is said; waiting for the peer to read it before the connection goes.
    Lingering,
}

/// Whose answer is waited for.
#[derive(Debug)]
pub(super) enum Asked {
    Opener,
    Core(String, Shape),
    /// The core, for who plays what.
    List,
}

/// A request being answered, for the log.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) started: Instant,
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) status: u16,
    pub(super) keep_alive: bool,
    /// Sent so far, the head's too.
    pub(super) bytes: u64,
}

impl Exchange {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            started: Instant::now(),
            method: request.method,
            target: request.target.clone(),
            status: 0,
            keep_alive: request.keep_alive,
            bytes: 0,
        }
    }

    /// For a head that was no request.
    pub(super) fn of_nothing() -> Self {
        Self {
            started: Instant::now(),
            method: Method::Get,
            target: String::new(),
            status: 0,
            keep_alive: false,
            bytes: 0,
        }
    }
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, deadline: Instant) -> Self {
        Self {
            peer,
            input: Vec::new(),
            receiving: false,
            ended: false,
            doing: Doing::Reading,
            deadline,
            taken: (0, Instant::now()),
            next_number: 0,
        }
    }

    /// Whether bytes wait for the peer to take them.
    pub(super) fn is_sending(&self) -> bool {
        match &self.doing {
            Doing::Replying(..) => true,
            Doing::Sending(_, transfer) => transfer.is_sending(),
            Doing::Reading | Doing::Waiting(..) | Doing::Lingering => false,
        }
    }
}
