//! Starting the RTSP thread, in two steps as an HTTP thread: its socket loop first, because the
//! core needs the loop's waker; then, when core and opener exist, its service.

use super::{RtspLimits, RtspWorker};
use crate::messages::{CoreHandle, WorkerHandle};
use crate::opener::Opener;
use crate::shared::Shared;
use crate::tls::{ClientSockets, TlsProtocol};
use crossbeam_channel::{Sender, bounded, unbounded};
use device::sockets::Sockets;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// An RTSP thread that has its socket loop and waits for [`PreparedRtsp::begin`].
pub(crate) struct PreparedRtsp {
    pub(crate) handle: WorkerHandle,
    thread: JoinHandle<()>,
    begin: Sender<RtspService>,
}

/// What a prepared thread needs to serve.
struct RtspService {
    shared: Arc<Shared>,
    core: CoreHandle,
    opener: Opener,
    limits: RtspLimits,
}

impl PreparedRtsp {
    /// Starts the thread and waits until its socket loop exists. `number` is its number among the
    /// threads that the core sends to.
    pub(crate) fn new(number: usize, listener: TcpListener) -> io::Result<Self> {
        let (messages, inbox) = unbounded();
        let (begin, started) = bounded::<RtspService>(1);
        let (ready, prepared) = bounded(1);
        let thread = thread::Builder::new().name("rtsp".to_owned()).spawn(move || {
            let sockets = match Sockets::new(Some(listener)) {
                Ok(sockets) => sockets,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _ = ready.send(Ok(sockets.waker()));
            // Without a service the server has failed to start, and has dropped this thread's
            // handle.
            let Ok(RtspService { shared, core, opener, limits }) = started.recv() else { return };
            let sockets = ClientSockets::new(sockets, shared.tls.as_ref(), TlsProtocol::Rtsp);
            let worker = RtspWorker {
                number,
                sockets,
                messages: inbox,
                shared,
                core,
                opener,
                limits,
                connections: HashMap::new(),
                playing: BTreeSet::new(),
                next_check: Instant::now(),
            };
            worker.run();
        })?;
        let ended = |_| io::Error::other("the thread ended before it was ready");
        let waker = prepared.recv().map_err(ended)??;
        Ok(Self { handle: WorkerHandle { messages, waker }, thread, begin })
    }

    /// Lets the thread serve.
    pub(crate) fn begin(
        self,
        shared: Arc<Shared>,
        core: CoreHandle,
        opener: Opener,
        limits: RtspLimits,
    ) -> JoinHandle<()> {
        let _ = self.begin.send(RtspService { shared, core, opener, limits });
        self.thread
    }
}
