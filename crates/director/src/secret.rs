//! The secret that the nodes and directors of one cluster share, and how it is replaced while all
//! run.
//!
//! ```text
//!   file    old           old, new        new, old        new
//!           │ on all      │ on all        │ on all        │
//!   signs   old           old             new             new
//!   takes   old           old and new     old and new     new
//! ```
//!
//! A file has a secret in each line: the first signs, all verify. The file is looked at again while
//! the program runs. A file that cannot be used then is left alone and named once, and what was
//! known stays.

use crate::question::{SignedText, text_of_peer};
use http_service::is_exposed;
use ring::hmac;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};
use units::{Hinted, locked};

/// The secret that the nodes and directors of one cluster share. Clones share what is known of the
/// file.
#[derive(Clone)]
pub struct ClusterSecret(Arc<SecretFile>);

struct SecretFile {
    /// `None`: the secret is not of a file.
    path: Option<PathBuf>,
    known: Mutex<KnownSecrets>,
    /// Hears of changes.
    told: OnceLock<TellChange>,
}

type TellChange = Box<dyn Fn(&str) + Send + Sync>;

struct KnownSecrets {
    /// At least one; the first signs.
    keys: Arc<[hmac::Key]>,
    /// When the file was last changed, as far as is known.
    changed: Option<SystemTime>,
    looked: Instant,
    /// Why the file could not be used when it was looked at.
    unusable: Option<String>,
}

/// A secret that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Users other than the owner and the group of the file can read it.
    #[error("{}: it can be read by other users", .0.display())]
    Exposed(PathBuf),
    /// A secret is shorter than the hash.
    #[error("the secret has {0} bytes, and at least {SHORTEST} are needed")]
    Short(usize),
}

impl Hinted for SecretError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::File { path, .. } => {
                let path = path.display();
                Some(format!("make it with `(umask 077; openssl rand -hex 32 > {path})`"))
            }
            Self::Exposed(path) => Some(format!("chmod 600 {}", path.display())),
            Self::Short(_) => Some("make one with `openssl rand -hex 32`".to_owned()),
        }
    }
}

impl ClusterSecret {
    /// The secrets in the lines of a file, which is looked at again from time to time.
    ///
    /// # Errors
    /// A file that cannot be read, that all users can read, or a line with fewer than 32 bytes.
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        let (keys, changed) = read(path)?;
        Ok(Self::new(Some(path.to_owned()), keys, changed))
    }

    /// The secrets in the lines of a text.
    ///
    /// # Errors
    /// No line, or one with fewer than 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SecretError> {
        Ok(Self::new(None, keys(bytes)?, None))
    }

    fn new(path: Option<PathBuf>, keys: Arc<[hmac::Key]>, changed: Option<SystemTime>) -> Self {
        let (looked, unusable) = (Instant::now(), None);
        let known = Mutex::new(KnownSecrets { keys, changed, looked, unusable });
        Self(Arc::new(SecretFile { path, known, told: OnceLock::new() }))
    }

    /// Has changes of the file told: that it was read again, or why it cannot be used, once. Only
    /// the first call has an effect.
    pub fn tell_changes(&self, say: impl Fn(&str) + Send + Sync + 'static) {
        _ = self.0.told.set(Box::new(say));
    }

    /// The signature of a question.
    pub fn sign(&self, question: SignedText<'_>) -> String {
        units::to_hex(self.tag(&question.text()).as_ref())
    }

    /// Whether a signature is that of a question, compared in constant time.
    pub fn verify(&self, question: SignedText<'_>, signature: &str) -> bool {
        units::from_hex(signature).is_some_and(|tag| self.has_tag(&question.text(), &tag, WHOLE))
    }

    /// The signature of a node's request to another node for a part of a title, with this path and
    /// query.
    pub fn sign_peer(&self, target: &str) -> String {
        units::to_hex(self.tag(&text_of_peer(target)).as_ref())
    }

    /// Whether a signature is that of a node's request, compared in constant time.
    pub fn verify_peer(&self, target: &str, signature: &str) -> bool {
        units::from_hex(signature)
            .is_some_and(|tag| self.has_tag(&text_of_peer(target), &tag, WHOLE))
    }

    /// The signature of a text.
    pub(crate) fn tag(&self, text: &str) -> hmac::Tag {
        hmac::sign(&self.keys()[0], text.as_bytes())
    }

    /// Whether `tag` is the first `length` bytes of a signature of a text, compared in constant
    /// time.
    pub(crate) fn has_tag(&self, text: &str, tag: &[u8], length: usize) -> bool {
        let is_by = |key: &hmac::Key| {
            let whole = hmac::sign(key, text.as_bytes());
            let differences = whole.as_ref().iter().zip(tag).map(|(a, b)| a ^ b);
            differences.fold(0, |all, one| all | one) == 0
        };
        tag.len() == length && self.keys().iter().any(is_by)
    }

    /// The secrets as they are now.
    fn keys(&self) -> Arc<[hmac::Key]> {
        let mut known = locked(&self.0.known);
        if let Some(path) = &self.0.path
            && known.looked.elapsed() >= LOOK_AGAIN
        {
            known.looked = Instant::now();
            let text = known.look_again(path);
            if let (Some(text), Some(say)) = (text, self.0.told.get()) {
                let keys = Arc::clone(&known.keys);
                // Whoever hears of it may ask for a signature.
                drop(known);
                say(&text);
                return keys;
            }
        }
        Arc::clone(&known.keys)
    }
}

