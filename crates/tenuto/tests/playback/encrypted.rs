//! Encrypted titles: FFmpeg with the key decodes the frames of the clear title, Shaka in Chromium
//! plays them with the browser's ClearKey, hls.js and FFmpeg play their transport streams in
//! AES-128; what cannot be encrypted is refused. Keys come from a file, and from a key server.

use crate::chromium::{Row, assert_played};
use crate::dash::check_manifest;
use crate::framemd5;
use crate::program::{Served, TestDir};
use std::os::unix::fs::PermissionsExt;
use testkit::key_server::{KeyServer, key_of};

const VIDEO: (&str, &str) =
    ("1d000000000000000000000000000001", "0a5ec2e7000000000000000000000001");
const SOUND: (&str, &str) =
    ("1d000000000000000000000000000002", "0a5ec2e7000000000000000000000002");

/// A title in the clear, and encrypted with each scheme: with one key, and with one for each kind
/// of track.
const TITLES: [&str; 4] = ["clear", "cenc", "cbcs", "two-keys"];

/// Titles whose keys a server has, and has not.
const OF_A_SERVER: [&str; 2] = ["drm", "drm unknown"];
const AUTHORIZATION: &str = "Bearer 5ec2e7";

fn write_keys(dir: &TestDir, server: &KeyServer) {
    let (id, key) = VIDEO;
    let entry = |titles: &str, scheme: &str| {
        format!(
            "[[key]]\ntitles = \"{titles}\"\nscheme = \"{scheme}\"\nkey_id = \"{id}\"\n\
             key = \"{key}\"\n"
        )
    };
    let (id, key) = SOUND;
    let sound = format!("audio = {{ key_id = \"{id}\", key = \"{key}\" }}\n");
    let of_server = format!(
        "[[key]]\ntitles = \"drm*\"\nscheme = \"cbcs\"\nserver = \"{}\"\n\
         authorization = \"{AUTHORIZATION}\"\n\
         systems = [{{ id = \"{WIDEVINE}\" }}, {{ id = \"{FAIRPLAY}\" }}]\n",
        server.url()
    );
    let text = [
        &entry("cenc", "cenc"),
        &entry("cbcs", "cbcs"),
        &entry("two*", "cbcs"),
        &sound,
        &of_server,
    ];
    std::fs::write(dir.path("keys.toml"), text.map(String::as_str).concat()).expect("a file");
    let only_owner = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.path("keys.toml"), only_owner).expect("of this test");
}

fn served(dir: &TestDir, keys: &KeyServer) -> Served {
    let film = "-f lavfi -i testsrc2=s=320x180:r=25:d=2 -f lavfi -i sine=440:d=2:r=48000 \
                -c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -g 25 -pix_fmt yuv420p -c:a aac";
    let film = dir.encode("film.mp4", &film.split_whitespace().collect::<Vec<_>>());
    TITLES.iter().chain(&OF_A_SERVER).for_each(|title| dir.ingest(&film, title));
    write_keys(dir, keys);
    dir.serve("--segment 1s --admission none --title-keys keys.toml")
}

#[test]
fn ffmpeg_and_shaka_play_encrypted_titles() {
    let dir = TestDir::with_store_of(96);
    let key_server = KeyServer::start(AUTHORIZATION, &OF_A_SERVER[..1]);
    let server = served(&dir, &key_server);
    let manifest = |title: &str| server.url(&format!("/t/{title}/manifest.mpd"));
    let files = server.url("/t/cbcs/ondemand.mpd");
    // Whole segments of transport streams, with the keys of the session.
    let streams = |title: &str| server.url(&format!("/t/{title}/master-ts.m3u8"));
    let [clear, wanted, got] =
        framemd5::decode_each([&manifest("clear"), &streams("clear"), &streams("cenc")])
            .map(framemd5::sorted);
    framemd5::assert_same("transport streams", &wanted, &got, 0);
    let encrypted = [&manifest("cenc"), &manifest("cbcs"), &files];
    let got = framemd5::decode_encrypted(encrypted.map(String::as_str), VIDEO.1);
    for (address, got) in encrypted.iter().zip(got.map(framemd5::sorted)) {
        framemd5::assert_same(address, &clear, &got, 0);
    }
    ["cenc", "cbcs"].iter().for_each(|title| check_manifest(&server, title));
    let keys = [VIDEO, SOUND].map(|(id, key)| format!("{id}={key}")).join(",");
    let mut rows = Vec::new();
    for title in &TITLES[1..] {
        let dash = format!("{}#{keys}", manifest(title));
        let hls = server.url(&format!("/t/{title}/master.m3u8"));
        for (way, url) in [("shaka-keys", dash), ("shaka-keys", hls), ("hls", streams(title))] {
            let said = "50 pictures, sound, errors []".to_owned();
            rows.push(Row { title, way, url, may_stall: false, said });
        }
    }
    assert_played(&dir, &rows);
    keys_of_a_server_go_to_drm_systems_alone(&server, &key_server);
    let got = framemd5::decode_encrypted_pictures(&manifest("drm"), &video_key(&server));
    framemd5::assert_same("drm", &clear[..1], &got, 0);
    what_cannot_be_encrypted_is_refused(&dir, &server);
}

