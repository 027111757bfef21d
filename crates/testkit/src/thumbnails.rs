//! The rules of images with thumbnails as checks, which name the violated rule: of HLS ("HTTP Live
//! Streaming: image media playlists", version 0.4), of DASH (DASH-IF IOP 4.3, 6.2.6), and of
//! WebVTT whose cues are addresses with a rectangle (W3C Media Fragments, 4.2.2). Written from the
//! texts; an image is read as far as its size (ISO/IEC 10918-1, B.2).

use crate::webvtt;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use std::ops::Range;

/// Returns the bytes of a URI as it stands in a playlist, a manifest or a cue.
pub type Fetch<'a> = &'a mut dyn FnMut(&str) -> Option<Vec<u8>>;

/// One thumbnail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumbnail {
    /// When it is shown, in ms.
    pub time: Range<u64>,
    /// The image that it is in.
    pub uri: String,
    /// The place in the image in pixels: from the left, from the top, width, height.
    pub place: [u32; 4],
}

/// The thumbnails that a multivariant playlist has: by the attributes of its
/// `EXT-X-IMAGE-STREAM-INF`, its playlist, and the images.
///
/// # Errors
/// The violated rule.
pub fn of_hls(attributes: &str, fetch: Fetch<'_>) -> Result<Vec<Thumbnail>, String> {
    let stated = attribute_list(attributes)?;
    let of = |name: &str| stated.get(name).ok_or(format!("EXT-X-IMAGE-STREAM-INF: no {name}"));
    let bandwidth: f64 = of("BANDWIDTH")?.parse().map_err(|_| "BANDWIDTH is no number")?;
    let resolution = of("RESOLUTION")?;
    if of("CODECS")? != "\"jpeg\"" {
        return Err(format!("CODECS {} of JPEG", of("CODECS")?));
    }
    let uri = of("URI")?.trim_matches('"');
    let text = fetch(uri).ok_or(format!("{uri} does not exist"))?;
    let text = String::from_utf8(text).map_err(|_| "4.1: the playlist is not UTF-8")?;
    let images = image_playlist(&text)?;
    let mut thumbnails = Vec::new();
    let mut from = 0.0;
    for (number, image) in images.iter().enumerate() {
        let bytes = fetch(&image.uri).ok_or(format!("{} does not exist", image.uri))?;
        let [width, height, columns, rows] = image.tiles;
        if *resolution != format!("{width}x{height}") {
            return Err(format!("RESOLUTION {resolution} of tiles of {width}x{height}"));
        }
        is_size(&bytes, [width * columns, height * rows])?;
        if bytes.len() as f64 * 8.0 / image.length > bandwidth + 1.0 {
            return Err(format!("BANDWIDTH {bandwidth} is less than the rate of {}", image.uri));
        }
        let full = image.of_each * f64::from(columns * rows);
        if image.length > full + 1e-3 {
            return Err(format!("EXTINF {} is longer than all tiles: {full}", image.length));
        }
        if number + 1 < images.len() && image.length < full - 1e-3 {
            return Err(format!("EXTINF {} of an image with {full} s of tiles", image.length));
        }
        let all = Tiles { uri: &image.uri, size: [width, height], layout: [columns, rows] };
        thumbnails.extend(all.between(from..from + image.length, image.of_each));
        from += image.length;
    }
    Ok(thumbnails)
}

/// An image of a playlist.
struct PlaylistImage {
    uri: String,
    /// EXTINF in seconds.
    length: f64,
    /// Width and height of a tile, columns, rows.
    tiles: [u32; 4],
    /// Seconds of a tile.
    of_each: f64,
}

