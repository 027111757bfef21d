//! The trust in servers' certificates, and explanations of failed TLS handshakes.
//!
//! ```text
//!   Trust ─┬─ System   what this machine trusts: /etc/ssl/certs, or SSL_CERT_FILE, SSL_CERT_DIR
//!          ├─ File     these authorities, or this certificate, and no others
//!          └─ Anybody  any server (the connection is encrypted all the same)
//!              ▼
//!          ClientConfig: TLS 1.3 and 1.2, HTTP/1.1, a full handshake for every connection
//! ```
//!
//! No session is resumed: each viewer represents another client, which would not have the ticket of
//! the first. The client's own certificate is an [`Identity`]; all viewers of a run use the same.
//! Revocations are not checked.

mod identity;

pub use identity::Identity;
pub use identity::Proof;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Reason;

/// The servers that are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// Servers whose certificates this machine trusts.
    #[default]
    System,
    /// Servers whose certificates the PEM certificates in this file have signed.
    File(PathBuf),
    /// All servers.
    Anybody,
}

impl Trust {
    /// The authorities; none if all servers are trusted.
    pub fn roots(&self) -> Result<Vec<CertificateDer<'static>>, Reason> {
        match self {
            Self::Anybody => Ok(Vec::new()),
            Self::File(path) => certificates(path).map_err(|reason| {
                Reason::new(reason, "--ca-file is a file of certificates in PEM")
                    .about(path.display())
            }),
            Self::System => {
                let found = rustls_native_certs::load_native_certs();
                if !found.certs.is_empty() {
                    return Ok(found.certs);
                }
                let why = found.errors.first().map_or(String::new(), |why| format!(" ({why})"));
                Err(Reason::new(
                    format!("this machine trusts no certificate authority{why}"),
                    "install ca-certificates, or name one's certificate with --ca-file",
                ))
            }
        }
    }

    /// The configuration of connections, with the client's own certificate if it has one.
    pub fn config(&self, own: Option<Proof>) -> Result<Arc<ClientConfig>, Reason> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider knows TLS 1.2 and 1.3");
        let builder = if *self == Self::Anybody {
            let anybody = Arc::new(AcceptAnyCert(provider));
            builder.dangerous().with_custom_certificate_verifier(anybody)
        } else {
            let mut roots = RootCertStore::empty();
            // An authority's certificate that cannot be parsed is skipped: it could verify nothing.
            roots.add_parsable_certificates(self.roots()?);
            builder.with_root_certificates(roots)
        };
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(Proof { chain, key, .. }) => builder
                .with_client_auth_cert(chain, key)
                .expect("they were seen to belong together"),
        };
        // Servers that speak HTTP/2 as well learn here that this client does not.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

/// The certificates in a file; at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = certificates.map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(certificates)
}

/// The reason of a failed TLS handshake, and the remedy.
pub fn explain(error: &rustls::Error) -> Reason {
    use rustls::Error as Tls;
    let days = |from: UnixTime, to: UnixTime| to.as_secs().saturating_sub(from.as_secs()) / DAY;
    match error {
        // A bad signature means a server that uses a trusted name with another key.
        Tls::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => Reason::new(
            "its certificate is signed by nobody who is trusted here (by itself, perhaps)",
            "name the authority's certificate with --ca-file, or measure whoever answers with \
             --insecure",
        ),
        Tls::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }) => {
            Reason::new(
                format!("its certificate expired {} days ago", days(*not_after, *time)),
                "renew it there (or is this machine's clock wrong?), or measure all the same with \
                 --insecure",
            )
        }
        Tls::InvalidCertificate(CertificateError::NotValidYetContext { time, not_before }) => {
            Reason::new(
                format!("its certificate will be valid in {} days", days(*time, *not_before)),
                "is this machine's clock right? Or measure all the same with --insecure",
            )
        }
        Tls::InvalidCertificate(CertificateError::NotValidForNameContext {
            expected,
            presented,
        }) => Reason::new(
            format!("its certificate is for {}, not for {}", names(presented), expected.to_str()),
            "ask for it by a name that is in it, or measure whoever answers with --insecure",
        ),
        // The library reports this as text only.
        Tls::InvalidCertificate(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            Reason::new(
                "its certificate is an authority's own (CA:TRUE), which a server may not use",
                "make one that is signed by it, or measure whoever answers with --insecure",
            )
        }
        Tls::InvalidCertificate(other) => Reason::new(
            format!("its certificate cannot be accepted ({other})"),
            "have it made anew, or measure whoever answers with --insecure",
        ),
        Tls::InvalidMessage(_) => {
            Reason::new("what answers does not speak TLS", "is this an http:// address?")
        }
        Tls::AlertReceived(AlertDescription::CertificateRequired) => Reason::new(
            "the server asks its clients for a certificate",
            "show it yours with --cert-file and --key-file",
        ),
        Tls::AlertReceived(alert) if is_about_certificates(*alert) => Reason::new(
            format!("the server does not accept its client's certificate ({alert:?})"),
            "show it one that is valid and signed by an authority which it trusts, with \
             --cert-file and --key-file",
        ),
        Tls::AlertReceived(alert) => Reason::new(
            format!("the server broke off the TLS handshake ({alert:?})"),
            "it may know neither TLS 1.2 nor 1.3, or want a certificate of its clients \
             (--cert-file, --key-file)",
        ),
        other => format!("TLS: {other}").into(),
    }
}

fn is_about_certificates(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            // The signature does not match the authority's key.
            | Alert::DecryptError
    )
}

/// The names without the library's notation around each: `DnsName("films.example")`.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| {
        let inside = name.split_once('(').map_or(name.as_str(), |(_, inside)| inside);
        inside.trim_end_matches(')').trim_matches('"').to_owned()
    };
    match presented {
        [] => "nobody".to_owned(),
        some => some.iter().map(bare).collect::<Vec<_>>().join(", "),
    }
}

/// The explanation of a TLS failure behind an I/O error; `None` if it is not about TLS.
pub fn explain_io(error: &std::io::Error) -> Option<Reason> {
    error.get_ref()?.downcast_ref::<rustls::Error>().map(explain)
}

const DAY: u64 = 24 * 3600;

/// Accepts every certificate; only the possession of its key is verified.
#[derive(Debug)]
struct AcceptAnyCert(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCert {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
