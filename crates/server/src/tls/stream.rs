//! One connection: bytes that come in, slices that wait to be encrypted, and records that the
//! kernel has not taken.
//!
//! ```text
//!   unsealed: [slice][slice tag 1][slice][slice tag 2]   held as they are
//!                 │ seal, while at most one send is with the kernel
//!                 ▼
//!   sealed:   [records tag 1][records]                   each is a send to the socket loop
//! ```
//!
//! Sans-IO: methods take bytes and return what to send, to deliver, and to report.

use super::sealed_buffers::{PLAIN_BYTES, SealedBuffers};
use device::sockets::SendSlice;
use rustls::server::ServerConnection;
use rustls::{HandshakeKind, ServerConfig as TlsConfig};
use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection that speaks TLS, or does not.
#[derive(Debug)]
pub(super) struct TlsStream {
    pub(super) peer: SocketAddr,
    phase: Phase,
    /// Whether the handshake is complete and has been reported.
    opened: bool,
    /// Whether the socket loop holds a receive buffer of this connection.
    pub(super) receiving: bool,
    /// The buffer that is to be filled with plain bytes, where they are wanted.
    pub(super) wanted: Option<Vec<u8>>,
    plain: Vec<u8>,
    end: Option<StreamEnd>,
    unsealed: VecDeque<Unsealed>,
    // Bytes of the first slice that have been sealed.
    head: usize,
    sealed: VecDeque<Sealed>,
    // Of the sends that the kernel has taken: their bytes, and the plain ones.
    sealed_taken: u64,
    plain_taken: u64,
    finish: Finish,
}

#[derive(Debug)]
enum Phase {
    /// Nothing has come.
    New,
    Tls(Box<ServerConnection>),
    /// What came was a request in the clear; answers go in the clear.
    Clear,
    /// A failure has been reported; nothing is sent or received any more.
    Dead,
}

/// Why no more plain bytes come.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// The peer sends no more.
    Closed,
    /// The connection is of no more use.
    Failed(io::Error),
    /// The peer does not speak TLS.
    Clear,
}

#[derive(Debug)]
struct Unsealed {
    slice: SendSlice,
    /// The tag of a send that ends with this slice.
    tag: Option<u64>,
}

/// A send that is with the socket loop, and the tags that its end reports.
#[derive(Debug)]
struct Sealed {
    buffer: Option<Arc<[u8]>>,
    /// Bytes of the send, and the plain ones that it is of.
    length: u64,
    plain: u64,
    tags: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    No,
    /// After everything that is queued.
    Asked,
    /// The closing alert is queued.
    Alerted,
    Done,
}

impl TlsStream {
    pub(super) fn new(peer: SocketAddr) -> Self {
        Self {
            peer,
            phase: Phase::New,
            opened: false,
            receiving: false,
            wanted: None,
            plain: Vec::new(),
            end: None,
            unsealed: VecDeque::new(),
            head: 0,
            sealed: VecDeque::new(),
            sealed_taken: 0,
            plain_taken: 0,
            finish: Finish::No,
        }
    }

    /// Takes received bytes.
    pub(super) fn take_in(&mut self, config: &Arc<TlsConfig>, bytes: &[u8]) {
        if matches!(self.phase, Phase::New) {
            // A handshake begins with the byte 22, a request with a letter of its method.
            if bytes.first().is_some_and(u8::is_ascii_uppercase) {
                self.phase = Phase::Clear;
                // An answer that did not wait for a request is answer enough.
                self.end = self.unsealed.is_empty().then_some(StreamEnd::Clear);
                return;
            }
            match ServerConnection::new(Arc::clone(config)) {
                Ok(mut connection) => {
                    // What is sealed is bounded by `seal`.
                    connection.set_buffer_limit(None);
                    self.phase = Phase::Tls(Box::new(connection));
                }
                Err(error) => return self.fail(io::Error::other(error)),
            }
        }
        match &mut self.phase {
            Phase::New | Phase::Dead => {}
            Phase::Clear => self.plain.extend_from_slice(bytes),
            Phase::Tls(connection) => match decrypt(connection, bytes, &mut self.plain) {
                Ok(false) => {}
                Ok(true) => self.end = Some(StreamEnd::Closed),
                Err(error) => self.fail(error),
            },
        }
    }

