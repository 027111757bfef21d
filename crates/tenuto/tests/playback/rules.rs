//! The rules of HLS for every title that a server serves, and `CODECS` beside what ffprobe finds in
//! the segments.

use crate::program::Served;
use serde_json::Value;
use std::process::Command;

/// Checks the HLS of a served title by the rules of RFC 8216.
pub(crate) fn check(server: &Served, title: &str) {
    let folder = format!("/t/{title}/");
    let multivariant = String::from_utf8(server.get(&format!("{folder}master.m3u8")));
    let multivariant = multivariant.expect("a playlist is UTF-8");
    let mut fetch = |uri: &str| server.get(&format!("{folder}{uri}"));
    let tracks = testkit::hls::check(title, &multivariant, &mut fetch);
    let streams = probe(&server.url(&format!("{folder}master.m3u8")));
    assert_eq!(streams.len(), tracks.len(), "{title}: {streams:?}");
    for track in tracks {
        let of_kind = |stream: &&Value| (stream["codec_type"] == "video") == track.video;
        let wanted: Vec<String> = streams.iter().filter(of_kind).flat_map(codec).collect();
        assert!(
            wanted.iter().any(|part| track.codec == *part || track.codec.starts_with(part)),
            "{title}, {}: CODECS has {}, ffprobe finds {wanted:?} in {streams:?}",
            track.uri,
            track.codec
        );
    }
}

/// The streams that ffprobe finds in the initialization segments and the first media segments.
fn probe(master: &str) -> Vec<Value> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-of", "json", "-show_streams", master])
        .output()
        .expect("ffprobe runs (apt-get install ffmpeg)");
    let mut found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let Value::Array(streams) = found["streams"].take() else { panic!("{master}: {found}") };
    streams
}

/// The possible codec names of a stream, or how they begin.
fn codec(stream: &Value) -> Vec<String> {
    let text = |name: &str| stream[name].as_str().unwrap_or_default();
    let level = stream["level"].as_i64().unwrap_or(0);
    let tag = text("codec_tag_string");
    let one = |name: String| vec![name];
    match text("codec_name") {
        "h264" => {
            let profile = match text("profile") {
                "Constrained Baseline" | "Baseline" => "42",
                "Main" => "4d",
                "High" => "64",
                "High 10" => "6e",
                "High 4:2:2" => "7a",
                "High 4:4:4 Predictive" => "f4",
                other => panic!("profile {other}"),
            };
            let compatible = ["00", "40", "10", "c0", "e0"];
            compatible.map(|flags| format!("{tag}.{profile}{flags}{level:02x}")).to_vec()
        }
        "hevc" => {
            let profile = if text("profile") == "Main 10" { "2.4" } else { "1.6" };
            one(format!("{tag}.{profile}.L{level}"))
        }
        "av1" => one(format!("av01.0.{level:02}M.08")),
        "vp9" => one("vp09.00.".to_owned()),
        // QuickTime's own entries have no parameters.
        "mpeg2video" if tag != "mp4v" => one(tag.to_owned()),
        "mpeg2video" => one("mp4v.61".to_owned()),
        "mpeg4" => one("mp4v.20".to_owned()),
        "mjpeg" => vec!["jpeg".to_owned(), "mp4v.6C".to_owned()],
        "aac" => one("mp4a.40.2".to_owned()),
        "vorbis" => one("mp4a.DD".to_owned()),
        "mp3" => vec!["mp4a.6B".to_owned(), "mp4a.69".to_owned()],
        "ac3" => one("ac-3".to_owned()),
        "eac3" => one("ec-3".to_owned()),
        "opus" => one("opus".to_owned()),
        "flac" => one("fLaC".to_owned()),
        // A code may end with a space, which CODECS must not have.
        name if matches!(name, "prores" | "rawvideo") || name.starts_with("pcm_") => {
            one(tag.replace(' ', "_"))
        }
        name => panic!("no rule for {name}"),
    }
}
