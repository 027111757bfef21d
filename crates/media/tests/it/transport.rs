//! HLS with transport streams: by the rules of ISO/IEC 13818-1 and RFC 8216, and decoded by FFmpeg;
//! the same bytes and times as in fragmented MP4; any range, any stored bytes.

use crate::footage::{Folder, Title, make, packets, read, remux};
use crate::playback::{Frame, decode, decode_ours};
use media::{
    CHECKSUM_SPAN, ConstantRate, Edit, LduIndex, Packaging, Slice, TitleIndex, TitleKind,
    TrackDescription, TrackIndex, TrackKind, TransportCounters, TransportPush, TransportUnit,
};
use std::sync::Arc;
use std::time::Duration;
use testkit::ts::{self, ElementaryStream, PesPacket};
use units::{BitRate, MediaTime, Timescale};

const SECOND: Duration = Duration::from_secs(1);
/// The time stamp of the title's start.
const ORIGIN: u64 = 900_000;

/// Encoder options, the muxer of the remux and its options, and the stream types.
const FILMS: &[(&str, &str, &str, &[u8])] = &[
    ("-c:v libx264 -bf 2 -g 12 -c:a aac", "mp4", "", &[0x1b, 0x0f]),
    ("-c:v libx264 -g 12 -c:a libmp3lame", "mp4", "-bsf:v h264_metadata=aud=insert", &[0x1b, 0x03]),
    ("-c:v libx264 -g 12 -c:a libmp3lame -ar 22050", "mp4", "", &[0x1b, 0x04]),
    (
        "-c:v libx265 -x265-params log-level=none:bframes=2:keyint=12:open-gop=0 -c:a ac3",
        "mp4",
        "-bsf:v hevc_metadata=aud=insert",
        &[0x24, 0x81],
    ),
    ("-c:v libx265 -x265-params log-level=none:keyint=12 -c:a eac3", "mp4", "", &[0x24, 0x87]),
    ("-c:v mpeg2video -bf 2 -g 12 -c:a mp2", "mp4", "", &[0x02, 0x03]),
    ("-c:v mpeg4 -bf 2 -g 12 -an", "mp4", "", &[0x10]),
    ("-vn -c:a aac -ar 44100", "mp4", "", &[0x0f]),
    ("-vn -c:a libmp3lame", "mov", "", &[0x03]),
    ("-vn -c:a aac -af aformat=channel_layouts=5.1(side)", "mp4", "", &[0x0f]),
];

#[test]
fn segments_have_the_ldus_and_times_of_the_title_and_ffmpeg_decodes_them() {
    for (number, (how, muxer, extra, stream_types)) in FILMS.iter().enumerate() {
        let folder = Folder::new(&format!("transport-{number}"));
        let source = make(&folder, "source.mkv", how);
        let title = read(&remux(&source, muxer, extra), 1 << 16);
        let packaging = Arc::new(title.packaging(SECOND));
        let tracks = packaging.transport_offers().unwrap().remove(0);
        let playlists = checked(&title, &packaging);
        let streams = &playlists.iter().find(|it| it.uri == format!("{}-ts.m3u8", tracks[0]));
        let streams = &streams.expect("the offer's playlist").streams;
        let found: Vec<u8> = streams.iter().map(|stream| stream.stream_type).collect();
        assert_eq!(found, *stream_types, "{how}");
        for (track, stream) in tracks.iter().zip(streams) {
            assert_same_ldus(&title, &packaging, *track, stream, how);
        }
        assert_pushed(&title, &packaging, tracks[0], streams, how);
        assert_filled(&title, &packaging, tracks[0], how);
        let written = write_hls(&title, &packaging, &folder);
        // FFmpeg remarks that it has guessed how channels of a list of their own are laid out.
        let ours = if how.contains("(side)") { decode(&written) } else { decode_ours(&written) };
        assert_decoded(&decode(&source), &ours, how);
    }
}

/// Checks the playlists of a title and what they name.
fn checked(title: &Title, packaging: &Packaging) -> Vec<ts::CheckedPlaylist> {
    let leads: Vec<u16> = packaging.transport_offers().unwrap().iter().map(|it| it[0]).collect();
    let multivariant = packaging.transport_multivariant(&leads, "");
    ts::check_hls("a title", &multivariant, &mut |uri| fetch(title, packaging, uri))
}

