//! Park, Won and Srivastava, figures 2 to 5 in virtual time: streams that each read a file of 30 MB
//! as fast as they can, from where a store places its titles, in the sweeps of the scheduler; and
//! the same files in turn, 128 KiB of each, as a file system reads ahead.
//!
//! The figures are not in numbers; what the text says of them is compared.

mod sweeps;
mod titles;

pub use titles::make_titles;

use super::claims::Claims;
use super::{Report, Table, texts};
use device::{Direction, SimulatedDisk};
use disk::DiskModel;
use meter::emulated::{ParkOptions, ReadTimes, park_file};
use meter::report::{LineShape, Series, cell};
use std::time::Duration;
use sweeps::{BUFFERS, StreamTitle, Sweeps};
use units::{ByteCount, Moment};

/// The times of so many streams on both systems.
struct ParkRow {
    streams: u32,
    store: ReadTimes,
    file_system: ReadTimes,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = super::lee::stand_in();
    let numbers = ParkOptions::default().streams;
    let mut all = Vec::new();
    for streams in numbers {
        let titles = placed(streams, park_file(model.capacity()));
        all.push(ParkRow {
            streams,
            store: in_sweeps(&model, &titles),
            file_system: in_turn(&model, &titles),
        });
        progress(f64::from(streams) / 60.0);
    }
    let line = |name, shape, points: fn(&ReadTimes) -> Vec<f64>, of: fn(&ParkRow) -> &ReadTimes| {
        let points = all.iter().flat_map(|row| {
            points(of(row)).into_iter().map(|seconds| (f64::from(row.streams), seconds))
        });
        Series::new(name, shape, points.collect())
    };
    let both = |shape, points: fn(&ReadTimes) -> Vec<f64>| {
        vec![
            line("file system (128 KiB)", shape, points, |row| &row.file_system),
            line("store", shape, points, |row| &row.store),
        ]
    };
    let axes = ["streams", "seconds"];
    let mean = both(LineShape::Line, |times| vec![times.spread().mean]);
    let range = both(LineShape::Spans, |times| vec![times.spread().min, times.spread().max]);
    let figures = vec![texts::figure("mean", axes, mean), texts::figure("range", axes, range)];
    texts::report("park-figures", vec![claims(&all), table(&all)], figures)
}

/// Where a store places so many titles of this length on an empty disk: one after another, each in
/// whole chunks and followed by the chunk of its index.
fn placed(count: u32, len: ByteCount) -> Vec<StreamTitle> {
    let chunk = ByteCount::MIB.0;
    let each = (len.0.div_ceil(chunk) + 1) * chunk;
    (0..u64::from(count)).map(|number| StreamTitle { begins: number * each, len }).collect()
}

/// The streams as the library of a store reads for them, one read at a time.
fn in_sweeps(model: &DiskModel, titles: &[StreamTitle]) -> ReadTimes {
    let mut reads = Timed::new(model, titles);
    let mut sweeps = Sweeps::new(titles.iter().copied());
    for stream in 0..titles.len() {
        (0..BUFFERS).for_each(|_| sweeps.free(stream));
    }
    while let Some(read) = sweeps.next() {
        reads.read(read.stream, read.place, read.len);
        // The stream takes all of it before the next read ends.
        sweeps.free(read.stream);
    }
    reads.times()
}

/// The streams one after another, each for as much as a file system reads ahead.
fn in_turn(model: &DiskModel, titles: &[StreamTitle]) -> ReadTimes {
    let mut reads = Timed::new(model, titles);
    let longest = titles.iter().map(|title| title.len.0).max().unwrap_or(0);
    for at in (0..longest).step_by(usize::try_from(READ_AHEAD.0).expect("small")) {
        for (stream, title) in titles.iter().enumerate() {
            if let Some(left) = title.len.0.checked_sub(at).filter(|left| *left > 0) {
                reads.read(stream, title.begins + at, left.min(READ_AHEAD.0));
            }
        }
    }
    reads.times()
}

