//! The server's certificate and key in two files, which may change while the server runs.
//!
//! ```text
//!   client hello ─▶ resolve ─▶ looked at within a second? ─yes─▶ the certificate in memory
//!                                 │ no                             ▲
//!                                 └▶ changed? ─▶ read ─▶ usable? ──┤ yes: replaced, logged
//!                                                                  └ no: kept, logged once
//! ```
//!
//! Established connections keep the certificate that they began with. Two files cannot be replaced
//! in one step; between the two, the key is not that of the certificate, and the old pair remains.

use super::TlsFiles;
use crate::file_version::FileVersion;
use crate::log::Log;
use rustls::InconsistentKeys;
use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use units::{Hinted, Reason, show};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The certificate of the files as they are now, or as they last were when they could be used.
#[derive(Debug)]
pub(super) struct CertificateFiles {
    log: Log,
    read: Mutex<ReadFiles>,
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
pub(crate) struct ServerCertificate {
    key: Arc<CertifiedKey>,
    expiry: i64,
}

/// The versions of the certificate's file and of the key's; `None`: it cannot be looked at.
type FileVersions = [Option<FileVersion>; 2];

impl CertificateFiles {
    pub(super) fn open(files: &TlsFiles, log: Log) -> Result<Self, Reason> {
        let versions = versions(files);
        let certificate = read(files)?;
        let files = files.clone();
        let read = ReadFiles { files, certificate, versions, looked: Instant::now() };
        Ok(Self { log, read: Mutex::new(read) })
    }

    /// Uses other files from now on, of which this is the certificate.
    pub(super) fn replace(&self, files: &TlsFiles, certificate: ServerCertificate) {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // A change since `certificate` was read is seen at the next look.
        *last = ReadFiles {
            files: files.clone(),
            certificate,
            versions: [None, None],
            looked: Instant::now(),
        };
    }

    /// When the certificate expires, in seconds since 1970.
    pub(super) fn expiry(&self) -> i64 {
        self.current().certificate.expiry
    }

    /// What an operator should know of the files, one line each.
    pub(super) fn notes(&self, now: SystemTime) -> Vec<String> {
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
        let mode = fs::metadata(&files.key).map_or(0, |meta| meta.permissions().mode());
        if mode & 0o007 != 0 {
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
        let file = last.files.certificate.display().to_string();
        match read(&last.files) {
            Ok(certificate) => {
                let expiry = certificate.expiry;
                last.certificate = certificate;
                self.log.line(|| {
                    let expires = show::iso_date(time(expiry));
                    json!({ "event": "certificate-replaced", "file": file, "expires": expires })
                });
            }
            Err(why) => self.log.line(|| {
                let error = why.to_string();
                json!({ "event": "certificate-not-usable", "file": file, "error": error })
            }),
        }
        last
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

pub(super) fn read(files: &TlsFiles) -> Result<ServerCertificate, Reason> {
    let of_certificate = |why: String| {
        let hint = "--tls-certificate is a file in PEM: the server's certificate first, then those \
                    that lead to its authority";
        Reason::new(why, hint).about(files.certificate.display())
    };
    let of_key = |why: String| {
        let hint = "--tls-key is a file in PEM with the private key of the certificate, not \
                    encrypted";
        Reason::new(why, hint).about(files.key.display())
    };
    let chain = chain(&files.certificate).map_err(of_certificate)?;
    let first = chain.first().map_or(&[][..], AsRef::as_ref);
    let (_, parsed) = X509Certificate::from_der(first)
        .map_err(|_| of_certificate("its first certificate is damaged".to_owned()))?;
    let expiry = parsed.validity().not_after.timestamp();
    let key = key(&files.key).map_err(of_key)?;
    // A handshake with another key would fail with a message that names neither file.
    match CertifiedKey::from_der(chain, key, &ring::default_provider()) {
        Ok(key) => Ok(ServerCertificate { key: Arc::new(key), expiry }),
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(of_key(format!(
                "it is not the key of the first certificate in {}",
                files.certificate.display()
            )))
        }
        Err(error) => Err(of_key(format!("it cannot be used ({error})"))),
    }
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
