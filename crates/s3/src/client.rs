//! Signed requests for objects, made once and waited for.

use crate::clocked::{Clocked, Spent};
use crate::signature::Signer;
use crate::{S3Access, S3Error, S3ErrorKind};
use rusty_s3::actions::{
    AbortMultipartUpload, CompleteMultipartUpload, CreateMultipartUpload, DeleteObject, GetObject,
    HeadObject, ListObjectsV2, PutObject, UploadPart,
};
use rusty_s3::{Bucket, Method, S3Action};
use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant, SystemTime};
use tenuto_client::tls::{explain, explain_io};
use units::Reason;
use units::show::http_date;
use ureq::http::header::DATE;
use ureq::http::{Response, Uri};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};
use ureq::{Agent, Body, RequestBuilder};

/// An object of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// The object's name in its bucket.
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// The entity tag, which another content does not have; `None`: the server shows none.
    pub tag: Option<String>,
}

/// A client of one bucket with its own connection.
pub struct S3Client {
    bucket: Bucket,
    /// `None` without credentials: requests are then not signed.
    signer: Option<Signer>,
    agent: Agent,
    /// The time spent on opening connections.
    spent: Spent,
}

impl S3Client {
    /// Makes a client of a bucket. `program`: what the server's log names.
    ///
    /// # Errors
    /// A usage error for an endpoint or certificates that are not usable.
    pub fn new(access: &S3Access, bucket: &str, program: &str) -> Result<Self, S3Error> {
        let tls = access.tls()?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // The bucket is measured on the path that the user named, not through a proxy.
            .proxy(None)
            .max_redirects(0)
            .tls_config(tls)
            .timeout_global(Some(PATIENCE))
            .input_buffer_size(BUFFER)
            .user_agent(program)
            .build();
        let spent = Spent::default();
        let connector = Clocked::new(
            Connector::<()>::chain(TcpConnector::default(), RustlsConnector::default()),
            spent.clone(),
        );
        Ok(Self {
            bucket: access.bucket(bucket)?,
            signer: access.signer(),
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            spent,
        })
    }

    /// The time spent on opening connections since the last call.
    pub fn spent(&self) -> Duration {
        self.spent.take()
    }

    /// Reads a part of an object into `memory`; returns when the response began.
    ///
    /// # Errors
    /// A failed request, or fewer bytes than that.
    pub fn read(&self, key: &str, offset: u64, memory: &mut [u8]) -> Result<Instant, S3Error> {
        let action = GetObject::new(&self.bucket, None, key);
        let get = self.signed(&action, |url| self.agent.get(url));
        let last = offset + memory.len() as u64 - 1;
        let asked = get.header("Range", format!("bytes={offset}-{last}")).call();
        let mut answer = self.good("reading", key, asked)?;
        // The head is here: from now on bytes of the object arrive.
        let began = Instant::now();
        let short = |reason| S3Error::new(format!("reading {}: {reason}", self.place(key)));
        if answer.status() != 206 {
            let reason = "the server sends all of it instead of a part; it must serve byte ranges";
            return Err(short(reason.to_owned()));
        }
        let mut reader = answer.body_mut().as_reader();
        let mut came = 0;
        while came < memory.len() {
            match reader.read(&mut memory[came..]) {
                Ok(0) => return Err(short(format!("{came} of {} bytes came", memory.len()))),
                Ok(len) => came += len,
                Err(error) => return Err(short(error.to_string())),
            }
        }
        // Read to the end, so that the connection can be used again.
        let _ = reader.read(&mut [0]);
        Ok(began)
    }

    /// Reads all of an object that has at most `most` bytes.
    ///
    /// # Errors
    /// A failed request, [`S3ErrorKind::NoSuchKey`], and an object that is larger.
    pub fn get(&self, key: &str, most: u64) -> Result<Vec<u8>, S3Error> {
        let action = GetObject::new(&self.bucket, None, key);
        let asked = self.signed(&action, |url| self.agent.get(url)).call();
        self.whole(key, asked, most)
    }

