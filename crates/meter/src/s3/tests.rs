//! Tests against a server that keeps objects in memory and implements the part of the protocol in
//! use. It checks the form of requests, not their signatures: only a real server does that.

use super::*;
use crate::error::MeterError;
use crate::target::{IoRequest, Port};
use secured::{Secured, ServerCertificate, accept, linger};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tenuto_client::tls::{Identity, Trust};
use units::{ByteCount, Hinted, Moment};

#[path = "../../tests/secured/mod.rs"]
mod secured;

#[derive(Clone, Default)]
struct Bucket {
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// Uploaded parts of incomplete objects, by number.
    parts: Arc<Mutex<BTreeMap<u32, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Bucket {
    /// Starts a server that answers until the test's process ends. `wrong` may answer a method
    /// itself.
    fn open(wrong: fn(&str) -> Option<&'static str>) -> (Self, Access) {
        Self::open_with(None, wrong)
    }

    fn open_with(
        secured: Option<&Secured>,
        wrong: fn(&str) -> Option<&'static str>,
    ) -> (Self, Access) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scheme = if secured.is_some() { "https" } else { "http" };
        let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
        let tls = secured.map(|secured| Arc::clone(&secured.config));
        let bucket = Self::default();
        let served = bucket.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (bucket, tls) = (served.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => bucket.serve(stream, wrong),
                    Some(tls) => {
                        let mut stream = accept(&tls, stream);
                        bucket.serve(&mut stream, wrong);
                        linger(&stream);
                    }
                });
            }
        });
        let keys = Some(("key".to_owned(), "secret".to_owned(), None));
        let trust = match secured {
            Some(secured) => Trust::File(secured.authority().to_owned()),
            None => Trust::System,
        };
        let region = "r".to_owned();
        (bucket, Access { endpoint, region, keys, trust, identity: None })
    }

    fn serve(&self, stream: impl Read + Write, wrong: fn(&str) -> Option<&'static str>) {
        let mut input = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if input.read_line(&mut head).unwrap_or(0) == 0 {
                    return;
                }
            }
            let header = |name: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            };
            let len = header("content-length").map_or(0, |len| len.parse().unwrap());
            let mut body = vec![0; len];
            input.read_exact(&mut body).unwrap();
            let mut line = head.split(' ');
            let (method, target) = (line.next().unwrap(), line.next().unwrap());
            let signature = header("authorization").unwrap_or_default();
            assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=key/"), "{signature}");
            assert!(!target.to_lowercase().contains("amz"), "signed in the address: {target}");
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let part = query.split('&').find_map(|pair| pair.strip_prefix("partNumber="));
            let what = match (part, query.contains("uploadId="), query.contains("uploads=")) {
                (Some(part), ..) => format!("{method} part {part}"),
                (None, true, _) => format!("{method} upload"),
                (None, _, true) => "POST uploads".to_owned(),
                _ => method.to_owned(),
            };
            self.asked.lock().unwrap().push(what.clone());
            let answer = match wrong(&what) {
                Some(answer) => answer.as_bytes().to_vec(),
                None => self.answer(&what, path, header("range"), body),
            };
            input.get_mut().write_all(&answer).unwrap();
            input.get_mut().flush().unwrap();
        }
    }

    fn answer(&self, what: &str, path: &str, range: Option<&str>, body: Vec<u8>) -> Vec<u8> {
        let mut objects = self.objects.lock().unwrap();
        let mut parts = self.parts.lock().unwrap();
        let xml = |text: &str| whole("200 OK", text.as_bytes());
        match what {
            "PUT" => {
                objects.insert(path.to_owned(), body);
                whole("200 OK", b"")
            }
            "GET" => {
                let (first, last) = range.unwrap()[6..].split_once('-').unwrap();
                let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
                let object = &objects[path];
                whole("206 Partial Content", &object[first..=last.min(object.len() - 1)])
            }
            "DELETE" => {
                objects.remove(path);
                whole("204 No Content", b"")
            }
            "POST uploads" => xml(
                "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <UploadId>u1</UploadId></InitiateMultipartUploadResult>",
            ),
            "POST upload" => {
                let listed = String::from_utf8(body).unwrap().matches("<PartNumber>").count();
                assert_eq!(listed, parts.len());
                let all = std::mem::take(&mut *parts).into_values().flatten().collect();
                objects.insert(path.to_owned(), all);
                xml("<CompleteMultipartUploadResult/>")
            }
            "DELETE upload" => {
                parts.clear();
                whole("204 No Content", b"")
            }
            part => {
                let number = part.strip_prefix("PUT part ").unwrap().parse().unwrap();
                parts.insert(number, body);
                whole("200 OK", b"")
            }
        }
    }

    fn sizes(&self) -> Vec<usize> {
        self.objects.lock().unwrap().values().map(Vec::len).collect()
    }
}

