//! A store as it ages: months in which titles come and go on a nearly full disk, and what that
//! does to extents, holes and streams.
//!
//! ```text
//!   titles ─▶ the store's map of free chunks ─▶ extents ─▶ the server's pieces ─▶ streams held
//!   (come,    (`store`: first fit, growth)        │
//!    go)                                          └─ the same titles on an empty store ─▶ fresh
//! ```
//!
//! Space is taken by the code of the store, in the regions of its format; no data is written. The
//! streams of the worst case are those of the capacity simulation that `tenuto plan` runs, with the
//! real places of the titles; in use, the server's engine reads from the disk model.

mod library;

pub use library::{Library, LibraryTitle, Removal};

use crate::admission::{CrowdArrivals, CrowdStudy, RandomSource};
use crate::reproduce::{Cell, Figure, Report, Table};
use disk::DiskModel;
use engine::{DiskNumber, Layout, PieceTimes, TitleKey, TrackLayout};
use meter::report::{LineShape, Plot, Series, cell};
use scheduler::{CapacitySim, DiskTimings, Lead, PolicyKind, TrackPieces, sending_reserve};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;
use store::{FreeMap, StoreError};
use units::{BitRate, ByteCount, Extent};

/// A store whose ageing is studied.
#[derive(Clone, Debug)]
pub struct AgeingStudy {
    /// The disk; all of it is the store.
    pub model: DiskModel,
    /// The store's chunk.
    pub chunk: ByteCount,
    /// Bytes of the largest read.
    pub read_size: ByteCount,
    /// The part of the store that is in use.
    pub full: f64,
    /// Months that pass.
    pub months: u32,
    /// What is removed to make room.
    pub removal: Removal,
    /// All chance.
    pub seed: u64,
}

/// A store at the end of a month.
#[derive(Clone, Debug, PartialEq)]
pub struct MonthResult {
    /// Months that have passed.
    pub month: u32,
    /// Number of titles.
    pub titles: usize,
    /// Part of the data chunks that is in use.
    pub used: f64,
    /// Extents of the picture of each title, in rising order.
    pub extents: Vec<usize>,
    /// Part of the bytes of all pictures that are read in reads as large as those of one extent.
    pub whole_reads: f64,
    /// Number of holes.
    pub holes: usize,
    /// The largest hole.
    pub largest: ByteCount,
    /// Titles until now that found no room, although the store was not full.
    pub failed: u64,
    /// Streams held of this store.
    pub aged: StreamsHeld,
    /// Streams held of an empty store to which the same titles were written.
    pub fresh: StreamsHeld,
}

/// Streams that a disk holds: viewers of random titles from random times on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamsHeld {
    /// In the worst case, as planned: mean of several audiences.
    pub planned: f64,
    /// As many as the engine admits on the modelled disk.
    pub in_use: u64,
    /// Reads that were late in use.
    pub late: u64,
}

impl StreamsHeld {
    /// These streams as parts of others', planned and in use.
    pub fn of(&self, other: &Self) -> [f64; 2] {
        let part = |a: f64, b: f64| a / b.max(f64::MIN_POSITIVE);
        [part(self.planned, other.planned), part(self.in_use as f64, other.in_use as f64)]
    }
}

impl AgeingStudy {
    /// Lets the months pass. `progress` gets the part that is done, from 0 to 1.
    ///
    /// # Errors
    /// A disk that is too small for a store.
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<Vec<MonthResult>, StoreError> {
        let empty = FreeMap::of_empty_store(self.model.capacity(), self.chunk)?;
        let mut library =
            Library::new(empty.clone(), self.chunk, self.full, self.removal, self.seed);
        let mut months = Vec::new();
        for month in 0..=self.months {
            library.pass_until(MONTH * month);
            months.push(self.month(month, &library, &library.rewritten(empty.clone())));
            progress(f64::from(month + 1) / f64::from(self.months + 1));
        }
        Ok(months)
    }

