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
    let column = |name: &str| head.iter().position(|title| *title == name);
    for (line, text) in (1..).zip(text.lines()).skip(1) {
        let wrong = |why| TraceError::Line { line, format: "tshark", why };
        let fields: Vec<&str> = text.split('\t').collect();
        if text.is_empty() {
            continue;
        }
        if fields.len() != head.len() {
            return Err(wrong("it has as many fields as the head"));
        }
        let all = |name: &str| -> Vec<&str> {
            let field = column(name).and_then(|column| fields.get(column)).copied();
            field.unwrap_or_default().split(',').filter(|value| !value.is_empty()).collect()
        };
        let times = all("frame.time_epoch");
        let at = times.first().and_then(|at| seconds(at)).ok_or(wrong("times are in seconds"))?;
        let handles = all("nfs.fh.hash");
        let mut add = |handle: Option<usize>, (offset, bytes), write| {
            // Where the owner of the handle is ambiguous, the last one is the most likely.
            let own = handle.and_then(|number| handles.get(number));
            let handle = own.or(handles.last()).copied().unwrap_or_default();
            if bytes > 0 && wanted(handle, only) {
                let file = files.number(handle);
                operations.push(Operation { at: Some(at), file, offset, bytes, write });
            }
        };
        let calls = all("nfs.procedure_v3");
        let each_has_one = calls.len() == handles.len();
        let mut offsets = Values::of("nfs.offset3 says where", all("nfs.offset3"));
        let mut counts = Values::of("nfs.count3 says how much", all("nfs.count3"));
        for (call, procedure) in calls.into_iter().enumerate() {
            match procedure {
                READ3 | WRITE3 => {
                    let moved = (offsets.next().map_err(wrong)?, counts.next().map_err(wrong)?);
                    add(each_has_one.then_some(call), moved, procedure == WRITE3);
                }
                COMMIT3 => {
                    offsets.skip();
                    counts.skip();
                }
                READDIR3 => counts.skip(),
                _ => {}
            }
        }
        let operations_4 = all("nfs.opcode");
        let puts = operations_4.iter().filter(|operation| **operation == PUT_HANDLE).count();
        let put_each = puts == handles.len();
        let mut offsets = Values::of("nfs.offset4 says where", all("nfs.offset4"));
        let mut counts = Values::of("nfs.count4 says how much", all("nfs.count4"));
        let written = all("nfs.write.data_length");
        let mut lengths = Values::of("nfs.write.data_length says how much", written);
        let mut put = 0;
        for operation in operations_4 {
            let handle = (put_each && put > 0).then(|| put - 1);
            match operation {
                PUT_HANDLE => put += 1,
                READ => {
                    let moved = (offsets.next().map_err(wrong)?, counts.next().map_err(wrong)?);
                    add(handle, moved, false);
                }
                WRITE => {
                    let moved = (offsets.next().map_err(wrong)?, lengths.next().map_err(wrong)?);
                    add(handle, moved, true);
                }
                COMMIT => {
                    offsets.skip();
                    counts.skip();
                }
                LOCK | TEST_LOCK | UNLOCK => offsets.skip(),
                _ => {}
            }
        }
    }
    Ok(Trace { format: "tshark", operations, rates: None })
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
