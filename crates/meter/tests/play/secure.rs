//! The same viewers over TLS: requests, separate times, and certificates that are not trusted.

use super::test_server::{Reply, TestServer, media_mp4};
use super::{ViewerOutcome, options, play, verdicts};
use crate::secured::{Secured, ServerCertificate};
use meter::operations::Record;
use meter::viewers::count;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tenuto_client::tls::{Identity, Trust};
use tenuto_client::{PlayOptions, PlayReport};
use units::Hinted;

fn file(secured: &Secured) -> Trust {
    Trust::File(secured.authority().to_owned())
}

#[test]
fn films_are_played_over_tls() {
    let secured = Secured::new("played", ServerCertificate::Valid);
    let server = TestServer::open_secured(&secured, |_, _| None);
    let play =
        |path| play(&PlayOptions { trust: file(&secured), ..options(&server, path, 2) }).unwrap();
    let hls = play("/t/film/master.m3u8");
    assert_eq!(verdicts(&hls), [(ViewerOutcome::Admitted, "finished"); 2], "{hls:#?}");
    assert_eq!(hls.viewers[0].bytes, 2 * 30 + 5 * (1000 + 100));
    // Video and audio have their own connections.
    assert_eq!((hls.connect_ms.count, hls.handshake_ms.count), (4, 4));
    assert!(hls.handshake_ms.min > 0.0);
    assert_eq!(hls.first_byte_ms.count, 20);

    let mp4 = play("/t/film.mp4");
    assert_eq!(mp4.viewers[1].bytes, media_mp4().len() as u64);
    assert_eq!(play("/titles").parameters.titles, 2);
}

#[test]
fn a_closed_connection_is_opened_again_and_counted_separately() {
    let secured = Secured::new("closing", ServerCertificate::Valid);
    let server = TestServer::open_secured(&secured, |target, _| {
        target.ends_with("m4s?s=0").then(|| Reply::segment(1000).saying_close())
    });
    let mut log: Vec<Record> = Vec::new();
    let options =
        PlayOptions { trust: file(&secured), ..options(&server, "/t/film/master.m3u8", 1) };
    let counted = count(&options, &AtomicBool::new(false), &mut log, &mut |_| {}).unwrap();
    let report: &PlayReport = &counted.report;
    assert_eq!(verdicts(report), [(ViewerOutcome::Admitted, "finished")]);
    // One connection for each lane, and one more after each of its pieces but the last.
    assert_eq!((report.connect_ms.count, report.handshake_ms.count), (10, 10));
    let waited = log.iter().filter(|record| record.start > record.intended).count();
    assert!(waited >= 8, "those that had to wait for a connection: {waited}");
    let service = &counted.outcome.reads.service;
    assert!(service.quantile(0.5) <= counted.outcome.response.quantile(0.5));
}

#[test]
fn an_untrusted_server_is_named_with_the_reason() {
    let said = |certificate: ServerCertificate, trusted: bool| {
        let secured = Secured::new(&format!("{certificate:?}"), certificate);
        let server = TestServer::open_secured(&secured, |_, _| None);
        let trust = if trusted { file(&secured) } else { Trust::Anybody };
        // With a trusted server the title need not be played to its end.
        let duration = (!trusted).then_some(Duration::from_millis(300));
        let told = ["/t/film/master.m3u8", "/titles"].map(|path| {
            let options =
                PlayOptions { trust: trust.clone(), duration, ..options(&server, path, 1) };
            play(&options).map_or_else(|error| error.one_line(), |_| "played".to_owned())
        });
        assert_eq!(told[0].replace("/t/film/master.m3u8", "/titles"), told[1]);
        told[1].clone()
    };
    let cases = [
        (ServerCertificate::Valid, "played"),
        (
            ServerCertificate::OtherName,
            "its certificate is for films.example, not for 127.0.0.1; ask for it by",
        ),
        (ServerCertificate::Expired, "its certificate expired "),
        (ServerCertificate::TooEarly, "is this machine's clock right?"),
        (
            ServerCertificate::SelfSigned,
            "is signed by nobody who is trusted here (by itself, perhaps); name",
        ),
        (ServerCertificate::Authority, "is an authority's own"),
    ];
    for (certificate, wanted) in cases {
        let told = said(certificate, true);
        assert!(told.contains(wanted), "{certificate:?}: {told}");
        assert_eq!(said(certificate, false), "played", "{certificate:?}, believed");
    }
}

