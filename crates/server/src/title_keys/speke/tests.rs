//! A key server's answers, good and bad, and what is kept of them. The server is testkit's, which
//! is written by the specification.

use super::*;
use testkit::key_server;

const WIDEVINE: [u8; 16] = 0xedef_8ba9_79d6_4ace_a3c8_27dc_d51d_21ed_u128.to_be_bytes();

type Says = fn() -> NoKeys;

fn asked() -> KeyRequest {
    let ids = ["VIDEO", "AUDIO"].map(|kind| key_id("film", "1", kind));
    KeyRequest { title: "film".to_owned(), ids }
}

fn server(url: &str) -> KeyServer {
    let access = KeyServerAccess::Authorization("Basic 5ec2e7".to_owned());
    KeyServer::new(url, access, vec![WIDEVINE, FAIRPLAY]).unwrap()
}

#[test]
fn a_server_gives_keys_and_what_systems_say_of_them() {
    let there = key_server::KeyServer::start("Basic 5ec2e7", &["a \"film\" & <more>"]);
    let (server, name) = (server(&there.url()), "a \"film\" & <more>");
    let given = server.keys(EncryptionScheme::Cbcs, name, "1").unwrap();
    for key in [&given.video, &given.audio] {
        let id = uuid(&key.id);
        assert_eq!(units::to_hex(&key.key), key_server::key_of(&id));
        assert_eq!(key.access, KeyAccess::Systems);
        let of_key: Vec<_> =
            given.systems.iter().filter(|system| system.key_id == Some(key.id)).collect();
        let [widevine, fairplay] = of_key[..] else { panic!("{of_key:?}") };
        assert_eq!((widevine.id, fairplay.id), (WIDEVINE, FAIRPLAY));
        assert!(widevine.pssh.ends_with(&key.id) && fairplay.pssh.is_empty());
        let hls = fairplay.hls.as_ref().unwrap();
        let wanted = format!(
            "METHOD=SAMPLE-AES,URI=\"skd://{id}\",KEYFORMAT=\"com.apple.streamingkeydelivery\",\
             KEYFORMATVERSIONS=\"1\""
        );
        assert_eq!((&hls.media, &hls.multivariant), (&wanted, &wanted));
    }
    assert_ne!(given.video.id, given.audio.id);
    // What was said is not asked again, and another content has other keys.
    let again = server.keys(EncryptionScheme::Cbcs, name, "1").unwrap();
    assert_eq!(again.video.key, given.video.key);
    assert_eq!(there.asked(), [name]);
    let other = server.keys(EncryptionScheme::Cbcs, name, "2").unwrap();
    assert_ne!(other.video.id, given.video.id);
    let refused = server.keys(EncryptionScheme::Cbcs, "another", "1").unwrap_err();
    assert!(refused.contains("422") && refused.contains("no content another"), "{refused}");
    assert_eq!(there.asked(), [name, name, "another"]);
}

#[test]
fn a_question_is_signed_as_aws_wants_it() {
    let of_today = "AWS4-HMAC-SHA256 Credential=AKID/20";
    let there = key_server::KeyServer::start(of_today, &["film"]);
    let signer = Signer::new("eu-west-1".to_owned(), "AKID".to_owned(), "5ec2e7".to_owned());
    let access = KeyServerAccess::Signature { signer, service: "execute-api".to_owned() };
    let server = KeyServer::new(&there.url(), access, vec![WIDEVINE]).unwrap();
    let given = server.keys(EncryptionScheme::Cbcs, "film", "1").unwrap();
    assert_eq!(units::to_hex(&given.video.key), key_server::key_of(&uuid(&given.video.id)));
}

#[test]
fn numbers_of_keys_are_uuids_and_differ_by_name_content_and_kind() {
    let ids = [("a", "b", "VIDEO"), ("a", "b", "AUDIO"), ("ab", "", "VIDEO"), ("a", "c", "VIDEO")]
        .map(|(title, content, kind)| uuid(&key_id(title, content, kind)));
    for (number, id) in ids.iter().enumerate() {
        assert!(id[14..].starts_with('8') && "89ab".contains(&id[19..20]), "{id}");
        assert!(!ids[..number].contains(id), "{ids:?}");
    }
    // Other nodes and later versions must ask for the same.
    assert_eq!(ids[0], "555f0be5-6751-878c-8fa5-5a41185acd31");
}

