//! What to do about an etcd that refuses, or that cannot be asked at all.

use super::client::EtcdError;

impl EtcdError {
    /// What whoever runs the cluster should do.
    pub(crate) fn hint(&self) -> &'static str {
        let text = self.to_string();
        let known = HINTS.iter().find(|(part, _)| text.contains(part));
        known.map_or(CHECK_MEMBERS, |(_, hint)| hint)
    }
}

/// Parts of etcd's messages and of those of TLS, with what helps. The first that fits counts.
const HINTS: [(&str, &str); 14] = [
    (
        "database space exceeded",
        "compact and defragment etcd, then disarm its alarm (etcdctl alarm disarm)",
    ),
    ("user name is empty", "etcd has users: name a file with USER:PASSWORD (--etcd-user)"),
    ("authentication is not enabled", "etcd has no users: leave out --etcd-user"),
    ("authentication failed", "check the user and the password in the file of --etcd-user"),
    (
        "permission denied",
        "check --cluster-name, or grant the user of --etcd-user the keys below /tenuto/NAME/",
    ),
    ("CommonName of client", "give --etcd-cert a certificate without a Common Name"),
    (
        "UnknownIssuer",
        "let SSL_CERT_FILE in the environment name the authority of etcd's certificate",
    ),
    ("NotValidForName", "give --cluster a name or an address that is in etcd's certificate"),
    ("not valid for name", "give --cluster a name or an address that is in etcd's certificate"),
    ("HTTP request to an HTTPS server", "give https:// addresses in --cluster"),
    ("CertificateRequired", ASKS_CERTIFICATE),
    ("BadCertificate", ASKS_CERTIFICATE),
    // A member that wants a certificate may end the connection before its reason has arrived.
    ("Broken pipe", MAY_ASK_CERTIFICATE),
    ("Connection reset", MAY_ASK_CERTIFICATE),
];

const ASKS_CERTIFICATE: &str = "give a certificate that etcd accepts: --etcd-cert and --etcd-key";
const MAY_ASK_CERTIFICATE: &str = "where etcd wants certificates of its clients, give --etcd-cert and \
                                   --etcd-key; else check that most members of etcd run";
const CHECK_MEMBERS: &str = "check --cluster, and that most members of etcd run";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_hint() {
        let refused = |message: &str| EtcdError::Refused {
            member: "https://a:2379".parse().unwrap(),
            code: 8,
            message: message.to_owned(),
        };
        let unreachable = |why: &str| EtcdError::Unreachable(format!("https://a:2379: {why}"));
        let rows = [
            (refused("etcdserver: mvcc: database space exceeded"), "etcdctl alarm disarm"),
            (refused("etcdserver: user name is empty"), "(--etcd-user)"),
            (refused("etcdserver: authentication is not enabled"), "leave out --etcd-user"),
            (
                refused(
                    "the user of --etcd-user: etcdserver: authentication failed, invalid user ID \
                     or password",
                ),
                "the password in the file of --etcd-user",
            ),
            (refused("etcdserver: permission denied"), "check --cluster-name"),
            (
                refused("CommonName of client sending a request against gateway will be ignored"),
                "without a Common Name",
            ),
            (unreachable("io: invalid peer certificate: UnknownIssuer"), "SSL_CERT_FILE"),
            (
                unreachable("io: invalid peer certificate: certificate not valid for name \"a\""),
                "in etcd's certificate",
            ),
            (unreachable("io: invalid peer certificate: NotValidForName"), "in etcd's certificate"),
            (
                unreachable(
                    "it answers 400 Bad Request: Client sent an HTTP request to an HTTPS server.",
                ),
                "https://",
            ),
            (unreachable("io: received fatal alert: CertificateRequired"), "--etcd-cert"),
            (unreachable("io: received fatal alert: BadCertificate"), "--etcd-cert"),
            (unreachable("io: Broken pipe (os error 32)"), "--etcd-cert"),
            (unreachable("io: Connection reset by peer (os error 104)"), "--etcd-cert"),
            (unreachable("timeout: global"), "most members of etcd run"),
            (unreachable("io: Connection refused (os error 111)"), "check --cluster, and"),
        ];
        for (error, wanted) in rows {
            assert!(error.hint().contains(wanted), "{error}: {}", error.hint());
        }
    }
}
