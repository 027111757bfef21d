//! LATM written by a writer of this file and read again, bit for bit.

use super::*;
use crate::TrackKind;
use units::Timescale;

/// Writes numbers of any number of bits.
#[derive(Default)]
struct Writer {
    bits: Vec<bool>,
}

impl Writer {
    fn put(&mut self, count: usize, value: usize) -> &mut Self {
        self.bits.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            let value = bits.iter().fold(0, |value, bit| value << 1 | u8::from(*bit));
            value << (8 - bits.len())
        };
        self.bits.chunks(8).map(byte).collect()
    }
}

/// A stream with one field that differs from what broadcasters send.
#[derive(Clone, Copy)]
struct Form {
    version: usize,
    same_time: usize,
    sub_frames: usize,
    layers: usize,
    frame_length: usize,
    /// Object type, index of the rate, channels.
    audio: [usize; 3],
}

const USUAL: Form =
    Form { version: 0, same_time: 1, sub_frames: 1, layers: 1, frame_length: 0, audio: [2, 3, 2] };

/// The packet of these access units, with its configuration if there is one.
fn packet(form: Option<Form>, units: &[&[u8]]) -> Vec<u8> {
    let mut frame = Writer::default();
    match form {
        None => frame.put(1, 1),
        Some(form) => {
            frame.put(1, 0).put(1, form.version);
            if form.version == 1 {
                // Version A, and a value of one byte.
                frame.put(1, 0).put(2, 0).put(8, 0xff);
            }
            frame.put(1, form.same_time).put(6, form.sub_frames - 1).put(4, 0);
            frame.put(3, form.layers - 1);
            if form.version == 1 {
                frame.put(2, 0).put(8, 16);
            }
            let [object_type, rate, channels] = form.audio;
            frame.put(5, object_type).put(4, rate).put(4, channels).put(3, 0);
            frame.put(3, form.frame_length).put(8, 0xff).put(1, 0).put(1, 0)
        }
    };
    for unit in units {
        for _ in 0..unit.len() / 255 {
            frame.put(8, 255);
        }
        frame.put(8, unit.len() % 255);
        for byte in *unit {
            frame.put(8, usize::from(*byte));
        }
    }
    let frame = frame.bytes();
    let mut whole = Writer::default();
    whole.put(11, 0x2b7).put(13, frame.len());
    [whole.bytes(), frame].concat()
}

/// What comes out of packets that arrive in pieces of `piece` bytes; each lasts 1024 ticks.
fn unpack(
    packets: &[Vec<u8>],
    piece: usize,
) -> Result<(LatmUnpacker, Vec<u8>, LduIndex), BadStream> {
    let (mut latm, mut out, mut index) = (LatmUnpacker::default(), Vec::new(), LduIndex::default());
    for packet in packets {
        let size = u32::try_from(packet.len()).unwrap();
        latm.announce(size)?;
        index.push(size, 1024, 0, true, false);
    }
    for bytes in packets.concat().chunks(piece) {
        latm.push(bytes, &mut |unit: &[u8]| {
            out.extend_from_slice(unit);
            Ok::<(), BadStream>(())
        })?;
    }
    Ok((latm, out, index))
}

fn described(scale: u32) -> TrackDescription {
    TrackDescription::plain(TrackKind::Audio, Timescale(scale))
}

/// The lengths and ticks of the LDUs at the end.
fn lengths(latm: &LatmUnpacker, packets: &LduIndex) -> Vec<(u32, u32)> {
    let (_, index) = latm.finish(packets, described(48_000)).unwrap();
    index.iter().map(|it| (it.size, it.duration)).collect()
}

/// The units of the same packets, and the lengths and ticks of their LDUs, made as they come. The
/// configuration is known: of all that is there.
fn as_it_comes(packets: &[Vec<u8>], piece: usize) -> (Vec<u8>, Vec<(u32, u32)>) {
    let (known, ..) = unpack(packets, 10_000).unwrap();
    let mut latm = LatmUnpacker::live(known.config().unwrap().clone());
    let (mut out, mut index) = (Vec::new(), LduIndex::default());
    for packet in packets {
        let times = PacketTimes { duration: 1024, composition_offset: 0, sync: true };
        latm.announce_at(u32::try_from(packet.len()).unwrap(), times).unwrap();
        for bytes in packet.chunks(piece) {
            latm.push(bytes, &mut |_| Err::<(), _>(BadStream::Latm("it is to be kept"))).unwrap();
        }
        out.extend(latm.take_units(&mut index));
        assert_eq!(index.data_len(), out.len() as u64);
    }
    (out, index.iter().map(|it| (it.size, it.duration)).collect())
}

