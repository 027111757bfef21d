//! A broadcaster's library over months: titles of all lengths come and go, recordings grow beside
//! them, and the store is always as full. Space is taken and given back by the store's own code.

use super::MONTH;
use crate::admission::{RandomSource, whole};
use std::collections::BTreeMap;
use std::time::Duration;
use store::{FreeMap, Growth, TrackSpace};
use units::{BitRate, ByteCount, Extent};

/// What is removed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Any title, old or new.
    Random,
    /// The oldest title.
    Oldest,
}

/// A title of the library.
#[derive(Clone, Debug)]
pub struct LibraryTitle {
    /// Rates of picture and sound.
    pub rates: [BitRate; 2],
    /// Length.
    pub length: Duration,
    /// Whether it was recorded: its size was not known when it began.
    pub recorded: bool,
    /// The space of picture and sound.
    pub tracks: [TrackSpace; 2],
    /// The index region.
    index: Vec<Extent>,
}

/// Titles on a store, as time passes.
#[derive(Clone, Debug)]
pub struct Library {
    free: FreeMap,
    chunk: ByteCount,
    /// Chunks of an empty store.
    data: u64,
    /// Chunks that are kept free.
    kept: u64,
    removal: Removal,
    random: RandomSource,
    now: Duration,
    /// Mean time between two titles.
    gap: Duration,
    next: Duration,
    /// By number, which is the order in which they came.
    titles: BTreeMap<u64, LibraryTitle>,
    /// Recordings that go on, by the time of their next step.
    growing: BTreeMap<(Duration, u64), Recorded>,
    came: u64,
    /// Titles that found no room although enough chunks were free.
    failed: u64,
}

/// A recording that goes on.
#[derive(Clone, Debug)]
struct Recorded {
    began: Duration,
    title: LibraryTitle,
}

impl LibraryTitle {
    fn draw(random: &mut RandomSource) -> Self {
        // The kind is drawn by the number of titles; most bytes are those of the long ones.
        let (minutes, recorded) = match random.part() {
            u if u < 0.55 => ((0.5, 5.0), false),
            u if u < 0.78 => ((20.0, 60.0), false),
            u if u < 0.85 => ((80.0, 120.0), false),
            _ => ((10.0, 180.0), true),
        };
        let video = RATES[random.below(RATES.len())];
        Self {
            rates: [video, SOUND],
            length: Duration::from_secs_f64(60.0 * random.between(minutes.0, minutes.1)),
            recorded,
            tracks: Default::default(),
            index: Vec::new(),
        }
    }

    /// Bytes of a track.
    pub fn bytes(&self, track: usize) -> ByteCount {
        self.rates[track].bytes_in(self.length)
    }

    fn chunks(&self, track: usize, chunk: ByteCount) -> u64 {
        self.bytes(track).0.div_ceil(chunk.0)
    }

    /// Chunks of the index region: times, sizes and checksums.
    fn index_chunks(&self, chunk: ByteCount) -> u64 {
        let data = self.bytes(0).0 + self.bytes(1).0;
        let bytes = INDEX_LEAST + INDEX_SECOND * self.length.as_secs() + data / CHECKED * 4;
        bytes.div_ceil(chunk.0)
    }

    fn all_chunks(&self, chunk: ByteCount) -> u64 {
        self.chunks(0, chunk) + self.chunks(1, chunk) + self.index_chunks(chunk)
    }

    /// Writes a title whose size was estimated: the container's bytes are counted as picture.
    fn write(&mut self, free: &mut FreeMap, chunk: ByteCount) -> bool {
        let video = self.bytes(0).0 + self.bytes(0).0 / CONTAINER_PART;
        let wanted = [video.div_ceil(chunk.0), self.chunks(1, chunk)];
        let Ok(tracks) = TrackSpace::place(free, &wanted) else { return false };
        self.tracks = tracks.try_into().expect("two tracks");
        self.seal(free, chunk)
    }

