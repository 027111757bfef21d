//! A house for a test: a folder of its own, a store in a file, a server on a free port; all gone
//! when the test ends, however it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder with a formatted store in it.
pub(crate) struct House {
    dir: PathBuf,
}

impl House {
    /// Formats a store of `mebibytes` in a new folder.
    pub(crate) fn new(mebibytes: u32) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("tenuto-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder for the test");
        let house = Self { dir };
        house.tenuto(&["format", &house.store(), "--size", &format!("{mebibytes}MiB")]);
        house
    }

    /// The path of `name` in this house's folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// The path of the store.
    pub(crate) fn store(&self) -> String {
        self.path("store.tenuto")
    }

    /// Makes a film with FFmpeg and gives its path.
    pub(crate) fn film(&self, name: &str, args: &[&str]) -> String {
        self.try_film(name, args).unwrap_or_else(|said| panic!("making {name}: {said}"))
    }

    fn try_film(&self, name: &str, args: &[&str]) -> Result<String, String> {
        let path = self.path(name);
        let output = Command::new("ffmpeg")
            .args(["-nostdin", "-y", "-v", "error"])
            .args(args)
            .arg(&path)
            .output()
            .expect("ffmpeg runs (apt-get install ffmpeg)");
        if output.status.success() { Ok(path) } else { Err(show(&output.stderr)) }
    }

    /// FFmpeg's own remux of a file, into what Tenuto makes of it by this way: HLS, or one file.
    pub(crate) fn remux(&self, source: &str, way: &str) -> String {
        let folder = format!("{source}.{way}");
        std::fs::create_dir_all(&folder).expect("a folder within the test's");
        let name = |file: &str| {
            let folder = Path::new(&folder).file_name().expect("it has one");
            format!("{}/{file}", folder.display())
        };
        let copy = ["-i", source, "-map", "0:v?", "-map", "0:a?", "-c", "copy", "-strict", "-2"];
        if way == "hls" {
            let words = "-f hls -hls_segment_type fmp4 -hls_time 4 -hls_playlist_type vod";
            let args: Vec<&str> = copy.into_iter().chain(words.split(' ')).collect();
            return self.film(&name("own.m3u8"), &args);
        }
        // QuickTime holds all that MP4 does not, and the other way round.
        let mp4 = ["-f", "mp4"];
        let args: Vec<&str> = copy.into_iter().chain(mp4).collect();
        let made = self.try_film(&name("own.mp4"), &args);
        made.unwrap_or_else(|_| self.film(&name("own.mov"), &copy))
    }

    /// Runs `tenuto`, which must succeed, and gives its standard output.
    #[track_caller]
    pub(crate) fn tenuto(&self, args: &[&str]) -> String {
        let output = program(&self.dir).args(args).output().expect("tenuto runs");
        assert!(output.status.success(), "tenuto {}: {}", args.join(" "), show(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Serves the store until the guard is dropped.
    pub(crate) fn serve(&self, args: &[&str]) -> Served {
        let mut child = program(&self.dir)
            .args(["serve", &self.store(), "--listen", "127.0.0.1:0"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tenuto serves");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut said = Vec::new();
        for line in lines.map_while(Result::ok) {
            if let Some(at) = line.find("http://") {
                let url = line[at..].split_whitespace().next().expect("a word");
                let origin = url.split('/').take(3).collect::<Vec<_>>().join("/");
                return Served { child, origin };
            }
            said.push(line);
        }
        let _ = child.wait();
        panic!("tenuto serve ended without an address; it said: {}", said.join("\n"));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A running server.
pub(crate) struct Served {
    child: Child,
    origin: String,
}

impl Served {
    /// The URL of `path` (which starts with `/`) on this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// The body of a response, which must be 200.
    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        let address = self.origin.strip_prefix("http://").expect("plain HTTP");
        let mut stream = TcpStream::connect(address).expect("the server accepts connections");
        // HTTP/1.0: the server closes the connection after the body.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").expect("a request");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("a response");
        let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&response[..end]).into_owned();
        assert!(head.split(' ').nth(1) == Some("200"), "{path}: {head}");
        response.split_off(end + 4)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenuto"));
    // Its own runtime folder: tests in parallel do not meet on control sockets.
    command.env("XDG_RUNTIME_DIR", dir);
    command
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