#[test]
fn access_units_come_out_bit_for_bit() {
    let long: Vec<u8> =
        (0..=255).chain(0..=255).chain(0..100).map(|n: u16| n.to_le_bytes()[0]).collect();
    for version in [0, 1] {
        let form = Form { version, ..USUAL };
        let packets = [
            packet(Some(form), &[&long]),
            packet(None, &[b"second"]),
            Vec::new(),
            [packet(None, &[b"third"]), packet(Some(form), &[&[0xff; 255]])].concat(),
        ];
        for piece in [1, 7, 10_000] {
            let (latm, out, index) = unpack(&packets, piece).unwrap();
            assert_eq!(out, [&long[..], b"second", b"third", &[0xff; 255]].concat());
            assert_eq!(as_it_comes(&packets, piece), (out, lengths(&latm, &index)));
            let (track, index) = latm.finish(&index, described(48_000)).unwrap();
            let sizes: Vec<(u32, u32)> = index.iter().map(|it| (it.size, it.duration)).collect();
            assert_eq!(sizes, [(612, 1024), (6, 2048), (5, 512), (255, 512)]);
            assert_eq!((track.sample_rate, latm.unreadable), (48_000, 0));
            assert_eq!((&*track.codec, track.edits), ("mp4a.40.2", Vec::new()));
            let entry = crate::codec::SampleEntry(&track.sample_entry);
            assert_eq!((entry.channels(), entry.sample_rate()), (Some(2), Some(48_000)));
        }
    }
}

#[test]
fn several_access_units_share_the_time_of_their_packet() {
    let form = Form { sub_frames: 3, ..USUAL };
    let (latm, out, index) = unpack(&[packet(Some(form), &[b"a", b"bc", b""])], 3).unwrap();
    assert_eq!(out, b"abc");
    let (_, index) = latm.finish(&index, described(48_000)).unwrap();
    let sizes: Vec<(u32, u32)> = index.iter().map(|it| (it.size, it.duration)).collect();
    assert_eq!(sizes, [(1, 341), (2, 341), (0, 342)]);
}

#[test]
fn packets_before_the_configuration_use_it_and_damaged_ones_become_pauses() {
    let damaged = vec![0x56, 0xe0, 0x7f, 1, 2];
    let packets = [
        damaged.clone(),
        packet(None, &[b"early"]),
        damaged.clone(),
        packet(Some(USUAL), &[b"first"]),
        damaged,
        packet(None, &[b"x"]),
    ];
    let (latm, out, index) = unpack(&packets, 4).unwrap();
    assert_eq!((&out[..], latm.unreadable), (&b"earlyfirstx"[..], 3));
    let (live, lived) = as_it_comes(&packets, 4);
    assert_eq!((live, lived), (out.clone(), vec![(5, 3072), (5, 2048), (1, 1024)]));
    let (track, index) = latm.finish(&index, described(1024)).unwrap();
    let sizes: Vec<(u32, u32)> = index.iter().map(|it| (it.size, it.duration)).collect();
    assert_eq!(sizes, [(5, 2048), (5, 2048), (1, 1024)]);
    let second = MediaTime(1_000_000_000);
    assert_eq!(
        track.edits,
        [
            Edit { duration: Some(second), media_time: None },
            Edit { duration: None, media_time: Some(0) }
        ]
    );
    let (latm, ..) = unpack(&packets[1..2], 4).unwrap();
    let none = latm.finish(&LduIndex::default(), described(1024));
    assert_eq!(none.unwrap_err(), BadStream::Latm("it has no configuration"));
}

#[test]
fn other_forms_are_refused_by_name() {
    let forms = [
        (Form { same_time: 0, ..USUAL }, "its streams differ in time"),
        (Form { layers: 2, ..USUAL }, "it has several programs or layers"),
        (Form { frame_length: 1, ..USUAL }, "its frames have a fixed length"),
        (Form { audio: [23, 3, 2], ..USUAL }, "it is error-resilient or low-delay AAC"),
        (Form { audio: [8, 3, 2], ..USUAL }, "it is not AAC"),
        (Form { audio: [2, 4, 2], ..USUAL }, "its configuration changes"),
    ];
    for (form, reason) in forms {
        let packets = [packet(Some(USUAL), &[b"one"]), packet(Some(form), &[b"two"])];
        assert_eq!(unpack(&packets, 100).err(), Some(BadStream::Latm(reason)), "{reason}");
    }
}
