//! Where a server or a director may listen without TLS and tokens: on addresses that strangers
//! cannot reach.
//!
//! | address | |
//! |---|---|
//! | loopback, private (RFC 1918, RFC 4193), link-local | in the clear and without tokens, if wanted |
//! | any other | TLS and tokens, or `--insecure` |
//! | all addresses (`0.0.0.0`, `::`) | as any other: which ones the machine has, or gets later, is not known here |

use crate::ServerConfig;
use std::net::{IpAddr, SocketAddr};
use units::Reason;

/// Refuses a configuration that would let strangers watch, or others look on.
pub(crate) fn check(config: &ServerConfig) -> Result<(), Reason> {
    let missing = match Missing::of(config.tls.is_some(), config.tokens.is_some()) {
        Some(missing) if !config.insecure => missing,
        _ => return Ok(()),
    };
    let listen = (config.listen, "--listen");
    let rtsp = config.rtsp.map(|address| (address, "--rtsp"));
    match [listen].into_iter().chain(rtsp).find(|(address, _)| is_public(address.ip())) {
        None => Ok(()),
        Some((address, option)) => {
            let what = match missing {
                Missing::Tls => "what viewers watch, and their tokens, would go in the clear",
                Missing::Tokens => "everybody could watch",
                Missing::TlsAndTokens => "everybody could watch, and look on",
            };
            Err(refusal(address, option, missing, what))
        }
    }
}

/// Refuses an address at which strangers could read tokens on their way to a director, or see what
/// it shows of nodes and titles. It shows nothing over RTSP, at `rtsp`.
///
/// # Errors
/// A public address without TLS or without tokens.
pub fn check_director(
    listen: SocketAddr,
    rtsp: Option<SocketAddr>,
    has_tls: bool,
    has_tokens: bool,
) -> Result<(), Reason> {
    if let Some(rtsp) = rtsp.filter(|rtsp| is_public(rtsp.ip()) && !has_tls) {
        return Err(refusal(rtsp, "--rtsp", Missing::Tls, "tokens would go in the clear"));
    }
    match Missing::of(has_tls, has_tokens) {
        Some(missing) if is_public(listen.ip()) => {
            let what = match missing {
                Missing::Tls => "tokens would go in the clear",
                Missing::Tokens => "everybody could see its nodes and titles",
                Missing::TlsAndTokens => {
                    "tokens would go in the clear, and everybody could see its nodes and titles"
                }
            };
            Err(refusal(listen, "--listen", missing, what))
        }
        _ => Ok(()),
    }
}

#[derive(Clone, Copy)]
enum Missing {
    Tls,
    Tokens,
    TlsAndTokens,
}

impl Missing {
    fn of(has_tls: bool, has_tokens: bool) -> Option<Self> {
        match (has_tls, has_tokens) {
            (true, true) => None,
            (false, true) => Some(Self::Tls),
            (true, false) => Some(Self::Tokens),
            (false, false) => Some(Self::TlsAndTokens),
        }
    }
}

fn refusal(address: SocketAddr, option: &str, missing: Missing, what: &str) -> Reason {
    let whole = if address.ip().is_unspecified() {
        "all addresses of this machine, public ones included"
    } else {
        "a public address"
    };
    let (tls, tokens) = match missing {
        Missing::Tls => (true, false),
        Missing::Tokens => (false, true),
        Missing::TlsAndTokens => (true, true),
    };
    let tls = if tls { "--tls-certificate CERT.pem --tls-key KEY.pem" } else { "" };
    let tokens = if tokens { "--tokens KEYS" } else { "" };
    let both = if tls.is_empty() || tokens.is_empty() { "" } else { " " };
    let port = address.port();
    Reason::new(
        format!("{option} {address} is {whole}: {what}"),
        format!(
            "add {tls}{both}{tokens}; or {option} with a private address of this machine \
             (192.168.1.5:{port}; 127.0.0.1:{port} for a proxy on it); or --insecure, if a firewall \
             or a container keeps strangers out"
        ),
    )
}

