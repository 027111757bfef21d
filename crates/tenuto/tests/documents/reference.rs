//! The examples of docs/reference/cli.md, as they are printed.
//!
//! The page is made from the program, so what the examples assume and which of them do not run is
//! declared here.

use crate::page::{Page, Step, What};

pub(crate) const FILE: &str = "docs/reference/cli.md";

/// Commands before the examples of a section, so that its files and titles exist.
const BEFORE: &[(&str, &str)] = &[
    (
        "tenuto ingest",
        "clip nosferatu.mkv; clip caligari.mov; clip a.mkv; clip film-1080.mp4 480x270
         clip film-360.mp4; clip metropolis.mkv; cp a.mkv master.mxf; clip faust.mkv; clip golem.mkv
         printf '1\\n00:00:00,500 --> 00:00:01,500\\nWords\\n' >faust.srt; cp faust.srt signs.srt; rm film.store
         ffmpeg -v error -i a.mkv -frames:v 3 -s 64x36 -an shot.%06d.dpx
         for store in film other third archive; do tenuto format $store.store --size 256MiB; done",
    ),
    ("tenuto rm", "tenuto ingest other.store a.mkv --title Nosferatu"),
    ("tenuto rename", "tenuto ingest film.store a.mkv --title Nosferatu"),
    (
        "tenuto library",
        "for store in one two spare old; do tenuto format $store.store --size 64MiB; done
         tenuto ingest one.store a.mkv --replica two.store; tenuto ingest old.store faust.mkv",
    ),
    (
        "tenuto check",
        "rm film.store other.store
         for store in film other new; do tenuto format $store.store --size 256MiB; done
         tenuto ingest film.store a.mkv --replica other.store",
    ),
    ("tenuto resize", "rm film.store; tenuto format film.store --size 256MiB"),
    ("tenuto relabel", "tenuto format copy.store --size 64MiB"),
    (
        "tenuto serve",
        "ip address add 192.168.1.5/24 dev lo
         openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=films \\
             -addext subjectAltName=IP:127.0.0.1 -keyout tls.key -out tls.crt
         tenuto token keys.json --new; openssl rand -hex 32 > secret; chmod 600 secret",
    ),
    ("tenuto token", "rm keys.json"),
    (
        "tenuto play",
        "tenuto ingest film.store film-1080.mp4 --title film
         printf '0s film\\n1.5s film\\n' > evening.txt
         background tenuto serve film.store",
    ),
    ("tenuto calibrate", "stop; tenuto ingest film.store a.mkv --title Nosferatu"),
    (
        "tenuto meter capacity",
        "mkdir /mnt/films /mnt/one /mnt/two; background tenuto serve film.store",
    ),
    (
        "tenuto meter run",
        "printf '[[group]]\\nname = \"play-out\"\\nprofile = \"xdcam422\"\\ntarget = \"sim:ssd-sata\"\\n' \\
             > evening.toml",
    ),
    (
        "tenuto meter report",
        "tenuto meter run --profile xdcam422 --target sim:ssd-sata --streams 8 --duration 1min \\
             --out monday
         cp -r monday tuesday",
    ),
    ("tenuto meter rounds", "head -c 100M /dev/urandom > film.bin"),
    ("tenuto meter profile-from", "touch day.strace"),
    ("tenuto meter agent", "openssl rand -hex 32 > secret; chmod 600 secret"),
];

/// Words of examples that do not run, and the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("/dev/", "disk"),
    ("https://films.example", "host"),
    ("s3://films/house", "host, a bucket"),
    ("tenuto record", "host, which sends something"),
    ("tenuto director", "host, an etcd"),
    ("tenuto cluster", "host, an etcd"),
    ("tenuto mount", "root"),
    ("tenuto simulate ageing", "minutes"),
    ("tenuto disk emulate", "root"),
    ("tenuto disk stats", "root, for an emulated disk"),
    ("--emulated", "root"),
    ("--hosts", "host"),
    ("--target /mnt/films --out monday", "minutes"),
    ("meter ebu --target /mnt/films", "hours"),
    ("--duration 5min", "minutes"),
    ("--threshold", "minutes"),
    ("--rate 800Mbps --target", "minutes"),
    ("--existing", "part, a clip of the reader's"),
    ("--max-streams", "minutes"),
    ("meter bottleneck", "minutes"),
    ("--profile ebu3362-edit --target", "minutes"),
    ("--profile dpx10-hd --target", "minutes"),
    ("ramp ebu-multi-edit --target", "minutes"),
    ("study block-size", "minutes"),
    ("study nodes", "minutes"),
    ("study network", "root"),
    ("profile-from day.strace", "part, a trace"),
    ("--from 10min", "part, a title of more than ten minutes"),
    ("--duration 30s", "minutes"),
    ("--time 2min", "minutes"),
    ("simulate admission", "minutes"),
    ("--switching hls.js", "minutes"),
];

/// The page with what its examples assume, and without those that do not run.
pub(crate) fn page() -> Page {
    let mut page = Page::read(FILE);
    let text = std::fs::read_to_string(crate::root().join(FILE)).expect("the reference");
    for step in &mut page.steps {
        let What::Run { command, .. } = &step.what else { continue };
        if let Some((_, reason)) = NOT_RUN.iter().find(|(words, _)| command.contains(words)) {
            step.what = What::NotRun { command: command.clone(), reason: (*reason).to_owned() };
        }
    }
    for (section, commands) in BEFORE {
        let heading = format!("## {section}");
        let index = text.lines().position(|line| line == heading);
        let line = index.unwrap_or_else(|| panic!("{FILE} has no section {section}")) + 1;
        let at = page.steps.partition_point(|step| step.line < line);
        page.steps.insert(at, Step { line, what: What::Before((*commands).to_owned()) });
    }
    for (words, _) in NOT_RUN {
        let is_used = page.steps.iter().any(
            |step| matches!(&step.what, What::NotRun { command, .. } if command.contains(words)),
        );
        assert!(is_used, "no example contains '{words}'");
    }
    page
}
