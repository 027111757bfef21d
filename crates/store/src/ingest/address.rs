//! Addresses of live inputs: which can be recorded, and how they are shown without what only the
//! sender may know.
//!
//! ```text
//! srt://user:password@encoder:9000?passphrase=0123456789&latency=200000
//! srt://encoder:9000?passphrase=***&latency=200000
//! ```

use std::borrow::Cow;
use units::Reason;

/// The schemes of addresses that can be recorded, each with the protocols that FFmpeg may use for
/// it.
pub(super) const SCHEMES: &[(&str, &str)] = &[
    ("rtsp", "rtsp,rtp,udp,tcp"),
    ("rtsps", "rtsps,rtp,udp,tcp,tls"),
    ("srt", "srt"),
    ("udp", "udp"),
    ("rtp", "rtp,udp"),
    ("tcp", "tcp"),
];

/// Tests whether an address can be recorded.
pub(super) fn check(address: &str) -> Result<(), Reason> {
    let (scheme, rest) = address.split_once("://").unwrap_or_default();
    let shown = masked(address);
    if !SCHEMES.iter().any(|(name, _)| *name == scheme) || rest.is_empty() {
        let names: Vec<String> = SCHEMES.iter().map(|(name, _)| format!("{name}://")).collect();
        let hint = format!("an address begins with one of {}", names.join(", "));
        return Err(Reason::new(format!("'{shown}' is no address that can be recorded"), hint));
    }
    // The port of RTSP is known. The one to listen at may be an option.
    let needs_port = !scheme.starts_with("rtsp") && !rest.contains("localport=");
    let example = format!("say where it comes from: {scheme}://HOST:PORT");
    match port(rest) {
        Some(port) if port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(()),
        Some(port) => {
            let message = format!("'{shown}' has the port '{port}': there are 1 to 65535");
            Err(Reason::new(message, example))
        }
        None if needs_port => Err(Reason::new(format!("'{shown}' has no port"), example)),
        None => Ok(()),
    }
}

/// The part of an address in front of the path and the options, as FFmpeg divides it.
fn authority(rest: &str) -> &str {
    &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
}