    /// Cuts the tracks to their data and places the index.
    fn seal(&mut self, free: &mut FreeMap, chunk: ByteCount) -> bool {
        for track in 0..self.tracks.len() {
            let used = self.chunks(track, chunk);
            self.tracks[track].trim(free, used);
        }
        let missing = self.index_chunks(chunk) - self.index.iter().map(|e| e.chunks).sum::<u64>();
        match free.allocate(missing, usize::MAX) {
            Ok(index) => self.index.extend(index),
            Err(_) => return false,
        }
        true
    }

    fn give_back(self, free: &mut FreeMap) {
        self.tracks.into_iter().for_each(|track| track.give_back(free));
        self.index.into_iter().for_each(|extent| free.give(extent));
    }

    /// How long the track's space lasts.
    fn lasts(&self, track: usize, chunk: ByteCount) -> Duration {
        ByteCount(self.tracks[track].chunks() * chunk.0).time_at(self.rates[track])
    }

    /// The track that is full first, and when.
    fn full_first(&self, chunk: ByteCount) -> (Duration, usize) {
        (self.lasts(0, chunk), 0).min((self.lasts(1, chunk), 1))
    }

    /// Gives the track that is full first more room; whether there was any.
    fn grow(&mut self, free: &mut FreeMap, chunk: ByteCount) -> bool {
        let (_, track) = self.full_first(chunk);
        let space = &mut self.tracks[track];
        let needed = WRITE.div_ceil(chunk.0);
        space
            .grow(free, needed, Growth::OF_RECORDED.step(space.chunks(), chunk, free.free()))
            .is_ok()
    }
}

impl Library {
    /// A store of this size, full of titles by that part.
    pub fn new(free: FreeMap, chunk: ByteCount, full: f64, removal: Removal, seed: u64) -> Self {
        let mut random = RandomSource::new(seed, TITLES);
        let data = free.free();
        let kept = data - whole(data as f64 * full) as u64;
        let mut sample = random.clone();
        let drawn = (0..SAMPLE).map(|_| LibraryTitle::draw(&mut sample).all_chunks(chunk));
        let mean = drawn.sum::<u64>() as f64 / f64::from(SAMPLE);
        // In a month as many bytes come as the store holds.
        let gap = MONTH.mul_f64(mean / (data - kept) as f64);
        let mut library = Self {
            free,
            chunk,
            data,
            kept,
            removal,
            random: random.clone(),
            now: Duration::ZERO,
            gap,
            next: gap,
            titles: BTreeMap::new(),
            growing: BTreeMap::new(),
            came: 0,
            failed: 0,
        };
        while library.free.free() > kept {
            let mut title = LibraryTitle::draw(&mut random);
            if title.all_chunks(chunk) + kept > library.free.free() {
                break;
            }
            library.came += 1;
            title = library.fresh(title).expect("an empty store has room");
            library.titles.insert(library.came, title);
        }
        library.random = random;
        library
    }

    fn fresh(&mut self, mut title: LibraryTitle) -> Option<LibraryTitle> {
        let free = &mut self.free;
        title.tracks = Default::default();
        title.index = Vec::new();
        if !title.recorded {
            return title.write(free, self.chunk).then_some(title);
        }
        title.index = free.allocate(1, 1).ok()?;
        while title.full_first(self.chunk).0 < title.length {
            if !title.grow(free, self.chunk) {
                return None;
            }
        }
        title.seal(free, self.chunk).then_some(title)
    }

    /// The titles of this library on an empty store, written one after another.
    pub fn rewritten(&self, empty: FreeMap) -> Self {
        let mut fresh =
            Self { free: empty, titles: BTreeMap::new(), growing: BTreeMap::new(), ..self.clone() };
        for (number, title) in &self.titles {
            if let Some(title) = fresh.fresh(title.clone()) {
                fresh.titles.insert(*number, title);
            }
        }
        fresh
    }

