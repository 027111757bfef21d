//! The client certificate and its key, for servers that require one.
//!
//! Both are read and compared before the first connection. A key that is locked with a passphrase
//! is refused: nobody could type it while forty agents start.

use super::certificates;
use rustls::InconsistentKeys;
use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use units::Reason;

/// The paths of the certificate and the key, in PEM; both may be in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The certificate, followed by those that lead to an authority which the server trusts.
    pub certificates: PathBuf,
    /// The key of the first certificate.
    pub key: PathBuf,
}

/// The contents of the files.
pub struct Proof {
    /// The certificate, and those that lead to an authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the first certificate.
    pub key: PrivateKeyDer<'static>,
    /// The content of the key's file, for libraries that parse it themselves.
    pub key_pem: Vec<u8>,
}

impl Identity {
    /// Reads both files, and compares them.
    pub fn read(&self) -> Result<Proof, Reason> {
        let of_key = |reason: String| {
            Reason::new(reason, "--key-file is a file with a private key in PEM")
                .about(self.key.display())
        };
        let chain = certificates(&self.certificates).map_err(|reason| {
            Reason::new(reason, "--cert-file is a file of certificates in PEM, one's own first")
                .about(self.certificates.display())
        })?;
        let (key, key_pem) = key(&self.key).map_err(of_key)?;
        let provider = ring::default_provider();
        // A handshake with another key fails with a message that names neither file.
        match CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider) {
            Ok(_) => Ok(Proof { chain, key, key_pem }),
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                let (key, certificates) = (self.key.display(), self.certificates.display());
                Err(Reason::new(
                    format!("{key} is not the key of the first certificate in {certificates}"),
                    "--cert-file has one's own certificate first, --key-file the key that it was \
                     made with",
                ))
            }
            Err(error) => Err(of_key(format!("it cannot be used with its certificate ({error})"))),
        }
    }
}

/// The key in a file, and the file's content.
fn key(path: &Path) -> Result<(PrivateKeyDer<'static>, Vec<u8>), String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        PemError::NoItemsFound if is_locked(&bytes) => {
            "the key is locked with a passphrase; unlock it into a file of its own with 'openssl pkey \
             -in LOCKED -out UNLOCKED'"
                .to_owned()
        }
        PemError::NoItemsFound => "there is no private key in it".to_owned(),
        other => other.to_string(),
    })?;
    Ok((key, bytes))
}

fn is_locked(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains("ENCRYPTED")
}
