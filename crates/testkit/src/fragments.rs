//! The samples of a fragmented MP4 track, read from its boxes (ISO/IEC 14496-12).
//!
//! For checks of what the program writes, so it shares no code with it. It panics at malformed
//! boxes.

use std::ops::Range;

/// The properties of a track that its initialization segment states.
pub(crate) struct Fragments {
    pub(crate) timescale: u32,
    pub(crate) video: bool,
    /// The handler type.
    pub(crate) handler: [u8; 4],
    /// The presentation time that the edit list shows first.
    pub(crate) shown_from: i64,
    /// Duration, size and flags of `trex`.
    defaults: [u32; 3],
}

/// A sample of a media segment, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) decode_time: u64,
    pub(crate) duration: u32,
    composition_offset: i32,
    pub(crate) sync: bool,
}

impl Sample {
    /// The presentation time.
    pub(crate) fn shown(&self) -> i64 {
        i64::try_from(self.decode_time).expect("a time of this era")
            + i64::from(self.composition_offset)
    }
}

impl Fragments {
    /// The track of an initialization segment; `None` if there is none.
    pub(crate) fn of(init: &[u8]) -> Option<Self> {
        let moov = find(init, b"moov")?;
        let mdia = find(find(moov, b"trak")?, b"mdia")?;
        let mdhd = find(mdia, b"mdhd")?;
        let timescale = u32_at(mdhd, if mdhd[0] == 1 { 20 } else { 12 });
        let handler: [u8; 4] = find(mdia, b"hdlr")?[8..12].try_into().expect("four bytes");
        let video = &handler == b"vide";
        let trex = find(find(moov, b"mvex")?, b"trex")?;
        let shown_from = find(moov, b"trak").map_or(0, shown_from);
        let defaults = [12, 16, 20].map(|at| u32_at(trex, at));
        Some(Self { timescale, video, handler, shown_from, defaults })
    }

    /// The samples of a media segment.
    pub(crate) fn samples(&self, segment: &[u8]) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (kind, moof) in boxes(segment) {
            if &kind == b"moof" {
                self.read_fragment(find(moof, b"traf").expect("a moof has a traf"), &mut samples);
            }
        }
        samples
    }

    fn read_fragment(&self, traf: &[u8], samples: &mut Vec<Sample>) {
        let tfhd = find(traf, b"tfhd").expect("a traf has a tfhd");
        let flags = u32_at(tfhd, 0) & 0xff_ffff;
        let mut at = 8;
        let mut defaults = self.defaults;
        for (bit, length, field) in [
            (0x1, 8, None),
            (0x2, 4, None),
            (0x8, 4, Some(0)),
            (0x10, 4, Some(1)),
            (0x20, 4, Some(2)),
        ] {
            if flags & bit != 0 {
                if let Some(field) = field {
                    defaults[field] = u32_at(tfhd, at);
                }
                at += length;
            }
        }
        let tfdt = find(traf, b"tfdt").expect("a traf has a tfdt");
        let mut time = match tfdt[0] {
            1 => u64::from(u32_at(tfdt, 4)) << 32 | u64::from(u32_at(tfdt, 8)),
            _ => u64::from(u32_at(tfdt, 4)),
        };
        for (kind, trun) in boxes(traf) {
            if &kind == b"trun" {
                read_run(trun, defaults, &mut time, samples);
            }
        }
    }
}

fn read_run(trun: &[u8], defaults: [u32; 3], time: &mut u64, samples: &mut Vec<Sample>) {
    let flags = u32_at(trun, 0) & 0xff_ffff;
    let mut at = 8 + if flags & 0x1 != 0 { 4 } else { 0 };
    let mut next = |present: bool| {
        present.then(|| {
            at += 4;
            u32_at(trun, at - 4)
        })
    };
    let first_flags = next(flags & 0x4 != 0);
    for i in 0..u32_at(trun, 4) {
        let duration = next(flags & 0x100 != 0).unwrap_or(defaults[0]);
        next(flags & 0x200 != 0);
        let own_flags = next(flags & 0x400 != 0);
        let offset = next(flags & 0x800 != 0).unwrap_or(0);
        let sample_flags = first_flags.filter(|_| i == 0).or(own_flags).unwrap_or(defaults[2]);
        samples.push(Sample {
            decode_time: *time,
            duration,
            composition_offset: offset.cast_signed(),
            // `sample_is_non_sync_sample`.
            sync: sample_flags & 0x1_0000 == 0,
        });
        *time += u64::from(duration);
    }
}

/// The media time of the only edit of a track; zero without an edit list.
fn shown_from(trak: &[u8]) -> i64 {
    let Some(elst) = find(trak, b"edts").and_then(|edts| find(edts, b"elst")) else { return 0 };
    assert_eq!(u32_at(elst, 4), 1, "one edit");
    match elst[0] {
        1 => i64::from(u32_at(elst, 16)) << 32 | i64::from(u32_at(elst, 20)),
        _ => i64::from(u32_at(elst, 12)),
    }
}

/// The payload of the first `mdat`.
pub(crate) fn payload(segment: &[u8]) -> Option<&[u8]> {
    find(segment, b"mdat")
}

/// The payload of the first box of this kind.
fn find<'a>(bytes: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(bytes).into_iter().find(|(found, _)| found == kind).map(|(_, payload)| payload)
}

fn boxes(bytes: &[u8]) -> Vec<([u8; 4], &[u8])> {
    let payload = |(kind, whole, header): ([u8; 4], Range<usize>, usize)| {
        (kind, &bytes[whole.start + header..whole.end])
    };
    places(bytes).into_iter().map(payload).collect()
}

/// The kind of each box, where it is, and the length of its header.
pub(crate) fn places(bytes: &[u8]) -> Vec<([u8; 4], Range<usize>, usize)> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let kind = rest[4..8].try_into().expect("four bytes");
        let (header, size) = match u32_at(rest, 0) {
            1 => (16, u64::from(u32_at(rest, 8)) << 32 | u64::from(u32_at(rest, 12))),
            size => (8, u64::from(size)),
        };
        let size = usize::try_from(size).expect("a box in memory");
        all.push((kind, at..at + size, header));
        at += size;
    }
    all
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
