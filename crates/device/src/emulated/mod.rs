//! A modelled disk that any program and any file system can use: real time, real bytes.
//!
//! ```text
//!   ext4, XFS, tenuto, dd, ...                     anything else
//!        │ block device                                 │ file
//!   /dev/loopN ── direct ──▶ AT/disk ◀──────────────────┘      AT/control
//!                               │ FUSE                            │ text: statistics, fast on|off
//!                             DiskFiles ──▶ Drive (CommandQueue, disk::Head) ◀┘
//!                                         │ bytes at once, answers when the model says
//!                                       the backing file
//! ```
//!
//! A disk that is smaller than its model is stretched over all of it
//! ([`DiskModel::scaled_to`]). Writes take what the model says and are in the backing file, which
//! outlives this process but is not flushed against a power cut of the machine. There is no
//! second copy and no faults: [`Faulty`](crate::Faulty) has those. For reads of one program in this
//! process [`PacedDisk`](crate::PacedDisk) does the same without any rights.

mod backing;
mod command_queue;
mod compensation;
mod disk_files;
mod drive;
mod file_table;
mod fuse_thread;
mod histogram;
mod loop_device;
mod mounts;
mod preconditions;
mod round_trip;
mod stale;
mod statistics;
mod stop;

pub use stale::remove_stale_disks;
pub use statistics::DiskStatistics;
pub use stop::DiskStop;

use crate::DeviceError;
use backing::Backing;
use disk::DiskModel;
use drive::Drive;
use fuse_thread::{ControlHeader, FuseThread};
use fuser::{Config, MountOption, SessionACL};
use loop_device::LoopDevice;
use preconditions::{Prerequisites, canonical, folder_is_free, nothing_is_mounted};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// How to emulate a disk.
#[derive(Clone, Debug)]
pub struct EmulateOptions {
    /// The file with the disk's bytes; made, all of it allocated, if it is not there.
    pub backing: PathBuf,
    /// How large the disk is: needed for a new file, else by default as large as the file. Rounded
    /// down to 4,096 bytes.
    pub size: Option<ByteCount>,
    /// Where its files appear: an empty folder, or one to be made. By default beside the backing
    /// file, see [`EmulatedDisk::folder_of`].
    pub at: Option<PathBuf>,
    /// Whether it also appears as a block device.
    pub attach: bool,
    /// At the speed of the backing file, until [`EmulatedDisk::set_fast`] ends it.
    pub fast: bool,
    /// Among how many waiting requests a disk with an arm chooses the one it reaches first (command
    /// queuing); 1 serves in the order of arrival.
    pub depth: u32,
    /// How many times as fast as the model it runs, from 1: for long measurements by a clock that
    /// runs as fast. Statistics are in the model's time, in which this program's own lateness then
    /// counts as many times.
    pub speed: u32,
}

impl EmulateOptions {
    /// On `backing`, as a file only, in real time, with the command queue of a SATA disk.
    pub fn new(backing: impl Into<PathBuf>) -> Self {
        let backing = backing.into();
        Self { backing, size: None, at: None, attach: false, fast: false, depth: 32, speed: 1 }
    }
}

/// A disk being emulated. Dropping it takes it down whatever uses it; [`EmulatedDisk::stop`] asks
/// first.
#[derive(Debug)]
pub struct EmulatedDisk {
    model: DiskModel,
    at: PathBuf,
    made_folder: bool,
    drive: Arc<Drive>,
    fuse_thread: Option<FuseThread>,
    device: Option<LoopDevice>,
    realtime: Result<(), String>,
    notes: Vec<String>,
}

impl EmulatedDisk {
    /// Makes it, and returns when it can be used.
    ///
    /// # Errors
    /// What is missing or in the way, and what to do about it. Nothing is left behind but a new
    /// backing file.
    pub fn start(model: &DiskModel, options: &EmulateOptions) -> Result<Self, DeviceError> {
        Prerequisites::here().suffice(options.attach)?;
        let at = options.at.clone().unwrap_or_else(|| Self::folder_of(&options.backing));
        let at = canonical(&at)?;
        let left_over = stale::clear_at(&at);
        nothing_is_mounted(&at)?;
        let existed = folder_is_free(&at)? && left_over.is_none();
        let backing = Backing::open(&options.backing, options.size, model)?;
        let model = model.scaled_to(backing.size);
        let size = backing.size;
        if !existed {
            fs::create_dir_all(&at).map_err(|e| cannot_use(&at, "; it could not be made", e))?;
        }
        let EmulateOptions { depth, speed, fast, .. } = *options;
        let drive = Arc::new(Drive::new(backing, model.head(), depth, speed, fast));
        let mut disk = Self {
            model,
            at,
            made_folder: !existed,
            drive,
            fuse_thread: None,
            device: None,
            realtime: Ok(()),
            notes: left_over.into_iter().collect(),
        };
        // From here on, dropping it undoes what was done.
        let about = ControlHeader { model: disk.model.name().to_owned(), size, depth, speed };
        let cannot_mount = |e| cannot_use(&disk.at, mount_hint(&e), e);
        let fuse_thread = FuseThread::start(&disk.drive, &disk.at, about).map_err(cannot_mount)?;
        disk.realtime = fuse_thread.realtime.clone();
        disk.fuse_thread = Some(fuse_thread);
        if options.attach {
            disk.device = Some(LoopDevice::attach(&disk.file(), disk.model.rotational())?);
        }
        if disk.model.rotational() {
            disk.measure_round_trip(fast);
        }
        Ok(disk)
    }

