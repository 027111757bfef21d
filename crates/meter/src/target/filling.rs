//! Making files on storage that may hang.
//!
//! ```text
//!   caller ◀── Filling: written, silent, again ── thread: creates, allocates, writes, flushes
//!      └─ false: stop ───────────────────────────▶
//! ```
//!
//! A write to a server that is down does not return, and the kernel lets nobody interrupt it. So
//! files are made by a thread of their own: the caller hears that nothing happens, and can give up.

use super::close_port::hanging;
use crate::error::MeterError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use units::show;

/// The state of files that are being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// The bytes that are written so far.
    Bytes(u64),
    /// Nothing has happened for so long. Reported again after twice the time, and so on.
    Silent(Duration),
    /// Something happened, after so long.
    Again(Duration),
}

impl Filling {
    /// A note for the user about the storage at `place`; `None` if all is well.
    pub(crate) fn note(self, place: &str) -> Option<String> {
        let time = |silent: Duration| show::length(silent.as_secs_f64());
        match self {
            Self::Bytes(_) => None,
            Self::Silent(silent) => Some(format!(
                "{place}: nothing could be written for {}: its storage hangs, or is very slow; \
                 the meter waits for it until you interrupt it",
                time(silent)
            )),
            Self::Again(silent) => {
                Some(format!("{place}: its storage took writes again after {}", time(silent)))
            }
        }
    }
}

/// Makes files by a thread of its own. `make` receives what it calls with the bytes written so far,
/// and which returns false when it is to stop. `hear` is called several times a second; once it
/// returns false, `make` is to stop, and is abandoned if nothing happens for `patience`. After the
/// first `patience` without news `hear` is told.
pub(crate) fn fill_aside<T: Send + 'static>(
    patience: Duration,
    make: impl FnOnce(&mut dyn FnMut(u64) -> bool) -> Result<T, MeterError> + Send + 'static,
    hear: &mut dyn FnMut(Filling) -> bool,
) -> Result<T, MeterError> {
    let (tell, told) = mpsc::channel();
    let go_on = Arc::new(AtomicBool::new(true));
    let wanted = Arc::clone(&go_on);
    let work = move || {
        let made = make(&mut |bytes| {
            // The caller may have given up.
            let _ = tell.send(News::Bytes(bytes));
            wanted.load(Ordering::Relaxed)
        });
        let _ = tell.send(News::Made(made));
    };
    std::thread::Builder::new()
        .name("meter-fill".to_owned())
        .spawn(work)
        .map_err(|error| MeterError::new(format!("cannot start a thread: {error}")))?;
    let (mut bytes, mut last, mut say_after) = (0, Instant::now(), patience);
    loop {
        let news = told.recv_timeout(LOOK.min(patience));
        let (silent, idle) = (last.elapsed(), news.is_err());
        let state = match news {
            Ok(News::Made(made)) => return made,
            Ok(News::Bytes(done)) => {
                (bytes, last) = (done, Instant::now());
                if std::mem::replace(&mut say_after, patience) > patience {
                    go_on.fetch_and(hear(Filling::Again(silent)), Ordering::Relaxed);
                }
                Filling::Bytes(bytes)
            }
            Err(RecvTimeoutError::Timeout) if silent >= say_after => {
                say_after *= 2;
                Filling::Silent(silent)
            }
            Err(RecvTimeoutError::Timeout) => Filling::Bytes(bytes),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(MeterError::new("the thread that filled the files has failed"));
            }
        };
        go_on.fetch_and(hear(state), Ordering::Relaxed);
        if idle && silent >= patience && !go_on.load(Ordering::Relaxed) {
            let silent = show::length(silent.as_secs_f64());
            return Err(hanging(&format!("interrupted: nothing could be written for {silent}")));
        }
    }
}

enum News<T> {
    Bytes(u64),
    Made(Result<T, MeterError>),
}

/// The time without news after which the user hears of it.
pub(crate) const FILL_PATIENCE: Duration = Duration::from_secs(10);

/// The interval at which the caller is called.
const LOOK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use units::Hinted;

    /// Storage that takes `first` pieces, and the next one when a message comes.
    fn hangs_after(
        first: u64,
        gate: mpsc::Receiver<()>,
    ) -> impl FnOnce(&mut dyn FnMut(u64) -> bool) -> Result<u64, MeterError> + Send + 'static {
        move |go_on| {
            for piece in 0..=first {
                if piece == first {
                    let _ = gate.recv();
                }
                if !go_on(piece) {
                    return Err(MeterError::new("stopped"));
                }
            }
            Ok(first)
        }
    }

    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn silence_is_told_and_that_the_storage_goes_on() {
        let (open, gate) = mpsc::channel();
        let mut told = Vec::new();
        let filled = fill_aside(SHORT, hangs_after(3, gate), &mut |state| {
            let note = state.note("/mnt/films");
            if let (Filling::Silent(_), true) = (state, told.is_empty()) {
                open.send(()).unwrap();
            }
            told.extend(note);
            true
        });
        assert_eq!(filled.unwrap(), 3);
        assert!(told[0].contains("/mnt/films: nothing could be written for"), "{told:?}");
        assert!(told.last().unwrap().contains("took writes again after"), "{told:?}");
    }

    #[test]
    fn storage_that_hangs_is_abandoned_when_the_user_interrupts() {
        let (open, gate) = mpsc::channel::<()>();
        let mut silent = false;
        let filled = fill_aside(SHORT, hangs_after(3, gate), &mut |state| {
            silent |= matches!(state, Filling::Silent(_));
            !silent
        });
        let error = filled.unwrap_err().one_line();
        assert!(error.contains("interrupted: nothing could be written for"), "{error}");
        assert!(error.contains(".tenuto-meter-*"), "{error}");
        drop(open);
    }

    #[test]
    fn storage_that_answers_is_waited_for_when_the_user_interrupts() {
        let until_stopped = |go_on: &mut dyn FnMut(u64) -> bool| {
            while go_on(0) {
                std::thread::yield_now();
            }
            Ok("stopped")
        };
        assert_eq!(fill_aside(FILL_PATIENCE, until_stopped, &mut |_| false).unwrap(), "stopped");
    }
}
