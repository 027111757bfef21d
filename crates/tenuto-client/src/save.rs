//! Saves the media of the first viewer.

use crate::ClientError;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use units::Reason;

/// The files being written.
#[derive(Debug)]
pub(crate) struct Saver {
    wanted: PathBuf,
    files: Vec<(PathBuf, File)>,
}

impl Saver {
    pub(crate) fn new(wanted: &Path) -> Self {
        Self { wanted: wanted.to_owned(), files: Vec::new() }
    }

    /// Opens one file per track: video, then audio; a single track gets the unchanged name.
    pub(crate) fn open(&mut self, tracks: usize) -> Result<(), ClientError> {
        for track in self.files.len()..tracks {
            let path = if tracks == 1 { self.wanted.clone() } else { named(&self.wanted, track) };
            let file = File::create(&path).map_err(|error| cannot_write(&path, &error))?;
            self.files.push((path, file));
        }
        Ok(())
    }

    /// Writes bytes at `offset` of a track's file, or at its end.
    pub(crate) fn write(
        &mut self,
        track: usize,
        offset: Option<u64>,
        bytes: &[u8],
    ) -> Result<(), ClientError> {
        let Some((path, file)) = self.files.get_mut(track) else { return Ok(()) };
        let place = offset.map_or(SeekFrom::End(0), SeekFrom::Start);
        file.seek(place)
            .and_then(|_| file.write_all(bytes))
            .map_err(|error| cannot_write(path, &error))
    }

    pub(crate) fn paths(self) -> Vec<PathBuf> {
        self.files.into_iter().map(|(path, _)| path).collect()
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> ClientError {
    let message = format!("cannot write {}: {error}", path.display());
    Reason::new(message, "choose another place with --save").into()
}

/// The name of a track's file: `film.mp4` becomes `film.video.mp4` and `film.audio.mp4`.
fn named(path: &Path, track: usize) -> PathBuf {
    let kind = if track == 0 { "video" } else { "audio" };
    match path.extension() {
        Some(extension) => {
            let mut kind = std::ffi::OsString::from(kind);
            kind.push(".");
            kind.push(extension);
            path.with_extension(kind)
        }
        None => path.with_extension(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_their_tracks() {
        let shown = |path, track| named(Path::new(path), track).display().to_string();
        assert_eq!(shown("a/film.mp4", 0), "a/film.video.mp4");
        assert_eq!(shown("a/film.mp4", 1), "a/film.audio.mp4");
        assert_eq!(shown("film", 1), "film.audio");
    }
}
