//! Excerpts of titles, decoded: exactly the requested frames of the source, in the right order and
//! at the right times. In a file they are all that FFmpeg shows; in segments they are what is shown
//! from the time that the playlist says, except for pictures behind the last one.

use crate::footage::{Folder, Title, clip, make, read, remux};
use crate::playback::{Frame, convert_at_once, decode, decode_each_of_ours, decode_parts};
use media::{Excerpt, ExcerptError};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of pictures in a group: 12 of 25 in a second, which is 480 ms. There are five groups.
const GROUP: usize = 12;

fn footage(folder: &Folder, name: &str, encode: &str) -> (PathBuf, Title) {
    let source = make(folder, name, encode);
    let title = read(&remux(&source, "mp4", ""), 1 << 16);
    (source, title)
}

/// The streams with times counted from the first picture.
fn from_first_picture(mut streams: Vec<Vec<Frame>>) -> Vec<Vec<Frame>> {
    let first = streams[0][0].0;
    streams.iter_mut().flatten().for_each(|frame| frame.0 -= first);
    streams
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The frames of these groups of a source, shown one after the other.
fn in_turn(source: &[Frame], groups: &[usize]) -> Vec<Frame> {
    let frames = groups.iter().flat_map(|group| group * GROUP..(group + 1) * GROUP);
    frames.zip(0..).map(|(i, n)| (f64::from(n) / 25.0, source[i].1.clone())).collect()
}

#[track_caller]
fn assert_frames(wanted: &[Frame], given: &[Frame], what: &str) {
    let sums = |frames: &[Frame]| frames.iter().map(|f| f.1.clone()).collect::<Vec<_>>();
    assert_eq!(sums(given), sums(wanted), "{what}");
    for (i, (wanted, given)) in wanted.iter().zip(given).enumerate() {
        let off = (wanted.0 - given.0).abs();
        assert!(off < 0.0015, "{what}: frame {i} is {off:.4} s off");
    }
}

/// Start, stop, skip, backwards, and the groups that must be shown.
type Row = (u64, Option<u64>, u32, bool, &'static [usize]);

const ROWS: &[Row] = &[
    (0, None, 0, false, &[0, 1, 2, 3, 4]),
    (960, Some(1440), 0, false, &[2]),
    (480, Some(1920), 0, false, &[1, 2, 3]),
    (960, None, 0, false, &[2, 3, 4]),
    (0, Some(480), 0, false, &[0]),
    (0, None, 1, false, &[0, 2, 4]),
    (500, None, 2, false, &[1, 4]),
    (0, None, 0, true, &[4, 3, 2, 1, 0]),
    (0, Some(2000), 1, true, &[4, 2, 0]),
    (500, Some(1500), 1, true, &[3, 1]),
];

#[test]
fn the_requested_groups_are_decoded_and_no_others() {
    for (name, encode) in [
        ("h264.mp4", "-c:v libx264 -preset veryfast -bf 2 -g 12 -c:a aac"),
        ("vp9.mp4", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 12 -c:a aac"),
        ("av1.mkv", "-c:v libsvtav1 -preset 12 -g 12 -c:a flac"),
    ] {
        let folder = Folder::new(&format!("excerpts-{name}"));
        let (source, title) = footage(&folder, name, encode);
        let source = from_first_picture(decode(&source));
        let (mut excerpts, mut written, mut folders) = (Vec::new(), Vec::new(), Vec::new());
        for (row, segment) in ROWS.iter().flat_map(|row| [(row, ms(400)), (row, ms(1000))]) {
            let (start, stop, skip, backwards, groups) = *row;
            let wanted = Excerpt { start: ms(start), stop: stop.map(ms), skip, backwards };
            let what = format!("{name}: {wanted:?}");
            let excerpt = title.packaging(segment).excerpt(&wanted).expect(&what);
            let folder = folder.within(&excerpts.len().to_string());
            written.push(title.write_hls(&excerpt, &folder));
            folders.push(folder);
            excerpts.push((what, excerpt, skip > 0 || backwards, groups));
        }
        let decoded = decode_each_of_ours(&written).into_iter().map(from_first_picture);
        for ((what, excerpt, is_of_pictures, groups), given) in excerpts.iter().zip(decoded) {
            let pictures = in_turn(&source[0], groups);
            let length = ms(groups.len() as u64 * 480);
            let from = *groups.first().unwrap() * GROUP;
            assert_frames(&pictures, &given[0], what);
            if *is_of_pictures {
                assert_eq!(given.len(), 1, "{what}: pictures alone");
                let off = excerpt.duration().abs_diff(length);
                assert!(off < ms(10), "{what}: {:?}", excerpt.duration());
            } else {
                assert_sound(&source[1], &given[1], (from, groups.len()), what);
                if encode.ends_with("flac") {
                    let same = given[1].iter().all(|f| source[1].iter().any(|w| w.1 == f.1));
                    assert!(same, "{what}: the sound is the source's");
                }
            }
        }
    }
}

/// Asserts that the audio is the source's beside these pictures: as many frames, at their times.
/// (AAC decodes differently if the decoder has not seen the packets before.)
#[track_caller]
fn assert_sound(source: &[Frame], given: &[Frame], (from, groups): (usize, usize), what: &str) {
    #[expect(clippy::cast_precision_loss, reason = "a few frames")]
    let (from, to) = (from as f64 / 25.0, (from + groups * GROUP) as f64 / 25.0);
    let beside: Vec<Frame> = source
        .iter()
        .filter(|frame| (from == 0.0 || frame.0 + 1e-4 >= from) && frame.0 + 1e-4 < to)
        .map(|frame| (frame.0 - from, frame.1.clone()))
        .collect();
    assert_eq!(given.len(), beside.len(), "{what}: frames of sound");
    for (i, (given, wanted)) in given.iter().zip(&beside).enumerate() {
        let off = (given.0 - wanted.0).abs();
        assert!(off < 0.0015, "{what}: frame {i} of sound is {off:.4} s off");
    }
}

/// Footage whose frames can be told apart: pictures with a counter, and a tone that rises. Name,
/// encoder options, muxer for ingest.
const CLIPPED: &[(&str, &str, &str)] = &[
    ("closed.mp4", "-c:v libx264 -preset veryfast -bf 3 -g 12 -c:a aac", "mp4"),
    ("open.mp4", "-c:v libx264 -x264-params open-gop=1:keyint=12:bframes=3 -c:a aac", "mp4"),
    ("open.mpg", "-c:v mpeg2video -bf 2 -g 12 -c:a ac3", "mp4"),
    (
        "hevc.mkv",
        "-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=12:bframes=2 -c:a flac",
        "mp4",
    ),
    (
        "ntsc.mov",
        "-vf settb=1001/30000,setpts=N -fps_mode passthrough -enc_time_base:v 1001/30000 \
         -c:v libx264 -preset veryfast -bf 2 -g 15 -c:a pcm_s16le",
        "mov",
    ),
    (
        "vfr.mp4",
        "-vf settb=1/1000,setpts=N*40+mod(N*N\\,7)*4 -fps_mode passthrough -enc_time_base:v 1/1000 \
         -c:v libx264 -preset veryfast -bf 2 -g 12 -c:a libopus",
        "mp4",
    ),
];

/// Starts and stops in ms: in the middle of groups, at key frames, beside a picture's time, at the
/// ends.
const CLIPS: &[(u64, Option<u64>)] =
    &[(1, Some(700)), (960, Some(1440)), (1034, Some(1501)), (1700, None)];

/// One picture in the middle of a group. After the key frame of an open group of H.264 FFmpeg drops
/// pictures until its decoder has seen some, so that it shows none of so short a clip.
const ONE_PICTURE: (u64, Option<u64>) = (1034, Some(1035));

#[test]
fn a_clip_is_exact_to_the_frame() {
    for (name, encode, muxer) in CLIPPED {
        let folder = Folder::new(&format!("clips-{name}"));
        let inputs = "-f lavfi -i testsrc2=s=160x90:r=25:d=2.4 \
                      -f lavfi -i aevalsrc=sin(2*PI*(300+400*t)*t):d=2.4:s=48000";
        let source = clip(&folder, name, &format!("{inputs} {encode}"));
        let title = read(&remux(&source, muxer, ""), 1 << 16);
        // The title as it is served is the reference: a container may begin at any time.
        let packaging = title.packaging(ms(900));
        let whole = title.write_progressive(&packaging, &folder);
        let one_picture = Some(&ONE_PICTURE).filter(|_| *name != "open.mp4");
        let clips: Vec<_> = CLIPS.iter().chain(one_picture).collect();
        let (mut files, mut lists, mut folders) = (vec![whole], Vec::new(), Vec::new());
        for (number, (start, stop)) in clips.iter().enumerate() {
            let wanted = Excerpt { start: ms(*start), stop: stop.map(ms), ..Excerpt::default() };
            let clip = packaging.excerpt(&wanted).expect(name);
            let folder = folder.within(&number.to_string());
            files.push(title.write_progressive(&clip, &folder));
            lists.push(title.write_hls(&clip, &folder));
            folders.push(folder);
        }
        let mut sounds = samples(&files).into_iter();
        let mut of_files = decode_parts(&files).into_iter();
        let of_lists = decode_parts(&lists).into_iter();
        let (pictures, sound) = (of_files.next().unwrap().remove(0), sounds.next().unwrap());
        let given = of_files.zip(sounds).zip(of_lists.zip(&folders));
        for ((start, stop), ((of_file, sound_of_file), (of_list, folder))) in
            clips.into_iter().zip(given)
        {
            let what = format!("{name}: {start} to {stop:?}");
            let (first, end) = bounds(&pictures, *start, *stop);
            // Sound may begin before the pictures.
            let zero = match first {
                0 => pictures[0].0.min(ms(*start).as_secs_f64()),
                _ => pictures[first].0,
            };
            let wanted: Vec<Frame> =
                pictures[first..end].iter().map(|f| (f.0 - zero, f.1.clone())).collect();

            assert_frames(&wanted, &of_file[0], &format!("{what}, file"));
            let until = pictures.get(end).map(|frame| frame.0);
            // Opus is not the same to the bit until its decoder has heard more.
            let allowed = if encode.ends_with("libopus") { 0.02 } else { 0.001 };
            assert_same_sound(&sound, &sound_of_file, (zero, until), allowed, &what);
            assert_played_from_start(&folder.file("0.m3u8"), &wanted, &of_list[0], &what);
        }
    }
}

/// The first frame of a clip and the first behind it: those whose times, rounded to the
/// millisecond, are at or after its start and its stop.
fn bounds(frames: &[Frame], start: u64, stop: Option<u64>) -> (usize, usize) {
    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
    let at = |ms: u64| frames.iter().position(|f| (f.0 * 1000.0).round() >= ms as f64);
    let first = at(start).expect("the start is within the footage");
    // A clip has one picture at least.
    let end = stop.and_then(at).unwrap_or(frames.len());
    (first, end.max(first + 1))
}

/// Asserts that a player that starts where the playlist says shows what is wanted, and after it at
/// most the pictures that are decoded before the last one.
#[track_caller]
fn assert_played_from_start(playlist: &Path, wanted: &[Frame], given: &[Frame], what: &str) {
    let text = std::fs::read_to_string(playlist).unwrap();
    let tag = "#EXT-X-START:TIME-OFFSET=";
    let from = text.lines().find_map(|line| line.strip_prefix(tag)?.strip_suffix(",PRECISE=YES"));
    let from: f64 = from.map_or(0.0, |from| from.parse().unwrap());
    // At a key frame there is no tag; pictures of an open group may come before it.
    let key_frame = || given.iter().position(|frame| frame.1 == wanted[0].1);
    // The picture that a player shows at a time is the last one that begins by then.
    let at_start = || given.iter().rposition(|frame| frame.0 <= from + 1e-4).or(Some(0));
    let first = if from > 0.0 { at_start() } else { key_frame() }.expect(what);
    let zero = if from > 0.0 { from } else { given[first].0 - wanted[0].0 };
    let shown: Vec<Frame> = given[first..].iter().map(|f| (f.0 - zero, f.1.clone())).collect();
    let behind = shown.len().checked_sub(wanted.len()).expect(what);
    assert!(behind <= 3, "{what}: {behind} pictures more than wanted");
    assert_frames(wanted, &shown[..wanted.len()], &format!("{what}, segments from {from}"));
}

/// The sound of each file as samples, decoded by FFmpeg. Before its first time there is silence.
fn samples(paths: &[PathBuf]) -> Vec<Vec<f64>> {
    let from_zero = "-map N:a -af aresample=async=1:first_pts=0 -ac 1 -ar 48000 -f s16le";
    let samples = |bytes: Vec<u8>| {
        let pairs = bytes.chunks_exact(2);
        pairs.map(|pair| f64::from(i16::from_le_bytes([pair[0], pair[1]]))).collect()
    };
    convert_at_once("-v error -copyts", from_zero, paths).into_iter().map(samples).collect()
}

/// Asserts that sound is that of the whole title between two times, to the sample.
#[track_caller]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few seconds")]
fn assert_same_sound(
    whole: &[f64],
    given: &[f64],
    (from, until): (f64, Option<f64>),
    allowed: f64,
    what: &str,
) {
    let sample = |time: f64| (time * 48_000.0).round() as usize;
    let wanted = &whole[sample(from).min(whole.len())..];
    let wanted =
        &wanted[..until.map_or(wanted.len(), |until| sample(until - from).min(wanted.len()))];
    // FFmpeg ends sound with a packet.
    assert!(given.len() >= wanted.len(), "{what}: {} of {} samples", given.len(), wanted.len());
    assert!(
        given.len() - wanted.len() < 4800,
        "{what}: {} samples more",
        given.len() - wanted.len()
    );
    let error: f64 = wanted.iter().zip(given).map(|(a, b)| (a - b).powi(2)).sum();
    let power: f64 = wanted.iter().map(|a| a.powi(2)).sum();
    assert!(error <= allowed * power, "{what}: sound differs by {:.4}", error / power);
}

/// Titles with pauses and reordered pictures, and one whose pictures begin late.
const PAUSES: &[(&str, &str)] = &[
    (
        "pause.mp4",
        "-f lavfi -i testsrc2=s=160x90:r=25:d=6 -f lavfi -i sine=r=48000:d=6 \
         -vf select=lt(t\\,2)+gt(t\\,4) -fps_mode vfr -c:v libx264 -bf 2 -g 25 -c:a aac",
    ),
    (
        "dropped.mp4",
        "-f lavfi -i testsrc2=s=160x90:r=25:d=6 \
         -vf select=not(mod(n\\,7)*lt(mod(n\\,50)\\,20)) -fps_mode vfr -c:v libx264 -bf 2 -g 50",
    ),
    (
        "late.mp4",
        "-f lavfi -i sine=r=48000:d=5 -itsoffset 2 -f lavfi -i testsrc2=s=160x90:r=25:d=3 \
         -map 1:v -map 0:a -fps_mode vfr -c:v libx264 -bf 2 -g 25 -c:a aac",
    ),
];

#[test]
fn pauses_lose_no_pictures_where_groups_come_in_another_order() {
    for (name, words) in PAUSES {
        let folder = Folder::new(&format!("pauses-{name}"));
        let title = read(&remux(&clip(&folder, name, words), "mp4", ""), 1 << 16);
        let ldus = &title.index.tracks[0].ldus;
        let packaging = title.packaging(ms(1000));
        let groups: Vec<usize> =
            (0..ldus.len()).filter(|&i| ldus.get(i).sync).chain([ldus.len()]).collect();
        let pictures = |group: usize| groups[group + 1] - groups[group];
        let count = groups.len() - 1;
        for (skip, backwards) in [(0, true), (1, false), (1, true)] {
            let what = format!("{name}: skip {skip}, {backwards}");
            let wanted = Excerpt { skip, backwards, ..Excerpt::default() };
            let excerpt = packaging.excerpt(&wanted).expect(&what);
            let folder = folder.within(&format!("{skip}-{backwards}"));
            let decoded = from_first_picture(decode(&title.write_hls(&excerpt, &folder)));
            let mut shown: Vec<usize> = (0..count).step_by(skip as usize + 1).collect();
            if backwards {
                shown.reverse();
            }
            let all: usize = shown.iter().map(|&group| pictures(group)).sum();
            assert_eq!(decoded[0].len(), all, "{what}");
            assert!(decoded[0].windows(2).all(|pair| pair[0].0 < pair[1].0), "{what}");
            let last = decoded[0].last().unwrap().0;
            let length = excerpt.duration().as_secs_f64();
            assert!(last < length, "{what}: {last} of {length}");
            // Groups are played in their own time.
            assert!(length < packaging.duration().as_secs_f64() + 0.1, "{what}: {length}");
            let rate = excerpt.lowest_constant_rate(0).unwrap();
            assert!(rate.0 < 20_000_000, "{what}: {rate:?}");
        }
    }
}

#[test]
fn impossible_excerpts_are_refused() {
    let folder = Folder::new("no-excerpts");
    let h264 = "-c:v libx264 -preset veryfast -bf 2 -g 12 -c:a aac";
    let (_, film) = footage(&folder, "film.mp4", h264);
    let (_, open) = footage(&folder, "open.mpg", "-c:v mpeg2video -bf 2 -g 12 -c:a ac3");
    let gradual = "-c:v libx264 -x264-params intra-refresh=1:keyint=12:bframes=0 -c:a aac";
    let (_, gradual) = footage(&folder, "gradual.mp4", gradual);
    let (_, song) = footage(&folder, "song.m4a", "-vn -c:a aac");
    let second = Duration::from_secs(1);
    let why = |title: &Title, wanted: Excerpt| {
        title.packaging(second).excerpt(&wanted).map(|excerpt| excerpt.duration()).unwrap_err()
    };
    let all = Excerpt::default();
    let whole = film.packaging(second).duration();
    let beyond = ExcerptError::BeyondTheEnd(whole);
    assert_eq!(why(&film, Excerpt { start: whole, ..all }), beyond);
    assert_eq!(why(&film, Excerpt { start: Duration::MAX, ..all }), beyond);
    assert_eq!(why(&film, Excerpt { stop: Some(whole + ms(1)), ..all }), beyond);
    assert_eq!(
        why(&film, Excerpt { start: second, stop: Some(second), ..all }),
        ExcerptError::Empty
    );
    assert_eq!(why(&film, Excerpt { skip: 5, ..all }), ExcerptError::SkipsAll(5));
    assert_eq!(why(&film, Excerpt { skip: u32::MAX, ..all }), ExcerptError::SkipsAll(5));
    assert_eq!(why(&song, Excerpt { skip: 1, ..all }), ExcerptError::NoPictures);
    assert_eq!(why(&song, Excerpt { backwards: true, ..all }), ExcerptError::NoPictures);
    assert_eq!(why(&open, Excerpt { skip: 1, ..all }), ExcerptError::OpenGroups);
    assert_eq!(why(&gradual, Excerpt { backwards: true, ..all }), ExcerptError::OpenGroups);
    let part = Excerpt { start: ms(500), stop: Some(second), ..all };
    let sound = song.packaging(second).excerpt(&part).unwrap();
    assert!(sound.duration().abs_diff(ms(500)) < ms(45), "{:?}", sound.duration());
}

#[test]
fn played_bytes_are_listed_in_order() {
    let folder = Folder::new("excerpt-bytes");
    let (_, film) = footage(&folder, "film.mp4", "-c:v libx264 -preset veryfast -g 12 -c:a aac");
    let ldus = &film.index.tracks[0].ldus;
    let group = |group: usize| -> Range<u64> {
        let end = ldus.get((group + 1) * GROUP - 1);
        ldus.get(group * GROUP).offset..end.offset + u64::from(end.size)
    };
    let packaging = film.packaging(ms(900));
    let wanted = Excerpt { skip: 1, backwards: true, ..Excerpt::default() };
    let excerpt = packaging.excerpt(&wanted).unwrap();
    let runs = [(group(4), 0), (group(2), 0), (group(0), 960)];
    assert_eq!(excerpt.runs_shown(0), runs, "the first two are one segment");
    assert_eq!(excerpt.runs_shown(1), []);
    let exact = Excerpt { start: ms(960), stop: Some(ms(1440)), ..Excerpt::default() };
    assert_eq!(packaging.excerpt(&exact).unwrap().runs_shown(0), [(group(2), 0)]);
    // A file reads what its pictures are decoded from: here the last two groups, without the
    // pictures after 1.6 s.
    let clip = Excerpt { start: ms(1200), stop: Some(ms(1600)), ..Excerpt::default() };
    let read = packaging.excerpt(&clip).unwrap().runs_in_file(0);
    assert_eq!(read.first().unwrap(), &(group(2).start..read[0].0.end, 0));
    let end = read.last().unwrap().0.end;
    assert!(group(3).start < end && end < group(3).end, "{read:?}");
    assert!(read.windows(2).all(|pair| pair[0].0.end == pair[1].0.start), "{read:?}");
    let all: Vec<Range<u64>> = packaging.runs_shown(0).into_iter().map(|run| run.0).collect();
    assert_eq!(all.first().unwrap().start, 0);
    assert_eq!(all.last().unwrap().end, ldus.data_len());
}
