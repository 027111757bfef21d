//! The pieces of a representation in one period, in each of the notations (5.3.9).
//!
//! Attributes of an outer element are inherited by inner elements unless these override them.

use super::manifest::children;
use super::template::{Names, fill};
use super::time::to_ticks;
use super::{MOST_PIECES, Part, Pieces};
use crate::boxes::ticks;
use crate::source::Piece;
use crate::url::Url;
use roxmltree::Node;
use std::ops::Range;
use std::time::Duration;

/// The address and the identifiers of a representation.
#[derive(Clone, Copy)]
pub(super) struct SegmentLocation<'a> {
    pub(super) manifest: &'a Url,
    pub(super) base: &'a Url,
    pub(super) names: Names<'a>,
    /// The length of the period.
    pub(super) length: Option<Duration>,
}

/// The pieces of a representation. `levels` are representation, adaptation set, period.
pub(super) fn part(place: &SegmentLocation<'_>, levels: &[Node<'_, '_>]) -> Result<Part, String> {
    let ways = ["SegmentTemplate", "SegmentList", "SegmentBase"];
    let way = levels
        .iter()
        .find_map(|level| ways.into_iter().find(|way| children(*level, way).next().is_some()));
    let said = Said {
        place,
        levels: levels.iter().filter_map(|level| children(*level, way?).next()).collect(),
    };
    let pieces = match way {
        Some("SegmentTemplate") => Pieces::Known(said.template()?),
        Some("SegmentList") => Pieces::Known(said.list()?),
        Some(_) => said.base()?,
        // The whole file is the only segment.
        None => {
            let piece = Piece { reference: Some(said.reference("")?), range: None };
            Pieces::Known(vec![(piece, said.length()?)])
        }
    };
    Ok(Part { init: said.init()?, pieces })
}

/// The elements of one notation, from the representation outwards.
struct Said<'a, 'x, 'i> {
    place: &'a SegmentLocation<'a>,
    levels: Vec<Node<'x, 'i>>,
}

