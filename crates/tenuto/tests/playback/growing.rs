//! A title that is watched while it is recorded: HLS `EVENT` playlists in hls.js and Shaka, DASH
//! manifests of type `dynamic` in dash.js.

use crate::chromium::{Row, assert_played};
use crate::program::{TestDir, program};
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
    let server = dir.serve("--segment 2s");
    let pipe = dir.at("live.pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let mut sender = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-re", "-i", &source, "-c", "copy", "-f", "mpegts"])
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
    assert_played(
        &dir,
        &[
            row("hls-live", "master.m3u8"),
            row("dash-live", "manifest.mpd"),
            row("shaka-live", "master.m3u8"),
            row("shaka-live", "manifest.mpd"),
        ],
    );
    assert!(recording.wait().expect("it ends").success());
    assert!(sender.wait().expect("it ends").success());
}
