//! A store as a FUSE file system: titles as ordinary files.
//!
//! ```text
//!   cp, ffmpeg, Samba ──▶ kernel ──FUSE──▶ TitlesFs ──▶ StoreFiles ──▶ store::TitleReader ──▶ device
//!                                                        │  paths, inode numbers, drafts
//!                                                        └──close──▶ spool ──store::ingest──▶ title
//! ```
//!
//! A media title is a file with the extension `.mp4`, made of the stored bytes and a generated
//! header; a file title is its own bytes. Slashes in titles' names are folders. A file that is
//! copied in becomes a file title when it is closed; in the folder `.ingest` it becomes a media
//! title. Beside each media file `NAME.mp4.index` can be opened, which is not listed: the places of
//! all LDUs in the file; and so can the folder `NAME.mp4.frames` of a title whose frames are
//! picture files: each of them as a file. A title that is being recorded is the file
//! `NAME.growing.mp4`, which only grows: the kernel keeps neither its bytes nor its size.
//!
//! Reads are best effort: those of a served store wait for time that no session has reserved,
//! unless a rate is reserved for them. Damaged bytes are never returned: a read of them fails with
//! `EIO`.

#![warn(missing_docs)]

mod about;
mod connection;
mod draft;
mod files;
mod frames;
mod ldu_table;
mod nodes;
mod reserved;
mod title_tree;
mod titles_fs;

use connection::FuseConnection;
use files::StoreFiles;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{ReservedRate, StoreError, TitleOwner};
use titles_fs::TitlesFs;
use units::Hinted;

/// The options of a mount.
#[derive(Clone)]
pub struct StoreMountOptions {
    /// Nothing can be changed through the mount.
    pub read_only: bool,
    /// The directory for the bytes of files that are being written.
    pub spool: PathBuf,
    /// Reserved for each media file that is read, where the store's owner reserves rates.
    pub rate: Option<ReservedRate>,
    /// Receives what an error number cannot say: which file was not taken in, and why.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for StoreMountOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read_only, spool, rate, .. } = self;
        let spool = spool.display();
        write!(f, "StoreMountOptions(read_only: {read_only}, spool: {spool}, rate: {rate:?})")
    }
}

/// An error of a mount.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The directory cannot be mounted on.
    #[error("cannot mount on {}: {reason}", at.display())]
    Directory {
        /// The directory.
        at: PathBuf,
        /// The reason.
        reason: String,
        /// The remedy.
        hint: &'static str,
    },
    /// The kernel refused the mount.
    #[error("cannot mount on {}: {source}", at.display())]
    Mount {
        /// The directory.
        at: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file in the spool directory cannot be made.
    #[error("cannot make the spool file {}: {source}", path.display())]
    Spool {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Hinted for MountError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Directory { hint, .. } => hint,
            Self::Mount { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "without root, install the package fuse3"
            }
            Self::Mount { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "mount as root, or on a directory of your own with the package fuse3"
            }
            Self::Mount { .. } => "FUSE is needed: `modprobe fuse`, and /dev/fuse",
            Self::Spool { .. } => "name another directory with --spool",
            Self::Store(error) => return error.hint(),
        };
        Some(hint.to_owned())
    }
}

/// A mounted store. Dropped, it is unmounted, unless it is in use.
#[derive(Debug)]
pub struct StoreMount {
    /// Never dropped: the library would unmount whatever is at the directory, which is another
    /// mount if this one has gone. What stays are two open files.
    session: ManuallyDrop<BackgroundSession>,
    files: Arc<StoreFiles>,
    at: PathBuf,
    /// The device number of the file system.
    device: u64,
    /// Whether it was unmounted: what is mounted there now belongs to others.
    is_off: AtomicBool,
    connection: FuseConnection,
}

