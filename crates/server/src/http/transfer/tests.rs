//! Transfers against an engine and a socket whose events come in random order.

use super::*;
use device::Pool;
use units::ByteCount;

// The byte of a track at an offset, computed so that every byte of a body can be recognised.
fn track_byte(track: u16, offset: u64) -> u8 {
    ((offset.wrapping_mul(31) >> 3) ^ u64::from(track).wrapping_mul(77)).to_le_bytes()[0]
}

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
        Arc::default(),
    );
    let (received, in_flight) = (Vec::new(), VecDeque::new());
    let (acknowledged, delivered) = (Vec::new(), Vec::new());
    let mut viewer = Viewer { transfer, received, in_flight, acknowledged, delivered };
    let (mut requests, mut reads) = (0, 0);
    let mut open: Vec<(MediaRequest, bool)> = Vec::new();
    while !viewer.transfer.is_done() {
        while let Some(request) = viewer.transfer.next_request(|| {
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
                for (i, byte) in (0..length).zip(buffer[7..].iter_mut()) {
                    *byte = track_byte(part.track, part.bytes.start + i);
                }
                reads += 1;
                let range = 7..7 + usize::try_from(length).unwrap();
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
        Arc::default(),
    )
}

fn body(slices: &[Slice]) -> (Arc<Body>, Vec<u8>) {
    let mut expected = Vec::new();
    for slice in slices {
        match slice {
            Slice::Generated { bytes, range } => expected.extend(&bytes[range.clone()]),
            Slice::Stored { track, bytes } => {
                expected.extend(bytes.clone().map(|at| track_byte(*track, at)));
            }
        }
    }
    (Arc::new(slices.iter().cloned().collect()), expected)
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
        vec![generated_slice(1), stored_slice(0, 1000..5_000_000)],
        vec![
            generated_slice(1),
            stored_slice(0, 0..90_000),
            stored_slice(1, 7..9_000),
            generated_slice(2),
            stored_slice(0, 0..3),
            generated_slice(3),
        ],
        (0..200).map(|i| stored_slice((i % 2) as u16, i * 1000..i * 1000 + 900)).collect(),
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
    let (body, _) = body(&[stored_slice(0, 0..100_000_000)]);
    let mut transfer = whole(&body);
    let request = transfer.next_request(|| RequestId(1)).unwrap();
    assert_eq!(request.parts, [Part { track: 0, bytes: 0..WINDOW_BYTES }]);
    assert!(transfer.next_request(|| RequestId(2)).is_none());
    transfer.accepted(RequestId(1));
    let pool = Pool::new(ByteCount::mib(8), ByteCount::mib(1));
    for read in 0..4 {
        assert!(transfer.next_request(|| RequestId(2)).is_none());
        let buffer = pool.take(1 << 20).unwrap().freeze();
        transfer.deliver(RequestId(1), ReadId(read), buffer, 0..1 << 20);
    }
    assert!(transfer.next_request(|| RequestId(2)).is_some());
}

#[test]
fn the_parts_of_a_window_are_limited() {
    let slices: Vec<Slice> = (0..1000).map(|i| stored_slice((i % 2) as u16, i..i + 1)).collect();
    let (body, _) = body(&slices);
    let request = whole(&body).next_request(|| RequestId(1)).unwrap();
    assert_eq!(request.parts.len(), WINDOW_PARTS);
}
