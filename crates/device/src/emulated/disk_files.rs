//! The two files as which an emulated disk appears: `disk` and `control`.
//!
//! This is only a translation between FUSE requests and the drive. The files cannot be made,
//! removed, renamed or truncated; both are read and written without the page cache.

use super::drive::Drive;
use fuser::{
    AccessFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use units::{ByteCount, locked};

/// Names under the mount point.
pub(super) const DISK: &str = "disk";
pub(super) const CONTROL: &str = "control";

/// The FUSE file system of an emulated disk: the files `disk` and `control`.
pub(super) struct DiskFiles {
    drive: Arc<Drive>,
    size: ByteCount,
    /// The header of the control file, before the statistics.
    about: String,
    /// The texts of the control file by file handle, because the statistics change while it is
    /// read.
    open: Mutex<HashMap<u64, String>>,
    opened: AtomicU64,
    started: SystemTime,
}

impl DiskFiles {
    pub(super) fn new(drive: Arc<Drive>, size: ByteCount, about: String) -> Self {
        Self {
            drive,
            size,
            about,
            open: Mutex::default(),
            opened: AtomicU64::new(0),
            started: SystemTime::now(),
        }
    }

    fn attributes(&self, node: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match node {
            INodeNo::ROOT => (FileType::Directory, 0o755, 0),
            DISK_NODE => (FileType::RegularFile, 0o600, self.size.0),
            CONTROL_NODE => (FileType::RegularFile, 0o644, 0),
            _ => return None,
        };
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Some(FileAttr {
            ino: node,
            size,
            blocks: size / 512,
            atime: self.started,
            mtime: self.started,
            ctime: self.started,
            crtime: self.started,
            kind,
            perm,
            nlink: 1,
            uid: uid.as_raw(),
            gid: gid.as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn control_text(&self) -> String {
        let fast = if self.drive.is_fast() { "on" } else { "off" };
        let round_trip = self.drive.round_trip().as_nanos();
        format!("{}round_trip {round_trip}\nfast {fast}\n{}", self.about, self.drive.statistics())
    }

    fn obey(&self, text: &[u8]) -> Result<(), Errno> {
        let words = std::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
        for line in words.lines() {
            match line.trim() {
                "fast on" => self.drive.set_fast(true),
                "fast off" => self.drive.set_fast(false),
                "reset" => self.drive.reset_statistics(),
                "" => {}
                _ => return Err(Errno::EINVAL),
            }
        }
        Ok(())
    }
}

impl Filesystem for DiskFiles {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Old kernels refuse it: direct requests then wait for one another.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        // The kernel uses the nearest possible value.
        let _ = config.set_max_write(LARGEST_REQUEST);
        let _ = config.set_max_background(MOST_REQUESTS);
        let _ = config.set_congestion_threshold(MOST_REQUESTS);
        Ok(())
    }

    /// The mount has ended, so that no request can arrive any more.
    fn destroy(&mut self) {
        self.drive.close();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let node = match name.to_str() {
            Some(DISK) => DISK_NODE,
            Some(CONTROL) => CONTROL_NODE,
            _ => return reply.error(Errno::ENOENT),
        };
        match self.attributes(node) {
            Some(attributes) if parent == INodeNo::ROOT => {
                reply.entry(&FOR_EVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(node) {
            Some(attributes) => reply.attr(&FOR_EVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Accepts truncation, which a shell uses to write to the control file; the disk keeps its
    /// size.
    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(node) {
            Some(same) if node == CONTROL_NODE || size.is_none_or(|size| size == same.size) => {
                reply.attr(&FOR_EVER, &same);
            }
            _ => reply.error(Errno::EPERM),
        }
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let handle = self.opened.fetch_add(1, Ordering::Relaxed);
        if node == CONTROL_NODE {
            // A text taken at open: pieces of two states would not fit together.
            locked(&self.open).insert(handle, self.control_text());
        }
        // Each read must reach the modelled disk; the kernel's cache would answer in no time.
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(handle), flags);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        locked(&self.open).remove(&handle.0);
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if node == CONTROL_NODE {
            let texts = locked(&self.open);
            let text = texts.get(&handle.0).map_or(&[][..], |text| text.as_bytes());
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
            let until = from.saturating_add(size as usize).min(text.len());
            return reply.data(&text[from..until]);
        }
        let answer = move |bytes: io::Result<&[u8]>| match bytes {
            Ok(bytes) => reply.data(bytes),
            Err(error) => reply.error(error.into()),
        };
        self.drive.read(offset, size.into(), Box::new(answer));
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let len = u32::try_from(data.len()).expect("the kernel counts it in 32 bits");
        if node == CONTROL_NODE {
            return match self.obey(data) {
                Ok(()) => reply.written(len),
                Err(error) => reply.error(error),
            };
        }
        let answer = move |done: io::Result<&[u8]>| match done {
            Ok(_) => reply.written(len),
            Err(error) => reply.error(error.into()),
        };
        self.drive.write(offset, data, Box::new(answer));
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if node != DISK_NODE {
            return reply.ok();
        }
        let answer = move |done: io::Result<&[u8]>| match done {
            Ok(_) => reply.ok(),
            Err(error) => reply.error(error.into()),
        };
        self.drive.flush(Box::new(answer));
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DISK_NODE, FileType::RegularFile, DISK),
            (CONTROL_NODE, FileType::RegularFile, CONTROL),
        ];
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (place, (node, kind, name)) in entries.into_iter().enumerate().skip(from) {
            if reply.add(node, place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// Accepts all: the kernel has checked the permissions already.
    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }
}

const DISK_NODE: INodeNo = INodeNo(2);
const CONTROL_NODE: INodeNo = INodeNo(3);

/// The validity of attributes: those of the two files never change.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// The largest request of the kernel by default.
const LARGEST_REQUEST: u32 = 1 << 20;

/// The largest number of requests in flight; a loop device has 128, each split in two where pages
/// are small.
const MOST_REQUESTS: u16 = 512;
