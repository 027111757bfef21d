//! What the packets of a transport stream tell beyond FFmpeg's description: streams that are
//! scrambled, and AAC whose configuration changes, which one MP4 track cannot describe.
//!
//! ```text
//! 47 | flags, PID | scrambling, fields, counter | [adaptation field] | 00 00 01 ... PES | ff f1 ADTS
//! ```
//!
//! FFmpeg ignores the scrambling bits, so that a scrambled stream looks like an empty one; and its
//! filter for MP4 takes the configuration of the first AAC packet for all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// What the packets of a transport stream tell, by packet identifier (PID).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Transport {
    /// Packets with payload, and those of them that are scrambled.
    packets: BTreeMap<u16, (u64, u64)>,
    /// The configurations of AAC in ADTS framing, and how often each was seen.
    aac: BTreeMap<u16, BTreeMap<AacLayout, u64>>,
}

/// The part of an ADTS header that is the same in all packets of an MP4 track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AacLayout {
    /// The index of the sample rate (ISO/IEC 14496-3).
    rate: u8,
    /// The channel configuration.
    channels: u8,
}

impl Transport {
    /// Looks at the packets of a file: at all of a small one, at places of a large one.
    pub(super) fn of(file: &Path) -> io::Result<Self> {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        let windows = length.div_ceil(WINDOW).min(WINDOWS);
        let step = length / windows.max(1);
        let mut found = Self::default();
        let mut bytes = Vec::new();
        for number in 0..windows {
            file.seek(SeekFrom::Start(number * step))?;
            bytes.clear();
            (&mut file).take(WINDOW).read_to_end(&mut bytes)?;
            found.read(&bytes);
        }
        Ok(found)
    }

    /// Whether most packets of a stream are scrambled.
    pub(super) fn is_scrambled(&self, pid: u16) -> bool {
        self.packets.get(&pid).is_some_and(|(all, scrambled)| scrambled * 2 > *all)
    }

    /// The layouts of an AAC stream in words, if it has more than one.
    pub(super) fn changing_aac(&self, pid: u16) -> Option<String> {
        let often = |(_, count): &(&AacLayout, &u64)| **count >= SEEN;
        let layouts: Vec<_> = self.aac.get(&pid)?.iter().filter(often).collect();
        let words: BTreeSet<String> = layouts.iter().map(|(layout, _)| layout.words()).collect();
        (words.len() > 1).then(|| words.into_iter().collect::<Vec<_>>().join(" and "))
    }

    fn read(&mut self, bytes: &[u8]) {
        let Some((first, size)) = packets(bytes) else { return };
        for packet in bytes[first..].chunks_exact(size) {
            // What follows the 188 bytes is error correction; of 192 bytes the first four are a
            // time, and `first` is behind them.
            self.read_packet(&packet[..PACKET]);
        }
    }

    fn read_packet(&mut self, packet: &[u8]) {
        let has_payload = packet[3] & 0x10 != 0;
        if packet[0] != SYNC || !has_payload {
            return;
        }
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        let (all, scrambled) = self.packets.entry(pid).or_default();
        *all += 1;
        if packet[3] & 0xc0 != 0 {
            *scrambled += 1;
            return;
        }
        let adaptation = if packet[3] & 0x20 != 0 { 1 + usize::from(packet[4]) } else { 0 };
        let starts = packet[1] & 0x40 != 0;
        let payload = packet.get(4 + adaptation..).unwrap_or_default();
        let content = pes_content(payload).filter(|_| starts);
        if let Some(layout) = content.and_then(AacLayout::of_adts) {
            *self.aac.entry(pid).or_default().entry(layout).or_default() += 1;
        }
    }
}

/// The place of the first packet, and the distance between packets.
fn packets(bytes: &[u8]) -> Option<(usize, usize)> {
    let fits = |&(first, size): &(usize, usize)| {
        (0..IN_STEP).all(|number| bytes.get(first + number * size) == Some(&SYNC))
    };
    let places = SIZES.iter().flat_map(|size| (0..*size).map(move |first| (first, *size)));
    places.into_iter().find(fits)
}