    /// The peer has ended its direction of the socket.
    pub(super) fn closed(&mut self) {
        // Whoever only looks whether the port is open has not failed.
        let is_over = match self.phase {
            Phase::New => self.unsealed.is_empty(),
            Phase::Tls(_) => self.opened,
            Phase::Clear | Phase::Dead => true,
        };
        match is_over {
            true => self.end = Some(StreamEnd::Closed),
            false => self.fail(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The connection is of no more use.
    pub(super) fn fail(&mut self, error: io::Error) {
        self.end = Some(StreamEnd::Failed(error));
    }

    /// The kind of a handshake that has just been completed, once.
    pub(super) fn just_opened(&mut self) -> Option<HandshakeKind> {
        let Phase::Tls(connection) = &self.phase else { return None };
        if self.opened || connection.is_handshaking() {
            return None;
        }
        self.opened = true;
        connection.handshake_kind()
    }

    /// The protocol that was agreed on in the handshake (ALPN).
    pub(super) fn protocol(&self) -> Option<&[u8]> {
        match &self.phase {
            Phase::Tls(connection) => connection.alpn_protocol(),
            Phase::New | Phase::Clear | Phase::Dead => None,
        }
    }

    /// Why the handshake has failed, where it has.
    pub(super) fn failed_handshake(&self) -> Option<&io::Error> {
        match &self.end {
            Some(StreamEnd::Failed(error)) if !self.opened => Some(error),
            _ => None,
        }
    }

    /// Whether bytes of the peer are needed: for the handshake, or because they are wanted.
    pub(super) fn needs_bytes(&self) -> bool {
        let is_handshaking = match &self.phase {
            Phase::New => true,
            Phase::Tls(connection) => connection.is_handshaking(),
            Phase::Clear => false,
            Phase::Dead => return false,
        };
        self.end.is_none() && !self.receiving && (is_handshaking || self.wanted.is_some())
    }

    /// The wanted buffer with plain bytes, and their number, if there are some.
    pub(super) fn delivery(&mut self) -> Option<(Vec<u8>, usize)> {
        if self.plain.is_empty() {
            return None;
        }
        let mut buffer = self.wanted.take()?;
        // An idle connection keeps no memory for them.
        let plain = std::mem::take(&mut self.plain);
        buffer.extend_from_slice(&plain);
        Some((buffer, plain.len()))
    }

    /// The end that is to be reported now: after all plain bytes, and after the alert that tells
    /// the peer of a failure. A failure is reported without being asked for.
    pub(super) fn reportable_end(&mut self) -> Option<StreamEnd> {
        let is_due = match self.end.as_ref()? {
            StreamEnd::Failed(_) => self.sealed.is_empty(),
            StreamEnd::Closed | StreamEnd::Clear => self.plain.is_empty() && self.wanted.is_some(),
        };
        if !is_due {
            return None;
        }
        let end = self.end.take();
        if matches!(end, Some(StreamEnd::Failed(_))) {
            self.phase = Phase::Dead;
        }
        end
    }

    /// Queues a send.
    pub(super) fn push(&mut self, slices: Vec<SendSlice>, tag: u64) {
        let slices = slices.into_iter().filter(|slice| !slice.is_empty());
        self.unsealed.extend(slices.map(|slice| Unsealed { slice, tag: None }));
        if let Some(last) = self.unsealed.back_mut() {
            last.tag = Some(tag);
        }
    }

    /// The sending direction is to end after what is queued.
    pub(super) fn finish(&mut self) {
        if self.finish == Finish::No {
            self.finish = Finish::Asked;
        }
    }

    /// Whether the sending direction of the socket is to end now; true once.
    pub(super) fn is_finished(&mut self) -> bool {
        let is_done = match self.finish {
            Finish::No | Finish::Done => false,
            Finish::Asked => !matches!(self.phase, Phase::Tls(_)) && self.unsealed.is_empty(),
            Finish::Alerted => true,
        };
        if is_done && self.sealed.is_empty() {
            self.finish = Finish::Done;
            return true;
        }
        false
    }

    /// The next send for the socket loop, if there is one; to be called until `None`.
    pub(super) fn seal(&mut self, buffers: &mut SealedBuffers) -> Option<Vec<SendSlice>> {
        if self.sealed.len() >= SENDS_AHEAD {
            return None;
        }
        if matches!(self.phase, Phase::Clear) {
            return self.pass_on();
        }
        let Phase::Tls(connection) = &mut self.phase else { return None };
        let is_open = !connection.is_handshaking() && self.end.as_ref().is_none_or(can_send);
        let (mut plain, mut tags) = (0, Vec::new());
        if is_open && !self.unsealed.is_empty() {
            plain = encrypt(connection, &self.unsealed, self.head);
            tags = advance(&mut self.unsealed, &mut self.head, plain);
        }
        if is_open && self.finish == Finish::Asked && self.unsealed.is_empty() {
            connection.send_close_notify();
            self.finish = Finish::Alerted;
        }
        if !connection.wants_write() {
            return None;
        }
        let (buffer, slice) = records(connection, plain, buffers);
        let (length, plain) = (slice.len() as u64, plain as u64);
        self.sealed.push_back(Sealed { buffer, length, plain, tags });
        Some(vec![slice])
    }

    /// A queued send as it is.
    fn pass_on(&mut self) -> Option<Vec<SendSlice>> {
        let mut slices = Vec::new();
        while let Some(next) = self.unsealed.pop_front() {
            slices.push(next.slice);
            if let Some(tag) = next.tag {
                let length = slices.iter().map(|slice| slice.len() as u64).sum();
                let tags = vec![tag];
                self.sealed.push_back(Sealed { buffer: None, length, plain: length, tags });
                return Some(slices);
            }
        }
        None
    }

    /// The kernel has taken the oldest send. Returns the tags of the sends that end with it.
    pub(super) fn sent(&mut self, buffers: &mut SealedBuffers) -> Vec<u64> {
        let Some(sealed) = self.sealed.pop_front() else { return Vec::new() };
        self.sealed_taken += sealed.length;
        self.plain_taken += sealed.plain;
        if let Some(buffer) = sealed.buffer {
            buffers.give_back(buffer);
        }
        sealed.tags
    }

    /// The plain bytes that the kernel has taken when it has taken so many bytes: never more than
    /// have been queued, and never fewer than before.
    pub(super) fn taken(&self, of_kernel: u64) -> u64 {
        let mut rest = of_kernel.saturating_sub(self.sealed_taken);
        let mut plain = self.plain_taken;
        for sealed in &self.sealed {
            plain += if rest < sealed.length { rest.min(sealed.plain) } else { sealed.plain };
            rest = rest.saturating_sub(sealed.length);
        }
        plain
    }
}

/// A peer that has ended its direction still takes what is sent.
fn can_send(end: &StreamEnd) -> bool {
    !matches!(end, StreamEnd::Failed(_))
}

/// Decrypts bytes into `plain`. Returns whether the peer has said that it sends no more.
fn decrypt(
    connection: &mut ServerConnection,
    mut bytes: &[u8],
    plain: &mut Vec<u8>,
) -> io::Result<bool> {
    while !bytes.is_empty() {
        if connection.read_tls(&mut bytes)? == 0 {
            // What follows the closing alert is of no interest.
            return Ok(true);
        }
        let state = connection
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let (from, more) = (plain.len(), state.plaintext_bytes_to_read());
        if more > 0 {
            plain.resize(from + more, 0);
            connection.reader().read_exact(&mut plain[from..])?;
        }
        if state.peer_has_closed() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Encrypts the beginning of the queue. Returns the number of plain bytes.
fn encrypt(
    connection: &mut ServerConnection,
    unsealed: &VecDeque<Unsealed>,
    mut head: usize,
) -> usize {
    let mut room = PLAIN_BYTES;
    let mut slices = Vec::new();
    for next in unsealed {
        let bytes = &next.slice[head..];
        let bytes = &bytes[..bytes.len().min(room)];
        head = 0;
        room -= bytes.len();
        slices.push(IoSlice::new(bytes));
        if room == 0 {
            break;
        }
    }
    // Writes into memory, without a limit.
    connection.writer().write_vectored(&slices).unwrap_or(0)
}

/// Removes bytes from the beginning of the queue. Returns the tags of the sends that end there.
fn advance(unsealed: &mut VecDeque<Unsealed>, head: &mut usize, mut bytes: usize) -> Vec<u64> {
    let mut tags = Vec::new();
    while let Some(first) = unsealed.front() {
        let rest = first.slice.len() - *head;
        if bytes < rest {
            *head += bytes;
            break;
        }
        bytes -= rest;
        *head = 0;
        tags.extend(unsealed.pop_front().and_then(|first| first.tag));
    }
    tags
}

/// Takes records out of a connection: into a buffer if they are of many bytes, otherwise into
/// memory of their size, so that many small responses to peers that do not read cost little.
fn records(
    connection: &mut ServerConnection,
    plain: usize,
    buffers: &mut SealedBuffers,
) -> (Option<Arc<[u8]>>, SendSlice) {
    if plain < LARGE {
        let mut small = Vec::new();
        while connection.wants_write() {
            // Writing into memory does not fail.
            let _ = connection.write_tls(&mut small);
        }
        return (None, small.into());
    }
    let mut buffer = buffers.take();
    let mut length = 0;
    if let Some(all) = Arc::get_mut(&mut buffer) {
        let size = all.len();
        let mut room = all;
        while connection.wants_write() && !room.is_empty() {
            let _ = connection.write_tls(&mut room);
        }
        length = size - room.len();
    }
    let slice = SendSlice::Bytes { bytes: Arc::clone(&buffer), range: 0..length };
    (Some(buffer), slice)
}

/// Sends with the kernel at a time: the second is encrypted while the kernel takes the first.
const SENDS_AHEAD: usize = 2;
/// Plain bytes from which a send uses a whole buffer.
const LARGE: usize = 16 * 1024;

#[cfg(test)]
mod tests;
