//! FUSE messages to and from [`StoreFiles`]: a translation, without decisions.
//!
//! Requests that may take long (a close that stores a file, a removal) are answered by threads of
//! their own, so that reads of other files go on.

use crate::about::About;
use crate::files::{Caching, FileAccess, LONGEST_NAME, StoreFiles};
use crate::reserved::IfReserved;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{OFlags, XattrFlags};
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

/// The FUSE file system of a store.
pub(crate) struct TitlesFs {
    files: Arc<StoreFiles>,
    user: u32,
    group: u32,
}

impl TitlesFs {
    pub(crate) fn new(files: Arc<StoreFiles>) -> Self {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Self { files, user: user.as_raw(), group: group.as_raw() }
    }

    fn attributes(&self, number: u64, about: &About) -> FileAttr {
        let is_folder = about.kind == FileType::Directory;
        let (read, write) = if is_folder { (0o555, 0o200) } else { (0o444, 0o200) };
        FileAttr {
            ino: INodeNo(number),
            size: about.bytes,
            blocks: about.bytes.div_ceil(512),
            atime: about.time,
            mtime: about.time,
            ctime: about.time,
            crtime: about.time,
            kind: about.kind,
            perm: read | if about.can_write { write } else { 0 },
            nlink: about.links,
            uid: self.user,
            gid: self.group,
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        }
    }

    fn entry(&self, path: Result<String, Errno>, reply: ReplyEntry) {
        match path.and_then(|path| self.files.look_up(&path)) {
            Ok((number, about)) => {
                let generation = self.files.generation();
                reply.entry(&valid(&about), &self.attributes(number, &about), generation);
            }
            Err(error) => reply.error(error),
        }
    }

    fn attr(&self, number: u64, about: Result<About, Errno>, reply: ReplyAttr) {
        match about {
            Ok(about) => reply.attr(&valid(&about), &self.attributes(number, &about)),
            Err(error) => reply.error(error),
        }
    }

    /// Works in a thread of its own, which answers.
    fn aside(
        &self,
        reply: ReplyEmpty,
        work: impl FnOnce(&StoreFiles) -> Result<(), Errno> + Send + 'static,
    ) {
        let files = Arc::clone(&self.files);
        let both = move || answer(reply, work(&files));
        // Without a thread the reply is dropped, which answers with an I/O error.
        drop(thread::Builder::new().name("mount".to_owned()).spawn(both));
    }

    fn open_any(&self, number: INodeNo, access: FileAccess, reply: ReplyOpen) {
        match self.files.open(number.0, access) {
            Ok((handle, caching)) => {
                reply.opened(FileHandle(handle), flags_of(caching));
            }
            Err(error) => reply.error(error),
        }
    }
}

