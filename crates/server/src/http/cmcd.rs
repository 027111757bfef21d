//! What players report of themselves with their requests: Common Media Client Data (CTA-5004,
//! version 1), in the query or in four fields.
//!
//! ```text
//!   GET /t/film/0/7.m4s?s=TOKEN&CMCD=bl%3D21300%2Cbr%3D1400%2Cot%3Dv%2Csid%3D%226e2fb550%22
//!
//!   CMCD-Object: br=1400,d=4000,ot=v        what is requested
//!   CMCD-Request: bl=21300,mtp=48100        the player at this moment
//!   CMCD-Session: sid="6e2fb550",sf=h       the whole playback
//!   CMCD-Status: bs                         the buffer ran empty
//! ```
//!
//! Nothing depends on these values, so what is not valid is ignored and counted. Keys of later
//! versions and custom keys are passed over.

use serde::Serialize;

/// The values that a request reports, by the specification's keys and in its units.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cmcd {
    /// Bit rate of the requested object, kb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) br: Option<u64>,
    /// Duration of the object, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) d: Option<u64>,
    /// Type of the object: `v`, `a`, `av`, `m`, `i`, `c`, `tt`, `k` or `o`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ot: Option<&'static str>,
    /// The highest bit rate that the player may choose, kb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tb: Option<u64>,
    /// Media in the player's buffer, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bl: Option<u64>,
    /// Time until the player's buffer is empty, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dl: Option<u64>,
    /// Measured throughput, kb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtp: Option<u64>,
    /// Requested limit of the throughput, kb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rtp: Option<u64>,
    /// The object is needed at once: start, seek, or an empty buffer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) su: bool,
    /// The buffer ran empty since the request before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) bs: bool,
    /// The player's name for the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cid: Option<String>,
    /// The player's name for the playback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sid: Option<String>,
    /// Speed of playback: 0 while it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pr: Option<f64>,
    /// Format of the stream: `d` DASH, `h` HLS, `s`, `o`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sf: Option<&'static str>,
    /// Type of the stream: `v` on demand, `l` live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) st: Option<&'static str>,
    /// Values and fields that were ignored because they are not valid.
    #[serde(skip)]
    pub(crate) ignored: u64,
}

/// Whether a field of a request is one of the four.
pub(crate) fn is_field(name: &str) -> bool {
    const PREFIX: usize = "cmcd-".len();
    name.len() > PREFIX && name.as_bytes()[..PREFIX].eq_ignore_ascii_case(b"cmcd-") && {
        let rest = &name[PREFIX..];
        ["object", "request", "session", "status"].iter().any(|it| rest.eq_ignore_ascii_case(it))
    }
}

/// The parameter of the query.
pub(crate) const PARAMETER: &str = "CMCD";

impl Cmcd {
    /// Takes the text of a field or of the parameter, decoded; `None` where it is no text.
    pub(crate) fn take(&mut self, text: Option<&str>) {
        let Some(mut rest) = text.filter(|text| text.len() <= LONGEST) else {
            self.ignored += 1;
            return;
        };
        while !rest.is_empty() {
            let Some(end) = pair_end(rest) else {
                // A string without an end: what follows cannot be told apart.
                self.ignored += 1;
                return;
            };
            let (key, value) = match rest[..end].trim().split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (rest[..end].trim(), None),
            };
            if self.set(key, value).is_none() {
                self.ignored += 1;
            }
            rest = rest[end..].strip_prefix(',').unwrap_or_default();
        }
    }

    /// Sets the value of a key; `None` if it is not valid.
    fn set(&mut self, key: &str, value: Option<&str>) -> Option<()> {
        match (key, value) {
            ("br", Some(value)) => self.br = Some(integer(value)?),
            ("d", Some(value)) => self.d = Some(integer(value)?),
            ("tb", Some(value)) => self.tb = Some(integer(value)?),
            ("bl", Some(value)) => self.bl = Some(integer(value)?),
            ("dl", Some(value)) => self.dl = Some(integer(value)?),
            ("mtp", Some(value)) => self.mtp = Some(integer(value)?),
            ("rtp", Some(value)) => self.rtp = Some(integer(value)?),
            ("ot", Some(value)) => self.ot = Some(token(value, &OBJECTS)?),
            ("sf", Some(value)) => self.sf = Some(token(value, &FORMATS)?),
            ("st", Some(value)) => self.st = Some(token(value, &STREAMS)?),
            ("pr", Some(value)) => self.pr = Some(decimal(value)?),
            ("cid", Some(value)) => self.cid = Some(string(value, LONGEST_NAME)?),
            ("sid", Some(value)) => self.sid = Some(string(value, LONGEST_NAME)?),
            ("su", None) => self.su = true,
            ("bs", None) => self.bs = true,
            // What the player will request next: this server reads ahead without it.
            ("nor" | "nrr", Some(value)) => drop(string(value, LONGEST)?),
            ("v", Some(value)) => drop(integer(value)?),
            (key, _) if KNOWN.contains(&key) || !is_key(key) => return None,
            _ => {}
        }
        Some(())
    }
}

