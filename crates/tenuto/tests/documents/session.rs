//! Runs the steps of a page in one shell, in a directory, a network and a `/mnt` of its own.
//!
//! A network namespace lets every page have port 8080, and keeps it from reaching anything else. In
//! the mount namespace `/mnt` is a directory of the session.

use crate::page::{Page, REASONS, Step, What};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The longest time that a page may take. A page that hangs ends after it with exit code 124.
const LONGEST: &str = "300";

/// Functions of the shell in which a page runs.
const PRELUDE: &str = r#"
set -u
# at PLACE: where the page is
at() { printf '@@ %s %s\n' "$1" "$EPOCHREALTIME" >>"$SESSION/places"; }
# ended CODE EXPECTED: ends the session if a command did not end as the page says
ended() { [ "$1" = "$2" ] || { echo "exit code $1, expected $2"; exit 1; }; }
# clip NAME [SIZE]: a film of three seconds
clip() {
    ffmpeg -nostdin -v error -f lavfi -i "testsrc2=s=${2:-320x180}:r=25:d=3" \
        -f lavfi -i sine=440:d=3 -c:v libx264 -preset ultrafast -g 25 -sc_threshold 0 \
        -c:a aac "$1"
}
server=
# A shell without a terminal starts such commands with SIGINT ignored, so they get SIGTERM; a
# program without a handler for it ends with 143.
stop() {
    [ -n "$server" ] || return 0
    kill -TERM "$server"
    wait "$server"
    code=$?
    [ $code = 143 ] || ended $code 0
    server=
}
# background COMMAND...: leaves the command running, and waits for the first line that it prints
background() {
    stop
    # Notes on standard error come before it is ready; the first line of its report comes after. The
    # report of the command before it would be taken for its own.
    : >"$SESSION/report"
    "$@" >"$SESSION/report" 2>"$SESSION/notes" &
    server=$!
    until grep -q . "$SESSION/report"; do
        kill -0 "$server" 2>/dev/null || { cat "$SESSION/notes"; exit 1; }
        sleep 0.05
    done
}
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null' EXIT
ip link set lo up || exit 1
mkdir -p "$SESSION/mnt"
mount --bind "$SESSION/mnt" /mnt || exit 1
"#;

/// Runs a page. The error is the message of a failed test; `name` is that of the test.
pub(crate) fn run(page: &Page, name: &str) -> Result<(), String> {
    list_what_does_not_run(page);
    let mut shell = namespaces().ok_or("no namespace for network and mounts (unshare)")?;
    let session = Session::new(name);
    std::fs::write(session.path("script"), script(page)).expect("a script");
    let work = session.path("work");
    let path =
        format!("{}:{}", session.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let output = shell
        .args(["timeout", "--kill-after=10", LONGEST, "bash"])
        .arg(session.path("script"))
        .current_dir(&work)
        .env("PATH", path)
        .env("HOME", &work)
        .env("SESSION", &session.dir)
        // For notes that take text out of it.
        .env("PAGE", crate::root().join(&page.file))
        // Addresses of Unix sockets have at most 107 bytes.
        .env("XDG_RUNTIME_DIR", &session.sockets)
        .stdin(Stdio::null())
        .output()
        .expect("a shell runs");
    let places = std::fs::read_to_string(session.path("places")).unwrap_or_default();
    if std::env::var_os("TENUTO_TIMES").is_some() {
        let _ = writeln!(std::io::stderr(), "{}:\n{places}", page.file);
    }
    if output.status.success() {
        return Ok(());
    }
    let place = places.lines().last().and_then(|line| line.split(' ').nth(1)).unwrap_or("0");
    let step = page.steps.iter().find(|step| step.line.to_string() == place);
    Err(format!(
        "{}, line {place}: a command does not work as printed\n{}\n{}{}\nrun this page again: cargo \
         test -p tenuto --test documents {name}",
        page.file,
        step.map_or(String::new(), |step| format!("{:?}", step.what)),
        tail(&output.stdout),
        tail(&output.stderr),
    ))
}

/// A command that gives another command its own network and mounts, where the machine allows it.
pub(crate) fn namespaces() -> Option<Command> {
    [&["--net", "--mount"][..], &["--user", "--map-root-user", "--net", "--mount"]]
        .into_iter()
        .find_map(|options| {
            let mut probe = Command::new("unshare");
            let probe = probe.args(options).args(["mount", "--bind", "/tmp", "/mnt"]);
            let is_allowed =
                probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
            let mut command = Command::new("unshare");
            command.args(options);
            is_allowed.then_some(command)
        })
}

fn script(page: &Page) -> String {
    let mut script = PRELUDE.to_owned();
    for Step { line, what } in &page.steps {
        let _ = writeln!(script, "at {line}");
        let _ = match what {
            What::Run { command, .. } if stays(command) => {
                writeln!(script, "background {}", command.trim_start())
            }
            What::Run { command, code } => writeln!(script, "{command}\nended $? {code}"),
            What::Before(commands) => writeln!(script, "set -e\n{commands}\nset +e"),
            What::Stop => writeln!(script, "stop"),
            What::NotRun { .. } => Ok(()),
        };
    }
    script + "at end\nstop\n"
}

/// Whether a command runs until it is stopped.
fn stays(command: &str) -> bool {
    let begins = |what: &&str| {
        command
            .split_once("tenuto ")
            .is_some_and(|(_, words)| words.trim_start().starts_with(*what))
    };
    ["serve ", "meter agent ", "meter console "].iter().any(begins)
        && !command.contains("--check-config")
}

fn list_what_does_not_run(page: &Page) {
    let mut list = String::new();
    for Step { line, what } in &page.steps {
        if let What::NotRun { command, reason } = what {
            let word = reason.split([' ', ',']).next().unwrap_or_default();
            let meaning =
                REASONS.iter().find(|(known, _)| *known == word).map_or("", |(_, text)| text);
            let first = command.lines().next().unwrap_or_default();
            let _ = writeln!(list, "not run: {}:{line}: {first} ({meaning}: {reason})", page.file);
        }
    }
    // The harness hides what a passing test prints by `eprintln!`; a list that nobody sees would be
    // a silent skip.
    let _ = std::io::stderr().write_all(list.as_bytes());
}

fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// The directory of a session: `work`, in which the commands run; `bin`, with the program; and a
/// directory with a short name for sockets.
struct Session {
    dir: PathBuf,
    sockets: PathBuf,
}

impl Session {
    fn new(name: &str) -> Self {
        let own = format!("documents-{name}-{}", std::process::id());
        // Beside the build outputs: stores of several GiB do not belong into a /tmp in memory.
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&own);
        let sockets = std::env::temp_dir().join(own);
        for path in [dir.join("work"), dir.join("bin"), sockets.clone()] {
            std::fs::create_dir_all(path).expect("a directory for the session");
        }
        let program = env!("CARGO_BIN_EXE_tenuto");
        std::os::unix::fs::symlink(program, dir.join("bin/tenuto")).expect("a link to the program");
        Self { dir, sockets }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
        let _ = std::fs::remove_dir_all(&self.sockets);
    }
}
