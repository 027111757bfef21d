//! A node that carries out orders for copies: from a bucket in memory, by orders in an etcd in
//! memory.

use crate::directed::{cluster, record};
use crate::fixture::{TestServer, TestStore, eventually, media};
use bucket::TitleBucket;
use cluster::ContentTag;
use media::TitleKind;
use s3::{S3Access, S3Address};
use serde_json::{Value, json};
use server::{CopySource, ServerConfig};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::{CheckOptions, IngestOptions, SoleOwner, Store};
use testkit::bucket::{BucketFault, TestBucket, WrongAnswer};
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

pub(crate) fn push(bucket: &TestBucket, from: &TestStore, title: &str) {
    let store = SoleOwner(Store::open(&from.path).unwrap());
    let cancel = AtomicBool::new(false);
    titles(bucket, |_| None).push(&store, title, &mut |_| {}, &cancel).unwrap();
}

pub(crate) fn titles(bucket: &TestBucket, wrong: WrongAnswer) -> TitleBucket {
    let keys = Some(("key".to_owned(), "secret".to_owned(), None));
    let access = S3Access { endpoint: bucket.listen(wrong), keys, ..S3Access::default() };
    TitleBucket::new(access, S3Address::parse("s3://films").unwrap())
}

pub(crate) fn source(bucket: TitleBucket) -> CopySource {
    CopySource { bucket, windows: Vec::new(), rate: BitRate(400_000_000) }
}

