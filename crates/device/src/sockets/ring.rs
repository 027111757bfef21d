//! The loop on io_uring.
//!
//! Each connection has at most one receive and one gathered send in the kernel. The memory that the
//! kernel points at (receive buffer, slices, message header) belongs to the connection's slot, and
//! a slot is emptied only when nothing of it is in the kernel: `close` shuts the socket down, which
//! ends both operations, and the last completion frees the slot.
//!
//! ```text
//!   user_data:  63..56 operation (ACCEPT, WAKE, RECEIVE, SEND, CANCEL)   31..0 slot
//! ```
#![expect(unsafe_code, reason = "io_uring takes pointers; the slots keep what they point at")]

use super::poll::is_peers_fault;
use super::slot::{RingConnection, RingSlot};
use super::{ACCEPT_PAUSE, ConnectionId, Driver, SendSlice, SocketEvent, Waker, slot_index};
use io_uring::{IoUring, opcode, squeue, types};
use std::io;
use std::mem::ManuallyDrop;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

pub(super) struct Ring {
    ring: IoUring,
    waker: Waker,
    // The kernel writes the eventfd's counter here.
    wake_count: Box<u64>,
    listener: Option<TcpListener>,
    accepting: bool,
    accept_again: Option<Instant>,
    // The kernel may point into the slots: they are leaked, not freed, if it still does at the end.
    slots: ManuallyDrop<Vec<RingSlot>>,
    free: Vec<usize>,
    in_kernel: usize,
    closed: Vec<ConnectionId>,
    // The completions of one turn, kept for reuse of the memory.
    done: Vec<(u64, i32)>,
}

