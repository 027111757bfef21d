//! Port selection: the read and write method for each kind of target.

pub(super) use crate::target::check_not_stuck;

use super::target::OpenTarget;
use crate::bucket::bucket_port;
use crate::error::MeterError;
use crate::target::{
    self, Anew, FileSet, IoCompletion, IoRequest, Layout, NullPort, Port, QueuedPort,
    SimulatedPort, TargetStorage, Use, Verifier, files_port,
};
use device::{DeviceError, FileDevice, Method, SimulatedDisk};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// The operations that a run will make, as far as the choice of a port depends on them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// The largest number of operations in flight.
    pub(super) at_once: u32,
    /// The largest operation in bytes.
    pub(super) largest: ByteCount,
    pub(super) writes: bool,
    /// Files are opened and closed as they are used, rather than before and after the run.
    pub(super) opens: bool,
    /// A write creates a new file, which replaces the old one when it is complete.
    pub(super) replaces: bool,
}

/// Closes a port after its run. Returns the number of operations that did not come back within
/// [`PATIENT`], or within [`HURRIED`] once the user interrupts.
pub(super) fn close_port(port: Box<dyn Port>, stop: &AtomicBool) -> u32 {
    target::close_port(port, &|| if stop.load(Ordering::Relaxed) { HURRIED } else { PATIENT })
}

/// Time without any completion: longer than disks take for their own retries.
const PATIENT: Duration = Duration::from_secs(30);
const HURRIED: Duration = Duration::from_secs(2);

impl OpenTarget {
    /// A port whose clock starts at zero. [`Self::caches`] describes the state of the caches.
    pub(super) fn port(&self, traffic: &Traffic) -> Result<Box<dyn Port>, DeviceError> {
        if let Self::Local { place, drop_caches: true, .. } = self {
            // Before the port's clock starts: emptying the cache is not the storage's time.
            place.forget()?;
        }
        match self {
            Self::Simulated { model, shape } => {
                let disk = SimulatedDisk::new(model);
                // One disk holds all files behind each other, as a file system on it would.
                Ok(Box::new(SimulatedPort::with_files(disk, shape.each)))
            }
            Self::Null { .. } => Ok(Box::new(NullPort::new(Instant::now()))),
            Self::Bucket { objects, .. } => {
                let Traffic { at_once, largest, .. } = *traffic;
                let objects = Arc::clone(objects);
                Ok(Box::new(bucket_port(objects, at_once, largest, Instant::now())))
            }
            Self::Agents(_) => unreachable!("agents have ports of their own"),
            Self::Local { path, place, method, verifier, .. } => match &**place {
                TargetStorage::One { device, made: false, .. } if traffic.opens => {
                    // A queue keeps its one file open; only threads open and close it for each use.
                    let (paths, how) = (vec![path.clone()], FileUse::default());
                    threads(paths, FileUse { direct: device.is_direct(), ..how }, traffic, verifier)
                }
                TargetStorage::One { device, .. } => {
                    let port = queued(device, *method, traffic)?;
                    Ok(Box::new(port.verifying(verifier.clone(), path)))
                }
                TargetStorage::Many { files, layout, direct } => {
                    let paths = (0..files.files()).map(|number| files.path(number)).collect();
                    let anew = *layout == Layout::FilePerFrame;
                    let how = FileUse { direct: *direct, anew, ragged: files.stay() };
                    threads(paths, how, traffic, verifier)
                }
            },
        }
    }

    /// Reads all of `shape` once, so that every cache on the path holds it.
    pub(super) fn read_all(&self, shape: FileSet, stop: &AtomicBool) -> Result<(), MeterError> {
        let largest = ByteCount(shape.each.0.min(PIECE));
        let traffic = Traffic { at_once: 1, largest, writes: false, opens: false, replaces: false };
        let mut port = self.port(&traffic)?;
        let mut done: Vec<IoCompletion> = Vec::new();
        for file in 0..shape.files {
            for offset in (0..shape.each.0).step_by(usize::try_from(PIECE).expect("it is small")) {
                let len = PIECE.min(shape.each.0 - offset);
                port.begin(IoRequest { file, ..IoRequest::read(0, offset, len) })?;
                // One read at a time: the order of arrival does not matter to caches.
                while done.is_empty() {
                    port.wait(Moment::MAX, &mut done)?;
                }
                done.drain(..).try_for_each(|arrived| arrived.result.map_err(|error| *error))?;
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

const PIECE: u64 = 1 << 20;

/// A port that reads one file or device through a kernel queue.
fn queued(
    device: &Arc<FileDevice>,
    method: Method,
    traffic: &Traffic,
) -> Result<QueuedPort, DeviceError> {
    let Traffic { at_once, largest, .. } = *traffic;
    let pool = QueuedPort::pool(at_once, largest);
    // For reads, too: otherwise the kernel allocates the memory while the first frames are due.
    QueuedPort::fill(&pool, at_once, largest);
    let queue = device.queue_by(method, at_once, &pool)?;
    Ok(QueuedPort::new(&**device, queue, pool, Instant::now()))
}

/// How the files of a port are used.
#[derive(Clone, Copy, Default)]
struct FileUse {
    direct: bool,
    /// A write creates its file each time.
    anew: bool,
    /// As in [`Use::ragged`].
    ragged: bool,
}

/// A port that reads and writes files by threads.
fn threads(
    paths: Vec<PathBuf>,
    FileUse { direct, anew, ragged }: FileUse,
    traffic: &Traffic,
    verifier: &Option<Arc<Verifier>>,
) -> Result<Box<dyn Port>, DeviceError> {
    let Traffic { at_once, largest, writes, opens, replaces } = *traffic;
    let anew = match (replaces, anew) {
        // A replaced file is always a new one, whatever the layout says.
        (true, _) => Anew::Replaced,
        (false, true) => Anew::InPlace,
        (false, false) => Anew::No,
    };
    let verifier = verifier.clone();
    let keep = !opens;
    let how = Use { paths, direct, write: writes, keep, anew, ragged, at_once, largest, verifier };
    Ok(Box::new(files_port(how, Instant::now())?))
}
