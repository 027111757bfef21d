//! The server over TLS: the same bytes as in the clear, and what peers get that speak TLS slowly,
//! badly or not at all.

use crate::certificates::{Authority, TlsClient, connect};
use crate::client::{Client, playlist_uris};
use crate::fixture::{TestServer, TestStore, eventually, media};
use rustls::version::{TLS12, TLS13};
use server::access::new_key_file;
use server::{Server, TlsFiles};
use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// A store with these files, an authority, and a server with a certificate of it.
pub(crate) fn secured(
    files: &[&Path],
    change: impl FnOnce(&mut server::ServerConfig),
) -> (TestStore, Authority, TestServer) {
    let store = TestStore::with(files);
    let authority = Authority::new(&store.directory);
    let serving = store.serve_with(|config| {
        config.tls = Some(authority.identity("server", 30));
        change(config);
    });
    (store, authority, serving)
}

/// Everything that a viewer of HLS, DASH and MP4 fetches, by its path. Tokens are taken out,
/// because each session has its own.
fn everything<S: Read + Write>(client: &mut Client<S>) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let master = "/t/film/master.m3u8";
    let text = client.get(master).text().to_owned();
    let token = text.split("?s=").nth(1).expect("a token")[..32].to_owned();
    let plain = |text: &str| text.replace(&token, "TOKEN");
    for list in playlist_uris(&text, master) {
        let playlist = client.get(&list).text().to_owned();
        for uri in playlist_uris(&playlist, &list) {
            let part = client.get(&uri);
            assert!(part.status == 200 && part.whole, "{uri}: {part:?}");
            all.push((plain(&uri), part.body));
        }
        all.push((plain(&list), plain(&playlist).into_bytes()));
    }
    all.push((master.to_owned(), plain(&text).into_bytes()));
    let manifest = client.get("/t/film/manifest.mpd").text().to_owned();
    let token = manifest.split("?s=").nth(1).expect("a token")[..32].to_owned();
    all.push(("manifest.mpd".to_owned(), manifest.replace(&token, "TOKEN").into_bytes()));
    let part = client.get(&format!("/t/film/0/1.m4s?s={token}"));
    all.push(("a segment of DASH".to_owned(), part.body));
    for title in ["film", "large"] {
        let (location, file) = client.get_following(&format!("/t/{title}.mp4"));
        assert!(file.status == 200 && file.whole, "{file:?}");
        for range in ["bytes=0-0", "bytes=1000-99999", "bytes=-5", "bytes=70000-"] {
            let part = client.request("GET", &location, &[("Range", range)]);
            assert!(part.status == 206 && part.whole, "{title} {range}: {part:?}");
            all.push((format!("{title} {range}"), part.body));
        }
        all.push((title.to_owned(), file.body));
    }
    all
}

#[test]
fn whole_titles_are_byte_for_byte_those_in_the_clear() {
    let files = [media().film.as_path(), &media().large];
    let (store, authority, serving) =
        secured(&files, |config| config.memory = Some(ByteCount::mib(512)));
    let of_12 =
        everything(&mut connect(serving.server.address(), &Arc::new(authority.config(&TLS12))));
    let of_13 = everything(&mut authority.client(&serving));
    drop(serving);
    let serving = store.serve_with(|config| config.memory = Some(ByteCount::mib(512)));
    let clear = everything(&mut serving.client());
    assert!(clear.iter().map(|(_, body)| body.len()).sum::<usize>() > 80_000_000);
    for (name, secure) in [("1.2", of_12), ("1.3", of_13)] {
        assert_eq!(secure.len(), clear.len());
        for ((path, body), (wanted_path, wanted)) in secure.iter().zip(&clear) {
            assert_eq!(path, wanted_path);
            assert!(body == wanted, "TLS {name}: {path} differs");
        }
    }
}

