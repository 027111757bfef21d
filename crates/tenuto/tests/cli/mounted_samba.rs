//! A mounted store shared by Samba, configured as `docs/guide/mount.md` prints it: what `smbclient`
//! reads and writes is what the store has.

use crate::mounted::{FileServer, Mounted, free_port, noise, run};
use crate::program::TestDir;
use std::fs;
use std::process::{Command, Stdio};

/// A Samba server that shares what the configuration names, with all of its own files in the test's
/// folder.
fn samba(dir: &TestDir, port: u16) -> FileServer {
    let own = dir.path("samba");
    fs::create_dir(&own).expect("a folder");
    let own = own.to_str().expect("UTF-8");
    let folders = ["private dir", "lock directory", "state directory", "cache directory"];
    let folders = folders.iter().chain(&["pid directory", "ncalrpc dir"]);
    let mut settings: String = folders.map(|folder| format!("{folder} = {own}\n")).collect();
    settings += &format!("log file = {own}/log\nsmb ports = {port}\n");
    settings += "interfaces = lo\nbind interfaces only = yes\n";
    let printed =
        printed_configuration().replace("/mnt/films", &dir.path("mnt").display().to_string());
    let whole = printed.replacen("[global]\n", &format!("[global]\n{settings}"), 1);
    dir.write("smb.conf", whole);
    let mut command = Command::new("smbd");
    command.args(["--foreground", "--configfile"]).arg(dir.path("smb.conf"));
    FileServer::start(command, port, &dir.path("samba/log"))
}

/// The configuration in the guide.
fn printed_configuration() -> String {
    let guide = include_str!("../../../../docs/guide/mount.md");
    let (_, rest) = guide.split_once("```ini\n").expect("a configuration");
    rest.split_once("```").expect("its end").0.to_owned()
}

#[test]
fn samba_shares_a_mounted_store() {
    testkit::needs!(Root, Fuse, Mount, Program("smbd"), Program("smbclient"));
    let dir = TestDir::with_store_of(96);
    dir.film("film.mp4");
    dir.write("a.bin", noise(3_000_000));
    dir.ok("ingest a.store film.mp4 --title film");
    dir.ok("export a.store film film.out");
    let mounted = Mounted::start(&dir, "");
    let port = free_port();
    let samba = samba(&dir, port);
    let at = |name: &str| dir.path(name).display().to_string();
    let client = |commands: &str| {
        let (port, configuration) = (port.to_string(), at("smb.conf"));
        let words = ["-N", "-d0", "-p", &port, "-s", &configuration, "//127.0.0.1/films", "-c"];
        let mut command = Command::new("smbclient");
        let output = command.args(words).arg(commands).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !said.contains("NT_STATUS"), "{commands}: {said}");
        said
    };
    client(&format!("get film.mp4 {}", at("film.got")));
    assert!(dir.read("film.got") == dir.read("film.out"), "the film is read as it is exported");
    client(&format!(
        "mkdir news; put {} news\\a.bin; get news\\a.bin {}",
        at("a.bin"),
        at("b.bin")
    ));
    assert!(dir.read("b.bin") == dir.read("a.bin"), "what was written is read");
    client(&format!("put {} .ingest\\monday.mp4", at("film.mp4")));
    client("rename news\\a.bin news\\c.bin; del film.mp4");
    let listed = client("ls");
    assert!(listed.contains("monday.mp4") && !listed.contains("film.mp4"), "{listed}");
    drop(samba);
    assert_eq!(fs::read(mounted.path("news/c.bin")).unwrap(), dir.read("a.bin"));
    assert_eq!(mounted.stop(), (Some(0), String::new()));
    dir.ok("export a.store news/c.bin out");
    assert!(dir.read("out") == dir.read("a.bin"), "the store has what was written");
    run(&["ffmpeg", "-v", "error", "-i", &at("film.got"), "-f", "null", "-"]);
    dir.ok("check a.store --scrub");
}
