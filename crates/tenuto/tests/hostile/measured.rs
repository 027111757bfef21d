//! Storage that goes wrong under the meter: full, read-only, gone, cut short, broken, without
//! direct I/O; and a meter that is interrupted. Each ends in a sentence that says what it was,
//! keeps what was measured until then, and leaves the user's files and no others.

use crate::program::{Run, TestDir};
use std::process::{Child, Command, Stdio};
use testkit::Need;

/// On mounts of its own: a line for the shell, the exit code, words that it says.
const ON_MOUNTS: &[(&str, i32, &str)] = &[
    // Full.
    (
        "mount -t tmpfs -o size=1m none full && $M --target full",
        1,
        "has 1 MiB free and needs 2 MiB more",
    ),
    ("test -z \"$(ls -A full)\"", 0, ""),
    // Read-only.
    ("mount -t tmpfs -o ro none fixed && $M --target fixed", 1, "it is mounted read-only"),
    // Without direct I/O: said, and measured through the page cache.
    (
        "mount -t ramfs none memory && $M --target memory --json; test -z \"$(ls -A memory)\"",
        0,
        "is used through the page cache",
    ),
    // Full is where the report goes: what was measured is told.
    (
        "mount -t tmpfs -o size=8k none little && $M --target memory --out little/run",
        1,
        "\nframes ",
    ),
];

/// By root only: a loop device that has lost what it stands on answers with EIO.
const BROKEN_DISK: &str = "\
    head -c 8M /dev/zero > image && L=$(losetup -f --show image) || exit 77; \
    truncate -s 1M image; \
    $M --target $L --streams 4 --out broken --buffered --drop-caches; C=$?; losetup -d $L; \
    test -s broken/summary.json && exit $C";

const METER: &str = "meter run --profile audio-16ch --duration 1s --size 2MiB";

/// A file system that becomes read-only while frames are written to files of their own.
const TURNS_READ_ONLY: &str = "\
    mount -t tmpfs none films || exit 77; $T meter run job.toml --out run & P=$!; \
    until test -e run/runs/001-w/operations.parquet; do sleep 0.05; done; sleep 0.5; \
    until mount -o remount,ro films 2>/dev/null; do :; done; wait $P";

const WRITES: &str = "duration = \"2s\"\n[[group]]\nname = \"w\"\nprofile = \"audio-16ch\"\n\
    direction = \"write\"\nlayout = \"file-per-frame\"\nsize = \"2MiB\"\ntarget = \"films\"\n";

/// What happens to a file system of 400 MiB while 300 MiB of small files are made in it: a command
/// of the shell, words of the error, and what may be left there.
const WHILE_FILES_ARE_MADE: &[(&str, &str, &str)] = &[
    (
        "until mount -o remount,ro films 2>/dev/null || ! kill -0 $P; do :; done",
        "Read-only file system",
        ".tenuto-meter-*",
    ),
    ("cat /dev/zero >films/big 2>/dev/null", " free and ", "big"),
    ("umount -l films", "No such file or directory", "''"),
];

/// In a mount namespace that goes with the shell; `None` where this machine allows none.
fn shell(dir: &TestDir, script: &str, root: bool) -> Option<Run> {
    let mut command = Command::new("unshare");
    if !root {
        command.args(["--user", "--map-root-user"]);
    }
    let output = command
        .args(["--mount", "sh", "-c", script])
        .current_dir(dir.path("."))
        .env("M", format!("{} {METER}", env!("CARGO_BIN_EXE_tenuto")))
        .env("T", env!("CARGO_BIN_EXE_tenuto"))
        .env("XDG_RUNTIME_DIR", dir.path("."))
        .output()
        .expect("unshare runs (apt-get install util-linux)");
    let run = Run::from(output);
    // 77: the script's own; 1 with these words: no namespace.
    let refused = run.code == Some(77) || run.err.starts_with("unshare: ");
    (!refused).then_some(run)
}

#[test]
fn file_systems_that_cannot_are_named() {
    let dir = TestDir::new();
    for name in ["full", "fixed", "memory", "little"] {
        std::fs::create_dir(dir.path(name)).unwrap();
    }
    let mut script = "mount -t tmpfs none memory && umount memory || exit 77\n".to_owned();
    for (line, ..) in ON_MOUNTS {
        script += &format!("{{ {line}; }} 2>&1; printf '\\0%d\\0' $?\n");
    }
    let Some(run) = shell(&dir, &script, false) else {
        testkit::skip(Need::Mount, "this machine allows no mounts");
        return;
    };
    let fields: Vec<&str> = run.out.split('\0').collect();
    for ((line, code, words), said) in ON_MOUNTS.iter().zip(fields.chunks(2)) {
        assert_eq!(said[1], code.to_string(), "{line}: {}", said[0]);
        assert!(said[0].contains(words), "{line}: {}", said[0]);
    }
}

