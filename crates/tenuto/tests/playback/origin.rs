//! A real cache in front of a server: nginx, configured as `docs/guide/serve.md` prints it. Viewers
//! of one title cost the server each segment once, also on another evening, and a title that takes
//! the name of another is never mixed with it.

use crate::chromium::{Row, assert_played};
use crate::nginx::{Nginx, pictures};
use crate::program::TestDir;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// Four seconds with a key frame in each.
fn film(dir: &TestDir, picture: &str) -> String {
    let words = format!(
        "-f lavfi -i {picture}=s=320x180:r=25:d=4 -f lavfi -i sine=440:d=4:r=48000 -c:v libx264 \
         -preset ultrafast -bf 2 -b_strategy 0 -g 25 -pix_fmt yuv420p -c:a aac"
    );
    dir.encode(&format!("{picture}.mp4"), &words.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn nginx_fetches_each_segment_once_for_all_viewers_and_mixes_no_titles() {
    let dir = TestDir::with_store_of(96);
    let (first, second) = (film(&dir, "testsrc2"), film(&dir, "smptebars"));
    dir.ingest(&first, "film");
    dir.ok("token keys.json --new");
    let token = dir.ok("token keys.json --origin --client 127.0.0.1");
    let server = dir.serve(
        "--segment 1s --admission none --origin 8 --tokens keys.json --access-log access.log",
    );
    let cache = Nginx::start(&dir, &server.origin, token.trim());

    let master = cache.url("/origin/film/master.m3u8");
    for evening in 1..=2 {
        let play = ["play", &master, "--viewers", "4", "--strict", "--json"];
        let report: Value = serde_json::from_str(&dir.tenuto(&play)).expect("JSON");
        let totals = &report["totals"];
        assert_eq!((&totals["stalls"], &totals["refused"]), (&0.into(), &0.into()), "{report}");
        // Four segments of the pictures and four of the sound, and what begins each of them.
        assert_eq!(once_each(&dir, "/0/"), 5, "evening {evening}");
        assert_eq!(once_each(&dir, "/1/"), 5, "evening {evening}");
    }

    let row = |way: &'static str, path: &str| Row {
        title: "film",
        way,
        url: cache.url(path),
        may_stall: false,
        said: "100 pictures, sound, errors []".to_owned(),
    };
    let dash = row("shaka", "/origin/film/manifest.mpd");
    let file = row("mp4", "/origin/film.mp4");
    assert_played(&dir, &[row("hls", "/origin/film/master.m3u8"), dash, file]);
    // DASH has initialization segments of its own; the media is that of HLS.
    assert_eq!(once_each(&dir, ".m4s"), 8);

    let (before, after) = (pictures(&first).expect("a film"), pictures(&second).expect("a film"));
    assert_ne!(before, after);
    assert_eq!(pictures(&master).as_ref(), Ok(&before));
    let list = get(&master);
    dir.ok("rm a.store film");
    dir.write("film.srt", "1\n00:00:01,000 --> 00:00:02,000\nHello\n");
    dir.ok(&format!("ingest a.store {second} --title film --subtitles en=film.srt"));
    // The cache may have the old title for a while, and then all of it.
    let shown = pictures(&master);
    assert!([Ok(&before), Ok(&after)].contains(&shown.as_ref()), "neither film: {shown:?}");
    let start = Instant::now();
    while get(&master) == list {
        assert!(start.elapsed() < PATIENCE, "the old playlist is kept for longer than 10 s");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(pictures(&master).as_ref(), Ok(&after));
    // Each is kept for 10 s from when it was fetched last.
    for name in ["film.mp4", "film/manifest.mpd", "film/ondemand.mpd"] {
        let start = Instant::now();
        while pictures(&cache.url(&format!("/origin/{name}"))).as_ref() != Ok(&after) {
            assert!(start.elapsed() < PATIENCE, "the old {name} is kept for longer than 10 s");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    // Two rates are two files: both ends of what there is.
    let refused = get(&cache.url("/origin/film.ts?rate=1kbps"));
    let refused: Value = serde_json::from_slice(&refused).expect("JSON");
    let hint = refused["hint"].as_str().expect("a hint");
    let rates: Vec<&str> =
        hint.split("rate=").skip(1).map(|it| it.trim_end_matches(" to ")).collect();
    assert_eq!(rates.len(), 2, "{hint}");
    for (rate, other) in [(rates[0], rates[1]), (rates[1], rates[0])] {
        // Nobody brings others to a file of another rate.
        get(&cache.url(&format!("/origin/film.ts?RATE={rate}&rate={other}")));
        let url = cache.url(&format!("/origin/film.ts?rate={rate}"));
        assert_eq!(pictures(&url).as_ref(), Ok(&after), "{url}");
        let log = String::from_utf8(dir.read("access.log")).expect("text");
        assert!(log.contains(&format!("/file-{rate}.ts\"")), "{log}");
    }
    // A title in a folder, of whichever name, has one address for the cache in both its forms.
    dir.ok(&format!("ingest a.store {second} --title news~1/7"));
    for form in ["news~1/7", "news~1%2F7"] {
        for rate in &rates {
            let url = cache.url(&format!("/origin/{form}.ts?rate={rate}"));
            assert_eq!(pictures(&url).as_ref(), Ok(&after), "{url}");
            let log = String::from_utf8(dir.read("access.log")).expect("text");
            assert!(log.contains(&format!("/file-{rate}.ts\"")), "{log}");
        }
        let master = cache.url(&format!("/origin/{form}/master.m3u8"));
        assert_eq!(pictures(&master).as_ref(), Ok(&after), "{form}");
    }
    once_each(&dir, "/origin/news~1");
    // A query makes no further fill, and whoever wants a part of a file does not fetch all of it.
    let playlist = String::from_utf8(get(&master)).expect("text");
    let address = playlist.lines().find(|line| line.ends_with("/0.m3u8")).expect("pictures");
    let segment = cache.url(&format!("/origin/film/{}/1.m4s", &address[..address.len() - 5]));
    for query in ["", "?rate=20", "?rate=21"] {
        assert!(!get(&format!("{segment}{query}")).is_empty());
    }
    once_each(&dir, ".m4s");
    let track = cache.url(&format!("/origin/film/{}.mp4", &address[..address.len() - 5]));
    let part = Command::new("curl").args(["-s", "-r", "5000-5099", &track]).output().expect("curl");
    assert_eq!(part.stdout.len(), 100);
    assert_eq!(once_each(&dir, "/0.mp4"), 0, "all of the file was fetched");
}

/// A cache may have other folders in front than the server, which knows nothing of them: all
/// manifests and redirects are relative.
#[test]
fn players_behind_nginx_see_other_folders_than_those_of_the_server() {
    let dir = TestDir::with_store_of(96);
    let source = film(&dir, "testsrc2");
    let shown = pictures(&source).expect("a film");
    dir.ingest(&source, "film");
    dir.ok(&format!("ingest a.store {source} --title news/today/7"));
    let server = dir.serve("--segment 1s --admission none --origin 8");
    let refused = get(&format!("{}/origin/film.ts?rate=1kbps", server.origin));
    let refused: Value = serde_json::from_slice(&refused).expect("JSON");
    let hint = refused["hint"].as_str().expect("a hint");
    let rate = hint.rsplit("rate=").next().expect("a rate");
    // As the guide says: one location without a cache, and the whole configuration.
    let plain = |_: &str| {
        "upstream tenuto { server 192.168.1.5:8080; }\nserver {\nlisten 80;\n\
         location /media/ { proxy_pass http://tenuto/origin/; }\n}\n"
            .to_owned()
    };
    let cached = |printed: &str| {
        let moved = printed.replace("location /origin/", "location /media/");
        let moved = moved.replace("\"^/origin/", "\"^/media/");
        let passed = "rewrite ^/media/(.*)$ /origin/$1 break;\n        proxy_pass ";
        moved.replace("proxy_pass ", passed)
    };
    let configurations: [&dyn Fn(&str) -> String; 2] = [&plain, &cached];
    for configured in configurations {
        let proxy = Nginx::start_as(&dir, &server.origin, "", configured);
        for title in ["film", "news/today/7", "news%2Ftoday%2F7", "news%2Ftoday/7"] {
            for rest in [
                ".mp4".to_owned(),
                format!(".ts?rate={rate}"),
                "/master.m3u8".to_owned(),
                "/master-ts.m3u8".to_owned(),
                "/manifest.mpd".to_owned(),
                "/ondemand.mpd".to_owned(),
            ] {
                let url = proxy.url(&format!("/media/{title}{rest}"));
                assert_eq!(pictures(&url).as_ref(), Ok(&shown), "{url}");
            }
        }
    }
}

/// The number of addresses with `part` that the server has sent media of, each of which was asked
/// for once.
fn once_each(dir: &TestDir, part: &str) -> usize {
    let log = String::from_utf8(dir.read("access.log")).expect("text");
    let mut counts = BTreeMap::<String, u32>::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let target = line["target"].as_str().unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        if path.contains(part) && !path.contains(".m3u8") && line["status"] == 200 {
            *counts.entry(path.to_owned()).or_default() += 1;
        }
    }
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    counts.len()
}

/// What curl gets.
fn get(url: &str) -> Vec<u8> {
    let output = Command::new("curl").args(["-s", url]).output().expect("curl runs");
    output.stdout
}

/// For what takes a moment, or the ten seconds for which a manifest is kept.
const PATIENCE: Duration = Duration::from_secs(60);
