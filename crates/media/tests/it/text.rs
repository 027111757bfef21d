//! Text tracks for players: the cues of the title, at their times in each presentation of it, by
//! the rules of WebVTT, HLS and DASH.

use crate::footage::{Folder, Title, make, read, remux};
use media::{CueClock, Excerpt, Packaging, TextDescription, TextTrack};
use std::time::Duration;
use testkit::webvtt;

/// Start, end and text of each cue.
type Cues = &'static [(i64, i64, &'static str)];

const CUES: Cues = &[
    (100, 900, "<i>one</i>"),
    (800, 2300, "over both segments"),
    (960, 961, "a & b"),
    (1500, 1600, "late"),
    (5000, 6000, "after the end"),
];

fn text(about: TextDescription, cues: Cues) -> TextTrack {
    TextTrack::new(about, cues.iter().copied()).unwrap()
}

/// A film of 2.4 s with five text tracks.
fn film(folder: &Folder) -> Title {
    let how = "-c:v libx264 -preset veryfast -bf 2 -g 12 -sc_threshold 0 -c:a aac";
    let source = make(folder, "film.mp4", how);
    let mut title = read(&remux(&source, "mp4", ""), 1 << 16);
    let about = |language: &str| TextDescription {
        language: language.to_owned(),
        ..TextDescription::default()
    };
    title.index.texts = vec![
        text(about("eng"), CUES),
        text(TextDescription { default: true, ..about("fra") }, &CUES[..2]),
        text(TextDescription { forced: true, default: true, ..about("eng") }, &CUES[2..3]),
        text(TextDescription { hearing_impaired: true, ..about("eng") }, CUES),
        text(TextDescription { title: "Director's \"cut\"".to_owned(), ..about("eng") }, CUES),
        text(about("und"), CUES),
    ];
    title
}

/// The cues of a text track as a player shows them.
fn shown(packaging: &Packaging, text: u16) -> Vec<String> {
    let file = packaging.text_file(text, CueClock::Segments).expect("a text track");
    let (_, cues) = webvtt::parse(file.as_bytes()).unwrap();
    let one = |cue: &webvtt::FileCue| format!("{}-{} {}", cue.time.start, cue.time.end, cue.text());
    cues.iter().map(one).collect()
}

#[test]
fn cues_are_in_every_segment_in_which_they_are_shown() {
    let folder = Folder::new("text-segments");
    let title = film(&folder);
    let packaging = title.packaging(Duration::from_secs(1));
    // The rules of HLS and DASH, of all playlists and files.
    title.check_manifests(&packaging, "text");
    let of_segment = |number| -> Vec<String> {
        let text = packaging.text_segment(0, number).unwrap();
        let (_, cues) = webvtt::parse(text.as_bytes()).unwrap();
        cues.iter().map(webvtt::FileCue::text).collect()
    };
    // Of 0.96 s and 1.44 s.
    assert_eq!(packaging.segment_count(0), 2);
    assert_eq!(of_segment(0), ["one", "over both segments"]);
    assert_eq!(of_segment(1), ["over both segments", "a & b", "late", "after the end"]);
    assert_eq!(packaging.text_segment(0, 2), None);
    assert_eq!(packaging.text_segment(6, 0), None);
    assert_eq!(
        (packaging.text_playlist(6, ""), packaging.text_file(6, CueClock::File)),
        (None, None)
    );
    let lines = packaging.multivariant_playlist(&[0], "?s=T");
    let texts: Vec<&str> = lines.lines().filter(|line| line.contains("SUBTITLES,")).collect();
    let same = "TYPE=SUBTITLES,GROUP-ID=\"text\",NAME=";
    let wanted = [
        r#""English",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,URI="text/0.m3u8?s=T""#,
        r#""French",LANGUAGE="fr",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,URI="text/1.m3u8?s=T""#,
        r#""English (forced)",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,URI="text/2.m3u8?s=T""#,
        r#""English (SDH)",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,CHARACTERISTICS="SDH",URI="text/3.m3u8?s=T""#,
        r#""Director's 'cut'",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=NO,FORCED=NO,URI="text/4.m3u8?s=T""#,
        r#""Subtitles",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,URI="text/5.m3u8?s=T""#,
    ];
    let short = |line: &str| {
        let sdh = "public.accessibility.transcribes-spoken-dialog,\
                   public.accessibility.describes-music-and-sound";
        line.replace(sdh, "SDH").replacen(&format!("#EXT-X-MEDIA:{same}"), "", 1)
    };
    assert_eq!(texts.into_iter().map(short).collect::<Vec<_>>(), wanted);
}

#[test]
fn a_part_of_a_title_has_the_text_of_that_part() {
    let folder = Folder::new("text-parts");
    let title = film(&folder);
    let packaging = title.packaging(Duration::from_secs(1));
    let part = |start, stop, skip, backwards| {
        let start = Duration::from_millis(start);
        let excerpt = Excerpt { start, stop: Some(Duration::from_millis(stop)), skip, backwards };
        packaging.excerpt(&excerpt).unwrap()
    };
    // From 1 s to 1.52 s, in segments that begin at the key frame at 0.96 s.
    let middle = part(1000, 1500, 0, false);
    title.check_manifests(&middle, "middle");
    assert_eq!(shown(&middle, 0), ["0-560 over both segments", "0-1 a & b", "540-560 late"]);
    let beside = middle.text_file(0, CueClock::File).expect("a text track");
    let lines: Vec<&str> = beside.lines().filter(|line| line.contains("-->")).collect();
    assert_eq!(
        lines,
        ["00:00:00.000 --> 00:00:00.520", "00:00:00.500 --> 00:00:00.520"],
        "from the first picture on: {beside}"
    );
    // From 0.52 s to 1.4 s, in segments from the key frame at 0.48 s.
    let early = part(500, 1400, 0, false);
    title.check_manifests(&early, "early");
    assert_eq!(shown(&early, 0), ["0-420 one", "320-920 over both segments", "480-481 a & b"]);
    let skipping = part(0, 2000, 1, false);
    assert_eq!(
        (skipping.text_file(0, CueClock::File), skipping.text_playlist(0, "")),
        (None, None)
    );
    title.check_manifests(&skipping, "skipping");
}

#[test]
fn a_film_that_begins_late_and_sound_alone_have_their_text() {
    let folder = Folder::new("text-late");
    let how = "-vf setpts=PTS+0.5/TB -c:v libx264 -preset veryfast -g 12 -c:a aac";
    let source = make(&folder, "late.mp4", how);
    let mut title = read(&remux(&source, "mp4", ""), 1 << 16);
    title.index.texts = vec![text(TextDescription::default(), CUES)];
    let packaging = title.packaging(Duration::from_secs(1));
    title.check_manifests(&packaging, "late");
    assert_eq!(shown(&packaging, 0)[0], "100-900 one");
    title.index.tracks.remove(0);
    title.data.remove(0);
    let packaging = title.packaging(Duration::from_secs(1));
    title.check_manifests(&packaging, "sound");
    assert_eq!(shown(&packaging, 0)[0], "100-900 one");
}
