//! The rules of ISO/IEC 13818-1 for an MPEG transport stream in segments, and those of RFC 8216 for
//! its playlists, checked from outside.
//!
//! Numbers in messages are sections of ISO/IEC 13818-1, or of RFC 8216 where that is named. It
//! knows nothing of how packets are made, and decodes nothing.

use m3u8_rs::{MediaPlaylist, MediaPlaylistType, VariantStream};
use std::collections::BTreeMap;

/// An elementary stream of a checked transport stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementaryStream {
    /// `stream_type` in the PMT.
    pub stream_type: u8,
    /// The descriptors in the PMT.
    pub descriptors: Vec<u8>,
    /// The PES packets in order.
    pub packets: Vec<PesPacket>,
}

/// A PES packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PesPacket {
    /// The number of the segment in which it is.
    pub segment: usize,
    /// Presentation time stamp, in 1/90000 s.
    pub shown: u64,
    /// Decode time stamp.
    pub decoded: u64,
    /// Whether `random_access_indicator` is set where it begins.
    pub random_access: bool,
    /// The bytes behind the header.
    pub payload: Vec<u8>,
}

/// A media playlist of transport streams, and what its segments have.
#[derive(Clone, Debug)]
pub struct CheckedPlaylist {
    /// The URI of the playlist in the multivariant playlist.
    pub uri: String,
    /// The streams of all segments.
    pub streams: Vec<ElementaryStream>,
    /// Bytes of each segment.
    sizes: Vec<usize>,
    playlist: MediaPlaylist,
}

/// Checks the HLS of a title as transport streams. `fetch` returns the bytes of a URI as it stands
/// in a playlist. Panics with the violated rule.
pub fn check_hls(
    title: &str,
    multivariant: &str,
    fetch: &mut dyn FnMut(&str) -> Vec<u8>,
) -> Vec<CheckedPlaylist> {
    let master = m3u8_rs::parse_master_playlist_res(multivariant.as_bytes())
        .unwrap_or_else(|error| panic!("{title}: not a multivariant playlist: {error}"));
    let least = if master.alternatives.is_empty() { 3 } else { 4 };
    assert_eq!(master.version, Some(least), "{title}: RFC 8216, 7");
    assert!(!master.variants.is_empty(), "{title}: RFC 8216, 4.3.4.2: no variant");
    let all_independent = master.independent_segments;
    let mut playlists: BTreeMap<String, CheckedPlaylist> = BTreeMap::new();
    let others = master.alternatives.iter().filter_map(|rendition| rendition.uri.clone());
    for uri in master.variants.iter().map(|variant| variant.uri.clone()).chain(others) {
        playlists
            .entry(uri.clone())
            .or_insert_with(|| check_playlist(title, uri, all_independent, fetch));
    }
    let target = |playlist: &CheckedPlaylist| playlist.playlist.target_duration;
    let first = playlists.values().next().map(target);
    assert!(playlists.values().all(|it| Some(target(it)) == first), "{title}: RFC 8216, 6.2.4");
    for variant in &master.variants {
        let others =
            master.alternatives.iter().filter(|it| Some(&it.group_id) == variant.audio.as_ref());
        let others = others.filter_map(|rendition| playlists.get(rendition.uri.as_ref()?));
        let most = |rate: fn(&CheckedPlaylist) -> f64| {
            rate(&playlists[&variant.uri]) + others.clone().map(rate).fold(0.0, f64::max)
        };
        check_variant(&format!("{title}, {}", variant.uri), variant, most(peak), most(mean));
    }
    playlists.into_values().collect()
}

fn check_playlist(
    title: &str,
    uri: String,
    all_independent: bool,
    fetch: &mut dyn FnMut(&str) -> Vec<u8>,
) -> CheckedPlaylist {
    let what = format!("{title}, {uri}");
    let playlist: MediaPlaylist = m3u8_rs::parse_media_playlist_res(&fetch(&uri))
        .unwrap_or_else(|error| panic!("{what}: not a media playlist: {error}"));
    assert_eq!(playlist.version, Some(3), "{what}: RFC 8216, 7: lengths with fractions");
    assert!(playlist.end_list, "{what}: RFC 8216, 4.3.3.4");
    assert_eq!(playlist.playlist_type, Some(MediaPlaylistType::Vod), "{what}: RFC 8216, 4.3.3.5");
    let segments: Vec<Vec<u8>> = playlist.segments.iter().map(|it| fetch(&it.uri)).collect();
    let streams = check(&segments).unwrap_or_else(|why| panic!("{what}: {why}"));
    let independent = all_independent || playlist.independent_segments;
    check_times(&what, &playlist, &streams, independent);
    let sizes = segments.iter().map(Vec::len).collect();
    CheckedPlaylist { uri, streams, sizes, playlist }
}

