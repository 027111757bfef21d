//! `/console/`: a page that lists and plays titles and shows the server's numbers. It is part of
//! the program and loads nothing from other origins; its source is in `console/`.

/// A file of the console: its content type and text. The page itself has the empty name.
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