#[test]
fn a_file_system_that_turns_read_only_under_writes_is_named() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    dir.write("job.toml", WRITES);
    let Some(run) = shell(&dir, TURNS_READ_ONLY, false) else {
        testkit::skip(Need::Mount, "this machine allows no mounts");
        return;
    };
    assert_eq!(run.code, Some(3), "{}", run.err);
    assert!(run.out.contains("Read-only file system (os error 30)"), "{}", run.out);
    let summary: serde_json::Value = serde_json::from_slice(&dir.read("run/summary.json")).unwrap();
    let group = &summary["groups"][0];
    assert!(group["failed"].as_u64() > Some(0) && group["bytes_written"].as_u64() > Some(0));
    assert_eq!(group["frames"], 50, "{group}");
}

#[test]
fn storage_that_goes_wrong_while_files_are_made_is_named() {
    for (spoil, said, left) in WHILE_FILES_ARE_MADE {
        let dir = TestDir::new();
        std::fs::create_dir(dir.path("films")).unwrap();
        // A thousand files exist, and most are still to come.
        let script = format!(
            "mount -t tmpfs -o size=400m none films || exit 77; \
             $T meter run --profile audio-16ch --duration 1s --target films --size 300MiB \
             --streams 2 --layout file-per-frame & P=$!; \
             until test -e films/.tenuto-meter-*/00001000 || ! kill -0 $P; do :; done; \
             {spoil}; wait $P; C=$?; \
             case \"$(ls -A films)\" in {left}) exit $C;; esac"
        );
        let Some(run) = shell(&dir, &script, false) else {
            testkit::skip(Need::Mount, "this machine allows no mounts");
            return;
        };
        assert_eq!(run.code, Some(1), "{spoil}: {}", run.err);
        assert!(run.err.contains(said) && run.err.contains("\nhint: "), "{spoil}: {}", run.err);
    }
}

#[test]
fn a_disk_that_answers_with_errors_is_named_and_what_was_measured_is_kept() {
    let dir = TestDir::new();
    let Some(run) = shell(&dir, BROKEN_DISK, true) else {
        testkit::skip(Need::Loop, "a loop device needs root");
        return;
    };
    // The figures are valid: they tell how often the storage failed.
    assert_eq!(run.code, Some(3), "{}", run.err);
    let failed = run.out.lines().find(|line| line.starts_with("failed "));
    assert!(failed.is_some_and(|line| line.contains("Input/output error")), "{}", run.out);
    assert!(dir.json("meter report broken")["failed"].as_u64().unwrap() > 0);
}

/// A run of a minute that has begun, if nothing ends it.
fn begun(dir: &TestDir, words: &str) -> Child {
    let line = format!("{METER} --duration 60s --out run {words}").replace("--duration 1s ", "");
    // Where the tests run under `nohup`, a hang-up is ignored, and would be in the program.
    let child = Command::new("env")
        .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_tenuto")])
        .current_dir(dir.path("."))
        .env("XDG_RUNTIME_DIR", dir.path("."))
        .args(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tenuto runs");
    // Its log is made when the files are filled and the streams begin.
    while !dir.path("run/operations.parquet").exists() {
        std::thread::yield_now();
    }
    child
}

/// Waits until a program has a file open, with this in its path.
fn wait_until_open(child: &mut Child, part: &str) {
    let open = format!("/proc/{}/fd", child.id());
    let is_open = || {
        let files = std::fs::read_dir(&open).into_iter().flatten().flatten();
        let mut files = files.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        files.any(|file| file.to_string_lossy().contains(part))
    };
    while !is_open() {
        assert!(child.try_wait().unwrap().is_none(), "it has {part} open before it ends");
        std::thread::yield_now();
    }
}

fn interrupted(mut child: Child, signal: &str) -> Run {
    let id = child.id().to_string();
    // Some frames, which come every 40 ms; with a failed one it would have been over by itself.
    std::thread::sleep(std::time::Duration::from_millis(500));
    if child.try_wait().unwrap().is_some() {
        let run = Run::from(child.wait_with_output().unwrap());
        panic!("it ends before it is told to: {}", run.err);
    }
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    Run::from(child.wait_with_output().unwrap())
}

fn kept(dir: &TestDir) -> serde_json::Value {
    let summary: serde_json::Value = serde_json::from_slice(&dir.read("run/summary.json")).unwrap();
    assert_eq!(summary["complete"], false, "{summary}");
    assert_eq!(dir.json("meter report run")["summary_agrees"], true);
    summary
}

#[test]
fn who_is_interrupted_leaves_a_run_that_can_be_read_and_no_files() {
    for (layout, signal) in
        [("one-file", "-INT"), ("file-per-stream", "-TERM"), ("file-per-stream", "-HUP")]
    {
        let dir = TestDir::new();
        std::fs::create_dir(dir.path("films")).unwrap();
        dir.write("films/mine.mkv", "mine");
        let child = begun(&dir, &format!("--target films --layout {layout}"));
        let run = interrupted(child, signal);
        assert_eq!(run.code, Some(5), "{layout}: {}", run.err);
        assert!(run.err.contains("interrupted: this is what there was until then"), "{}", run.err);
        assert!(kept(&dir)["frames"].as_u64().unwrap() > 0, "{layout}");
        let left = std::fs::read_dir(dir.path("films")).unwrap().count();
        assert_eq!((left, dir.read("films/mine.mkv")), (1, b"mine".to_vec()), "{layout}");
    }
}

#[test]
fn the_next_run_names_what_a_killed_one_has_left() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    let child = begun(&dir, "--target films --layout file-per-stream");
    let made = dir.path("films").canonicalize().unwrap();
    let made = made.join(format!(".tenuto-meter-{}", child.id()));
    interrupted(child, "-KILL");
    let (path, remove) = (made.display(), format!("rm -r {}", made.display()));
    let note = format!("note: {path} (2 MiB) was left by a meter that has ended; remove it");
    let lines = [
        format!("{METER} --target films"),
        "meter capacity --profile audio-16ch --target films --size 2MiB --duration 100ms --max-streams 1"
            .to_owned(),
        "meter transfers --profile ebu3362-read --target films --size 64MiB --duration 100ms"
            .to_owned(),
        "meter study buffering --target films --size 64MiB --duration 10ms --repeats 1".to_owned(),
    ];
    for line in &lines {
        let err = dir.run(line).err;
        assert!(err.contains(&note) && err.contains(&remove), "{line}: {err}");
        assert!(!err.contains("could not be removed"), "{line}: {err}");
    }
    assert!(Command::new("sh").args(["-c", &remove]).status().unwrap().success());
    assert!(!dir.run(&lines[0]).err.contains("was left by a meter"), "nothing is left");
    assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0);
}

