//! Signed requests for objects, made once and waited for.

use super::clocked::{Clocked, Spent};
use super::signature::Signer;
use super::{Access, Address};
use crate::error::MeterError;
use rusty_s3::actions::{
    AbortMultipartUpload, CompleteMultipartUpload, CreateMultipartUpload, DeleteObject, GetObject,
    PutObject, UploadPart,
};
use rusty_s3::{Bucket, S3Action};
use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant, SystemTime};
use tenuto_client::tls::{explain, explain_io};
use units::Reason;
use ureq::http::{Response, Uri};
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};
use ureq::{Agent, Body, RequestBuilder};

/// A client of one bucket with its own connection.
pub(super) struct S3Client {
    bucket: Bucket,
    /// `None` without credentials: requests are then not signed.
    signer: Option<Signer>,
    agent: Agent,
    /// The time spent on opening connections.
    spent: Spent,
}

impl S3Client {
    /// Makes a client. `tls` comes from [`Access::tls`].
    pub(super) fn new(
        access: &Access,
        address: &Address,
        tls: TlsConfig,
    ) -> Result<Self, MeterError> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // The bucket is measured on the path that the user named, not through a proxy.
            .proxy(None)
            .max_redirects(0)
            .tls_config(tls)
            .timeout_global(Some(PATIENCE))
            .input_buffer_size(BUFFER)
            .user_agent("tenuto-meter")
            .build();
        let spent = Spent::default();
        let connector = Clocked::new(
            Connector::<()>::chain(TcpConnector::default(), RustlsConnector::default()),
            spent.clone(),
        );
        Ok(Self {
            bucket: access.bucket(&address.bucket)?,
            signer: access.signer(),
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            spent,
        })
    }

    /// The time spent on opening connections since the last call.
    pub(super) fn spent(&self) -> Duration {
        self.spent.take()
    }

    /// Reads into `memory`; returns when the response began.
    pub(super) fn read(
        &self,
        key: &str,
        offset: u64,
        memory: &mut [u8],
    ) -> Result<Instant, MeterError> {
        let action = GetObject::new(&self.bucket, None, key);
        let get = self.signed(&action, |url| self.agent.get(url));
        let last = offset + memory.len() as u64 - 1;
        let asked = get.header("Range", format!("bytes={offset}-{last}")).call();
        let mut answer = self.good("reading", key, asked)?;
        // The head is here: from now on bytes of the object arrive.
        let began = Instant::now();
        let short = |reason| MeterError::new(format!("reading {}: {reason}", self.place(key)));
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

    pub(super) fn put(&self, key: &str, bytes: &[u8]) -> Result<(), MeterError> {
        let action = PutObject::new(&self.bucket, None, key);
        let put = self.signed(&action, |url| self.agent.put(url));
        self.good("writing", key, put.send(bytes)).map(drop)
    }

    pub(super) fn delete(&self, key: &str) -> Result<(), MeterError> {
        let action = DeleteObject::new(&self.bucket, None, key);
        let delete = self.signed(&action, |url| self.agent.delete(url));
        self.good("removing", key, delete.call()).map(drop)
    }

    /// Writes an object in parts of at least 5 MiB, except for the last: `next` fills memory with
    /// each, and returns `None` at the end.
    pub(super) fn put_in_parts(
        &self,
        key: &str,
        next: &mut dyn FnMut() -> Result<Option<Vec<u8>>, MeterError>,
    ) -> Result<(), MeterError> {
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

    fn parts(
        &self,
        key: &str,
        id: &str,
        next: &mut dyn FnMut() -> Result<Option<Vec<u8>>, MeterError>,
    ) -> Result<(), MeterError> {
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
            return Err(self.unclear(key, &beginning(&text)));
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
        let headers = self
            .signer
            .as_ref()
            .map_or(Vec::new(), |signer| signer.headers(A::METHOD, &url, SystemTime::now()));
        let add =
            |request: RequestBuilder<B>, (name, value)| request.header::<&str, _>(name, value);
        headers.into_iter().fold(request(url), add)
    }

    fn text(
        &self,
        key: &str,
        asked: Result<Response<Body>, ureq::Error>,
    ) -> Result<String, MeterError> {
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
    ) -> Result<Response<Body>, MeterError> {
        let place = self.place(key);
        let mut answer = asked.map_err(|error| match untrusted(&error) {
            Some(reason) => {
                MeterError::of(&reason.about(format!("{action} {place}: no secure connection")))
            }
            None => self.lost(action, key, &self.why_lost(&error)),
        })?;
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        // The body of an error says more than its status.
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let said = match beginning(&text).as_str() {
            "" => String::new(),
            said => format!(" {said}"),
        };
        let error = MeterError::new(format!("{action} {place}: {status}{said}"));
        Err(MeterError { hint: hint(status).map(str::to_owned), ..error })
    }

    fn unclear(&self, key: &str, reason: &str) -> MeterError {
        self.lost("writing", key, &format!("an answer that is not clear: {reason}"))
    }

    fn lost(&self, action: &str, key: &str, reason: &str) -> MeterError {
        MeterError::new(format!("{action} {}: {reason}", self.place(key)))
            .hint("is the endpoint right, and is the server there?")
    }

    pub(super) fn place(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket.name())
    }
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
    let inside = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        rest.split_once("</").map(|(inside, _)| inside)
    };
    let first = || text.lines().next().unwrap_or_default().trim().chars().take(SHOWN).collect();
    match (inside("Code"), inside("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => first(),
    }
}

/// Bytes of an error page that are shown.
const SHOWN: usize = 200;

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
                   <Message>The bucket is not there</Message></Error>";
        assert_eq!(beginning(xml), "NoSuchBucket: The bucket is not there");
        assert_eq!(beginning("<html>\nmore"), "<html>");
        assert_eq!(beginning(""), "");
    }
}
