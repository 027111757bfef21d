//! Real players: GStreamer, and hls.js in headless Chromium.
//!
//! The browser's page is served by this test from an origin of its own, as an operator's page
//! would be; it plays each title to its end and posts what hls.js complained about.

use crate::house::{House, Served};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn gstreamer_plays_hls_and_progressive() {
    let films = [IN_A_BROWSER, ELSEWHERE].concat();
    let house = house_of(&films);
    let server = house.serve(&[]);
    for (title, _) in films {
        for path in [format!("/t/{title}/master.m3u8"), format!("/t/{title}.mp4")] {
            let output = Command::new("timeout")
                .args(["60", "gst-launch-1.0", "-m", "playbin"])
                .arg(format!("uri={}", server.url(&path)))
                .args(["video-sink=fakesink", "audio-sink=fakesink"])
                .output()
                .expect("gst-launch-1.0 runs (apt-get install gstreamer1.0-tools)");
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let complaints: Vec<&str> = said
                .lines()
                .filter(|line| line.contains("GstMessageWarning") || line.contains("ERROR"))
                .collect();
            assert!(output.status.success(), "GStreamer does not play {path}:\n{said}");
            assert!(complaints.is_empty(), "GStreamer on {path}:\n{}", complaints.join("\n"));
            assert!(said.contains("eos"), "GStreamer did not reach the end of {path}");
        }
    }
}

#[test]
fn hls_js_plays_in_chromium() {
    let house = house_of(IN_A_BROWSER);
    let server = house.serve(&[]);
    let titles: Vec<&str> = IN_A_BROWSER.iter().map(|film| film.0).collect();
    let verdicts = play_in_chromium(&house, &server, &titles);
    for title in titles {
        let wanted = format!("{title}: ended, 50 frames, errors []");
        assert!(verdicts.contains(&wanted), "wanted '{wanted}', the browser says:\n{verdicts}");
    }
}

/// A film of 50 frames by FFmpeg's arguments: title, and what to encode pictures and sound with.
type Film = (&'static str, &'static str);

/// What Debian's Chromium plays.
const IN_A_BROWSER: &[Film] = &[
    ("h264-aac", "-c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -c:a aac"),
    ("av1-aac", "-c:v libsvtav1 -preset 12 -c:a aac"),
    ("av1-opus", "-c:v libsvtav1 -preset 12 -c:a libopus"),
    ("vp9-opus", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus"),
    ("h264-flac", "-c:v libx264 -preset ultrafast -c:a flac"),
];

/// What only other players play.
const ELSEWHERE: &[Film] = &[
    ("h264-mp3", "-c:v libx264 -preset ultrafast -c:a libmp3lame"),
    ("hevc-aac", "-c:v libx265 -preset ultrafast -x265-params log-level=none -c:a aac"),
    ("mpeg2-ac3", "-c:v mpeg2video -bf 2 -c:a ac3"),
    ("mpeg4-mp3", "-c:v mpeg4 -c:a libmp3lame"),
];

fn house_of(films: &[Film]) -> House {
    let house = House::new(96);
    let made_of = "-f lavfi -i testsrc2=s=320x180:r=25:d=2 -f lavfi -i sine=440:d=2:r=48000";
    for (title, encode) in films {
        let words = format!("{made_of} {encode} -g 25 -pix_fmt yuv420p -strict -2 -shortest");
        let args: Vec<&str> = words.split_whitespace().collect();
        let path = house.film(&format!("{title}.mkv"), &args);
        house.tenuto(&["ingest", &house.store(), &path, "--title", title]);
    }
    house
}

fn play_in_chromium(house: &House, server: &Served, titles: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("bound"));
    let profile = house.path("chromium");
    let mut browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--autoplay-policy=no-user-gesture-required", "--mute-audio"])
        .arg(format!("--user-data-dir={profile}"))
        .arg(&origin)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromium runs (apt-get install chromium)");
    let urls: Vec<String> = titles
        .iter()
        .map(|title| {
            format!("[\"{title}\",\"{}\"]", server.url(&format!("/t/{title}/master.m3u8")))
        })
        .collect();
    let page = PAGE.replace("TITLES", &urls.join(","));
    let verdicts = serve_until_posted(&listener, &page);
    let _ = browser.kill();
    let _ = browser.wait();
    verdicts.unwrap_or_else(|| panic!("the browser reported nothing in {PATIENCE:?}"))
}

fn serve_until_posted(listener: &TcpListener, page: &str) -> Option<String> {
    listener.set_nonblocking(true).expect("nonblocking");
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Some(posted) = answer(stream, page) {
                    return Some(posted);
                }
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    None
}

// One request per connection is enough for a page, a script and a result.
fn answer(mut stream: TcpStream, page: &str) -> Option<String> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut request = String::new();
    reader.read_line(&mut request).ok()?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let script = if request.contains(" /hls.js") {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../console/node_modules/hls.js/dist/hls.js");
        Some(std::fs::read_to_string(path).expect("hls.js is there (`make deps`)"))
    } else {
        None
    };
    let (kind, content) = match &script {
        Some(script) => ("text/javascript", script.as_str()),
        None => ("text/html", page),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(content.as_bytes()).ok()?;
    request.starts_with("POST").then(|| String::from_utf8_lossy(&body).into_owned())
}

const PATIENCE: Duration = Duration::from_secs(90);

const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><video id="v" muted></video>
<script src="/hls.js"></script>
<script>
const video = document.getElementById('v');
function play(title, url) {
  return new Promise(resolve => {
    const errors = [], hls = new Hls();
    const done = how => {
      const frames = video.getVideoPlaybackQuality().totalVideoFrames;
      hls.destroy();
      resolve(`${title}: ${how}, ${frames} frames, errors [${errors}]`);
    };
    const giveUp = setTimeout(() => done('gave up at ' + video.currentTime), 30000);
    hls.on(Hls.Events.ERROR, (_, data) => errors.push(data.details));
    video.onended = () => { clearTimeout(giveUp); done('ended'); };
    hls.on(Hls.Events.MANIFEST_PARSED, () => video.play());
    hls.loadSource(url);
    hls.attachMedia(video);
  });
}
(async () => {
  const verdicts = [];
  for (const [title, url] of [TITLES]) verdicts.push(await play(title, url));
  await fetch('/result', { method: 'POST', body: verdicts.join('\n') });
})();
</script>"#;
