//! The server's end of TLS for tests: certificates of every kind, and sockets that use them.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The certificate that a server presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerCertificate {
    /// This address, signed by the authority.
    Valid,
    /// Another name, signed by the authority.
    OtherName,
    /// This address, in the past.
    Expired,
    /// This address, in the future.
    TooEarly,
    /// This address, signed by itself.
    SelfSigned,
    /// This address, as an authority of its own (what `openssl req -x509` makes).
    Authority,
}

/// A server's identity, the authority in a file, and a client's certificate with its key.
pub(crate) struct Secured {
    pub(crate) config: Arc<ServerConfig>,
    authority: PathBuf,
    client: [PathBuf; 2],
}

impl Secured {
    /// Makes an identity. `name` is that of the test, after which the authority's file is named.
    pub(crate) fn new(name: &str, certificate: ServerCertificate) -> Self {
        Self::made(name, certificate, false)
    }

    /// A valid server that accepts only clients with a certificate of its authority.
    pub(crate) fn asking(name: &str) -> Self {
        Self::made(name, ServerCertificate::Valid, true)
    }

    fn made(name: &str, certificate: ServerCertificate, asks: bool) -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "authority");
        let authority = ca.self_signed(&ca_key).unwrap();
        let file = |what: &str| {
            let file = format!("tenuto-{what}-{}-{name}.pem", std::process::id());
            std::env::temp_dir().join(file)
        };
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        std::fs::write(file("ca"), authority.pem()).unwrap();
        let issuer = Issuer::new(ca, ca_key);
        let client = [file("client"), file("key")];
        let client_key = KeyPair::generate().unwrap();
        let viewer = CertificateParams::new(vec!["viewer.example".to_owned()]).unwrap();
        let viewer = viewer.signed_by(&client_key, &issuer).unwrap();
        std::fs::write(&client[0], viewer.pem()).unwrap();
        std::fs::write(&client[1], client_key.serialize_pem()).unwrap();

        let host =
            if certificate == ServerCertificate::OtherName { "films.example" } else { "127.0.0.1" };
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        match certificate {
            ServerCertificate::Expired => params.not_after = date_time_ymd(2020, 1, 1),
            ServerCertificate::TooEarly => params.not_before = date_time_ymd(2500, 1, 1),
            ServerCertificate::Authority => {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            }
            ServerCertificate::Valid
            | ServerCertificate::OtherName
            | ServerCertificate::SelfSigned => {}
        }
        let key = KeyPair::generate().unwrap();
        let signed = match certificate {
            ServerCertificate::SelfSigned | ServerCertificate::Authority => {
                params.self_signed(&key).unwrap()
            }
            _ => params.signed_by(&key, &issuer).unwrap(),
        };
        if certificate == ServerCertificate::Authority {
            std::fs::write(file("ca"), signed.pem()).unwrap();
        }
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(ring::default_provider());
        let asked = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match asks {
            true => builder.with_client_cert_verifier(asked.build().unwrap()),
            false => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(vec![signed.der().clone()], key.into()).unwrap();
        Self { config: Arc::new(config), authority: file("ca"), client }
    }

    /// A client's certificate from the authority, and its key.
    pub(crate) fn client(&self) -> &[PathBuf; 2] {
        &self.client
    }

    /// The authority's certificate.
    pub(crate) fn authority(&self) -> &Path {
        &self.authority
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        for file in self.client.iter().chain([&self.authority]) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// The server's end of `socket`; the handshake is made with the first bytes.
pub(crate) fn accept(
    config: &Arc<ServerConfig>,
    socket: TcpStream,
) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), socket)
}

/// Ends a connection so that the peer can read the last bytes: closing a socket with unread data
/// would reset the connection and discard them.
pub(crate) fn linger(stream: &StreamOwned<ServerConnection, TcpStream>) {
    let mut socket = &stream.sock;
    let _ = socket.shutdown(Shutdown::Write);
    let _ = socket.set_read_timeout(Some(Duration::from_secs(10)));
    let _ = std::io::copy(&mut socket, &mut std::io::sink());
}
