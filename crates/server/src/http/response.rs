//! Response heads, and responses made in one piece: JSON, text, and errors with what to do next.
//!
//! Pages of any origin may read every response (CORS `*`): no response depends on a cookie.

use engine::{Refusal, RefusalCause, Resource, RetryAfter};
use http_service::status_words;
use serde_json::json;
use std::fmt::Write;
use std::time::{Duration, SystemTime};
use units::show::http_date;

/// A response head being written.
#[derive(Debug)]
pub(crate) struct Head {
    status: u16,
    text: String,
}

impl Head {
    /// Status line and the fields that every response has.
    pub(crate) fn new(status: u16) -> Self {
        let mut head = Self::of_same_origin(status);
        // Without the second one pages of other origins see no `Retry-After`, `Content-Range` or
        // `ETag`, and without the third one no protocol, no sizes and no `Server-Timing`.
        for name in
            ["Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Timing-Allow-Origin"]
        {
            head.add(name, '*');
        }
        head
    }

    /// The beginning of a response that pages of other origins may not read.
    pub(crate) fn of_same_origin(status: u16) -> Self {
        let mut text = String::with_capacity(512);
        let date = http_date(SystemTime::now());
        write!(text, "HTTP/1.1 {status} {}\r\nDate: {date}\r\n", status_words(status)).ok();
        text.push_str("Server: tenuto\r\n");
        Self { status, text }
    }

    /// The status code.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The value of a field that was added.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let fields = self.text.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(field, _)| *field == name).map(|(_, value)| value).next_back()
    }

    /// The head with another field. `value` holds no line break.
    pub(crate) fn field(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.add(name, value);
        self
    }

    /// Adds a field. `value` holds no line break.
    pub(crate) fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        write!(self.text, "{name}: {value}\r\n").ok();
    }

    /// The head's bytes for a body that ends with the connection.
    pub(crate) fn finish_unbounded(mut self) -> Vec<u8> {
        self.text.push_str("Connection: close\r\n\r\n");
        self.text.into_bytes()
    }

    /// The head's bytes, with the body's length and whether the connection is kept alive.
    pub(crate) fn finish(mut self, length: u64, keep_alive: bool) -> Vec<u8> {
        // RFC 9110, 8.6: a 204 has no length field, and the one of a 304 would describe a body
        // that is not sent.
        if self.status != 204 && self.status != 304 {
            write!(self.text, "Content-Length: {length}\r\n").ok();
        }
        self.text.push_str(if keep_alive { "\r\n" } else { "Connection: close\r\n\r\n" });
        self.text.into_bytes()
    }
}

/// A response whose body is in memory.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    /// A strong entity tag of the body, which becomes a field when the coding is known
    /// ([`super::coding::negotiated`]).
    pub(crate) etag: Option<String>,
    /// When the body came to be, where a field says so.
    pub(crate) modified: Option<SystemTime>,
    /// The body's length, also where only the head is sent.
    pub(crate) length: u64,
}

