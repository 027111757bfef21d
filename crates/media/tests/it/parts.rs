//! Streams that are cut into parts: together the parts have every LDU once, each with its time.

use crate::footage::{Folder, Title, ffmpeg, read, remux};
use media::{
    Checksums, FragmentReader, FragmentSink, LduIndex, TrackDescription, TrackIndex, TrackKind,
};
use std::path::PathBuf;
use std::time::Duration;
use units::MediaTime;

/// A part as a store would have it: for each track its index and its bytes.
type Part = Vec<(TrackIndex, Vec<u8>)>;

/// Collects the parts of a stream.
#[derive(Default)]
struct Parts {
    present: Part,
    next: Part,
    is_cut: Vec<bool>,
}

fn empty(tracks: &[TrackDescription]) -> Part {
    let track = |description: &TrackDescription| {
        let (ldus, description) = (LduIndex::default(), description.clone());
        (TrackIndex { description, ldus, data_len: 0, checksums: Checksums::default() }, Vec::new())
    };
    tracks.iter().map(track).collect()
}

impl FragmentSink for Parts {
    type Error = std::convert::Infallible;

    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), Self::Error> {
        (self.present, self.is_cut) = (empty(tracks), vec![false; tracks.len()]);
        Ok(())
    }

    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), Self::Error> {
        let part = if self.is_cut[track] { &mut self.next } else { &mut self.present };
        part[track].1.extend_from_slice(bytes);
        Ok(())
    }

    fn cut(&mut self, track: usize, tracks: &[TrackDescription]) -> Result<(), Self::Error> {
        assert!(!self.is_cut[track], "track {track} is cut twice");
        if self.next.is_empty() {
            self.next = empty(tracks);
        }
        self.is_cut[track] = true;
        Ok(())
    }
}

/// Appends to the tracks of a part what the reader knows of them, in two steps.
fn index(part: &mut Part, get: impl Fn(usize, usize, u64) -> media::IndexPart) {
    for (number, (track, bytes)) in part.iter_mut().enumerate() {
        let all = bytes.len() as u64;
        for arrived in [all / 2, all] {
            get(number, track.ldus.len(), arrived).append_to_track(track).unwrap();
        }
    }
}

/// The parts of a stream that arrives in pieces of `piece` bytes.
fn cut(stream: &[u8], length: Duration, piece: usize) -> Vec<Part> {
    let (mut reader, mut sink) = (FragmentReader::new().cut_into(length), Parts::default());
    let mut parts = Vec::new();
    for mut bytes in stream.chunks(piece) {
        loop {
            reader.push_part(&mut bytes, &mut sink).unwrap();
            if !reader.has_whole_part() {
                break;
            }
            index(&mut sink.present, |track, from, arrived| reader.part(track, from, arrived));
            parts.push(std::mem::take(&mut sink.present));
            sink.present = std::mem::take(&mut sink.next);
            sink.is_cut.fill(false);
            reader.forget_part();
        }
    }
    index(&mut sink.present, |track, from, arrived| reader.part(track, from, arrived));
    parts.push(sink.present);
    if !sink.next.is_empty() {
        index(&mut sink.next, |track, from, arrived| reader.next_part(track, from, arrived));
        parts.push(sink.next);
    }
    parts
}

/// When each LDU of a track is shown: pictures by their presentation time.
fn times(track: &TrackIndex) -> Vec<MediaTime> {
    let TrackDescription { edits, timescale, kind, .. } = &track.description;
    let wait = edits.first().filter(|edit| edit.media_time.is_none());
    let wait = wait.and_then(|edit| edit.duration).unwrap_or(MediaTime::ZERO);
    let hidden = edits.iter().find_map(|edit| edit.media_time).unwrap_or(0);
    let shown = |ldu: media::Ldu| {
        let offset = if *kind == TrackKind::Video { i64::from(ldu.composition_offset) } else { 0 };
        let ticks = i64::try_from(ldu.decode_time).unwrap() + offset - hidden;
        wait + MediaTime::from_ticks(ticks, *timescale)
    };
    track.ldus.iter().map(shown).collect()
}

/// What of an LDU must be the same in a part.
fn content(track: &TrackIndex) -> Vec<(u32, u32, i32, bool)> {
    let of = |ldu: media::Ldu| (ldu.size, ldu.duration, ldu.composition_offset, ldu.sync);
    track.ldus.iter().map(of).collect()
}

fn assert_whole(parts: &[Part], whole: &Title, what: &str) {
    for (number, track) in whole.index.tracks.iter().enumerate() {
        let of = |part: &Part| (content(&part[number].0), part[number].1.clone());
        let (ldus, bytes): (Vec<_>, Vec<_>) = parts.iter().map(of).unzip();
        assert_eq!(ldus.concat(), content(track), "{what}, track {number}");
        assert!(bytes.concat() == whole.data[number], "{what}, bytes of track {number}");
    }
    // Each part begins where the leading track says, and all tracks are in step with it.
    let mut first = vec![0; whole.index.tracks.len()];
    for (k, part) in parts.iter().enumerate() {
        let leads = &whole.index.tracks[0];
        let begins = if k == 0 { MediaTime::ZERO } else { times(leads)[first[0]] };
        for (number, (track, _)) in part.iter().enumerate() {
            let all = times(&whole.index.tracks[number]);
            for (i, time) in times(track).iter().enumerate() {
                let error = (begins + *time - all[first[number] + i]).0.abs();
                assert!(error <= TICK, "{what}, part {k}, track {number}, LDU {i}: {error} ns");
            }
            first[number] += track.ldus.len();
        }
        let starts = part[0].0.ldus.get(0);
        assert!(starts.sync, "{what}, part {k} begins with a key frame");
    }
}

