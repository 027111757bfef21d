//! The titles on offer, from all stores, and those that are open: index read, packaging planned.
//!
//! Opening costs a read of the index region and some arithmetic; it is done by the opener thread,
//! and what it made is kept while memory allows, least recently used first out. A session holds
//! its title by itself, so that neither eviction nor removal from the catalogue takes it away.
//!
//! Titles of one name that hold the same are copies of one title, which can be read from any of their
//! stores. Where they hold different things the first store's is the title.

use crate::core::CoreHandle;
use crate::engine::{DiskNumber, Layout, TitleKey};
use crate::layout::{Copied, Shape};
use crate::pace::EnginePace;
use crate::showing::Showing;
use crate::wanted::Wanted;
use crate::wire;
use media::{Body, NoExcerpt, NotPackaged, Packaging, PackagingOptions, Slice, TitleIndex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{Content, Store, StoreError, TitleId, TitleRecord};
use units::ByteCount;

/// A store being served.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) path: PathBuf,
    pub(crate) store: Arc<Store>,
    pub(crate) disk: DiskNumber,
    pub(crate) read_size: ByteCount,
    /// How its reads are made, for people.
    pub(crate) method: String,
}

/// All stores.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) shelves: Vec<Shelf>,
    packaging: PackagingOptions,
    memory: ByteCount,
    keys: Mutex<Keys>,
    open: Mutex<OpenTitles>,
}

/// A title ready to be played.
#[derive(Debug)]
pub(crate) struct OpenTitle {
    pub(crate) key: TitleKey,
    pub(crate) id: TitleId,
    pub(crate) whole: Arc<Showing>,
    // Stays the same when the server is started again.
    tag: String,
    showings: Mutex<VecDeque<(Wanted, MadeShowing)>>,
    bodies: Mutex<BTreeMap<Vec<u16>, Arc<Body>>>,
    memory: u64,
}

/// What a viewer wanted, or why there is no such part.
pub(crate) type MadeShowing = Result<Arc<Showing>, NoExcerpt>;

/// Why a title cannot be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// There is none of this name.
    NoTitle,
    /// It was taken in as bytes, or has nothing to play.
    NotPlayable(NotPackaged),
    /// The disk is too busy with viewers to read the index now.
    Busy,
    /// The store failed.
    Failed(String),
}

/// A title in one of the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) shelf: usize,
    pub(crate) id: TitleId,
}

// What the engine calls titles: never the same if a copy has come or gone.
#[derive(Debug, Default)]
struct Keys {
    of: BTreeMap<Vec<Place>, TitleKey>,
    next: u64,
}

#[derive(Debug, Default)]
struct OpenTitles {
    titles: BTreeMap<TitleKey, (Arc<OpenTitle>, u64)>,
    // Counts uses, for the order of eviction.
    uses: u64,
    memory: u64,
}

impl Library {
    pub(crate) fn new(shelves: Vec<Shelf>, segment: Duration, memory: ByteCount) -> Self {
        let packaging = PackagingOptions { segment };
        Self { shelves, packaging, memory, keys: Mutex::default(), open: Mutex::default() }
    }

    /// The title of this name as the first store has it, and its copies in others; and what the engine
    /// calls them together.
    fn find(&self, name: &str) -> Option<(TitleKey, Vec<(usize, TitleRecord)>)> {
        // Held while looking: a copy that is hidden after that is found by `withdraw`.
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let shelves = self.shelves.iter().enumerate();
        let named = shelves.filter_map(|(number, shelf)| Some((number, shelf.store.title(name)?)));
        let mut copies: Vec<(usize, TitleRecord)> = named.collect();
        let content = copies.first()?.1.content();
        copies.retain(|(_, record)| record.content() == content);
        let places = copies.iter().map(|(shelf, record)| Place { shelf: *shelf, id: record.id });
        Some((keys.key(places.collect()), copies))
    }

    /// The title of this name if it is open already.
    pub(crate) fn opened(&self, name: &str) -> Result<Option<Arc<OpenTitle>>, NotOpened> {
        let (key, _) = self.find(name).ok_or(NotOpened::NoTitle)?;
        Ok(self.lock().touch(key))
    }

