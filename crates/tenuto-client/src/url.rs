//! Addresses with `http`, `https`, `rtsp` and `rtsps`.

use super::{ClientError, RequestError};
use std::fmt;
use url::{ParseError, Position};

/// An address with `http`, `https`, `rtsp` or `rtsps`, without a user and a fragment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Url(url::Url);

impl Url {
    /// Parses an absolute address; the default scheme is `http`.
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        let text = text.trim();
        let scheme = if text.contains("://") { "" } else { "http://" };
        Self::of(url::Url::parse(&format!("{scheme}{text}")), text)
    }

    /// Resolves `reference` against this address.
    pub(crate) fn join(&self, reference: &str) -> Result<Self, ClientError> {
        Self::of(self.0.join(reference), reference)
    }

    fn of(parsed: Result<url::Url, ParseError>, text: &str) -> Result<Self, ClientError> {
        // The parser would mend white space and line breaks.
        let clean = text.bytes().all(|byte| byte.is_ascii_graphic());
        match parsed {
            Ok(mut url) if clean && is_served(&url) && !url.authority().contains('@') => {
                url.set_fragment(None);
                Ok(Self(url))
            }
            _ => Err(ClientError::Url { url: text.to_owned() }),
        }
    }

    /// Whether the scheme is one with TLS.
    pub(crate) fn is_secure(&self) -> bool {
        matches!(self.0.scheme(), "https" | "rtsps")
    }

    /// Whether the scheme is RTSP's.
    pub(crate) fn is_rtsp(&self) -> bool {
        matches!(self.0.scheme(), "rtsp" | "rtsps")
    }

    /// The address of `name` in this one as in a directory, without the query.
    pub(crate) fn below(&self, name: &str) -> String {
        let directory = self.0[..Position::AfterPath].trim_end_matches('/');
        format!("{directory}/{}", name.trim_start_matches('/'))
    }

    /// `HOST` or `HOST:PORT`, as in the `Host` header.
    pub(crate) fn authority(&self) -> &str {
        self.0.authority()
    }

    /// Path and query, beginning with `/`.
    pub(crate) fn target(&self) -> &str {
        &self.0[Position::BeforePath..]
    }

    /// The error of a request to this address.
    pub(crate) fn failed(&self, error: RequestError) -> ClientError {
        ClientError::Request { url: self.to_string(), error }
    }

    /// Adds parameters to the query.
    pub(crate) fn with_query(mut self, query: &str) -> Self {
        if !query.is_empty() {
            let all = self.0.query().map_or(query.to_owned(), |own| format!("{own}&{query}"));
            self.0.set_query(Some(&all));
        }
        self
    }

    /// The address with these parameters, and those of its own that have other names than any of a
    /// [`View`](crate::View) or of these.
    pub(crate) fn with_parameters(&self, query: &str) -> Self {
        let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
        let replaced = |pair: &&str| {
            VIEW_PARAMETERS.contains(&name(pair).as_str())
                || query.split('&').any(|new| name(new) == name(pair))
        };
        let own = self.query().split('&').filter(|pair| !pair.is_empty() && !replaced(pair));
        let all: Vec<&str> = own.chain(query.split('&')).filter(|pair| !pair.is_empty()).collect();
        let mut url = self.clone();
        url.0.set_query(Some(&all.join("&")));
        url
    }

    /// The query without its question mark; empty where there is none.
    pub(crate) fn query(&self) -> &str {
        self.0.query().unwrap_or_default()
    }

    /// The path without the query.
    pub(crate) fn path(&self) -> &str {
        self.0.path()
    }

    /// The host and port to be resolved, as `HOST:PORT`.
    pub(crate) fn host_and_port(&self) -> String {
        let of_rtsp = if self.is_secure() { 322 } else { 554 };
        let port = self.0.port_or_known_default().unwrap_or(of_rtsp);
        format!("{}:{port}", self.0.host_str().unwrap_or_default())
    }

    /// The name or address alone, as in a certificate.
    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The parameters of [`View::query`](crate::View::query).
const VIEW_PARAMETERS: [&str; 5] = ["start", "stop", "speed", "skip", "wait"];

fn is_served(url: &url::Url) -> bool {
    let known = matches!(url.scheme(), "http" | "https" | "rtsp" | "rtsps");
    known && url.host_str().is_some_and(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_in_players() {
        let base = Url::parse("http://host:8080/t/a%20film/master.m3u8?s=1").unwrap();
        let cases = [
            ("0.m3u8?s=T", "http://host:8080/t/a%20film/0.m3u8?s=T"),
            ("0/17.m4s", "http://host:8080/t/a%20film/0/17.m4s"),
            ("../b.mp4?x=/../y", "http://host:8080/t/b.mp4?x=/../y"),
            ("../../../..", "http://host:8080/"),
            ("./x/./y/..", "http://host:8080/t/a%20film/x/"),
            ("/t/b.mp4", "http://host:8080/t/b.mp4"),
            ("?s=2", "http://host:8080/t/a%20film/master.m3u8?s=2"),
            ("http://other/x", "http://other/x"),
            ("//other/x", "http://other/x"),
        ];
        for (reference, wanted) in cases {
            assert_eq!(base.join(reference).unwrap().to_string(), wanted, "{reference}");
        }
        let secure = Url::parse("https://host/t/a.m3u8").unwrap();
        assert_eq!(secure.join("//other/x").unwrap().to_string(), "https://other/x");
        assert_eq!(
            secure.join("b.m4s?u=http://x").unwrap().to_string(),
            "https://host/t/b.m4s?u=http://x"
        );
        assert_eq!(secure.join("http://h/x").unwrap().to_string(), "http://h/x");
    }

    #[test]
    fn parameters_are_replaced_and_others_stay() {
        let cases = [
            ("", "start=5&s=2", "start=5&s=2"),
            ("?token=a&start=1&speed=2&skip=3", "start=5&s=2", "token=a&start=5&s=2"),
            ("?s=1&&x", "&s=2", "x&s=2"),
        ];
        for (own, new, wanted) in cases {
            let url = Url::parse(&format!("http://host/t/film/master.m3u8{own}")).unwrap();
            assert_eq!(url.with_parameters(new).query(), wanted, "{own} {new}");
        }
    }

    #[test]
    fn hosts_and_ports() {
        let cases = [
            ("localhost", "localhost:80", "localhost", "/"),
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", "/"),
            ("HTTP://[::1]:9000/x#top", "[::1]:9000", "::1", "/x"),
            ("http://[::1]?q", "[::1]:80", "::1", "/?q"),
            ("https://films.example/a", "films.example:443", "films.example", "/a"),
        ];
        for (text, address, host, target) in cases {
            let url = Url::parse(text).unwrap();
            assert_eq!(
                (url.host_and_port().as_str(), url.host(), url.target()),
                (address, host, target)
            );
        }
    }

    #[test]
    fn an_invalid_address_is_refused() {
        for bad in ["", "http://", "ftp://a/", "http://u@a/", "http://a/b c", "http://a/b\r\nX: y"]
        {
            assert!(matches!(Url::parse(bad), Err(ClientError::Url { .. })), "{bad:?}");
        }
    }
}
