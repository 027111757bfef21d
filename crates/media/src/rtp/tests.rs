//! Packets and descriptions against the texts of the RFCs, and against a depacketizer written from
//! the same texts.

use super::*;
use crate::boxes::write_box;
use crate::{TrackDescription, TrackKind};
use std::time::Duration;
use units::Timescale;

fn track(kind: TrackKind, entry: Vec<u8>, rate: u32, channels: u16) -> TrackDescription {
    let timescale = Timescale(if rate == 0 { 90_000 } else { rate });
    TrackDescription {
        sample_entry: entry,
        sample_rate: rate,
        channels,
        ..TrackDescription::plain(kind, timescale)
    }
}

fn picture(kind: &[u8; 4], config: &[u8; 4], record: &[u8]) -> TrackDescription {
    let mut entry = Vec::new();
    write_box(&mut entry, kind, |out| {
        out.extend_from_slice(&[0; 78]);
        write_box(out, config, |out| out.extend_from_slice(record));
    });
    track(TrackKind::Video, entry, 0, 0)
}

fn sound(kind: &[u8; 4], channels: u16, children: &[u8]) -> TrackDescription {
    let mut entry = Vec::new();
    write_box(&mut entry, kind, |out| {
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&[0, 2, 0, 16, 0, 0, 0, 0, 0xbb, 0x80, 0, 0]);
        out.extend_from_slice(children);
    });
    track(TrackKind::Audio, entry, 48_000, channels)
}

fn esds(object_type: u8, specific: &[u8]) -> Vec<u8> {
    let mut es = Vec::new();
    write_box(&mut es, b"esds", |out| {
        let length = u8::try_from(specific.len()).unwrap();
        let (outer, inner) = (22 + length, 15 + length);
        out.extend_from_slice(&[0, 0, 0, 0, 0x03, outer, 0, 1, 0, 0x04, inner, object_type, 0x15]);
        out.extend_from_slice(&[0; 11]);
        out.extend_from_slice(&[0x05, length]);
        out.extend_from_slice(specific);
    });
    es
}

const AVC: &[u8] = &[1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 3, 0x67, 0x64, 0, 1, 0, 2, 0x68, 0xee];

fn h264() -> PayloadFormat {
    PayloadFormat::of(&picture(b"avc1", b"avcC", AVC), 96).unwrap()
}

fn hevc() -> PayloadFormat {
    let mut record = vec![0; 21];
    record.extend_from_slice(&[3, 3]);
    for (kind, set) in [(32, [0x40, 1]), (33, [0x42, 1]), (34, [0x44, 1])] {
        record.extend_from_slice(&[0x80 | kind, 0, 1, 0, 2]);
        record.extend_from_slice(&set);
    }
    PayloadFormat::of(&picture(b"hvc1", b"hvcC", &record), 96).unwrap()
}

fn picture_format(kind: &[u8; 4], config: &[u8; 4], record: &[u8]) -> PayloadFormat {
    PayloadFormat::of(&picture(kind, config, record), 96).unwrap()
}

fn mp4_video(object_type: u8, specific: &[u8]) -> PayloadFormat {
    let es = esds(object_type, specific);
    picture_format(b"mp4v", b"esds", &es[8..])
}

fn av1() -> PayloadFormat {
    picture_format(b"av01", b"av1C", &[0x81, 0x05, 0x0c, 0])
}

fn of_sound(kind: &[u8; 4], channels: u16, children: &[u8]) -> PayloadFormat {
    PayloadFormat::of(&sound(kind, channels, children), 97).unwrap()
}

