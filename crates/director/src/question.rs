//! How a director asks a node: the viewer's own request, with more headers.
//!
//! ```text
//!   viewer ──GET /t/film/master.m3u8──▶ director ──the same, and more headers─▶ node
//!                                          │        Tenuto-Client: 192.0.2.7
//!                                          │        Tenuto-Elsewhere: n2=http://10.0.0.2:80
//!                                          │        Tenuto-Steering: http://d/steer/film?node=n1
//!                                          │        Tenuto-Director: 5f2c..   HMAC of the question
//!   viewer ◀──302, Location──────────── director ◀──201, Location: ..?s=SESSION── node
//! ```
//!
//! The node reserves and answers 201 with the address of the session, or answers what it would
//! answer the viewer. The signature shows that the question comes from a director that has the
//! secret of the cluster, so that a node may believe the address of the viewer in it.
//!
//! A question that is recorded and sent again reserves again, as any request of a viewer does; the
//! limits of the node per client hold for it.

use ring::hmac;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use units::Hinted;

/// Header with the address of the viewer, as the director saw it.
pub const CLIENT_HEADER: &str = "Tenuto-Client";

/// Header with the address of the steering server that the manifest is to name.
pub const STEERING_HEADER: &str = "Tenuto-Steering";

/// Header with other nodes that have the title: `NAME=ADDRESS`, separated by commas.
pub const ELSEWHERE_HEADER: &str = "Tenuto-Elsewhere";

/// Header with the signature: HMAC-SHA-256 of the question in hexadecimal.
pub const SIGNATURE_HEADER: &str = "Tenuto-Director";

/// A question as it is signed, with the headers and the target as the node received them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignedText<'a> {
    /// The address of the viewer.
    pub client: &'a str,
    /// Path and query, as sent to the node.
    pub target: &'a str,
    /// The address of the steering server; empty without the header.
    pub steering: &'a str,
    /// Other nodes that have the title; empty without the header.
    pub elsewhere: &'a str,
}

/// The secret that the nodes and directors of one cluster share.
#[derive(Clone)]
pub struct ClusterSecret(hmac::Key);

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
    /// The secret is shorter than the hash.
    #[error("the secret has {0} bytes, and at least {SHORTEST} are needed")]
    Short(usize),
}

impl Hinted for SecretError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::File { .. } => None,
            Self::Exposed(path) => Some(format!("chmod 600 {}", path.display())),
            Self::Short(_) => Some("make one with `openssl rand -hex 32`".to_owned()),
        }
    }
}

