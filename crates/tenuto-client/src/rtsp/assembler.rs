//! The payloads of RTP packets, put together to LDUs.
//!
//! | encoding | payload format | bytes of an LDU |
//! |---|---|---|
//! | H264, H265 | RFC 6184, RFC 7798 (without interleaving) | NAL units behind lengths of four bytes |
//! | MPEG4-GENERIC | RFC 3640 (without interleaving) | an access unit; a packet may have several |
//! | MPV, MPA, AC3, EAC3 | RFC 2250, RFC 4184, RFC 4598 | the payload behind its header |
//! | others | | the payloads as they are, one behind the other |
//!
//! An LDU of which packets are missing is told from others, and not repaired.

/// Puts the LDUs of one track together.
#[derive(Clone, Debug)]
pub(crate) struct Assembler {
    layout: PayloadLayout,
    /// Whether the marker is on the last packet of an LDU; else each packet is one.
    is_marked: bool,
    /// Whether bytes are wanted; else units are counted only.
    with_bytes: bool,
    bytes: Vec<u8>,
    /// Where the NAL unit begins of which fragments arrive.
    fragment: Option<usize>,
    /// The sizes of the access units of a packet, where it has several.
    sizes: Vec<usize>,
    sync: bool,
    is_whole: bool,
}

/// The form of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadLayout {
    H264,
    Hevc,
    /// Access units behind a section of headers.
    Aac(AccessUnitHeaders),
    MpegVideo,
    /// This number of bytes in front of each payload.
    Headed(usize),
    Plain {
        is_video: bool,
    },
}

/// Bits of the fields in front of access units, and ticks of one (RFC 3640, 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AccessUnitHeaders {
    size: u32,
    index: u32,
    index_delta: u32,
    ticks: u32,
}

/// An LDU that is complete.
#[derive(Debug)]
pub(crate) struct Assembled {
    /// Ticks behind the time stamp of its packet.
    pub(crate) behind: u32,
    /// Whether no packet of it is missing.
    pub(crate) is_whole: bool,
    pub(crate) sync: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Assembler {
    /// For the encoding of `a=rtpmap`, and the parameters of `a=fmtp`.
    pub(crate) fn new(encoding: &str, parameters: &str, is_video: bool, with_bytes: bool) -> Self {
        let layout = match encoding.to_ascii_uppercase().as_str() {
            "H264" => PayloadLayout::H264,
            "H265" => PayloadLayout::Hevc,
            "MPEG4-GENERIC" => access_units(parameters),
            "MPV" => PayloadLayout::MpegVideo,
            "MPA" => PayloadLayout::Headed(4),
            "AC3" | "EAC3" => PayloadLayout::Headed(2),
            _ => PayloadLayout::Plain { is_video },
        };
        let marked = ["MPEG4-GENERIC", "MP4A-LATM", "AC3", "EAC3"];
        let is_marked = is_video || marked.iter().any(|name| name.eq_ignore_ascii_case(encoding));
        Self {
            layout,
            is_marked,
            with_bytes,
            bytes: Vec::new(),
            fragment: None,
            sizes: Vec::new(),
            sync: layout.begins_with_sync(),
            is_whole: true,
        }
    }

    /// Whether the marker is on the last packet of an LDU; else each packet is one.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// A packet of the LDU that is put together is missing.
    pub(crate) fn packet_missing(&mut self) {
        self.is_whole = false;
    }

    /// Forgets what has arrived of an LDU.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.sizes.clear();
        (self.fragment, self.sync) = (None, self.layout.begins_with_sync());
        self.is_whole = true;
    }

    /// Takes the payload of the next packet.
    pub(crate) fn push(&mut self, payload: &[u8]) {
        let is_new = self.bytes.is_empty();
        let understood = match self.layout {
            PayloadLayout::Aac(headers) => self.push_access_units(payload, headers),
            _ if !self.with_bytes => Some(()),
            PayloadLayout::H264 => self.push_h264(payload),
            PayloadLayout::Hevc => self.push_hevc(payload),
            PayloadLayout::MpegVideo => self.push_mpeg_video(payload),
            PayloadLayout::Headed(header) => {
                payload.get(header..).map(|rest| self.bytes.extend_from_slice(rest))
            }
            PayloadLayout::Plain { .. } => {
                self.bytes.extend_from_slice(payload);
                Some(())
            }
        };
        if understood.is_none() || (self.bytes.len() > LARGEST_LDU && !is_new) {
            // What follows of a fragment has no beginning any more.
            self.bytes.clear();
            self.fragment = None;
            self.is_whole = false;
        }
    }

