//! The renditions of a viewer's first track: which are known, how one gets to know another, and
//! which is in use.
//!
//! ```text
//!   Places ──(wanted ─▶ request ─▶ found)──▶ shelf ◀── change_to ──▶ in use: the session's track 0
//! ```
//!
//! A list of pieces is asked for when a piece of it is wanted for the first time, as players do.
//! What is chosen is [`player::RenditionSelector`]' affair.

use crate::viewer::ViewerError;
use crate::viewer::dash::{Manifest, read_manifest};
use crate::viewer::source::{FetchRequest, Listing, Offers, TrackSource, read_playlist};
use crate::viewer::url::Url;
use player::{AbrRule, RenditionSelector, TrackTimeline};
use std::time::Duration;

/// The renditions of a title and the one that a player uses.
#[derive(Debug)]
pub(super) struct Ladder {
    pub(super) renditions: RenditionSelector,
    places: ListingSource,
    /// What is known and not in use.
    shelf: Vec<Option<KnownRendition>>,
    /// A manifest of which an index is still to come, and of which rendition.
    coming: Option<(usize, Manifest)>,
    /// In use.
    now: usize,
}

/// Where the pieces of each are said.
#[derive(Debug)]
enum ListingSource {
    /// In a media playlist for each.
    Lists(Vec<Url>),
    /// In a manifest that has them all.
    Manifest { url: Url, text: Vec<u8> },
}

#[derive(Debug)]
struct KnownRendition {
    source: TrackSource,
    /// The last of its headers that was fetched.
    init: Option<usize>,
}

impl Ladder {
    pub(super) fn of_lists(switching: AbrRule, offers: Offers) -> Self {
        let (lists, renditions) =
            offers.variants.into_iter().map(|variant| (variant.url, variant.rendition)).unzip();
        Self::new(
            RenditionSelector::new(switching, renditions, offers.named),
            ListingSource::Lists(lists),
        )
    }

    /// The ladder of a DASH manifest, which starts with the best representation.
    pub(super) fn of_manifest(
        switching: AbrRule,
        url: &Url,
        text: &[u8],
        manifest: &Manifest,
    ) -> Self {
        let renditions = manifest.renditions().to_vec();
        let best = renditions.len() - 1;
        // Who never changes needs none of it any more.
        let text = if switching == AbrRule::Never { Vec::new() } else { text.to_vec() };
        let places = ListingSource::Manifest { url: url.clone(), text };
        Self::new(RenditionSelector::new(switching, renditions, best), places)
    }

    fn new(renditions: RenditionSelector, places: ListingSource) -> Self {
        // Nothing has come: it is the one to begin with.
        let now = renditions.next(Duration::ZERO, Duration::ZERO);
        let shelf = renditions.offers().iter().map(|_| None).collect();
        Self { renditions, places, shelf, coming: None, now }
    }

    /// The one in use.
    pub(super) fn now(&self) -> usize {
        self.now
    }

    /// The media playlist of the one in use.
    pub(super) fn list(&self) -> Option<&Url> {
        match &self.places {
            ListingSource::Lists(lists) => Some(&lists[self.now]),
            ListingSource::Manifest { .. } => None,
        }
    }

    /// What is to be asked for before `number` can be used; `None`: nothing any more. Its pieces
    /// must be cut as those in use are, `like`.
    pub(super) fn wanted(
        &mut self,
        number: usize,
        like: &TrackTimeline,
    ) -> Result<Option<FetchRequest>, ViewerError> {
        if number == self.now || self.shelf[number].is_some() {
            return Ok(None);
        }
        let (url, text) = match &self.places {
            ListingSource::Lists(lists) => {
                return Ok(Some(FetchRequest { url: lists[number].clone(), range: None }));
            }
            ListingSource::Manifest { url, text } => (url, text),
        };
        let manifest = match self.coming.take() {
            Some((of, manifest)) if of == number => manifest,
            _ => read_manifest(url, text, Some(number))?,
        };
        if let Some(request) = manifest.wanted(0)? {
            self.coming = Some((number, manifest));
            return Ok(Some(request));
        }
        let (url, source) = (url.clone(), manifest.source(0)?);
        self.shelve(number, &url, source, like)?;
        Ok(None)
    }

    /// The response to a fetch. For an index these are the requested bytes.
    pub(super) fn found(
        &mut self,
        number: usize,
        url: &Url,
        answer: &[u8],
        like: &TrackTimeline,
    ) -> Result<(), ViewerError> {
        if let Some((_, manifest)) = &mut self.coming {
            return manifest.found(0, answer);
        }
        match read_playlist(url, answer)? {
            Listing::Track(source) => self.shelve(number, url, source, like),
            Listing::Offers(_) => Err(list_of_lists(url)),
        }
    }

    /// Uses `number` from here on, which is known: its pieces and the last header fetched of it
    /// take the place of those that were in use.
    pub(super) fn change_to(
        &mut self,
        number: usize,
        source: &mut TrackSource,
        init: &mut Option<usize>,
    ) {
        let Some(new) = self.shelf[number].take() else { return };
        let source = std::mem::replace(source, new.source);
        let init = std::mem::replace(init, new.init);
        self.shelf[self.now] = Some(KnownRendition { source, init });
        self.now = number;
    }

    fn shelve(
        &mut self,
        number: usize,
        url: &Url,
        source: TrackSource,
        like: &TrackTimeline,
    ) -> Result<(), ViewerError> {
        if !source.timeline.has_same_bounds(like, WITHIN) {
            return Err(ViewerError::CutElsewhere { url: url.to_string() });
        }
        self.shelf[number] = Some(KnownRendition { source, init: None });
        Ok(())
    }
}

pub(super) fn list_of_lists(url: &Url) -> ViewerError {
    let reason = "a variant leads to another list of variants".to_owned();
    ViewerError::NotAPlaylist { url: url.to_string(), reason }
}

/// Playlists round the lengths of segments, some to tenths of a second.
const WITHIN: Duration = Duration::from_millis(250);
