//! Making a thread one that the kernel runs at once when its time has come.
//!
//! Without, a thread that waits for a moment is run some 50 us after it on an idle machine and
//! milliseconds after it on a busy one; a disk's turn takes eight.
#![expect(unsafe_code, reason = "the scheduling class has no safe interface")]

use std::ffi::{c_int, c_long};
use std::io;

/// The calling thread, and threads it starts, from here on: first in, first out, before everything
/// that is not.
///
/// # Errors
/// Needs the right to (root, or `CAP_SYS_NICE`); without it the thread stays as it was.
pub fn enter() -> io::Result<()> {
    become_one_of(libc::SCHED_FIFO, &PRIORITY)
}

/// The calling thread is as any other again.
///
/// # Errors
/// None that is known: it asks for less than it may have.
pub fn leave() -> io::Result<()> {
    become_one_of(libc::SCHED_OTHER, &0)
}

fn become_one_of(class: c_int, priority: &i32) -> io::Result<()> {
    // The kernel's `sched_param` is this one number. musl's own function only refuses.
    let (thread, class): (c_long, c_long) = (0, class.into());
    let call = libc::SYS_sched_setscheduler;
    // SAFETY: 0 is the calling thread, and the number is borrowed until the call is over.
    let refused = unsafe { libc::syscall(call, thread, class, &raw const *priority) };
    if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From 1 to 99. Above ordinary work, below the kernel's own threads (50).
static PRIORITY: i32 = 20;
