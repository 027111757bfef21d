//! Closing a target after its run, even if it no longer answers.
//!
//! A server that is down, or a FUSE program that hangs, answers neither reads nor the removal of
//! files, and a program that waits for it never reports its measurement. So the port waits as long
//! as operations complete, and abandons the rest: their memory and threads remain until the program
//! ends.

use super::Port;
use crate::error::MeterError;
use std::sync::mpsc;
use std::time::Duration;
use units::show::count;

/// Closes a port. Returns the number of operations that did not complete, after a time without any
/// completion that `patience` gives each time it is called.
pub(crate) fn close_port(mut port: Box<dyn Port + '_>, patience: &dyn Fn() -> Duration) -> u32 {
    let (mut left, mut idle) = (port.settle(Duration::ZERO), Duration::ZERO);
    while left > 0 && idle < patience() {
        let now = port.settle(LOOK);
        idle = if now < left { Duration::ZERO } else { idle + LOOK };
        left = now;
    }
    if left > 0 {
        // Dropping the port would wait for the hanging operations.
        std::mem::forget(port);
    }
    left
}

/// Refuses a run that left `stuck` operations with a storage that hangs.
pub(crate) fn check_not_stuck(stuck: u32) -> Result<(), MeterError> {
    if stuck == 0 {
        return Ok(());
    }
    let stuck = count(stuck, "operation");
    Err(hanging(&format!("the storage hangs: {stuck} did not complete")).invalid())
}

/// An error about storage that hangs.
pub(super) fn hanging(message: &str) -> MeterError {
    MeterError::new(message)
        .hint("is its server there? Files that the meter made may be left on it: .tenuto-meter-*")
}

/// Returns the result of `work` if it ends in time; otherwise it continues in the background.
pub(crate) fn in_time<T: Send + 'static>(
    at_most: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        // The caller may have given up.
        let _ = sender.send(work());
    };
    std::thread::Builder::new().name("meter-leave".to_owned()).spawn(work).ok()?;
    receiver.recv_timeout(at_most).ok()
}

/// The interval at which completions are checked.
const LOOK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{IoCompletion, IoRequest, PoolWorker, ThreadPool};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};
    use units::Moment;

    /// A worker whose reads at offset 0 complete immediately, while others wait for a message that
    /// never comes. Counts the reads that have begun.
    struct Hangs(Mutex<mpsc::Receiver<()>>, Arc<AtomicU32>);

    impl PoolWorker for Hangs {
        type Own = ();

        fn own(&self) {}

        fn perform(&self, request: &IoRequest, (): &mut ()) -> IoCompletion {
            self.1.fetch_add(1, Ordering::Relaxed);
            if request.offset > 0 {
                let _ = self.0.lock().unwrap().recv();
            }
            IoCompletion::new(request.tag, Moment::ZERO, Ok(()))
        }

        fn now(&self) -> Moment {
            Moment::ZERO
        }

        fn method(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn hanging_operations_are_abandoned_and_those_not_begun_are_cancelled() {
        let ((release, gate), begun) = (mpsc::channel(), Arc::new(AtomicU32::new(0)));
        let mut port = Box::new(ThreadPool::new(Hangs(Mutex::new(gate), Arc::clone(&begun)), 2));
        for (tag, offset) in [(0, 0), (1, 4096), (2, 4096), (3, 4096), (4, 0)] {
            port.begin(IoRequest::read(tag, offset, 4096)).unwrap();
        }
        // The first is complete, and two of the hanging ones have a thread each.
        while begun.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        assert_eq!(
            close_port(port, &|| Duration::from_millis(1)),
            2,
            "as many as there are threads"
        );
        drop(release);
    }

    #[test]
    fn completing_operations_are_waited_for() {
        let (release, gate) = mpsc::channel();
        let mut port = Box::new(ThreadPool::new(Hangs(Mutex::new(gate), Arc::default()), 1));
        port.begin(IoRequest::read(0, 4096, 4096)).unwrap();
        release.send(()).unwrap();
        assert_eq!(close_port(port, &|| Duration::from_secs(60)), 0);
    }

    #[test]
    fn work_that_takes_too_long_continues_in_the_background() {
        let (release, gate) = mpsc::channel::<()>();
        assert_eq!(in_time(Duration::from_secs(60), || 7), Some(7));
        assert_eq!(in_time(Duration::from_millis(1), move || gate.recv().is_ok()), None);
        drop(release);
    }
}
