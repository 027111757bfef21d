//! A node that carries out orders for copies: from a bucket in memory, by orders in an etcd in
//! memory.

use crate::directed::{cluster, record};
use crate::fixture::{TestServer, TestStore, eventually, media};
use bucket::TitleBucket;
use media::TitleKind;
use s3::{S3Access, S3Address};
use serde_json::{Value, json};
use server::{CopySource, ServerConfig};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use store::{IngestOptions, SoleOwner, Store};
use testkit::bucket::{TestBucket, WrongAnswer};
use testkit::etcd::TestEtcd;
use units::BitRate;

const MASTER: &str = "/t/film/master.m3u8";

/// A bucket with the film and the song.
fn record_bucket() -> TestBucket {
    let bucket = TestBucket::default();
    let fixture = TestStore::with(&[&media().film, &media().song]);
    ["film", "song"].iter().for_each(|title| push(&bucket, &fixture, title));
    bucket
}

fn push(bucket: &TestBucket, from: &TestStore, title: &str) {
    let store = SoleOwner(Store::open(&from.path).unwrap());
    let cancel = AtomicBool::new(false);
    titles(bucket, |_| None).push(&store, title, &mut |_| {}, &cancel).unwrap();
}

fn titles(bucket: &TestBucket, wrong: WrongAnswer) -> TitleBucket {
    let keys = Some(("key".to_owned(), "secret".to_owned(), None));
    let access = S3Access { endpoint: bucket.listen(wrong), keys, ..S3Access::default() };
    TitleBucket::new(access, S3Address::parse("s3://films").unwrap())
}

fn source(bucket: TitleBucket) -> CopySource {
    CopySource { bucket, windows: Vec::new(), rate: BitRate(400_000_000) }
}

/// A node with an empty store, or with what the fixture has.
fn node(fixture: &TestStore, etcd: &TestEtcd, source: CopySource) -> TestServer {
    let member = etcd.listen();
    let serving = fixture.serve_with(|config: &mut ServerConfig| {
        config.cluster = Some(cluster(fixture, &member));
        config.copies = Some(source);
    });
    eventually("registered", || record(etcd, "nodes/n1").is_object());
    serving
}

fn order(etcd: &TestEtcd, fill: &[&str], evict: &[&str]) {
    let targets = |titles: &[&str]| -> Value {
        titles.iter().map(|title| json!({ "title": title, "disk": 0 })).collect()
    };
    let orders = json!({ "fill": targets(fill), "evict": targets(evict) });
    etcd.put("/tenuto/c/orders/n1", &orders.to_string());
}

fn copies(serving: &TestServer) -> Value {
    serving.client().get("/status").json()["cluster"]["copies"].take()
}

