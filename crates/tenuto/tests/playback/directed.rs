//! Viewers who come through a director: hls.js, dash.js and Shaka go on at another node when they
//! lose the one to which they were sent, and when others need their place there; players of RTSP
//! follow to the node that has reserved. etcd is in memory here, all else is the program.

use crate::chromium::{SCRIPTS, in_chromium};
use crate::gstreamer;
use crate::nginx::{Nginx, nginx_of, pictures};
use crate::program::{Served, TestDir, program};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::etcd::TestEtcd;

/// Longer than all buffers, so that half of it is fetched after the loss.
const FILM: &str = "-f lavfi -i testsrc2=s=320x180:r=25:d=36 -f lavfi -i sine=440:d=36 \
                    -c:v libx264 -preset veryfast -b:v 400k -g 50 -c:a aac -b:a 64k -shortest";
const PLAYERS: [(&str, &str); 3] =
    [("hls", "master.m3u8"), ("dash", "manifest.mpd"), ("shaka", "manifest.mpd")];

#[test]
fn players_go_on_at_another_node_when_theirs_is_killed() {
    // SIGKILL: nothing of it can say goodbye.
    go_on_at_another_node("", |node| {
        drop(node);
        None
    });
}

#[test]
fn players_go_on_at_another_node_when_theirs_falls_silent() {
    // As behind a link that is cut: no connection ends, and no answer comes. By their defaults, the
    // players stood still for 24, 82 and 6 s.
    go_on_at_another_node(IMPATIENT, |node| {
        node.signal("-STOP");
        Some(node)
    });
}

/// The settings of players that go on before their buffers are empty, as the guide has them.
const IMPATIENT: &str = r"
settings.hls = {
  maxBufferLength: 12, maxMaxBufferLength: 12,
  fragLoadPolicy: { default: {
    maxTimeToFirstByteMs: 4000, maxLoadTimeMs: 20000,
    timeoutRetry: { maxNumRetry: 0, retryDelayMs: 0, maxRetryDelayMs: 0 },
    errorRetry: { maxNumRetry: 1, retryDelayMs: 1000, maxRetryDelayMs: 1000 },
  } },
};
settings.dash = {
  buffer: { bufferTimeDefault: 12, bufferTimeAtTopQuality: 12, bufferTimeAtTopQualityLongForm: 12 },
  fragmentRequestTimeout: 4000, retryAttempts: { MediaSegment: 0 },
};
settings.shaka = {
  bufferingGoal: 12,
  retryParameters: { connectionTimeout: 4000, stallTimeout: 4000, timeout: 20000, maxAttempts: 2 },
};
";

/// The players are at the first of two nodes when that is lost. `settings` are theirs; `lose` keeps
/// what is not to end.
fn go_on_at_another_node(settings: &str, lose: impl Fn(Served) -> Option<Served>) {
    let (dir, etcd) = (TestDir::new(), TestEtcd::new());
    let of_cluster = cluster(&dir, &etcd, FILM);
    // The first has more free, so that a director sends the first viewers there.
    // Shaka leaves a node by its host alone, whatever the port.
    let disks = [("n1", "127.0.0.1", "ssd-sata"), ("n2", "127.0.0.2", "st39183w")];
    let mut nodes: Vec<Option<Served>> = Vec::new();
    for (name, host, disk) in disks {
        dir.ok(&format!("format {name}.store --size 64MiB"));
        dir.ok(&format!("ingest {name}.store film.mp4"));
        let port = free_port();
        let own = format!(
            "{name}.store --as-disk {disk} --segment 2s --node {name} \
             --node-address http://{host}:{port}"
        );
        let line = format!("serve {own} --listen {host}:{port} {of_cluster}");
        nodes.push(Some(start(&dir, &line)));
    }
    let director = start(&dir, &format!("director --listen 127.0.0.1:0 {of_cluster}"));
    await_ready(&director, &["n1", "n2"]);
    let (mut playing, mut silent) = (0, None);
    let said = in_chromium(&dir, &page_of(&director, settings), &mut |request| {
        playing += usize::from(request.contains("/playing"));
        if playing == PLAYERS.len()
            && let Some(lost) = nodes[0].take()
        {
            let sessions = json(&lost, "/sessions");
            assert_eq!(sessions["total"], PLAYERS.len(), "all are at the first node: {sessions}");
            silent = lose(lost);
        }
    });
    drop(silent);
    // How long they stood still is told and not judged: other programs may have the processor.
    #[expect(clippy::print_stdout, reason = "the figure of a test, with --nocapture")]
    {
        println!("{said}");
    }
    for (line, (player, _)) in said.lines().zip(PLAYERS) {
        assert!(line.starts_with(&format!("{player}: ended, errors [],")), "{said}");
    }
    assert_eq!(said.lines().count(), PLAYERS.len(), "{said}");
    let second = nodes[1].as_ref().expect("not lost");
    assert_eq!(json(second, "/status")["admitted"], PLAYERS.len());
}