    fn whole(
        &self,
        key: &str,
        asked: Result<Response<Body>, ureq::Error>,
        most: u64,
    ) -> Result<Vec<u8>, S3Error> {
        let mut answer = self.good("reading", key, asked)?;
        // The library's limit is that of the bytes that are too many.
        let read = answer.body_mut().with_config().limit(most + 1).read_to_vec();
        read.map_err(|error| S3Error {
            kind: match error {
                ureq::Error::BodyExceedsLimit(_) => S3ErrorKind::TooLarge,
                _ => S3ErrorKind::Unavailable,
            },
            ..S3Error::new(format!("reading {}: {error}", self.place(key)))
        })
    }

    /// Reads all of an object by its exact key, also one with a folder that is empty, `.` or `..`,
    /// which the addresses of other requests leave out.
    ///
    /// # Errors
    /// As those of [`Self::get`]; a server in between that leaves such folders out refuses, or has
    /// no such key.
    pub fn get_exact(&self, key: &str, most: u64) -> Result<Vec<u8>, S3Error> {
        let url = format!("{}{}", self.bucket.object_url(""), exact_path(key));
        let url = url.parse().map_err(|_| S3Error::new(format!("'{key}' is no part of a URL")))?;
        let asked = self.signed_at(Method::Get, url, |url| self.agent.get(url)).call();
        self.whole(key, asked, most)
    }