impl Ring {
    pub(super) fn new(listener: Option<TcpListener>) -> io::Result<Self> {
        let ring = build_ring()?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring before Linux 5.11"));
        }
        if let Some(listener) = &listener {
            // The kernel waits for connections; a non-blocking listener would return EAGAIN.
            listener.set_nonblocking(false)?;
        }
        let mut this = Self {
            ring,
            waker: Waker::new(false)?,
            wake_count: Box::new(0),
            listener,
            accepting: false,
            accept_again: None,
            slots: ManuallyDrop::new(Vec::new()),
            free: Vec::new(),
            in_kernel: 0,
            closed: Vec::new(),
            done: Vec::new(),
        };
        this.arm_wake();
        this.arm_accept();
        Ok(this)
    }

    fn insert(&mut self, stream: TcpStream) -> ConnectionId {
        // Without Nagle's delay a short response leaves at once; a refusal costs latency only.
        let _ = stream.set_nodelay(true);
        // Slots are used again, so their number is the most connections at one time.
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(RingSlot::default());
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        slot.connection = Some(RingConnection::new(stream));
        ConnectionId::new(index, slot.generation)
    }

    fn get(&mut self, id: ConnectionId) -> Option<&mut RingConnection> {
        let slot = self.slots.get_mut(id.index())?;
        // The slot may belong to a newer connection; the generation tells a late call from a
        // current one.
        if ConnectionId::new(id.index(), slot.generation) != id {
            return None;
        }
        slot.connection.as_mut().filter(|connection| !connection.closing)
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: every entry is built by `arm_wake`, `arm_accept`, `recv`, `arm_send` or
            // `stop_accepting`; each says why what it points at stays valid until its completion.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                self.in_kernel += 1;
                return;
            }
            // The queue is full: submit it. A failure here repeats in `wait`, which reports it.
            let _ = self.ring.submit();
        }
    }

    /// The eventfd and the counter live as long as `self`, and `drop` waits for the completion
    /// (or leaks: see there).
    fn arm_wake(&mut self) {
        let fd = types::Fd(self.waker.descriptor().as_raw_fd());
        let into = std::ptr::from_mut::<u64>(self.wake_count.as_mut()).cast::<u8>();
        self.push(&opcode::Read::new(fd, into, 8).build().user_data(WAKE));
    }

    /// Points at no memory: the peer's address is asked for afterwards.
    fn arm_accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        if self.accepting {
            return;
        }
        let fd = types::Fd(listener.as_raw_fd());
        let entry = opcode::Accept::new(fd, std::ptr::null_mut(), std::ptr::null_mut())
            .flags(libc::SOCK_CLOEXEC);
        self.push(&entry.build().user_data(ACCEPT));
        self.accepting = true;
    }

    /// Points at the boxed message and, through it, at slices in the outbox. Neither is touched
    /// until `sent` sees the completion: `sending` is set meanwhile, the outbox only grows at its
    /// end (slices are shared memory that does not move), and the slot stays.
    fn arm_send(&mut self, index: usize) {
        let Some(connection) = &mut self.slots[index].connection else { return };
        // One send at a time: a second one could overtake the rest of a short first one.
        if connection.sending || connection.failed || connection.outbox.is_empty() {
            return;
        }
        connection.message.fill(&connection.outbox);
        connection.sending = true;
        let fd = types::Fd(connection.stream.as_raw_fd());
        let entry = opcode::SendMsg::new(fd, &raw const connection.message.header)
            .flags(libc::MSG_NOSIGNAL.cast_unsigned())
            .build();
        self.push(&entry.user_data(SEND | index as u64));
    }

    fn accepted(&mut self, result: i32, events: &mut Vec<SocketEvent>) {
        self.accepting = false;
        if result >= 0 {
            // SAFETY: the kernel has just made this descriptor for us; nobody else knows it.
            let stream = unsafe { TcpStream::from_raw_fd(result) };
            // A socket without a peer has already been closed by it.
            if let Ok(peer) = stream.peer_addr() {
                let connection = self.insert(stream);
                events.push(SocketEvent::Accepted { connection, peer });
            }
        } else {
            let error = io::Error::from_raw_os_error(-result);
            if self.listener.is_some() && !is_peers_fault(&error) {
                events.push(SocketEvent::AcceptFailed { error });
                // Armed again by `wait`: the same accept would fail at once and keep the core busy.
                self.accept_again = Some(Instant::now() + ACCEPT_PAUSE);
                return;
            }
        }
        self.arm_accept();
    }

    fn received(&mut self, index: usize, result: i32, events: &mut Vec<SocketEvent>) {
        let slot = &mut self.slots[index];
        let id = ConnectionId::new(index, slot.generation);
        let Some(connection) = &mut slot.connection else { return };
        let mut buffer = connection.receiving.take().expect("a receive was in the kernel");
        let outcome = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        if let Ok(count) = outcome {
            // SAFETY: the kernel has filled `count` bytes behind the length, within the capacity
            // that it was told.
            unsafe { buffer.set_len(buffer.len() + count) };
        }
        if !connection.closing {
            events.push(SocketEvent::Received { connection: id, buffer, outcome });
        }
        self.free_if_quiet(index);
    }

    fn sent(&mut self, index: usize, result: i32, events: &mut Vec<SocketEvent>) {
        let slot = &mut self.slots[index];
        let id = ConnectionId::new(index, slot.generation);
        let Some(connection) = &mut slot.connection else { return };
        connection.sending = false;
        if let Ok(count) = usize::try_from(result) {
            connection.outbox.advance(count);
            // Also while closing, so that marks are used up; only the reports are left out.
            while let Some(tag) = connection.outbox.finished() {
                if !connection.closing {
                    events.push(SocketEvent::Sent { connection: id, tag });
                }
            }
        } else if result != -libc::EINTR && result != -libc::EAGAIN && !connection.closing {
            connection.failed = true;
            // The kernel has answered and no other send is in it, so nothing points into the outbox
            // now.
            connection.outbox.clear();
            let error = io::Error::from_raw_os_error(-result);
            events.push(SocketEvent::SendFailed { connection: id, error });
        }
        if connection.closing {
            self.free_if_quiet(index);
        } else {
            self.arm_send(index);
        }
    }

    /// Frees the slot of a closing connection once the kernel points at nothing of it.
    fn free_if_quiet(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.connection.as_ref().is_some_and(RingConnection::is_over) {
            self.closed.push(ConnectionId::new(index, slot.generation));
            slot.connection = None;
            // From here on calls with the old id find nothing, and the slot can be given away.
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(index);
        }
    }

    fn reap(&mut self, events: &mut Vec<SocketEvent>) {
        // Handling a completion may start an operation, but that completes in a later turn: one
        // turn is bounded by the completions at its beginning.
        let mut done = std::mem::take(&mut self.done);
        let completions = self.ring.completion();
        done.extend(completions.map(|entry| (entry.user_data(), entry.result())));
        for (user_data, result) in done.drain(..) {
            self.in_kernel -= 1;
            let index = slot_index(user_data);
            match user_data & WHAT {
                ACCEPT => self.accepted(result, events),
                WAKE => {
                    self.waker.lower();
                    events.push(SocketEvent::Woken);
                    self.arm_wake();
                }
                RECEIVE => self.received(index, result, events),
                SEND => self.sent(index, result, events),
                _ => {}
            }
        }
        self.done = done;
        events.extend(self.closed.drain(..).map(|connection| SocketEvent::Closed { connection }));
    }

    /// Submits queued entries and waits for one completion, or until the time has passed.
    fn enter(&mut self, at_most: Duration) -> io::Result<()> {
        let time = types::Timespec::from(at_most);
        let args = types::SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // The time has passed, a signal arrived, or completions have to be taken first.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }
}

