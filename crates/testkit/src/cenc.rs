//! What encrypted tracks state of themselves, checked by the text of ISO/IEC 23001-7 (third
//! edition): the initialization segment (8 and 12.2), and media segments (7 and 9).
//!
//! It decrypts nothing: a player with the key does that in other tests.

/// What an initialization segment states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// `cenc` or `cbcs`.
    pub scheme: String,
    /// The format before encryption: `avc1`.
    pub original: String,
    /// The key's number.
    pub key_id: Vec<u8>,
    /// The systems of the `pssh` boxes.
    pub systems: Vec<Vec<u8>>,
    is_video: bool,
    vector_size: usize,
}

/// What was found in the media segments of a track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encrypted {
    /// The number of protected bytes.
    pub protected: u64,
    /// Bytes in the clear at the begin of each slice, without emulation prevention; `None`: all of
    /// the slice is in the clear.
    pub headers: Vec<Option<usize>>,
}

/// Checks the initialization segment of an encrypted track.
///
/// # Panics
/// Panics with the rule that it breaks.
pub fn check_init(what: &str, init: &[u8]) -> Protection {
    let moov = one(what, init, b"moov");
    let stsd = descend(what, moov, &[b"trak", b"mdia", b"minf", b"stbl", b"stsd"]);
    let entries = boxes(&stsd[8..]);
    let [(kind, entry)] = entries[..] else { panic!("{what}: one sample entry") };
    let is_video = kind == *b"encv";
    assert!(is_video || kind == *b"enca", "{what}: 'encv' or 'enca' (ISO/IEC 14496-12, 8.12)");
    let sinf = one(what, &entry[if is_video { 78 } else { 28 }..], b"sinf");
    let original = text(one(what, sinf, b"frma"));
    let schm = one(what, sinf, b"schm");
    let scheme = text(&schm[4..8]);
    assert_eq!(schm[8..12], [0, 1, 0, 0], "{what}: scheme_version is 0x00010000 (4.1)");
    let tenc = descend(what, sinf, &[b"schi", b"tenc"]);
    let (version, pattern, protected, vector) = (tenc[0], tenc[5], tenc[6], usize::from(tenc[7]));
    assert_eq!(protected, 1, "{what}: default_isProtected");
    let key_id = tenc[8..24].to_vec();
    match &*scheme {
        "cenc" => {
            assert!(vector == 8 || vector == 16, "{what}: vectors of 8 or 16 bytes (9.2)");
            assert_eq!((version, pattern), (0, 0), "{what}: no pattern (10.1)");
            assert_eq!(tenc.len(), 24, "{what}: no constant vector");
        }
        "cbcs" => {
            assert_eq!(vector, 0, "{what}: constant vectors (10.4)");
            assert_eq!((tenc[24], tenc.len()), (16, 41), "{what}: a vector of 16 bytes (8.2)");
            let wanted = if is_video { (1, 0x19) } else { (0, 0) };
            assert_eq!((version, pattern), wanted, "{what}: 1:9 for video only (10.4)");
        }
        other => panic!("{what}: scheme {other}"),
    }
    let systems = boxes(moov).into_iter().filter(|(kind, _)| kind == b"pssh");
    let systems: Vec<Vec<u8>> = systems
        .map(|(_, pssh)| {
            if pssh[0] == 1 {
                let ids = pssh[24..].chunks(16).take(number(&pssh[20..24]));
                assert!(ids.into_iter().any(|id| id == key_id), "{what}: its key in pssh (8.1)");
            }
            pssh[4..20].to_vec()
        })
        .collect();
    assert!(!systems.is_empty(), "{what}: a pssh");
    Protection { scheme, original, key_id, systems, is_video, vector_size: vector }
}

/// Checks a media segment of a track with this protection. `clear`: the same segment before
/// encryption. Adds what is found to `found`.
///
/// # Panics
/// Panics with the rule that it breaks.
pub fn check_segment(
    what: &str,
    of: &Protection,
    segment: &[u8],
    clear: &[u8],
    found: &mut Encrypted,
) {
    let mut moof = None;
    let mut clear_data = boxes(clear).into_iter().filter(|(kind, _)| kind == b"mdat");
    let mut at = 0;
    for (kind, payload) in boxes(segment) {
        match &kind {
            b"moof" => moof = Some((payload, at)),
            b"mdat" => {
                let (moof, start) = moof.take().unwrap_or_else(|| panic!("{what}: a moof before"));
                let (_, clear) =
                    clear_data.next().unwrap_or_else(|| panic!("{what}: one too many"));
                check_fragment(what, of, (segment, start, moof), [payload, clear], found);
            }
            _ => {}
        }
        at += payload.len() + 8;
    }
    assert!(clear_data.next().is_none(), "{what}: as many fragments as in the clear");
}

