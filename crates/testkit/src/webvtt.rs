//! The rules of WebVTT files (W3C, 4 and 6) and of WebVTT segments in HLS (RFC 8216, 3.5) as
//! checks, which name the violated rule. Written from the texts of both.

use std::ops::Range;

/// A cue of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCue {
    /// When it is shown, in ms.
    pub time: Range<u64>,
    /// The payload as it stands in the file.
    pub payload: String,
}

impl FileCue {
    /// The text as it is shown: without tags, references resolved.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut rest = self.payload.as_str();
        while let Some((before, tag)) = rest.split_once('<') {
            text.push_str(before);
            rest = tag.split_once('>').map_or("", |(_, after)| after);
        }
        text.push_str(rest);
        let named = [("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\u{a0}"), ("&amp;", "&")];
        named.iter().fold(text, |text, (name, character)| text.replace(name, character))
    }
}

/// Lines that belong together, with the number of the first one.
struct CueBlock<'a> {
    number: usize,
    lines: Vec<&'a str>,
}

/// The lines of the header and the cues of a WebVTT file.
///
/// # Errors
/// The violated rule and its line.
pub fn parse(bytes: &[u8]) -> Result<(Vec<String>, Vec<FileCue>), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("4.1: not UTF-8: {error}"))?;
    if text.contains('\0') {
        return Err("4.1: a NULL character".to_owned());
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let after = text.strip_prefix("WEBVTT").ok_or("4.1: it does not begin with WEBVTT")?;
    if !after.is_empty() && !after.starts_with([' ', '\t', '\n', '\r']) {
        return Err("4.1: WEBVTT is part of a longer word".to_owned());
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut blocks: Vec<CueBlock<'_>> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.split('\n')) {
        if line.is_empty() {
            is_open = false;
        } else if let (true, Some(block)) = (is_open, blocks.last_mut()) {
            block.lines.push(line);
        } else {
            blocks.push(CueBlock { number, lines: vec![line] });
            is_open = true;
        }
    }
    let (head, blocks) = blocks.split_first().ok_or("4.1: it is empty")?;
    if head.lines.iter().any(|line| line.contains("-->")) {
        return Err("4.1: no empty line between the header and the first cue".to_owned());
    }
    let header = head.lines[1..].iter().map(|line| (*line).to_owned()).collect();
    let mut cues: Vec<FileCue> = Vec::new();
    for block in blocks {
        let first = block.lines[0];
        if first == "NOTE" || first.starts_with("NOTE ") || first == "STYLE" || first == "REGION" {
            continue;
        }
        let cue = cue(block).map_err(|rule| format!("line {}: {rule}", block.number))?;
        if cues.last().is_some_and(|last| last.time.start > cue.time.start) {
            return Err(format!("line {}: 4.1: it begins before the cue before", block.number));
        }
        cues.push(cue);
    }
    Ok((header, cues))
}

fn cue(block: &CueBlock<'_>) -> Result<FileCue, String> {
    let named = usize::from(!block.lines[0].contains("-->"));
    let timings = block.lines.get(named).ok_or("4.1: a block without cue timings")?;
    let (start, rest) = timings.split_once("-->").ok_or("4.1: a block without cue timings")?;
    if !start.ends_with([' ', '\t']) || !rest.starts_with([' ', '\t']) {
        return Err("4.1: no space beside the arrow".to_owned());
    }
    let end = rest.split_whitespace().next().unwrap_or_default();
    let time = timestamp(start.trim_end_matches([' ', '\t']))?..timestamp(end)?;
    if time.end <= time.start {
        return Err(format!("4.1: it ends at {} ms, and begins at {}", time.end, time.start));
    }
    let payload = block.lines[named + 1..].join("\n");
    check_payload(&payload)?;
    Ok(FileCue { time, payload })
}

