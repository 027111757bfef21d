//! Kernels that refuse a read method: containers (Docker's default profile forbids io_uring),
//! `sysctl kernel.io_uring_disabled=2` (the same error, `EPERM`), kernels built without it
//! (`ENOSYS`).
//! Here a filter on one thread's system calls returns the same errors.

#![expect(unsafe_code, reason = "a filter of system calls, which no crate here makes")]

use crate::methods::{all, new_file, pattern, pool, said};
use crate::scratch::TempDir;
use device::{FileDevice, Method, OpenOptions};
use std::io;
use std::thread;
use testkit::Need;

/// Makes this system call return `errno` for this thread and those that it starts from now on.
/// Fails if the kernel has no such filters.
fn forbid(call: libc::c_long, errno: i32) -> io::Result<()> {
    let of = |code: u32, when: u8, unless: u8, value: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: when,
        jf: unless,
        k: value,
    };
    let call = u32::try_from(call).unwrap();
    let answer = libc::SECCOMP_RET_ERRNO | u32::try_from(errno).unwrap();
    let mut program = [
        // The number of the call, compared with the forbidden one.
        of(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        of(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call),
        of(libc::BPF_RET | libc::BPF_K, 0, 0, answer),
        of(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which lives until it has; both hold for this thread.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const WAYS: [(Method, libc::c_long); 6] = [
    (Method::Best, libc::SYS_io_uring_setup),
    (Method::Uring, libc::SYS_io_uring_enter),
    (Method::Uring, libc::SYS_io_uring_register),
    (Method::Libaio, libc::SYS_io_setup),
    (Method::Preadv2, libc::SYS_preadv2),
    (Method::Mmap, libc::SYS_process_vm_readv),
];

const ANSWERS: [(i32, &str); 2] =
    [(libc::EPERM, "Operation not permitted"), (libc::ENOSYS, "Function not implemented")];

#[test]
fn a_refused_method_falls_back_to_threads_and_reports_that() {
    let scratch = TempDir::new("refused");
    let path = new_file(scratch.path(), "file");
    std::fs::write(&path, pattern(0, 1 << 20)).unwrap();
    for ((method, call), (errno, answer)) in
        WAYS.iter().flat_map(|way| ANSWERS.iter().map(move |answer| (*way, *answer)))
    {
        let path = path.clone();
        let ran = thread::spawn(move || {
            if let Err(why) = forbid(call, errno) {
                testkit::skip(Need::Seccomp, &format!("no filters of system calls: {why}"));
                return;
            }
            let options = OpenOptions { write: true, ..OpenOptions::default() };
            let device = FileDevice::open(&path, options).unwrap();
            let pool = pool();
            let mut queue = device.queue_by(method, 2, &pool).unwrap();
            let by = queue.method();
            let name = if method == Method::Best { Method::Uring } else { method };
            let instead = format!("2 threads, direct (no {name}: {answer}");
            assert!(by.replace("buffered", "direct").starts_with(&instead), "{call}: {by}");
            let refused = device.methods().into_iter().find(|(method, _)| *method == name);
            let why = refused.unwrap().1.unwrap_err();
            assert_eq!(why.raw_os_error(), Some(errno), "listed as refused, with the reason");

            queue.submit(0, 4096, pool.take(8192).unwrap()).unwrap();
            let mut buffer = pool.take(4096).unwrap();
            buffer.copy_from_slice(&pattern(1 << 19, 4096));
            queue.submit_write(1, 1 << 19, buffer).unwrap();
            let done = all(&mut *queue);
            assert_eq!(said(&done), ["good", "good"], "{by}");
            assert!(done[0].buffer[..] == pattern(4096, 8192));
        });
        if let Err(panic) = ran.join() {
            std::panic::resume_unwind(panic);
        }
    }
}
