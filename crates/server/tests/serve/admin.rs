//! The admin API: each operation answers as its OpenAPI document says, to operators alone, and no
//! upload leaves anything behind.

use crate::client::{Client, TestResponse, playlist_uris};
use crate::fixture::{TestServer, TestStore, eventually, media};
use serde_json::{Value, json};
use server::ServerConfig;
use server::access::{TokenClaims, new_key_file};
use std::net::Shutdown;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::Store;

/// A server with tokens and uploads.
pub(crate) struct Administered {
    pub(crate) fixture: TestStore,
    pub(crate) serving: TestServer,
    operator: String,
    viewer: String,
    pub(crate) disk: String,
}

impl Administered {
    pub(crate) fn new(send_timeout: Duration) -> Self {
        Self::with(send_timeout, |_| {})
    }

    /// With a change of the configuration.
    pub(crate) fn with(send_timeout: Duration, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let fixture = TestStore::with(&[&media().film, &media().song]);
        let (keys, uploads) = (fixture.directory.join("keys"), fixture.directory.join("uploads"));
        new_key_file(&keys).unwrap();
        std::fs::create_dir(&uploads).unwrap();
        std::fs::write(uploads.join("left.upload"), "by an earlier server").unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let token = |operator| {
            let claims = TokenClaims { exp: now + 600, operator, ..TokenClaims::default() };
            claims.sign(&keys).unwrap()
        };
        let (operator, viewer) = (token(true), token(false));
        let disk = Store::peek(&fixture.path).unwrap().uuid.to_string();
        let serving = fixture.serve_with(|config| {
            config.tokens = Some(keys.clone());
            config.uploads = Some(uploads);
            config.send_timeout = send_timeout;
            change(config);
        });
        Self { fixture, serving, operator, viewer, disk }
    }

    /// The token of an operator.
    pub(crate) fn operator(&self) -> &str {
        &self.operator
    }

    pub(crate) fn title(&self, name: &str) -> String {
        format!("/api/v1/disks/{}/titles/{name}", self.disk)
    }

    /// A request of the operator with this body, over a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, fields: &str, body: &[u8]) -> TestResponse {
        let mut client = self.serving.client();
        self.begin(
            &mut client,
            method,
            path,
            &format!("Content-Length: {}\r\n{fields}", body.len()),
        );
        client.send(body);
        let response = client.read_response(method != "HEAD");
        response.unwrap_or_else(|| panic!("{method} {path}: no response"))
    }

    pub(crate) fn begin(&self, client: &mut Client, method: &str, path: &str, fields: &str) {
        let token = &self.operator;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n{fields}\r\n"
        );
        client.send(head.as_bytes());
    }

    /// Number of files in the directory of uploads.
    pub(crate) fn uploads(&self) -> usize {
        std::fs::read_dir(self.fixture.directory.join("uploads")).unwrap().count()
    }

    /// The number of a new session of the film, and its first segment.
    fn play(&self) -> (u64, String) {
        let master = "/t/film/master.m3u8";
        let mut client = self.serving.client();
        let manifest = client.get(&format!("{master}?token={}", self.viewer));
        let list = &playlist_uris(manifest.text(), master)[0];
        let segment = playlist_uris(client.get(list).text(), list)[1].clone();
        let sessions = self.ask("GET", "/api/v1/sessions", "", b"").json();
        let last = sessions["sessions"].as_array().unwrap().last().unwrap().clone();
        (last["session"].as_u64().unwrap(), segment)
    }
}

/// The name of an operation, the method, the address, fields and body of a request, and the status.
type Row<'a> = (&'a str, &'a str, String, &'a str, &'a [u8], u16);

/// To a port at which nobody listens.
const SENT: &[u8] = br#"{"title":"film","to":"udp://127.0.0.1:9","ttl":null,"loop":true}"#;
const SLOWLY: &[u8] = br#"{"title":"film","to":"udp://127.0.0.1:9","rate":500000}"#;
const NOWHERE: &[u8] = br#"{"title":"film","to":"udp://0.0.0.0:9"}"#;
const NOTHING: &[u8] = br#"{"title":"none","to":"udp://127.0.0.1:9"}"#;

