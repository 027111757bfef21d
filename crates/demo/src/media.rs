//! Footage for the demo: the user's own, or titles made with FFmpeg.
//!
//! Generated titles vary where it matters to a disk: their mean rates differ (1.5 to 8.5 Mb/s), and
//! the rate changes from scene to scene. Encoding is expensive, so a dozen scenes of four seconds
//! are encoded once (H.264 with B-frames, a key frame every two seconds), and titles are
//! concatenated from them without re-encoding:
//!
//! ```text
//!   scenes   still 0.4 │ slow 1 │ ... │ noise 14 Mb/s            encoded once
//!   title    scene 3, 0, 7, 3, 9, ... until 48 s, so that the mean comes out right; one AAC
//!            track for all
//! ```

use super::children::{Call, Problem, check, write};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The footage that MEDIA names: files, and the media files directly in directories, separated by
/// spaces.
pub(crate) fn users_footage(given: &str) -> Result<Vec<PathBuf>, Problem> {
    let whole = Path::new(given);
    // A single path may have spaces in it.
    let paths: Vec<&Path> = match whole.exists() {
        true => vec![whole],
        false => given.split_whitespace().map(Path::new).collect(),
    };
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let inside = entries.flatten().map(|entry| entry.path());
            files.extend(inside.filter(|path| path.is_file() && is_footage(path)));
        } else if path.is_file() {
            files.push(path.to_owned());
        } else {
            return Err(format!("MEDIA: there is no {}", path.display()));
        }
    }
    // Directories are listed in any order; titles are ingested in the same order on every run.
    files.sort();
    // The demo works from the repository's root, wherever it was called.
    files = files.iter().flat_map(std::path::absolute).collect();
    if files.is_empty() {
        return Err(format!("MEDIA: there is no footage in {given}"));
    }
    Ok(files)
}

/// Whether the file name ends as media files do; the ingest determines the actual format.
fn is_footage(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()))
}

/// Generates titles under `folder`, or returns those of an earlier demo.
pub(crate) fn generated(folder: &Path, stop: &AtomicBool) -> Result<Vec<PathBuf>, Problem> {
    let folder = folder.join(RECIPE);
    let create = std::fs::create_dir_all(&folder);
    create.map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let titles: Vec<PathBuf> = TITLES
        .iter()
        .map(|(name, _, container)| folder.join(format!("{name}.{container}")))
        .collect();
    if titles.iter().all(|title| title.exists()) {
        return Ok(titles);
    }
    let tone = folder.join("tone.m4a");
    if !tone.exists() {
        encode_tone(&tone, stop)?;
    }
    let mut scenes = Vec::new();
    for (number, (source, rate)) in SCENES.iter().enumerate() {
        check(stop)?;
        let file = folder.join(format!("scene-{number}.mp4"));
        if !file.exists() {
            encode_scene(source, *rate, &file, stop)?;
        }
        let bytes = std::fs::metadata(&file).map(|data| data.len()).unwrap_or_default();
        scenes.push(bytes as f64 * 8e-6 / SCENE_SECONDS);
    }
    for (number, (title, (_, rate, _))) in titles.iter().zip(TITLES).enumerate() {
        if !title.exists() {
            let order = scene_order(&scenes, *rate, number);
            write_title(&folder, title, &tone, &order, stop)?;
        }
    }
    Ok(titles)
}

fn encode_scene(source: &str, rate: f64, to: &Path, stop: &AtomicBool) -> Result<(), Problem> {
    let part = to.with_extension("part.mp4");
    let source = source.replace("SIZE", "s=960x540:r=24");
    let call = ffmpeg()
        .args(["-f", "lavfi", "-i", &format!("{source},format=yuv420p")])
        .args(["-t", &SCENE_SECONDS.to_string(), "-c:v", "libx264", "-preset", "veryfast"])
        // Key frames at fixed distances only: titles are joined at them.
        .args(["-bf", "3", "-g", "48", "-keyint_min", "48", "-sc_threshold", "0"])
        .args(["-b:v", &format!("{rate}M"), "-maxrate", &format!("{:.1}M", rate * 2.0)])
        .args(["-bufsize", &format!("{:.1}M", rate * 2.0)])
        .arg(&part);
    finish(&call, &part, to, stop)
}

