//! A modelled disk that any program and any file system can use, in real time and with real bytes.
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
//! A disk that is smaller than its model covers the model's whole range
//! ([`DiskModel::scaled_to`]). Writes take the time of the model and are in the backing file, which
//! outlives this process but is not flushed against a power cut of the machine. There are no
//! faults: [`SimulatedDisk`](crate::SimulatedDisk) has those. For reads of one program in this
//! process [`PacedDevice::as_disk`](crate::PacedDevice::as_disk) does the same without any
//! privileges.

mod backing;
mod command_queue;
mod compensation;
mod disk_files;
mod drive;
mod file_table;
mod fuse_thread;
mod loop_device;
mod preconditions;
mod round_trip;
mod stale;
mod statistics;
mod stop;

pub use stale::remove_stale_disks;
pub use statistics::DiskStatistics;
pub use stop::DiskStop;

use crate::{DeviceError, mounts};
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

/// The options of an emulated disk.
#[derive(Clone, Debug)]
pub struct EmulateOptions {
    /// The file with the disk's bytes; made and fully allocated if it does not exist.
    pub backing: PathBuf,
    /// The size of the disk: required for a new file, else by default that of the file. Rounded
    /// down to 4,096 bytes.
    pub size: Option<ByteCount>,
    /// The directory in which its files appear: empty, or to be made. By default beside the backing
    /// file, see [`EmulatedDisk::folder_of`].
    pub at: Option<PathBuf>,
    /// Whether it also appears as a block device.
    pub attach: bool,
    /// Start at the speed of the backing file, until [`EmulatedDisk::set_fast`] ends that.
    pub fast: bool,
    /// The number of waiting requests among which a disk with an arm chooses the nearest (command
    /// queuing); 1 means order of arrival.
    pub depth: u32,
    /// The factor by which it is faster than the model, at least 1: for long measurements by a
    /// clock that is as fast. Statistics are in the model's time, in which this program's own
    /// lateness is multiplied by the factor.
    pub speed: u32,
}

impl EmulateOptions {
    /// Options for a disk on `backing` that appears as a file only, in real time, with the command
    /// queue of a SATA disk.
    pub fn new(backing: impl Into<PathBuf>) -> Self {
        let backing = backing.into();
        Self { backing, size: None, at: None, attach: false, fast: false, depth: 32, speed: 1 }
    }
}