#[test]
fn pictures_say_whether_others_are_decoded_from_them() {
    let unit = |bytes: &[u8]| [&[0, 0, 0, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let (h264, hevc) = (h264(), hevc());
    for (format, units, wanted) in [
        // A message and a picture that is kept for none; one slice that is kept.
        (&h264, vec![unit(&[0x06, 5]), unit(&[0x01, 9])], true),
        (&h264, vec![unit(&[0x01, 9]), unit(&[0x41, 9])], false),
        (&h264, vec![unit(&[0x65, 9])], false),
        (&h264, vec![unit(&[0x06, 5])], false),
        (&h264, vec![vec![0, 0, 0, 9, 1]], false),
        (&hevc, vec![unit(&[0x00, 1, 9])], true),
        (&hevc, vec![unit(&[0x02, 1, 9])], false),
        (&hevc, vec![unit(&[0x26, 1, 9])], false),
        (&hevc, vec![unit(&[0x4e, 1, 9]), unit(&[0x10, 1, 9])], true),
    ] {
        assert_eq!(format.is_discardable(&units.concat()), wanted, "{units:x?}");
    }
    let mpeg = picture_format(b"m2v1", b"glbl", &[]);
    for (kind, wanted) in [(1, false), (2, false), (3, true)] {
        assert_eq!(mpeg.is_discardable(&[0, 0, 1, 0, 0x12, kind << 3, 0, 0]), wanted, "{kind}");
    }
}

#[test]
fn each_codec_has_its_payload_format() {
    let table = [
        (
            h264(),
            "96 90000 H264/90000 packetization-mode=1;profile-level-id=64001F;\
             sprop-parameter-sets=Z2QA,aO4=",
        ),
        (hevc(), "96 90000 H265/90000 sprop-vps=QAE=;sprop-sps=QgE=;sprop-pps=RAE="),
        (
            of_sound(b"mp4a", 2, &esds(0x40, &[0x11, 0x90])),
            "97 48000 MPEG4-GENERIC/48000/2 streamtype=5;profile-level-id=1;mode=AAC-hbr;\
             sizelength=13;indexlength=3;indexdeltalength=3;config=1190",
        ),
        (
            picture_format(b"av01", b"av1C", &[0x81, 0x05, 0x0c, 0]),
            "96 90000 AV1/90000 profile=0;level-idx=5;tier=0",
        ),
        (
            picture_format(b"vp09", b"vpcC", &[1, 0, 0, 0, 2, 30, 0xa0]),
            "96 90000 VP9/90000 profile-id=2",
        ),
        (picture_format(b"m2v1", b"glbl", &[]), "32 90000 MPV/90000 "),
        (mp4_video(0x61, &[]), "32 90000 MPV/90000 "),
        (
            mp4_video(0x20, &[0, 0, 1, 0xb0, 0xf3, 0, 0, 1]),
            "96 90000 MP4V-ES/90000 profile-level-id=243;config=000001B0F3000001",
        ),
        (of_sound(b"ac-3", 6, &[]), "97 48000 ac3/48000/6 "),
        (of_sound(b"ec-3", 6, &[]), "97 48000 eac3/48000/6 "),
        (of_sound(b"in24", 2, &[]), "97 48000 L24/48000/2 "),
        (of_sound(b"ulaw", 1, &[]), "97 48000 PCMU/48000/1 "),
        (of_sound(b"alaw", 2, &[]), "97 48000 PCMA/48000/2 "),
        (of_sound(b"Opus", 2, &[]), "97 48000 opus/48000/2 sprop-stereo=1"),
        (of_sound(b"mp4a", 2, &esds(0x6b, &[])), "14 90000 MPA/90000 "),
        (of_sound(b"sowt", 2, &[]), "97 48000 L16/48000/2 "),
    ];
    for (format, wanted) in table {
        let PayloadFormat { payload_type, clock_rate, encoding, parameters, .. } = format;
        assert_eq!(format!("{payload_type} {clock_rate} {encoding} {parameters}"), wanted);
    }
    let telephony = TrackDescription { sample_rate: 8000, ..sound(b"alaw", 1, &[]) };
    assert_eq!(PayloadFormat::of(&telephony, 97).map(|format| format.payload_type), Some(8));
    for (kind, channels) in [(b"fLaC", 2), (b"Opus", 6), (b"in32", 2), (b"twos", 0)] {
        assert_eq!(PayloadFormat::of(&sound(kind, channels, &[]), 97), None, "{kind:?}");
    }
    assert_eq!(PayloadFormat::of(&picture(b"av01", b"av1C", &[]), 96), None);
    assert_eq!(PayloadFormat::of(&picture(b"avc1", b"avcC", &AVC[..9]), 96), None, "cut short");
}

/// The packets of LDUs, each with the time stamp of its number times 1000.
fn packets(format: &PayloadFormat, ldus: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut packetizer = Packetizer::new(format, 0x0102_0304, 0xfffe);
    let mut packets = Vec::new();
    for (number, ldu) in (0u32..).zip(ldus) {
        packetizer.packetise(ldu, number * 1000, &mut |head, rest| {
            packets.push([head, rest].concat());
        });
    }
    let bytes: usize = packets.iter().map(|packet| packet.len() - 12).sum();
    let counts = (u32::try_from(packets.len()).unwrap(), u32::try_from(bytes).unwrap());
    assert_eq!(packetizer.counts(), counts);
    packets
}

/// NAL units with lengths of four bytes.
fn access_unit(units: &[&[u8]]) -> Vec<u8> {
    let with_length =
        |unit: &&[u8]| [&u32::try_from(unit.len()).unwrap().to_be_bytes(), *unit].concat();
    units.iter().flat_map(with_length).collect()
}

#[test]
fn packets_have_the_bytes_of_the_rfcs() {
    let unit = |first: &[u8], len: usize| [first, &vec![7; len - first.len()]].concat();
    let tail = |packet: &Vec<u8>, from: usize| packet[from..].len();
    // Two NAL units: the second, an IDR picture of 2000 bytes, in fragments.
    let sent = packets(&h264(), &[access_unit(&[&[0x09, 0xf0], &unit(&[0x65], 2000)])]);
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0], [0x80, 96, 0xff, 0xfe, 0, 0, 0, 0, 1, 2, 3, 4, 0x09, 0xf0]);
    assert_eq!(sent[1][..4], [0x80, 96, 0xff, 0xff]);
    assert_eq!(sent[1][12..15], [0x7c, 0x85, 7], "FU-A: F and NRI of the unit, start");
    assert_eq!(sent[2][..4], [0x80, 0x80 | 96, 0, 0], "the marker ends the access unit");
    assert_eq!(sent[2][12..14], [0x7c, 0x45], "FU-A, end");
    assert_eq!((sent[1].len(), tail(&sent[1], 14) + tail(&sent[2], 14)), (MTU, 1999));

    let sent = packets(&hevc(), &[access_unit(&[&unit(&[0x26, 1], 1500)])]);
    assert_eq!(sent[0][12..15], [0x62, 1, 0x93], "FU: type 49, start, IDR_W_RADL");
    assert_eq!(sent[1][12..15], [0x62, 1, 0x53]);

    let aac = of_sound(b"mp4a", 2, &esds(0x40, &[0x11, 0x90]));
    let sent = packets(&aac, &[vec![9; 371], vec![9; 1500]]);
    assert_eq!(sent[0][..2], [0x80, 0x80 | 97]);
    assert_eq!(sent[0][12..16], [0, 16, 0x0b, 0x98], "16 bits of header: size 371");
    assert_eq!(sent[1][..2], [0x80, 97], "a fragment");
    assert_eq!(sent[1][12..16], sent[2][12..16], "each fragment has the size of the unit");
    assert_eq!(sent[2][1], 0x80 | 97);

    let sent = packets(&of_sound(b"ac-3", 2, &[]), &[vec![9; 768], vec![9; 1536], vec![9; 2304]]);
    let heads: Vec<[u8; 2]> = sent.iter().map(|packet| [packet[12], packet[13]]).collect();
    // 1386 of 2304 bytes are less than five eighths.
    assert_eq!(heads, [[0, 1], [1, 2], [3, 2], [2, 2], [3, 2]]);

    let sent = packets(&of_sound(b"mp4a", 2, &esds(0x6b, &[])), &[vec![9; 1440], vec![9; 96]]);
    assert_eq!((sent[0][1], sent[1][1], sent[2][1]), (0x80 | 14, 14, 14), "marker: the first");
    assert_eq!(sent[1][12..16], [0, 0, 0x05, 0x68], "the fragment's offset, 1384");

    let stored: Vec<u8> = (0..=255).cycle().take(2000).collect();
    let sent = packets(&of_sound(b"sowt", 2, &[]), std::slice::from_ref(&stored));
    assert_eq!(sent[0][12..16], [1, 0, 3, 2], "the high byte first");
    assert_eq!(sent[1][4..8], (1388u32 / 4).to_be_bytes(), "time goes on by instants");
    let little = of_sound(b"in24", 2, &[0, 0, 0, 10, b'e', b'n', b'd', b'a', 0, 1]);
    let sent = packets(&little, &[vec![1, 2, 3, 4, 5, 6]]);
    assert_eq!(sent[0][12..], [3, 2, 1, 6, 5, 4]);
}

