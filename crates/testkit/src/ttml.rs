//! The rules of IMSC documents (W3C, IMSC 1.0.1, text profile; TTML 1) and of their segments
//! (ISO/IEC 14496-30) as checks, which name the violated rule. Written from the texts of both.

use crate::fragments::Fragments;
use crate::webvtt::FileCue;
use roxmltree::{Document, Node};
use std::ops::Range;

/// The cues of a document; their payload is the text as it is shown.
///
/// # Errors
/// The violated rule.
pub fn parse(bytes: &[u8]) -> Result<Vec<FileCue>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("6.1: not UTF-8: {error}"))?;
    let document = Document::parse(text).map_err(|error| format!("TTML 3.1: {error}"))?;
    let tt = document.root_element();
    if !tt.has_tag_name((TT, "tt")) {
        return Err("TTML 7.1.1: the root is no tt".to_owned());
    }
    let language = tt.attribute((XML, "lang")).ok_or("TTML 7.1.1: no xml:lang")?;
    if !language.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(format!("TTML 7.2.2: {language:?} is no language"));
    }
    let parameter = |name| tt.attribute((PARAMETER, name)).unwrap_or_default();
    if parameter("profile") != "http://www.w3.org/ns/ttml/profile/imsc1/text" {
        return Err("6.10: no ttp:profile of the text profile".to_owned());
    }
    if !matches!(parameter("timeBase"), "" | "media") {
        return Err("6.11: times that are not those of the media".to_owned());
    }
    let [head, body] = named(tt, &["head", "body"])?[..] else {
        return Err("TTML 7.1.1: not a head and a body".to_owned());
    };
    let [styling, layout] = named(head, &["styling", "layout"])?[..] else {
        return Err("TTML 7.1.2: not styling and layout".to_owned());
    };
    let known = |of: Node<'_, '_>, name: &str| -> Result<Vec<String>, String> {
        let all = named(of, &[name])?.into_iter();
        all.map(|it| it.attribute((XML, "id")).map(str::to_owned).ok_or_else(no_id)).collect()
    };
    let (styles, regions) = (known(styling, "style")?, known(layout, "region")?);
    for region in named(layout, &["region"])? {
        let has = |name| region.attribute((STYLING, name)).is_some_and(is_pair_of_percentages);
        if !has("origin") || !has("extent") {
            return Err("7.4: a region without origin and extent".to_owned());
        }
    }
    let region = body.attribute("region").unwrap_or_default();
    if !regions.iter().any(|id| id == region) {
        return Err(format!("TTML 9.2.1: there is no region {region:?}"));
    }
    let mut cues = Vec::new();
    for div in named(body, &["div"])? {
        for p in named(div, &["p"])? {
            cues.push(cue(p, &styles)?);
        }
    }
    Ok(cues)
}

fn no_id() -> String {
    "TTML 7.2.1: no xml:id".to_owned()
}

/// The elements in a node, which must have one of these names each and no text beside them.
fn named<'a, 'i>(node: Node<'a, 'i>, names: &[&str]) -> Result<Vec<Node<'a, 'i>>, String> {
    let mut found = Vec::new();
    for child in node.children() {
        if names.iter().any(|name| child.has_tag_name((TT, *name))) {
            found.push(child);
        } else if child.is_element() {
            return Err(format!("TTML 4.2: a {} in a {}", name(child), name(node)));
        } else if child.text().is_some_and(|text| !text.trim().is_empty()) {
            return Err(format!("TTML 4.2: text in a {}", name(node)));
        }
    }
    Ok(found)
}

fn name<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}

fn is_pair_of_percentages(text: &str) -> bool {
    let number = |part: &str| part.strip_suffix('%').and_then(|it| it.parse::<f64>().ok());
    let parts: Vec<&str> = text.split(' ').collect();
    let is_within = |part| number(part).is_some_and(|it| (0.0..=100.0).contains(&it));
    parts.len() == 2 && parts.into_iter().all(is_within)
}

fn cue(p: Node<'_, '_>, styles: &[String]) -> Result<FileCue, String> {
    let time = |name| timestamp(p.attribute(name).unwrap_or_default());
    let time = time("begin")?..time("end")?;
    if time.end <= time.start {
        return Err(format!("a p ends at {} ms, and begins at {}", time.end, time.start));
    }
    let mut payload = String::new();
    for node in p.descendants().skip(1) {
        match (node.is_text(), name(node)) {
            (true, _) => payload.push_str(node.text().unwrap_or_default()),
            (_, "br") => payload.push('\n'),
            (_, "span") => {
                let style = node.attribute("style").unwrap_or_default();
                if !styles.iter().any(|id| id == style) {
                    return Err(format!("TTML 8.2.1: there is no style {style:?}"));
                }
            }
            (_, other) => return Err(format!("TTML 4.2: a {other:?} in a p")),
        }
    }
    if payload.trim().is_empty() {
        return Err("a p without text".to_owned());
    }
    Ok(FileCue { time, payload })
}

/// TTML 10.3.1: a clock time with a fraction of a second.
fn timestamp(text: &str) -> Result<u64, String> {
    let wrong = || format!("TTML 10.3.1: {text:?} is no clock time");
    let (clock, fraction) = text.split_once('.').ok_or_else(wrong)?;
    let parts: Vec<&str> = clock.split(':').collect();
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| wrong());
    let [hours, minutes, seconds] = parts[..] else { return Err(wrong()) };
    if hours.len() < 2 || minutes.len() != 2 || seconds.len() != 2 || fraction.len() != 3 {
        return Err(wrong());
    }
    let (minutes, seconds) = (number(minutes)?, number(seconds)?);
    if minutes > 59 || seconds > 59 {
        return Err(wrong());
    }
    Ok(((number(hours)? * 60 + minutes) * 60 + seconds) * 1000 + number(fraction)?)
}

