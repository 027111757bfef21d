//! The error numbers of a mounted store: those of a local file system where an operation applies,
//! and those of `docs/guide/mount.md` where it does not.

use crate::mounted::Mounted;
use crate::program::TestDir;
use rustix::fs::{CWD, FallocateFlags, FileType, Mode, RenameFlags, XattrFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A folder with the files and folders that the rows name.
struct Root(PathBuf);

type Row = (&'static str, fn(&Root) -> io::Result<()>, Errno);

impl Root {
    /// Makes the file `file`, the folder `full` with a file in it, and the folder `empty`.
    fn filled(path: &Path) -> Self {
        let root = Self(path.to_owned());
        fs::write(root.at("file"), "text").expect("a file");
        fs::create_dir(root.at("full")).expect("a folder");
        fs::write(root.at("full/inside"), "text").expect("a file");
        fs::create_dir(root.at("empty")).expect("a folder");
        root
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn rename_with(&self, from: &str, to: &str, flags: RenameFlags) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(CWD, self.at(from), CWD, self.at(to), flags)?)
    }

    fn fails(&self, rows: &[Row]) {
        for (what, operation, errno) in rows {
            let got = operation(self).expect_err(what).raw_os_error().map(Errno::from_raw_os_error);
            assert_eq!(got, Some(*errno), "{what} in {}", self.0.display());
        }
    }
}

fn long_name() -> String {
    "n".repeat(256)
}

/// What POSIX asks for: on both sides.
const POSIX: [Row; 41] = [
    ("open a missing file", |it| File::open(it.at("no")).map(drop), Errno::NOENT),
    ("open in a missing folder", |it| File::open(it.at("no/x")).map(drop), Errno::NOENT),
    ("open in a file", |it| File::open(it.at("file/x")).map(drop), Errno::NOTDIR),
    ("write a folder", |it| fs::write(it.at("full"), "x"), Errno::ISDIR),
    ("create in a missing folder", |it| fs::write(it.at("no/x"), "x"), Errno::NOENT),
    ("create in a file", |it| fs::write(it.at("file/x"), "x"), Errno::NOTDIR),
    ("create what exists", |it| File::create_new(it.at("file")).map(drop), Errno::EXIST),
    ("create a folder's name", |it| File::create_new(it.at("full")).map(drop), Errno::EXIST),
    ("stat a missing file", |it| fs::metadata(it.at("no")).map(drop), Errno::NOENT),
    ("list a missing folder", |it| fs::read_dir(it.at("no")).map(drop), Errno::NOENT),
    ("list a file", |it| fs::read_dir(it.at("file")).map(drop), Errno::NOTDIR),
    ("read a folder", |it| File::open(it.at("full"))?.read(&mut [0]).map(drop), Errno::ISDIR),
    ("write what is read", |it| File::open(it.at("file"))?.write_all(b"x"), Errno::BADF),
    (
        "read what is written",
        |it| File::options().append(true).open(it.at("file"))?.read(&mut [0]).map(drop),
        Errno::BADF,
    ),
    ("truncate what is read", |it| File::open(it.at("file"))?.set_len(1), Errno::INVAL),
    (
        "extend beyond all limits",
        |it| File::options().append(true).open(it.at("file"))?.set_len(u64::MAX >> 1),
        Errno::FBIG,
    ),
    ("a folder over a file", |it| fs::create_dir(it.at("file")), Errno::EXIST),
    ("a folder over a folder", |it| fs::create_dir(it.at("full")), Errno::EXIST),
    ("a folder in a missing one", |it| fs::create_dir(it.at("no/x")), Errno::NOENT),
    ("a folder in a file", |it| fs::create_dir(it.at("file/x")), Errno::NOTDIR),
    ("remove a missing folder", |it| fs::remove_dir(it.at("no")), Errno::NOENT),
    ("remove a full folder", |it| fs::remove_dir(it.at("full")), Errno::NOTEMPTY),
    ("remove a file as a folder", |it| fs::remove_dir(it.at("file")), Errno::NOTDIR),
    ("unlink a missing file", |it| fs::remove_file(it.at("no")), Errno::NOENT),
    ("unlink a folder", |it| fs::remove_file(it.at("full")), Errno::ISDIR),
    ("unlink in a file", |it| fs::remove_file(it.at("file/x")), Errno::NOTDIR),
    ("rename a missing file", |it| it.rename("no", "x"), Errno::NOENT),
    ("rename into a missing folder", |it| it.rename("file", "no/x"), Errno::NOENT),
    ("rename into a file", |it| it.rename("full", "file/x"), Errno::NOTDIR),
    ("rename a file over a folder", |it| it.rename("file", "empty"), Errno::ISDIR),
    ("rename a folder over a file", |it| it.rename("empty", "file"), Errno::NOTDIR),
    ("rename over a full folder", |it| it.rename("empty", "full"), Errno::NOTEMPTY),
    ("rename a folder into itself", |it| it.rename("full", "full/x"), Errno::INVAL),
    (
        "rename, but not over a file",
        |it| it.rename_with("file", "full/inside", RenameFlags::NOREPLACE),
        Errno::EXIST,
    ),
    ("open a long name", |it| File::open(it.at(&long_name())).map(drop), Errno::NAMETOOLONG),
    ("create a long name", |it| fs::write(it.at(&long_name()), "x"), Errno::NAMETOOLONG),
    ("stat a long name", |it| fs::metadata(it.at(&long_name())).map(drop), Errno::NAMETOOLONG),
    ("a folder with a long name", |it| fs::create_dir(it.at(&long_name())), Errno::NAMETOOLONG),
    ("unlink a long name", |it| fs::remove_file(it.at(&long_name())), Errno::NAMETOOLONG),
    ("rename to a long name", |it| it.rename("file", &long_name()), Errno::NAMETOOLONG),
    ("follow no link", |it| fs::read_link(it.at("file")).map(drop), Errno::INVAL),
];

/// What a store has not: the table "What does not apply" of the guide.
const NOT_APPLICABLE: [Row; 13] = [
    ("a hard link", |it| fs::hard_link(it.at("file"), it.at("x")), Errno::PERM),
    ("a symbolic link", |it| std::os::unix::fs::symlink(it.at("file"), it.at("x")), Errno::PERM),
    (
        "a pipe",
        |it| Ok(rustix::fs::mknodat(CWD, it.at("x"), FileType::Fifo, Mode::RUSR, 0)?),
        Errno::PERM,
    ),
    (
        "preallocation",
        |it| {
            let file = File::options().append(true).open(it.at("file"))?;
            Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), 0, 1000)?)
        },
        Errno::OPNOTSUPP,
    ),
    (
        "an extended attribute",
        |it| Ok(rustix::fs::setxattr(it.at("file"), "user.x", b"y", XattrFlags::empty())?),
        Errno::OPNOTSUPP,
    ),
    (
        "removing an extended attribute",
        |it| Ok(rustix::fs::removexattr(it.at("file"), "user.x")?),
        Errno::OPNOTSUPP,
    ),
    (
        "an exchange",
        |it| it.rename_with("file", "full/inside", RenameFlags::EXCHANGE),
        Errno::INVAL,
    ),
    (
        "a name that is no text",
        |it| fs::write(it.0.join(OsStr::from_bytes(b"\xff")), "x"),
        Errno::ILSEQ,
    ),
    ("a long path", |it| fs::create_dir(it.at("full").join("p".repeat(251))), Errno::NAMETOOLONG),
    ("a folder in .ingest", |it| fs::create_dir(it.at(".ingest/folder")), Errno::INVAL),
    ("a title into .ingest", |it| it.rename("file", ".ingest/file"), Errno::INVAL),
    ("a folder into .ingest", |it| it.rename("full", ".ingest/full"), Errno::INVAL),
    ("removing .ingest", |it| fs::remove_dir(it.at(".ingest")), Errno::BUSY),
];

