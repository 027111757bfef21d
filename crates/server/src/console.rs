//! `/console/`: a page that shows what is on offer, plays it, and shows the server at work. It is
//! part of the program and needs nothing from anywhere else; its source is in `console/`.

/// A file of the console: its content type and text. The page itself has no name.
pub(crate) fn file(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "" => ("text/html; charset=utf-8", include_str!("../../../console/index.html")),
        "console.css" => ("text/css; charset=utf-8", include_str!("../../../console/console.css")),
        "console.js" => {
            ("text/javascript; charset=utf-8", include_str!("../../../console/console.js"))
        }
        _ => return None,
    })
}