/// The payloads of packets as the number of bytes behind their first `head`, and those; marked
/// packets have a `!`.
fn heads(sent: &[Vec<u8>], head: usize) -> Vec<String> {
    let line = |packet: &Vec<u8>| {
        let (head, rest) = packet[12..].split_at(head);
        let mark = if packet[1] & 0x80 == 0 { "" } else { "!" };
        format!("{head:02x?} {}{mark}", rest.len())
    };
    sent.iter().map(line).collect()
}

#[test]
fn packets_of_mpeg_video_have_the_headers_of_rfc_2250_and_end_with_slices() {
    let part = |code: u8, len: usize, body: &[u8]| {
        let mut part = [&[0, 0, 1, code], body].concat();
        part.resize(len, 0xee);
        part
    };
    // Temporal reference 515 and the kind, a delay of 16 bits, flags and codes of vectors.
    let header = |kind: u8, vectors: [u8; 2]| {
        let [a, b] = (515u16 << 6 | u16::from(kind) << 3 | 7).to_be_bytes();
        part(0, 16, &[a, b, 0xff, 0xf8 | vectors[0], vectors[1]])
    };
    let picture = [
        part(0xb3, 12, &[]),
        part(0xb8, 8, &[]),
        header(1, [0, 0]),
        part(0xb5, 9, &[]),
        part(1, 700, &[]),
        part(2, 600, &[]),
        part(3, 1500, &[]),
        part(4, 300, &[]),
        part(5, 200, &[]),
    ];
    // Two fields: the header of the second begins a packet. The codes of vectors: a flag and 7
    // forwards, 3 backwards.
    let fields = [
        header(3, [0b111, 0b1001_1000]),
        part(1, 50, &[]),
        header(2, [0b111, 0b1000_0000]),
        part(1, 60, &[]),
    ];
    let format = picture_format(b"m2v1", b"glbl", &[]);
    let sent = packets(&format, &[picture.concat(), fields.concat()]);
    let wanted = [
        "[02, 03, 39, 00] 1345",
        "[02, 03, 11, 00] 1384",
        "[02, 03, 09, 00] 116",
        "[02, 03, 19, 00] 500!",
        "[02, 03, 1b, 3f] 66",
        "[02, 03, 1a, 0f] 76!",
    ];
    assert_eq!(heads(&sent, 4), wanted);
}