#[test]
fn ordered_titles_are_filled_played_and_evicted() {
    let (fixture, etcd, bucket) = (TestStore::with(&[]), TestEtcd::new(), record_bucket());
    let serving = node(&fixture, &etcd, source(titles(&bucket, |_| None)));
    let space = record(&etcd, "nodes/n1")["space"][0].clone();
    assert!(space["free"].as_u64() > Some(100 << 20), "{space}");
    assert_eq!(serving.client().get(MASTER).status, 404);
    order(&etcd, &["film", "song"], &[]);
    let ready = json!([{ "disk": 0, "state": "ready" }]);
    for title in ["film", "song"] {
        let key = format!("copies/{title}/n1");
        eventually("the copy is ready", || record(&etcd, &key) == ready);
    }
    assert!(record(&etcd, "titles/film")["size"].as_u64() > Some(900_000));
    let mut client = serving.client();
    assert_eq!(client.get(MASTER).status, 200);
    let report = copies(&serving);
    assert_eq!((&report["filled"], &report["failures"]), (&json!(2), &json!(0)), "{report}");
    // Its viewer goes on; others find it no more.
    eventually("its viewer is told", || record(&etcd, "viewers/n1") == json!({ "film": 1 }));
    order(&etcd, &[], &["film"]);
    eventually("the copy is gone", || record(&etcd, "copies/film/n1").is_null());
    assert_eq!(serving.client().get(MASTER).status, 404);
    assert_eq!(copies(&serving)["evicted"], 1);
    assert_eq!(record(&etcd, "copies/song/n1"), ready);
    let metrics = serving.client().get("/metrics").text().to_owned();
    for line in ["tenuto_copies_filled_total 2", "tenuto_copies_evicted_total 1"] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[test]
fn what_the_bucket_does_not_have_is_not_removed() {
    let (fixture, etcd) = (TestStore::with(&[&media().film]), TestEtcd::new());
    let serving = node(&fixture, &etcd, source(titles(&TestBucket::default(), |_| None)));
    order(&etcd, &[], &["film"]);
    eventually("it is refused", || copies(&serving)["failures"] == 1);
    let failed = copies(&serving)["failed"][0].clone();
    assert_eq!(failed["title"], "film");
    assert!(failed["message"].as_str().unwrap().contains("no title 'film'"), "{failed}");
    assert_eq!(serving.client().get(MASTER).status, 200);
    // An order that is withdrawn has not failed: an alert would stay for ever.
    order(&etcd, &[], &[]);
    eventually("it is forgotten", || copies(&serving)["failed"] == json!([]));
}

#[test]
fn a_copy_that_cannot_be_filled_is_named_and_the_next_one_filled() {
    let (fixture, etcd, bucket) = (TestStore::with(&[]), TestEtcd::new(), record_bucket());
    let serving = node(&fixture, &etcd, source(titles(&bucket, |_| None)));
    order(&etcd, &["missing", "song"], &[]);
    eventually("the song is there", || record(&etcd, "copies/song/n1").is_array());
    let report = copies(&serving);
    assert_eq!(report["failed"][0]["title"], "missing", "{report}");
    // The bucket does not answer.
    let silent: WrongAnswer = |_| Some("HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n");
    let (fixture, etcd) = (TestStore::with(&[]), TestEtcd::new());
    let serving = node(&fixture, &etcd, source(titles(&bucket, silent)));
    order(&etcd, &["film"], &[]);
    eventually("it fails", || copies(&serving)["failures"] == 1);
    eventually("it is not announced", || record(&etcd, "copies/film/n1").is_null());
    let store = serving.client().get("/status").json();
    assert_eq!(store["cluster"]["registered"], true, "{store}");
}

#[test]
fn copies_are_written_within_their_times_of_day() {
    let (fixture, etcd, bucket) = (TestStore::with(&[]), TestEtcd::new(), record_bucket());
    // Closed now and in the next minutes, whatever the time zone.
    let now = jiff::Zoned::now();
    let [from, to] = [2, 3].map(|hours| (now.hour() + hours) % 24);
    let windows = vec![format!("{from:02}:00-{to:02}:00").parse().unwrap()];
    let closed = CopySource { windows, ..source(titles(&bucket, |_| None)) };
    let serving = node(&fixture, &etcd, closed);
    order(&etcd, &["film"], &[]);
    eventually("the order is seen", || copies(&serving)["ordered"] == 1);
    std::thread::sleep(Duration::from_secs(1));
    let report = copies(&serving);
    assert_eq!((&report["filling"], &report["filled"]), (&json!([]), &json!(0)), "{report}");
}

#[test]
fn a_copy_takes_kept_disk_time_and_a_server_that_ends_leaves_nothing_of_it() {
    let (fixture, etcd, bucket) = (TestStore::with(&[]), TestEtcd::new(), TestBucket::default());
    let long = fixture.directory.join("long.bin");
    std::fs::write(&long, vec![7; 40 << 20]).unwrap();
    let from = TestStore::with(&[]);
    from.add_with(&[&long], &IngestOptions { kind: TitleKind::File, ..IngestOptions::default() });
    push(&bucket, &from, "long");
    // At this rate, the second mebibyte waits for seconds.
    let slow = CopySource { rate: BitRate(1_000_000), ..source(titles(&bucket, |_| None)) };
    let serving = node(&fixture, &etcd, slow);
    order(&etcd, &["long"], &[]);
    let filling = json!([{ "disk": 0, "state": "filling" }]);
    eventually("the copy is announced", || record(&etcd, "copies/long/n1") == filling);
    eventually("time is kept", || copies(&serving)["filling"][0]["kept_rate"] == 1_000_000);
    let start = Instant::now();
    drop(serving);
    assert!(start.elapsed() < Duration::from_secs(20), "it waits for the copy");
    let store = Store::open(&fixture.path).unwrap();
    let info = store.info();
    assert_eq!((info.titles, info.free_chunks), (0, info.data_chunks));
}
