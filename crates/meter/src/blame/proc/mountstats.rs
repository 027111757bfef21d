//! `/proc/self/mountstats`: counters of an NFS client for a mount.
//!
//! ```text
//!   device SERVER:/EXPORT mounted on /MOUNT with fstype nfs4 statvers=1.1
//!     xprt: tcp port bind connect idle_s sends recvs bad_xids req_queue backlog_queue ...
//!     READ: ops transmissions timeouts bytes_sent bytes_received queue_ms rtt_ms execute_ms errors
//! ```

use super::numbers;
use units::add_fields;

/// Counters of reads and writes of one NFS mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::blame) struct NfsMount {
    /// Completed requests.
    pub(in crate::blame) requests: u64,
    /// Retransmissions.
    pub(in crate::blame) again: u64,
    /// The total time that requests waited before they were sent.
    pub(in crate::blame) queue_ms: u64,
    /// The total time from sending a request to its answer.
    pub(in crate::blame) server_ms: u64,
}

/// Counters of the NFS mount at `mount`; `None` if there is no such mount.
pub(in crate::blame) fn mountstats(text: &str, mount: &str) -> Option<NfsMount> {
    let head = |line: &str| line.starts_with("device ");
    let wanted = format!(" mounted on {mount} with fstype nfs");
    let mut lines = text.lines().skip_while(|line| !(head(line) && line.contains(&wanted)));
    lines.next()?;
    // The section of a mount ends where the next device begins.
    let operations = lines.take_while(|line| !head(line)).filter_map(operation);
    let mut sum = NfsMount::default();
    operations.for_each(|one| add_fields!(sum, one; requests, again, queue_ms, server_ms));
    Some(sum)
}

fn operation(line: &str) -> Option<NfsMount> {
    let (name, rest) = line.trim().split_once(": ")?;
    if !["READ", "WRITE"].contains(&name) {
        return None;
    }
    let [requests, sent, _, _, _, queue_ms, server_ms, _] = numbers(rest.split_whitespace())?;
    Some(NfsMount { requests, again: sent.saturating_sub(requests), queue_ms, server_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
device proc mounted on /proc with fstype proc
device filer:/films mounted on /mnt/films with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,proto=tcp
\tage:\t120
\txprt:\ttcp 0 0 1 0 3 5000 5000 0 9000 40 12 900 700
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 4000 4003 0 880000 4194304000 52000 31000 84000 0
\t       WRITE: 10 10 0 10486000 1600 5 90 96 0
\t      COMMIT: 1 1 0 200 104 0 12 12 0
device filer:/more mounted on /mnt/more with fstype nfs statvers=1.1
\t        READ: 7 7 0 1 1 1 1 2 0
";

    #[test]
    fn reads_and_writes_of_one_mount_are_added() {
        let films = mountstats(TEXT, "/mnt/films").unwrap();
        let all = NfsMount { requests: 4010, again: 3, queue_ms: 52_005, server_ms: 31_090 };
        assert_eq!(films, all);
        assert_eq!(mountstats(TEXT, "/mnt/more").unwrap().requests, 7);
        assert_eq!((mountstats(TEXT, "/mnt"), mountstats(TEXT, "/proc")), (None, None));
    }
}
