//! Where the members of etcd are reached, and which of its keys belong to a cluster.

use super::access::EtcdAccess;
use cluster::ClusterName;
use std::fmt;
use std::str::FromStr;
use units::Reason;
use ureq::http::Uri;

/// An etcd, and the cluster whose records are in it.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// The members of etcd. Another one is asked when one does not answer.
    pub endpoints: Vec<EtcdAddress>,
    /// The cluster: its records are below `/tenuto/NAME/`.
    pub cluster: ClusterName,
    /// What etcd is shown of this program.
    pub access: EtcdAccess,
}

/// The address of a member of etcd: `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdAddress(String);

impl EtcdAddress {
    /// The address, without a `/` at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the member is asked over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.starts_with("https:")
    }
}

impl FromStr for EtcdAddress {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        let bad = |why: &str| {
            let hint = "for example http://10.0.0.1:2379";
            Err(Reason::new(format!("'{text}' {why}"), hint))
        };
        let Ok(uri) = text.parse::<Uri>() else { return bad("is no address") };
        let scheme = match uri.scheme_str() {
            Some(scheme @ ("http" | "https")) => scheme,
            _ => return bad("begins neither with http:// nor with https://"),
        };
        let Some(authority) = uri.authority() else { return bad("has no host") };
        if authority.as_str().contains('@') {
            return bad("has a password, which is not supported");
        }
        if uri.port().is_none() {
            return bad("has no port; that of etcd is 2379");
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return bad("has a path");
        }
        Ok(Self(format!("{scheme}://{authority}")))
    }
}

impl fmt::Display for EtcdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_a_host_and_a_port() {
        let rows = [
            ("http://127.0.0.1:2379", Ok("http://127.0.0.1:2379")),
            ("https://etcd.example:2379/", Ok("https://etcd.example:2379")),
            ("http://[::1]:2379", Ok("http://[::1]:2379")),
            ("", Err("is no address")),
            ("127.0.0.1:2379", Err("begins neither")),
            ("ftp://a:1", Err("begins neither")),
            ("http://a", Err("has no port")),
            ("http://a:1/v3", Err("has a path")),
            ("http://a:1?b", Err("has a path")),
            ("http://a:b@c:1", Err("has a password")),
        ];
        for (text, wanted) in rows {
            match (text.parse::<EtcdAddress>(), wanted) {
                (Ok(address), Ok(wanted)) => assert_eq!(address.to_string(), wanted),
                (Err(reason), Err(why)) => assert!(reason.message.contains(why), "{reason}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