fn whole(status: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nETag: \"e\"\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn address() -> Address {
    Address::parse("s3://films/some/where").unwrap()
}

fn make(access: &Access, objects: u32, each: u64) -> Result<TestObjects, MeterError> {
    TestObjects::make(access.clone(), address(), objects, ByteCount(each), &mut |_| true)
}

#[test]
fn objects_are_made_read_by_range_written_and_removed() {
    let (bucket, access) = Bucket::open(|_| None);
    let objects = Arc::new(make(&access, 3, 10_000).unwrap());
    assert_eq!(bucket.sizes(), [10_000; 3]);
    assert!(objects.key(2).starts_with("some/where/tenuto-meter-"), "{}", objects.key(2));

    let mut port = bucket_port(Arc::clone(&objects), 2, ByteCount(4096), Instant::now());
    for tag in 0..4 {
        let file = u32::try_from(tag % 3).unwrap();
        port.begin(IoRequest { file, ..IoRequest::read(tag, 4096, 4096) }).unwrap();
    }
    let mut done = Vec::new();
    while done.len() < 4 {
        port.wait(Moment::MAX, &mut done).unwrap();
    }
    for arrived in &done {
        arrived.result.as_ref().unwrap();
        assert!(arrived.first.unwrap() <= arrived.at);
    }
    let write = IoRequest { kind: crate::log::OperationKind::Write, ..IoRequest::read(9, 0, 2000) };
    port.begin(write).unwrap();
    port.wait(Moment::MAX, &mut done).unwrap();
    done[4].result.as_ref().unwrap();
    assert_eq!(bucket.sizes(), [2000, 10_000, 10_000]);

    drop((port, objects));
    assert!(bucket.sizes().is_empty(), "removed at the end");
}

#[test]
fn the_time_of_opening_a_tls_connection_is_reported() {
    let secured = Secured::new("bucket", ServerCertificate::Valid);
    let (bucket, access) = Bucket::open_with(Some(&secured), |_| None);
    let objects = Arc::new(make(&access, 1, 10_000).unwrap());
    let mut port = bucket_port(objects, 1, ByteCount(4096), Instant::now());
    let mut done = Vec::new();
    for tag in 0..2 {
        port.begin(IoRequest::read(tag, 0, 4096)).unwrap();
        port.wait(Moment::MAX, &mut done).unwrap();
    }
    assert!(done.iter().all(|arrived| arrived.result.is_ok()), "{done:?}");
    let opened: Vec<bool> = done.iter().map(|arrived| !arrived.open.is_zero()).collect();
    assert_eq!(opened, [true, false], "the second goes over the connection of the first");
    assert!(port.method().contains("HTTP/1.1 and TLS"), "{}", port.method());
    drop(port);
    assert!(bucket.sizes().is_empty());

    let stranger = Access { trust: Trust::System, ..access.clone() };
    let error = make(&stranger, 1, 10).err().unwrap().one_line();
    assert!(error.contains("no secure connection: its certificate is signed by nobody"), "{error}");
    let anybody = Access { trust: Trust::Anybody, ..access };
    assert!(make(&anybody, 1, 10).is_ok());
}

#[test]
fn a_bucket_with_a_wrong_certificate_is_refused_with_the_reason() {
    let cases = [
        (ServerCertificate::OtherName, "is for films.example, not for 127.0.0.1"),
        (ServerCertificate::Expired, "its certificate expired "),
        (ServerCertificate::TooEarly, "is this machine's clock right?"),
        (ServerCertificate::SelfSigned, "is signed by nobody who is trusted here"),
        (ServerCertificate::Authority, "is an authority's own"),
    ];
    for (certificate, wanted) in cases {
        let secured = Secured::new(&format!("bucket-{certificate:?}"), certificate);
        let (_bucket, access) = Bucket::open_with(Some(&secured), |_| None);
        let error = make(&access, 1, 10).err().unwrap().one_line();
        assert!(error.contains(wanted), "{certificate:?}: {error}");
    }
}

