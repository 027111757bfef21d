//! The text of `blkparse` in its default format.
//!
//! ```text
//!     8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
//!   device cpu sequence   seconds         pid  what rw sector + count
//! ```
//!
//! Requests of programs to the device (`Q`) count; in a trace without them, requests to the disk
//! (`D`), else completions (`C`). Discards and empty flushes are neither reads nor writes.

use super::{FileNumbers, Operation, Trace, TraceError, seconds, wanted};

const SECTOR: u64 = 512;

pub(super) fn is(text: &str) -> bool {
    text.lines()
        .take(50)
        .any(|line| device(line).is_some_and(|_| line.split_whitespace().count() > 6))
}

fn device(line: &str) -> Option<&str> {
    let first = line.split_whitespace().next()?;
    let (major, minor) = first.split_once(',')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(major) && number(minor)).then_some(first)
}

pub(super) fn read(text: &str, only: Option<&str>) -> Result<Trace, TraceError> {
    let mut files = FileNumbers::default();
    let mut found: Vec<(char, Operation)> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let Some(device) = device(text) else { continue };
        let wrong = |why| TraceError::Line { line, format: "blkparse", why };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [_, _, _, at, _, what, rw, ref rest @ ..] = fields[..] else {
            return Err(wrong("seven fields come first"));
        };
        let at = seconds(at).ok_or(wrong("the fourth field is a time in seconds"))?;
        let Some(what) = what.chars().next().filter(|what| "QDC".contains(*what)) else { continue };
        let write = rw.contains('W');
        if rw.contains('D') || !(write || rw.contains('R')) || !wanted(device, only) {
            continue;
        }
        let [sector, "+", count, ..] = rest[..] else { continue };
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong("sectors are numbers"));
        let (offset, bytes) = (number(sector)? * SECTOR, number(count)? * SECTOR);
        if bytes > 0 {
            let file = files.number(device);
            found.push((what, Operation { at: Some(at), file, offset, bytes, write }));
        }
    }
    Ok(Trace { format: "blkparse", operations: once_each(found), rates: None })
}

/// The events of one kind: of those in the trace, the kind closest to the program.
pub(super) fn once_each(found: Vec<(char, Operation)>) -> Vec<Operation> {
    let has = |kind: &char| found.iter().any(|(what, _)| what == kind);
    let kind = ['Q', 'D', 'C'].into_iter().find(|kind| has(kind));
    let of = |(what, operation)| (Some(what) == kind).then_some(operation);
    found.into_iter().filter_map(of).collect()
}
