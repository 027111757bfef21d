//! Certificates for servers in tests, by an authority of the test, and clients that trust it.

use crate::client::Client;
use crate::fixture::TestServer;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use server::TlsFiles;
use std::io::BufReader;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An authority, and its certificate in a file.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    directory: PathBuf,
    pub(crate) file: PathBuf,
}

/// A client's end of TLS.
pub(crate) type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

impl Authority {
    pub(crate) fn new(directory: &Path) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let certificate = params.self_signed(&key).unwrap();
        let file = directory.join("authority.pem");
        std::fs::write(&file, certificate.pem()).unwrap();
        let certificate = certificate.der().clone();
        Self { issuer: Issuer::new(params, key), certificate, directory: directory.into(), file }
    }

    /// A certificate for 127.0.0.1 that is valid for so many days, and its key, in files of this
    /// name.
    pub(crate) fn identity(&self, name: &str, days: u64) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.not_after = (SystemTime::now() + Duration::from_secs(days * 86_400)).into();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let file = |kind: &str| self.directory.join(format!("{name}-{kind}.pem"));
        let files = TlsFiles { certificate: file("certificate"), key: file("key") };
        std::fs::write(&files.certificate, signed.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    /// A client's configuration that trusts this authority alone.
    pub(crate) fn config(&self, version: &'static SupportedProtocolVersion) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }

    /// A client's configuration that asks for HTTP/2 alone.
    pub(crate) fn http2_config(&self) -> ClientConfig {
        let mut config = self.config(&TLS13);
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }

    /// A client that trusts this authority.
    pub(crate) fn client(&self, server: &TestServer) -> TlsClient {
        connect(server.server.address(), &Arc::new(self.config(&TLS13)))
    }
}

/// A client with this configuration; the handshake is made with its first bytes.
pub(crate) fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> TlsClient {
    let name = ServerName::from(address.ip());
    let session = ClientConnection::new(Arc::clone(config), name).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    Client { stream: BufReader::new(StreamOwned::new(session, socket)) }
}