    /// The LDU is complete, or several are.
    pub(crate) fn take(&mut self, sink: &mut dyn FnMut(Assembled)) {
        let bytes = std::mem::take(&mut self.bytes);
        let (sync, is_whole) = (self.sync, self.is_whole && self.fragment.is_none());
        match self.layout {
            PayloadLayout::Aac(headers) if self.sizes.len() > 1 => {
                let (mut rest, mut behind) = (&bytes[..], 0);
                for size in self.sizes.drain(..) {
                    let (unit, next) = rest.split_at(size.min(rest.len()));
                    sink(Assembled { behind, is_whole, sync, bytes: unit.to_vec() });
                    (rest, behind) = (next, behind.wrapping_add(headers.ticks));
                }
            }
            _ => sink(Assembled { behind: 0, is_whole, sync, bytes }),
        }
        self.clear();
    }

    // RFC 6184, 5.6 to 5.8: one NAL unit, several, or a fragment of one.
    fn push_h264(&mut self, payload: &[u8]) -> Option<()> {
        let kind = payload.first()? & 0x1f;
        match kind {
            1..=23 => self.push_unit(payload, kind == 5),
            24 => self.push_several(payload.get(1..)?, |unit| unit[0] & 0x1f == 5)?,
            28 => {
                let [indicator, header, rest @ ..] = payload else { return None };
                let unit = [indicator & 0xe0 | header & 0x1f];
                self.push_fragment(*header, &unit, rest, header & 0x1f == 5)?;
            }
            _ => return None,
        }
        Some(())
    }

    // RFC 7798, 4.4: the same with headers of two bytes.
    fn push_hevc(&mut self, payload: &[u8]) -> Option<()> {
        fn is_sync(kind: u8) -> bool {
            (16..=21).contains(&kind)
        }
        let kind = payload.first()? >> 1 & 0x3f;
        match kind {
            0..=47 => self.push_unit(payload, is_sync(kind)),
            48 => self.push_several(payload.get(2..)?, |unit| is_sync(unit[0] >> 1 & 0x3f))?,
            49 => {
                let [first, second, header, rest @ ..] = payload else { return None };
                let kind = header & 0x3f;
                let unit = [first & 0x81 | kind << 1, *second];
                self.push_fragment(*header, &unit, rest, is_sync(kind))?;
            }
            _ => return None,
        }
        Some(())
    }

