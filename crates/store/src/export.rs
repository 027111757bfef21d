//! Export of titles as files.
//!
//! A file is written under a temporary name beside its final one, made durable, and then renamed:
//! the final name never contains an incomplete export, and never replaces an existing file.

use crate::title_file::media_file;
use crate::{BackgroundIo, BorrowedReader, JobProgress, Store, StoreError};
use media::{Body, CueClock, TextForm, TitleKind};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The result of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportReport {
    /// The title's name.
    pub title: String,
    /// The path of the new file.
    pub out: PathBuf,
    /// The length of the file.
    pub bytes: u64,
    /// The paths of the files of its text tracks, in their order.
    pub texts: Vec<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Writes a title to a new file: media as a playable MP4 or MOV, files bit for bit; and each text
/// track to a WebVTT file beside it (`film.0.eng.vtt`). It never overwrites. Checksums are
/// verified: [`StoreError::DataDamaged`] names the first damaged span, and then no file is left.
pub fn export(
    store: &Store,
    name: &str,
    out: &Path,
    io: &dyn BackgroundIo,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<ExportReport, StoreError> {
    let title = store.find(name)?;
    refuse_existing(out)?;
    let reader = store.reader(title.id, io)?;
    let (body, texts) = content(&reader, out)?;
    texts.iter().try_for_each(|(path, _)| refuse_existing(path))?;
    let total = body.len();
    // The name appears only when the file is complete.
    let temporary = TempFile::create(out)?;
    let mut file = BufWriter::with_capacity(BUFFER, &temporary.file);
    let mut done = 0;
    reader.copy(&body, 0..total, &mut |bytes| {
        if cancel.load(Ordering::Relaxed) {
            return Err(StoreError::Cancelled);
        }
        file.write_all(bytes).map_err(StoreError::file("write", out))?;
        done += bytes.len() as u64;
        progress(JobProgress { stage: "exporting", done, total: Some(total) });
        Ok(())
    })?;
    file.flush().map_err(StoreError::file("write", out))?;
    drop(file);
    let mut kept = Vec::new();
    for (path, text) in texts {
        let written = write_text(&path, &text);
        kept.push(path);
        written.inspect_err(|_| remove(&kept[..kept.len() - 1]))?;
    }
    temporary.keep(out).inspect_err(|_| remove(&kept))?;
    let notes = notes(&reader);
    Ok(ExportReport { title: title.name, out: out.to_owned(), bytes: total, texts: kept, notes })
}

/// Refuses a name that is in use: only an early answer before a long copy, `keep` makes sure. A
/// dangling link counts as taken.
fn refuse_existing(out: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(out) {
        Ok(_) => Err(StoreError::file("create", out)(io::ErrorKind::AlreadyExists.into())),
        Err(_) => Ok(()),
    }
}

fn write_text(path: &Path, text: &str) -> Result<(), StoreError> {
    let temporary = TempFile::create(path)?;
    (&temporary.file).write_all(text.as_bytes()).map_err(StoreError::file("write", path))?;
    temporary.keep(path)
}

/// Removes files that belong to a failed export, as far as possible.
fn remove(files: &[PathBuf]) {
    files.iter().for_each(|file| drop(fs::remove_file(file)));
}

/// A file to be written, and its content.
type TextFile = (PathBuf, String);

/// The file, and the files of the text tracks beside it.
fn content(
    reader: &BorrowedReader<'_>,
    out: &Path,
) -> Result<(Arc<Body>, Vec<TextFile>), StoreError> {
    if reader.record().kind == TitleKind::File {
        return Ok((reader.file()?, Vec::new()));
    }
    let packaging = reader.packaging()?;
    let texts = reader.index().texts.iter().zip(0u16..).filter_map(|(text, number)| {
        let mut name = out.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".{number}.{}.vtt", text.description.language));
        Some((
            out.with_file_name(name),
            packaging.text_file(number, TextForm::WebVtt, CueClock::File)?,
        ))
    });
    let texts = texts.collect();
    Ok((media_file(reader.record(), &packaging), texts))
}

fn notes(reader: &BorrowedReader<'_>) -> Vec<String> {
    let empty = |(i, track): (usize, &crate::TrackRecord)| {
        (track.bytes == 0).then(|| format!("track {i} has no data"))
    };
    reader.record().tracks.iter().enumerate().filter_map(empty).collect()
}

/// A temporary file that is removed unless it is kept.
struct TempFile {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl TempFile {
    fn create(out: &Path) -> Result<Self, StoreError> {
        let mut name = OsString::from(".");
        name.push(out.file_name().unwrap_or_default());
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // A server may export to one path for two clients at the same time.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        name.push(format!(".{}-{number}.part", std::process::id()));
        let path = out.with_file_name(name);
        // A killed export of an earlier process with the same number may have left the file.
        let _ = fs::remove_file(&path);
        let file = File::options().write(true).create_new(true).open(&path);
        let file = file.map_err(StoreError::file("create", &path))?;
        Ok(Self { path, file, kept: false })
    }

    /// Makes the file durable under its final name; an error if that name is in use by now.
    fn keep(mut self, out: &Path) -> Result<(), StoreError> {
        // Before the name exists: a power cut must not leave the name with part of the data.
        self.file.sync_all().map_err(StoreError::file("write", out))?;
        // Unlike a rename, a link fails if the name exists; some file systems have no links.
        match fs::hard_link(&self.path, out) {
            // The drop removes the temporary name; the data keeps the new one.
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(StoreError::file("create", out)(error));
            }
            Err(_) => {
                fs::rename(&self.path, out).map_err(StoreError::file("create", out))?;
                self.kept = true;
            }
        }
        // The new name is durable only when its folder is. A bare file name has an empty parent.
        let named = out.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = named.unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(StoreError::file("write", folder))
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.kept {
            // If the removal fails, the name `.part` shows that the file is incomplete.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The size of the buffer that joins small slices (an audio packet's second).
const BUFFER: usize = 1 << 20;
