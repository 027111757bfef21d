//! Starting an HTTP thread, in two steps: its socket loop first, because the core needs the loop's
//! waker; then, when core and opener exist, its service.

use super::{ConnectionLimits, Worker};
use crate::messages::{CoreHandle, WorkerHandle};
use crate::opener::Opener;
use crate::shared::Shared;
use crate::tls::{ClientSockets, TlsProtocol};
use crossbeam_channel::{Sender, bounded, unbounded};
use device::sockets::Sockets;
use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// An HTTP thread that has its socket loop and waits for [`PreparedWorker::begin`].
pub(crate) struct PreparedWorker {
    pub(crate) handle: WorkerHandle,
    pub(crate) thread: JoinHandle<()>,
    /// Description of the socket method, for people.
    pub(crate) method: String,
    begin: Sender<Service>,
}

/// What a prepared thread needs to serve.
struct Service {
    shared: Arc<Shared>,
    core: CoreHandle,
    opener: Opener,
    limits: ConnectionLimits,
}

impl PreparedWorker {
    /// Starts the thread and waits until its socket loop exists.
    pub(crate) fn new(number: usize, listener: TcpListener) -> io::Result<Self> {
        let (messages, inbox) = unbounded();
        let (begin, started) = bounded::<Service>(1);
        let (ready, prepared) = bounded(1);
        let thread = thread::Builder::new().name(format!("http-{number}")).spawn(move || {
            let sockets = match Sockets::new(Some(listener)) {
                Ok(sockets) => sockets,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _ = ready.send(Ok((sockets.waker(), sockets.method().to_string())));
            // Without a service the server has failed to start, and has dropped this thread's
            // handle.
            let Ok(Service { shared, core, opener, limits }) = started.recv() else { return };
            let sockets = ClientSockets::new(sockets, shared.tls.as_ref(), TlsProtocol::Http);
            let worker = Worker {
                number,
                sockets,
                messages: inbox,
                shared,
                core,
                opener,
                limits,
                connections: HashMap::new(),
                closing: HashMap::new(),
                next_timeout_check: Instant::now(),
            };
            worker.run();
        })?;
        let ended = |_| io::Error::other("the thread ended before it was ready");
        let (waker, method) = prepared.recv().map_err(ended)??;
        Ok(Self { handle: WorkerHandle { messages, waker }, thread, method, begin })
    }

    /// Lets the thread serve.
    pub(crate) fn begin(
        self,
        shared: Arc<Shared>,
        core: CoreHandle,
        opener: Opener,
        limits: ConnectionLimits,
    ) -> JoinHandle<()> {
        let _ = self.begin.send(Service { shared, core, opener, limits });
        self.thread
    }
}
