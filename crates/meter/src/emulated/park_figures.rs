//! Park, Won and Srivastava's figures 2 to 6 on the emulated disk: files that are each read by a
//! stream of its own, as fast as it can, through the library and the mount of a store and through
//! file systems; and one file that is read alone, again and again.

use super::bench::{Bench, SEED};
use super::titles_on_disk::{TitlesOnDisk, TitlesPlan};
use super::{Cost, EmulatedOptions, EmulatedResult, MPEG1, System, THEIR_DISK};
use super::{file_system, lateness, p99_ms};
use crate::error::MeterError;
use crate::report::{Cell, Figure, LineShape, NamedCell, Plot, Report, Series, Table};
use crate::report::{cell, spread_cells};
use crate::rounds::Spread;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{ByteCount, float};

/// What `park-figures` reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkOptions {
    /// The numbers of streams, of which there is a row each.
    pub streams: Vec<u32>,
    /// The bytes that a stream takes in one read: two sizes at most, as in the paper.
    pub units: Vec<ByteCount>,
    /// How often one file is read alone (figure 6).
    pub alone: u32,
}

impl Default for ParkOptions {
    fn default() -> Self {
        Self {
            streams: vec![1, 10, 20, 30, 40, 50, 60],
            units: vec![ByteCount::kib(32), ByteCount::kib(64)],
            alone: 30,
        }
    }
}

impl ParkOptions {
    fn files(&self) -> u32 {
        self.streams.iter().copied().max().unwrap_or(1)
    }

    pub(super) fn check(&self) -> Result<(), MeterError> {
        let count = self.units.len();
        if count == 0 || count > CHARTS.len() || self.units.contains(&ByteCount::ZERO) {
            return Err(MeterError::usage("the paper's charts are for one or two sizes of reads")
                .hint("ask for one or two, such as --ldu 32KiB,64KiB"));
        }
        if self.streams.is_empty() || self.streams.iter().any(|n| !(1..=MOST).contains(n)) {
            return Err(MeterError::usage(format!("there are 1 to {MOST} streams"))
                .hint("ask for one or more numbers of streams, such as --streams 10,30,60"));
        }
        Ok(())
    }
}

/// The length of a file of the paper, 30 MB; in proportion on a disk that is smaller than theirs.
pub fn park_file(disk: ByteCount) -> ByteCount {
    let part = u128::from(FILE.0) * u128::from(disk.0) / u128::from(THEIR_DISK.0);
    ByteCount(u64::try_from(part).expect("no longer than the disk").clamp(1, FILE.0))
}

/// The times of streams that were read side by side, or of one that was read again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTimes {
    /// How long each took from the common start to its end.
    pub took: Vec<Duration>,
    /// The longest time from one unit of a stream to the next.
    pub longest_gap: Duration,
    /// The bytes of all.
    pub bytes: ByteCount,
}

impl ReadTimes {
    /// The distribution of their times.
    pub fn spread(&self) -> Spread {
        Spread::of(self.took.iter().copied())
    }

    /// Until the last has ended, in seconds.
    pub fn wall(&self) -> f64 {
        self.took.iter().max().map_or(0.0, Duration::as_secs_f64)
    }

    /// Bytes of all per second until the last has ended, in MB of 10^6 bytes.
    pub fn megabytes_per_second(&self) -> f64 {
        float(self.bytes.0) / 1e6 / self.wall().max(f64::MIN_POSITIVE)
    }

    /// Cells of a table's row for streams that were read side by side.
    pub fn cells(&self) -> impl Iterator<Item = NamedCell> {
        let gap = self.longest_gap.as_secs_f64();
        spread_cells(self.spread()).into_iter().chain([
            cell("wall_s", ">wall, s", Cell::Number(self.wall(), 2)),
            cell("rate_mb_s", ">MB/s", Cell::Number(self.megabytes_per_second(), 2)),
            cell("longest_gap_s", ">longest gap, s", Cell::Number(gap, 2)),
        ])
    }
}