    fn month(&self, month: u32, library: &Library, fresh: &Library) -> MonthResult {
        let mut extents: Vec<usize> =
            library.titles().map(|(_, title)| title.tracks[0].extents().len()).collect();
        extents.sort_unstable();
        let (mut bytes, mut whole) = (0, 0);
        for (_, title) in library.titles() {
            let runs = self.runs(title.tracks[0].extents());
            let piece =
                |runs: &[Range<u64>]| engine::piece_size(title.rates[0], runs, self.read_size);
            bytes += title.bytes(0).0;
            whole += if piece(&runs) == piece(&[]) { title.bytes(0).0 } else { 0 };
        }
        MonthResult {
            month,
            titles: extents.len(),
            used: library.used(),
            extents,
            whole_reads: whole as f64 / bytes.max(1) as f64,
            holes: library.free().holes(),
            largest: ByteCount(library.free().largest() * self.chunk.0),
            failed: library.failed(),
            aged: self.streams(library, library, fresh),
            fresh: self.streams(fresh, library, fresh),
        }
    }

    /// Streams held of `of`, which is one of the other two; the titles are in both of these.
    fn streams(&self, of: &Library, aged: &Library, fresh: &Library) -> StreamsHeld {
        // A title that ends while others come would make room for them.
        let numbers: Vec<u64> = aged
            .titles()
            .filter(|(number, title)| title.length > 2 * PLAYED && fresh.title(*number).is_some())
            .map(|(number, _)| number)
            .collect();
        if numbers.is_empty() {
            return StreamsHeld { planned: 0.0, in_use: 0, late: 0 };
        }
        let held = (0..AUDIENCES).map(|audience| {
            let viewers = self.audience(of, &numbers, u64::from(audience));
            self.planned(&viewers) as f64
        });
        let planned = held.sum::<f64>() / f64::from(AUDIENCES);
        let (in_use, late) = self.in_use(&self.audience(of, &numbers, 0));
        StreamsHeld { planned, in_use, late }
    }

    /// What so many viewers read as could be held by transfer alone; the same for every store.
    fn audience(&self, library: &Library, numbers: &[u64], audience: u64) -> Vec<Vec<TrackLayout>> {
        let mut random = RandomSource::new(self.seed ^ audience << 32, VIEWERS);
        let (mut rates, mut viewers) = (0, Vec::new());
        while rates < self.model.mean_rate().0 && viewers.len() < MOST_VIEWERS {
            let number = numbers[random.below(numbers.len())];
            let (title, from) = (library.title(number).expect("in both"), random.part());
            rates += title.rates.iter().map(|rate| rate.0).sum::<u64>();
            viewers.push(
                (0..title.tracks.len()).map(|track| self.track(title, track, from)).collect(),
            );
        }
        viewers
    }

    /// What a viewer reads of a track from this part of it on.
    fn track(&self, title: &LibraryTitle, track: usize, from: f64) -> TrackLayout {
        let rate = title.rates[track];
        let mut runs = self.runs(title.tracks[track].extents());
        let piece = engine::piece_size(rate, &runs, self.read_size);
        let lasts = ByteCount(piece.into()).time_at(rate);
        let pieces = PLAYED.as_nanos().div_ceil(lasts.as_nanos().max(1));
        let bytes = u64::try_from(pieces).unwrap_or(u64::MAX).saturating_mul(piece.into());
        let room = title.bytes(track).0.saturating_sub(bytes) / u64::from(piece);
        let first = Duration::from_secs_f64(from * room as f64).as_secs();
        let mut skipped = first * u64::from(piece);
        runs.retain_mut(|run| {
            let now = skipped.min(run.end - run.start);
            run.start += now;
            skipped -= now;
            !run.is_empty()
        });
        let due = |number: u128| u32::try_from(number * lasts.as_nanos() / 1_000_000);
        TrackLayout {
            bytes,
            piece,
            lead: Lead::default(),
            runs,
            due: (0..pieces).map(|number| due(number).unwrap_or(u32::MAX)).collect(),
            stored: Vec::new(),
            key_frames_of: None,
            times: OnceLock::new(),
        }
    }

