//! The tree of a manifest: periods, what is played of each, how long each is.

use super::segments::{self, Place};
use super::template::Names;
use super::{Part, time};
use crate::viewer::url::Url;
use roxmltree::{Document, Node, ParsingOptions};
use std::time::Duration;

/// Video and audio, as far as there are any: the parts of each, period by period.
pub(super) fn tracks(url: &Url, text: &str) -> Result<Vec<Vec<Part>>, String> {
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
    if links.into_iter().any(|link| link != NOTHING) {
        let reason = "a part of it lies elsewhere (xlink:href); such are not followed";
        return Err(reason.to_owned());
    }
    let periods: Vec<Node<'_, '_>> = children(root, "Period").collect();
    let lengths = lengths(root, &periods)?;
    let base = based(url, root)?;
    let mut tracks: Vec<(Kind, Vec<Part>)> = Vec::new();
    for (number, (period, length)) in periods.iter().zip(lengths).enumerate() {
        let base = based(&base, *period)?;
        let chosen = chosen(*period);
        if number == 0 {
            tracks = chosen.iter().map(|(kind, _)| (*kind, Vec::new())).collect();
        }
        for (kind, parts) in &mut tracks {
            let set = chosen.iter().find(|(of, _)| of == kind).map(|(_, set)| *set);
            let set = set.ok_or_else(|| {
                format!("period {} has no {}, but the first has", number + 1, kind.word())
            })?;
            parts.push(part(url, &base, *period, set, length)?);
        }
    }
    if tracks.is_empty() {
        return Err("it names nothing that can be played".to_owned());
    }
    Ok(tracks.into_iter().map(|(_, parts)| parts).collect())
}

/// What a track carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Video,
    Audio,
    Other,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Other => "track of its kind",
        }
    }
}

/// Those of this name that are not to be looked for elsewhere and found to be nothing.
pub(super) fn children<'a, 'i: 'a>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    let named = move |child: &Node<'_, '_>| child.tag_name().name() == name;
    let here = |child: &Node<'_, '_>| child.attribute((XLINK, "href")).is_none();
    node.children().filter(named).filter(here)
}

/// How long each period is, where that can be known.
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
    // Where the period before ended, if that is known.
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

/// `base`, or what the element makes of it.
fn based(base: &Url, node: Node<'_, '_>) -> Result<Url, String> {
    match children(node, "BaseURL").next().and_then(|node| node.text()) {
        Some(text) => base.join(text.trim()).map_err(|error| error.to_string()),
        None => Ok(base.clone()),
    }
}

/// The first set of video, and of audio; of neither, the first of all.
fn chosen<'a, 'i>(period: Node<'a, 'i>) -> Vec<(Kind, Node<'a, 'i>)> {
    let sets = || children(period, "AdaptationSet").filter(|set| !is_for_tricks(*set));
    let first = |kind| sets().find(|set| self::kind(*set) == kind).map(|set| (kind, set));
    let mut chosen: Vec<_> = [Kind::Video, Kind::Audio].into_iter().filter_map(first).collect();
    if chosen.is_empty() {
        chosen.extend(sets().next().map(|set| (Kind::Other, set)));
    }
    chosen
}

fn kind(set: Node<'_, '_>) -> Kind {
    let inner = children(set, "ContentComponent").chain(children(set, "Representation"));
    let said = std::iter::once(set)
        .chain(inner)
        .find_map(|node| node.attribute("contentType").or(node.attribute("mimeType")));
    match said.unwrap_or_default().split('/').next() {
        Some("video") => Kind::Video,
        Some("audio") => Kind::Audio,
        _ => Kind::Other,
    }
}

/// For winding, with a picture every now and then.
fn is_for_tricks(set: Node<'_, '_>) -> bool {
    let properties =
        children(set, "EssentialProperty").chain(children(set, "SupplementalProperty"));
    let scheme = |node: Node<'_, '_>| node.attribute("schemeIdUri").map(str::to_owned);
    properties.filter_map(scheme).any(|scheme| scheme.ends_with("guidelines/trickmode"))
}

/// The representation with the most bits per second, of several alike the first.
fn part(
    manifest: &Url,
    base: &Url,
    period: Node<'_, '_>,
    set: Node<'_, '_>,
    length: Option<Duration>,
) -> Result<Part, String> {
    let bandwidth = |node: Node<'_, '_>| {
        node.attribute("bandwidth").and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
    };
    let all = children(set, "Representation");
    let best = all.reduce(|best, next| if bandwidth(best) < bandwidth(next) { next } else { best });
    let representation = best.ok_or("an adaptation set has no representation")?;
    let base = based(&based(base, set)?, representation)?;
    let names = Names {
        id: representation.attribute("id").unwrap_or_default(),
        bandwidth: bandwidth(representation),
        number: 0,
        time: 0,
    };
    let place = Place { manifest, base: &base, names, length };
    segments::part(&place, &[representation, set, period])
}

const XLINK: &str = "http://www.w3.org/1999/xlink";

/// Whoever is sent here finds nothing, and needs not look (5.5.3).
const NOTHING: &str = "urn:mpeg:dash:resolve-to-zero:2013";

/// A manifest of more elements and attributes than this is no manifest.
const MOST_NODES: u32 = 1_000_000;
