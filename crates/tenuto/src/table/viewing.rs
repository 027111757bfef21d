//! Serving a store, and watching as a viewer would.

use super::{Command, Row, Value, ca_file, cert_file, insecure, json, key_file, switching};
use scheduler::PolicyKind;

pub(super) const COMMANDS: &[Command] = &[SERVE, PLAY];

const SERVE: Command = Command {
    name: "serve",
    about: "Serve titles to players over HTTP",
    long: "\
Serves every title as HLS (http://ADDRESS/t/TITLE/master.m3u8) and as one MP4 file \
(http://ADDRESS/t/TITLE.mp4), with a page to watch them at http://ADDRESS/console/. A viewer who \
would make others stall is refused with 503, Retry-After and the reason.

Runs until SIGINT or SIGTERM; then lets nobody new in and ends when the last viewer has left, at \
the latest after --grace. A second signal ends it at once. While it runs, the other commands on \
the store reach it through its control socket.",
    inner: &[],
    rows: &[
        Row::many("STORE", Value::Path, "The stores to serve: files or block devices")
            .example("serve film.store archive.store")
            .bad("serve", "STORE is missing"),
        Row::option("listen", Value::Address, "Where viewers connect")
            .default("127.0.0.1:8080")
            .long("0.0.0.0:8080 opens it to the network; port 0 takes any free port.")
            .example("serve film.store --listen 0.0.0.0:8080")
            .bad(
                "serve film.store --listen 8080",
                "--listen: '8080' is not an address such as 127.0.0.1:8080 or [::]:8080",
            ),
        Row::option("admission", Value::Choice(PolicyKind::CHOICES), "Whom to let in")
            .default("time-domain")
            .long("docs/concepts/admission.md explains each.")
            .example("serve film.store --admission none")
            .bad(
                "serve film.store --admission all",
                "--admission: 'all' is not one of time-domain, service-curve, vbrsim, rates, scan, \
                 grouped-sweeps, full-stroke, service-cycle, simple-maximum, \
                 instantaneous-maximum, time-domain-by-chance, chernoff, normal, overflow, \
                 observed, average, none",
            ),
        Row::switch(
            "survive-loss",
            "Let in only whom the loss of any one disk makes late for nothing",
        )
        .long(
            "Of titles in two of the stores: room for them is kept on the disk of the other copy. \
                 Without it, when a disk is lost, those go on there who fit, and the others' \
                 sessions end. Start-up is at least three slots.",
        )
        .example("serve film.store other.store --survive-loss")
        .bad("serve film.store other.store --survive-loss=2", "--survive-loss takes no value"),
        Row::option("memory", Value::Size, "Memory for media in flight")
            .default("512MiB")
            .long("More memory lets the disk work further ahead and take larger reads.")
            .example("serve film.store --memory 4GiB")
            .bad(
                "serve film.store --memory lots",
                "--memory: 'lots' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("network", Value::Rate, "What the network may carry")
            .long("Without it nobody is refused for the network's sake.")
            .example("serve film.store --network 1Gbps")
            .bad(
                "serve film.store --network 1GiB",
                "--network: '1GiB' is not a bit rate such as 800kbps, 8.5Mbps or 10Gbps",
            ),
        Row::option("slot", Value::Time, "The scheduling period")
            .default("500ms")
            .example("serve film.store --slot 1s")
            .bad(
                "serve film.store --slot 500",
                "--slot: '500' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("startup", Value::Time, "From admission until the first media is in memory")
            .default("1s")
            .long("At least two slots. More lets more viewers in at once.")
            .example("serve film.store --startup 2s")
            .bad(
                "serve film.store --startup soon",
                "--startup: 'soon' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("read-size", Value::Size, "Bytes of one disk read")
            .long("Without it chosen from the calibration, the titles' rates and the memory.")
            .example("serve film.store --read-size 4MiB")
            .bad(
                "serve film.store --read-size x",
                "--read-size: 'x' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("segment", Value::Time, "Length of an HLS segment")
            .default("4s")
            .long("As nearly as the key frames allow.")
            .example("serve film.store --segment 2s")
            .bad(
                "serve film.store --segment 4",
                "--segment: '4' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("throttle", Value::Rate, "Slow each store down to this rate")
            .long("To see how a slower disk would do.")
            .example("serve film.store --throttle 200Mbps")
            .bad(
                "serve film.store --throttle slow",
                "--throttle: 'slow' is not a bit rate such as 800kbps, 8.5Mbps or 10Gbps",
            ),
        Row::option("as-disk", Value::Choice(super::disks::MODELS), "Slow each store to this disk")
            .long(
                "Reads are real, but complete when the modelled disk would have completed them, \
                 seeks and rotation included; the store's length is stretched over the whole \
                 disk. `tenuto disk models` describes each.",
            )
            .example("serve film.store --as-disk hdd-20tb")
            .bad(
                "serve film.store --as-disk floppy",
                "--as-disk: 'floppy' is not one of st39183w, atlas-iv, st318406lw, hdd-20tb, \
                 ssd-sata, ssd-nvme",
            ),
        Row::option("access-log", Value::Path, "Write a line per request; `-` is standard error")
            .example("serve film.store --access-log access.log")
            .bad("serve film.store --access-log", "--access-log needs a value"),
        Row::option("max-connections", Value::Count(1, 1_000_000), "Connections at once")
            .default("10000")
            .long("One more is answered 503 and closed.")
            .example("serve film.store --max-connections 500")
            .bad(
                "serve film.store --max-connections 0",
                "--max-connections: '0' is not a whole number from 1 to 1000000",
            ),
        Row::option("grace", Value::Time, "How long viewers may go on after a signal to stop")
            .default("10s")
            .example("serve film.store --grace 1min")
            .bad(
                "serve film.store --grace never",
                "--grace: 'never' is not a time such as 500ms, 2s or 1h",
            ),
        json("serve film.store --json", "serve film.store --json=x"),
    ],
};

const PLAY: Command = Command {
    name: "play",
    about: "Play titles as viewers would, and report what they saw",
    long: "\
Fetches HLS, DASH or MP4 as a player does, keeps a play-out clock and a buffer for each viewer, throws \
the media away (or saves the first viewer's), and reports start-up times, stalls, drift and \
refusals. Works against any HTTP server, with TLS or without.

Ends with exit code 3 when nobody was admitted. docs/reference/play.md explains every figure.",
    inner: &[],
    rows: &[
        Row::many("URL", Value::Url, "Playlists, manifests, MP4 files, or a server with all its titles")
            .example("play http://127.0.0.1:8080/t/film/master.m3u8")
            .bad("play", "URL is missing"),
        Row::option("viewers", Value::Count(1, 100_000), "How many viewers come")
            .default("1")
            .example("play http://127.0.0.1:8080 --viewers 50")
            .bad(
                "play http://127.0.0.1:8080 --viewers many",
                "--viewers: 'many' is not a whole number from 1 to 100000",
            ),
        Row::option("arrivals", Value::Arrivals, "When they come")
            .default("all")
            .long(
                "`all`: at once; `every:200ms`: one after the other; `poisson:500ms`: \
                 independently, with this mean time between two.",
            )
            .example("play http://127.0.0.1:8080 --viewers 50 --arrivals poisson:500ms")
            .bad(
                "play http://127.0.0.1:8080 --arrivals poisson",
                "--arrivals: 'poisson' is not a way to arrive: 'all', 'every:200ms' or \
                 'poisson:500ms'",
            ),
        Row::option("choice", Value::Choice(CHOICES), "Which viewer takes which title")
            .default("in-turn")
            .example("play http://127.0.0.1:8080 --viewers 50 --choice random")
            .bad(
                "play http://127.0.0.1:8080 --choice best",
                "--choice: 'best' is not one of in-turn, random",
            ),
        Row::option("form", Value::Choice(FORMS), "How a server's titles are played")
            .default("hls")
            .example("play http://127.0.0.1:8080 --form mp4")
            .bad("play http://127.0.0.1:8080 --form dvd", "--form: 'dvd' is not one of hls, mp4"),
        Row::option("seed", Value::Count(0, u64::MAX), "Decides arrivals and choices")
            .default("1")
            .long("The same seed gives the same viewers.")
            .example("play http://127.0.0.1:8080 --viewers 50 --seed 7")
            .bad(
                "play http://127.0.0.1:8080 --seed x",
                "--seed: 'x' is not a whole number from 0 to 18446744073709551615",
            ),
        Row::option("duration", Value::Time, "Everybody leaves after this time")
            .long("Without it the run ends when the last title has been played to its end.")
            .example("play http://127.0.0.1:8080 --duration 30s")
            .bad(
                "play http://127.0.0.1:8080 --duration 30",
                "--duration: '30' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("start", Value::Time, "Media a player wants before it begins to play")
            .default("2s")
            .example("play http://127.0.0.1:8080 --start 4s")
            .bad(
                "play http://127.0.0.1:8080 --start now",
                "--start: 'now' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("buffer", Value::Time, "Media a player keeps ahead")
            .default("30s")
            .example("play http://127.0.0.1:8080 --buffer 10s")
            .bad(
                "play http://127.0.0.1:8080 --buffer big",
                "--buffer: 'big' is not a time such as 500ms, 2s or 1h",
            ),
        switching(
            "play http://127.0.0.1:8080 --viewers 50 --switching hls.js",
            "play http://127.0.0.1:8080 --switching bola",
        ),
        Row::option("from", Value::Time, "Play from here in the title")
            .long("From the key frame at or before it. A Tenuto server sends only what is played.")
            .example("play http://127.0.0.1:8080 --from 10min --to 12min")
            .bad(
                "play http://127.0.0.1:8080 --from 90",
                "--from: '90' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("to", Value::Time, "Play to here in the title")
            .long("To the key frame at or after it.")
            .example("play http://127.0.0.1:8080 --to 30s")
            .bad(
                "play http://127.0.0.1:8080 --to end",
                "--to: 'end' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("speed", Value::Speed, "Play at this speed; negative: backwards")
            .long("A Tenuto server books the disk for it: twice the speed takes twice the rate.")
            .example("play http://127.0.0.1:8080 --speed -1 --skip 3")
            .bad(
                "play http://127.0.0.1:8080 --speed 0",
                "--speed: '0' is not a speed such as 2, 0.5 or -1 (backwards), at most 64",
            ),
        Row::option("skip", Value::Count(0, 1_000_000), "Leave out so many groups after each")
            .long("Of pictures: what begins with a key frame. Sound is left out, too.")
            .example("play http://127.0.0.1:8080 --skip 4")
            .bad(
                "play http://127.0.0.1:8080 --skip some",
                "--skip: 'some' is not a whole number from 0 to 1000000",
            ),
        Row::option("wait", Value::Time, "Rather wait so long than be refused")
            .long("A Tenuto server answers when the viewer's place has come, within 30 s.")
            .example("play http://127.0.0.1:8080 --viewers 50 --wait 20s")
            .bad(
                "play http://127.0.0.1:8080 --wait long",
                "--wait: 'long' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("behaviour", Value::Path, "A file that says what each viewer does")
            .long(
                "One act per line: `10s pause`, `15s resume`, `20s seek 2min`, `40s stop`. \
                 Times count from the viewer's arrival.",
            )
            .example("play http://127.0.0.1:8080 --behaviour zapping.txt")
            .bad("play http://127.0.0.1:8080 --behaviour", "--behaviour needs a value"),
        Row::option("save", Value::Path, "Keep what the first viewer gets")
            .long("For HLS one file per track: film.mp4 becomes film.video.mp4 and film.audio.mp4.")
            .example("play http://127.0.0.1:8080/t/film.mp4 --save film.mp4")
            .bad("play http://127.0.0.1:8080/t/film.mp4 --save", "--save needs a value"),
        Row::switch("destroy", "Overwrite what --save names")
            .example("play http://127.0.0.1:8080/t/film.mp4 --save film.mp4 --destroy")
            .bad("play http://127.0.0.1:8080 --destroy=1", "--destroy takes no value"),
        Row::switch("retry", "Refused viewers come again after Retry-After")
            .example("play http://127.0.0.1:8080 --viewers 50 --retry")
            .bad("play http://127.0.0.1:8080 --retry=3", "--retry takes no value"),
        ca_file(
            "play https://films.example/t/film/master.m3u8 --ca-file ca.pem",
            "play https://films.example --ca-file",
        ),
        insecure(
            "play https://127.0.0.1:8443/t/film/master.m3u8 --insecure",
            "play https://127.0.0.1:8443 --insecure=yes",
        ),
        cert_file(
            "play https://films.example --cert-file me.pem --key-file me.key",
            "play https://films.example --cert-file",
        ),
        key_file(
            "play https://films.example --cert-file me.pem --key-file me.key",
            "play https://films.example --key-file",
        ),
        json("play http://127.0.0.1:8080 --json", "play http://127.0.0.1:8080 --json=x"),
    ],
};

const CHOICES: &[(&str, &str)] = &[
    ("in-turn", "the first viewer the first title, the second the second, and round again"),
    ("random", "each draws one, by the seed"),
];

const FORMS: &[(&str, &str)] =
    &[("hls", "playlists and segments"), ("mp4", "one file, with byte ranges")];
