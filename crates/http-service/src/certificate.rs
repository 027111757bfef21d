//! A server's certificate and key in two files, which may change while the server runs.
//!
//! ```text
//!   client hello ─▶ resolve ─▶ looked at within a second? ─yes─▶ the certificate in memory
//!                                 │ no                             ▲
//!                                 └▶ changed? ─▶ read ─▶ usable? ──┤ yes: replaced, told
//!                                                                  └ no: kept, told once
//! ```
//!
//! Established connections keep the certificate that they began with. Two files cannot be replaced
//! in one step; between the two, the key is not that of the certificate, and the old pair remains.

use crate::file_version::FileVersion;
use crate::secret_file::is_exposed;
use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use units::{Hinted, Reason, show};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The files of the certificate with which a server answers, in PEM. They are read again when they
/// change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by those that lead to an authority which viewers trust.
    pub certificate: PathBuf,
    /// The private key of the first certificate, not encrypted.
    pub key: PathBuf,
}

/// The certificate of the files as they are now, or as they last were when they could be used.
pub struct CertificateFiles {
    tell: Box<TellCertificate>,
    read: Mutex<ReadFiles>,
}

type TellCertificate = dyn Fn(CertificateEvent<'_>) + Send + Sync;

/// What has happened to the files while a server ran.
#[derive(Clone, Copy, Debug)]
pub enum CertificateEvent<'a> {
    /// The connections that come from now on get another certificate.
    Replaced {
        /// The file of the certificate.
        file: &'a Path,
        /// When it expires.
        expires: SystemTime,
    },
    /// The files have changed and cannot be used; the certificate before goes on.
    NotUsable {
        /// The file of the certificate.
        file: &'a Path,
        /// Why not, and what to do.
        why: &'a Reason,
    },
}

impl fmt::Debug for CertificateFiles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read.fmt(out)
    }
}

#[derive(Debug)]
struct ReadFiles {
    files: TlsFiles,
    certificate: ServerCertificate,
    // Of the files that were last tried, also where they could not be used.
    versions: FileVersions,
    looked: Instant,
}

/// A certificate with its chain and key, and when it expires, in seconds since 1970.
#[derive(Clone, Debug)]
pub struct ServerCertificate {
    key: Arc<CertifiedKey>,
    expiry: i64,
}

/// The versions of the certificate's file and of the key's; `None`: it cannot be looked at.
type FileVersions = [Option<FileVersion>; 2];

impl CertificateFiles {
    /// Reads a certificate and its key. `tell` is called while clients wait: it must be quick.
    ///
    /// # Errors
    /// A file that cannot be read or is not what it should be, a key of another certificate.
    pub fn open(
        files: &TlsFiles,
        tell: impl Fn(CertificateEvent<'_>) + Send + Sync + 'static,
    ) -> Result<Self, Reason> {
        let versions = versions(files);
        let certificate = files.read()?;
        let files = files.clone();
        let read = ReadFiles { files, certificate, versions, looked: Instant::now() };
        Ok(Self { tell: Box::new(tell), read: Mutex::new(read) })
    }

    /// TLS 1.2 and 1.3 of a server that has this certificate.
    ///
    /// # Errors
    /// A machine without random numbers.
    pub fn config(self: &Arc<Self>) -> Result<ServerConfig, Reason> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot use TLS: {error}"))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as _);
        // Tickets hold the session, so that the server keeps nothing for clients that have gone;
        // their key changes every six hours.
        config.ticketer =
            ring::Ticketer::new().map_err(|error| format!("cannot make a ticket key: {error}"))?;
        Ok(config)
    }

    /// Uses other files from now on, of which this is the certificate.
    pub fn replace(&self, files: &TlsFiles, certificate: ServerCertificate) {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        last.files = files.clone();
        // A change since `certificate` was read is seen at the next look.
        (last.versions, last.looked) = ([None, None], Instant::now());
        self.take(&mut last, certificate);
    }

    // Files that were written again with the same certificate replace nothing.
    fn take(&self, last: &mut ReadFiles, certificate: ServerCertificate) {
        let is_other = last.certificate.key.cert != certificate.key.cert;
        let expires = time(certificate.expiry);
        last.certificate = certificate;
        if is_other {
            let file = &last.files.certificate;
            (self.tell)(CertificateEvent::Replaced { file, expires });
        }
    }

    /// When the certificate expires, in seconds since 1970.
    pub fn expiry(&self) -> i64 {
        self.current().certificate.expiry
    }

