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
        // An access token opens the list and each title of it.
        let (list, query) = (url.join("/titles")?.with_query(url.query()), url.query());
        let body = get(&list, hosts, options.patience)?;
        let before = found.len();
        for reference in titles(&list, &body, options.form)? {
            let title = list.join(&reference)?.with_query(query);
            found.push(title.with_query(&options.view.query()));
        }
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

/// The name of the title that an address of a Tenuto server names; of another address its path.
pub(crate) fn name_of(url: &Url) -> String {
    let path = url.path();
    let name = path.strip_prefix("/t/").unwrap_or(path);
    let ends = ["/master.m3u8", "/master-ts.m3u8", "/manifest.mpd", ".mp4"];
    let name = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

/// The references in the response of `/titles`, or built from its titles' names. Titles that are
/// files without media are left out, and titles that are still being recorded: they have no end.
fn titles(url: &Url, body: &[u8], form: Form) -> Result<Vec<String>, ClientError> {
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
    Ok(references
        .filter_map(|title| {
            let name = text(title, "name").or_else(|| title.as_str().map(str::to_owned));
            let made = |name: String| {
                format!("{before}{}{after}", utf8_percent_encode(&name, OUTSIDE_A_SEGMENT))
            };
            text(title, key).or_else(|| name.map(made))
        })
        .collect())
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

/// The largest list: a hundred thousand titles.
const MAX_LIST: usize = 64 << 20;

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
        let read = |form| titles(&url, list.as_bytes(), form).unwrap();
        assert_eq!(read(Form::Hls), ["/t/Ein%20Film/master.m3u8", "/t/x/master.m3u8"]);
        assert_eq!(read(Form::Dash)[0], "/t/Ein%20Film/manifest.mpd");
        assert_eq!(read(Form::Progressive), ["/t/Ein%20Film.mp4", "/t/a%2Fb%3Fc.mp4"]);
        assert_eq!(titles(&url, b"[\"x\"]", Form::Hls).unwrap(), ["/t/x/master.m3u8"]);
        assert!(titles(&url, b"<html>", Form::Hls).is_err());
        for form in [Form::Hls, Form::Dash, Form::Progressive] {
            let address = url.join(&read(form)[0]).unwrap();
            assert_eq!(name_of(&address), "Ein Film");
        }
    }
}
