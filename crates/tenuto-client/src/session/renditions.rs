//! The renditions of a viewer's first track: the known ones, the loading of others, and the one in
//! use.
//!
//! ```text
//!   sources ──(wanted ─▶ request ─▶ found)──▶ known ◀── change_to ──▶ in use: the session's track
//! 0
//! ```
//!
//! The list of a rendition's pieces is fetched when one of them is needed for the first time, as in
//! players. [`player::RenditionSelector`] chooses the rendition.

use crate::dash::{Manifest, read_manifest};
use crate::source::{FetchRequest, Listing, Offers, TrackSource, read_playlist};
use crate::url::Url;
use crate::{ClientError, RequestError};
use player::{AbrRule, RenditionSelector, TrackTimeline};
use std::time::Duration;

/// The renditions of a title and the one that a player uses.
#[derive(Debug)]
pub(super) struct Ladder {
    pub(super) renditions: RenditionSelector,
    places: ListingSource,
    /// The renditions that are known and not in use.
    known: Vec<Option<KnownRendition>>,
    /// The manifest of a rendition of which an index is being fetched.
    coming: Option<(usize, Manifest)>,
    /// The index of the rendition in use.
    now: usize,
}

/// The source of the lists of pieces.
#[derive(Debug)]
enum ListingSource {
    /// One media playlist for each rendition.
    Lists(Vec<Url>),
    /// A manifest that lists all renditions.
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
        // Without changes of rendition the text is not needed again.
        let text = if switching == AbrRule::Never { Vec::new() } else { text.to_vec() };
        let places = ListingSource::Manifest { url: url.clone(), text };
        Self::new(RenditionSelector::new(switching, renditions, best), places)
    }

    fn new(renditions: RenditionSelector, places: ListingSource) -> Self {
        // Before the first piece the selector chooses the rendition to begin with.
        let now = renditions.next(Duration::ZERO, Duration::ZERO);
        let known = renditions.offers().iter().map(|_| None).collect();
        Self { renditions, places, known, coming: None, now }
    }

    /// The rendition in use.
    pub(super) fn now(&self) -> usize {
        self.now
    }

    /// The media playlist of the rendition in use.
    pub(super) fn list(&self) -> Option<&Url> {
        match &self.places {
            ListingSource::Lists(lists) => Some(&lists[self.now]),
            ListingSource::Manifest { .. } => None,
        }
    }

    /// The next request that is needed before `number` can be used; `None` if nothing is missing.
    /// Its pieces must have the boundaries of `like`, the track in use.
    pub(super) fn wanted(
        &mut self,
        number: usize,
        like: &TrackTimeline,
    ) -> Result<Option<FetchRequest>, ClientError> {
        if number == self.now || self.known[number].is_some() {
            return Ok(None);
        }
        let (url, text) = match &self.places {
            ListingSource::Lists(lists) => {
                return Ok(Some(FetchRequest::whole(lists[number].clone())));
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
        self.store_known(number, &url, source, like)?;
        Ok(None)
    }

    /// Takes the response to a fetch. For an index these are the requested bytes.
    pub(super) fn found(
        &mut self,
        number: usize,
        url: &Url,
        answer: &[u8],
        like: &TrackTimeline,
    ) -> Result<(), ClientError> {
        if let Some((_, manifest)) = &mut self.coming {
            return manifest.found(0, answer);
        }
        match read_playlist(url, answer)? {
            Listing::Track(source) => self.store_known(number, url, source, like),
            Listing::Offers(_) => Err(list_of_lists(url)),
        }
    }

    /// Changes to `number`, which is known: its pieces and its last header replace those in use.
    pub(super) fn change_to(
        &mut self,
        number: usize,
        source: &mut TrackSource,
        init: &mut Option<usize>,
    ) {
        let Some(new) = self.known[number].take() else { return };
        let source = std::mem::replace(source, new.source);
        let init = std::mem::replace(init, new.init);
        self.known[self.now] = Some(KnownRendition { source, init });
        self.now = number;
    }

    fn store_known(
        &mut self,
        number: usize,
        url: &Url,
        source: TrackSource,
        like: &TrackTimeline,
    ) -> Result<(), ClientError> {
        if !source.timeline.has_same_bounds(like, WITHIN) {
            return Err(url.failed(RequestError::CutElsewhere));
        }
        self.known[number] = Some(KnownRendition { source, init: None });
        Ok(())
    }
}

pub(super) fn list_of_lists(url: &Url) -> ClientError {
    url.failed(RequestError::NotAPlaylist("a variant leads to another list of variants"))
}

/// The tolerance for boundaries: playlists round the lengths of segments, some to tenths of a
/// second.
pub(super) const WITHIN: Duration = Duration::from_millis(250);
