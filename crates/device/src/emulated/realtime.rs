//! Making a thread one that the kernel runs at once when its time has come.
//!
//! Without, a thread that waits for a moment is run some 50 us after it on an idle machine and
//! milliseconds after it on a busy one; a disk's turn takes eight.
#![expect(unsafe_code, reason = "the scheduling class has no safe interface")]

use std::io;

/// The calling thread, and threads it starts, from here on: first in, first out, before everything
/// that is not.
///
/// # Errors
/// Needs the right to (root, or `CAP_SYS_NICE`); without it the thread stays as it was.
pub fn enter() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: 0 is the calling thread, and the structure lives across the call.
    let refused = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From 1 to 99. Above ordinary work, below the kernel's own threads (50).
const PRIORITY: i32 = 20;
