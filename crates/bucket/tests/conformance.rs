//! What Tenuto needs of a server of the S3 protocol, tried on real ones.
//!
//! ```text
//!   memory      the bucket that other tests use: it answers as real servers do
//!   versitygw   from the PATH (scripts/deps.sh test)
//!   another     TENUTO_CONFORMANCE=s3://BUCKET/PREFIX with AWS_ENDPOINT_URL and the keys:
//!               cargo test -p bucket --test conformance -- an_endpoint --nocapture
//! ```
//!
//! All that is needed is GET with Range, HEAD, PUT, uploads in parts, LIST and DELETE; what a
//! server does with conditions (`If-None-Match`) is looked for and may be nothing. Everything is
//! written below the prefix, and removed.

use bucket::{BucketError, PushOptions, TitleBucket};
use device::MemoryDevice;
use media::{LduIndex, TitleKind, TrackDescription, TrackKind};
use s3::{S3Access, S3Address, S3Client, S3Error, S3ErrorKind};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::{CheckOptions, FormatOptions, SoleOwner, Store, StoreAccess};
use testkit::bucket::TestBucket;
use testkit::gateway::Gateway;
use units::{ByteCount, Timescale};

/// A server and a place there for the test alone.
struct Server {
    access: S3Access,
    address: S3Address,
    /// Not in memory: it has more than one bucket, and verifies signatures.
    is_real: bool,
}

impl Server {
    fn new(endpoint: String, keys: [&str; 2], is_real: bool) -> Self {
        let [key, secret] = keys.map(str::to_owned);
        let (region, keys) = ("us-east-1".to_owned(), Some((key, secret, None)));
        let access = S3Access { endpoint, region, keys, ..S3Access::default() };
        Self { access, address: S3Address::parse("s3://films/house").unwrap(), is_real }
    }

    fn client(&self) -> S3Client {
        S3Client::new(&self.access, &self.address.bucket, "conformance").unwrap()
    }

    /// A key below the prefix.
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.address.prefix)
    }

    fn titles(&self) -> TitleBucket {
        TitleBucket::new(self.access.clone(), self.address.clone())
    }
}

/// All of it; returns whether conditions are kept to.
fn conforms(server: &Server) -> bool {
    keys_are_kept(server);
    ranges_are_read(server);
    long_lists_are_whole(server);
    objects_in_parts_appear_when_they_are_whole(server);
    refusals_say_why(server);
    let conditions = one_of_many_writers_is_first(server);
    titles_come_back(server, conditions);
    let left = server.client().list(&server.address.prefix).unwrap();
    assert_eq!(left, [], "everything is removed");
    conditions
}

/// Keys come back as they were written, in the order of their bytes; an object is replaced.
fn keys_are_kept(server: &Server) {
    let client = server.client();
    let names = [
        "keys/a b",
        "keys/a title, with ünusual % signs & <tags>",
        "keys/plus+equal=at@",
        "keys/sub/1",
        "keys/sub/2",
        "keys/~tilde'quote(bracket)*",
        "keys/映画.json",
    ];
    let keys = names.map(|name| server.key(name));
    for key in &keys {
        client.put(key, b"before").unwrap();
        client.put(key, key.as_bytes()).unwrap();
    }
    client.put(&server.key("keys-not"), b"").unwrap();
    for key in &keys {
        assert_eq!(client.get(key, 1000).unwrap(), key.as_bytes());
        assert_eq!(client.size(key).unwrap(), Some(key.len() as u64), "{key}");
    }
    let listed = client.list(&server.key("keys/")).unwrap();
    assert!(listed.iter().all(|object| object.tag.is_some()), "{listed:?}");
    let found: Vec<_> = listed.iter().map(|object| (&*object.key, object.size)).collect();
    let wanted: Vec<_> = keys.iter().map(|key| (&**key, key.len() as u64)).collect();
    assert_eq!(found, wanted);
    // A tag says whether an object is another one.
    let tag = |of: &str| {
        let listed = client.list(of).unwrap();
        listed[0].tag.clone().unwrap()
    };
    let before = tag(&keys[0]);
    assert_eq!(tag(&keys[0]), before);
    client.put(&keys[0], b"after").unwrap();
    assert_ne!(tag(&keys[0]), before);
    // An object without a byte is one.
    let empty = server.key("keys-not");
    assert_eq!((client.size(&empty).unwrap(), client.get(&empty, 10).unwrap()), (Some(0), vec![]));
    for key in keys.iter().chain([&empty]) {
        client.delete(key).unwrap();
        assert_eq!(client.size(key).unwrap(), None, "{key}");
        // It is removed, whether it was there or not.
        client.delete(key).unwrap();
    }
    assert_eq!(client.list(&server.key("keys")).unwrap(), []);
}

