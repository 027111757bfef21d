//! Recordings of live inputs: what arrives over each protocol, and what is left when an input, the
//! store or the program ends.

use crate::copies::{operate, status};
use crate::program::{TestDir, program};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs FFmpeg with these words in the folder of the test.
fn ffmpeg(dir: &TestDir, words: &str) -> Command {
    let mut command = Command::new("ffmpeg");
    command.current_dir(dir.path("")).args("-nostdin -v error".split(' '));
    command.args(words.split_whitespace()).stdin(Stdio::null());
    command
}

/// Makes a file with FFmpeg.
fn make(dir: &TestDir, file: &str, words: &str) {
    let made = testkit::clips::make(&dir.path(file), &words.split_whitespace().collect::<Vec<_>>());
    made.unwrap_or_else(|said| panic!("making {file}: {said}"));
}

/// A broadcast of ten seconds as a transport stream, `live.ts`.
fn broadcast(dir: &TestDir) {
    let words = "-f lavfi -i testsrc2=s=320x180:r=25:d=10 -f lavfi -i sine=440:d=10 -c:v libx264 \
                 -preset ultrafast -g 25 -c:a aac -f mpegts";
    make(dir, "live.ts", words);
}

/// The MD5 of each picture of each file.
fn pictures<const N: usize>(dir: &TestDir, files: [&str; N]) -> [Vec<String>; N] {
    pictures_of(dir, &files).try_into().expect("those of each file")
}

fn pictures_of(dir: &TestDir, files: &[&str]) -> Vec<Vec<String>> {
    let inputs: String = files.iter().map(|file| format!("-i {file} ")).collect();
    let maps: String = (0..files.len()).map(|number| format!("-map {number}:v ")).collect();
    let output =
        ffmpeg(dir, &format!("{inputs}{maps}-fps_mode passthrough -f framemd5 -")).output();
    let text = String::from_utf8(output.expect("ffmpeg runs").stdout).expect("text");
    let mut found = vec![Vec::new(); files.len()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (stream, rest) = line.split_once(',').expect("fields");
        let sum = rest.rsplit(',').next().expect("a hash").trim().to_owned();
        let stream: usize = stream.parse().expect("a number");
        found[stream].push(sum);
    }
    found
}

/// What there is at an address, if anything is.
fn fetched(url: &str) -> Option<String> {
    let got = Command::new("curl").args(["-sf", url]).output().expect("curl runs");
    got.status.success().then(|| String::from_utf8(got.stdout).expect("text"))
}

/// A program that ends with the test.
struct Running(Child);

impl Running {
    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("kill runs").success(), "{pid} is there");
    }

    /// Waits until no thread runs any more.
    fn wait_until_stopped(&self) {
        let threads = format!("/proc/{}/task", self.0.id());
        let runs = || {
            let stats = fs::read_dir(&threads).unwrap().map(|it| it.unwrap().path().join("stat"));
            let stats = stats.filter_map(|stat| fs::read_to_string(stat).ok());
            let mut states = stats.map(|stat| stat.rsplit(") ").next().unwrap().as_bytes()[0]);
            states.any(|state| state != b'T')
        };
        while runs() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Running {
    /// The seconds that a power cut would leave now of the one title of `a.store`; makes
    /// `cut.store`.
    fn durable(&self, dir: &TestDir) -> f64 {
        // A copy takes a while, in which nothing may be written.
        self.signal("STOP");
        self.wait_until_stopped();
        fs::copy(dir.path("a.store"), dir.path("cut.store")).unwrap();
        self.signal("CONT");
        let titles = dir.json("ls cut.store");
        titles["titles"][0]["duration"].as_f64().unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port(udp: bool) -> u16 {
    let address = match udp {
        true => UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()),
        false => TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()),
    };
    address.expect("a free port").port()
}

#[test]
fn a_file_and_a_pipe_are_recorded_picture_by_picture() {
    let dir = TestDir::with_store();
    broadcast(&dir);
    let said = dir.ok("record a.store file live.ts");
    assert!(said.starts_with("'file' is in the store: 10.0 s, 2 tracks"), "{said}");
    let words = ["record", "a.store", "pipe", "-", "--json"];
    let mut command = program(&dir.path(""));
    let mut child =
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().expect("piped");
    // A file whose times go on at zero in its middle, as a programme that was switched.
    pipe.write_all(&dir.read("live.ts"))
        .and_then(|()| pipe.write_all(&dir.read("live.ts")))
        .unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["end"], &report["error"]), (&json!("complete"), &json!(null)));
    let length = report["title"]["duration"].as_f64().unwrap();
    assert!((19.9..20.2).contains(&length), "{report}");
    for title in ["file", "pipe"] {
        dir.ok(&format!("export a.store {title} {title}.mp4"));
    }
    let [source, file, pipe] = pictures(&dir, ["live.ts", "file.mp4", "pipe.mp4"]);
    assert_eq!(source.len(), 250);
    assert_eq!(file, source);
    assert_eq!(pipe, [source.clone(), source].concat());
    let words = "-i live.ts -map 0 -map 0 -c copy -program program_num=1:title=One:st=0:st=1 \
                 -program program_num=7:title=Seven:st=2:st=3 -f mpegts";
    assert!(ffmpeg(&dir, words).arg(dir.path("two.ts")).status().unwrap().success());
    dir.ok("record a.store seven two.ts --program 7");
    let said =
        "which track is of which of its 2 programmes: 1 (One), 7 (Seven); --program takes one";
    let mixed = dir.run("record a.store both two.ts");
    assert!(mixed.code == Some(0) && mixed.err.contains(said), "{}{}", mixed.out, mixed.err);
    assert_eq!(mixed.err.matches(said).count(), 1, "{}", mixed.err);
    // While its input goes on, and not at its end only.
    let words = ["record", "a.store", "begun", "-", "--json"];
    let mut command = program(&dir.path(""));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut begun = Running(command.spawn().unwrap());
    let mut pipe = begun.0.stdin.take().expect("piped");
    pipe.write_all(&dir.read("two.ts")).unwrap();
    let streams = ["video stream 1 (h264, 320x180)", said];
    let left_out = json!({ "event": "streams-left-out", "streams": streams });
    assert_eq!(events(&mut begun).next(), Some(left_out));
    drop(pipe);
    assert!(begun.0.wait().unwrap().success());
    // Also from a pipe, which can be read only once.
    dir.fails("record a.store nine two.ts --program 9", 1, "it has: 1 (One), 7 (Seven)");
    let mut command = program(&dir.path(""));
    command.args(["record", "a.store", "nine", "-", "--program", "9"]);
    let two = fs::File::open(dir.path("two.ts")).unwrap();
    let refused = command.stdin(two).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("no programme 9"), "{said}");
    dir.fails("record a.store nine file.mp4 --program 9", 1, "it has no programmes");
    let said = dir.ok("record a.store short live.ts --duration 4s");
    assert!(said.starts_with("'short' is in the store: 4.") && !said.contains("failed"), "{said}");
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}

