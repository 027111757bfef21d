//! Text tracks for players: the cues of the title, at their times in each presentation of it, by
//! the rules of WebVTT, IMSC, HLS and DASH.

use crate::footage::{Folder, Title, make, read, remux};
use media::{CueClock, Excerpt, Links, Packaging, TextDescription, TextForm, TextTrack};
use std::time::Duration;
use testkit::{ttml, webvtt};

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
    let file = |form| packaging.text_file(text, form, CueClock::Segments).expect("a text track");
    let (_, cues) = webvtt::parse(file(TextForm::WebVtt).as_bytes()).unwrap();
    let one =
        |cue: &webvtt::FileCue, text: &str| format!("{}-{} {text}", cue.time.start, cue.time.end);
    let shown: Vec<String> = cues.iter().map(|cue| one(cue, &cue.text())).collect();
    let imsc = ttml::parse(file(TextForm::Imsc).as_bytes()).unwrap();
    let also: Vec<String> = imsc.iter().map(|cue| one(cue, &cue.payload)).collect();
    assert_eq!(shown, also, "the same in both forms");
    shown
}

#[test]
fn cues_are_in_every_segment_in_which_they_are_shown() {
    let folder = Folder::new("text-segments");
    let title = film(&folder);
    let packaging = title.packaging(Duration::from_secs(1));
    // The rules of HLS and DASH, of all playlists and files.
    title.check_manifests(&packaging, "text");
    let of_segment = |number| -> Vec<String> {
        let text = packaging.text_segment(0, number, TextForm::WebVtt).unwrap();
        let (_, cues) = webvtt::parse(&text).unwrap();
        cues.iter().map(webvtt::FileCue::text).collect()
    };
    // Of 0.96 s and 1.44 s.
    assert_eq!(packaging.segment_count(0), 2);
    assert_eq!(of_segment(0), ["one", "over both segments"]);
    assert_eq!(of_segment(1), ["over both segments", "a & b", "late", "after the end"]);
    for form in [TextForm::WebVtt, TextForm::Imsc] {
        let segments = [(0, 2), (6, 0)].map(|(text, k)| packaging.text_segment(text, k, form));
        assert_eq!(segments, [None, None]);
        assert_eq!(packaging.text_playlist(6, form, ""), None);
        assert_eq!(packaging.text_file(6, form, CueClock::File), None);
    }
    assert_eq!(packaging.text_init(6), None);
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

/// What a cue has as WebVTT, as markup in a document, and to a reader of XML.
const ESCAPED: &[(&str, &str, &str)] = &[
    ("a & b < c > d \" '", "a &amp; b &lt; c &gt; d \" '", "a & b < c > d \" '"),
    (
        "<i>x</i> <b>y\nz</b>",
        "<span style=\"i\">x</span> <span style=\"b\">y<br/>z</span>",
        "x y\nz",
    ),
    ("<u>one", "<span style=\"u\">one</span>", "one"),
    ("a&nbsp;b&lrm;c&rlm;d", "a\u{a0}b\u{200e}c\u{200f}d", "a\u{a0}b\u{200e}c\u{200f}d"),
    ("</p></body>&#38;", "&lt;/p&gt;&lt;/body&gt;&amp;#38;", "</p></body>&#38;"),
    (
        "<ruby>kan<rt>ji</rt></ruby>",
        "&lt;ruby&gt;kan&lt;rt&gt;ji&lt;/rt&gt;&lt;/ruby&gt;",
        "<ruby>kan<rt>ji</rt></ruby>",
    ),
    ("]]>\u{ffff}\u{fffe}\u{b}x", "]]&gt;x", "]]>x"),
    ("\u{1f600} שלום", "\u{1f600} שלום", "\u{1f600} שלום"),
];

#[test]
fn any_text_is_a_valid_document() {
    let folder = Folder::new("text-escaped");
    let mut title = film(&folder);
    let cues = ESCAPED.iter().zip(0..).map(|((text, ..), k)| (k * 10, k * 10 + 5, *text));
    title.index.texts = vec![TextTrack::new(TextDescription::default(), cues).unwrap()];
    let packaging = title.packaging(Duration::from_secs(1));
    let document = packaging.text_file(0, TextForm::Imsc, CueClock::Segments).unwrap();
    let found = ttml::parse(document.as_bytes()).unwrap();
    assert_eq!(found.len(), ESCAPED.len());
    for ((text, markup, shown), cue) in ESCAPED.iter().zip(found) {
        let wanted = format!("<span style=\"s\">{markup}</span></p>");
        assert!(document.contains(&wanted), "{text:?}: {document}");
        assert_eq!(cue.payload, *shown, "{text:?}");
    }
}

#[test]
fn manifests_of_imsc_name_its_purpose() {
    let folder = Folder::new("text-imsc");
    let title = film(&folder);
    let packaging = title.packaging(Duration::from_secs(1));
    let links = Links { text: TextForm::Imsc, query: "?s=T", ..Links::default() };
    let hls = packaging.multivariant_playlist(&[0], links);
    let forced =
        "LANGUAGE=\"en\",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,URI=\"text/2-imsc.m3u8?s=T\"";
    assert!(hls.contains(forced), "{hls}");
    assert!(hls.contains("transcribes-spoken-dialog"), "{hls}");
    assert!(hls.contains(",stpp.ttml.im1t\""), "{hls}");
    let list = packaging.text_playlist(2, TextForm::Imsc, "?s=T").unwrap();
    assert!(list.contains("#EXT-X-MAP:URI=\"2/init.mp4?s=T\""), "{list}");
    assert!(list.contains("\n2/1.m4s?s=T\n"), "{list}");
    let dash = packaging.dash_manifest(&[0], links);
    for (text, roles) in [(0, &["subtitle"][..]), (1, &["subtitle", "main"]), (3, &["caption"])] {
        let before = dash.split(&format!("\"text-{text}\"")).next().unwrap();
        let set = before.rsplit("<AdaptationSet").next().unwrap();
        let found =
            set.split("role:2011\" value=\"").skip(1).map(|it| it.split('"').next().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), roles, "{set}");
    }
    let of_forced = packaging.text_file(2, TextForm::Imsc, CueClock::File).unwrap();
    assert!(of_forced.contains("<body region=\"r\" itts:forcedDisplay=\"true\">"), "{of_forced}");
    // All of its files are CMAF, which WebVTT beside them is not.
    assert!(
        dash.contains("profile:cmaf:2019") && !packaging.dash_manifest(&[0], "").contains("cmaf")
    );
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
    let beside = middle.text_file(0, TextForm::WebVtt, CueClock::File).expect("a text track");
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
    for form in [TextForm::WebVtt, TextForm::Imsc] {
        assert_eq!(skipping.text_file(0, form, CueClock::File), None);
        assert_eq!(skipping.text_playlist(0, form, ""), None);
    }
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