    fn runs(&self, extents: &[Extent]) -> Vec<Range<u64>> {
        extents.iter().map(|e| e.start.0 * self.chunk.0..e.end().0 * self.chunk.0).collect()
    }

    fn planned(&self, viewers: &[Vec<TrackLayout>]) -> u64 {
        let timings = self.timings();
        let times: Vec<Vec<PieceTimes>> = viewers
            .iter()
            .map(|tracks| {
                let of = |track: &TrackLayout| {
                    timings.costs.as_ref().map_or_else(PieceTimes::default, |c| track.times_on(c))
                };
                tracks.iter().map(of).collect()
            })
            .collect();
        let viewers: Vec<Vec<TrackPieces<'_>>> =
            viewers.iter().zip(&times).map(|(tracks, times)| curves(tracks, times)).collect();
        let pieces = viewers.iter().map(|tracks| tracks.iter().map(|track| track.piece));
        CapacitySim {
            policy: PolicyKind::TimeDomain,
            min_read: self.model.guaranteed_reads(self.read_size, SLOT),
            read_size: self.read_size.0,
            memory: MEMORY.0,
            timings: &timings,
            slot: SLOT,
            startup: STARTUP,
            viewers: &viewers,
            reserve: pieces.map(sending_reserve).max().unwrap_or(0),
            narrows_sockets: true,
            arrivals: 0,
            patience: 0,
            filling: 0,
        }
        .filled_by(viewers.len() as u64)
        .run()
        .streams
    }

    /// Viewers that the engine admits, and late reads.
    fn in_use(&self, viewers: &[Vec<TrackLayout>]) -> (u64, u64) {
        let house = CrowdStudy {
            model: self.model.clone(),
            read_size: self.read_size,
            piece: u32::try_from(self.read_size.0).unwrap_or(u32::MAX),
            memory: MEMORY,
            rate: BitRate(0),
            variable: false,
            sound: None,
            length: PLAYED,
            segment: Duration::ZERO,
            startup: STARTUP,
            wait: Duration::ZERO,
            seed: self.seed,
        };
        let title = |number: u64| {
            let tracks = &viewers[usize::try_from(number - 1).expect("few")];
            let copy = |track: &TrackLayout| TrackLayout {
                bytes: track.bytes,
                piece: track.piece,
                lead: track.lead,
                runs: track.runs.clone(),
                due: track.due.clone(),
                stored: Vec::new(),
                key_frames_of: None,
                times: OnceLock::new(),
            };
            Layout {
                title: TitleKey(number),
                disk: DiskNumber(0),
                duration: PLAYED,
                tracks: tracks.iter().map(copy).collect(),
            }
        };
        let result = house.receive(viewers.len() as u64, CrowdArrivals::Even(ARRIVALS), &title);
        (result.starts.len() as u64, result.late)
    }

    fn timings(&self) -> DiskTimings {
        DiskTimings::of_model(&self.model, self.read_size, self.model.queue_depth(self.read_size))
    }
}

fn curves<'a>(tracks: &'a [TrackLayout], times: &'a [PieceTimes]) -> Vec<TrackPieces<'a>> {
    let curve = |(track, times): (&'a TrackLayout, &'a PieceTimes)| TrackPieces {
        due: &track.due,
        piece: track.piece,
        bytes: track.bytes,
        lead: track.lead,
        transfer: &times.transfer,
        followed: &times.followed,
    };
    tracks.iter().zip(times).map(curve).collect()
}

