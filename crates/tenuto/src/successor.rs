//! The program that takes the place of a running server: found by the name by which this one was
//! started, checked in a process of its own, and then executed in this process.

use crate::failure::Failure;
use serde_json::Value;
use server::{HANDOVER_VERSION, Handover};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use units::Reason;

/// The program, and the command line of this process.
#[derive(Clone, Debug)]
pub(crate) struct Successor {
    path: PathBuf,
    words: Vec<OsString>,
}

impl Successor {
    /// The program of this process as it may be replaced: the path that was run, also where it is a
    /// link that leads elsewhere later.
    pub(crate) fn of_this_process() -> Result<Self, Failure> {
        let mut words = std::env::args_os();
        let name = words.next().unwrap_or_default();
        let failed =
            |error: io::Error| Failure::new(format!("cannot tell which program this is: {error}"));
        let path = match named(&name, std::env::var_os("PATH").as_deref()) {
            Some(path) => std::path::absolute(path),
            None => std::env::current_exe(),
        };
        Ok(Self { path: path.map_err(failed)?, words: words.collect() })
    }

    /// Lets the program check its configuration, and that it can go on with this one's sessions.
    pub(crate) fn check(&self) -> Result<(), Reason> {
        let program = self.path.display();
        let failed = |error: io::Error| Reason::from(format!("cannot run {program}: {error}"));
        let mut words = self.words.clone();
        // Behind the command's name, before all stores.
        words.insert(words.len().min(1), "--check-config".into());
        if !words.iter().any(|word| word == JSON) {
            words.insert(1, JSON.into());
        }
        let mut command = Command::new(&self.path);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let Some(success) = ended(&mut child).map_err(failed)? else {
            let seconds = CHECK_WITHIN.as_secs();
            return Err(format!("{program} has not checked itself within {seconds} s").into());
        };
        let text = |stream: Option<&mut dyn Read>| {
            let mut text = String::new();
            let read = stream.map_or(Ok(0), |stream| stream.read_to_string(&mut text));
            read.map(|_| text)
        };
        let out = text(child.stdout.as_mut().map(|out| out as _)).map_err(failed)?;
        let said = text(child.stderr.as_mut().map(|err| err as _)).map_err(failed)?;
        if !success {
            return Err(refusal(&said));
        }
        let version = serde_json::from_str::<Value>(&out).ok();
        let version = version.and_then(|checked| checked["handover"].as_u64());
        if version != Some(HANDOVER_VERSION.into()) {
            let why = format!("{program} is of a version that cannot go on with these sessions");
            return Err(Reason::new(why, "stop the server, and start it again"));
        }
        Ok(())
    }

    /// Executes the program in this process. Returns only where that fails.
    pub(crate) fn execute(&self, handover: &Handover) -> io::Error {
        let mut command = Command::new(&self.path);
        command.args(&self.words);
        let why = match handover.pass_to(&mut command) {
            Ok(_passed) => command.exec(),
            Err(error) => error,
        };
        handover.not_passed();
        why
    }
}

/// The file that a name on the command line is of: a path, or looked for as a shell does.
fn named(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if Path::new(name).components().count() > 1 {
        return Some(name.into());
    }
    let directories = std::env::split_paths(path?);
    directories.map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Waits for the end of a check; whether it succeeded, or `None` where it takes too long.
fn ended(child: &mut Child) -> io::Result<Option<bool>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if start.elapsed() >= CHECK_WITHIN {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// What a program said of its configuration: an error, and perhaps a hint.
fn refusal(said: &str) -> Reason {
    let line = |name: &str| said.lines().find_map(|line| line.strip_prefix(name));
    let message = line("error: ").unwrap_or("the program that is to come gives no reason");
    Reason { message: message.to_owned(), hint: line("hint: ").map(str::to_owned) }
}

const JSON: &str = "--json";
/// Time for a check. It reads some files, and the labels of stores.
const CHECK_WITHIN: Duration = Duration::from_secs(30);
/// Time between two looks at whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_by_the_name_that_was_run() {
        let path = Some(OsStr::new("/nowhere:/bin"));
        for (name, found) in [
            ("sh", Some("/bin/sh")),
            ("/opt/tenuto", Some("/opt/tenuto")),
            ("./tenuto", Some("./tenuto")),
            ("no-such-program", None),
            ("", None),
        ] {
            assert_eq!(named(name.as_ref(), path), found.map(PathBuf::from), "{name}");
        }
        assert_eq!(named("sh".as_ref(), None), None);
    }

    #[test]
    fn a_refusal_has_the_programs_words() {
        for (said, message, hint) in [
            ("note: x\nerror: a.toml: line 1\nhint: mend it\n", "a.toml: line 1", Some("mend it")),
            ("", "the program that is to come gives no reason", None),
        ] {
            let refusal = refusal(said);
            assert_eq!((&*refusal.message, refusal.hint.as_deref()), (message, hint));
        }
    }
}