impl Response {
    /// A response with a body of this content type.
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let head = Head::new(status).field("Content-Type", content_type);
        Self { head, length: body.len() as u64, body, etag: None, modified: None }
    }

    /// The response to a HEAD request: the head of a body of `length`.
    pub(crate) fn only_head(head: Head, length: u64) -> Self {
        Self { head, body: Vec::new(), etag: None, modified: None, length }
    }

    /// A JSON response that must not be cached.
    pub(crate) fn json(status: u16, value: &impl serde::Serialize) -> Self {
        let mut body = serde_json::to_vec(value).unwrap_or_default();
        body.push(b'\n');
        let mut response = Self::new(status, "application/json", body);
        response.head = response.head.field("Cache-Control", "no-store");
        response
    }

    /// An error: one stable word, and one sentence with what to do.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Self {
        Self::json(status, &json!({ "error": code, "message": message }))
    }

    /// The error for a method that a resource does not have, and those that it has.
    pub(crate) fn method_not_allowed(allowed: &str) -> Self {
        let message = format!("this resource has other methods: {allowed}");
        let mut response = Self::error(405, "method-not-allowed", &message);
        response.head = response.head.field("Allow", allowed);
        response
    }

    /// The error for a condition that does not hold (`If-Match`, `If-Unmodified-Since`).
    pub(crate) fn precondition_failed() -> Self {
        let message = "the resource has other bytes than the request's condition names; request it \
                       without the condition";
        Self::error(412, "precondition-failed", message)
    }

    /// An error that is answered before it is known what is asked for: with the fields of an error
    /// of any address, and as problem details (RFC 9457), which those of the admin API are.
    pub(crate) fn of_any_address(
        status: u16,
        code: &str,
        (message, hint): (&str, &str),
        retry_after: Duration,
    ) -> Self {
        let body = json!({
            "error": code,
            "message": format!("{message}; {hint}"),
            "title": status_words(status),
            "status": status,
            "detail": message,
            "hint": hint,
        });
        let body = format!("{body}\n");
        let mut response = Self::new(status, PROBLEM_TYPE, body);
        response.head.add("Cache-Control", "no-store");
        response.head.add("Retry-After", whole_seconds(retry_after));
        response
    }

    /// A response of the admin API: JSON of this content type.
    pub(crate) fn api(status: u16, content_type: &str, value: &impl serde::Serialize) -> Self {
        let mut body = serde_json::to_vec(value).unwrap_or_default();
        body.push(b'\n');
        let head = Head::of_same_origin(status)
            .field("Content-Type", content_type)
            .field("Cache-Control", "no-store");
        Self { head, length: body.len() as u64, body, etag: None, modified: None }
    }

    /// A response of the admin API: done, and there is nothing more to say.
    pub(crate) fn api_done() -> Self {
        Self::only_head(Head::of_same_origin(204).field("Cache-Control", "no-store"), 0)
    }

    /// Done, and there is nothing more to say.
    pub(crate) fn no_content() -> Self {
        Self::only_head(Head::new(204).field("Cache-Control", "no-store"), 0)
    }

    /// A refusal by admission control: why, which resource is short, and when to try again.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        let after = refusal.retry.after();
        let millis = after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let body = json!({
            "error": "refused",
            "message": refusal_message(refusal),
            "cause": refusal.cause.word(),
            "resource": refusal.resource.map(Resource::word),
            "retry": refusal.retry_word(),
            "retry_after_ms": millis,
            "detail": refusal.detail,
        });
        let mut response = Self::json(503, &body);
        if let Some(wait) = after {
            response.head = response.head.field("Retry-After", whole_seconds(wait));
        }
        response
    }

    /// A temporary error, 503 with `Retry-After`.
    pub(crate) fn unavailable(code: &str, message: &str, retry_after: Duration) -> Self {
        Self::retry_later(503, code, message, retry_after)
    }

    /// An error with `Retry-After`.
    pub(crate) fn retry_later(
        status: u16,
        code: &str,
        message: &str,
        retry_after: Duration,
    ) -> Self {
        let mut response = Self::error(status, code, message);
        response.head = response.head.field("Retry-After", whole_seconds(retry_after));
        response
    }

    /// A session has begun for the viewer of a director, who is to go to `location`.
    pub(crate) fn created(location: &str) -> Self {
        let head = Head::new(201).field("Location", location).field("Cache-Control", "no-store");
        Self::only_head(head, 0)
    }

    /// A temporary redirect.
    pub(crate) fn redirect(location: &str) -> Self {
        let head = Head::new(307).field("Location", location).field("Cache-Control", "no-store");
        Self::only_head(head, 0)
    }
}

/// The content type of problem details (RFC 9457).
pub(crate) const PROBLEM_TYPE: &str = "application/problem+json";
/// All methods of this server.
pub(super) const METHODS: &str = "GET, HEAD, OPTIONS, DELETE, POST, PATCH, PUT";

/// A refusal of a viewer in a sentence: why, and what to do.
pub(crate) fn refusal_message(refusal: &Refusal) -> String {
    let message = refusal_without_wait(refusal);
    match refusal.cause == RefusalCause::Title && refusal.waiting_helps {
        true => format!("{message}, or a viewer who waits for its start (?wait=10)"),
        false => message,
    }
}

/// A refusal in a sentence, where nobody can wait for the start.
pub(crate) fn refusal_without_wait(refusal: &Refusal) -> String {
    let short = refusal.resource.map_or("server", Resource::word);
    let why = match refusal.cause {
        RefusalCause::Sessions => {
            format!("the {short} is fully reserved by sessions admitted before")
        }
        RefusalCause::SlowDisk => {
            "the disk is slower than its calibration, and too slow for this title at present"
                .to_owned()
        }
        RefusalCause::LessMemory => {
            "the server has less memory than at its start, and too little for this title".to_owned()
        }
        RefusalCause::Title if refusal.resource.is_none() => {
            format!("this title cannot be served: {}", refusal.detail)
        }
        RefusalCause::Title if refusal.waiting_helps => {
            format!("this title needs more of the {short} at its start than the server has")
        }
        RefusalCause::Title => format!(
            "this title needs more of the {short} than the server has, also without other sessions"
        ),
        RefusalCause::Background => {
            format!("background work that has begun takes the {short} at this moment")
        }
        RefusalCause::DiskLost => "a disk with a copy of this title is lost".to_owned(),
        RefusalCause::Server => refusal.detail.clone(),
        RefusalCause::Fills => {
            "the caches in front make as many requests at once as --origin allows".to_owned()
        }
    };
    let what_to_do = match (refusal.retry, refusal.resource) {
        (RetryAfter::Exact(wait) | RetryAfter::Estimated(wait), _) => {
            format!("try again in {} s", whole_seconds(wait))
        }
        (RetryAfter::Unknown, _) if refusal.cause == RefusalCause::DiskLost => {
            "bring the disk back".to_owned()
        }
        (RetryAfter::Unknown, _) if refusal.cause == RefusalCause::Sessions => {
            "it fits when a session ends".to_owned()
        }
        (RetryAfter::Unknown, _) if refusal.cause == RefusalCause::LessMemory => {
            "raise the memory limit of the server's cgroup again".to_owned()
        }
        (RetryAfter::Unknown | RetryAfter::Never, Some(resource))
            if refusal.cause == RefusalCause::Title =>
        {
            let options = match resource {
                Resource::Disk => {
                    "it needs a faster disk, a longer --startup or a smaller rendition"
                }
                Resource::Memory => "it needs a larger --memory",
                Resource::Network => "it needs a higher --network rate or a smaller rendition",
            };
            options.to_owned()
        }
        _ => return why,
    };
    format!("{why}; {what_to_do}")
}