fn check_fragment(
    what: &str,
    of: &Protection,
    (segment, start, moof): (&[u8], usize, &[u8]),
    [data, clear]: [&[u8]; 2],
    found: &mut Encrypted,
) {
    assert_eq!(data.len(), clear.len(), "{what}: encryption changes no length");
    let traf = one(what, moof, b"traf");
    let sizes = sample_sizes(what, traf);
    let has_info = of.vector_size > 0 || of.is_video;
    let kinds: Vec<[u8; 4]> = boxes(traf).into_iter().map(|(kind, _)| kind).collect();
    if !has_info {
        assert!(!kinds.contains(b"senc"), "{what}: nothing to state of samples");
        // All whole blocks.
        found.protected += sizes.iter().map(|size| (size / 16 * 16) as u64).sum::<u64>();
        return;
    }
    let senc = one(what, traf, b"senc");
    let has_subsamples = senc[3] & 2 != 0;
    assert_eq!(has_subsamples, of.is_video, "{what}: subsamples of video alone (9.5)");
    assert_eq!(number(&senc[4..8]), sizes.len(), "{what}: sample_count (7.2)");
    check_places(what, traf, senc, (segment, start), sizes.len());
    let (mut info, mut at, mut vectors) = (&senc[8..], 0, Vec::new());
    for size in sizes {
        let (vector, rest) = info.split_at(of.vector_size);
        vectors.push(vector);
        info = rest;
        let (whole, plain) = (&data[at..at + size], &clear[at..at + size]);
        at += size;
        if !has_subsamples {
            found.protected += size as u64;
            continue;
        }
        let count = usize::from(u16::from_be_bytes([info[0], info[1]]));
        let listed = info[2..2 + 6 * count]
            .chunks(6)
            .map(|of| (usize::from(u16::from_be_bytes([of[0], of[1]])), number(&of[2..6])));
        check_subsamples(what, of, listed.collect(), [whole, plain], found);
        info = &info[2 + 6 * count..];
    }
    assert!(info.is_empty(), "{what}: bytes behind the last sample in senc");
    vectors.sort_unstable();
    let all = vectors.len();
    vectors.dedup();
    assert!(of.vector_size == 0 || vectors.len() == all, "{what}: a vector of its own each (9.2)");
}

/// `saiz` and `saio` (ISO/IEC 14496-12, 8.7.8 and 8.7.9) name what `senc` has.
fn check_places(what: &str, traf: &[u8], senc: &[u8], (all, start): (&[u8], usize), count: usize) {
    let (saiz, saio) = (one(what, traf, b"saiz"), one(what, traf, b"saio"));
    assert_eq!(number(&saiz[5..9]), count, "{what}: sample_count of saiz");
    let total: usize = match saiz[4] {
        0 => saiz[9..].iter().map(|size| usize::from(*size)).sum(),
        size => usize::from(size) * count,
    };
    let info = &senc[8..];
    assert_eq!(total, info.len(), "{what}: saiz adds up to senc");
    assert_eq!((number(&saio[4..8]), saio.len()), (1, 12), "{what}: one offset");
    let place = start + number(&saio[8..12]);
    assert!(all[place..].starts_with(info), "{what}: saio leads into senc");
}