#[test]
fn inputs_of_the_network_are_recorded_from_a_key_frame_on() {
    let dir = TestDir::with_store();
    broadcast(&dir);
    dir.ok("ingest a.store live.ts --title film");
    // Pictures that are sent in another order than they are shown in.
    make(&dir, "reordered.mp4", "-i live.ts -c:v libx264 -g 25 -bf 3 -c:a copy");
    dir.ok("ingest a.store reordered.mp4");
    let rtsp_port = free_port(false);
    let server = dir.serve(&format!("--rtsp 127.0.0.1:{rtsp_port}"));
    // A pipe of the network has no end: its sender stops, and the recording with it.
    let (udp, srt) = (free_port(true), free_port(true));
    let send = "-re -i live.ts -c copy -f mpegts";
    let inputs = [
        ("rtsp", "live.ts", format!("rtsp://127.0.0.1:{rtsp_port}/t/film"), None, 0),
        (
            "reordered",
            "reordered.mp4",
            format!("rtsp://127.0.0.1:{rtsp_port}/t/reordered"),
            None,
            0,
        ),
        (
            "udp",
            "live.ts",
            format!("udp://127.0.0.1:{udp}"),
            Some(format!("{send} udp://127.0.0.1:{udp}?pkt_size=1316")),
            1,
        ),
        (
            "srt",
            "live.ts",
            // A late packet is dropped; a busy machine may take two seconds for one.
            format!("srt://127.0.0.1:{srt}?mode=listener&latency=2000000"),
            Some(format!("{send} srt://127.0.0.1:{srt}")),
            0,
        ),
    ];
    let record = |name: &str, source: &str, input: &str, sender: Option<String>, code: i32| {
        dir.ok(&format!("format {name}.store --size 64MiB"));
        let mut command = program(&dir.path(""));
        let silence = if code == 0 { "30s" } else { "5s" };
        command.args(["record", &format!("{name}.store"), name, input, "--silence", silence]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let recording = command.spawn().unwrap();
        let sending = sender.map(|words| {
            // Sent again until somebody listens; each time from its beginning.
            let mut sent = Running(ffmpeg(&dir, &words).stderr(Stdio::null()).spawn().unwrap());
            let until = Instant::now() + Duration::from_secs(60);
            while sent.0.wait().unwrap().code() != Some(0) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(200));
                sent = Running(ffmpeg(&dir, &words).stderr(Stdio::null()).spawn().unwrap());
            }
            sent
        });
        let output = recording.wait_with_output().unwrap();
        drop(sending);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        assert_eq!(
            said.contains("nothing to record came from it for 5 s"),
            code == 1,
            "{name}: {said}"
        );
        dir.ok(&format!("export {name}.store {name} {name}-recorded.mp4"));
        let [recorded, source] = pictures(&dir, [&format!("{name}-recorded.mp4"), source]);
        // What is played is all there.
        assert!(
            !input.starts_with("rtsp") || recorded.len() == source.len(),
            "{name}: {}",
            recorded.len()
        );
        // Those that were sent before the input was open are not there; all others are, in order.
        assert!(recorded.len() >= 125, "{name}: {} pictures", recorded.len());
        let from = source.iter().position(|picture| *picture == recorded[0]);
        let from = from.unwrap_or_else(|| panic!("{name}: its first picture is not of the source"));
        assert_eq!(from % 25, 0, "{name} begins with a key frame");
        let end = source.len().min(from + recorded.len());
        assert_eq!(recorded, source[from..end], "{name}");
        assert_eq!(dir.json(&format!("check {name}.store --scrub"))["clean"], json!(true));
    };
    std::thread::scope(|scope| {
        for (name, source, input, sender, code) in inputs {
            let record = &record;
            scope.spawn(move || record(name, source, &input, sender, code));
        }
    });
    drop(server);
}

#[test]
fn a_recording_that_is_killed_loses_less_than_a_second() {
    let dir = TestDir::with_store();
    broadcast(&dir);
    let mut command = program(&dir.path(""));
    command.args(["record", "a.store", "hall", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut recording = Running(command.spawn().unwrap());
    let mut pipe = recording.0.stdin.take().expect("piped");
    // The input goes on, and nothing more comes.
    pipe.write_all(&dir.read("live.ts")).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let length = loop {
        let length = recording.durable(&dir);
        if length >= 9.0 {
            break length;
        }
        assert!(Instant::now() < until, "{length} s of 10 are durable");
        std::thread::sleep(Duration::from_millis(300));
    };
    let report = dir.json("check cut.store --scrub");
    assert_eq!(report["clean"], json!(true), "{report}");
    drop(recording);
    let report = dir.json("check a.store --scrub");
    let healed = report["stores"][0]["healed"][0].to_string() + &report["healed"][0].to_string();
    assert!(healed.contains("the recording was interrupted"), "{report}");
    let title = dir.json("info a.store hall");
    assert!(title["duration"].as_f64().unwrap() >= length, "{title}");
    dir.ok("export a.store hall hall.mp4");
    let [recorded, source] = pictures(&dir, ["hall.mp4", "live.ts"]);
    assert_eq!(recorded, source[..recorded.len()]);
}

#[test]
fn a_recording_ends_with_the_store_and_keeps_what_it_has() {
    let dir = TestDir::with_store_of(12);
    let words = "-f lavfi -i testsrc2=s=640x360:r=25:d=20 -c:v libx264 -preset ultrafast -b:v 6M \
                 -g 25 -f mpegts";
    make(&dir, "large.ts", words);
    let run = dir.run("record a.store full large.ts");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("the store is full"), "{}", run.err);
    assert!(run.out.starts_with("'full' is in the store"), "{}", run.out);
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
    dir.ok("export a.store full full.mp4");
    let [recorded, source] = pictures(&dir, ["full.mp4", "large.ts"]);
    assert!(recorded.len() > 25, "{} pictures", recorded.len());
    assert_eq!(recorded, source[..recorded.len()]);
}

#[test]
fn a_served_store_records_and_serves() {
    let dir = TestDir::with_store();
    broadcast(&dir);
    let server = dir.serve("--as-disk hdd-20tb");
    dir.fails("record a.store hall -", 1, "its server has no standard input");
    let said = dir.ok("record a.store hall live.ts");
    assert!(said.starts_with("'hall' is in the store: 10.0 s"), "{said}");
    let port = free_port(false);
    let words =
        format!("-re -stream_loop 30 -i live.ts -c copy -f mpegts tcp://127.0.0.1:{port}?listen=1");
    let _sender = Running(ffmpeg(&dir, &words).stderr(Stdio::null()).spawn().unwrap());
    let mut command = program(&dir.path(""));
    let input = format!("tcp://127.0.0.1:{port}");
    command.args(["record", "a.store", "stage", &input, "--rate", "4Mbps"]);
    let mut recording =
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let more = "does not hold 10 Gb/s more: it would hold ";
    dir.fails("record a.store wall live.ts --rate 10Gbps", 3, more);
    // At once, also where the input is still to come.
    let later = format!("udp://127.0.0.1:{} --silence 10min", free_port(true));
    dir.fails(&format!("record a.store wall {later} --rate 10Gbps"), 3, more);
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let recordings = dir.json("info a.store")["recordings"].clone();
        // It is listed when its tracks are known.
        let title = &recordings[0]["title"];
        assert!(*title == json!("stage") || *title == json!(null), "{recordings}");
        if recordings[0]["bytes"].as_u64() > Some(50_000) {
            break;
        }
        assert!(Instant::now() < until, "nothing is committed: {recordings}");
        // The sender may not have listened yet.
        if recording.0.try_wait().unwrap().is_some() {
            recording = Running(command.spawn().unwrap());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(dir.ok("info a.store").contains("recording   'stage' since "));
    for words in [
        "record a.store stage live.ts",
        "info a.store stage",
        "export a.store stage stage.mp4",
        "rename a.store stage hall2",
        "rm a.store stage",
    ] {
        dir.fails(words, 1, "'stage' is being recorded");
    }
    // The time kept for the two that were refused may still be in the last status.
    loop {
        let disk = status(&server.origin)["disks"][0].clone();
        let share = disk["recording_share"].as_f64();
        if disk["recordings"] == json!(1) && share > Some(0.0) && share < Some(0.5) {
            break;
        }
        assert!(Instant::now() < until, "{disk}");
        std::thread::sleep(Duration::from_millis(200));
    }
    // A signal ends a recording with its report, as of a store that is not served; so do two.
    assert!(Command::new("mkfifo").arg(dir.path("pipe")).status().unwrap().success());
    let mut command = program(&dir.path(""));
    command.args(["record", "a.store", "lobby", "pipe", "--silence", "60s", "--json"]);
    let mut stopped = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut pipe = fs::OpenOptions::new().write(true).open(dir.path("pipe")).unwrap();
    pipe.write_all(&dir.read("live.ts")).unwrap();
    while dir.json("info a.store")["recordings"].as_array().map_or(0, Vec::len) < 2 {
        assert!(Instant::now() < until, "it is not listed");
        std::thread::sleep(Duration::from_millis(200));
    }
    stopped.signal("INT");
    stopped.signal("INT");
    let mut report = String::new();
    stopped.0.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert_eq!(stopped.0.wait().unwrap().code(), Some(0));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["end"], &report["error"]), (&json!("stopped"), &json!(null)));
    // The server makes the title when it ends.
    assert_eq!(server.stop(), Some(0));
    assert_eq!(recording.0.wait().unwrap().code(), Some(1), "its user has not ended it");
    assert_eq!(dir.ok("ls a.store"), "hall\nlobby\nstage\n");
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}

