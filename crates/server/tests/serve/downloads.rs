//! Titles that are ingested from addresses: what is allowed, each failure, progress and cancelling,
//! and what is told of it.

use crate::admin::{Administered, JSON, assert_documented, operations};
use crate::client::{Client, TestResponse};
use crate::fixture::{eventually, media};
use crate::webhooks::receiver;
use serde_json::Value;
use server::WebhookTarget;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// A web server that answers by path, each connection once; its address.
fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let address = format!("http://{host}");
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(|| answer(BufReader::new(stream.unwrap())));
        }
    });
    address
}

fn answer(mut stream: BufReader<TcpStream>) {
    let mut request = String::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        if line.trim_end().is_empty() {
            break;
        }
        request.push_str(&line);
    }
    let path = request.split(['?', ' ']).nth(1).unwrap_or_default().to_owned();
    let song = std::fs::read(&media().song).unwrap();
    let of = |length: usize, status: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    let to = |address: &str| {
        format!("HTTP/1.1 302 Found\r\nLocation: {address}\r\nContent-Length: 0\r\n\r\n")
    };
    let (head, body): (String, &[u8]) = match &*path {
        "/films/song.m4a" => (of(song.len(), "200 OK"), &song),
        // As long as the connection.
        "/films/unknown" => ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_owned(), &song),
        "/films/moved" => (to("/films/song.m4a"), &[]),
        "/films/away" => (to("/others/song.m4a"), &[]),
        "/films/local" => (to("file:///etc/passwd"), &[]),
        "/films/round" => (to("/films/round"), &[]),
        "/films/text" => (of(7, "200 OK"), b"no film"),
        "/films/empty" => (of(0, "200 OK"), &[]),
        "/films/large" => (of(1_000_000_000_000, "200 OK"), b"x"),
        "/films/cut" => (of(1000, "200 OK"), b"too short"),
        "/films/stalls" => (of(song.len(), "200 OK"), &song[..song.len() / 2]),
        "/films/words" => ("220 welcome\r\n".to_owned(), &[]),
        _ => (of(0, "404 Not Found"), &[]),
    };
    let _ = stream.get_mut().write_all(head.as_bytes());
    let _ = stream.get_mut().write_all(body);
    if path == "/films/stalls" {
        // Until the other end closes it.
        let _ = stream.read_line(&mut request);
    }
}

