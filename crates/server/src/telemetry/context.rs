//! Which trace a session belongs to: identifiers, the context that a player or a proxy sends (W3C
//! Trace Context), and which sessions are traced.
//!
//! Random bytes are arguments.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Names a trace in all programs that take part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TraceId([u8; 16]);

/// Names a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpanId([u8; 8]);

/// A span, and whether it is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TraceContext {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) is_sampled: bool,
}

impl TraceContext {
    /// The context in a `traceparent` field; `None`: it is not valid, and is ignored.
    pub(crate) fn parse(field: &str) -> Option<Self> {
        let mut parts = field.split('-');
        let (version, trace) = (hex::<1>(parts.next()?)?, hex(parts.next()?)?);
        let (span, flags) = (hex(parts.next()?)?, hex::<1>(parts.next()?)?);
        // Later versions may have more parts, this one has not.
        let is_known = version == [0] && parts.next().is_none() || (1..255).contains(&version[0]);
        let is_valid = is_known && trace != [0; 16] && span != [0; 8];
        let is_sampled = flags[0] & SAMPLED != 0;
        is_valid.then_some(Self { trace: TraceId(trace), span: SpanId(span), is_sampled })
    }

    /// The context of a new session: in the trace of `parent`, which has decided whether it is
    /// exported, or in a new one.
    pub(crate) fn new(parent: Option<Self>, part: TracedPart, random: RandomIds) -> Self {
        let RandomIds { trace, span } = random;
        match parent {
            Some(parent) => Self { span: SpanId(span), ..parent },
            None => {
                let is_sampled = part.has(trace);
                Self { trace: TraceId(trace), span: SpanId(span), is_sampled }
            }
        }
    }

    /// The flags of a span of the trace, in OTLP: those of W3C, and that it is known whether the
    /// parent is in another program.
    pub(crate) fn flags(&self, has_remote_parent: bool) -> u32 {
        let flags = if self.is_sampled { u32::from(SAMPLED) } else { 0 };
        flags | HAS_IS_REMOTE | if has_remote_parent { IS_REMOTE } else { 0 }
    }
}

/// Random bytes of which a session's identifiers are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomIds {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
}

impl SpanId {
    /// The identifier of these random bytes.
    pub(crate) fn of(random: [u8; 8]) -> Self {
        Self(random)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::to_hex(&self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::to_hex(&self.0))
    }
}

/// The part of new traces that is exported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedPart(f64);

impl TracedPart {
    /// All of them.
    pub const ALL: Self = Self(1.0);

    /// Whether a trace is exported. By its identifier, as in other programs: one with a larger part
    /// exports all that one with a smaller part does.
    fn has(self, trace: [u8; 16]) -> bool {
        let low = u128::from_be_bytes(trace) & u128::from(u64::MAX >> 1);
        // Both sides are exact enough: a part has few digits.
        self.0 >= 1.0 || (low as f64) < self.0 * (u64::MAX >> 1) as f64
    }
}

impl FromStr for TracedPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = text.parse().ok().filter(|part| (0.0..=1.0).contains(part));
        part.map(Self).ok_or_else(|| format!("'{text}' is no part from 0 to 1, such as 0.1"))
    }
}

/// The bytes of lower-case hexadecimal digits.
fn hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let is_lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 2 * N || !digits.bytes().all(is_lower) {
        return None;
    }
    units::from_hex(digits)?.try_into().ok()
}

/// The flag of W3C Trace Context by which a trace is exported.
const SAMPLED: u8 = 1;
/// The bits of OTLP's span flags that say whether the parent is in another program.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_traceparent_is_taken_as_w3c_has_it_and_ignored_otherwise() {
        let (zeros, upper) = ("0".repeat(32), TRACE.to_uppercase());
        for (field, sampled) in [
            (format!("00-{TRACE}-{SPAN}-01"), Some(true)),
            (format!("00-{TRACE}-{SPAN}-00"), Some(false)),
            (format!("00-{TRACE}-{SPAN}-03"), Some(true)),
            (format!("01-{TRACE}-{SPAN}-01"), Some(true)),
            (format!("01-{TRACE}-{SPAN}-01-what-comes-later"), Some(true)),
            (format!("00-{TRACE}-{SPAN}-01-more"), None),
            (format!("ff-{TRACE}-{SPAN}-01"), None),
            (format!("00-{zeros}-{SPAN}-01"), None),
            (format!("00-{TRACE}-{}-01", &zeros[..16]), None),
            (format!("00-{upper}-{SPAN}-01"), None),
            (format!("00-{TRACE}-{SPAN}-1"), None),
            (format!("00-{TRACE}-{SPAN}"), None),
            (format!("00-{}-{SPAN}-01", &TRACE[1..]), None),
            (format!("00-{TRACE}-{}é-01", &SPAN[2..]), None),
            (String::new(), None),
        ] {
            let parsed = TraceContext::parse(&field);
            assert_eq!(parsed.map(|context| context.is_sampled), sampled, "{field}");
            if let Some(TraceContext { trace, span, .. }) = parsed {
                assert_eq!((trace.to_string().as_str(), span.to_string().as_str()), (TRACE, SPAN));
            }
        }
    }

    #[test]
    fn a_parent_decides_and_without_one_the_identifier_does() {
        let random = |byte| RandomIds { trace: [byte; 16], span: [7; 8] };
        let sampled = |parent: Option<&str>, part: &str, byte| {
            let parent = parent.and_then(TraceContext::parse);
            let context = TraceContext::new(parent, part.parse().unwrap(), random(byte));
            assert_eq!(parent.is_some_and(|it| it.trace == context.trace), parent.is_some());
            assert_eq!(context.span, SpanId::of([7; 8]), "a span of its own");
            context.is_sampled
        };
        let (yes, no) = (format!("00-{TRACE}-{SPAN}-01"), format!("00-{TRACE}-{SPAN}-00"));
        assert!(sampled(Some(&yes), "0", 0xff) && !sampled(Some(&no), "1", 0));
        // The identifier's low 63 bits are a part of all: 0x0101... is a 127th, 0x7f7f... nearly 1.
        for (byte, part, expected) in [
            (0x01, "0", false),
            (0x01, "0.007", false),
            (0x01, "0.008", true),
            (0x7f, "0.99", false),
            (0xff, "1", true),
        ] {
            assert_eq!(sampled(None, part, byte), expected, "{byte:x} of {part}");
        }
        for wrong in ["", "-0.1", "1.1", "NaN", "10%"] {
            assert!(wrong.parse::<TracedPart>().is_err(), "{wrong}");
        }
    }
}
