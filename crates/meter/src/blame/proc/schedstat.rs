//! `/proc/self/task/*/schedstat`: how long a thread ran, and how long it waited for a processor.

use std::time::Duration;

/// Run and wait time of a thread, or the sum over several threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::blame) struct Waiting {
    /// Time on a processor.
    pub(in crate::blame) ran: Duration,
    /// Time in which the thread was ready to run while another thread had the processor.
    pub(in crate::blame) waited: Duration,
}

/// Parses `ran_ns waited_ns slices`.
pub(in crate::blame) fn schedstat(text: &str) -> Option<Waiting> {
    let mut fields = text.split_whitespace().map(str::parse);
    let mut next = || Some(Duration::from_nanos(fields.next()?.ok()?));
    Some(Waiting { ran: next()?, waited: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_parsed() {
        let (ran, waited) = (Duration::from_nanos(3_761_449), Duration::from_nanos(20));
        assert_eq!(schedstat("3761449 20 7\n"), Some(Waiting { ran, waited }));
        assert_eq!((schedstat(""), schedstat("1 x 3")), (None, None));
    }
}