impl Filesystem for TitlesFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Old kernels refuse some of them: it is slower then, or a truncation comes as a request of
        // its own.
        for flag in [
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_EXPORT_SUPPORT,
        ] {
            let _ = config.add_capabilities(flag);
        }
        // The kernel uses the nearest possible value.
        let _ = config.set_max_write(LARGEST_REQUEST);
        let _ = config.set_max_readahead(READ_AHEAD);
        if self.files.waits_for_others() {
            let _ = config.set_max_background(MOST_AHEAD);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(self.files.path_in(parent.0, name), reply);
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.files.forget(number.0, lookups);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.attr(number.0, self.files.about_number(number.0), reply);
    }

    /// Changes the length. Owner, rights and times are those of the store: programs that copy them
    /// go on.
    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _mode: Option<u32>,
        _user: Option<u32>,
        _group: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _made: Option<SystemTime>,
        _change_time: Option<SystemTime>,
        _backup: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = size.map_or(Ok(()), |size| self.files.set_length(number.0, size));
        let about = set.and_then(|()| self.files.about_number(number.0));
        self.attr(number.0, about, reply);
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        let path = self.files.path_in(parent.0, name);
        let made = path.and_then(|path| self.files.make_folder(&path).map(|()| path));
        self.entry(made, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.files.path_in(parent.0, name);
        self.aside(reply, |files| files.unlink(&path?));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.files.path_in(parent.0, name);
        answer(reply, path.and_then(|path| self.files.remove_folder(&path)));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if flags.intersects(RenameFlags::RENAME_EXCHANGE | RenameFlags::RENAME_WHITEOUT) {
            return reply.error(Errno::EINVAL);
        }
        let old = self.files.path_in(parent.0, name);
        let new = self.files.path_in(new_parent.0, new_name);
        let keep = flags.contains(RenameFlags::RENAME_NOREPLACE);
        self.aside(reply, move |files| files.rename(&old?, &new?, keep));
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.open_any(number, access(flags), reply);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let most = usize::try_from(size).unwrap_or(usize::MAX);
        let read = move |files: &StoreFiles| {
            let file = files.opened(handle.0);
            match file.and_then(|file| files.read(&file, offset, most)) {
                Ok(bytes) => reply.data(&bytes),
                Err(error) => reply.error(error),
            }
        };
        if !self.files.waits_for_others() {
            return read(&self.files);
        }
        // A read that waits for free disk time must not keep the thread from one with a deadline.
        let files = Arc::clone(&self.files);
        drop(thread::Builder::new().name("mount-read".to_owned()).spawn(move || read(&files)));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let file = self.files.opened(handle.0);
        match file.and_then(|file| self.files.write(&file, offset, data)) {
            Ok(()) => reply.written(u32::try_from(data.len()).expect("at most a request")),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        match self.files.opened(handle.0) {
            Ok(file) => self.aside(reply, move |files| files.flush(&file)),
            Err(error) => reply.error(error),
        }
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
        self.aside(reply, move |files| {
            files.release(handle.0);
            Ok(())
        });
    }

    /// A title is durable when its file is closed. Until then its bytes are in the spool.
    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        self.aside(reply, move |files| files.sync(handle.0));
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.open_any(number, FileAccess::default(), reply);
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let folder = match self.files.opened(handle.0) {
            Ok(folder) => folder,
            Err(error) => return reply.error(error),
        };
        let own = [(".", FileType::Directory), ("..", FileType::Directory)];
        let first = usize::try_from(offset).unwrap_or(usize::MAX);
        // Not one name after the other: the kernel asks for a long list in many parts.
        let rest = folder.names().get(first.saturating_sub(own.len())..).unwrap_or_default();
        let rest = rest.iter().map(|(name, kind)| (name.as_str(), *kind));
        for (next, (name, kind)) in (offset + 1..).zip(own.into_iter().skip(first).chain(rest)) {
            // Numbers are given out at lookups only: a listing of many titles leaves none behind.
            let number = if name == "." { number } else { UNKNOWN };
            if reply.add(number, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.files.release(handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let info = self.files.store().info();
        let chunk = u32::try_from(info.chunk.0).unwrap_or(u32::MAX);
        let (all, free) = (info.data_chunks, info.free_chunks);
        let longest = u32::try_from(LONGEST_NAME).expect("short");
        // There is an inode for each title and for each chunk that a title can be begun in.
        let inodes = info.titles.saturating_add(free);
        reply.statfs(all, free, free, inodes, free, chunk, longest, chunk);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let path = self.files.path(number.0);
        let name = name.to_str().unwrap_or_default();
        let value = path.and_then(|path| self.files.attribute(&path, name));
        sized(value.and_then(|value| value.ok_or(Errno::ENODATA)), size, reply);
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.files.path(number.0).and_then(|path| self.files.attributes(&path));
        let list = names.map(|names| names.iter().map(|name| format!("{name}\0")).collect());
        sized(list, size, reply);
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let flags = XattrFlags::from_bits_retain(u32::try_from(flags).unwrap_or(0));
        let present =
            match (flags.contains(XattrFlags::CREATE), flags.contains(XattrFlags::REPLACE)) {
                (true, _) => IfReserved::Refuse,
                (false, true) => IfReserved::Require,
                (false, false) => IfReserved::Replace,
            };
        let (name, value) = (name.to_str().unwrap_or_default().to_owned(), value.to_vec());
        self.aside(reply, move |files| files.set_attribute(number.0, &name, &value, present));
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_str().unwrap_or_default();
        answer(reply, self.files.remove_attribute(number.0, name));
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let path = self.files.path_in(parent.0, name);
        let (access, new) = (access(OpenFlags(flags)), flags & flag(OFlags::EXCL) != 0);
        match path.and_then(|path| self.files.create(&path, access, new)) {
            Ok((number, about, (handle, caching))) => {
                let attributes = self.attributes(number, &about);
                let (handle, flags) = (FileHandle(handle), flags_of(caching));
                reply.created(&valid(&about), &attributes, self.files.generation(), handle, flags);
            }
            Err(error) => reply.error(error),
        }
    }

    /// Links, devices and pipes are no titles.
    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &std::path::Path, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EOPNOTSUPP);
    }
}

/// How long the kernel may use the attributes of a file.
fn valid(about: &About) -> Duration {
    if about.grows { Duration::ZERO } else { VALID }
}

fn flags_of(caching: Caching) -> FopenFlags {
    match caching {
        Caching::Kept => FopenFlags::FOPEN_KEEP_CACHE,
        Caching::Anew => FopenFlags::empty(),
        Caching::None => FopenFlags::FOPEN_DIRECT_IO,
    }
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Answers with a text, or with its length if no room is offered.
fn sized(text: Result<String, Errno>, size: u32, reply: ReplyXattr) {
    match text {
        Err(error) => reply.error(error),
        Ok(text) => match u32::try_from(text.len()) {
            Ok(length) if size == 0 => reply.size(length),
            Ok(length) if length <= size => reply.data(text.as_bytes()),
            _ => reply.error(Errno::ERANGE),
        },
    }
}

fn access(flags: OpenFlags) -> FileAccess {
    let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
    FileAccess { writes, truncates: writes && flags.0 & flag(OFlags::TRUNC) != 0 }
}

fn flag(flag: OFlags) -> i32 {
    i32::try_from(flag.bits()).expect("a small flag")
}

/// The inode number of a name in a listing (`FUSE_UNKNOWN_INO`).
const UNKNOWN: INodeNo = INodeNo(0xffff_ffff);

/// How long the kernel may use an answer: so long a change by a server is not seen.
const VALID: Duration = Duration::from_secs(1);

const BLOCK: u32 = 4096;

/// Bytes of the largest request that the kernel makes.
const LARGEST_REQUEST: u32 = 1 << 20;

/// Requests that the kernel makes ahead of programs at a time, where they may wait for the disk. Of
/// its own 12, files that are read best effort would take all.
const MOST_AHEAD: u16 = 512;

/// Bytes that the kernel reads ahead at most.
pub(crate) const READ_AHEAD: u32 = 4 << 20;
