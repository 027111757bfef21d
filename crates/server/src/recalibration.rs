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
//! Reads in turns leave the disk idle between two turns, so a disk shows no more than it can do,
//! and may show less: only a result that is not lower replaces a calibration that is not
//! provisional. A disk that became slower is found by its guard. A measurement takes about a
//! minute. One that was ended is tried again at the next quiet time.

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
    let builder = thread::Builder::new().name("recalibration".to_owned());
    let thread = builder.spawn(move || run(&stores, &shared, &stopped))?;
    Ok((Recalibration { _running: running }, thread))
}

fn run(stores: &[ServedStore], shared: &Shared, stopped: &Receiver<()>) {
    let mut quiet_since = Instant::now();
    let mut measured: Vec<Option<Instant>> = vec![None; stores.len()];
    while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        if shared.snapshot().engine.active > 0 {
            quiet_since = Instant::now();
        }
        if quiet_since.elapsed() < QUIET {
            continue;
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let stop = || stopped.try_recv() == Err(crossbeam_channel::TryRecvError::Disconnected);
        for (store, measured) in stores.iter().zip(&mut measured) {
            // A failure, or a result that was not used, is not repeated at once.
            let is_recent = measured.is_some_and(|at| at.elapsed() < AGAIN);
            if !is_recent && store.recalibrate_if_due(now.as_secs(), &stop) {
                *measured = Some(Instant::now());
            }
        }
        quiet_since = Instant::now();
    }
}

/// Time without a session after which a disk is measured.
const QUIET: Duration = Duration::from_secs(300);
/// Time after a measurement before the next one of the same disk.
const AGAIN: Duration = Duration::from_secs(24 * 3600);
/// Time between two looks at the sessions.
const LOOK: Duration = Duration::from_secs(1);
