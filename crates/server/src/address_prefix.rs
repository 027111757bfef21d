//! Addresses that titles may be ingested from (`--ingest-from`), and the networks in which they may
//! be.
//!
//! ```text
//!   --ingest-from https://media.example/masters/     this host, below this path; in any network,
//!                                                    because the operator has named the host
//!   --ingest-from https://                           every host, except this machine and those in
//!                                                    private networks
//! ```
//!
//! A server that fetches addresses for others reaches what they cannot: its own machine, its
//! network, the metadata service of a cloud. So nothing is allowed that is not named, an address is
//! compared name by name and not as text, and the networks are checked on the IP address that is
//! connected to, after the name was resolved.

use crate::outgoing;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::str::FromStr;
use thiserror::Error;
use ureq::http::Uri;

/// The beginning of addresses that titles may be ingested from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPrefix {
    scheme: &'static str,
    /// `None`: any host that is not in a private network.
    host: Option<(String, u16)>,
    /// The path, which begins with `/`.
    path: String,
}

/// A text that is no beginning of an address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' {1}; it is such as https://media.example/masters/, or https:// for every public host"
)]
pub struct BadPrefix(String, &'static str);

/// The networks in which an allowed address may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedNetworks {
    /// The operator has named the host.
    All,
    /// The networks of the Internet, without this machine's own addresses.
    Public,
}

/// In which networks an address may be; `None` if it is not allowed at all.
pub(crate) fn allowed(prefixes: &[AddressPrefix], address: &Uri) -> Option<AllowedNetworks> {
    let mut networks = None;
    for prefix in prefixes.iter().filter(|prefix| prefix.has(address)) {
        match prefix.host {
            Some(_) => return Some(AllowedNetworks::All),
            None => networks = Some(AllowedNetworks::Public),
        }
    }
    networks
}

impl AllowedNetworks {
    pub(crate) fn has(self, address: IpAddr) -> bool {
        self == Self::All || (is_global(address) && !is_own(address))
    }
}

impl AddressPrefix {
    fn has(&self, address: &Uri) -> bool {
        let is_host = match &self.host {
            None => true,
            Some(host) => host_of(address).is_some_and(|other| other == *host),
        };
        let rest = address.path().strip_prefix(&*self.path);
        let is_below = rest.is_some_and(|rest| {
            self.path.ends_with('/') || rest.is_empty() || rest.starts_with('/')
        });
        address.scheme_str() == Some(self.scheme) && is_host && is_below && is_plain(address.path())
    }
}

impl FromStr for AddressPrefix {
    type Err = BadPrefix;

    fn from_str(text: &str) -> Result<Self, BadPrefix> {
        if let Some(scheme) = ["https", "http"].into_iter().find(|one| text == format!("{one}://"))
        {
            return Ok(Self { scheme, host: None, path: "/".to_owned() });
        }
        let bad = |why| BadPrefix(text.to_owned(), why);
        let address = outgoing::parse_address(text).map_err(bad)?;
        if address.query().is_some() || !is_plain(address.path()) {
            return Err(bad("has a query, or names such as '..'"));
        }
        let scheme = if address.scheme_str() == Some("https") { "https" } else { "http" };
        let host = Some(host_of(&address).ok_or_else(|| bad("has no port"))?);
        Ok(Self { scheme, host, path: address.path().to_owned() })
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            None => write!(f, "{}://", self.scheme),
            Some((host, port)) => write!(f, "{}://{host}:{port}{}", self.scheme, self.path),
        }
    }
}

/// The host in small letters, and the port.
fn host_of(address: &Uri) -> Option<(String, u16)> {
    let port = match (address.port_u16(), address.scheme_str()) {
        (Some(port), _) => port,
        // A port that is no number.
        (None, _) if address.authority()?.as_str() != address.host()? => return None,
        (None, Some("https")) => 443,
        (None, _) => 80,
    };
    Some((address.host()?.to_ascii_lowercase(), port))
}

/// Whether no name of a path leads upwards, also where a server decodes it before it looks.
fn is_plain(path: &str) -> bool {
    let decoded = percent_decode_str(path).collect::<Vec<u8>>();
    let mut names = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
    names.all(|name| !matches!(name, b"." | b".."))
}