fn fetch(title: &Title, packaging: &Packaging, uri: &str) -> Vec<u8> {
    if let Some(track) = uri.strip_suffix("-ts.m3u8") {
        return packaging.transport_playlist(track.parse().unwrap(), "").unwrap().into_bytes();
    }
    let (track, number) = uri.strip_suffix(".ts").and_then(|it| it.split_once('/')).unwrap();
    let body = packaging.transport_segment(track.parse().unwrap(), number.parse().unwrap());
    title.bytes(&body.unwrap_or_else(|| panic!("{uri}")))
}

fn segments(title: &Title, packaging: &Packaging, track: u16) -> Vec<Vec<u8>> {
    let bodies = (0..).map_while(|number| packaging.transport_segment(track, number));
    bodies.map(|body| title.bytes(&body)).collect()
}

/// Writes what an HLS player may request; returns the multivariant playlist's path.
fn write_hls(title: &Title, packaging: &Packaging, folder: &Folder) -> std::path::PathBuf {
    let lead = packaging.transport_offers().unwrap()[0][0];
    std::fs::create_dir_all(folder.file(&lead.to_string())).unwrap();
    for (number, segment) in segments(title, packaging, lead).into_iter().enumerate() {
        std::fs::write(folder.file(&format!("{lead}/{number}.ts")), segment).unwrap();
    }
    let playlist = packaging.transport_playlist(lead, "").unwrap();
    std::fs::write(folder.file(&format!("{lead}-ts.m3u8")), playlist).unwrap();
    let path = folder.file("master-ts.m3u8");
    std::fs::write(&path, packaging.transport_multivariant(&[lead], "")).unwrap();
    path
}

/// The PES packets have the LDUs in order, in the codec's form, at the times of the segments.
fn assert_same_ldus(
    title: &Title,
    packaging: &Packaging,
    track: u16,
    stream: &ElementaryStream,
    what: &str,
) {
    let mut ldu = 0;
    for packet in &stream.packets {
        let first = packaging.pushed(track, ldu).expect("an LDU for each packet");
        // Nanoseconds in 1/90000 s.
        let clock = |time: MediaTime| (time.0 * 9 + 50_000).div_euclid(100_000);
        let off = |stamp: u64, time| {
            i64::try_from(stamp).unwrap().abs_diff(clock(time) + ORIGIN.cast_signed())
        };
        assert!(off(packet.shown, first.shown) <= 1, "{what}: LDU {ldu} of track {track}");
        assert!(off(packet.decoded, first.decoded) <= 1, "{what}: LDU {ldu} of track {track}");
        let mut rest = &packet.payload[..];
        while !rest.is_empty() {
            let bytes = packaging.pushed(track, ldu).expect("further LDUs").bytes;
            let at = |byte| usize::try_from(byte).unwrap();
            let stored = &title.data[usize::from(track)][at(bytes.start)..at(bytes.end)];
            let wanted = in_form(stream.stream_type, stored);
            let before = match stream.stream_type {
                // Delimiter and parameter sets.
                0x1b | 0x24 | 0x10 => rest.len() - wanted.len(),
                0x0f => adts_len(rest) - wanted.len(),
                _ => 0,
            };
            assert!(rest[before..].starts_with(&wanted), "{what}: LDU {ldu} of track {track}");
            rest = &rest[before + wanted.len()..];
            ldu += 1;
        }
    }
    assert_eq!(ldu, packaging.ldu_count(track), "{what}: LDUs of track {track}");
}

/// The packets for a sender at its own pace, from a position on, with the time of each.
fn pushed(title: &Title, packaging: &Packaging, mut push: TransportPush) -> Vec<(i64, Vec<u8>)> {
    let mut units = Vec::new();
    let tracks = push.first_bytes(packaging);
    let mut next: Vec<u64> = tracks.iter().map(|(_, first)| *first).collect();
    while let Some(unit) = push.next(packaging) {
        let mut stored: &[u8] = &[];
        if !unit.bytes.is_empty() {
            assert_eq!(unit.bytes.start, next[unit.stream], "stored bytes follow one another");
            next[unit.stream] = unit.bytes.end;
            let at = |byte| usize::try_from(byte).unwrap();
            let data = &title.data[usize::from(tracks[unit.stream].0)];
            stored = &data[at(unit.bytes.start)..at(unit.bytes.end)];
        }
        units.push((unit.at.0, unit.packets(stored)));
    }
    units
}

