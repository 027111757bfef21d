//! A directory for one test, gone afterwards.

use std::path::{Path, PathBuf};

/// See the head of this file.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory named after the test, on the disk that the build is on.
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("{}-{}", test.replace(' ', "-"), std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
