//! A mounted store exported by an NFS server in user space, configured as `docs/guide/mount.md`
//! prints it. It names files by the handles by which a kernel's NFS server does, too
//! (`open_by_handle_at`).

use crate::mounted::{FileServer, Mounted, free_port, noise};
use crate::program::TestDir;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn nfs(dir: &TestDir, port: u16) -> FileServer {
    let mounted = dir.path("mnt").display().to_string();
    let printed = printed_configuration().replace("/mnt/films", &mounted);
    let core = format!("NFS_Core_Param {{\n    NFS_Port = {port};\n    Bind_Addr = 127.0.0.1;");
    let whole = printed.replacen("NFS_Core_Param {", &core, 1);
    // It waits for no clients of a server before it.
    let whole = whole.replacen("NFSv4 {", "NFSv4 {\n    Graceless = true;", 1);
    dir.write("nfs.conf", whole);
    let mut command = Command::new("ganesha.nfsd");
    command.arg("-F").arg("-f").arg(dir.path("nfs.conf"));
    command.arg("-L").arg(dir.path("nfs.log")).arg("-p").arg(dir.path("nfs.pid"));
    FileServer::start(command, port, &dir.path("nfs.log"))
}

/// The configuration in the guide.
fn printed_configuration() -> String {
    let guide = include_str!("../../../../docs/guide/mount.md");
    let (_, rest) = guide.split_once("```text\nNFS_Core_Param").expect("a configuration");
    format!("NFS_Core_Param{}", rest.split_once("```").expect("its end").0)
}

#[test]
fn an_nfs_server_exports_a_mounted_store() {
    testkit::needs!(Root, Fuse, Mount, Program("ganesha.nfsd"), Program("nfs-cp"));
    let dir = TestDir::with_store_of(96);
    dir.film("film.mp4");
    dir.write("a.bin", noise(9_000_000));
    // The client of this test cannot write more over NFS 4.
    dir.write("small.bin", noise(1_500));
    dir.ok("ingest a.store film.mp4 --title film");
    dir.ok("ingest a.store a.bin --as file --title news/a.bin");
    dir.ok("export a.store film film.out");
    let mounted = Mounted::start(&dir, "");
    let port = free_port();
    let nfs = nfs(&dir, port);
    let url = |name: &str| format!("nfs://127.0.0.1/films/{name}?version=4&nfsport={port}");
    let at = |name: &str| dir.path(name).display().to_string();
    let copy = |from: &str, to: &str| {
        let output = Command::new("nfs-cp").args([from, to]).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "nfs-cp {from} {to}: {said}");
    };
    let reads = |context: &str| {
        copy(&url("film.mp4"), &at("film.got"));
        assert!(dir.read("film.got") == dir.read("film.out"), "{context}: as it is exported");
        copy(&url("news/a.bin"), &at("a.got"));
        assert!(dir.read("a.got") == dir.read("a.bin"), "{context}");
        let _ = fs::remove_file(dir.path("film.got"));
        let _ = fs::remove_file(dir.path("a.got"));
    };
    reads("first");
    // The server keeps handles of files that the kernel has forgotten.
    fs::write("/proc/sys/vm/drop_caches", "2").expect("root may");
    reads("forgotten by the kernel");
    copy(&at("small.bin"), &url("small.bin"));
    copy(&url("small.bin"), &at("small.got"));
    assert!(dir.read("small.got") == dir.read("small.bin"), "what was written is read");
    drop(nfs);
    let start = Instant::now();
    while fs::read(mounted.path("small.bin")).ok().as_ref() != Some(&dir.read("small.bin")) {
        assert!(start.elapsed() < Duration::from_secs(60), "it is no title after it was closed");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(mounted.stop(), (Some(0), String::new()));
    dir.ok("export a.store small.bin out");
    assert!(dir.read("out") == dir.read("small.bin"), "the store has what was written");
    dir.ok("check a.store --scrub");
}
