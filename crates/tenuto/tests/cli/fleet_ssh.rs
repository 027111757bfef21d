//! `--hosts` through a real sshd on a loopback port, with keys and a configuration of its own: the
//! login, the copied program, and what is left on the host afterwards.

use crate::program::{TestDir, program};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A host with an sshd, until it is dropped. `films` is its media, `there` its temporary files.
struct SshHost {
    dir: TestDir,
    sshd: Child,
}

impl SshHost {
    fn new() -> Self {
        let dir = TestDir::new();
        ["films", "there"].iter().for_each(|name| std::fs::create_dir(dir.path(name)).unwrap());
        for key in ["host", "user", "stranger"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
            let made = Command::new("ssh-keygen").args(words).arg(dir.path(key)).status();
            assert!(made.unwrap().success());
        }
        std::fs::copy(dir.path("user.pub"), dir.path("authorized")).unwrap();
        separation_directory();
        let path = |name: &str| dir.path(name).display().to_string();
        // Another process may take the free port before sshd does.
        for _ in 0..10 {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            dir.write(
                "sshd_config",
                format!(
                    "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nPidFile none\n\
                     AuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
                     PasswordAuthentication no\nPermitRootLogin prohibit-password\n\
                     MaxStartups 100\nSetEnv TMPDIR={}\n",
                    path("host"),
                    path("authorized"),
                    path("there")
                ),
            );
            // The program is sshd's whole path: it starts itself again for each connection.
            let mut sshd = Command::new(sshd_path())
                .args(["-D", "-E", &path("sshd.log"), "-f", &path("sshd_config")])
                .stdin(Stdio::null())
                .spawn()
                .unwrap();
            while sshd.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    let known = std::fs::read_to_string(dir.path("host.pub")).unwrap();
                    dir.write("known", format!("[127.0.0.1]:{port} {known}"));
                    let host = Self { dir, sshd };
                    host.client(port);
                    return host;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        panic!("sshd ended: {}", String::from_utf8_lossy(&dir.read("sshd.log")));
    }

    /// Writes the configuration of ssh, with the names `one` and `two` for this host.
    fn client(&self, port: u16) {
        let path = |name: &str| self.dir.path(name).display().to_string();
        let text = format!(
            "Host one two\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n\
             UserKnownHostsFile {}\n GlobalKnownHostsFile none\n StrictHostKeyChecking yes\n\
             IdentitiesOnly yes\n IdentityAgent none\n",
            path("user"),
            path("known")
        );
        self.dir.write("ssh_config", text);
    }

    fn command(&self, words: &str) -> Command {
        let films = self.dir.path("films");
        let ssh = format!("ssh -F {}", self.dir.path("ssh_config").display());
        let mut command = program(&self.dir.path("."));
        let line = "meter run --profile dvcpro50 --size 16MiB --streams 4 --json --target";
        command.args(line.split(' ')).arg(films).args(["--ssh", &ssh]);
        command.args(words.split(' '));
        command
    }

    /// Number of files on the host: what is measured, and the copied programs.
    fn files(&self) -> [usize; 2] {
        ["films", "there"].map(|name| std::fs::read_dir(self.dir.path(name)).unwrap().count())
    }
}

impl Drop for SshHost {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

fn sshd_path() -> PathBuf {
    // Administrators' programs are not on the path of every user.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
    let files = path.split(':').map(|directory| Path::new(directory).join("sshd"));
    files.into_iter().find(|file| file.is_file()).expect("the test needs sshd")
}

/// Started by root, sshd confines itself to an empty directory that its service makes at boot.
fn separation_directory() {
    let _ = std::fs::DirBuilder::new().mode(0o755).create("/run/sshd");
}

#[test]
fn hosts_behind_a_real_sshd_measure_and_keep_no_files() {
    testkit::needs!(Program("sshd"), Program("ssh"), Program("ssh-keygen"));
    let host = SshHost::new();
    let output = host.command("--hosts one,two --workers 2 --duration 1s").output().unwrap();
    let log = || String::from_utf8_lossy(&host.dir.read("sshd.log")).into_owned();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}\nsshd: {}", String::from_utf8_lossy(&output.stderr), log()));
    // 4 streams of 25 frames a second for a second, whatever was late on a busy machine.
    assert_eq!(said["frames"], 100, "{said}");
    let names: Vec<_> = said["agents"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(host.files(), [0, 0]);
}

#[test]
fn a_login_that_sshd_refuses_is_named() {
    testkit::needs!(Program("sshd"), Program("ssh"), Program("ssh-keygen"));
    let host = SshHost::new();
    // The key of a stranger; and a host that has another key than the known one.
    let key = host.dir.read("stranger.pub");
    for (file, text) in [("authorized", "Permission denied"), ("known", "verification failed")] {
        let kept = host.dir.read(file);
        let port = kept.split(|byte| *byte == b' ').next().unwrap();
        let other = if file == "known" { [port, b" ", &key].concat() } else { key.clone() };
        host.dir.write(file, other);
        let output = host.command("--hosts one --duration 1s").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(text) && said.contains("one: "), "{said}");
        host.dir.write(file, kept);
    }
    assert_eq!(host.files(), [0, 0]);
}

#[test]
fn a_killed_controller_leaves_no_files_behind_a_real_sshd() {
    testkit::needs!(Program("sshd"), Program("ssh"), Program("ssh-keygen"));
    let host = SshHost::new();
    let mut controller = host
        .command("--hosts one --duration 10min --layout file-per-stream")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while host.files()[0] == 0 && controller.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(host.files()[1], 1, "the program is on the host");
    controller.kill().unwrap();
    controller.wait().unwrap();
    // The test fails by its own time limit where the host keeps something.
    while host.files() != [0, 0] {
        std::thread::sleep(Duration::from_millis(20));
    }
}