/// Units with the same PES packets as in segments. The clock in each is the time of its sending,
/// and tables come four times a second.
fn assert_pushed(
    title: &Title,
    packaging: &Packaging,
    track: u16,
    streams: &[ElementaryStream],
    what: &str,
) {
    let from = |from| packaging.transport_push(track, from, TransportCounters::default()).unwrap();
    let units = pushed(title, packaging, from(MediaTime::ZERO));
    assert!(units.is_sorted_by_key(|unit| unit.0), "{what}: in the order of sending");
    for (at, packets) in &units {
        // Nanoseconds as 1/90000 s; half a second before it is decoded.
        let wanted = (at * 9 + 50_000).div_euclid(100_000) + ORIGIN.cast_signed() - 45_000;
        for clock in packets.chunks(188).filter_map(clock) {
            assert!((clock - wanted).abs() <= 1, "{what}: the clock at {at} ns");
        }
    }
    let tables: Vec<i64> = units
        .iter()
        .filter(|(_, packets)| packets[1..3] == [0x40, 0])
        .map(|(at, _)| at / 1_000_000)
        .collect();
    assert!(tables.windows(2).all(|two| (250..500).contains(&(two[1] - two[0]))), "{tables:?}");
    let found = ts::check(&between_tables(&units)).unwrap_or_else(|why| panic!("{what}: {why}"));
    for (stream, found) in streams.iter().zip(found) {
        assert_eq!(
            (stream.stream_type, &stream.descriptors),
            (found.stream_type, &found.descriptors)
        );
        let in_segment = |packet: &PesPacket| PesPacket { segment: 0, ..packet.clone() };
        let all = |stream: &ElementaryStream| -> Vec<PesPacket> {
            stream.packets.iter().map(in_segment).collect()
        };
        assert!(all(stream) == all(&found), "{what}: other PES packets than in segments");
    }
}

/// A file at a constant rate has the packets that a sender at this rate makes one by one, then
/// null packets to the title's end, and any range of it is that part.
fn assert_filled(title: &Title, packaging: &Arc<Packaging>, track: u16, what: &str) {
    let lowest = packaging.lowest_constant_rate(track).unwrap();
    for rate in [lowest, BitRate(lowest.0 * 3 + 1)] {
        let body = packaging.transport_file(track, rate).unwrap();
        let whole = title.bytes(&body);
        let wanted = sent(title, packaging, track, rate);
        assert!(wanted[..] == whole[..wanted.len()], "{what}: other packets at {rate}");
        let rest = || whole[wanted.len()..].chunks(188);
        assert!(rest().all(|it| it[1..3] == [0x1f, 0xff] || clock(it).is_some()), "{what}");
        let bits = whole_length(packaging, track).as_nanos() * u128::from(rate.0);
        let packets = bits.div_ceil(188 * 8 * 1_000_000_000);
        let packets = packets.max(wanted.len() as u128 / 188);
        assert_eq!(body.len() as u128, packets * 188, "{what}: rate and duration");
        let mut random = fastrand::Rng::with_seed(rate.0);
        for _ in 0..20 {
            let from = random.usize(0..whole.len());
            let to = (from + random.usize(1..5000)).min(whole.len());
            let part = title.bytes(&body.range(from as u64..to as u64));
            assert!(part == whole[from..to], "{what} at {rate}: {from}..{to}");
        }
    }
}

/// The packets of a sender at a constant rate, which waits for the time of each unit.
fn sent(title: &Title, packaging: &Packaging, track: u16, rate: BitRate) -> Vec<u8> {
    let push = packaging.transport_push(track, MediaTime::ZERO, TransportCounters::default());
    let units = pushed(title, packaging, push.unwrap());
    let (mut stream, mut out, first) = (ConstantRate::new(rate), Vec::new(), units[0].0);
    for (at, packets) in &units {
        let at = Duration::from_nanos(u64::try_from(at - first).unwrap());
        while stream.due() < at {
            stream.write(&mut out);
        }
        stream.push(packets);
    }
    while !stream.is_idle() {
        stream.write(&mut out);
    }
    out
}

