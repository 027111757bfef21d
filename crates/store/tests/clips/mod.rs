//! Clips made with FFmpeg, which must be installed, as for ingest; and short forms of ingest and
//! export.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use crate::temp_dir::TempDir;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use store::{IngestOptions, IngestReport, Store, StoreError, Unthrottled, export, ingest};

impl TempDir {
    /// Makes a clip; `arguments` are those between the test inputs and the file's name.
    pub fn clip(&self, name: &str, arguments: &str) -> PathBuf {
        let inputs = "-f lavfi -i testsrc2=size=160x90:rate=25:duration=2 \
                      -f lavfi -i sine=frequency=440:sample_rate=48000:duration=2";
        self.ffmpeg(&format!("{inputs} {arguments}"), name)
    }

    pub fn ffmpeg(&self, arguments: &str, name: &str) -> PathBuf {
        let file = self.file(name);
        let done = Command::new("ffmpeg")
            .args(["-v", "error", "-nostdin", "-y"])
            .args(arguments.split_whitespace())
            .arg(&file)
            .current_dir(&self.0)
            .output()
            .expect("FFmpeg is installed");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{name}: {said}");
        file
    }
}

pub fn take(store: &Store, file: &Path) -> Result<IngestReport, StoreError> {
    take_with(store, file, &IngestOptions::default())
}

pub fn take_with(
    store: &Store,
    file: &Path,
    options: &IngestOptions,
) -> Result<IngestReport, StoreError> {
    let (files, cancel) = ([file.to_owned()], AtomicBool::new(false));
    let outcomes = ingest(store, &files, options, &Unthrottled, &mut |_| {}, &cancel);
    outcomes.into_iter().next().expect("an outcome of the file").result
}

pub fn give(store: &Store, name: &str, out: &Path) -> Result<(), StoreError> {
    export(store, name, out, &Unthrottled, &mut |_| {}, &AtomicBool::new(false)).map(|_| ())
}
