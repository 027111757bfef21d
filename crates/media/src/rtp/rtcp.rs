//! RTCP (RFC 3550, 6) of a sender: which time of the clock a time stamp is, and the end.

use std::time::Duration;

/// The values of a sender report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderReport {
    /// The synchronization source of the stream.
    pub ssrc: u32,
    /// A time since 1970 of a clock that all streams of a session have.
    pub clock: Duration,
    /// The stream's time stamp at that time.
    pub timestamp: u32,
    /// Packets sent.
    pub packets: u32,
    /// Bytes of their payloads.
    pub payload_bytes: u32,
}

impl SenderReport {
    /// The report with the sender's name, as one compound packet.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION, SENDER_REPORT, 0, 6];
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        let seconds = self.clock.as_secs().wrapping_add(SECONDS_1900_TO_1970);
        // The high 32 bits count seconds and wrap in 2036; the low ones are a fraction of 2^32.
        out.extend_from_slice(&seconds.to_be_bytes()[4..]);
        let fraction = (u64::from(self.clock.subsec_nanos()) << 32) / 1_000_000_000;
        out.extend_from_slice(&fraction.to_be_bytes()[4..]);
        for number in [self.timestamp, self.packets, self.payload_bytes] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        // A compound packet names its sender; chunks end at a multiple of four bytes.
        let padding = 4 - (2 + NAME.len()) % 4;
        let chunk = 4 + 2 + NAME.len() + padding;
        let words = u8::try_from(chunk / 4).expect("a short name");
        out.extend_from_slice(&[VERSION | 1, SOURCE_DESCRIPTION, 0, words]);
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        out.extend_from_slice(&[CNAME, u8::try_from(NAME.len()).expect("a short name")]);
        out.extend_from_slice(NAME);
        out.resize(out.len() + padding, 0);
        out
    }
}

/// The end of a stream: its last report, and BYE.
pub fn goodbye(last: &SenderReport) -> Vec<u8> {
    let mut out = last.to_bytes();
    out.extend_from_slice(&[VERSION | 1, BYE, 0, 1]);
    out.extend_from_slice(&last.ssrc.to_be_bytes());
    out
}

const VERSION: u8 = 2 << 6;
const SENDER_REPORT: u8 = 200;
const SOURCE_DESCRIPTION: u8 = 202;
const BYE: u8 = 203;
const CNAME: u8 = 1;
/// The canonical name of the sender: one for all streams, so that receivers play them in step.
const NAME: &[u8] = b"tenuto";
const SECONDS_1900_TO_1970: u64 = 2_208_988_800;