    /// Where the files of a disk with this backing file appear by default.
    pub fn folder_of(backing: &Path) -> PathBuf {
        let mut name = backing.as_os_str().to_owned();
        name.push(".");
        name.push(FOLDER_ENDING);
        name.into()
    }

    /// The control file under this folder.
    pub fn control_in(folder: &Path) -> PathBuf {
        folder.join(disk_files::CONTROL)
    }

    /// The model as it is applied: scaled to the disk's size.
    pub fn model(&self) -> &DiskModel {
        &self.model
    }

    /// The disk as a file.
    pub fn file(&self) -> PathBuf {
        self.at.join(disk_files::DISK)
    }

    /// Statistics when read; takes `fast on`, `fast off` and `reset`.
    pub fn control(&self) -> PathBuf {
        Self::control_in(&self.at)
    }

    /// The disk as a block device, if it was to be attached.
    pub fn device(&self) -> Option<&Path> {
        self.device.as_ref().map(LoopDevice::path)
    }

    /// Whether the thread that keeps time is run at once when it is due, or why not: it is then
    /// late on a busy machine.
    pub fn realtime(&self) -> Result<(), &str> {
        self.realtime.as_ref().copied().map_err(String::as_str)
    }

    /// Time through the kernel to the disk and back, in the model's time. It is compensated for
    /// (see [`DiskStatistics::compensated`]); zero for a disk without an arm.
    pub fn round_trip(&self) -> Duration {
        self.drive.round_trip()
    }

    /// What a person should know about the start.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// At the speed of the backing file, uncounted, until it is taken back: for filling it.
    pub fn set_fast(&self, on: bool) {
        self.drive.set_fast(on);
    }

    /// What the disk did since it started or the statistics were reset.
    pub fn statistics(&self) -> DiskStatistics {
        self.drive.statistics()
    }

    /// Sets the statistics back to zero.
    pub fn reset_statistics(&self) {
        self.drive.reset_statistics();
    }

    /// Takes it down: unmounts file systems on its block device, which writes what they hold;
    /// detaches that; unmounts its files. What is not busy is gone even if something else is.
    ///
    /// # Errors
    /// Who still uses it. Call it again when they do not.
    pub fn stop(&mut self) -> Result<(), DeviceError> {
        let was_fast = self.drive.is_fast();
        // Whoever stops a disk does not want to wait for its arm.
        self.drive.set_fast(true);
        self.take_down().inspect_err(|_| self.drive.set_fast(was_fast))
    }

    fn take_down(&mut self) -> Result<(), DeviceError> {
        if let Some(device) = &mut self.device {
            let mounted = mounts::all().unwrap_or_default();
            for on_it in mounted.iter().rev().filter(|m| m.source == device.path()) {
                mounts::take_down(&on_it.at)?;
            }
            if !device.detach() {
                let by = "a program has it open; end it";
                return Err(DeviceError::InUse { path: device.path().to_owned(), by });
            }
            self.device = None;
        }
        if let Some(fuse_thread) = self.fuse_thread.take() {
            // Others have no right to; the session asks a helper that has.
            let unmounts = preconditions::may_mount();
            if unmounts && let Err(busy) = mounts::take_down(&self.at) {
                self.fuse_thread = Some(fuse_thread);
                return Err(busy);
            }
            let ended = fuse_thread.end(unmounts);
            ended.map_err(|e| cannot_use(&self.at, "; it did not end well", e))?;
        }
        self.remove_folder();
        Ok(())
    }

    fn remove_folder(&self) {
        if self.made_folder {
            // Not empty any more, or gone: then it is somebody else's.
            let _ = fs::remove_dir(&self.at);
        }
    }

    /// `fast`: how it goes on then.
    fn measure_round_trip(&mut self, fast: bool) {
        let file = self.file();
        let path = self.device().unwrap_or(&file);
        self.drive.set_fast(false);
        let round_trip = round_trip::measure(&self.drive, path, self.model.capacity());
        match round_trip {
            Ok(round_trip) => self.drive.set_round_trip(round_trip),
            Err(error) => self.notes.push(format!(
                "the way to the disk could not be measured ({error}): its time counts as the disk's"
            )),
        }
        self.drive.set_fast(fast);
        self.drive.reset_statistics();
    }
}

impl Drop for EmulatedDisk {
    fn drop(&mut self) {
        if self.stop().is_err() {
            // Somebody uses it. Off the list of mounts at least; the threads end when they let go.
            self.drive.set_fast(true);
            if let Some(device) = self.device.take() {
                let mounted = mounts::all().unwrap_or_default();
                let on_it = mounted.iter().rev().filter(|mount| mount.source == device.path());
                on_it.for_each(|mount| mounts::let_go(&mount.at));
            }
            mounts::let_go(&self.at);
            self.remove_folder();
        }
    }
}

fn mount_options() -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(NAME.to_owned()),
        MountOption::RW,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::DefaultPermissions,
    ];
    // For root everybody may look at the statistics; others may not allow that.
    config.acl = if preconditions::may_mount() { SessionACL::All } else { SessionACL::Owner };
    config
}

fn cannot_use(path: &Path, hint: &str, source: io::Error) -> DeviceError {
    DeviceError::Open { path: path.to_owned(), hint: hint.to_owned(), source }
}

fn mount_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; mounting is not allowed here, run it as root",
        _ => "; it could not be mounted",
    }
}

/// Ending of the default folder, beside the backing file.
const FOLDER_ENDING: &str = "emulated";

/// What the list of mounts calls it.
const NAME: &str = "tenuto-disk";