#[test]
fn packets_of_av1_and_vp9_have_one_unit_or_a_fragment() {
    // A delimiter, a sequence header of 3 bytes, a frame with an extension without a size.
    let unit = [&[0x12, 0, 0x0a, 3, 1, 2, 3, 0x34, 0x08][..], &[7; 2000]].concat();
    let frame = [&[0x32, 0x85, 0x01][..], &[7; 133]].concat();
    let sent = packets(&av1(), &[unit, frame]);
    let wanted = ["[18, 08] 3", "[50, 34] 1386", "[90, 07] 614!", "[10, 30] 133!"];
    assert_eq!(heads(&sent, 2), wanted);

    let vp9 = picture_format(b"vp09", b"vpcC", &[1, 0, 0, 0, 0, 30, 0x80]);
    let key = [&[0b1000_0010][..], &[7; 1500]].concat();
    let sent = packets(&vp9, &[key, vec![0b1000_0110; 20], vec![0b1011_0000; 20]]);
    assert_eq!(heads(&sent, 1), ["[08] 1387", "[04] 114!", "[4c] 20!", "[0c] 20!"]);
}

/// A frame of E-AC-3 of an even size: type, substream and code of the number of blocks.
fn eac3_frame(kind: u8, substream: u8, blocks: u8, size: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(size / 2 - 1).unwrap().to_be_bytes();
    let mut frame = vec![0x0b, 0x77, kind << 6 | substream << 3 | high, low, blocks << 4];
    frame.resize(size, 0xee);
    frame
}

