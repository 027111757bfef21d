//! `/console/`: a page that shows what a server, a director or a meter does, and the script that
//! makes the plots of reports interactive. They are part of the program and load nothing from other
//! origins; their source is in `console/`, and `build.rs` lists what was made of it.

#![warn(missing_docs)]

/// A file of the console, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleFile {
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The value of `Cache-Control`.
    pub cache_control: &'static str,
    /// The bytes.
    pub bytes: &'static [u8],
}

/// Header fields of every file: what the page may do. Its address may hold a token, which is sent
/// nowhere else.
pub const SECURITY: [(&str, &str); 3] = [
    ("Content-Security-Policy", POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
];

/// The file with a name below `/console/`; the page itself has the empty name. `None`: there is
/// none of this name. Of a program that was built without the console there is a page that says so.
pub fn file(name: &str) -> Option<ConsoleFile> {
    let wanted = if name.is_empty() { PAGE } else { name };
    let found = FILES.iter().find(|(name, _)| *name == wanted).map(|(_, bytes)| *bytes);
    let bytes = found.or_else(|| (wanted == PAGE).then_some(LEFT_OUT.as_bytes()))?;
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
    let cache_control = if is_asset { "public, max-age=31536000, immutable" } else { "no-cache" };
    Some(ConsoleFile { content_type, cache_control, bytes })
}

/// The script that makes the plots of a self-contained report interactive, to be written between
/// `<script>` and `</script>`. `None` of a program that was built without the console.
pub fn report_script() -> Option<&'static str> {
    // The end tag within the script would end it, and the rest would be text of the page.
    SCRIPT.filter(|script| !script.contains("</script"))
}

/// The name of the page in the bundle.
const PAGE: &str = "index.html";
/// The files of `console/dist` with their names.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));
/// The reports' script, a file of its own in `console/dist`.
static SCRIPT: Option<&str> = include!(concat!(env!("OUT_DIR"), "/report_script.rs"));

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
