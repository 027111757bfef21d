//! A request for an operation: which one it is, and what its path, query and body say.

use super::bodies::{CalibrationTime, NewName, StopTime, UploadedAs};
use super::operations::{ApiAction, OPERATIONS, Operation};
use super::problem::Problem;
use crate::control::Request;
use crate::http::{HttpRequest, Method};
use media::TitleKind;
use serde::Deserialize;
use std::num::NonZeroU32;
use std::path::Path;
use store::TitleSelection;

/// A request for an operation.
#[derive(Debug)]
pub(crate) struct ApiCall {
    pub(crate) operation: &'static Operation,
    // What the names in braces stand for, in their order.
    names: Vec<String>,
    query: Vec<(String, String)>,
    /// The body, where it is JSON.
    pub(crate) json: Vec<u8>,
}

/// Why a request is for no operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoOperation {
    /// There is nothing at its address.
    Path,
    /// The address has these methods.
    Method(String),
}

/// The operation that a request is for.
pub(crate) fn find(request: &HttpRequest) -> Result<ApiCall, NoOperation> {
    let mut methods = Vec::new();
    for operation in OPERATIONS {
        let Some(names) = names(operation.path, &request.path) else { continue };
        let is_head = request.method == Method::Head && operation.method == Method::Get;
        if operation.method == request.method || is_head {
            let query = request.query.clone();
            return Ok(ApiCall { operation, names, query, json: Vec::new() });
        }
        methods.push(operation.method.name());
        if operation.method == Method::Get {
            methods.push(Method::Head.name());
        }
    }
    if methods.is_empty() {
        return Err(NoOperation::Path);
    }
    methods.push(Method::Options.name());
    Err(NoOperation::Method(methods.join(", ")))
}

/// What the names in braces of a template stand for in a path; `None` if it is another path.
fn names(template: &str, path: &[String]) -> Option<Vec<String>> {
    let parts: Vec<&str> = template.trim_start_matches('/').split('/').collect();
    if parts.len() != path.len() {
        return None;
    }
    let mut names = Vec::new();
    for (part, name) in parts.iter().zip(path) {
        match part.starts_with('{') && !name.is_empty() {
            // Hexadecimal digits of a uuid may be capital letters (RFC 9562).
            true if *part == "{disk}" => names.push(name.to_ascii_lowercase()),
            true => names.push(name.clone()),
            false if part == name => {}
            false => return None,
        }
    }
    Some(names)
}

impl ApiCall {
    pub(super) fn action(&self) -> ApiAction {
        self.operation.action
    }

    /// What the name in braces with this index stands for.
    pub(super) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    /// The session's number that the name in braces with this index stands for.
    pub(super) fn number(&self, index: usize) -> Result<u64, Problem> {
        let name = self.name(index);
        name.parse().map_err(|_| {
            let message = format!("'{}' is no session's number", name.escape_debug());
            Problem::new(404, "no-session", message, "/api/v1/sessions lists them")
        })
    }

    /// The ingest's number that the name in braces with this index stands for.
    pub(super) fn ingest_number(&self, index: usize) -> Result<u64, Problem> {
        let name = self.name(index);
        name.parse().map_err(|_| {
            let message = format!("'{}' is no ingest's number", name.escape_debug());
            Problem::new(404, "no-ingest", message, "/api/v1/ingests lists them")
        })
    }

    pub(super) fn new_name(&self) -> Result<String, Problem> {
        Ok(self.json::<NewName>()?.name)
    }

    pub(super) fn seconds(&self) -> Result<f64, Problem> {
        let CalibrationTime { seconds } = self.json()?;
        match (1.0..=600.0).contains(&seconds) {
            true => Ok(seconds),
            false => Err(bad_body("seconds is from 1 to 600")),
        }
    }

    pub(super) fn stop_seconds(&self) -> Result<f64, Problem> {
        let StopTime { seconds } = self.json()?;
        match (1.0..=86_400.0).contains(&seconds) {
            true => Ok(seconds),
            false => Err(bad_body("seconds is from 1 to 86400")),
        }
    }

