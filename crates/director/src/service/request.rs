//! What a director reads of a viewer's request.

use cluster::TitleName;
use http_service::HttpRequest;
use percent_encoding::percent_decode_str;

/// How the viewer has reached the director: the beginning of its addresses. `None` where the
/// request has no usable `Host`. A proxy that has taken the request over TLS says so.
pub(super) fn base(request: &HttpRequest<'_>) -> Option<String> {
    let forwarded = request.field("x-forwarded-proto");
    let is_secure =
        request.over_tls || forwarded.is_some_and(|value| value.eq_ignore_ascii_case(b"https"));
    let scheme = if is_secure { "https" } else { "http" };
    let host = request.text_field("host").filter(|host| is_host(host))?;
    Some(format!("{scheme}://{host}"))
}

/// The title that is asked for below `/t/`: `TITLE/..` or `TITLE.mp4`. `None` for other paths and
/// for what cannot be the name of a title.
pub(super) fn title(request: &HttpRequest<'_>) -> Option<TitleName> {
    let below = request.path().strip_prefix("/t/")?;
    let name = match below.split_once('/') {
        Some((name, _)) => name,
        None => below.rsplit_once('.')?.0,
    };
    TitleName::new(percent_decode_str(name).decode_utf8().ok()?).ok()
}

/// Whether a text can stand for a host in an address, so that it can be written into a manifest.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-.:[]_".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_the_part_of_the_path_below_t() {
        let rows = [
            ("/t/film/master.m3u8?start=3", Some("film")),
            ("/t/film/0/17.m4s?s=a", Some("film")),
            ("/t/film.mp4", Some("film")),
            ("/t/film.of.1927.mp4?x=/", Some("film.of.1927")),
            ("/t/Metropolis%20(1927)/manifest.mpd", Some("Metropolis (1927)")),
            ("http://director:80/t/film.mp4", Some("film")),
            ("/t/a%2Fb.mp4", Some("a/b")),
            ("/t/%ff.mp4", None),
            ("/t/a%0Ab.mp4", None),
            ("/t/film", None),
            ("/t/.mp4", None),
            ("/t/", None),
            ("/titles", None),
            ("*", None),
        ];
        for (target, wanted) in rows {
            let bytes = format!("GET {target} HTTP/1.1\r\n\r\n");
            let found = HttpRequest::for_test(bytes.as_bytes(), title);
            assert_eq!(found.as_ref().map(TitleName::as_str), wanted, "{target}");
        }
    }

    #[test]
    fn addresses_begin_as_the_viewer_has_reached_the_director() {
        let rows = [
            ("Host: a.example:8090", Some("http://a.example:8090")),
            ("Host: [::1]:80\r\nX-Forwarded-Proto: https", Some("https://[::1]:80")),
            ("Host: a\"b", None),
            ("Host:", None),
            ("A: b", None),
        ];
        for (fields, wanted) in rows {
            let bytes = format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n");
            let found = HttpRequest::for_test(bytes.as_bytes(), base);
            assert_eq!(found.as_deref(), wanted, "{fields}");
        }
    }
}
