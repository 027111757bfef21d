//! Clips for tests, made with FFmpeg: once for all tests of a program that want the same clip.
//!
//! A start of FFmpeg costs as much processor time as the encoding of a short clip. Clips are kept
//! in memory until the program ends, not on a disk: the next run makes its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The size of a clip up to which it is kept: tests that want the same large one are rare.
const LARGEST_KEPT: usize = 8 << 20;

/// A clip that is being made, was made, or could not be made; empty: it is too large to be kept.
type Made = Arc<OnceLock<Result<Vec<u8>, String>>>;

/// Makes a file by `ffmpeg WORDS PATH`, run in the folder of the file.
///
/// Where all inputs are FFmpeg's own (`-f lavfi`), a later call with the same words and the same
/// extension writes the bytes that the first one made.
///
/// # Errors
/// What FFmpeg says.
///
/// # Panics
/// Where FFmpeg is not installed, or the file cannot be written.
pub fn make(path: &Path, words: &[&str]) -> Result<(), String> {
    if !has_own_inputs(words) {
        return encode(path, words);
    }
    static CLIPS: Mutex<BTreeMap<Vec<String>, Made>> = Mutex::new(BTreeMap::new());
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let key = [extension.as_ref()].iter().chain(words).map(|word| (*word).to_owned()).collect();
    let made = CLIPS.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
    let mut is_here = false;
    let bytes = made.get_or_init(|| {
        is_here = true;
        encode(path, words)?;
        let bytes = std::fs::read(path).expect("FFmpeg made it");
        Ok(if bytes.len() > LARGEST_KEPT { Vec::new() } else { bytes })
    });
    match bytes {
        Err(said) => Err(said.clone()),
        Ok(_) if is_here => Ok(()),
        Ok(bytes) if bytes.is_empty() => encode(path, words),
        Ok(bytes) => {
            std::fs::write(path, bytes).expect("a file in the test's folder");
            Ok(())
        }
    }
}

fn encode(path: &Path, words: &[&str]) -> Result<(), String> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-y", "-v", "error"])
        .args(words)
        .arg(path)
        .current_dir(path.parent().expect("a file has a folder"))
        .output()
        .expect("ffmpeg runs (apt-get install ffmpeg)");
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said()) }
}

/// Whether no input is a file.
fn has_own_inputs(words: &[&str]) -> bool {
    let is_own = |at: usize| at >= 2 && words[at - 2..at] == ["-f", "lavfi"];
    words.iter().enumerate().all(|(at, word)| *word != "-i" || is_own(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clips_of_files_are_made_each_time() {
        let words = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        assert!(has_own_inputs(&words("-f lavfi -i sine -f lavfi -i testsrc2 -c:a aac")));
        assert!(!has_own_inputs(&words("-f lavfi -i sine -i film.mp4 -c:a aac")));
        assert!(!has_own_inputs(&words("-stream_loop 9 -i film.mp4 -c copy")));
    }
}
