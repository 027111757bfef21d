//! Who may use the console: the pages of the console itself, on this machine or with its token.
//!
//! | request | is refused because |
//! |---|---|
//! | without the token, where there is one | anybody may reach the address |
//! | with another `Host` than this machine's, where there is no token | a page whose name was made to lead here (DNS rebinding) |
//! | a change from another origin, or without the console's own field | a page of another site in the same browser |

use super::http::{OWN, bearer, problem};
use crate::fleet::Token;
use http_service::{HttpRequest, HttpResponse};
use std::net::{IpAddr, SocketAddr};
use units::Reason;

/// Refuses to listen where others could start measurements.
pub(super) fn check_address(listen: SocketAddr, has_token: bool) -> Result<(), Reason> {
    if has_token || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(Reason::new(
        format!("--listen {listen} can be reached from other machines: anybody could measure"),
        "add --token-file FILE, or listen on 127.0.0.1 and use ssh -L",
    ))
}

/// The answer to a request that is not permitted; `None` to one that is.
pub(super) fn refusal(request: &HttpRequest<'_>, token: Option<&Token>) -> Option<HttpResponse> {
    let host = request.text_field("host").unwrap_or_default();
    match token {
        Some(token) => {
            let given = bearer(request).map(str::to_owned).or_else(|| request.query("token"));
            // The page itself has no secret, and asks with the token that it was opened with.
            let is_page = request.path() == "/" || request.path().starts_with("/console");
            if !is_page && !given.is_some_and(|given| token.is(given.as_bytes())) {
                let hint = "open this page as /console/?token=TOKEN";
                let message = "the token is missing or another one";
                return Some(problem(401, "token-missing", message, Some(hint)));
            }
        }
        None if !is_loopback(host) => {
            let message = "this console answers on the addresses of its own machine only";
            let hint = "open it as http://127.0.0.1:PORT/console/";
            return Some(problem(403, "other-host", message, Some(hint)));
        }
        None => {}
    }
    let changes = !matches!(request.method, "GET" | "HEAD");
    let (own, own_tls) = (format!("http://{host}"), format!("https://{host}"));
    let is_foreign = request
        .field("origin")
        .is_some_and(|from| from != own.as_bytes() && from != own_tls.as_bytes());
    if changes && (is_foreign || request.field(OWN).is_none()) {
        let message = "only the console's own page may change anything";
        let hint = format!("programs send the header field {OWN}: 1");
        return Some(problem(403, "other-origin", message, Some(&hint)));
    }
    None
}

/// Whether `Host` names this machine for itself.
fn is_loopback(host: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_names_and_origins_start_nothing() {
        let token = Token::new(b"0123456789abcdef").unwrap();
        let local = "127.0.0.1:8099";
        let own = Some("http://127.0.0.1:8099");
        // Method, host, origin, the console's own field, the token that is wanted and the one that
        // is given: the status.
        let rows = [
            ("GET", local, None, false, false, "", 0),
            ("GET", "localhost:8099", None, false, false, "", 0),
            ("GET", "[::1]:8099", None, false, false, "", 0),
            ("GET", "rebound.example:8099", None, false, false, "", 403),
            ("GET", "127.0.0.1.example", None, false, false, "", 403),
            ("GET", "", None, false, false, "", 403),
            ("POST", local, own, true, false, "", 0),
            ("POST", local, None, true, false, "", 0),
            ("POST", local, own, false, false, "", 403),
            ("POST", local, Some("http://other.example"), true, false, "", 403),
            ("POST", local, Some("null"), true, false, "", 403),
            ("DELETE", local, Some("http://127.0.0.1:1"), true, false, "", 403),
            ("GET", "meter:8099", None, false, true, "token=0123456789abcdef", 0),
            ("GET", "meter:8099", None, false, true, "token=0123456789abcdeX", 401),
            ("GET", local, None, false, true, "", 401),
            (
                "POST",
                "meter:8099",
                Some("https://meter:8099"),
                true,
                true,
                "token=0123456789abcdef",
                0,
            ),
        ];
        for (method, host, origin, is_own, has_token, query, wanted) in rows {
            let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
            let own = if is_own { "Tenuto-Console: 1\r\n" } else { "" };
            let bytes =
                format!("{method} /status?{query} HTTP/1.1\r\nHost: {host}\r\n{origin}{own}\r\n");
            let refused = HttpRequest::for_test(bytes.as_bytes(), |request| {
                refusal(request, has_token.then_some(&token))
            });
            let status = refused.map_or(0, |answer| answer.status());
            assert_eq!(status, wanted, "{method} {host} {origin:?} {query}");
        }
    }

    #[test]
    fn other_machines_need_a_token() {
        for (listen, has_token, is_allowed) in [
            ("127.0.0.1:8099", false, true),
            ("[::1]:8099", false, true),
            ("192.168.1.5:8099", false, false),
            ("0.0.0.0:8099", false, false),
            ("0.0.0.0:8099", true, true),
        ] {
            let checked = check_address(listen.parse().unwrap(), has_token);
            assert_eq!(checked.is_ok(), is_allowed, "{listen}");
        }
    }
}