/// Packets from each PAT to the next, as the checks of segments take them.
fn between_tables(units: &[(i64, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for packet in units.iter().flat_map(|(_, packets)| packets.chunks(188)) {
        if packet[1..3] == [0x40, 0] {
            parts.push(Vec::new());
        }
        parts.last_mut().expect("begins with tables").extend_from_slice(packet);
    }
    parts
}

/// The clock of a packet (ISO/IEC 13818-1, 2.4.3.5).
fn clock(packet: &[u8]) -> Option<i64> {
    let has_clock = packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0;
    let base = || packet[6..11].iter().fold(0, |base, byte| base << 8 | i64::from(*byte));
    has_clock.then(|| base() >> 7)
}

#[test]
fn a_pushed_stream_begins_at_a_picture_and_goes_on_elsewhere_with_its_counters() {
    // Key frames each second, and behind each a picture that is shown before it.
    let mut tracks = vec![pictures(100, 40, |_| 504), sound(170)];
    tracks[0].ldus = (0..100).fold(LduIndex::default(), |mut ldus, i| {
        let later = [80, 0].get(i % 25).copied().unwrap_or(40);
        ldus.push(504, 40, later, i % 25 == 0, false);
        ldus
    });
    let (title, packaging) = title(tracks, fill);
    let at = |millis: i64| MediaTime(millis * 1_000_000);
    for from in [0, 999, 1000, 1080, 2500, 9000] {
        let push = packaging.transport_push(0, at(from), TransportCounters::default()).unwrap();
        let entry = packaging.entry(0, at(from)).unwrap();
        let shown = |ldu| packaging.pushed(0, ldu).unwrap().shown;
        let wanted = (entry..100).filter(|ldu| entry == 0 || shown(*ldu) >= shown(entry)).count();
        assert_eq!(push.first().0 / 1_000_000, shown(entry).0 / 1_000_000 * i64::from(entry > 0));
        let units = pushed(&title, &packaging, push);
        let streams = ts::demux(&between_tables(&units)).unwrap();
        let first = &streams[0].packets[0];
        assert_eq!((streams[0].packets.len(), first.random_access), (wanted, true), "{from} ms");
        assert_eq!(i64::try_from(first.shown - ORIGIN).unwrap(), shown(entry).0 * 9 / 100_000);
    }
    let mut push = packaging.transport_push(0, at(0), TransportCounters::default()).unwrap();
    let made = |unit: &TransportUnit| {
        unit.packets(&vec![0; usize::try_from(unit.bytes.end - unit.bytes.start).unwrap()])
    };
    let sent: Vec<_> = std::iter::from_fn(|| push.next(&packaging)).take(9).collect();
    let last = push.counters();
    let mut again = packaging.transport_push(0, at(3000), last).unwrap();
    let next = made(&again.next(&packaging).unwrap());
    // Two tables, then the clock with the flag that it is another.
    let counter = |packets: &[u8], number: usize| packets[number * 188 + 3] & 0xf;
    let packets_of_pictures = |packets: &[u8]| {
        let pictures = packets.chunks(188).filter(|it| it[1..3] == [1, 0] || it[1..3] == [0x41, 0]);
        pictures.map(|packet| packet[3] & 0xf).next_back()
    };
    let before: Vec<Vec<u8>> = sent.iter().map(made).collect();
    let counted = before.iter().rev().find_map(|packets| packets_of_pictures(packets)).unwrap();
    assert_eq!(next[2 * 188 + 5] & 0x80, 0x80, "discontinuity_indicator");
    assert_eq!(before[0][5 + 2 * 188] & 0x80, 0, "not at the first start");
    assert_eq!(counter(&next, 2), (counted + 1) & 0xf);
    let tables = before.iter().filter(|packets| packets[1..3] == [0x40, 0]).count();
    assert_eq!(usize::from(counter(&next, 0)), tables);
}

fn adts_len(bytes: &[u8]) -> usize {
    usize::from(bytes[3] & 3) << 11 | usize::from(bytes[4]) << 3 | usize::from(bytes[5] >> 5)
}

/// Annex B: a start code in front of each NAL unit, without a delimiter of its own.
fn in_form(stream_type: u8, stored: &[u8]) -> Vec<u8> {
    let delimiter: fn(u8) -> bool = match stream_type {
        0x1b => |first| first & 0x1f == 9,
        0x24 => |first| first >> 1 == 35,
        _ => return stored.to_vec(),
    };
    let (mut out, mut rest) = (Vec::new(), stored);
    while let Some((length, after)) = rest.split_first_chunk() {
        let (unit, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        if !delimiter(unit[0]) {
            out.extend_from_slice(&[0, 0, 0, 1]);
            out.extend_from_slice(unit);
        }
        rest = after;
    }
    out
}

/// Every picture and all sound, at the same times. FFmpeg cannot know of priming and padding in a
/// transport stream: such sound may come before and after.
fn assert_decoded(wanted: &[Vec<Frame>], given: &[Vec<Frame>], what: &str) {
    assert_eq!(wanted.len(), given.len(), "{what}: streams");
    for (wanted, given) in wanted.iter().zip(given) {
        let sums = |frames: &[Frame]| frames.iter().map(|it| it.1.clone()).collect::<Vec<_>>();
        let (all, mut inner) = (sums(given), sums(wanted));
        // The ends may be cut in the source.
        inner = inner[1.min(inner.len())..inner.len().saturating_sub(1)].to_vec();
        let at = all.windows(inner.len()).position(|window| window == inner);
        let at = at.unwrap_or_else(|| panic!("{what}: other frames"));
        let more = all.len() - inner.len();
        assert!(more <= 5, "{what}: {more} frames more");
        let shift = given[at].0 - wanted[1].0;
        for (wanted, given) in wanted[1..].iter().zip(&given[at..]) {
            let off = given.0 - wanted.0 - shift;
            assert!(off.abs() < 0.002, "{what}: {} is {off} s off", given.0);
        }
    }
}

/// A sample entry of H.264 with these bytes for a length, or of MPEG audio.
fn entry(kind: &[u8; 4], length_bytes: u8) -> Vec<u8> {
    let boxed = |kind: &[u8; 4], content: &[u8]| {
        let length = u32::try_from(8 + content.len()).unwrap();
        [&length.to_be_bytes(), &kind[..], content].concat()
    };
    if kind == b".mp3" {
        return boxed(kind, &[0; 28]);
    }
    let lengths = 0xfc | (length_bytes - 1);
    let record = [1, 0x42, 0, 30, lengths, 0xe1, 0, 2, 0x67, 1, 1, 0, 2, 0x68, 1];
    boxed(kind, &[&[0; 78][..], &boxed(b"avcC", &record)].concat())
}

fn track(kind: TrackKind, scale: u32, ldus: LduIndex) -> TrackIndex {
    let sample_entry = entry(if kind == TrackKind::Video { b"avc1" } else { b".mp3" }, 4);
    let plain = TrackDescription::plain(kind, Timescale(scale));
    let codec = if kind == TrackKind::Video { "avc1.64001f" } else { "mp4a.6B" }.to_owned();
    let description = TrackDescription { sample_entry, codec, sample_rate: 48_000, ..plain };
    let spans = usize::try_from(ldus.data_len().div_ceil(CHECKSUM_SPAN)).unwrap();
    TrackIndex { description, data_len: ldus.data_len(), ldus, checksums: vec![0; spans].into() }
}

/// Pictures of this duration in ms, a key frame in each 25, and of this size.
fn pictures(count: u32, millis: u32, size: impl Fn(u32) -> u32) -> TrackIndex {
    let mut ldus = LduIndex::default();
    (0..count).for_each(|i| ldus.push(size(i), millis, 0, i % 25 == 0, false));
    track(TrackKind::Video, 1000, ldus)
}

fn sound(count: u32) -> TrackIndex {
    let mut ldus = LduIndex::default();
    (0..count).for_each(|i| ldus.push(300 + i % 50, 1152, 0, true, false));
    track(TrackKind::Audio, 48_000, ldus)
}

/// A title of these tracks whose stored bytes are `fill`'s.
fn title(
    tracks: Vec<TrackIndex>,
    mut fill: impl FnMut(TrackKind, &mut [u8]),
) -> (Title, Packaging) {
    let data = tracks.iter().map(|track| {
        let mut bytes = vec![0; usize::try_from(track.data_len).unwrap()];
        fill(track.description.kind, &mut bytes);
        bytes
    });
    let data = data.collect();
    let title = Title {
        index: TitleIndex { kind: TitleKind::Media, tracks, texts: Vec::new(), thumbnails: None },
        data,
    };
    let packaging = title.packaging(SECOND);
    (title, packaging)
}

#[test]
fn any_stored_bytes_give_packets_of_the_announced_length() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let most = random.u32(1..4000);
        let tracks =
            vec![pictures(60, 40, |i| i.wrapping_mul(7919) % most), sound(random.u32(0..120))];
        // Bytes as they come; delimiters whose lengths nearly fit; none but zeros.
        let (title, packaging) = title(tracks, |_, bytes| match seed % 3 {
            0 => random.fill(bytes),
            1 => bytes.chunks_exact_mut(4).for_each(|unit| {
                let lengths = [[0, 0, 0, 4], [0, 0, 0, 0], [0, 0, 0, 29], [9, 9, 9, 9]];
                unit.copy_from_slice(&lengths[random.usize(0..4)]);
            }),
            _ => {}
        });
        let segments = segments(&title, &packaging, 0);
        let found = ts::demux(&segments).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let shown = packaging.index().tracks[0].ldus.iter().filter(|ldu| ldu.size > 0).count();
        assert_eq!(found[0].packets.len(), shown, "seed {seed}");
    }
}

#[test]
fn any_range_of_a_segment_is_that_part_of_the_whole() {
    // More than a block, one picture longer than one.
    let size = |i: u32| if i == 30 { 4_000_000 } else { 1 + i * 1000 };
    let mut random = fastrand::Rng::with_seed(5);
    let mut tracks = vec![pictures(75, 40, size), sound(125)];
    tracks[0].ldus = {
        let mut ldus = LduIndex::default();
        (0..75).for_each(|i| ldus.push(size(i), 40, 0, i == 0, false));
        ldus
    };
    let (title, packaging) = title(tracks, |_, bytes| random.fill(bytes));
    let body = packaging.transport_segment(0, 0).unwrap();
    let whole = title.bytes(&body);
    let blocks = body.slices().filter(|it| matches!(it, Slice::Packets { .. })).count();
    assert!(blocks > 1, "{blocks} blocks");
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let first = random.usize(0..whole.len());
        let last = if random.bool() {
            first + random.usize(0..600)
        } else {
            random.usize(first..whole.len())
        };
        let last = last.min(whole.len() - 1);
        let part = body.range(first as u64..last as u64 + 1);
        let mut bytes = Vec::new();
        for slice in part.slices() {
            match slice {
                Slice::Generated { bytes: made, range } => bytes.extend(&made[range.clone()]),
                Slice::Packets { block, range } => {
                    let piece = [1, 3, 100, 70_000][random.usize(0..4)];
                    let piece = if range.end - range.start > 100_000 { 70_000 } else { piece };
                    bytes.extend(packets(block, range.clone(), &title.data, piece));
                }
                other => panic!("{other:?} in a transport stream"),
            }
        }
        assert!(bytes == whole[first..=last], "seed {seed}: {first} to {last}");
    }
}

