//! Transfers against an engine and a socket whose events come in random order.

use super::*;
use device::Pool;
use media::{Checksums, LduIndex, Packaging, PackagingOptions, TitleIndex, TitleKind};
use media::{TrackDescription, TrackIndex, TrackKind};
use std::sync::LazyLock;
use units::{ByteCount, Timescale};

// The byte of a track at an offset, computed so that every byte of a body can be recognised.
fn track_byte(track: u16, offset: u64) -> u8 {
    ((offset.wrapping_mul(31) >> 3) ^ u64::from(track).wrapping_mul(77)).to_le_bytes()[0]
}

/// The bytes of a track, which are computed once for all seeds.
fn track_bytes(track: u16, range: Range<u64>) -> &'static [u8] {
    static TRACKS: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
        [0, 1].map(|track| (0..LONGEST).map(|at| track_byte(track, at)).collect())
    });
    let at = |offset: u64| usize::try_from(offset).unwrap();
    &TRACKS[usize::from(track)][at(range.start)..at(range.end)]
}

/// No track of a test is longer: more than a window.
const LONGEST: u64 = WINDOW_BYTES + 1_000_000;

struct Viewer {
    transfer: Transfer,
    received: Vec<u8>,
    in_flight: VecDeque<Outgoing>,
    acknowledged: Vec<(RequestId, ReadId)>,
    delivered: Vec<(RequestId, ReadId)>,
}

impl Viewer {
    fn pump(&mut self) {
        self.in_flight.extend(self.transfer.outgoing().unwrap());
        self.acknowledged.extend(self.transfer.used());
    }

    fn take_one(&mut self) -> bool {
        let Some(outgoing) = self.in_flight.pop_front() else { return false };
        outgoing.slices.iter().for_each(|slice| self.received.extend_from_slice(slice));
        self.acknowledged.extend(self.transfer.sent(outgoing.number).1);
        true
    }
}

/// Plays engine and socket against a transfer with every random choice from `seed`.
fn play(body: &Arc<Body>, range: Range<u64>, seed: u64) -> Viewer {
    let mut random = fastrand::Rng::with_seed(seed);
    let pool = Pool::new(ByteCount::mib(64), ByteCount::mib(1));
    let transfer = Transfer::new(
        SessionId(1),
        Arc::default(),
        b"head".to_vec(),
        Arc::clone(body),
        range,
        5,
        Held::default(),
    );
    let (received, in_flight) = (Vec::new(), VecDeque::new());
    let (acknowledged, delivered) = (Vec::new(), Vec::new());
    let mut viewer = Viewer { transfer, received, in_flight, acknowledged, delivered };
    let (mut requests, mut reads) = (0, 0);
    let mut open: Vec<(MediaRequest, bool)> = Vec::new();
    while !viewer.transfer.is_done() {
        while let Some((_, request)) = viewer.transfer.next_request(|| {
            requests += 1;
            RequestId(requests)
        }) {
            open.push((request, false));
        }
        match random.u32(0..3) {
            0 => drop(viewer.take_one()),
            1 => viewer.pump(),
            _ if open.is_empty() => viewer.pump(),
            _ => {
                // Any open request may be served next, not only the oldest.
                let i = random.usize(0..open.len());
                let (request, accepted) = &mut open[i];
                if !*accepted {
                    viewer.transfer.accepted(request.request);
                    *accepted = true;
                    continue;
                }
                let part = &mut request.parts[0];
                let left = part.bytes.end - part.bytes.start;
                let length = left.min(random.u64(1..=100_000));
                let mut buffer = pool.take(256 * 1024).unwrap();
                reads += 1;
                let range = 7..7 + usize::try_from(length).unwrap();
                let bytes = part.bytes.start..part.bytes.start + length;
                buffer[range.clone()].copy_from_slice(track_bytes(part.track, bytes));
                viewer.delivered.push((request.request, ReadId(reads)));
                viewer.transfer.deliver(request.request, ReadId(reads), buffer.freeze(), range);
                part.bytes.start += length;
                if part.bytes.is_empty() {
                    request.parts.remove(0);
                }
                if request.parts.is_empty() {
                    open.remove(i);
                }
            }
        }
    }
    viewer
}

fn whole(body: &Arc<Body>) -> Transfer {
    Transfer::new(
        SessionId(1),
        Arc::default(),
        b"head".to_vec(),
        Arc::clone(body),
        0..body.len(),
        0,
        Held::default(),
    )
}

