//! The addresses that a run plays: those given, and all titles of a server given by its root.

use super::connection::render;
use super::hosts::Hosts;
use super::http::ResponseReader;
use super::options::Form;
use super::source::FetchRequest;
use super::url::Url;
use super::{ClientError, PlayOptions, RequestError};
use crate::tls::explain_io;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use units::Reason;

/// The addresses behind `options.urls`. Asks the servers that are given by their root.
pub(crate) fn discover(options: &PlayOptions, hosts: &mut Hosts) -> Result<Vec<Url>, ClientError> {
    if options.urls.is_empty() {
        return Err(Reason::new(
            "no address was given",
            "give http://127.0.0.1:8080/ for all titles of a local server",
        )
        .into());
    }
    let mut found = Vec::new();
    for text in &options.urls {
        let url = Url::parse(text)?;
        if !matches!(url.path(), "/" | "/titles") {
            found.push(url.with_query(&options.view.query()));
            continue;
        }
        let before = found.len();
        add_titles_of(&url, options, hosts, &mut found)?;
        if found.len() == before {
            return Err(Reason::new(
                format!("{url} offers no titles"),
                "add titles with `tenuto ingest STORE FILE...`",
            )
            .into());
        }
    }
    Ok(found)
}

/// Adds the addresses of all titles of the server at `url`, page by page; of one page, if its query
/// has a `limit`.
fn add_titles_of(
    url: &Url,
    options: &PlayOptions,
    hosts: &mut Hosts,
    found: &mut Vec<Url>,
) -> Result<(), ClientError> {
    // An access token opens the list and each title of it.
    let query = url.query();
    let mut list = url.join("/titles")?.with_query(query);
    let is_one_page = query.split('&').any(|pair| pair.starts_with("limit="));
    for _ in 0..MOST_PAGES {
        let body = get(&list, hosts, options.patience)?;
        let page = page(&list, &body, options.form)?;
        for reference in page.references {
            let title = list.join(&reference)?.with_query(query);
            found.push(title.with_query(&options.view.query()));
        }
        let Some(next) = page.next.filter(|_| !is_one_page) else { return Ok(()) };
        if found.len() > MOST_TITLES {
            break;
        }
        let after = utf8_percent_encode(&next, OUTSIDE_A_SEGMENT);
        list = list.with_parameters(&format!("after={after}"));
    }
    let folder = url.join("/titles?folder=NAME")?;
    Err(Reason::new(
        format!(
            "{url} lists more than {MOST_TITLES} titles, or them on more than {MOST_PAGES} pages"
        ),
        format!("play a folder ({folder}), or one page ({url}?limit=10000)"),
    )
    .into())
}