/// RFC 8216, 3 and 4.3.3.1: segments begin where the lengths of those before say.
fn check_times(
    what: &str,
    playlist: &MediaPlaylist,
    streams: &[ElementaryStream],
    independent: bool,
) {
    let (mut from, mut shift) = (0.0, None);
    for (number, segment) in playlist.segments.iter().enumerate() {
        let length = f64::from(segment.duration);
        let target = playlist.target_duration as f64;
        assert!(length.round() <= target, "{what}: RFC 8216, 4.3.3.1: segment {number}");
        let mut first = streams.iter().map(|it| it.packets.iter().find(|p| p.segment == number));
        if let Some(first) = first.next().flatten() {
            let shown = first.shown as f64 / 90_000.0;
            // The first segment begins with what is shown first, or with silence.
            if number > 0 {
                let shift = *shift.get_or_insert(shown - from);
                let off = (shown - from - shift).abs();
                assert!(off < 0.003, "{what}: segment {number} begins {off:.4} s off its EXTINF");
            }
            let starts = first.random_access || !independent;
            assert!(starts, "{what}: RFC 8216, 4.3.5.1: segment {number}");
        }
        from += length;
    }
}

fn check_variant(what: &str, variant: &VariantStream, peak: f64, mean: f64) {
    let is_bound = |stated: u64, rate: f64| {
        let stated = stated as f64;
        stated >= rate * (1.0 - 1e-6) && stated <= rate * (1.0 + 1e-6) + 3.0
    };
    let wanted = peak.max(mean);
    assert!(is_bound(variant.bandwidth, wanted), "{what}: {} for {wanted}", variant.bandwidth);
    let average = variant.average_bandwidth.unwrap_or(0);
    assert!(is_bound(average, mean), "{what}: {average} on average for {mean}");
    assert!(variant.codecs.is_some(), "{what}: no CODECS");
}

fn mean(of: &CheckedPlaylist) -> f64 {
    rate(of, 0, of.sizes.len()).0
}

/// RFC 8216, 4.1.
fn peak(of: &CheckedPlaylist) -> f64 {
    let target = of.playlist.target_duration as f64;
    let mut most = mean(of);
    for first in 0..of.sizes.len() {
        for end in first + 1..=of.sizes.len() {
            let (rate, length) = rate(of, first, end);
            if (0.5 * target..=1.5 * target).contains(&length) {
                most = most.max(rate);
            }
        }
    }
    most
}

fn rate(of: &CheckedPlaylist, first: usize, end: usize) -> (f64, f64) {
    let bytes: usize = of.sizes[first..end].iter().sum();
    let segments = &of.playlist.segments[first..end];
    let length: f64 = segments.iter().map(|segment| f64::from(segment.duration)).sum();
    (if length > 0.0 { bytes as f64 * 8.0 / length } else { 0.0 }, length)
}

/// Checks the segments of one transport stream, which follow one another, and the access units in
/// them. `Err`: the violated rule.
pub fn check(segments: &[Vec<u8>]) -> Result<Vec<ElementaryStream>, String> {
    let streams = demux(segments)?;
    for stream in &streams {
        let named = |why| format!("stream type {:02x}: {why}", stream.stream_type);
        check_stream(stream).map_err(named)?;
    }
    Ok(streams)
}

/// Checks the segments of one transport stream, whatever their PES packets have.
pub fn demux(segments: &[Vec<u8>]) -> Result<Vec<ElementaryStream>, String> {
    let mut demuxer = Demuxer::default();
    for (number, segment) in segments.iter().enumerate() {
        demuxer.segment(number, segment).map_err(|why| format!("segment {number}: {why}"))?;
    }
    demuxer.streams.into_values().map(OpenStream::finish).collect()
}

