//! Help, version, wrong command lines, and readers that go away.

use crate::program::{TestDir, program};

const COMMANDS: [&str; 19] = [
    "format",
    "ingest",
    "ls",
    "info",
    "export",
    "rm",
    "rename",
    "relabel",
    "resize",
    "trim",
    "check",
    "serve",
    "token",
    "play",
    "calibrate",
    "plan",
    "disk",
    "completions",
    "man",
];

#[test]
fn help_is_for_strangers() {
    let dir = TestDir::new();
    let front = dir.ok("--help");
    assert!(front.starts_with("Tenuto: media storage that holds its rate\n"), "{front}");
    assert!(front.lines().all(|line| line.len() <= 100), "it reads in a terminal");
    for command in COMMANDS {
        assert!(front.contains(&format!("\n  {command} ")), "{command} is on the front page");
        let page = dir.ok(&format!("{command} --help"));
        assert!(page.contains(&format!("Usage: tenuto {command}")), "{page}");
        let man = dir.ok(&format!("man {command}"));
        assert!(man.contains(&format!("tenuto\\-{command}")), "{man}");
    }
    for version in ["--version", "version"] {
        assert_eq!(dir.ok(version), concat!("tenuto ", env!("CARGO_PKG_VERSION"), "\n"));
    }
    for same in ["", "help"] {
        assert_eq!(dir.ok(same), front, "tenuto {same}");
    }
    for command in ["serve", "disk show", "meter study writes"] {
        assert_eq!(dir.ok(&format!("help {command}")), dir.ok(&format!("{command} --help")));
    }
}

/// The names of pages that a page refers to, such as `tenuto-meter-run`.
fn referred(page: &str) -> Vec<String> {
    let plain = page.replace("\\-", "-").replace("\\fR", "").replace("\\fB", "");
    let before = plain.split("(1)").collect::<Vec<_>>();
    let names = before.iter().take(before.len() - 1);
    names
        .filter_map(|text| text.rsplit(|c: char| !(c.is_alphanumeric() || c == '-')).next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_manual_page_that_another_names_is_written() {
    let dir = TestDir::new();
    dir.ok("man --out pages");
    let pages = dir.path("pages").read_dir().expect("a directory of pages");
    let paths: Vec<_> = pages.map(|page| page.expect("a page").path()).collect();
    let mut found = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a page");
        for name in referred(&text) {
            assert!(
                path.with_file_name(format!("{name}.1")).exists(),
                "{}: {name}",
                path.display()
            );
            found += 1;
        }
    }
    assert!(found > 40, "pages refer to pages: {found}");
    dir.fails("man --out /proc/none", 1, "cannot write /proc/none");
}

#[test]
fn shells_can_complete() {
    let dir = TestDir::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = dir.ok(&format!("completions {shell}"));
        for command in COMMANDS {
            assert!(script.contains(command), "{shell} completes {command}");
        }
    }
}

#[test]
fn a_wrong_command_line_is_told_and_nothing_is_tried() {
    let dir = TestDir::new();
    for (line, error, hint) in [
        (
            "serv a.store",
            "there is no command 'serv'",
            "did you mean `tenuto serve`? `tenuto help` lists all commands",
        ),
        ("frobnicate", "there is no command 'frobnicate'", "`tenuto help` lists all commands"),
        ("format", "TARGET is missing", "`tenuto format --help` shows its arguments"),
        (
            "ingest a.store film.mkv --title -x",
            "unknown option '-x'",
            "a value that begins with '-' is given as `--title=-x`",
        ),
        (
            "ingest a.store --json -x",
            "unknown option '-x'",
            "`tenuto ingest --help` shows its arguments",
        ),
        ("format a.store --sise 1GiB", "unknown option '--sise'", "did you mean `--size`?"),
        (
            "format a.store --size 1Gbit",
            "--size: '1Gbit' is not a size such as 64KiB, 40GiB or 2TB",
            "`tenuto format --help` shows its arguments",
        ),
        (
            "ingest a.store a.mkv b.mkv --title c",
            "--title names one title, but there are several files",
            "ingest them one by one, or with --renditions as one title",
        ),
        (
            "ingest a.store a.mkv --renditions",
            "--renditions needs two or more files",
            "name the files of the other renditions, too",
        ),
    ] {
        let run = dir.run(line);
        let expected = format!("error: {error}\nhint: {hint}\n");
        assert_eq!((run.code, run.err), (Some(2), expected), "tenuto {line}");
        assert_eq!(run.out, "", "tenuto {line}");
    }
    assert_eq!(dir.path(".").read_dir().unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let dir = TestDir::new();
    for line in ["--help", "man --markdown", "disk models", "disk models --json"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = program(&dir.path("."));
        let output = command.args(line.split(' ')).stdout(writer).output().expect("tenuto runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "tenuto {line}");
    }
}
