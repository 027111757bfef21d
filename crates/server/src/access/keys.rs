//! The keys that tokens are signed with: a JSON Web Key Set (RFC 7517) in a file, which may change
//! while the server runs.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http_service::{FileVersion, is_exposed};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::{Hinted, Reason};
use uuid::Uuid;

/// A key that verifies tokens.
pub(super) struct AccessKey {
    /// The name of the key (`kid`).
    pub(super) id: Option<String>,
    /// The algorithms that it may be used with. A key for one family is never used with another.
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

/// The keys of a file. They are read again when it changes; while it cannot be used, the last ones
/// remain. A list without keys can be used: it opens nothing.
#[derive(Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    read: Mutex<ReadKeys>,
}

struct ReadKeys {
    keys: Arc<[AccessKey]>,
    /// The file that was looked at last; `None`: there was none.
    seen: Option<FileVersion>,
    looked: SystemTime,
}

/// What has become of a file of keys.
pub(super) enum KeyFileEvent<'a> {
    /// Tokens are verified with so many other keys from now on.
    Replaced { file: &'a Path, keys: usize },
    /// The file has changed, or is gone, and the keys before remain in use.
    NotUsable { file: &'a Path, why: Reason },
}

impl KeyFile {
    pub(super) fn open(path: &Path) -> Result<Self, Reason> {
        let (keys, version) = read(path)?;
        let read = ReadKeys { keys: keys.into(), seen: Some(version), looked: UNIX_EPOCH };
        Ok(Self { path: path.into(), read: Mutex::new(read) })
    }

    /// Whether the file had no key when it was last read.
    pub(super) fn is_empty(&self) -> bool {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).keys.is_empty()
    }

    /// The keys as the file has them now. Looks at it at most once a second, and tells of a change.
    pub(super) fn keys(
        &self,
        now: SystemTime,
        tell: impl FnOnce(KeyFileEvent<'_>),
    ) -> Arc<[AccessKey]> {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Also where the clock was put back.
        if now.duration_since(last.looked).is_ok_and(|since| since < LOOK) {
            return Arc::clone(&last.keys);
        }
        last.looked = now;
        // A file that is being written has another version a second later.
        let present = FileVersion::of(&self.path).ok();
        if present != last.seen {
            last.seen = present;
            let file = &*self.path;
            tell(match read(file) {
                Ok((keys, version)) => {
                    (last.keys, last.seen) = (keys.into(), Some(version));
                    KeyFileEvent::Replaced { file, keys: last.keys.len() }
                }
                Err(why) => KeyFileEvent::NotUsable { file, why },
            });
        }
        Arc::clone(&last.keys)
    }
}

impl std::fmt::Debug for ReadKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The keys are secret.
        write!(f, "{} keys", self.keys.len())
    }
}

fn read(path: &Path) -> Result<(Vec<AccessKey>, FileVersion), Reason> {
    let (set, version) = key_set(path)?;
    let (mut keys, mut refused) = (Vec::new(), Vec::new());
    for jwk in &set.keys {
        match access_key(jwk) {
            Ok(key) => keys.push(key),
            Err(why) => refused.push(why),
        }
    }
    match refused.first() {
        Some(why) if keys.is_empty() => Err(unusable(path, why)),
        _ => Ok((keys, version)),
    }
}

fn key_set(path: &Path) -> Result<(JwkSet, FileVersion), Reason> {
    let io_error = |error| not_read(path, &error);
    let version = FileVersion::of(path).map_err(io_error)?;
    let text = fs::read(path).map_err(io_error)?;
    let set: JwkSet = serde_json::from_slice(&text)
        .map_err(|error| unusable(path, &format!("it is no JSON Web Key Set ({error})")))?;
    let secret = |key: &Jwk| matches!(key.algorithm, AlgorithmParameters::OctetKey(_));
    let about = fs::metadata(path).map_err(io_error)?;
    if set.keys.iter().any(secret) && is_exposed(&about) {
        let path = path.display();
        let why = format!("{path} holds a secret and can be read by other users");
        return Err(Reason::new(why, format!("chmod 600 {path}")));
    }
    Ok((set, version))
}