/// The months of a study as a report.
pub fn ageing_report(study: &AgeingStudy, months: &[MonthResult]) -> Report {
    let layout = months.iter().map(|month| {
        let extents = &month.extents;
        let at = |percent: usize| {
            extents.get((extents.len() * percent / 100).min(extents.len().max(1) - 1))
        };
        let part = |count: usize, of: usize| count as f64 / of.max(1) as f64;
        let count = |extents: Option<&usize>| extents.map(|extents| Cell::Count(*extents as u64));
        let one = extents.iter().filter(|extents| **extents == 1).count();
        [
            cell("month", ">month", u64::from(month.month)),
            cell("titles", ">titles", month.titles),
            cell("used", ">in use", Cell::Number(month.used, 3)),
            cell(
                "extents_mean",
                ">extents, mean",
                Cell::Number(part(extents.iter().sum(), extents.len()), 2),
            ),
            cell("extents_p99", ">p99", count(at(99))),
            cell("extents_max", ">max", count(at(100))),
            cell("one_extent", ">in one", Cell::Number(part(one, extents.len()), 3)),
            cell("whole_reads", ">whole reads", Cell::Number(month.whole_reads, 3)),
            cell("holes", ">holes", month.holes),
            cell("largest_hole_bytes", ">largest, bytes", month.largest.0),
            cell("failed", ">failed", month.failed),
        ]
    });
    let streams = months.iter().map(|month| {
        let MonthResult { aged, fresh, .. } = month;
        let [planned, in_use] = aged.of(fresh);
        [
            cell("month", ">month", u64::from(month.month)),
            cell("planned_fresh", ">planned, fresh", Cell::Number(fresh.planned, 1)),
            cell("planned_aged", ">aged", Cell::Number(aged.planned, 1)),
            cell("planned_ratio", ">ratio", Cell::Number(planned, 3)),
            cell("in_use_fresh", ">in use, fresh", fresh.in_use),
            cell("in_use_aged", ">aged", aged.in_use),
            cell("in_use_ratio", ">ratio", Cell::Number(in_use, 3)),
            cell("late", ">late", fresh.late + aged.late),
        ]
    });
    let line = |name: &str, of: &dyn Fn(&MonthResult) -> f64| {
        let points = months.iter().map(|month| (f64::from(month.month), of(month))).collect();
        Series::new(name, LineShape::Line, points)
    };
    let plot = Plot {
        title: "Streams, aged over fresh".to_owned(),
        x_label: "months".to_owned(),
        y_label: "part of a fresh store's streams".to_owned(),
        series: vec![
            line("planned", &|month| month.aged.of(&month.fresh)[0]),
            line("in use", &|month| month.aged.of(&month.fresh)[1]),
        ],
        least_top: 1.2,
    };
    let full = 100.0 * study.full;
    let removed = match study.removal {
        Removal::Random => "a random title",
        Removal::Oldest => "the oldest title",
    };
    Report {
        source: format!("A store on {} as it ages, simulated", study.model.title()),
        method: format!(
            "In each month titles come whose bytes are as many as the store holds: clips, \
             programmes, films, and recordings that grow side by side. It is {full:.0} % full, and \
             {removed} is removed to make room. Extents are those of a title's picture. Whole \
             reads: part of the bytes of all pictures that are read in reads as large as a title of \
             one extent is. Failed: titles that found no room. Streams: viewers of random titles \
             from random times on, in reads of up to {}; planned in the worst case (as `tenuto \
             plan`, mean of {AUDIENCES} audiences), and in use (the server's engine on the modelled \
             disk). Fresh: the same titles, written to an empty store one after another.",
            study.read_size
        ),
        tables: vec![
            Table::of("layout", "Titles and holes", layout),
            Table::of("streams", "Streams held", streams),
        ],
        notes: no_streams(study, months).into_iter().collect(),
        figures: vec![Figure {
            name: "streams",
            plot,
            explanation: "1 is a store to which the same titles were written one after another. A \
                          line that falls is a loss by age."
                .to_owned(),
        }],
    }
}

