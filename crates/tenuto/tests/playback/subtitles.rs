//! Subtitles in real players: the words of the source, at their times.

use crate::chromium::{Row, assert_played};
use crate::files::ADMITS_ALL;
use crate::program::TestDir;
use crate::rules;
use std::process::Command;

/// Cues that touch, overlap and last over several segments, with text that WebVTT escapes.
const ENGLISH: &str = "1\n00:00:00,400 --> 00:00:01,600\nFirst & <i>one</i>\n\n\
                       2\n00:00:01,600 --> 00:00:04,200\nOver <all>\nof it\n\n\
                       3\n00:00:04,600 --> 00:00:05,800\n3 --> 4\n";
const FRENCH: &str = "1\n00:00:01,000 --> 00:00:03,000\nDéjà vu\n\n\
                      2\n00:00:02,000 --> 00:00:05,000\nOui\n";

/// What players show of the English text.
const SHOWN: &str = "0.4-1.6 First & one; 1.6-4.2 Over|of it; 4.6-5.8 3 --> 4";

/// As Shaka shows them of IMSC: cut where segments of 2 s end.
const CUT: &str =
    "0.4-1.6 First & one; 1.6-2 Over|of it; 2-4 Over|of it; 4-4.2 Over|of it; 4.6-5.8 3 --> 4";

/// Two segments at least.
const SEGMENTS: &str = "--segment 2s --admission none";

/// Six seconds with three text tracks.
fn film(dir: &TestDir) -> String {
    std::fs::write(dir.path("english.srt"), ENGLISH).expect("a file in the test's folder");
    std::fs::write(dir.path("french.srt"), FRENCH).expect("a file in the test's folder");
    let (english, french) = (dir.at("english.srt"), dir.at("french.srt"));
    let words = format!(
        "-f lavfi -i testsrc2=s=320x180:r=25:d=6 -f lavfi -i sine=440:d=6:r=48000 -i {english} \
         -i {french} -map 0 -map 1 -map 2 -map 3 -map 2 -c:v libx264 -preset ultrafast -bf 2 \
         -b_strategy 0 -g 25 -pix_fmt yuv420p -c:a aac -c:s mov_text \
         -metadata:s:s:0 language=eng -metadata:s:s:1 language=fra -metadata:s:s:2 language=eng \
         -disposition:s:0 default -disposition:s:1 0 -disposition:s:2 hearing_impaired"
    );
    let source = dir.encode("film.mp4", &words.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    source
}

/// The cues of a text track as FFmpeg writes them; its words from `level` on are an error.
fn by_ffmpeg(level: &str, input: &str, text: usize) -> String {
    // Otherwise FFmpeg's times would begin with the samples of AAC before the first audible one.
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", level, "-copyts", "-i", input])
        .args(["-map", &format!("0:s:{text}"), "-c:s", "subrip", "-f", "srt", "-"])
        .output()
        .expect("ffmpeg runs (apt-get install ffmpeg)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{input}: {said}");
    String::from_utf8(output.stdout).expect("text is UTF-8")
}

#[test]
fn ffmpeg_reads_the_cues_of_the_source() {
    let dir = TestDir::with_store_of(96);
    let source = film(&dir);
    let info = dir.json("info a.store film");
    let told: Vec<String> = info["text_list"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|text| ["language", "default", "hearing_impaired", "cues"].map(|it| &text[it]))
        .map(|[language, default, impaired, cues]| {
            format!("{language} {default} {impaired} {cues}")
        })
        .collect();
    assert_eq!(told, ["\"eng\" true false 3", "\"fra\" false false 2", "\"eng\" false true 3"]);
    let server = dir.serve(SEGMENTS);
    rules::check(&server, "film");
    for text in 0..3 {
        let wanted = by_ffmpeg("warning", &source, text);
        assert!(wanted.matches(" --> ").count() >= 2, "{wanted}");
        let file = server.url(&format!("/t/film/text/{text}.vtt"));
        assert_eq!(by_ffmpeg("warning", &file, 0), wanted, "{file}");
        let dash = server.url("/t/film/manifest.mpd");
        assert_eq!(by_ffmpeg("warning", &dash, text), wanted, "text track {text} of DASH");
        // FFmpeg 5 takes no text from a multivariant playlist, and warns of cues that it has had in
        // the segment before.
        let hls = String::from_utf8(server.get("/t/film/master.m3u8")).expect("a playlist");
        let named = hls.split('"').find(|uri| uri.starts_with(&format!("text/{text}.m3u8")));
        let playlist = server.url(&format!("/t/film/{}", named.expect("a rendition")));
        assert_eq!(by_ffmpeg("error", &playlist, 0), wanted, "{playlist}");
    }
    let part = server.url("/t/film/text/1.vtt?start=1&stop=3");
    let part = by_ffmpeg("warning", &part, 0);
    assert!(part.contains("00:00:00,000 --> 00:00:01,000\nDéjà vu"), "{part}");
    assert!(part.contains("00:00:01,000 --> 00:00:02,0"), "{part}");
}

#[test]
fn browsers_show_the_default_text_at_its_times() {
    let dir = TestDir::with_store_of(96);
    film(&dir);
    let server = dir.serve(ADMITS_ALL);
    let row = |way: &'static str, manifest: &str, shown: &str| Row {
        title: "film",
        way,
        url: server.url(&format!("/t/film/{manifest}")),
        may_stall: false,
        said: format!("{shown}, errors []"),
    };
    let rows = [
        row("hls-text", "master.m3u8", SHOWN),
        row("dash-text", "manifest.mpd", SHOWN),
        row("shaka-text", "manifest.mpd", SHOWN),
        row("hls-text", "master-imsc.m3u8", SHOWN),
        row("dash-imsc", "manifest-imsc.mpd", "First & one; Over|of it; 3 --> 4"),
        row("shaka-text", "manifest-imsc.mpd", CUT),
    ];
    assert_played(&dir, &rows);
}