    pub(super) fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        // An array would be taken for the values in the order of their names.
        if self.json.trim_ascii_start().first() != Some(&b'{') {
            return Err(bad_body("a JSON object is expected"));
        }
        serde_json::from_slice(&self.json).map_err(|error| bad_body(&error.to_string()))
    }

    fn text(&self, key: &str) -> Option<String> {
        let mut all = self.query.iter();
        all.find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    /// The subject whose sessions are to be listed.
    pub(super) fn subject(&self) -> Option<String> {
        self.text("subject")
    }

    /// The subject whose sessions are to be ended.
    pub(super) fn subject_to_end(&self) -> Result<String, Problem> {
        self.subject().ok_or_else(|| {
            let message =
                "the parameter 'subject' is missing, and the sessions of all are not ended";
            let hint = "name one, such as ?subject=customer-17; /api/v1/stop ends the server";
            Problem::new(400, "bad-parameter", message, hint)
        })
    }

    /// The titles that are to be listed.
    pub(super) fn selection(&self) -> Result<TitleSelection, Problem> {
        let text = |key: &str| self.text(key);
        let limit = self.parameter("limit", "a number of titles, at least 1")?;
        let (folder, after, search) = (text("folder"), text("after"), text("search"));
        Ok(TitleSelection { folder, after, search, limit })
    }

    /// The title that the query names.
    pub(super) fn title(&self) -> Result<String, Problem> {
        let named = self.query.iter().find(|(name, _)| name == "title");
        named.map(|(_, title)| title.clone()).ok_or_else(|| {
            let message = "the parameter 'title' is missing";
            Problem::new(400, "bad-parameter", message, "name a title; /titles lists them")
        })
    }

    /// Whether it is a watch, whose response has no end.
    pub(crate) fn is_watch(&self) -> bool {
        self.action() == ApiAction::Events
    }

    /// The control request that ingests the uploaded file.
    pub(super) fn ingest(&self, file: &Path) -> Result<Request, Problem> {
        let kind = self.parameter::<UploadedAs>("as", "media or file")?;
        let kind = match kind {
            Some(UploadedAs::File) => TitleKind::File,
            _ => TitleKind::Media,
        };
        Ok(Request::Ingest {
            files: vec![file.to_owned()],
            as_file: kind == TitleKind::File,
            title: Some(self.name(1).to_owned()),
            allow_damaged: self.parameter("allow-damaged", "true or false")?.unwrap_or(false),
            renditions: false,
            program: self.parameter("program", "a number")?,
            subtitles: Vec::new(),
            thumbnails: self.parameter::<NonZeroU32>("thumbnails", "seconds")?.map(u32::from),
            fps: None,
        })
    }

    /// Whether the query has only parameters of the operation, with values that they may have.
    pub(crate) fn check_query(&self) -> Result<(), Problem> {
        let known = |name: &str| {
            name == TOKEN || self.operation.query.iter().any(|parameter| parameter.name == name)
        };
        if let Some((name, _)) = self.query.iter().find(|(name, _)| !known(name)) {
            let message = format!("this operation has no parameter '{}'", name.escape_debug());
            let hint = "/api/v1/openapi.json has those that it has";
            return Err(Problem::new(400, "bad-parameter", message, hint));
        }
        match self.action() {
            ApiAction::Upload | ApiAction::Download => self.ingest(Path::new("")).map(drop),
            ApiAction::Titles => self.selection().map(drop),
            _ => Ok(()),
        }
    }

    pub(super) fn parameter<T: for<'a> Deserialize<'a>>(
        &self,
        name: &str,
        values: &str,
    ) -> Result<Option<T>, Problem> {
        let Some((_, text)) = self.query.iter().find(|(key, _)| key == name) else {
            return Ok(None);
        };
        // A word or a number, as JSON has it.
        let value = serde_json::from_str(text)
            .or_else(|_| serde_json::from_value(serde_json::Value::String(text.clone())));
        value.map(Some).map_err(|_| {
            let message = format!("'{name}' has the value '{}'", text.escape_debug());
            Problem::new(400, "bad-parameter", message, &format!("it takes {values}"))
        })
    }
}

pub(super) fn bad_body(why: &str) -> Problem {
    let message = format!("the body is not what this operation takes: {why}");
    Problem::new(400, "bad-body", message, "/api/v1/openapi.json has its schema")
}

/// The parameter of every address that a token may stand in.
const TOKEN: &str = "token";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parsed;

    /// The name of the operation and its names, or the methods of the address.
    fn found(line: &str) -> String {
        match find(&parsed(&format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"))) {
            Ok(call) => format!("{} {}", call.operation.id, call.names.join(" ")),
            Err(NoOperation::Path) => "nothing".to_owned(),
            Err(NoOperation::Method(methods)) => methods,
        }
    }

    #[test]
    fn methods_and_addresses_name_operations() {
        for (line, wanted) in [
            ("GET /api/v1/sessions", "listSessions "),
            ("HEAD /api/v1/sessions", "listSessions "),
            ("DELETE /api/v1/sessions/17", "endSession 17"),
            ("PUT /api/v1/disks/D/titles/A%2Fb%20%C3%A4", "uploadTitle d A/b ä"),
            ("PATCH /api/v1/disks/d/titles/..", "renameTitle d .."),
            ("DELETE /api/v1/sessions", "endSessions "),
            ("PATCH /api/v1/sessions", "GET, HEAD, POST, DELETE, OPTIONS"),
            ("POST /api/v1/sessions/17", "GET, HEAD, DELETE, OPTIONS"),
            ("GET /api/v1/disks/d/calibrate", "POST, OPTIONS"),
            ("POST /api/v1/disks/d/titles/x", "downloadTitle d x"),
            ("GET /api/v1/disks/d/titles/", "nothing"),
            ("GET /api/v1/disks//titles", "nothing"),
            ("GET /api/v1/", "nothing"),
            ("GET /api", "nothing"),
            ("GET /api/v2/sessions", "nothing"),
        ] {
            assert_eq!(found(line), wanted, "{line}");
        }
    }

    #[test]
    fn parameters_have_the_values_that_they_may_have() {
        for (query, wanted) in [
            ("", "false true"),
            ("?as=media&thumbnails=10&program=2&token=x", "false true"),
            ("?as=file&allow-damaged=true", "true true"),
            ("?as=film", "bad"),
            ("?allow-damaged=yes", "bad"),
            ("?thumbnails=0", "bad"),
            ("?thumbnails=10s", "bad"),
            ("?program=-1", "bad"),
            ("?title=x", "bad"),
        ] {
            let line = format!("PUT /api/v1/disks/d/titles/x{query} HTTP/1.1\r\nHost: a\r\n\r\n");
            let call = find(&parsed(&line)).unwrap();
            let said = match (call.check_query(), call.ingest(Path::new("f"))) {
                (Ok(()), Ok(Request::Ingest { as_file, title, .. })) => {
                    format!("{as_file} {}", title.as_deref() == Some("x"))
                }
                _ => "bad".to_owned(),
            };
            assert_eq!(said, wanted, "{query}");
        }
    }
}
