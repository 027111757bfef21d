//! ADTS headers (ISO/IEC 14496-3, 1.A.2.2) from an `AudioSpecificConfig` (1.6.2).
//!
//! ```text
//!   AudioSpecificConfig   object type | sampling rate | channels | [SBR: rate, object type] | flags
//!                         | programme configuration, where the channels are 0
//!   frame                 ADTS header, 7 bytes | [programme configuration] | stored access unit
//! ```
//! SBR and PS are not in the header: decoders find them in the access unit. ADTS has no form for
//! other object types than 1 to 4, for frames of 960 instants and for rates outside of its table.

use crate::codec::{AAC_RATES, Bits};

/// What is in front of each access unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Adts {
    /// The bits from `profile` to `channel_configuration`, at their places in the third and fourth
    /// byte.
    fixed: [u8; 2],
    /// A programme configuration as an element of the access unit, in whole bytes.
    channels: Vec<u8>,
}

impl Adts {
    /// Fails with what has no form in ADTS.
    pub(super) fn of(config: &[u8]) -> Result<Self, &'static str> {
        Self::parse(&mut Bits::new(config)).unwrap_or(Err("it is cut short"))
    }

    /// `None` where the configuration ends too soon.
    fn parse(bits: &mut Bits<'_>) -> Option<Result<Self, &'static str>> {
        let mut object_type = object_type(bits)?;
        let rate = sampling_index(bits)?;
        let channels = bits.take(4)?;
        if object_type == SBR || object_type == PS {
            sampling_index(bits)?;
            object_type = self::object_type(bits)?;
        }
        let Some(rate) = rate else { return Some(Err("its sampling rate")) };
        if !(1..=4).contains(&object_type) {
            return Some(Err("its object type"));
        }
        if channels > 7 {
            return Some(Err("its channels"));
        }
        let [is_short, has_core] = [bits.take(1)?, bits.take(1)?];
        if has_core == 1 {
            bits.take(14)?;
        }
        bits.take(1)?;
        if is_short == 1 {
            return Some(Err("its frames of 960 instants"));
        }
        let fixed = (object_type - 1) << 14 | rate << 10 | channels << 6;
        let fixed = u16::try_from(fixed).ok()?.to_be_bytes();
        let channels = if channels == 0 { program_config(bits)? } else { Vec::new() };
        Some(Ok(Self { fixed, channels }))
    }

    /// The number of bytes in front of an access unit.
    pub(super) fn len(&self) -> usize {
        HEADER + self.channels.len()
    }

    /// Appends what is in front of an access unit of this size.
    pub(super) fn write(&self, out: &mut Vec<u8>, size: u32) {
        let length = size + u32::try_from(self.len()).expect("some bytes");
        let [_, high, middle, low] = (length << 5).to_be_bytes();
        let [first, second] = self.fixed;
        // MPEG-4, no CRC; a variable rate, one access unit.
        out.extend_from_slice(&[0xff, 0xf1, first, second | high, middle, low | 0x1f, 0xfc]);
        out.extend_from_slice(&self.channels);
    }
}

fn object_type(bits: &mut Bits<'_>) -> Option<u32> {
    match bits.take(5)? {
        31 => Some(32 + bits.take(6)?),
        object_type => Some(object_type),
    }
}

/// The index of a sampling rate; `Some(None)` where the rate is not in the table.
fn sampling_index(bits: &mut Bits<'_>) -> Option<Option<u32>> {
    match bits.take(4)? {
        15 => {
            let rate = bits.take(24)?;
            let index = AAC_RATES.iter().position(|known| *known == rate);
            Some(index.and_then(|index| u32::try_from(index).ok()))
        }
        index => Some((index < 13).then_some(index)),
    }
}

