//! Invalid streams: refused with the reason, without panic, in little memory.

use crate::footage::{Collect, Folder, make, read, remux};
use media::{BadStream, FragmentError, FragmentReader, LduIndex, TrackDescription};

/// The complete result of reading.
type Outcome = Result<Vec<(TrackDescription, LduIndex)>, BadStream>;

fn outcome(stream: &[u8]) -> Outcome {
    let (mut reader, mut sink) = (FragmentReader::new(), Collect::default());
    let result = reader.push(stream, &mut sink).and_then(|()| reader.finish(&mut sink));
    result.map_err(|error| match error {
        FragmentError::Stream(bad) => bad,
        FragmentError::Sink(never) => match never {},
    })
}

fn said(stream: &[u8]) -> String {
    outcome(stream).unwrap_err().to_string()
}

fn footage(name: &str) -> Vec<u8> {
    let folder = Folder::new(name);
    let how = "-c:v libx264 -preset veryfast -bf 2 -g 12 -c:a aac";
    remux(&make(&folder, "source.mp4", how), "mp4", "")
}

fn boxed(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let size = u32::try_from(payload.len() + 8).unwrap();
    [&size.to_be_bytes(), &kind[..], payload].concat()
}

#[test]
fn streams_of_other_kinds_are_refused_with_the_reason() {
    let start = boxed(b"ftyp", b"isom\0\0\0\0");
    let with = |rest: &[u8]| said(&[&start, rest].concat());
    assert_eq!(said(b""), "the stream has no 'moov', which describes the tracks");
    assert_eq!(
        said(b"RIFF\0\0\0\0AVI "),
        "no fragmented MP4: the stream does not begin with 'ftyp'"
    );
    assert_eq!(said(b"\0\0\0\x10fty"), "the stream ends inside a box at byte 7");
    assert_eq!(with(b"\0\0\0\x07free"), "box 'free' at byte 16 has the impossible size 7");
    assert_eq!(
        with(b"\0\0\0\x01moov\x80\0\0\0\0\0\0\0"),
        "box 'moov' at byte 16 has 9223372036854775808 bytes; at most 16777216 are read"
    );
    assert_eq!(
        with(b"\0\0\0\x01free\xff\xff\xff\xff\xff\xff\xff\xff"),
        "the stream ends inside a box at byte 32"
    );
    assert_eq!(with(&boxed(b"moov", b"")), "box 'moov' is malformed");
    assert_eq!(with(&boxed(b"moof", b"")), "the stream has no 'moov', which describes the tracks");
}

/// Replaces the first occurrence of `what`.
fn patched(stream: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let at = stream.windows(what.len()).position(|window| window == what).unwrap();
    let mut patched = stream.to_vec();
    patched[at..at + with.len()].copy_from_slice(with);
    patched
}

#[test]
fn inconsistent_streams_are_refused_with_the_reason() {
    let good = footage("contradict");
    assert!(outcome(&good).is_ok());
    let with = |what: &[u8], with: &[u8]| said(&patched(&good, what, with));
    assert_eq!(with(b"avc1", b"encv"), "track 1 is encrypted");
    assert_eq!(
        with(b"mvex", b"free"),
        "the 'moov' has samples of its own: have it written with empty_moov"
    );
    // tfhd: version 0, flags, then the track's number.
    let header = b"tfhd\0\x02\0\x38\0\0\0";
    assert_eq!(
        with(header, b"tfhd\0\x02\0\x38\0\0\x07"),
        "a fragment has data of track 1793, which the header does not have"
    );
    assert_eq!(
        with(b"tfdt\x01\0\0\0\0\0\0\0", b"tfdt\x01\0\0\0\0\0\0\x01"),
        "track 1 starts at 4294967296 ticks instead of 0"
    );
    let twice = [&good[..], &good[..]].concat();
    assert!(matches!(outcome(&twice), Err(BadStream::SecondHeader { .. })));
    let late_in_payload = good.len() - 400;
    assert_eq!(
        said(&good[..late_in_payload]),
        format!("the stream ends inside a box at byte {late_in_payload}")
    );
}

#[test]
fn pieces_of_any_size_give_equal_results() {
    let stream = footage("pieces");
    let whole = read(&stream, stream.len());
    for piece in [1, 2, 7, 1000, 65_536] {
        let pieces = read(&stream, piece);
        assert!(pieces.index == whole.index && pieces.data == whole.data, "pieces of {piece}");
    }
    let bytes: usize = whole.data.iter().map(Vec::len).sum();
    let described: u64 = whole.index.tracks.iter().map(|track| track.data_len).sum();
    assert_eq!(bytes as u64, described, "all that the index speaks of was delivered");
}

/// Random bytes in every place of a real stream's headers, thousands of times.
#[test]
fn random_changes_cause_no_panic() {
    let stream = footage("rubbish");
    // Only the headers and the first fragment are changed, where changes have an effect.
    let headers = stream.windows(4).position(|window| window == b"mdat").unwrap();
    for seed in 0..3000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut lies = stream.clone();
        for _ in 0..random.usize(1..5) {
            let at = random.usize(..headers);
            let value = [0, 1, 0x7f, 0x80, 0xff, random.u8(..)][random.usize(..6)];
            let count = [1, 1, 4, 8][random.usize(..4)];
            lies[at..at + count].fill(value);
        }
        if let Ok(tracks) = outcome(&lies) {
            let ldus: usize = tracks.iter().map(|(_, ldus)| ldus.len()).sum();
            assert!(ldus < 3 << 20, "seed {seed}: {ldus} LDUs from {} bytes", lies.len());
        }
    }
    for length in 0..headers {
        // A stream may end between two boxes; one without a fragment has no LDUs.
        let empty = |(_, ldus): &(TrackDescription, LduIndex)| ldus.is_empty();
        let survived = outcome(&stream[..length]).is_ok_and(|tracks| !tracks.iter().all(empty));
        assert!(!survived, "cut to {length} bytes");
    }
}

#[test]
fn after_an_error_no_bytes_are_accepted() {
    let (mut reader, mut sink) = (FragmentReader::new(), Collect::default());
    assert!(reader.push(b"RIFF\0\0\0\0AVI ", &mut sink).is_err());
    let again = reader.push(b"\0\0\0\x08free", &mut sink).unwrap_err();
    assert_eq!(again.to_string(), "the stream is not read any further after an error");
}