    /// What can be played, by name.
    pub(crate) fn playable(&self) -> Vec<String> {
        let titles = self.shelves.iter().flat_map(|shelf| shelf.store.titles());
        let media = titles.filter(|record| record.kind == media::TitleKind::Media);
        let mut names: Vec<String> = media.map(|record| record.name).collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// Opens what it can of all titles before there are viewers to wait for.
    pub(crate) fn open_first(&self) {
        let until = Instant::now() + FIRST;
        for name in self.playable() {
            // What does not open says so to who asks for it.
            let _ = self.open_within(&name, |_, _| Some(()));
            if self.is_full() || Instant::now() >= until {
                break;
            }
        }
    }

    /// Opens a title that nobody has asked for yet. False: the disk has viewers to serve.
    pub(crate) fn open_ahead(&self, name: &str, core: &CoreHandle) -> bool {
        let turn = |shelf: &Shelf, bytes| shelf.pace(core).turn(bytes, AHEAD_PATIENCE);
        !matches!(self.open_within(name, turn), Err(NotOpened::Busy))
    }

    /// Whether one open title more would put another out.
    pub(crate) fn is_full(&self) -> bool {
        let open = self.lock();
        open.memory + open.memory / (open.titles.len() as u64).max(1) > self.memory.0
    }

    /// Opens a title, or finds it open. May wait for the disk.
    pub(crate) fn open(&self, name: &str, core: &CoreHandle) -> Result<Arc<OpenTitle>, NotOpened> {
        self.open_within(name, |shelf, bytes| shelf.pace(core).turn(bytes, PATIENCE))
    }

    fn open_within<Turn>(
        &self,
        name: &str,
        turn: impl Fn(&Shelf, ByteCount) -> Option<Turn>,
    ) -> Result<Arc<OpenTitle>, NotOpened> {
        let (key, found) = self.find(name).ok_or(NotOpened::NoTitle)?;
        if let Some(open) = self.lock().touch(key) {
            return Ok(open);
        }
        let index = self.index(&found, turn)?;
        let packaging = Packaging::new(index, &self.packaging).map_err(NotOpened::NotPlayable)?;
        let mut copies = Vec::with_capacity(found.len());
        for (number, record) in &found {
            let shelf = &self.shelves[*number];
            let tracks = 0..u16::try_from(record.tracks.len()).unwrap_or(u16::MAX);
            let runs: Option<Vec<_>> =
                tracks.map(|track| shelf.store.runs(record.id, track)).collect();
            // Removed meanwhile.
            let runs = runs.ok_or(NotOpened::NoTitle)?;
            copies.push(Copied { disk: shelf.disk, read_size: shelf.read_size, runs });
        }
        let whole = Arc::new(Showing::whole(Arc::new(packaging), key, &copies));
        let segmented = whole.layouts(Shape::Segmented).first();
        let (number, record) = &found[0];
        let open = Arc::new(OpenTitle {
            key,
            id: record.id,
            tag: format!("{:x}-{:x}", (*number as u64) << TAG_BITS | record.id.0, record.created),
            memory: segmented.map_or(0, |layout| memory_of(&whole.packaging, layout)),
            whole,
            showings: Mutex::default(),
            bodies: Mutex::default(),
        });
        self.lock().keep(&open, self.memory.0);
        Ok(open)
    }

    /// The index of the first copy that gives one.
    fn index<Turn>(
        &self,
        copies: &[(usize, TitleRecord)],
        turn: impl Fn(&Shelf, ByteCount) -> Option<Turn>,
    ) -> Result<Arc<TitleIndex>, NotOpened> {
        let mut why = NotOpened::NoTitle;
        for (number, record) in copies {
            let shelf = &self.shelves[*number];
            let bytes = ByteCount(record.index_bytes.max(1));
            let _turn = turn(shelf, bytes).ok_or(NotOpened::Busy)?;
            match shelf.store.index(record.id) {
                Ok(index) => return Ok(index),
                Err(error) => why = NotOpened::from(&error),
            }
        }
        Err(why)
    }

    /// Titles open, and the bytes they take.
    pub(crate) fn held(&self) -> (u64, u64) {
        let open = self.lock();
        (open.titles.len() as u64, open.memory)
    }

    /// The title's memory may go: it has been removed.
    pub(crate) fn forget(&self, key: TitleKey) {
        self.lock().remove(key);
    }

    /// A copy is to go: all that the engine has called titles with it. It calls them so no more.
    pub(crate) fn withdraw(&self, place: Place) -> Vec<TitleKey> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).take(place)
    }

    /// All titles by name, with where to play them.
    pub(crate) fn list(&self) -> Vec<wire::Title> {
        let mut all = BTreeMap::new();
        for shelf in &self.shelves {
            for record in shelf.store.titles() {
                let entry: &mut Listed = all
                    .entry(record.name.clone())
                    .or_insert_with(|| (record.content(), listed(&record)));
                if entry.0 == record.content() {
                    *entry.1.copies.get_or_insert(0) += 1;
                }
            }
        }
        all.into_values().map(|(_, title)| title).collect()
    }

    fn lock(&self) -> MutexGuard<'_, OpenTitles> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenTitle {
    /// What a viewer wants of it, if that has been made already.
    pub(crate) fn made_showing(&self, wanted: &Wanted) -> Option<MadeShowing> {
        if *wanted == Wanted::default() {
            return Some(Ok(Arc::clone(&self.whole)));
        }
        let showings = self.showings.lock().unwrap_or_else(PoisonError::into_inner);
        showings.iter().find(|(made, _)| made == wanted).map(|(_, showing)| showing.clone())
    }

    /// What a viewer wants of it. Takes a while for a long title: not on a thread that speaks HTTP.
    pub(crate) fn showing(&self, wanted: &Wanted) -> MadeShowing {
        if let Some(made) = self.made_showing(wanted) {
            return made;
        }
        let made = Showing::part(&self.whole, wanted).map(Arc::new);
        let mut showings = self.showings.lock().unwrap_or_else(PoisonError::into_inner);
        if showings.len() == SHOWINGS_KEPT {
            showings.pop_front();
        }
        showings.push_back((*wanted, made.clone()));
        made
    }

    /// The tracks as one file, if that has been made already.
    pub(crate) fn made_body(&self, tracks: &[u16]) -> Option<Arc<Body>> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).get(tracks).cloned()
    }

    /// The tracks as one file. Takes a while for a long title: not on a thread that speaks HTTP.
    pub(crate) fn body(&self, tracks: &[u16]) -> Arc<Body> {
        if let Some(body) = self.made_body(tracks) {
            return body;
        }
        let body = self.whole.packaging.progressive(tracks);
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(bodies.entry(tracks.to_vec()).or_insert(body))
    }

    /// A strong entity tag: the same bytes for as long as the title lives, under any name.
    pub(crate) fn etag(&self, what: &str) -> String {
        format!("\"{}-{what}\"", self.tag)
    }
}