/// A running emulated disk. Dropping it removes it whatever uses it; [`EmulatedDisk::stop`] fails
/// if it is in use.
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
    /// Makes the disk, and returns when it can be used.
    ///
    /// # Errors
    /// The reason and the remedy. Nothing is left behind except for a new backing file.
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
            fs::create_dir_all(&at)
                .map_err(|e| DeviceError::open(&at, "it could not be made", e))?;
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
        // From here on dropping the disk undoes all earlier steps.
        let about = ControlHeader { model: disk.model.name().to_owned(), size, depth, speed };
        let cannot_mount = |e| DeviceError::open(&disk.at, mount_hint(&e), e);
        let fuse_thread = FuseThread::start(&disk.drive, &disk.at, about).map_err(cannot_mount)?;
        disk.realtime = fuse_thread.realtime.clone();
        disk.fuse_thread = Some(fuse_thread);
        if options.attach {
            disk.device = Some(LoopDevice::attach(&disk.file(), disk.model.rotational())?);
        }
        if disk.model.rotational() {
            // Last, through the path that programs will use: the block device if there is one.
            disk.measure_round_trip(fast);
        }
        Ok(disk)
    }

    /// The default directory for the files of a disk with this backing file.
    pub fn folder_of(backing: &Path) -> PathBuf {
        let mut name = backing.as_os_str().to_owned();
        name.push(".");
        name.push(FOLDER_ENDING);
        name.into()
    }

    /// The path of the control file in this directory.
    pub fn control_in(folder: &Path) -> PathBuf {
        folder.join(disk_files::CONTROL)
    }

    /// The model in use, scaled to the disk's size.
    pub fn model(&self) -> &DiskModel {
        &self.model
    }

    /// The path of the disk as a file.
    pub fn file(&self) -> PathBuf {
        self.at.join(disk_files::DISK)
    }

    /// The path of the control file, which returns statistics and accepts `fast on`, `fast off` and
    /// `reset`.
    pub fn control(&self) -> PathBuf {
        Self::control_in(&self.at)
    }

    /// The path of the disk as a block device, if it was attached.
    pub fn device(&self) -> Option<&Path> {
        self.device.as_ref().map(LoopDevice::path)
    }

    /// Whether the thread that keeps time has real-time priority, or why not: it is then late on a
    /// busy machine.
    pub fn realtime(&self) -> Result<(), &str> {
        self.realtime.as_ref().copied().map_err(String::as_str)
    }

    /// The time of the round trip through the kernel, in the model's time. It is compensated for
    /// (see [`DiskStatistics::compensated`]); zero for a disk without an arm.
    pub fn round_trip(&self) -> Duration {
        self.drive.round_trip()
    }

    /// Notes on the start for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Switches fast mode, in which requests have the speed of the backing file and are not
    /// counted: for filling the disk.
    pub fn set_fast(&self, on: bool) {
        self.drive.set_fast(on);
    }

    /// The statistics since the start or the last reset.
    pub fn statistics(&self) -> DiskStatistics {
        self.drive.statistics()
    }

    /// Sets the statistics back to zero.
    pub fn reset_statistics(&self) {
        self.drive.reset_statistics();
    }

    /// Stops the disk: unmounts file systems on its block device after writing their data, detaches
    /// that, and unmounts its files. Parts that are not busy are removed even if others are.
    ///
    /// # Errors
    /// The error names the user of the disk. Call it again when that has ended.
    pub fn stop(&mut self) -> Result<(), DeviceError> {
        let was_fast = self.drive.is_fast();
        // Stopping must not wait for the modelled arm.
        self.drive.set_fast(true);
        self.take_down().inspect_err(|_| self.drive.set_fast(was_fast))
    }

    fn take_down(&mut self) -> Result<(), DeviceError> {
        if let Some(device) = &mut self.device {
            let mounted = mounts::all().unwrap_or_default();
            // The newest mount first: an older one may lie beneath it.
            for on_it in mounted.iter().rev().filter(|m| m.source == device.path()) {
                mounts::take_down(&on_it.at)?;
            }
            if !device.detach() {
                let by = "a program has it open";
                return Err(DeviceError::in_use(device.path(), by, "end it"));
            }
            self.device = None;
        }
        if let Some(fuse_thread) = self.fuse_thread.take() {
            // Without the right to unmount, the session asks a helper that has it.
            let unmounts = preconditions::may_mount();
            if unmounts && let Err(busy) = mounts::take_down(&self.at) {
                // Kept, so that the disk goes on working and a later `stop` can try again.
                self.fuse_thread = Some(fuse_thread);
                return Err(busy);
            }
            let ended = fuse_thread.end(unmounts);
            ended.map_err(|e| DeviceError::open(&self.at, "it did not end well", e))?;
        }
        self.remove_folder();
        Ok(())
    }

    fn remove_folder(&self) {
        if self.made_folder {
            // A directory that is not empty, or gone, belongs to another program.
            let _ = fs::remove_dir(&self.at);
        }
    }

    /// Measures the round trip. `fast` is the mode after the measurement.
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
            // The disk is in use: it is at least taken off the list of mounts, and the threads end
            // with its last user.
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
    // With root all users may read the statistics; other users may not allow that.
    config.acl = if preconditions::may_mount() { SessionACL::All } else { SessionACL::Owner };
    config
}

fn mount_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "mounting is not allowed here, run it as root",
        _ => "it could not be mounted",
    }
}

/// The file name extension of the default directory, beside the backing file.
const FOLDER_ENDING: &str = "emulated";

/// The name in the list of mounts.
const NAME: &str = "tenuto-disk";
