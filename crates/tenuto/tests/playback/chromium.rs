//! Headless Chromium: hls.js, and progressive MP4 by itself.
//!
//! The browser's page is served by this test from an origin of its own, as an operator's page
//! would be; it plays each title to its end and posts what became of it.

use crate::films::{FILMS, Film, PICTURES, Verdict, take_in};
use crate::program::TestDir;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn chromium_plays_what_it_can_and_says_what_it_cannot() {
    let dir = TestDir::with_store_of(96);
    take_in(&dir);
    let server = dir.serve("");
    let mut rows = Vec::new();
    for film in FILMS {
        let title = film.title;
        let ways = [
            ("hls", film.hls_js, format!("/t/{title}/master.m3u8")),
            ("mp4", film.mp4, format!("/t/{title}.mp4")),
        ];
        for (way, verdict, path) in ways {
            let (url, said) = (server.url(&path), words(film, way, verdict));
            rows.push(Row { title, way, url, may_stall: false, said });
        }
    }
    assert_played(&dir, &rows);
}

/// What is played, and what the page says of it.
pub(crate) struct Row<'a> {
    pub(crate) title: &'a str,
    /// `hls` by hls.js, `mp4` by the browser itself.
    pub(crate) way: &'static str,
    pub(crate) url: String,
    /// Whether hls.js may report a stall and play on.
    pub(crate) may_stall: bool,
    pub(crate) said: String,
}

/// Plays titles to their ends in the browser.
pub(crate) fn assert_played(dir: &TestDir, rows: &[Row<'_>]) {
    let mut script = String::new();
    for Row { title, way, url, may_stall, .. } in rows {
        write!(script, "[\"{title} by {way}\",\"{way}\",\"{url}\",{may_stall}],")
            .expect("into memory");
    }
    let said = in_chromium(dir, &PAGE.replace("ROWS", &script));
    let said: Vec<&str> = said.lines().collect();
    let wanted: Vec<String> =
        rows.iter().map(|row| format!("{} by {}: {}", row.title, row.way, row.said)).collect();
    assert_eq!(said, wanted);
}

/// What the page says of a film.
fn words(film: &Film, way: &str, verdict: Verdict) -> String {
    let pictures = if film.layout.is_empty() { 0 } else { PICTURES };
    match verdict {
        Verdict::Plays => format!("{pictures} pictures, sound, errors []"),
        Verdict::Silent => format!("{pictures} pictures, no sound, errors []"),
        Verdict::Blind => "0 pictures, sound, errors []".to_owned(),
        Verdict::Refuses if way == "hls" => "refused, manifestIncompatibleCodecsError".to_owned(),
        // MEDIA_ERR_SRC_NOT_SUPPORTED.
        Verdict::Refuses => "refused, error 4".to_owned(),
    }
}

/// Opens a page in the browser and waits for what it posts.
fn in_chromium(dir: &TestDir, page: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("bound"));
    let profile = dir.at("chromium");
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
    let posted = serve_until_posted(&listener, page);
    let _ = browser.kill();
    let _ = browser.wait();
    posted.unwrap_or_else(|| panic!("the browser reported nothing in {PATIENCE:?}"))
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

/// For all rows together.
const PATIENCE: Duration = Duration::from_secs(180);

/// Four times as fast as the film: pictures that are skipped for it are counted all the same.
const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><div id="stage"></div>
<script src="/hls.js"></script>
<script>
function play([title, way, url, mayStall]) {
  return new Promise(resolve => {
    const video = document.createElement('video');
    const errors = [], hls = way === 'hls' ? new Hls() : null;
    let over = false;
    video.muted = true;
    document.getElementById('stage').append(video);
    const done = how => {
      if (over) return;
      over = true;
      clearTimeout(giveUp);
      if (hls) hls.destroy();
      video.remove();
      resolve(`${title}: ${how}`);
    };
    const giveUp = setTimeout(() => done('gave up at ' + video.currentTime + ' s, ' + errors), 30000);
    video.onended = () => {
      const pictures = video.getVideoPlaybackQuality().totalVideoFrames;
      const sound = video.webkitAudioDecodedByteCount > 0 ? 'sound' : 'no sound';
      done(`${pictures} pictures, ${sound}, errors [${errors}]`);
    };
    const start = () => {
      video.playbackRate = video.defaultPlaybackRate = 4;
      video.play().catch(() => {});
    };
    if (hls) {
      hls.on(Hls.Events.ERROR, (_, data) => {
        if (!mayStall || data.details !== 'bufferStalledError') errors.push(data.details);
        if (data.fatal) done(`refused, ${data.details}`);
      });
      hls.on(Hls.Events.MANIFEST_PARSED, start);
      hls.loadSource(url);
      hls.attachMedia(video);
    } else {
      video.onerror = () => done(`refused, error ${video.error.code}`);
      video.src = url;
      start();
    }
  });
}
(async () => {
  const rows = [ROWS], said = [];
  const player = async () => {
    for (let i; (i = next++) < rows.length;) said[i] = await play(rows[i]);
  };
  let next = 0;
  await Promise.all([player(), player(), player(), player()]);
  await fetch('/result', { method: 'POST', body: said.join('\n') });
})();
</script>"#;
