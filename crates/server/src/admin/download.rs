//! Files that are ingested by their address: downloaded over HTTP into the directory of
//! `--uploads`, and from there on as uploads are.
//!
//! FFmpeg opens no address. Each redirect is compared with `--ingest-from` as the first address
//! was, and the IP address is checked that a connection is made to. A download that is slower than
//! an upload may be is ended. There is no second attempt: the client asks again.

use super::ingests::IngestState;
use super::problem::Problem;
use super::upload::{UploadDirectory, UploadedFile};
use crate::address_prefix::{AddressPrefix, AllowedNetworks, allowed};
use crate::outgoing;
use std::error::Error;
use std::fmt;
use std::io::{self, Read};
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::http::header::{CONTENT_ENCODING, LOCATION};
use ureq::http::{Response, StatusCode, Uri};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};
use url::Url;

/// What a download is allowed.
#[derive(Debug)]
pub(super) struct DownloadRules<'a> {
    /// The beginnings of addresses.
    pub(super) prefixes: &'a [AddressPrefix],
    /// The time in which 16 KiB have to come.
    pub(super) patience: Duration,
    /// The most bytes.
    pub(super) most: u64,
}

/// An address without its query, which may be a signature.
pub(super) fn shown(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Checks an address, before anything is connected to.
pub(super) fn permitted(prefixes: &[AddressPrefix], url: &str) -> Result<Uri, Problem> {
    let named = shown(url);
    if prefixes.is_empty() {
        let message = "this server ingests no addresses";
        return Err(Problem::new(
            403,
            "addresses-disabled",
            message,
            "start it with --ingest-from",
        ));
    }
    let address = outgoing::parse_address(url).map_err(|why| {
        let hint = "for example https://media.example/film.mkv";
        Problem::new(400, "bad-address", format!("'{}' {why}", named.escape_debug()), hint)
    })?;
    allowed(prefixes, &address).map(|_| address).ok_or_else(|| not_allowed(&named))
}

/// Downloads a file.
pub(super) fn download<'a>(
    address: Uri,
    rules: &DownloadRules<'_>,
    directory: &'a UploadDirectory,
    ingest: &IngestState,
) -> Result<UploadedFile<'a>, Problem> {
    let mut address = address;
    for _ in 0..=MOST_REDIRECTS {
        ingest.check()?;
        let named = shown(&address.to_string());
        let networks = allowed(rules.prefixes, &address).ok_or_else(|| not_allowed(&named))?;
        let agent = agent(&address, networks, rules.patience).map_err(|why| failed(&named, why))?;
        ingest.downloads_with(&agent);
        let answer = agent.get(&address).header("Accept-Encoding", "identity").call();
        // What a client that was shut down says is not why.
        ingest.check()?;
        let answer = answer.map_err(|error| failed(&named, why(&error)))?;
        match answer.status() {
            StatusCode::OK => return keep(answer, &named, rules, directory, ingest),
            status if status.is_redirection() => address = redirected(&answer, &address, &named)?,
            status => return Err(failed(&named, format!("its server answers with {status}"))),
        }
    }
    Err(failed(&shown(&address.to_string()), format!("more than {MOST_REDIRECTS} redirects")))
}

/// Takes the body of an answer.
fn keep<'a>(
    mut answer: Response<Body>,
    named: &str,
    rules: &DownloadRules<'_>,
    directory: &'a UploadDirectory,
    ingest: &IngestState,
) -> Result<UploadedFile<'a>, Problem> {
    if let Some(coding) = answer.headers().get(CONTENT_ENCODING).filter(|one| *one != "identity") {
        return Err(failed(named, format!("it comes in the coding {coding:?}")));
    }
    let length = answer.body().content_length();
    if length.is_some_and(|length| length > rules.most) {
        return Err(too_large(rules.most));
    }
    ingest.expect(length);
    let mut file = directory.reserve(length.unwrap_or(0))?;
    let mut reader = answer.body_mut().as_reader();
    let mut piece = vec![0; PIECE];
    let (mut done, mut mark) = (0, (Instant::now(), 0));
    loop {
        let read = reader.read(&mut piece);
        ingest.check()?;
        let count = read.map_err(|error| failed(named, why_cut(error)))?;
        if count == 0 {
            break;
        }
        file.append(&piece[..count])?;
        done += count as u64;
        if done > rules.most {
            return Err(too_large(rules.most));
        }
        ingest.received(done);
        if mark.0.elapsed() >= rules.patience {
            if done - mark.1 < LEAST {
                return Err(failed(named, SLOW));
            }
            mark = (Instant::now(), done);
        }
    }
    match (length, done) {
        (Some(length), _) if length != done => {
            Err(failed(named, format!("{done} of {length} bytes came")))
        }
        (_, 0) => Err(failed(named, "it is empty")),
        _ => Ok(file),
    }
}

/// The address that an answer names instead.
fn redirected(answer: &Response<Body>, address: &Uri, named: &str) -> Result<Uri, Problem> {
    let elsewhere = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let elsewhere = elsewhere.ok_or_else(|| {
        failed(named, format!("its server answers with {} and names no address", answer.status()))
    })?;
    target_of(elsewhere, address).map_err(|why| {
        let elsewhere = shown(elsewhere);
        failed(named, format!("it is redirected to '{}', which {why}", elsewhere.escape_debug()))
    })
}