/// Fails with a message unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}

#[derive(Default)]
struct Demuxer {
    counters: BTreeMap<u16, u8>,
    streams: BTreeMap<u16, OpenStream>,
    clock_pid: u16,
    clock: Option<u64>,
}

/// An elementary stream whose last PES packet may continue.
struct OpenStream {
    done: ElementaryStream,
    open: Option<OpenPacket>,
}

struct OpenPacket {
    segment: usize,
    random_access: bool,
    /// The clock where it begins.
    clock: u64,
    bytes: Vec<u8>,
}

/// The fields of a packet.
struct Packet<'a> {
    pid: u16,
    starts: bool,
    random_access: bool,
    clock: Option<u64>,
    payload: &'a [u8],
}

impl Demuxer {
    fn segment(&mut self, number: usize, bytes: &[u8]) -> Result<(), String> {
        ensure!(bytes.len().is_multiple_of(188), "2.4.3.2: {} bytes", bytes.len());
        ensure!(bytes.len() >= 3 * 188, "RFC 8216, 3.2: no PAT, PMT and media");
        let mut pmt_pid = None;
        for (at, packet) in bytes.chunks(188).enumerate() {
            let packet = self.packet(packet).map_err(|why| format!("packet {at}: {why}"))?;
            match (at, packet.pid) {
                (0, 0) => pmt_pid = Some(self.pat(&packet)?),
                (0, pid) => return Err(format!("RFC 8216, 3.2: begins with PID {pid}, not a PAT")),
                (1, pid) if Some(pid) == pmt_pid => self.pmt(&packet, number == 0)?,
                (1, pid) => return Err(format!("RFC 8216, 3.2: PID {pid} instead of a PMT")),
                _ => self.media(number, &packet).map_err(|why| format!("packet {at}: {why}"))?,
            }
        }
        Ok(())
    }

