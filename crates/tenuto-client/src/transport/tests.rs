//! Transport streams that are written here packet by packet, and read in parts of any size.

use super::*;

const VIDEO: u16 = 0x100;
const SOUND: u16 = 0x101;
const MAP: u16 = 0x1000;

/// A packet with this payload, filled up by its adaptation field, whose flags are these.
fn packet(pid: u16, begins: bool, counter: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = pid.to_be_bytes();
    let mut packet = vec![0x47, high | u8::from(begins) << 6, low];
    let fill = 184 - payload.len();
    match fill {
        0 => packet.push(0x10 | counter),
        1 => packet.extend_from_slice(&[0x30 | counter, 0]),
        _ => {
            packet.extend_from_slice(&[0x30 | counter, u8::try_from(fill - 1).unwrap(), flags]);
            packet.resize(4 + fill, 0xff);
        }
    }
    packet.extend_from_slice(payload);
    assert_eq!(packet.len(), 188);
    packet
}

fn table(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len() + 9).unwrap();
    [&[0, kind, 0xb0, length, 0, 1, 0xc1, 0, 0][..], content, &[0; 4]].concat()
}

/// The tables: private data, sound, and pictures, in this order.
fn tables() -> Vec<u8> {
    let pat = table(0, &[0, 0, 0xe0, 0x10, 0, 1, 0xf0, 0]);
    let streams = [
        [0x06, 0xe1, 0x05, 0xf0, 2, 0x59, 0].as_slice(),
        &[0x0f, 0xe1, 0x01, 0xf0, 0],
        &[0x1b, 0xe1, 0x00, 0xf0, 0],
    ];
    let pmt = table(2, &[&[0xe1, 0, 0xf0, 0][..], &streams.concat()].concat());
    [packet(0, true, 0, 0, &pat), packet(MAP, true, 0, 0, &pmt)].concat()
}

fn stamp_bytes(mark: u8, stamp: u64) -> [u8; 5] {
    let bits = |right: u32, mask: u8| u8::try_from(stamp >> right & 0xff).unwrap() & mask;
    [
        mark << 4 | bits(29, 0xe) | 1,
        bits(22, 0xff),
        bits(14, 0xfe) | 1,
        bits(7, 0xff),
        u8::try_from(stamp << 1 & 0xff).unwrap() | 1,
    ]
}

/// A PES packet with PTS and DTS, with or without its length.
fn pes(has_length: bool, presentation: u64, decode: u64, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(if has_length { 13 + content.len() } else { 0 }).unwrap();
    let [high, low] = length.to_be_bytes();
    let head = [0, 0, 1, 0xe0, high, low, 0x80, 0xc0, 10];
    let stamps = [stamp_bytes(3, presentation), stamp_bytes(1, decode)].concat();
    [&head, &stamps[..], content].concat()
}

/// What a segment contains, if it arrives in parts of this size: stream, decode time and shift in
/// ms, whether sync, bytes.
fn read(reader: &mut TransportReader, segment: &[u8], part: usize) -> Vec<Found> {
    let mut found = Vec::new();
    let mut sink = |ldu: FoundLdu| {
        let FoundLdu { stream, place, bytes, .. } = ldu;
        assert_eq!(place.size as usize, bytes.len());
        let text = String::from_utf8(bytes).unwrap();
        let (decode, shift) = (place.decode.as_millis(), place.shift / 1_000_000);
        found.push((stream, decode, shift, place.sync, text));
    };
    reader.begin();
    for bytes in segment.chunks(part) {
        reader.push(bytes, Moment::ZERO, &mut sink);
    }
    reader.finish(&mut sink);
    found
}

type Found = (usize, u128, i64, bool, String);

fn ldu(stream: usize, decode: u128, shift: i64, sync: bool, text: &str) -> Found {
    (stream, decode, shift, sync, text.to_owned())
}

