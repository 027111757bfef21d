//! Several files as one title in several sizes, and files that cannot be combined.
//!
//! The clips are made with FFmpeg, which must be installed (it is what ingest needs, too).

mod temp_dir;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use store::{IngestOptions, Store, StoreError, TitleRecord, Unthrottled, ingest};
use temp_dir::TempDir;

impl TempDir {
    fn clip(&self, name: &str, size: &str, encode: &str) -> PathBuf {
        let file = self.0.join(name);
        let inputs = format!(
            "-f lavfi -i testsrc2=size={size}:rate=25:duration=3 \
             -f lavfi -i sine=frequency=440:sample_rate=48000:duration=3"
        );
        let done = Command::new("ffmpeg")
            .args(["-v", "error", "-nostdin", "-y"])
            .args(inputs.split_whitespace().chain(encode.split_whitespace()))
            .arg(&file)
            .output()
            .expect("FFmpeg is installed");
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        file
    }
}

fn take(store: &Store, files: &[&Path]) -> Result<(TitleRecord, Vec<String>), StoreError> {
    let files: Vec<PathBuf> = files.iter().map(|file| (*file).to_owned()).collect();
    let options =
        IngestOptions { name: Some("film".into()), renditions: true, ..IngestOptions::default() };
    let never = AtomicBool::new(false);
    let mut outcomes = ingest(store, &files, &options, &Unthrottled, &mut |_| {}, &never);
    assert_eq!(outcomes.len(), 1, "one title, one outcome");
    outcomes.remove(0).result.map(|report| (report.title, report.left_out))
}

const X264: &str = "-c:v libx264 -preset ultrafast -g 25 -sc_threshold 0 -c:a aac";

#[test]
fn files_with_the_same_key_frames_become_one_title() {
    let dir = TempDir::new("renditions");
    let large = dir.clip("large.mp4", "640x360", X264);
    // Another container with another timescale.
    let small = dir.clip("small.mkv", "320x180", X264);
    let tiny = dir.clip("tiny.mp4", "160x90", "-an -c:v libx264 -g 25 -sc_threshold 0 -bf 2");
    let store = dir.store();
    let (title, left_out) = take(&store, &[&large, &small, &tiny]).unwrap();
    let index = store.index(title.id).unwrap();
    let shapes: Vec<(u32, u16)> = index
        .tracks
        .iter()
        .map(|track| (track.description.height, track.description.channels))
        .collect();
    assert_eq!(shapes, [(360, 0), (180, 0), (90, 0), (0, 1)]);
    assert!(index.tracks[..3].iter().all(|track| track.ldus.len() == 75), "every picture");
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert!(left_out[0].contains("aac") && left_out[0].contains("small.mkv"), "{left_out:?}");
}

#[test]
fn pictures_that_begin_after_the_sound_do_so_in_each_rendition() {
    let dir = TempDir::new("late-renditions");
    let late = "-filter:v setpts=PTS+1/TB -c:v libx264 -preset ultrafast -g 25 -sc_threshold 0";
    let large = dir.clip("large.mp4", "640x360", &format!("{late} -c:a aac"));
    // Without sound; FFmpeg puts the beginning of each file to zero.
    let small = dir.clip("small.mkv", "320x180", &format!("{late} -an -bf 2"));
    let stream = dir.clip("stream.ts", "160x90", &format!("{late} -an"));
    let store = dir.store();
    let (title, _) = take(&store, &[&large, &small, &stream]).unwrap();
    let index = store.index(title.id).unwrap();
    let packaging = media::Packaging::new(index, &media::PackagingOptions::default()).unwrap();
    let first: Vec<f64> = (0..3)
        .map(|track| {
            let entry = packaging.entry(track, units::MediaTime::ZERO).unwrap();
            packaging.pushed(track, entry).unwrap().shown.since_start().as_secs_f64()
        })
        .collect();
    assert!(first.iter().all(|first| (first - 1.0).abs() < 0.002), "{first:?}");
}

#[test]
fn files_with_other_key_frames_are_refused_and_leave_nothing() {
    let dir = TempDir::new("no-renditions");
    let large = dir.clip("large.mp4", "640x360", X264);
    let other = dir.clip("other.mp4", "320x180", &X264.replace("-g 25", "-g 24"));
    let short = dir.clip("short.mp4", "320x180", &format!("{X264} -t 1.5"));
    let sound = dir.clip("sound.m4a", "320x180", "-vn -c:a aac");
    let store = dir.store();
    let before = store.info();
    let cases: &[(&Path, &str)] = &[
        (&other, "the first file has one at 1.000 s, this one at 0.960 s"),
        (&short, "the first file has one at 2.000 s, this one none"),
        (&sound, "0 video tracks"),
    ];
    for (file, why) in cases {
        let error = take(&store, &[&large, file]).unwrap_err();
        assert_eq!(error.code(), "refused", "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(store.info(), before, "nothing is left behind");
    }
    let error = take(&store, &[&sound, &large]).unwrap_err();
    assert!(error.to_string().contains("it has no video"), "{error}");
    let error = take(&store, &[&large, &dir.0.join("missing.mp4")]).unwrap_err();
    assert_eq!(error.code(), "file", "{error}");
}
