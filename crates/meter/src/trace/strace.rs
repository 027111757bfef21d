//! `strace -f -ttt -y -e trace=openat,open,creat,dup2,read,write,pread64,pwrite64,readv,writev,`
//! `preadv,pwritev,lseek,close`: reads and writes as a program asked for them.
//!
//! ```text
//!   12724 1795287628.041408 read(3</mnt/films/a.mxf>, "..."..., 65536) = 65536 <0.0002>
//!   pid   time              call(descriptor<name>, ...)                  = result
//! ```
//!
//! Process, time and names may be missing, and times may have other forms (`-t`, `-tt`, `-r`).
//! Calls that another thread interrupted are joined again. A last line that does not end is the end
//! of a truncated trace. Where names are missing, descriptors are
//! followed from `openat` on. Reads of the system's own files (libraries, `/proc`, terminals) are
//! left out.

use super::{FileNumbers, Operation, Trace, TraceError, seconds, wanted};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Directories that contain no media.
const SYSTEM: [&str; 8] = ["/dev/", "/etc/", "/lib", "/proc/", "/run/", "/sys/", "/usr/", "/bin/"];

/// The form of a line whose end is missing.
const UNFINISHED: &str = "a call ends in = and its result (strace -o FILE keeps it whole)";

pub(super) fn is(text: &str) -> bool {
    text.lines().take(200).any(|line| {
        let (_, rest) = front(line);
        rest.contains("<unfinished ...>") || call(rest).is_some()
    })
}

/// The process and the time at the beginning of a line.
#[derive(Clone, Copy, Default)]
struct Front<'a> {
    process: &'a str,
    time: Option<&'a str>,
}

fn front(line: &str) -> (Front<'_>, &str) {
    let mut front = Front::default();
    let mut rest = line.trim_start();
    if let Some((process, after)) = rest.strip_prefix("[pid").and_then(|rest| rest.split_once(']'))
    {
        (front.process, rest) = (process.trim(), after.trim_start());
    }
    while let Some((word, after)) = rest.split_once(' ') {
        let numeric = word.bytes().all(|byte| byte.is_ascii_digit() || b".:".contains(&byte));
        if word.is_empty() || !numeric {
            break;
        }
        if word.contains(['.', ':']) {
            front.time = Some(word);
        } else {
            front.process = word;
        }
        rest = after.trim_start();
    }
    (front, rest)
}

/// The parts of `name(args) = result`.
fn call(text: &str) -> Option<(&str, &str, &str)> {
    let (name, _) = text.split_once('(')?;
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(word) {
        return None;
    }
    let (before, result) = text.rsplit_once(" = ")?;
    let args = before.trim_end().strip_suffix(')')?.get(name.len() + 1..)?;
    Some((name, args, result))
}

/// An open file.
#[derive(Clone)]
struct Open {
    name: String,
    at: u64,
}

#[derive(Default)]
struct StraceParser<'a> {
    only: Option<&'a str>,
    files: FileNumbers,
    /// Indices into `opened`, by process and descriptor.
    table: HashMap<(String, i64), usize>,
    opened: Vec<Open>,
    operations: Vec<Operation>,
    day: Duration,
    last: Duration,
}

pub(super) fn read(text: &str, only: Option<&str>) -> Result<Trace, TraceError> {
    let mut reading = StraceParser { only, ..StraceParser::default() };
    let unended = (!text.ends_with('\n')).then(|| text.lines().count());
    // Signals and the end of a process have lines of their own, and no result.
    let is_other = |rest: &str| rest.ends_with("---") || rest.ends_with("+++");
    let is_cut =
        |line, rest: &str| unended == Some(line) && call(rest).is_none() && !is_other(rest);
    let mut waiting: BTreeMap<String, (Option<Duration>, String)> = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        let (front, rest) = front(text);
        let at = front.time.map(|time| {
            let wrong = TraceError::Line { line, format: "strace", why: "it begins with a time" };
            reading.time(time).ok_or(wrong)
        });
        let at = at.transpose()?;
        if let Some(part) = rest.strip_suffix("<unfinished ...>") {
            // A process has at most one call in progress, so its number is enough to join the
            // parts.
            waiting.insert(front.process.to_owned(), (at, part.trim_end().to_owned()));
            continue;
        }
        let resumed = rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"));
        if let Some((_, rest)) = resumed {
            if let Some((begun, part)) = waiting.remove(front.process) {
                reading.take(line, front.process, begun, &(part + rest))?;
            }
            continue;
        }
        if is_cut(line, rest) {
            return Err(TraceError::Line { line, format: "strace", why: UNFINISHED });
        }
        reading.take(line, front.process, at, rest)?;
    }
    Ok(Trace { format: "strace", operations: reading.operations, rates: None })
}