#[test]
fn the_clock_runs_on_through_pauses_and_beyond_the_pictures_and_wraps() {
    let waiting = |mut track: TrackIndex, millis: i64| {
        let edit = |duration, media_time| Edit { duration, media_time };
        track.description.edits =
            vec![edit(Some(MediaTime(millis * 1_000_000)), None), edit(None, Some(0))];
        track
    };
    let twenty_seven_hours = 27 * 3600;
    // Tracks, and the durations of segments in seconds, as far as they are not the usual ones.
    let table: [(&str, Vec<TrackIndex>); 6] = [
        ("a picture each 5 s", vec![pictures(10, 5000, |_| 504), sound(100)]),
        ("sound goes on", vec![pictures(50, 40, |_| 504), sound(400)]),
        ("sound goes on a little", vec![pictures(50, 40, |_| 504), sound(90)]),
        ("sound begins late", vec![pictures(100, 40, |_| 504), waiting(sound(80), 1300)]),
        ("pictures begin late", vec![waiting(pictures(50, 40, |_| 504), 3000), sound(250)]),
        ("no sound", vec![pictures(50, 40, |_| 504)]),
    ];
    for (what, tracks) in table {
        let (title, packaging) = title(tracks, fill);
        ts::check_hls(what, &packaging.transport_multivariant(&[0], ""), &mut |uri| {
            fetch(&title, &packaging, uri)
        });
        assert_eq!(whole_length(&packaging, 0), packaging.duration(), "{what}");
        assert_filled(&title, &Arc::new(packaging), 0, what);
    }
    let (title, packaging) = title(vec![pictures(twenty_seven_hours, 1000, |_| 12)], fill);
    // 33 bits of 90 kHz are 26.5 h: the time at which they wrap, less the origin.
    let wraps = u32::try_from(((1u64 << 33) - ORIGIN) / 90_000 / 25).unwrap();
    let around = (wraps - 1..wraps + 3).map(|number| {
        title.bytes(&packaging.transport_segment(0, number).expect("within 27 hours"))
    });
    let streams = ts::check(&around.collect::<Vec<_>>()).unwrap();
    let shown = || streams[0].packets.iter().map(|packet| packet.shown);
    assert!(shown().min().unwrap() < 90_000 * 60 && shown().max().unwrap() > 1 << 32);
}

