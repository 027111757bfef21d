//! NFS requests as `tshark -r FILE -Y 'rpc.msgtyp == 0 && nfs' -T fields -E header=y` prints them,
//! with these columns (`-e`) in any order:
//!
//! ```text
//!   frame.time_epoch nfs.fh.hash nfs.procedure_v3 nfs.offset3 nfs.count3
//!                                nfs.opcode       nfs.offset4 nfs.count4 nfs.write.data_length
//!   1795287628.04    0x1a2b3c4d  6                131072      65536           version 3: 6 read, 7 write
//!   1795287628.05    0x1a2b3c4d  53,22,25         196608      65536           version 4: 25, 38
//! ```
//!
//! A frame may carry several calls, whose values tshark joins by commas: each call takes its own
//! values, in order (a COMMIT has an offset and a count too; a LOCK has an offset). Of a version 4
//! compound the reads and writes count, with the file handle before them.

use super::{FileNumbers, Operation, Trace, TraceError, seconds, wanted};

pub(super) fn is(text: &str) -> bool {
    text.lines().next().is_some_and(|head| head.split('\t').any(|name| name == "frame.time_epoch"))
}

pub(super) fn read(text: &str, only: Option<&str>) -> Result<Trace, TraceError> {
    let mut files = FileNumbers::default();
    let mut operations = Vec::new();
    let head: Vec<&str> = text.lines().next().unwrap_or_default().split('\t').collect();
    for (line, text) in (1..).zip(text.lines()).skip(1) {
        let wrong = |why| TraceError::Line { line, format: "tshark", why };
        let fields: Vec<&str> = text.split('\t').collect();
        if text.is_empty() {
            continue;
        }
        if fields.len() != head.len() {
            return Err(wrong("it has as many fields as the head"));
        }
        let frame = Frame { head: &head, fields };
        let times = frame.values("frame.time_epoch");
        let at = times.first().and_then(|at| seconds(at)).ok_or(wrong("times are in seconds"))?;
        let handles = frame.values("nfs.fh.hash");
        let calls_3 = frame.calls_3(handles.len()).map_err(wrong)?;
        let calls_4 = frame.calls_4(handles.len()).map_err(wrong)?;
        for Call { handle, offset, bytes, write } in calls_3.into_iter().chain(calls_4) {
            // Where the owner of the handle is ambiguous, the last one is the most likely.
            let own = handle.and_then(|number| handles.get(number));
            let handle = own.or(handles.last()).copied().unwrap_or_default();
            if bytes > 0 && wanted(handle, only) {
                let file = files.number(handle);
                operations.push(Operation { at: Some(at), file, offset, bytes, write });
            }
        }
    }
    Ok(Trace { format: "tshark", operations, rates: None })
}

/// A line: a frame with calls.
struct Frame<'a> {
    head: &'a [&'a str],
    fields: Vec<&'a str>,
}

/// A read or write in a frame.
struct Call {
    /// The number of its file handle among those of the frame; `None` where it is ambiguous.
    handle: Option<usize>,
    offset: u64,
    bytes: u64,
    write: bool,
}

impl<'a> Frame<'a> {
    /// The values in the column of this name.
    fn values(&self, name: &str) -> Vec<&'a str> {
        let column = self.head.iter().position(|title| *title == name);
        let field = column.and_then(|column| self.fields.get(column)).copied();
        field.unwrap_or_default().split(',').filter(|value| !value.is_empty()).collect()
    }

    fn calls_3(&self, handles: usize) -> Result<Vec<Call>, &'static str> {
        let procedures = self.values("nfs.procedure_v3");
        let each_has_one = procedures.len() == handles;
        let mut offsets = Values::of("nfs.offset3 says where", self.values("nfs.offset3"));
        let mut counts = Values::of("nfs.count3 says how much", self.values("nfs.count3"));
        let mut calls = Vec::new();
        for (number, procedure) in procedures.into_iter().enumerate() {
            match procedure {
                READ3 | WRITE3 => calls.push(Call {
                    handle: each_has_one.then_some(number),
                    offset: offsets.next()?,
                    bytes: counts.next()?,
                    write: procedure == WRITE3,
                }),
                COMMIT3 => {
                    offsets.skip();
                    counts.skip();
                }
                READDIR3 => counts.skip(),
                _ => {}
            }
        }
        Ok(calls)
    }

    fn calls_4(&self, handles: usize) -> Result<Vec<Call>, &'static str> {
        let operations = self.values("nfs.opcode");
        let puts = operations.iter().filter(|operation| **operation == PUT_HANDLE).count();
        let put_each = puts == handles;
        let mut offsets = Values::of("nfs.offset4 says where", self.values("nfs.offset4"));
        let mut counts = Values::of("nfs.count4 says how much", self.values("nfs.count4"));
        let written = self.values("nfs.write.data_length");
        let mut lengths = Values::of("nfs.write.data_length says how much", written);
        let (mut calls, mut put) = (Vec::new(), 0);
        for operation in operations {
            match operation {
                PUT_HANDLE => put += 1,
                READ | WRITE => {
                    let write = operation == WRITE;
                    let handle = (put_each && put > 0).then(|| put - 1);
                    let offset = offsets.next()?;
                    let bytes = if write { &mut lengths } else { &mut counts }.next()?;
                    calls.push(Call { handle, offset, bytes, write });
                }
                COMMIT => {
                    offsets.skip();
                    counts.skip();
                }
                LOCK | TEST_LOCK | UNLOCK => offsets.skip(),
                _ => {}
            }
        }
        Ok(calls)
    }
}

/// Procedures of version 3 (RFC 1813) that have an offset or a count.
const READ3: &str = "6";
const WRITE3: &str = "7";
const READDIR3: &str = "16";
const COMMIT3: &str = "21";

/// Operations of version 4 (RFC 8881, section 18) that have a file handle, an offset or a count.
const COMMIT: &str = "5";
const LOCK: &str = "12";
const TEST_LOCK: &str = "13";
const UNLOCK: &str = "14";
const PUT_HANDLE: &str = "22";
const READ: &str = "25";
const WRITE: &str = "38";

/// The values of one field in a frame, taken one after another.
struct Values<'a> {
    why: &'static str,
    left: std::vec::IntoIter<&'a str>,
}

impl<'a> Values<'a> {
    fn of(why: &'static str, all: Vec<&'a str>) -> Self {
        Self { why, left: all.into_iter() }
    }

    /// The next field as a number, or an error.
    fn next(&mut self) -> Result<u64, &'static str> {
        self.left.next().and_then(|text| text.parse().ok()).ok_or(self.why)
    }

    fn skip(&mut self) {
        self.left.next();
    }
}
