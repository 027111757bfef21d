//! What a process keeps when another program takes its place (`exec`): descriptors that it was told
//! to keep, and the monotonic clock.

#![expect(unsafe_code, reason = "an inherited descriptor is a number that nobody owns")]

use rustix::io::{FdFlags, fcntl_setfd};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Decides whether the program that takes this one's place has this descriptor, under its number.
pub fn keep_open(descriptor: impl AsFd, keep: bool) -> io::Result<()> {
    let flags = if keep { FdFlags::empty() } else { FdFlags::CLOEXEC };
    Ok(fcntl_setfd(descriptor, flags)?)
}

/// Takes a descriptor that the program before this one has kept open. Fails where there is none of
/// this number, or it was taken already.
pub fn take_kept(number: RawFd) -> io::Result<OwnedFd> {
    if number <= libc::STDERR_FILENO {
        return Err(io::Error::other("the standard streams are nobody's to take"));
    }
    // SAFETY: asks about a number, and points at no memory; EBADF where it names nothing.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags == -1 {
        return Err(io::Error::last_os_error());
    }
    // All that this process opens is closed on exec from its beginning: the standard library and
    // this crate do so. A descriptor that is not was open when the process began.
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::other("it was not kept open"));
    }
    // SAFETY: sets a flag of an open descriptor, and points at no memory.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open and nobody owns it: it was inherited, as the flag has shown, and the flag
    // is set from here on, so that it is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The monotonic clock of the machine, which goes on when a program takes the place of another.
pub fn monotonic_clock() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time`, which lives here. It has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::time::Instant;

    #[test]
    fn a_kept_descriptor_is_taken_once() {
        let zero = File::open("/dev/zero").unwrap();
        assert!(take_kept(zero.as_raw_fd()).is_err(), "it is this process's own");
        keep_open(&zero, true).unwrap();
        let number = zero.into_raw_fd();
        let mut taken = File::from(take_kept(number).unwrap());
        assert_eq!(taken.read(&mut [1; 4]).unwrap(), 4);
        assert!(take_kept(number).is_err(), "it has an owner");
        for none in [-1, 0, 2, RawFd::MAX] {
            assert!(take_kept(none).is_err(), "{none}");
        }
    }

    #[test]
    fn the_clock_is_that_of_instants() {
        // In this order, so that the pair of the clock lies between two pairs of instants.
        let outer = Instant::now();
        let clock = monotonic_clock();
        let inner = Instant::now();
        let inside = inner.elapsed();
        let later = monotonic_clock();
        let outside = outer.elapsed();
        assert!((inside..=outside).contains(&(later - clock)));
    }
}