fn encode_tone(to: &Path, stop: &AtomicBool) -> Result<(), Problem> {
    let part = to.with_extension("part.m4a");
    let call = ffmpeg()
        .args(["-f", "lavfi", "-i", "sine=f=220:b=4:r=48000", "-t", &TITLE_SECONDS.to_string()])
        .args(["-c:a", "aac", "-b:a", "128k", "-ac", "2"])
        .arg(&part);
    finish(&call, &part, to, stop)
}

fn write_title(
    folder: &Path,
    title: &Path,
    tone: &Path,
    order: &[usize],
    stop: &AtomicBool,
) -> Result<(), Problem> {
    let list = folder.join("scenes.txt");
    let mut text = String::new();
    for scene in order {
        let _ = writeln!(text, "file scene-{scene}.mp4");
    }
    write(&list, &text)?;
    let container = title.extension().and_then(|extension| extension.to_str()).unwrap_or("mp4");
    let part = folder.join(format!("part.{container}"));
    let call = ffmpeg()
        .args(["-f", "concat", "-i"])
        .arg(&list)
        .arg("-i")
        .arg(tone)
        .args(["-map", "0:v", "-map", "1:a", "-c", "copy"])
        .args(["-t", &TITLE_SECONDS.to_string()])
        .arg(&part);
    finish(&call, &part, title, stop)
}

/// Runs `call`, which writes `part`, and then renames `part` to `to`: an interrupted demo leaves no
/// incomplete title.
fn finish(call: &Call, part: &Path, to: &Path, stop: &AtomicBool) -> Result<(), Problem> {
    let log = part.with_extension("log");
    call.output(&log, stop)?;
    let _ = std::fs::remove_file(&log);
    std::fs::rename(part, to).map_err(|error| format!("cannot write {}: {error}", to.display()))
}

fn ffmpeg() -> Call {
    Call::new("ffmpeg").args(["-nostdin", "-v", "error", "-y"])
}

/// The order of scenes whose mean rate is close to `wanted` Mb/s; `scenes` has the rate of each.
/// Greedy: the next scene is the one, not used recently, that brings the mean closest. The first
/// depends on `number`, so that titles of equal rate differ.
fn scene_order(scenes: &[f64], wanted: f64, number: usize) -> Vec<usize> {
    let mut order: Vec<usize> = vec![number % scenes.len()];
    let mut sum = scenes[order[0]];
    #[expect(clippy::cast_precision_loss, reason = "a dozen scenes")]
    while (order.len() as f64) * SCENE_SECONDS < TITLE_SECONDS {
        let count = order.len() as f64 + 1.0;
        let recent = &order[order.len().saturating_sub(NOT_AGAIN)..];
        let distance = |scene: &usize| ((sum + scenes[*scene]) / count - wanted).abs();
        let next = (0..scenes.len())
            .filter(|scene| !recent.contains(scene))
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
            .expect("there are more scenes than NOT_AGAIN");
        sum += scenes[next];
        order.push(next);
    }
    order
}

/// Part of the folder's name: a changed recipe generates its titles again.
const RECIPE: &str = "recipe-4";