/// What happens to the storage of a folder.
type Spoil<'a> = &'a dyn Fn(&TestDir);

#[test]
fn files_that_vanish_or_are_cut_short_under_the_streams_are_named() {
    let cut = |dir: &TestDir| {
        let file = std::fs::File::options().write(true).open(dir.path("film.bin")).unwrap();
        file.set_len(4096).unwrap();
    };
    let vanish = |dir: &TestDir| {
        let made = std::fs::read_dir(dir.path("films")).unwrap().next().unwrap().unwrap();
        std::fs::remove_dir_all(made.path()).unwrap();
    };
    let cases: [(&str, Spoil<'_>, &str); 2] = [
        ("--target film.bin --streams 2", &cut, "film.bin"),
        ("--target films --layout file-per-frame", &vanish, "cannot open"),
    ];
    for (words, spoil, said) in cases {
        let dir = TestDir::new();
        std::fs::create_dir(dir.path("films")).unwrap();
        dir.write("film.bin", vec![7; 4 << 20]);
        let mut child = begun(&dir, words);
        // What is spoiled before it is open ends the run at once.
        wait_until_open(&mut child, if words.contains("films") { "films/" } else { "film.bin" });
        spoil(&dir);
        // Until the streams have come to where it is no more.
        let run = interrupted(child, "-INT");
        assert_eq!(run.code, Some(5), "{words}: {}", run.err);
        assert!(run.err.contains(said), "{words}: {}", run.err);
        assert!(kept(&dir)["failed"].as_u64().unwrap() > 0, "{words}");
        assert!(dir.path("film.bin").exists());
        assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0, "{words}");
    }
}

#[test]
fn a_rate_that_cannot_be_is_refused_before_anything_is_written() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    let text = dir.ok("meter profiles v210-uhd --toml");
    for (from, to, words) in [
        ("\"25\"", "\"100000\"", "Gb/s a stream\nhint: take"),
        ("22_118_400", "0", "bytes = 0\nhint: take 1 to"),
        ("22_118_400", "9_000_000_000", "take 1 to"),
        ("22_118_400", "1.5", "line 3: invalid type: floating point `1.5`"),
        ("\"25\"", "\"0\"", "line 4: fps = '0': a whole number or a fraction"),
        ("\"25\"", "\"25/0\"", "line 4: fps = '25/0': a whole number or a fraction"),
        ("\"25\"", "\"2.5\"", "line 4: fps = '2.5': a whole number or a fraction"),
    ] {
        dir.write("own.toml", text.replace(from, to));
        let line = "meter run --target films --size 64MiB --profile own.toml";
        dir.fails(line, 2, words);
        assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0);
    }
    // Fractions are rates.
    dir.write("own.toml", text.replace("\"25\"", "\"24000/1001\""));
    let film = dir.json("meter run --target sim:ssd-nvme --duration 1001s --profile own.toml");
    assert_eq!((&film["frames"], &film["late"]), (&24_000.into(), &0.into()));
}