impl StoreMount {
    /// Mounts a store on an empty directory. Reads and writes of the disk ask its owner for
    /// permission.
    ///
    /// # Errors
    /// [`MountError::Directory`] if it is no empty directory; [`MountError::Mount`] if the kernel
    /// refuses.
    pub fn start(
        owner: Arc<dyn TitleOwner>,
        at: &Path,
        options: StoreMountOptions,
    ) -> Result<Self, MountError> {
        refuse_unusable(at)?;
        if !options.read_only {
            draft::clean(&options.spool);
        }
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("tenuto".to_owned()),
            MountOption::Subtype("tenuto".to_owned()),
            MountOption::NoSuid,
            MountOption::NoDev,
            MountOption::NoAtime,
            MountOption::DefaultPermissions,
            if options.read_only { MountOption::RO } else { MountOption::RW },
        ];
        // Only root may let others in without a change of /etc/fuse.conf.
        let is_root = rustix::process::geteuid().is_root();
        config.acl = if is_root { SessionACL::All } else { SessionACL::Owner };
        (config.n_threads, config.clone_fd) = (Some(THREADS), true);
        let files = Arc::new(StoreFiles::new(owner, options));
        let titles = TitlesFs::new(Arc::clone(&files));
        let refused = |source| MountError::Mount { at: at.to_owned(), source };
        let session = Session::new(titles, at, &config).map_err(refused)?;
        let device = session.as_fd().try_clone_to_owned().map_err(refused)?;
        let session = ManuallyDrop::new(session.spawn().map_err(refused)?);
        let about = rustix::fs::stat(at).map_err(|error| refused(error.into()))?;
        read_ahead(about.st_dev);
        let connection = FuseConnection::new(device, rustix::fs::minor(about.st_dev));
        let (device, is_off) = (about.st_dev, AtomicBool::new(false));
        Ok(Self { session, files, at: at.to_owned(), device, is_off, connection })
    }

    /// Whether it is still mounted; another program may unmount it.
    pub fn is_mounted(&self) -> bool {
        !self.session.guard.is_finished()
    }

    /// The device number of the file system, which [`is_on`] knows it by.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Whether it is what programs find at its directory. If not, it leaves that alone from now on.
    pub fn is_in_place(&self) -> bool {
        let is_in_place = self.is_found();
        self.is_off.store(!is_in_place, Ordering::Relaxed);
        is_in_place
    }

    /// Whether it is what programs find at its directory, and was not found missing before.
    fn is_found(&self) -> bool {
        let is_off = self.is_off.load(Ordering::Relaxed);
        !is_off && self.is_mounted() && is_on(&self.at, self.device)
    }

    /// Whether programs can still use it. After [`StoreMount::unmount`] those that use a copy of it
    /// can: a bind mount, or a mount of another mount namespace.
    pub fn is_connected(&self) -> bool {
        self.connection.is_alive()
    }

    /// Unmounts it, but no copy of it.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] while a program has a file or directory of it open.
    pub fn unmount(&self) -> io::Result<()> {
        self.take_off(UnmountFlags::empty())
    }

    /// Unmounts it although it or a copy of it may be in use: its users get errors, and what they
    /// were writing is lost.
    ///
    /// # Errors
    /// That of the kernel. A user other than root cannot end it for those who have it open where
    /// `/sys/fs/fuse/connections` is not mounted.
    pub fn detach(&self) -> io::Result<()> {
        if self.is_found() {
            detach(&self.at)?;
            self.is_off.store(true, Ordering::Relaxed);
        }
        self.connection.abort()?;
        self.tell_lost();
        Ok(())
    }

    fn take_off(&self, how: UnmountFlags) -> io::Result<()> {
        if self.is_found() {
            take_off(&self.at, how)?;
            self.is_off.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Waits until the last request is answered, and what was written is in the store. What has
    /// waited in the ingest folder in vain is told.
    pub fn join(self) {
        // An error of the connection to the kernel ends it, too. The kernel does not wait for the
        // answer to a last close.
        while self.is_mounted() || Arc::strong_count(&self.files) > 1 {
            std::thread::sleep(LOOK_AGAIN);
        }
        self.files.tell_lost();
    }

    /// Tells which files have waited in the ingest folder in vain, once it is over: nobody can
    /// give them their names any more. Each is told once.
    pub fn tell_lost(&self) {
        if !self.is_connected() {
            self.files.tell_lost();
        }
    }
}

impl Drop for StoreMount {
    fn drop(&mut self) {
        // Whoever wants to know has unmounted it before.
        let _ = self.unmount();
    }
}

/// Lets the kernel read ahead as far as a whole file is read fast; its own value of 128 KiB keeps
/// one request waiting for the disk at a time. Only root may, and without it reads are slower.
fn read_ahead(device: u64) {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    let _ = std::fs::write(setting, (titles_fs::READ_AHEAD >> 10).to_string());
}

/// Unmounts what this process has mounted on a directory although it may be in use: for the end of
/// the process, when nothing else is waited for.
///
/// # Errors
/// That of the kernel.
pub fn detach(at: &Path) -> io::Result<()> {
    // Ends the connection, so that no request waits any more.
    let _ = rustix::mount::unmount(at, UnmountFlags::FORCE);
    take_off(at, UnmountFlags::DETACH)
}

fn take_off(at: &Path, how: UnmountFlags) -> io::Result<()> {
    match rustix::mount::unmount(at, how) {
        // Another program has unmounted it.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(Errno::PERM) => helper(at, how.contains(UnmountFlags::DETACH)),
        Err(error) => Err(error.into()),
    }
}

/// Unmounts what a killed process has left on a directory; nothing else. Where that is refused, the
/// next mount there says so.
pub fn take_off_dead(at: &Path) {
    let dead = std::fs::metadata(at).err().and_then(|error| error.raw_os_error());
    if dead.map(Errno::from_raw_os_error) == Some(Errno::NOTCONN) {
        let _ = rustix::mount::unmount(at, UnmountFlags::DETACH);
    }
}

/// Unmounts by the helper of FUSE, which other users than root need.
fn helper(at: &Path, detach: bool) -> io::Result<()> {
    let mut command = Command::new("fusermount3");
    command.arg("-u").args(detach.then_some("-z")).arg("--").arg(at);
    match command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
        true => Ok(()),
        false => Err(io::ErrorKind::ResourceBusy.into()),
    }
}

/// Whether the file system with this device number is what programs find at a directory. Asks the
/// kernel only, and not the file system, which may be slow.
pub fn is_on(at: &Path, device: u64) -> bool {
    let about = statx(CWD, at, AtFlags::STATX_DONT_SYNC, StatxFlags::empty());
    about.is_ok_and(|it| rustix::fs::makedev(it.stx_dev_major, it.stx_dev_minor) == device)
}

/// Refuses a directory that cannot be mounted on, or whose files would be hidden.
///
/// # Errors
/// [`MountError::Directory`].
pub fn refuse_unusable(at: &Path) -> Result<(), MountError> {
    let refused = |reason: String, hint| MountError::Directory { at: at.to_owned(), reason, hint };
    match std::fs::read_dir(at).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused("it is not empty".to_owned(), "name an empty directory")),
        Err(error) => {
            let hint = match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOTCONN) => "unmount what a killed program left there: `umount -l DIR`",
                Some(Errno::NOENT) => "make it with `mkdir -p`",
                _ => "name an empty directory of your own",
            };
            Err(refused(error.to_string(), hint))
        }
    }
}

/// Time between two looks whether work has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Threads that answer the kernel. Each waits for the disk.
const THREADS: usize = 8;
