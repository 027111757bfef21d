//! Tests against a bucket in memory.

use crate::{S3Access, S3Address, S3Client, S3ErrorKind};
use testkit::bucket::{TestBucket, WrongAnswer};
use units::Hinted;

fn client(bucket: &TestBucket, wrong: WrongAnswer) -> S3Client {
    let keys = Some(("key".to_owned(), "secret".to_owned(), None));
    let access = S3Access { endpoint: bucket.listen(wrong), keys, ..S3Access::default() };
    S3Client::new(&access, "films", "test").unwrap()
}

#[test]
fn objects_are_written_found_listed_read_and_removed() {
    let bucket = TestBucket::default();
    let client = client(&bucket, |_| None);
    let keys = ["a/1", "a/2", "a/a title, with ünusual % signs & <tags>", "a/b/4", "a/b/5", "b"];
    for key in keys {
        client.put(key, key.as_bytes()).unwrap();
    }
    for key in keys {
        assert_eq!(client.get(key, 100).unwrap(), key.as_bytes());
        assert_eq!(client.size(key).unwrap(), Some(key.len() as u64));
    }
    let listed = client.list("a/").unwrap();
    let listed: Vec<(&str, u64)> =
        listed.iter().map(|object| (object.key.as_str(), object.size)).collect();
    let wanted: Vec<(&str, u64)> = keys[..5].iter().map(|key| (*key, key.len() as u64)).collect();
    assert_eq!(listed, wanted);
    let mut part = [0; 2];
    client.read("a/b/4", 1, &mut part).unwrap();
    assert_eq!(&part, b"/b");
    for key in keys {
        client.delete(key).unwrap();
        assert_eq!(client.size(key).unwrap(), None);
    }
    assert_eq!(client.list("").unwrap(), []);
    assert_eq!(client.get("a/1", 100).unwrap_err().kind, S3ErrorKind::NoSuchKey);
}

#[test]
fn a_new_object_is_written_once() {
    let mut bucket = TestBucket::default();
    let first = client(&bucket, |_| None);
    assert!(first.put_new("title", b"one").unwrap());
    assert!(!first.put_new("title", b"two").unwrap());
    assert_eq!(first.get("title", 100).unwrap(), b"one");
    // Some servers know no conditions and say nothing of it.
    bucket.ignores_conditions = true;
    let second = client(&bucket, |_| None);
    assert!(second.put_new("title", b"two").unwrap());
    assert_eq!(second.get("title", 100).unwrap(), b"two");
}

#[test]
fn an_object_larger_than_expected_is_refused() {
    let bucket = TestBucket::default();
    let client = client(&bucket, |_| None);
    client.put("title", &[7; 1000]).unwrap();
    assert!(client.get("title", 999).is_err());
    assert_eq!(client.get("title", 1000).unwrap().len(), 1000);
}

/// What a server answers, the kind of error, and what its message contains.
type Refusal = (WrongAnswer, S3ErrorKind, &'static str);

#[test]
fn a_refusal_has_the_reason_of_the_server() {
    let cases: [Refusal; 6] = [
        (
            |_| {
                Some(
                    "HTTP/1.1 403 Forbidden\r\nContent-Length: 40\r\n\r\n\
                     <Error><Code>AccessDenied</Code></Error>",
                )
            },
            S3ErrorKind::Failed,
            "reading s3://films/title: 403 AccessDenied; look at AWS_ACCESS_KEY_ID",
        ),
        (
            |_| {
                Some(
                    "HTTP/1.1 404 Not Found\r\nContent-Length: 40\r\n\r\n\
                     <Error><Code>NoSuchBucket</Code></Error>",
                )
            },
            S3ErrorKind::Failed,
            "404 NoSuchBucket; make the bucket first",
        ),
        (
            |_| {
                Some(
                    "HTTP/1.1 403 Forbidden\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
                     Content-Length: 48\r\n\r\n\
                     <Error><Code>RequestTimeTooSkewed</Code></Error>",
                )
            },
            S3ErrorKind::Failed,
            "RequestTimeTooSkewed; the server's clock says Sun, 06 Nov 1994 08:49:37 GMT, this",
        ),
        (|_| None, S3ErrorKind::NoSuchKey, "404 NoSuchKey"),
        (
            |_| {
                Some(
                    "HTTP/1.1 400 Bad Request\r\nContent-Length: 109\r\n\r\n\
                     <Error><Code>AuthorizationHeaderMalformed</Code>\
                     <Message>the region &#34;&#34; is wrong</Message></Error>    ",
                )
            },
            S3ErrorKind::Failed,
            "the region \"\" is wrong; name the --region of the endpoint",
        ),
        (
            |_| Some("HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n"),
            S3ErrorKind::Unavailable,
            "503; the server asks for fewer requests",
        ),
    ];
    for (wrong, kind, wanted) in cases {
        let error = client(&TestBucket::default(), wrong).get("title", 1).unwrap_err();
        let text = format!("{error}; {}", error.hint().unwrap_or_default());
        assert!(error.kind == kind && text.contains(wanted), "{text}");
    }
}

#[test]
fn addresses_and_endpoints_are_parsed() {
    let parse = |text| S3Address::parse(text).map(|address| address.prefix);
    assert_eq!(parse("s3://films").unwrap(), "");
    assert_eq!(parse("s3://films/a/b/").unwrap(), "a/b/");
    assert_eq!(parse("s3:///a").unwrap_err().kind, S3ErrorKind::Usage);
    assert_eq!(S3Address::parse("s3://films/a").unwrap().to_string(), "s3://films/a/");
    let error = |endpoint: &str| {
        let access = S3Access { endpoint: endpoint.to_owned(), ..S3Access::default() };
        S3Client::new(&access, "films", "test").err().expect("it is not an endpoint").to_string()
    };
    assert_eq!(error(""), "nothing says where the bucket is");
    assert!(error("nonsense").contains("'nonsense' is not an endpoint"));
    let vars = |name: &str| match name {
        "AWS_ENDPOINT_URL" => Some("http://h".to_owned()),
        "AWS_ACCESS_KEY_ID" => Some("k".to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some("s".to_owned()),
        _ => None,
    };
    let access = S3Access::from_variables(&vars);
    assert_eq!((access.endpoint.as_str(), access.region.as_str()), ("http://h", "us-east-1"));
    assert_eq!(access.keys, Some(("k".to_owned(), "s".to_owned(), None)));
}