/// The length of a playlist.
fn whole_length(packaging: &Packaging, track: u16) -> Duration {
    (0..).map_while(|number| packaging.transport_segment_duration(track, number)).sum()
}

/// NAL units of pictures, for sizes that are multiples of 12, and sync words of sound.
fn fill(kind: TrackKind, bytes: &mut [u8]) {
    bytes.fill(0xff);
    if kind == TrackKind::Video {
        let units = bytes.chunks_exact_mut(12);
        units.for_each(|it| it.copy_from_slice(&[0, 0, 0, 8, 0x65, 1, 1, 1, 1, 1, 1, 1]));
    }
}

#[test]
fn tracks_without_a_form_are_refused_with_the_reason_and_not_listed() {
    let of = |kind: &[u8; 4], codec: &str, mut track: TrackIndex| {
        track.description.codec = codec.to_owned();
        track.description.sample_entry = entry(kind, 4);
        track
    };
    let video = || pictures(50, 40, |_| 96);
    let av1 = || of(b"av01", "av01.0.04M.08", video());
    let opus = || of(b"Opus", "opus", sound(50));
    let short_lengths = || {
        let mut track = video();
        track.description.sample_entry = entry(b"avc1", 2);
        track
    };
    let reason = |tracks: Vec<TrackIndex>| title(tracks, |_, _| {}).1.transport_offers();
    let said = |tracks| reason(tracks).unwrap_err().to_string();
    assert_eq!(
        said(vec![av1(), sound(50)]),
        "its video cannot go out in an MPEG transport stream: av01.0.04M.08 has no form there; \
         H.264, HEVC, MPEG-1, MPEG-2 and MPEG-4 part 2 have"
    );
    assert_eq!(
        said(vec![video(), opus()]),
        "its audio cannot go out in an MPEG transport stream: opus has no form there; AAC, AC-3, \
         E-AC-3 and MPEG audio have"
    );
    assert_eq!(
        said(vec![short_lengths()]),
        "its video cannot go out in an MPEG transport stream: the lengths of its NAL units have \
         other than four bytes"
    );
    assert_eq!(reason(vec![video(), av1(), opus(), sound(50)]), Ok(vec![vec![0, 3]]));
    assert_eq!(reason(vec![opus(), sound(50)]), Ok(vec![vec![1]]));
    let (_, packaging) = title(vec![video(), av1(), opus(), sound(50)], |_, _| {});
    let multivariant = packaging.transport_multivariant(&[0, 1], "");
    assert!(!multivariant.contains("1-ts.m3u8") && !multivariant.contains("2-ts.m3u8"));
    assert_eq!(
        (packaging.transport_playlist(1, ""), packaging.transport_segment(2, 0)),
        (None, None)
    );
}