fn ranges_are_read(server: &Server) {
    let (client, key) = (server.client(), server.key("ranges"));
    let mut bytes = vec![0; 3_000_000];
    fastrand::Rng::with_seed(2).fill(&mut bytes);
    client.put(&key, &bytes).unwrap();
    let last = bytes.len() - 1;
    for (offset, length) in [(0, 1), (0, bytes.len()), (last, 1), (1_234_567, 65_536), (17, 1)] {
        let mut memory = vec![0; length];
        client.read(&key, offset as u64, &mut memory).unwrap();
        assert!(memory == bytes[offset..offset + length], "{length} bytes at {offset}");
    }
    // What is not there is an error, and the connection goes on.
    for (offset, length) in [(last, 2), (last + 1, 1)] {
        let error = client.read(&key, offset as u64, &mut vec![0; length]).unwrap_err();
        assert_ne!(error.kind, S3ErrorKind::NoSuchKey, "{error}");
    }
    let too_large = client.get(&key, last as u64).unwrap_err();
    assert_eq!(too_large.kind, S3ErrorKind::TooLarge);
    client.delete(&key).unwrap();
}

/// A list has pages: of 1,000 objects, and of 3 in memory.
fn long_lists_are_whole(server: &Server) {
    let count = if server.is_real { 1_003 } else { 10 };
    let keys: Vec<String> = (0..count).map(|at| server.key(&format!("many/{at:04}"))).collect();
    let in_eight = |work: fn(&S3Client, &str)| {
        std::thread::scope(|scope| {
            for some in keys.chunks(keys.len().div_ceil(8)) {
                let client = server.client();
                scope.spawn(move || some.iter().for_each(|key| work(&client, key)));
            }
        });
    };
    in_eight(|client, key| client.put(key, b"x").unwrap());
    let listed = server.client().list(&server.key("many/")).unwrap();
    let found: Vec<String> = listed.into_iter().map(|object| object.key).collect();
    assert!(found == keys, "{} objects of {}", found.len(), keys.len());
    in_eight(|client, key| client.delete(key).unwrap());
    assert_eq!(server.client().list(&server.key("many/")).unwrap(), []);
}

fn objects_in_parts_appear_when_they_are_whole(server: &Server) {
    let (client, key) = (server.client(), server.key("in parts"));
    let part = |seed: u64, length: usize| {
        let mut bytes = vec![0; length];
        fastrand::Rng::with_seed(seed).fill(&mut bytes);
        bytes
    };
    let parts = [part(1, 5 << 20), part(2, 5 << 20), part(3, 17)];
    let mut next = parts.iter().cloned();
    let mut hand_out = || -> Result<_, S3Error> {
        assert_eq!(client.size(&key).unwrap(), None, "not before its end");
        Ok(next.next())
    };
    server.client().put_in_parts(&key, &mut hand_out).unwrap();
    let all = parts.concat();
    assert!(client.get(&key, all.len() as u64).unwrap() == all);
    // Across the end of a part.
    let mut memory = [0; 100];
    client.read(&key, (5 << 20) - 50, &mut memory).unwrap();
    assert_eq!(memory, all[(5 << 20) - 50..][..100]);
    client.delete(&key).unwrap();
    // One that fails leaves nothing.
    let mut once = Some(parts[0].clone());
    let mut fails = || match once.take() {
        Some(part) => Ok(Some(part)),
        None => Err(client.get(&key, 1).unwrap_err()),
    };
    let error = server.client().put_in_parts(&key, &mut fails).unwrap_err();
    assert_eq!(error.kind, S3ErrorKind::NoSuchKey);
    assert_eq!(client.size(&key).unwrap(), None);
}

