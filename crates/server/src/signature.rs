//! The signature of requests to programs of the operator's: an HMAC-SHA256 of the body, by which
//! they know that this server sends it.
//!
//! `Tenuto-Signature: sha256=` and the code in hexadecimal. The time is in the body, where the
//! receiver of a request needs it.

use http_service::is_exposed;
use ring::{digest, hmac};
use std::fmt;
use std::fs;
use std::path::Path;
use units::{Hinted, Reason};

/// A key to sign with.
#[derive(Clone)]
pub(crate) struct SigningKey {
    key: hmac::Key,
    fingerprint: Vec<u8>,
}

impl SigningKey {
    /// The key in the file of an option, without the line end behind it.
    pub(crate) fn read(option: &str, path: &Path) -> Result<Self, Reason> {
        let about = || format!("{option} {}", path.display());
        let text = fs::read(path).map_err(|error| error.reason().about(about()))?;
        let file = fs::metadata(path).map_err(|error| error.reason().about(about()))?;
        if is_exposed(&file) {
            let hint = format!("chmod 600 {}", path.display());
            return Err(Reason::new("it can be read by other users", hint).about(about()));
        }
        let secret = text.trim_ascii_end();
        if secret.len() < SHORTEST_SECRET {
            let hint = "make one with `openssl rand -hex 32`";
            return Err(Reason::new("it has fewer than 16 bytes", hint).about(about()));
        }
        Ok(Self::new(secret))
    }

    fn new(secret: &[u8]) -> Self {
        let fingerprint = digest::digest(&digest::SHA256, secret).as_ref().to_vec();
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret), fingerprint }
    }

    /// The value of [`SIGNATURE`] for this body.
    pub(crate) fn sign(&self, body: &[u8]) -> String {
        format!("sha256={}", units::to_hex(hmac::sign(&self.key, body).as_ref()))
    }
}

impl PartialEq for SigningKey {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is secret.
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

/// The field of a signed request.
pub(crate) const SIGNATURE: &str = "Tenuto-Signature";
const SHORTEST_SECRET: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// The second vector of RFC 4231, and a key that differs.
    #[test]
    fn a_body_is_signed_as_the_standard_says() {
        let key = SigningKey::new(b"Jefe");
        let signed = key.sign(b"what do ya want for nothing?");
        let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signed, format!("sha256={wanted}"));
        assert_eq!(
            (key == SigningKey::new(b"Jefe"), key == SigningKey::new(b"jefe")),
            (true, false)
        );
        assert!(!format!("{key:?}").contains("Jefe"));
    }
}
