//! Requirements of tests on the machine that runs them: a test without its requirements is skipped,
//! and the skip is counted. Also the rules of HLS ([`hls`]), DASH ([`dash`]), MPEG transport
//! streams ([`ts`]), WebVTT ([`webvtt`]), IMSC ([`ttml`]), thumbnails ([`thumbnails`]) and
//! encryption ([`cenc`]) as checks of what is served, services in memory: a bucket of the S3
//! protocol ([`bucket`]), an etcd ([`etcd`]) and a key server ([`key_server`]), a real server of
//! the S3 protocol ([`gateway`]), and clips to test with ([`clips`]).
//!
//! ```text
//!   testkit::needs!(Root, Fuse);      first line of a test
//!      all available    ──▶ the test runs
//!      one missing      ──▶ a note on stderr, a line in target/skipped-tests; the test returns
//!      one missing that TENUTO_REQUIRE=root,fuse,... names ──▶ the test fails
//! ```
//!
//! `make test` prints the number of skipped tests, the missing requirements and the names of the
//! tests (`scripts/skipped.sh`). For tests only: no crate links it in.

#![warn(missing_docs)]

pub mod bucket;
pub mod cenc;
pub mod clips;
pub mod dash;
pub mod etcd;
mod fragments;
pub mod gateway;
pub mod hls;
pub mod key_server;
pub mod thumbnails;
pub mod ts;
pub mod ttml;
pub mod webvtt;

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// A requirement of a test that not every machine meets.
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
    /// A multicast group in a network namespace of the user's own.
    Multicast,
    /// Transparent huge pages.
    HugePages,
    /// Filters of system calls (seccomp).
    Seccomp,
    /// A program on the `PATH`.
    Program(&'static str),
}

impl Need {
    /// Name in `TENUTO_REQUIRE` and in the summary; of a program the program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Fuse => "fuse",
            Self::Loop => "loop",
            Self::Mount => "mount",
            Self::IoUring => "io_uring",
            Self::Multicast => "multicast",
            Self::HugePages => "huge-pages",
            Self::Seccomp => "seccomp",
            Self::Program(name) => name,
        }
    }

    /// Whether the machine meets the requirement, as far as that can be seen without trying. Tests
    /// that mount, use groups or io_uring, or install filters call [`skip`] when the kernel
    /// refuses.
    fn is_available(self) -> bool {
        match self {
            Self::Root => has_sys_admin(),
            Self::Fuse => is_char_device("/dev/fuse"),
            Self::Loop => is_char_device("/dev/loop-control"),
            Self::HugePages => Path::new("/sys/kernel/mm/transparent_hugepage").exists(),
            Self::Mount | Self::Multicast | Self::IoUring | Self::Seccomp => true,
            Self::Program(name) => on_path(name),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns from the calling test unless all named requirements are met.
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

/// Whether all requirements are met; the first that is not is recorded as the reason of a skip.
///
/// # Panics
/// If `TENUTO_REQUIRE` names the missing requirement.
#[must_use]
pub fn has(needs: &[Need]) -> bool {
    match needs.iter().find(|need| !need.is_available()) {
        Some(missing) => {
            skip(*missing, "not available");
            false
        }
        None => true,
    }
}

/// Records that the calling test, or a part of it, is skipped because the machine refuses `need`.
///
/// # Panics
/// If `TENUTO_REQUIRE` names `need`.
pub fn skip(need: Need, why: &str) {
    let required = std::env::var("TENUTO_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == need.name());
    assert!(
        !is_required,
        "TENUTO_REQUIRE names '{need}', which this machine does not provide ({why}); set the \
         machine up, or remove the name"
    );
    let test = test_name();
    // The test harness hides the output of `eprintln!` for tests that pass, not direct writes.
    let _ = writeln!(std::io::stderr(), "note: {test} skipped: it needs {need} ({why})");
    // A failed write to the summary must not fail the test.
    let _ = record(&format!("{need}\t{test}\t{}\n", why.replace(['\t', '\n'], " ")));
}

/// Name of the running test, such as `cli emulated::its_name`: the test binary, and the name of the
/// thread, which the harness sets to that of the test. With `--test-threads=1` it sets none.
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
    // One write per line, because tests in other processes append, too.
    File::options()
        .append(true)
        .create(true)
        .open(list.join("skipped-tests"))?
        .write_all(line.as_bytes())
}

/// Whether the process has `CAP_SYS_ADMIN`, bit 21 of the effective capabilities.
fn has_sys_admin() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    capabilities.is_some_and(|bits| bits & (1 << 21) != 0)
}

fn is_char_device(path: &str) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device())
}

fn on_path(program: &str) -> bool {
    // Programs for administrators are not on the path of every user.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
    path.split(':').any(|directory| Path::new(directory).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_available_program_causes_no_skip() {
        assert!(has(&[Need::Program("sh")]));
        assert!(!on_path("no-such-program"));
    }

    #[test]
    fn the_test_name_contains_binary_and_test() {
        assert_eq!(test_name(), "testkit tests::the_test_name_contains_binary_and_test");
    }
}
