//! Requests of the server to others over HTTP: which addresses can be named, whose certificates are
//! trusted, and the client that sends to an address of the operator's.

use rustls::crypto::ring;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Parses an address of another server; the error says what is wrong with it, after its text.
pub(crate) fn parse_address(url: &str) -> Result<Uri, &'static str> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !["https", "http"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err("begins neither with https:// nor with http://");
    }
    let Ok(uri) = url.parse::<Uri>() else { return Err("is no address") };
    let has_host = uri.host().is_some_and(|host| !host.is_empty());
    if !has_host || uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
        return Err("has no host, or a password");
    }
    if uri.port_u16().is_none()
        && uri.authority().map(ureq::http::uri::Authority::as_str) != uri.host()
    {
        return Err("has a port that is no number from 1 to 65535");
    }
    Ok(uri)
}

/// An HTTP client for an address that the operator has named, with this time for a request. The
/// error says what is wrong, after the text of the address.
pub(crate) fn agent(url: &str, patience: Duration) -> Result<Agent, &'static str> {
    let tls = parse_address(url).and_then(|uri| tls_for(&uri))?;
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // The operator has named where requests go.
        .proxy(None)
        .max_redirects(0)
        .max_idle_connections_per_host(KEPT_CONNECTIONS)
        .max_idle_connections(KEPT_CONNECTIONS)
        .tls_config(tls)
        .timeout_global(Some(patience))
        .user_agent("tenuto")
        .build();
    Ok(config.new_agent())
}

/// The TLS configuration for an address: what this machine trusts is trusted. The error says what
/// is missing, after the text of the address.
pub(crate) fn tls_for(address: &Uri) -> Result<TlsConfig, &'static str> {
    tls(address.scheme_str() == Some("https"))
}

/// The TLS configuration of a client, without authorities where no address is secure. The error
/// says what is missing, after the text of an address.
pub(crate) fn tls(is_secure: bool) -> Result<TlsConfig, &'static str> {
    let roots = if is_secure { rustls_native_certs::load_native_certs().certs } else { Vec::new() };
    if is_secure && roots.is_empty() {
        return Err(
            "cannot be verified: this machine trusts no authority; install ca-certificates",
        );
    }
    let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned());
    let provider = Arc::new(ring::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    Ok(config.root_certs(RootCerts::from(roots)).build())
}

/// Connections that a client keeps for its next requests.
const KEPT_CONNECTIONS: usize = 16;
