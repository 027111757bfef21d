//! RTP (RFC 3550): LDUs as packets, sender reports, and the SDP that describes both.
//!
//! ```text
//!   LDU (as stored)          H.264: length NAL | length NAL | ...
//!        │ packetise          one for each NAL, or fragments of at most MTU bytes
//!        ▼
//!   RTP header 12 bytes | payload header 0 to 4 bytes | slice of the LDU
//!   └──────────── made here ───────────────────────┘   └── not copied here
//! ```
//!
//! Pure: bytes in, bytes out. When a packet is sent, and over what, is decided by its sender.
//! A packet has bytes of one LDU only, so that none waits for a later one.
//!
//! | codec | payload format |
//! |---|---|
//! | H.264 | RFC 6184, packetization mode 1: single NAL units, FU-A |
//! | HEVC | RFC 7798: single NAL units, FU |
//! | AV1 | RTP Payload Format For AV1 1.0: one OBU, or a fragment |
//! | VP9 | RFC 9628, without layers |
//! | MPEG-1, MPEG-2 video | RFC 2250, static type 32 |
//! | MPEG-4 part 2 | RFC 6416 |
//! | AAC | RFC 3640, mode AAC-hbr |
//! | AC-3, E-AC-3 | RFC 4184, RFC 4598 |
//! | Opus, mono and stereo | RFC 7587 |
//! | MP3, MP2 | RFC 2250, static type 14 |
//! | PCM of 16 and 24 bits, A-law, mu-law | RFC 3551, RFC 3190: L16, L24, PCMA, PCMU |

mod av1;
mod eac3;
mod format;
mod mpeg_video;
mod packetise;
mod rtcp;
mod sdp;

pub use format::PayloadFormat;
pub use packetise::Packetizer;
pub use rtcp::{SenderReport, goodbye};
pub use sdp::{MediaSection, session_description};

/// The most bytes of a packet, RTP header included: below the 1,500 of Ethernet with room for IP,
/// UDP and a tunnel.
pub const MTU: usize = 1400;

#[cfg(test)]
mod tests;
