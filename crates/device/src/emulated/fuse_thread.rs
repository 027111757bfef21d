//! The threads that answer for an emulated disk, with their own table of open files.
//!
//! ```text
//!   the program's other threads       FuseThread ─┬─ FUSE session: DiskFiles ─▶ the kernel
//!   open: everything else                        └─ Drive
//!          │ reads, waits                open: /dev/fuse, the backing file
//!          └──▶ /dev/loopN ─▶ AT/disk ─▶ the kernel ─┘
//! ```
//!
//! A program may read the disk that it emulates, and may be killed while it reads. Its reading
//! thread cannot end before it is answered, and files that it shares are not closed before it ends.
//! If `/dev/fuse` were one of them, the kernel would wait for ever for an answer that nobody gives.
//! So it is open only in the table of these threads. None of them waits for the disk: they end
//! immediately, the kernel sees `/dev/fuse` closed, and all waiting requests fail.

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

/// The threads of an emulated disk, which end when the disk is unmounted. Dropping it does not wait
/// for them.
#[derive(Debug)]
pub(super) struct FuseThread {
    thread: JoinHandle<io::Result<()>>,
    orders: Sender<Shutdown>,
    /// Whether the threads have real-time priority, or why not.
    pub(super) realtime: Result<(), String>,
}

/// The way in which the threads are to end; the default is [`Shutdown::Await`].
#[derive(Debug)]
enum Shutdown {
    /// Another program has unmounted the disk.
    Await,
    /// The disk has to be unmounted, by a helper if this process may not.
    Unmount,
}

/// The header of the control file.
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
    /// Fails if it cannot be mounted, or no thread can be started.
    pub(super) fn start(drive: &Arc<Drive>, at: &Path, about: ControlHeader) -> io::Result<Self> {
        let (orders, ordered) = channel();
        let (mounted, is_mounted) = channel();
        let (drive, at) = (Arc::clone(drive), at.to_owned());
        let keep = move || {
            file_table::unshare_files(drive.backing());
            // Threads inherit the scheduling class of the thread that starts them.
            let realtime = realtime::enter().map_err(|error| error.to_string());
            sharpen_timers();
            // The kernel may wait for these threads to free memory, so they must not wait for it.
            // Without privileges this is refused, but then no file system is mounted on them.
            let _ = rustix::process::configure_io_flusher_behavior(true);
            let files = DiskFiles::new(Arc::clone(&drive), about.size, about.text(&realtime));
            let session = Session::new(files, &at, &mount_options()).and_then(Session::spawn)?;
            let working = Arc::clone(&drive);
            let name = "emulated disk".to_owned();
            let arm = Builder::new().name(name).spawn(move || working.run())?;
            // The thread that called `start` waits for it.
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
            Err(_) => Err(thread
                .join()
                .expect("starting does not panic")
                .expect_err("it ended with an error")),
        }
    }

    /// Waits until no request can arrive any more; all of its files are then closed. It unmounts
    /// the disk unless `unmounted` is set.
    pub(super) fn end(self, unmounted: bool) -> io::Result<()> {
        // The thread may have ended already, and the mount with it.
        let _ = self.orders.send(if unmounted { Shutdown::Await } else { Shutdown::Unmount });
        self.thread.join().expect("the FUSE thread does not panic")
    }
}
