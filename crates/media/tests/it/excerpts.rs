//! Excerpts of titles, decoded: exactly the requested frames of the source, in the right order and
//! at the right times.

use crate::footage::{Folder, Title, make, read, remux};
use crate::playback::{Frame, decode, decode_ours};
use media::{Excerpt, ExcerptError};
use std::ops::Range;
use std::path::PathBuf;
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
    (1000, Some(1500), 0, false, &[2, 3]),
    (980, Some(1430), 0, false, &[2]),
    (940, Some(1460), 0, false, &[1, 2, 3]),
    (1000, None, 0, false, &[2, 3, 4]),
    (0, Some(1), 0, false, &[0]),
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
        for (start, stop, skip, backwards, groups) in ROWS {
            let wanted = Excerpt {
                start: ms(*start),
                stop: stop.map(ms),
                skip: *skip,
                backwards: *backwards,
            };
            let what = format!("{name}: {wanted:?}");
            for segment in [ms(400), ms(1000)] {
                let excerpt = title.packaging(segment).excerpt(&wanted).expect(&what);
                let hls = title.write_hls(&excerpt, &folder);
                let given = from_first_picture(decode_ours(&hls));
                let pictures = in_turn(&source[0], groups);
                let length = ms(groups.len() as u64 * 480);
                let from = *groups.first().unwrap() * GROUP;
                if *skip > 0 || *backwards {
                    assert_eq!(given.len(), 1, "{what}: pictures alone");
                    let off = excerpt.duration().abs_diff(length);
                    assert!(off < ms(10), "{what}: {:?}", excerpt.duration());
                    assert_frames(&pictures, &given[0], &what);
                } else {
                    assert_frames(&pictures, &given[0], &what);
                    assert_sound(&source[1], &given[1], (from, groups.len()), &what);
                    if encode.ends_with("flac") {
                        let same = given[1].iter().all(|f| source[1].iter().any(|w| w.1 == f.1));
                        assert!(same, "{what}: the sound is the source's");
                    }
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

#[test]
fn impossible_excerpts_are_refused() {
    let folder = Folder::new("no-excerpts");
    let h264 = "-c:v libx264 -preset veryfast -bf 2 -g 12 -c:a aac";
    let (_, film) = footage(&folder, "film.mp4", h264);
    let (_, open) = footage(&folder, "open.mpg", "-c:v mpeg2video -bf 2 -g 12 -c:a ac3");
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
    let all: Vec<Range<u64>> = packaging.runs_shown(0).into_iter().map(|run| run.0).collect();
    assert_eq!(all.first().unwrap().start, 0);
    assert_eq!(all.last().unwrap().end, ldus.data_len());
}
