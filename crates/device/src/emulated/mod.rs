//! A modelled disk that any program and any file system can use: real time, real bytes.
//!
//! ```text
//!   ext4, XFS, tenuto, dd, ...                     anything else
//!        │ block device                                 │ file
//!   /dev/loopN ── direct ──▶ AT/disk ◀──────────────────┘      AT/control
//!                               │ FUSE                            │ text: statistics, fast on|off
//!                             Files ──▶ Drive (Line, disk::Head) ◀┘
//!                                         │ bytes at once, answers when the model says
//!                                       the backing file
//! ```
//!
//! A disk that is smaller than its model is stretched over all of it
//! ([`DiskModel::scaled_to`]). Writes take what the model says and are in the backing file, which
//! outlives this process but is not flushed against a power cut of the machine. There is no
//! second copy and no faults: [`Faulty`](crate::Faulty) has those. For reads of one program in this
//! process [`AsDisk`](crate::AsDisk) does the same without any rights.

mod backing;
mod debt;
mod drive;
mod files;
mod lateness;
mod line;
mod loop_device;
mod mounts;
mod preconditions;
mod statistics;
mod way;

pub use statistics::DiskStatistics;

use crate::DeviceError;
use crate::paced::sharpen_timers;
use crate::realtime;
use backing::Backing;
use disk::DiskModel;
use drive::Drive;
use files::Files;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use loop_device::LoopDevice;
use preconditions::{Means, canonical, clear_left_over, folder_is_free};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use units::ByteCount;

/// How to emulate.
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
    /// Also as a block device.
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
    thread: Option<JoinHandle<()>>,
    session: Option<BackgroundSession>,
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
        Means::here().suffice(options.attach)?;
        let mut notes = Vec::new();
        let at = options.at.clone().unwrap_or_else(|| Self::folder_of(&options.backing));
        let at = canonical(&at)?;
        let left_over = clear_left_over(&at)?;
        if let Some(note) = &left_over {
            notes.push(note.clone());
        }
        let existed = folder_is_free(&at)?;
        let backing = Backing::open(&options.backing, options.size, model)?;
        let model = model.scaled_to(backing.size);
        let size = backing.size;
        if !existed {
            fs::create_dir(&at).map_err(|e| cannot_use(&at, "; it could not be made", e))?;
        }
        let EmulateOptions { depth, speed, fast, .. } = *options;
        let drive = Arc::new(Drive::new(backing, model.head(), depth, speed, fast));
        let mut disk = Self {
            model,
            at,
            made_folder: !existed || left_over.is_some(),
            drive,
            thread: None,
            session: None,
            device: None,
            realtime: Ok(()),
            notes,
        };
        // From here on, dropping it undoes what was done.
        disk.mount(size, depth, speed)?;
        if options.attach {
            disk.device = Some(LoopDevice::attach(&disk.file(), disk.model.rotational())?);
        }
        if disk.model.rotational() {
            disk.measure_way(fast);
        }
        Ok(disk)
    }

    /// Where the files of a disk with this backing file appear by default.
    pub fn folder_of(backing: &Path) -> PathBuf {
        let mut name = backing.as_os_str().to_owned();
        name.push(".emulated");
        name.into()
    }

    /// The control file under this folder.
    pub fn control_in(folder: &Path) -> PathBuf {
        folder.join(files::CONTROL)
    }

    /// The model as it is applied: scaled to the disk's size.
    pub fn model(&self) -> &DiskModel {
        &self.model
    }

    /// The disk as a file.
    pub fn file(&self) -> PathBuf {
        self.at.join(files::DISK)
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

    /// What the way through the kernel to the disk and back takes, in the model's time. It is made
    /// up for (see [`DiskStatistics::made_up`]); zero for a disk without an arm.
    pub fn way(&self) -> Duration {
        self.drive.way()
    }

    /// What a person should know about the start.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// At the speed of the backing file, uncounted, until it is taken back: for filling it.
    pub fn set_fast(&self, on: bool) {
        self.drive.set_fast(on);
    }

    /// See [`DiskStatistics`].
    pub fn statistics(&self) -> DiskStatistics {
        self.drive.statistics()
    }

    /// From here on.
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
        if let Some(session) = self.session.take() {
            let ended = if preconditions::may_mount() {
                if let Err(busy) = mounts::take_down(&self.at) {
                    self.session = Some(session);
                    return Err(busy);
                }
                session.join()
            } else {
                // Others have no right to; the session asks a helper that has.
                session.umount_and_join()
            };
            ended.map_err(|e| cannot_use(&self.at, "; it did not end well", e))?;
        }
        self.drive.close();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the drive does not panic");
        }
        if self.made_folder {
            // Not empty any more, or gone: then it is somebody else's.
            let _ = fs::remove_dir(&self.at);
        }
        Ok(())
    }

    /// `fast`: how it goes on then.
    fn measure_way(&mut self, fast: bool) {
        let file = self.file();
        let path = self.device().unwrap_or(&file);
        self.drive.set_fast(false);
        let way = way::measure(&self.drive, path, self.model.capacity());
        match way {
            Ok(way) => self.drive.set_way(way),
            Err(error) => self.notes.push(format!(
                "the way to the disk could not be measured ({error}): its time counts as the disk's"
            )),
        }
        self.drive.set_fast(fast);
        self.drive.reset_statistics();
    }

    /// Starts the threads that keep time.
    fn mount(&mut self, size: ByteCount, depth: u32, speed: u32) -> Result<(), DeviceError> {
        let (drive, at, name) =
            (Arc::clone(&self.drive), self.at.clone(), self.model.name().to_owned());
        // Threads inherit how they are run from the one that starts them.
        let starter = std::thread::spawn(move || {
            let realtime = realtime::enter().map_err(|error| error.to_string());
            sharpen_timers();
            // The kernel may wait for these threads to get memory back: they must not wait for it.
            // Refused without rights, and without rights nothing is mounted on them.
            let _ = rustix::process::configure_io_flusher_behavior(true);
            let priority = match &realtime {
                Ok(()) => "realtime".to_owned(),
                Err(why) => format!("normal ({why})"),
            };
            let about = format!(
                "model {name}\nsize {}\nqueue {depth}\nspeed {speed}\npriority {priority}\n",
                size.0
            );
            let files = Files::new(Arc::clone(&drive), size, about);
            let session = Session::new(files, &at, &mount_options()).and_then(Session::spawn);
            let thread = std::thread::Builder::new().name("emulated disk".to_owned());
            let thread = thread.spawn(move || drive.run());
            (realtime, session, thread)
        });
        let (realtime, session, thread) = starter.join().expect("starting does not panic");
        self.realtime = realtime;
        let cannot_start = |e| cannot_use(&self.at, "; no thread could be started for it", e);
        self.thread = Some(thread.map_err(cannot_start)?);
        self.session = Some(session.map_err(|e| cannot_use(&self.at, mount_hint(&e), e))?);
        Ok(())
    }
}

impl Drop for EmulatedDisk {
    fn drop(&mut self) {
        if self.stop().is_err() {
            // Somebody uses it. Off the list of mounts at least; the threads end when they let go.
            self.drive.set_fast(true);
            self.device = None;
            mounts::let_go(&self.at);
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

/// What the list of mounts calls it.
const NAME: &str = "tenuto-disk";
