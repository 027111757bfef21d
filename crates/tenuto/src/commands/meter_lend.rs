//! Agents that are lent to hosts by ssh: copied there, started, and gone when they end.

use crate::cli::Args;
use crate::failure::Failure;
use meter::fleet::{self, Connection, Token};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// The words of `--ssh`, and behind them options of ours, of which ssh takes those that the user did
/// not set in those words.
pub(super) fn ssh(args: &Args<'_>) -> Result<Vec<String>, Failure> {
    let mut words: Vec<String> = args.text("ssh").split_whitespace().map(str::to_owned).collect();
    let Some((program, its_own)) = words.split_first() else {
        return Err(Failure::usage("--ssh names no program").hint("leave it out for `ssh`"));
    };
    // It says so on standard error; what cannot be started is complained of when it is needed.
    let version = Command::new(program).args(its_own).arg("-V").stdin(Stdio::null()).output();
    let version = version.map(|said| String::from_utf8_lossy(&said.stderr).into_owned());
    if version.is_ok_and(|version| prefers(&version)) {
        words.extend(QUICK.map(str::to_owned));
    }
    words.extend(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"].map(str::to_owned));
    Ok(words)
}

/// Forty logins at once are mostly key exchange. The one against quantum computers of the future takes
/// three times as long, and nothing here is a secret for longer than a run. `^`: where the host has
/// them; else as it would be without.
const QUICK: [&str; 4] =
    ["-o", "KexAlgorithms=^curve25519-sha256", "-o", "Ciphers=^aes128-gcm@openssh.com"];

/// Whether that ssh knows what `^` means: OpenSSH does from 8.0 on.
fn prefers(version: &str) -> bool {
    let major = version.trim_start().strip_prefix("OpenSSH_").and_then(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse::<u32>().ok())
    });
    major.is_some_and(|major| major >= 8)
}

/// This program's own file, also when it was replaced meanwhile.
const THIS: &str = "/proc/self/exe";

/// What is to be copied.
pub(super) fn program(named: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let path = named.unwrap_or(Path::new(THIS));
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    if !bytes.starts_with(b"\x7fELF") {
        return Err(Failure::usage(format!("{} is no program", path.display()))
            .hint("`make agent` builds target/agent/tenuto"));
    }
    Ok(bytes)
}

/// Copies this program to a host, starts it there, and speaks with it through ssh. The directory it
/// lies in is removed when it ends, however it does.
pub(super) fn lend(
    ssh: &[String],
    host: &str,
    target: &str,
    program: &[u8],
    began: Instant,
) -> Result<(Connection, Child), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("host {host}: {error}"))
            .hint(format!("`{} {host} true` must work", ssh.join(" ")))
    };
    if host.starts_with('-') {
        return Err(Failure::usage(format!("'{host}' is no host")));
    }
    let quoted = format!("'{}'", target.replace('\'', r"'\''"));
    let script = format!(
        "umask 077; d=$(mktemp -d \"${{TMPDIR:-/tmp}}/tenuto-agent.XXXXXXXX\") || exit 1; \
         trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT TERM; \
         head -c {} > \"$d/tenuto\" && chmod 700 \"$d/tenuto\" && \
         \"$d/tenuto\" meter agent --stdio {quoted}",
        program.len()
    );
    let mut child = Command::new(&ssh[0])
        .args(&ssh[1..])
        .args(["--", host, &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (token, text) = Token::fresh().map_err(failed)?;
    let mut to = child.stdin.take().expect("piped");
    let from = Box::new(child.stdout.take().expect("piped"));
    to.write_all(program)
        .and_then(|()| to.write_all(format!("{text}\n").as_bytes()))
        .map_err(failed)?;
    let connection = fleet::connect(host, from, Box::new(to), &token, began)?;
    Ok((connection, child))
}

#[cfg(test)]
mod tests {
    use super::prefers;

    #[test]
    fn an_ssh_that_does_not_know_preferences_is_given_none() {
        let of =
            ["OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19", "OpenSSH_10.0p2", "OpenSSH_8.0"];
        assert!(of.into_iter().all(prefers));
        let of = ["OpenSSH_7.4p1, OpenSSL 1.0.2k-fips", "Dropbear v2022.83", "", "usage: our-ssh"];
        assert!(!of.into_iter().any(prefers));
    }
}