#[test]
fn packets_of_eac3_have_whole_frames_or_fragments_of_one() {
    let format = of_sound(b"ec-3", 6, &[]);
    // Six blocks with a dependent frame; three of two blocks; one of six that is too long.
    let with_dependent = [eac3_frame(0, 0, 3, 800), eac3_frame(1, 0, 3, 600)].concat();
    let short = [600; 3].map(|size| eac3_frame(0, 0, 1, size)).concat();
    let long = eac3_frame(0, 0, 3, 2048);
    let sent = packets(&format, &[with_dependent, short, long]);
    let wanted = [
        "[00, 01] 800!",
        "[00, 01] 600!",
        "[00, 02] 1200!",
        "[00, 01] 600!",
        "[01, 02] 1386",
        "[01, 02] 662!",
    ];
    assert_eq!(heads(&sent, 2), wanted);
    let times: Vec<u32> =
        sent.iter().map(|packet| u32::from_be_bytes(packet[4..8].try_into().unwrap())).collect();
    assert_eq!(times, [0, 0, 1000, 1000 + 2 * 512, 2000, 2000]);
}

/// What a receiver makes of packets: LDUs with their time stamps. Written from the RFCs alone.
fn depacketise(layout: &str, packets: &[Vec<u8>]) -> Vec<(u32, Vec<u8>)> {
    let mut ldus: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut open = false;
    let mut sequence = None;
    // An OBU of AV1 that is not complete.
    let mut unit = Vec::new();
    for packet in packets {
        assert!(packet.len() <= 1400 && packet[0] == 0x80);
        let number = u16::from_be_bytes([packet[2], packet[3]]);
        assert_eq!(number, sequence.map_or(number, |last: u16| last.wrapping_add(1)));
        sequence = Some(number);
        let time = u32::from_be_bytes(packet[4..8].try_into().unwrap());
        let (marker, payload) = (packet[1] & 0x80 != 0, &packet[12..]);
        let starts = match layout {
            "mpa" => payload[2..4] == [0, 0],
            "opus" => true,
            _ => !open,
        };
        if starts {
            ldus.push((time, Vec::new()));
        }
        let (at, ldu) = ldus.last_mut().unwrap();
        assert_eq!(*at, time, "one LDU has one time stamp");
        let mut whole_unit = |unit: &[u8]| {
            ldu.extend_from_slice(&u32::try_from(unit.len()).unwrap().to_be_bytes());
            ldu.extend_from_slice(unit);
        };
        match layout {
            "h264" | "hevc" => {
                let header = if layout == "h264" { 1 } else { 2 };
                let kind = if header == 1 { payload[0] & 0x1f } else { payload[0] >> 1 & 0x3f };
                if kind != if header == 1 { 28 } else { 49 } {
                    whole_unit(payload);
                } else if payload[header] & 0x80 != 0 {
                    let kind = payload[header] & 0x3f;
                    let mut unit = match header {
                        1 => vec![payload[0] & 0xe0 | kind & 0x1f],
                        _ => vec![payload[0] & 0x81 | kind << 1, payload[1]],
                    };
                    unit.extend_from_slice(&payload[header + 1..]);
                    whole_unit(&unit);
                } else {
                    // The length of the unit grows with each fragment; it is the last in the LDU.
                    let mut at = 0;
                    let length = |at: usize, ldu: &[u8]| {
                        u32::from_be_bytes(ldu[at..at + 4].try_into().unwrap()) as usize
                    };
                    while at + 4 + length(at, ldu) < ldu.len() {
                        at += 4 + length(at, ldu);
                    }
                    ldu.extend_from_slice(&payload[header + 1..]);
                    let grown = u32::try_from(ldu.len() - at - 4).unwrap();
                    ldu[at..at + 4].copy_from_slice(&grown.to_be_bytes());
                }
            }
            "mpv" => {
                // A packet begins with a start code, or goes on within a slice alone.
                let goes_on = !payload[4..].starts_with(&[0, 0, 1]);
                let begins = payload.windows(3).any(|three| three == [0, 0, 1]);
                assert!(goes_on != begins);
                ldu.extend_from_slice(&payload[4..]);
            }
            "av1" => {
                assert_eq!(payload[0] & 0x30, 0x10, "W is one element");
                assert_eq!(payload[0] & 0x80 != 0, !unit.is_empty(), "Z: goes on");
                unit.extend_from_slice(&payload[1..]);
                if payload[0] & 0x40 == 0 {
                    let unit = std::mem::take(&mut unit);
                    ldu.extend_from_slice(&sized_unit(unit[0], &unit[1..]));
                }
            }
            "vp9" => ldu.extend_from_slice(&payload[1..]),
            "aac" | "mpa" => ldu.extend_from_slice(&payload[4..]),
            "ac3" => ldu.extend_from_slice(&payload[2..]),
            _ => ldu.extend_from_slice(payload),
        }
        open = !marker;
    }
    ldus
}