fn body(slices: &[Slice]) -> (Arc<Body>, Vec<u8>) {
    let mut expected = Vec::new();
    for slice in slices {
        match slice {
            Slice::Generated { bytes, range } => expected.extend(&bytes[range.clone()]),
            Slice::Stored { track, bytes } => {
                expected.extend_from_slice(track_bytes(*track, bytes.clone()));
            }
            Slice::Encrypted { block, range } => {
                let (track, bytes) = block.part(range);
                let stored = track_bytes(track, bytes);
                let mut writer = CipherWriter::new(Arc::clone(block), range.clone());
                let mut room = vec![0; stored.len()];
                let made = writer.write(&mut &*stored, &mut room);
                expected.extend_from_slice(&room[made]);
            }
            Slice::Filled { .. } | Slice::Chained { .. } => unreachable!("none is made here"),
            Slice::Packets { block, range } => {
                let parts = block.parts(range).into_iter();
                let stored: Vec<u8> =
                    parts.flat_map(|(track, bytes)| track_bytes(track, bytes).to_vec()).collect();
                let mut writer = PacketWriter::new(Arc::clone(block), range.clone());
                let mut room = vec![0; usize::try_from(block.len()).unwrap()];
                let made = writer.write(&mut &stored[..], &mut room);
                expected.extend_from_slice(&room[made]);
            }
        }
    }
    (Arc::new(slices.iter().cloned().collect()), expected)
}

/// A segment of a transport stream of H.264 and MPEG audio. What is stored is no media: lengths of
/// NAL units are as they come.
fn transport_segment() -> Vec<Slice> {
    let entry = |kind: &[u8; 4], fields: usize, child: &[u8]| {
        let length = u32::try_from(8 + fields + child.len()).unwrap();
        [&length.to_be_bytes(), &kind[..], &vec![0; fields], child].concat()
    };
    let record = [1, 0x42, 0, 30, 0xff, 0xe1, 0, 2, 0x67, 1, 1, 0, 2, 0x68, 1];
    let record = entry(b"avcC", 0, &record);
    let track = |kind, timescale, sample_entry, sizes: &mut dyn Iterator<Item = u32>| {
        let plain = TrackDescription::plain(kind, Timescale(timescale));
        let description = TrackDescription { sample_entry, sample_rate: 48_000, ..plain };
        let mut ldus = LduIndex::default();
        sizes.enumerate().for_each(|(i, size)| ldus.push(size, 1, 0, i == 0, false));
        TrackIndex { description, data_len: ldus.data_len(), ldus, checksums: Checksums::default() }
    };
    let pictures = &mut (0..50).map(|i| 1 + i * i * 50);
    let pictures = track(TrackKind::Video, 25, entry(b"avc1", 78, &record), pictures);
    let sound = &mut (0..80).map(|i| 300 + i);
    let sound = track(TrackKind::Audio, 40, entry(b".mp3", 28, &[]), sound);
    let index = TitleIndex {
        kind: TitleKind::Media,
        tracks: vec![pictures, sound],
        texts: Vec::new(),
        thumbnails: None,
    };
    let packaging = Packaging::new(Arc::new(index), &PackagingOptions::default()).unwrap();
    packaging.transport_segment(0, 0).unwrap().slices().cloned().collect()
}

fn generated_slice(n: u8) -> Slice {
    Slice::Generated { bytes: vec![n; 100].into(), range: 3..60 }
}

fn stored_slice(track: u16, bytes: Range<u64>) -> Slice {
    Slice::Stored { track, bytes }
}

#[test]
fn the_viewer_receives_the_body_for_every_order_of_events() {
    let bodies = [
        vec![],
        vec![generated_slice(1)],
        vec![stored_slice(0, 5..6)],
        vec![generated_slice(1), stored_slice(0, 1000..LONGEST)],
        vec![
            generated_slice(1),
            stored_slice(0, 0..90_000),
            stored_slice(1, 7..9_000),
            generated_slice(2),
            stored_slice(0, 0..3),
            generated_slice(3),
        ],
        (0..200).map(|i| stored_slice((i % 2) as u16, i * 1000..i * 1000 + 900)).collect(),
        transport_segment(),
        // Parts of it between generated bytes, as several ranges are.
        [vec![generated_slice(1)], transport_segment(), vec![generated_slice(2)]].concat(),
    ];
    for slices in &bodies {
        let (body, expected) = body(slices);
        for seed in 0..20 {
            // The whole body, then any part of it.
            let from = seed * body.len() / 40;
            let range = from..body.len() - from / 2;
            let mut viewer = play(&body, range.clone(), seed);
            let at = |offset: u64| usize::try_from(offset).unwrap();
            let wanted = [b"head", &expected[at(range.start)..at(range.end)]].concat();
            assert!(viewer.received == wanted, "seed {seed}, {} slices", slices.len());
            viewer.acknowledged.sort_unstable();
            viewer.delivered.sort_unstable();
            assert_eq!(viewer.acknowledged, viewer.delivered, "seed {seed}");
            assert!(viewer.transfer.open_requests().is_empty());
        }
    }
}

