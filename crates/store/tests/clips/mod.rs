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

/// A file of boxes in which the first box at this path has another content. The boxes behind it
/// move, so that it must not be in front of samples.
pub fn with_content(file: &[u8], path: &[&[u8; 4]], change: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let Some((kind, inner)) = path.split_first() else { return change(file) };
    let (mut out, mut at) = (Vec::new(), 0);
    loop {
        let size = u32::from_be_bytes(*file[at..].first_chunk().expect("a box")) as usize;
        if &file[at + 4..at + 8] != *kind {
            out.extend_from_slice(&file[at..at + size]);
            at += size;
            continue;
        }
        out.extend(boxed(kind, &with_content(&file[at + 8..at + size], inner, change)));
        out.extend_from_slice(&file[at + size..]);
        return out;
    }
}

/// A box with this content.
pub fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len() + 8).expect("a small box");
    [&size.to_be_bytes(), &kind[..], content].concat()
}

/// Adds boxes to the first sample entry of the first track of an MP4 file, whose `moov` is behind
/// its samples.
pub fn add_to_sample_entry(file: &Path, boxes: &[u8]) {
    let added = |stsd: &[u8]| [&stsd[..8], &boxed_more(&stsd[8..], boxes)].concat();
    let file_bytes = std::fs::read(file).expect("a file that was made");
    std::fs::write(file, with_content(&file_bytes, STSD, &added)).expect("a file");
}

/// A box with this behind its content.
pub fn boxed_more(whole: &[u8], more: &[u8]) -> Vec<u8> {
    let kind = whole[4..].first_chunk().expect("a box");
    boxed(kind, &[&whole[8..], more].concat())
}

/// The path of the sample description of the first track.
pub const STSD: &[&[u8; 4]] = &[b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd"];

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
