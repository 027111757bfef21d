//! Fragments that are written here box by box, and read in pieces of any size.

use super::*;
use std::time::Duration;

fn mp4_box(kind: &str, content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(8 + content.len()).unwrap();
    [&size.to_be_bytes()[..], kind.as_bytes(), content].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A header with 1,000 ticks a second, and the defaults 40 ticks, 5 bytes, no sync.
fn header() -> Vec<u8> {
    let mdhd = mp4_box("mdhd", &words(&[0, 0, 0, 1000, 0, 0]));
    let trak = mp4_box("trak", &mp4_box("mdia", &mdhd));
    let trex = mp4_box("trex", &words(&[0, 1, 1, 40, 5, NOT_SYNC]));
    let moov = mp4_box("moov", &[trak, mp4_box("mvex", &trex)].concat());
    [mp4_box("ftyp", b"iso6"), moov].concat()
}

/// A fragment at decode time `time`: the flags and rows of its run, and the bytes of its `mdat`.
fn fragment(time: u32, flags: u32, count: u32, rows: &[u32], media: &[u8]) -> Vec<u8> {
    let moof = |offset: u32| {
        let run = [&[flags | 1, count, offset], rows].concat();
        let traf = [
            mp4_box("tfhd", &words(&[0x2_0000, 1])),
            mp4_box("tfdt", &words(&[0, time])),
            mp4_box("trun", &words(&run)),
        ];
        mp4_box(
            "moof",
            &[mp4_box("mfhd", &words(&[0, 1])), mp4_box("traf", &traf.concat())].concat(),
        )
    };
    let offset = u32::try_from(moof(0).len() + 8).unwrap();
    [moof(offset), mp4_box("mdat", media)].concat()
}

/// What a segment contains, if it arrives in parts of this size: decode time, shift, whether sync,
/// bytes.
fn read(segment: &[u8], part: usize) -> Vec<(u128, i64, bool, String)> {
    let mut reader = FragmentReader::new(true);
    reader.header(&header());
    reader.begin();
    let mut found = Vec::new();
    for bytes in segment.chunks(part) {
        reader.push(bytes, &mut |ldu, bytes| {
            assert_eq!(bytes.len(), ldu.size as usize);
            let bytes = String::from_utf8_lossy(bytes).into_owned();
            found.push((ldu.decode.as_millis(), ldu.shift / 1_000_000, ldu.sync, bytes));
        });
    }
    found
}

#[test]
fn ldus_are_found_with_their_times_however_the_bytes_arrive() {
    let with_rows = [40, 3, 0, 80, 40, 2, NOT_SYNC, 0, 40, 4, NOT_SYNC, (-40i32).cast_unsigned()];
    let segment = [
        mp4_box("styp", b"msdh"),
        fragment(2000, 0xf00, 3, &with_rows, b"abcdefghi"),
        // The first is marked as sync, and all else is by default; two bytes of padding follow.
        fragment(5000, 0x4, 2, &[0], b"vwxyzVWXYZ__"),
    ]
    .concat();
    let wanted = [
        (2000, 80, true, "abc".to_owned()),
        (2040, 0, false, "de".to_owned()),
        (2080, -40, false, "fghi".to_owned()),
        (5000, 0, true, "vwxyz".to_owned()),
        (5040, 0, false, "VWXYZ".to_owned()),
    ];
    for part in [1, 2, 3, 7, 64, 100_000] {
        assert_eq!(read(&segment, part), wanted, "in parts of {part} bytes");
    }
}

#[test]
fn without_bytes_only_times_and_sizes_are_passed_on() {
    let mut reader = FragmentReader::new(false);
    reader.header(&header());
    let mut found = Vec::new();
    for time in [0, 100] {
        reader.begin();
        let segment = fragment(time, 0, 2, &[], b"0123456789");
        reader.push(&segment, &mut |ldu, bytes| found.push((ldu.decode, ldu.size, bytes.len())));
    }
    let ms = Duration::from_millis;
    assert_eq!(found, [(ms(0), 5, 0), (ms(40), 5, 0), (ms(100), 5, 0), (ms(140), 5, 0)]);
}

#[test]
fn what_is_no_fragment_passes_and_what_makes_no_sense_ends_the_segment() {
    let whole = fragment(0, 0x200, 1, &[4], b"abcd");
    let endless = fragment(0, 0, u32::MAX, &[], b"abcd");
    let zero = fragment(0, 0x200, 2, &[0, 4], b"abcd");
    let cases: [(&[u8], usize); 7] = [
        (&whole, 1),
        (&zero, 2),
        // The bytes end in the LDU.
        (&whole[..whole.len() - 1], 0),
        (&endless, 0),
        (b"\x47\x40\x00 a transport stream, or anything else", 0),
        (&[0; 100], 0),
        (&[0, 0, 0, 3, b'm', b'o', b'o', b'f', 0, 0, 0, 0, 0, 0, 0, 0, 0], 0),
    ];
    for (bytes, ldus) in cases {
        for part in [1, 1000] {
            assert_eq!(read(bytes, part).len(), ldus, "{:02x?}", &bytes[..8]);
        }
    }
    // Any change of a byte of the description finds something or nothing, and ends.
    for at in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= change;
            read(&changed, 1000);
        }
    }
    let mut reader = FragmentReader::new(true);
    reader.header(b"no header");
    reader.begin();
    reader.push(&whole, &mut |_, _| panic!("without a clock there are no times"));
}
