//! nginx as a cache in front of servers, and what FFmpeg plays through it.

use crate::program::TestDir;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A digest of all pictures that FFmpeg decodes, or what it says.
pub(crate) fn pictures(input: &str) -> Result<String, String> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i", input, "-map", "0:v:0", "-fps_mode", "passthrough"])
        .args(["-c:v", "rawvideo", "-pix_fmt", "yuv420p", "-f", "md5", "-"])
        .output()
        .expect("ffmpeg runs (apt-get install ffmpeg)");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// A caching nginx that is gone when the test ends.
pub(crate) struct Nginx {
    process: Child,
    port: u16,
}

impl Nginx {
    /// As the guide prints it.
    pub(crate) fn start(dir: &TestDir, server: &str, token: &str) -> Self {
        Self::start_as(dir, server, token, &str::to_owned)
    }

    /// As `configured` makes it of what the guide prints.
    pub(crate) fn start_as(
        dir: &TestDir,
        server: &str,
        token: &str,
        configured: &dyn Fn(&str) -> String,
    ) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let printed = configured(&printed_configuration())
            .replace("/var/cache/nginx/tenuto", &dir.at("cache"))
            .replace("192.168.1.5:8080", server.strip_prefix("http://").expect("plain HTTP"))
            .replace("listen 80;", &format!("listen 127.0.0.1:{port};"))
            .replace("TOKEN", token);
        // One process, which ends with the test, and no file outside of its folder.
        let mut whole = format!(
            "daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/nginx.log;\n\
             events {{}}\nhttp {{\naccess_log off;\n",
            dir.at(".")
        );
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            whole += &format!("{kind}_temp_path {};\n", dir.at(kind));
        }
        dir.write("nginx.conf", format!("{whole}{printed}}}\n"));
        let process = Command::new("nginx")
            .args(["-p", &dir.at("."), "-c", &dir.at("nginx.conf"), "-e", &dir.at("nginx.log")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx runs (apt-get install nginx-light)");
        let nginx = Self { process, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || String::from_utf8_lossy(&dir.read("nginx.log")).into_owned();
            assert!(start.elapsed() < PATIENCE, "nginx does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The configuration in the guide.
fn printed_configuration() -> String {
    let text = nginx_of(include_str!("../../../../docs/guide/serve.md"));
    assert!(text.contains("proxy_cache "), "{text}");
    text
}

/// The first configuration on a page of documentation.
pub(crate) fn nginx_of(page: &str) -> String {
    let (_, rest) = page.split_once("```nginx\n").expect("a configuration");
    let (text, _) = rest.split_once("```").expect("its end");
    text.to_owned()
}

/// For what takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);