impl Administered {
    fn begin_download(&self, client: &mut Client, title: &str, url: &str) {
        let body = format!(r#"{{"url":"{url}"}}"#);
        let fields = format!("Content-Length: {}\r\n{JSON}", body.len());
        self.begin(client, "POST", &self.title(title), &fields);
        client.send(body.as_bytes());
    }

    fn download(&self, title: &str, url: &str) -> TestResponse {
        let mut client = self.serving.client();
        self.begin_download(&mut client, title, url);
        client.read_response(true).unwrap()
    }

    fn ingests(&self) -> Vec<Value> {
        self.ask("GET", "/api/v1/ingests", "", b"").json()["ingests"].as_array().unwrap().clone()
    }
}

/// A server that may ingest what is below `/films/` of `origin`, and from public hosts.
fn administered(origin: &str, patience: Duration, webhook: Option<WebhookTarget>) -> Administered {
    // A name that is too long is not found without a resolver.
    let long = format!("http://{}/", "a".repeat(64));
    let prefixes = [&*format!("{origin}/films/"), "http://127.0.0.1:9/", &*long, "http://"];
    let ingest_from = prefixes.map(|prefix| prefix.parse().unwrap()).to_vec();
    Administered::with(patience, |config| {
        config.ingest_from = ingest_from;
        config.webhook = webhook;
    })
}

#[test]
fn each_download_is_ingested_or_refused_with_its_reason() {
    let origin = origin();
    let (url, events) = receiver(&[]);
    let patience = Duration::from_millis(500);
    let webhook = Some(WebhookTarget { url, secret: None });
    let api = administered(&origin, patience, webhook);
    let document = api.serving.client().get("/api/v1/openapi.json").json();
    let operations = operations(&document);
    let operation = &operations.iter().find(|(id, _)| id == "downloadTitle").unwrap().1;
    let here = |path: &str| format!("{origin}{path}");
    let long = format!("http://{}/film", "a".repeat(64));
    let by_name = origin.replace("127.0.0.1", "localhost");
    let rows = [
        ("one", here("/films/song.m4a?signature=secret"), 201, ""),
        ("two/a", here("/films/unknown"), 201, ""),
        ("three", here("/films/moved"), 201, ""),
        ("one", here("/films/song.m4a"), 409, "one"),
        ("x", here("/films/none?signature=secret"), 502, "answers with 404"),
        ("x", here("/films/text"), 422, "the file"),
        ("x", here("/films/empty"), 502, "empty"),
        ("x", here("/films/large"), 413, "free space"),
        ("x", here("/films/cut"), 502, "/films/cut cannot be downloaded"),
        ("x", here("/films/stalls"), 502, "too slowly"),
        ("x", here("/films/words"), 502, "/films/words cannot be downloaded"),
        ("x", here("/films/local"), 502, "begins neither with https://"),
        ("x", here("/films/round"), 502, "more than 5 redirects"),
        // Allowed as public hosts are, and not in public networks.
        ("x", here("/films/away"), 502, "private network"),
        ("x", here("/films/../others/film"), 403, "no address that this server may ingest"),
        ("x", format!("{by_name}/films/song.m4a"), 502, "private network"),
        ("x", "http://[::1]:9/".to_owned(), 502, "private network"),
        ("x", "http://127.0.0.1:9/film".to_owned(), 502, "refuses the connection"),
        ("x", long, 502, "host is not found"),
        ("x", "https://media.example/film".to_owned(), 403, "may ingest"),
        ("x", "file:///etc/passwd".to_owned(), 400, "begins neither"),
        ("x", "concat:/etc/passwd".to_owned(), 400, "begins neither"),
        ("x", "rtsp://127.0.0.1/film".to_owned(), 400, "begins neither"),
    ];
    for (title, url, status, said) in &rows {
        let response = api.download(&title.replace('/', "%2F"), url);
        let body = response.json();
        assert_eq!(response.status, *status, "{url}: {body}");
        assert_documented(&document, operation, &response, url);
        let detail = body["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(said) && !detail.contains("secret"), "{url}: {detail}");
    }
    assert_eq!(api.uploads(), 0);
    assert!(api.ingests().is_empty());
    let files = ["one", "two%2Fa", "three"].map(|title| api.ask("GET", &api.title(title), "", b""));
    let contents = files.map(|file| file.json()["content"].clone());
    assert_eq!(contents[0], contents[1]);
    assert_eq!(contents[0], contents[2]);

    let unlike = api.ask("POST", &api.title("x?as=film"), JSON, br#"{"url":"http://a/"}"#);
    assert_eq!((unlike.status, &unlike.json()["error"]), (400, &"bad-parameter".into()));
    let told = || -> Vec<String> {
        let list = events.lock().unwrap();
        let events = list.iter().map(|(_, body)| serde_json::from_str::<Value>(body).unwrap());
        events.map(|event| format!("{} {}", event["event"], event["title"])).collect()
    };
    // What was begun is told; what is not allowed is answered and not told.
    eventually("as many events as downloads", || told().len() == 17);
    let done = told().iter().filter(|event| event.starts_with(r#""ingest-done""#)).count();
    assert_eq!(done, 3, "{:?}", told());
}

#[test]
fn downloads_and_uploads_are_listed_and_cancelled() {
    let origin = origin();
    let api = administered(&origin, Duration::from_secs(20), None);
    let document = api.serving.client().get("/api/v1/openapi.json").json();
    let operations = operations(&document);
    let operation = |id| &operations.iter().find(|(name, _)| name == id).unwrap().1;
    let (mut downloading, mut uploading) = (api.serving.client(), api.serving.client());
    api.begin_download(&mut downloading, "down", &format!("{origin}/films/stalls?key=secret"));
    let song = std::fs::read(&media().song).unwrap();
    let half = song.len() / 2;
    eventually("half of the song is downloaded", || {
        api.ingests().first().is_some_and(|one| one["done"] == half)
    });
    api.begin(&mut uploading, "PUT", &api.title("up"), "Content-Length: 1000\r\n");
    uploading.send(&song[..10]);
    eventually("ten bytes are uploaded", || {
        api.ingests().get(1).is_some_and(|one| one["done"] == 10)
    });
    let listed = api.ask("GET", "/api/v1/ingests", "", b"");
    assert_documented(&document, operation("listIngests"), &listed, "listIngests");
    let rows = api.ingests();
    let shown = |row: &Value| {
        let [title, address, stage] = ["title", "address", "stage"].map(|name| row[name].clone());
        format!("{title} {address} {stage} {}", row["total"])
    };
    let address = format!("{origin}/films/stalls");
    assert_eq!(shown(&rows[0]), format!(r#""down" "{address}" "receiving" {}"#, song.len()));
    assert_eq!(shown(&rows[1]), r#""up" null "receiving" 1000"#);

    for (row, client) in [(&rows[0], &mut downloading), (&rows[1], &mut uploading)] {
        let path = format!("/api/v1/ingests/{}", row["ingest"]);
        let detail = || {
            let detail = api.ask("GET", &path, "", b"");
            assert_documented(&document, operation("getIngest"), &detail, "getIngest");
            detail.json()
        };
        let running = detail();
        assert_eq!((&running["title"], &running["ended"]), (&row["title"], &Value::Null));
        let done = api.ask("DELETE", &path, "", b"");
        assert_documented(&document, operation("cancelIngest"), &done, "cancelIngest");
        assert_eq!(done.status, 204);
        let cancelled = client.read_response(true).unwrap();
        assert_eq!((cancelled.status, &cancelled.json()["error"]), (409, &"cancelled".into()));
        // What came of it is known before its client hears of it.
        let ended = detail();
        assert_eq!((&ended["stage"], &ended["done"]), (&row["stage"], &row["done"]), "{ended}");
        assert_eq!(ended["ended"]["status"], 409, "{ended}");
        assert_eq!(ended["ended"]["error"], "cancelled", "{ended}");
    }
    eventually("nothing is under way", || api.ingests().is_empty() && api.uploads() == 0);
    let gone = api.ask("DELETE", &format!("/api/v1/ingests/{}", rows[0]["ingest"]), "", b"");
    assert_eq!(gone.status, 404);

    // One that makes a title says so, too.
    let made = api.ask("PUT", &format!("{}?as=file", api.title("made")), "", b"bytes");
    assert_eq!(made.status, 201, "{}", made.text());
    let number = rows[1]["ingest"].as_u64().unwrap() + 1;
    let ended = api.ask("GET", &format!("/api/v1/ingests/{number}"), "", b"").json();
    assert_eq!((&ended["title"], &ended["ended"]["status"]), (&"made".into(), &201.into()));
    assert!(ended["ended"]["error"].is_null(), "{ended}");

    // A client that goes does not end a download, and the end of the server does.
    let mut going = api.serving.client();
    api.begin_download(&mut going, "gone", &format!("{origin}/films/stalls"));
    eventually("it is downloaded", || api.ingests().len() == 1);
    drop(going);
    assert_eq!(api.ask("GET", "/api/v1/disks", "", b"").status, 200);
    assert_eq!(api.ingests().len(), 1);
    let directory = api.fixture.directory.join("uploads");
    drop(api.serving);
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}

/// A client that sends a file learns that it was not ingested, and that another try may be.
#[test]
fn ingests_are_answered_before_a_server_that_stops_closes_their_connections() {
    let origin = origin();
    let api = administered(&origin, Duration::from_secs(20), None);
    let (mut downloading, mut uploading) = (api.serving.client(), api.serving.client());
    api.begin_download(&mut downloading, "down", &format!("{origin}/films/stalls"));
    api.begin(&mut uploading, "PUT", &api.title("up"), "Content-Length: 100000\r\n");
    uploading.send(&[0; 10]);
    eventually("both are under way", || api.ingests().len() == 2);
    api.serving.server.stop(Duration::ZERO);
    for client in [&mut uploading, &mut downloading] {
        let answer = client.read_response(true).expect("an answer");
        assert_eq!((answer.status, &answer.json()["error"]), (503, &"cancelled".into()));
        assert!(answer.field("retry-after").is_some(), "{answer:?}");
    }
    let directory = api.fixture.directory.join("uploads");
    drop(api.serving);
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}
