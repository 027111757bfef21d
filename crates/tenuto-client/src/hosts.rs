//! Hosts: address, TLS settings, and connection times.

use super::ClientError;
use super::url::Url;
use super::wire::Opened;
use crate::tls::{Identity, Trust};
use mio::Registry;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::Moment;

/// The resources that the connections of a run share.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) registry: Registry,
    pub(crate) hosts: Hosts,
    /// The zero of the run's clock.
    pub(crate) begun: Instant,
    /// The times of each connection that was opened.
    pub(crate) opened: Vec<Opened>,
    /// Bytes that the viewer whose socket is served may still read; `None`: there is no limit.
    pub(crate) room: Option<usize>,
}

impl Network {
    pub(crate) fn now(&self) -> Moment {
        Moment::ZERO + self.begun.elapsed()
    }

    /// The part of a buffer that the viewer may fill; `None` where it may read nothing now.
    pub(crate) fn readable<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let length = self.room.map_or(buffer.len(), |room| room.min(buffer.len()));
        (length > 0).then(|| &mut buffer[..length])
    }

    /// Notes that the viewer has read bytes.
    pub(crate) fn has_read(&mut self, bytes: usize) {
        self.room = self.room.map(|room| room.saturating_sub(bytes));
    }
}

/// The hosts of a run. Each is resolved and connected to once at the start, so that a wrong address
/// is reported before hundreds of viewers use it.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    known: BTreeMap<String, SocketAddr>,
    trust: Trust,
    identity: Option<Identity>,
    /// The TLS configuration, made when it is first needed: reading the trusted certificates takes
    /// a while.
    config: Option<Arc<ClientConfig>>,
}

impl Hosts {
    pub(crate) fn new(trust: Trust, identity: Option<Identity>) -> Self {
        Self { trust, identity, ..Self::default() }
    }

    /// An address on which `host_and_port` accepts connections.
    pub(crate) fn resolve(&mut self, host_and_port: &str) -> Result<SocketAddr, ClientError> {
        if let Some(address) = self.known.get(host_and_port) {
            return Ok(*address);
        }
        let addresses = host_and_port.to_socket_addrs().map_err(|error| ClientError::Host {
            host: host_and_port.to_owned(),
            reason: error.to_string(),
        })?;
        let mut reason = "it has no address".to_owned();
        for address in addresses {
            // The first address may be of a protocol that this machine cannot use.
            match std::net::TcpStream::connect_timeout(&address, CONNECT) {
                Ok(_) => {
                    self.known.insert(host_and_port.to_owned(), address);
                    return Ok(address);
                }
                Err(error) => reason = error.to_string(),
            }
        }
        Err(ClientError::Connect { address: host_and_port.to_owned(), reason })
    }

    /// Takes an address in numbers as it is. It is tried when a viewer goes there: a host that is
    /// gone would keep all others waiting meanwhile.
    pub(crate) fn trust_address(&mut self, host_and_port: &str) {
        if let Ok(address) = host_and_port.parse() {
            self.known.entry(host_and_port.to_owned()).or_insert(address);
        }
    }

    /// The TLS settings for the host of `url`, if it uses TLS.
    pub(crate) fn secure(
        &mut self,
        url: &Url,
    ) -> Result<Option<(Arc<ClientConfig>, ServerName<'static>)>, ClientError> {
        if !url.is_secure() {
            return Ok(None);
        }
        let config = match &self.config {
            Some(config) => config,
            None => {
                let own = self.identity.as_ref().map(Identity::read).transpose()?;
                self.config.insert(self.trust.config(own)?)
            }
        };
        let name = ServerName::try_from(url.host().to_owned())
            .map_err(|_| ClientError::Url { url: url.to_string() })?;
        Ok(Some((Arc::clone(config), name)))
    }
}

/// The time limit for a test connection.
const CONNECT: Duration = Duration::from_secs(5);