/// A key of a set, if it can verify tokens.
fn access_key(jwk: &Jwk) -> Result<AccessKey, &'static str> {
    if matches!(jwk.common.public_key_use, Some(PublicKeyUse::Encryption)) {
        return Err("a key is for encryption");
    }
    let mut algorithms = algorithms(&jwk.algorithm)?;
    if let Some(one) = &jwk.common.key_algorithm {
        let one = one.to_string().parse().map_err(|_| "a key is for another purpose")?;
        algorithms.retain(|algorithm: &Algorithm| *algorithm == one);
        if algorithms.is_empty() {
            return Err("a key names an algorithm that is not for keys of its kind");
        }
    }
    let key = DecodingKey::from_jwk(jwk).map_err(|_| "a key is damaged")?;
    if let AlgorithmParameters::RSA(rsa) = &jwk.algorithm
        && modulus_bits(&rsa.n) < RSA_BITS
    {
        return Err("an RSA key has fewer than 2048 bits");
    }
    let short = |secret: &[u8]| secret.len() < SECRET_BYTES;
    if matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_))
        && key.try_get_as_bytes().is_ok_and(short)
    {
        return Err("a secret is shorter than 32 bytes, and could be guessed");
    }
    Ok(AccessKey { id: jwk.common.key_id.clone(), algorithms, key })
}

// The bits of a modulus in base64.
fn modulus_bits(modulus: &str) -> usize {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(modulus).unwrap_or_default();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let first = bytes.get(zeros).map_or(0, |byte| byte.leading_zeros() as usize);
    (bytes.len() - zeros) * 8 - first
}

fn algorithms(parameters: &AlgorithmParameters) -> Result<Vec<Algorithm>, &'static str> {
    use Algorithm::{ES256, ES384, EdDSA, HS256, HS384, HS512};
    use Algorithm::{PS256, PS384, PS512, RS256, RS384, RS512};
    Ok(match parameters {
        AlgorithmParameters::OctetKey(_) => vec![HS256, HS384, HS512],
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::OctetKeyPair(_) => vec![EdDSA],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![ES256],
            EllipticCurve::P384 => vec![ES384],
            _ => return Err("a key is of a curve other than P-256 and P-384"),
        },
        _ => return Err("a key is of an unknown kind"),
    })
}

/// The first secret key of a file, with its name.
pub(super) fn first_secret(path: &Path) -> Result<(Option<String>, Vec<u8>), Reason> {
    let (set, _) = key_set(path)?;
    for jwk in &set.keys {
        if matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_))
            && let Ok(AccessKey { id, algorithms, key }) = access_key(jwk)
            && algorithms.contains(&Algorithm::HS256)
            && let Ok(secret) = key.try_get_as_bytes()
        {
            return Ok((id, secret.to_vec()));
        }
    }
    let why = "only a secret (`\"kty\": \"oct\"`) can sign here; others are signed where their \
               private key is";
    Err(unusable(path, why))
}

/// Makes a file with a new secret key, for its owner alone. A file that exists is an error.
pub fn new_key_file(path: &Path) -> Result<(), Reason> {
    let mut secret = [0; SECRET_BYTES];
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| Reason::from("the kernel gave no random bytes"))?;
    let set = json!({ "keys": [{
        "kty": "oct",
        "kid": Uuid::new_v4().to_string(),
        "alg": "HS256",
        "k": BASE64_URL_SAFE_NO_PAD.encode(secret),
    }] });
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(path).and_then(|mut file| {
        file.write_all(format!("{set:#}\n").as_bytes())?;
        file.sync_all()
    });
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Reason::new(
            format!("{} exists", path.display()),
            "a key file is never replaced; choose another name, or remove it",
        ),
        _ => error.reason().about(format_args!("cannot make {}", path.display())),
    })
}

fn not_read(path: &Path, error: &io::Error) -> Reason {
    let reason = error.reason().about(format_args!("cannot read the keys in {}", path.display()));
    match error.kind() {
        io::ErrorKind::NotFound => {
            Reason::new(reason.message, format!("`tenuto token {} --new` makes it", path.display()))
        }
        _ => reason,
    }
}

fn unusable(path: &Path, why: &str) -> Reason {
    let hint = "it has to be a JSON Web Key Set; `tenuto token keys.json --new` makes one";
    Reason::new(format!("{} has no usable key: {why}", path.display()), hint)
}

/// The shortest secret: as long as the hash (RFC 7518, 3.2).
const SECRET_BYTES: usize = 32;

/// The shortest modulus of RSA (RFC 7518, 3.3).
const RSA_BITS: usize = 2048;

/// The time between two looks at the file.
const LOOK: Duration = Duration::from_secs(1);
