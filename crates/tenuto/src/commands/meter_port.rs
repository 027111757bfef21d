//! How a target is gone to: the port that each kind of it has.

use super::meter_target::Target;
use crate::failure::{Code, Failure};
use device::{DeviceError, FileDevice, Method, SimulatedDisk};
use meter::s3::bucket_port;
use meter::target::{
    self, Anew, Arrived, Layout, NullPort, Place, Port, QueuedPort, Request, Shape, SimulatedPort,
    Use, files_port,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// How a target is gone to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Operations under way at most.
    pub(super) at_once: u32,
    /// Bytes of an operation at most.
    pub(super) largest: ByteCount,
    pub(super) writes: bool,
    /// Files are opened and closed as they are used, rather than before and after.
    pub(super) opens: bool,
    /// What is written is a new file that takes the old one's place when it is whole.
    pub(super) replaces: bool,
}

/// Ends with a target whose run is over; how many operations it keeps, because it hangs. Who has
/// interrupted it waits less.
pub(super) fn leave(port: Box<dyn Port>, stop: &AtomicBool) -> u32 {
    target::leave(port, &|| if stop.load(Ordering::Relaxed) { HURRIED } else { PATIENT })
}

/// Of a run that left operations with a storage that hangs.
pub(super) fn came_back(stuck: u32) -> Result<(), Failure> {
    if stuck == 0 {
        return Ok(());
    }
    let operations = if stuck == 1 { "operation" } else { "operations" };
    Err(Failure::new(format!(
        "the storage hangs: {stuck} {operations} did not come back at the end"
    ))
    .hint("is its server there? Files that the meter made may be left on it: .tenuto-meter-*")
    .code(Code::Invalid))
}

/// Without anything coming back: longer than disks take to try again.
const PATIENT: Duration = Duration::from_secs(30);
const HURRIED: Duration = Duration::from_secs(2);

impl Target {
    /// The door to it, at moment zero; the caches are what [`Self::caches`] says.
    pub(super) fn port(&self, traffic: &Traffic) -> Result<Box<dyn Port>, DeviceError> {
        if let Self::Real { place, drop_caches: true, .. } = self {
            place.forget()?;
        }
        match self {
            Self::Simulated { model, shape } => {
                let disk = SimulatedDisk::new(model);
                Ok(Box::new(SimulatedPort::with_files(disk, shape.each)))
            }
            Self::Nothing { .. } => Ok(Box::new(NullPort::new(Instant::now()))),
            Self::Bucket { objects, .. } => {
                let Traffic { at_once, largest, .. } = *traffic;
                let objects = Arc::clone(objects);
                Ok(Box::new(bucket_port(objects, at_once, largest, Instant::now())))
            }
            Self::Real { path, place, method, .. } => match &**place {
                Place::One { device, made: false, .. } if traffic.opens => {
                    many(vec![path.clone()], device.is_direct(), false, traffic)
                }
                Place::One { device, .. } => queued(device, *method, traffic),
                Place::Many { files, layout, direct } => {
                    let paths = (0..files.files()).map(|number| files.path(number)).collect();
                    many(paths, *direct, *layout == Layout::FilePerFrame, traffic)
                }
            },
        }
    }

    /// Reads all of it once, so that whoever keeps things in memory has it there.
    pub(super) fn read_all(&self, shape: Shape, stop: &AtomicBool) -> Result<(), Failure> {
        let largest = ByteCount(shape.each.0.min(PIECE));
        let traffic = Traffic { at_once: 1, largest, writes: false, opens: false, replaces: false };
        let mut port = self.port(&traffic)?;
        let mut done: Vec<Arrived> = Vec::new();
        for file in 0..shape.files {
            for offset in (0..shape.each.0).step_by(usize::try_from(PIECE).expect("it is small")) {
                let len = PIECE.min(shape.each.0 - offset);
                port.begin(Request { file, ..Request::read(0, offset, len) })?;
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

fn queued(
    device: &Arc<FileDevice>,
    method: Method,
    traffic: &Traffic,
) -> Result<Box<dyn Port>, DeviceError> {
    let Traffic { at_once, largest, .. } = *traffic;
    let pool = QueuedPort::pool(at_once, largest);
    // For reads, too: the kernel otherwise finds the memory while the first frames are due.
    QueuedPort::fill(&pool, at_once, largest);
    let queue = device.queue_by(method, at_once, &pool)?;
    Ok(Box::new(QueuedPort::new(&**device, queue, pool, Instant::now())))
}

/// `anew`: what is written is a new file each time.
fn many(
    paths: Vec<PathBuf>,
    direct: bool,
    anew: bool,
    traffic: &Traffic,
) -> Result<Box<dyn Port>, DeviceError> {
    let Traffic { at_once, largest, writes, opens, replaces } = *traffic;
    let anew = match (replaces, anew) {
        (true, _) => Anew::Replaced,
        (false, true) => Anew::InPlace,
        (false, false) => Anew::No,
    };
    let how = Use { paths, direct, write: writes, keep: !opens, anew, at_once, largest };
    Ok(Box::new(files_port(how, Instant::now())?))
}