/// The cost of reading the files for each row.
pub(super) fn cost(options: &EmulatedOptions) -> Cost {
    let ParkOptions { streams, units, alone } = &options.park;
    let few = |count: usize| u32::try_from(count).expect("a few");
    // A file system is read with two read-aheads.
    let systems = few(options.systems.len() + options.file_systems().count());
    let files = streams.iter().sum::<u32>() * few(units.len()) + alone;
    let len = park_file(options.size.unwrap_or(THEIR_DISK));
    let seconds = float(len.0) / RATE * f64::from(systems * files);
    let rounds = seconds / options.block.time_at(MPEG1).as_secs_f64();
    let rounds = u32::try_from(units::rounded(rounds)).unwrap_or(u32::MAX);
    Cost { ways: systems * (few(streams.len() * units.len()) + 1), rounds, sequential: 0 }
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<EmulatedResult, MeterError> {
    let mut results = Results::new();
    let done = fill(bench, &mut results);
    let options = bench.options;
    let len = park_file(bench.model.capacity());
    let mut report = Report {
        source: "Park, Won and Srivastava, Performance Analysis of Multimedia File System, section 5 and figures 2 to 6"
            .to_owned(),
        method: format!(
            "{} files of {:.1} MB, one for each stream, on an emulated ST39183W in place of the \
             paper's array, {} times as fast as the disk; all figures in the disk's time. A thread \
             for each stream reads its file once, as fast as it can. store: a store's titles by its \
             library; mount: the same titles as files of its mount. Other systems: files written \
             one after another. Nothing is in memory at the beginning.",
            options.park.files(),
            float(len.0) / 1e6,
            options.speed
        ),
        figures: results.figures(&options.park.units),
        tables: Vec::new(),
        notes: lateness(bench),
    };
    report.notes.push(
        "The mean alone misleads: where streams are served unfairly, those that end early lower \
         it, while the last ends at the same time."
            .to_owned(),
    );
    let (compared, figure_6) = (results.compared(), results.figure_6());
    report.tables.extend([results.streams, results.alone, figure_6]);
    if !compared.rows.is_empty() {
        report.tables.push(compared);
    }
    EmulatedResult::of(bench, report, done)
}

fn fill(bench: &mut Bench<'_>, results: &mut Results) -> Result<(), MeterError> {
    let plan =
        TitlesPlan { count: bench.options.park.files(), len: park_file(bench.model.capacity()) };
    let stored = |system: &System| matches!(system, System::Store | System::StoreMount);
    let stores: Vec<_> = bench.options.systems.iter().copied().filter(stored).collect();
    if !stores.is_empty() {
        let mut titles = StoredTitles::make(bench, plan)?;
        for system in stores {
            let mounted = system == System::StoreMount;
            let read_ahead = if mounted { "mount's own" } else { "store's own" };
            let mut source = if mounted {
                StreamSource::Mount(&mut titles)
            } else {
                StreamSource::Library(&mut titles)
            };
            each_number(bench, results, &mut source, [system.name(), read_ahead])?;
        }
    }
    for kind in bench.options.file_systems().collect::<Vec<_>>() {
        let mut filled = bench.fill_with(kind, plan.count, plan.len)?;
        if filled.count() < plan.count {
            let (has, count) = (filled.count(), plan.count);
            return Err(MeterError::new(format!(
                "{} has room for {has} of {count} files",
                kind.name()
            )));
        }
        for ahead in [Some(SMALL_READ_AHEAD), None] {
            let kib = filled.mounted.mount_cold(ahead)?;
            let note = ahead.map_or(format!("{kib} KiB, default"), |_| format!("{kib} KiB"));
            let files = filled.files().to_vec();
            let mut cold = || filled.mounted.mount_cold(ahead).map(drop);
            let mut source = StreamSource::Files { files: &files, cold: &mut cold };
            each_number(bench, results, &mut source, [kind.name(), &note])?;
        }
    }
    Ok(())
}

/// The titles of a store, in the order of their streams.
struct StoredTitles {
    store: Box<dyn TitlesOnDisk>,
    numbers: Vec<u32>,
    folder: MountFolder,
}

/// The directory on which the store is mounted; removed when dropped.
struct MountFolder(PathBuf);

impl Drop for MountFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl StoredTitles {
    fn make(bench: &mut Bench<'_>, plan: TitlesPlan) -> Result<Self, MeterError> {
        let make = bench.options.titles.ok_or_else(|| MeterError::usage("no store can be made"))?;
        bench.disk.set_fast(true);
        bench.say("making a store");
        let (device, stop, count) = (bench.device().to_owned(), bench.stop, plan.count);
        let mut go_on = |number| {
            bench.say(&format!("filling the store: {number} of {count} titles"));
            !stop.is_asked()
        };
        let made = make(&device, plan, &mut go_on);
        bench.still()?;
        let store = made?;
        let folder = MountFolder(file_system::make_folder(&device)?);
        let mut numbers: Vec<_> = (0..count).collect();
        // As the files of file systems: neighbours on the disk are not neighbours in time.
        fastrand::Rng::with_seed(SEED).shuffle(&mut numbers);
        Ok(Self { store, numbers, folder })
    }
}

/// Where streams read.
enum StreamSource<'a> {
    Library(&'a mut StoredTitles),
    Mount(&'a mut StoredTitles),
    Files { files: &'a [PathBuf], cold: &'a mut dyn FnMut() -> Result<(), MeterError> },
}

impl StreamSource<'_> {
    /// Readers of the first `count` files, none of whose bytes are in memory.
    fn readers(&mut self, count: u32) -> Result<Vec<Box<dyn Read + Send>>, MeterError> {
        let count = usize::try_from(count).expect("few streams");
        match self {
            Self::Library(titles) => titles.store.readers(&titles.numbers[..count]),
            Self::Mount(titles) => {
                let StoredTitles { store, numbers, folder } = &mut **titles;
                store.mount_cold(&folder.0)?;
                numbers[..count].iter().map(|number| opened(&store.file(*number))).collect()
            }
            Self::Files { files, cold } => {
                cold()?;
                files[..count].iter().map(|path| opened(path)).collect()
            }
        }
    }
}

fn opened(path: &Path) -> Result<Box<dyn Read + Send>, MeterError> {
    Ok(Box::new(File::open(path).map_err(MeterError::cannot("open", path))?))
}

/// Reads by each number of streams in each unit, then one file alone.
fn each_number(
    bench: &mut Bench<'_>,
    results: &mut Results,
    source: &mut StreamSource<'_>,
    [system, read_ahead]: [&str; 2],
) -> Result<(), MeterError> {
    let ParkOptions { streams, units, alone } = &bench.options.park;
    let named = format!("{system} ({read_ahead})");
    for &unit in units {
        for &count in streams {
            let what = format!("{named}, {unit}, {count} streams");
            bench.reset_statistics();
            let times = read(bench, source, count, unit, &what)?;
            let late = p99_ms(&bench.disk.statistics());
            let (rate, spread) = (times.megabytes_per_second(), times.spread());
            let gap = times.longest_gap.as_secs_f64();
            let found = format!(
                "{what}: {:.1} s, sd {:.2} s, {rate:.2} MB/s, longest gap {gap:.2} s",
                spread.mean, spread.sd
            );
            let (system, read_ahead) = (system.to_owned(), read_ahead.to_owned());
            results.add(FileRow { system, read_ahead, unit, streams: count, times }, late);
            bench.done += 1;
            bench.tell(&found, true);
        }
    }
    bench.reset_statistics();
    let unit = units[0];
    let mut all =
        ReadTimes { took: Vec::new(), longest_gap: Duration::ZERO, bytes: ByteCount::ZERO };
    for number in 1..=*alone {
        let what = format!("{named}, alone, {number} of {alone}");
        let times = read(bench, source, 1, unit, &what)?;
        all.took.extend(times.took);
        all.longest_gap = all.longest_gap.max(times.longest_gap);
    }
    let spread = all.spread();
    results.alone(system, read_ahead, &all, p99_ms(&bench.disk.statistics()));
    bench.done += 1;
    let (mean, sd) = (spread.mean, spread.sd * 1e3);
    bench.tell(&format!("{named}, alone {alone} times: {mean:.3} s, sd {sd:.1} ms"), true);
    Ok(())
}

fn read(
    bench: &mut Bench<'_>,
    source: &mut StreamSource<'_>,
    count: u32,
    unit: ByteCount,
    what: &str,
) -> Result<ReadTimes, MeterError> {
    let readers = source.readers(count)?;
    let streams = bench.streams(readers, unit, what)?;
    Ok(ReadTimes {
        longest_gap: streams.iter().map(|one| one.longest_gap).max().unwrap_or_default(),
        bytes: ByteCount(streams.iter().map(|one| one.bytes.0).sum()),
        took: streams.into_iter().map(|one| one.took).collect(),
    })
}

/// A row of the table of streams.
struct FileRow {
    system: String,
    read_ahead: String,
    unit: ByteCount,
    streams: u32,
    times: ReadTimes,
}

/// All tables of the report, which grow row by row.
struct Results {
    streams: Table,
    alone: Table,
    rows: Vec<FileRow>,
    /// The spreads in the table of one file, with the system and its read-ahead.
    spreads_alone: Vec<([String; 2], Spread)>,
}

impl Results {
    fn new() -> Self {
        Self {
            streams: Table::new("streams", "Files read side by side, a stream each: seconds"),
            alone: Table::new("alone", "One file read alone, again and again: seconds"),
            rows: Vec::new(),
            spreads_alone: Vec::new(),
        }
    }

    fn add(&mut self, row: FileRow, late: Cell) {
        let head = [
            cell("system", "system", row.system.as_str()),
            cell("read_ahead", "read-ahead", row.read_ahead.as_str()),
            cell("ldu_kib", ">LDU, KiB", Cell::Number(float(row.unit.0) / 1024.0, 0)),
            cell("streams", ">streams", row.streams),
        ];
        let late = cell("disk_late_p99_ms", ">late p99, ms", late);
        self.streams.add(head.into_iter().chain(row.times.cells()).chain([late]));
        self.rows.push(row);
    }

    fn alone(&mut self, system: &str, read_ahead: &str, times: &ReadTimes, late: Cell) {
        let spread = times.spread();
        let gap = times.longest_gap.as_secs_f64();
        self.alone.add([
            cell("system", "system", system),
            cell("read_ahead", "read-ahead", read_ahead),
            cell("mean_s", ">mean", Cell::Number(spread.mean, 3)),
            cell("sd_s", ">sd", Cell::Number(spread.sd, 4)),
            cell("min_s", ">min", Cell::Number(spread.min, 3)),
            cell("max_s", ">max", Cell::Number(spread.max, 3)),
            cell("longest_gap_s", ">longest gap", Cell::Number(gap, 3)),
            cell("disk_late_p99_ms", ">late p99, ms", late),
        ]);
        self.spreads_alone.push(([system.to_owned(), read_ahead.to_owned()], spread));
    }

    /// Figure 6: how much less the times of one file vary in the store than in file systems.
    fn figure_6(&self) -> Table {
        let mut table = Table::new(
            "figure_6",
            "Figure 6: standard deviation of reading one file (there without a unit)",
        );
        let sd = |named: [&str; 2], one: Cell, other: Cell, less: Cell| {
            [
                cell("system", "system", named[0]),
                cell("relative_to", "relative to", named[1]),
                cell("sd_s", ">sd", one),
                cell("their_sd_s", ">sd there", other),
                cell("less_percent", ">less by, %", less),
            ]
        };
        let number = |ms: f64| Cell::Number(ms, 4);
        for ([system, _], ours) in self.spreads_alone.iter().filter(|(of, _)| is_store(&of[0])) {
            let others = self.spreads_alone.iter().filter(|(of, _)| of[1].ends_with("default"));
            for ([other, _], theirs) in others {
                let less = match theirs.sd > 0.0 {
                    true => Cell::Number(100.0 * (1.0 - ours.sd / theirs.sd), 0),
                    false => Cell::Missing,
                };
                table.add(sd([system, other], number(ours.sd), number(theirs.sd), less));
            }
        }
        let names = ["the paper's file system", "ext2"];
        table.add(sd(names, Cell::Count(112), Cell::Count(171), Cell::Count(34)));
        table
    }

    /// The store beside the file systems with the kernel's default read-ahead.
    fn compared(&self) -> Table {
        let mut table = Table::new(
            "compared",
            "The store relative to file systems with the kernel's default read-ahead",
        );
        for ours in self.rows.iter().filter(|row| is_store(&row.system)) {
            let same = |row: &&FileRow| (row.unit, row.streams) == (ours.unit, ours.streams);
            let theirs = self.rows.iter().filter(same);
            for theirs in theirs.filter(|row| row.read_ahead.ends_with("default")) {
                let [us, them] = [ours, theirs].map(|row| &row.times);
                let ratio = |one: f64, other: f64| match other > 0.0 {
                    true => Cell::Number(one / other, 2),
                    false => Cell::Missing,
                };
                let gaps = [us, them].map(|times| times.longest_gap.as_secs_f64());
                table.add([
                    cell("system", "system", ours.system.as_str()),
                    cell("relative_to", "relative to", theirs.system.as_str()),
                    cell("ldu_kib", ">LDU, KiB", Cell::Number(float(ours.unit.0) / 1024.0, 0)),
                    cell("streams", ">streams", ours.streams),
                    cell(
                        "rate",
                        ">MB/s",
                        ratio(us.megabytes_per_second(), them.megabytes_per_second()),
                    ),
                    cell("sd", ">sd", ratio(us.spread().sd, them.spread().sd)),
                    cell("longest_gap", ">longest gap", ratio(gaps[0], gaps[1])),
                ]);
            }
        }
        table
    }

    fn figures(&self, units: &[ByteCount]) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (unit, [mean, range]) in units.iter().zip(CHARTS) {
            let title = format!("LDU of {unit}: mean time to read a file");
            figures.push(
                self.figure(*unit, mean, title, LineShape::Line, &|spread| vec![spread.mean]),
            );
            let title = format!("LDU of {unit}: shortest and longest time to read a file");
            let ends = |spread: Spread| vec![spread.min, spread.max];
            figures.push(self.figure(*unit, range, title, LineShape::Spans, &ends));
        }
        let spans = self.spreads_alone.iter().zip(1u32..).flat_map(|((_, spread), number)| {
            [spread.mean - spread.sd, spread.mean + spread.sd].map(|y| (f64::from(number), y))
        });
        let series = Series::new("mean \u{b1} sd", LineShape::Spans, spans.collect());
        let plot = Plot::new(
            "One file read alone",
            "system, in the order of the table",
            "seconds",
            vec![series],
        );
        let explanation = "Standard deviation around the mean of the times.".to_owned();
        figures.push(Figure { name: "figure-6", plot, explanation });
        figures
    }

    fn figure(
        &self,
        unit: ByteCount,
        name: &'static str,
        title: String,
        shape: LineShape,
        points: &dyn Fn(Spread) -> Vec<f64>,
    ) -> Figure {
        let mut series: Vec<Series> = Vec::new();
        for row in self.rows.iter().filter(|row| row.unit == unit) {
            let name = format!("{} ({})", row.system, row.read_ahead);
            let of_row = points(row.times.spread()).into_iter();
            let of_row = of_row.map(|y| (f64::from(row.streams), y));
            match series.iter_mut().find(|one| one.name == name) {
                Some(one) => one.points.extend(of_row),
                None => series.push(Series::new(name, shape, of_row.collect())),
            }
        }
        let plot = Plot::new(title, "streams", "seconds", series);
        let explanation = "Each stream reads a file of its own, as fast as it can.".to_owned();
        Figure { name, plot, explanation }
    }
}

/// Whether the system of this name is a Tenuto store, read in one way or the other.
fn is_store(name: &str) -> bool {
    [System::Store, System::StoreMount].map(System::name).contains(&name)
}

/// The length of a file of the paper.
const FILE: ByteCount = ByteCount(30_000_000);

/// As many files as find room on the disk beside what file systems need, with some to spare.
const MOST: u32 = 200;

/// Bytes a second of the estimate of the duration: what is read on average, by experience.
const RATE: f64 = 12e6;

/// The read-ahead in KiB that was the kernel's default for long.
const SMALL_READ_AHEAD: u32 = 128;

/// The charts of mean and range for each unit, by their numbers in the paper.
const CHARTS: [[&str; 2]; 2] = [["figure-2", "figure-3"], ["figure-4", "figure-5"]];
