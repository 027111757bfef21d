//! The web console's files as responses.

use crate::response::HttpResponse;

/// The file of the web console with a name below `/console/`; the page itself has the empty name.
/// `None`: there is none of this name.
pub fn console_file(name: &str) -> Option<HttpResponse> {
    let file = web_console::file(name)?;
    let response = HttpResponse::with_body(200, file.content_type, file.bytes);
    let response = response.kept(file.cache_control);
    let all = web_console::SECURITY.iter();
    Some(all.fold(response, |response, (name, value)| response.field(name, value)))
}