/// The images of a playlist of images.
fn image_playlist(text: &str) -> Result<Vec<PlaylistImage>, String> {
    let mut lines = text.lines();
    if lines.next() != Some("#EXTM3U") {
        return Err("4.3.1.1: the first line is EXTM3U".to_owned());
    }
    let (mut images, mut length, mut tiles) = (Vec::new(), None, None);
    let (mut target, mut seen) = (0.0, Vec::new());
    for line in lines.filter(|line| !line.is_empty()) {
        let (tag, value) = line.split_once(':').unwrap_or((line, ""));
        match tag {
            "#EXTINF" => {
                let number = value.split(',').next().unwrap_or_default();
                length = Some(number.parse::<f64>().map_err(|_| format!("EXTINF {value}"))?);
            }
            "#EXT-X-TILES" => tiles = Some(tiles_of(value)?),
            "#EXT-X-TARGETDURATION" => {
                target = value.parse().map_err(|_| format!("EXT-X-TARGETDURATION {value}"))?;
            }
            "#EXT-X-MAP" | "#EXT-X-I-FRAMES-ONLY" => return Err(format!("{tag} with images")),
            _ if line.starts_with('#') => {}
            uri => {
                let length = length.take().ok_or(format!("4.3.2.1: no EXTINF before {uri}"))?;
                let (tiles, of_each) =
                    tiles.take().ok_or(format!("no EXT-X-TILES before {uri}"))?;
                if f64::round(length) > target {
                    return Err(format!("4.3.3.1: {length} s is longer than {target}"));
                }
                images.push(PlaylistImage { uri: uri.to_owned(), length, tiles, of_each });
            }
        }
        seen.push(line);
    }
    for tag in ["#EXT-X-IMAGES-ONLY", "#EXT-X-ENDLIST", "#EXT-X-PLAYLIST-TYPE:VOD"] {
        if !seen.contains(&tag) {
            return Err(format!("no {tag} in a complete playlist of images"));
        }
    }
    Ok(images)
}

/// `EXT-X-TILES`: width and height of a tile, columns, rows; seconds of a tile.
fn tiles_of(text: &str) -> Result<([u32; 4], f64), String> {
    let stated = attribute_list(text)?;
    let of = |name: &str| stated.get(name).ok_or(format!("EXT-X-TILES: no {name}"));
    let [width, height] = pair(of("RESOLUTION")?)?;
    let [columns, rows] = pair(of("LAYOUT")?)?;
    let seconds = of("DURATION")?.parse().map_err(|_| "EXT-X-TILES: DURATION is no number")?;
    Ok(([width, height, columns, rows], seconds))
}

