//! Starting a thread that serves clients (HTTP, RTSP or channels), in two steps: its socket loop
//! first, because the core needs the loop's waker; then, when core and opener exist, its service.
//!
//! ```text
//!   PreparedThread::new    thread ─▶ Sockets ─▶ waits       handle: how the core reaches it
//!   PreparedThread::begin  parts, limits ─▶ ClientService ─▶ serve, until Quit
//! ```

use crate::admin::AdminApi;
use crate::messages::{CoreHandle, WorkerHandle, WorkerMessage};
use crate::opener::Opener;
use crate::shared::Shared;
use crate::tls::{ClientSockets, TlsProtocol};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use device::sockets::Sockets;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

/// A thread that has its socket loop and waits for [`PreparedThread::begin`].
pub(crate) struct PreparedThread<L> {
    pub(crate) handle: WorkerHandle,
    /// Description of the socket method, for people.
    pub(crate) method: String,
    thread: JoinHandle<()>,
    begin: Sender<(ServiceParts, L)>,
}

/// The socket that clients connect to, and what they speak there.
pub(crate) struct ClientListener {
    pub(crate) socket: TcpListener,
    pub(crate) protocol: TlsProtocol,
}

/// What each thread needs to serve, beside its sockets and limits.
#[derive(Clone)]
pub(crate) struct ServiceParts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: CoreHandle,
    pub(crate) opener: Opener,
    pub(crate) api: Arc<AdminApi>,
}

/// All that a thread serves its clients with.
pub(crate) struct ClientService<L> {
    /// The number of the thread among those that the core sends to.
    pub(crate) number: usize,
    pub(crate) sockets: ClientSockets,
    pub(crate) messages: Receiver<WorkerMessage>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: CoreHandle,
    pub(crate) opener: Opener,
    pub(crate) api: Arc<AdminApi>,
    pub(crate) limits: L,
}

/// Notes that its thread panics.
struct FailureWatch(Arc<Shared>);

impl Drop for FailureWatch {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
    }
}

impl<L: Send + 'static> PreparedThread<L> {
    /// Starts the thread `name` and waits until its socket loop exists. `serve` runs in it until
    /// the server stops. Without a listener nobody connects to it.
    pub(crate) fn new(
        name: String,
        number: usize,
        listener: Option<ClientListener>,
        serve: fn(ClientService<L>),
    ) -> io::Result<Self> {
        let (sender, messages) = unbounded();
        let (begin, begun) = bounded::<(ServiceParts, L)>(1);
        let (ready, prepared) = bounded(1);
        let thread = thread::Builder::new().name(name).spawn(move || {
            let protocol = listener.as_ref().map_or(TlsProtocol::Http, |it| it.protocol);
            let sockets = match Sockets::new(listener.map(|listener| listener.socket)) {
                Ok(sockets) => sockets,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _ = ready.send(Ok((sockets.waker(), sockets.method().to_string())));
            // Without a service the server has failed to start, and has dropped this thread's
            // handle.
            let Ok((parts, limits)) = begun.recv() else { return };
            let ServiceParts { shared, core, opener, api } = parts;
            let _watched = FailureWatch(Arc::clone(&shared));
            let sockets = ClientSockets::new(sockets, shared.tls.as_ref(), protocol);
            serve(ClientService { number, sockets, messages, shared, core, opener, api, limits });
        })?;
        let ended = |_| io::Error::other("the thread ended before it was ready");
        let (waker, method) = prepared.recv().map_err(ended)??;
        Ok(Self {
            handle: WorkerHandle { messages: sender, waker: Some(waker) },
            method,
            thread,
            begin,
        })
    }

    /// Lets the thread serve.
    pub(crate) fn begin(self, parts: ServiceParts, limits: L) -> JoinHandle<()> {
        let _ = self.begin.send((parts, limits));
        self.thread
    }
}
