//! `meter console` without a browser: what it starts, stops and keeps, and what it refuses.

use crate::program::{TestDir, program};
use serde_json::Value;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Running until it is dropped.
struct Console {
    child: Child,
    scheme: String,
    address: String,
}

impl Console {
    fn start(dir: &TestDir, words: &str) -> Self {
        let mut child = program(&dir.path("."))
            .args("meter console reports --listen 127.0.0.1:0".split(' '))
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a console runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
        let url = line.split_whitespace().find(|word| word.ends_with("/console/"));
        let (scheme, address) = url.and_then(|url| url.split_once("://")).expect("its address");
        let address = address.trim_end_matches("/console/").to_owned();
        Self { child, scheme: scheme.to_owned(), address }
    }

    /// The status and the body of the answer to a request with these fields.
    fn ask(&self, request: &str, fields: &[&str], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let mut head = format!("{request} HTTP/1.0\r\nContent-Length: {}\r\n", body.len());
        if !fields.iter().any(|field| field.starts_with("Host:")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        fields.iter().for_each(|field| head += &format!("{field}\r\n"));
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    fn change(&self, request: &str, body: &str) -> (u16, String) {
        self.ask(request, &["Tenuto-Console: 1"], body)
    }

    /// The measurement once it is as wanted.
    fn until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let (_, body) = self.ask("GET /status", &[], "");
            let status: Value = serde_json::from_str(&body).expect("JSON");
            if wanted(&status["run"]) {
                return status["run"].clone();
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{status}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(name).arg(self.child.id().to_string()).status();
        assert!(status.expect("kill runs").success());
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with_films() -> TestDir {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    dir
}

/// The names in a directory.
fn names(dir: &TestDir, name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(dir.path(name)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const SIMULATED: &str =
    r#"{"kind":"run","profile":"xdcam422","target":"sim:ssd-sata","streams":8,"duration":20}"#;

#[test]
fn a_console_measures_as_the_command_does_and_keeps_the_report() {
    let dir = with_films();
    let console = Console::start(&dir, "");
    let (status, body) = console.change("POST /api/v1/meter/runs", SIMULATED);
    assert_eq!(status, 201, "{body}");
    let run = console.until(|run| run["running"] == false);
    assert_eq!((&run["result"], &run["name"]), (&"held".into(), &"run-xdcam422-ssd-sata".into()));
    let by_hand = "meter run --profile xdcam422 --target sim:ssd-sata --streams 8 --duration 20s";
    let by_hand = dir.json(by_hand);
    let kept = dir.read("reports/run-xdcam422-ssd-sata/summary.json");
    let mut kept: Value = serde_json::from_slice(&kept).unwrap();
    // Of a run without --out there is no log.
    kept.as_object_mut().unwrap().remove("log");
    assert_eq!(kept["each_stream"], by_hand["each_stream"]);
    let (status, body) =
        console.change("DELETE /api/v1/meter/reports?name=run-xdcam422-ssd-sata", "");
    assert_eq!(status, 200, "{body}");
    assert_eq!(names(&dir, "reports"), Vec::<String>::new());
}

#[test]
fn pages_of_other_names_and_origins_measure_nothing() {
    let dir = with_films();
    let console = Console::start(&dir, "--allow films");
    let own = "Tenuto-Console: 1";
    let rows: &[(&str, &[&str], u16)] = &[
        ("POST /api/v1/meter/runs", &[], 403),
        ("POST /api/v1/meter/runs", &[own, "Origin: http://other.example"], 403),
        ("POST /api/v1/meter/runs", &[own, "Host: rebound.example"], 403),
        ("GET /status", &["Host: rebound.example"], 403),
        ("GET /api/v1/meter/reports", &["Host: rebound.example:8099"], 403),
        ("OPTIONS /api/v1/meter/runs", &["Origin: http://other.example"], 403),
        ("GET /status", &["Host: localhost"], 200),
    ];
    for (request, fields, wanted) in rows {
        let (status, body) = console.ask(request, fields, SIMULATED);
        assert_eq!(status, *wanted, "{request} {fields:?}: {body}");
    }
    let outside = r#"{"kind":"run","profile":"xdcam422","target":"/etc"}"#;
    let (status, body) = console.change("POST /api/v1/meter/runs", outside);
    assert_eq!(status, 422, "{body}");
    assert_eq!(names(&dir, "reports"), Vec::<String>::new());
}

#[test]
fn a_console_for_others_needs_its_token() {
    let dir = with_films();
    dir.fails("meter console --listen 0.0.0.0:0", 2, "add --token-file FILE");
    dir.write("secret", "sixteen bytes and more\n");
    dir.fails("meter console --listen 0.0.0.0:0 --token-file secret", 1, "other users may read");
    std::fs::set_permissions(dir.path("secret"), Permissions::from_mode(0o600)).unwrap();
    let console = Console::start(&dir, "--token-file secret");
    let token = "sixteen%20bytes%20and%20more";
    for (request, fields, wanted) in [
        ("GET /status", &["Host: meter.example"][..], 401),
        ("GET /status", &["Authorization: Bearer sixteen bytes and more"], 200),
        (&format!("GET /status?token={token}"), &["Host: meter.example"], 200),
        ("GET /api/v1/meter/reports?token=sixteen", &[], 401),
        (&format!("POST /api/v1/meter/stop?token={token}"), &[], 403),
        (&format!("POST /api/v1/meter/stop?token={token}"), &["Tenuto-Console: 1"], 409),
    ] {
        let (status, body) = console.ask(request, fields, "");
        assert_eq!(status, wanted, "{request}: {body}");
    }
}

#[test]
fn a_console_with_a_certificate_speaks_tls_and_nothing_else() {
    let dir = with_films();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    dir.write("cert.pem", made.cert.pem());
    dir.write("key.pem", made.signing_key.serialize_pem());
    dir.write("other.pem", other.signing_key.serialize_pem());
    dir.fails("meter console --tls-certificate cert.pem", 2, "--tls-key");
    let line = "meter console --listen 127.0.0.1:0 --tls-certificate cert.pem --tls-key";
    dir.fails(&format!("{line} other.pem"), 1, "it is not the key of the first certificate");
    let console = Console::start(&dir, "--tls-certificate cert.pem --tls-key key.pem");
    assert_eq!(console.scheme, "https");
    let (status, body) = console.ask("GET /status", &[], "");
    assert!(status == 400 && body.contains("use https://"), "{status} {body}");
}

#[test]
fn one_measurement_runs_at_a_time_and_ends_with_its_console() {
    let dir = with_films();
    let mut console = Console::start(&dir, "--allow films");
    let films = dir.path("films").display().to_string();
    let order = format!(
        r#"{{"kind":"run","profile":"dvcpro50","target":"{films}","size":16777216,"name":"mine"}}"#
    );
    assert_eq!(console.change("POST /api/v1/meter/runs", &order).0, 201);
    let (status, body) = console.change("POST /api/v1/meter/runs", SIMULATED);
    assert!(status == 409 && body.contains("mine is being measured"), "{body}");
    console.until(|run| run["samples"]["items"].as_array().is_some_and(|all| !all.is_empty()));
    // The end of the console is no second signal, which would leave the files.
    assert_eq!(console.change("POST /api/v1/meter/stop", "").0, 200);
    console.signal("-TERM");
    assert!(console.child.wait().unwrap().success());
    assert_eq!(names(&dir, "films"), Vec::<String>::new());
    let kept: Value = serde_json::from_slice(&dir.read("reports/mine/summary.json")).unwrap();
    assert_eq!(kept["complete"], false);
}

#[test]
fn a_measurement_that_fails_says_why_and_leaves_no_report() {
    let dir = with_films();
    dir.write("films/empty", "");
    let console = Console::start(&dir, "--allow films");
    let film = dir.path("films/empty").display().to_string();
    let order = format!(r#"{{"kind":"run","profile":"xdcam422","target":"{film}"}}"#);
    assert_eq!(console.change("POST /api/v1/meter/runs", &order).0, 201);
    let run = console.until(|run| run["running"] == false);
    assert_eq!(run["result"], "failed");
    let lines = run["lines"].to_string();
    assert!(lines.contains("a whole page of 4 KiB is too small for 1 stream"), "{lines}");
    assert_eq!(names(&dir, "reports"), Vec::<String>::new());
}

#[test]
fn live_figures_are_lines_of_json_for_programs() {
    let dir = TestDir::new();
    let line =
        "meter capacity --profile xdcam422 --target sim:hdd-20tb --confirm 1min --json --live";
    let run = dir.run(line);
    let events: Vec<Value> =
        run.err.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let runs = events.iter().filter(|event| event["event"] == "run").count();
    let figures: Vec<&Value> = events.iter().filter(|event| event["event"] == "figures").collect();
    assert!(runs >= 3 && !figures.is_empty(), "{}", run.err);
    let group = &figures[0]["groups"][0];
    assert!(group["streams"].as_u64() > Some(0) && group["response"]["p99"].is_f64(), "{group}");
}
