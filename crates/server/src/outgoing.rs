//! Requests of the server to others over HTTP: which addresses can be named, and whose certificates
//! are trusted.

use rustls::crypto::ring;
use std::sync::Arc;
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
    Ok(uri)
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