    /// Titles come and go until then.
    pub fn pass_until(&mut self, end: Duration) {
        loop {
            let step = self.growing.first_key_value().map_or(Duration::MAX, |(at, _)| at.0);
            let now = step.min(self.next);
            if now > end {
                break;
            }
            self.now = now;
            if step <= self.next {
                self.record();
            } else {
                self.next =
                    now + Duration::from_secs_f64(self.random.exponential(self.gap.as_secs_f64()));
                self.arrive();
            }
        }
        self.now = end;
    }

    fn arrive(&mut self) {
        let mut title = LibraryTitle::draw(&mut self.random);
        self.came += 1;
        if title.recorded {
            title.index = self.free.allocate(1, 1).unwrap_or_default();
            let recorded = Recorded { began: self.now, title };
            self.growing.insert((self.now, self.came), recorded);
            return;
        }
        self.make_room(title.all_chunks(self.chunk));
        if title.write(&mut self.free, self.chunk) {
            self.titles.insert(self.came, title);
        } else {
            self.failed += 1;
            title.give_back(&mut self.free);
        }
    }

    /// The next step of a recording: more room, or its end.
    fn record(&mut self) {
        let Some(((_, number), mut recorded)) = self.growing.pop_first() else { return };
        let full = recorded.title.full_first(self.chunk).0;
        if full >= recorded.title.length {
            if recorded.title.seal(&mut self.free, self.chunk) {
                self.titles.insert(number, recorded.title);
            } else {
                self.failed += 1;
                recorded.title.give_back(&mut self.free);
            }
            return;
        }
        let largest = recorded.title.tracks.iter().map(TrackSpace::chunks).max().unwrap_or(0);
        self.make_room(Growth::OF_RECORDED.step(largest, self.chunk, self.free.free()));
        if recorded.title.grow(&mut self.free, self.chunk) {
            let next = recorded.title.full_first(self.chunk).0.min(recorded.title.length);
            self.growing.insert((recorded.began + next, number), recorded);
        } else {
            self.failed += 1;
            recorded.title.give_back(&mut self.free);
        }
    }

    /// Removes titles until so many chunks fit beside those that are kept free.
    fn make_room(&mut self, chunks: u64) {
        while self.free.free() < chunks + self.kept && !self.titles.is_empty() {
            let number = match self.removal {
                Removal::Oldest => *self.titles.keys().next().expect("not empty"),
                Removal::Random => {
                    let nth = self.random.below(self.titles.len());
                    *self.titles.keys().nth(nth).expect("one of them")
                }
            };
            let title = self.titles.remove(&number).expect("one of them");
            title.give_back(&mut self.free);
        }
    }

    /// The titles that are complete, with their numbers.
    pub fn titles(&self) -> impl Iterator<Item = (u64, &LibraryTitle)> {
        self.titles.iter().map(|(number, title)| (*number, title))
    }

    /// The title of this number.
    pub fn title(&self, number: u64) -> Option<&LibraryTitle> {
        self.titles.get(&number)
    }

    /// Part of the data chunks that are in use.
    pub fn used(&self) -> f64 {
        1.0 - self.free.free() as f64 / self.data as f64
    }

    /// The map of free chunks.
    pub fn free(&self) -> &FreeMap {
        &self.free
    }

    /// Titles that found no room.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}

/// Rates of pictures: proxies, distribution in HD, and contribution.
const RATES: [BitRate; 4] =
    [BitRate(2_000_000), BitRate(5_000_000), BitRate(8_000_000), BitRate(15_000_000)];
/// Rate of sound.
const SOUND: BitRate = BitRate(192_000);
/// A file's container has about this part of its bytes.
const CONTAINER_PART: u64 = 500;
/// Bytes of an index: of its label, ...
const INDEX_LEAST: u64 = 16 << 10;
/// ... of a second of picture and sound, ...
const INDEX_SECOND: u64 = 250;
/// ... and four of each so many bytes of data.
const CHECKED: u64 = 64 << 10;
/// Bytes that a recording writes at once.
const WRITE: u64 = 1 << 20;
const SAMPLE: u32 = 10_000;
// The name of a source of chance.
const TITLES: u64 = 9;