/// Reads of a simulated disk, one after another, and when each stream had its last.
struct Timed {
    disk: SimulatedDisk,
    last: Vec<Moment>,
    longest_gap: Duration,
    bytes: u64,
}

impl Timed {
    fn new(model: &DiskModel, titles: &[StreamTitle]) -> Self {
        Self {
            disk: SimulatedDisk::new(model),
            last: vec![Moment::ZERO; titles.len()],
            longest_gap: Duration::ZERO,
            bytes: 0,
        }
    }

    fn read(&mut self, stream: usize, place: u64, len: u64) {
        let done = self.disk.ask(Direction::Read, place, len).expect("a disk without faults reads");
        self.disk.advance_to(done);
        let gap = done.since(self.last[stream]);
        self.longest_gap = self.longest_gap.max(gap);
        self.last[stream] = done;
        self.bytes += len;
    }

    fn times(self) -> ReadTimes {
        ReadTimes {
            took: self.last.iter().map(|last| last.since(Moment::ZERO)).collect(),
            longest_gap: self.longest_gap,
            bytes: ByteCount(self.bytes),
        }
    }
}

fn table(all: &[ParkRow]) -> Table {
    let rows = all.iter().flat_map(|row| {
        [("store", &row.store), ("file system", &row.file_system)].map(|(system, times)| {
            let head = [cell("system", "system", system), cell("streams", ">streams", row.streams)];
            head.into_iter().chain(times.cells())
        })
    });
    Table::of("streams", "Files read side by side, a stream each: seconds", rows)
}

fn claims(all: &[ParkRow]) -> Table {
    let mut claims = Claims::of("park-figures");
    let mean = |times: &ReadTimes| times.spread().mean;
    let of = |streams: u32| all.iter().find(|row| row.streams == streams).expect("a row");
    let both = |row: &ParkRow, value: fn(&ReadTimes) -> f64| {
        format!("{:.1} s, {:.1} s", value(&row.store), value(&row.file_system))
    };
    let ten = of(10);
    let similar = mean(&ten.store) > 0.9 * mean(&ten.file_system);
    claims.add("2", both(ten, mean), similar, None);
    let more = all.iter().filter(|row| row.streams > 10);
    let smaller = more.clone().all(|row| mean(&row.store) < mean(&row.file_system));
    claims.add("2", both(of(60), mean), smaller, None);
    let longest = |row: &ParkRow| row.store.wall() < row.file_system.wall();
    claims.add("3", both(of(60), ReadTimes::wall), all.iter().all(longest), None);
    claims.into_table()
}

/// What a file system reads ahead.
const READ_AHEAD: ByteCount = ByteCount::kib(128);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use store::{FormatOptions, Store};

    #[test]
    fn titles_lie_as_a_store_places_them() {
        let disk = SimulatedDisk::new(&super::super::lee::stand_in());
        let device: Arc<dyn device::BlockDevice> = Arc::new(disk);
        Store::format_on(Arc::clone(&device), &FormatOptions::default()).unwrap();
        let store = Store::open_on(device).unwrap();
        let len = ByteCount(2_500_000);
        let found = ["a", "b", "c"].map(|name| {
            titles::write(&store, name, len).unwrap();
            titles::place(&store, name).unwrap()
        });
        let begins = |all: &[StreamTitle]| -> Vec<u64> {
            all.iter().map(|title| title.begins - all[0].begins).collect()
        };
        assert_eq!(begins(&found), begins(&placed(3, len)));
        assert!(found.iter().all(|title| title.len == len));
    }

    #[test]
    fn the_store_is_faster_with_several_streams_and_equal_with_one() {
        let report = run(&mut |_| {});
        let verdicts: Vec<String> =
            report.tables[0].rows.iter().map(|row| row[3].to_string()).collect();
        assert_eq!(verdicts, ["no", "yes", "no"], "{:#?}", report.tables[0]);
    }
}
