//! Agents on this machine, each on a loopback address of its own: what they count together, what
//! they refuse, and that a fleet with one missing is no smaller fleet.

use crate::program::{TestDir, program};
use serde_json::Value;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

/// Running until it is dropped.
struct Agent {
    child: Child,
    address: String,
}

impl Agent {
    fn start(dir: &TestDir, number: u32) -> Self {
        let mut child = program(&dir.path("."))
            .args(["meter", "agent", "films", "--token-file", "secret", "--listen"])
            .arg(format!("127.0.0.{number}:0"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("an agent runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
        let address = line.trim().strip_prefix("agent on ").expect("its address").to_owned();
        Self { child, address }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a file that only its owner may read.
fn token_file(dir: &TestDir, name: &str, text: &str) {
    dir.write(name, text);
    std::fs::set_permissions(dir.path(name), Permissions::from_mode(0o600)).unwrap();
}

fn three() -> (TestDir, Vec<Agent>, String) {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    token_file(&dir, "secret", "sixteen bytes and more\n");
    let agents: Vec<Agent> = (1..=3).map(|number| Agent::start(&dir, number)).collect();
    let addresses: Vec<&str> = agents.iter().map(|agent| agent.address.as_str()).collect();
    let target = dir.path("films");
    let line = format!(
        "meter run --profile dvcpro50 --size 16MiB --target {} --token-file secret --agents {}",
        target.display(),
        addresses.join(",")
    );
    (dir, agents, line)
}

#[test]
fn three_agents_count_what_one_would() {
    let (dir, _agents, line) = three();
    let run = dir.run(&format!("{line} --streams 7 --workers 2 --duration 2s --out said --json"));
    let said: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.err));
    // 7 streams of 25 frames a second for 2 s, whatever was late on a busy machine.
    assert_eq!(said["frames"], 350, "{said}");
    let agents = said["agents"].as_array().unwrap();
    let streams = |agent: &Value| -> Vec<u64> {
        let workers = agent["workers"].as_array().unwrap();
        workers.iter().map(|worker| worker["streams"].as_u64().unwrap()).collect()
    };
    assert_eq!(agents.iter().map(streams).collect::<Vec<_>>(), [[2, 1], [1, 1], [1, 1]]);
    assert!(agents.iter().all(|agent| agent["lost"].is_null() && agent["begun_late_ns"].is_u64()));
    let page = String::from_utf8(dir.read("said/report.html")).unwrap();
    let named = agents.iter().all(|agent| page.contains(agent["name"].as_str().unwrap()));
    assert!(named && page.contains("What broke first") && page.contains("on 3 agents"), "{page}");
    let left: Vec<_> = std::fs::read_dir(dir.path("films")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The summary of a command whose verdict does not matter: this machine may be busy.
fn said(dir: &TestDir, line: &str) -> Value {
    let run = dir.run(&format!("{line} --json"));
    assert!(matches!(run.code, Some(0 | 3 | 5)), "{line}: {}", run.err);
    serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{line}: {}", run.err))
}

#[test]
fn every_experiment_runs_on_agents() {
    let (dir, agents, line) = three();
    let (_, on) = line.split_once("--size 16MiB").unwrap();
    let named: Vec<&str> = agents.iter().map(|agent| agent.address.as_str()).collect();
    let named = serde_json::json!(named);
    let workers = |said: &Value, name: &str| -> u64 {
        let agents = said["agents"].as_array().unwrap();
        agents.iter().map(|agent| agent["workers"][0][name].as_u64().unwrap_or(0)).sum()
    };

    let line = format!("meter transfers --profile ebu3362-edit --size 24MiB {on} --clients 4");
    let moved = dir.json(&format!("{line} --transfers 2 --file-per-client --out moved"));
    assert_eq!(moved["all"]["transfers"], 8, "{moved}");
    assert_eq!(moved["each_client"].as_array().unwrap().len(), 4);
    let bytes = |said: &Value| said["all"]["bytes"].as_u64().unwrap();
    let parts = moved["agents"].as_array().unwrap().iter();
    assert_eq!(bytes(&moved), parts.map(|agent| bytes(&agent["workers"][0])).sum::<u64>());
    assert_eq!(moved["scenario"]["agents"], named);

    let own = dir.ok("meter ramp ebu-multi-edit --toml");
    dir.write("own.toml", own.replace("from = 4, to = 40, by = 4", "from = 1, to = 4, by = 3"));
    let ramp =
        said(&dir, &format!("meter ramp own.toml --size 48MiB {on} --step 200ms --out ramp"));
    let steps = ramp["steps"].as_array().unwrap();
    assert_eq!(
        steps.iter().map(|step| step["clients"].as_u64()).collect::<Vec<_>>(),
        [Some(1), Some(4)]
    );
    assert_eq!(ramp["scenario"]["agents"], named);

    let streams =
        "--profile dvcpro50 --size 16MiB --buffer-frames 2 --max-streams 4 --duration 200ms";
    let held = said(&dir, &format!("meter capacity {streams} {on} --out held"));
    let runs = held["runs"].as_array().unwrap();
    let streams_of = |run: &Value| run["streams"].as_u64().unwrap();
    assert!(runs.iter().any(|run| streams_of(run) == 4), "{held}");
    assert_eq!(workers(&held, "streams"), streams_of(runs.last().unwrap()), "{held}");
    assert_eq!(held["scenario"]["agents"], named);
    let page = String::from_utf8(dir.read("held/report.html")).unwrap();
    assert!(page.contains("Moved in each second") && page.contains("clock ahead"), "{page}");

    let stages = said(&dir, &format!("meter bottleneck {streams} {on}"));
    let words: Vec<_> =
        stages["stages"].as_array().unwrap().iter().map(|stage| stage["stage"].clone()).collect();
    assert!(words.len() > 1 && words[0] == "client" && words.last().unwrap() == "cold", "{stages}");
    let left: Vec<_> = std::fs::read_dir(dir.path("films")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_groups_of_a_job_run_on_all_agents() {
    let (dir, _agents, line) = three();
    let (_, on) = line.split_once("--token-file").unwrap();
    let films = dir.path("films").display().to_string();
    dir.write("films/old", vec![7; 16 << 20]);
    let job = |more: &str| {
        format!(
            "duration = \"1s\"\n[global]\ntarget = \"{films}\"\nprofile = \"dvcpro50\"\n\
             size = \"16MiB\"\nbuffer_frames = 100\n{more}\
             [[group]]\nname = \"play\"\nstreams = 4\n\
             [[group]]\nname = \"record\"\nstreams = 2\ndirection = \"write\"\n\
             [[group]]\nname = \"one\"\ntarget = \"{films}/old\"\nstreams = 3\n\
             [[group]]\nname = \"two\"\ntarget = \"{films}/old\"\nstreams = 3\n"
        )
    };
    dir.write("job.toml", job(""));
    let ran = said(&dir, &format!("meter run job.toml --token-file {on} --out job"));
    let groups = ran["groups"].as_array().unwrap();
    let frames: Vec<_> = groups.iter().map(|group| group["frames"].as_u64().unwrap()).collect();
    assert_eq!(frames, [100, 50, 75, 75], "{ran}");
    assert!(groups[1]["bytes_written"].as_u64() > Some(0) && groups[1]["bytes_read"] == 0);
    let agents = ran["agents"].as_array().unwrap();
    let worked = |agent: &Value| -> Vec<(String, u64)> {
        let workers = agent["workers"].as_array().unwrap().iter();
        let of = |worker: &Value| {
            let name = worker["group"].as_str().unwrap().to_owned();
            (name, worker["streams"].as_u64().unwrap())
        };
        workers.map(of).collect()
    };
    let all = |streams: [u64; 4]| {
        let names = ["play", "record", "one", "two"].map(str::to_owned);
        names.into_iter().zip(streams).filter(|(_, streams)| *streams > 0).collect::<Vec<_>>()
    };
    let worked: Vec<_> = agents.iter().map(worked).collect();
    assert_eq!(worked, [all([2, 1, 1, 1]), all([1, 1, 1, 1]), all([1, 0, 1, 1])]);
    let page = String::from_utf8(dir.read("job/report.html")).unwrap();
    assert!(page.contains("4 groups of job.toml on 3 agents") && page.contains("clock ahead"));
    let left = std::fs::read_dir(dir.path("films")).unwrap().count();
    assert_eq!(left, 1, "only the file that was there before");

    dir.write("gate.toml", job("threshold = \"1Mbps\"\n"));
    let refused = dir.run(&format!("meter run gate.toml --token-file {on}"));
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("group play: threshold is not for agents"), "{}", refused.err);
    let refused = dir.run(&format!("meter run gate.toml --live --token-file {on}"));
    assert!(refused.err.contains("--live is not for agents"), "{}", refused.err);
}

/// Has agents make files for a run of ten minutes, stops its controller by `signal`, and waits
/// until the agents have removed their files.
fn stopped_by(signal: &str) {
    let (dir, _agents, line) = three();
    let mut controller = program(&dir.path("."))
        .args(line.split_whitespace())
        .args(["--streams", "3", "--duration", "10min", "--layout", "file-per-stream"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let count = || std::fs::read_dir(dir.path("films")).unwrap().count();
    while count() < 3 && controller.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let sent = Command::new("kill").args([signal, &controller.id().to_string()]).status();
    assert!(sent.unwrap().success());
    // The test fails by its own time limit where an agent leaves something.
    while count() > 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    controller.kill().unwrap();
    controller.wait().unwrap();
}

#[test]
fn agents_clean_up_when_their_controller_is_killed() {
    stopped_by("-KILL");
}

#[test]
fn agents_clean_up_when_their_controller_hangs() {
    stopped_by("-STOP");
}

/// In place of ssh: notes its options, and runs the command on this machine.
const SSH: &str = "#!/bin/sh
[ $1 = -V ] && { echo OpenSSH_9.2p1 >&2; exit; }
while [ $1 != -- ]; do echo $1 >>options; shift; done
TMPDIR=$PWD/there; export TMPDIR
exec sh -c \"$3\"
";

#[test]
fn a_program_that_is_lent_to_a_host_measures_there_and_is_gone_afterwards() {
    let dir = TestDir::new();
    ["films", "there"].iter().for_each(|name| std::fs::create_dir(dir.path(name)).unwrap());
    dir.write("ssh", SSH);
    let films = dir.path("films").display().to_string();
    let line = "meter run --profile dvcpro50 --size 16MiB --hosts one --streams 2 --busy-poll \
                --duration 1s --json --target";
    let mut command = program(&dir.path("."));
    command.args(line.split_whitespace()).args([&films, "--ssh", "sh ssh"]);
    let output = command.output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(
        (&said["frames"], &said["scenario"]["busy_poll"]),
        (&50.into(), &true.into()),
        "{said}"
    );
    let options = String::from_utf8(dir.read("options")).unwrap();
    assert!(options.contains("KexAlgorithms=^curve25519-sha256"), "{options}");
    assert!(std::fs::read_dir(dir.path("there")).unwrap().next().is_none());
}

/// Waits until `wanted` is a line of the metrics that a controller serves. `errors` is its standard
/// error, of which the lines until the address are read.
fn wait_for_metric(errors: &mut impl BufRead, wanted: &str) {
    let mut said = String::new();
    let address = loop {
        let mut line = String::new();
        assert!(errors.read_line(&mut line).unwrap() > 0, "no metrics: {said}");
        if let Some((_, url)) = line.trim().split_once("metrics at http://") {
            break url.trim_end_matches("/metrics").to_owned();
        }
        said += &line;
    };
    loop {
        let mut stream = TcpStream::connect(&address).expect("the controller is running");
        write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        if text.lines().any(|line| line == wanted) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_fleet_with_one_missing_is_not_valid() {
    let (dir, mut agents, line) = three();
    let mut lost = agents.remove(1);
    let mut controller = program(&dir.path("."))
        .args(line.split_whitespace())
        // It ends because an agent is lost, long before that.
        .args("--streams 3 --duration 10min --out left --metrics 127.0.0.1:0".split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(controller.stderr.take().unwrap());
    // All are ready, and the run has begun.
    wait_for_metric(&mut errors, "tenuto_meter_agents{state=\"running\"} 3");
    lost.child.kill().unwrap();
    lost.child.wait().unwrap();
    let mut said = String::new();
    errors.read_to_string(&mut said).unwrap();
    assert_eq!(controller.wait().unwrap().code(), Some(5), "{said}");
    assert!(said.contains(&format!("agent {} was lost", lost.address)), "{said}");
    let left: Value = serde_json::from_slice(&dir.read("left/summary.json")).unwrap();
    assert_eq!(left["valid"], false);
    let named: Vec<_> = left["agents"].as_array().unwrap().iter().collect();
    let gone: Vec<_> = named.iter().filter(|agent| !agent["lost"].is_null()).collect();
    assert!(gone.len() == 1 && gone[0]["name"] == *lost.address, "{left}");
}

#[test]
fn agents_verify_what_they_read() {
    use std::os::unix::fs::FileExt;
    let (dir, agents, line) = three();
    let same = said(&dir, &format!("{line} --streams 3 --duration 1s --verify"));
    assert_eq!(same["verify"]["differ"], 0, "{same}");
    assert!(same["verify"]["pages"].as_u64().unwrap() > 0, "{same}");

    // Frames are read again and again; one of them is changed behind the back of its agent.
    let mut controller = program(&dir.path("."))
        .args(format!("{line} --streams 3 --layout file-per-stream --verify").split_whitespace())
        .args("--duration 8s --json --metrics 127.0.0.1:0".split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(controller.stderr.take().unwrap());
    wait_for_metric(&mut errors, "tenuto_meter_agents{state=\"running\"} 3");
    let made = std::fs::read_dir(dir.path("films")).unwrap().next().unwrap().unwrap().path();
    let file = std::fs::OpenOptions::new().write(true).open(made.join("00000000")).unwrap();
    let third = 2 * 290_816;
    file.write_all_at(&[0; 4096], third).unwrap();
    file.sync_all().unwrap();
    let mut out = String::new();
    controller.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let mut notes = String::new();
    errors.read_to_string(&mut notes).unwrap();
    assert_eq!(controller.wait().unwrap().code(), Some(4), "{notes}");
    let found: Value = serde_json::from_str(&out).unwrap();
    let first = &found["verify"]["first"][0];
    assert_eq!((&first["offset"], &first["what"]), (&third.into(), &"zeros".into()), "{found}");
    assert!(agents.iter().any(|agent| first["agent"] == *agent.address), "{found}");
    assert!(notes.contains("differ from what was written: agent 127.0.0."), "{notes}");
    let film = dir.path("one.bin");
    std::fs::write(&film, [7; 4096]).unwrap();
    std::fs::rename(&film, dir.path("films/one.bin")).unwrap();
    let one = line.replace("/films ", "/films/one.bin ");
    dir.fails(&format!("{one} --verify"), 1, "--verify is for files that the meter makes");
}

#[test]
fn silent_connections_keep_no_controller_out() {
    let (dir, agents, line) = three();
    let silent: Vec<TcpStream> = agents
        .iter()
        .flat_map(|agent| (0..100).map(|_| TcpStream::connect(&agent.address).unwrap()))
        .collect();
    let said = said(&dir, &format!("{line} --streams 3 --duration 1s"));
    assert_eq!(said["frames"], 75, "{said}");
    drop(silent);
}

#[test]
fn a_token_that_others_may_read_or_change_is_refused() {
    let (dir, _agents, line) = three();
    for mode in [0o640, 0o604] {
        std::fs::set_permissions(dir.path("secret"), Permissions::from_mode(mode)).unwrap();
        for line in [&format!("{line} --streams 3"), "meter agent films --token-file secret"] {
            dir.fails(line, 1, "other users may read the token in secret");
            dir.fails(line, 1, "hint: chmod 600 secret; make another token");
        }
    }
    for mode in [0o620, 0o602] {
        std::fs::set_permissions(dir.path("secret"), Permissions::from_mode(mode)).unwrap();
        let agent = "meter agent films --token-file secret";
        dir.fails(agent, 1, "other users may change the token in secret");
        dir.fails(agent, 1, "hint: chmod 600 secret");
    }
}

#[test]
fn what_agents_do_not_do_is_refused() {
    let (dir, agents, line) = three();
    dir.fails(&format!("{line} --program secret --streams 3"), 2, "--program is for --hosts");
    let host =
        "meter run --profile dvcpro50 --target films --hosts nobody.invalid --program secret";
    dir.fails(host, 2, "secret is no program");
    token_file(&dir, "other", "another sixteen bytes and more\n");
    let stranger = line.replace("--token-file secret", "--token-file other");
    dir.fails(&format!("{stranger} --streams 3"), 1, "does not know the token");
    let films = dir.path("films").display().to_string();
    let outside = line.replace(&format!("--target {films}"), "--target /proc");
    dir.fails(
        &format!("{outside} --streams 3"),
        1,
        "/proc lies outside of what this agent may touch",
    );
    dir.fails(&format!("{line} --streams 3 --destroy"), 2, "not for agents");
    let watched = format!("{line} --streams 3 --threshold 1Mbps");
    dir.fails(&watched, 2, "--threshold is not for agents");
    token_file(&dir, "short", "no\n");
    let short = line.replace("--token-file secret", "--token-file short");
    dir.fails(&format!("{short} --streams 3"), 1, "a token has 16 bytes or more");
    drop(agents);
    dir.fails(&format!("{line} --streams 3"), 1, "cannot connect");
    dir.fails("meter agent nowhere --token-file secret", 1, "nowhere cannot be allowed");
    dir.fails("meter agent films", 2, "--token-file is missing");
}

#[test]
fn a_held_run_waits_and_stops_with_its_input() {
    let dir = TestDir::new();
    dir.write("film.bin", vec![7; 1 << 20]);
    let held = |input: Stdio| -> Command {
        let mut command = program(&dir.path("."));
        let line = "meter run --profile dvcpro50 --target film.bin --duration 10min --hold --json";
        command.args(line.split_whitespace()).stdin(input);
        command
    };
    let output = held(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("ready\n") && said.contains("ended before the run began"), "{said}");
    let mut child =
        held(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"begin\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["complete"], false);
}
