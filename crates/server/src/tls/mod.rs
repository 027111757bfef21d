//! TLS for viewers' connections: HTTPS, and RTSP over TLS. What is spoken inside it is others'.
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

mod sealed_buffers;
mod sockets;
mod stream;

pub(crate) use sealed_buffers::{PLAIN_BYTES, SealedBuffers};
pub(crate) use sockets::{ClientSockets, is_clear_text};

use crate::log::Log;
use http_service::{CertificateEvent, CertificateFiles, ServerCertificate, TlsFiles};
use rustls::ServerConfig as TlsConfig;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;
use units::Reason;
use units::show::iso_date;

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
    pub(crate) fn new(files: &TlsFiles, http2: bool, log: &Log) -> Result<Self, Reason> {
        let certificate = Arc::new(CertificateFiles::open(files, logged(log.clone()))?);
        let rtsp = certificate.config()?;
        let mut http = rtsp.clone();
        // In the order of preference. Where HTTP/2 is off, clients that speak it learn so here.
        let protocols = if http2 { &[HTTP2, HTTP11][..] } else { &[HTTP11] };
        http.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
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

/// The names of the protocols in handshakes (ALPN).
const HTTP2: &[u8] = b"h2";
const HTTP11: &[u8] = b"http/1.1";

/// What happens to the files, as lines of the log.
fn logged(log: Log) -> impl Fn(CertificateEvent<'_>) {
    move |event| {
        log.line(|| match event {
            CertificateEvent::Replaced { file, expires } => {
                let (file, expires) = (file.display().to_string(), iso_date(expires));
                json!({ "event": "certificate-replaced", "file": file, "expires": expires })
            }
            CertificateEvent::NotUsable { file, why } => {
                let (file, error) = (file.display().to_string(), why.to_string());
                json!({ "event": "certificate-not-usable", "file": file, "error": error })
            }
        });
    }
}
