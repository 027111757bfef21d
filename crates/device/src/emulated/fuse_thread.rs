//! The threads that answer for an emulated disk, with a table of open files of their own.
//!
//! ```text
//!   the program's other threads          keeper ─┬─ FUSE session: DiskFiles ─▶ the kernel
//!   open: everything else                        └─ Drive
//!          │ reads, waits                open: /dev/fuse, the backing file
//!          └──▶ /dev/loopN ─▶ AT/disk ─▶ the kernel ─┘
//! ```
//!
//! A program may read the disk that it emulates, and may be killed while it does. Its reading
//! thread cannot end before it is answered, and files that it shares are not closed before it ends.
//! Were `/dev/fuse` one of them, the kernel would wait for ever for an answer that nobody gives. So
//! it is open in the table of these threads only. None of them waits for the disk: they end at
//! once, the kernel sees `/dev/fuse` closed, and fails what waits for it.

use super::disk_files::DiskFiles;
use super::drive::Drive;
use super::{file_table, mount_options};
use crate::paced::sharpen_timers;
use crate::realtime;
use fuser::Session;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use units::ByteCount;

/// They work until nothing is mounted any more. Dropped, they are not waited for.
#[derive(Debug)]
pub(super) struct FuseThread {
    thread: JoinHandle<io::Result<()>>,
    orders: Sender<Shutdown>,
    /// Whether they are run at once when they are due, or why not.
    pub(super) realtime: Result<(), String>,
}

/// How the keeper is to end. None: as [`Shutdown::Await`].
#[derive(Debug)]
enum Shutdown {
    /// Somebody has unmounted it.
    Await,
    /// It is to be unmounted by whoever has the right to.
    Unmount,
}

/// What the control file says first.
pub(super) struct ControlHeader {
    pub(super) model: String,
    pub(super) size: ByteCount,
    pub(super) depth: u32,
    pub(super) speed: u32,
}

impl ControlHeader {
    fn text(&self, realtime: &Result<(), String>) -> String {
        let Self { model, size, depth, speed } = self;
        let priority = match realtime {
            Ok(()) => "realtime".to_owned(),
            Err(why) => format!("normal ({why})"),
        };
        format!(
            "model {model}\nsize {}\nqueue {depth}\nspeed {speed}\npriority {priority}\n",
            size.0
        )
    }
}

impl FuseThread {
    /// Mounts the disk's files at `at`.
    ///
    /// # Errors
    /// It cannot be mounted, or no thread be started.
    pub(super) fn start(drive: &Arc<Drive>, at: &Path, about: ControlHeader) -> io::Result<Self> {
        let (orders, ordered) = channel();
        let (mounted, is_mounted) = channel();
        let (drive, at) = (Arc::clone(drive), at.to_owned());
        let keep = move || {
            file_table::unshare_files(drive.backing());
            // Threads inherit how they are run from the one that starts them.
            let realtime = realtime::enter().map_err(|error| error.to_string());
            sharpen_timers();
            // The kernel may wait for these threads to get memory back: they must not wait for it.
            // Refused without rights, and without rights nothing is mounted on them.
            let _ = rustix::process::configure_io_flusher_behavior(true);
            let files = DiskFiles::new(Arc::clone(&drive), about.size, about.text(&realtime));
            let session = Session::new(files, &at, &mount_options()).and_then(Session::spawn)?;
            let working = Arc::clone(&drive);
            let name = "emulated disk".to_owned();
            let arm = Builder::new().name(name).spawn(move || working.run())?;
            // Whoever started this waits for it.
            let _ = mounted.send(realtime);
            let ended = match ordered.recv() {
                Ok(Shutdown::Unmount) => session.umount_and_join(),
                Ok(Shutdown::Await) | Err(_) => session.join(),
            };
            drive.close();
            arm.join().expect("the drive does not panic");
            ended
        };
        let thread = Builder::new().name("fuse_thread".to_owned()).spawn(keep)?;
        match is_mounted.recv() {
            Ok(realtime) => Ok(Self { thread, orders, realtime }),
            Err(_) => {
                Err(thread.join().expect("starting does not panic").expect_err("why it ended"))
            }
        }
    }

    /// Waits until nobody can ask it any more; everything of it is then closed. `unmounted`: it is,
    /// or is unmounted here.
    pub(super) fn end(self, unmounted: bool) -> io::Result<()> {
        // Gone already: then so is the mount.
        let _ = self.orders.send(if unmounted { Shutdown::Await } else { Shutdown::Unmount });
        self.thread.join().expect("the fuse_thread does not panic")
    }
}
