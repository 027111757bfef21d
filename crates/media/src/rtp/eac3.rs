//! E-AC-3 (RFC 4598): whole frames together, or one frame in fragments.
//!
//! ```text
//!   LDU       frame of 6 blocks | frame of a dependent substream     or some frames of 1 to 3 blocks
//!   packet    |0 count frame frame ..   or of a longer one   |1 fragments part|1 fragments part
//! ```

use super::packetise::{Emit, MOST_PAYLOAD, Packetizer};

impl Packetizer {
    /// Makes the packets of an LDU: the frames of 1536 samples.
    pub(super) fn eac3(&mut self, ldu: &[u8], timestamp: u32, emit: &mut Emit<'_>) {
        let mut frames = frames(ldu).peekable();
        let mut rest = ldu;
        while let Some(first) = frames.next() {
            let at = timestamp.wrapping_add(first.samples_before);
            if first.size > MOST {
                let (frame, behind) = rest.split_at(first.size);
                rest = behind;
                let Ok(count) = u8::try_from(frame.len().div_ceil(MOST)) else { return };
                let mut parts = frame.chunks(MOST).peekable();
                while let Some(part) = parts.next() {
                    // The marker: the packet completes a frame.
                    self.packet(&[1, count], part, parts.peek().is_none(), at, emit);
                }
                continue;
            }
            let (mut size, mut count) = (first.size, 1);
            while let Some(next) = frames.next_if(|next| size + next.size <= MOST && count < 255) {
                size += next.size;
                count += 1;
            }
            let (whole, behind) = rest.split_at(size);
            rest = behind;
            self.packet(&[0, count], whole, true, at, emit);
        }
    }
}

/// A frame in an LDU.
#[derive(Clone, Copy, Debug)]
struct SyncFrame {
    size: usize,
    /// Samples of the LDU before those of the frame, in each channel.
    samples_before: u32,
}

/// The frames of an LDU (ETSI TS 102 366, E.1.2). What is not of this form is one frame to the end.
fn frames(ldu: &[u8]) -> impl Iterator<Item = SyncFrame> + '_ {
    let (mut rest, mut begun, mut passed) = (ldu, 0, 0);
    std::iter::from_fn(move || {
        let (size, samples) = match *rest {
            [] => return None,
            // The sync word, then 2 bits of type, 3 of the substream, 11 of the size in words, 2 of
            // the sampling rate, 2 of the number of blocks. Dependent frames have type 1.
            [0x0b, 0x77, high, low, codes, ..] => {
                let size = (usize::from(high & 7) << 8 | usize::from(low)) * 2 + 2;
                // A reduced sampling rate has always six blocks.
                let blocks = if codes >> 6 == 3 { 6 } else { BLOCKS[usize::from(codes >> 4 & 3)] };
                let leads = high >> 6 != 1 && high >> 3 & 7 == 0;
                (size.min(rest.len()), if leads { blocks * 256 } else { 0 })
            }
            _ => (rest.len(), 0),
        };
        rest = &rest[size..];
        // Frames of further substreams have the time of the one that they belong to.
        if samples > 0 {
            begun = passed;
        }
        passed += samples;
        Some(SyncFrame { size, samples_before: begun })
    })
}

/// Blocks of 256 samples by their code.
const BLOCKS: [u32; 4] = [1, 2, 3, 6];
/// The bytes of a payload behind its header of two bytes.
const MOST: usize = MOST_PAYLOAD - 2;