/// The content of a packetized elementary stream at its start.
fn pes_content(payload: &[u8]) -> Option<&[u8]> {
    let header = usize::from(*payload.get(8)?);
    payload.starts_with(&[0, 0, 1]).then(|| payload.get(9 + header..)).flatten()
}

impl AacLayout {
    fn of_adts(bytes: &[u8]) -> Option<Self> {
        let [first, second, third, fourth] = *bytes.first_chunk()?;
        // The syncword and the layer, which is always zero.
        let is_adts = first == 0xff && second & 0xf6 == 0xf0;
        let rate = third >> 2 & 0xf;
        (is_adts && rate < 13).then_some(Self { rate, channels: (third & 1) << 2 | fourth >> 6 })
    }

    fn words(self) -> String {
        let rate = RATES[usize::from(self.rate)];
        match self.channels {
            0 => format!("{rate} Hz with channels of its own"),
            1 => format!("{rate} Hz mono"),
            2 => format!("{rate} Hz stereo"),
            7 => format!("{rate} Hz with 8 channels"),
            count => format!("{rate} Hz with {count} channels"),
        }
    }
}

/// The first byte of a packet.
const SYNC: u8 = 0x47;

/// The size of a packet.
const PACKET: usize = 188;

/// The distances between packets: as in ISO/IEC 13818-1, with a time (M2TS), with error correction.
const SIZES: [usize; 3] = [PACKET, 192, 204];

/// The packets in a row that begin with [`SYNC`]; one byte in 256 does by chance.
const IN_STEP: usize = 5;

/// The bytes of one place: tens of audio packets at any rate of broadcasts.
const WINDOW: u64 = 1 << 20;

/// The places in a file: every half minute of two hours.
const WINDOWS: u64 = 256;

/// The number of packets that make a configuration: fewer may be content that looks like a header.
const SEEN: u64 = 3;

/// Sample rates by index.
const RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of PID 256 whose content begins a PES packet with these bytes.
    fn packet(flags: u8, content: &[u8]) -> Vec<u8> {
        let head = [SYNC, 0x41, 0, flags, 0, 0, 1, 0xc0, 0, 0, 0x80, 0, 0];
        let mut packet = [&head[..], content].concat();
        packet.resize(PACKET, 0xff);
        packet
    }

    const STEREO: &[u8] = &[0xff, 0xf1, 0x4c, 0x80];
    const SURROUND: &[u8] = &[0xff, 0xf1, 0x4d, 0x80];

    fn read(packets: &[Vec<u8>], distance: usize, first: usize) -> Transport {
        let mut bytes = vec![0; first];
        for packet in packets {
            bytes.extend(packet);
            bytes.resize(bytes.len() + distance - PACKET, 0);
        }
        let mut found = Transport::default();
        found.read(&bytes);
        found
    }

    #[test]
    fn packets_of_each_size_tell_their_layouts_and_scrambling() {
        let stereo = || packet(0x10, STEREO);
        let surround = || packet(0x10, SURROUND);
        for distance in SIZES {
            for first in [0, 4, 100] {
                let plain = read(&vec![stereo(); 9], distance, first);
                assert_eq!((plain.is_scrambled(256), plain.changing_aac(256)), (false, None));
                let both = [vec![stereo(); 9], vec![surround(); 9]].concat();
                let words = "48000 Hz stereo and 48000 Hz with 6 channels";
                assert_eq!(read(&both, distance, first).changing_aac(256).as_deref(), Some(words));
                let scrambled = read(&vec![packet(0x90, STEREO); 9], distance, first);
                assert!(scrambled.is_scrambled(256) && !scrambled.is_scrambled(257));
            }
        }
    }

    #[test]
    fn a_packet_that_looks_like_another_layout_is_none() {
        let one = [vec![packet(0x10, STEREO); 9], vec![packet(0x10, SURROUND); 2]].concat();
        assert_eq!(read(&one, PACKET, 0).changing_aac(256), None);
        assert_eq!(read(&[], PACKET, 0), Transport::default());
        assert_eq!(read(&vec![vec![SYNC; PACKET]; 9], PACKET, 0).changing_aac(0x747), None);
    }
}
