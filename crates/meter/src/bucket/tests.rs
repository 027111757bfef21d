//! Tests against a server that keeps objects in memory.

use super::*;
use crate::error::MeterError;
use crate::target::{IoRequest, LeftBehind, Port};
use s3::{S3Access, S3Address};
use secured::{Secured, ServerCertificate, accept, linger};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;
use tenuto_client::tls::{Identity, Trust};
use testkit::bucket::{TestBucket, WrongAnswer};
use units::{ByteCount, Hinted, Moment};

#[path = "../../tests/secured/mod.rs"]
mod secured;

/// Opens a bucket over TLS; `wrong` may answer a request itself.
fn open_with(secured: Option<&Secured>, wrong: WrongAnswer) -> (TestBucket, S3Access) {
    let bucket = TestBucket::default();
    let endpoint = match secured {
        None => bucket.listen(wrong),
        Some(secured) => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let endpoint = format!("https://{}", listener.local_addr().unwrap());
            let (served, tls) = (bucket.clone(), Arc::clone(&secured.config));
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let (bucket, tls) = (served.clone(), Arc::clone(&tls));
                    std::thread::spawn(move || {
                        let mut stream = accept(&tls, stream);
                        bucket.serve(&mut stream, wrong);
                        linger(&stream);
                    });
                }
            });
            endpoint
        }
    };
    let keys = Some(("key".to_owned(), "secret".to_owned(), None));
    let trust = match secured {
        Some(secured) => Trust::File(secured.authority().to_owned()),
        None => Trust::System,
    };
    let region = "r".to_owned();
    (bucket, S3Access { endpoint, region, keys, trust, identity: None })
}

fn open(wrong: WrongAnswer) -> (TestBucket, S3Access) {
    open_with(None, wrong)
}

fn address() -> S3Address {
    S3Address::parse("s3://films/some/where").unwrap()
}

fn make(access: &S3Access, objects: u32, each: u64) -> Result<TestObjects, MeterError> {
    let left = LeftBehind::default();
    TestObjects::make(access.clone(), address(), objects, ByteCount(each), left, &mut |_| true)
}

#[test]
fn objects_are_made_read_by_range_written_and_removed() {
    let (bucket, access) = open(|_| None);
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
    let (bucket, access) = open_with(Some(&secured), |_| None);
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

    let stranger = S3Access { trust: Trust::System, ..access.clone() };
    let error = make(&stranger, 1, 10).err().unwrap().one_line();
    assert!(error.contains("no secure connection: its certificate is signed by nobody"), "{error}");
    let anybody = S3Access { trust: Trust::Anybody, ..access };
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
        let (_bucket, access) = open_with(Some(&secured), |_| None);
        let error = make(&access, 1, 10).err().unwrap().one_line();
        assert!(error.contains(wanted), "{certificate:?}: {error}");
    }
}

#[test]
fn a_bucket_that_requires_a_client_certificate_gets_it() {
    let secured = Secured::asking("bucket-asking");
    let (_bucket, access) = open_with(Some(&secured), |_| None);
    let error = make(&access, 1, 10).err().unwrap().one_line();
    assert!(error.contains("no secure connection: the server asks its clients for"), "{error}");
    let [certificates, key] = secured.client().clone();
    let identity = Some(Identity { certificates, key });
    assert!(make(&S3Access { identity, ..access }, 1, 10).is_ok());
}

#[test]
fn a_large_object_is_written_in_parts() {
    let (bucket, access) = open(|_| None);
    let objects = make(&access, 1, 40 << 20).unwrap();
    assert_eq!(bucket.sizes(), [40 << 20]);
    drop(objects);
    let wanted =
        ["POST uploads", "PUT part 1", "PUT part 2", "PUT part 3", "POST upload", "DELETE"];
    assert_eq!(*bucket.asked.lock().unwrap(), wanted);
}

#[test]
fn a_stopped_upload_leaves_nothing_behind() {
    let (bucket, access) = open(|_| None);
    let mut go_on = |done| done < 20 << 20;
    let made = TestObjects::make(
        access.clone(),
        address(),
        1,
        ByteCount(64 << 20),
        LeftBehind::default(),
        &mut go_on,
    );
    assert!(made.err().unwrap().message.starts_with("interrupted: "));
    assert!(bucket.parts.lock().unwrap().is_empty(), "the parts were called off");
    assert!(bucket.sizes().is_empty());
}

#[test]
fn objects_that_cannot_be_removed_are_noted() {
    let (bucket, access) = open(|what| {
        let refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
        (what == "DELETE").then_some(refused)
    });
    let left = LeftBehind::default();
    let each = ByteCount(100);
    let made = TestObjects::make(access, address(), 3, each, left.clone(), &mut |_| true).unwrap();
    let folder = made.key(0).replace("/00000000", "");
    drop(made);
    let notes = left.take();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.starts_with("3 objects could not be removed: ") && note.contains("403"), "{note}");
    assert!(note.ends_with(&format!("; remove what is under s3://films/{folder}/")), "{note}");
    assert_eq!(bucket.sizes(), [100; 3]);
}

#[test]
fn the_refusal_of_a_bucket_is_reported() {
    let status = |answer| {
        let (_, access) = open(answer);
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

    let (_, access) = open(|what| {
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
    let access = S3Access { endpoint, region, keys, trust: Trust::System, identity: None };
    let refused = make(&access, 1, 16 << 20).err().unwrap().one_line();
    assert!(refused.contains("403") && refused.contains("AWS_ACCESS_KEY_ID"), "{refused}");
}