/// A node with an empty store, or with what the fixture has.
pub(crate) fn node(fixture: &TestStore, etcd: &TestEtcd, source: CopySource) -> TestServer {
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

pub(crate) fn copies(serving: &TestServer) -> Value {
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
    let is_ready = |title| record(&etcd, &format!("copies/{title}/n1"))[0]["state"] == "ready";
    for title in ["film", "song"] {
        eventually("the copy is ready", || is_ready(title));
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
    assert!(is_ready("song"));
    let metrics = serving.client().get("/metrics").text().to_owned();
    let names = "tenuto_cluster_info{cluster=\"c\",node=\"n1\"} 1";
    for line in [names, "tenuto_copies_filled_total 2", "tenuto_copies_evicted_total 1"] {
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
fn a_copy_for_which_the_store_has_no_room_is_named_and_filled_when_there_is_room() {
    let (etcd, bucket) = (TestEtcd::new(), record_bucket());
    // Of 128 MiB, 100 are taken.
    let (fixture, other) = (TestStore::with(&[]), TestStore::with(&[]));
    add_file(&fixture, "own", 100);
    add_file(&other, "long", 40);
    push(&bucket, &fixture, "own");
    push(&bucket, &other, "long");
    let serving = node(&fixture, &etcd, source(titles(&bucket, |_| None)));
    order(&etcd, &["long", "film"], &[]);
    eventually("the film is filled", || copies(&serving)["filled"] == 1);
    let failed = copies(&serving)["failed"].take();
    assert_eq!(failed[0]["title"], "long");
    assert!(failed[0]["message"].as_str().unwrap().contains("the store is full"), "{failed}");
    assert!(record(&etcd, "copies/long/n1").is_null());
    // Another title goes: the copy is tried at once, not after its pause.
    order(&etcd, &["long", "film"], &["own"]);
    eventually("there is room", || record(&etcd, "copies/own/n1").is_null());
    eventually("it is filled", || copies(&serving)["filled"] == 2);
    eventually("and has not failed", || copies(&serving)["failed"] == json!([]));
    drop(serving);
    assert_sound(&fixture, &["film", "long"]);
}

#[test]
fn a_bucket_that_fails_for_a_moment_delays_a_copy_and_another_content_is_never_served() {
    let (fixture, etcd, bucket) = (TestStore::with(&[]), TestEtcd::new(), record_bucket());
    let fails = BucketFault::Answers("HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n");
    let faults = [fails, BucketFault::None, BucketFault::Truncates, BucketFault::Truncates];
    *bucket.faults.lock().unwrap() = faults.map(|fault| ("GET", fault)).to_vec();
    let serving = node(&fixture, &etcd, source(titles(&bucket, |_| None)));
    order(&etcd, &["song"], &[]);
    eventually("the song is filled", || copies(&serving)["filled"] == 1);
    assert_eq!(copies(&serving)["failures"], 0);
    assert_eq!(bucket.faults.lock().unwrap().len(), 0);
    // A byte of the largest part, which is the film's.
    let damage = || {
        let mut objects = bucket.objects.lock().unwrap();
        let parts = objects.iter_mut().filter(|(path, _)| path.contains("/parts/"));
        parts.max_by_key(|(_, part)| part.len()).unwrap().1[100] ^= 1;
    };
    damage();
    order(&etcd, &["film"], &[]);
    eventually("it fails", || copies(&serving)["failures"] == 1);
    let failed = copies(&serving)["failed"].take();
    assert_eq!(failed[0]["title"], "film");
    let message = failed[0]["message"].as_str().unwrap();
    assert!(message.contains("has other content than its name says"), "{message}");
    assert!(message.contains("tenuto bucket check --scrub"), "what to do: {message}");
    assert_eq!(serving.client().get(MASTER).status, 404);
    // Repaired; an order that is given anew is not waited with.
    damage();
    order(&etcd, &[], &[]);
    eventually("it is withdrawn", || copies(&serving)["failed"] == json!([]));
    order(&etcd, &["film"], &[]);
    eventually("it is filled", || copies(&serving)["filled"] == 2);
    assert_eq!(serving.client().get(MASTER).status, 200);
}

/// Another film in the bucket, in the place of the one that is there: the song under its name.
fn replace_film(bucket: &TestBucket) -> ContentTag {
    let other = TestStore::with(&[]);
    add_film(&other, &media().song);
    let content = tag(&other, "film");
    titles(bucket, |_| None).remove("film").unwrap();
    push(bucket, &other, "film");
    content
}

/// The content of a title in a store that is not served.
fn tag(fixture: &TestStore, title: &str) -> ContentTag {
    let store = Store::open(&fixture.path).unwrap();
    ContentTag::of(&store.find(title).unwrap().content().to_string())
}

/// Orders copies in the place of those that have this content.
fn order_anew(etcd: &TestEtcd, title: &str, outdated: ContentTag) {
    let fill = json!([{ "title": title, "disk": 0, "outdated": outdated.to_string() }]);
    etcd.put("/tenuto/c/orders/n1", &json!({ "fill": fill }).to_string());
}

#[test]
fn a_replaced_title_is_written_beside_the_old_one_whose_viewers_go_on() {
    let (fixture, etcd, bucket) =
        (TestStore::with(&[&media().film]), TestEtcd::new(), record_bucket());
    let old = tag(&fixture, "film");
    let serving = node(&fixture, &etcd, source(titles(&bucket, |_| None)));
    let content = || record(&etcd, "copies/film/n1")[0]["content"].clone();
    eventually("the old one is shown", || content() == old.to_string());
    let new = replace_film(&bucket);
    let mut viewer = serving.client();
    let of_old = viewer.get("/t/film.mp4").field("location").unwrap().to_owned();
    let old_length = viewer.get(&of_old).body.len();
    // Another content than the outdated one stays: it may be the only copy.
    order_anew(&etcd, "film", new);
    eventually("the order is seen", || copies(&serving)["ordered"] == 1);
    order(&etcd, &["film", "song"], &[]);
    eventually("the next order is carried out", || copies(&serving)["filled"] == 1);
    assert_eq!(
        (content(), copies(&serving)["failures"].as_u64()),
        (json!(old.to_string()), Some(0))
    );
    order_anew(&etcd, "film", old);
    eventually("it is replaced", || copies(&serving)["replaced"] == 1);
    eventually("the new one is shown", || content() == new.to_string());
    let response = viewer.get(&of_old);
    assert_eq!((response.status, response.body.len()), (200, old_length));
    let mut other = serving.client();
    let of_new = other.get("/t/film.mp4").field("location").unwrap().to_owned();
    let response = other.get(&of_new);
    assert!(response.status == 200 && response.whole, "{response:?}");
    assert!(response.body.len() < old_length / 2, "the song is shorter");
    let metrics = serving.client().get("/metrics").text().to_owned();
    for line in ["tenuto_copies_replaced_total 1", "tenuto_copies_failed 0"] {
        assert!(metrics.contains(line), "{line}");
    }
    drop(serving);
    assert_sound(&fixture, &["film", "song"]);
}

#[test]
fn an_outdated_copy_is_served_while_the_new_one_cannot_be_had() {
    let (fixture, etcd, bucket) =
        (TestStore::with(&[&media().film]), TestEtcd::new(), record_bucket());
    add_file(&fixture, "long", 100);
    let old = tag(&fixture, "film");
    replace_film(&bucket);
    let parts = || {
        let objects = bucket.objects.lock().unwrap();
        let manifest: Value = serde_json::from_slice(&objects["/films/titles/film.json"]).unwrap();
        let part = manifest["tracks"][0][0]["sha256"].as_str().unwrap();
        format!("/films/parts/{part}")
    };
    let part = parts();
    let damage = || bucket.objects.lock().unwrap().get_mut(&part).unwrap()[0] ^= 1;
    damage();
    let serving = node(&fixture, &etcd, source(titles(&bucket, |_| None)));
    let is_served = || serving.client().get(MASTER).text().contains("RESOLUTION");
    let failed = || copies(&serving)["failed"][0]["message"].as_str().map(str::to_owned);
    order_anew(&etcd, "film", old);
    eventually("it fails", || failed().is_some());
    assert!(failed().unwrap().contains("has other content than its name says"));
    assert!(is_served());
    // The store has not room for both.
    damage();
    order(&etcd, &[], &[]);
    eventually("it is withdrawn", || copies(&serving)["failed"] == json!([]));
    let other = TestStore::with(&[]);
    add_file(&other, "film", 40);
    titles(&bucket, |_| None).remove("film").unwrap();
    push(&bucket, &other, "film");
    order_anew(&etcd, "film", old);
    eventually("it fails again", || failed().is_some());
    assert!(failed().unwrap().contains("the store is full"), "{:?}", failed());
    assert!(is_served());
    assert_eq!(copies(&serving)["replaced"], 0);
    drop(serving);
    assert_sound(&fixture, &["film", "long"]);
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
fn a_copy_takes_kept_disk_time_and_nothing_is_left_of_it_when_the_server_ends() {
    let (fixture, etcd, bucket) = (TestStore::with(&[]), TestEtcd::new(), TestBucket::default());
    let from = TestStore::with(&[]);
    add_file(&from, "long", 40);
    push(&bucket, &from, "long");
    // A mebibyte in a second.
    let slow = CopySource { rate: BitRate(8_000_000), ..source(titles(&bucket, |_| None)) };
    let serving = node(&fixture, &etcd, slow);
    order(&etcd, &["long"], &[]);
    let filling = json!([{ "disk": 0, "state": "filling" }]);
    eventually("the copy is announced", || record(&etcd, "copies/long/n1") == filling);
    eventually("time is kept", || copies(&serving)["filling"][0]["kept_rate"] == 8_000_000);
    let done = || copies(&serving)["filling"][0]["done"].as_u64();
    eventually("some of it is on the disk", || done() > Some(3 << 20));
    // What a server leaves that is killed now.
    let killed = TestStore::with(&[]);
    std::fs::copy(&fixture.path, &killed.path).unwrap();
    drop(serving);
    assert_sound(&fixture, &[]);

    // Another one is started on it, and its orders are the same.
    let etcd = TestEtcd::new();
    let serving = node(&killed, &etcd, source(titles(&bucket, |_| None)));
    order(&etcd, &["long"], &[]);
    eventually("the copy is filled", || copies(&serving)["filled"] == 1);
    drop(serving);
    assert_sound(&killed, &["long"]);
}

/// Adds a title of a media file, under the name `film`.
pub(crate) fn add_film(fixture: &TestStore, file: &Path) {
    fixture.add(&[file]);
    let store = Store::open(&fixture.path).unwrap();
    let name = store.titles()[0].name.clone();
    store.rename(&name, "film").unwrap();
}

/// Adds a file of so many mebibytes, each with other bytes.
fn add_file(fixture: &TestStore, name: &str, mebibytes: u8) {
    let path = fixture.directory.join(format!("{name}.bin"));
    let bytes: Vec<u8> = (0..mebibytes).flat_map(|number| vec![number; 1 << 20]).collect();
    std::fs::write(&path, bytes).unwrap();
    let options = IngestOptions { kind: TitleKind::File, ..IngestOptions::default() };
    fixture.add_with(&[&path], &options);
}

/// A store that is not served has these titles, undamaged, and no chunk of others.
pub(crate) fn assert_sound(fixture: &TestStore, titles: &[&str]) {
    let store = Store::open(&fixture.path).unwrap();
    let report = store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
    assert_eq!(report.findings, []);
    let names: Vec<String> = store.titles().iter().map(|record| record.name.clone()).collect();
    assert_eq!(names, titles);
    titles.iter().for_each(|title| drop(store.remove(title).unwrap()));
    let info = store.info();
    assert_eq!(info.free_chunks, info.data_chunks);
}
