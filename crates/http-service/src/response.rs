//! Responses, as bytes.

use httpdate::fmt_http_date;
use serde_json::{Value, json};
use std::any::Any;
use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime};

/// A response before its head is written.
pub struct HttpResponse {
    status: u16,
    fields: String,
    cache_control: &'static str,
    body: Vec<u8>,
    /// Dropped when the response was sent.
    held: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, fields, body, .. } = self;
        write!(out, "{status} {fields:?} {} bytes", body.len())
    }
}

impl HttpResponse {
    /// A response without a body.
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            fields: String::with_capacity(256),
            cache_control: "no-store",
            body: Vec::new(),
            held: None,
        }
    }

    /// A response with a body of this type.
    pub fn with_body(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut response = Self::empty(status).field("Content-Type", content_type);
        response.body = body.into();
        response
    }

    /// A value as JSON.
    pub fn json(status: u16, value: &Value) -> Self {
        Self::with_body(status, "application/json", value.to_string())
    }

    /// A refusal: a stable word, a sentence, and more as fields of the same JSON object.
    pub fn problem(status: u16, error: &str, message: &str, more: Value) -> Self {
        let mut body = json!({ "error": error, "message": message });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        Self::json(status, &body)
    }

    /// A header field more.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        // Writing to a text cannot fail.
        let _ = write!(self.fields, "{name}: {value}\r\n");
        self
    }

    /// `Retry-After`, in whole seconds and not too early.
    #[must_use]
    pub fn retry_after(self, time: Option<Duration>) -> Self {
        match time {
            None => self,
            Some(time) => {
                let secs = time.as_secs() + u64::from(time.subsec_nanos() > 0);
                self.field("Retry-After", &secs.max(1).to_string())
            }
        }
    }

    /// How long the response may be kept; `no-store` unless said otherwise.
    #[must_use]
    pub fn kept(mut self, cache_control: &'static str) -> Self {
        self.cache_control = cache_control;
        self
    }

    /// Holds a value, such as a permit, until the response was sent.
    #[must_use]
    pub fn holding(mut self, value: impl Any + Send) -> Self {
        self.held = Some(Box::new(value));
        self
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The bytes that are sent, and what is held until then. Of a response to HEAD the body is left
    /// out.
    pub(crate) fn into_bytes(
        mut self,
        keeps_connection: bool,
        is_head: bool,
        fields_of_all: &str,
    ) -> (Vec<u8>, Option<Box<dyn Any + Send>>) {
        let connection = if keeps_connection { "" } else { "Connection: close\r\n" };
        let mut head = String::with_capacity(256 + self.fields.len() + self.body.len());
        let _ = write!(
            head,
            "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Length: {}\r\nCache-Control: {}\r\nServer: tenuto\r\n\
             {fields_of_all}{}{connection}\r\n",
            self.status,
            status_words(self.status),
            fmt_http_date(SystemTime::now()),
            self.body.len(),
            self.cache_control,
            self.fields,
        );
        let mut bytes = head.into_bytes();
        if !is_head {
            bytes.append(&mut self.body);
        }
        (bytes, self.held)
    }

    /// Status and error word.
    #[cfg(test)]
    pub(crate) fn in_short(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        format!("{} {}", self.status, body["error"].as_str().unwrap_or_default())
    }
}

/// A status code in the words of RFC 9110; empty for codes that no part of Tenuto sends.
pub fn status_words(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_a_word_and_a_time_that_is_not_too_early() {
        let more = json!({ "cause": "full" });
        let refusal = HttpResponse::problem(503, "refused", "the nodes are full", more)
            .retry_after(Some(Duration::from_millis(1001)));
        let (bytes, _) = refusal.into_bytes(false, false, "Access-Control-Allow-Origin: *\r\n");
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
        for field in ["Retry-After: 2", "Connection: close", "Access-Control-Allow-Origin: *"] {
            assert!(head.contains(field), "{head}");
        }
        let date = head.lines().find_map(|line| line.strip_prefix("Date: "));
        assert!(httpdate::parse_http_date(date.unwrap()).is_ok(), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["error"], &body["cause"]), (&"refused".into(), &"full".into()));
    }
}
