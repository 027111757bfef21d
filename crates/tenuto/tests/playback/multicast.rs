//! A title that an operator sends to a multicast group, and FFmpeg as a receiver that joins it.
//!
//! Server and receiver are in a network namespace of their own, whose groups are on its loopback
//! device: nothing leaves the machine, and no route of it changes.

use crate::files::ADMITS_ALL;
use crate::program::TestDir;
use std::process::Command;
use testkit::Need;

/// Code 77: no such namespace. The receiver has joined before anything is sent.
const SCRIPT: &str = r#"
ip link set lo up && ip link set lo multicast on && ip route add 239.0.0.0/8 dev lo || exit 77
"$TENUTO" token keys.json --new >log && operator=$("$TENUTO" token keys.json --operator) || exit 1
"$TENUTO" serve a.store --listen 127.0.0.1:8080 --tokens keys.json $ADMISSION >log 2>&1 &
server=$!
trap 'kill $server; wait $server' EXIT
until curl -fs http://127.0.0.1:8080/healthz >health
do kill -0 $server || { cat log >&2; exit 1; }; sleep 0.05; done
ffprobe -v error -count_packets -show_entries stream=codec_name,nb_read_packets -of csv=p=0 \
    -read_intervals %+2 'udp://239.1.1.1:5000?timeout=20000000' >found &
receiver=$!
until grep -qi 010101ef /proc/net/igmp; do kill -0 $receiver || exit 1; sleep 0.05; done
curl -fsS -H "Authorization: Bearer $operator" http://127.0.0.1:8080/api/v1/sessions --json \
    '{"title":"film","to":"udp://239.1.1.1:5000","rate":3000000,"loop":true}' >session || exit 1
wait $receiver && cat found
"#;

#[test]
fn a_receiver_takes_a_title_from_a_multicast_group() {
    testkit::needs!(Program("ffprobe"), Program("curl"), Program("ip"), Program("unshare"));
    let dir = TestDir::with_store_of(64);
    let how = "-f lavfi -i testsrc2=s=320x180:r=25:d=3 -f lavfi -i sine=440:d=3:r=48000 \
        -c:v libx264 -preset ultrafast -bf 2 -g 25 -pix_fmt yuv420p -c:a aac";
    let source = dir.encode("film.mp4", &how.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "sh", "-c", SCRIPT])
        .current_dir(dir.at("."))
        .env("TENUTO", env!("CARGO_BIN_EXE_tenuto"))
        .env("ADMISSION", ADMITS_ALL)
        .env("XDG_RUNTIME_DIR", dir.at("."))
        .output()
        .expect("unshare runs (apt-get install util-linux)");
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).expect("text"));
    if output.status.code() == Some(77) || err.starts_with("unshare: ") {
        testkit::skip(Need::Multicast, err.lines().next().unwrap_or("no namespace for a network"));
        return;
    }
    assert!(output.status.success(), "{err}{out}");
    let packets = |codec: &str| -> u32 {
        let found = out.lines().find_map(|line| line.strip_prefix(codec)?.strip_prefix(','));
        found.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no {codec}: {out}"))
    };
    // Two seconds: 50 pictures, and 94 packets of sound.
    assert!((48..=52).contains(&packets("h264")), "{out}");
    assert!((90..=98).contains(&packets("aac")), "{out}");
    assert_eq!(err, "", "the receiver finds no fault");
}
