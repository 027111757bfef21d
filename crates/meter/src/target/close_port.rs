//! Leaving a target whose run is over, though it may not answer any more.
//!
//! A server that is gone, or a FUSE program that hangs, answers neither reads nor the removal of
//! files: whoever waits for that tells nobody what was measured. So it is waited for as long as
//! anything comes back, and what does not is left: its memory and its threads stay until the
//! program ends.

use super::Port;
use std::sync::mpsc;
use std::time::Duration;

/// Ends with a port. How many operations have not come back while nothing did for as long as
/// `patience` says, which is asked again and again.
pub fn close_port(mut port: Box<dyn Port + '_>, patience: &dyn Fn() -> Duration) -> u32 {
    let (mut left, mut idle) = (port.settle(Duration::ZERO), Duration::ZERO);
    while left > 0 && idle < patience() {
        let now = port.settle(LOOK);
        idle = if now < left { Duration::ZERO } else { idle + LOOK };
        left = now;
    }
    if left > 0 {
        // Dropped, it would wait for them.
        std::mem::forget(port);
    }
    left
}

/// Returns the result of `work` if it ends in time; otherwise it continues in the background.
pub fn in_time<T: Send + 'static>(
    at_most: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = mpsc::channel();
    let work = move || {
        // Whoever asked may be gone.
        let _ = tell.send(work());
    };
    std::thread::Builder::new().name("meter-leave".to_owned()).spawn(work).ok()?;
    told.recv_timeout(at_most).ok()
}

/// Between two looks at whether something came back.
const LOOK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{IoCompletion, IoRequest, PoolWorker, ThreadPool};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};
    use units::Moment;

    /// Reads at offset 0 are over at once; others wait for a word that nobody says. Counts those
    /// that have begun.
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
    fn what_hangs_is_counted_and_left_and_what_has_not_begun_is_called_off() {
        let ((say, word), begun) = (mpsc::channel(), Arc::new(AtomicU32::new(0)));
        let mut port = Box::new(ThreadPool::new(Hangs(Mutex::new(word), Arc::clone(&begun)), 2));
        for (tag, offset) in [(0, 0), (1, 4096), (2, 4096), (3, 4096), (4, 0)] {
            port.begin(IoRequest::read(tag, offset, 4096)).unwrap();
        }
        // The first is over, and two of those that hang have a thread each.
        while begun.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        assert_eq!(
            close_port(port, &|| Duration::from_millis(1)),
            2,
            "as many as there are threads"
        );
        drop(say);
    }

    #[test]
    fn what_comes_back_is_waited_for() {
        let (say, word) = mpsc::channel();
        let mut port = Box::new(ThreadPool::new(Hangs(Mutex::new(word), Arc::default()), 1));
        port.begin(IoRequest::read(0, 4096, 4096)).unwrap();
        say.send(()).unwrap();
        assert_eq!(close_port(port, &|| Duration::from_secs(60)), 0);
    }

    #[test]
    fn work_that_takes_too_long_goes_on_by_itself() {
        let (say, word) = mpsc::channel::<()>();
        assert_eq!(in_time(Duration::from_secs(60), || 7), Some(7));
        assert_eq!(in_time(Duration::from_millis(1), move || word.recv().is_ok()), None);
        drop(say);
    }
}