    fn push_unit(&mut self, unit: &[u8], sync: bool) {
        let length = u32::try_from(unit.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(unit);
        self.sync |= sync;
    }

    fn push_several(&mut self, mut rest: &[u8], is_sync: fn(&[u8]) -> bool) -> Option<()> {
        while !rest.is_empty() {
            let (length, behind) = rest.split_first_chunk::<2>()?;
            let (unit, next) = behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            if !unit.is_empty() {
                self.push_unit(unit, is_sync(unit));
            }
            rest = next;
        }
        Some(())
    }

    // The header has two bits for the first and the last fragment of a NAL unit.
    fn push_fragment(&mut self, header: u8, unit: &[u8], rest: &[u8], sync: bool) -> Option<()> {
        if header & 0x80 != 0 {
            self.fragment = Some(self.bytes.len());
            self.push_unit(unit, sync);
        }
        // Without its beginning the unit cannot be put together.
        let begins = self.fragment?;
        self.bytes.extend_from_slice(rest);
        let length = u32::try_from(self.bytes.len() - begins - 4).unwrap_or(u32::MAX);
        self.bytes.get_mut(begins..begins + 4)?.copy_from_slice(&length.to_be_bytes());
        if header & 0x40 != 0 {
            self.fragment = None;
        }
        Some(())
    }

    // RFC 3640, 3.2: the bits of all headers, the headers, the access units.
    fn push_access_units(&mut self, payload: &[u8], headers: AccessUnitHeaders) -> Option<()> {
        let (length, rest) = payload.split_first_chunk::<2>()?;
        let bits = u32::from(u16::from_be_bytes(*length));
        let (fields, units) = rest.split_at_checked(usize::try_from(bits.div_ceil(8)).ok()?)?;
        let mut at = 0;
        let mut sizes = Vec::new();
        while at < bits {
            let index = if sizes.is_empty() { headers.index } else { headers.index_delta };
            sizes.push(usize::try_from(bits_at(fields, at, headers.size)?).ok()?);
            // An index says that units are missing between: they are interleaved.
            if bits_at(fields, at + headers.size, index)? != 0 {
                return None;
            }
            at += headers.size + index;
        }
        // One unit may go on in packets that follow.
        if sizes.len() > 1 {
            (sizes.iter().sum::<usize>() <= units.len()).then_some(())?;
            self.sizes = sizes;
        }
        if self.with_bytes {
            self.bytes.extend_from_slice(units);
        }
        Some(())
    }

    // RFC 2250, 3.4: a header of four bytes, and another one with the extension of MPEG-2.
    fn push_mpeg_video(&mut self, payload: &[u8]) -> Option<()> {
        let [first, _, picture, _, ..] = payload else { return None };
        let header = if first & 0x04 != 0 { 8 } else { 4 };
        self.bytes.extend_from_slice(payload.get(header..)?);
        self.sync |= picture & 7 == 1;
        Some(())
    }
}

impl PayloadLayout {
    /// Whether an LDU counts as one where decoding can begin before its bytes say so.
    fn begins_with_sync(self) -> bool {
        matches!(self, Self::Aac(_) | Self::Headed(_) | Self::Plain { is_video: false })
    }
}

/// The layout by the parameters of RFC 3640, 4.1; those that are not read here make it plain.
fn access_units(parameters: &str) -> PayloadLayout {
    let number = |name: &str| -> Option<u32> {
        let mut pairs = parameters.split(';').filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        value.trim().parse().ok()
    };
    let own = |name| number(name).unwrap_or(0);
    let others =
        ["ctsdeltalength", "dtsdeltalength", "randomaccessindication", "streamstateindication"];
    let auxiliary = own("auxiliarydatasizelength") > 0;
    let headers = AccessUnitHeaders {
        size: own("sizelength"),
        index: own("indexlength"),
        index_delta: own("indexdeltalength"),
        // The usual length of AAC.
        ticks: number("constantduration").unwrap_or(1024),
    };
    let is_read = (1..=16).contains(&headers.size)
        && headers.index.max(headers.index_delta) <= 16
        && !auxiliary
        && others.iter().all(|name| own(name) == 0);
    match is_read {
        true => PayloadLayout::Aac(headers),
        false => PayloadLayout::Plain { is_video: false },
    }
}

/// The number of `count` bits, 16 at most, from bit `at` on.
fn bits_at(bytes: &[u8], at: u32, count: u32) -> Option<u32> {
    (at..at + count).try_fold(0, |number, bit| {
        let byte = bytes.get(usize::try_from(bit / 8).ok()?)?;
        Some(number << 1 | u32::from(byte >> (7 - bit % 8) & 1))
    })
}

/// The largest LDU that is put together: more than a picture of 8K has.
const LARGEST_LDU: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// The LDU, or LDUs, of these payloads, as `Wanted` has them.
    fn put_together(
        encoding: &str,
        parameters: &str,
        payloads: &[&[u8]],
    ) -> Vec<(u32, bool, bool, Vec<u8>)> {
        let is_video = !matches!(encoding, "MPEG4-GENERIC" | "MPA" | "opus" | "ac3");
        let mut assembler = Assembler::new(encoding, parameters, is_video, true);
        payloads.iter().for_each(|payload| assembler.push(payload));
        let mut found = Vec::new();
        assembler.take(&mut |ldu| found.push((ldu.behind, ldu.is_whole, ldu.sync, ldu.bytes)));
        found
    }

