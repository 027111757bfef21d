//! Files that are uploaded or downloaded: taken piece by piece into the directory of `--uploads`,
//! and removed when they have been ingested, or were not.
//!
//! ```text
//!   socket ─▶ HTTP thread ──piece──▶ thread `api` ──▶ DIRECTORY/UUID.upload ──▶ ingest ──▶ removed
//!                  ▲───BodyTaken─────────┘
//! ```
//!
//! The room for a file is reserved before its first piece. A file is locked while it is in use, so
//! that a start removes what an earlier server left behind, and nothing of another one.

use super::ingests::IngestState;
use super::problem::Problem;
use crate::messages::{WorkerHandle, WorkerMessage};
use crate::wire;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use device::sockets::ConnectionId;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use units::{Hinted, Reason};
use uuid::Uuid;

/// The directory of `--uploads`.
#[derive(Debug)]
pub(super) struct UploadDirectory {
    path: PathBuf,
    /// Files in it.
    files: AtomicUsize,
}

/// The body of a request as it arrives.
#[derive(Debug)]
pub(crate) struct BodyPieces {
    /// Bytes of all pieces.
    pub(crate) length: u64,
    /// The pieces in their order. It ends early where the client has disconnected, or is too slow.
    pub(crate) pieces: Receiver<Vec<u8>>,
    /// Set before it ends because the client is too slow.
    pub(crate) is_slow: Arc<AtomicBool>,
    /// The HTTP thread that sends the next piece when it is told that one was taken.
    pub(crate) worker: WorkerHandle,
    pub(crate) connection: ConnectionId,
}

/// A file that was uploaded; removed when it is dropped.
#[derive(Debug)]
pub(super) struct UploadedFile<'a> {
    path: PathBuf,
    // Locked.
    file: File,
    directory: &'a UploadDirectory,
}

/// Whether a directory is there for uploads. Makes no file in it.
pub(crate) fn check_uploads(path: &Path) -> Result<(), Reason> {
    fs::read_dir(path).map(drop).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &io::Error) -> Reason {
    let about = format!("--uploads {}", path.display());
    Reason::new(error.to_string(), "name a directory that tenuto may write to").about(about)
}

impl UploadDirectory {
    /// Removes the files that a server left behind, and checks that files can be made.
    pub(super) fn open(path: &Path) -> Result<Self, Reason> {
        let failed = |error: io::Error| unusable(path, &error);
        for entry in fs::read_dir(path).map_err(failed)? {
            let left = entry.map_err(failed)?.path();
            let is_upload = left.extension().is_some_and(|end| end == ENDING);
            if is_upload && File::open(&left).is_ok_and(|file| file.try_lock().is_ok()) {
                fs::remove_file(&left).map_err(failed)?;
            }
        }
        let directory = Self { path: path.to_owned(), files: AtomicUsize::new(0) };
        drop(directory.file().map_err(failed)?);
        Ok(directory)
    }

    /// A file with room for this many bytes.
    pub(super) fn reserve(&self, length: u64) -> Result<UploadedFile<'_>, Problem> {
        let reserved = self.file().map_err(|error| not_kept(&error))?;
        // After it counts: of several that come at the same time none is one too many.
        if self.files.load(Ordering::Relaxed) > MOST_FILES {
            return Err(Problem::busy("as many uploads as may be are under way"));
        }
        let flags = rustix::fs::FallocateFlags::empty();
        match length {
            0 => {}
            length => match rustix::fs::fallocate(&reserved.file, flags, 0, length) {
                // Without it a file system that fills up is noticed later.
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
                Err(error) => return Err(not_kept(&error.into())),
            },
        }
        Ok(reserved)
    }

    /// Takes a whole body into a file with room for it.
    pub(super) fn receive<'a>(
        mut uploaded: UploadedFile<'a>,
        body: &BodyPieces,
        ingest: &IngestState,
    ) -> Result<UploadedFile<'a>, Problem> {
        let mut done = 0;
        while done < body.length {
            let piece = match body.pieces.recv_timeout(LOOK) {
                Ok(piece) => piece,
                Err(RecvTimeoutError::Timeout) => {
                    ingest.check()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) if body.is_slow.load(Ordering::Relaxed) => {
                    return Err(Problem::too_slow());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let message = "the client has disconnected before the end of its file";
                    return Err(Problem::new(408, "disconnected", message, "send all of it"));
                }
            };
            ingest.check()?;
            uploaded.append(&piece)?;
            done += piece.len() as u64;
            ingest.received(done);
            body.worker.send(WorkerMessage::BodyTaken { connection: body.connection });
        }
        Ok(uploaded)
    }

    /// A new file.
    fn file(&self) -> io::Result<UploadedFile<'_>> {
        let path = self.path.join(format!("{}.{ENDING}", Uuid::new_v4()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.try_lock()?;
        self.files.fetch_add(1, Ordering::Relaxed);
        Ok(UploadedFile { path, file, directory: self })
    }
}

impl UploadedFile<'_> {
    /// Writes the next bytes.
    pub(super) fn append(&mut self, piece: &[u8]) -> Result<(), Problem> {
        self.file.write_all(piece).map_err(|error| not_kept(&error))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A failure without the name of this file, which its sender does not know, and with parameters
    /// of the API for options of the command.
    pub(super) fn unnamed(&self, failure: wire::Failure) -> wire::Failure {
        let path = self.path.display().to_string();
        let as_asked = |text: String, file: &str| {
            let text = text.replace(&path, file);
            PARAMETERS
                .iter()
                .fold(text, |text, (option, parameter)| text.replace(option, parameter))
        };
        let hint = failure.hint.map(|hint| as_asked(hint, "FILE"));
        wire::Failure { message: as_asked(failure.message, "the file"), hint, ..failure }
    }
}

impl Drop for UploadedFile<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.directory.files.fetch_sub(1, Ordering::Relaxed);
    }
}

fn not_kept(error: &io::Error) -> Problem {
    let message = format!("the file cannot be kept until it is ingested: {error}");
    let hint = error.hint().unwrap_or_else(|| "make room in the directory of --uploads".to_owned());
    Problem::new(507, "no-room", message, &hint)
}

/// Options of `ingest`, as its failures name them, and what they are in an address.
const PARAMETERS: [(&str, &str); 5] = [
    ("--as file", "?as=file"),
    ("--program NUMBER", "?program=NUMBER"),
    ("--program", "?program="),
    ("--allow-damaged", "?allow-damaged=true"),
    ("--thumbnails", "?thumbnails="),
];
/// The most uploads at the same time.
const MOST_FILES: usize = 4;
/// Time between two looks at whether an ingest was cancelled.
const LOOK: Duration = Duration::from_millis(250);
/// The ending of the files' names.
const ENDING: &str = "upload";