#[test]
fn nothing_is_sent_before_the_engine_accepts_the_first_window() {
    let (body, _) = body(&[generated_slice(1), stored_slice(0, 0..100)]);
    let mut transfer = whole(&body);
    assert!(transfer.outgoing().unwrap().is_empty());
    assert!(transfer.next_request(|| RequestId(1)).is_some());
    assert!(transfer.outgoing().unwrap().is_empty() && !transfer.begun());
    transfer.accepted(RequestId(1));
    assert_eq!(transfer.outgoing().unwrap().len(), 1, "head and generated bytes at once");
    assert!(transfer.begun());
}

#[test]
fn the_next_window_is_requested_when_the_previous_one_is_delivered() {
    let (body, _) = body(&[stored_slice(0, 0..LONGEST)]);
    let mut transfer = whole(&body);
    let (place, request) = transfer.next_request(|| RequestId(1)).unwrap();
    assert_eq!(place.before, None);
    assert_eq!(request.parts, [Part { track: 0, bytes: 0..WINDOW_BYTES }]);
    assert!(transfer.next_request(|| RequestId(2)).is_none());
    transfer.accepted(RequestId(1));
    let pool = Pool::new(ByteCount::mib(8), ByteCount::mib(1));
    for read in 0..4 {
        assert!(transfer.next_request(|| RequestId(2)).is_none());
        let buffer = pool.take(1 << 20).unwrap().freeze();
        transfer.deliver(RequestId(1), ReadId(read), buffer, 0..1 << 20);
    }
    let (place, _) = transfer.next_request(|| RequestId(2)).unwrap();
    assert_eq!(place.before, Some(RequestId(1)));
}

#[test]
fn the_parts_of_a_window_are_limited() {
    let slices: Vec<Slice> = (0..1000).map(|i| stored_slice((i % 2) as u16, i..i + 1)).collect();
    let (body, _) = body(&slices);
    let (_, request) = whole(&body).next_request(|| RequestId(1)).unwrap();
    assert_eq!(request.parts.len(), WINDOW_PARTS);
}

#[test]
fn packets_wait_for_the_socket() {
    let (body, _) = body(&transport_segment());
    let mut transfer = whole(&body);
    let (place, request) = transfer.next_request(|| RequestId(1)).unwrap();
    assert_eq!(place.before, None);
    let stored: u64 = request.parts.iter().map(|part| part.bytes.end - part.bytes.start).sum();
    let stored = usize::try_from(stored).unwrap();
    let pool = Pool::new(ByteCount::mib(16), ByteCount::mib(4));
    let buffer = pool.take(4 << 20).unwrap().freeze();
    transfer.deliver(RequestId(1), ReadId(1), buffer, 0..stored);
    let sends = transfer.outgoing().unwrap();
    let bytes: usize = sends.iter().flat_map(|send| &send.slices).map(|slice| slice.len()).sum();
    assert!(sends.len() <= PACKETS_AHEAD && bytes <= (PACKETS_AHEAD + 1) * PACKETS_BYTES);
    assert!(transfer.outgoing().unwrap().is_empty() && transfer.used().is_empty());
    // The socket drops its memory with the send, and that is used for the next one.
    let memory = |sends: &[Outgoing]| match sends.last().unwrap().slices.last().unwrap() {
        SendSlice::Bytes { bytes, .. } => bytes.as_ptr(),
        SendSlice::Buffer { .. } => panic!("packets are made"),
    };
    let first = memory(&sends[..1]);
    transfer.sent(sends[0].number);
    drop(sends);
    let more = transfer.outgoing().unwrap();
    assert_eq!(more.len(), 1);
    assert_eq!(memory(&more), first);
}