/// ISO/IEC 14496-30, 7: checks segments, each with its period in ms, beside all cues of the track.
///
/// # Errors
/// The violated rule and the segment.
pub fn check_segments(
    all: &[FileCue],
    init: &[u8],
    segments: &[(Range<u64>, Vec<u8>)],
) -> Result<(), String> {
    let fragments = Fragments::of(init).ok_or("no track in the initialization segment")?;
    if &fragments.handler != b"subt" {
        return Err("7.2: the handler is not subt".to_owned());
    }
    let namespace = b"stpp\0\0\0\0\0\0\0\x01http://www.w3.org/ns/ttml\0";
    if !init.windows(namespace.len()).any(|it| it == namespace) {
        return Err("7.4: no sample entry stpp of TTML".to_owned());
    }
    for (number, (period, bytes)) in segments.iter().enumerate() {
        let failed = |rule: String| format!("segment {number}: {rule}");
        let samples = fragments.samples(bytes);
        let [sample] = samples.as_slice() else {
            return Err(failed(format!("7.3: {} samples", samples.len())));
        };
        let ms = |ticks: u64| ticks * 1000 / u64::from(fragments.timescale);
        let start = ms(sample.decode_time);
        let time = start..start + ms(u64::from(sample.duration));
        // Playlists round to microseconds, and the last segment may end with the sound.
        let is_last = number + 1 == segments.len();
        let ends = time.end.abs_diff(period.end) <= 1 || is_last && time.end >= period.end;
        if !sample.sync || time.start.abs_diff(period.start) > 1 || !ends {
            return Err(failed(format!("its sample is shown at {time:?}, not {period:?}")));
        }
        let document = crate::fragments::payload(bytes).ok_or_else(|| failed("no mdat".into()))?;
        let cues = parse(document).map_err(failed)?;
        if let Some(cue) = cues.iter().find(|cue| !all.contains(cue)) {
            return Err(failed(format!("{cue:?} is no cue of the track with all its time")));
        }
        let shown = |cue: &&FileCue| cue.time.start + 1 < time.end && cue.time.end > time.start + 1;
        if let Some(cue) = all.iter().filter(shown).find(|cue| !cues.contains(cue)) {
            return Err(failed(format!("{cue:?} is shown in it, and is not in it")));
        }
    }
    Ok(())
}

const TT: &str = "http://www.w3.org/ns/ttml";
const PARAMETER: &str = "http://www.w3.org/ns/ttml#parameter";
const STYLING: &str = "http://www.w3.org/ns/ttml#styling";
const XML: &str = "http://www.w3.org/XML/1998/namespace";

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "<tt xmlns=\"http://www.w3.org/ns/ttml\" \
        xmlns:ttp=\"http://www.w3.org/ns/ttml#parameter\" \
        xmlns:tts=\"http://www.w3.org/ns/ttml#styling\" \
        ttp:profile=\"http://www.w3.org/ns/ttml/profile/imsc1/text\" xml:lang=\"en\">\
        <head><styling><style xml:id=\"s\"/></styling><layout><region xml:id=\"r\" \
        tts:origin=\"10% 10%\" tts:extent=\"80% 80%\"/></layout></head><body region=\"r\">\n\
        <div><p begin=\"00:00:01.000\" end=\"100:00:02.000\">a &amp; <span style=\"s\">b</span>\
        <br/>c</p></div></body></tt>";

    #[test]
    fn a_valid_document_is_read() {
        let cue = FileCue { time: 1000..360_002_000, payload: "a & b\nc".to_owned() };
        assert_eq!(parse(GOOD.as_bytes()), Ok(vec![cue]));
    }

    #[test]
    fn each_planted_fault_is_found() {
        let faults = [
            ("xml:lang=\"en\"", "", "no xml:lang"),
            ("\"en\"", "\"e n\"", "no language"),
            ("imsc1/text", "imsc1/image", "no ttp:profile"),
            ("ttp:profile", "ttp:timeBase=\"smpte\" ttp:profile", "of the media"),
            ("10% 10%", "10px 10%", "without origin"),
            ("tts:extent=\"80% 80%\"", "", "without origin"),
            ("region=\"r\"", "region=\"q\"", "no region"),
            ("<div>", "<div>x", "text in a div"),
            ("<styling>", "<styling><set/>", "a set in a styling"),
            ("xml:id=\"s\"", "", "no xml:id"),
            ("00:00:01.000", "00:00:01", "no clock time"),
            ("00:00:01.000", "00:61:01.000", "no clock time"),
            ("00:00:01.000", "1000ms", "no clock time"),
            ("100:00:02.000", "00:00:01.000", "ends at 1000 ms"),
            ("style=\"s\"", "style=\"t\"", "no style"),
            ("<br/>", "<b/>", "\"b\" in a p"),
            ("&amp;", "&nbsp;", "TTML 3.1"),
            ("&amp;", "&", "TTML 3.1"),
            ("</span>", "", "TTML 3.1"),
            ("a &amp; <span style=\"s\">b</span><br/>c", " ", "without text"),
        ];
        for (good, bad, rule) in faults {
            assert!(GOOD.contains(good), "{good}");
            let said = parse(GOOD.replacen(good, bad, 1).as_bytes()).unwrap_err();
            assert!(said.contains(rule), "{bad:?}: {said}");
        }
    }
}
