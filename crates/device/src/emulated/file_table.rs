//! A separate table of open files for a thread, without signal handling.
//!
//! Threads share one table of open files, and a file is closed when the last thread with it has
//! ended. [`fuse_thread`](super::fuse_thread) explains why the threads of an emulated disk share
//! none with the others.
#![expect(unsafe_code, reason = "a thread's own table of files has no safe interface")]

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Gives the calling thread, and those that it starts from now on, their own file table with only
/// standard input, output and error and `kept`, and blocks all signals for them: a file that a
/// handler writes to may be another file here. A kernel before 5.9 does not support such a table;
/// the thread then shares files as before.
pub(super) fn unshare_files(kept: BorrowedFd<'_>) {
    const FIRST: libc::c_uint = 3;
    let kept = libc::c_uint::try_from(kept.as_raw_fd()).expect("an open file");
    let close = |first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint| {
        // SAFETY: in a table that is this thread's alone. A file that is closed there stays open
        // for its owners, and nothing that this thread continues with owns any of it.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) == 0 }
    };
    block_signals();
    if close(kept + 1, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) && kept > FIRST {
        close(FIRST, kept - 1, 0);
    }
}

fn block_signals() {
    let mut all = std::mem::MaybeUninit::uninit();
    // SAFETY: the set is filled before it is used, and changes this thread only.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), ptr::null_mut());
    }
}