impl<'x, 'i> Said<'_, 'x, 'i> {
    fn text(&self, name: &str) -> Option<&'x str> {
        self.levels.iter().find_map(|level| level.attribute(name))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        self.text(name).map(|text| number(name, text)).transpose()
    }

    fn child(&self, name: &'static str) -> Option<Node<'x, 'i>> {
        self.levels.iter().find_map(|level| children(*level, name).next())
    }

    fn scale(&self) -> Result<u64, String> {
        match self.number("timescale")? {
            Some(0) => Err("its timescale is 0".to_owned()),
            scale => Ok(scale.unwrap_or(1)),
        }
    }

    fn length(&self) -> Result<Duration, String> {
        let reason = "neither its period nor the manifest says how long it is";
        self.place.length.ok_or_else(|| reason.to_owned())
    }

    /// A reference as short as possible: a film has thousands.
    fn reference(&self, segment: &str) -> Result<Box<str>, String> {
        let SegmentLocation { manifest, base, .. } = self.place;
        if base == manifest && !segment.is_empty() {
            return Ok(segment.into());
        }
        let url = match segment {
            "" => Ok((*base).clone()),
            segment => base.join(segment),
        };
        url.map(|url| url.to_string().into()).map_err(|error| error.to_string())
    }

    /// The header, which is fetched before the first piece.
    fn init(&self) -> Result<Option<Piece>, String> {
        if let Some(template) = self.text("initialization") {
            let reference = self.reference(&fill(template, self.place.names)?)?;
            return Ok(Some(Piece { reference: Some(reference), range: None }));
        }
        let Some(node) = self.child("Initialization") else { return Ok(None) };
        let reference = self.reference(node.attribute("sourceURL").unwrap_or_default())?;
        let range = node.attribute("range").map(range).transpose()?;
        Ok(Some(Piece { reference: Some(reference), range }))
    }

    fn template(&self) -> Result<Vec<(Piece, Duration)>, String> {
        let template = self.text("media").ok_or("its SegmentTemplate has no media")?;
        let (scale, first) = (self.scale()?, self.number("startNumber")?.unwrap_or(1));
        let mut times = match self.times(scale)? {
            Some(times) => times,
            None => self.even(scale)?,
        };
        if let Some(last) = self.number("endNumber")? {
            let most = last.saturating_sub(first).saturating_add(1);
            times.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        let piece = |(number, (time, length)): (u64, (u64, u64))| {
            let names = Names { number, time, ..self.place.names };
            let reference = Some(self.reference(&fill(template, names)?)?);
            Ok((Piece { reference, range: None }, ticks(length, scale)))
        };
        (first..=u64::MAX).zip(times).map(piece).collect()
    }

    fn list(&self) -> Result<Vec<(Piece, Duration)>, String> {
        let scale = self.scale()?;
        let named = |level: &Node<'x, 'i>| children(*level, "SegmentURL").next().is_some();
        let none = "its SegmentList names no SegmentURL";
        let level = self.levels.iter().find(|level| named(level)).ok_or(none)?;
        let urls: Vec<_> = children(*level, "SegmentURL").collect();
        let times = match (self.times(scale)?, self.number("duration")?) {
            (Some(times), _) => times,
            (None, None) if urls.len() == 1 => vec![(0, to_ticks(self.length()?, scale))],
            (None, length) => {
                let length = some_length(length)?;
                // The last segment ends with the period.
                let most = self.place.length.map_or(u64::MAX, |whole| to_ticks(whole, scale));
                let time = |number: u64| number.saturating_mul(length);
                let left = |number| most.saturating_sub(time(number)).min(length);
                (0..urls.len() as u64).map(|number| (time(number), left(number))).collect()
            }
        };
        if times.len() < urls.len() {
            let (times, urls) = (times.len(), urls.len());
            return Err(format!("its SegmentList has {urls} segments and times for {times}"));
        }
        let piece = |(node, (_, length)): (Node<'x, 'i>, (u64, u64))| {
            let reference = self.reference(node.attribute("media").unwrap_or_default())?;
            let range = node.attribute("mediaRange").map(range).transpose()?;
            Ok((Piece { reference: Some(reference), range }, ticks(length, scale)))
        };
        urls.into_iter().zip(times).map(piece).collect()
    }

    fn base(&self) -> Result<Pieces, String> {
        let none = "its SegmentBase has no indexRange, which is needed";
        let index = self.text("indexRange").ok_or(none)?;
        Ok(Pieces::Indexed { reference: self.reference("")?, index: range(index)? })
    }

    /// The start and length of each segment of a timeline.
    fn times(&self, scale: u64) -> Result<Option<Vec<(u64, u64)>>, String> {
        let Some(timeline) = self.child("SegmentTimeline") else { return Ok(None) };
        let begin = self.number("presentationTimeOffset")?.unwrap_or(0);
        let end = self.place.length.map(|length| begin.saturating_add(to_ticks(length, scale)));
        let rows: Vec<_> = children(timeline, "S").collect();
        let attribute = |node: Node<'x, 'i>, name: &str| {
            node.attribute(name).map(|text| number(name, text)).transpose()
        };
        let mut times = Vec::new();
        let mut at = 0;
        for (row, node) in rows.iter().enumerate() {
            at = attribute(*node, "t")?.unwrap_or(at);
            let length = some_length(attribute(*node, "d")?)?;
            let more: i64 = match node.attribute("r") {
                None => 0,
                Some(text) => text.parse().map_err(|_| format!("r=\"{text}\" is no number"))?,
            };
            let count = match u64::try_from(more) {
                Ok(more) => more.saturating_add(1),
                // Repeated until the next row, or the end of the period.
                Err(_) => {
                    let next = rows.get(row + 1).map(|next| attribute(*next, "t")).transpose()?;
                    let until = next
                        .flatten()
                        .or(end)
                        .ok_or("a timeline repeats for ever, and has no end")?;
                    until.saturating_sub(at).div_ceil(length)
                }
            };
            // Before the loop: one row can ask for 2^63 segments.
            bounded(count.saturating_add(times.len() as u64))?;
            for _ in 0..count {
                times.push((at, length));
                at = at.saturating_add(length);
            }
        }
        Ok(Some(times))
    }

    /// The times of segments of equal length; the last may be shorter.
    fn even(&self, scale: u64) -> Result<Vec<(u64, u64)>, String> {
        let length = some_length(self.number("duration")?)?;
        let begin = self.number("presentationTimeOffset")?.unwrap_or(0);
        let whole = to_ticks(self.length()?, scale);
        let count = bounded(whole.div_ceil(length))?;
        let time = |number: u64| number * length;
        let left = |number| length.min(whole - time(number));
        Ok((0..count).map(|number| (begin.saturating_add(time(number)), left(number))).collect())
    }
}

fn some_length(length: Option<u64>) -> Result<u64, String> {
    match length {
        None => Err("its segments have no duration".to_owned()),
        Some(0) => Err("a segment's duration is 0".to_owned()),
        Some(length) => Ok(length),
    }
}

fn bounded(count: u64) -> Result<u64, String> {
    if count > MOST_PIECES as u64 {
        return Err(format!("it has {count} segments; at most {MOST_PIECES} can be played"));
    }
    Ok(count)
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name}=\"{text}\" is no number"))
}

/// Parses a range such as `0-799`, whose end is included.
fn range(text: &str) -> Result<Range<u64>, String> {
    let read = || {
        let (first, last) = text.split_once('-')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        Some(first..last.checked_add(1)?).filter(|range| !range.is_empty())
    };
    read().ok_or_else(|| format!("'{text}' is no range of bytes"))
}