/// RFC 8216, 4.2: an attribute list; quoted strings keep their quotes.
fn attribute_list(text: &str) -> Result<BTreeMap<String, String>, String> {
    let (mut parts, mut is_quoted) = (vec![String::new()], false);
    for character in text.chars() {
        is_quoted ^= character == '"';
        match parts.last_mut() {
            Some(part) if character != ',' || is_quoted => part.push(character),
            _ => parts.push(String::new()),
        }
    }
    let named = parts.iter().map(|part| {
        let (name, value) = part.split_once('=').ok_or(format!("4.2: {part} is no attribute"))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let all: BTreeMap<String, String> = named.collect::<Result<_, String>>()?;
    if all.len() == parts.len() { Ok(all) } else { Err("4.2: an attribute twice".to_owned()) }
}

/// Two positive numbers with an `x` between them.
fn pair(text: &str) -> Result<[u32; 2], String> {
    let numbers = text.split_once('x').map(|(a, b)| [a.parse(), b.parse()]);
    match numbers {
        Some([Ok(a @ 1..), Ok(b @ 1..)]) => Ok([a, b]),
        _ => Err(format!("{text} is not two numbers such as 5x5")),
    }
}

/// The thumbnails that a DASH manifest has.
///
/// # Errors
/// The violated rule.
pub fn of_manifest(manifest: &str, fetch: Fetch<'_>) -> Result<Vec<Thumbnail>, String> {
    let document = Document::parse(manifest).map_err(|error| error.to_string())?;
    let mpd = document.root_element();
    let seconds = |name: &str| {
        let text = of(mpd, name)?.strip_prefix("PT").and_then(|text| text.strip_suffix('S'));
        text.and_then(|text| text.parse().ok()).ok_or(format!("@{name}"))
    };
    let set = mpd.descendants().find(|it| it.attribute("contentType") == Some("image"));
    let set = set.ok_or("no set of images")?;
    of_dash(set, seconds("mediaPresentationDuration")?, seconds("minBufferTime")?, fetch)
}

/// The thumbnails of a DASH adaptation set of images in a period that lasts `duration` seconds, of
/// a presentation that buffers for `buffer` seconds.
///
/// # Errors
/// The violated rule.
pub(crate) fn of_dash(
    set: Node<'_, '_>,
    duration: f64,
    buffer: f64,
    fetch: Fetch<'_>,
) -> Result<Vec<Thumbnail>, String> {
    if of(set, "mimeType")? != "image/jpeg" {
        return Err("6.2.6: @mimeType is image/jpeg or image/png".to_owned());
    }
    let representation = child(set, "Representation")?;
    let property = child(representation, "EssentialProperty")?;
    if of(property, "schemeIdUri")? != "http://dashif.org/guidelines/thumbnail_tile" {
        return Err("6.2.6: EssentialProperty: the scheme of tiles".to_owned());
    }
    let layout = pair(of(property, "value")?)?;
    let template = child(set, "SegmentTemplate")?;
    if template.has_children() {
        return Err("6.2.6: the times of images are @duration alone".to_owned());
    }
    let media = of(template, "media")?;
    if !media.contains("$Number$") {
        return Err("6.2.6: @media has $Number$".to_owned());
    }
    let of_image = number(template, "duration")? / number(template, "timescale")?;
    let first = number(template, "startNumber")?;
    let (width, height) = (number(representation, "width")?, number(representation, "height")?);
    let sides = [width / f64::from(layout[0]), height / f64::from(layout[1])];
    if sides.iter().any(|side| side.fract() != 0.0) {
        return Err(format!("6.2.6: {layout:?} tiles do not divide {width}x{height}"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels")]
    let [size, whole] = [sides, [width, height]].map(|it| it.map(|side| side as u32));
    let of_each = of_image / f64::from(layout[0] * layout[1]);
    let most = number(representation, "bandwidth")? * buffer / 8.0;
    let mut thumbnails = Vec::new();
    let (mut at, mut k) = (0.0, first);
    let name = |k: f64| media.replace("$Number$", &k.to_string());
    while at < duration {
        let bytes = fetch(&name(k)).ok_or(format!("{} does not exist", name(k)))?;
        is_size(&bytes, whole)?;
        if bytes.len() as f64 > most + 1.0 {
            return Err(format!("5.3.5.2: {} is late at @bandwidth", name(k)));
        }
        let all = Tiles { uri: &name(k), size, layout };
        thumbnails.extend(all.between(at..(at + of_image).min(duration), of_each));
        (at, k) = (at + of_image, k + 1.0);
    }
    match fetch(&name(k)) {
        Some(_) => Err(format!("{} is after the end, but exists", name(k))),
        None => Ok(thumbnails),
    }
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Result<Node<'a, 'i>, String> {
    node.children().find(|it| it.tag_name().name() == name).ok_or(format!("no {name}"))
}

fn of<'a>(node: Node<'a, '_>, name: &str) -> Result<&'a str, String> {
    node.attribute(name).ok_or(format!("{} has no @{name}", node.tag_name().name()))
}

fn number(node: Node<'_, '_>, name: &str) -> Result<f64, String> {
    let text = of(node, name)?;
    text.parse().map_err(|_| format!("@{name}=\"{text}\" is no number"))
}

/// The thumbnails of a WebVTT file whose cues follow one another from zero.
///
/// # Errors
/// The violated rule.
pub fn of_webvtt(file: &[u8], fetch: Fetch<'_>) -> Result<Vec<Thumbnail>, String> {
    let (_, cues) = webvtt::parse(file)?;
    let mut thumbnails: Vec<Thumbnail> = Vec::new();
    for cue in cues {
        let after = thumbnails.last().map_or(0, |last| last.time.end);
        if cue.time.start != after {
            return Err(format!("a cue begins at {} ms, after {after}", cue.time.start));
        }
        let text = cue.text();
        let (uri, fragment) = text.split_once('#').ok_or(format!("{text} names no rectangle"))?;
        let numbers = fragment.strip_prefix("xywh=").ok_or(format!("4.2.2: {fragment}"))?;
        let numbers = numbers.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>();
        let place = numbers.ok().and_then(|numbers| <[u32; 4]>::try_from(numbers).ok());
        let place = place.filter(|place| place[2] > 0 && place[3] > 0);
        let place = place.ok_or(format!("4.2.2: {fragment} is not four numbers"))?;
        let image = fetch(uri).ok_or(format!("{uri} does not exist"))?;
        let [width, height] = jpeg_size(&image)?;
        if place[0] + place[2] > width || place[1] + place[3] > height {
            return Err(format!("{fragment} is beyond an image of {width}x{height}"));
        }
        thumbnails.push(Thumbnail { time: cue.time, uri: uri.to_owned(), place });
    }
    Ok(thumbnails)
}

/// The tiles of an image.
struct Tiles<'a> {
    uri: &'a str,
    /// Width and height of one.
    size: [u32; 2],
    /// Columns and rows.
    layout: [u32; 2],
}

impl Tiles<'_> {
    /// Thumbnails shown in this time of seconds, each for `of_each`: left to right, row by row.
    fn between(&self, time: Range<f64>, of_each: f64) -> Vec<Thumbnail> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a title")]
        let ms = |seconds: f64| (seconds * 1000.0).round() as u64;
        let [width, height] = self.size;
        let all = (0..self.layout[0] * self.layout[1]).map(|tile| {
            let start = time.start + f64::from(tile) * of_each;
            let (column, row) = (tile % self.layout[0], tile / self.layout[0]);
            Thumbnail {
                time: ms(start)..ms((start + of_each).min(time.end)),
                uri: self.uri.to_owned(),
                place: [column * width, row * height, width, height],
            }
        });
        all.filter(|thumbnail| !thumbnail.time.is_empty()).collect()
    }
}

fn is_size(image: &[u8], wanted: [u32; 2]) -> Result<(), String> {
    let found = jpeg_size(image)?;
    if found == wanted { Ok(()) } else { Err(format!("an image of {found:?}, not {wanted:?}")) }
}

/// B.2: width and height of a JPEG image that is whole, from its start to its end.
fn jpeg_size(image: &[u8]) -> Result<[u32; 2], String> {
    let body = image.strip_prefix(&[0xff, 0xd8]).ok_or("B.2.1: no SOI: not JPEG")?;
    if !image.ends_with(&[0xff, 0xd9]) {
        return Err("B.2.1: no EOI: the image is cut off".to_owned());
    }
    let mut rest = body;
    while let [0xff, marker, high, low, ..] = *rest {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let segment = rest.get(4..2 + length).ok_or("B.1.1.4: a segment without its end")?;
        match (marker, segment) {
            // SOF: precision, lines, samples in a line.
            (0xc0..=0xc2, [_, h, eight, w, idth, ..]) => {
                let [height, width] = [[*h, *eight], [*w, *idth]].map(u16::from_be_bytes);
                return Ok([width.into(), height.into()]);
            }
            (0xda, _) => return Err("B.2.2: a scan before its frame".to_owned()),
            _ => rest = &rest[2 + length..],
        }
    }
    Err("B.2.2: no frame".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 26 thumbnails, one a second, in two images; the title lasts 25.5 s.
    const VARIANT: &str = "BANDWIDTH=2,RESOLUTION=4x2,CODECS=\"jpeg\",URI=\"list.m3u8\"";
    const PLAYLIST: &str = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:25\n\
        #EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-IMAGES-ONLY\n#EXTINF:25.0,\n\
        #EXT-X-TILES:RESOLUTION=4x2,LAYOUT=5x5,DURATION=1\n0.jpg\n#EXTINF:0.5,\n\
        #EXT-X-TILES:RESOLUTION=4x2,LAYOUT=5x5,DURATION=1\n1.jpg\n#EXT-X-ENDLIST\n";
    const SET: &str = "<AdaptationSet contentType=\"image\" mimeType=\"image/jpeg\">\
        <SegmentTemplate timescale=\"10\" duration=\"250\" startNumber=\"0\" \
        media=\"$Number$.jpg\"/><Representation bandwidth=\"300\" width=\"20\" height=\"10\">\
        <EssentialProperty schemeIdUri=\"http://dashif.org/guidelines/thumbnail_tile\" \
        value=\"5x5\"/></Representation></AdaptationSet>";

    /// An image of this size, without a scan.
    fn jpeg(width: u8, height: u8) -> Vec<u8> {
        let comment = [0xff, 0xfe, 0, 4, b'h', b'i'];
        let frame = [0xff, 0xc0, 0, 8, 8, 0, height, 0, width, 1];
        [&[0xff, 0xd8][..], &comment, &frame, &[0xff, 0xd9]].concat()
    }

    fn files(playlist: &str, image: &[u8]) -> impl FnMut(&str) -> Option<Vec<u8>> {
        move |uri| match uri {
            "list.m3u8" => Some(playlist.as_bytes().to_vec()),
            "0.jpg" | "1.jpg" => Some(image.to_vec()),
            _ => None,
        }
    }

    fn dash(set: &str, image: &[u8]) -> Result<Vec<Thumbnail>, String> {
        let document = Document::parse(set).unwrap();
        of_dash(document.root_element(), 25.5, 1.0, &mut files("", image))
    }

    fn hls(variant: &str, playlist: &str) -> Result<Vec<Thumbnail>, String> {
        // The rates of a test image are about 8 and 350 bits per second.
        let variant = variant.replace("BANDWIDTH=2,", "BANDWIDTH=360,");
        of_hls(&variant, &mut files(playlist, &jpeg(20, 10)))
    }

    fn cues() -> String {
        let cue = |n: u32| {
            let end = if n == 25 { 25_500 } else { (n + 1) * 1000 };
            let time = |ms: u32| format!("00:{:02}.{:03}", ms / 1000, ms % 1000);
            let (x, y, image) = (n % 25 % 5 * 4, n % 25 / 5 * 2, n / 25);
            format!("{} --> {}\n{image}.jpg#xywh={x},{y},4,2\n\n", time(n * 1000), time(end))
        };
        (0..26).map(cue).fold("WEBVTT\n\n".to_owned(), |text, cue| text + &cue)
    }

    #[test]
    fn the_three_forms_give_the_same_thumbnails() {
        let from_hls = hls(VARIANT, PLAYLIST).unwrap();
        assert_eq!(from_hls.len(), 26);
        let last = Thumbnail { time: 25_000..25_500, uri: "1.jpg".to_owned(), place: [0, 0, 4, 2] };
        assert_eq!(from_hls[25], last);
        assert_eq!(from_hls[7].place, [8, 2, 4, 2]);
        assert_eq!(dash(SET, &jpeg(20, 10)).as_ref(), Ok(&from_hls));
        let webvtt = of_webvtt(cues().as_bytes(), &mut files("", &jpeg(20, 10)));
        assert_eq!(webvtt, Ok(from_hls));
    }

    #[test]
    fn each_planted_fault_is_found() {
        let faults = [
            ("#EXTM3U\n", "", "EXTM3U"),
            ("#EXT-X-IMAGES-ONLY\n", "", "EXT-X-IMAGES-ONLY"),
            ("#EXT-X-ENDLIST\n", "", "EXT-X-ENDLIST"),
            ("TARGETDURATION:25", "TARGETDURATION:24", "longer than 24"),
            ("#EXTINF:25.0,\n", "", "no EXTINF"),
            ("#EXT-X-TILES:RESOLUTION=4x2,LAYOUT=5x5,DURATION=1\n0", "0", "no EXT-X-TILES"),
            ("EXTINF:25.0", "EXTINF:24.0", "EXTINF 24"),
            ("EXTINF:25.0", "EXTINF:25.1", "longer than all tiles"),
            ("RESOLUTION=4x2", "RESOLUTION=20x10", "RESOLUTION 4x2 of tiles of 20x10"),
            ("LAYOUT=5x5", "LAYOUT=25x1", "an image of [20, 10]"),
            ("LAYOUT=5x5", "LAYOUT=5x0", "two numbers"),
            (",DURATION=1", "", "no DURATION"),
            ("1.jpg", "2.jpg", "2.jpg does not exist"),
            ("#EXT-X-IMAGES-ONLY", "#EXT-X-IMAGES-ONLY\n#EXT-X-MAP:URI=\"x\"", "with images"),
        ];
        for (good, bad, rule) in faults {
            assert!(PLAYLIST.contains(good), "{good}");
            let said = hls(VARIANT, &PLAYLIST.replacen(good, bad, 1)).unwrap_err();
            assert!(said.contains(rule), "{bad:?}: {said}");
        }
        let faults = [
            ("BANDWIDTH=2,", "", "no BANDWIDTH"),
            ("BANDWIDTH=2,", "BANDWIDTH=300,", "less than the rate"),
            ("4x2", "20x10", "RESOLUTION 20x10"),
            ("\"jpeg\"", "\"png\"", "of JPEG"),
            ("list", "other", "does not exist"),
            (",URI", ",BANDWIDTH=3,URI", "twice"),
        ];
        for (good, bad, rule) in faults {
            let said = hls(&VARIANT.replacen(good, bad, 1), PLAYLIST).unwrap_err();
            assert!(said.contains(rule), "{bad:?}: {said}");
        }
    }

    #[test]
    fn each_planted_fault_of_a_set_is_found() {
        let faults = [
            ("image/jpeg", "image/gif", "@mimeType"),
            ("guidelines/thumbnail_tile", "tiles", "scheme"),
            ("5x5", "5", "two numbers"),
            ("5x5", "3x5", "do not divide"),
            ("width=\"20\"", "width=\"40\"", "an image of"),
            ("duration=\"250\"", "duration=\"500\"", "after the end"),
            ("duration=\"250\"", "duration=\"120\"", "2.jpg does not exist"),
            ("startNumber=\"0\"", "startNumber=\"1\"", "2.jpg does not exist"),
            ("duration=\"250\" ", "", "no @duration"),
            ("$Number$.jpg\"/>", "$Number$.jpg\"><SegmentTimeline/></SegmentTemplate>", "alone"),
            ("$Number$", "$Time$", "has $Number$"),
            ("bandwidth=\"300\"", "bandwidth=\"100\"", "late at @bandwidth"),
        ];
        for (good, bad, rule) in faults {
            assert!(SET.contains(good), "{good}");
            let said = dash(&SET.replacen(good, bad, 1), &jpeg(20, 10)).unwrap_err();
            assert!(said.contains(rule), "{bad:?}: {said}");
        }
        let whole = jpeg(20, 10);
        for (image, rule) in [
            (&whole[2..], "not JPEG"),
            (&whole[..whole.len() - 2], "cut off"),
            (&[0xff, 0xd8, 0xff, 0xd9][..], "no frame"),
            (&[0xff, 0xd8, 0xff, 0xfe, 9, 9, 0xff, 0xd9], "without its end"),
            (&[0xff, 0xd8, 0xff, 0xda, 0, 2, 0xff, 0xd9], "a scan before"),
        ] {
            assert!(dash(SET, image).unwrap_err().contains(rule), "{rule}");
        }
    }

    #[test]
    fn each_planted_fault_of_cues_is_found() {
        let faults = [
            ("00:03.000 --> 00:04.000", "00:03.500 --> 00:04.000", "begins at 3500 ms"),
            ("#xywh=0,0", "", "names no rectangle"),
            ("xywh=0,0", "xyhw=0,0", "4.2.2"),
            ("xywh=0,0,4,2", "xywh=0,0,4", "four numbers"),
            ("xywh=0,0,4,2", "xywh=0,0,4,0", "four numbers"),
            ("xywh=16,8,4,2", "xywh=17,8,4,2", "beyond an image"),
            ("1.jpg", "2.jpg", "does not exist"),
        ];
        for (good, bad, rule) in faults {
            assert!(cues().contains(good), "{good}");
            let file = cues().replacen(good, bad, 1);
            let said = of_webvtt(file.as_bytes(), &mut files("", &jpeg(20, 10))).unwrap_err();
            assert!(said.contains(rule), "{bad:?}: {said}");
        }
    }
}
