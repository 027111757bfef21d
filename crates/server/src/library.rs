//! The titles on offer, from all stores, and those that are open: index read, packaging planned.
//!
//! Opening costs a read of the index region and some arithmetic; it is done by the opener thread,
//! and what it made is kept while memory allows, least recently used first out. A session holds
//! its title by itself, so that neither eviction nor removal from the catalogue takes it away.

use crate::engine::{DiskNumber, Layout, TitleKey};
use crate::layout::{Place, Shape};
use crate::pace::EnginePace;
use crate::showing::Showing;
use crate::wanted::Wanted;
use crate::wire;
use media::{Body, NoExcerpt, NotPackaged, Packaging, PackagingOptions, Slice};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{Store, StoreError, TitleId, TitleRecord};
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
    open: Mutex<OpenTitles>,
}

/// A title ready to be played.
#[derive(Debug)]
pub(crate) struct OpenTitle {
    pub(crate) key: TitleKey,
    pub(crate) id: TitleId,
    pub(crate) whole: Arc<Showing>,
    created: u64,
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
        Self { shelves, packaging, memory, open: Mutex::default() }
    }

    /// The title of this name: the first store that has it.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, TitleRecord)> {
        let mut shelves = self.shelves.iter().enumerate();
        shelves.find_map(|(number, shelf)| Some((number, shelf.store.title(name)?)))
    }

    /// The title of this name if it is open already.
    pub(crate) fn opened(&self, name: &str) -> Result<Option<Arc<OpenTitle>>, NotOpened> {
        let (shelf, record) = self.find(name).ok_or(NotOpened::NoTitle)?;
        Ok(self.lock().touch(self.key(shelf, record.id)))
    }

    /// What can be played: shelf and name.
    pub(crate) fn playable(&self) -> Vec<(usize, String)> {
        let shelves = self.shelves.iter().enumerate();
        let titles = shelves.flat_map(|(number, shelf)| {
            shelf.store.titles().into_iter().map(move |record| (number, record))
        });
        let media = titles.filter(|(_, record)| record.kind == media::TitleKind::Media);
        media.map(|(number, record)| (number, record.name)).collect()
    }

    /// Opens what it can of all titles before there are viewers to wait for.
    pub(crate) fn open_first(&self) {
        let until = Instant::now() + FIRST;
        for (_, name) in self.playable() {
            // What does not open says so to who asks for it.
            let _ = self.open_within(&name, |_| Some(()));
            if self.is_full() || Instant::now() >= until {
                break;
            }
        }
    }

    /// Opens a title that nobody has asked for yet. False: the disk has viewers to serve.
    pub(crate) fn open_ahead(&self, name: &str, pace: &EnginePace) -> bool {
        let opened = self.open_within(name, |bytes| pace.turn(bytes, AHEAD_PATIENCE));
        !matches!(opened, Err(NotOpened::Busy))
    }

    /// Whether one open title more would put another out.
    pub(crate) fn is_full(&self) -> bool {
        let open = self.lock();
        open.memory + open.memory / (open.titles.len() as u64).max(1) > self.memory.0
    }

    /// Opens a title, or finds it open. May wait for the disk.
    pub(crate) fn open(&self, name: &str, pace: &EnginePace) -> Result<Arc<OpenTitle>, NotOpened> {
        self.open_within(name, |bytes| pace.turn(bytes, PATIENCE))
    }

    fn open_within<Turn>(
        &self,
        name: &str,
        turn: impl FnOnce(ByteCount) -> Option<Turn>,
    ) -> Result<Arc<OpenTitle>, NotOpened> {
        let (number, record) = self.find(name).ok_or(NotOpened::NoTitle)?;
        let key = self.key(number, record.id);
        if let Some(open) = self.lock().touch(key) {
            return Ok(open);
        }
        let shelf = &self.shelves[number];
        let turn = turn(ByteCount(record.index_bytes.max(1))).ok_or(NotOpened::Busy)?;
        let index = shelf.store.index(record.id).map_err(|error| NotOpened::from(&error))?;
        drop(turn);
        let packaging = Packaging::new(index, &self.packaging).map_err(NotOpened::NotPlayable)?;
        let tracks = 0..u16::try_from(record.tracks.len()).unwrap_or(u16::MAX);
        let runs: Option<Vec<_>> = tracks.map(|track| shelf.store.runs(record.id, track)).collect();
        // Removed meanwhile.
        let runs = runs.ok_or(NotOpened::NoTitle)?;
        let place = Place { title: key, disk: shelf.disk, read_size: shelf.read_size };
        let whole = Arc::new(Showing::whole(Arc::new(packaging), place, &runs));
        let segmented = whole.layout(Shape::Segmented);
        let open = Arc::new(OpenTitle {
            key,
            id: record.id,
            created: record.created,
            memory: segmented.map_or(0, |layout| memory_of(&whole.packaging, layout)),
            whole,
            showings: Mutex::default(),
            bodies: Mutex::default(),
        });
        self.lock().keep(&open, self.memory.0);
        Ok(open)
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

    /// What the engine calls a title of a store.
    pub(crate) fn key(&self, shelf: usize, id: TitleId) -> TitleKey {
        assert!(id.0 < 1 << KEY_BITS, "more titles than a store can number");
        TitleKey((shelf as u64) << KEY_BITS | id.0)
    }

    /// What an engine's title is in its store.
    pub(crate) fn place(&self, key: TitleKey) -> (&Shelf, TitleId) {
        let shelf = usize::try_from(key.0 >> KEY_BITS).expect("as many stores as disks");
        (&self.shelves[shelf], TitleId(key.0 & ((1 << KEY_BITS) - 1)))
    }

    /// All titles by name, with where to play them.
    pub(crate) fn list(&self) -> Vec<wire::Title> {
        let mut all = BTreeMap::new();
        for shelf in &self.shelves {
            for record in shelf.store.titles() {
                all.entry(record.name.clone()).or_insert_with(|| listed(&record));
            }
        }
        all.into_values().collect()
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
        format!("\"{:x}-{:x}-{what}\"", self.key.0, self.created)
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
/// Bits of a [`TitleKey`] that number the title within its store.
const KEY_BITS: u32 = 48;
/// How long a viewer may wait for a title's index behind other viewers' media: about as long as a
/// player waits for a manifest.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long a start may take for opening titles: some hundreds on a hard disk.
const FIRST: Duration = Duration::from_secs(3);
/// How long a title that nobody asked for may wait: it keeps the thread from those who ask.
const AHEAD_PATIENCE: Duration = Duration::from_millis(500);
