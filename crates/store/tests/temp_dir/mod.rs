//! A directory for one test, removed at its end.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::path::PathBuf;
use store::{FormatOptions, Store};
use units::ByteCount;

/// A directory for one test, removed at its end.
pub struct TempDir(pub PathBuf);

impl TempDir {
    /// Makes an empty directory; `name` is that of the test.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tenuto-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A new store of 64 MiB in the directory.
    pub fn store(&self) -> Store {
        let options = FormatOptions { size: Some(ByteCount::mib(64)), ..FormatOptions::default() };
        Store::format(&self.file("store"), &options).unwrap();
        Store::open(&self.file("store")).unwrap()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