/// The name of the title that an address of a Tenuto server names; of another address its path.
pub(crate) fn name_of(url: &Url) -> String {
    let path = url.path();
    let name = path.strip_prefix("/t/").unwrap_or(path);
    let ends = ["/master.m3u8", "/master-ts.m3u8", "/manifest.mpd", ".mp4"];
    let name = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

/// A page of a server's list of titles.
struct TitlePage {
    references: Vec<String>,
    /// The name behind which the next page begins; `None`: this is the last one.
    next: Option<String>,
}

/// The references in the response of `/titles`, or built from its titles' names. Titles that are
/// files without media are left out, and titles that are still being recorded: they have no end.
fn page(url: &Url, body: &[u8], form: Form) -> Result<TitlePage, ClientError> {
    let unclear = RequestError::NotAPlaylist("the server's list of titles is not understood");
    let error = || url.failed(unclear.clone());
    let value: Value = serde_json::from_slice(body).map_err(|_| error())?;
    let list = value.get("titles").unwrap_or(&value).as_array().ok_or_else(error)?;
    let text = |title: &Value, key| title.get(key).and_then(Value::as_str).map(str::to_owned);
    let (key, before, after) = match form {
        Form::Hls => ("hls", "/t/", "/master.m3u8"),
        Form::Dash => ("dash", "/t/", "/manifest.mpd"),
        Form::Progressive => ("mp4", "/t/", ".mp4"),
    };
    let is_media = |title: &&Value| text(title, "kind").is_none_or(|kind| kind == "media");
    let is_growing = |title: &&Value| title.get("growing").is_some_and(|it| *it == json!(true));
    let references = list.iter().filter(is_media).filter(|title| !is_growing(title));
    let references = references
        .filter_map(|title| {
            let name = text(title, "name").or_else(|| title.as_str().map(str::to_owned));
            let made = |name: String| {
                format!("{before}{}{after}", utf8_percent_encode(&name, OUTSIDE_A_SEGMENT))
            };
            text(title, key).or_else(|| name.map(made))
        })
        .collect();
    Ok(TitlePage { references, next: text(&value, "next") })
}

/// A socket with or without TLS.
trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

/// Fetches one small response and waits for it.
fn get(url: &Url, hosts: &mut Hosts, patience: Duration) -> Result<Vec<u8>, ClientError> {
    let lost = |error: std::io::Error| {
        url.failed(match explain_io(&error) {
            Some(reason) => RequestError::Tls(reason),
            None => RequestError::Lost(error.to_string()),
        })
    };
    let socket = TcpStream::connect(hosts.resolve(&url.host_and_port())?).map_err(lost)?;
    socket.set_read_timeout(Some(patience)).map_err(lost)?;
    let mut stream: Box<dyn ReadWrite> = match hosts.secure(url)? {
        None => Box::new(socket),
        Some((config, name)) => {
            let failed = |error| lost(std::io::Error::other(error));
            let session = ClientConnection::new(config, name).map_err(failed)?;
            Box::new(StreamOwned::new(session, socket))
        }
    };
    stream.write_all(&render(&FetchRequest::whole(url.clone()))).map_err(lost)?;
    let mut reader = ResponseReader::default();
    let mut body = Vec::new();
    let mut scratch = vec![0; 16 * 1024];
    let head = loop {
        let len = stream.read(&mut scratch).map_err(lost)?;
        let read = match len {
            0 => reader.closed(),
            _ => reader.push(&scratch[..len], &mut |_, bytes| body.extend_from_slice(bytes)),
        };
        read.map_err(|error| url.failed(RequestError::NotHttp(error.0)))?;
        if let Some(head) = reader.take_complete() {
            break head;
        }
        // The list comes from a foreign server.
        if body.len() > MAX_LIST {
            return Err(url.failed(RequestError::NotHttp("an endless list of titles")));
        }
    };
    match head.status {
        200 => Ok(body),
        status => Err(url.failed(super::session::error_status(status, &body))),
    }
}

/// The characters that are escaped in a path segment: all but the unreserved ones (RFC 3986).
const OUTSIDE_A_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The largest page of a list: a hundred thousand titles.
const MAX_LIST: usize = 64 << 20;
/// Titles of a server, at most: each has an address in memory. Pages of 10,000 have as many, and
/// those of a foreign server come to an end, too.
const MOST_TITLES: usize = 2_000_000;
const MOST_PAGES: usize = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_become_addresses_and_files_are_left_out() {
        let url = Url::parse("http://h/titles").unwrap();
        let list = r#"{"titles": [
            {"name": "Ein Film", "kind": "media"},
            {"name": "a/b?c", "kind": "media", "hls": "/t/x/master.m3u8"},
            {"name": "now", "kind": "media", "growing": true, "hls": "/t/now/master.m3u8"},
            {"name": "raw.mxf", "kind": "file"}
        ]}"#;
        let read = |form| page(&url, list.as_bytes(), form).unwrap().references;
        assert_eq!(read(Form::Hls), ["/t/Ein%20Film/master.m3u8", "/t/x/master.m3u8"]);
        assert_eq!(read(Form::Dash)[0], "/t/Ein%20Film/manifest.mpd");
        assert_eq!(read(Form::Progressive), ["/t/Ein%20Film.mp4", "/t/a%2Fb%3Fc.mp4"]);
        let names = page(&url, b"[\"x\"]", Form::Hls).unwrap();
        assert_eq!((&*names.references, names.next), (&["/t/x/master.m3u8".to_owned()][..], None));
        let part = page(&url, br#"{"titles": [], "next": "x"}"#, Form::Hls).unwrap();
        assert_eq!((part.references.len(), part.next.as_deref()), (0, Some("x")));
        assert!(page(&url, b"<html>", Form::Hls).is_err());
        for form in [Form::Hls, Form::Dash, Form::Progressive] {
            let address = url.join(&read(form)[0]).unwrap();
            assert_eq!(name_of(&address), "Ein Film");
        }
    }
}
