//! Titles with several audio tracks: HLS offers each, the MP4 file has all of them.

use crate::client::playlist_uris;
use crate::fixture::{TestStore, eventually, ffmpeg};
use crate::playing::frames;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use units::BitRate;

/// Small pictures, and noise in three languages, of which the second is the default.
fn film(directory: &Path) -> PathBuf {
    let file = directory.join("film.mkv");
    let sound = |seed: u32| format!("-f lavfi -i anoisesrc=d=8:r=48000:seed={seed}");
    let inputs = [sound(1), sound(2), sound(3)].join(" ");
    ffmpeg(
        &format!(
            "-f lavfi -i testsrc2=s=160x90:r=25:d=8 {inputs} -map 0 -map 1 -map 2 -map 3 \
             -c:v libx264 -preset ultrafast -g 25 -c:a flac -metadata:s:a:0 language=ger \
             -metadata:s:a:1 language=eng -metadata:s:a:2 language=fre -disposition:a:0 0 \
             -disposition:a:1 default"
        ),
        &file,
    );
    file
}

/// Kind, language and default flag of each stream that `ffprobe` finds.
fn streams(input: &str) -> Vec<String> {
    let entries = "stream=codec_type:stream_disposition=default:stream_tags=language";
    let output = Command::new("ffprobe")
        .args(["-v", "warning", "-of", "csv=p=0", "-show_entries", entries, input])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_file_has_all_audio_tracks_and_enables_the_default_one() {
    let fixture = TestStore::with(&[]);
    let film = film(&fixture.directory);
    fixture.add(&[&film]);
    let serving = fixture.serve();
    let served = serving.url("/t/film.mp4");
    let wanted = ["video,1,und", "audio,1,eng", "audio,0,ger", "audio,0,fre"];
    assert_eq!(streams(&served), wanted);
    // The default track is the first one in the file, and the second one in the source.
    let order = [0, 2, 1, 3];
    let frames_of = |all: &[String], stream: usize| -> Vec<String> {
        let number = format!("{stream} ");
        let frames = all.iter().filter_map(|frame| frame.strip_prefix(&number));
        frames.map(str::to_owned).collect()
    };
    let [given, wanted] = [served.as_str(), film.to_str().unwrap()].map(frames);
    for (stream, source) in order.into_iter().enumerate() {
        let (given, wanted) = (frames_of(&given, stream), frames_of(&wanted, source));
        assert!(given.len() > 50, "stream {stream}: {} frames", given.len());
        assert!(given == wanted, "stream {stream} differs from stream {source} of the source");
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
}

#[test]
fn a_session_of_the_file_reserves_all_of_its_tracks() {
    let fixture = TestStore::with(&[]);
    let film = film(&fixture.directory);
    let one = fixture.directory.join("one.mkv");
    ffmpeg(&format!("-i {} -map 0:0 -map 0:1 -c copy", film.display()), &one);
    fixture.add(&[&film, &one]);
    let admitted = |path: &str| -> u64 {
        // The network is the short resource, because its limit is equal on every machine.
        let serving = fixture.serve_with(|config| config.network = Some(BitRate(150_000_000)));
        let mut client = serving.client();
        let count = (0..200).take_while(|_| client.get(path).status != 503).count() as u64;
        eventually("all sessions are counted", || serving.status("/admitted") == count);
        count
    };
    let (with_one, with_three) = (admitted("/t/one.mp4"), admitted("/t/film.mp4"));
    // About 0.8 Mb/s with one audio track, about 2.2 Mb/s with three.
    assert!(with_three > 0 && with_one > 2 * with_three, "{with_one} and {with_three}");
}

/// All of a track is less than one read, and the default language is never fetched.
#[test]
fn the_position_of_a_viewer_counts_the_segments_of_the_tracks_that_it_plays() {
    let fixture = TestStore::with(&[]);
    let film = film(&fixture.directory);
    fixture.add(&[&film]);
    let serving = fixture.serve_with(|config| config.segment = Duration::from_secs(1));
    let mut client = serving.client();
    let master = "/t/film/master.m3u8";
    let list = client.get(master).text().to_owned();
    let french = list.lines().find(|line| line.contains("LANGUAGE=\"fr")).expect("French");
    let video = list.lines().find(|line| !line.starts_with('#')).expect("a rendition");
    let [sound, pictures] = [french, video].map(|line| {
        let list = &playlist_uris(line, master)[0];
        // The first is that of the initialization segment.
        playlist_uris(client.get(list).text(), list).split_off(1)
    });
    for (pieces, expected) in [(0..2, 2.0), (2..5, 5.0), (5..8, 8.0)] {
        for segment in pictures[pieces.clone()].iter().chain(&sound[pieces]) {
            assert!(client.get(segment).whole, "{segment}");
        }
        let session = client.get("/sessions").json()["sessions"][0].clone();
        let until = session["delivered_until"].as_f64().unwrap();
        // A segment of sound ends with a whole frame of it, of a tenth of a second.
        assert!((until - expected).abs() < 0.15, "{until} s and not {expected} s: {session}");
    }
}