#[test]
fn other_sounds_of_the_codec_are_renditions_of_their_own() {
    let mut english = sound(90);
    english.description.language = "eng".to_owned();
    let mut german = sound(90);
    (german.description.language, german.description.default) = ("deu".to_owned(), false);
    let (title, packaging) = title(vec![pictures(50, 40, |_| 504), english, german], fill);
    let text = packaging.transport_multivariant(&[0], "?s=T");
    let of_sounds: Vec<&str> = text.lines().filter(|it| it.starts_with("#EXT-X-MEDIA:")).collect();
    assert_eq!(
        of_sounds,
        [
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio\",NAME=\"English\",LANGUAGE=\"en\",\
             DEFAULT=YES,AUTOSELECT=YES",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio\",NAME=\"German\",LANGUAGE=\"de\",\
             DEFAULT=NO,AUTOSELECT=YES,URI=\"2-ts.m3u8?s=T\"",
        ]
    );
    let playlists = checked(&title, &packaging);
    assert_eq!(playlists.iter().map(|it| it.streams.len()).collect::<Vec<_>>(), [2, 1]);
    // ISO 639 language descriptor.
    assert_eq!(playlists[1].streams[0].descriptors, b"\x0a\x04deu\0");
}

#[test]
fn excerpts_have_their_parts_in_transport_streams() {
    let (title, packaging) = title(vec![pictures(150, 40, |_| 504), sound(250)], fill);
    let excerpts = [
        (
            "start=2&stop=4",
            media::Excerpt {
                start: 2 * SECOND,
                stop: Some(4 * SECOND),
                ..media::Excerpt::default()
            },
        ),
        ("skip=1", media::Excerpt { skip: 1, ..media::Excerpt::default() }),
        ("speed=-1", media::Excerpt { backwards: true, ..media::Excerpt::default() }),
    ];
    for (what, wanted) in excerpts {
        let part = packaging.excerpt(&wanted).unwrap();
        let playlists = ts::check_hls(what, &part.transport_multivariant(&[0], ""), &mut |uri| {
            fetch(&title, &part, uri)
        });
        let expected = if wanted.stop.is_some() { 2 } else { 1 };
        assert_eq!(playlists[0].streams.len(), expected, "{what}");
        assert_eq!(playlists[0].streams[0].packets[0].shown, ORIGIN, "{what}");
    }
}