/// A `program_config_element` (4.4.1.1) as the first element of an access unit. Its bytes are
/// aligned to the beginning of what it is in, so that its bits are copied, not its bytes.
fn program_config(bits: &mut Bits<'_>) -> Option<Vec<u8>> {
    let mut out = BitWriter::default();
    out.put(PROGRAM_CONFIG, 3);
    let mut copy = |count: usize| {
        let value = bits.take(count)?;
        out.put(value, count);
        Some(value)
    };
    copy(4 + 2 + 4)?;
    let [front, side, back] = [copy(4)?, copy(4)?, copy(4)?];
    let [low, associated, coupling] = [copy(2)?, copy(3)?, copy(4)?];
    // Three mixdowns, each behind a bit that says whether it is there.
    for width in [4, 4, 3] {
        if copy(1)? == 1 {
            copy(width)?;
        }
    }
    for _ in 0..front + side + back {
        copy(1 + 4)?;
    }
    for _ in 0..low + associated {
        copy(4)?;
    }
    for _ in 0..coupling {
        copy(1 + 4)?;
    }
    bits.take(bits.at.next_multiple_of(8) - bits.at)?;
    out.align();
    let comment = bits.take(8)?;
    out.put(comment, 8);
    for _ in 0..comment {
        out.put(bits.take(8)?, 8);
    }
    Some(out.bytes)
}

/// Writes numbers of any number of bits, the highest bit first.
#[derive(Debug, Default)]
struct BitWriter {
    bytes: Vec<u8>,
    used: usize,
}

impl BitWriter {
    fn put(&mut self, value: u32, count: usize) {
        for shift in (0..count).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let bit = u8::from(value >> shift & 1 == 1) << (7 - self.used % 8);
            *self.bytes.last_mut().expect("just made") |= bit;
            self.used += 1;
        }
    }

    fn align(&mut self) {
        self.used = self.bytes.len() * 8;
    }
}

const HEADER: usize = 7;
const SBR: u32 = 5;
const PS: u32 = 29;
/// `ID_PCE`.
const PROGRAM_CONFIG: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(config: &[u8], size: u32) -> Result<Vec<u8>, &'static str> {
        let mut out = Vec::new();
        Adts::of(config)?.write(&mut out, size);
        Ok(out)
    }

    #[test]
    fn headers_are_those_of_other_writers() {
        // AAC-LC, 48 kHz, stereo: as FFmpeg writes it, for 371 bytes.
        let lc = header(&[0x11, 0x90], 371);
        assert_eq!(lc, Ok(vec![0xff, 0xf1, 0x4c, 0x80, 0x2f, 0x5f, 0xfc]));
        // HE-AAC with SBR named: the rate and object type of its core, 24 kHz.
        let he = header(&[0x2b, 0x11, 0x88, 0x00], 371);
        assert_eq!(he, Ok(vec![0xff, 0xf1, 0x58, 0x80, 0x2f, 0x5f, 0xfc]));
        // 44.1 kHz as a number.
        let named = [0x17, 0x80, 0x56, 0x22, 0x10];
        assert_eq!(header(&named, 1).map(|it| it[2]), Ok(0x50));
    }

    #[test]
    fn channels_of_a_programme_configuration_are_an_element_of_the_access_unit() {
        // 5.1 with side channels, as FFmpeg's encoder writes it: AAC-LC, 48 kHz, channels 0.
        let config = [
            0x11, 0x80, 0x04, 0xc8, 0x44, 0x00, 0x20, 0x00, 0xc4, 0x0d, 0x4c, 0x61, 0x76, 0x63,
            0x35, 0x39, 0x2e, 0x33, 0x37, 0x2e, 0x31, 0x30, 0x30, 0x56, 0xe5, 0x00,
        ];
        let made = header(&config, 0).unwrap();
        assert_eq!(made[2..4], [0x4c, 0x00]);
        let mut bits = Bits::new(&made[HEADER..]);
        let fields = [3, 4, 2, 4, 4, 4, 4, 2, 3, 4].map(|width| bits.take(width).unwrap());
        assert_eq!(fields, [5, 0, 1, 3, 2, 1, 1, 0, 0, 0]);
        assert!(made.ends_with(b"\x0dLavc59.37.100"), "{made:02x?}");
    }

    #[test]
    fn what_adts_has_no_form_for_is_named() {
        let table: [(&[u8], &str); 5] = [
            (&[0x11], "it is cut short"),
            (&[0x17, 0x80, 0x00, 0x02, 0x10], "its sampling rate"),
            (&[0xf9, 0x46, 0x40], "its object type"),
            (&[0x11, 0xc0], "its channels"),
            (&[0x11, 0x94], "its frames of 960 instants"),
        ];
        for (config, why) in table {
            assert_eq!(header(config, 1), Err(why), "{config:02x?}");
        }
    }
}
