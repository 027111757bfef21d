//! Deployment of the agent to hosts by ssh: the program is copied there, started, and removed when
//! it ends.

use crate::error::MeterError;
use crate::fleet::{self, AgentConnection, Token};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use units::show::shell_word;

/// An agent program and the ssh command that copies and starts it.
pub(super) struct RemoteDeploy<'a> {
    ssh: Vec<String>,
    program: Vec<u8>,
    /// The directories that the agent may use on each host.
    targets: Vec<&'a str>,
    /// The time for the login, the copy of the program and the handshake together.
    limit: Duration,
}

impl<'a> RemoteDeploy<'a> {
    /// Reads the program; without a path it is this program itself.
    pub(super) fn new(
        ssh: &str,
        program: Option<&Path>,
        targets: Vec<&'a str>,
    ) -> Result<Self, MeterError> {
        let path = program.unwrap_or(Path::new(THIS));
        let ssh = ssh_words(ssh)?;
        let program = std::fs::read(path).map_err(MeterError::cannot("read", path))?;
        // Refused before the logins: a host would report a wrong file in a far less clear way.
        if !program.starts_with(b"\x7fELF") {
            return Err(MeterError::usage(format!("{} is no program", path.display()))
                .hint("`make agent` builds target/agent/tenuto-agent"));
        }
        let limit = LOGIN + Duration::from_secs(program.len() as u64 / SLOWEST_COPY);
        Ok(Self { ssh, program, targets, limit })
    }

    /// Copies the program to a host, starts it there, and connects to it through ssh. Its directory
    /// on the host is removed when it ends, however it ends.
    pub(super) fn start(
        &self,
        host: &str,
        began: Instant,
    ) -> Result<(AgentConnection, Child), MeterError> {
        let Self { ssh, program, targets, limit } = self;
        let failed = |error: std::io::Error| {
            MeterError::new(format!("host {host}: {error}"))
                .hint(format!("`{} {host} true` must work", ssh.join(" ")))
        };
        // ssh would take it for an option.
        if host.starts_with('-') {
            return Err(MeterError::usage(format!("'{host}' is no host")));
        }
        // The targets go through the shell of the host.
        let quoted = targets.iter().map(|target| shell_word(target)).collect::<Vec<_>>().join(" ");
        let script = format!(
            "umask 077; d=$(mktemp -d \"${{TMPDIR:-/tmp}}/tenuto-agent.XXXXXXXX\") || exit 1; \
             trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT TERM; \
             p=$d/agent; head -c {} > \"$p\" && chmod 700 \"$p\" || exit 1; \
             case $(\"$p\" --version </dev/null) in \
             'tenuto-agent '*) \"$p\" --stdio {quoted};; \
             'tenuto '*) \"$p\" meter agent --stdio {quoted};; \
             *) echo '{UNFIT}' >&2; exit 1;; esac",
            program.len()
        );
        let mut child = Command::new(&ssh[0])
            .args(&ssh[1..])
            // Standard error is not piped: what ssh asks or complains of goes to the user.
            .args(["--", host, &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        // A token for each host: one that leaks from a host opens no other agent.
        let (token, text) = Token::fresh().map_err(failed)?;
        let mut to = child.stdin.take().expect("piped");
        let from = Box::new(child.stdout.take().expect("piped"));
        let (connected, answered) = channel::<()>();
        let helper = &mut child;
        let (connection, silent) = std::thread::scope(|scope| {
            let watch = scope.spawn(move || {
                let silent = answered.recv_timeout(*limit) == Err(RecvTimeoutError::Timeout);
                // Ends the reads and writes below; an ssh that has just ended needs no signal.
                let _ = silent.then(|| helper.kill());
                silent
            });
            // The script reads the program first and leaves the rest of the input to it.
            let sent = to
                .write_all(program)
                .and_then(|()| to.write_all(format!("{text}\n").as_bytes()))
                .map_err(failed);
            let made =
                sent.and_then(|()| Ok(fleet::connect(host, from, Box::new(to), &token, began)?));
            drop(connected);
            (made, watch.join().expect("it does not panic"))
        });
        if silent {
            let _ = child.wait();
            let sentence = format!("host {host}: no agent answered within {} s", limit.as_secs());
            return Err(MeterError::new(sentence)
                .hint(format!("`{} {host} true` must work and end at once", ssh.join(" "))));
        }
        let connection = connection?;
        Ok((connection, child))
    }
}

/// The words of the ssh command with our options at the end: ssh takes the first value of an
/// option, so that those of the user win.
fn ssh_words(typed: &str) -> Result<Vec<String>, MeterError> {
    let mut words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
    let Some((program, its_own)) = words.split_first() else {
        return Err(MeterError::usage("--ssh names no program").hint("leave it out for `ssh`"));
    };
    // ssh prints its version on standard error. A program that cannot be started fails later, with
    // a hint.
    let asked = Command::new(program).args(its_own).arg("-V").stdin(Stdio::null()).output();
    if asked.is_ok_and(|said| prefers(&String::from_utf8_lossy(&said.stderr))) {
        words.extend(QUICK.map(str::to_owned));
    }
    words.extend(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"].map(str::to_owned));
    Ok(words)
}

/// Options for a quick login. Forty logins at once are mostly key exchange, and post-quantum key
/// exchange takes three times as long; no secret here outlives a run. With `^` a host without these
/// algorithms uses its own.
const QUICK: [&str; 4] =
    ["-o", "KexAlgorithms=^curve25519-sha256", "-o", "Ciphers=^aes128-gcm@openssh.com"];

/// Whether this ssh understands `^`: OpenSSH does from version 8.0.
fn prefers(version: &str) -> bool {
    let major = version.trim_start().strip_prefix("OpenSSH_").and_then(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse::<u32>().ok())
    });
    major.is_some_and(|major| major >= 8)
}

/// The time for a login by ssh and a handshake.
const LOGIN: Duration = Duration::from_secs(60);

/// The bytes of the program that a slow link copies in a second.
const SLOWEST_COPY: u64 = 128 << 10;

/// The text that a host prints when the copied program does not run there.
const UNFIT: &str = "error: the program that was copied to this host does not run on it\n\
                     hint: build one for its processor with `make agent`, and name it with --program";

/// The file of this program, valid also after it has been replaced.
const THIS: &str = "/proc/self/exe";

#[cfg(test)]
mod tests {
    use super::{RemoteDeploy, prefers};
    use std::time::{Duration, Instant};

    #[test]
    fn a_host_that_says_nothing_is_given_up() {
        for program in [0, 1 << 20] {
            let deploy = RemoteDeploy {
                ssh: ["sh", "-c", "exec sleep 600"].map(str::to_owned).to_vec(),
                // More than a pipe holds: the copy waits, too.
                program: vec![0; program],
                targets: vec!["/nowhere"],
                limit: Duration::from_millis(200),
            };
            let error = deploy.start("there", Instant::now()).err().unwrap();
            assert_eq!(error.message, "host there: no agent answered within 0 s");
        }
    }

    #[test]
    fn an_ssh_without_preferences_gets_none() {
        let of =
            ["OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19", "OpenSSH_10.0p2", "OpenSSH_8.0"];
        assert!(of.into_iter().all(prefers));
        let of = ["OpenSSH_7.4p1, OpenSSL 1.0.2k-fips", "Dropbear v2022.83", "", "usage: our-ssh"];
        assert!(!of.into_iter().any(prefers));
    }
}