/// Name, mean video rate in Mb/s, and container. There are enough titles that viewers seldom watch
/// the same one: viewers of one title share its reads.
const TITLES: &[(&str, f64, &str)] = &[
    ("Adagio", 7.4, "mp4"),
    ("Allemande", 6.0, "mkv"),
    ("Arabeske", 4.4, "mp4"),
    ("Badinerie", 5.0, "mov"),
    ("Ballade", 4.6, "mp4"),
    ("Berceuse", 3.5, "mkv"),
    ("Bourree", 2.0, "mp4"),
    ("Chaconne", 6.2, "mov"),
    ("Courante", 3.8, "mp4"),
    ("Divertimento", 4.8, "mkv"),
    ("Elegie", 4.9, "mp4"),
    ("Etuede", 5.2, "mov"),
    ("Fantasie", 7.8, "mp4"),
    ("Fuge", 7.0, "mkv"),
    ("Gavotte", 2.8, "mp4"),
    ("Gigue", 8.4, "mov"),
    ("Humoreske", 4.2, "mp4"),
    ("Impromptu", 6.4, "mkv"),
    ("Intermezzo", 1.4, "mp4"),
    ("Kanon", 6.7, "mov"),
    ("Largo", 2.4, "mp4"),
    ("Menuett", 8.1, "mkv"),
    ("Nocturne", 5.8, "mp4"),
    ("Ouverture", 5.1, "mov"),
    ("Passacaglia", 5.6, "mp4"),
    ("Quodlibet", 4.7, "mkv"),
    ("Rondo", 3.2, "mp4"),
    ("Sarabande", 5.3, "mov"),
    ("Scherzo", 5.4, "mp4"),
    ("Toccata", 4.0, "mkv"),
];

/// FFmpeg source and target rate in Mb/s; still pictures stay below it.
const SCENES: &[(&str, f64)] = &[
    ("smptehdbars=SIZE", 1.0),
    ("gradients=SIZE:speed=0.02", 1.0),
    ("sierpinski=SIZE", 2.0),
    ("testsrc=SIZE", 2.0),
    ("cellauto=s=320x180:r=24:rule=110,scale=960:540", 4.0),
    ("testsrc2=SIZE", 4.0),
    ("life=s=320x180:r=24:ratio=0.3:life_color=#80ff60,scale=960:540", 5.0),
    ("mandelbrot=SIZE", 6.0),
    ("testsrc2=SIZE,noise=alls=12:allf=t", 8.0),
    ("color=c=gray:SIZE,noise=alls=24:allf=t", 12.0),
    ("mandelbrot=SIZE,noise=alls=16:allf=t", 16.0),
];

/// Two GOPs.
const SCENE_SECONDS: f64 = 4.0;

/// Longer than a round of the demo.
const TITLE_SECONDS: f64 = 48.0;

/// The least number of other scenes before a scene is repeated.
const NOT_AGAIN: usize = 2;

/// File name extensions of media.
const EXTENSIONS: &[&str] = &[
    "mp4", "m4v", "mov", "mkv", "webm", "ts", "m2ts", "mts", "mpg", "mpeg", "vob", "avi", "mxf",
    "m4a", "mp3", "flac", "wav", "ogg", "opus",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_come_out_at_their_rates_without_a_scene_twice_in_a_row() {
        let scenes = [0.1, 1.2, 1.8, 0.4, 2.5, 4.9, 5.3, 6.9, 8.5, 12.5, 16.0];
        for (number, (name, wanted, _)) in TITLES.iter().enumerate() {
            let order = scene_order(&scenes, *wanted, number);
            assert_eq!(order.len(), 12, "{name}");
            assert!(order.windows(2).all(|pair| pair[0] != pair[1]), "{name}: {order:?}");
            let mean = order.iter().map(|scene| scenes[*scene]).sum::<f64>() / 12.0;
            assert!((mean - wanted).abs() < 0.6, "{name}: {mean} Mb/s, wanted {wanted}");
        }
    }

    #[test]
    fn own_footage_is_files_and_folders_of_footage() {
        let folder = std::env::temp_dir().join(format!("tenuto demo {}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["b.mkv", "a.MP4", "notes.txt"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let given = folder.to_str().unwrap();
        let names = |files: Vec<PathBuf>| -> Vec<String> {
            files.iter().map(|f| f.file_name().unwrap().to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(users_footage(given).unwrap()), ["a.MP4", "b.mkv"]);
        let file = format!("{given}/notes.txt");
        assert_eq!(
            names(users_footage(&file).unwrap()),
            ["notes.txt"],
            "a file that is named is taken"
        );
        assert!(
            users_footage("no-such-file.mkv").unwrap_err().contains("there is no no-such-file.mkv")
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
