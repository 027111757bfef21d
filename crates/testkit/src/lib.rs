//! What a test needs of the machine it runs on.
//!
//! ```text
//!   testkit::needs!(Root, Fuse);      first line of a test
//!      all there      ──▶ the test runs
//!      one missing    ──▶ a note past the harness, a line in target/skipped-tests; the end
//!      and in TENUTO_REQUIRE=root,fuse,... ──▶ the test fails
//! ```
//!
//! `make test` prints how many tests were skipped, for want of what, and their names
//! (`scripts/skipped.sh`). For tests only: no crate links it in.

#![warn(missing_docs)]

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Something that a test needs and not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// `CAP_SYS_ADMIN`, as root has it outside of most containers.
    Root,
    /// `/dev/fuse`.
    Fuse,
    /// Loop devices.
    Loop,
    /// Mounting a file system, as root or in a namespace of the user's own.
    Mount,
    /// io_uring, with locked memory for its rings.
    IoUring,
    /// Transparent huge pages.
    HugePages,
    /// Filters of system calls (seccomp).
    Seccomp,
    /// A program on the `PATH`.
    Program(&'static str),
}

impl Need {
    /// Its name in `TENUTO_REQUIRE` and in the summary; a program's is its own.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Fuse => "fuse",
            Self::Loop => "loop",
            Self::Mount => "mount",
            Self::IoUring => "io_uring",
            Self::HugePages => "huge-pages",
            Self::Seccomp => "seccomp",
            Self::Program(name) => name,
        }
    }

    /// Whether it is there, as far as looking tells. Mounting, rings and filters are found out by
    /// trying: tests that need them call [`skip`] when they are refused.
    fn is_there(self) -> bool {
        match self {
            Self::Root => has_sys_admin(),
            Self::Fuse => is_char_device("/dev/fuse"),
            Self::Loop => is_char_device("/dev/loop-control"),
            Self::HugePages => Path::new("/sys/kernel/mm/transparent_hugepage").exists(),
            Self::Mount | Self::IoUring | Self::Seccomp => true,
            Self::Program(name) => on_path(name),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Ends the test that it stands in unless everything named is there.
///
/// ```text
/// testkit::needs!(Root, Fuse, Program("mkfs.ext2"));
/// ```
#[macro_export]
macro_rules! needs {
    ($($need:ident $(($program:expr))?),+ $(,)?) => {
        if !$crate::has(&[$($crate::Need::$need $(($program))?),+]) {
            return;
        }
    };
}

/// Whether all of these are there; the first that is not is recorded as the reason of a skip.
///
/// # Panics
/// When it is one that `TENUTO_REQUIRE` names.
#[must_use]
pub fn has(needs: &[Need]) -> bool {
    match needs.iter().find(|need| !need.is_there()) {
        Some(missing) => {
            skip(*missing, "it is not there");
            false
        }
        None => true,
    }
}

/// Records that the calling test, or a part of it, is skipped because the machine refuses `need`.
///
/// # Panics
/// When `TENUTO_REQUIRE` names it: then the machine was to have it.
pub fn skip(need: Need, why: &str) {
    let required = std::env::var("TENUTO_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == need.name());
    assert!(
        !is_required,
        "TENUTO_REQUIRE names '{need}', and this test cannot have it ({why}); set the machine up, \
         or take the name out"
    );
    let test = test_name();
    // Past the macros: the harness hides what they print of a test that passes.
    let _ = writeln!(std::io::stderr(), "note: {test} skipped: it needs {need} ({why})");
    // A summary that cannot be written does not fail a test.
    let _ = record(&format!("{need}\t{test}\t{}\n", why.replace(['\t', '\n'], " ")));
}

/// `cli emulated::its_name`: the test binary, and the harness's thread, which has the test's name.
/// With `--test-threads=1` the harness names no thread.
fn test_name() -> String {
    let program = std::env::current_exe().ok();
    let stem = program.as_deref().and_then(Path::file_stem).unwrap_or_default().to_string_lossy();
    // Cargo appends a hash to the binary's name.
    let binary = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name).to_owned();
    match std::thread::current().name() {
        Some(name) if name != "main" => format!("{binary} {name}"),
        _ => format!("{binary} (a test)"),
    }
}

fn record(line: &str) -> std::io::Result<()> {
    let list = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")),
        PathBuf::from,
    );
    // One write of one line: tests in other processes append, too.
    File::options()
        .append(true)
        .create(true)
        .open(list.join("skipped-tests"))?
        .write_all(line.as_bytes())
}

/// Bit 21 of the effective capabilities.
fn has_sys_admin() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let rights = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    rights.is_some_and(|rights| rights & (1 << 21) != 0)
}

fn is_char_device(path: &str) -> bool {
    fs::metadata(path).is_ok_and(|about| about.file_type().is_char_device())
}

fn on_path(program: &str) -> bool {
    // Where administrators' programs lie is not on everybody's path.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
    path.split(':').any(|directory| Path::new(directory).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_no_reason_to_skip() {
        assert!(has(&[Need::Program("sh")]));
        assert!(!on_path("no-such-program"));
    }

    #[test]
    fn the_binary_and_the_test_are_named() {
        assert_eq!(test_name(), "testkit tests::the_binary_and_the_test_are_named");
    }
}
