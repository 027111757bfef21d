//! Media that refer to other files and addresses, and media that are large only in number.

use crate::program::TestDir;
use crate::stage::{assert_unchanged, ffmpeg, holdings};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

/// The files of the folder that were opened, by name.
struct Opened {
    watch: OwnedFd,
}

impl Opened {
    fn in_room(dir: &TestDir) -> Self {
        let watch = inotify::init(CreateFlags::NONBLOCK).expect("inotify");
        let about = WatchFlags::OPEN | WatchFlags::ACCESS;
        inotify::add_watch(&watch, dir.path("."), about).expect("a watch");
        Self { watch }
    }

    /// The names of what was opened since the last call.
    fn names(&self) -> Vec<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.watch, &mut buffer);
        let mut names = Vec::new();
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW), "events are lost");
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
            names.extend(name);
        }
        names.sort();
        names.dedup();
        names
    }
}

#[test]
fn media_that_refer_elsewhere_open_no_other_file_and_no_connection() {
    let dir = TestDir::with_store();
    dir.film("secret.mkv");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("it is bound").port();
    let url = format!("http://127.0.0.1:{port}/secret.mkv");
    let secret = dir.path("secret.mkv").display().to_string();
    let mut files: Vec<(String, Vec<u8>)> = vec![
        ("external.mov".to_owned(), external_mov(&dir, &secret)),
        ("subtitles.avi".to_owned(), avi_with_subtitles(&playlist(&url))),
    ];
    let mut texts = vec![
        format!(
            "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n\
             m=video {port} RTP/AVP 96\na=rtpmap:96 H264/90000\n"
        ),
        format!("<asx version=\"3.0\"><entry><ref href=\"{url}\"/></entry></asx>\n"),
        "# VobSub index file, v7 (do not modify this line!)\nid: en, index: 0\n\
         timestamp: 00:00:00:000, filepos: 000000000\n"
            .to_owned(),
    ];
    for place in [&secret, &url] {
        texts.extend([
            playlist(place),
            format!("ffconcat version 1.0\nfile '{place}'\n"),
            format!(
                "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" \
                 type=\"static\" mediaPresentationDuration=\"PT2S\"><Period><AdaptationSet \
                 mimeType=\"video/mp4\"><Representation id=\"0\" bandwidth=\"1\">\
                 <BaseURL>{place}</BaseURL></Representation></AdaptationSet></Period></MPD>"
            ),
            format!("movie={place}"),
            format!("[playlist]\nFile1={place}\nNumberOfEntries=1\n"),
        ]);
    }
    // A demuxer is chosen by content and by extension.
    for (number, text) in texts.into_iter().enumerate() {
        for extension in ["m3u8", "ffconcat", "sdp", "mpd", "idx", "mp4", "mkv", "ts"] {
            files.push((format!("{number}.{extension}"), text.clone().into_bytes()));
        }
    }
    let before = holdings(&dir);
    let opened = Opened::in_room(&dir);
    for (name, bytes) in &files {
        dir.write(name, bytes);
        opened.names();
        let run = dir.run(&format!("ingest a.store {name}"));
        assert_eq!(run.code, Some(1), "{name} is not taken in: {}", run.out);
        assert!(run.err.contains("hint: "), "{name}: {}", run.err);
        let others = |other: &String| !other.starts_with("a.store") && other != name;
        let others: Vec<String> = opened.names().into_iter().filter(others).collect();
        // The directory of control sockets is looked at before a store is opened.
        assert!(others.iter().all(|other| other == "tenuto"), "{name}: {others:?}");
        assert!(listener.accept().is_err(), "{name} made a connection");
        std::fs::remove_file(dir.path(name)).expect("it was written");
    }
    assert_unchanged(&dir, &before, "after all of them");
    opened.names();
    std::fs::read(&secret).expect("it is there");
    assert_eq!(opened.names(), ["secret.mkv"], "an opened file is noticed");
}

fn playlist(place: &str) -> String {
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{place}\n#EXT-X-ENDLIST\n")
}

