//! Services on loopback, asked as browsers and scrapers ask. Times are not tested.

use super::*;
use crate::TlsFiles;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;

/// A service that answers with what it was asked, in the clear or over TLS.
fn echo(open: &Arc<OpenConnections>, tls: Option<Arc<ServerConfig>>) -> HttpService {
    let setup = ServiceSetup {
        thread: "test",
        open: Arc::clone(open),
        largest_body: 4,
        fields_of_all: "X-All: yes\r\n",
        tls,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    HttpService::start(listener, setup, |request| {
        let HttpRequest { method, target, over_tls, client, .. } = request;
        let body = String::from_utf8_lossy(request.body);
        HttpResponse::with_body(
            200,
            "text/plain",
            format!("{method} {target} {over_tls} {client} {body}"),
        )
    })
    .unwrap()
}

fn several() -> Arc<OpenConnections> {
    Arc::new(OpenConnections::new(8, 8))
}

fn connect(service: &HttpService) -> TcpStream {
    let stream = TcpStream::connect(service.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// All that comes until the connection ends.
fn exchange(stream: &mut (impl Read + Write), request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn requests_on_one_connection_are_answered_in_turn() {
    let service = echo(&several(), None);
    let all = exchange(
        &mut connect(&service),
        "GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}\
         HEAD /c HTTP/1.1\r\n\r\nGET /d HTTP/1.1\r\nConnection: close\r\n\r\nGET /e HTTP/1.1\r\n\r\n",
    );
    let bodies: Vec<&str> = all.split("\r\n\r\n").collect();
    assert_eq!(all.matches("HTTP/1.1 200 OK").count(), 4, "{all}");
    assert_eq!(all.matches("X-All: yes").count(), 4, "{all}");
    assert_eq!(all.matches("Connection: close").count(), 1, "{all}");
    assert!(bodies[1].starts_with("GET /a false 127.0.0.1 HTTP/1.1 200"), "{all}");
    assert!(bodies[2].starts_with("POST /b false 127.0.0.1 {}HTTP/1.1 200"), "{all}");
    // The response to HEAD has the length of the body and no body.
    assert!(bodies[3].starts_with("HTTP/1.1 200") && bodies[2].contains("Length: "), "{all}");
    assert_eq!(bodies[4], "GET /d false 127.0.0.1 ", "{all}");
}

#[test]
fn too_many_connections_are_refused_until_one_ends() {
    let open = Arc::new(OpenConnections::new(1, 1));
    let service = echo(&open, None);
    let mut first = connect(&service);
    first.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    first.read_exact(&mut [0; 12]).unwrap();
    assert_eq!(open.count(), 1);
    let refused = exchange(&mut connect(&service), "");
    assert!(refused.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{refused}");
    assert!(refused.contains("too-many-connections"), "{refused}");
    drop(first);
    while open.count() > 0 {
        std::thread::yield_now();
    }
    // A client that has seen the end of its connection may open the next one at once.
    for _ in 0..50 {
        let again = exchange(&mut connect(&service), "GET / HTTP/1.0\r\n\r\n");
        assert!(again.starts_with("HTTP/1.1 200"), "{again}");
        assert_eq!(open.count(), 0);
    }
}

#[test]
fn what_a_response_holds_is_dropped_when_it_was_sent() {
    struct Permit(Arc<AtomicUsize>);
    impl Drop for Permit {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }
    let dropped = Arc::<AtomicUsize>::default();
    let given = Arc::clone(&dropped);
    let setup = ServiceSetup {
        thread: "test",
        open: several(),
        largest_body: 0,
        fields_of_all: "",
        tls: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let answer =
        move |_: &HttpRequest<'_>| HttpResponse::empty(204).holding(Permit(Arc::clone(&given)));
    let service = HttpService::start(listener, setup, answer).unwrap();
    for count in 1..=2 {
        exchange(&mut connect(&service), "GET / HTTP/1.0\r\n\r\n");
        assert_eq!(dropped.load(Ordering::Acquire), count);
    }
}

#[test]
fn a_service_that_has_stopped_accepts_nobody() {
    let service = echo(&several(), None);
    let (address, mut before) = (service.address(), connect(&service));
    before.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    before.read_exact(&mut [0; 12]).unwrap();
    drop(service);
    assert!(TcpStream::connect(address).is_err());
    // A connection that was there gets its last response.
    let last = exchange(&mut before, "GET / HTTP/1.1\r\n\r\n");
    assert!(last.contains("Connection: close"), "{last}");
}

/// A certificate for 127.0.0.1 in files, and a client that trusts it.
fn certified(name: &str) -> (TlsFiles, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let directory = std::env::temp_dir().join(format!("tenuto-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = |file: &str| -> PathBuf { directory.join(file) };
    let files = TlsFiles { certificate: path("cert.pem"), key: path("key.pem") };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    let pem = made.cert.pem();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (files, Arc::new(client))
}

#[test]
fn over_tls_the_same_is_said_and_clear_text_is_told_so() {
    let (files, client) = certified("http-service");
    let open = several();
    let service = echo(&open, Some(files.http_config(|_| {}).unwrap()));
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(client, name).unwrap();
    let mut secure = StreamOwned::new(connection, connect(&service));
    // The end of the connection is one of TLS: without it, this fails.
    let all = exchange(&mut secure, "GET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(all.ends_with("GET /a true 127.0.0.1 "), "{all}");
    let clear = exchange(&mut connect(&service), "GET /a HTTP/1.1\r\n\r\n");
    assert!(clear.starts_with("HTTP/1.1 400") && clear.contains("use https://"), "{clear}");
    std::fs::remove_dir_all(files.certificate.parent().unwrap()).unwrap();
}
