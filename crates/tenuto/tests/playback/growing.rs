//! A title that is watched while it is recorded: HLS `EVENT` playlists in hls.js and Shaka, DASH
//! manifests of type `dynamic` in dash.js.

use crate::chromium::{Row, assert_played};
use crate::nginx::pictures;
use crate::program::{Served, TestDir, program};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn players_in_chromium_watch_a_recording_to_its_end() {
    let dir = TestDir::with_store_of(96);
    // Sound and pictures of a rate at which pieces hold less than two seconds.
    let words = "-f lavfi -i testsrc2=s=320x180:r=25:d=24,noise=alls=20 -f lavfi -i \
                 anoisesrc=d=24:r=48000 -c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -c:a \
                 aac -b:a 320k -f mpegts";
    let words: Vec<&str> = words.split_whitespace().collect();
    let source = dir.encode("live.ts", &words);
    let all = [
        ("hls-live", "master.m3u8"),
        ("dash-live", "manifest.mpd"),
        ("shaka-live", "master.m3u8"),
        ("shaka-live", "manifest.mpd"),
    ];
    assert_watched(&dir, &source, &all);
}

/// In a DASH manifest a pause of the pictures is one segment: DASH-IF's timing model has no gaps
/// between segments, and players show the last picture until the pause is over.
#[test]
fn players_in_chromium_watch_on_after_a_pause_of_the_pictures() {
    let dir = TestDir::with_store_of(96);
    let words = "-f lavfi -i testsrc2=s=320x180:r=25:d=24,noise=alls=20 -f lavfi -i \
                 anoisesrc=d=24:r=48000 -vf select=lt(t\\,8)+gte(t\\,16) -fps_mode passthrough -c:v \
                 libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -c:a aac -b:a 320k -f mpegts";
    let words: Vec<&str> = words.split_whitespace().collect();
    let source = dir.encode("live.ts", &words);
    let all = [("dash-live", "manifest.mpd"), ("shaka-live", "manifest.mpd")];
    let server = assert_watched(&dir, &source, &all);
    let shown = pictures(&source).expect("a film");
    for name in ["manifest.mpd", "master.m3u8"] {
        let url = server.url(&format!("/t/match/{name}"));
        assert_eq!(pictures(&url).as_ref(), Ok(&shown), "{name}");
    }
}

/// Records a film of 24 s as it is sent, and has players watch it from its first segments on.
#[track_caller]
fn assert_watched(dir: &TestDir, source: &str, players: &[(&'static str, &str)]) -> Served {
    let server = dir.serve("--segment 2s");
    let pipe = dir.at("live.pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let mut sender = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-re", "-i", source, "-c", "copy", "-f", "mpegts"])
        .args(["-y", &pipe])
        .stdin(Stdio::null())
        .spawn()
        .expect("ffmpeg runs");
    let mut recording = program(&dir.path(""))
        .args(["record", "a.store", "match", &pipe])
        .stdout(Stdio::null())
        .spawn()
        .expect("tenuto records");
    let url = server.url("/t/match/master.m3u8");
    let is_there = || {
        let got = Command::new("curl").args(["-sf", "-o", "/dev/null", &url]).status();
        got.expect("curl runs").success()
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < until, "no segment is offered");
        std::thread::sleep(Duration::from_millis(200));
    }
    let row = |way: &'static str, name: &str| Row {
        title: "match",
        way,
        url: server.url(&format!("/t/match/{name}")),
        may_stall: true,
        said: "ends at 24 s, errors []".to_owned(),
    };
    let rows: Vec<Row<'_>> = players.iter().map(|(way, name)| row(way, name)).collect();
    assert_played(dir, &rows);
    assert!(recording.wait().expect("it ends").success());
    assert!(sender.wait().expect("it ends").success());
    server
}
