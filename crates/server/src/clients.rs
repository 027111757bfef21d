//! What one client may hold of what all share: connections, and sessions that it does not play.
//!
//! A client is an address, because a stranger has no other name. Limits that are not configured do
//! not apply to this machine: a proxy on it speaks for many viewers, and whoever measures a server
//! is many viewers.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The address by which a client is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientAddress(IpAddr);

impl ClientAddress {
    /// The client at an address. All IPv6 addresses of one /64 network are one client, because one
    /// subscriber has them all.
    pub(crate) fn of(peer: IpAddr) -> Self {
        Self(match peer.to_canonical() {
            IpAddr::V6(v6) if !v6.is_loopback() => {
                let [a, b, c, d, ..] = v6.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            other => other,
        })
    }

    /// An address of the client: [`ClientAddress::of`] it is the client.
    pub(crate) fn address(self) -> IpAddr {
        self.0
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V6(v6) if !v6.is_loopback() => write!(f, "{v6}/64"),
            other => write!(f, "{other}"),
        }
    }
}

/// The most of one thing that each client may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientLimit {
    others: usize,
    loopback: usize,
}

impl ClientLimit {
    /// The configured limit; without one `default`, and none for this machine.
    pub(crate) fn new(configured: Option<usize>, default: usize) -> Self {
        Self { others: configured.unwrap_or(default), loopback: configured.unwrap_or(usize::MAX) }
    }

    /// The most that this client may hold.
    pub(crate) fn of(&self, client: ClientAddress) -> usize {
        if client.0.is_loopback() { self.loopback } else { self.others }
    }
}

/// How much of one thing each client holds.
#[derive(Debug, Default)]
pub(crate) struct ClientCounts(HashMap<ClientAddress, usize>);

impl ClientCounts {
    /// How much a client holds.
    pub(crate) fn held(&self, client: ClientAddress) -> usize {
        self.0.get(&client).copied().unwrap_or(0)
    }

    /// A client takes one more.
    pub(crate) fn add(&mut self, client: ClientAddress) {
        *self.0.entry(client).or_default() += 1;
    }

    /// A client gives one back.
    pub(crate) fn remove(&mut self, client: ClientAddress) {
        if let Some(held) = self.0.get_mut(&client) {
            *held -= 1;
            // Only clients that hold something have an entry, so that strangers cost no memory.
            if *held == 0 {
                self.0.remove(&client);
            }
        }
    }
}

/// Connections of one client where none are configured: ten clients are needed to fill a server.
pub(crate) const CLIENT_CONNECTIONS: usize = 1000;
/// Unplayed sessions of one client where none are configured: a player has one for a second, so
/// that this many let some ten viewers behind one address begin in each second.
pub(crate) const CLIENT_UNPLAYED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> ClientAddress {
        ClientAddress::of(address.parse().unwrap())
    }

    #[test]
    fn a_client_is_an_address_or_an_ipv6_network() {
        for (one, other, same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
        ] {
            assert_eq!(client(one) == client(other), same, "{one}, {other}");
        }
        assert_eq!(client("2001:db8::1").to_string(), "2001:db8::/64");
    }

    #[test]
    fn this_machine_has_the_configured_limit_only() {
        let (default, configured) = (ClientLimit::new(None, 16), ClientLimit::new(Some(3), 16));
        for (address, by_default) in [
            ("192.0.2.1", 16),
            ("2001:db8::1", 16),
            ("127.0.0.1", usize::MAX),
            ("::1", usize::MAX),
            ("::ffff:127.0.0.9", usize::MAX),
        ] {
            let client = client(address);
            assert_eq!((default.of(client), configured.of(client)), (by_default, 3), "{address}");
        }
    }

    #[test]
    fn clients_that_hold_nothing_are_forgotten() {
        let mut counts = ClientCounts::default();
        let (one, other) = (client("192.0.2.1"), client("192.0.2.2"));
        for client in [one, one, other] {
            counts.add(client);
        }
        assert_eq!((counts.held(one), counts.held(other)), (2, 1));
        for client in [one, other, one, other] {
            counts.remove(client);
        }
        assert!(counts.0.is_empty());
    }
}