/// The port of an address; an IPv6 address in brackets has colons of its own.
fn port(rest: &str) -> Option<&str> {
    let authority = authority(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    behind.rsplit_once(':').map(|(_, port)| port)
}

/// Whether its sender comes to this machine: each moment in which nobody listens may be lost.
pub(super) fn is_listened_at(address: &str) -> bool {
    let (scheme, rest) = address.split_once("://").unwrap_or_default();
    let options = rest.split_once('?').map_or("", |(_, options)| options);
    let is = |wanted: &[&str]| options.split('&').any(|option| wanted.contains(&option));
    match scheme {
        "udp" | "rtp" => true,
        "tcp" => is(&["listen", "listen=1"]),
        "srt" => is(&["mode=listener"]),
        _ => false,
    }
}

/// An address without its user and password, and with `***` for other secrets.
pub(super) fn masked(address: &str) -> String {
    let (_, rest) = address.split_once("://").unwrap_or_default();
    let credentials = authority(rest).rfind('@').map_or("", |at| &rest[..=at]);
    let bare = match credentials {
        "" => Cow::Borrowed(address),
        credentials => Cow::Owned(address.replacen(credentials, "", 1)),
    };
    let mut shown = String::new();
    let mut from = 0;
    for value in secrets(&bare) {
        shown.push_str(&bare[from..value.start]);
        shown.push_str(MASK);
        from = value.end;
    }
    shown + &bare[from..]
}

/// What is said of an address, which may have all or parts of it, without its secrets.
pub(super) fn masked_in(address: &str, said: &str) -> String {
    let mut said = said.replace(address, &masked(address));
    let (_, rest) = address.split_once("://").unwrap_or_default();
    if let Some(at) = authority(rest).rfind('@') {
        said = said.replace(&rest[..=at], "");
        let password = rest[..at].split_once(':').map_or("", |(_, password)| password);
        said = without(said, password);
    }
    for value in secrets(address) {
        said = without(said, &address[value]);
    }
    said
}

/// Masks a secret, and what it is without `%` codes, where it is long enough not to be a word.
fn without(said: String, secret: &str) -> String {
    let plain = decoded(secret);
    [secret, &plain]
        .into_iter()
        .filter(|it| it.len() >= SHORTEST)
        .fold(said, |said, secret| said.replace(secret, MASK))
}

/// Where the values of options are that are to be shown to nobody, in their order.
fn secrets(address: &str) -> Vec<std::ops::Range<usize>> {
    let lower = address.to_ascii_lowercase();
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for (equals, _) in lower.match_indices('=') {
        let is_in_one = found.last().is_some_and(|last| equals < last.end);
        if is_in_one || !SECRET_NAMES.iter().any(|name| lower[..equals].ends_with(name)) {
            continue;
        }
        let value = &lower[equals + 1..];
        // Cameras have such options in their path, too.
        let is_option = lower[..equals].contains('?');
        let ends = if is_option { &['&'][..] } else { &['&', '/', '?'][..] };
        let length = value.find(ends).unwrap_or(value.len());
        if length > 0 {
            found.push(equals + 1..equals + 1 + length);
        }
    }
    found
}

/// A text without its `%` codes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

const MASK: &str = "***";

/// The ends of the names of options whose values are secret.
const SECRET_NAMES: &[&str] =
    &["passphrase", "password", "passwd", "pass", "pwd", "token", "secret", "key", "streamid"];

/// The shortest secret that is looked for in messages.
const SHORTEST: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_secrets() {
        for (address, shown) in [
            ("rtsp://camera/stream1", "rtsp://camera/stream1"),
            ("rtsp://user:secret@camera/a@b", "rtsp://camera/a@b"),
            ("srt://a:9?passphrase=abc%20def/12&latency=2", "srt://a:9?passphrase=***&latency=2"),
            ("srt://a:9?mode=caller&PassPhrase=x=y", "srt://a:9?mode=caller&PassPhrase=***"),
            ("srt://a:9?streamid=#!::u=me,key=one", "srt://a:9?streamid=***"),
            ("srt://a:9?passphrase=&pbkeylen=16", "srt://a:9?passphrase=&pbkeylen=16"),
            ("rtsp://a/user=me_password=one_1/ch?x=1", "rtsp://a/user=me_password=***/ch?x=1"),
            ("udp://239.1.1.1:5000?localaddr=a@b", "udp://239.1.1.1:5000?localaddr=a@b"),
        ] {
            assert_eq!(masked(address), shown);
        }
    }

    #[test]
    fn messages_are_shown_without_secrets() {
        let address = "srt://me:open%20sesame@a:9?passphrase=0123456789&token=a";
        for (said, shown) in [
            (
                format!("{address}: Input/output error"),
                "srt://a:9?passphrase=***&token=***: \
                                                        Input/output error",
            ),
            ("the passphrase 0123456789 is wrong".to_owned(), "the passphrase *** is wrong"),
            ("'open sesame', open%20sesame".to_owned(), "'***', ***"),
            ("a failure of me".to_owned(), "a failure of me"),
        ] {
            assert_eq!(masked_in(address, &said), shown);
        }
    }

    #[test]
    fn an_address_is_listened_at_or_called() {
        for (address, wanted) in [
            ("udp://@239.1.1.1:5000", true),
            ("rtp://[ff02::1]:5000", true),
            ("tcp://0.0.0.0:9000?listen=1", true),
            ("tcp://0.0.0.0:9000?timeout=1&listen", true),
            ("tcp://0.0.0.0:9000?listen=0", false),
            ("tcp://camera:9000", false),
            ("srt://0.0.0.0:9000?mode=listener&latency=200000", true),
            ("srt://encoder:9000", false),
            ("srt://encoder:9000?mode=caller", false),
            ("rtsp://camera/stream1?mode=listener", false),
        ] {
            assert_eq!(is_listened_at(address), wanted, "{address}");
        }
    }

    #[test]
    fn a_port_is_needed_where_there_is_no_usual_one() {
        for address in [
            "rtsp://camera/stream1",
            "rtsp://user:secret@camera:554",
            "udp://@239.1.1.1:5000",
            "udp://:5000?pkt_size=1316",
            "udp://239.1.1.1?localport=5000",
            "rtp://[ff02::1]:5000",
            "tcp://0.0.0.0:9000?listen=1",
        ] {
            assert_eq!(check(address), Ok(()), "{address}");
        }
        for (address, said) in [
            ("udp://127.0.0.1", "'udp://127.0.0.1' has no port"),
            ("srt://[::1]?mode=caller", "'srt://[::1]?mode=caller' has no port"),
            ("rtp://a:99999", "'rtp://a:99999' has the port '99999': there are 1 to 65535"),
            ("rtsp://me:x@a:0/x", "'rtsp://a:0/x' has the port '0': there are 1 to 65535"),
            ("ftp://me:x@a", "'ftp://a' is no address that can be recorded"),
        ] {
            assert_eq!(check(address).map_err(|reason| reason.message), Err(said.to_owned()));
        }
    }
}
