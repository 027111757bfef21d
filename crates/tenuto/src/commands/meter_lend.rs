//! Agents that are lent to hosts by ssh: copied there, started, and gone when they end.

use crate::cli::Args;
use crate::failure::Failure;
use meter::fleet::{self, Connection, Token};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// The words of `--ssh`.
pub(super) fn ssh(args: &Args<'_>) -> Result<Vec<String>, Failure> {
    let words: Vec<String> = args.text("ssh").split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        return Err(Failure::usage("--ssh names no program").hint("leave it out for `ssh`"));
    }
    Ok(words)
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
            .hint(format!("`{} -o BatchMode=yes {host} true` must work", ssh.join(" ")))
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
        .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", host, &script])
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