    /// The size of an object in bytes; `None` where there is none of this key.
    ///
    /// # Errors
    /// A failed request.
    pub fn size(&self, key: &str) -> Result<Option<u64>, S3Error> {
        let action = HeadObject::new(&self.bucket, None, key);
        let asked = self.signed(&action, |url| self.agent.head(url)).call();
        match self.good("looking for", key, asked) {
            Ok(answer) => {
                let header = answer.headers().get("content-length");
                let size = header.and_then(|size| size.to_str().ok()?.parse().ok());
                size.map(Some).ok_or_else(|| self.unclear(key, "a HEAD without a size"))
            }
            Err(error) if error.kind == S3ErrorKind::NoSuchKey => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The objects whose keys begin with `prefix`, in the order of their keys.
    ///
    /// # Errors
    /// A failed request.
    pub fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, S3Error> {
        let mut objects = Vec::new();
        let mut token = None;
        loop {
            let mut action = ListObjectsV2::new(&self.bucket, None);
            action.with_prefix(prefix.to_owned());
            if let Some(token) = token {
                action.with_continuation_token(token);
            }
            let asked = self.signed(&action, |url| self.agent.get(url)).call();
            let mut answer = self.good("listing", prefix, asked)?;
            let text = answer.body_mut().with_config().limit(LARGEST_LIST).read_to_string();
            let text = text.map_err(|error| self.unclear(prefix, &error.to_string()))?;
            let page = ListObjectsV2::parse_response(&text)
                .map_err(|error| self.unclear(prefix, &error.to_string()))?;
            objects.extend(page.contents.into_iter().map(|object| ListedObject {
                key: object.key,
                size: object.size.unwrap_or(0),
                tag: object.etag,
            }));
            match page.next_continuation_token {
                Some(next) => token = Some(next),
                None => return Ok(objects),
            }
        }
    }

    /// Writes an object, in the place of one with the same key.
    ///
    /// # Errors
    /// A failed request.
    pub fn put(&self, key: &str, bytes: &[u8]) -> Result<(), S3Error> {
        let action = PutObject::new(&self.bucket, None, key);
        let put = self.signed(&action, |url| self.agent.put(url));
        self.good("writing", key, put.send(bytes)).map(drop)
    }

    /// Writes an object if there is none of this key; `false` where there is one. Not every server
    /// keeps to this condition: some write always.
    ///
    /// # Errors
    /// A failed request.
    pub fn put_new(&self, key: &str, bytes: &[u8]) -> Result<bool, S3Error> {
        let action = PutObject::new(&self.bucket, None, key);
        let put = self.signed(&action, |url| self.agent.put(url)).header("If-None-Match", "*");
        let asked = put.send(bytes);
        // 409: another client writes this key at the same time.
        if asked.as_ref().is_ok_and(|answer| matches!(answer.status().as_u16(), 409 | 412)) {
            return Ok(false);
        }
        self.good("writing", key, asked).map(|_| true)
    }

    /// Removes an object; one that is not there is none to remove.
    ///
    /// # Errors
    /// A failed request.
    pub fn delete(&self, key: &str) -> Result<(), S3Error> {
        let action = DeleteObject::new(&self.bucket, None, key);
        let delete = self.signed(&action, |url| self.agent.delete(url));
        self.good("removing", key, delete.call()).map(drop)
    }

    /// Writes an object in parts of at least 5 MiB, except for the last: `next` fills memory with
    /// each, and returns `None` at the end.
    ///
    /// # Errors
    /// A failed request, and an error of `next`. Nothing of the object is left then.
    pub fn put_in_parts<E: From<S3Error>>(
        &self,
        key: &str,
        next: &mut dyn FnMut() -> Result<Option<Vec<u8>>, E>,
    ) -> Result<(), E> {
        let action = CreateMultipartUpload::new(&self.bucket, None, key);
        let create = self.signed(&action, |url| self.agent.post(url));
        let text = self.text(key, create.send_empty())?;
        let upload = CreateMultipartUpload::parse_response(&text)
            .map_err(|error| self.unclear(key, &error.to_string()))?;
        let id = upload.upload_id();
        let made = self.parts(key, id, next);
        if made.is_err() {
            let abort = AbortMultipartUpload::new(&self.bucket, None, key, id);
            // The first error is the one to report.
            let _ = self.signed(&abort, |url| self.agent.delete(url)).call();
        }
        made
    }

    fn parts<E: From<S3Error>>(
        &self,
        key: &str,
        id: &str,
        next: &mut dyn FnMut() -> Result<Option<Vec<u8>>, E>,
    ) -> Result<(), E> {
        let mut tags: Vec<String> = Vec::new();
        while let Some(part) = next()? {
            let number = u16::try_from(tags.len() + 1).expect("no more than the protocol allows");
            let action = UploadPart::new(&self.bucket, None, key, number, id);
            let put = self.signed(&action, |url| self.agent.put(url));
            let answer = self.good("writing", key, put.send(&part[..]))?;
            let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok());
            tags.push(tag.ok_or_else(|| self.unclear(key, "a part without an ETag"))?.to_owned());
        }
        let tags = tags.iter().map(String::as_str);
        let done = CompleteMultipartUpload::new(&self.bucket, None, key, id, tags);
        let complete = self.signed(&done, |url| self.agent.post(url));
        let text = self.text(key, complete.send(done.body()))?;
        // The status may be 200 although the upload failed.
        if text.contains("<Error>") {
            return Err(self.unclear(key, &beginning(&text)).into());
        }
        Ok(())
    }

    /// Makes the request of an action and signs it in its headers.
    fn signed<'a, A: S3Action<'a>, B>(
        &self,
        action: &A,
        request: impl FnOnce(Uri) -> RequestBuilder<B>,
    ) -> RequestBuilder<B> {
        // An action without credentials returns its plain address, and no time is used.
        let url = action.sign(Duration::ZERO);
        let url: Uri = url.as_str().parse().expect("a URL of a bucket is a URI");
        self.signed_at(A::METHOD, url, request)
    }

    fn signed_at<B>(
        &self,
        method: Method,
        url: Uri,
        request: impl FnOnce(Uri) -> RequestBuilder<B>,
    ) -> RequestBuilder<B> {
        let headers = self
            .signer
            .as_ref()
            .map_or(Vec::new(), |signer| signer.headers(method, &url, SystemTime::now()));
        let add =
            |request: RequestBuilder<B>, (name, value)| request.header::<&str, _>(name, value);
        headers.into_iter().fold(request(url), add)
    }

    fn text(
        &self,
        key: &str,
        asked: Result<Response<Body>, ureq::Error>,
    ) -> Result<String, S3Error> {
        let mut answer = self.good("writing", key, asked)?;
        let text = answer.body_mut().read_to_string();
        text.map_err(|error| self.unclear(key, &error.to_string()))
    }

    /// The reason of a failed request. A server that requires a client certificate may only cut the
    /// connection.
    fn why_lost(&self, error: &ureq::Error) -> String {
        use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match error {
            ureq::Error::Io(io)
                if self.bucket.base_url().scheme() == "https"
                    && matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset) =>
            {
                format!(
                    "{error} (as by servers that want a certificate of their clients: --cert-file)"
                )
            }
            _ => error.to_string(),
        }
    }

