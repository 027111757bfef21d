//! Measures the disks again at quiet times: a provisional calibration when more is stored, another
//! one when it is old. A thread of its own.
//!
//! ```text
//!   no session for QUIET ─▶ is a calibration due? ─▶ measured in turns, each with a permit
//!                                                       │ a session comes: ended, nothing changes
//!                                                       ▼
//!                                                    stored; the engine takes it over
//! ```
//!
//! A measurement takes about a minute. One that was ended is tried again at the next quiet time.

use crate::control::ServedStore;
use crate::shared::Shared;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// Ends the thread when it is dropped.
#[derive(Debug)]
pub(crate) struct Recalibration {
    _running: Sender<()>,
}

/// Starts the thread.
pub(crate) fn start(
    stores: Vec<ServedStore>,
    shared: Arc<Shared>,
) -> io::Result<(Recalibration, JoinHandle<()>)> {
    let (running, stopped) = bounded(0);
    let thread = thread::Builder::new().name("recalibration".to_owned());
    let thread = thread.spawn(move || run(&stores, &shared, &stopped))?;
    Ok((Recalibration { _running: running }, thread))
}

fn run(stores: &[ServedStore], shared: &Shared, stopped: &Receiver<()>) {
    let mut quiet_since = Instant::now();
    while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        if shared.snapshot().engine.active > 0 {
            quiet_since = Instant::now();
        }
        if quiet_since.elapsed() < QUIET {
            continue;
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let stop = || stopped.try_recv() == Err(crossbeam_channel::TryRecvError::Disconnected);
        for store in stores {
            store.recalibrate_if_due(now.as_secs(), &stop);
        }
        // Also after a failure: it is not tried again and again.
        quiet_since = Instant::now();
    }
}

/// Time without a session after which a disk is measured.
const QUIET: Duration = Duration::from_secs(300);
/// Time between two looks at the sessions.
const LOOK: Duration = Duration::from_secs(1);
