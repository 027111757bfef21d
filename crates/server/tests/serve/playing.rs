//! Players receive the same frames that were ingested.

use crate::client::playlist_uris;
use crate::fixture::{TestStore, eventually, media};
use std::path::Path;
use std::process::Command;

/// Stream, size and MD5 of each frame decoded from a source, in order. FFmpeg must report no
/// warning.
pub(crate) fn frames(input: &str) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "warning", "-i", input, "-map", "0:v?", "-map", "0:a?", "-bitexact"]);
    let output = command.args(["-f", "framemd5", "-"]).output().unwrap();
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && warnings.is_empty(), "{input}: {warnings}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().filter(|line| !line.starts_with('#'));
    let mut frames: Vec<String> = lines
        .map(|line| {
            let columns: Vec<&str> = line.split(',').map(str::trim).collect();
            format!("{} {} {}", columns[0], columns[4], columns[5])
        })
        .collect();
    // The interleaving of streams may differ; the order within each may not.
    frames.sort_by_key(|frame| frame.split(' ').next().map(str::to_owned));
    frames
}

#[test]
fn ffmpeg_decodes_the_same_frames_from_hls_and_progressive_as_from_the_source() {
    let media = media();
    let fixture = TestStore::with(&[&media.film, &media.song]);
    let serving = fixture.serve();
    let of_file = |path: &Path| frames(path.to_str().unwrap());
    for (title, source) in [("film", of_file(&media.film)), ("song", of_file(&media.song))] {
        assert!(source.len() > 100, "{}", source.len());
        for form in [format!("/t/{title}/master.m3u8"), format!("/t/{title}.mp4")] {
            let played = frames(&serving.url(&form));
            assert_eq!(played.len(), source.len(), "{form}: frames");
            assert!(played == source, "{form}: frames differ");
        }
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
}

#[test]
fn ffprobe_finds_the_streams() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    for path in ["/t/film/master.m3u8", "/t/film.mp4"] {
        let output = Command::new("ffprobe")
            .args(["-v", "warning", "-of", "csv=p=0", "-show_entries", "stream=codec_name"])
            .arg(serving.url(path))
            .output()
            .unwrap();
        let mut codecs: Vec<&str> = std::str::from_utf8(&output.stdout)
            .unwrap()
            .lines()
            .map(|line| line.trim_end_matches(','))
            .filter(|line| !line.is_empty())
            .collect();
        codecs.sort_unstable();
        codecs.dedup();
        assert_eq!(codecs, ["aac", "h264"], "{path}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{path}");
    }
}

#[test]
fn playlists_list_all_segments_and_a_segment_has_the_same_bytes_each_time() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.segment = std::time::Duration::from_secs(2));
    let mut client = serving.client();
    let at = "/t/film/master.m3u8";
    let master = client.get(at);
    assert_eq!(master.field("content-type"), Some("application/vnd.apple.mpegurl"));
    assert_eq!(master.field("access-control-allow-origin"), Some("*"));
    let lists = playlist_uris(master.text(), at);
    assert_eq!(lists.len(), 3, "{}", master.text());
    for list in lists {
        let playlist = client.get(&list);
        assert_eq!(playlist.status, 200, "{list}");
        let pieces = playlist_uris(playlist.text(), &list);
        // An init segment, and three segments of 2 s or six I-frames.
        let count = if list.contains("-iframes") { 7 } else { 4 };
        assert_eq!(pieces.len(), count, "{}", playlist.text());
        for piece in pieces {
            let (first, second) = (client.get(&piece), client.get(&piece));
            assert_eq!((first.status, second.status), (200, 200), "{piece}");
            assert!(!first.body.is_empty() && first.body == second.body, "{piece}");
            assert_eq!(first.field("etag"), second.field("etag"));
            let etag = first.field("etag").unwrap();
            let unchanged = client.request("GET", &piece, &[("If-None-Match", etag)]);
            assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{piece}");
        }
    }
}

// As FFmpeg does, which reads the answer to the second request after that to the first.
#[test]
fn the_next_segment_may_be_asked_for_before_this_one_is_read() {
    let fixture = TestStore::with(&[&media().heavy]);
    let serving = fixture.serve_with(|config| config.segment = std::time::Duration::from_secs(2));
    for (master, kind) in [("master.m3u8", ".m4s"), ("master-ts.m3u8", ".ts")] {
        let at = format!("/t/heavy/{master}");
        let (mut older, mut younger) = (serving.client(), serving.client());
        let list = playlist_uris(older.get(&at).text(), &at).remove(0);
        let mut segments = playlist_uris(older.get(&list).text(), &list);
        segments.retain(|segment| segment.contains(kind));
        let get = |segment: &str| format!("GET {segment} HTTP/1.1\r\nHost: s\r\n\r\n");
        let before = serving.status("/sent_bytes");
        older.send(get(&segments[0]).as_bytes());
        eventually("the first is under way", || serving.status("/sent_bytes") > before + 100_000);
        younger.send(get(&segments[1]).as_bytes());
        eventually("both are open", || serving.status("/connections") >= 3);
        for (client, segment) in [(&mut older, &segments[0]), (&mut younger, &segments[1])] {
            let answer = client.read_response(true).expect("the whole answer");
            assert_eq!(answer.status, 200, "{segment}");
            // More than a request to the engine has.
            assert!(answer.body.len() > 8 << 20, "{segment}: {} bytes", answer.body.len());
        }
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
}

#[test]
fn titles_are_listed_with_their_urls() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let titles = serving.client().get("/titles").json();
    let title = &titles["titles"][0];
    assert_eq!(title["name"], "film");
    assert_eq!(title["tracks"], 2);
    let names = |query: &str| {
        let list = serving.client().get(&format!("/titles?{query}")).json();
        (list["titles"].as_array().map(Vec::len), list["next"].clone())
    };
    assert_eq!(names("limit=1&after=a"), (Some(1), serde_json::Value::Null));
    assert_eq!((names("after=film").0, names("folder=film").0), (Some(0), Some(0)));
    assert_eq!(serving.client().get("/titles?limit=0").status, 400);
    for key in ["hls", "dash", "mp4"] {
        let path = title[key].as_str().unwrap();
        assert_eq!(serving.client().get_following(path).1.status, 200, "{path}");
    }
}

#[test]
fn the_console_loads_nothing_from_other_hosts() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let (_, page) = client.get_following("/");
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    assert!(!page.text().contains("://"));
    // Whatever else the page is made of, the browser takes nothing from elsewhere.
    let policy = page.field("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.field("referrer-policy"), Some("no-referrer"));
    for none in ["/console/none.js", "/console/assets/none.js", "/console/.keep"] {
        assert_eq!(client.get(none).status, 404, "{none}");
    }
}