/// An OBU of AV1 with its size.
fn sized_unit(header: u8, payload: &[u8]) -> Vec<u8> {
    let mut unit = vec![header | 2];
    let mut size = payload.len();
    while size > 0x7f {
        unit.push(u8::try_from(size & 0x7f).unwrap() | 0x80);
        size >>= 7;
    }
    unit.push(u8::try_from(size).unwrap());
    unit.extend_from_slice(payload);
    unit
}

#[test]
fn what_a_receiver_reassembles_is_what_was_stored() {
    let mut random = fastrand::Rng::with_seed(6184);
    for round in 0..200 {
        let mut bytes = |most: usize| -> Vec<u8> {
            let length = random.usize(2..most);
            (0..length).map(|_| random.u8(..)).collect()
        };
        let mut pictures = |header: &[u8]| -> Vec<Vec<u8>> {
            let mut unit = |most| [header, &bytes(most)].concat();
            let small = access_unit(&[&unit(40), &unit(9000)]);
            vec![
                small,
                access_unit(&[&unit(3000), &unit(1500), &unit(20)]),
                access_unit(&[&unit(5)]),
            ]
        };
        let (avc, hevc_units) = (pictures(&[0x41]), pictures(&[0x02, 0x01]));
        let mut frames = |most| vec![bytes(most), bytes(most), bytes(most)];
        let sized = |sizes: Vec<Vec<u8>>| -> Vec<u8> {
            sizes.iter().flat_map(|unit| sized_unit(0x30, unit)).collect()
        };
        let temporal_units = vec![sized(frames(4000)), sized(frames(40)), sized(frames(1500))];
        let slices = |sizes: Vec<Vec<u8>>| -> Vec<u8> {
            let slice = |slice: &Vec<u8>| [&[0, 0, 1, 7][..], &vec![9; slice.len()]].concat();
            let headers = vec![0, 0, 1, 0, 9, 9, 9, 9];
            [headers].into_iter().chain(sizes.iter().map(slice)).flatten().collect()
        };
        let slices = vec![slices(frames(300)), slices(frames(1400)), slices(frames(6000))];
        let table = [
            ("mpv", picture_format(b"m2v1", b"glbl", &[]), slices),
            ("mp4v", mp4_video(0x20, &[0, 0, 1, 0xb0, 1]), frames(5000)),
            ("av1", av1(), temporal_units),
            ("vp9", picture_format(b"vp09", b"vpcC", &[1, 0, 0, 0, 0, 30, 0x80]), frames(5000)),
            ("h264", h264(), avc),
            ("hevc", hevc(), hevc_units),
            ("aac", of_sound(b"mp4a", 2, &esds(0x40, &[0x11, 0x90])), frames(6000)),
            ("ac3", of_sound(b"ac-3", 2, &[]), frames(3840)),
            ("opus", of_sound(b"Opus", 2, &[]), frames(1275)),
            ("mpa", of_sound(b"mp4a", 2, &esds(0x6b, &[])), frames(2880)),
        ];
        for (layout, format, ldus) in table {
            let got = depacketise(layout, &packets(&format, &ldus));
            let wanted: Vec<(u32, Vec<u8>)> =
                (0u32..).zip(&ldus).map(|(i, ldu)| (i * 1000, ldu.clone())).collect();
            assert!(got == wanted, "{layout}, round {round}");
        }
    }
}

