//! A service of the operator's that is asked before a viewer's session begins: what it is asked,
//! what its answers do, and who notices when it has none.

use crate::client::{TestResponse, playlist_uris};
use crate::directed;
use crate::directed_rtsp::{QUESTION, reserved, with_rtsp};
use crate::fixture::{TestServer, TestStore, eventually, media};
use crate::renditions;
use crate::rtsp::{Player, interleaved};
use crate::tls::secured;
use cluster::NodeId;
use director::question::SignedText;
use ring::hmac;
use scheduler::PolicyKind;
use serde_json::{Value, json};
use server::access::{TokenClaims, new_key_file};
use server::{AuthRequestTarget, Server, ServerConfig, Unanswered};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::etcd::TestEtcd;

const MASTER: &str = "/t/film/master.m3u8";
const YES: &str = "HTTP/1.1 204 Yes\r\n\r\n";
const NO: &str = "HTTP/1.1 403 No\r\nContent-Length: 13\r\n\r\nunpaid\nsecret";

/// A service: what it was asked, and what it sends as its answer.
#[derive(Clone)]
struct Service {
    url: String,
    state: Arc<(Mutex<ServiceState>, Condvar)>,
}

#[derive(Default)]
struct ServiceState {
    asked: Vec<Value>,
    /// The bodies of the questions, with their signatures.
    signed: Vec<(String, Option<String>)>,
    answer: String,
    /// Whether questions are read and not answered.
    hangs: bool,
    /// Whether a connection ends after its answer, which does not say so.
    closes: bool,
}

impl Service {
    fn start(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/may-play", listener.local_addr().unwrap());
        let service = Self { url, state: Arc::default() };
        service.answers(answer);
        let serving = service.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream.unwrap()));
            }
        });
        service
    }

    /// Answers the questions of a connection, until one of them has an answer that ends it.
    fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Some((body, signature)) = read_question(&mut stream) {
            let (state, changed) = &*self.state;
            let mut state = state.lock().unwrap();
            state.asked.push(serde_json::from_str(&body).unwrap());
            state.signed.push((body, signature));
            while state.hangs {
                state = changed.wait(state).unwrap();
            }
            let (answer, closes) = (state.answer.clone(), state.closes);
            drop(state);
            let _ = stream.get_mut().write_all(answer.as_bytes());
            if closes || answer.is_empty() || answer.contains("Connection: close") {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, ServiceState> {
        self.state.0.lock().unwrap()
    }

    fn answers(&self, answer: &str) {
        self.state().answer = answer.to_owned();
    }

    fn hangs(&self, hangs: bool) {
        self.state().hangs = hangs;
        self.state.1.notify_all();
    }

    /// What it was asked since the last call.
    fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut self.state().asked)
    }

    fn target(&self) -> Option<AuthRequestTarget> {
        let (url, timeout) = (self.url.clone(), Duration::from_secs(30));
        Some(AuthRequestTarget { url, timeout, unanswered: Unanswered::Refuse, secret: None })
    }
}

