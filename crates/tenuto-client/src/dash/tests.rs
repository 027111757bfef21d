//! Manifests as common packagers write them, and malformed ones.

use super::*;

const URL: &str = "http://h/t/film.mpd?s=T";

fn read(text: &str) -> Result<Manifest, String> {
    let url = Url::parse(URL).unwrap();
    read_manifest(&url, text.as_bytes(), None).map_err(|error| error.to_string())
}

fn sources(text: &str) -> Vec<TrackSource> {
    read(text).unwrap().sources().unwrap()
}

/// A static manifest of 10 s with this content.
fn mpd(inside: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" \
         xmlns:xlink=\"http://www.w3.org/1999/xlink\" type=\"static\" \
         mediaPresentationDuration=\"PT10S\">{inside}</MPD>"
    )
}

fn video(inside: &str) -> String {
    mpd(&format!(
        "<Period><AdaptationSet contentType=\"video\"><Representation id=\"v\" bandwidth=\"9\">\
         {inside}</Representation></AdaptationSet></Period>"
    ))
}

/// The address, the byte range, and the length in milliseconds of each piece.
fn pieces(source: &TrackSource) -> Vec<(String, Option<Range<u64>>, u128)> {
    let shown = |(number, piece): (usize, &Piece)| {
        let length = source.timeline.start(number + 1) - source.timeline.start(number);
        let request = source.request(piece).unwrap();
        (request.url.to_string(), request.range, length.as_millis())
    };
    source.pieces.iter().enumerate().map(shown).collect()
}

fn addresses(source: &TrackSource) -> Vec<(String, u128)> {
    pieces(source).into_iter().map(|(url, _, length)| (url, length)).collect()
}

#[test]
fn numbers_count_to_the_end_of_the_period() {
    let text = video(
        "<SegmentTemplate timescale=\"1000\" duration=\"4000\" startNumber=\"3\" \
         initialization=\"$RepresentationID$/i.mp4\" media=\"$RepresentationID$/$Number%03d$.m4s\"/>",
    );
    let [track] = &sources(&text)[..] else { panic!("one track") };
    let wanted = [("003", 4000), ("004", 4000), ("005", 2000)];
    let wanted = wanted.map(|(n, ms)| (format!("http://h/t/v/{n}.m4s"), ms));
    assert_eq!(addresses(track), wanted);
    let (_, init) = track.init(2).unwrap();
    assert_eq!(track.request(init).unwrap().url.to_string(), "http://h/t/v/i.mp4");
}

#[test]
fn a_timeline_repeats_jumps_and_continues_to_the_next_row_or_the_end() {
    let text = video(
        "<SegmentTemplate timescale=\"100\" media=\"$Time$.m4s\" presentationTimeOffset=\"50\">\
         <SegmentTimeline><S t=\"50\" d=\"200\" r=\"1\"/><S d=\"100\" r=\"-1\"/>\
         <S t=\"650\" d=\"150\" r=\"-1\"/></SegmentTimeline></SegmentTemplate>",
    );
    let times =
        [(50, 2000), (250, 2000), (450, 1000), (550, 1000), (650, 1500), (800, 1500), (950, 1500)];
    let wanted = times.map(|(t, ms)| (format!("http://h/t/{t}.m4s"), ms));
    assert_eq!(addresses(&sources(&text)[0]), wanted);
}

#[test]
fn a_list_has_addresses_and_ranges() {
    let text = video(
        "<BaseURL>film.mp4</BaseURL><SegmentList timescale=\"10\" duration=\"40\">\
         <Initialization range=\"0-799\"/><SegmentURL mediaRange=\"800-1799\"/>\
         <SegmentURL media=\"/other.m4s\"/><SegmentURL mediaRange=\"1800-1899\"/></SegmentList>",
    );
    let [track] = &sources(&text)[..] else { panic!("one track") };
    let film = || "http://h/t/film.mp4".to_owned();
    let wanted = [
        (film(), Some(800..1800), 4000),
        ("http://h/other.m4s".to_owned(), None, 4000),
        (film(), Some(1800..1900), 2000),
    ];
    assert_eq!(pieces(track), wanted);
    assert_eq!(track.init(0).unwrap().1.range, Some(0..800));
}

