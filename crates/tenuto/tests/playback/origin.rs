//! A real cache in front of a server: nginx, configured as `docs/guide/serve.md` prints it. Viewers
//! of one title cost the server each segment once, also on another evening, and a title that takes
//! the name of another is never mixed with it.

use crate::chromium::{Row, assert_played};
use crate::program::TestDir;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
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

/// A digest of all pictures that FFmpeg decodes, or what it says.
fn pictures(input: &str) -> Result<String, String> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i", input, "-map", "0:v:0", "-fps_mode", "passthrough"])
        .args(["-c:v", "rawvideo", "-pix_fmt", "yuv420p", "-f", "md5", "-"])
        .output()
        .expect("ffmpeg runs (apt-get install ffmpeg)");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// What curl gets.
fn get(url: &str) -> Vec<u8> {
    let output = Command::new("curl").args(["-s", url]).output().expect("curl runs");
    output.stdout
}

/// A caching nginx that is gone when the test ends.
struct Nginx {
    process: Child,
    port: u16,
}

impl Nginx {
    fn start(dir: &TestDir, server: &str, token: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let printed = printed_configuration()
            .replace("/var/cache/nginx/tenuto", &dir.at("cache"))
            .replace("192.168.1.5:8080", server.strip_prefix("http://").expect("plain HTTP"))
            .replace("listen 80;", &format!("listen 127.0.0.1:{port};"))
            .replace("TOKEN", token);
        // One process, which ends with the test, and no file outside of its folder.
        let mut whole = format!(
            "daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/nginx.log;\n\
             events {{}}\nhttp {{\naccess_log off;\n",
            dir.at(".")
        );
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            whole += &format!("{kind}_temp_path {};\n", dir.at(kind));
        }
        dir.write("nginx.conf", format!("{whole}{printed}}}\n"));
        let process = Command::new("nginx")
            .args(["-p", &dir.at("."), "-c", &dir.at("nginx.conf"), "-e", &dir.at("nginx.log")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx runs (apt-get install nginx-light)");
        let nginx = Self { process, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || String::from_utf8_lossy(&dir.read("nginx.log")).into_owned();
            assert!(start.elapsed() < PATIENCE, "nginx does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The configuration in the guide.
fn printed_configuration() -> String {
    let guide = include_str!("../../../../docs/guide/serve.md");
    let (_, rest) = guide.split_once("```nginx\n").expect("a configuration");
    let (text, _) = rest.split_once("```").expect("its end");
    assert!(text.contains("proxy_cache "), "{text}");
    text.to_owned()
}

/// For what takes a moment, or the ten seconds for which a manifest is kept.
const PATIENCE: Duration = Duration::from_secs(60);
