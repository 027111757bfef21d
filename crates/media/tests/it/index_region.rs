//! The index region: it survives encoding, takes few bytes, and no other bytes are accepted.

use crate::footage::{Folder, Title, make, read, remux};
use media::{
    CHECKSUM_SPAN, Edit, IndexError, LduIndex, SoundPurposes, TextDescription, TextTrack,
    Thumbnails, TitleIndex, TitleKind, TrackDescription, TrackIndex, TrackKind, checksum,
};
use units::{MediaTime, Timescale};

fn description(kind: TrackKind) -> TrackDescription {
    TrackDescription {
        kind,
        timescale: Timescale(90_000),
        sample_entry: b"\0\0\0\x10abcdefghijkl".to_vec(),
        codec: "avc1.64001f".to_owned(),
        language: "gsw".to_owned(),
        title: "Gespräch mit der Regie".to_owned(),
        width: 1920,
        height: 1080,
        matrix: [0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30],
        sample_rate: 48_000,
        channels: 6,
        edits: vec![
            Edit { duration: Some(MediaTime(5_333_333)), media_time: None },
            Edit { duration: None, media_time: Some(7200) },
        ],
        default: true,
        purposes: SoundPurposes::default(),
        gradual_refresh: false,
    }
}

fn track(kind: TrackKind, ldus: LduIndex) -> TrackIndex {
    let data_len = ldus.data_len();
    let spans = usize::try_from(data_len.div_ceil(CHECKSUM_SPAN)).unwrap();
    let checksums = (0..u32::try_from(spans).unwrap()).map(|i| i.wrapping_mul(0x9e37_79b9));
    TrackIndex { description: description(kind), data_len, ldus, checksums: checksums.collect() }
}

fn any_text(random: &mut fastrand::Rng) -> TextTrack {
    let description = TextDescription {
        language: "gsw".to_owned(),
        title: "Für Schwerhörige".to_owned(),
        default: random.bool(),
        forced: random.bool(),
        hearing_impaired: random.bool(),
    };
    let cues = (0..random.usize(..20)).map(|_| {
        let start = random.i64(-10..1 << 32);
        let text = ["<i>Ja</i>", "a\nb & c", "Übrigens"][random.usize(..3)];
        (start, start + random.i64(-10..1 << 20), text)
    });
    TextTrack::new(description, cues.collect::<Vec<_>>()).unwrap()
}

fn any_thumbnails(random: &mut fastrand::Rng) -> Thumbnails {
    let count = random.u32(1..80);
    let image = |_| {
        let rest: Vec<u8> = (0..random.usize(..20)).map(|_| random.u8(..)).collect();
        [&[0xff, 0xd8, 0xff], &rest[..]].concat().into()
    };
    let images = (0..count.div_ceil(Thumbnails::IN_IMAGE)).map(image).collect();
    let size = (random.u16(1..320), random.u16(1..320));
    Thumbnails::new(random.u32(1..), size, count, images).unwrap()
}

/// An index with random valid content.
fn any_index(seed: u64, ldus: usize) -> TitleIndex {
    let mut random = fastrand::Rng::with_seed(seed);
    let tracks = (0..random.usize(1..4)).map(|_| {
        let mut index = LduIndex::default();
        let every = random.u32(1..80);
        for i in 0..random.usize(0..=ldus) {
            let size = if random.u8(..) < 3 { random.u32(..1 << 24) } else { random.u32(..3000) };
            let duration = [3600, 3600, 3600, 0, 1, random.u32(..)][random.usize(..6)];
            let composition = match random.u8(..5) {
                0 => random.i32(..),
                1 => i32::MIN,
                n => i32::try_from(duration % (1 << 28)).unwrap() * (i32::from(n) - 3),
            };
            let sync = u32::try_from(i).unwrap().is_multiple_of(every);
            index.push(size, duration, composition, sync, random.bool());
        }
        track([TrackKind::Video, TrackKind::Audio][random.usize(..2)], index)
    });
    let tracks = tracks.collect();
    let texts = (0..random.usize(..3)).map(|_| any_text(&mut random)).collect();
    let thumbnails = random.bool().then(|| any_thumbnails(&mut random));
    TitleIndex { kind: TitleKind::Media, tracks, texts, thumbnails }
}

#[test]
fn any_index_survives_encoding() {
    for seed in 0..300 {
        let index = any_index(seed, 700);
        assert_eq!(TitleIndex::decode(&index.encode()).as_ref(), Ok(&index), "seed {seed}");
    }
}

#[test]
fn gradual_refresh_is_kept() {
    let mut index = any_index(5, 60);
    index.tracks[0].description.gradual_refresh = true;
    let bytes = index.encode();
    assert_eq!(bytes[8..10], [5, 0]);
    assert_eq!(TitleIndex::decode(&bytes), Ok(index));
}