pub(crate) const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn every_operation_answers_as_the_document_says() {
    let api = Administered::new(Duration::from_secs(20));
    let document = api.serving.client().get("/api/v1/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document, server::openapi());
    let ((ended, segment), disk) = (api.play(), format!("/api/v1/disks/{}", api.disk));
    let (kept, kept_segment) = api.play();
    let song = std::fs::read(&media().song).unwrap();
    let [gzip, if_match] =
        ["Content-Encoding: gzip", "If-Match: *"].map(|field| format!("{JSON}{field}\r\n"));
    let table: &[Row<'_>] = &[
        ("document", "GET", "/api/v1/openapi.json".into(), "", b"", 200),
        ("listSessions", "GET", "/api/v1/sessions".into(), "", b"", 200),
        ("listSessions", "GET", "/api/v1/sessions?since=1".into(), "", b"", 400),
        ("getSession", "GET", format!("/api/v1/sessions/{kept}"), "", b"", 200),
        ("getSession", "GET", "/api/v1/sessions/99999".into(), "", b"", 404),
        ("getSession", "GET", "/api/v1/sessions/first".into(), "", b"", 404),
        ("endSession", "DELETE", format!("/api/v1/sessions/{ended}"), "", b"", 204),
        ("endSession", "DELETE", format!("/api/v1/sessions/{ended}"), "", b"", 404),
        ("endSessions", "DELETE", "/api/v1/sessions?subject=nobody".into(), "", b"", 200),
        ("endSessions", "DELETE", "/api/v1/sessions".into(), "", b"", 400),
        ("sendTitle", "POST", "/api/v1/sessions".into(), JSON, SENT, 201),
        ("sendTitle", "POST", "/api/v1/sessions".into(), JSON, SLOWLY, 422),
        ("sendTitle", "POST", "/api/v1/sessions".into(), JSON, NOWHERE, 400),
        ("sendTitle", "POST", "/api/v1/sessions".into(), JSON, br#"{"title":"film"}"#, 400),
        ("sendTitle", "POST", "/api/v1/sessions".into(), JSON, NOTHING, 404),
        ("sendTitle", "POST", "/api/v1/sessions".into(), "", SENT, 415),
        ("listDecisions", "GET", "/api/v1/decisions".into(), "", b"", 200),
        ("watch", "GET", "/api/v1/events".into(), "", b"", 200),
        ("getHeadroom", "GET", "/api/v1/headroom?title=film".into(), "", b"", 200),
        ("getHeadroom", "GET", "/api/v1/headroom?title=none".into(), "", b"", 404),
        ("getHeadroom", "GET", "/api/v1/headroom".into(), "", b"", 400),
        ("getPlanChoices", "GET", "/api/v1/planning".into(), "", b"", 200),
        ("getPlan", "GET", "/api/v1/plan?model=hdd-20tb&rate=5000000".into(), "", b"", 200),
        ("getPlan", "GET", "/api/v1/plan?model=hdd-20tb&title=film".into(), "", b"", 200),
        ("getPlan", "GET", "/api/v1/plan?model=hdd-20tb&title=none".into(), "", b"", 404),
        ("getPlan", "GET", "/api/v1/plan?model=none&rate=5000000".into(), "", b"", 400),
        ("getPlan", "GET", "/api/v1/plan?model=hdd-20tb&rate=1".into(), "", b"", 400),
        ("getPlan", "GET", "/api/v1/plan?model=hdd-20tb&rate=9000&policy=".into(), "", b"", 422),
        ("getPlan", "GET", "/api/v1/plan?disk=0&rate=5000000".into(), "", b"", 404),
        ("getPlan", "GET", "/api/v1/plan?rate=5000000".into(), "", b"", 400),
        ("getDemand", "GET", api.title("film/demand"), "", b"", 200),
        ("getDemand", "GET", api.title("none/demand"), "", b"", 404),
        ("listDisks", "GET", "/api/v1/disks".into(), "", b"", 200),
        ("getDisk", "GET", disk.clone(), "", b"", 200),
        ("getDisk", "GET", format!("/api/v1/disks/{}", api.disk.to_uppercase()), "", b"", 200),
        ("getDisk", "GET", "/api/v1/disks/0".into(), "", b"", 404),
        ("calibrateDisk", "POST", format!("{disk}/calibrate"), JSON, br#"{"seconds":1}"#, 200),
        ("calibrateDisk", "POST", format!("{disk}/calibrate"), JSON, br#"{"seconds":0}"#, 400),
        ("calibrateDisk", "POST", format!("{disk}/calibrate"), "", br#"{"seconds":1}"#, 415),
        ("drainDisk", "POST", format!("{disk}/drain"), "", b"", 200),
        ("getDrain", "GET", format!("{disk}/drain"), "", b"", 200),
        ("uploadTitle", "PUT", api.title("none"), "", &song, 409),
        ("endDrain", "DELETE", format!("{disk}/drain"), "", b"", 200),
        ("endDrain", "DELETE", "/api/v1/disks/0/drain".into(), "", b"", 404),
        ("listRecordings", "GET", format!("{disk}/recordings"), "", b"", 200),
        ("listRecordings", "GET", "/api/v1/disks/0/recordings".into(), "", b"", 404),
        ("endRecording", "DELETE", format!("{disk}/recordings/none"), "", b"", 404),
        ("listTitles", "GET", format!("{disk}/titles"), "", b"", 200),
        ("listTitles", "GET", format!("{disk}/titles?limit=1&after=film&folder=a"), "", b"", 200),
        ("listTitles", "GET", format!("{disk}/titles?limit=0"), "", b"", 400),
        ("getTitle", "GET", api.title("film"), "", b"", 200),
        ("getTitle", "GET", api.title("none"), "", b"", 404),
        ("renameTitle", "PATCH", api.title("song"), JSON, br#"{"name":"a/b %"}"#, 204),
        ("renameTitle", "PATCH", api.title("song"), JSON, br#"{"name":"x"}"#, 404),
        ("renameTitle", "PATCH", api.title("film"), JSON, br#"{"name":"a/b %"}"#, 409),
        ("renameTitle", "PATCH", api.title("film"), JSON, br#"{"name":"\n"}"#, 400),
        ("renameTitle", "PATCH", api.title("film"), JSON, br#"{"title":"x"}"#, 400),
        ("renameTitle", "PATCH", api.title("film"), JSON, br#"["x"]"#, 400),
        ("renameTitle", "PATCH", api.title("film"), JSON, br#"{"name":"#, 400),
        ("renameTitle", "PATCH", api.title("film"), JSON, &[b' '; 20_000], 413),
        ("renameTitle", "PATCH", api.title("film"), &gzip, br#"{"name":"x"}"#, 415),
        ("renameTitle", "PATCH", api.title("film"), &if_match, br#"{"name":"x"}"#, 412),
        ("renameTitle", "PATCH", api.title("film"), "Content-Type: text/plain\r\n", b"{}", 415),
        ("uploadTitle", "PUT", api.title("new%2Fone"), "", &song, 201),
        ("uploadTitle", "PUT", api.title("new%2Fone"), "", &song, 409),
        ("uploadTitle", "PUT", api.title("bytes?as=file"), "", b"anything", 201),
        ("uploadTitle", "PUT", api.title("none"), "", b"no film", 422),
        ("uploadTitle", "PUT", api.title("none?as=film"), "", &song, 400),
        ("uploadTitle", "PUT", api.title("none%0A"), "", &song, 400),
        ("uploadTitle", "PUT", api.title("none"), "", b"", 422),
        (
            "uploadTitle",
            "PUT",
            api.title("none"),
            "Content-Type: multipart/form-data\r\n",
            &song,
            415,
        ),
        ("uploadTitle", "PUT", api.title("none"), "If-Match: \"x\"\r\n", &song, 412),
        ("uploadTitle", "PUT", api.title("film"), "If-None-Match: *\r\n", &song, 409),
        ("uploadTitle", "PUT", api.title("none"), "Content-Range: bytes 4-7/8\r\n", &song, 400),
        ("uploadTitle", "PUT", api.title("none"), "Content-Encoding: gzip\r\n", &song, 415),
        ("downloadTitle", "POST", api.title("none"), JSON, br#"{"url":"http://127.0.0.1/"}"#, 403),
        ("downloadTitle", "POST", api.title("none"), JSON, b"{}", 400),
        ("downloadTitle", "POST", api.title("none"), "", br#"{"url":"http://127.0.0.1/"}"#, 415),
        ("listIngests", "GET", "/api/v1/ingests".into(), "", b"", 200),
        ("getIngest", "GET", "/api/v1/ingests/1".into(), "", b"", 200),
        ("getIngest", "GET", "/api/v1/ingests/99999".into(), "", b"", 404),
        ("getIngest", "GET", "/api/v1/ingests/first".into(), "", b"", 404),
        ("cancelIngest", "DELETE", "/api/v1/ingests/1".into(), "", b"", 404),
        ("cancelIngest", "DELETE", "/api/v1/ingests/first".into(), "", b"", 404),
        ("removeTitle", "DELETE", api.title("film"), "If-None-Match: \"x\"\r\n", b"", 412),
        ("removeTitle", "DELETE", api.title("film"), "", b"", 200),
        ("removeTitle", "DELETE", api.title("film"), "", b"", 404),
        ("removeTitle", "DELETE", api.title("bytes"), "", b"now", 400),
        // Nothing that it could read again was given to it.
        ("reload", "POST", "/api/v1/reload".into(), "", b"", 422),
        ("restart", "POST", "/api/v1/restart".into(), "", b"", 422),
        ("stop", "POST", "/api/v1/stop".into(), JSON, br#"{"seconds":0}"#, 400),
        ("stop", "POST", "/api/v1/stop".into(), "", br#"{"seconds":9}"#, 415),
    ];
    let mut unasked = operations(&document);
    for (id, method, path, fields, body, status) in table {
        let response = api.ask(method, path, fields, body);
        let said = String::from_utf8_lossy(&response.body);
        assert_eq!(response.status, *status, "{id} {path}: {said}");
        let operation = &unasked.iter().find(|(name, _)| name == id).expect(id).1;
        assert_documented(&document, operation, &response, id);
        assert!(response.field("access-control-allow-origin").is_none(), "{id}");
    }
    unasked.retain(|(name, _)| table.iter().all(|(id, ..)| id != name));
    assert_eq!(unasked, [], "operations without a row");

    // A session that was ended is over, and one whose title was removed goes on.
    assert_eq!(api.serving.client().get(&segment).status, 410);
    assert!(api.serving.client().get(&kept_segment).whole);
    let new = api.serving.client().get(&format!("/t/film/master.m3u8?token={}", api.viewer));
    assert_eq!(new.status, 404);
    let played = format!("/t/new%2Fone.mp4?token={}", api.viewer);
    assert!(api.serving.client().get_following(&played).1.whole);

    // A server that is drained admits nobody, and ends.
    assert_eq!(api.ask("POST", "/api/v1/stop", JSON, br#"{"seconds":9}"#).status, 204);
    let notices = api.serving.server.take_notices();
    assert!(notices.iter().any(|line| line.starts_with("stopping, as it was")), "{notices:?}");
    assert_eq!(api.uploads(), 0);
}

/// The operations of a document by their names.
pub(crate) fn operations(document: &Value) -> Vec<(String, Value)> {
    let paths = document["paths"].as_object().unwrap().values();
    let all = paths.flat_map(|methods| methods.as_object().unwrap().values());
    all.map(|one| (one["operationId"].as_str().unwrap().to_owned(), one.clone())).collect()
}

/// Checks a response against the status, the content type and the schema of its operation.
#[track_caller]
pub(crate) fn assert_documented(
    document: &Value,
    operation: &Value,
    response: &TestResponse,
    id: &str,
) {
    let status = response.status.to_string();
    let described = resolved(document, &operation["responses"][&status]);
    assert!(described.is_object(), "{id}: {status} is not documented");
    let Some(content) = described["content"].as_object() else {
        return assert!(response.body.is_empty(), "{id}: {status} has no documented body");
    };
    let (kind, media) = content.iter().next().unwrap();
    assert_eq!(response.field("content-type"), Some(kind.as_str()), "{id}");
    if kind == "text/event-stream" {
        return;
    }
    let body = response.json();
    if let Some(why) = mismatch(document, &media["schema"], &body) {
        panic!("{id} {status}: {why}: {body}");
    }
    if response.status >= 400 {
        assert_eq!(body["status"], response.status);
        assert!(body["detail"].is_string() && body["hint"].is_string(), "{id}: {body}");
        // Neither the name that an upload has here, nor options of commands.
        for text in [".upload", "--as", "--program", "--allow", "(?wait"] {
            assert!(!body.to_string().contains(text), "{id}: {body}");
        }
    }
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => value,
    }
}

/// Why a value is not as a JSON schema says, by the keywords that the document has for responses.
fn mismatch(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = choices.iter().any(|choice| mismatch(document, choice, value).is_none());
        return (!fits).then(|| format!("{value} is none of {schema}"));
    }
    let schema = resolved(document, schema);
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Some(format!("{value} is none of {}", schema["enum"]));
    }
    let is = |kind: &Value| match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        _ => false,
    };
    let kinds = schema["type"].as_array().cloned();
    let kinds = kinds.unwrap_or_else(|| vec![schema["type"].clone()]);
    if !schema["type"].is_null() && !kinds.iter().any(is) {
        return Some(format!("{value} is no {}", schema["type"]));
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = |name: &&Value| value.get(name.as_str().unwrap()).is_none();
    if let Some(name) = required.into_iter().find(missing) {
        return Some(format!("{name} is missing"));
    }
    let known = schema["properties"].as_object();
    let inner = value.as_object().into_iter().flatten().filter_map(|(name, value)| {
        let of_name = known.map(|known| known.get(name));
        match of_name {
            Some(None) => Some(format!("{name} is not documented")),
            Some(Some(schema)) => mismatch(document, schema, value),
            None => None,
        }
    });
    let items = value.as_array().into_iter().flatten();
    let items = items.filter_map(|item| mismatch(document, &schema["items"], item));
    inner.chain(items).next()
}

#[test]
fn the_api_is_the_operators_alone() {
    let api = Administered::new(Duration::from_secs(20));
    let signature = api.operator.rsplit_once('.').unwrap().0.to_owned();
    let forged = format!("{signature}.{}", "A".repeat(43));
    let (film, disk) = (api.title("film"), format!("/api/v1/disks/{}", api.disk));
    for (method, path) in [
        ("GET", "/api/v1/sessions"),
        ("HEAD", "/api/v1/disks"),
        ("POST", "/api/v1/sessions"),
        ("DELETE", "/api/v1/sessions/0"),
        ("DELETE", "/api/v1/sessions?subject=a"),
        ("GET", &film),
        ("PUT", &film),
        ("POST", &film),
        ("PATCH", &film),
        ("DELETE", &film),
        ("GET", "/api/v1/ingests"),
        ("GET", "/api/v1/ingests/1"),
        ("DELETE", "/api/v1/ingests/1"),
        ("POST", &format!("{disk}/calibrate")),
        ("POST", &format!("{disk}/drain")),
        ("DELETE", &format!("{disk}/drain")),
        ("DELETE", &format!("{disk}/recordings/hall")),
        ("POST", "/api/v1/reload"),
        ("POST", "/api/v1/restart"),
        ("POST", "/api/v1/stop"),
    ] {
        for (token, status) in [("", 401), (&*forged, 401), ("x.y.z", 401), (&*api.viewer, 403)] {
            let bearer = format!("Bearer {token}");
            let fields: &[_] = if token.is_empty() { &[] } else { &[("Authorization", &*bearer)] };
            let response = api.serving.client().request(method, path, fields);
            assert_eq!(response.status, status, "{method} {path} {token}");
            assert!(response.field("www-authenticate").unwrap().starts_with("Bearer "));
            assert!(response.field("access-control-allow-origin").is_none());
        }
    }
    // A browser that asks for a page of another origin is allowed nothing.
    let asked = [("Origin", "https://pages.example"), ("Access-Control-Request-Method", "DELETE")];
    let preflight = api.serving.client().request("OPTIONS", &film, &asked);
    assert_eq!(preflight.field("allow"), Some("GET, HEAD, PATCH, DELETE, PUT, POST, OPTIONS"));
    assert!(!preflight.fields.iter().any(|(name, _)| name.starts_with("access-control")));
    for (method, path, status) in [
        ("PUT", "/api/v1/sessions", 405),
        ("BREW", "/api/v1/sessions", 501),
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api", 404),
    ] {
        assert_eq!(api.ask(method, path, "", b"").status, status, "{method} {path}");
    }

    // Without tokens everybody may look, as at /status, and nobody is known as the operator.
    let open = TestStore::with(&[&media().film]);
    let serving = open.serve();
    let disks = serving.client().get("/api/v1/disks").json();
    let film = format!("/api/v1/disks/{}/titles/film", disks["disks"][0]["uuid"].as_str().unwrap());
    assert_eq!(serving.client().get(&film).json()["name"], "film");
    for method in ["PUT", "PATCH", "DELETE"] {
        let denied = serving.client().request(method, &film, &[]);
        assert_eq!((denied.status, &denied.json()["error"]), (403, &json!("operator-unknown")));
    }
}

#[test]
fn a_head_that_is_refused_gets_a_problem_at_addresses_of_the_api_alone() {
    let serving = TestStore::with(&[]).serve();
    for (line, status, word) in [
        ("BREW /PLACE HTTP/1.1\r\nHost: a\r\n", 501, "method-unknown"),
        ("GET /PLACE%zz HTTP/1.1\r\nHost: a\r\n", 400, "malformed-url"),
        ("GET /PLACE HTTP/1.1\r\n", 400, "host-missing"),
        ("PUT /PLACE HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n", 411, "length-required"),
    ] {
        for (place, kind, foreign) in
            [("api/v1/", "application/problem+json", None), ("t/", "application/json", Some("*"))]
        {
            let head = format!("{}\r\n", line.replace("PLACE", place));
            let mut client = serving.client();
            client.send(head.as_bytes());
            let response = client.read_response(true).unwrap();
            assert_eq!(
                (response.status, &response.json()["error"]),
                (status, &json!(word)),
                "{head}"
            );
            assert_eq!(response.field("content-type"), Some(kind), "{head}");
            assert_eq!(response.field("access-control-allow-origin"), foreign, "{head}");
            let hint = response.json()["hint"].as_str().map(str::to_owned);
            assert_eq!(hint.is_some(), foreign.is_none(), "{head}");
            assert!(client.read_response(true).is_none(), "{head}: the connection ends");
        }
    }
}

#[test]
fn the_page_of_the_api_names_each_address() {
    let page = include_str!("../../../../docs/reference/admin.md");
    let document = server::openapi();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 15);
    for (path, methods) in paths {
        let names = [("{disk}", "UUID"), ("{title}", "TITLE")];
        let numbers = [("{session}", "NUMBER"), ("{ingest}", "NUMBER")];
        let all = names.into_iter().chain(numbers);
        let path = all.fold(path.clone(), |path, (name, shown)| path.replace(name, shown));
        for method in methods.as_object().unwrap().keys() {
            let start = format!("| `{} {path}", method.to_uppercase());
            let is_there = |line: &str| {
                line.strip_prefix(&start).is_some_and(|rest| rest.starts_with(['`', '?']))
            };
            assert!(page.lines().any(is_there), "admin.md has no row of {start}");
        }
    }
}

#[test]
fn uploads_are_bounded_and_leave_nothing_behind() {
    let api = Administered::new(Duration::from_millis(500));
    assert_eq!(api.uploads(), 0, "of an earlier server");
    let (film, new) = (std::fs::read(&media().film).unwrap(), api.title("new"));
    for (fields, status) in [
        ("Content-Length: 999999999999\r\n", 413),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", 411),
        ("Transfer-Encoding: chunked\r\n", 411),
        ("", 411),
    ] {
        let mut client = api.serving.client();
        api.begin(&mut client, "PUT", &new, fields);
        let response = client.read_response(true).unwrap();
        assert_eq!(response.status, status, "{fields}");
    }

    // A client that goes, and one that sends nothing more.
    let half = format!("Content-Length: {}\r\n", film.len());
    let mut gone = api.serving.client();
    api.begin(&mut gone, "PUT", &new, &half);
    gone.send(&film[..film.len() / 2]);
    eventually("the upload has begun", || api.uploads() == 1);
    drop(gone);
    eventually("the upload has ended", || api.uploads() == 0);
    let mut silent = api.serving.client();
    api.begin(&mut silent, "PUT", &new, &half);
    silent.send(&film[..film.len() / 2]);
    assert_eq!(silent.read_response(true).unwrap().status, 408);
    eventually("the upload has ended", || api.uploads() == 0);

    // A client that asks first is told to send, and another request follows on its connection.
    let mut asking = api.serving.client();
    api.begin(&mut asking, "PUT", &new, &format!("{half}Expect: 100-continue\r\n"));
    assert_eq!(asking.read_response(true).unwrap().status, 100);
    asking.send(&film);
    let made = asking.read_response(true).unwrap();
    assert_eq!((made.status, made.field("location")), (201, Some(&*new)));
    api.begin(&mut asking, "GET", &new, "");
    assert_eq!(asking.read_response(true).unwrap().json()["name"], "new");
    assert_eq!(api.uploads(), 0);

    let without = TestStore::with(&[]);
    let serving = without.serve();
    assert_eq!(serving.client().request("PUT", &new, &[]).status, 403);
}

/// More than one piece is on its way to the disk when the end of the connection is noticed.
#[test]
fn an_upload_counts_whose_client_ends_the_connection_behind_its_last_byte() {
    let api = Administered::new(Duration::from_secs(20));
    let bytes = vec![7; 24 << 20];
    let length = format!("Content-Length: {}\r\n", bytes.len());
    let path = |name: &str| api.title(&format!("{name}?as=file"));

    let mut half = api.serving.client();
    api.begin(&mut half, "PUT", &path("half"), &length);
    half.send(&bytes);
    half.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    let made = half.read_response(true).expect("the answer");
    assert_eq!((made.status, made.json()["title"]["name"].as_str()), (201, Some("half")));

    let mut gone = api.serving.client();
    api.begin(&mut gone, "PUT", &path("gone"), &length);
    gone.send(&bytes);
    drop(gone);
    eventually("the title is there", || api.ask("GET", &api.title("gone"), "", b"").status == 200);
}

#[test]
fn what_a_title_or_a_disk_cannot_do_is_told_with_what_to_do() {
    let api = Administered::new(Duration::from_secs(20));
    let file = api.title("bytes?as=file");
    assert_eq!(api.ask("PUT", &file, "", b"anything").status, 201);
    let empty = TestStore::with(&[]);
    let (keys, path) = (api.fixture.directory.join("keys"), empty.path.clone());
    let serving = empty.serve_with(|config| {
        config.stores = vec![path];
        config.tokens = Some(keys);
    });
    let disk = Store::peek(&empty.path).unwrap().uuid;
    let mut client = serving.client();
    let seconds = br#"{"seconds":1}"#;
    let fields = format!("{JSON}Content-Length: {}\r\n", seconds.len());
    api.begin(&mut client, "POST", &format!("/api/v1/disks/{disk}/calibrate"), &fields);
    client.send(seconds);
    let calibrated = client.read_response(true).unwrap();
    let headroom = api.ask("GET", "/api/v1/headroom?title=bytes", "", b"");
    let plan = api.ask("GET", "/api/v1/plan?model=hdd-20tb&title=bytes", "", b"");
    let demand = api.ask("GET", &api.title("bytes/demand"), "", b"");
    let sent = br#"{"title":"bytes","to":"udp://127.0.0.1:9"}"#;
    let sent = api.ask("POST", "/api/v1/sessions", JSON, sent);
    for (what, response, word) in [
        ("calibrate", calibrated, "not-written"),
        ("headroom", headroom, "not-playable"),
        ("plan", plan, "not-playable"),
        ("demand", demand, "not-playable"),
        ("send", sent, "not-playable"),
    ] {
        let body = response.json();
        assert_eq!((response.status, body["error"].as_str()), (422, Some(word)), "{what}: {body}");
        assert!(!body["hint"].as_str().unwrap().contains("tenuto"), "{body}");
    }
    let listed = |folder: &str| {
        let address = format!("/api/v1/disks/{}/titles?folder={folder}", api.disk);
        api.ask("GET", &address, "", b"").json()["titles"].as_array().unwrap().len()
    };
    assert_eq!(api.ask("PUT", &api.title("a%2Fb?as=file"), "", b"anything").status, 201);
    assert_eq!(["a", "a/", "b/"].map(listed), [1, 1, 0]);
}

/// The figures are those of `tenuto plan --model hdd-20tb --rate 5Mbps --memory 4GiB`.
#[test]
fn a_plan_has_the_streams_and_the_resource_that_ends_first() {
    let api = Administered::new(Duration::from_secs(20));
    let rows = [
        ("memory=4294967296", "4194304 224 224 disk"),
        ("memory=4294967296&disks=4", "2097152 154 616 disk"),
        ("memory=4294967296&read_size=1048576", "1048576 109 109 disk"),
        ("memory=4294967296&read_size=1048576&policy=vbrsim", "1048576 80 80 disk"),
    ];
    for (question, wanted) in rows {
        let address = format!("/api/v1/plan?model=hdd-20tb&rate=5000000&{question}");
        let best = &api.ask("GET", &address, "", b"").json()["best"];
        let short = best["short_of"].as_str().unwrap_or("nothing");
        let figures = [&best["read_size"], &best["streams"], &best["streams_in_all"]];
        let [read, streams, all] = figures.map(|figure| figure.as_u64().unwrap_or(0));
        assert_eq!(format!("{read} {streams} {all} {short}"), wanted, "{question}");
    }
}
