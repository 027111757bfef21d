//! How long a thread was ready to run and had no processor: it makes a disk look slow that is not.
//!
//! Linux counts it for each thread, in the second number of `/proc/thread-self/schedstat` ("time
//! spent waiting on a runqueue", in nanoseconds; Documentation/scheduler/sched-stats.rst). Time
//! without a processor because of a limit on processor time (cgroup) is in it. A kernel that does
//! not count it reports none, and all lateness is then the disk's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The time for which one thread has waited for a processor since it began.
pub(crate) struct RunDelay(Option<File>);

impl RunDelay {
    /// The count of the thread that calls this.
    pub(crate) fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// The sum so far; zero if the kernel does not count it.
    pub(crate) fn total(&self) -> Duration {
        let mut text = [0; 64];
        let length = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        Duration::from_nanos(length.and_then(|length| second_number(&text[..length])).unwrap_or(0))
    }
}

fn second_number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_read() {
        assert_eq!(second_number(b"655927 5738 2\n"), Some(5738));
        for text in [&b""[..], b"655927", b"1 x 3", b"1 -1 3", b"\xff 1 2"] {
            assert_eq!(second_number(text), None, "{text:?}");
        }
    }
}