    // 2.4.3.2 to 2.4.3.5.
    fn packet<'a>(&mut self, packet: &'a [u8]) -> Result<Packet<'a>, String> {
        ensure!(packet[0] == 0x47, "2.4.3.3: sync byte {:02x}", packet[0]);
        ensure!(packet[1] & 0x80 == 0, "2.4.3.3: transport_error_indicator");
        ensure!(packet[3] & 0xc0 == 0, "2.4.3.3: scrambled");
        let pid = u16::from(packet[1] & 0x1f) << 8 | u16::from(packet[2]);
        let (has_field, has_payload) = (packet[3] & 0x20 != 0, packet[3] & 0x10 != 0);
        ensure!(has_field || has_payload, "2.4.3.3: adaptation_field_control 00");
        let counter = packet[3] & 0xf;
        if let Some(last) = self.counters.insert(pid, counter) {
            let wanted = if has_payload { (last + 1) & 0xf } else { last };
            ensure!(counter == wanted, "2.4.3.3: continuity_counter {counter} after {last}");
        }
        let (mut payload, mut random_access, mut clock) = (&packet[4..], false, None);
        if has_field {
            let length = usize::from(packet[4]);
            let fits = if has_payload { length <= 182 } else { length == 183 };
            ensure!(fits, "2.4.3.5: adaptation_field_length {length}");
            let field = &packet[5..5 + length];
            payload = &packet[5 + length..];
            if let Some((flags, rest)) = field.split_first() {
                random_access = flags & 0x40 != 0;
                ensure!(flags & 0x80 == 0, "2.4.3.5: a discontinuity");
                ensure!(flags & 0x0f == 0, "a field that is not expected: {flags:02x}");
                let mut stuffing = rest;
                if flags & 0x10 != 0 {
                    ensure!(rest.len() >= 6, "2.4.3.5: no room for a PCR");
                    let base = rest[..5].iter().fold(0, |base, byte| base << 8 | u64::from(*byte));
                    ensure!(rest[4] & 0x7e == 0x7e, "2.4.3.4: reserved bits of a PCR");
                    clock = Some(base >> 7);
                    stuffing = &rest[6..];
                }
                ensure!(stuffing.iter().all(|byte| *byte == 0xff), "2.4.3.5: stuffing_byte");
            }
        }
        let payload = if has_payload { payload } else { &[] };
        Ok(Packet { pid, starts: packet[1] & 0x40 != 0, random_access, clock, payload })
    }

    /// 2.4.4.3: the PID of the only program's PMT.
    fn pat(&self, packet: &Packet<'_>) -> Result<u16, String> {
        let content = section(packet, 0)?;
        ensure!(content.len() == 4, "2.4.4.3: one program, not {} bytes", content.len());
        ensure!(content[..2] != [0, 0], "2.4.4.3: program 0 is the network");
        Ok(u16::from(content[2] & 0x1f) << 8 | u16::from(content[3]))
    }

    /// 2.4.4.8.
    fn pmt(&mut self, packet: &Packet<'_>, is_first: bool) -> Result<(), String> {
        let content = section(packet, 2)?;
        let number =
            |at: usize, mask: u8| u16::from(content[at] & mask) << 8 | u16::from(content[at + 1]);
        ensure!(content.len() >= 4, "2.4.4.8: too short");
        self.clock_pid = number(0, 0x1f);
        let mut at = 4 + usize::from(number(2, 0x0f));
        let mut found = BTreeMap::new();
        while at < content.len() {
            ensure!(at + 5 <= content.len(), "2.4.4.8: a stream is cut short");
            let (stream_type, pid) = (content[at], number(at + 1, 0x1f));
            let end = at + 5 + usize::from(number(at + 3, 0x0f));
            ensure!(end <= content.len(), "2.4.4.8: descriptors are cut short");
            let descriptors = content[at + 5..end].to_vec();
            found.insert(pid, ElementaryStream { stream_type, descriptors, packets: Vec::new() });
            at = end;
        }
        ensure!(found.contains_key(&self.clock_pid), "2.4.4.9: PCR_PID is of no stream");
        if is_first {
            let open = |done| OpenStream { done, open: None };
            self.streams = found.into_iter().map(|(pid, done)| (pid, open(done))).collect();
            return Ok(());
        }
        let same = self.streams.iter().map(|(pid, it)| (*pid, it.done.stream_type));
        ensure!(same.eq(found.iter().map(|(pid, it)| (*pid, it.stream_type))), "other streams");
        Ok(())
    }

    fn media(&mut self, segment: usize, packet: &Packet<'_>) -> Result<(), String> {
        if let Some(clock) = packet.clock {
            ensure!(packet.pid == self.clock_pid, "2.4.4.9: a PCR in PID {}", packet.pid);
            if let Some(last) = self.clock.replace(clock) {
                let passed = clock.wrapping_sub(last) & WRAP;
                ensure!(passed <= 9000, "2.7.2: PCR after {passed} ticks");
            }
        }
        let now = self.clock.ok_or("2.4.2.2: media before the first PCR")?;
        let stream = self.streams.get_mut(&packet.pid);
        let stream =
            stream.ok_or_else(|| format!("2.4.4.8: PID {} is not in the PMT", packet.pid))?;
        if packet.starts {
            stream.close()?;
            let (random_access, bytes) = (packet.random_access, packet.payload.to_vec());
            stream.open = Some(OpenPacket { segment, random_access, clock: now, bytes });
        } else if !packet.payload.is_empty() {
            let open = stream.open.as_mut().ok_or("2.4.3.6: begins within a PES packet")?;
            ensure!(open.segment == segment, "RFC 8216, 3: a PES packet in two segments");
            open.bytes.extend_from_slice(packet.payload);
        }
        Ok(())
    }
}

