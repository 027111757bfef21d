//! The titles of all open stores, and which of them are open: index read, packaging planned.
//!
//! Opening costs a read of the index region and some arithmetic. The opener thread does it, and an
//! open title stays in memory until the least recently used one is evicted. A session has its own
//! reference to its title, so that neither eviction nor removal from the catalogue affects it.
//!
//! Titles of the same name and content are copies of one title, which can be read from any of their
//! stores. Of titles of the same name and different content, the one of the first store is served.

use crate::damage::FoundDamage;
use crate::growing::GrowingTitles;
use crate::layout::{CopyLocation, DeliveryFormat};
use crate::playback_params::PlaybackParams;
use crate::presentation::Presentation;
use crate::running_writes::RunningWrites;
use crate::title_keys::{self, KeyProvider};
use crate::wire;
use device::FileIdentity;
use engine::{DiskNumber, Layout, TitleKey};
use media::{
    Encryption, ExcerptError, Growth, Packaging, PackagingError, PackagingOptions, Slice,
    TitleIndex,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::{
    Content, Permit, RunningRecording, Store, StoreError, TitleId, TitleRecord, TitleSelection,
};
use units::show::http_date;
use units::{ByteCount, Hinted};

/// A store being served.
#[derive(Debug)]
pub(crate) struct OpenStore {
    pub(crate) path: PathBuf,
    pub(crate) store: Arc<Store>,
    /// The file or block device that it is on.
    pub(crate) file: FileIdentity,
    pub(crate) disk: DiskNumber,
    pub(crate) read_size: ByteCount,
    /// What coming to a read costs the disk: see [`layout::visit`](crate::layout::visit).
    pub(crate) visit: ByteCount,
    /// Description of the read method, for people.
    pub(crate) method: String,
    /// Whether too little was stored on the disk to measure its guarantee.
    pub(crate) provisional: AtomicBool,
    /// Whether it was told that nothing more is written to it.
    pub(crate) told_write_failure: AtomicBool,
    /// Damage that was found while it is served.
    pub(crate) damage: FoundDamage,
    /// What writes new titles into it.
    pub(crate) writes: Arc<RunningWrites>,
}

impl OpenStore {
    /// The recordings that run on it.
    pub(crate) fn recordings(&self) -> Vec<wire::Recording> {
        self.writes.recordings(&self.store)
    }
}

/// Grants the reads of title indexes.
pub(crate) trait IndexReads {
    /// A permit to read `bytes` from a store's disk; `None` if there is none within `timeout`.
    fn permit(&self, store: &OpenStore, bytes: ByteCount, timeout: Duration) -> Option<Permit>;
}

/// Before the server has sessions: every index is read at once.
struct Unlimited;

impl IndexReads for Unlimited {
    fn permit(&self, _: &OpenStore, _: ByteCount, _: Duration) -> Option<Permit> {
        Some(Permit::unlimited())
    }
}

/// All open stores and the titles in them.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) stores: Vec<OpenStore>,
    packaging: PackagingOptions,
    memory: ByteCount,
    title_keys: Option<Box<dyn KeyProvider>>,
    keys: Mutex<TitleKeys>,
    open: Mutex<OpenTitles>,
    pub(crate) growing: GrowingTitles,
}

/// A title ready to be played.
#[derive(Debug)]
pub(crate) struct OpenTitle {
    pub(crate) key: TitleKey,
    pub(crate) id: TitleId,
    /// The name under which it was opened, by which it has its keys.
    name: String,
    /// Names what is stored of it, whatever it is called.
    pub(crate) content: String,
    pub(crate) whole: Arc<Presentation>,
    /// When it was ingested; `None` if the clock was not set then.
    pub(crate) created: Option<SystemTime>,
    /// The moment of its ingest as HTTP writes it; empty where it is not known.
    pub(crate) created_date: String,
    /// Names the bytes of all its resources, as long as they are packaged as now: by its content,
    /// the length of segments, this program's version and the keys. Part of entity tags and of the
    /// addresses that caches keep.
    pub(crate) version: String,
    /// The recording that it is, or was when its players began.
    recording: Option<StoredCopy>,
    presentations: Mutex<VecDeque<(PlaybackParams, PresentationResult)>>,
    memory: u64,
}