/// Whether strangers may reach an address.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_private() || v4.is_link_local()),
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TlsFiles;

    #[test]
    fn public_addresses_are_those_that_are_neither_local_nor_private() {
        for (address, public) in [
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.168.1.5", false),
            ("169.254.7.7", false),
            ("::1", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("::ffff:10.1.2.3", false),
            ("::ffff:127.0.0.1", false),
            ("0.0.0.0", true),
            ("::", true),
            ("::ffff:0.0.0.0", true),
            ("8.8.8.8", true),
            ("172.32.0.1", true),
            // Shared by the customers of a provider (RFC 6598): strangers.
            ("100.64.0.1", true),
            ("2606:4700::1", true),
            ("::ffff:8.8.8.8", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[test]
    fn a_refusal_names_the_option_and_what_to_add() {
        let tls = || Some(TlsFiles { certificate: "c.pem".into(), key: "k.pem".into() });
        let tokens = || Some("keys.json".into());
        let private = "192.168.1.5:8080";
        let table = [
            ("0.0.0.0:8080", None, None, None, "--tls-key KEY.pem --tokens KEYS; or --listen"),
            ("0.0.0.0:8080", None, tls(), None, "add --tokens KEYS; or --listen"),
            ("[::]:8080", None, None, tokens(), "--tls-key KEY.pem; or --listen"),
            ("8.8.8.8:8080", None, None, None, "a public address"),
            (private, Some("0.0.0.0:8554"), None, None, "or --rtsp with a private"),
            ("0.0.0.0:8080", None, tls(), tokens(), ""),
            (private, Some("127.0.0.1:8554"), None, None, ""),
        ];
        for (listen, rtsp, tls, tokens, wanted) in table {
            let mut config = ServerConfig {
                listen: listen.parse().unwrap(),
                rtsp: rtsp.map(|address| address.parse().unwrap()),
                tls,
                tokens,
                ..ServerConfig::default()
            };
            let refused = check(&config)
                .err()
                .map(|reason| format!("{} {}", reason.message, reason.hint.unwrap_or_default()));
            match refused {
                None => assert_eq!(wanted, "", "{listen}"),
                Some(text) => assert!(!wanted.is_empty() && text.contains(wanted), "{text}"),
            }
            config.insecure = true;
            assert!(check(&config).is_ok(), "{listen}");
        }
    }

    #[test]
    fn a_director_is_refused_where_strangers_reach_it() {
        let rows = [
            (
                "0.0.0.0:8090",
                false,
                false,
                "add --tls-certificate CERT.pem --tls-key KEY.pem --tokens",
            ),
            ("0.0.0.0:8090", true, false, "everybody could see its nodes and titles"),
            ("8.8.8.8:8090", false, true, "tokens would go in the clear"),
            ("0.0.0.0:8090", true, true, ""),
            ("192.168.1.5:8090", false, false, ""),
        ];
        let rtsp = "0.0.0.0:8554".parse().ok();
        let refused = check_director("10.0.0.1:80".parse().unwrap(), rtsp, false, true).err();
        let text = refused.map(|it| format!("{} {}", it.message, it.hint.unwrap_or_default()));
        let text = text.unwrap_or_default();
        assert!(text.contains("or --rtsp with a private address"), "{text}");
        assert!(check_director("10.0.0.1:80".parse().unwrap(), rtsp, true, false).is_ok());
        for (listen, tls, tokens, wanted) in rows {
            let refused = check_director(listen.parse().unwrap(), None, tls, tokens).err();
            let text = refused.map(|it| format!("{} {}", it.message, it.hint.unwrap_or_default()));
            let text = text.unwrap_or_default();
            assert!(text.contains(wanted) && text.is_empty() == wanted.is_empty(), "{text}");
        }
    }
}
