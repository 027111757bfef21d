//! A real server of the S3 protocol, for tests: `versitygw`, with buckets in a folder.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running gateway; it ends when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    folder: PathBuf,
    /// The address for clients, `http://ADDRESS:PORT`.
    pub endpoint: String,
}

impl Gateway {
    /// Name of the program; a test that uses it begins with `needs!(Program(Gateway::PROGRAM))`.
    pub const PROGRAM: &str = "versitygw";
    /// The access key and the secret key of the one user.
    pub const KEYS: [&str; 2] = ["key", "a-secret-key"];

    /// Starts a gateway with these buckets, in a folder that is made empty first.
    ///
    /// # Panics
    /// Where it cannot be started, or answers nobody within half a minute.
    pub fn start(folder: &Path, buckets: &[&str]) -> Self {
        let data = folder.join("data");
        let _ = std::fs::remove_dir_all(folder);
        for bucket in buckets {
            std::fs::create_dir_all(data.join(bucket)).unwrap();
        }
        // Free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let [key, secret] = Self::KEYS;
        let mut gateway = Command::new(Self::PROGRAM);
        gateway.args(["--port", &port.to_string(), "--quiet", "posix"]).arg(&data);
        gateway.env("ROOT_ACCESS_KEY", key).env("ROOT_SECRET_KEY", secret);
        let child = gateway.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = child.spawn().unwrap();
        let endpoint = format!("http://{port}");
        let mut gateway = Self { child, folder: folder.to_owned(), endpoint };
        let begun = Instant::now();
        while TcpStream::connect(port).is_err() {
            let ended = gateway.child.try_wait().unwrap();
            if ended.is_some() || begun.elapsed() > Duration::from_secs(30) {
                let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                panic!("{} answers nobody ({ended:?}): {log}", Self::PROGRAM);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        gateway
    }

    /// Where the objects of a bucket are files.
    pub fn bucket(&self, name: &str) -> PathBuf {
        self.folder.join("data").join(name)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