#[test]
fn a_server_that_fails_is_left_in_peace_for_a_while() {
    let (server, start) = (server("http://127.0.0.1:1/"), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    let other = KeyRequest { title: "other".to_owned(), ids: [[1; 16], [2; 16]] };
    let [silent, refused]: [Says; 2] =
        [|| NoKeys::Silent("silent".to_owned()), || NoKeys::Refused("refused".to_owned())];
    // Time, title, what the server would say (none: it is not to be asked), what is said.
    let table: [(u64, KeyRequest, Option<Says>, &str); 8] = [
        (0, asked(), Some(refused), "refused"),
        (9, asked(), None, "refused"),
        (9, other.clone(), Some(silent), "silent"),
        (11, asked(), None, "silent"),
        (18, other.clone(), None, "silent"),
        (19, other.clone(), Some(refused), "refused"),
        (20, asked(), Some(silent), "silent"),
        (28, other, None, "refused"),
    ];
    for (seconds, title, failure, wanted) in table {
        let said = server.answer(title, at(seconds), |_| Err(failure.expect("not asked")()));
        assert_eq!(said.unwrap_err(), wanted, "after {seconds} s");
    }
    let none = server.keys(EncryptionScheme::Cbcs, "film", "1").unwrap_err();
    assert!(!none.contains("5ec2"), "{none}");
}

#[test]
fn each_fault_of_an_answer_is_named() {
    let id = |number: usize| uuid(&asked().ids[number]);
    let key = |number: usize, inside: &str| {
        format!("<c:ContentKey kid='{}'>{inside}</c:ContentKey>", id(number))
    };
    let value = "<p:PlainValue>AAECAwQFBgcICQoLDA0ODw==</p:PlainValue>";
    let document = |keys: &str, systems: &str| {
        format!(
            "<c:CPIX xmlns:c='{CPIX}' xmlns:p='{PSKC}'><c:ContentKeyList>{keys}\
             </c:ContentKeyList><c:DRMSystemList>{systems}</c:DRMSystemList></c:CPIX>"
        )
    };
    let keys = key(0, value) + &key(1, value);
    let with = |system: &str, inside: &str| {
        let kid = id(0);
        let system = format!("<c:DRMSystem kid='{kid}' systemId='{system}'>{inside}</c:DRMSystem>");
        document(&keys, &system)
    };
    let (widevine, fairplay) = (uuid(&WIDEVINE), uuid(&FAIRPLAY));
    let hls = |text: &str| {
        let data = BASE64_STANDARD.encode(text);
        with(&fairplay, &format!("<c:HLSSignalingData>{data}</c:HLSSignalingData>"))
    };
    let tag = "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://a\",KEYFORMAT=\"apple\"";
    let good = read(&hls(tag), EncryptionScheme::Cbcs, &asked()).unwrap();
    assert_eq!(good.systems[0].hls.as_ref().unwrap().multivariant, tag[11..]);
    let own = format!("<p:PlainValue>{}</p:PlainValue>", BASE64_STANDARD.encode(asked().ids[1]));
    let table = [
        (String::new(), "no XML document"),
        ("<CPIX/>".to_owned(), "no CPIX document"),
        ("<!DOCTYPE a [<!ENTITY b 'b'>]><a>&b;</a>".to_owned(), "no XML document"),
        (document(&key(0, value), ""), "has no key"),
        (document(&(key(0, value) + &key(1, "")), ""), "no value of key"),
        (document(&(key(0, value) + &key(1, "<p:EncryptedValue/>")), ""), "is encrypted"),
        (document(&(key(0, value) + &key(1, "<p:PlainValue>AAA=</p:PlainValue>")), ""), "16 bytes"),
        (document(&(key(0, value) + &key(1, &own)), ""), "is its number"),
        (
            document(&keys.replace("kid=", "commonEncryptionScheme='cenc' kid="), ""),
            "for the scheme 'cenc'",
        ),
        (with("widevine", ""), "no systemId that is a UUID"),
        (with(&widevine, ""), "neither a pssh box"),
        (with(&widevine, "<c:PSSH>AAAA</c:PSSH>"), "not one pssh box"),
        (
            with(&widevine, "<c:PSSH>AAAAIHBzc2gAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=</c:PSSH>"),
            "of another system",
        ),
        (with(&widevine, "").replace(&id(0), &uuid(&[9; 16])), "has no key"),
        (hls("\u{e4}"), "has no #EXT-X-KEY"),
        (hls(&tag.replace("SAMPLE-AES", "AES-128")), "has not METHOD=SAMPLE-AES"),
        (hls(&tag.replace("apple", "identity")), "names no system"),
        (hls(&tag.replace("URI", "URL")), "has no URI"),
        (hls(&tag.replace("skd", "sk\u{e4}d")), "is no tag"),
    ];
    for (answer, wanted) in table {
        let said = read(&answer, EncryptionScheme::Cbcs, &asked()).unwrap_err();
        assert!(said.contains(wanted), "{answer}\n{said}");
    }
}

#[test]
fn any_bytes_are_an_answer_or_an_error() {
    let there = key_server::KeyServer::start("Basic 5ec2e7", &["film"]);
    let server = server(&there.url());
    let question = question(EncryptionScheme::Cbcs, &asked(), &server.systems);
    let Ok(whole) = server.ask(&question) else { panic!("no answer") };
    assert!(read(&whole, EncryptionScheme::Cbcs, &asked()).is_ok());
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..CASES {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => bytes.truncate(at.max(1)),
                _ => {
                    let end = random.usize(at..bytes.len());
                    bytes.extend_from_within(at..end);
                }
            }
        }
        let _ = read(&String::from_utf8_lossy(&bytes), EncryptionScheme::Cbcs, &asked());
    }
}

/// Answers that are damaged at random.
const CASES: u32 = 2_000;