/// A tick of the coarsest track, in nanoseconds: sound of 48 kHz.
const TICK: i64 = 21_000;

/// Pictures in groups of half a second, and sound, of eight seconds.
fn footage(folder: &Folder, name: &str, how: &str) -> PathBuf {
    let path = folder.file(name);
    let words =
        format!("-f lavfi -i testsrc2=s=160x90:r=25:d=8 -f lavfi -i sine=d=8:r=48000 {how} FILE");
    ffmpeg(&words, &[&path]);
    path
}

#[test]
fn the_parts_of_a_stream_have_every_ldu_once_and_in_time() {
    let folder = Folder::new("parts");
    let closed = "-c:v libx264 -preset ultrafast -g 12 -bf 2 -c:a aac";
    let open = "-c:v libx264 -preset veryfast -g 12 -bf 2 -x264-params open-gop=1 -c:a libmp3lame";
    let sound = "-vn -c:a aac";
    for (name, how) in [("closed.mp4", closed), ("open.ts", open), ("sound.mp4", sound)] {
        let stream = remux(&footage(&folder, name, how), "mp4", "");
        let whole = read(&stream, 4096);
        // Key frames are 0.48 s apart. Fragments are a second long, and their tracks come one after
        // the other, so that shorter parts become longer.
        for (millis, pictures, sounds) in
            [(400, None, None), (1000, Some(6), Some(8)), (1900, Some(5), Some(5))]
        {
            for piece in [977, 65_536, stream.len()] {
                let parts = cut(&stream, Duration::from_millis(millis), piece);
                let what = format!("{name}, parts of {millis} ms, pieces of {piece}");
                assert_whole(&parts, &whole, &what);
                let count = if how == sound { sounds } else { pictures };
                assert_eq!(parts.len(), count.unwrap_or(parts.len().max(7)), "{what}");
            }
        }
    }
}

/// A sound that goes on 0.2 s before the first key frame behind a gap is in the part of its
/// pictures: the part before the gap lasts as long as they do.
#[test]
fn sound_behind_a_gap_is_with_its_pictures() {
    let folder = Folder::new("gap-sound");
    let path = folder.file("gap.mp4");
    let words = "-f lavfi -i testsrc2=s=160x90:r=25:d=6 -f lavfi -i sine=d=6:r=48000 -vf \
                 setpts=PTS+gte(T\\,4)*3.2/TB -af asetpts=PTS+gte(T\\,4)*3/TB -vsync vfr -c:v \
                 libx264 -preset ultrafast -g 250 -force_key_frames 7.2 -c:a libmp3lame FILE";
    ffmpeg(words, &[&path]);
    let stream = remux(&path, "mp4", "");
    let parts = cut(&stream, Duration::from_secs(60), 4096);
    let spans = parts.iter().map(|part| {
        part.iter().map(|(track, _)| {
            let times = times(track);
            let of = |time: Option<&MediaTime>| time.unwrap().as_secs_f64();
            [of(times.iter().min()), of(times.iter().max())]
        })
    });
    let found: Vec<Vec<[f64; 2]>> = spans.map(Iterator::collect).collect();
    let wanted = [[[0.0, 3.96], [0.0, 3.98]], [[0.2, 2.16], [0.0, 2.0]]];
    for (found, wanted) in
        found.iter().flatten().flatten().zip(wanted.as_flattened().as_flattened())
    {
        assert!((found - wanted).abs() < 0.1, "{found}, not {wanted}");
    }
    assert_eq!(found.len(), 2);
}

#[test]
fn a_part_begins_behind_a_gap_in_the_times() {
    let folder = Folder::new("gap");
    let path = folder.file("gap.mp4");
    // From the fourth second on all is three seconds later.
    let words = "-f lavfi -i testsrc2=s=160x90:r=25:d=6 -f lavfi -i sine=d=6:r=48000 -vf \
                 setpts=PTS+gte(T\\,4)*3/TB -af asetpts=PTS+gte(T\\,4)*3/TB -vsync vfr -c:v libx264 \
                 -preset ultrafast -g 250 -force_key_frames 7 -c:a libmp3lame FILE";
    ffmpeg(words, &[&path]);
    let stream = remux(&path, "mp4", "");
    let whole = read(&stream, 4096);
    let parts = cut(&stream, Duration::from_secs(60), 4096);
    let pictures: Vec<usize> = parts.iter().map(|part| part[0].0.ldus.len()).collect();
    assert_eq!(pictures, [100, 50]);
    for number in 0..2 {
        let bytes = parts.iter().map(|part| part[number].1.clone()).collect::<Vec<_>>();
        assert!(bytes.concat() == whole.data[number], "bytes of track {number}");
        // The gap is in no part: each lasts as long as what is in it.
        let lasts = |part: &Part| {
            let TrackIndex { ldus, description, .. } = &part[number].0;
            let ticks = i64::try_from(ldus.duration_ticks()).unwrap();
            MediaTime::from_ticks(ticks, description.timescale).as_secs_f64()
        };
        for (part, wanted) in parts.iter().zip([4.0, 2.0]) {
            assert!((lasts(part) - wanted).abs() < 0.1, "track {number}: {} s", lasts(part));
        }
    }
}
