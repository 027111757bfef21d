//! `/proc/diskstats`: counters of block devices since they were attached.
//!
//! ```text
//!   8 0 sda reads merged sectors ms  writes merged sectors ms  in_flight busy_ms weighted_ms ...
//! ```

use super::numbers;

/// Counters of one block device (`/proc/diskstats`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::blame) struct DiskCounters {
    /// The device's name in the kernel.
    pub(in crate::blame) name: String,
    /// Completed requests, reads and writes together.
    pub(in crate::blame) requests: u64,
    pub(in crate::blame) bytes_read: u64,
    pub(in crate::blame) bytes_written: u64,
    /// Time in which at least one request was in flight.
    pub(in crate::blame) busy_ms: u64,
    /// Busy time, multiplied by the number of requests in flight.
    pub(in crate::blame) weighted_ms: u64,
    /// The sum of the times that completed requests took.
    pub(in crate::blame) request_ms: u64,
}

pub(in crate::blame) fn diskstats(text: &str) -> Vec<DiskCounters> {
    text.lines().filter_map(disk).collect()
}

fn disk(line: &str) -> Option<DiskCounters> {
    // The first two are the device number, which changes with the order of attachment.
    let mut fields = line.split_whitespace().skip(2);
    let name = fields.next()?.to_owned();
    let [reads, _, read, read_ms, writes, _, written, write_ms, _, busy_ms, weighted_ms] =
        numbers(fields)?;
    Some(DiskCounters {
        name,
        requests: reads + writes,
        bytes_read: read * SECTOR,
        bytes_written: written * SECTOR,
        busy_ms,
        weighted_ms,
        request_ms: read_ms + write_ms,
    })
}

/// Bytes of a sector: the kernel's unit for all devices, whatever their block size.
const SECTOR: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_old_and_new_kernels_are_parsed() {
        let text = "   7       0 loop0 156537 211 100369309 310349935 34452 185498 50087160 \
            1804503 0 3774984 312307484 0 0 0 0 2114 153045\n   8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n\
            8 1 sda1 1 2 3 4\n";
        let all = diskstats(text);
        assert_eq!(all.len(), 2, "partitions of very old kernels have four fields");
        assert_eq!(
            all[0],
            DiskCounters {
                name: "loop0".into(),
                requests: 156_537 + 34_452,
                bytes_read: 100_369_309 * 512,
                bytes_written: 50_087_160 * 512,
                busy_ms: 3_774_984,
                weighted_ms: 312_307_484,
                request_ms: 310_349_935 + 1_804_503,
            }
        );
        assert_eq!((all[1].busy_ms, all[1].weighted_ms), (10, 11));
    }
}