fn refusals_say_why(server: &Server) {
    let (client, key) = (server.client(), server.key("nothing"));
    assert_eq!(client.get(&key, 1).unwrap_err().kind, S3ErrorKind::NoSuchKey);
    assert_eq!(client.read(&key, 0, &mut [0]).unwrap_err().kind, S3ErrorKind::NoSuchKey);
    if !server.is_real {
        return;
    }
    let nowhere = S3Client::new(&server.access, "no-such-bucket-of-films", "conformance").unwrap();
    for error in [nowhere.get("a", 1).unwrap_err(), nowhere.put("a", b"").unwrap_err()] {
        assert_eq!(error.kind, S3ErrorKind::Failed, "{error}");
        assert!(error.to_string().contains("NoSuchBucket"), "{error}");
    }
    let mut access = server.access.clone();
    access.keys.as_mut().unwrap().1 = "another-secret".to_owned();
    let forger = S3Client::new(&access, &server.address.bucket, "conformance").unwrap();
    for error in [forger.put(&key, b"x").unwrap_err(), forger.list("").unwrap_err()] {
        assert!(error.to_string().contains("403"), "{error}");
    }
    assert_eq!(client.size(&key).unwrap(), None);
}

/// Eight write one key at the same time; returns whether the server keeps to the condition.
fn one_of_many_writers_is_first(server: &Server) -> bool {
    let (client, key) = (server.client(), server.key("first"));
    let written: Vec<bool> = std::thread::scope(|scope| {
        let write = |number: u8| {
            let (client, key) = (server.client(), &key);
            scope.spawn(move || client.put_new(key, &[number]).unwrap())
        };
        let writers: Vec<_> = (0..8).map(write).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let first = written.iter().filter(|written| **written).count();
    assert!(first >= 1, "{written:?}");
    let again = client.put_new(&key, b"again").unwrap();
    if !again {
        assert_eq!(first, 1, "it keeps to conditions, but not at the same time: {written:?}");
        let winner = written.iter().position(|written| *written).unwrap();
        assert_eq!(client.get(&key, 10).unwrap(), [u8::try_from(winner).unwrap()]);
    }
    client.delete(&key).unwrap();
    !again
}

fn store() -> SoleOwner {
    let device = Arc::new(MemoryDevice::new(ByteCount(100 << 20)));
    let options = FormatOptions { chunk: ByteCount::kib(64), ..FormatOptions::default() };
    Store::format_on(device.clone(), &options).unwrap();
    SoleOwner(Store::open_on(device).unwrap())
}

/// Writes a title of one track of these bytes.
fn put_title(store: &SoleOwner, name: &str, bytes: &[u8]) {
    let mut writer = store.0.begin(name, TitleKind::Media).unwrap();
    writer.declare(&[ByteCount(bytes.len() as u64)]).unwrap();
    writer.write(0, bytes).unwrap();
    let mut index = LduIndex::default();
    for ldu in bytes.chunks(1 << 20) {
        index.push(u32::try_from(ldu.len()).unwrap(), 1, 0, true, false);
    }
    let track = TrackDescription::plain(TrackKind::Video, Timescale(25));
    writer.seal(vec![(track, index)]).unwrap();
}

/// A title goes into the bucket and comes back; titles share what is equal.
fn titles_come_back(server: &Server, conditions: bool) {
    let (titles, from, to) = (server.titles(), store(), store());
    let none = AtomicBool::new(false);
    let push = |title: &str| titles.push(&from, title, &mut |_| {}, &none);
    let fill = |title: &str| titles.fill(&to, title, &mut |_| {}, &none);
    let mut random = fastrand::Rng::with_seed(1);
    let mut bytes = vec![0; 35 << 20];
    random.fill(&mut bytes);
    let names = ["a/film, with ünusual % name", "again"];
    for name in names {
        put_title(&from, name, &bytes);
    }
    let pushed = push(names[0]).unwrap();
    assert_eq!((pushed.parts, pushed.written), (4, 4));
    assert_eq!(pushed.keeps_conditions, Some(conditions));
    assert_eq!(push(names[1]).unwrap().written, 0, "its parts are there");
    let listed: BTreeSet<String> = titles.titles().unwrap().into_iter().collect();
    assert_eq!(listed, BTreeSet::from(names.map(str::to_owned)));
    let found = titles.check(true, &mut |_| {}, &none).unwrap();
    assert_eq!((found.titles, found.parts, found.unused_parts), (2, 4, 0));
    assert_eq!(found.findings, []);
    // A damaged part is written again by a push that verifies, for both titles.
    let client = server.client();
    let part = titles.manifest(names[0]).unwrap().tracks[0][0].clone();
    client.put(&server.key(&format!("parts/{}", part.sha256)), &vec![0; 16 << 20]).unwrap();
    let found = titles.check(true, &mut |_| {}, &none).unwrap();
    let damaged: BTreeSet<String> = found.findings.into_iter().map(|one| one.title).collect();
    assert_eq!(damaged, BTreeSet::from(names.map(str::to_owned)));
    assert_eq!(push(names[0]).unwrap().written, 0, "its size is right");
    let verify = PushOptions { verify: true };
    let repaired = titles.push_with(&from, names[0], verify, &mut |_| {}, &none).unwrap();
    assert_eq!((repaired.parts, repaired.written), (4, 1));
    assert_eq!(titles.check(true, &mut |_| {}, &none).unwrap().findings, []);
    // Another title of this name is not written over the first.
    let other = store();
    put_title(&other, names[0], &bytes[..1 << 20]);
    assert!(titles.push(&other, names[0], &mut |_| {}, &none).is_err());
    for name in names {
        fill(name).unwrap();
        assert_eq!(to.0.find(name).unwrap().content(), from.0.find(name).unwrap().content());
    }
    assert_eq!(to.0.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap().findings, []);
    titles.remove(names[0]).unwrap();
    to.store().remove(names[1]).unwrap();
    fill(names[1]).unwrap();
    titles.remove(names[1]).unwrap();
    assert!(matches!(fill(names[0]), Err(BucketError::NoTitle { .. } | BucketError::Store(_))));
    // The parts that the other store wrote before it was refused, and what was written to see
    // whether conditions are kept to.
    for object in client.list(&server.address.prefix).unwrap() {
        let is_part = object.key.starts_with(&server.key("parts/"));
        assert!(is_part || object.key == server.key("conditions"), "{}", object.key);
        client.delete(&object.key).unwrap();
    }
}

#[test]
fn the_bucket_in_memory_is_as_real_ones_are() {
    let endpoint = TestBucket::default().listen(|_| None);
    assert!(conforms(&Server::new(endpoint, ["key", "secret"], false)));
    let heedless = TestBucket { ignores_conditions: true, ..TestBucket::default() };
    assert!(!conforms(&Server::new(heedless.listen(|_| None), ["key", "secret"], false)));
}

/// By default versitygw, whose conditions are kept.
#[test]
fn an_endpoint_has_all_that_is_needed() {
    if let Ok(address) = std::env::var("TENUTO_CONFORMANCE") {
        let access = S3Access::from_variables(&|name| std::env::var(name).ok());
        let address = S3Address::parse(&address).unwrap();
        let server = Server { access, address, is_real: true };
        let conditions = conforms(&server);
        let kept = if conditions { "kept to" } else { "not kept to" };
        #[expect(clippy::print_stdout, reason = "what was looked for is the result")]
        {
            println!("{} conforms; conditions are {kept}", server.access.endpoint);
        }
        return;
    }
    testkit::needs!(Program(Gateway::PROGRAM));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let gateway = Gateway::start(&folder, &["films"]);
    assert!(conforms(&Server::new(gateway.endpoint.clone(), Gateway::KEYS, true)));
}
