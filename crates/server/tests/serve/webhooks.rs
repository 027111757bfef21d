//! Events of a server as the operator's address gets them.

use crate::admin::Administered;
use crate::client::playlist_uris;
use crate::fixture::{TestStore, eventually, ingest_request, media};
use ring::hmac;
use serde_json::{Value, json};
use server::WebhookTarget;
use server::control::{Client, Request};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{RecordingInput, Store};
use units::Hinted;

/// A request as it came: the signature, and the body.
pub(crate) type Received = (Option<String>, String);

/// An address that answers the first requests with these statuses, and all others with 204; what it
/// received.
pub(crate) fn receiver(statuses: &'static [u16]) -> (String, Arc<Mutex<Vec<Received>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&received);
    std::thread::spawn(move || {
        let mut statuses = statuses.iter();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut length, mut signature) = (0, None);
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                let Some((name, value)) = line.trim_end().split_once(": ") else {
                    if line.trim_end().is_empty() { break } else { continue }
                };
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.parse().unwrap(),
                    "tenuto-signature" => signature = Some(value.to_owned()),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            list.lock().unwrap().push((signature, String::from_utf8(body).unwrap()));
            let status = statuses.next().unwrap_or(&204);
            let answer =
                format!("HTTP/1.1 {status} -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, received)
}

fn secret(directory: &Path, text: &str, mode: u32) -> std::path::PathBuf {
    let path = directory.join(format!("secret-{mode:o}-{}", text.len()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn ingests_are_told_signed_and_again_until_they_are_taken() {
    let fixture = TestStore::with(&[]);
    let (url, received) = receiver(&[500]);
    let text = "0123456789abcdef0123456789abcdef";
    let secret = Some(secret(&fixture.directory, &format!("{text}\n"), 0o600));
    let serving = fixture.serve_with(|config| config.webhook = Some(WebhookTarget { url, secret }));
    let mut client = Client::connect(&Store::peek(&fixture.path).unwrap()).unwrap().unwrap();
    let request = ingest_request(vec![media().song.clone(), "/no/such/film.mp4".into()]);
    client.call(&request, |_| {}).unwrap();
    let record = |input: RecordingInput, title: &str| Request::Record {
        input,
        title: title.to_owned(),
        seconds: None,
        program: None,
        silence: 10.0,
        rate: None,
        series: None,
    };
    client.call(&record(RecordingInput::File(media().song.clone()), "live"), |_| {}).unwrap();
    client.call(&record(RecordingInput::StandardInput, "live"), |_| {}).unwrap_err();
    client.call(&record(RecordingInput::File("/no/such/pipe".into()), "gone"), |_| {}).unwrap_err();
    eventually("four events, one of them twice", || received.lock().unwrap().len() == 5);
    let key = hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes());
    let events: Vec<Value> = received
        .lock()
        .unwrap()
        .iter()
        .map(|(signature, body)| {
            let tag = units::from_hex(signature.as_ref().unwrap().strip_prefix("sha256=").unwrap());
            hmac::verify(&key, body.as_bytes(), &tag.unwrap()).expect("signed with the secret");
            serde_json::from_str(body).unwrap()
        })
        .collect();
    let of = |name: &str| -> Vec<String> {
        events.iter().map(|event| event[name].as_str().unwrap_or_default().to_owned()).collect()
    };
    let expected =
        ["ingest-done", "ingest-done", "ingest-failed", "recording-done", "recording-failed"];
    assert_eq!(of("event"), expected);
    assert_eq!(of("title"), ["song", "song", "film", "live", "gone"]);
    assert_eq!((&events[0]["id"], &events[2]["error"]), (&events[1]["id"], &"file".into()));
    assert_ne!(events[0]["id"], events[2]["id"]);
    let expected = "tenuto_webhook_events_total{outcome=\"delivered\"} 4
tenuto_webhook_events_total{outcome=\"given-up\"} 0
tenuto_webhook_events_total{outcome=\"dropped\"} 0
tenuto_webhook_attempts_failed_total{cause=\"status\"} 1
tenuto_webhook_attempts_failed_total{cause=\"timeout\"} 0
tenuto_webhook_attempts_failed_total{cause=\"connection\"} 0
tenuto_webhook_waiting 0";
    let mut found = String::new();
    eventually("the answer to the last event is counted", || {
        let metrics = serving.client().get("/metrics").text().to_owned();
        let lines = metrics.lines().filter(|line| line.starts_with("tenuto_webhook_"));
        found = lines.collect::<Vec<_>>().join("\n");
        found.contains("_waiting 0")
    });
    assert_eq!(found, expected);
    let metrics = serving.client().get("/metrics").text().to_owned();
    for (outcome, count) in [("done", 1), ("failed", 1), ("interrupted", 0)] {
        let line = format!("tenuto_recordings_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}");
    }
    drop(serving);
}

/// A disk that is cut short while a title is played from it, which another disk has, too.
#[test]
fn a_lost_disk_is_told_with_what_became_of_its_sessions() {
    let [first, second] = [(); 2].map(|()| TestStore::with(&[&media().heavy]));
    let (url, received) = receiver(&[]);
    let stores = [&first, &second].map(|fixture| fixture.path.clone());
    let serving = first.serve_with(|config| {
        config.stores = stores.to_vec();
        config.segment = Duration::from_secs(1);
        config.webhook = Some(WebhookTarget { url, secret: None });
    });
    let master = "/t/heavy/master.m3u8";
    let mut client = serving.client();
    let list = playlist_uris(client.get(master).text(), master)[0].clone();
    let segments = playlist_uris(client.get(&list).text(), &list);
    let has_session = |disk: &usize| serving.status(&format!("/disks/{disk}/sessions")) == 1;
    eventually("the session is on a disk", || (0..stores.len()).any(|disk| has_session(&disk)));
    let disk = (0..stores.len()).find(has_session).unwrap();
    OpenOptions::new().write(true).open(&stores[disk]).unwrap().set_len(4096).unwrap();
    for segment in segments.iter().take(3) {
        let response = client.get(segment);
        assert!(response.status == 200 && response.whole, "{segment}: {response:?}");
    }
    // On a busy machine its slowness may have been told before.
    let told = || {
        let events = received.lock().unwrap();
        let mut events = events.iter().map(|(_, body)| serde_json::from_str(body).unwrap());
        events.find(|event: &Value| event["event"] == "disk-lost")
    };
    eventually("the loss is told", || told().is_some());
    let event = told().unwrap();
    let fields = ["event", "store", "sessions_failed_over", "sessions_ended"];
    let store = stores[disk].display().to_string();
    let wanted = [json!("disk-lost"), json!(store), json!(1), json!(0)];
    assert_eq!(fields.map(|name| event[name].clone()), wanted, "{event}");
    eventually("the status has it, too", || {
        serving.client().get("/status").json()["disks"][disk]["lost"] == true
    });
}

#[test]
fn an_address_or_a_secret_that_cannot_be_used_is_refused_at_the_start() {
    let fixture = TestStore::with(&[]);
    let good = "0123456789abcdef";
    for (url, secret, why) in [
        ("alerts.example", None, "begins neither with"),
        ("ftp://alerts.example/", None, "begins neither with"),
        ("http://me:word@alerts.example/", None, "has no host, or a password"),
        ("http://a b/", None, "is no address"),
        ("http://127.0.0.1:9/", Some((good, 0o644)), "chmod 600"),
        ("http://127.0.0.1:9/", Some(("short", 0o600)), "fewer than 16 bytes"),
    ] {
        let secret = secret.map(|(text, mode)| self::secret(&fixture.directory, text, mode));
        let webhook = Some(WebhookTarget { url: url.to_owned(), secret });
        let config = server::ServerConfig { webhook, ..fixture.config() };
        let error = server::Server::check(&config).unwrap_err().one_line();
        assert!(error.contains(why), "{url}: {error}");
    }
    // Nobody listens: the server starts, and its end does not wait for the attempts.
    let webhook = Some(WebhookTarget { url: "http://127.0.0.1:9/".to_owned(), secret: None });
    drop(fixture.serve_with(|config| config.webhook = webhook));
}

/// An event for each ingest that had begun, none for a request that was refused before, and nothing
/// of where uploads are kept.
#[test]
fn uploads_that_had_begun_are_told_and_requests_that_were_refused_are_not() {
    let (url, received) = receiver(&[]);
    let api = Administered::with(Duration::from_millis(500), |config| {
        config.webhook = Some(WebhookTarget { url, secret: None });
    });
    let refused = |name: &str, length: u64, status: u16| {
        let mut client = api.serving.client();
        api.begin(&mut client, "PUT", &api.title(name), &format!("Content-Length: {length}\r\n"));
        assert_eq!(client.read_response(true).unwrap().status, status, "{name}");
    };
    refused("film", 9, 409);
    refused("large", 999_999_999_999, 413);
    refused("none%0A", 9, 400);
    refused("empty", 0, 422);

    let mut gone = api.serving.client();
    api.begin(&mut gone, "PUT", &api.title("gone"), "Content-Length: 9\r\n");
    gone.send(b"1");
    eventually("it has begun", || api.uploads() == 1);
    drop(gone);
    eventually("it has ended", || api.uploads() == 0);
    let mut slow = api.serving.client();
    api.begin(&mut slow, "PUT", &api.title("slow"), "Content-Length: 9\r\n");
    slow.send(b"1");
    assert_eq!(slow.read_response(true).unwrap().status, 408);
    eventually("it has ended", || api.uploads() == 0);
    assert_eq!(api.ask("PUT", &api.title("bad"), "", b"no film").status, 422);

    eventually("three events", || received.lock().unwrap().len() >= 3);
    let received = received.lock().unwrap();
    let uuid = Store::peek(&api.fixture.path).unwrap().uuid.to_string();
    let events: Vec<String> = received
        .iter()
        .map(|(_, body)| {
            let event: Value = serde_json::from_str(body).unwrap();
            assert!(!body.contains(".upload"), "{body}");
            assert_eq!(event["uuid"], *uuid, "{body}");
            ["event", "title", "error"].map(|name| event[name].as_str().unwrap()).join(" ")
        })
        .collect();
    let expected = ["gone disconnected", "slow request-timeout", "bad refused"];
    assert_eq!(events, expected.map(|event| format!("ingest-failed {event}")));
}
