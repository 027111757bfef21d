//! The XML tree of a manifest: periods, the tracks to be played, and their lengths.

use super::segments::{self, SegmentLocation};
use super::template::Names;
use super::{Part, time};
use crate::source::codec_families;
use crate::url::Url;
use player::Rendition;
use roxmltree::{Document, Node, ParsingOptions};
use std::time::Duration;
use units::BitRate;

/// The tracks of a manifest, and where they are.
pub(super) struct Listed {
    /// The renditions of the first track.
    pub(super) renditions: Vec<Rendition>,
    /// The parts of each track, period by period.
    pub(super) tracks: Vec<Vec<Part>>,
    /// The base addresses of the manifest, each with the name of its location.
    pub(super) bases: Vec<(String, Url)>,
    /// Where the steering manifest is.
    pub(super) steering: Option<Url>,
}

/// The video and audio tracks, where they exist. `rank` selects the rendition of the first track;
/// all others, and the first without `rank`, use the best.
pub(super) fn tracks(url: &Url, text: &str, rank: Option<usize>) -> Result<Listed, String> {
    // Manifests come from foreign servers; the tree takes many times the memory of the text.
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| format!("it is no XML that can be read: {error}"))?;
    let root = document.root_element();
    if root.tag_name().name() != "MPD" {
        return Err(format!("it is no MPD but <{}>", root.tag_name().name()));
    }
    if root.attribute("type") == Some("dynamic") {
        return Err("it is of type dynamic; live programmes cannot be played as yet".to_owned());
    }
    let links = root.descendants().filter_map(|node| node.attribute((XLINK, "href")));
    // Parts that are missing would make the play-out shorter than it says, so this is refused.
    if links.into_iter().any(|link| link != NOTHING) {
        let reason = "a part of it lies elsewhere (xlink:href); such are not followed";
        return Err(reason.to_owned());
    }
    let periods: Vec<Node<'_, '_>> = children(root, "Period").collect();
    let lengths = lengths(root, &periods)?;
    let base = based(url, root)?;
    let address = |node: Node<'_, '_>| url.join(node.text()?.trim()).ok();
    let bases = children(root, "BaseURL").filter_map(|node| {
        let base = address(node)?;
        let name =
            node.attribute("serviceLocation").map_or_else(|| base.to_string(), str::to_owned);
        Some((name, base))
    });
    let steering = children(root, "ContentSteering").find_map(address);
    let mut tracks: Vec<(TrackContent, Vec<Part>)> = Vec::new();
    let mut renditions = Vec::new();
    for (number, (period, length)) in periods.iter().zip(lengths).enumerate() {
        let base = based(&base, *period)?;
        let chosen = chosen(*period);
        // The first period decides on the tracks; later ones must offer the same kinds.
        if number == 0 {
            tracks = chosen.iter().map(|(kind, _)| (*kind, Vec::new())).collect();
        }
        for (track, (kind, parts)) in tracks.iter_mut().enumerate() {
            let none =
                || format!("period {} has no {}, but the first has", number + 1, kind.word());
            let (_, set) = *chosen.iter().find(|(of, _)| of == kind).ok_or_else(none)?;
            let ladder = ladder(set)?;
            let of_first = if track == 0 { rank } else { None };
            if track == 0 && number == 0 {
                renditions = ladder.iter().map(|node| rendition(*node)).collect();
            }
            // A rank means the same rendition in every period only if each has equally many.
            if of_first.is_some() && ladder.len() != renditions.len() {
                let (here, first) = (ladder.len(), renditions.len());
                return Err(format!(
                    "period {} offers its {} in {here} renditions, the first in {first}; players \
                     that change between them cannot play that",
                    number + 1,
                    kind.word()
                ));
            }
            let chosen = ladder[of_first.unwrap_or(ladder.len() - 1)];
            parts.push(part(url, &base, [chosen, set, *period], length)?);
        }
    }
    if tracks.is_empty() {
        return Err("it names nothing that can be played".to_owned());
    }
    let tracks = tracks.into_iter().map(|(_, parts)| parts).collect();
    Ok(Listed { renditions, tracks, bases: bases.collect(), steering })
}

/// The content of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrackContent {
    Video,
    Audio,
    Other,
}

impl TrackContent {
    fn word(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Other => "track of its kind",
        }
    }
}

/// The child elements with this name; refuses remote ones (`xlink`).
pub(super) fn children<'a, 'i: 'a>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    let named = move |child: &Node<'_, '_>| child.tag_name().name() == name;
    let here = |child: &Node<'_, '_>| child.attribute((XLINK, "href")).is_none();
    node.children().filter(named).filter(here)
}

