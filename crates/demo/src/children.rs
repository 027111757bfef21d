//! Programs that the demo runs: to their end, or in the background until they are stopped. None
//! outlives the demo, however it ends.

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::show::shell_word;

/// An error as a sentence for the user.
pub(crate) type Problem = String;

/// A program with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, &'static str)>,
}

impl Call {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// The program as another one runs it: that one, with these arguments, becomes it.
    pub(crate) fn within<A: AsRef<OsStr>>(
        mut self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let own = std::mem::replace(&mut self.program, program.as_ref().to_owned());
        let first = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        self.arguments = first.chain([own]).chain(self.arguments).collect();
        self
    }

    /// Sets a variable of the program's environment.
    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// The command line as a user would type it in the repository's root: the program without its
    /// directory; a long list of files is shortened to its first and last entries.
    pub(crate) fn typed(&self) -> String {
        let name = Path::new(&self.program).file_name().unwrap_or(&self.program);
        let all = std::iter::once(name).chain(self.arguments.iter().map(OsString::as_os_str));
        let mut words: Vec<String> =
            all.map(|word| shell_word(&word.to_string_lossy()).into_owned()).collect();
        if words.len() > WORDS_SHOWN {
            words.splice(4..words.len() - 1, ["...".to_owned()]);
        }
        words.join(" ")
    }

    /// Runs the program to its end and returns its standard output; standard error goes to `log`.
    pub(crate) fn output(&self, log: &Path, stop: &AtomicBool) -> Result<String, Problem> {
        let (text, code) = self.run(log, stop)?;
        if code == Some(0) { Ok(text) } else { Err(self.failure(code, log)) }
    }

    /// Runs the program to its end and returns its standard output and exit code, also on failure.
    pub(crate) fn run(
        &self,
        log: &Path,
        stop: &AtomicBool,
    ) -> Result<(String, Option<i32>), Problem> {
        let mut running = self.start(log)?;
        // Read in the background, because a program that fills the pipe waits for its reader.
        let text = running.read_all();
        let code = running.wait(stop)?;
        Ok((text.join().map_err(|_| "a reader thread panicked".to_owned())?, code))
    }

    /// Starts the program in the background; standard error goes to `log`.
    pub(crate) fn start(&self, log: &Path) -> Result<Running, Problem> {
        let log = File::create(log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let child = self
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(log))
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        Ok(Running { child, kept: false })
    }

    pub(crate) fn failure(&self, code: Option<i32>, log: &Path) -> Problem {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        // Programs print the reason of a failure last.
        let last = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n  ");
        let end = code.map_or("was stopped by a signal".to_owned(), |c| format!("ended with {c}"));
        format!("'{}' {end}; the end of its standard error:\n  {last}", self.typed())
    }

    /// The program in a process group of its own: Ctrl-C reaches the demo only, which then stops
    /// its programs in order.
    fn command(&self) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().copied()).process_group(0);
        command
    }
}

/// A program in the background. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    kept: bool,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The program's standard output; it can be taken once.
    pub(crate) fn stdout(&mut self) -> std::process::ChildStdout {
        self.child.stdout.take().expect("taken once")
    }

    /// Reads its standard output to the end in the background.
    fn read_all(&mut self) -> std::thread::JoinHandle<String> {
        let mut stdout = self.stdout();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // An error ends the output; the exit code tells whether the program failed.
            let _ = stdout.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    }

    /// Whether it still runs; otherwise its exit code (`None`: ended by a signal).
    pub(crate) fn ended(&mut self) -> Result<Option<Option<i32>>, Problem> {
        let ended = self.child.try_wait().map_err(|e| format!("cannot wait for a program: {e}"))?;
        Ok(ended.map(|status| status.code()))
    }

    /// Waits for its end, or for Ctrl-C.
    pub(crate) fn wait(&mut self, stop: &AtomicBool) -> Result<Option<i32>, Problem> {
        loop {
            if let Some(code) = self.ended()? {
                return Ok(code);
            }
            check(stop)?;
            std::thread::sleep(LOOK);
        }
    }

    /// Sends SIGTERM and waits for the end; kills the program after [`PATIENCE`].
    fn stop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // Set before the signal, so that the whole stop has this limit.
        let deadline = Instant::now() + PATIENCE;
        if let Some(pid) = pid.filter(|_| matches!(self.ended(), Ok(None))) {
            // An error means that it has ended in the meantime.
            let _ = kill_process(pid, Signal::TERM);
        }
        while matches!(self.ended(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        if matches!(self.ended(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Ends the program with SIGKILL.
    pub(crate) fn kill(mut self) {
        // An error means that it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Leaves the program running after the end of the demo.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.kept {
            self.stop();
        }
    }
}

/// A flag that SIGINT and SIGTERM set, so that the demo can stop its programs first.
pub(crate) fn interrupts() -> Result<Arc<AtomicBool>, Problem> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("cannot handle signals: {error}"))?;
    }
    Ok(stop)
}

/// Writes a file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Problem> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Fails after a signal to stop.
pub(crate) fn check(stop: &AtomicBool) -> Result<(), Problem> {
    if stop.load(Ordering::Relaxed) { Err("interrupted".to_owned()) } else { Ok(()) }
}

/// Time between two tests whether a program has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Time for a program to end after SIGTERM: a server ends its sessions first.
const PATIENCE: Duration = Duration::from_secs(8);

/// Longer command lines are lists of files and are shortened when printed.
const WORDS_SHOWN: usize = 16;

/// Lines of a failed program's standard error that are shown.
const LINES_SHOWN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_printed_as_users_type_it() {
        let call = Call::new("/x/target/release/tenuto")
            .args(["ingest", "a b.store", "it's.mkv"])
            .arg("--arrivals=poisson:80ms");
        let typed = r"tenuto ingest 'a b.store' 'it'\''s.mkv' --arrivals=poisson:80ms";
        assert_eq!(call.typed(), typed);
        let many = Call::new("tenuto").args((0..30).map(|i| i.to_string()));
        assert_eq!(many.typed(), "tenuto 0 1 2 ... 29");
    }

    #[test]
    fn a_dropped_program_is_stopped() {
        let log = std::env::temp_dir().join(format!("xtask-demo-{}", std::process::id()));
        let running = Call::new("sleep").arg("600").start(&log).unwrap();
        let pid = Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap();
        assert!(rustix::process::test_kill_process(pid).is_ok());
        drop(running);
        assert!(rustix::process::test_kill_process(pid).is_err());
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_failure_shows_the_end_of_standard_error() {
        let log = std::env::temp_dir().join(format!("xtask-demo-failure-{}", std::process::id()));
        let never = AtomicBool::new(false);
        let call = Call::new("sh").args(["-c", "echo out; echo no such film >&2; exit 3"]);
        let problem = call.output(&log, &never).unwrap_err();
        assert!(problem.contains("ended with 3") && problem.contains("no such film"), "{problem}");
        let call = Call::new("sh").args(["-c", "echo out; echo noise >&2"]);
        assert_eq!(call.output(&log, &never).unwrap(), "out\n");
        std::fs::remove_file(log).unwrap();
    }
}