/// 4.1: hours of two digits or more, which may be missing; minutes, seconds, thousandths.
fn timestamp(text: &str) -> Result<u64, String> {
    let wrong = || format!("4.1: {text:?} is no timestamp");
    let number = |digits: &str, least: usize, exact: bool| {
        let fits = if exact { digits.len() == least } else { digits.len() >= least };
        let valid = fits && digits.bytes().all(|digit| digit.is_ascii_digit());
        valid.then(|| digits.parse::<u64>().ok()).flatten().ok_or_else(wrong)
    };
    let (whole, thousandths) = text.split_once('.').ok_or_else(wrong)?;
    let parts: Vec<&str> = whole.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes, seconds] => (number(hours, 2, false)?, minutes, seconds),
        [minutes, seconds] => (0, minutes, seconds),
        _ => return Err(wrong()),
    };
    let (minutes, seconds) = (number(minutes, 2, true)?, number(seconds, 2, true)?);
    if minutes > 59 || seconds > 59 {
        return Err(wrong());
    }
    Ok(((hours * 60 + minutes) * 60 + seconds) * 1000 + number(thousandths, 3, true)?)
}

/// 4.2.2: tags that are known and closed in order, no other `<`, and `&` in references only.
fn check_payload(payload: &str) -> Result<(), String> {
    if payload.contains("-->") {
        return Err("4.2.2: an arrow in the payload".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for (_, after) in payload.match_indices('<').map(|(at, _)| payload.split_at(at + 1)) {
        let (tag, _) = after.split_once('>').ok_or("4.2.2: a tag without an end")?;
        if let Some(closed) = tag.strip_prefix('/') {
            if open.pop() != Some(closed) {
                return Err(format!("4.2.2: </{closed}> closes another tag"));
            }
        } else if timestamp(tag).is_err() {
            let name = tag.split(['.', ' ', '\t', '\n']).next().unwrap_or_default();
            if !["c", "i", "b", "u", "ruby", "rt", "v", "lang"].contains(&name) {
                return Err(format!("4.2.2: <{tag}> is no tag of WebVTT"));
            }
            open.push(name);
        }
    }
    if let Some(name) = open.last() {
        return Err(format!("4.2.2: <{name}> is not closed"));
    }
    for (_, after) in payload.match_indices('&').map(|(at, _)| payload.split_at(at + 1)) {
        let name = after.split(';').next().unwrap_or_default();
        if !after.contains(';') || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#') {
            return Err("4.2.2: an ampersand that begins no reference".to_owned());
        }
    }
    Ok(())
}

/// RFC 8216, 3.5: checks segments, each with its period in ms, beside all cues of the track.
///
/// # Errors
/// The violated rule and the segment.
pub fn check_segments(all: &[FileCue], segments: &[(Range<u64>, Vec<u8>)]) -> Result<(), String> {
    for (number, (period, bytes)) in segments.iter().enumerate() {
        let failed = |rule: String| format!("segment {number}: {rule}");
        let (header, cues) = parse(bytes).map_err(failed)?;
        let maps = header.iter().filter_map(|line| line.strip_prefix("X-TIMESTAMP-MAP="));
        match maps.collect::<Vec<_>>()[..] {
            ["LOCAL:00:00:00.000,MPEGTS:0"] => {}
            [] => return Err(failed("3.5: no X-TIMESTAMP-MAP".to_owned())),
            [other, ..] => return Err(failed(format!("3.5: {other}, and media begins at zero"))),
        }
        if let Some(cue) = cues.iter().find(|cue| !all.contains(cue)) {
            return Err(failed(format!("3.5: {cue:?} is no cue of the track with all its time")));
        }
        // Playlists round to microseconds, cues to milliseconds.
        let shown =
            |cue: &&FileCue| cue.time.start + 1 < period.end && cue.time.end > period.start + 1;
        if let Some(cue) = all.iter().filter(shown).find(|cue| !cues.contains(cue)) {
            return Err(failed(format!("3.5: {cue:?} is shown in it, and is not in it")));
        }
    }
    let played = segments.last().map_or(0, |(period, _)| period.end);
    let is_in = |cue: &FileCue| {
        segments.iter().any(|(_, bytes)| parse(bytes).is_ok_and(|(_, cues)| cues.contains(cue)))
    };
    match all.iter().find(|cue| cue.time.start < played && !is_in(cue)) {
        Some(cue) => Err(format!("3.5: {cue:?} is in no segment")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "WEBVTT - a file\nX: y\n\nNOTE x\n\n1\n00:01.000 --> 00:02.000 line:0\n\
                        <i>One</i> &amp; two\n\n00:00:01.500 --> 100:00:03.000\nthree\nfour\n";

    #[test]
    fn a_valid_file_is_read() {
        let (header, cues) = parse(GOOD.as_bytes()).unwrap();
        assert_eq!(header, ["X: y"]);
        let shown: Vec<_> = cues.iter().map(|cue| (cue.time.clone(), cue.text())).collect();
        let second = (1500..360_003_000, "three\nfour".to_owned());
        assert_eq!(shown, [(1000..2000, "One & two".to_owned()), second]);
        assert_eq!(parse(b"WEBVTT"), Ok((vec![], vec![])));
        assert_eq!(parse(&GOOD.replace('\n', "\r\n").into_bytes()), parse(GOOD.as_bytes()));
    }

    #[test]
    fn each_planted_fault_is_found() {
        let faults = [
            ("WEBVTT - a", "WEBVTTX", "longer word"),
            ("WEBVTT", "WEBVT", "does not begin"),
            ("X: y\n\nNOTE x\n\n1\n", "", "no empty line"),
            ("X: y\n\nNOTE x", "00:00.000 --> 00:01.000", "no empty line"),
            ("00:01.000 -->", "0:01.000 -->", "no timestamp"),
            ("00:01.000 -->", "00:01.00 -->", "no timestamp"),
            ("00:01.000 -->", "00:61.000 -->", "no timestamp"),
            ("00:01.000 -->", "00:01,000 -->", "no timestamp"),
            ("00:01.000 --> ", "00:01.000 -->", "no space"),
            ("--> 00:02.000", "--> 00:01.000", "ends at 1000"),
            ("00:00:01.500", "00:00:00.500", "before the cue before"),
            ("three", "th\nree --> x", "arrow in the payload"),
            ("three", "\n", "without cue timings"),
            ("three", "th\0ree", "NULL"),
            ("</i>", "", "not closed"),
            ("<i>", "<b>", "closes another"),
            ("<i>One</i>", "<font>One</font>", "no tag"),
            ("One</i>", "One < </i>", "no tag"),
            ("three", "3 < 4", "without an end"),
            ("&amp;", "&", "no reference"),
        ];
        for (good, bad, rule) in faults {
            assert!(GOOD.contains(good), "{good}");
            let said = parse(GOOD.replacen(good, bad, 1).as_bytes()).unwrap_err();
            assert!(said.contains(rule), "{bad:?}: {said}");
        }
        assert!(parse(b"WEBVTT\n\xff").unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn each_planted_fault_of_segments_is_found() {
        let (long, short) = ("00:01.000 --> 00:05.000\nlong\n\n", "00:05.000 --> 00:06.000\nx\n\n");
        let all = parse(format!("WEBVTT\n\n{long}{short}").as_bytes()).unwrap().1;
        let map = "X-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0";
        let segments = |texts: [&str; 3]| -> Vec<(Range<u64>, Vec<u8>)> {
            let periods = [0..2000, 2000..4000, 4000..8000];
            let text = texts.map(|text| format!("WEBVTT\n{text}").into_bytes());
            periods.into_iter().zip(text).collect()
        };
        let [head, both] = [format!("{map}\n\n{long}"), format!("{map}\n\n{long}{short}")];
        assert_eq!(check_segments(&all, &segments([&head, &head, &both])), Ok(()));
        let empty = format!("{map}\n\n");
        let cut = head.replace("00:05.000", "00:02.000");
        let moved = head.replace("MPEGTS:0", "MPEGTS:900000");
        let unmapped = format!("\n{long}");
        let faults = [
            (segments([&head, &empty, &both]), "segment 1: 3.5: FileCue { time: 1000..5000"),
            (segments([&cut, &head, &both]), "segment 0: 3.5: FileCue { time: 1000..2000"),
            (segments([&head, &head, &head]), "5000..6000"),
            (segments([&moved, &head, &both]), "media begins at zero"),
            (segments([&unmapped, &head, &both]), "no X-TIMESTAMP-MAP"),
        ];
        for (segments, rule) in faults {
            let said = check_segments(&all, &segments).unwrap_err();
            assert!(said.contains(rule), "{rule}: {said}");
        }
    }
}
