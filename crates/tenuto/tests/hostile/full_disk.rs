//! A file system without room: what does not fit is refused or fails with what to do, and nothing
//! half is left behind.

use crate::program::TestDir;
use crate::stage::{connect, fetch_all};
use std::process::Command;

/// On a file system of 8 MiB: a line for the shell, its exit code, words that it says.
const ON_A_SMALL_DISK: &[(&str, i32, &str)] = &[
    (
        "$T format new --size 64MiB",
        1,
        "has 8 MiB free and needs 64 MiB more for 64 MiB\nhint: free some",
    ),
    ("test ! -e new", 0, ""),
    (
        "$T format t --size 4MiB --chunk 64KiB && $T resize t 32MiB",
        1,
        "more for 32 MiB\nhint: free some, or make it smaller",
    ),
    ("test $(stat -c %s t) = 4194304 && $T check t && rm t", 0, "nothing to repair"),
    ("truncate -s 64M s && $T format s", 0, "sparse: writes may find the file system full"),
    ("$T ingest s ../film.mkv", 0, "'film' is in the store"),
    (
        "$T ingest s ../large.bin --as file",
        1,
        "No space left on device (os error 28)\nhint: free some space there",
    ),
    ("$T ls s", 0, "film\n"),
    ("$T check s --scrub", 0, "nothing to repair in 1 title"),
    ("$T export s film out.mp4", 1, "cannot write"),
    (
        "$T export s film out.mp4",
        1,
        "out.mp4: No space left on device (os error 28)\nhint: free some",
    ),
    ("test \"$(ls -A)\" = s", 0, ""),
    ("$T export s film ../out.mp4 && cmp ../whole.mp4 ../out.mp4", 0, ""),
    // A server whose store takes no more writes says so, and plays on.
    (
        "$T serve s --listen 127.0.0.1:0 --json >../served 2>../said & P=$!; \
         until grep -q url ../served; do sleep 0.1; done; \
         U=$(tr -d ' \n' <../served | sed 's/.*\"url\":\"\\([^\"]*\\)\".*/\\1/'); \
         $T ingest s ../large.bin --as file --title more >/dev/null 2>&1; \
         curl -s ${U}status | tr -d ' ' | grep -o '\"write_failure\":\"'; \
         curl -s ${U}metrics | grep '^tenuto_disk_write_failed'; \
         $T play ${U}t/film/master.m3u8 >/dev/null || echo 'plays no more'; \
         kill $P; wait $P; grep -q 'nothing more is written to it' ../said",
        0,
        "\"write_failure\":\"\ntenuto_disk_write_failed{store=\"s\"} 1\n",
    ),
];

#[test]
fn a_full_file_system_loses_nothing() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    dir.ok("export a.store film whole.mp4");
    dir.write("large.bin", vec![1; 20 << 20]);
    std::fs::create_dir(dir.path("small")).unwrap();
    let mut script = "mount -t tmpfs -o size=8m none small && cd small || exit 77\n".to_owned();
    for (line, ..) in ON_A_SMALL_DISK {
        script += &format!("{line} 2>&1; printf '\\0%d\\0' $?\n");
    }
    // A mount that nobody else sees and that goes with the shell.
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .current_dir(dir.path("."))
        .env("T", env!("CARGO_BIN_EXE_tenuto"))
        .env("XDG_RUNTIME_DIR", dir.path("."))
        .output()
        .expect("unshare runs (apt-get install util-linux)");
    let text = String::from_utf8(output.stdout).unwrap();
    let fields: Vec<&str> = text.split('\0').collect();
    if output.status.code() != Some(0) {
        // Some containers allow no mounts; `crates/store/tests/power_cut.rs` fails writes, too.
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(text.is_empty(), "{text}{said}");
        return testkit::skip(testkit::Need::Mount, said.trim());
    }
    for ((line, code, words), said) in ON_A_SMALL_DISK.iter().zip(fields.chunks(2)) {
        assert_eq!(said[1], code.to_string(), "{line}: {}", said[0]);
        assert!(said[0].contains(words), "{line}: {}", said[0]);
        assert!(!said[0].contains("plays no more"), "{line}: {}", said[0]);
    }
}

#[test]
fn a_log_that_cannot_be_written_stops_no_viewer() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let server = dir.serve("--access-log /dev/full");
    let mut client = connect(&server);
    for _ in 0..20 {
        let parts = fetch_all(&mut client, "/t/film/master.m3u8");
        assert!(parts.iter().all(|(_, status, _)| *status == 200));
    }
    assert_eq!(server.stop(), Some(0));
}