#[test]
fn purposes_of_sound_are_another_version_that_older_programs_refuse() {
    let version = |index: &TitleIndex| u16::from_le_bytes([index.encode()[8], index.encode()[9]]);
    let mut index = any_index(5, 60);
    assert_eq!(version(&index), 4);
    let none = SoundPurposes::default();
    for purposes in [
        SoundPurposes { visual_impaired: true, ..none },
        SoundPurposes { hearing_impaired: true, ..none },
        SoundPurposes { comment: true, ..none },
        SoundPurposes { dub: true, ..none },
        SoundPurposes { visual_impaired: true, hearing_impaired: true, comment: true, dub: true },
    ] {
        for default in [false, true] {
            index.tracks[0].description.purposes = purposes;
            index.tracks[0].description.default = default;
            assert_eq!(version(&index), 5);
            assert_eq!(TitleIndex::decode(&index.encode()).as_ref(), Ok(&index), "{purposes:?}");
        }
    }
}

#[test]
fn a_title_of_opaque_bytes_survives_encoding() {
    let mut file = track(TrackKind::File, LduIndex::default());
    file.data_len = 3 * CHECKSUM_SPAN + 1;
    file.checksums = vec![1, 2, 3, checksum(b"x")].into();
    let index = TitleIndex {
        kind: TitleKind::File,
        tracks: vec![file],
        texts: Vec::new(),
        thumbnails: None,
    };
    assert_eq!(TitleIndex::decode(&index.encode()), Ok(index));
}

#[test]
fn bytes_behind_the_region_are_ignored() {
    let index = any_index(7, 100);
    let mut bytes = index.encode();
    bytes.resize(bytes.len().next_multiple_of(4096), 0xee);
    assert_eq!(TitleIndex::decode(&bytes), Ok(index));
}

#[test]
fn every_changed_or_missing_byte_is_detected() {
    let bytes = any_index(3, 60).encode();
    let mut random = fastrand::Rng::with_seed(11);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= random.u8(1..);
        assert!(TitleIndex::decode(&damaged).is_err(), "byte {at} of {}", bytes.len());
        assert!(TitleIndex::decode(&bytes[..at]).is_err(), "cut to {at} bytes");
    }
}

/// Changes with valid checksums, as a hostile writer would make them.
#[test]
fn invalid_content_with_valid_checksums_is_refused_or_harmless() {
    let bytes = any_index(5, 60).encode();
    let sections = sections(&bytes);
    for seed in 0..4000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut lies = bytes.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..lies.len());
            lies[at] = [0, 1, 0x7f, 0x80, 0xff, random.u8(..)][random.usize(..6)];
        }
        seal(&mut lies, &sections);
        // No panic, no large allocation; if it is accepted, it is encoded to the same bytes.
        if let Ok(index) = TitleIndex::decode(&lies) {
            assert_eq!(TitleIndex::decode(&index.encode()), Ok(index), "seed {seed}");
        }
    }
}

/// The start and length of each section.
fn sections(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut sections = Vec::new();
    let mut at = 32;
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap());
        let length = 16 + usize::try_from(length).unwrap();
        sections.push((at, length));
        at += length;
    }
    sections
}

fn seal(bytes: &mut [u8], sections: &[(usize, usize)]) {
    for &(at, length) in sections {
        let mut covered = bytes[at..at + 12].to_vec();
        covered.extend_from_slice(&bytes[at + 16..at + length]);
        bytes[at + 12..at + 16].copy_from_slice(&checksum(&covered).to_le_bytes());
    }
    let crc = checksum(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn bytes_that_are_no_index_are_refused_with_the_reason() {
    let good = any_index(1, 10).encode();
    let newer = {
        let mut bytes = good.clone();
        bytes[8] = 9;
        seal(&mut bytes, &[]);
        bytes
    };
    assert_eq!(TitleIndex::decode(b""), Err(IndexError::NotAnIndex));
    assert_eq!(TitleIndex::decode(&[0; 4096]), Err(IndexError::NotAnIndex));
    assert_eq!(TitleIndex::decode(&newer), Err(IndexError::Version(9)));
    let cut = TitleIndex::decode(&good[..100]).unwrap_err().to_string();
    assert_eq!(cut, format!("index region cut short: 100 of {} bytes", good.len()));
}

/// The checksum of RFC 3720, appendix B.4, so that other programs can read the stores.
#[test]
fn checksums_are_crc32c() {
    assert_eq!(checksum(b"123456789"), 0xe306_9283);
    assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
}

#[test]
fn a_real_title_takes_few_bytes_per_ldu() {
    let folder = Folder::new("index-size");
    let how = "-c:v libx264 -preset veryfast -bf 3 -g 50 -crf 18 -c:a aac";
    let source = make(&folder, "real.mp4", how);
    let Title { index, .. } = read(&remux(&source, "mp4", ""), 1 << 16);
    for track in &index.tracks {
        let tracks = vec![track.clone()];
        let one =
            TitleIndex { kind: TitleKind::Media, tracks, texts: Vec::new(), thumbnails: None };
        let bytes = sections(&one.encode())[1].1;
        let per_ldu = bytes as f64 / track.ldus.len() as f64;
        assert!(per_ldu <= 6.0, "{:?}: {per_ldu:.2} bytes per LDU", track.description.kind);
    }
}