/// Viewers who ask for each of these titles, at most: more than a node has room for.
const MOST: usize = 40;

/// Titles that only the first node has, of the rate of the film.
const ONLY_HERE: [&str; 3] = ["first", "second", "third"];

#[test]
fn players_make_room_at_their_node_and_go_on_at_another() {
    let (dir, etcd) = (TestDir::new(), TestEtcd::new());
    let of_cluster = cluster(&dir, &etcd, FILM);
    // A stream takes 1.4 Mb/s, and more at its start. The first node has more free, also when two
    // play there, so that all players come to it; the other one has plenty.
    let nodes: Vec<Served> = [("n1", 24), ("n2", 18)]
        .into_iter()
        .map(|(name, rate)| {
            dir.ok(&format!("format {name}.store --size 64MiB"));
            dir.ok(&format!("ingest {name}.store film.mp4"));
            for title in ONLY_HERE.iter().filter(|_| name == "n1") {
                dir.ok(&format!("ingest n1.store film.mp4 --title {title}"));
            }
            let port = free_port();
            let own = format!(
                "{name}.store --as-disk ssd-sata --network {rate}Mbps --segment 2s --node {name} \
                 --node-address http://127.0.0.1:{port}"
            );
            start(&dir, &format!("serve {own} --listen 127.0.0.1:{port} {of_cluster}"))
        })
        .collect();
    let director = start(&dir, &format!("director --listen 127.0.0.1:0 {of_cluster}"));
    await_titles(&director, |title, ready| {
        let wanted = if title == "film" { 2 } else { 1 };
        ready.len() == wanted
    });
    let mut playing = 0;
    // Of each title, how many were admitted, and the refusal of the next.
    let mut refused = Vec::new();
    let said = in_chromium(&dir, &page_of(&director, ""), &mut |request| {
        playing += usize::from(request.contains("/playing"));
        if playing != PLAYERS.len() || !refused.is_empty() {
            return;
        }
        let sessions = json(&nodes[0], "/sessions");
        assert_eq!(sessions["total"], PLAYERS.len(), "all are at the first node: {sessions}");
        // The node has told of them, and the director knows.
        let told = |(key, viewers): &(String, String)| {
            key.ends_with("/viewers/n1") && viewers.contains("film")
        };
        await_that("the node tells of its viewers", || etcd.records().iter().any(told));
        etcd.put("/tenuto/c/titles/mark", r#"{"rate":1,"size":1}"#);
        let knows = || json(&director, "/titles")["titles"].to_string().contains("mark");
        await_that("the director has read so far", knows);
        for title in ONLY_HERE {
            let path = format!("/t/{title}/master.m3u8");
            let ask = || director.request(&path).expect_err("a redirect or a refusal");
            let answers = std::iter::repeat_with(ask).take(MOST);
            let admitted = answers.take_while(|answer| answer.contains(" 302 ")).count();
            refused.push((admitted, ask()));
        }
    });
    #[expect(clippy::print_stdout, reason = "the figures of a test, with --nocapture")]
    {
        println!("{said}\n{refused:?}");
    }
    let metrics = String::from_utf8_lossy(&director.get("/metrics")).into_owned();
    assert!(metrics.contains("\ntenuto_director_moves_total 3\n"), "{said} {refused:?} {metrics}");
    for (line, (player, _)) in said.lines().zip(PLAYERS) {
        let whole = format!("{player}: ended, errors [], stood still 0 times,");
        assert!(line.starts_with(&whole), "{said}");
    }
    assert_eq!(said.lines().count(), PLAYERS.len(), "{said}");
    // Each was admitted once at each node, and nothing of them is left at the first.
    let second = json(&nodes[1], "/status");
    assert_eq!(second["admitted"], PLAYERS.len(), "{second}");
    await_that("all is free at the first node", || {
        let status = json(&director, "/status");
        let network = &status["nodes"][0]["network"];
        status["nodes"][0]["name"] == "n1" && network["free"] == network["guaranteed"]
    });
}

/// A page on which each player plays the film through this director.
fn page_of(director: &Served, settings: &str) -> String {
    let mut rows = String::new();
    for (player, manifest) in PLAYERS {
        let url = director.url(&format!("/t/film/{manifest}"));
        write!(rows, "[\"{player}\",\"{url}\"],").expect("into memory");
    }
    let scripts: String =
        SCRIPTS.iter().map(|(name, _)| format!("<script src=\"/{name}\"></script>")).collect();
    PAGE.replace("SCRIPTS", &scripts).replace("ROWS", &rows).replace("SETTINGS", settings)
}

/// Two seconds of pictures, as many as the players must show.
const SHORT: &str = "-f lavfi -i testsrc2=s=320x180:r=25:d=2 -f lavfi -i sine=440:d=2 \
                     -c:v libx264 -preset veryfast -b:v 400k -g 50 -c:a aac -b:a 64k -shortest";

#[test]
fn players_of_rtsp_follow_a_director_to_nodes_that_have_reserved() {
    let (dir, etcd) = (TestDir::new(), TestEtcd::new());
    let of_cluster = cluster(&dir, &etcd, SHORT);
    let serve = |name: &str| {
        let (port, node_rtsp) = (free_port(), free_port());
        let own = format!(
            "{name}.store --as-disk ssd-sata --node {name} --node-address http://127.0.0.1:{port} \
             --rtsp 127.0.0.1:{node_rtsp} --grace 3s"
        );
        start(&dir, &format!("serve {own} --listen 127.0.0.1:{port} {of_cluster}"))
    };
    let longer = format!("-stream_loop 9 -i {} -c copy", dir.path("film.mp4").display());
    let longer: Vec<&str> = longer.split_whitespace().collect();
    dir.encode("longer.mp4", &longer);
    for store in ["n1.store", "n2.store"] {
        dir.ok(&format!("format {store} --size 64MiB"));
        dir.ok(&format!("ingest {store} film.mp4"));
        dir.ok(&format!("ingest {store} longer.mp4"));
    }
    let node = serve("n1");
    let rtsp = free_port();
    let line = format!("director --listen 127.0.0.1:0 --rtsp 127.0.0.1:{rtsp} {of_cluster}");
    let director = start(&dir, &line);
    await_ready(&director, &["n1"]);
    let address = format!("rtsp://127.0.0.1:{rtsp}/t/film");

    let plays = format!("play {address} --viewers 2 --json");
    let ours = program(&dir.path("")).args(plays.split_whitespace()).stdout(Stdio::piped()).spawn();
    let over = ["tcp", "udp"].map(|way| {
        let mut command = Command::new("timeout");
        command.args(["60", "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", way]);
        command.args(["-i", &address, "-map", "0:v", "-f", "framemd5", "-"]);
        (way, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("timeout runs"))
    });
    let transport = Command::new("timeout")
        .args(["60", "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i"])
        .args([&format!("{address}/ts"), "-map", "0:v", "-f", "framemd5", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let transport = ("a transport stream over tcp", transport.expect("timeout runs"));
    for (way, ffmpeg) in over.into_iter().chain([transport]) {
        let output = ffmpeg.wait_with_output().expect("it ends");
        let pictures = String::from_utf8_lossy(&output.stdout);
        let pictures = pictures.lines().filter(|line| !line.starts_with('#')).count();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(pictures, PICTURES, "FFmpeg (apt-get install ffmpeg) over {way}: {said}");
    }
    let ours = ours.expect("it plays").wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&ours.stdout).expect("a report");
    let totals = &report["totals"];
    assert_eq!((&totals["admitted"], &totals["failed"]), (&2.into(), &0.into()), "{report}");
    let (pictures, sound) = gstreamer::play(&dir, &address.replace("rtsp://", "rtspt://"));
    assert_eq!(pictures.len(), PICTURES * 320 * 180 * 3 / 2, "GStreamer");
    assert!(!sound.is_empty(), "GStreamer has sound");
    // Each was reserved once for the director; PLAY goes on with that.
    let counters = json(&director, "/status")["counters"].take();
    assert_eq!((&counters["admitted"], &counters["node_refusals"]), (&6.into(), &0.into()));
    assert_eq!(json(&node, "/status")["admitted"], 6);

    // A node that is stopped lets them go, and they go on at the other one; so they do when that is
    // killed, and the first one is back.
    let plays = |seconds: &str| {
        let address = address.replace("film", "longer");
        let line = format!("play {address} --viewers 2 --start-buffer {seconds} --json");
        let mut command = program(&dir.path(""));
        command.args(line.split_whitespace()).stdout(Stdio::piped()).spawn().expect("it plays")
    };
    let went_on = |ours: Child| {
        let ours = ours.wait_with_output().expect("it ends");
        let report: Value = serde_json::from_slice(&ours.stdout).expect("a report");
        let totals = &report["totals"];
        let counts = ["admitted", "failed", "failovers"].map(|name| totals[name].clone());
        assert_eq!(counts, [2, 0, 2].map(Value::from), "{report}");
        for viewer in report["viewers"].as_array().expect("two") {
            let played = viewer["played_s"].as_f64().expect("a number");
            assert!((19.5..20.5).contains(&played), "all of it was played: {viewer}");
        }
    };
    let playing = |node: &Served| {
        let metrics = || String::from_utf8_lossy(&node.get("/metrics")).into_owned();
        await_that("both play", || metrics().contains("tenuto_rtsp_playing 2\n"));
    };
    let ours = plays("2s");
    playing(&node);
    let other = serve("n2");
    await_ready(&director, &["n1", "n2"]);
    assert_eq!(node.stop(), Some(0));
    went_on(ours);
    let ours = plays("2s");
    playing(&other);
    let first = serve("n1");
    await_ready(&director, &["n1", "n2"]);
    drop(other);
    went_on(ours);
    assert_eq!(json(&first, "/status")["admitted"], 2);
}

/// nginx as the guides print it: the cache, and what follows the redirects of a director for it.
#[test]
fn nginx_behind_a_director_goes_on_at_another_node_when_one_is_killed() {
    let (dir, etcd) = (TestDir::new(), TestEtcd::new());
    let of_cluster = cluster(&dir, &etcd, FILM);
    dir.ok("token keys.json --new");
    let token = dir.ok("token keys.json --origin --client 127.0.0.1");
    // The first has more free, so that a director sends most requests there.
    let mut nodes = [("n1", "ssd-sata"), ("n2", "st39183w")].map(|(name, disk)| {
        dir.ok(&format!("format {name}.store --size 64MiB"));
        for title in ["before", "news/after"] {
            dir.ok(&format!("ingest {name}.store film.mp4 --title {title}"));
        }
        let port = free_port();
        let own = format!(
            "{name}.store --as-disk {disk} --segment 2s --node {name} --origin 8 \
             --tokens keys.json --node-address http://127.0.0.1:{port}"
        );
        let line = format!("serve {own} --listen 127.0.0.1:{port} {of_cluster}");
        Some(start(&dir, &line))
    });
    let director = start(&dir, &format!("director --listen 127.0.0.1:0 {of_cluster}"));
    await_ready(&director, &["n1", "n2"]);
    let follows = format!("127.0.0.1:{}", free_port());
    let of_director = nginx_of(include_str!("../../../../docs/guide/fleet.md"))
        .replace("192.168.1.7:8090", director.origin.strip_prefix("http://").expect("HTTP"))
        .replace("127.0.0.1:8081", &follows);
    let cache = Nginx::start_as(&dir, &format!("http://{follows}"), token.trim(), &|printed| {
        format!("{printed}{of_director}")
    });

    let shown = pictures(&dir.at("film.mp4")).expect("a film");
    let requests = |what: &str| {
        json(&director, "/status")["counters"]["cache_requests"][what].as_u64().expect("a count")
    };
    let play = |path: &str| {
        let url = cache.url(path);
        assert_eq!(pictures(&url).as_ref(), Ok(&shown), "{url}");
    };
    play("/origin/before/master.m3u8");
    let sent = requests("sent");
    assert!(sent > 12, "each segment of the pictures is fetched: {sent}");
    play("/origin/before/master.m3u8");
    let more = requests("sent") - sent;
    assert!(more <= 3, "what the cache has is fetched again: {more}");
    play("/origin/before.mp4");

    // SIGKILL: its lease is still there, and the director goes on to name it.
    drop(nodes[0].take());
    play("/origin/news/after/master.m3u8");
    play("/origin/news/after.mp4");
    play("/origin/news/after/manifest.mpd");
    let counters = json(&director, "/status")["counters"].clone();
    assert!(counters["cache_retries"].as_u64() > Some(0), "{counters}");
    assert_eq!((requests("no-copy"), requests("not-allowed")), (0, 0), "{counters}");
}

/// Pictures of the short film.
const PICTURES: usize = 50;

/// Writes the secret, makes the film, and starts an etcd; the options of all of the cluster.
fn cluster(dir: &TestDir, etcd: &TestEtcd, film: &str) -> String {
    dir.encode("film.mp4", &film.split_whitespace().collect::<Vec<_>>());
    dir.write("secret", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(dir.path("secret"), PermissionsExt::from_mode(0o600)).expect("ours");
    let address = etcd.listen().address().to_owned();
    format!("--cluster {address} --cluster-name c --cluster-secret secret")
}

/// Waits until the director knows all titles on these nodes.
fn await_ready(director: &Served, nodes: &[&str]) {
    await_titles(director, |_, ready| ready.iter().eq(nodes));
}

/// Waits until the director knows titles, and of each that it is ready on the nodes wanted.
fn await_titles(director: &Served, is_ready: impl Fn(&str, &[Value]) -> bool) {
    await_that("all nodes register", || {
        let known = json(director, "/titles");
        let titles = known["titles"].as_array().filter(|titles| !titles.is_empty());
        titles.is_some_and(|all| {
            all.iter().all(|it| {
                let ready = it["ready"].as_array().map_or(&[][..], Vec::as_slice);
                is_ready(it["name"].as_str().unwrap_or_default(), ready)
            })
        })
    });
}

fn await_that(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Each player keeps 6 s if nothing else is set, and asks every 2 s where it should be, not every
/// 30 s, so that a test is short. The server gets a request when one has played for 3 s.
const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><div id="stage"></div>
SCRIPTS
<script>
class OftenSteered extends Hls.DefaultConfig.loader {
  load(context, config, callbacks) {
    if (context.type !== 'steering-manifest') return super.load(context, config, callbacks);
    const onSuccess = (response, ...more) => {
      response.data.TTL = 2;
      callbacks.onSuccess(response, ...more);
    };
    super.load(context, config, { ...callbacks, onSuccess });
  }
}
const settings = {
  hls: { maxBufferLength: 6, maxMaxBufferLength: 6 },
  dash: { buffer: { bufferTimeDefault: 6, bufferTimeAtTopQuality: 6, bufferTimeAtTopQualityLongForm: 6 } },
  shaka: { bufferingGoal: 6 },
};
SETTINGS
const players = {
  hls(video, url, fatal) {
    const hls = new Hls({ ...settings.hls, loader: OftenSteered });
    hls.on(Hls.Events.ERROR, (_, data) => { if (data.fatal) fatal(data.details); });
    hls.loadSource(url);
    hls.attachMedia(video);
  },
  dash(video, url, fatal) {
    const player = dashjs.MediaPlayer().create();
    player.updateSettings({ streaming: settings.dash });
    // It tells of each segment that it did not get, and goes on elsewhere.
    player.on(dashjs.MediaPlayer.events.PLAYBACK_ERROR, event => fatal(event.error.message));
    player.initialize(video, url, false);
    setInterval(() => player.triggerSteeringRequest(), 2000);
  },
  shaka(video, url, fatal) {
    const player = new shaka.Player();
    player.configure({ streaming: { ...settings.shaka, failureCallback: () => player.retryStreaming(0.1) } });
    player.getNetworkingEngine().registerResponseFilter((type, response) => {
      if (type !== shaka.net.NetworkingEngine.RequestType.CONTENT_STEERING) return;
      const list = JSON.parse(new TextDecoder().decode(response.data));
      response.data = new TextEncoder().encode(JSON.stringify({ ...list, TTL: 2 })).buffer;
    });
    player.addEventListener('error', event => { if (event.detail.severity === 2) fatal(`code ${event.detail.code}`); });
    player.attach(video).then(() => player.load(url)).catch(error => fatal(`code ${error.code}`));
  },
};
const play = ([name, url]) => new Promise(done => {
  const video = document.createElement('video');
  video.muted = true;
  document.getElementById('stage').append(video);
  const errors = [];
  let times = 0, stood = 0, since = null, told = false;
  const end = how => done(`${name}: ${how}, errors [${errors}], stood still ${times} times, for ${Math.round(stood)} ms`);
  players[name](video, url, what => { errors.push(what); end('gave up'); });
  video.oncanplay = () => video.play().catch(() => {});
  video.onwaiting = () => {
    // At the end it waits for pictures that do not come.
    if (!told || since !== null || video.currentTime > video.duration - 0.5) return;
    times++;
    since = performance.now();
  };
  video.onplaying = () => { if (since !== null) { stood += performance.now() - since; since = null; } };
  video.ontimeupdate = () => {
    // dash.js does not always end the media source after a segment that it fetched elsewhere.
    if (video.currentTime > video.duration - 0.1) end('ended');
    if (video.currentTime > 3 && !told) { told = true; fetch(`/playing?${name}`); }
  };
  video.onended = () => end('ended');
  setTimeout(() => end(`stopped at ${video.currentTime}`), 240000);
});
Promise.all([ROWS].map(play)).then(all => fetch('/', { method: 'POST', body: all.join('\n') }));
</script>"#;

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

/// Starts a program of the cluster that prints its address.
fn start(dir: &TestDir, line: &str) -> Served {
    let mut command = program(&dir.path("."));
    command.args(line.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("tenuto starts");
    let mut printed = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut printed).expect("text");
    let url = printed.split_whitespace().find(|word| word.starts_with("http://"));
    let Some(url) = url.map(|url| url.trim_end_matches("/console/").trim_end_matches('/')) else {
        let _ = child.kill();
        panic!("no address in '{printed}', {:?}", child.wait());
    };
    Served { child, origin: url.to_owned() }
}

fn json(server: &Served, path: &str) -> Value {
    serde_json::from_slice(&server.get(path)).expect("JSON")
}