impl Driver for Ring {
    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn recv(&mut self, id: ConnectionId, mut buffer: Vec<u8>) {
        let Some(connection) = self.get(id) else { return };
        assert!(connection.receiving.is_none(), "one receive at a time");
        let room = buffer.spare_capacity_mut();
        let length = u32::try_from(room.len()).unwrap_or(u32::MAX);
        let into = room.as_mut_ptr().cast::<u8>();
        // The buffer's memory stays where it is while the slot owns it, which is until `received`
        // sees the completion.
        connection.receiving = Some(buffer);
        let fd = types::Fd(connection.stream.as_raw_fd());
        let entry = opcode::Recv::new(fd, into, length).build();
        self.push(&entry.user_data(RECEIVE | id.index() as u64));
    }

    fn send(&mut self, id: ConnectionId, slices: Vec<SendSlice>, tag: u64) {
        let Some(connection) = self.get(id).filter(|connection| !connection.failed) else { return };
        connection.outbox.push(slices, tag);
        self.arm_send(id.index());
    }

    fn taken(&self, id: ConnectionId) -> u64 {
        let slot = self.slots.get(id.index());
        let slot = slot.filter(|slot| ConnectionId::new(id.index(), slot.generation) == id);
        slot.and_then(|slot| slot.connection.as_ref()).map_or(0, |c| c.outbox.taken())
    }

    fn finish(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id) {
            // If the peer is gone already, the next receive reports it.
            let _ = connection.stream.shutdown(Shutdown::Write);
        }
    }

    fn close(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        connection.closing = true;
        // Ends the receive and the send in the kernel, and those still in the queue.
        let _ = connection.stream.shutdown(Shutdown::Both);
        self.free_if_quiet(id.index());
    }

    /// Takes the accept out of the kernel.
    fn stop_accepting(&mut self) {
        self.accept_again = None;
        if self.accepting {
            // Points at nothing; the accept ends with ECANCELED and finds no listener.
            self.push(&opcode::AsyncCancel::new(ACCEPT).build().user_data(CANCEL));
            let _ = self.ring.submit();
        }
        self.listener = None;
    }

    fn wait(&mut self, at_most: Duration, events: &mut Vec<SocketEvent>) -> io::Result<()> {
        let mut timeout = at_most;
        if let Some(moment) = self.accept_again {
            let now = Instant::now();
            if moment <= now {
                self.accept_again = None;
                self.arm_accept();
            } else {
                timeout = timeout.min(moment - now);
            }
        }
        // A slot that `close` freed at once has no completion of its own to end the wait.
        if !self.closed.is_empty() {
            timeout = Duration::ZERO;
        }
        self.enter(timeout)?;
        self.reap(events);
        Ok(())
    }
}

impl Drop for Ring {
    /// Waits until the kernel has released all memory before it is freed.
    fn drop(&mut self) {
        self.stop_accepting();
        self.waker.wake();
        for slot in self.slots.iter_mut() {
            if let Some(connection) = &mut slot.connection {
                connection.closing = true;
                let _ = connection.stream.shutdown(Shutdown::Both);
            }
        }
        let until = Instant::now() + LET_GO;
        // The wake-up read is renewed after each completion, so that it may remain.
        let mut rest = Vec::new();
        while self.in_kernel > 1 && Instant::now() < until {
            if self.enter(Duration::from_millis(10)).is_err() {
                break;
            }
            self.reap(&mut rest);
        }
        if self.in_kernel <= 1 {
            // SAFETY: dropped once, here; nothing of a slot is in the kernel any more.
            unsafe { ManuallyDrop::drop(&mut self.slots) };
        }
        // Eight bytes are leaked for each loop: simpler than proving that the read has ended.
        std::mem::forget(std::mem::take(&mut self.wake_count));
    }
}

/// The most efficient ring that this kernel supports: completions run when the owner asks for them
/// (6.1), or at least without interrupting it (5.19).
fn build_ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)
        .or_else(|_| IoUring::builder().setup_cqsize(COMPLETIONS).build(SUBMISSIONS))
}

const WHAT: u64 = 0xff << 56;
const ACCEPT: u64 = 1 << 56;
const WAKE: u64 = 2 << 56;
const RECEIVE: u64 = 3 << 56;
const SEND: u64 = 4 << 56;
const CANCEL: u64 = 5 << 56;

/// Number of operations submitted in one system call.
const SUBMISSIONS: u32 = 256;
/// Number of completions between two turns; the kernel keeps more than that (NODROP).
const COMPLETIONS: u32 = 4096;
/// The time limit at the end for the kernel to release buffers: after a shutdown sockets do so
/// immediately.
const LET_GO: Duration = Duration::from_secs(5);