impl OpenStream {
    /// Ends the open PES packet (2.4.3.6, 2.4.3.7).
    fn close(&mut self) -> Result<(), String> {
        let Some(OpenPacket { segment, random_access, clock, bytes }) = self.open.take() else {
            return Ok(());
        };
        ensure!(bytes.len() >= 9 && bytes.starts_with(&[0, 0, 1]), "2.4.3.6: no start code");
        let length = usize::from(bytes[4]) << 8 | usize::from(bytes[5]);
        let is_video = bytes[3] & 0xf0 == 0xe0;
        ensure!(length > 0 || is_video, "2.4.3.7: only video may have no length");
        ensure!(length == 0 || length + 6 == bytes.len(), "2.4.3.7: PES_packet_length {length}");
        ensure!(bytes[6] & 0xc0 == 0x80, "2.4.3.6: marker");
        let (flags, header) = (bytes[7] >> 6, usize::from(bytes[8]));
        ensure!(bytes[7] & 0x3f == 0, "a field that is not expected");
        let stamps = match flags {
            2 => 5,
            3 => 10,
            _ => return Err(format!("2.7.5: PTS_DTS_flags {flags}")),
        };
        ensure!(header >= stamps && header - stamps <= 32, "2.4.3.7: PES_header_data_length");
        ensure!(bytes.len() >= 9 + header, "2.4.3.6: cut short");
        let stuffing = &bytes[9 + stamps..9 + header];
        ensure!(stuffing.iter().all(|byte| *byte == 0xff), "2.4.3.7: stuffing_byte");
        let shown = stamp(&bytes[9..14], flags)?;
        let decoded = if flags == 3 { stamp(&bytes[14..19], 1)? } else { shown };
        ensure!(shown.wrapping_sub(decoded) & WRAP < WRAP / 2, "2.4.3.7: PTS before DTS");
        let ahead = decoded.wrapping_sub(clock) & WRAP;
        ensure!((1..90_000).contains(&ahead), "2.4.2.6: DTS is {ahead} ticks after the PCR");
        if let Some(last) = self.done.packets.last() {
            let later = decoded.wrapping_sub(last.decoded) & WRAP;
            ensure!(
                (1..WRAP / 2).contains(&later),
                "2.4.3.7: DTS {decoded} after {}",
                last.decoded
            );
        }
        let payload = bytes[9 + header..].to_vec();
        self.done.packets.push(PesPacket { segment, shown, decoded, random_access, payload });
        Ok(())
    }

    fn finish(mut self) -> Result<ElementaryStream, String> {
        self.close()?;
        Ok(self.done)
    }
}

/// 2.4.4.1: the content of the section in a packet that it begins and ends in.
fn section<'a>(packet: &Packet<'a>, table: u8) -> Result<&'a [u8], String> {
    ensure!(packet.starts && packet.payload.first() == Some(&0), "2.4.4.2: pointer_field");
    let bytes = &packet.payload[1..];
    ensure!(bytes[0] == table, "2.4.4.4: table_id {}", bytes[0]);
    ensure!(bytes[1] & 0xf0 == 0xb0, "2.4.4.5: section_syntax_indicator");
    let end = 3 + (usize::from(bytes[1] & 0xf) << 8 | usize::from(bytes[2]));
    ensure!((12..=bytes.len()).contains(&end), "2.4.4.5: section_length");
    ensure!(crc(&bytes[..end]) == 0, "2.4.4.5: CRC_32");
    ensure!(bytes[5] & 0xc1 == 0xc1 && bytes[6..8] == [0, 0], "2.4.4.5: not current, or continued");
    ensure!(bytes[end..].iter().all(|byte| *byte == 0xff), "2.4.4.1: stuffing");
    Ok(&bytes[8..end - 4])
}

/// Annex A, bit by bit; zero over a section with its CRC.
fn crc(bytes: &[u8]) -> u32 {
    let mut register = u32::MAX;
    for bit in bytes.iter().flat_map(|byte| (0..8).rev().map(move |shift| byte >> shift & 1)) {
        let feedback = register >> 31 != u32::from(bit);
        register = register << 1 ^ if feedback { 0x04c1_1db7 } else { 0 };
    }
    register
}

/// A time stamp between markers.
fn stamp(bytes: &[u8], name: u8) -> Result<u64, String> {
    let is_marked = bytes[0] & 1 & bytes[2] & bytes[4] == 1;
    ensure!(bytes[0] >> 4 == name && is_marked, "2.4.3.6: markers of a time stamp");
    let part = |at: usize, mask: u8| u64::from(bytes[at] & mask);
    Ok(part(0, 0xe) << 29
        | part(1, 0xff) << 22
        | part(2, 0xfe) << 14
        | part(3, 0xff) << 7
        | part(4, 0xfe) >> 1)
}