#[test]
fn a_bucket_that_requires_a_client_certificate_gets_it() {
    let secured = Secured::asking("bucket-asking");
    let (_bucket, access) = Bucket::open_with(Some(&secured), |_| None);
    let error = make(&access, 1, 10).err().unwrap().one_line();
    assert!(error.contains("no secure connection: the server asks its clients for"), "{error}");
    let [certificates, key] = secured.client().clone();
    let identity = Some(Identity { certificates, key });
    assert!(make(&Access { identity, ..access }, 1, 10).is_ok());
}

#[test]
fn a_large_object_is_written_in_parts() {
    let (bucket, access) = Bucket::open(|_| None);
    let objects = make(&access, 1, 40 << 20).unwrap();
    assert_eq!(bucket.sizes(), [40 << 20]);
    drop(objects);
    let wanted =
        ["POST uploads", "PUT part 1", "PUT part 2", "PUT part 3", "POST upload", "DELETE"];
    assert_eq!(*bucket.asked.lock().unwrap(), wanted);
}

#[test]
fn a_stopped_upload_leaves_nothing_behind() {
    let (bucket, access) = Bucket::open(|_| None);
    let mut go_on = |done| done < 20 << 20;
    let made = TestObjects::make(access.clone(), address(), 1, ByteCount(64 << 20), &mut go_on);
    assert!(made.err().unwrap().message.starts_with("interrupted: "));
    assert!(bucket.parts.lock().unwrap().is_empty(), "the parts were called off");
    assert!(bucket.sizes().is_empty());
}

#[test]
fn the_refusal_of_a_bucket_is_reported() {
    let status = |answer| {
        let (_, access) = Bucket::open(answer);
        make(&access, 1, 100).err().unwrap().one_line()
    };
    let forbidden = status(|_| {
        Some(
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 40\r\n\r\n<Error><Code>AccessDenied</Code></Error>",
        )
    });
    assert!(forbidden.contains("403 AccessDenied; look at AWS_ACCESS_KEY_ID"), "{forbidden}");
    let gone = status(|_| Some("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
    assert!(gone.contains("404; make the bucket first"), "{gone}");

    let (_, access) = Bucket::open(|what| {
        (what == "GET").then_some("HTTP/1.1 206 Partial\r\nContent-Length: 3\r\n\r\nabc")
    });
    let objects = Arc::new(make(&access, 1, 100).unwrap());
    let mut port = bucket_port(objects, 1, ByteCount(100), Instant::now());
    port.begin(IoRequest::read(0, 0, 100)).unwrap();
    let mut done = Vec::new();
    port.wait(Moment::MAX, &mut done).unwrap();
    let short = done[0].result.as_ref().unwrap_err().one_line();
    assert!(short.contains("3 of 100 bytes came"), "{short}");
}

/// Servers refuse by the head of a request, and close the connection over the rest of a large one.
#[test]
fn a_wrong_key_is_named_with_large_objects_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap();
            let head = String::from_utf8_lossy(&head[..read]).to_lowercase();
            if head.contains("content-length: 0") || !head.starts_with("put") {
                let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(refusal.as_bytes()).unwrap();
            }
        }
    });
    let keys = Some(("key".to_owned(), "wrong".to_owned(), None));
    let region = "r".to_owned();
    let access = Access { endpoint, region, keys, trust: Trust::System, identity: None };
    let refused = make(&access, 1, 16 << 20).err().unwrap().one_line();
    assert!(refused.contains("403") && refused.contains("AWS_ACCESS_KEY_ID"), "{refused}");
}

#[test]
fn addresses_and_endpoints_are_parsed() {
    let parse = |text| Address::parse(text).map(|address| address.prefix);
    assert_eq!(parse("s3://films").unwrap(), "");
    assert_eq!(parse("s3://films/a/b/").unwrap(), "a/b/");
    assert!(parse("s3:///a").is_err());
    let error = |endpoint: &str| {
        let access = Access { endpoint: endpoint.to_owned(), ..Access::default() };
        make(&access, 1, 1).err().unwrap()
    };
    assert_eq!(error("").message, "nothing says where the bucket is");
    assert!(error("nonsense").message.contains("'nonsense' is not an endpoint"));
    let vars = |name: &str| match name {
        "AWS_ENDPOINT_URL" => Some("http://h".to_owned()),
        "AWS_ACCESS_KEY_ID" => Some("k".to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some("s".to_owned()),
        _ => None,
    };
    let access = Access::from_variables(&vars);
    assert_eq!((access.endpoint.as_str(), access.region.as_str()), ("http://h", "us-east-1"));
    assert_eq!(access.keys, Some(("k".to_owned(), "s".to_owned(), None)));
}