    /// Ticks behind the time stamp, whether whole, whether sync, bytes.
    type Wanted<'a> = (u32, bool, bool, &'a [u8]);

    /// Encoding, parameters, payloads, and the LDUs that they are.
    type Row<'a> = (&'a str, &'a str, &'a [&'a [u8]], &'a [Wanted<'a>]);

    #[test]
    fn payloads_become_the_ldus_of_their_rfcs() {
        const HBR: &str = "mode=AAC-hbr; sizelength=13; indexlength=3; indexdeltalength=3";
        let rows: [Row<'_>; 14] = [
            ("H264", "", &[&[0x41, 9]], &[(0, true, false, &[0, 0, 0, 2, 0x41, 9])]),
            // A unit, two in one packet, and an IDR picture in three fragments.
            (
                "h264",
                "",
                &[
                    &[0x06, 1],
                    &[24, 0, 2, 0x67, 2, 0, 1, 0x68],
                    &[0x7c, 0x85, 3],
                    &[0x7c, 0x05, 4],
                    &[0x7c, 0x45, 5],
                ],
                &[(
                    0,
                    true,
                    true,
                    &[
                        0, 0, 0, 2, 6, 1, 0, 0, 0, 2, 0x67, 2, 0, 0, 0, 1, 0x68, 0, 0, 0, 4, 0x65,
                        3, 4, 5,
                    ],
                )],
            ),
            // The first, or the last, fragment is missing.
            ("H264", "", &[&[0x7c, 0x45, 5]], &[(0, false, false, &[])]),
            ("H264", "", &[&[0x7c, 0x85, 5]], &[(0, false, true, &[0, 0, 0, 2, 0x65, 5])]),
            ("H264", "", &[&[24, 0, 9, 1]], &[(0, false, false, &[])]),
            // A packet that cannot be read between two fragments.
            ("H264", "", &[&[0x7c, 0x85, 3], &[30], &[0x7c, 0x05]], &[(0, false, true, &[])]),
            (
                "H265",
                "",
                &[&[96, 1, 0, 2, 0x40, 1], &[0x62, 1, 0x93, 7], &[0x62, 1, 0x53, 8]],
                &[(0, true, true, &[0, 0, 0, 2, 0x40, 1, 0, 0, 0, 4, 0x26, 1, 7, 8])],
            ),
            // One access unit; two; one in two fragments; interleaved ones.
            ("MPEG4-GENERIC", HBR, &[&[0, 16, 0, 16, 1, 2]], &[(0, true, true, &[1, 2])]),
            (
                "MPEG4-GENERIC",
                HBR,
                &[&[0, 32, 0, 16, 0, 8, 1, 2, 3]],
                &[(0, true, true, &[1, 2]), (1024, true, true, &[3])],
            ),
            (
                "MPEG4-GENERIC",
                HBR,
                &[&[0, 16, 0, 24, 1, 2], &[0, 16, 0, 24, 3]],
                &[(0, true, true, &[1, 2, 3])],
            ),
            ("MPEG4-GENERIC", HBR, &[&[0, 32, 0, 8, 0, 9, 1, 2]], &[(0, false, true, &[])]),
            (
                "MPV",
                "",
                &[&[0, 0, 1, 0, 5], &[4, 0, 1, 0, 9, 9, 9, 9, 6]],
                &[(0, true, true, &[5, 6])],
            ),
            ("MPA", "", &[&[0, 0, 0, 0, 7]], &[(0, true, true, &[7])]),
            ("opus", "", &[&[8, 8]], &[(0, true, true, &[8, 8])]),
        ];
        for (encoding, parameters, payloads, wanted) in rows {
            let wanted =
                wanted.iter().map(|(at, whole, sync, bytes)| (*at, *whole, *sync, bytes.to_vec()));
            let wanted: Vec<_> = wanted.collect();
            assert_eq!(put_together(encoding, parameters, payloads), wanted, "{payloads:x?}");
        }
    }

    #[test]
    fn payloads_of_random_bytes_do_no_harm() {
        let parameters = "sizelength=13;indexlength=3;indexdeltalength=3;constantduration=960";
        let mut random = fastrand::Rng::with_seed(7);
        for encoding in ["H264", "H265", "MPEG4-GENERIC", "MPV", "ac3", "VP8"] {
            let payloads: Vec<Vec<u8>> = (0..500)
                .map(|_| (0..random.usize(0..12)).map(|_| random.u8(..)).collect())
                .collect();
            let parts: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            for part in parts.chunks(5) {
                let found = put_together(encoding, parameters, part);
                assert!(!found.is_empty(), "{encoding}: {part:x?}");
            }
        }
    }
}
