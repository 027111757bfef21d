//! OPTIONS: what pages of other origins may send.

use crate::client::TestResponse;
use crate::fixture::{TestStore, media};

fn list<'a>(response: &'a TestResponse, field: &str) -> Vec<&'a str> {
    response.field(field).unwrap_or_default().split(", ").collect()
}

#[test]
fn a_page_may_send_what_players_send() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let read = ["GET", "HEAD", "OPTIONS"];
    let end = ["DELETE", "POST", "OPTIONS"];
    let all = ["GET", "HEAD", "OPTIONS", "DELETE", "POST", "PATCH", "PUT"];
    for (path, methods) in [
        ("/t/film/master.m3u8", &read[..]),
        ("/t/film/0/1.m4s?s=x&CMCD=bs", &read),
        ("/t/film.mp4", &read),
        ("/titles", &read),
        ("/nothing/here", &read),
        ("/t/film/session?s=x", &end),
        ("*", &all),
    ] {
        let asked = [
            ("Origin", "https://pages.example"),
            ("Access-Control-Request-Method", methods[0]),
            ("Access-Control-Request-Headers", "authorization,cmcd-session,range"),
        ];
        let response = client.request("OPTIONS", path, &asked);
        assert_eq!(response.status, 204, "{path}");
        assert_eq!(response.field("access-control-allow-origin"), Some("*"), "{path}");
        assert_eq!(response.field("access-control-max-age"), Some("86400"), "{path}");
        for field in ["allow", "access-control-allow-methods"] {
            assert_eq!(list(&response, field), methods, "{path} {field}");
        }
        let fields = list(&response, "access-control-allow-headers");
        for field in [
            "Authorization",
            "Range",
            "If-Range",
            "If-None-Match",
            "If-Modified-Since",
            "CMCD-Object",
            "CMCD-Request",
            "CMCD-Session",
            "CMCD-Status",
        ] {
            assert!(fields.contains(&field), "{path}: {field} of {fields:?}");
        }
        // What is not allowed is said with the methods that are.
        if path != "*" {
            let other = if methods[0] == "GET" { "DELETE" } else { "GET" };
            let mut apart = serving.client();
            let denied = apart.request(other, path, &[]);
            assert!([404, 405].contains(&denied.status), "{other} {path}: {denied:?}");
            if denied.status == 405 {
                assert_eq!(list(&denied, "allow"), methods, "{path}");
            }
        }
    }
    assert_eq!(serving.status("/admitted"), 0);
}