/// A presentation, or why the title has no such part.
pub(crate) type PresentationResult = Result<Arc<Presentation>, ExcerptError>;

/// Why a title is not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// No store has a title of this name; the most similar name that one has.
    NoTitle { nearest: Option<String> },
    /// The title was ingested as an opaque file, or has no playable track.
    NotPlayable(PackagingError),
    /// The recording of the title has just begun, and has no whole segment yet.
    NotYet,
    /// The title is to be encrypted, and its recording goes on: it would be sent in the clear.
    NotEncryptedYet,
    /// The title is to be encrypted, and its key server gave no keys; the reason.
    NoKeys(String),
    /// Sessions have reserved all disk time, and the index could not be read in time.
    DiskBusy,
    /// The store failed; the reason.
    Failed(String),
}

/// One copy of a title: a store, and the title's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StoredCopy {
    /// Index into [`Library::stores`].
    pub(crate) store: usize,
    pub(crate) id: TitleId,
}

// The engine's keys of titles, by their copies: a title that gains or loses a copy gets a new key.
#[derive(Debug, Default)]
struct TitleKeys {
    by_copies: BTreeMap<Vec<StoredCopy>, TitleKey>,
    // Those that have lost a copy and may still be played, with all copies that they had.
    withdrawn: BTreeMap<TitleKey, Vec<StoredCopy>>,
    next: u64,
}

#[derive(Debug, Default)]
struct OpenTitles {
    titles: BTreeMap<TitleKey, (Arc<OpenTitle>, u64)>,
    // Number of uses so far: the clock of least-recently-used eviction.
    uses: u64,
    memory: u64,
}

impl Library {
    /// A library of these stores. `segment`: length of an HLS segment; `memory`: for open titles;
    /// `title_keys`: with which titles are encrypted.
    pub(crate) fn new(
        stores: Vec<OpenStore>,
        segment: Duration,
        memory: ByteCount,
        title_keys: Option<Box<dyn KeyProvider>>,
    ) -> Self {
        let packaging = PackagingOptions { segment, encryption: None, growth: Growth::Complete };
        let (keys, open, growing) = (Mutex::default(), Mutex::default(), GrowingTitles::default());
        Self { stores, packaging, memory, title_keys, keys, open, growing }
    }

    /// The title of this name: its key, and its copies with the number of their store, the served
    /// one first.
    fn find(&self, name: &str) -> Option<(TitleKey, Vec<(usize, TitleRecord)>)> {
        // Locked before the stores are searched: a copy that is hidden during the search is then
        // still under its key when `withdraw` looks for it.
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let mut copies: Vec<(usize, TitleRecord)> = self
            .stores
            .iter()
            .enumerate()
            .filter_map(|(number, opened)| Some((number, self.title_in(opened, name)?)))
            .collect();
        let content = copies.first()?.1.content();
        copies.retain(|(_, record)| record.content() == content);
        let stored =
            copies.iter().map(|(store, record)| StoredCopy { store: *store, id: record.id });
        Some((keys.key(stored.collect()), copies))
    }

    /// The title of this name in a store, unless it was removed or renamed in the others while the
    /// disk of this one was away.
    fn title_in(&self, opened: &OpenStore, name: &str) -> Option<TitleRecord> {
        opened.store.title(name).filter(|title| self.is_current(opened, title))
    }

    fn is_current(&self, opened: &OpenStore, title: &TitleRecord) -> bool {
        let store = opened.store.identity();
        !self.stores.iter().any(|other| other.store.has_changed(store, title))
    }

    /// A line for people if stores have titles of this name with different content.
    pub(crate) fn shadowed(&self, name: &str) -> Option<String> {
        let having = self.stores.iter().filter_map(|opened| {
            let title = self.title_in(opened, name)?;
            Some((opened.path.display().to_string(), title.content()))
        });
        let all: Vec<_> = having.collect();
        let (served, content) = all.first()?;
        let (other, _) = all.iter().find(|(_, other)| other != content)?;
        Some(format!(
            "{other} and {served} have different titles of this name; players get that of {served}"
        ))
    }