impl StraceParser<'_> {
    /// The time of a line, from a fixed moment.
    fn time(&mut self, text: &str) -> Option<Duration> {
        let at = if text.contains(':') {
            let mut parts = text.split(':');
            let (hours, minutes) =
                (parts.next()?.parse::<u64>().ok()?, parts.next()?.parse::<u64>().ok()?);
            let rest = seconds(parts.next()?)?;
            let mut at = self.day + Duration::from_secs(hours * 3600 + minutes * 60) + rest;
            // Past midnight: a few seconds backwards are only lines of another thread.
            if at + Duration::from_secs(12 * 3600) < self.last {
                self.day += Duration::from_secs(86_400);
                at += Duration::from_secs(86_400);
            }
            at
        } else {
            let at = seconds(text)?;
            // The time since the line before (-r), unless it is a date.
            if at < Duration::from_secs(1_000_000) { self.last + at } else { at }
        };
        self.last = self.last.max(at);
        Some(at)
    }

    fn take(
        &mut self,
        line: usize,
        process: &str,
        at: Option<Duration>,
        text: &str,
    ) -> Result<(), TraceError> {
        let wrong = |why| TraceError::Line { line, format: "strace", why };
        let ours = ["open", "creat", "read", "write", "pread", "pwrite", "lseek", "close", "dup"];
        if !ours.iter().any(|name| text.starts_with(name)) || !text.contains('(') {
            return Ok(());
        }
        let unfinished = || wrong(UNFINISHED);
        let (name, args, result) = call(text).ok_or_else(unfinished)?;
        let number = result.split(['<', ' ']).next().unwrap_or_default();
        // The process ended during the call.
        if number == "?" {
            return Ok(());
        }
        let result_number: i64 = number.parse().map_err(|_| unfinished())?;
        if result_number < 0 {
            return Ok(());
        }
        match name {
            "open" | "openat" | "openat2" | "creat" => {
                let quoted = args.split('"').nth(1).unwrap_or_default();
                let name = between(result).unwrap_or(quoted).to_owned();
                self.open(process, result_number, Open { name, at: 0 });
            }
            "dup" | "dup2" | "dup3" => {
                if let Some(of) = self.find(process, args) {
                    self.table.insert((process.to_owned(), result_number), of);
                }
            }
            "close" => {
                let (fd, _) = descriptor(args);
                self.table.remove(&(process.to_owned(), fd.unwrap_or(-1)));
            }
            "lseek" => {
                if let Some(of) = self.find(process, args) {
                    self.opened[of].at = result_number.unsigned_abs();
                }
            }
            _ => {
                let bytes = result_number.unsigned_abs();
                if let Some(of) = self.find(process, args).filter(|_| bytes > 0) {
                    let misplaced = || wrong("the last argument is the place");
                    let offset = self.place(of, name, args, bytes).ok_or_else(misplaced)?;
                    let write = name.contains("write");
                    self.moved(of, Operation { at, file: 0, offset, bytes, write });
                }
            }
        }
        Ok(())
    }

    /// Where a read or write of an open file begins; `None` where its last argument is no place. A
    /// call without one moves the file's own position.
    fn place(&mut self, of: usize, name: &str, args: &str, bytes: u64) -> Option<u64> {
        if name.starts_with("pread") || name.starts_with("pwrite") {
            let back = usize::from(name.ends_with('2'));
            return args.rsplit(", ").nth(back)?.parse().ok();
        }
        let offset = self.opened[of].at;
        self.opened[of].at += bytes;
        Some(offset)
    }

    /// Adds an operation of an open file, unless it is a socket, the system's, or not wanted.
    fn moved(&mut self, of: usize, operation: Operation) {
        let name = &self.opened[of].name;
        let socket = !name.starts_with('/') && name.contains(":[");
        let system = SYSTEM.iter().any(|system| name.starts_with(system));
        if !socket && !system && wanted(name, self.only) {
            let file = self.files.number(name);
            self.operations.push(Operation { file, ..operation });
        }
    }

    fn open(&mut self, process: &str, fd: i64, open: Open) -> usize {
        self.opened.push(open);
        let number = self.opened.len() - 1;
        self.table.insert((process.to_owned(), fd), number);
        number
    }

    /// The file of a call's first argument: by process and descriptor, else by the descriptor of
    /// any process (a thread of it), else by the name beside it.
    fn find(&mut self, process: &str, args: &str) -> Option<usize> {
        let (fd, name) = descriptor(args);
        let fd = fd?;
        let own = self.table.get(&(process.to_owned(), fd)).copied();
        let same = |of: &usize| name.is_none_or(|name| self.opened[*of].name == name);
        let any =
            || self.table.iter().filter(|((_, each), _)| *each == fd).map(|(_, of)| *of).max();
        if let Some(of) = own.or_else(any).filter(same) {
            return Some(of);
        }
        let name = name?.to_owned();
        Some(self.open(process, fd, Open { name, at: 0 }))
    }
}

/// The descriptor and the name at the beginning of arguments such as `3</mnt/a.mxf>`.
fn descriptor(args: &str) -> (Option<i64>, Option<&str>) {
    let digits = args.bytes().take_while(u8::is_ascii_digit).count();
    let name = args[digits..].strip_prefix('<').and_then(|rest| {
        let end = rest.find(">,").or_else(|| rest.strip_suffix('>').map(str::len))?;
        rest.get(..end)
    });
    (args[..digits].parse().ok(), name)
}

/// The text between angle brackets directly after a number.
fn between(result: &str) -> Option<&str> {
    let digits = result.bytes().take_while(u8::is_ascii_digit).count();
    result[digits..].strip_prefix('<')?.split('>').next()
}