#[test]
fn requests_are_pipelined_and_refusals_are_told() {
    let (_store, authority, serving) =
        secured(&[&media().film], |config| config.network = Some(BitRate(100_000)));
    let mut client = authority.client(&serving);
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let several = ["/healthz", "/t/film/master.m3u8", "/titles"].map(request).concat();
    client.send(several.as_bytes());
    let answers: Vec<_> =
        std::iter::repeat_with(|| client.read_response(true).unwrap()).take(3).collect();
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 503, 200]);
    assert_eq!(answers[1].json()["resource"], "network");
    // The end of the connection is said inside TLS: it is no truncation.
    client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.read_response(true).unwrap().status, 200);
    assert_eq!(client.stream.read(&mut [0; 1]).expect("an end that was announced"), 0);
}

#[test]
fn a_client_above_its_limit_is_told_so_over_tls() {
    let (_store, authority, serving) =
        secured(&[], |config| config.max_client_connections = Some(1));
    let mut first = authority.client(&serving);
    assert_eq!(first.get("/healthz").status, 200);
    let mut second = authority.client(&serving);
    let response = second.get("/healthz");
    assert_eq!((response.status, &*response.error()), (429, "too-many-client-connections"));
}

#[test]
fn http_11_is_agreed_on_and_sessions_are_resumed() {
    for version in [&TLS12, &TLS13] {
        let (_store, authority, serving) = secured(&[], |_| {});
        let config = Arc::new(authority.config(version));
        for connection in 0..3 {
            let mut client = connect(serving.server.address(), &config);
            assert_eq!(client.get("/healthz").status, 200);
            let session = &client.stream.get_ref().conn;
            assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
            assert_eq!(session.protocol_version(), Some(version.version), "{connection}");
        }
        let metrics = connect(serving.server.address(), &config).get("/metrics").text().to_owned();
        for line in [
            "tenuto_tls_handshakes_total{kind=\"full\"} 1\n",
            "tenuto_tls_handshakes_total{kind=\"resumed\"} 3\n",
            "tenuto_tls_handshake_failures_total 0\n",
        ] {
            assert!(metrics.contains(line), "{version:?}: {metrics}");
        }
    }
}

#[test]
fn a_slow_handshake_is_ended_and_garbage_and_plain_http_are_answered() {
    let (store, authority, serving) = secured(&[], |config| {
        config.head_timeout = Duration::from_millis(300);
        config.access_log = Some(config.stores[0].with_file_name("access.log"));
    });
    let address = serving.server.address();
    // The beginning of a client hello, and nothing more; nothing at all.
    for beginning in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"\x16", b""] {
        let mut slow = TcpStream::connect(address).unwrap();
        slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        slow.write_all(beginning).unwrap();
        assert!(matches!(slow.read(&mut [0; 1]), Ok(0) | Err(_)), "it is closed");
    }
    // A byte from time to time does not extend the limit. The record would end after 25 s.
    let mut drip = TcpStream::connect(address).unwrap();
    drip.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let bytes = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc".iter().chain(&[0; 490]);
    let is_closed = bytes.into_iter().any(|byte| {
        let _ = drip.write_all(&[*byte]);
        match drip.read(&mut [0; 1]) {
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
            Ok(count) => count == 0,
        }
    });
    assert!(is_closed);
    for garbage in [&b"\x80\x2e\x01\x00\x02"[..], &[0; 300], b"\x16\x03\x01\x00\x02xy", &[255; 9]] {
        let mut peer = TcpStream::connect(address).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        peer.write_all(garbage).unwrap();
        let mut answer = Vec::new();
        let _ = peer.read_to_end(&mut answer);
        // An alert, where the peer could still read it.
        assert!(answer.first().is_none_or(|kind| *kind == 21), "{answer:?}");
    }
    for request in ["GET /titles HTTP/1.1\r\nHost: a\r\n\r\n", "G"] {
        let mut clear = serving.client();
        clear.send(request.as_bytes());
        let response = clear.read_response(true).expect("an answer in the clear");
        assert_eq!((response.status, &*response.error()), (400, "https-required"), "{request}");
        assert!(clear.read_response(true).is_none(), "the connection ends");
    }
    assert_eq!(authority.client(&serving).get("/healthz").status, 200);
    let counted = authority.client(&serving).get("/metrics").text().to_owned();
    assert!(!counted.contains("tenuto_tls_handshake_failures_total 0\n"), "{counted}");
    drop(serving);
    let log = std::fs::read_to_string(store.directory.join("access.log")).unwrap();
    assert!(log.contains("\"event\":\"tls-handshake-failed\""), "{log}");
}