impl KnownSecrets {
    /// Reads the file again if it has changed, or could not be used; what is to be told of that.
    fn look_again(&mut self, path: &Path) -> Option<String> {
        let is_known = changed(path).is_ok_and(|changed| Some(changed) == self.changed);
        if is_known && self.unusable.is_none() {
            return None;
        }
        match read(path) {
            Ok((keys, changed)) => {
                let count = keys.len();
                (self.keys, self.changed, self.unusable) = (keys, changed, None);
                let count =
                    if count == 1 { "one secret".into() } else { format!("{count} secrets") };
                Some(format!("{}: read again, {count}", path.display()))
            }
            Err(why) => {
                let why = format!("{}; the secret that was read before stays", why.one_line());
                let is_new = self.unusable.as_ref() != Some(&why);
                is_new.then(|| self.unusable.insert(why).clone())
            }
        }
    }
}

/// The secrets in a file, and when it was last changed.
fn read(path: &Path) -> Result<(Arc<[hmac::Key]>, Option<SystemTime>), SecretError> {
    let failed = |source| SecretError::File { path: path.to_owned(), source };
    // Before its bytes: a change in between is found the next time.
    let changed = changed(path).map_err(failed)?;
    let bytes = std::fs::read(path).map_err(failed)?;
    if is_exposed(&std::fs::metadata(path).map_err(failed)?) {
        return Err(SecretError::Exposed(path.to_owned()));
    }
    Ok((keys(&bytes)?, Some(changed)))
}

fn changed(path: &Path) -> io::Result<SystemTime> {
    std::fs::metadata(path)?.modified()
}

/// The secrets in the lines of a text.
fn keys(bytes: &[u8]) -> Result<Arc<[hmac::Key]>, SecretError> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    let shortest = lines.iter().map(|line| line.len()).min().unwrap_or(0);
    if shortest < SHORTEST {
        return Err(SecretError::Short(shortest));
    }
    Ok(lines.iter().map(|line| hmac::Key::new(hmac::HMAC_SHA256, line)).collect())
}

/// The key is never shown.
impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(..)")
    }
}

