//! `/console/`: a page that shows what the server does, lists and plays titles. It is part of the
//! program and loads nothing from other origins; its source is in `console/`, and `build.rs` lists
//! what was made of it.

use crate::http::{Head, Response};

/// A file of the console; the page itself has the empty name. `None`: there is none of this name.
pub(crate) fn file(name: &str) -> Option<Response> {
    let wanted = if name.is_empty() { PAGE } else { name };
    let Some((_, bytes)) = FILES.iter().find(|(name, _)| *name == wanted) else {
        return (wanted == PAGE).then(left_out);
    };
    let extension = wanted.rsplit_once('.').map_or("", |(_, extension)| extension);
    let content_type = match extension {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    };
    // The names below `assets/` contain a digest of their content.
    let is_asset = wanted.starts_with("assets/");
    let keep = if is_asset { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = Response::new(200, content_type, bytes.to_vec());
    response.head.add("Cache-Control", keep);
    secure(&mut response.head);
    Some(response)
}

/// The page of a program that was built without the console.
fn left_out() -> Response {
    let mut response = Response::new(200, "text/html; charset=utf-8", LEFT_OUT);
    response.head.add("Cache-Control", "no-cache");
    secure(&mut response.head);
    response
}

/// What the page may do. Its address may hold a token, which is sent nowhere else.
fn secure(head: &mut Head) {
    head.add("Content-Security-Policy", POLICY);
    head.add("Referrer-Policy", "no-referrer");
    head.add("X-Content-Type-Options", "nosniff");
}

/// The name of the page in the bundle.
const PAGE: &str = "index.html";
/// The files of `console/dist` with their names.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// Nothing of other origins and no script or style in the page itself; hls.js plays from blobs, in
/// a worker that it makes.
const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; \
    worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const LEFT_OUT: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Tenuto</title>
<h1>Tenuto</h1>
<p>This program was built without the console. Build it with <code>make build</code> on a machine
that has Node.js 20 or newer and npm.</p>
<p><a href=\"/titles\">Titles</a>, <a href=\"/status\">status</a>, <a href=\"/metrics\">metrics</a></p>
</html>
";