/// When the server says that its certificate expires.
fn expiry(client: &mut TlsClient) -> f64 {
    let metrics = client.get("/metrics").text().to_owned();
    let name = "tenuto_tls_certificate_expiry_timestamp_seconds ";
    metrics.lines().find_map(|line| line.strip_prefix(name)).expect(name).parse().unwrap()
}

#[test]
fn the_certificate_is_replaced_while_viewers_play_and_a_bad_one_is_not_used() {
    let (store, authority, serving) = secured(&[&media().large], |config| {
        config.memory = Some(ByteCount::mib(512));
        config.access_log = Some(config.stores[0].with_file_name("access.log"));
    });
    let mut viewer = authority.client(&serving);
    let path = viewer.get("/t/large.mp4").field("location").unwrap().to_owned();
    viewer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    assert!(!viewer.stream.fill_buf().unwrap().is_empty());
    let first = expiry(&mut authority.client(&serving));
    let (next, used) = (authority.identity("next", 90), "server");
    let presented = || {
        let mut client = authority.client(&serving);
        assert_eq!(client.get("/healthz").status, 200);
        let session = &client.stream.get_ref().conn;
        session.peer_certificates().unwrap()[0].to_vec()
    };
    let old = presented();
    let file = |kind: &str| store.directory.join(format!("{used}-{kind}.pem"));
    // In two steps, as files are replaced: in between, the key is that of another certificate.
    std::fs::rename(&next.certificate, file("certificate")).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(presented(), old);
    std::fs::rename(&next.key, file("key")).unwrap();
    eventually("the new certificate is used", || presented() != old);
    let new = presented();
    let days = (expiry(&mut authority.client(&serving)) - first) / 86_400.0;
    assert!((days - 60.0).abs() < 0.01, "{days}");
    std::fs::write(file("certificate"), "no certificate").unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(presented(), new);
    assert_eq!(presented(), new);
    let response = viewer.read_response(true).unwrap();
    assert!(response.status == 200 && response.whole, "the viewer goes on: {response:?}");
    assert_eq!(viewer.get("/healthz").status, 200);
    drop(serving);
    let log = std::fs::read_to_string(store.directory.join("access.log")).unwrap();
    assert!(log.contains("\"event\":\"certificate-replaced\""), "{log}");
    // Once for the pair in between, once for the bad file.
    assert_eq!(log.matches("\"event\":\"certificate-not-usable\"").count(), 2, "{log}");
}

#[test]
fn a_reload_takes_the_certificate_of_other_files() {
    let (store, authority, serving) = secured(&[], |_| {});
    let first = expiry(&mut authority.client(&serving));
    let tls = Some(authority.identity("other", 90));
    let config = server::ServerConfig { tls, ..store.config() };
    serving.server.reads_again_from(move || Ok(config.clone()));
    assert_eq!(serving.server.reload().unwrap().changed, ["tls-certificate", "tls-key"]);
    let days = (expiry(&mut authority.client(&serving)) - first) / 86_400.0;
    assert!((days - 60.0).abs() < 0.01, "{days}");
}

