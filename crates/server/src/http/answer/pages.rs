//! Responses that are of no title: the console, the list of titles, the health of the server.

use crate::http::refusals::{bad_parameter, stopping};
use crate::http::request::HttpRequest;
use crate::http::response::Response;
use crate::http::routes::escape;
use crate::playback_params::BadParameter;
use crate::shared::Shared;
use crate::wire;
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use store::TitleSelection;

/// A file of the console.
pub(super) fn console_file(name: &str) -> Option<Response> {
    let file = web_console::file(name)?;
    let mut response = Response::new(200, file.content_type, file.bytes.to_vec());
    response.head.add("Cache-Control", file.cache_control);
    for (name, value) in web_console::SECURITY {
        response.head.add(name, value);
    }
    Some(response)
}

/// Titles and recordings, with the URLs of those that can be played.
pub(super) fn title_list(request: &HttpRequest, shared: &Shared) -> Response {
    let limit = match request.query("limit").map(str::parse::<NonZeroU32>) {
        Some(Err(_)) => {
            let why = "limit is a number of titles, at least 1";
            return bad_parameter(&BadParameter(why.to_owned()));
        }
        Some(Ok(limit)) => limit.min(LARGEST_LIST),
        None => LARGEST_LIST,
    };
    let text = |key| request.query(key).map(str::to_owned);
    let (folder, after, search) = (text("folder"), text("after"), text("search"));
    let wanted = TitleSelection { folder, after, search, limit: Some(limit) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut list = shared.content.list(&wanted, now.as_secs());
    for title in list.titles.iter_mut().filter(|title| title.kind == wire::MEDIA_KIND) {
        let is_encrypted = shared.content.is_encrypted(&title.name);
        if title.growing && is_encrypted {
            continue;
        }
        let name = escape(&title.name);
        title.hls = Some(format!("/t/{name}/master.m3u8"));
        title.dash = Some(format!("/t/{name}/manifest.mpd"));
        title.mp4 = (!is_encrypted && !title.growing).then(|| format!("/t/{name}.mp4"));
    }
    Response::json(200, &list)
}

pub(super) fn health(shared: &Shared) -> Response {
    if shared.stopping.load(Ordering::Relaxed) {
        return stopping();
    }
    let has_failed = shared.has_failed.load(Ordering::Relaxed);
    if has_failed || shared.is_stuck(shared.clock.now()) {
        let message = "this server does not serve all its viewers any more; restart it";
        return Response::error(503, "stuck", message);
    }
    Response::json(200, &json!({ "status": "ok" }))
}

/// Titles in one list, at most: an HTTP thread makes it, which has other viewers to serve.
const LARGEST_LIST: NonZeroU32 = NonZeroU32::new(10_000).expect("more than zero");
