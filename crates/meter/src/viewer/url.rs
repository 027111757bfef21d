//! Addresses with `http` and `https`: the part of RFC 3986 that playlists and redirects need.

use super::{RequestError, ViewerError};

/// An address with `http` or `https`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Url {
    /// Whether the scheme is `https`.
    pub(crate) secure: bool,
    /// `HOST` or `HOST:PORT`, as in the `Host` header.
    pub(crate) authority: String,
    /// Path and query, beginning with `/`.
    pub(crate) target: String,
}

impl Url {
    /// Parses an absolute address; the default scheme is `http`.
    pub(crate) fn parse(text: &str) -> Result<Self, ViewerError> {
        let text = text.trim();
        let error = || ViewerError::Url { url: text.to_owned() };
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some(_) => return Err(error()),
            None => (false, text),
        };
        Self::of(secure, rest).ok_or_else(error)
    }

    /// Parses what follows the scheme.
    fn of(secure: bool, rest: &str) -> Option<Self> {
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let clean = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !clean(authority) || !clean(target) {
            return None;
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = format!("{slash}{target}");
        Some(Self { secure, authority: authority.to_owned(), target })
    }

    /// Resolves `reference` against this address.
    pub(crate) fn join(&self, reference: &str) -> Result<Self, ViewerError> {
        let error = || ViewerError::Url { url: reference.to_owned() };
        if has_scheme(reference) {
            return Self::parse(reference);
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return Self::of(self.secure, rest).ok_or_else(error);
        }
        let path = self.target.split('?').next().unwrap_or_default();
        let target = if reference.starts_with('/') {
            reference.to_owned()
        } else if reference.starts_with('?') {
            format!("{path}{reference}")
        } else {
            let folder = &path[..=path.rfind('/').unwrap_or(0)];
            format!("{folder}{reference}")
        };
        let rest = format!("{}{}", self.authority, without_dots(&target));
        Self::of(self.secure, &rest).ok_or_else(error)
    }

    /// The error of a request to this address.
    pub(crate) fn failed(&self, error: RequestError) -> ViewerError {
        ViewerError::Request { url: self.to_string(), error }
    }

    /// Adds parameters to the query.
    pub(crate) fn with_query(mut self, query: &str) -> Self {
        if !query.is_empty() {
            self.target.push(if self.target.contains('?') { '&' } else { '?' });
            self.target.push_str(query);
        }
        self
    }

    /// The path without the query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The host and port to be resolved, as `HOST:PORT`.
    pub(crate) fn host_and_port(&self) -> String {
        // The address in brackets has colons of its own (IPv6).
        let after_host = self.authority.rfind(']').unwrap_or(0);
        if self.authority[after_host..].contains(':') {
            self.authority.clone()
        } else {
            format!("{}:{}", self.authority, if self.secure { 443 } else { 80 })
        }
    }

    /// The name or address alone, as in a certificate.
    pub(crate) fn host(&self) -> &str {
        let authority = self.authority.as_str();
        match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => authority.split(':').next().unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.target)
    }
}

/// Whether it begins with `NAME://`; a query may contain that too.
fn has_scheme(reference: &str) -> bool {
    reference.split_once("://").is_some_and(|(scheme, _)| {
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Resolves `.` and `..` in the path of a target.
fn without_dots(target: &str) -> String {
    let (path, query) = match target.find('?') {
        Some(at) => target.split_at(at),
        None => (target, ""),
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        match part {
            ".." => {
                kept.pop();
            }
            "." => {}
            _ => kept.push(part),
        }
        if last && matches!(part, "." | "..") {
            kept.push("");
        }
    }
    format!("/{}{query}", kept.join("/"))
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
                (url.host_and_port().as_str(), url.host(), url.target.as_str()),
                (address, host, target)
            );
        }
    }

    #[test]
    fn an_invalid_address_is_refused() {
        for bad in ["", "http://", "ftp://a/", "http://u@a/", "http://a/b c", "http://a/b\r\nX: y"]
        {
            assert!(matches!(Url::parse(bad), Err(ViewerError::Url { .. })), "{bad:?}");
        }
    }
}