/// What `--read-only` refuses.
const READ_ONLY: [Row; 8] = [
    ("create", |it| File::create_new(it.at("x")).map(drop), Errno::ROFS),
    ("write", |it| File::options().write(true).open(it.at("file")).map(drop), Errno::ROFS),
    ("truncate", |it| File::create(it.at("file")).map(drop), Errno::ROFS),
    ("unlink", |it| fs::remove_file(it.at("file")), Errno::ROFS),
    ("rename", |it| it.rename("file", "x"), Errno::ROFS),
    ("a folder", |it| fs::create_dir(it.at("x")), Errno::ROFS),
    ("remove a folder", |it| fs::remove_dir(it.at("full")), Errno::ROFS),
    ("a hard link", |it| fs::hard_link(it.at("file"), it.at("x")), Errno::ROFS),
];

/// Programs tell by the links whether a folder has folders in it, and whether an open file is gone;
/// by the time of a folder whether its names have changed.
fn assert_links_and_times(root: &Root) {
    let links = |names: [&str; 3]| names.map(|name| fs::metadata(root.at(name)).unwrap().nlink());
    let changed = |name: &str| fs::metadata(root.at(name)).unwrap().modified().unwrap();
    let (full, empty) = (changed("full"), changed("empty"));
    fs::create_dir(root.at("full/below")).unwrap();
    assert_eq!(links(["full", "full/below", "full/inside"]), [3, 2, 1]);
    let made = changed("full");
    assert!(made > full && changed("empty") == empty);
    root.rename("full/below", "empty/below").unwrap();
    assert_eq!(links(["full", "empty", "empty/below"]), [2, 3, 2]);
    assert!(changed("full") > made && changed("empty") > empty);
    fs::write(root.at("empty/below/gone"), "text").unwrap();
    let (written, open) = (changed("empty/below"), File::open(root.at("empty/below/gone")));
    fs::remove_file(root.at("empty/below/gone")).unwrap();
    assert_eq!(open.unwrap().metadata().unwrap().nlink(), 0);
    assert!(changed("empty/below") > written);
    fs::remove_dir(root.at("empty/below")).unwrap();
    assert_eq!(links(["empty", "full", "file"]), [2, 2, 1]);
}