    /// Whether there is a title, or a recording, of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some() || self.recording(name).is_some()
    }

    /// The title of this name if it is open; `Ok(None)` where it must be opened first.
    pub(crate) fn opened(&self, name: &str) -> Result<Option<Arc<OpenTitle>>, OpenError> {
        let (key, _) = self.find(name).ok_or_else(|| self.no_title(name))?;
        Ok(self.lock().touch(key, name))
    }

    fn no_title(&self, name: &str) -> OpenError {
        let around = self.stores.iter().flat_map(|opened| opened.store.media_around(name));
        OpenError::NoTitle { nearest: store::nearest(name, around) }
    }

    /// Names of all media titles, each once.
    pub(crate) fn playable(&self) -> Vec<String> {
        let titles = self.stores.iter().flat_map(|opened| {
            let titles = opened.store.titles().into_iter();
            titles.filter(|title| self.is_current(opened, title))
        });
        let media = titles.filter(|record| record.kind == media::TitleKind::Media);
        let mut names: Vec<String> = media.map(|record| record.name).collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// The names of media titles that are opened before somebody plays them: a key server is not
    /// asked for the keys of a whole library.
    pub(crate) fn without_key_server(&self) -> Vec<String> {
        let mut names = self.playable();
        if let Some(keys) = &self.title_keys {
            names.retain(|name| !keys.asks_for(name));
        }
        names
    }

    /// Opens titles for a few seconds, before the server has sessions.
    pub(crate) fn open_first(&self) {
        let until = Instant::now() + OPEN_FIRST_TIME;
        for name in self.without_key_server() {
            // A failure is reported to the first request for the title.
            let _ = self.open_within(&name, &Unlimited, Duration::ZERO);
            if self.is_full() || Instant::now() >= until {
                break;
            }
        }
    }

    /// Opens the title of this content, before the server has connections: that of this name, or
    /// another if it has been renamed.
    pub(crate) fn open_content(
        &self,
        name: &str,
        content: &str,
    ) -> Result<Arc<OpenTitle>, OpenError> {
        let has = |record: &TitleRecord| record.content().to_string() == content;
        let (_, found) = self.find(name).unwrap_or_default();
        let mut name = found.first().filter(|(_, record)| has(record)).map(|_| name.to_owned());
        if name.is_none() {
            let all = self.stores.iter().flat_map(|opened| opened.store.titles());
            name = all.into_iter().find(has).map(|record| record.name);
        }
        let gone = OpenError::NoTitle { nearest: None };
        self.open_within(&name.ok_or(gone)?, &Unlimited, Duration::ZERO)
    }

    /// Opens a title before the first request for it. False: the disk is busy.
    pub(crate) fn open_ahead(&self, name: &str, reads: &dyn IndexReads) -> bool {
        !matches!(self.open_within(name, reads, AHEAD_TIMEOUT), Err(OpenError::DiskBusy))
    }

    /// Whether opening another title of mean size would evict one.
    pub(crate) fn is_full(&self) -> bool {
        let open = self.lock();
        open.memory + open.memory / (open.titles.len() as u64).max(1) > self.memory.0
    }

    /// Opens a title, or finds it open. May wait for the disk.
    pub(crate) fn open(
        &self,
        name: &str,
        reads: &dyn IndexReads,
    ) -> Result<Arc<OpenTitle>, OpenError> {
        self.open_within(name, reads, OPEN_TIMEOUT)
    }

    fn open_within(
        &self,
        name: &str,
        reads: &dyn IndexReads,
        timeout: Duration,
    ) -> Result<Arc<OpenTitle>, OpenError> {
        let (key, found) = self.find(name).ok_or_else(|| self.no_title(name))?;
        // An earlier task may have opened it while this one waited.
        if let Some(open) = self.lock().touch(key, name) {
            return Ok(open);
        }
        let index = self.index(&found, reads, timeout)?;
        let (_, record) = &found[0];
        let content = record.content().to_string();
        let encryption = match &self.title_keys {
            Some(keys) => keys.encryption(name, &content).map_err(OpenError::NoKeys)?.map(Arc::new),
            None => None,
        };
        let version = self.version(&content, encryption.as_deref());
        let options = PackagingOptions { encryption, ..self.packaging.clone() };
        let packaging = Packaging::new(index, &options).map_err(OpenError::NotPlayable)?;
        let mut copies = Vec::with_capacity(found.len());
        for (number, record) in &found {
            let opened = &self.stores[*number];
            let tracks = 0..u16::try_from(record.tracks.len()).unwrap_or(u16::MAX);
            // A track without runs: the title was removed after `find`.
            let runs: Vec<_> = tracks
                .map(|track| opened.store.runs(record.id, track))
                .collect::<Option<_>>()
                .ok_or(OpenError::NoTitle { nearest: None })?;
            let (read_size, visit) = (opened.read_size, opened.visit);
            copies.push(CopyLocation { disk: opened.disk, read_size, visit, runs });
        }
        let whole = Arc::new(Presentation::whole(Arc::new(packaging), key, &copies));
        let segmented = whole.layouts(DeliveryFormat::Segmented).first();
        let seconds = Duration::from_secs(record.created);
        let created = UNIX_EPOCH.checked_add(seconds).filter(|_| !seconds.is_zero());
        let open = Arc::new(OpenTitle {
            key,
            id: record.id,
            created,
            created_date: created.map(http_date).unwrap_or_default(),
            name: name.to_owned(),
            content,
            version,
            recording: None,
            memory: segmented.map_or(0, |layout| memory_of(&whole.packaging, layout)),
            whole,
            presentations: Mutex::default(),
        });
        self.lock().keep(&open, self.memory.0);
        Ok(open)
    }

    /// The key of a title of which there is this copy alone.
    pub(crate) fn key_of(&self, copy: StoredCopy) -> TitleKey {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).key(vec![copy])
    }

    /// The length of a segment, as far as key frames allow it.
    pub(crate) fn segment(&self) -> Duration {
        self.packaging.segment
    }

    fn version(&self, content: &str, encryption: Option<&Encryption>) -> String {
        let segment = self.packaging.segment.as_millis();
        let encryption = encryption.map(title_keys::version).map(|it| format!("-{it}"));
        let encryption = encryption.unwrap_or_default();
        format!("{content}-{segment:x}{encryption}{PROGRAM}{}", env!("CARGO_PKG_VERSION"))
    }

    /// Whether the title of this name is encrypted for players.
    pub(crate) fn is_encrypted(&self, name: &str) -> bool {
        self.title_keys.as_ref().is_some_and(|keys| keys.is_encrypted(name))
    }

    /// The index of the first copy whose index can be read.
    fn index(
        &self,
        copies: &[(usize, TitleRecord)],
        reads: &dyn IndexReads,
        timeout: Duration,
    ) -> Result<Arc<TitleIndex>, OpenError> {
        let mut why = OpenError::NoTitle { nearest: None };
        // Each copy gets its part of the time, so that a busy disk leaves some for the next copy.
        let of_each = timeout / u32::try_from(copies.len().max(1)).unwrap_or(u32::MAX);
        for (number, record) in copies {
            let opened = &self.stores[*number];
            let bytes = ByteCount(record.index_bytes.max(1));
            let Some(_permit) = reads.permit(opened, bytes, of_each) else {
                why = OpenError::DiskBusy;
                continue;
            };
            match opened.store.index(record.id) {
                Ok(index) => return Ok(index),
                // A busy disk may have time later, so that the caller should try again.
                Err(_) if why == OpenError::DiskBusy => {}
                Err(error) => why = OpenError::from(&error),
            }
        }
        Err(why)
    }

    /// Number of open titles, and the bytes that they take.
    pub(crate) fn held(&self) -> (u64, u64) {
        let open = self.lock();
        (open.titles.len() as u64, open.memory)
    }

    /// Drops a removed title's memory. Its sessions keep their own references.
    pub(crate) fn forget(&self, key: TitleKey) {
        self.lock().remove(key);
    }

    /// Removes a copy's keys, and returns them: the titles of the engine that it was a copy of.
    /// [`Library::forget_withdrawn`] is to follow for each, when nobody plays it any more.
    pub(crate) fn withdraw(&self, copy: StoredCopy) -> Vec<TitleKey> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).withdraw(copy)
    }

    /// Nobody plays a title that was withdrawn.
    pub(crate) fn forget_withdrawn(&self, title: TitleKey) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).withdrawn.remove(&title);
    }

    /// The names of titles of a store that have no copy in another one that `stays`.
    pub(crate) fn only_in(&self, store: usize, stays: impl Fn(usize) -> bool) -> Vec<String> {
        let has_copy = |record: &TitleRecord| {
            let others =
                self.stores.iter().enumerate().filter(|(at, _)| *at != store && stays(*at));
            let mut copies = others.filter_map(|(_, other)| other.store.title(&record.name));
            copies.any(|copy| copy.content() == record.content())
        };
        let titles = self.stores[store].store.titles().into_iter();
        titles.filter(|it| !has_copy(it)).map(|record| record.name).collect()
    }

    /// Titles by name, with the number of their copies, and recordings that players may ask for by
    /// their names at a time in Unix seconds.
    pub(crate) fn list(&self, wanted: &TitleSelection, now: u64) -> wire::TitleList {
        let mut all = BTreeMap::new();
        // Up to this name each store has listed its titles.
        let mut until: Option<String> = None;
        for opened in &self.stores {
            let page = opened.store.page(wanted);
            until = until.into_iter().chain(page.next).min();
            for record in page.titles.into_iter().filter(|it| self.is_current(opened, it)) {
                let (content, title): &mut (Content, wire::ListedTitle) = all
                    .entry(record.name.clone())
                    .or_insert_with(|| (record.content(), wire::ListedTitle::from(&record)));
                if *content == record.content() {
                    *title.copies.get_or_insert(0) += 1;
                }
            }
        }
        let mut titles: Vec<wire::ListedTitle> = all.into_values().map(|(_, it)| it).collect();
        let growing = self.list_growing(now).into_iter();
        titles.extend(growing.filter(|title| wanted.has(&title.name)));
        titles.retain(|title| until.as_ref().is_none_or(|until| title.name <= *until));
        titles.sort_by(|one, other| one.name.cmp(&other.name));
        let most = wanted.limit.map_or(usize::MAX, |limit| limit.get() as usize);
        let has_more = titles.len() > most;
        titles.truncate(most);
        let next = if has_more { titles.last().map(|last| last.name.clone()) } else { until };
        wire::TitleList { titles, next }
    }

    fn list_growing(&self, now: u64) -> Vec<wire::ListedTitle> {
        let stores = self.stores.iter().enumerate();
        let all = stores.flat_map(|(store, opened)| {
            opened.store.recordings().into_iter().map(move |recording| (store, recording))
        });
        // As players find them: not where a title of another store has the name.
        let is_found = |(store, recording): &(usize, RunningRecording)| {
            let copy = StoredCopy { store: *store, id: recording.id };
            self.recording(&recording.title) == Some(copy)
        };
        let found = all.filter(is_found);
        found.map(|(_, recording)| wire::ListedTitle::growing(&recording, now)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, OpenTitles> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenTitle {
    /// Whether a version is that of this title by another version of the program: the same content
    /// and keys in segments of the same length.
    pub(crate) fn is_of_other_program(&self, version: &str) -> bool {
        let (own, other) = (self.version.rsplit_once(PROGRAM), version.rsplit_once(PROGRAM));
        matches!((own, other), (Some((own, program)), Some((other, its))) if own == other && program != its)
    }

    /// The name under which it was opened; it may have another one since.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A recording as it is now, or the title that it has become.
    pub(crate) fn of_recording(
        copy: StoredCopy,
        name: &str,
        content: String,
        library: &Library,
        whole: Presentation,
    ) -> Self {
        Self {
            key: library.key_of(copy),
            id: copy.id,
            name: name.to_owned(),
            version: library.version(&content, None),
            content,
            whole: Arc::new(whole),
            created: None,
            created_date: String::new(),
            recording: Some(copy),
            presentations: Mutex::default(),
            memory: 0,
        }
    }

    /// The recording that it is, if it is one that goes on.
    pub(crate) fn grows(&self) -> Option<StoredCopy> {
        let grows = matches!(self.whole.packaging.growth(), Growth::Growing { .. });
        self.recording.filter(|_| grows)
    }

    /// The bytes of all tracks.
    pub(crate) fn bytes(&self) -> u64 {
        self.whole.packaging.index().tracks.iter().map(|track| track.data_len).sum()
    }

    /// Whether it is a recording, or was when its players began.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recording.is_some()
    }

    /// Where newcomers begin: at the beginning, or of a recording three segments before its end, as
    /// players of HLS do (RFC 8216, 6.3.3).
    pub(crate) fn start(&self, segment: Duration) -> Duration {
        let duration = self.whole.packaging.duration();
        if self.grows().is_some() { duration.saturating_sub(3 * segment) } else { Duration::ZERO }
    }

    /// The presentation with these parameters, if it has been built.
    pub(crate) fn cached_presentation(
        &self,
        params: &PlaybackParams,
    ) -> Option<PresentationResult> {
        if *params == PlaybackParams::default() {
            return Some(Ok(Arc::clone(&self.whole)));
        }
        let presentations = self.presentations.lock().unwrap_or_else(PoisonError::into_inner);
        presentations.iter().find(|(built, _)| built == params).map(|(_, result)| result.clone())
    }

    /// The presentation with these parameters, built if necessary. Takes time in proportion to the
    /// title's length: not for HTTP threads.
    pub(crate) fn build_presentation(&self, params: &PlaybackParams) -> PresentationResult {
        if let Some(built) = self.cached_presentation(params) {
            return built;
        }
        // Without the lock, because HTTP threads look up other presentations in the meantime.
        let built = Presentation::part(&self.whole, params).map(Arc::new);
        let mut presentations = self.presentations.lock().unwrap_or_else(PoisonError::into_inner);
        if presentations.len() == MAX_PRESENTATIONS {
            presentations.pop_front();
        }
        // A failure is kept, too: the HTTP thread answers with it when it decides anew.
        presentations.push_back((*params, built.clone()));
        built
    }

    /// A strong entity tag for one resource of the title, the same for all copies and names of it.
    pub(crate) fn etag(&self, what: &str) -> String {
        format!("\"{}-{what}\"", self.version)
    }
}

impl TitleKeys {
    /// The key of a title with these copies; a new one where there is none.
    fn key(&mut self, copies: Vec<StoredCopy>) -> TitleKey {
        let next = TitleKey(self.next);
        let key = *self.by_copies.entry(copies).or_insert(next);
        self.next += u64::from(key == next);
        key
    }

    /// Withdraws the titles with this copy. They are named with those that lost another copy
    /// before and may still be played: their viewers may be read from this one.
    fn withdraw(&mut self, copy: StoredCopy) -> Vec<TitleKey> {
        self.by_copies.retain(|copies, key| {
            let keep = !copies.contains(&copy);
            if !keep {
                self.withdrawn.insert(*key, copies.clone());
            }
            keep
        });
        let all = self.withdrawn.iter().filter(|(_, copies)| copies.contains(&copy));
        all.map(|(key, _)| *key).collect()
    }
}

impl OpenTitles {
    /// The open title of this key. One that was opened under another name may have other keys.
    fn touch(&mut self, key: TitleKey, name: &str) -> Option<Arc<OpenTitle>> {
        self.uses += 1;
        let (open, used) = self.titles.get_mut(&key).filter(|(open, _)| open.name == name)?;
        *used = self.uses;
        Some(Arc::clone(open))
    }

    fn keep(&mut self, open: &Arc<OpenTitle>, limit: u64) {
        self.uses += 1;
        // A title that was opened twice must be counted once.
        self.remove(open.key);
        self.memory += open.memory;
        self.titles.insert(open.key, (Arc::clone(open), self.uses));
        // The newest title stays, however large: a viewer waits for it.
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

impl From<&StoreError> for OpenError {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NoTitle { nearest, .. } => Self::NoTitle { nearest: nearest.clone() },
            error => Self::Failed(error.one_line()),
        }
    }
}

/// Estimated memory of an open title in bytes: its index with text and thumbnails, the due times of
/// both layouts, one progressive file (whose `moov` has about as many bytes for each LDU as the
/// index), and the files of its tracks (whose `moof` boxes have as many).
fn memory_of(packaging: &Packaging, layout: &Layout) -> u64 {
    let tracks = packaging.index().tracks.iter();
    let index: u64 = tracks.map(|t| t.ldus.memory() + t.checksums.len() as u64 * 4).sum();
    let text: u64 = packaging.index().texts.iter().map(media::TextTrack::memory).sum();
    let thumbnails = packaging.index().thumbnails.as_ref().map_or(0, media::Thumbnails::bytes);
    let due: u64 = layout.tracks.iter().map(|track| track.due.len() as u64 * 4).sum();
    let in_file = packaging.file_offers().first().map_or(0, |tracks| tracks.len() as u64);
    let slices = packaging.duration().as_secs() * in_file * size_of::<Slice>() as u64;
    let encrypted = if packaging.encryption().is_some() { 2 * index } else { 0 };
    3 * index + 2 * due + encrypted + text + thumbnails + slices
}

/// What is before the program's version in that of a title.
const PROGRAM: char = '~';

/// Presentations that an open title keeps for further requests. Sessions have their own references.
const MAX_PRESENTATIONS: usize = 16;
/// How long a request may wait for a title's index on a busy disk: about as long as a player waits
/// for a manifest.
const OPEN_TIMEOUT: Duration = Duration::from_secs(8);
/// Time at the server's start for opening titles: enough for some hundreds on a hard disk.
const OPEN_FIRST_TIME: Duration = Duration::from_secs(3);
/// How long opening ahead of demand may block the opener thread.
const AHEAD_TIMEOUT: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use device::MemoryDevice;
    use media::{LduIndex, TitleKind, TrackDescription, TrackKind};
    use store::FormatOptions;
    use units::Timescale;

    /// Grants no read of one disk.
    struct OneBusy(DiskNumber);

    impl IndexReads for OneBusy {
        fn permit(&self, store: &OpenStore, _: ByteCount, _: Duration) -> Option<Permit> {
            (store.disk != self.0).then(Permit::unlimited)
        }
    }

    fn store_with_a_title(disk: u16) -> OpenStore {
        let device = Arc::new(MemoryDevice::new(ByteCount::mib(16)));
        let chunk = ByteCount::kib(64);
        let options = FormatOptions { chunk, ..FormatOptions::default() };
        Store::format_on(device.clone(), &options).unwrap();
        let store = Store::open_on(device).unwrap();
        let mut writer = store.begin("film", TitleKind::Media).unwrap();
        writer.declare(&[ByteCount(1000)]).unwrap();
        writer.write(0, &[7; 1000]).unwrap();
        let description = TrackDescription::plain(TrackKind::Video, Timescale(25));
        let mut ldus = LduIndex::default();
        ldus.push(1000, 1, 0, true, false);
        writer.seal(vec![(description, ldus)]).unwrap();
        OpenStore {
            path: PathBuf::from("film.store"),
            store: Arc::new(store),
            file: FileIdentity::File { system: 0, inode: disk.into() },
            disk: DiskNumber(disk),
            read_size: ByteCount::MIB,
            visit: ByteCount(0),
            method: String::new(),
            provisional: AtomicBool::new(false),
            told_write_failure: AtomicBool::new(false),
            damage: FoundDamage::default(),
            writes: Arc::new(RunningWrites::new("film.store".as_ref(), uuid::Uuid::nil())),
        }
    }

    #[test]
    fn an_index_is_read_from_any_copy_whose_disk_is_free() {
        let stores = vec![store_with_a_title(0), store_with_a_title(1)];
        let library = Library::new(stores, Duration::from_secs(4), ByteCount::MIB, None);
        let (_, copies) = library.find("film").unwrap();
        assert_eq!(copies.len(), 2);
        let read = |copies: &[(usize, TitleRecord)], busy: u16| {
            library.index(copies, &OneBusy(DiskNumber(busy)), Duration::ZERO).map(|_| ())
        };
        assert_eq!(read(&copies, 1), Ok(()));
        assert_eq!(read(&copies, 0), Ok(()));
        assert_eq!(read(&copies[..1], 0), Err(OpenError::DiskBusy));
    }

    #[test]
    fn a_title_with_the_name_of_another_one_is_told() {
        let stores = vec![store_with_a_title(0), store_with_a_title(1)];
        for (opened, bytes) in stores.iter().zip([[1; 10], [2; 10]]) {
            let mut writer = opened.store.begin("words", TitleKind::File).unwrap();
            writer.declare(&[ByteCount(10)]).unwrap();
            writer.write(0, &bytes).unwrap();
            let track = TrackDescription::plain(TrackKind::File, Timescale(25));
            let mut ldus = LduIndex::default();
            ldus.push(10, 1, 0, true, false);
            writer.seal(vec![(track, ldus)]).unwrap();
        }
        let library = Library::new(stores, Duration::from_secs(4), ByteCount::MIB, None);
        assert_eq!(library.shadowed("film"), None, "copies of one title");
        let told = library.shadowed("words").expect("two titles");
        assert!(told.ends_with("different titles of this name; players get that of film.store"));
    }

    #[test]
    fn a_page_of_several_stores_has_each_title_once() {
        let stores = vec![store_with_a_title(0), store_with_a_title(1)];
        for (opened, names) in stores.iter().zip([["a", "c", "n/e"], ["b", "d", "n/f"]]) {
            for name in names {
                let mut writer = opened.store.begin(name, TitleKind::File).unwrap();
                writer.declare(&[ByteCount(0)]).unwrap();
                let track = TrackDescription::plain(TrackKind::File, Timescale(25));
                writer.seal(vec![(track, LduIndex::default())]).unwrap();
            }
        }
        let library = Library::new(stores, Duration::from_secs(4), ByteCount::MIB, None);
        let page = |folder: Option<&str>, after: Option<&str>, search: Option<&str>, limit| {
            let limit = std::num::NonZeroU32::new(limit);
            let [folder, after] = [folder, after].map(|it| it.map(str::to_owned));
            let search = search.map(str::to_owned);
            let list = library.list(&TitleSelection { folder, after, search, limit }, 0);
            let names = list.titles.iter().map(|it| format!("{} x{}", it.name, it.copies.unwrap()));
            format!("{}; {}", names.collect::<Vec<_>>().join(", "), list.next.unwrap_or_default())
        };
        for (folder, after, search, limit, expected) in [
            (None, None, None, 0, "a x1, b x1, c x1, d x1, film x2, n/e x1, n/f x1; "),
            (None, None, None, 3, "a x1, b x1, c x1; c"),
            (None, Some("c"), None, 2, "d x1, film x2; film"),
            (None, Some("film"), None, 2, "n/e x1, n/f x1; "),
            (Some("n"), None, None, 1, "n/e x1; n/e"),
            (Some("n"), Some("n/e"), None, 1, "n/f x1; "),
            (None, None, Some("F"), 0, "film x2, n/f x1; "),
            // One of the stores has listed its titles up to there, the other one all.
            (None, None, Some("f"), 1, "film x2; film"),
            (None, Some("film"), Some("f"), 1, "n/f x1; "),
            (None, None, Some("z"), 5, "; "),
        ] {
            let found = page(folder, after, search, limit);
            assert_eq!(found, expected, "{folder:?} {after:?} {search:?} {limit}");
        }
    }

    #[test]
    fn a_title_is_withdrawn_with_each_of_its_copies_while_it_may_be_played() {
        let [one, two] = [0, 1].map(|store| StoredCopy { store, id: TitleId(7) });
        let mut keys = TitleKeys::default();
        let both = keys.key(vec![one, two]);
        assert_eq!(keys.withdraw(one), [both]);
        // Those who came before may be read from the other copy.
        let other = keys.key(vec![two]);
        assert_eq!(keys.withdraw(two), [both, other]);
        keys.withdrawn.remove(&both);
        assert_eq!(keys.withdraw(two), [other]);
    }
}
