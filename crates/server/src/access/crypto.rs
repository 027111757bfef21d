//! Signatures of tokens by `ring`, which TLS uses already; `jsonwebtoken` leaves the choice to its
//! user.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::{hmac, signature as ring_signature};
use signature::{Signer, Verifier};

/// Lets `jsonwebtoken` use these signatures. May be called any number of times.
pub(super) fn install() {
    // An error says that it has been called before.
    let _ = PROVIDER.install_default();
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // Only for making public keys from private ones.
    key_utils: KeyUtils::new_unimplemented(),
};

/// A key with its algorithm.
struct TokenKey<K> {
    algorithm: Algorithm,
    key: K,
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    let hash = hmac_algorithm(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    Ok(Box::new(TokenKey { algorithm: *algorithm, key: hmac::Key::new(hash, key.as_bytes()) }))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let algorithm = *algorithm;
    Ok(match (hmac_algorithm(algorithm), key.kind()) {
        (Some(hash), DecodingKeyKind::SecretOrDer(secret)) => {
            Box::new(TokenKey { algorithm, key: hmac::Key::new(hash, secret) })
        }
        (None, kind) => Box::new(TokenKey { algorithm, key: kind.clone() }),
        (Some(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
            return Err(ErrorKind::InvalidKeyFormat.into());
        }
    })
}

fn hmac_algorithm(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Algorithm::HS256 => Some(hmac::HMAC_SHA256),
        Algorithm::HS384 => Some(hmac::HMAC_SHA384),
        Algorithm::HS512 => Some(hmac::HMAC_SHA512),
        _ => None,
    }
}

impl Signer<Vec<u8>> for TokenKey<hmac::Key> {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(hmac::sign(&self.key, message).as_ref().to_vec())
    }
}

impl JwtSigner for TokenKey<hmac::Key> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for TokenKey<hmac::Key> {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        hmac::verify(&self.key, message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for TokenKey<hmac::Key> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for TokenKey<DecodingKeyKind> {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let valid = match &self.key {
            DecodingKeyKind::SecretOrDer(point) => {
                let verification: &dyn ring_signature::VerificationAlgorithm = match self.algorithm
                {
                    Algorithm::ES256 => &ring_signature::ECDSA_P256_SHA256_FIXED,
                    Algorithm::ES384 => &ring_signature::ECDSA_P384_SHA384_FIXED,
                    Algorithm::EdDSA => &ring_signature::ED25519,
                    _ => return Err(signature::Error::new()),
                };
                ring_signature::UnparsedPublicKey::new(verification, point)
                    .verify(message, signature)
            }
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let parameters = match self.algorithm {
                    Algorithm::RS256 => &ring_signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::RS384 => &ring_signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::RS512 => &ring_signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::PS256 => &ring_signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::PS384 => &ring_signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::PS512 => &ring_signature::RSA_PSS_2048_8192_SHA512,
                    _ => return Err(signature::Error::new()),
                };
                ring_signature::RsaPublicKeyComponents { n, e }
                    .verify(parameters, message, signature)
            }
        };
        valid.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for TokenKey<DecodingKeyKind> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