#[test]
fn error_numbers_are_those_of_posix() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store();
    fs::create_dir(dir.path("local")).unwrap();
    Root::filled(&dir.path("local")).fails(&POSIX);
    let mounted = Mounted::start(&dir, "");
    let root = Root::filled(Path::new(&mounted.path("")));
    root.fails(&POSIX);
    root.fails(&NOT_APPLICABLE);
    assert_links_and_times(&root);
    assert_eq!(mounted.stop(), (Some(0), String::new()));
    let mounted = Mounted::start(&dir, "--read-only");
    Root(mounted.path("").into()).fails(&READ_ONLY);
    assert_eq!(mounted.stop(), (Some(0), String::new()));
    dir.ok("check a.store --scrub");
}

/// A small file system, until it is dropped.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn at(path: PathBuf, mebibytes: u32) -> Self {
        fs::create_dir(&path).unwrap();
        let size = format!("size={mebibytes}m");
        let words = ["-t", "tmpfs", "-o", &size, "none"];
        assert!(Command::new("mount").args(words).arg(&path).status().unwrap().success());
        Self(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_copy_for_which_the_spool_has_no_room_leaves_nothing() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store();
    let spool = SmallDisk::at(dir.path("spool"), 1);
    let mounted = Mounted::start(&dir, "--spool spool");
    // A transport stream could be taken in whatever is missing at its end.
    let words = "-v error -f lavfi -i testsrc2=s=640x360:r=25:d=8 -c:v mpeg2video -b:v 4M";
    let film = dir.path("film.ts");
    let made = Command::new("ffmpeg").args(words.split_whitespace()).arg(&film).status();
    assert!(made.unwrap().success() && fs::metadata(&film).unwrap().len() > 2 << 20);
    for name in ["film.ts", ".ingest/film.ts"] {
        let copied = Command::new("cp").arg(&film).arg(mounted.path(name)).output();
        let copied = copied.unwrap();
        let said = String::from_utf8_lossy(&copied.stderr);
        assert!(!copied.status.success() && said.contains("No space left"), "{name}: {said}");
        let names = || {
            let folders = ["", ".ingest"].map(|it| fs::read_dir(mounted.path(it)).unwrap());
            let names = folders.into_iter().flatten();
            names.map(|name| name.unwrap().file_name()).collect::<Vec<_>>()
        };
        // The kernel releases a file some time after its close.
        let start = Instant::now();
        while names() != [".ingest"] {
            assert!(start.elapsed().as_secs() < 60, "{name}: {:?}", names());
        }
    }
    // What fits is a title, also under a name that was written in vain before.
    fs::write(mounted.path("film.ts"), "fits").unwrap();
    let (code, said) = mounted.stop();
    assert_eq!(code, Some(0), "{said}");
    drop(spool);
    assert_eq!(dir.json("ls a.store")["titles"].as_array().unwrap().len(), 1);
}