#[test]
fn a_server_without_tls_or_with_tls_only_is_named() {
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let urls = vec![format!("https://{}/film.m3u8", plain.local_addr().unwrap())];
    std::thread::spawn(move || {
        for mut stream in plain.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let to_plain = PlayOptions { urls, trust: Trust::Anybody, ..PlayOptions::default() };
    let error = play(&to_plain).unwrap_err().one_line();
    assert!(error.contains("does not speak TLS; is this an http:// address?"), "{error}");

    let secured = Secured::new("only", ServerCertificate::Valid);
    let server = TestServer::open_secured(&secured, |_, _| None);
    let urls = vec![server.url("/t/film/master.m3u8").replace("https:", "http:")];
    let patience = Duration::from_secs(5);
    let url = urls[0].clone();
    let error = play(&PlayOptions { urls, patience, ..PlayOptions::default() }).unwrap_err();
    assert!(error.to_string().contains(&url), "{error:?}");
}

#[test]
fn an_invalid_authority_is_reported_before_any_request() {
    let none = PathBuf::from("/no/such/ca.pem");
    let here = std::env::current_exe().unwrap().with_extension("d");
    for (path, wanted) in [(none, "No such file"), (here, "there is no certificate in it")] {
        let trust = Trust::File(path);
        let secured = Secured::new(wanted, ServerCertificate::Valid);
        let server = TestServer::open_secured(&secured, |_, _| None);
        let error = play(&PlayOptions { trust, ..options(&server, "/t/x.m3u8", 1) });
        let error = error.unwrap_err().one_line();
        assert!(error.contains(wanted), "{error}");
    }
}

fn client(secured: &Secured) -> Identity {
    let [certificates, key] = secured.client().clone();
    Identity { certificates, key }
}

#[test]
fn a_client_certificate_is_accepted_where_one_is_required() {
    let secured = Secured::asking("asking");
    let server = TestServer::open_secured(&secured, |_, _| None);
    let stranger = Secured::asking("stranger");
    let told = |identity: Option<Identity>| {
        ["/t/film/master.m3u8", "/titles"].map(|path| {
            let options = PlayOptions {
                trust: file(&secured),
                identity: identity.clone(),
                ..options(&server, path, 1)
            };
            match play(&options) {
                Ok(report) => report.viewers[0].stage.clone(),
                Err(error) => error.one_line(),
            }
        })
    };
    assert_eq!(told(Some(client(&secured))), ["finished"; 2]);
    for (identity, wanted) in [
        (None, "asks its clients for a certificate; show it yours with --cert-file"),
        (Some(client(&stranger)), "does not accept its client's certificate ("),
    ] {
        for told in told(identity) {
            assert!(told.contains(wanted), "{told}");
        }
    }
}

#[test]
fn an_invalid_certificate_or_key_is_reported_before_any_request() {
    let (secured, other) = (Secured::asking("own"), Secured::asking("other"));
    let server = TestServer::open_secured(&secured, |_, _| None);
    let [certificates, key] = secured.client().clone();
    let none = PathBuf::from("/no/such/file.pem");
    let locked = key.with_extension("locked");
    std::fs::write(
        &locked,
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    let cases = [
        (&none, &key, "No such file or directory (os error 2); --cert-file is"),
        (&key, &key, "there is no certificate in it; --cert-file is"),
        (&certificates, &none, "No such file or directory (os error 2); --key-file is"),
        (&certificates, &certificates, "there is no private key in it"),
        (&certificates, &locked, "the key is locked with a passphrase; unlock it"),
        (&certificates, &other.client()[1], "is not the key of the first certificate in"),
    ];
    for (certificates, key, wanted) in cases {
        let identity = Some(Identity { certificates: certificates.clone(), key: key.clone() });
        let trust = file(&secured);
        let options = PlayOptions { trust, identity, ..options(&server, "/t/film.mp4", 1) };
        let told = play(&options).unwrap_err().one_line();
        assert!(told.contains(wanted), "{told}");
    }
    assert!(server.asked().is_empty(), "{:?}", server.asked());
    std::fs::remove_file(locked).unwrap();
}