/// The end of the first pair: its comma, or the end of the text; `None` within a string.
fn pair_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return Some(at),
            _ => {}
        }
    }
    (!quoted).then_some(text.len())
}

/// Digits, at most as many as an integer of RFC 8941 has.
fn integer(value: &str) -> Option<u64> {
    let valid = (1..=15).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
    valid.then(|| value.parse().ok()).flatten()
}

/// A number that is not negative, with at most three decimals as in RFC 8941.
fn decimal(value: &str) -> Option<f64> {
    let (whole, decimals) = value.split_once('.').unwrap_or((value, "0"));
    let digits = |digits: &str, most| {
        (1..=most).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    (digits(whole, 12) && digits(decimals, 3)).then(|| value.parse().ok()).flatten()
}

fn token(value: &str, allowed: &[&'static str]) -> Option<&'static str> {
    allowed.iter().copied().find(|token| *token == value)
}

/// A string in quotes, unescaped.
fn string(value: &str, longest: usize) -> Option<String> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(characters.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            '"' => return None,
            ' '..='~' => text.push(character),
            _ => return None,
        }
    }
    (text.len() <= longest).then_some(text)
}

/// Whether a key may be one of a later version, or a custom one.
fn is_key(key: &str) -> bool {
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'*');
    key.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()) && key.bytes().all(valid)
}