/// The access units of a stream by its type (table 2-34).
fn check_stream(stream: &ElementaryStream) -> Result<(), String> {
    for (number, packet) in stream.packets.iter().enumerate() {
        let why = match stream.stream_type {
            0x1b => access_unit(packet, 1, |first| first & 0x1f, 9, &[7, 8], 1..=5),
            0x24 => access_unit(packet, 2, |first| first >> 1 & 0x3f, 35, &[32, 33, 34], 0..=31),
            0x0f => adts(&packet.payload),
            0x81 | 0x87 => begins(&packet.payload, &[0x0b, 0x77], 0xff),
            0x03 | 0x04 => begins(&packet.payload, &[0xff, 0xe0], 0xe0),
            0x01 | 0x02 | 0x10 => begins(&packet.payload, &[0, 0, 1], 0xff),
            other => Err(format!("table 2-34: stream_type {other:02x}")),
        };
        why.map_err(|why| format!("PES packet {number}: {why}"))?;
        let is_sound = !matches!(stream.stream_type, 0x1b | 0x24 | 0x01 | 0x02 | 0x10);
        if let Some(next) = stream.packets.get(number + 1).filter(|_| is_sound) {
            let apart = next.shown.wrapping_sub(packet.shown) & WRAP;
            // Where there is no pause.
            ensure!(apart <= 63_000 || apart > 180_000, "2.7.4: PTS {apart} ticks apart");
        }
    }
    Ok(())
}

fn begins(payload: &[u8], wanted: &[u8], mask: u8) -> Result<(), String> {
    let last = wanted.len() - 1;
    let same = payload.len() > last
        && payload[..last] == wanted[..last]
        && payload[last] & mask == wanted[last];
    ensure!(same, "begins with {:02x?}", &payload[..payload.len().min(4)]);
    Ok(())
}

/// An access unit in Annex B of ISO/IEC 14496-10 or 23008-2: one delimiter, first; parameter sets
/// in front of the pictures where decoding may start; no empty NAL unit.
fn access_unit(
    packet: &PesPacket,
    header: usize,
    kind: fn(u8) -> u8,
    delimiter: u8,
    sets: &[u8],
    pictures: std::ops::RangeInclusive<u8>,
) -> Result<(), String> {
    let bytes = &packet.payload;
    ensure!(bytes.starts_with(&[0, 0, 0, 1]), "Annex B: begins with no start code");
    let mut kinds = Vec::new();
    let starts: Vec<usize> =
        (0..bytes.len().saturating_sub(2)).filter(|&at| bytes[at..at + 3] == [0, 0, 1]).collect();
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(bytes.len());
        let unit = &bytes[start + 3..end];
        // A zero in front of a start code is part of it.
        let length = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        ensure!(length >= header, "Annex B: NAL unit {number} has {length} bytes");
        ensure!(unit[0] & 0x80 == 0, "7.3.1: forbidden_zero_bit of NAL unit {number}");
        kinds.push(kind(unit[0]));
    }
    ensure!(kinds[0] == delimiter, "2.14.1: begins with NAL unit type {}", kinds[0]);
    ensure!(!kinds[1..].contains(&delimiter), "7.4.1.2.3: two access unit delimiters");
    let first = kinds.iter().position(|kind| pictures.contains(kind));
    let first = first.ok_or("an access unit without a picture")?;
    let has_sets = sets.iter().all(|set| kinds[..first].contains(set));
    ensure!(!packet.random_access || has_sets, "2.4.3.5: random access without parameter sets");
    Ok(())
}

/// Whole frames of ADTS (ISO/IEC 14496-3, 1.A.2.2).
fn adts(mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        ensure!(bytes.len() >= 7, "ADTS: {} bytes are left", bytes.len());
        ensure!(bytes[0] == 0xff && bytes[1] & 0xf6 == 0xf0, "ADTS: no sync word");
        let length = usize::from(bytes[3] & 3) << 11
            | usize::from(bytes[4]) << 3
            | usize::from(bytes[5] >> 5);
        ensure!((8..=bytes.len()).contains(&length), "ADTS: a frame of {length} bytes");
        bytes = &bytes[length..];
    }
    Ok(())
}

/// Time stamps have 33 bits.
const WRAP: u64 = (1 << 33) - 1;