/// A picture in two packets, sound, and a picture in one; neither picture states its length.
fn segment(from: u64) -> Vec<u8> {
    let long = "x".repeat(200);
    let first = pes(false, from + 3600, from, long.as_bytes());
    let sound = pes(true, from + 900, from + 900, b"sound");
    let second = pes(false, from + 3600, from + 3600, b"second");
    [
        packet(VIDEO, true, 4, 0, b"older media without its tables"),
        tables(),
        packet(VIDEO, true, 5, 0x40, &first[..100]),
        packet(SOUND, true, 15, 0, &sound),
        packet(VIDEO, false, 6, 0, &first[100..]),
        packet(VIDEO, true, 7, 0, &second),
    ]
    .concat()
}

#[test]
fn pes_packets_are_found_with_their_times_however_the_bytes_arrive() {
    let long = "x".repeat(200);
    let wanted = [
        ldu(1, 1010, 0, true, "sound"),
        ldu(0, 1000, 40, true, &long),
        ldu(0, 1040, 0, false, "second"),
    ];
    for part in [1, 7, 187, 188, 189, 4096] {
        let mut reader = TransportReader::new(true);
        assert_eq!(read(&mut reader, &segment(90_000), part), wanted, "parts of {part}");
    }
    let mut found = Vec::new();
    let mut reader = TransportReader::new(false);
    reader.push(&segment(90_000), Moment::ZERO, &mut |ldu| found.push(ldu));
    let sizes: Vec<_> = found.iter().map(|ldu| (ldu.place.size, ldu.bytes.len())).collect();
    assert_eq!(sizes, [(5, 0), (200, 0)], "the last one is not complete");
}

#[test]
fn times_go_on_where_their_33_bits_wrap_around() {
    let mut reader = TransportReader::new(true);
    let end = 1_u64 << 33;
    read(&mut reader, &segment(end - 7200), 188);
    let after: Vec<_> = read(&mut reader, &segment(0), 188).iter().map(|ldu| ldu.1).collect();
    let zero = u128::from(end / 90);
    assert_eq!(after, [zero + 10, zero, zero + 40]);
}

#[test]
fn what_is_missing_or_makes_no_sense_is_left_out() {
    let whole = segment(90_000);
    let kept = |order: &[usize]| {
        let packets = whole.chunks(188).collect::<Vec<_>>();
        let segment: Vec<u8> = order.iter().flat_map(|at| packets[*at].to_vec()).collect();
        let found = read(&mut TransportReader::new(true), &segment, 188);
        found.into_iter().map(|ldu| ldu.4.chars().take(2).collect::<String>()).collect::<Vec<_>>()
    };
    // Packets 1 and 2 are the tables, 3 and 5 the first picture, 4 the sound, 6 the second picture.
    let rows: [(&[usize], &[&str]); 5] = [
        (&[1, 2, 3, 3, 4, 5, 5, 6, 6], &["so", "xx", "se"]),
        (&[1, 2, 3, 4, 6], &["so", "se"]),
        (&[1, 2, 4, 5, 6], &["so", "se"]),
        (&[1, 3, 4, 5, 6], &[]),
        (&[3, 4, 1, 2, 6], &["se"]),
    ];
    for (order, wanted) in rows {
        assert_eq!(kept(order), wanted, "{order:?}");
    }
    // A packet that does not begin as one.
    let shifted = [&whole[..188 * 5], b"x", &whole[188 * 5..]].concat();
    assert_eq!(read(&mut TransportReader::new(true), &shifted, 188).len(), 1);
}

#[test]
fn random_bytes_do_no_harm() {
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..2000 {
        let mut bytes = segment(90_000);
        for _ in 0..random.usize(1..20) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        let mut reader = TransportReader::new(false);
        reader.begin();
        reader.push(&bytes, Moment::ZERO, &mut |_| {});
        reader.finish(&mut |ldu| assert!(ldu.stream < MOST_STREAMS, "round {round}"));
    }
}