/// `Retry-After` has whole seconds: rounded up, so that no retry is too early, and at least one.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playback_params::max_wait;

    fn response_to(
        cause: RefusalCause,
        resource: Option<Resource>,
        retry: RetryAfter,
    ) -> (String, serde_json::Value) {
        let detail = "3 reads late in second 7".to_owned();
        let response =
            Response::refused(&Refusal { cause, resource, retry, waiting_helps: false, detail });
        let head = String::from_utf8(response.head.finish(response.length, false)).unwrap();
        (head, serde_json::from_slice(&response.body).unwrap())
    }

    #[test]
    fn a_refusal_names_the_cause_the_resource_and_the_time_to_retry() {
        let retry = RetryAfter::Exact(Duration::from_millis(1_200));
        let (head, body) = response_to(RefusalCause::Sessions, Some(Resource::Disk), retry);
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
        assert!(head.contains("\r\nRetry-After: 2\r\n"), "{head}");
        assert!(head.ends_with("Connection: close\r\n\r\n"), "{head}");
        assert_eq!(body["cause"], "sessions");
        assert_eq!(body["resource"], "disk");
        assert_eq!(body["retry"], "exact");
        assert_eq!(body["retry_after_ms"], 1200);
        assert_eq!(body["detail"], "3 reads late in second 7");
    }

    #[test]
    fn each_refusal_says_why_and_what_to_do() {
        use RefusalCause as Cause;
        let (disk, memory) = (Some(Resource::Disk), Some(Resource::Memory));
        let network = Some(Resource::Network);
        let soon = RetryAfter::Estimated(Duration::from_secs(4));
        let (unknown, never) = (RetryAfter::Unknown, RetryAfter::Never);
        let table = [
            (Cause::Sessions, memory, soon, "the memory is fully reserved", "try again in 4 s"),
            (Cause::Sessions, disk, unknown, "the disk is fully reserved", "when a session ends"),
            (Cause::SlowDisk, disk, soon, "slower than its calibration", "try again in 4 s"),
            (Cause::LessMemory, memory, unknown, "less memory than at its start", "memory limit"),
            (Cause::Title, disk, never, "also without other sessions", "a longer --startup"),
            (Cause::Title, memory, never, "more of the memory", "a larger --memory"),
            (Cause::Title, network, never, "more of the network", "a higher --network rate"),
            (Cause::Title, None, never, "cannot be served", "3 reads late in second 7"),
            (Cause::Background, disk, soon, "background work", "try again in 4 s"),
            (Cause::DiskLost, disk, unknown, "is lost", "bring the disk back"),
            (Cause::Server, None, unknown, "3 reads late in second 7", ""),
            (Cause::Fills, None, soon, "as --origin allows", "try again in 4 s"),
        ];
        for (cause, resource, retry, why, what_to_do) in table {
            let (head, body) = response_to(cause, resource, retry);
            let message = body["message"].as_str().unwrap();
            assert!(message.contains(why) && message.contains(what_to_do), "{message}");
            assert_eq!(head.contains("Retry-After"), retry.after().is_some(), "{head}");
            assert_eq!(body["retry_after_ms"].is_u64(), retry.after().is_some(), "{body}");
        }
    }

    #[test]
    fn a_viewer_who_does_not_wait_is_told_that_waiting_helps() {
        let refusal = Refusal {
            cause: RefusalCause::Title,
            resource: Some(Resource::Disk),
            retry: RetryAfter::Never,
            waiting_helps: true,
            detail: String::new(),
        };
        let body: serde_json::Value =
            serde_json::from_slice(&Response::refused(&refusal).body).unwrap();
        let message = body["message"].as_str().unwrap();
        assert!(message.contains("at its start"), "{message}");
        let (_, wait) = message.rsplit_once("(?").expect("what to ask for");
        let (name, value) = wait.trim_end_matches(')').split_once('=').unwrap();
        let query = [(name.to_owned(), value.to_owned())];
        assert_eq!(max_wait(&query), Ok(Some(Duration::from_secs(10))), "{message}");
        assert_eq!(body["retry"], "wait");
        let without = refusal_without_wait(&refusal);
        assert!(without.contains("at its start") && !without.contains("wait"), "{without}");
    }
}