/// The keys of version 1.
const KNOWN: [&str; 18] = [
    "br", "d", "tb", "bl", "dl", "mtp", "rtp", "ot", "sf", "st", "pr", "cid", "sid", "su", "bs",
    "nor", "nrr", "v",
];
const OBJECTS: [&str; 9] = ["m", "a", "v", "av", "i", "c", "tt", "k", "o"];
const FORMATS: [&str; 4] = ["d", "h", "s", "o"];
const STREAMS: [&str; 2] = ["v", "l"];
/// Bytes of a field or parameter. Players send less than 500.
const LONGEST: usize = 4096;
/// Characters of `cid` and `sid`, as the specification has it.
const LONGEST_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Cmcd {
        let mut cmcd = Cmcd::default();
        cmcd.take(Some(text));
        cmcd
    }

    #[test]
    fn the_examples_of_the_specification_are_read() {
        let none = Cmcd::default;
        let sid = || Some("6e2fb550-c457-11e9-bb97-0800200c9a66".to_owned());
        let table = [
            ("sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\"", Cmcd { sid: sid(), ..none() }),
            (
                "br=3200,bs,d=4004,mtp=25400,ot=v,rtp=15000,\
                 sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",tb=6000",
                Cmcd {
                    br: Some(3200),
                    bs: true,
                    d: Some(4004),
                    mtp: Some(25_400),
                    ot: Some("v"),
                    rtp: Some(15_000),
                    sid: sid(),
                    tb: Some(6000),
                    ..none()
                },
            ),
            (
                "bs,rtp=15000,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\"",
                Cmcd { bs: true, rtp: Some(15_000), sid: sid(), ..none() },
            ),
            ("bs,su", Cmcd { bs: true, su: true, ..none() }),
            (
                "d=4004,com.example-myNumericKey=500,com.example-myStringKey=\"myStringValue\"",
                Cmcd { d: Some(4004), ..none() },
            ),
            (
                "nor=\"..%2F300kbps%2Fsegment35.m4v\",sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\"",
                Cmcd { sid: sid(), ..none() },
            ),
            ("nrr=\"12323-48763\"", none()),
            (
                "bl=21300,br=3200,bs,cid=\"faec5fc2-ac30-11ea-bb37-0242ac130002\",d=4004,\
                 dl=18500,mtp=48100,nor=\"..%2F300kbps%2Ftrack.m4v\",nrr=\"12323-48763\",ot=v,\
                 pr=1.08,rtp=12000,sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v,su,\
                 tb=6000",
                Cmcd {
                    bl: Some(21_300),
                    br: Some(3200),
                    bs: true,
                    cid: Some("faec5fc2-ac30-11ea-bb37-0242ac130002".to_owned()),
                    d: Some(4004),
                    dl: Some(18_500),
                    mtp: Some(48_100),
                    ot: Some("v"),
                    pr: Some(1.08),
                    rtp: Some(12_000),
                    sf: Some("d"),
                    sid: sid(),
                    st: Some("v"),
                    su: true,
                    tb: Some(6000),
                    ..none()
                },
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_valid_is_ignored_and_counted() {
        let long = format!("sid=\"{}\"", "x".repeat(65));
        let table: &[(&str, u64)] = &[
            ("", 0),
            ("bl=1, br=2", 0),
            ("v=1", 0),
            ("sid=\"a,b=c\\\"\\\\\"", 0),
            ("new=5,new-er", 0),
            ("com.example-x=(1 2)", 0),
            ("bl", 1),
            ("bl=", 1),
            ("bl=-1", 1),
            ("bl=1.5", 1),
            ("bl=1e3", 1),
            ("bl=9999999999999999", 1),
            ("bl=99999999999999999999999999999999", 1),
            ("bl=\"5\"", 1),
            ("bs=false", 1),
            ("su=1", 1),
            ("ot=video", 1),
            ("sf=x,st=x", 2),
            ("sid=abc", 1),
            ("sid=\"abc", 1),
            ("sid=\"a\\b\"", 1),
            ("sid=\"a\"b\"", 1),
            ("sid=\"\u{e4}\"", 1),
            ("sid=\"\u{1}\"", 1),
            (&long, 1),
            ("pr=1.2345", 1),
            ("pr=.5", 1),
            ("pr=-1", 1),
            ("pr=inf", 1),
            ("=1", 1),
            (",", 1),
            ("bl=1,,br=2", 1),
            ("{\"bl\":1}", 1),
            ("\u{0}", 1),
        ];
        for (text, ignored) in table {
            assert_eq!(read(text).ignored, *ignored, "{text:?}");
        }
        assert_eq!(read("bl=x,br=1400"), Cmcd { br: Some(1400), ignored: 1, ..Cmcd::default() });
        assert_eq!(read("sid=\"a,b\\\"\"").sid.as_deref(), Some("a,b\""));
        assert_eq!(read("bl=100,bl=200").bl, Some(200));
        assert_eq!(read(&"bl=1,".repeat(1000)), Cmcd { ignored: 1, ..Cmcd::default() });
        let mut none = Cmcd::default();
        none.take(None);
        assert_eq!(none.ignored, 1);
    }

    #[test]
    fn any_text_is_read_without_a_panic() {
        let seed = 18;
        let mut random = fastrand::Rng::with_seed(seed);
        let pieces = ["bl", "sid", "=", ",", "\"", "\\", "1", "v", "ot", ".", "-", "\u{e4}", " "];
        for round in 0..20_000 {
            let text: String =
                (0..random.usize(0..12)).map(|_| pieces[random.usize(0..pieces.len())]).collect();
            let cmcd = read(&text);
            assert!(cmcd.ignored <= 12, "round {round}, seed {seed}: {text:?}");
        }
    }

    #[test]
    fn the_four_fields_are_known_by_their_names() {
        for name in ["CMCD-Object", "cmcd-request", "CMCD-SESSION", "Cmcd-Status"] {
            assert!(is_field(name), "{name}");
        }
        for name in ["CMCD", "CMCD-", "CMCD-Other", "CMSD-Static", "x"] {
            assert!(!is_field(name), "{name}");
        }
    }
}