/// The key of the title's video, by the number that its manifest states.
fn video_key(server: &Served) -> String {
    let manifest = String::from_utf8(server.get("/t/drm/manifest.mpd")).expect("text");
    let number = manifest.split("cenc:default_KID=\"").nth(1).expect("a number");
    key_of(&number[..36])
}

/// The server was asked once for a title that is played, and players are sent to DRM systems.
fn keys_of_a_server_go_to_drm_systems_alone(server: &Served, keys: &KeyServer) {
    assert_eq!(keys.asked(), Vec::<String>::new(), "nobody has played a title of it");
    let text = |path: &str| String::from_utf8(server.get(path)).expect("text");
    let master = text("/t/drm/master.m3u8");
    let mut formats: Vec<&str> = master
        .lines()
        .filter_map(|line| line.strip_prefix("#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,"))
        .filter_map(|line| line.split("KEYFORMAT=\"").nth(1)?.split('"').next())
        .collect();
    formats.sort_unstable();
    let widevine = format!("urn:uuid:{WIDEVINE}");
    let fairplay = "com.apple.streamingkeydelivery";
    assert_eq!(formats, [fairplay, fairplay, &widevine, &widevine], "{master}");
    let manifest = text("/t/drm/manifest.mpd");
    let count = |text: &str| manifest.matches(text).count();
    let of_sets = count(&format!("schemeIdUri=\"{widevine}\""));
    assert_eq!(of_sets, count("<AdaptationSet"), "{manifest}");
    assert!(!manifest.contains(FAIRPLAY), "it has no pssh box: {manifest}");
    let said = server.find("/t/drm/master-ts.m3u8").expect_err("a refusal");
    assert!(said.contains(" 404 ") && said.contains("DRM systems alone"), "{said}");
    assert_eq!(keys.asked(), ["drm"], "once, whatever is played of it");
    for _ in 0..2 {
        let said = server.request("/t/drm%20unknown/manifest.mpd").expect_err("a refusal");
        assert!(said.contains(" 503 ") && said.contains("no-keys"), "{said}");
    }
    assert_eq!(keys.asked(), ["drm", "drm unknown"], "not again at once");
}

fn what_cannot_be_encrypted_is_refused(dir: &TestDir, server: &Served) {
    let said = server.find("/t/cbcs.mp4").expect_err("a refusal");
    assert!(said.contains(" 403 ") && said.contains("encrypted"), "{said}");
    // A session of its segments has a token, and does not open the file either.
    for manifest in ["master.m3u8", "manifest.mpd"] {
        let text = String::from_utf8(server.get(&format!("/t/cbcs/{manifest}"))).expect("text");
        let token = text.split_once("?s=").and_then(|(_, rest)| rest.get(..32)).expect("a token");
        let said = server.find(&format!("/t/cbcs.mp4?s={token}")).expect_err("a refusal");
        assert!(said.contains(" 404 ") && said.contains("session-unknown"), "{said}");
    }
    let key = format!("/t/cbcs/key/{}", "1d000000-0000-0000-0000-000000000001");
    assert!(server.find(&key).is_err(), "keys are given to sessions only");
    for path in ["/status", "/metrics", "/titles", "/sessions"] {
        let text = String::from_utf8(server.get(path)).expect("text");
        assert!(!text.to_lowercase().contains("5ec2e7"), "{path}");
    }
    let said = dir.run_words(&["serve", "a.store", "--check-config", "--title-keys", "film.mp4"]);
    assert!(said.err.contains("chmod 600"), "other users can read it: {}", said.err);
}

const WIDEVINE: &str = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed";
const FAIRPLAY: &str = "94ce86fb-07ff-4f43-adb8-93d2fa968ca2";