/// The subsamples of one sample of NAL units with lengths of four bytes (9.5.2).
fn check_subsamples(
    what: &str,
    of: &Protection,
    listed: Vec<(usize, usize)>,
    [data, plain]: [&[u8]; 2],
    found: &mut Encrypted,
) {
    let sum: usize = listed.iter().map(|(clear, protected)| clear + protected).sum();
    assert_eq!(sum, data.len(), "{what}: subsamples are the sample (9.5.1)");
    let is_avc = of.original.starts_with("avc");
    let (mut slices, mut at) = (Vec::new(), 0);
    while at < plain.len() {
        let end = at + 4 + number(&plain[at..at + 4]);
        let (kind, header) = match plain.get(at + 4) {
            Some(first) if is_avc => (first & 0x1f, 1),
            Some(first) => (first >> 1 & 0x3f, 2),
            None => break,
        };
        if if is_avc { (1..=5).contains(&kind) } else { kind < 32 } {
            slices.push((at + 4, at + 4 + header..end));
        }
        at = end;
    }
    let mut headers = vec![None; slices.len()];
    let mut at = 0;
    for (clear, protected) in listed {
        assert!(data[at..at + clear] == plain[at..at + clear], "{what}: clear bytes are clear");
        let range = at + clear..at + clear + protected;
        at = range.end;
        if protected == 0 {
            continue;
        }
        found.protected += protected as u64;
        let slice = slices.iter().position(|(_, it)| it.start < range.start && range.end == it.end);
        let slice = slice.unwrap_or_else(|| panic!("{what}: {range:?} ends no slice: {slices:?}"));
        headers[slice] = Some(unescaped(&plain[slices[slice].0..range.start]));
        assert!(of.scheme != "cenc" || protected % 16 == 0, "{what}: whole blocks (9.5.2.2)");
        assert!(data[range.clone()] != plain[range.clone()], "{what}: encrypted");
        if of.scheme == "cbcs" {
            for (number, block) in range.clone().step_by(16).enumerate() {
                let block = block..(block + 16).min(range.end);
                let is_encrypted = number % 10 == 0 && block.len() == 16;
                assert!(is_encrypted || data[block.clone()] == plain[block], "{what}: 1:9 (9.6)");
            }
        }
    }
    found.headers.extend(headers);
}

/// The number of bytes without those of emulation prevention (ISO/IEC 14496-10, 7.3.1).
fn unescaped(nal: &[u8]) -> usize {
    let (mut count, mut zeros) = (0, 0);
    for byte in nal {
        if zeros >= 2 && *byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        count += 1;
    }
    count
}

fn sample_sizes(what: &str, traf: &[u8]) -> Vec<usize> {
    let tfhd = one(what, traf, b"tfhd");
    let flags = number(&[0, tfhd[1], tfhd[2], tfhd[3]]);
    // Base, description and duration come before the size.
    let before = [(1, 8), (2, 4), (8, 4)].iter().filter(|(bit, _)| flags & bit != 0);
    let place = 8 + before.map(|(_, size)| size).sum::<usize>();
    let default = (flags & 0x10 != 0).then(|| number(&tfhd[place..place + 4]));
    let trun = one(what, traf, b"trun");
    let flags = number(&[0, trun[1], trun[2], trun[3]]);
    let first = 8 + 4 * [1, 4].iter().filter(|bit| flags & **bit != 0).count();
    let fields: Vec<usize> =
        [0x100, 0x200, 0x400, 0x800].into_iter().filter(|bit| flags & bit != 0).collect();
    let size = fields.iter().position(|bit| *bit == 0x200);
    (0..number(&trun[4..8]))
        .map(|i| match size {
            Some(size) => {
                let place = first + 4 * (i * fields.len() + size);
                number(&trun[place..place + 4])
            }
            None => default.unwrap_or_else(|| panic!("{what}: a size of samples")),
        })
        .collect()
}

/// The boxes that `bytes` consist of, none with a large size.
fn boxes(mut bytes: &[u8]) -> Vec<([u8; 4], &[u8])> {
    let mut all = Vec::new();
    while bytes.len() >= 8 {
        let size = number(&bytes[..4]);
        all.push((bytes[4..8].try_into().expect("four bytes"), &bytes[8..size]));
        bytes = &bytes[size..];
    }
    all
}

fn one<'a>(what: &str, bytes: &'a [u8], kind: &[u8; 4]) -> &'a [u8] {
    let found: Vec<&[u8]> =
        boxes(bytes).into_iter().filter(|(it, _)| it == kind).map(|(_, payload)| payload).collect();
    let [payload] = found[..] else {
        panic!("{what}: {} boxes '{}' instead of one", found.len(), text(kind))
    };
    payload
}

fn descend<'a>(what: &str, bytes: &'a [u8], kinds: &[&[u8; 4]]) -> &'a [u8] {
    kinds.iter().fold(bytes, |bytes, kind| one(what, bytes, kind))
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |value, byte| value << 8 | usize::from(*byte))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