/// FFmpeg plays from the beginning what is being recorded, and gets all of it; another player
/// begins near the end.
#[test]
fn a_title_is_watched_while_it_is_recorded() {
    let dir = TestDir::with_store();
    let words = "-f lavfi -i testsrc2=s=320x180:r=25:d=16,noise=alls=20 -f lavfi -i \
                 anoisesrc=d=16 -c:v libx264 -preset ultrafast -g 25 -c:a mp2 -b:a 384k -f mpegts";
    make(&dir, "live.ts", words);
    let server = dir.serve("--segment 2s");
    let port = free_port(false);
    let words = format!("-re -i live.ts -c copy -f mpegts tcp://127.0.0.1:{port}?listen=1");
    let _sender = Running(ffmpeg(&dir, &words).stderr(Stdio::null()).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(500));
    let mut command = program(&dir.path(""));
    let input = format!("tcp://127.0.0.1:{port}");
    command.args(["record", "a.store", "match", &input]).stdout(Stdio::null());
    let mut recording = Running(command.spawn().unwrap());
    let url = format!("{}/t/match/master.m3u8", server.origin);
    let until = Instant::now() + Duration::from_secs(60);
    // It is there when its first segment is.
    let first = loop {
        if let Some(text) = fetched(&url) {
            break text;
        }
        assert!(Instant::now() < until, "no segment is offered");
        std::thread::sleep(Duration::from_millis(200));
    };
    let titles = fetched(&format!("{}/titles", server.origin)).expect("they are there");
    let titles: serde_json::Value = serde_json::from_str(&titles).expect("JSON");
    let listed = titles["titles"].as_array().unwrap().iter();
    let listed = listed.filter(|title| title["growing"] == json!(true)).collect::<Vec<_>>();
    let named = |title: &serde_json::Value| (title["name"].clone(), title["hls"].clone());
    assert_eq!(listed.len(), 1, "{titles}");
    assert_eq!(named(listed[0]), (json!("match"), json!("/t/match/master.m3u8")));
    assert_eq!((&listed[0]["tracks"], &listed[0]["mp4"]), (&json!(2), &json!(null)));
    assert!(listed[0]["bytes"].as_u64().unwrap() > 0, "{titles}");
    let list = first.lines().find(|line| !line.starts_with('#')).expect("a playlist");
    let list_url = format!("{}/t/match/{list}", server.origin);
    let list = fetched(&list_url).expect("it is there");
    assert!(list.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n"), "{list}");
    assert!(list.contains("\n#EXT-X-PROGRAM-DATE-TIME:20"), "{list}");
    assert!(list.contains("\n#EXTINF:2.0") && !list.contains("ENDLIST"), "{list}");
    let file = format!("{}/t/match.mp4", server.origin);
    let told = Command::new("curl").args(["-s", &file]).output().expect("curl runs").stdout;
    let told = String::from_utf8(told).expect("text");
    assert!(told.contains("is being recorded") && told.contains("/t/match/master.m3u8"), "{told}");
    let words = format!("-live_start_index 0 -i {url} -map 0 -c copy watched.mkv");
    let mut from_start = Running(ffmpeg(&dir, &words).spawn().unwrap());
    // The session that asked first is told of more as it comes.
    while fetched(&list_url).expect("it goes on").matches("#EXTINF").count() < 5 {
        assert!(Instant::now() < until, "no further segment is offered");
        std::thread::sleep(Duration::from_millis(500));
    }
    let words = format!("-i {url} -map 0 -c copy late.mkv");
    let mut from_now = Running(ffmpeg(&dir, &words).spawn().unwrap());
    assert_eq!(recording.0.wait().unwrap().code(), Some(0));
    // Before its players have heard of its end: they watch it to there.
    assert_eq!(dir.ok("ls a.store"), "match\n");
    dir.ok("rm a.store match");
    for (player, title) in [(&mut from_start, "watched"), (&mut from_now, "late")] {
        assert_eq!(player.0.wait().unwrap().code(), Some(0), "{title}");
    }
    let [source, watched, late] = pictures(&dir, ["live.ts", "watched.mkv", "late.mkv"]);
    assert_eq!(watched, source, "{} pictures", source.len());
    assert!(late.len() < source.len() && source.ends_with(&late), "{} pictures", late.len());
    assert_eq!(server.stop(), Some(0));
    assert_eq!(dir.ok("ls a.store"), "");
}

/// What viewers are told of a recording follows what has come of it: here other parameter sets,
/// from the middle on.
#[test]
fn playlists_of_a_recording_say_what_is_in_them() {
    let dir = TestDir::with_store();
    for (file, words) in [("one.ts", "-coder 0"), ("two.ts", "-coder 1 -output_ts_offset 20")] {
        let words = format!(
            "-f lavfi -i testsrc2=s=320x180:r=25:d=20,noise=alls=20 -c:v libx264 -preset veryfast \
             -g 25 {words} -f mpegts"
        );
        make(&dir, file, &words);
    }
    let server = dir.serve("--segment 1s");
    assert!(Command::new("mkfifo").arg(dir.path("pipe")).status().unwrap().success());
    let mut command = program(&dir.path(""));
    command.args(["record", "a.store", "live", "pipe"]).stdout(Stdio::null());
    let mut recording = Running(command.spawn().unwrap());
    let mut input = fs::OpenOptions::new().write(true).open(dir.path("pipe")).expect("a pipe");
    let told = |name: &str| fetched(&format!("{}/t/live/{name}", server.origin));
    for (file, codec) in [("one.ts", "avc1."), ("two.ts", "avc3.")] {
        input.write_all(&dir.read(file)).expect("it is read");
        let until = Instant::now() + Duration::from_secs(60);
        for (name, attribute) in [("master.m3u8", "CODECS=\""), ("manifest.mpd", "codecs=\"")] {
            let wanted = format!("{attribute}{codec}");
            while told(name).is_none_or(|text| !text.contains(&wanted)) {
                assert!(Instant::now() < until, "{name} does not say {codec}: {:?}", told(name));
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }
    drop(input);
    assert_eq!(recording.0.wait().unwrap().code(), Some(0));
    assert!(told("master.m3u8").is_some_and(|text| text.contains("CODECS=\"avc3.")));
    assert_eq!(server.stop(), Some(0));
}

/// A sound of which there is too little for a segment: the pictures are watched without it from the
/// beginning to the end of the recording.
#[test]
fn a_sound_with_little_in_it_keeps_no_viewer_waiting() {
    let dir = TestDir::with_store();
    let words = "-f lavfi -i testsrc2=s=160x90:r=25:d=44,noise=alls=40 -f lavfi -i sine=d=1 -c:v libx264 \
                 -preset ultrafast -g 25 -c:a mp2 -f mpegts";
    make(&dir, "live.ts", words);
    let server = dir.serve("--segment 2s");
    let mut command = program(&dir.path(""));
    let made = Command::new("mkfifo").arg(dir.path("live.pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let words = ["record", "a.store", "match", "live.pipe", "--json", "--silence", "60s"];
    let mut recording = Running(command.args(words).stdout(Stdio::piped()).spawn().unwrap());
    let pipe = fs::OpenOptions::new().write(true).open(dir.path("live.pipe"));
    let mut pipe = pipe.expect("it is read");
    let source = dir.read("live.ts");
    let until = Instant::now() + Duration::from_secs(60);
    pipe.write_all(&source[..source.len() / 4]).unwrap();
    // The sound is waited for until there is much more of the pictures.
    let master = format!("{}/t/match/master.m3u8", server.origin);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(fetched(&master), None);
    pipe.write_all(&source[source.len() / 4..source.len() / 10 * 9]).unwrap();
    let list = loop {
        if let Some(text) = fetched(&master) {
            break text;
        }
        assert!(Instant::now() < until, "no segment is offered");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(!list.contains("TYPE=AUDIO") && list.contains("avc1"), "{list}");
    let list = list.lines().find(|line| !line.starts_with('#')).expect("a playlist");
    let list = format!("{}/t/match/{list}", server.origin);
    let count = || fetched(&list).expect("it goes on").matches("#EXTINF").count();
    assert!(count() >= 15, "{} segments", count());
    let manifest = format!("{}/t/match/manifest.mpd", server.origin);
    let mpd = fetched(&manifest).expect("a manifest");
    assert!(mpd.contains("type=\"dynamic\"") && !mpd.contains("audio"), "{mpd}");
    let hls = format!("-live_start_index 0 -i {master} -map 0 -c copy hls.mkv");
    let mut hls = Running(ffmpeg(&dir, &hls).spawn().unwrap());
    let before = count();
    pipe.write_all(&source[source.len() / 10 * 9..]).unwrap();
    while count() <= before {
        assert!(Instant::now() < until, "no further segment is offered");
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(pipe);
    let mut report = String::new();
    recording.0.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["title"]["tracks"], &report["left_out"]), (&json!(2), &json!([])));
    assert_eq!(hls.0.wait().unwrap().code(), Some(0));
    let [whole, watched] = pictures(&dir, ["live.ts", "hls.mkv"]);
    assert_eq!(watched, whole, "{} pictures", whole.len());
    assert!(fetched(&list).expect("it is there").contains("ENDLIST"));
    // Who comes now plays the whole title.
    assert!(fetched(&master).expect("it is there").contains("TYPE=AUDIO"));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn inputs_that_cannot_be_recorded_leave_nothing() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB");
    dir.write("words.txt", "no film at all\n");
    dir.write("empty", "");
    broadcast(&dir);
    let words = "-f lavfi -i testsrc2=s=1920x1080:r=25:d=1 -c:v dnxhd -b:v 120M -pix_fmt yuv422p";
    make(&dir, "vc3.mxf", words);
    make(&dir, "behind.mp4", "-i live.ts -c copy");
    let closed = free_port(false);
    for (input, code, words) in [
        ("absent.ts", 1, "cannot open".to_owned()),
        ("empty", 1, "empty is not recorded: FFmpeg cannot read it".to_owned()),
        ("words.txt", 1, "words.txt is not recorded: FFmpeg cannot read it".to_owned()),
        ("ftp://127.0.0.1/x", 2, "is no address that can be recorded".to_owned()),
        ("udp://", 2, "is no address that can be recorded".to_owned()),
        ("udp://127.0.0.1", 2, "'udp://127.0.0.1' has no port".to_owned()),
        ("rtp://u:secret@127.0.0.1:99999", 2, "has the port '99999'".to_owned()),
        (
            &format!("srt://127.0.0.1:{closed}?passphrase=secret0123456789&latency=1"),
            1,
            format!("srt://127.0.0.1:{closed}?passphrase=***&latency=1 is not recorded"),
        ),
        ("vc3.mxf", 1, "its pictures have no code".to_owned()),
        (
            &format!("rtsp://user:secret@127.0.0.1:{closed}/x"),
            1,
            format!("rtsp://127.0.0.1:{closed}/x is not recorded: FFmpeg cannot read it"),
        ),
    ] {
        dir.fails(&format!("record a.store hall {input}"), code, &words);
        assert_eq!(dir.ok("ls a.store"), "", "{input}");
        let run = dir.run(&format!("record a.store hall {input}"));
        assert!(!run.err.contains("secret"), "a password is shown: {}", run.err);
    }
    // As a file it can be recorded.
    let mut command = program(&dir.path(""));
    let behind = fs::File::open(dir.path("behind.mp4")).unwrap();
    let refused = command.args(["record", "a.store", "hall", "-"]).stdin(behind).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("whose index (the box `moov`) is not at its beginning"), "{said}");
    dir.ok("record b.store hall behind.mp4");
    // A named pipe that nobody writes into does not hold the command for ever.
    let made = Command::new("mkfifo").arg(dir.path("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    dir.fails("record a.store hall pipe --silence 1s", 1, "nothing to record came from it for 8 s");
    dir.fails("record a.store hall live.ts --duration 0s", 2, "is no time at all");
    dir.ok("record a.store hall live.ts");
    dir.fails("record a.store hall live.ts", 1, "there is already a title 'hall'");
}

/// The sound of a file as samples, from its beginning on.
fn samples(dir: &TestDir, file: &str) -> Vec<u8> {
    ffmpeg(dir, &format!("-i {file} -map 0:a -f s16le -")).output().expect("ffmpeg runs").stdout
}

/// Sound as broadcasters of DVB and ISDB send it: the access units are recorded as they come, in
/// one title and in parts.
#[test]
fn aac_in_latm_framing_is_recorded_as_plain_aac() {
    let dir = TestDir::with_store();
    broadcast(&dir);
    // It is LATM only where the encoder gives plain AAC.
    make(&dir, "latm.ts", "-i live.ts -c:v copy -c:a aac -mpegts_flags latm -f mpegts");
    let probe = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", "latm.ts"];
    let codecs = Command::new("ffprobe").current_dir(dir.path("")).args(probe).output().unwrap();
    assert!(String::from_utf8(codecs.stdout).unwrap().contains("aac_latm"));
    let report = dir.json("record a.store hall latm.ts");
    let title = &report["title"];
    assert_eq!((&title["tracks"], &report["left_out"]), (&json!(2), &json!([])), "{report}");
    let info = dir.json("info a.store hall");
    assert_eq!(info["track_list"][1]["codec"], json!("mp4a.40.2"), "{info}");
    dir.ok("export a.store hall hall.mp4");
    let sound = samples(&dir, "latm.ts");
    assert!(sound.len() > 2 * 44_100 * 9);
    assert!(samples(&dir, "hall.mp4") == sound, "the sound differs");
    let [recorded, source] = pictures(&dir, ["hall.mp4", "live.ts"]);
    assert_eq!(recorded, source);
    // Every unit is in one part: the packets of all parts in a row are those of the whole.
    let packets = |file: &str| {
        let words = format!("-i {file} -map 0:a -c copy -f framemd5 -");
        let output = ffmpeg(&dir, &words).output().expect("ffmpeg runs").stdout;
        let text = String::from_utf8(output).expect("text");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.rsplit(',').next().unwrap().trim().to_owned()).collect::<Vec<_>>()
    };
    dir.ok("record a.store parts latm.ts --part 3s");
    let mut of_parts = Vec::new();
    let parts = parts(&dir, "parts");
    assert_eq!(parts.len(), 4, "{parts:?}");
    for part in parts {
        dir.ok(&format!("export a.store {part} part.mp4 --destroy"));
        of_parts.extend(packets("part.mp4"));
    }
    assert_eq!(of_parts, packets("hall.mp4"));
    // A packet that is damaged on the way is named, and shifts no other one.
    let mut damaged = dir.read("latm.ts");
    let of_sound = |packet: &[u8]| packet[1] & 0x1f == 1 && packet[2] == 1;
    let places = (0..damaged.len()).step_by(188);
    let place = places.filter(|at| of_sound(&damaged[*at..])).nth(150).unwrap();
    damaged[place + 40..place + 188].fill(0);
    dir.write("damaged.ts", damaged);
    let report = dir.json("record a.store damaged damaged.ts");
    let left_out = report["left_out"].to_string();
    assert!(left_out.contains("packets of AAC that could not be read"), "{report}");
    let length = report["title"]["duration"].as_f64().unwrap();
    assert!((length - title["duration"].as_f64().unwrap()).abs() < 0.05, "{report}");
}

/// What had arrived is a title, and the command says who has ended it.
#[test]
fn an_operator_ends_a_recording_over_the_admin_api() {
    let dir = TestDir::with_store();
    broadcast(&dir);
    dir.ok("token keys.json --new");
    let server = dir.serve("--tokens keys.json --access-log log");
    let token = dir.ok("token keys.json --operator");
    let uuid = dir.json("info a.store")["uuid"].as_str().unwrap().to_owned();
    let recordings = format!("/api/v1/disks/{uuid}/recordings");
    assert!(Command::new("mkfifo").arg(dir.path("live.pipe")).status().unwrap().success());
    for (options, wanted) in [
        ("live live.pipe", "'live' is in the store: "),
        ("door live.pipe --part 3s", "'door' has "),
        ("json live.pipe --json", "\"ended_by\": \"operator\""),
    ] {
        let mut command = program(&dir.path(""));
        command.args(["record", "a.store"]).args(options.split(' ')).args(["--silence", "300s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut recording = Running(command.spawn().unwrap());
        let pipe = fs::OpenOptions::new().write(true).open(dir.path("live.pipe"));
        let mut pipe = pipe.expect("it is read");
        pipe.write_all(&dir.read("live.ts")).unwrap();
        let name = options.split(' ').next().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let listed = operate(&server.origin, &token, "GET", &recordings);
            let body = listed.split_once("\r\n\r\n").expect("a head and a body").1;
            let body: serde_json::Value = serde_json::from_str(body).expect(&listed);
            let one = &body["recordings"][0];
            if one["bytes"].as_u64() > Some(0) {
                assert!(one["title"].as_str().unwrap().starts_with(name), "{body}");
                break;
            }
            assert!(Instant::now() < until, "nothing is recorded: {body}");
            std::thread::sleep(Duration::from_millis(100));
        }
        let ended = operate(&server.origin, &token, "DELETE", &format!("{recordings}/{name}"));
        assert!(ended.starts_with("HTTP/1.1 204"), "{ended}");
        let (mut out, mut err) = (String::new(), String::new());
        recording.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        recording.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(recording.0.wait().unwrap().code(), Some(0), "{out}{err}");
        assert!(out.contains(wanted), "{out}{err}");
        let who = "an operator of the server has ended the recording over its admin API";
        assert_eq!(err.contains(who), name != "json", "{err}");
        let again = operate(&server.origin, &token, "DELETE", &format!("{recordings}/{name}"));
        assert!(again.starts_with("HTTP/1.1 404") && again.contains("no-recording"), "{again}");
    }
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let log = String::from_utf8(dir.read("log")).unwrap();
        if log.matches("\"event\":\"recording-ended\"").count() == 3 {
            break;
        }
        assert!(Instant::now() < until, "{log}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A stream that is announced and never comes holds nothing up, whether its form is known or not;
/// one that comes late is in the title.
#[test]
fn a_sound_that_never_comes_keeps_no_picture_back() {
    let dir = TestDir::with_store();
    let pictures = "-f lavfi -i testsrc2=s=320x180:r=25:d=10";
    let encode = "-c:v libx264 -preset ultrafast -g 25 -c:a aac";
    let none = "-f lavfi -i sine=d=1 -af aselect=gt(t\\,9)";
    let late = "-itsoffset 6 -f lavfi -i sine=d=4";
    for (sound, file) in [(none, "never.nut"), (late, "late.nut")] {
        make(&dir, file, &format!("{pictures} {sound} {encode}"));
    }
    let made = Command::new("mkfifo").arg(dir.path("live.pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let mut command = program(&dir.path(""));
    let words = ["record", "a.store", "live", "live.pipe", "--silence", "300s", "--json"];
    let recording = command.args(words).stdout(Stdio::piped()).spawn().expect("tenuto records");
    let mut recording = Running(recording);
    let pipe = fs::OpenOptions::new().write(true).open(dir.path("live.pipe"));
    let mut pipe = pipe.expect("it is read");
    pipe.write_all(&dir.read("never.nut")).unwrap();
    // Meanwhile, in another store: a transport stream that names a sound and has none.
    broadcast(&dir);
    let whole = dir.read("live.ts");
    let of_sound = |packet: &&[u8]| packet[1] & 0x1f == 1 && packet[2] == 1;
    let silent: Vec<&[u8]> = whole.chunks(188).filter(|packet| !of_sound(packet)).collect();
    assert!(silent.len() < whole.len() / 188);
    dir.write("silent.ts", silent.concat());
    dir.ok("format b.store --size 64MiB");
    let unknown = json!(["audio stream 1 (aac), whose form was not found in time"]);
    // A stream that is neither pictures nor sound is named.
    let words = "-i live.ts -f data -i live.ts -map 0 -map 1 -c copy -t 5 -f mpegts";
    assert!(ffmpeg(&dir, words).arg(dir.path("data.ts")).status().unwrap().success());
    let data = json!(["data stream 2 (bin_data)"]);
    for (file, tracks, left_out) in
        [("silent.ts", 1, unknown), ("late.nut", 2, json!([])), ("data.ts", 2, data)]
    {
        let report = dir.json(&format!("record b.store {file} {file}"));
        assert_eq!(report["title"]["tracks"], json!(tracks), "{report}");
        assert_eq!(report["left_out"], left_out, "{report}");
    }
    // The pictures are durable although the input goes on.
    let until = Instant::now() + Duration::from_secs(60);
    while recording.durable(&dir) < 9.0 {
        assert!(Instant::now() < until, "nothing of it is durable");
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(pipe);
    let mut report = String::new();
    recording.0.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert!(recording.0.wait().unwrap().success());
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["left_out"], json!(["audio stream 1 (aac), of which nothing came"]));
    assert_eq!(report["title"]["tracks"], json!(1), "{report}");
}

/// The events of a recording, as they come.
fn events(recording: &mut Running) -> impl Iterator<Item = serde_json::Value> + use<> {
    let said = BufReader::new(recording.0.stderr.take().expect("piped"));
    let (said_one, hear) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        said.lines().map_while(Result::ok).for_each(|line| drop(said_one.send(line)));
    });
    std::iter::from_fn(move || {
        let line = hear.recv_timeout(Duration::from_secs(60)).expect("an event");
        Some(serde_json::from_str(&line).expect(&line))
    })
}

/// An input goes on with larger pictures, or with one more sound: no title has two forms, what is
/// not recorded is named, and what follows is a part of its own.
#[test]
fn a_part_ends_where_the_input_changes_its_form() {
    let dir = TestDir::with_store_of(160);
    broadcast(&dir);
    let words = "-f lavfi -i testsrc2=s=640x360:r=25:d=4 -f lavfi -i sine=440:d=4 -f lavfi -i \
                 sine=880:d=4 -c:v libx264 -preset ultrafast -g 25 -c:a aac";
    let offset = "-output_ts_offset 10 -f mpegts";
    for how in ["-map 0 -map 1", "-s 320x180 -map 0 -map 1 -map 2"] {
        let file = if how.starts_with("-s") { "sounds.ts" } else { "large.ts" };
        make(&dir, file, &format!("{words} {how} {offset}"));
        let joined = [dir.read("live.ts"), dir.read(file)].concat();
        dir.write(&format!("then-{file}"), joined);
    }
    // As one title: it ends before the change, with the reason, or is without the second sound.
    let run = dir.run("record a.store one then-large.ts");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let change = "the input changes from pictures of 320x180 (4:2:0, 8 bit, profile 66) to \
                  pictures of 640x360 (";
    assert!(run.err.contains(change) && run.err.contains("--reconnect"), "{}", run.err);
    dir.ok("export a.store one one.mp4");
    // FFmpeg looks at the end of a file, too.
    let report = dir.json("record a.store two then-sounds.ts");
    let later = json!(["audio stream 2 (aac), whose form was not found in time"]);
    assert_eq!((&report["title"]["tracks"], &report["left_out"]), (&json!(2), &later));
    dir.ok("export a.store two two.mp4");
    let [one, two, source] = pictures(&dir, ["one.mp4", "two.mp4", "live.ts"]);
    assert_eq!(one, source);
    assert_eq!(two.len(), 350);
    // As a series.
    let made = Command::new("mkfifo").arg(dir.path("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let changes = [
        ("large.ts", change, [320, 640], [2, 2]),
        ("sounds.ts", "the input has audio stream 2, which began later", [320, 320], [2, 3]),
    ];
    for (file, change, widths, tracks) in changes {
        let folder = file.strip_suffix(".ts").unwrap();
        let mut command = program(&dir.path(""));
        let words = format!("record a.store {folder} pipe --reconnect --silence 300s --json");
        command.args(words.split(' ')).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut recording = Running(command.spawn().unwrap());
        let mut events = events(&mut recording);
        let mut pipe = fs::OpenOptions::new().write(true).open(dir.path("pipe")).expect("a pipe");
        // Its reader leaves at the change, and the writer stays.
        let _ = pipe.write_all(&dir.read(&format!("then-{file}")));
        let mut next = || events.find(|event| event["event"] != json!("streams-left-out"));
        assert_eq!(next().unwrap()["event"], json!("part"));
        let lost = next().unwrap();
        assert_eq!(lost["event"], json!("input-lost"));
        assert!(lost["message"].as_str().unwrap().starts_with(change), "{lost}");
        assert_eq!(lost.get("hint"), None, "{lost}");
        drop(pipe);
        send(&dir, file, "pipe");
        let ended: Vec<_> = std::iter::from_fn(next).take(2).collect();
        assert_eq!(ended[0]["event"], json!("part"), "{ended:?}");
        assert_eq!(ended[1]["message"], json!("the input has ended"), "{ended:?}");
        recording.signal("TERM");
        assert!(recording.0.wait().unwrap().success());
        let parts = parts(&dir, folder);
        let forms: Vec<_> = parts
            .iter()
            .map(|part| {
                let info = dir.json(&format!("info a.store {part}"));
                (info["track_list"][0]["width"].clone(), info["tracks"].clone())
            })
            .collect();
        let wanted: Vec<_> = widths
            .iter()
            .zip(tracks)
            .map(|(width, tracks)| (json!(width), json!(tracks)))
            .collect();
        assert_eq!(forms, wanted, "{file}");
    }
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}

/// Pictures of VP9 and of AV1 that go on in another size: the title ends there, and a series goes
/// on with a part of the new size.
#[test]
fn pictures_of_vp9_and_av1_change_their_size() {
    let dir = TestDir::with_store_of(160);
    for (name, encoder, profile) in [
        ("vp9", "libvpx-vp9 -deadline realtime -cpu-used 8", "8 bit, profile 0"),
        ("av1", "libsvtav1 -preset 12", "profile 0"),
    ] {
        let sizes = ["320x180", "640x360"];
        for size in sizes {
            let source = format!("-f lavfi -i testsrc2=s={size}:r=25:d=2 -c:v {encoder} -g 25");
            make(&dir, &format!("{name}-{size}.mkv"), &source);
        }
        dir.write("list", sizes.map(|size| format!("file {name}-{size}.mkv\n")).concat());
        make(&dir, &format!("{name}.mkv"), "-f concat -i list -c copy");
        let run = dir.run(&format!("record a.store {name} {name}.mkv"));
        let change = sizes.map(|size| format!("pictures of {size} ({profile})")).join(" to ");
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains(&format!("the input changes from {change}")), "{}", run.err);
        dir.ok(&format!("export a.store {name} {name}-one.mp4"));
        let [recorded, first] = [format!("{name}-one.mp4"), format!("{name}-{}.mkv", sizes[0])];
        let [recorded, first] = pictures(&dir, [&recorded, &first]);
        assert_eq!(recorded, first);
    }
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}

/// Writes a file into a named pipe; waits until it is read.
fn send(dir: &TestDir, file: &str, pipe: &str) {
    let mut pipe = fs::OpenOptions::new().write(true).open(dir.path(pipe)).expect("a pipe");
    // A reader that has all it wants may leave before the end.
    let _ = pipe.write_all(&dir.read(file));
}

/// Kills the process of FFmpeg of a recording that has this word among its arguments.
fn kill_ffmpeg(recording: &Running, word: &str) {
    let parent = recording.0.id().to_string();
    let is_it = |process: &std::path::Path| {
        let Ok(status) = fs::read_to_string(process.join("stat")) else { return false };
        let Ok(words) = fs::read(process.join("cmdline")) else { return false };
        // `pid (name) state parent ...`
        let parent_of = status.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
        parent_of == Some(&parent) && words.split(|byte| *byte == 0).any(|it| it == word.as_bytes())
    };
    let all = fs::read_dir("/proc").unwrap().map(|process| process.unwrap().path());
    let found: Vec<_> = all.filter(|process| is_it(process)).collect();
    let [process] = &found[..] else { panic!("{} processes with {word}", found.len()) };
    let killed = Command::new("kill").arg("-KILL").arg(process.file_name().unwrap()).status();
    assert!(killed.expect("kill runs").success());
}

/// The system kills a process of FFmpeg: what came is kept, and nobody takes it for the end of the
/// input.
#[test]
fn a_recording_whose_ffmpeg_is_killed_has_failed() {
    let dir = TestDir::with_store_of(160);
    broadcast(&dir);
    let made = Command::new("mkfifo").arg(dir.path("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    // The one that reads the input, and the one that makes fragments of it.
    for (word, does) in [("-write_index", "read the input"), ("-movflags", "passed the frames on")]
    {
        let words = format!("record a.store hall{word} - --part 3s --json --silence 60s");
        let mut command = program(&dir.path(""));
        command.args(words.split(' ')).stdin(Stdio::piped());
        let recording = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut recording = Running(recording);
        let mut pipe = recording.0.stdin.take().expect("piped");
        pipe.write_all(&dir.read("live.ts")).unwrap();
        // The input goes on, and nothing more comes.
        let parts = events(&mut recording).filter(|event| event["event"] == "part");
        assert_eq!(parts.take(3).count(), 3);
        kill_ffmpeg(&recording, word);
        let mut told = String::new();
        recording.0.stdout.take().expect("piped").read_to_string(&mut told).expect("text");
        assert_eq!(recording.0.wait().unwrap().code(), Some(1), "{told}");
        let report: serde_json::Value = serde_json::from_str(&told).expect(&told);
        let message = format!("FFmpeg, which {does}, was killed by signal 9");
        assert_eq!(report["error"]["code"], "recording-ended", "{report}");
        assert_eq!(report["error"]["message"], json!(message), "{report}");
        assert_eq!(report["parts"], 4, "{report}");
        drop(pipe);
    }
    let mut command = program(&dir.path(""));
    let words = "record a.store again pipe --part 3s --reconnect --json --silence 60s";
    command.args(words.split(' ')).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recording = Running(command.spawn().unwrap());
    let mut events = events(&mut recording);
    let mut next = |name: &str| loop {
        let event = events.next().expect("an event");
        if event["event"] == name {
            return event;
        }
    };
    let mut pipe = fs::OpenOptions::new().write(true).open(dir.path("pipe")).expect("a pipe");
    pipe.write_all(&dir.read("live.ts")).unwrap();
    next("part");
    kill_ffmpeg(&recording, "-write_index");
    let lost = next("input-lost");
    let said = lost["message"].as_str().expect("a message");
    assert!(said.ends_with("was killed by signal 9"), "{lost}");
    drop(pipe);
    send(&dir, "live.ts", "pipe");
    next("part");
    recording.signal("TERM");
    assert!(recording.0.wait().unwrap().success());
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}

/// The names of the titles in a folder, in their order.
fn parts(dir: &TestDir, folder: &str) -> Vec<String> {
    let titles = dir.ok("ls a.store");
    let folder = format!("{folder}/");
    titles.lines().filter(|title| title.starts_with(&folder)).map(str::to_owned).collect()
}

/// The MD5 of each picture of each title.
fn pictures_of_titles(dir: &TestDir, titles: &[String]) -> Vec<Vec<String>> {
    let file = |title: &String| format!("{}.mp4", title.replace('/', "-"));
    let files: Vec<String> = titles.iter().map(file).collect();
    for (title, file) in titles.iter().zip(&files) {
        dir.ok(&format!("export a.store {title} {file}"));
    }
    pictures_of(dir, &files.iter().map(String::as_str).collect::<Vec<_>>())
}

/// An input ends and comes again: parts of it follow one another, and have every picture once.
#[test]
fn parts_of_an_input_that_comes_again_have_every_picture_once() {
    // Each track of an open part has room for 8 MiB, and two parts are open where one ends.
    let dir = TestDir::with_store_of(160);
    broadcast(&dir);
    let made = Command::new("mkfifo").arg(dir.path("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    for how in ["", "served"] {
        let server = (!how.is_empty()).then(|| dir.serve("--as-disk ssd-sata"));
        let folder = format!("hall{how}");
        let mut command = program(&dir.path(""));
        let words = format!("record a.store {folder} pipe --part 3s --keep 1h --reconnect --json");
        command.args(words.split(' ')).args(["--silence", "60s"]);
        // With a server the rate is admitted once for all parts.
        command.args(if how.is_empty() { &[][..] } else { &["--rate", "4Mbps"] });
        let recording = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut recording = Running(recording);
        let mut events = events(&mut recording);
        let mut recorded = 0;
        for _ in 0..2 {
            send(&dir, "live.ts", "pipe");
            // Ten seconds are four parts; then the input is lost.
            loop {
                let event = events.next().expect("an event");
                match event["event"].as_str() {
                    Some("part") => recorded += 1,
                    Some("input-lost") => break,
                    _ => panic!("{event}"),
                }
            }
        }
        if server.is_some() {
            for how in ["--keep 1h", ""] {
                let words = format!("record a.store {folder} live.ts {how}");
                dir.fails(words.trim(), 1, &format!("'{folder}' is being "));
            }
        }
        recording.signal("TERM");
        let mut told = String::new();
        let mut out = recording.0.stdout.take().expect("piped");
        out.read_to_string(&mut told).expect("text");
        assert_eq!((recorded, recording.0.wait().unwrap().success()), (8, true));
        let report: serde_json::Value = serde_json::from_str(&told).expect(&told);
        let wanted = json!([folder, 8, 0, "stopped"]);
        let fields = ["folder", "parts", "removed", "end"];
        assert_eq!(json!(fields.map(|name| report[name].clone())), wanted, "{report}");
        if let Some(server) = server {
            assert_eq!(server.stop(), Some(0));
        }
        let parts = parts(&dir, &folder);
        assert_eq!(parts.len(), 8, "{parts:?}");
        let recorded = pictures_of_titles(&dir, &parts).concat();
        let [source] = pictures(&dir, ["live.ts"]);
        assert!(recorded == [source.clone(), source].concat(), "{parts:?}");
    }
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}

/// A series whose program was killed goes on in new parts; what it had is there.
#[test]
fn a_series_goes_on_after_its_program_was_killed() {
    let dir = TestDir::with_store_of(160);
    broadcast(&dir);
    let mut command = program(&dir.path(""));
    command.args("record a.store hall - --part 3s --keep 1h --json".split(' '));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recording = Running(command.spawn().unwrap());
    let mut pipe = recording.0.stdin.take().expect("piped");
    pipe.write_all(&dir.read("live.ts")).unwrap();
    // The input goes on, and nothing more comes: the fourth part does not end.
    let said = BufReader::new(recording.0.stderr.take().expect("piped"));
    let parts_told = said.lines().map_while(Result::ok).filter(|line| line.contains("\"part\""));
    assert_eq!(parts_told.take(3).count(), 3);
    drop(recording);
    dir.ok("record a.store hall live.ts --part 3s --keep 1h");
    let parts = parts(&dir, "hall");
    let mut before = pictures_of_titles(&dir, &parts);
    let after = before.split_off(parts.len() - 4).concat();
    let ([source], recorded) = (pictures(&dir, ["live.ts"]), before.concat());
    // Of the part that was interrupted there is what was durable.
    assert!(recorded.len() >= 225 && source.starts_with(&recorded), "{parts:?}");
    assert!(after == source, "{parts:?}");
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}

/// A key that is held sends signal after signal.
#[test]
fn a_second_signal_does_not_interrupt_the_end_of_a_recording() {
    let dir = TestDir::with_store();
    broadcast(&dir);
    for (title, signals) in [("one", ["TERM", "TERM"]), ("two", ["INT", "TERM"])] {
        let mut command = program(&dir.path(""));
        command.args(["record", "a.store", title, "-", "--json", "--part", "3s"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut recording = Running(command.spawn().unwrap());
        let mut pipe = recording.0.stdin.take().expect("piped");
        pipe.write_all(&dir.read("live.ts")).unwrap();
        assert_eq!(events(&mut recording).next().expect("a part")["event"], json!("part"));
        signals.iter().for_each(|signal| recording.signal(signal));
        let mut report = String::new();
        recording.0.stdout.take().unwrap().read_to_string(&mut report).unwrap();
        assert_eq!(recording.0.wait().unwrap().code(), Some(0), "{title}");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!((&report["end"], &report["folder"]), (&json!("stopped"), &json!(title)));
    }
}

/// The server of a series is killed: what it had recorded is reported.
#[test]
fn a_series_whose_server_is_killed_has_a_report() {
    let dir = TestDir::with_store();
    broadcast(&dir);
    let mut server = dir.serve("");
    assert!(Command::new("mkfifo").arg(dir.path("pipe")).status().unwrap().success());
    let mut command = program(&dir.path(""));
    command.args("record a.store hall pipe --part 3s --silence 60s --json".split(' '));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recording = Running(command.spawn().unwrap());
    let mut pipe = fs::OpenOptions::new().write(true).open(dir.path("pipe")).unwrap();
    pipe.write_all(&dir.read("live.ts")).unwrap();
    let told: Vec<_> = events(&mut recording).take(2).collect();
    server.child.kill().unwrap();
    let mut report = String::new();
    recording.0.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert_eq!(recording.0.wait().unwrap().code(), Some(1));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["end"], &report["folder"]), (&json!("failed"), &json!("hall")));
    assert_eq!(report["error"]["code"], json!("server-lost"), "{report}");
    let least = told.iter().map(|it| it["title"]["bytes"].as_u64().unwrap()).sum();
    let bytes = report["bytes"].as_u64();
    assert!(report["parts"].as_u64() >= Some(2) && bytes >= Some(least), "{report}");
}

/// Old parts make room for new ones when the store is full, and go when their time has passed;
/// other titles stay.
#[test]
fn the_oldest_parts_are_removed_when_they_expire_or_the_store_is_full() {
    let dir = TestDir::with_store_of(40);
    let words = "-f lavfi -i testsrc2=s=320x180:r=25:d=24 -c:v libx264 -preset ultrafast -b:v 16M \
                 -minrate 16M -maxrate 16M -bufsize 4M -nal-hrd cbr -g 25 -f mpegts";
    make(&dir, "large.ts", words);
    assert!(dir.read("large.ts").len() > 42 << 20, "it is larger than the store");
    broadcast(&dir);
    dir.ok("ingest a.store live.ts --title hall/accident");
    let run = dir.run("record a.store hall large.ts --part 2s --keep 24h --json");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let events: Vec<serde_json::Value> =
        run.err.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let of = |kind: &str| events.iter().filter(|it| it["event"] == json!(kind)).count();
    assert_eq!(of("part"), 12, "{events:?}");
    assert!(of("part-removed") > 2 && of("kept-short") > 0, "{events:?}");
    let left = parts(&dir, "hall");
    let named = |event: &&serde_json::Value| event["event"] == json!("part");
    let made = events.iter().filter(named).map(|it| it["title"]["name"].as_str().unwrap());
    let made: Vec<&str> = made.collect();
    let wanted = &made[of("part-removed")..];
    assert_eq!(left[..left.len() - 1], *wanted, "the latest parts, and the other title");
    assert_eq!(left.last().map(String::as_str), Some("hall/accident"));
    // A part of a second, and a later recording that keeps as much.
    dir.ok("record a.store door live.ts --duration 1s --keep 1s");
    let first = parts(&dir, "door");
    std::thread::sleep(Duration::from_millis(3500));
    dir.ok("record a.store door live.ts --part 1h --keep 1s");
    let then = parts(&dir, "door");
    assert!(first.len() == 1 && then.len() == 1 && first != then, "{first:?} {then:?}");
    dir.fails("record a.store hall live.ts --reconnect", 1, "it is a file");
    dir.fails("record a.store hall - --reconnect", 1, "standard input cannot be opened again");
    let taken = "there is already a title 'hall/accident'";
    dir.fails("record a.store hall/accident live.ts --keep 1h", 1, taken);
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}