/// The body of a question, and its signature.
fn read_question(stream: &mut impl BufRead) -> Option<(String, Option<String>)> {
    let (mut length, mut signature) = (0, None);
    for number in 0.. {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if number == 0 {
            assert_eq!(line.trim_end(), "POST /may-play HTTP/1.1");
        }
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(("content-type", value)) => assert_eq!(value, "application/json"),
            Some(("tenuto-signature", value)) => signature = Some(value.to_owned()),
            None if line == "\r\n" => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((String::from_utf8(body).unwrap(), signature))
}

fn json_answer(more: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{more}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn serve(fixture: &TestStore, service: &Service) -> TestServer {
    serve_with(fixture, service, |_| {})
}

fn serve_with(
    fixture: &TestStore,
    service: &Service,
    change: impl FnOnce(&mut ServerConfig),
) -> TestServer {
    fixture.serve_with(|config| {
        config.auth_request = service.target();
        change(config);
    })
}

fn count(serving: &TestServer, outcome: &str) -> u64 {
    serving.status(&format!("/authorizations/{outcome}"))
}

/// The fields of a question, without its number.
fn fields(question: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| question[name].clone()).collect()
}

#[test]
fn the_service_is_told_who_wants_what_before_each_session_and_of_nothing_else() {
    let fixture = TestStore::with(&[&media().film]);
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let token = TokenClaims { exp: u64::MAX, ..TokenClaims::default() }.sign(&keys).unwrap();
    let service = Service::start(YES);
    let serving = serve_with(&fixture, &service, |config| {
        config.tokens = Some(keys.clone());
        config.fills = Some(4);
    });
    let mut client = serving.client();
    let player = [("User-Agent", "player/1"), ("X-Forwarded-For", "192.0.2.9")];
    let names =
        ["title", "protocol", "client", "priority", "user_agent", "forwarded_for", "claims"];
    for (path, more, protocol, priority) in [
        ("/t/film/master.m3u8", "", "hls", "normal"),
        ("/t/film/master-ts.m3u8", "", "hls-ts", "normal"),
        ("/t/film/manifest.mpd", "", "dash", "normal"),
        ("/t/film/ondemand.mpd", "", "dash-files", "normal"),
        ("/t/film.mp4", "", "mp4", "normal"),
        ("/t/film.ts", "&rate=4Mbps", "ts", "normal"),
        ("/t/film/master.m3u8", "&priority=low", "hls", "low"),
    ] {
        let answer = client.request("GET", &format!("{path}?token={token}{more}"), &player);
        assert!([200, 307].contains(&answer.status), "{path}: {}", answer.text());
        let asked = service.asked();
        assert_eq!(asked.len(), 1, "{path}: {asked:?}");
        let claims = json!({ "exp": u64::MAX });
        let wanted =
            ["film", protocol, "127.0.0.1", priority, "player/1", "192.0.2.9"].map(Value::from);
        assert_eq!(fields(&asked[0], &names), [&wanted[..], &[claims]].concat(), "{path}");
        assert!(asked[0]["id"].as_str().is_some_and(|id| id.len() == 36), "{asked:?}");
        // All that the manifest names is of the session.
        if path == MASTER {
            let list = &playlist_uris(answer.text(), MASTER)[0];
            let segments = playlist_uris(client.get(list).text(), list);
            assert!(segments.iter().all(|segment| client.get(segment).status == 200));
        }
    }
    let with_token = |path: &str| format!("{path}?token={token}");
    for (method, path, status) in [
        ("GET", MASTER.to_owned(), 401),
        ("GET", with_token("/t/none/master.m3u8"), 404),
        ("GET", with_token(MASTER) + "&speed=0", 400),
        ("HEAD", with_token(MASTER), 200),
        ("OPTIONS", MASTER.to_owned(), 204),
        ("GET", with_token("/titles"), 200),
        ("GET", with_token("/t/film/thumbnails.vtt"), 404),
        ("GET", "/healthz".to_owned(), 200),
    ] {
        let answer = serving.client().request(method, &path, &[]);
        assert_eq!(answer.status, status, "{method} {path}");
    }
    assert_eq!(service.asked(), Vec::<Value>::new());
}

#[test]
fn a_viewer_who_is_refused_learns_no_more_and_the_log_has_the_reason() {
    let fixture = TestStore::with(&[&media().film]);
    let log = fixture.directory.join("access.log");
    let service = Service::start(NO);
    let serving = serve_with(&fixture, &service, |config| config.access_log = Some(log.clone()));
    let mut client = serving.client();
    for answer in [
        NO,
        &NO.replace("403", "401"),
        "HTTP/1.1 403 No\r\nContent-Length: 99\r\nConnection: close\r\n\r\ncut",
    ] {
        service.answers(answer);
        for path in [MASTER, "/t/film/manifest.mpd", "/t/film.mp4"] {
            let refused = client.get(path);
            assert_eq!((refused.status, &*refused.error()), (403, "not-authorized"), "{path}");
            assert!(!refused.text().contains("secret"), "{}", refused.text());
        }
    }
    assert_eq!((serving.status("/sessions"), count(&serving, "refused")), (0, 9));
    let ids: Vec<String> =
        service.asked().iter().map(|asked| asked["id"].as_str().unwrap().to_owned()).collect();
    let metrics = client.get("/metrics");
    assert!(metrics.text().contains("tenuto_authorizations_total{outcome=\"refused\"} 9"));
    assert!(metrics.text().contains("tenuto_auth_request_seconds_count 9"), "{}", metrics.text());
    drop(serving);
    let lines = std::fs::read_to_string(&log).unwrap();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "auth-refused").collect();
    assert_eq!(refused.len(), 9, "{lines}");
    let names = ["title", "client", "status", "reason"];
    let wanted = [json!("film"), json!("127.0.0.1"), json!(403), json!("unpaid secret")];
    assert_eq!(fields(refused[0], &names), wanted);
    assert_eq!(fields(refused[3], &["status"]), [json!(401)]);
    assert!(ids.contains(&refused[0]["id"].as_str().unwrap().to_owned()));
}