#[test]
fn the_index_of_a_file_is_fetched() {
    let text = video(
        "<BaseURL>http://cdn/v.mp4</BaseURL><SegmentBase indexRange=\"700-767\">\
         <Initialization range=\"0-699\"/></SegmentBase>",
    );
    let mut manifest = read(&text).unwrap();
    let wanted = manifest.wanted(0).unwrap().unwrap();
    assert_eq!((wanted.url.to_string(), wanted.range), ("http://cdn/v.mp4".into(), Some(700..768)));
    assert!(manifest.clone().found(0, b"nothing").is_err());
    // Two references of 100 and 50 bytes, six and four seconds, at 1,000 ticks per second.
    let words =
        [68, u32::from_be_bytes(*b"sidx"), 0, 1, 1000, 0, 0, 2, 100, 6000, 0, 50, 4000, 0, 0, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    manifest.found(0, &bytes).unwrap();
    assert_eq!(manifest.wanted(0).unwrap(), None);
    let sources = manifest.sources().unwrap();
    let file = || "http://cdn/v.mp4".to_owned();
    let wanted = [(file(), Some(768..868), 6000), (file(), Some(868..918), 4000)];
    assert_eq!(pieces(&sources[0]), wanted);
}

#[test]
fn the_best_video_and_the_first_audio_are_played() {
    let set = |kind: &str, ids: &[(&str, u32)]| {
        let representation = |(id, bandwidth): &(&str, u32)| {
            format!(
                "<Representation id=\"{id}\" bandwidth=\"{bandwidth}\" mimeType=\"{kind}/mp4\"/>"
            )
        };
        let all: String = ids.iter().map(representation).collect();
        format!("<AdaptationSet>{all}</AdaptationSet>")
    };
    let tricks = "<AdaptationSet contentType=\"video\"><EssentialProperty \
                  schemeIdUri=\"http://dashif.org/guidelines/trickmode\"/></AdaptationSet>";
    let text = mpd(&format!(
        "<Period><SegmentTemplate duration=\"10\" media=\"$RepresentationID$-$Bandwidth$.m4s\"/>\
         {tricks}{}{}{}{}</Period>",
        set("text", &[("t", 1)]),
        set("audio", &[("a1", 2), ("a2", 2)]),
        set("audio", &[("fr", 9)]),
        set("video", &[("sd", 3), ("hd", 8), ("md", 5)]),
    ));
    let found = sources(&text);
    let found: Vec<_> = found.iter().map(addresses).collect();
    let wanted = ["http://h/t/hd-8.m4s", "http://h/t/a1-2.m4s"];
    assert_eq!(found, wanted.map(|url| vec![(url.to_owned(), 10_000)]));
}

#[test]
fn another_rendition_can_be_selected_in_every_period() {
    let period = |sizes: &[(&str, u32, &str)]| {
        let representation = |(id, bandwidth, codecs): &(&str, u32, &str)| {
            format!("<Representation id=\"{id}\" bandwidth=\"{bandwidth}\" codecs=\"{codecs}\"/>")
        };
        let all: String = sizes.iter().map(representation).collect();
        format!(
            "<Period duration=\"PT5S\"><AdaptationSet mimeType=\"video/mp4\"><SegmentTemplate \
             duration=\"5\" media=\"$RepresentationID$.m4s\"/>{all}</AdaptationSet></Period>"
        )
    };
    let one = [("hd", 8, "avc1.2"), ("vp", 6, "vp09.1"), ("sd", 3, "avc1.1"), ("sd2", 3, "avc1.1")];
    let two = [("b", 4, "hvc1"), ("a", 2, "hvc1")];
    let text = mpd(&(period(&one) + &period(&two)));
    let url = Url::parse(URL).unwrap();
    let of = |rank| {
        let manifest = read_manifest(&url, text.as_bytes(), rank).unwrap();
        let peaks: Vec<u64> = manifest.renditions().iter().map(|offer| offer.peak.0).collect();
        assert_eq!(peaks, [3, 8]);
        addresses(&manifest.source(0).unwrap()).into_iter().map(|(url, _)| url).collect::<Vec<_>>()
    };
    let wanted = |names: [&str; 2]| names.map(|name| format!("http://h/t/{name}.m4s"));
    assert_eq!(
        [of(Some(0)), of(Some(1)), of(None)],
        [["sd", "a"], ["hd", "b"], ["hd", "b"]].map(wanted)
    );

    let uneven = mpd(&(period(&one) + &period(&two[..1])));
    let told = read_manifest(&url, uneven.as_bytes(), Some(0)).unwrap_err().to_string();
    assert!(told.contains("period 2 offers its video in 1 renditions, the first in 2"), "{told}");
    assert!(read_manifest(&url, uneven.as_bytes(), None).is_ok(), "the best of each is there");
}

#[test]
fn periods_follow_each_other_with_their_own_headers_and_addresses() {
    let period = |attributes: &str, base: &str| {
        format!(
            "<Period {attributes}><BaseURL>{base}</BaseURL><AdaptationSet mimeType=\"video/mp4\">\
             <SegmentTemplate duration=\"2\" initialization=\"i.mp4\" media=\"$Number$.m4s\"/>\
             <Representation id=\"v\" bandwidth=\"1\"/></AdaptationSet></Period>"
        )
    };
    let gone = "<Period xlink:href=\"urn:mpeg:dash:resolve-to-zero:2013\"/>";
    let text = mpd(&format!(
        "<BaseURL>media/</BaseURL>{}{gone}{}",
        period("duration=\"PT3S\"", "one/"),
        period("start=\"PT7S\"", "https://cdn/two/")
    ));
    let [track] = &sources(&text)[..] else { panic!("one track") };
    let one = |n| format!("http://h/t/media/one/{n}.m4s");
    let two = |n| format!("https://cdn/two/{n}.m4s");
    let wanted = [(one(1), 2000), (one(2), 1000), (two(1), 2000), (two(2), 1000)];
    assert_eq!(addresses(track), wanted);
    let inits = [0, 1, 2, 3].map(|piece| track.init(piece).unwrap().0);
    assert_eq!(inits, [0, 0, 1, 1]);
}

#[test]
fn an_unplayable_manifest_is_refused_with_the_reason() {
    let template = |attributes: &str| video(&format!("<SegmentTemplate {attributes}/>"));
    let timeline = |rows: &str| {
        video(&format!(
            "<SegmentTemplate media=\"$Time$\"><SegmentTimeline>{rows}</SegmentTimeline></SegmentTemplate>"
        ))
    };
    let endless = video("<SegmentTemplate duration=\"1\" media=\"$Number$\"/>")
        .replace(" mediaPresentationDuration=\"PT10S\"", "");
    let laughs = "<?xml version=\"1.0\"?><!DOCTYPE MPD [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\">]>\
                  <MPD>&b;</MPD>";
    let cases = [
        ("<html>".to_owned(), "no XML that can be read"),
        ("<?xml version=\"1.0\"?><html/>".to_owned(), "no MPD but <html>"),
        (laughs.to_owned(), "no XML that can be read"),
        (mpd("").replace("static", "dynamic"), "type dynamic"),
        (mpd(""), "names nothing that can be played"),
        (mpd("<Period xlink:href=\"film.mpd\"/>"), "lies elsewhere (xlink:href)"),
        (mpd("<Period><AdaptationSet contentType=\"video\"/></Period>"), "no representation"),
        (endless, "neither its period nor the manifest says how long it is"),
        (template("media=\"$Number$\""), "segments have no duration"),
        (template("media=\"$Number$\" duration=\"0\""), "duration is 0"),
        (template("media=\"$Number$\" duration=\"x\""), "duration=\"x\" is no number"),
        (template("media=\"$Number$\" duration=\"1\" timescale=\"0\""), "timescale is 0"),
        (template("duration=\"1\""), "has no media"),
        (template("media=\"$Number$\" duration=\"1\" timescale=\"90000\""), "at most 200000"),
        (timeline("<S d=\"1\" r=\"4000000000\"/>"), "it has 4000000001 segments; at most 200000"),
        (timeline("<S d=\"0\"/>"), "duration is 0"),
        (timeline("<S t=\"0\"/>"), "no duration"),
        (timeline("<S d=\"1\" r=\"much\"/>"), "r=\"much\" is no number"),
        (timeline(""), "segments have no duration"),
        (video("<SegmentBase/>"), "no indexRange"),
        (video("<SegmentBase indexRange=\"9-3\"/>"), "'9-3' is no range of bytes"),
        (video("<SegmentList duration=\"1\"/>"), "names no SegmentURL"),
        (mpd("").replace("PT10S", "ten"), "mediaPresentationDuration=\"ten\" is no time"),
    ];
    for (text, wanted) in cases {
        let told = match read(&text) {
            Ok(manifest) => manifest.sources().unwrap_err().to_string(),
            Err(told) => told,
        };
        assert!(told.contains(wanted), "{text}: {told}");
    }
}

#[test]
fn a_period_that_lacks_a_track_of_the_first_is_named() {
    let sets = |kinds: &[&str]| {
        let set = |kind: &&str| {
            format!(
                "<AdaptationSet contentType=\"{kind}\"><SegmentTemplate duration=\"5\" \
                 media=\"$Number$\"/><Representation/></AdaptationSet>"
            )
        };
        format!("<Period duration=\"PT5S\">{}</Period>", kinds.iter().map(set).collect::<String>())
    };
    let text = mpd(&(sets(&["video", "audio"]) + &sets(&["video"])));
    let told = read(&text).unwrap_err();
    assert!(told.contains("period 2 has no audio, but the first has"), "{told}");
}
