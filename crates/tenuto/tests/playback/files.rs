//! Making and reading films in the folder of a test.

use crate::program::{Served, TestDir};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Options of the server in tests of what is played, not of who is admitted: on a machine that is
/// busy with other tests a tiny store's disk seems a hundred times slower than it was measured.
pub(crate) const ADMITS_ALL: &str = "--admission none";

impl TestDir {
    /// The path of `name` as text.
    pub(crate) fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Makes a film with FFmpeg and gives its path.
    pub(crate) fn encode(&self, name: &str, args: &[&str]) -> String {
        self.try_encode(name, args).unwrap_or_else(|said| panic!("making {name}: {said}"))
    }

    fn try_encode(&self, name: &str, args: &[&str]) -> Result<String, String> {
        testkit::clips::make(&self.path(name), args).map(|()| self.at(name))
    }

    /// FFmpeg's own remux of a file, into a form that Tenuto makes of it: HLS, DASH, one file.
    pub(crate) fn remux(&self, source: &str, form: &str) -> String {
        let folder = format!("{source}.{form}");
        std::fs::create_dir_all(&folder).expect("a folder within the test's");
        let name = |file: &str| {
            let folder = Path::new(&folder).file_name().expect("it has one");
            format!("{}/{file}", folder.display())
        };
        let copy = ["-i", source, "-map", "0:v?", "-map", "0:a?", "-c", "copy", "-strict", "-2"];
        if form == "hls" {
            let words = "-f hls -hls_segment_type fmp4 -hls_time 4 -hls_playlist_type vod";
            let args: Vec<&str> = copy.into_iter().chain(words.split(' ')).collect();
            return self.encode(&name("own.m3u8"), &args);
        }
        if form == "dash" {
            let words = "-f dash -seg_duration 1";
            let args: Vec<&str> = copy.into_iter().chain(words.split(' ')).collect();
            return self.encode(&name("own.mpd"), &args);
        }
        // QuickTime holds all that MP4 does not, and the other way round.
        let mp4 = ["-f", "mp4"];
        let args: Vec<&str> = copy.into_iter().chain(mp4).collect();
        let made = self.try_encode(&name("own.mp4"), &args);
        made.unwrap_or_else(|_| self.encode(&name("own.mov"), &copy))
    }

    /// Takes a film into the store under this title.
    #[track_caller]
    pub(crate) fn ingest(&self, path: &str, title: &str) {
        self.tenuto(&["ingest", "a.store", path, "--title", title]);
    }

    /// Exports a title and gives the path of the file.
    #[track_caller]
    pub(crate) fn export(&self, title: &str) -> String {
        let out = self.at(&format!("{title}.out.mov"));
        self.tenuto(&["export", "a.store", title, &out]);
        out
    }

    /// Runs `tenuto`, which must succeed, and gives its standard output.
    #[track_caller]
    pub(crate) fn tenuto(&self, words: &[&str]) -> String {
        let run = self.run_words(words);
        assert_eq!(run.code, Some(0), "tenuto {}: {}", words.join(" "), run.err);
        run.out
    }
}

impl Served {
    /// The URL of `path` (which starts with `/`) on this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// The body of a response, which must be 200.
    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        self.find(path).unwrap_or_else(|response| panic!("{path}: {response}"))
    }

    /// The body of a response of 200, or all of another. Where the server says when to ask again,
    /// as on a machine that is busy with other tests, it is asked again.
    pub(crate) fn find(&self, path: &str) -> Result<Vec<u8>, String> {
        let mut found = self.request(path);
        for _ in 0..10 {
            match &found {
                Err(response) if response.contains("\r\nRetry-After: ") => {
                    std::thread::sleep(Duration::from_secs(1));
                    found = self.request(path);
                }
                _ => break,
            }
        }
        found
    }

    /// The body of a response of 200, or all of another, asked for once.
    pub(crate) fn request(&self, path: &str) -> Result<Vec<u8>, String> {
        let address = self.origin.strip_prefix("http://").expect("plain HTTP");
        let mut stream = TcpStream::connect(address).expect("the server accepts connections");
        // HTTP/1.0: the server closes the connection after the body.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").expect("a request");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("a response");
        let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&response[..end]).into_owned();
        if head.split(' ').nth(1) != Some("200") {
            return Err(head + &String::from_utf8_lossy(&response[end..]));
        }
        Ok(response.split_off(end + 4))
    }
}
