//! The logs of fio's `write_iolog`.
//!
//! ```text
//!   fio version 2 iolog                 fio version 3 iolog
//!   FILE add|open|close                 US FILE add|open|close
//!   FILE read|write OFFSET BYTES        US FILE read|write OFFSET BYTES
//!   FILE wait US 0                      (times: microseconds from the start, as fio 3.33 writes)
//! ```
//!
//! Version 2 has no times but waits. The time that operations took is not in it, so that its rate
//! is known only where waits cover all of the time.

use super::{FileNumbers, Operation, Trace, TraceError, wanted};
use std::time::Duration;

const HEADS: [&str; 2] = ["fio version 2 iolog", "fio version 3 iolog"];

pub(super) fn is(text: &str) -> bool {
    HEADS.iter().any(|head| text.starts_with(head))
}

pub(super) fn read(text: &str, only: Option<&str>) -> Result<Trace, TraceError> {
    let timed = text.starts_with(HEADS[1]);
    let mut trace = Trace { format: "fio", ..Trace::default() };
    let mut files = FileNumbers::default();
    let mut clock = Duration::ZERO;
    let mut waits = false;
    for (line, text) in (1..).zip(text.lines()).skip(1) {
        let wrong = |why| TraceError::Line { line, format: "fio's iolog", why };
        let mut fields: Vec<&str> = text.split_whitespace().collect();
        if fields.is_empty() {
            continue;
        }
        // Version 3 begins each line with a time.
        if timed {
            let at = fields.remove(0).parse();
            clock = Duration::from_micros(at.map_err(|_| wrong("it begins with a time in us"))?);
        }
        match fields[..] {
            [_, "add" | "open" | "close" | "sync" | "datasync" | "sync_file_range", ..] => {}
            [name, action @ ("read" | "write" | "trim" | "wait"), offset, bytes] => {
                let number =
                    |text: &str| text.parse::<u64>().map_err(|_| wrong("two numbers end it"));
                let (offset, bytes) = (number(offset)?, number(bytes)?);
                if action == "wait" {
                    clock += Duration::from_micros(offset);
                    waits = true;
                } else if action != "trim" && wanted(name, only) {
                    let write = action == "write";
                    let file = files.number(name);
                    let at = Some(clock);
                    trace.operations.push(Operation { at, file, offset, bytes, write });
                }
            }
            _ => return Err(wrong("it is FILE ACTION, or FILE read|write OFFSET BYTES")),
        }
    }
    // All times would be zero, which is no rate.
    if !timed && !waits {
        trace.operations.iter_mut().for_each(|operation| operation.at = None);
    }
    trace.operations.retain(|operation| operation.bytes > 0);
    Ok(trace)
}
