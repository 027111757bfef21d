//! NFS requests as `tshark -r FILE -Y 'rpc.msgtyp == 0 && nfs' -T fields -E header=y` prints them, with
//! these columns (`-e`) in any order:
//!
//! ```text
//!   frame.time_epoch  nfs.fh.hash  nfs.procedure_v3  nfs.offset3  nfs.count3
//!                                  nfs.opcode        nfs.offset4  nfs.count4  nfs.write.data_length
//!   1795287628.04     0x1a2b3c4d   6                 131072       65536            version 3: 6 read, 7 write
//!   1795287628.05     0x1a2b3c4d   53,22,25          196608       65536            version 4: 25, 38
//! ```
//!
//! Of a version 4 compound the reads and writes count, with the file handle before them.

use super::{Files, Operation, Trace, TraceError, seconds, wanted};

pub(super) fn is(text: &str) -> bool {
    text.lines().next().is_some_and(|head| head.split('\t').any(|name| name == "frame.time_epoch"))
}

pub(super) fn read(text: &str, only: Option<&str>) -> Result<Trace, TraceError> {
    let mut files = Files::default();
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
        let at = all("frame.time_epoch");
        let at = at.first().and_then(|at| seconds(at)).ok_or(wrong("times are in seconds"))?;
        let number = |text: Option<&&str>, why| -> Result<u64, TraceError> {
            text.and_then(|text| text.parse().ok()).ok_or(wrong(why))
        };
        let handle = all("nfs.fh.hash").last().copied().unwrap_or_default();
        if !wanted(handle, only) {
            continue;
        }
        let file = files.number(handle);
        let at = Some(at);
        let mut add = |offset, bytes, write| {
            if bytes > 0 {
                operations.push(Operation { at, file, offset, bytes, write });
            }
        };
        for procedure in all("nfs.procedure_v3").iter().filter(|p| ["6", "7"].contains(*p)) {
            let offset = number(all("nfs.offset3").first(), "nfs.offset3 says where")?;
            let bytes = number(all("nfs.count3").first(), "nfs.count3 says how much")?;
            add(offset, bytes, *procedure == "7");
        }
        let (offsets, counts) = (all("nfs.offset4"), all("nfs.count4"));
        let lengths = all("nfs.write.data_length");
        let (mut reads, mut writes) = (0, 0);
        for opcode in all("nfs.opcode").iter().filter(|opcode| ["25", "38"].contains(*opcode)) {
            let write = *opcode == "38";
            let offset = number(offsets.get(reads + writes), "nfs.offset4 says where")?;
            let bytes = if write {
                number(lengths.get(writes), "nfs.write.data_length says how much")?
            } else {
                number(counts.get(reads), "nfs.count4 says how much")?
            };
            *(if write { &mut writes } else { &mut reads }) += 1;
            add(offset, bytes, write);
        }
    }
    Ok(Trace { format: "tshark", operations, rates: None })
}