/// Whether an IP address is one of the Internet (IANA's registries of special addresses).
fn is_global(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => is_global_v6(address),
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_local = address.is_private() || address.is_loopback() || address.is_link_local();
    let is_reserved = a == 0 || a >= 224 || address.is_documentation();
    // Carrier-grade NAT, protocol assignments, relays to IPv6, benchmarks.
    let is_special = (a == 100 && b & 0xc0 == 64)
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && b & 0xfe == 18);
    !is_local && !is_reserved && !is_special
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // All that is assigned is in 2000::/3; in it are tunnels, which may end anywhere (Teredo,
    // 6to4), and documentation.
    let is_special =
        (a == 0x2001 && (b < 0x200 || b == 0xdb8)) || a == 0x2002 || (a == 0x3fff && b < 0x1000);
    a & 0xe000 == 0x2000 && !is_special
}

/// Whether an address is one of this machine's own. Nothing is sent.
fn is_own(ip: IpAddr) -> bool {
    let free = SocketAddr::new(ip, 0);
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Where a socket may have an address that the machine lacks, a way to it has another source.
    let is_source = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((ip, DISCARD))?;
        socket.local_addr()
    };
    UdpSocket::bind(free).is_ok()
        && (!binds_to_any() || is_source().is_ok_and(|local| local.ip() == ip))
}

/// Whether the kernel lets sockets have addresses that the machine lacks.
fn binds_to_any() -> bool {
    ["ipv4", "ipv6"].iter().any(|version| {
        let path = format!("/proc/sys/net/{version}/ip_nonlocal_bind");
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
    })
}

/// A port at which nothing answers (RFC 863); a socket is connected to it, and sends nothing.
const DISCARD: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_its_own() {
        for (address, wanted) in
            [("127.0.0.1", true), ("::1", true), ("192.0.2.7", false), ("2001:db8::7", false)]
        {
            assert_eq!(is_own(address.parse().unwrap()), wanted, "{address}");
        }
    }

    #[test]
    fn addresses_are_allowed_name_by_name() {
        let prefixes = ["https://Media.example/masters", "http://10.0.0.9:8000/", "https://"];
        let prefixes = prefixes.map(|text| text.parse::<AddressPrefix>().unwrap());
        let all = Some(AllowedNetworks::All);
        for (address, wanted) in [
            ("https://media.example/masters/film.mkv?signature=x", all),
            ("https://MEDIA.example:443/masters", all),
            ("http://10.0.0.9:8000/film.mkv", all),
            ("https://media.example/masters2/film.mkv", Some(AllowedNetworks::Public)),
            ("https://media.example:8443/masters/film.mkv", Some(AllowedNetworks::Public)),
            ("https://media.example.evil.example/", Some(AllowedNetworks::Public)),
            ("https://media.example/masters/../keys", None),
            ("https://media.example/masters/%2e%2E/keys", None),
            ("https://media.example/masters/..%2fkeys", None),
            ("http://media.example/masters/film.mkv", None),
            ("http://10.0.0.9/film.mkv", None),
            ("http://10.0.0.90:8000/film.mkv", None),
        ] {
            assert_eq!(allowed(&prefixes, &address.parse().unwrap()), wanted, "{address}");
        }
        assert_eq!(allowed(&[], &"https://media.example/".parse().unwrap()), None);
    }

    #[test]
    fn a_text_that_is_no_beginning_of_an_address_is_refused() {
        for (text, why) in [
            ("media.example", "begins neither"),
            ("file:///srv/films", "begins neither"),
            ("https://me:word@media.example/", "has no host, or a password"),
            ("https://media.example/?x=1", "has a query"),
            ("https://media.example/a/../b", "names such as '..'"),
            ("ftp://", "begins neither"),
        ] {
            let error = text.parse::<AddressPrefix>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let shown = "https://media.example/masters/".parse::<AddressPrefix>().unwrap();
        assert_eq!(shown.to_string(), "https://media.example:443/masters/");
    }

    #[test]
    fn public_networks_are_those_of_the_internet() {
        for (address, is_public) in [
            ("93.184.216.34", true),
            ("2606:2800:220:1::1", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::1", false),
            ("::", false),
            ("::ffff:127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("2002:7f00:1::1", false),
            ("2001:db8::1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(AllowedNetworks::Public.has(address), is_public, "{address}");
            assert!(AllowedNetworks::All.has(address));
        }
    }
}