/// The target of a redirect, as a URL reference (RFC 3986, 5.2) beside the address. What was asked
/// for in a secure connection comes over none other.
fn target_of(elsewhere: &str, address: &Uri) -> Result<Uri, &'static str> {
    let base = Url::parse(&address.to_string()).map_err(|_| NO_ADDRESS)?;
    let whole = base.join(elsewhere).map_err(|_| NO_ADDRESS)?;
    let target = outgoing::parse_address(whole.as_str())?;
    match (base.scheme(), target.scheme_str()) {
        ("https", Some("http")) => Err("has no secure connection"),
        _ => Ok(target),
    }
}

/// An HTTP client for one address.
fn agent(
    address: &Uri,
    networks: AllowedNetworks,
    patience: Duration,
) -> Result<Agent, &'static str> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // A proxy would connect to where this server must not.
        .proxy(None)
        .max_redirects(0)
        .tls_config(outgoing::tls_for(address)?)
        .timeout_resolve(Some(PATIENCE))
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(patience))
        .timeout_per_read(Some(patience))
        .user_agent("tenuto")
        .build();
    let resolver = NetworkResolver { networks, inner: DefaultResolver::default() };
    Ok(Agent::with_parts(config, DefaultConnector::default(), resolver))
}

/// Resolves names to addresses in allowed networks.
#[derive(Debug)]
struct NetworkResolver {
    networks: AllowedNetworks,
    inner: DefaultResolver,
}

impl Resolver for NetworkResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout).map_err(|error| match error {
            ureq::Error::Io(_) => ureq::Error::HostNotFound,
            other => other,
        })?;
        let mut result = self.empty();
        for address in found.iter().filter(|address| self.networks.has(address.ip())) {
            result.push(*address);
        }
        match result.is_empty() {
            true => Err(ureq::Error::Other(Box::new(PrivateNetwork))),
            false => Ok(result),
        }
    }
}

/// A host that is in a private network or this machine, and was not named.
#[derive(Clone, Copy, Debug)]
struct PrivateNetwork;

impl fmt::Display for PrivateNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "its host is in a private network or this machine, and --ingest-from does not name it",
        )
    }
}

impl Error for PrivateNetwork {}

/// Why no answer came.
fn why(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "its host is not found".to_owned(),
        ureq::Error::Timeout(_) => "its server does not answer in time".to_owned(),
        ureq::Error::Io(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "its server refuses the connection".to_owned(),
            io::ErrorKind::TimedOut => "its server does not answer in time".to_owned(),
            _ => format!("the connection failed: {error}"),
        },
        ureq::Error::Rustls(error) => format!("there is no secure connection: {error}"),
        ureq::Error::Protocol(error) => format!("its server does not speak HTTP: {error}"),
        // What this server's own parts say, such as the resolver.
        ureq::Error::Other(why) => why.to_string(),
        other => other.to_string(),
    }
}

/// Why the rest of a body did not come.
fn why_cut(error: io::Error) -> String {
    match ureq::Error::from(error) {
        ureq::Error::Timeout(_) => SLOW.to_owned(),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => SLOW.to_owned(),
        error => format!("the rest did not come: {error}"),
    }
}

fn failed(named: &str, why: impl fmt::Display) -> Problem {
    let hint = "is the address right, and is its server there?";
    Problem::new(502, "not-downloaded", format!("{named} cannot be downloaded: {why}"), hint)
}

fn not_allowed(named: &str) -> Problem {
    let message = format!("{named} is no address that this server may ingest");
    Problem::new(403, "address-not-allowed", message, "its --ingest-from names those that it may")
}

fn too_large(most: u64) -> Problem {
    let message = format!("the file is larger than the free space of the disk, {most} bytes");
    Problem::new(413, "too-large", message, "remove titles first")
}

/// What is wrong with a redirect to what cannot be read.
const NO_ADDRESS: &str = "is no address";
const SLOW: &str = "it comes too slowly";
/// Most redirects of one download; browsers follow 20.
const MOST_REDIRECTS: usize = 5;
/// Time for the resolution of a name, and for a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that have to come in the time of patience, as in that of an upload.
const LEAST: u64 = 16 * 1024;
/// Bytes of one read.
const PIECE: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_to_addresses_of_the_same_or_a_more_secure_scheme() {
        let target = |from: &str, to: &str| {
            let target = target_of(to, &from.parse().unwrap());
            target.map_or_else(|why| format!("it {why}"), |target| target.to_string())
        };
        for (from, to, wanted) in [
            ("https://a.example/x", "/y?z=1", "https://a.example/y?z=1"),
            ("http://a.example:81/x", "/y", "http://a.example:81/y"),
            ("http://a.example/x", "https://b.example/y", "https://b.example/y"),
            ("https://a.example/x", "http://a.example/y", "it has no secure connection"),
            ("https://a.example/x", "//b.example/y", "https://b.example/y"),
            ("https://a.example/x", "//me:word@b.example/y", "it has no host, or a password"),
            ("https://a.example/u/x?z=1", "y", "https://a.example/u/y"),
            ("https://a.example/u/v/x", "../y?z=2", "https://a.example/u/y?z=2"),
            ("https://a.example/x", "?z=2", "https://a.example/x?z=2"),
            ("https://a.example/x", "https://:80/", "it is no address"),
            (
                "https://a.example/x",
                "file:///y",
                "it begins neither with https:// nor with http://",
            ),
            ("https://a.example/x", "https://me:word@a.example/", "it has no host, or a password"),
        ] {
            assert_eq!(target(from, to), wanted, "{from} {to}");
        }
    }
}