#[test]
fn an_answer_may_take_away_and_not_give() {
    let fixture = renditions::film();
    let service = Service::start(YES);
    let serving = serve(&fixture, &service);
    let mut client = serving.client();
    // The answer, the query, the status, whether the large rendition is listed, and the priority.
    for (limits, query, status, large, priority) in [
        ("{}", "", 200, true, "normal"),
        (r#"{"max_height":360}"#, "", 200, true, "normal"),
        (r#"{"max_height":359}"#, "", 200, false, "normal"),
        (r#"{"max_height":89}"#, "", 403, false, ""),
        (r#"{"priority":"low"}"#, "", 200, true, "low"),
        (r#"{"priority":"high"}"#, "", 200, true, "normal"),
        (r#"{"priority":"normal"}"#, "?priority=low", 200, true, "low"),
        (r#"{"priority":"low","max_height":90}"#, "", 200, false, "low"),
    ] {
        service.answers(&json_answer("", limits));
        let answer = client.get(&format!("{MASTER}{query}"));
        assert_eq!(answer.status, status, "{limits}: {}", answer.text());
        if status != 200 {
            continue;
        }
        assert_eq!(answer.text().contains("RESOLUTION=640x360"), large, "{limits}");
        let list = &playlist_uris(answer.text(), MASTER)[0];
        let (_, session) = list.split_once('?').unwrap();
        // The status is that of the last slot.
        let of_priority = format!("/sessions_by_priority/{priority}");
        eventually(limits, || serving.status(&of_priority) == 1);
        // Nor by an address that a player makes up: the large rendition is track 0.
        assert_eq!(
            client.get(&format!("/t/film/0.m3u8?{session}")).status == 200,
            large,
            "{limits}"
        );
        let ended = client.request("DELETE", &format!("/t/film/session?{session}"), &[]);
        assert_eq!(ended.status, 204);
        eventually("the session has ended", || serving.status("/sessions") == 0);
    }
}

#[test]
fn without_a_usable_answer_a_viewer_is_refused_for_now_or_admitted_as_configured() {
    let fixture = TestStore::with(&[&media().film]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    let service = Service::start("");
    let (_store, _authority, stranger) = secured(&[], |_| {});
    let huge = format!("{{\"max_height\":{}1}}", " ".repeat(100_000));
    let answers: Vec<(&str, String)> = vec![
        ("ends the connection at once", String::new()),
        ("no HTTP", "220 mail.example ESMTP\r\nConnection: close\r\n\r\n".to_owned()),
        ("no JSON", json_answer("", "OK")),
        ("an unknown field", json_answer("", r#"{"allow":true}"#)),
        ("a limit of another form", json_answer("", r#"{"max_height":"720p"}"#)),
        ("an empty limit", json_answer("", r#"{"max_height":null}"#)),
        ("a huge body", json_answer("", &huge)),
        (
            "a body that is cut off",
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n{".to_owned(),
        ),
        (
            "a redirect",
            "HTTP/1.1 307 There\r\nLocation: /may-play\r\nContent-Length: 0\r\n\r\n".to_owned(),
        ),
        ("404", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_owned()),
        ("429", "HTTP/1.1 429 Later\r\nContent-Length: 0\r\n\r\n".to_owned()),
        ("500", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned()),
    ];
    for unanswered in [Unanswered::Refuse, Unanswered::Allow] {
        let target = |url: &str, timeout| {
            let url = url.to_owned();
            Some(AuthRequestTarget { url, timeout, unanswered, secret: None })
        };
        let check = |case: &str, answer: &TestResponse| match unanswered {
            Unanswered::Allow => assert_eq!(answer.status, 200, "{case}"),
            Unanswered::Refuse => {
                let found = (answer.status, &*answer.error());
                assert_eq!(found, (503, "authorization-unanswered"), "{case}");
                assert_eq!(answer.field("retry-after"), Some("5"), "{case}");
            }
        };
        let long = Duration::from_secs(30);
        let serving = fixture.serve_with(|config| config.auth_request = target(&service.url, long));
        for (case, answer) in &answers {
            service.answers(answer);
            check(case, &serving.client().get(MASTER));
        }
        assert_eq!(count(&serving, "unanswered"), answers.len() as u64);
        service.answers(YES);
        service.state().closes = true;
        for _ in 0..3 {
            assert_eq!(serving.client().get(MASTER).status, 200, "it answers again");
        }
        service.state().closes = false;
        drop(serving);
        let serving = fixture.serve_with(|config| config.auth_request = target(&dead, long));
        check("nobody listens", &serving.client().get(MASTER));
        drop(serving);
        let url = format!("https://{}/", stranger.server.address());
        let serving = fixture.serve_with(|config| config.auth_request = target(&url, long));
        check("a certificate that nobody vouches for", &serving.client().get(MASTER));
        drop(serving);
        let short = Duration::from_millis(100);
        let serving =
            fixture.serve_with(|config| config.auth_request = target(&service.url, short));
        service.hangs(true);
        check("no answer", &serving.client().get(MASTER));
        service.hangs(false);
    }
}

#[test]
fn an_answer_is_kept_as_long_as_it_says_for_the_same_question() {
    let fixture = TestStore::with(&[&media().film, &media().song]);
    let service = Service::start(YES);
    let serving = serve(&fixture, &service);
    let mut client = serving.client();
    let mut ask = |path: &str, player: &str| {
        let status = client.request("GET", path, &[("User-Agent", player)]).status;
        (status, service.asked().len())
    };
    assert_eq!([ask(MASTER, "a"), ask(MASTER, "a")], [(200, 1), (200, 1)], "nothing is kept");
    service.answers(&json_answer("Cache-Control: max-age=600\r\n", ""));
    assert_eq!([ask(MASTER, "a"), ask(MASTER, "a")], [(200, 1), (200, 0)]);
    for (path, player) in
        [(MASTER, "b"), ("/t/film/manifest.mpd", "a"), ("/t/song/master.m3u8", "a")]
    {
        assert_eq!([ask(path, player), ask(path, player)], [(200, 1), (200, 0)], "{path} {player}");
    }
    let no = NO.replace("No\r\n", "No\r\nCache-Control: private, max-age=600\r\n");
    service.answers(&no);
    assert_eq!([ask(MASTER, "c"), ask(MASTER, "c")], [(403, 1), (403, 0)], "so are refusals");
    assert_eq!(ask(MASTER, "a"), (200, 0), "an answer that is kept stays as it is");
    // What is no answer is not kept.
    service.answers("HTTP/1.1 500 No\r\nCache-Control: max-age=600\r\nContent-Length: 0\r\n\r\n");
    assert_eq!([ask(MASTER, "d"), ask(MASTER, "d")], [(503, 1), (503, 1)]);
}

/// While the service hangs, and more viewers wait than are asked for at a time, all others get
/// their answers: none of the waiting ones had one before.
#[test]
fn a_service_that_hangs_holds_up_nobody_else() {
    let fixture = TestStore::with(&[&media().film]);
    let service = Service::start(&json_answer("Cache-Control: max-age=600\r\n", ""));
    let serving = serve_with(&fixture, &service, |config| {
        config.policy = PolicyKind::None;
        config.rtsp = "127.0.0.1:0".parse().ok();
        config.http_threads = 1;
    });
    let mut viewer = serving.client();
    let list = playlist_uris(viewer.get(MASTER).text(), MASTER)[0].clone();
    let segments = playlist_uris(viewer.get(&list).text(), &list);
    service.asked();
    service.hangs(true);
    let begin = |player: String| {
        let mut client = serving.client();
        let head = format!("GET {MASTER} HTTP/1.1\r\nHost: a\r\nUser-Agent: {player}\r\n\r\n");
        client.send(head.as_bytes());
        client
    };
    // Each asks something else, and as many ask the same.
    let (different, same) = (100, 50);
    let mut waiting: Vec<_> = (0..different).map(|number| begin(number.to_string())).collect();
    waiting.extend((0..same).map(|_| begin("the same".to_owned())));
    let all = waiting.len() as u64;
    eventually("all wait", || count(&serving, "waiting") == all);

    assert!(segments.iter().all(|segment| viewer.get(segment).status == 200), "who plays, plays");
    assert_eq!(serving.client().get(MASTER).status, 200, "an answer was kept");
    assert_eq!(serving.client().get("/t/none/master.m3u8").status, 404);
    assert_eq!(serving.client().get("/titles").status, 200);
    assert_eq!(Player::connect(&serving).ask("OPTIONS", "/t/film", "").status, 200);
    // Who gives up changes nothing for the others.
    drop(waiting.pop());
    assert_eq!((count(&serving, "waiting"), count(&serving, "allowed")), (all, 2));
    eventually("so many are asked at a time", || service.state().asked.len() == 64);

    service.hangs(false);
    for client in &mut waiting {
        assert_eq!(client.read_response(true).expect("an answer").status, 200);
    }
    assert_eq!(service.asked().len(), different + 1, "one question for all who ask the same");
    assert_eq!(count(&serving, "waiting"), 0);
    let shared = format!("tenuto_authorizations_shared_total {}", same - 1 + 1);
    let metrics = serving.client().get("/metrics").text().to_owned();
    assert!(metrics.contains(&shared), "{metrics}");
}

/// A service that hangs when the server ends, or when another takes its place, holds up neither.
#[test]
fn a_reload_asks_another_service_and_waits_for_none() {
    let fixture = TestStore::with(&[&media().film]);
    let (old, new) = (Service::start(YES), Service::start(NO));
    let written = Arc::new(Mutex::new(ServerConfig::default()));
    let serving = fixture.serve_with(|config| {
        *written.lock().unwrap() = config.clone();
    });
    let source = Arc::clone(&written);
    serving.server.reads_again_from(move || Ok(source.lock().unwrap().clone()));
    let write = |target: Option<AuthRequestTarget>| {
        written.lock().unwrap().auth_request = target;
        serving.server.reload().map(|report| report.changed.join(" "))
    };
    let status = || serving.client().get(MASTER).status;
    let all = "auth-request auth-request-timeout auth-request-unanswered auth-request-secret";
    assert_eq!(
        (status(), serving.client().get("/status").json()["authorizations"].clone()),
        (200, Value::Null)
    );
    assert_eq!(write(old.target()).unwrap(), all);
    assert_eq!((status(), old.asked().len()), (200, 1));

    old.hangs(true);
    let mut waiting = serving.client();
    waiting.send(format!("GET {MASTER} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    eventually("it waits", || count(&serving, "waiting") == 1);
    assert_eq!(write(new.target()).unwrap(), "auth-request");
    assert_eq!((status(), new.asked().len()), (403, 1));
    old.hangs(false);
    assert_eq!(waiting.read_response(true).unwrap().status, 200, "its answer is still taken");

    new.answers(&json_answer("Cache-Control: max-age=600\r\n", ""));
    assert_eq!((status(), new.asked().len()), (200, 1));
    assert_eq!(
        (write(new.target()).unwrap(), status(), new.asked().len()),
        (String::new(), 200, 0)
    );
    let bad = AuthRequestTarget { url: "ftp://a/".to_owned(), ..new.target().unwrap() };
    let error = units::Hinted::one_line(&write(Some(bad)).unwrap_err());
    assert!(error.contains("--auth-request ftp://a/ begins neither with"), "{error}");
    let later = AuthRequestTarget { timeout: Duration::from_secs(9), ..new.target().unwrap() };
    assert_eq!(write(Some(later)).unwrap(), "auth-request-timeout");
    assert_eq!(
        (status(), new.asked().len()),
        (200, 1),
        "the answers before are of another service"
    );
    assert_eq!(write(None).unwrap(), all);
    assert_eq!((status(), new.asked().len()), (200, 0));

    assert_eq!(write(old.target()).unwrap(), all);
    old.hangs(true);
    let mut waiting = serving.client();
    waiting.send(format!("GET {MASTER} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    eventually("it waits", || count(&serving, "waiting") == 1);
    drop(serving);
    assert!(waiting.read_response(true).is_none(), "the server has ended first");
    old.hangs(false);
}

/// The key is that of the webhook's signature, and so is the form.
#[test]
fn questions_are_signed_and_a_reload_reads_the_secret_again() {
    let fixture = TestStore::with(&[&media().film]);
    let service = Service::start(&json_answer("Cache-Control: max-age=600\r\n", ""));
    let secret = fixture.directory.join("secret");
    let write = |text: &str, mode: u32| {
        std::fs::write(&secret, text).unwrap();
        std::fs::set_permissions(&secret, Permissions::from_mode(mode)).unwrap();
    };
    let target = || AuthRequestTarget { secret: Some(secret.clone()), ..service.target().unwrap() };
    let config = || ServerConfig { auth_request: Some(target()), ..fixture.config() };
    for (text, mode, why) in [
        ("0123456789abcdef", 0o644, "it can be read by other users"),
        ("0123456789abcde\n", 0o600, "it has fewer than 16 bytes"),
    ] {
        write(text, mode);
        let error = units::Hinted::one_line(&Server::check(&config()).unwrap_err());
        assert!(error.contains(why) && error.contains("--auth-request-secret"), "{error}");
    }
    write("0123456789abcdef\n", 0o600);
    let started = config();
    let serving = fixture.serve_with(|config| *config = started);
    serving.server.reads_again_from({
        let config = config();
        move || Ok(config.clone())
    });
    let asked_with = |key: &str| {
        assert_eq!(serving.client().get(MASTER).status, 200);
        let signed = std::mem::take(&mut service.state().signed);
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
        for (body, signature) in &signed {
            let tag = units::from_hex(signature.as_ref().unwrap().strip_prefix("sha256=").unwrap());
            hmac::verify(&key, body.as_bytes(), &tag.unwrap()).expect("signed with the secret");
            let question: Value = serde_json::from_str(body).unwrap();
            let time = question["time"].as_str().expect("a time");
            assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        }
        signed.len()
    };
    assert_eq!([asked_with("0123456789abcdef"), asked_with("0123456789abcdef")], [1, 0]);
    assert_eq!(serving.server.reload().unwrap().changed, Vec::<String>::new());
    assert_eq!(asked_with("0123456789abcdef"), 0, "the same secret: answers are kept");
    write("fedcba9876543210", 0o600);
    serving.server.reload().unwrap();
    assert_eq!([asked_with("fedcba9876543210"), asked_with("fedcba9876543210")], [1, 0]);
}

/// Whatever an answer says, a viewer whose time is over is refused; a session ends at its time as
/// if an operator had ended it.
#[test]
fn a_session_ends_when_its_answer_says() {
    let fixture = TestStore::with(&[&media().film]);
    let log = fixture.directory.join("access.log");
    let service = Service::start(YES);
    let serving = serve_with(&fixture, &service, |config| config.access_log = Some(log.clone()));
    let mut client = serving.client();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let until = |second: u64| {
        service.answers(&json_answer(
            "Cache-Control: max-age=600\r\n",
            &format!("{{\"exp\":{second}}}"),
        ));
    };
    until(now());
    for _ in 0..2 {
        let refused = client.get(MASTER);
        assert_eq!((refused.status, &*refused.error()), (403, "not-authorized"));
    }
    assert_eq!((count(&serving, "refused"), service.asked().len()), (2, 2), "nothing is kept");

    // On a machine that is too slow for two seconds the time is over before the session begins.
    let mut wait = 2;
    let (second, master) = loop {
        let second = now() + wait;
        until(second);
        let answer = client.get(MASTER);
        if answer.status == 200 {
            break (second, answer);
        }
        wait *= 2;
    };
    let list = playlist_uris(master.text(), MASTER)[0].clone();
    eventually("the session has ended", || client.get(&list).status == 410);
    assert!(now() >= second, "not before its time");
    assert_eq!(client.get(&list).error(), "session-ended");
    assert_eq!(serving.client().get("/sessions").json()["total"], 0);
    let decisions = serving.client().get("/api/v1/decisions").json();
    let ended = &decisions["decisions"][0];
    assert_eq!(fields(ended, &["subject", "verdict", "reason"]), ["end", "ended", "expired"]);
    service.asked();
    service.answers(YES);
    assert_eq!((client.get(MASTER).status, service.asked().len()), (200, 1), "and is asked again");
    drop(serving);
    let lines = std::fs::read_to_string(&log).unwrap();
    let ends = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = ends.filter(|event| event["event"] == "session-ended" && event["expired"] == true);
    assert_eq!(ends.map(|event| event["cut_short"].clone()).collect::<Vec<_>>(), [Value::Null]);
}

#[test]
fn the_end_of_a_session_goes_with_it_to_the_next_program_and_to_another_node() {
    let etcd = TestEtcd::new();
    let stores = [TestStore::with(&[&media().film]), TestStore::with(&[&media().film])];
    let service = Service::start(&json_answer("", r#"{"exp":4000000000}"#));
    let node = |store, name: &str| {
        directed::node(store, &etcd, |config| {
            config.auth_request = service.target();
            config.cluster.as_mut().unwrap().node = NodeId::new(name).unwrap();
        })
    };
    let (first, second) = (node(&stores[0], "n1"), node(&stores[1], "n2"));
    let elsewhere = &*format!("n2=http://{}", second.server.address());
    let steering = "http://d/steer/film?node=n1";
    let question = SignedText { client: directed::VIEWER, target: MASTER, steering, elsewhere };
    let asked = directed::ask_telling(&mut first.client(), question);
    let master = first.client().get(asked.field("location").unwrap()).text().to_owned();
    let variant = directed::variant_of(&master);
    let (_, query) = variant.split_once('?').unwrap();
    assert_eq!(second.client().get(&format!("/t/film/0/1.m4s?{query}")).status, 200);
    let ends = |serving: &TestServer| {
        let list = serving.client().get("/sessions").json();
        let all = list["sessions"].as_array().unwrap().iter();
        all.map(|session| session["until"].clone()).collect::<Vec<_>>()
    };
    assert_eq!([ends(&first), ends(&second)], [[4_000_000_000_u64]; 2]);
    drop((first, second));

    let config = ServerConfig { auth_request: service.target(), ..stores[0].config() };
    let started = config.clone();
    let serving = stores[0].serve_with(|config| *config = started);
    assert_eq!(serving.client().get(MASTER).status, 200);
    let handover = serving.server.hand_over().unwrap();
    let serving = TestServer { server: Server::take_over(handover, config).unwrap() };
    assert_eq!(ends(&serving), [4_000_000_000_u64]);
}

#[test]
fn players_of_rtsp_are_asked_for_once_in_each_session() {
    let fixture = renditions::film();
    let service = Service::start(NO);
    let serving = serve_with(&fixture, &service, |config| config.rtsp = "127.0.0.1:0".parse().ok());
    let agent = "User-Agent: box/2\r\n";
    let mut player = Player::connect(&serving);
    let refused = player.ask("DESCRIBE", "/t/film", agent);
    assert!(refused.status == 403 && refused.body.contains("not-authorized"), "{refused:?}");
    assert!(!refused.body.contains("secret"));
    let names = ["title", "protocol", "client", "priority", "user_agent"];
    let wanted = ["film", "rtsp", "127.0.0.1", "normal", "box/2"].map(Value::from);
    assert_eq!(fields(&service.asked()[0], &names), wanted);

    service.answers("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    let reply = player.ask("DESCRIBE", "/t/film", agent);
    assert_eq!((reply.status, reply.field("Retry-After")), (503, "5"), "{reply:?}");
    service.answers(&json_answer("", r#"{"max_height":90}"#));
    let large = format!("Transport: {}\r\n", interleaved(0).1);
    assert_eq!(player.ask("DESCRIBE", "/t/none", agent).status, 404);
    service.asked();
    let tracks = player.ask("DESCRIBE", "/t/film", agent).body;
    assert!(!tracks.contains("trackID=0\r\n") && tracks.contains("trackID=1\r\n"), "{tracks}");
    let reply = player.ask("SETUP", "/t/film/trackID=0", &large);
    assert_ne!(reply.status, 200, "not the large one");
    player.set_up("film", &[interleaved(1)]);
    assert_eq!(player.ask("PLAY", "/t/film/", "").status, 200);
    assert_eq!(player.ask("PAUSE", "/t/film/", "").status, 200);
    assert_eq!(player.ask("PLAY", "/t/film/", "Range: npt=1-\r\n").status, 200);
    assert_eq!(service.asked().len(), 1, "one session");

    service.answers(YES);
    assert_eq!(player.ask("TEARDOWN", "/t/film/", "").status, 200);
    player.session.clear();
    player.set_up("film", &[interleaved(0)]);
    assert_eq!(player.ask("PLAY", "/t/film/", "").status, 200);
    assert_eq!(service.asked().len(), 1, "another, with another answer");
}

#[test]
fn a_node_asks_for_the_viewer_of_a_director_and_not_again_for_its_session() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::default());
    let service = Service::start(YES);
    let serving = directed::node(&fixture, &etcd, |config| {
        with_rtsp(config);
        config.auth_request = service.target();
    });
    let mut client = serving.client();
    service.asked();
    let answer = directed::ask(&mut client, directed::VIEWER, MASTER);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let asked = service.asked();
    assert_eq!(fields(&asked[0], &["client", "protocol"]), [directed::VIEWER, "hls"]);
    let location = answer.field("location").unwrap();
    assert_eq!((client.get(location).status, service.asked().len()), (200, 0));

    let target = reserved(&serving, QUESTION);
    assert_eq!(fields(&service.asked()[0], &["client", "protocol"]), [directed::VIEWER, "rtsp"]);
    let mut player = Player::connect(&serving);
    assert_eq!(player.ask("DESCRIBE", &target, "").status, 200);
    player.set_up("film", &[interleaved(0)]);
    assert_eq!(player.ask("PLAY", "/t/film", "").status, 200);
    assert_eq!(service.asked().len(), 0, "the ticket stands for the answer");

    service.answers(NO);
    let refused = directed::ask(&mut client, directed::VIEWER, MASTER);
    assert_eq!((refused.status, &*refused.error()), (403, "not-authorized"));
    // A director waits a second for an answer, and asks another node then.
    service.hangs(true);
    let unanswered = directed::ask(&mut client, directed::VIEWER, MASTER);
    assert_eq!((unanswered.status, &*unanswered.error()), (503, "authorization-unanswered"));
    service.hangs(false);
}

#[test]
fn an_address_that_cannot_be_asked_is_refused_at_the_start() {
    let fixture = TestStore::with(&[]);
    for (url, why) in [
        ("site.example", "begins neither with"),
        ("ftp://site.example/", "begins neither with"),
        ("http://me:word@site.example/", "has no host, or a password"),
        ("http://a b/", "is no address"),
    ] {
        let (url, timeout) = (url.to_owned(), Duration::from_secs(1));
        let target =
            AuthRequestTarget { url, timeout, unanswered: Unanswered::Refuse, secret: None };
        let config = ServerConfig { auth_request: Some(target), ..fixture.config() };
        let error = units::Hinted::one_line(&Server::check(&config).unwrap_err());
        assert!(error.contains(why) && error.contains("--auth-request"), "{error}");
    }
}