    fn good(
        &self,
        action: &'static str,
        key: &str,
        asked: Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, S3Error> {
        let place = self.place(key);
        let mut answer = asked.map_err(|error| match untrusted(&error) {
            Some(reason) => S3Error {
                kind: S3ErrorKind::Failed,
                reason: reason.about(format!("{action} {place}: no secure connection")),
            },
            None => self.lost(action, key, &self.why_lost(&error)),
        })?;
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
        let clocks = clocks_differ(date.unwrap_or("another time"), SystemTime::now());
        // The body of an error says more than its status.
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let said = match beginning(&text).as_str() {
            "" => String::new(),
            said => format!(" {said}"),
        };
        let mut error = S3Error::new(format!("{action} {place}: {status}{said}"));
        error.reason.hint = match status {
            // Requests are signed with the time of day, and valid for a quarter of an hour.
            _ if said.contains("RequestTimeTooSkewed") => Some(clocks),
            400 if said.contains("region") => Some("name the --region of the endpoint".to_owned()),
            _ => hint(status).map(str::to_owned),
        };
        error.kind = match status {
            404 if !text.contains("NoSuchBucket") => S3ErrorKind::NoSuchKey,
            429 | 500 | 502..=504 => S3ErrorKind::Unavailable,
            _ => S3ErrorKind::Failed,
        };
        Err(error)
    }

    fn unclear(&self, key: &str, reason: &str) -> S3Error {
        self.lost("writing", key, &format!("an answer that is not clear: {reason}"))
    }

    fn lost(&self, action: &str, key: &str, reason: &str) -> S3Error {
        let error = S3Error::new(format!("{action} {}: {reason}", self.place(key)));
        S3Error { kind: S3ErrorKind::Unavailable, ..error }
            .with_hint("is the endpoint right, and is the server there?")
    }

    /// The address of an object, for a message.
    pub fn place(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket.name())
    }
}

/// A key as the path of a request, with all of its folders.
fn exact_path(key: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(encoded).collect()
}

/// The reason of a TLS error; `None` for other errors.
fn untrusted(error: &ureq::Error) -> Option<Reason> {
    match error {
        ureq::Error::Rustls(error) => Some(explain(error)),
        ureq::Error::Io(error) => explain_io(error),
        ureq::Error::Tls(said) => Some((*said).into()),
        _ => None,
    }
}

/// What to do where the server refuses the time of a request; `theirs`: the server's time.
fn clocks_differ(theirs: &str, ours: SystemTime) -> String {
    let ours = http_date(ours);
    format!("the server's clock says {theirs}, this machine's {ours}: synchronise them (NTP)")
}

fn hint(status: u16) -> Option<&'static str> {
    Some(match status {
        301 | 307 => "the bucket is served from elsewhere: name its --endpoint and --region",
        403 => "look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do here",
        404 => "make the bucket first, or name another",
        503 => "the server asks for fewer requests",
        507 => "free some space there",
        _ => return None,
    })
}

/// `Code` and `Message` of an XML error; otherwise the first line.
fn beginning(text: &str) -> String {
    let first = || text.lines().next().unwrap_or_default().trim().chars().take(SHOWN).collect();
    let Ok(error) = roxmltree::Document::parse(text) else { return first() };
    let inside = |name: &str| {
        let found = error.descendants().find(|node| node.tag_name().name() == name);
        found.and_then(|node| node.text())
    };
    match (inside("Code"), inside("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => first(),
    }
}

/// Bytes of an error page that are shown.
const SHOWN: usize = 200;

/// Bytes of a page of a list: a thousand keys of a kilobyte each, with what is around them.
const LARGEST_LIST: u64 = 8 << 20;

/// The time limit of a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes read from the socket at a time.
const BUFFER: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn an_error_contains_the_message_of_the_server() {
        let xml = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code>\
                   <Message>The bucket &#34;a&#34; is not there</Message></Error>";
        assert_eq!(beginning(xml), "NoSuchBucket: The bucket \"a\" is not there");
        assert_eq!(beginning("<html>\nmore"), "<html>");
        assert_eq!(beginning(""), "");
    }
}