/// Bytes of a whole signature.
const WHOLE: usize = 32;
/// Shortest secret: the length of the hash.
const SHORTEST: usize = 32;
/// Time between looks at the file.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";
    const NEXT: &[u8; 32] = b"fedcba9876543210fedcba9876543210";

    fn signed(bytes: &[u8]) -> String {
        ClusterSecret::from_bytes(bytes).unwrap().sign(SignedText::default())
    }

    #[test]
    fn a_secret_is_long_enough_and_never_shown() {
        let of = |bytes: &[u8]| ClusterSecret::from_bytes(bytes).map(|_| ());
        assert!(of(&[b'a'; 32]).is_ok());
        for (bytes, found) in
            [(&b""[..], 0), (&[[b'a'; 31].as_slice(), b"\n"].concat(), 31), (b"a\n\n", 1)]
        {
            let error = of(bytes).unwrap_err();
            let wanted = format!("the secret has {found} bytes, and at least 32 are needed");
            assert_eq!(error.to_string(), wanted);
        }
        for end in ["\n", "\r\n", "\n\n"] {
            assert_eq!(signed(&[SECRET.as_slice(), end.as_bytes()].concat()), signed(SECRET));
        }
        let shown = format!("{:?}", ClusterSecret::from_bytes(SECRET).unwrap());
        assert_eq!(shown, "ClusterSecret(..)");
    }

    #[test]
    fn a_node_signs_its_request_and_no_question_is_one() {
        let secret = ClusterSecret::from_bytes(SECRET).unwrap();
        let signature = secret.sign_peer("/parts/film?track=0");
        let other = ClusterSecret::from_bytes(NEXT).unwrap();
        let question = secret.sign(SignedText { target: "/parts/film?track=0", ..<_>::default() });
        let rows = [
            (&secret, "/parts/film?track=0", &*signature, true),
            (&secret, "/parts/film?track=1", &signature, false),
            (&other, "/parts/film?track=0", &signature, false),
            (&secret, "/parts/film?track=0", &question, false),
            (&secret, "/parts/film?track=0", "", false),
        ];
        for (secret, target, signature, valid) in rows {
            assert_eq!(secret.verify_peer(target, signature), valid, "{target}");
        }
    }

    #[test]
    fn while_a_secret_is_replaced_all_understand_each_other() {
        let of = |lines: &[&[u8]]| ClusterSecret::from_bytes(&lines.join(&b'\n')).unwrap();
        let steps = [of(&[SECRET]), of(&[SECRET, NEXT]), of(&[NEXT, SECRET]), of(&[NEXT])];
        for pair in steps.windows(2) {
            for (signer, verifier) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
                let signature = signer.sign(SignedText::default());
                assert!(verifier.verify(SignedText::default(), &signature));
            }
        }
        let signature = steps[0].sign(SignedText::default());
        assert!(!steps[3].verify(SignedText::default(), &signature));
    }

    #[test]
    fn a_secret_of_a_file_is_not_for_all_users_and_may_change() {
        let path = std::env::temp_dir().join(format!("tenuto-secret-{}", std::process::id()));
        let of = || ClusterSecret::from_file(&path).map(|_| ()).map_err(|error| error.one_line());
        let shown = path.display();
        let missing = of().unwrap_err();
        assert!(missing.starts_with(&format!("{shown}: No such file")), "{missing}");
        std::fs::write(&path, SECRET).unwrap();
        let set = |mode| {
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode))
                .unwrap();
        };
        set(0o604);
        let exposed = format!("{shown}: it can be read by other users; chmod 600 {shown}");
        assert_eq!(of(), Err(exposed));
        set(0o440);
        assert_eq!(of(), Ok(()));

        set(0o600);
        let secret = ClusterSecret::from_file(&path).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        secret.tell_changes(move |text| locked(&hears).push(text.to_owned()));
        // As if the time until the next look had passed, and the file were from long ago.
        let look = |secret: &ClusterSecret| {
            let mut known = locked(&secret.0.known);
            known.looked = Instant::now().checked_sub(LOOK_AGAIN).unwrap();
            known.changed = None;
        };
        std::fs::write(&path, NEXT).unwrap();
        assert_eq!(secret.sign(SignedText::default()), signed(SECRET), "not looked at yet");
        look(&secret);
        assert_eq!(secret.sign(SignedText::default()), signed(NEXT));
        std::fs::write(&path, "short").unwrap();
        look(&secret);
        assert_eq!(secret.sign(SignedText::default()), signed(NEXT), "the last good one");
        look(&secret);
        assert_eq!(secret.sign(SignedText::default()), signed(NEXT), "told once");
        std::fs::write(&path, [SECRET.as_slice(), b"\n", NEXT].concat()).unwrap();
        set(0o644);
        look(&secret);
        assert_eq!(secret.sign(SignedText::default()), signed(NEXT));
        set(0o600);
        look(&secret);
        assert_eq!(secret.sign(SignedText::default()), signed(SECRET), "only its mode changed");
        std::fs::remove_file(&path).unwrap();
        look(&secret);
        assert_eq!(secret.sign(SignedText::default()), signed(SECRET));
        let before = "the secret that was read before stays";
        let rows = [
            "read again, one secret".to_owned(),
            format!("the secret has 5 bytes, and at least 32 are needed; {before}"),
            format!("it can be read by other users; chmod 600 {shown}; {before}"),
            "read again, 2 secrets".to_owned(),
            format!("No such file or directory (os error 2); {before}"),
        ];
        let told = locked(&told).clone();
        assert_eq!(told.len(), rows.len(), "{told:#?}");
        for (told, row) in told.iter().zip(rows) {
            assert!(told.contains(row.split("; ").next().unwrap()), "{told}: {row}");
            assert!(!row.ends_with(before) || told.ends_with(before), "{told}");
        }
    }
}
