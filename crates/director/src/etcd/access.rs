//! What this program shows etcd of itself: a certificate, and a user with a password.
//!
//! ```text
//!   certificate    in the handshake of TLS                   etcd --client-cert-auth
//!   user           POST /v3/auth/authenticate ──▶ a token,   etcdctl auth enable
//!                  which each request has from then on
//! ```
//!
//! Where etcd has users, its gateway refuses certificates with a Common Name, which it does not
//! take for a user. So a user needs a password. Files are read once, when the program starts.

use http_service::is_exposed;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Reason;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, parse_pem};

/// What a program shows etcd of itself; by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdAccess {
    /// The certificate, followed by those that lead to an authority which etcd trusts, in PEM.
    pub certificate: Option<PathBuf>,
    /// The private key of the first certificate, in PEM and not encrypted.
    pub key: Option<PathBuf>,
    /// A file with `USER:PASSWORD` in its first line.
    pub user: Option<PathBuf>,
}

/// A user of etcd.
#[derive(Clone)]
pub(super) struct EtcdUser {
    pub(super) name: String,
    pub(super) password: String,
}

impl EtcdAccess {
    /// The certificate with its key, if there is one.
    pub(super) fn client_certificate(&self) -> Result<Option<ClientCert>, Reason> {
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else {
            return Ok(None);
        };
        let mut chain = Vec::new();
        for item in parse_pem(&read(certificate, "--etcd-cert")?) {
            if let Ok(PemItem::Certificate(found)) = item {
                chain.push(Certificate::from_der(found.der()).to_owned());
            }
        }
        if chain.is_empty() {
            let why = format!("--etcd-cert: {} has no certificate", certificate.display());
            return Err(Reason::new(why, "name a file in PEM (-----BEGIN CERTIFICATE-----)"));
        }
        let bytes = read_own(key, "--etcd-key")?;
        let key = PrivateKey::from_pem(&bytes).map_err(|_| {
            let why = format!("--etcd-key: {} has no private key", key.display());
            Reason::new(why, "name a file in PEM (-----BEGIN PRIVATE KEY-----), not encrypted")
        })?;
        check_pair(&chain, &key)?;
        Ok(Some(ClientCert::new_with_certs(&chain, key)))
    }

    /// The user, if there is one.
    pub(super) fn etcd_user(&self) -> Result<Option<EtcdUser>, Reason> {
        let Some(path) = &self.user else { return Ok(None) };
        let bytes = read_own(path, "--etcd-user")?;
        let text = String::from_utf8_lossy(&bytes);
        let pair = text.lines().next().and_then(|line| line.split_once(':'));
        let Some((name, password)) = pair.filter(|(name, _)| !name.is_empty()) else {
            let why = format!("--etcd-user: {} does not begin with a user", path.display());
            return Err(Reason::new(why, "write USER:PASSWORD in its first line"));
        };
        Ok(Some(EtcdUser { name: name.to_owned(), password: password.to_owned() }))
    }
}

/// The password is never shown.
impl fmt::Debug for EtcdUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EtcdUser({}, ..)", self.name)
    }
}

/// Checks that the key is that of the first certificate.
fn check_pair(chain: &[Certificate<'static>], key: &PrivateKey<'static>) -> Result<(), Reason> {
    let chain = chain.iter().map(|it| CertificateDer::from(it.der().to_vec())).collect();
    let key = PrivateKeyDer::try_from(key.der().to_vec());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions();
    let usable = builder.ok().zip(key.ok()).is_some_and(|(builder, key)| {
        let builder = builder.with_root_certificates(RootCertStore::empty());
        builder.with_client_auth_cert(chain, key).is_ok()
    });
    if usable {
        return Ok(());
    }
    let hint = "give the two files of one pair";
    Err(Reason::new("--etcd-key is not the key of the certificate in --etcd-cert", hint))
}

fn read(path: &Path, option: &str) -> Result<Vec<u8>, Reason> {
    std::fs::read(path).map_err(|error| {
        let why = format!("{option}: {}: {error}", path.display());
        Reason::new(why, "name a file that this user can read")
    })
}

/// Reads a file that is a secret of its owner, and perhaps of its group.
fn read_own(path: &Path, option: &str) -> Result<Vec<u8>, Reason> {
    let bytes = read(path, option)?;
    if std::fs::metadata(path).is_ok_and(|about| is_exposed(&about)) {
        let why = format!("{option}: {}: it can be read by other users", path.display());
        return Err(Reason::new(why, format!("chmod 600 {}", path.display())));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_name_and_a_password_for_its_owner_alone() {
        let path = std::env::temp_dir().join(format!("tenuto-etcd-user-{}", std::process::id()));
        let rows = [
            ("node:s:3 cret\nmore", 0o600, Ok(("node", "s:3 cret"))),
            ("node:", 0o640, Ok(("node", ""))),
            ("node", 0o600, Err("does not begin with a user")),
            (":secret", 0o600, Err("does not begin with a user")),
            ("", 0o600, Err("does not begin with a user")),
            ("node:secret", 0o604, Err("read by other users")),
        ];
        for (text, mode, wanted) in rows {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode))
                .unwrap();
            let access = EtcdAccess { user: Some(path.clone()), ..EtcdAccess::default() };
            match (access.etcd_user(), wanted) {
                (Ok(Some(user)), Ok(wanted)) => {
                    assert_eq!((&*user.name, &*user.password), wanted);
                    assert_eq!(format!("{user:?}"), "EtcdUser(node, ..)");
                }
                (Err(reason), Err(why)) => assert!(reason.message.contains(why), "{reason}"),
                (found, _) => panic!("{text:?}: {found:?}"),
            }
        }
        std::fs::remove_file(&path).unwrap();
        let missing = EtcdAccess { user: Some(path), ..EtcdAccess::default() };
        assert!(missing.etcd_user().unwrap_err().message.starts_with("--etcd-user: "));
        assert!(EtcdAccess::default().etcd_user().unwrap().is_none());
    }
}