    /// What an operator should know of the files, one line each.
    pub fn notes(&self, now: SystemTime) -> Vec<String> {
        let mut notes = Vec::new();
        let files = self.current().files.clone();
        let certificate = files.certificate.display();
        let left = self.expiry() - seconds(now);
        if left < 0 {
            notes.push(format!(
                "{certificate} has expired, and viewers will refuse it; renew it (the new file is \
                 read while the server runs)"
            ));
        } else if left < SOON {
            let length = show::length(Duration::from_secs(left.unsigned_abs()).as_secs_f64());
            notes.push(format!("{certificate} expires in {length}; renew it"));
        }
        if fs::metadata(&files.key).is_ok_and(|about| is_exposed(&about)) {
            let key = files.key.display();
            notes.push(format!("{key} can be read by every user of this machine; chmod 600 {key}"));
        }
        notes
    }

    /// The certificate as the files have it now. Looks at them at most once a second.
    fn current(&self) -> MutexGuard<'_, ReadFiles> {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if last.looked.elapsed() < LOOK {
            return last;
        }
        last.looked = Instant::now();
        let versions = versions(&last.files);
        if versions == last.versions {
            return last;
        }
        last.versions = versions;
        match last.files.read() {
            Ok(certificate) => self.take(&mut last, certificate),
            Err(why) => {
                let file = &last.files.certificate;
                (self.tell)(CertificateEvent::NotUsable { file, why: &why });
            }
        }
        last
    }
}

impl TlsFiles {
    /// TLS of an HTTP service with this certificate, which is read again when it changes. `say`
    /// takes what an operator should know, in sentences.
    ///
    /// # Errors
    /// As of [`read`](Self::read).
    pub fn http_config(
        &self,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Arc<ServerConfig>, Reason> {
        let say = Arc::new(say);
        let tell = Arc::clone(&say);
        let certificate = CertificateFiles::open(self, move |event| match event {
            CertificateEvent::Replaced { file, expires } => {
                let expires = show::iso_date(expires);
                tell(&format!("{} was replaced; it expires at {expires}", file.display()));
            }
            CertificateEvent::NotUsable { file, why } => tell(&format!(
                "{} has changed and cannot be used, so that the one before is kept: {why}",
                file.display()
            )),
        })?;
        let certificate = Arc::new(certificate);
        for note in certificate.notes(SystemTime::now()) {
            say(&note);
        }
        let mut config = certificate.config()?;
        // Clients that also speak HTTP/2 learn here that the service does not.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// The certificate in them.
    ///
    /// # Errors
    /// A file that cannot be read or is not what it should be, a key of another certificate.
    pub fn read(&self) -> Result<ServerCertificate, Reason> {
        let of_certificate = |why: String| {
            let hint = "--tls-certificate is a file in PEM: the server's certificate first, then those \
                        that lead to its authority";
            Reason::new(why, hint).about(self.certificate.display())
        };
        let of_key = |why: String| {
            let hint = "--tls-key is a file in PEM with the private key of the certificate, not \
                        encrypted";
            Reason::new(why, hint).about(self.key.display())
        };
        let chain = chain(&self.certificate).map_err(of_certificate)?;
        let first = chain.first().map_or(&[][..], AsRef::as_ref);
        let (_, parsed) = X509Certificate::from_der(first)
            .map_err(|_| of_certificate("its first certificate is damaged".to_owned()))?;
        let expiry = parsed.validity().not_after.timestamp();
        let key = key(&self.key).map_err(of_key)?;
        // A handshake with another key would fail with a message that names neither file.
        match CertifiedKey::from_der(chain, key, &ring::default_provider()) {
            Ok(key) => Ok(ServerCertificate { key: Arc::new(key), expiry }),
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                Err(of_key(format!(
                    "it is not the key of the first certificate in {}",
                    self.certificate.display()
                )))
            }
            Err(error) => Err(of_key(format!("it cannot be used ({error})"))),
        }
    }
}

impl ResolvesServerCert for CertificateFiles {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current().certificate.key))
    }
}

fn versions(files: &TlsFiles) -> FileVersions {
    [&files.certificate, &files.key].map(|path| FileVersion::of(path).ok())
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = fs::read(path).map_err(|error| error.reason().message)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.map_err(|error| error.to_string())?;
    if chain.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(chain)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = fs::read(path).map_err(|error| error.reason().message)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        PemError::NoItemsFound if String::from_utf8_lossy(&bytes).contains("ENCRYPTED") => {
            "the key is locked with a passphrase, which nobody types when a server starts; unlock \
             it into a file of its own with `openssl pkey -in LOCKED -out UNLOCKED`"
                .to_owned()
        }
        PemError::NoItemsFound => "there is no private key in it".to_owned(),
        other => other.to_string(),
    })
}

fn seconds(time: SystemTime) -> i64 {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// A number of seconds since 1970 as a time.
fn time(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// The time between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);
/// An expiry that is noted at a start: within a week.
const SOON: i64 = 7 * 24 * 3600;