#[test]
fn an_ldu_of_any_bytes_gives_packets_or_none() {
    let mut random = fastrand::Rng::with_seed(7798);
    for _ in 0..2000 {
        let length = random.usize(..6000);
        let mut ldu: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        // Often a length that could be one.
        if let Some(start) = ldu.get_mut(..3).filter(|_| random.bool()) {
            start.fill(0);
        }
        for format in [
            h264(),
            hevc(),
            av1(),
            picture_format(b"m2v1", b"glbl", &[]),
            picture_format(b"vp09", b"vpcC", &[1, 0, 0, 0, 0, 30, 0x80]),
            of_sound(b"ec-3", 2, &[]),
            of_sound(b"in24", 2, &[]),
            of_sound(b"mp4a", 2, &esds(0x40, &[0x11, 0x90])),
        ] {
            assert!(packets(&format, std::slice::from_ref(&ldu)).iter().all(|p| p.len() <= MTU));
        }
    }
}

#[test]
fn reports_have_the_layout_of_rfc_3550() {
    let report = SenderReport {
        ssrc: 0x0a0b_0c0d,
        clock: Duration::new(1, 500_000_000),
        timestamp: 90_000,
        packets: 3,
        payload_bytes: 4000,
    };
    let bytes = report.to_bytes();
    assert_eq!(bytes[..8], [0x80, 200, 0, 6, 10, 11, 12, 13]);
    assert_eq!(
        bytes[8..16],
        [0x83, 0xaa, 0x7e, 0x81, 0x80, 0, 0, 0],
        "1970 and a second and a half"
    );
    assert_eq!(bytes[16..28], [0, 1, 0x5f, 0x90, 0, 0, 0, 3, 0, 0, 0x0f, 0xa0]);
    assert_eq!(bytes[28..], *b"\x81\xca\0\x04\x0a\x0b\x0c\x0d\x01\x06tenuto\0\0\0\0");
    let end = goodbye(&report);
    assert_eq!(end[..bytes.len()], bytes);
    assert_eq!(end[bytes.len()..], [0x81, 203, 0, 1, 10, 11, 12, 13]);
}

#[test]
fn a_title_is_described_in_sdp() {
    let (video, audio) = (h264(), of_sound(b"Opus", 1, &[]));
    let sections = [
        MediaSection { kind: TrackKind::Video, format: &video, control: "trackID=0" },
        MediaSection { kind: TrackKind::Audio, format: &audio, control: "trackID=2" },
    ];
    let text = session_description(
        "A\r\nm=film",
        7,
        "IP4 192.0.2.1",
        Duration::from_millis(12_345),
        &sections,
    );
    let wanted = "v=0|o=- 7 1 IN IP4 192.0.2.1|s=Am=film|c=IN IP4 0.0.0.0|t=0 0|a=control:*|\
                  a=range:npt=0-12.345|m=video 0 RTP/AVP 96|a=rtpmap:96 H264/90000|\
                  a=fmtp:96 packetization-mode=1;profile-level-id=64001F;\
                  sprop-parameter-sets=Z2QA,aO4=|a=control:trackID=0|m=audio 0 RTP/AVP 97|\
                  a=rtpmap:97 opus/48000/2|a=control:trackID=2|";
    assert_eq!(text.replace("\r\n", "|"), wanted);
}
