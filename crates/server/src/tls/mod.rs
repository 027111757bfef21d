//! TLS for viewers' connections: HTTPS, and RTSP over TLS.
//!
//! ```text
//!   HTTP or RTSP thread
//!     │ send(slices, tag)   ▲ Received(plain bytes), Sent(tag)
//!   ┌─▼─────────────────────┴──┐
//!   │ ClientSockets            │  without TLS: calls and events are passed on
//!   │   └ TlsStream of each    │  slices ─▶ records, at most 128 KiB ahead of the kernel
//!   └─┬─────────────────────▲──┘  records ─▶ plain bytes
//!     │ send(records)       │ Received(records), Sent
//!   device::sockets::Sockets
//! ```
//!
//! The layer has the calls and events of the socket loop below it, so HTTP and RTSP do not differ
//! over TLS. Handshakes are made inside it: the thread above sees a connection that is accepted and
//! has sent nothing yet, and its limits for such a connection (time, number, number for each
//! client) are those of a handshake.
//!
//! Encryption copies, so memory is bounded here: slices stay what they are until the kernel has
//! taken most of the records before them. The session cipher is rustls's (TLS 1.2 and 1.3, of
//! `ring`); TLS in the kernel is not used.

mod certificate;
mod sealed_buffers;
mod sockets;
mod stream;

pub(crate) use sockets::{ClientSockets, is_clear_text};

use crate::log::Log;
use certificate::{CertificateFiles, ServerCertificate};
use rustls::ServerConfig as TlsConfig;
use rustls::crypto::ring;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;
use units::Reason;

/// The files of the certificate with which a server answers, in PEM. They are read again when they
/// change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by those that lead to an authority which viewers trust.
    pub certificate: PathBuf,
    /// The private key of the first certificate, not encrypted.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Whether a server could start with them.
    pub(crate) fn check(&self) -> Result<(), Reason> {
        self.read().map(|_| ())
    }

    /// The certificate in them, for [`ServerTls::replace`].
    pub(crate) fn read(&self) -> Result<ServerCertificate, Reason> {
        certificate::read(self)
    }
}

/// TLS as all threads of a server use it.
#[derive(Debug)]
pub(crate) struct ServerTls {
    certificate: Arc<CertificateFiles>,
    http: Arc<TlsConfig>,
    rtsp: Arc<TlsConfig>,
    pub(crate) counters: TlsCounters,
    log: Log,
}

/// Handshakes by their outcome.
#[derive(Debug, Default)]
pub(crate) struct TlsCounters {
    pub(crate) full: AtomicU64,
    pub(crate) resumed: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// What is spoken inside TLS, which decides what is agreed on in a handshake (ALPN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsProtocol {
    Http,
    Rtsp,
}

impl ServerTls {
    /// Reads the certificate and its key.
    pub(crate) fn new(files: &TlsFiles, log: &Log) -> Result<Self, Reason> {
        let certificate = Arc::new(CertificateFiles::open(files, log.clone())?);
        let mut rtsp = TlsConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot use TLS: {error}"))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificate) as _);
        // Tickets hold the session, so that the server keeps nothing for clients that have gone;
        // their key changes every six hours.
        rtsp.ticketer =
            ring::Ticketer::new().map_err(|error| format!("cannot make a ticket key: {error}"))?;
        let mut http = rtsp.clone();
        // Clients that also speak HTTP/2 learn here that this server does not.
        http.alpn_protocols = vec![b"http/1.1".to_vec()];
        let (http, rtsp) = (Arc::new(http), Arc::new(rtsp));
        Ok(Self { certificate, http, rtsp, counters: TlsCounters::default(), log: log.clone() })
    }

    /// Uses other files for the connections that come from now on.
    pub(crate) fn replace(&self, files: &TlsFiles, certificate: ServerCertificate) {
        self.certificate.replace(files, certificate);
    }

    /// When the certificate expires, in seconds since 1970.
    pub(crate) fn expiry(&self) -> i64 {
        self.certificate.expiry()
    }

    /// What an operator should know of the files at a start, one line each.
    pub(crate) fn notes(&self, now: SystemTime) -> Vec<String> {
        self.certificate.notes(now)
    }

    fn config(&self, protocol: TlsProtocol) -> Arc<TlsConfig> {
        Arc::clone(match protocol {
            TlsProtocol::Http => &self.http,
            TlsProtocol::Rtsp => &self.rtsp,
        })
    }
}
