//! Real-time scheduling of a thread, so that the kernel runs it as soon as its time has come.
//!
//! Without it, a thread that waits for a moment is run some 50 us later on an idle machine and
//! milliseconds later on a busy one; a turn of a disk takes eight.
#![expect(unsafe_code, reason = "the scheduling class has no safe interface")]

use std::ffi::{c_int, c_long};
use std::io;

/// Gives the calling thread, and threads that it starts from now on, first-in-first-out scheduling
/// before all ordinary threads.
///
/// # Errors
/// Needs the right to (root, or `CAP_SYS_NICE`); without it the thread is unchanged.
pub fn enter() -> io::Result<()> {
    become_one_of(libc::SCHED_FIFO, &PRIORITY)
}

/// Returns the calling thread to ordinary scheduling.
///
/// # Errors
/// No failure is known: it gives up a privilege.
pub fn leave() -> io::Result<()> {
    become_one_of(libc::SCHED_OTHER, &0)
}

fn become_one_of(class: c_int, priority: &i32) -> io::Result<()> {
    // The kernel's `sched_param` is this one number. musl's own function only returns an error.
    let (thread, class): (c_long, c_long) = (0, class.into());
    let call = libc::SYS_sched_setscheduler;
    // SAFETY: 0 is the calling thread, and the number is borrowed until the call is over.
    let refused = unsafe { libc::syscall(call, thread, class, &raw const *priority) };
    if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The priority, from 1 to 99: above ordinary work, below the kernel's own threads (50).
static PRIORITY: i32 = 20;