const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long each viewer plays: much longer than the time in which all come.
const PLAYED: Duration = Duration::from_secs(300);
/// The time in which viewers come to the engine.
const ARRIVALS: Duration = Duration::from_secs(60);
/// Audiences whose mean is planned: one holds a few streams more or less than another.
const AUDIENCES: u32 = 5;
/// Viewers of an audience: no disk with an arm holds more.
const MOST_VIEWERS: usize = 4096;
/// Memory that is never short.
const MEMORY: ByteCount = ByteCount(1 << 40);
/// The slot of a model and the start-up time: the defaults of a server.
const SLOT: Duration = Duration::from_millis(500);
const STARTUP: Duration = Duration::from_secs(1);
// The name of a source of chance.
const VIEWERS: u64 = 10;

/// Why no stream is counted in any month; `None` where some are.
fn no_streams(study: &AgeingStudy, months: &[MonthResult]) -> Option<String> {
    let none = months.iter().all(|month| month.fresh.planned == 0.0);
    none.then(|| {
        let minutes = 2 * PLAYED.as_secs() / 60;
        let size = study.model.capacity();
        format!(
            "No title of more than {minutes} minutes fits on {size}, and streams are counted of \
             such titles only: make --size larger."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(removal: Removal) -> AgeingStudy {
        AgeingStudy {
            model: DiskModel::preset("hdd-20tb").unwrap().scaled_to(ByteCount(1 << 40)),
            chunk: ByteCount::MIB,
            read_size: ByteCount(4 << 20),
            full: 0.9,
            months: 6,
            removal,
            seed: 1,
        }
    }

    fn aged(study: &AgeingStudy, unit: Option<u64>) -> MonthResult {
        let mut empty = FreeMap::of_empty_store(study.model.capacity(), study.chunk).unwrap();
        if let Some(unit) = unit {
            empty = empty.in_units_of(unit);
        }
        let mut library =
            Library::new(empty.clone(), study.chunk, study.full, study.removal, study.seed);
        library.pass_until(MONTH * study.months);
        study.month(study.months, &library, &library.rewritten(empty))
    }

    #[test]
    fn after_six_months_a_nearly_full_store_has_lost_few_streams() {
        for removal in [Removal::Random, Removal::Oldest] {
            let month = aged(&study(removal), None);
            let [planned, in_use] = month.aged.of(&month.fresh);
            let said = format!("{removal:?}: {:?} {:?}", month.aged, month.fresh);
            // Five seeds gave 0.953 to 0.981 planned and 0.958 to 0.982 in use.
            assert!(planned >= 0.95 && in_use >= 0.95, "{said}");
            assert_eq!((month.failed, month.aged.late, month.fresh.late), (0, 0, 0), "{said}");
            assert!(month.whole_reads > 0.99, "{removal:?}: {}", month.whole_reads);
            assert!((0.85..=0.9).contains(&month.used), "{removal:?}: {}", month.used);
        }
    }

    #[test]
    fn a_store_without_long_titles_is_named_as_the_reason_for_no_streams() {
        for (gib, notes) in [(1, 1), (1024, 0)] {
            let model = study(Removal::Random).model.scaled_to(ByteCount(gib << 30));
            let study = AgeingStudy { model, months: 0, ..study(Removal::Random) };
            let report = ageing_report(&study, &study.run(&mut |_| ()).unwrap());
            assert_eq!(report.notes.len(), notes, "{:?}", report.notes);
            let wanted = "No title of more than 10 minutes fits on 1 GiB";
            assert!(report.notes.iter().all(|note| note.starts_with(wanted)), "{:?}", report.notes);
        }
    }

    #[test]
    fn extents_of_any_length_cost_large_reads() {
        let study = study(Removal::Random);
        let (whole, any) = (aged(&study, None), aged(&study, Some(1)));
        assert!(any.whole_reads < 0.8 * whole.whole_reads, "{}", any.whole_reads);
        assert!(any.aged.planned < 0.9 * whole.aged.planned, "{:?} {:?}", any.aged, whole.aged);
    }
}
