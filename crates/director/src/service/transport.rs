//! Connections to nodes: TCP, with TLS where the address of the node says so.

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use ureq::http::Uri;

use super::nodes::PATIENCE;

/// Where a node is reached, from the beginning of its addresses.
#[derive(Debug)]
pub(super) struct NodeAddress {
    is_secure: bool,
    name: String,
    port: u16,
    /// Host and port as the address has them.
    host: String,
    /// What stands before the paths of the node; empty for most.
    path: String,
}

/// A connection to a node.
pub(super) enum NodeStream {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// Opens connections to nodes; the certificates that the machine trusts are read when first needed.
#[derive(Default)]
pub(super) struct NodeTransports {
    tls: OnceLock<Arc<ClientConfig>>,
}

impl NodeAddress {
    pub(super) fn parse(address: &str) -> Result<Self, String> {
        let bad = |why: &str| Err(format!("its address '{}' {why}", address.escape_debug()));
        let Ok(uri) = address.parse::<Uri>() else { return bad("cannot be read") };
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return bad("begins neither with http:// nor with https://"),
        };
        let Some(authority) = uri.authority().filter(|all| !all.as_str().contains('@')) else {
            return bad("has no host");
        };
        if uri.query().is_some() {
            return bad("has a query");
        }
        Ok(Self {
            is_secure,
            name: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            host: authority.to_string(),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

impl NodeTransports {
    /// A new connection, opened before `deadline`.
    pub(super) fn connect(
        &self,
        node: &NodeAddress,
        deadline: Instant,
    ) -> Result<NodeStream, String> {
        let open = || -> io::Result<TcpStream> {
            let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            for address in (&*node.name, node.port).to_socket_addrs()? {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                match TcpStream::connect_timeout(&address, left) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        };
        let prepared = open().and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        });
        let stream = prepared.map_err(|error| error.to_string())?;
        if !node.is_secure {
            return Ok(NodeStream::Plain(stream));
        }
        let name = ServerName::try_from(node.name.clone())
            .map_err(|_| format!("'{}' is no name of a server", node.name))?;
        let connection = ClientConnection::new(Arc::clone(self.tls()), name)
            .map_err(|error| error.to_string())?;
        Ok(NodeStream::Secure(Box::new(StreamOwned::new(connection, stream))))
    }

    fn tls(&self) -> &Arc<ClientConfig> {
        self.tls.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            // An authority's certificate that cannot be parsed could verify nothing.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let provider = Arc::new(ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .expect("the provider knows TLS 1.2 and 1.3")
                .with_root_certificates(roots)
                .with_no_client_auth();
            Arc::new(config)
        })
    }
}

impl Read for NodeStream {
    fn read(&mut self, memory: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(memory),
            Self::Secure(stream) => stream.read(memory),
        }
    }
}

impl Write for NodeStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Secure(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_node_has_a_host_and_maybe_a_path() {
        let shown = |text: &str| {
            let found = NodeAddress::parse(text)?;
            let NodeAddress { is_secure, name, port, host, path } = found;
            Ok(format!("{is_secure} {name} {port} {host} {path}"))
        };
        let rows = [
            ("http://n1:8080", Ok("false n1 8080 n1:8080 ")),
            ("https://n1.example/", Ok("true n1.example 443 n1.example ")),
            ("http://[::1]:80/a/b", Ok("false ::1 80 [::1]:80 /a/b")),
            ("n1:8080", Err("begins neither")),
            ("http://a b", Err("cannot be read")),
            ("http://a\r\nX: y", Err("cannot be read")),
            ("http://u@a", Err("has no host")),
            ("http://a?b", Err("has a query")),
        ];
        for (text, wanted) in rows {
            match (shown(text), wanted) {
                (Ok(shown), Ok(wanted)) => assert_eq!(shown, wanted),
                (Err(why), Err(wanted)) => {
                    let why: String = why;
                    assert!(why.contains(wanted), "{why}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
