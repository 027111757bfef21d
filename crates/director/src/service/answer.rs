//! Answers to viewers, as bytes.

use std::fmt::Write as _;
use std::time::Duration;

/// An answer before its head is written.
#[derive(Debug)]
pub(super) struct ViewerAnswer {
    status: u16,
    fields: String,
    cache_control: &'static str,
    body: Vec<u8>,
}

impl ViewerAnswer {
    /// An answer without a body.
    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            fields: String::with_capacity(256),
            cache_control: "no-store",
            body: Vec::new(),
        }
    }

    /// An answer with a body of this type.
    pub(super) fn with_body(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut answer = Self::empty(status).field("Content-Type", content_type);
        answer.body = body.into();
        answer
    }

    /// A refusal: a stable word, a sentence, and more as JSON fields.
    pub(super) fn problem(
        status: u16,
        error: &str,
        message: &str,
        more: serde_json::Value,
    ) -> Self {
        let mut body = serde_json::json!({ "error": error, "message": message });
        if let (Some(body), serde_json::Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        Self::with_body(status, "application/json", body.to_string())
    }

    /// A header field more.
    pub(super) fn field(mut self, name: &str, value: &str) -> Self {
        // Writing to a text cannot fail.
        let _ = write!(self.fields, "{name}: {value}\r\n");
        self
    }

    /// `Retry-After`, in whole seconds and not too early.
    pub(super) fn retry_after(self, time: Option<Duration>) -> Self {
        match time {
            None => self,
            Some(time) => {
                let secs = time.as_secs() + u64::from(time.subsec_nanos() > 0);
                self.field("Retry-After", &secs.max(1).to_string())
            }
        }
    }

    /// How long the answer may be kept; `no-store` unless said otherwise.
    pub(super) fn kept(mut self, cache_control: &'static str) -> Self {
        self.cache_control = cache_control;
        self
    }

    /// The bytes that are sent. Of an answer to HEAD the body is left out.
    pub(super) fn into_bytes(mut self, keeps_connection: bool, is_head: bool) -> Vec<u8> {
        let connection = if keeps_connection { "" } else { "Connection: close\r\n" };
        let mut head = String::with_capacity(256 + self.fields.len() + self.body.len());
        let _ = write!(
            head,
            "HTTP/1.1 {} {}\r\nContent-Length: {}\r\nCache-Control: {}\r\n\
             Access-Control-Allow-Origin: *\r\nServer: tenuto\r\n{}{connection}\r\n",
            self.status,
            reason(self.status),
            self.body.len(),
            self.cache_control,
            self.fields,
        );
        let mut bytes = head.into_bytes();
        if !is_head {
            bytes.append(&mut self.body);
        }
        bytes
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_a_word_and_a_time_that_is_not_too_early() {
        let more = serde_json::json!({ "cause": "full" });
        let refusal = ViewerAnswer::problem(503, "refused", "the nodes are full", more)
            .retry_after(Some(Duration::from_millis(1001)));
        let text = String::from_utf8(refusal.into_bytes(false, false)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
        for field in ["Retry-After: 2", "Connection: close", "Access-Control-Allow-Origin: *"] {
            assert!(head.contains(field), "{head}");
        }
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["error"], &body["cause"]), (&"refused".into(), &"full".into()));
    }
}