impl ClusterSecret {
    /// The secret in a file, without the line end behind it.
    ///
    /// # Errors
    /// A file that cannot be read, that all users can read, or with fewer than 32 bytes.
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        let failed = |source| SecretError::File { path: path.to_owned(), source };
        let bytes = std::fs::read(path).map_err(failed)?;
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(SecretError::Exposed(path.to_owned()));
        }
        Self::from_bytes(&bytes)
    }

    /// The secret in these bytes, without the line end behind it.
    ///
    /// # Errors
    /// Fewer than 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SecretError> {
        let secret = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
        if secret.len() < SHORTEST {
            return Err(SecretError::Short(secret.len()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// The signature of a question.
    pub fn sign(&self, question: SignedText<'_>) -> String {
        units::to_hex(self.tag(&question.text()).as_ref())
    }

    /// Whether a signature is that of a question, compared in constant time.
    pub fn verify(&self, question: SignedText<'_>, signature: &str) -> bool {
        units::from_hex(signature).is_some_and(|tag| self.has_tag(&question.text(), &tag, WHOLE))
    }

    /// The signature of a text.
    pub(crate) fn tag(&self, text: &str) -> hmac::Tag {
        hmac::sign(&self.0, text.as_bytes())
    }

    /// Whether `tag` is the first `length` bytes of the signature of a text, compared in constant
    /// time.
    pub(crate) fn has_tag(&self, text: &str, tag: &[u8], length: usize) -> bool {
        let whole = self.tag(text);
        let differences = whole.as_ref().iter().zip(tag).map(|(a, b)| a ^ b);
        tag.len() == length && differences.fold(0, |all, one| all | one) == 0
    }
}

impl SignedText<'_> {
    /// The text that is signed. Headers and targets have no line ends, so that no two questions
    /// have the same text.
    fn text(&self) -> String {
        let Self { client, target, steering, elsewhere } = self;
        format!("admission\n{client}\n{target}\n{steering}\n{elsewhere}\n")
    }
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
/// The rights of all others. Those of the group are not looked at: systemd gives a credential to
/// the user of a service by an access list, which shows as rights of the group.
const OTHERS: u32 = 0o007;

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn a_signature_is_valid_for_its_client_target_and_secret() {
        let secret = ClusterSecret::from_bytes(SECRET).unwrap();
        let asked = SignedText {
            client: "192.0.2.7",
            target: "/t/film/master.m3u8?start=3",
            steering: "http://d/steer/film?node=n1",
            elsewhere: "n2=http://n2",
        };
        let signature = secret.sign(asked);
        // Of openssl: printf 'admission\n192.0.2.7\n/t/film/master.m3u8?start=3\n\
        // http://d/steer/film?node=n1\nn2=http://n2\n' |
        // openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
        assert_eq!(signature, OF_OPENSSL);
        let other = ClusterSecret::from_bytes(&[b'x'; 32]).unwrap();
        let changed = signature.replace('3', "4");
        let rows = [
            (&secret, asked, &*signature, true),
            (&other, asked, &signature, false),
            (&secret, SignedText { client: "192.0.2.8", ..asked }, &signature, false),
            (&secret, SignedText { target: "/t/film/master.m3u8", ..asked }, &signature, false),
            (&secret, SignedText { steering: "http://e/", ..asked }, &signature, false),
            (&secret, SignedText { elsewhere: "", ..asked }, &signature, false),
            (&secret, asked, &signature[2..], false),
            (&secret, asked, &changed, false),
            (&secret, asked, "", false),
            (&secret, asked, "no hex", false),
        ];
        for (secret, asked, signature, valid) in rows {
            assert_eq!(secret.verify(asked, signature), valid, "{asked:?}");
        }
    }

    #[test]
    fn a_secret_is_long_enough_and_never_shown() {
        let of = |bytes: &[u8]| ClusterSecret::from_bytes(bytes).map(|_| ());
        assert!(of(&[b'a'; 32]).is_ok());
        let error = of(&[[b'a'; 31].as_slice(), b"\n"].concat()).unwrap_err();
        assert_eq!(error.to_string(), "the secret has 31 bytes, and at least 32 are needed");
        let with_line_end = [SECRET.as_slice(), b"\n"].concat();
        let signed = |bytes| ClusterSecret::from_bytes(bytes).unwrap().sign(SignedText::default());
        assert_eq!(signed(&with_line_end), signed(SECRET));
        assert_eq!(
            format!("{:?}", ClusterSecret::from_bytes(SECRET).unwrap()),
            "ClusterSecret(..)"
        );
    }

    #[test]
    fn a_secret_of_a_file_is_not_for_all_users() {
        let path = std::env::temp_dir().join(format!("tenuto-secret-{}", std::process::id()));
        let of = || ClusterSecret::from_file(&path).map(|_| ()).map_err(|error| error.one_line());
        let shown = path.display();
        let missing = of().unwrap_err();
        assert!(missing.starts_with(&format!("{shown}: No such file")), "{missing}");
        std::fs::write(&path, SECRET).unwrap();
        let set = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        set(0o604);
        let exposed = format!("{shown}: it can be read by other users; chmod 600 {shown}");
        assert_eq!(of(), Err(exposed));
        set(0o440);
        assert_eq!(of(), Ok(()));
        std::fs::remove_file(&path).unwrap();
    }

    const OF_OPENSSL: &str = "6bd20c498b24e14ea8c31acf874f3b4f567230aee959c9f8908cf8e77d2baf40";
}