/// Faults in good segments, and what the checker says of each.
#[test]
fn the_checker_finds_planted_faults() {
    let (title, packaging) = title(vec![pictures(75, 40, |_| 1200), sound(125)], fill);
    let good = segments(&title, &packaging, 0);
    assert_eq!((good.len(), ts::check(&good).unwrap().len()), (3, 2));
    type Fault = fn(&mut Vec<Vec<u8>>);
    let table: [(&str, Fault); 14] = [
        ("sync byte", |all| all[0][188 * 5] = 0x48),
        ("188", |all| all[0].truncate(188 * 4 + 3)),
        ("CRC_32", |all| all[1][188 + 14] ^= 1),
        ("instead of a PMT", |all| drop(all[0].drain(188..376))),
        ("not a PAT", |all| drop(all[0].drain(..188))),
        ("continuity_counter", |all| drop(all[0].drain(188 * 4..188 * 5))),
        ("continuity_counter", |all| drop(all.remove(1))),
        ("stuffing_byte", |all| all[0][188 * 2 + 5] &= !0x10),
        ("PCR after", |all| all[1][188 * 2 + 8] ^= 0x80),
        ("reserved bits of a PCR", |all| all[0][188 * 2 + 10] &= !0x7e),
        ("markers of a time stamp", |all| all[0][188 * 2 + 12 + 9] &= !1),
        ("PES_packet_length", |all| all[0][188 * 2 + 12 + 5] ^= 1),
        ("begins with no start code", |all| all[0][188 * 2 + 12 + 14] = 1),
        ("random access without parameter sets", |all| all[0][188 * 2 + 12 + 14 + 10] = 0x66),
    ];
    for (number, (wanted, plant)) in table.into_iter().enumerate() {
        let mut bad = good.clone();
        plant(&mut bad);
        let why = ts::check(&bad).map(|_| ()).expect_err(wanted);
        assert!(why.contains(wanted) || wanted == "188", "fault {number}: {why}, not {wanted}");
    }
}