/// The length of each period, where it is known.
fn lengths(root: Node<'_, '_>, periods: &[Node<'_, '_>]) -> Result<Vec<Option<Duration>>, String> {
    let read = |node: Node<'_, '_>, name: &str| match node.attribute(name) {
        None => Ok(None),
        Some(text) => match time::duration(text) {
            Some(time) => Ok(Some(time)),
            None => Err(format!("{name}=\"{text}\" is no time")),
        },
    };
    let whole = read(root, "mediaPresentationDuration")?;
    let mut lengths = Vec::new();
    // The end of the period before, where it is known.
    let mut end = Some(Duration::ZERO);
    for (number, period) in periods.iter().enumerate() {
        let start = read(*period, "start")?.or(end);
        let next = match periods.get(number + 1) {
            Some(next) => read(*next, "start")?,
            None => whole,
        };
        let until_next = start.zip(next).map(|(start, next)| next.saturating_sub(start));
        let length = read(*period, "duration")?.or(until_next);
        end = start.zip(length).map(|(start, length)| start.saturating_add(length));
        lengths.push(length);
    }
    Ok(lengths)
}

/// The base address of an element: `base`, or as its BaseURL changes it.
fn based(base: &Url, node: Node<'_, '_>) -> Result<Url, String> {
    match children(node, "BaseURL").next().and_then(|node| node.text()) {
        Some(text) => base.join(text.trim()).map_err(|error| error.to_string()),
        None => Ok(base.clone()),
    }
}

/// The first set of video and the first of audio; if there is neither, the first set.
fn chosen<'a, 'i>(period: Node<'a, 'i>) -> Vec<(TrackContent, Node<'a, 'i>)> {
    let sets = || children(period, "AdaptationSet").filter(|set| !is_for_tricks(*set));
    let first = |kind| sets().find(|set| self::kind(*set) == kind).map(|set| (kind, set));
    let mut chosen: Vec<_> =
        [TrackContent::Video, TrackContent::Audio].into_iter().filter_map(first).collect();
    if chosen.is_empty() {
        chosen.extend(sets().next().map(|set| (TrackContent::Other, set)));
    }
    chosen
}

fn kind(set: Node<'_, '_>) -> TrackContent {
    let inner = children(set, "ContentComponent").chain(children(set, "Representation"));
    let said = std::iter::once(set)
        .chain(inner)
        .find_map(|node| node.attribute("contentType").or(node.attribute("mimeType")));
    match said.unwrap_or_default().split('/').next() {
        Some("video") => TrackContent::Video,
        Some("audio") => TrackContent::Audio,
        _ => TrackContent::Other,
    }
}

/// Whether the set is for trick modes, with a picture every now and then.
fn is_for_tricks(set: Node<'_, '_>) -> bool {
    let properties =
        children(set, "EssentialProperty").chain(children(set, "SupplementalProperty"));
    let scheme = |node: Node<'_, '_>| node.attribute("schemeIdUri").map(str::to_owned);
    properties.filter_map(scheme).any(|scheme| scheme.ends_with("guidelines/trickmode"))
}

/// The representations of a set, in ascending order of their bit rates; of several with one rate
/// the first, and of several codecs those with the codec of the best.
fn ladder<'a, 'i>(set: Node<'a, 'i>) -> Result<Vec<Node<'a, 'i>>, String> {
    let mut all: Vec<_> = children(set, "Representation").collect();
    all.sort_by_key(|node| bandwidth(*node));
    all.dedup_by_key(|node| bandwidth(*node));
    let best = all.last().ok_or("an adaptation set has no representation")?;
    let codec = |node: &Node<'_, '_>| {
        node.attribute("codecs").or(set.attribute("codecs")).map(codec_families)
    };
    let of_best = codec(best);
    all.retain(|node| codec(node) == of_best);
    Ok(all)
}

fn bandwidth(node: Node<'_, '_>) -> u64 {
    node.attribute("bandwidth").and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn rendition(node: Node<'_, '_>) -> Rendition {
    let rate = BitRate(bandwidth(node));
    Rendition { peak: rate, mean: rate, listed: false }
}

/// The part of a track in a period. `levels` are representation, adaptation set, period.
fn part(
    manifest: &Url,
    base: &Url,
    levels: [Node<'_, '_>; 3],
    length: Option<Duration>,
) -> Result<Part, String> {
    let [representation, set, _] = levels;
    let base = based(&based(base, set)?, representation)?;
    let names = Names {
        id: representation.attribute("id").unwrap_or_default(),
        bandwidth: bandwidth(representation),
        number: 0,
        time: 0,
    };
    let place = SegmentLocation { manifest, base: &base, names, length };
    segments::part(&place, &levels)
}

const XLINK: &str = "http://www.w3.org/1999/xlink";

/// The address of a remote element that is empty by definition (5.5.3).
const NOTHING: &str = "urn:mpeg:dash:resolve-to-zero:2013";

/// The largest number of elements and attributes that is parsed.
const MOST_NODES: u32 = 1_000_000;
