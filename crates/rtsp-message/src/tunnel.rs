//! RTSP through HTTP, as QuickTime has introduced it: for players behind a proxy or a firewall that
//! passes nothing else.
//!
//! ```text
//!   player ──GET,  x-sessioncookie: C──▶      ◀── replies and packets, as over any connection
//!          ──POST, x-sessioncookie: C──▶ requests in base 64, without an end
//! ```
//! Parsing only; the server passes the decoded bytes to the connection of the GET.

/// A request that begins a half of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelHead {
    /// Which half it is.
    pub half: TunnelHalf,
    /// The name by which the player joins the halves.
    pub cookie: String,
}

/// The halves of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelHalf {
    /// From the server to the player.
    Get,
    /// From the player to the server.
    Post,
}

/// What received bytes begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum TunnelStart {
    /// Less than the head of an HTTP request.
    Partial,
    /// A half of a tunnel, and the bytes of its head.
    Half(TunnelHead, usize),
    /// Something else.
    None,
}

/// The beginning of a tunnel in `input`.
pub fn start(input: &[u8]) -> TunnelStart {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return TunnelStart::Partial,
        Err(_) => return TunnelStart::None,
    };
    let half = match head.method {
        Some("GET") => TunnelHalf::Get,
        Some("POST") => TunnelHalf::Post,
        _ => return TunnelStart::None,
    };
    let mut fields = head.headers.iter();
    let cookie = fields.find(|field| field.name.eq_ignore_ascii_case("x-sessioncookie"));
    let cookie = cookie.and_then(|field| std::str::from_utf8(field.value).ok()).map(str::trim);
    match cookie {
        Some(cookie) if !cookie.is_empty() && cookie.len() <= LONGEST_COOKIE => {
            TunnelStart::Half(TunnelHead { half, cookie: cookie.to_owned() }, length)
        }
        _ => TunnelStart::None,
    }
}

/// The reply to the GET of a tunnel, which has no end.
pub const REPLY: &[u8] = b"HTTP/1.0 200 OK\r\nServer: tenuto\r\nConnection: close\r\n\
    Cache-Control: no-store\r\nPragma: no-cache\r\n\
    Content-Type: application/x-rtsp-tunnelled\r\n\r\n";

/// The reply to a half that is refused.
pub fn refusal(why: &str) -> Vec<u8> {
    let length = why.len() + 2;
    format!(
        "HTTP/1.0 400 Bad Request\r\nServer: tenuto\r\nConnection: close\r\n\
         Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{why}\r\n"
    )
    .into_bytes()
}

/// Decodes base 64 that comes in parts. Each message may end with padding, and lines may be broken.
#[derive(Clone, Copy, Debug, Default)]
pub struct TunnelDecoder {
    bits: u32,
    digits: u8,
}

impl TunnelDecoder {
    /// Appends the decoded bytes to `out`. False: these are no digits of base 64.
    pub fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> bool {
        for byte in input {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' | b'\r' | b'\n' => {
                    if *byte == b'=' {
                        (self.bits, self.digits) = (0, 0);
                    }
                    continue;
                }
                _ => return false,
            };
            self.bits = self.bits << 6 | u32::from(digit);
            self.digits += 1;
            // A byte is complete behind each digit but the first of four.
            let [_, _, a, b] = self.bits.to_be_bytes();
            match self.digits {
                2 => out.push((self.bits >> 4).to_le_bytes()[0]),
                3 => out.push((self.bits >> 2).to_le_bytes()[0]),
                4 => {
                    out.push(b);
                    (self.bits, self.digits) = (0, 0);
                }
                _ => debug_assert_eq!(a, 0),
            }
        }
        true
    }
}

/// Fields of a head, as over HTTP.
const MOST_FIELDS: usize = 64;
/// Players make cookies of 8 to 40 bytes.
const LONGEST_COOKIE: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_begin_with_a_cookie() {
        let half = |half, cookie: &str| Some(TunnelHead { half, cookie: cookie.to_owned() });
        for (head, wanted) in [
            ("GET /t/a HTTP/1.0\r\nx-sessioncookie: ab1\r\n\r\n", half(TunnelHalf::Get, "ab1")),
            ("POST /t/a HTTP/1.1\r\nX-SessionCookie:c\r\n\r\nT1BU", half(TunnelHalf::Post, "c")),
            ("GET /t/a HTTP/1.0\r\nx-sessioncookie: \r\n\r\n", None),
            ("GET /t/a HTTP/1.0\r\n\r\n", None),
            ("PUT /t/a HTTP/1.0\r\nx-sessioncookie: a\r\n\r\n", None),
            ("DESCRIBE rtsp://a/t/a RTSP/1.0\r\nx-sessioncookie: a\r\n\r\n", None),
        ] {
            let found = match start(head.as_bytes()) {
                TunnelStart::Half(found, length) => {
                    assert!(head[..length].ends_with("\r\n\r\n"));
                    Some(found)
                }
                TunnelStart::Partial | TunnelStart::None => None,
            };
            assert_eq!(found, wanted, "{head}");
        }
        assert_eq!(start(b"GET /t/a HTTP/1.0\r\nx-sess"), TunnelStart::Partial);
        let long = format!("GET / HTTP/1.0\r\nx-sessioncookie: {}\r\n\r\n", "a".repeat(129));
        assert_eq!(start(long.as_bytes()), TunnelStart::None);
    }

    #[test]
    fn parts_of_base_64_are_decoded_as_they_come() {
        // Three messages (RFC 4648, 10), the last two with padding, in parts of any size.
        let (encoded, wanted) = (b"Zm9vYmFyZm9v\r\nZm8=Zg==Zm9vYmE=", b"foobarfoofoffooba");
        for size in 1..encoded.len() {
            let (mut decoder, mut out) = (TunnelDecoder::default(), Vec::new());
            assert!(encoded.chunks(size).all(|part| decoder.decode(part, &mut out)));
            assert_eq!(out, wanted, "in parts of {size}");
        }
        let (mut decoder, mut out) = (TunnelDecoder::default(), Vec::new());
        assert!(!decoder.decode(b"Zm9v*", &mut out));
    }
}