#[test]
fn files_that_cannot_be_used_are_refused_at_the_start() {
    let store = TestStore::with(&[]);
    let authority = Authority::new(&store.directory);
    let (one, other) = (authority.identity("one", 30), authority.identity("other", 30));
    let file = |name: &str, text: &str| {
        let path = store.directory.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let empty = file("empty.pem", "");
    let damaged =
        file("damaged.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let locked = file(
        "locked.pem",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let none = store.directory.join("none.pem");
    for (certificate, key, what) in [
        (&none, &one.key, "none.pem: no such file"),
        (&one.certificate, &none, "none.pem: no such file"),
        (&empty, &one.key, "there is no certificate in it"),
        (&damaged, &one.key, "damaged.pem: its first certificate is damaged"),
        (&one.key, &one.key, "there is no certificate in it"),
        (&one.certificate, &one.certificate, "there is no private key in it"),
        (&one.certificate, &locked, "locked with a passphrase"),
        (&one.certificate, &other.key, "it is not the key of the first certificate in"),
    ] {
        let mut config = store.config();
        config.tls = Some(TlsFiles { certificate: certificate.clone(), key: key.clone() });
        let reason = Server::start(config).unwrap_err();
        assert!(reason.message.to_lowercase().contains(what), "{reason:?}");
        assert!(reason.hint.is_some_and(|hint| hint.contains("--tls-")), "{what}");
    }
}

#[test]
fn a_certificate_near_its_end_and_an_open_key_are_noted() {
    let (_store, _authority, serving) = secured(&[], |config| {
        let files = config.tls.as_ref().unwrap();
        let authority = Authority::new(files.key.parent().unwrap());
        authority.identity("server", 2);
    });
    let notes = serving.server.notes().join("\n");
    assert!(notes.contains("server-certificate.pem expires in"), "{notes}");
    assert!(notes.contains("server-key.pem can be read by every user"), "{notes}");
}

#[test]
fn a_public_address_needs_tls_and_tokens_or_the_word() {
    let store = TestStore::with(&[]);
    let authority = Authority::new(&store.directory);
    let keys = store.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let start = |tls: bool, tokens: bool, insecure: bool| {
        let mut config = store.config();
        config.listen = "0.0.0.0:0".parse().unwrap();
        config.tls = tls.then(|| authority.identity("server", 30));
        config.tokens = tokens.then(|| keys.clone());
        config.insecure = insecure;
        Server::start(config).map(drop)
    };
    for (tls, tokens, missing) in [
        (false, false, "--tls-certificate CERT.pem --tls-key KEY.pem --tokens KEYS"),
        (true, false, "add --tokens KEYS"),
        (false, true, "add --tls-certificate CERT.pem --tls-key KEY.pem;"),
    ] {
        let hint = start(tls, tokens, false).unwrap_err().hint.unwrap();
        assert!(hint.contains(missing) && hint.contains("--insecure"), "{hint}");
        start(tls, tokens, true).unwrap();
    }
    start(true, true, false).unwrap();
}

fn succeeds(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.is_empty(), "{command:?}: {text}");
    output.stdout
}

#[test]
fn curl_and_ffmpeg_fetch_and_play_over_tls() {
    let (_store, authority, serving) = secured(&[&media().film], |config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
    });
    let url = |path: &str| format!("https://{}{path}", serving.server.address());
    let ca = authority.file.to_str().unwrap();
    for options in [&["--tlsv1.3"][..], &["--tls-max", "1.2"], &["--http2"]] {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--location", "--cacert", ca]);
        let fetched = succeeds(curl.args(options).arg(url("/t/film.mp4")));
        assert!(fetched.len() > 500_000 && fetched[4..8] == *b"ftyp", "{options:?}");
    }
    let play = |options: &[&str], address: &str| {
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-nostdin", "-v", "error"]).args(options).args(["-i", address]);
        // The first: FFmpeg takes the trick mode set of DASH for another.
        let frames = ["-map", "0:v:0", "-c", "copy", "-f", "framecrc", "-"];
        String::from_utf8(succeeds(ffmpeg.args(frames))).unwrap()
    };
    for path in ["/t/film/master.m3u8", "/t/film/manifest.mpd", "/t/film.mp4"] {
        let played = play(&["-tls_verify", "1", "-ca_file", ca], &url(path));
        let frames = played.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(frames, 150, "{path}: {played}");
    }
    let rtsp = serving.server.rtsp_address().unwrap();
    let played = play(&["-rtsp_transport", "tcp"], &format!("rtsps://{rtsp}/t/film"));
    let frames = played.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(frames, 150, "{played}");
}