/// An AVI file whose only track is of subtitles, which are this text: FFmpeg looks for a demuxer
/// for them.
fn avi_with_subtitles(text: &str) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], content: &[u8]| {
        let length = u32::try_from(content.len()).expect("a small chunk").to_le_bytes();
        let padding = vec![0; content.len() % 2];
        [kind, &length[..], content, &padding].concat()
    };
    let mut header = vec![0; 56];
    header[24] = 1;
    let mut stream = vec![0; 56];
    stream[..4].copy_from_slice(b"txts");
    stream[20] = 1;
    stream[24] = 1;
    stream[32] = 1;
    let stream = [b"strl".to_vec(), chunk(b"strh", &stream), chunk(b"strf", &[])].concat();
    let header = [b"hdrl".to_vec(), chunk(b"avih", &header), chunk(b"LIST", &stream)].concat();
    let length = u32::try_from(text.len()).expect("a short text").to_le_bytes();
    let content = [b"GAB2\0\x02\0\x02\0\0\0\0\0\x04\0", &length[..], text.as_bytes()].concat();
    let packets = [b"movi".to_vec(), chunk(b"00tx", &content)].concat();
    let all = [b"AVI ".to_vec(), chunk(b"LIST", &header), chunk(b"LIST", &packets)].concat();
    chunk(b"RIFF", &all)
}

/// A QuickTime file whose data reference is a Macintosh alias of another file.
fn external_mov(dir: &TestDir, path: &str) -> Vec<u8> {
    let source = "-f lavfi -i testsrc2=s=64x64:r=25:d=1 -c:v mjpeg -pix_fmt yuvj420p";
    let bytes = std::fs::read(ffmpeg(dir, source, "own.mov")).expect("just made");
    let path = path.as_bytes();
    let mut alias = vec![0; 10];
    alias.extend([0; 28 + 12]);
    alias.push(10);
    alias.extend(b"secret.mkv");
    alias.resize(alias.len() + 53, 0);
    alias.extend([0; 16]);
    alias.extend([0, 1, 0, 1]);
    alias.extend([0; 16]);
    let length = u16::try_from(path.len()).expect("a short path");
    alias.extend([&[0, 2][..], &length.to_be_bytes(), path, &[0; 1][..path.len() % 2]].concat());
    alias.extend([0xff, 0xff, 0, 0]);
    alias.resize(alias.len().max(160), 0);
    let size = u32::try_from(12 + alias.len()).expect("a small box").to_be_bytes();
    let entry = [&size[..], b"alis\0\0\0\0", &alias].concat();
    let old = b"\0\0\0\x0curl \0\0\0\x01";
    let at = bytes.windows(old.len()).rposition(|it| it == old);
    let at = at.expect("a reference to the file itself");
    let grown = u32::try_from(entry.len() - old.len()).expect("a small box");
    let mut changed = bytes.clone();
    let (mut from, mut end) = (0, bytes.len());
    // The boxes around the entry grow with it; their content begins behind the header.
    while from + 8 <= end {
        let size = u32::from_be_bytes(*bytes[from..].first_chunk().expect("a header"));
        let next = from + usize::try_from(size).expect("a size");
        if !(from + 8..next).contains(&at) {
            from = next;
            continue;
        }
        changed[from..from + 4].copy_from_slice(&(size + grown).to_be_bytes());
        let is_list = &bytes[from + 4..from + 8] == b"dref";
        (from, end) = (from + if is_list { 16 } else { 8 }, next);
        if is_list {
            break;
        }
    }
    changed.splice(at..at + old.len(), entry);
    changed
}

#[test]
fn a_million_packets_take_a_bounded_memory() {
    let dir = TestDir::with_store();
    let small = "-f lavfi -i color=gray:s=2x2:r=1000 -pix_fmt gray -frames:v 10000 -c:v rawvideo";
    ffmpeg(&dir, small, "small.mov");
    let source = "-stream_loop 99 -i small.mov -c copy";
    ffmpeg(&dir, source, "packets.mov");
    let server = dir.serve("--memory 32MiB");
    let report = dir.json("ingest a.store packets.mov");
    let title = &report["files"][0]["title"];
    assert_eq!(title["duration"], 1000.0, "a thousand packets each second: {title}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    // Buffers, the program, and for each packet its entry in the index.
    let bound = (32 + 64) * 1024 + 1_000_000 * INDEX_BYTES / 1024;
    assert!(kib < bound, "{kib} KiB, at most {bound}");
    assert_eq!(server.stop(), Some(0));
}

/// Bytes in memory for each packet while its title is sealed: in the index and its coded form.
const INDEX_BYTES: u64 = 64;