impl Shelf {
    fn pace(&self, core: &CoreHandle) -> EnginePace {
        EnginePace::new(core.clone(), self.disk, self.read_size)
    }
}

impl Keys {
    fn key(&mut self, copies: Vec<Place>) -> TitleKey {
        let next = TitleKey(self.next);
        let key = *self.of.entry(copies).or_insert(next);
        self.next += u64::from(key == next);
        key
    }

    fn take(&mut self, place: Place) -> Vec<TitleKey> {
        let with: Vec<Vec<Place>> =
            self.of.keys().filter(|copies| copies.contains(&place)).cloned().collect();
        with.iter().filter_map(|copies| self.of.remove(copies)).collect()
    }
}

impl OpenTitles {
    fn touch(&mut self, key: TitleKey) -> Option<Arc<OpenTitle>> {
        self.uses += 1;
        let (open, used) = self.titles.get_mut(&key)?;
        *used = self.uses;
        Some(Arc::clone(open))
    }

    fn keep(&mut self, open: &Arc<OpenTitle>, limit: u64) {
        self.uses += 1;
        self.remove(open.key);
        self.memory += open.memory;
        self.titles.insert(open.key, (Arc::clone(open), self.uses));
        while self.memory > limit && self.titles.len() > 1 {
            let oldest = self.titles.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            oldest.into_iter().for_each(|key| self.remove(key));
        }
    }

    fn remove(&mut self, key: TitleKey) {
        if let Some((open, _)) = self.titles.remove(&key) {
            self.memory -= open.memory;
        }
    }
}

impl From<&StoreError> for NotOpened {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NoTitle { .. } => Self::NoTitle,
            error => Self::Failed(error.to_string()),
        }
    }
}

type Listed = (Content, wire::Title);

fn listed(record: &TitleRecord) -> wire::Title {
    let mut title = wire::Title::from(record);
    if record.kind == media::TitleKind::Media {
        let name = crate::http::escape(&record.name);
        title.hls = Some(format!("/t/{name}/master.m3u8"));
        title.mp4 = Some(format!("/t/{name}.mp4"));
    }
    title
}

/// What an open title takes, nearly: its index, the pieces' due times of both layouts, and one
/// progressive file (its `moov` has about as many bytes for each LDU as the index).
fn memory_of(packaging: &Packaging, layout: &Layout) -> u64 {
    let tracks = packaging.index().tracks.iter();
    let index: u64 = tracks.map(|t| t.ldus.memory() + t.checksums.len() as u64 * 4).sum();
    let due: u64 = layout.tracks.iter().map(|track| track.due.len() as u64 * 4).sum();
    let slices = packaging.duration().as_secs() * 2 * size_of::<Slice>() as u64;
    2 * (index + due) + slices
}

/// Parts of a title that are kept for the next viewer who wants the same. Sessions hold their own.
const SHOWINGS_KEPT: usize = 16;
/// Bits of an entity tag that number the title within its store.
const TAG_BITS: u32 = 48;
/// How long a viewer may wait for a title's index behind other viewers' media: about as long as a
/// player waits for a manifest.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long a start may take for opening titles: some hundreds on a hard disk.
const FIRST: Duration = Duration::from_secs(3);
/// How long a title that nobody asked for may wait: it keeps the thread from those who ask.
const AHEAD_PATIENCE: Duration = Duration::from_millis(500);
