//! Lee and Srivastava's figure 4 and its text: how many motion-JPEG streams a raw disk (their PFS)
//! and a file system (their UFS) hold, with which service cycle and which buffer.
//!
//! Only disks and reads are simulated: a whole server is measured by `--emulated`, in the meter.

use super::lee::{FRAME, MJPEG, cost_of_cycles, fewest_frames, megabytes, rounds, stand_in};
use super::{Cell, Figure, Report, Table, texts};
use disk::DiskModel;
use meter::report::{LineShape, Series, cell};
use meter::rounds::{RoundsOutcome, RoundsPlan, most_streams};
use units::ByteCount;

/// The most that the paper's raw disk holds; the table ends there.
const MOST: u32 = 23;

/// What a file system reads at once for a stream, in KiB.
const CLUSTERS: [u64; 6] = [8, 56, 64, 128, 256, 512];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = stand_in();
    let cost = cost_of_cycles(&model, MOST.into());
    let title =
        "Streams of 540 KB/s on a raw disk: the shortest service cycle, and a stream's buffer";
    let mut cycles = Table::new("cycles", title);
    let (mut simulated, mut by_equation) = (Vec::new(), Vec::new());
    let (mut frames, mut held) = (1, 0);
    for streams in 1..=MOST + 1 {
        let Some(enough) = fewest_frames(&model, streams, frames) else { break };
        (frames, held) = (enough, streams);
        let buffer = ByteCount(FRAME.0 * u64::from(frames));
        let cycle = |buffer: ByteCount| buffer.time_at(MJPEG).as_secs_f64();
        // The unit is a frame: no read is smaller, whatever the equation says.
        let wanted = cost.buffer(streams, MJPEG).map(|bytes| bytes.max(FRAME));
        by_equation.extend(wanted.map(|bytes| (f64::from(streams), cycle(bytes))));
        simulated.push((f64::from(streams), cycle(buffer)));
        let millis = |buffer| Cell::Number(cycle(buffer) * 1e3, 0);
        cycles.add([
            cell("streams", ">streams", streams),
            cell("frames", ">frames a read", frames),
            cell("cycle_ms", ">cycle, ms", millis(buffer)),
            cell("cycle_eq3_ms", ">eq. 3", wanted.map(millis)),
            cell("buffer_kb", ">buffer, KB", buffer.0 / 1000),
            cell("buffer_eq4_kb", ">eq. 4", wanted.map(|bytes| bytes.0 / 1000)),
        ]);
        progress(f64::from(streams) / f64::from(MOST + 2));
    }
    let clusters = by_cluster(&model);
    let most = most_table(held, cost.streams(MJPEG), &cycles, &clusters);
    let (tables, figure) = (vec![most, cycles, clusters], drawn(simulated, by_equation));
    let mut report = texts::report("lee-streams", tables, vec![figure]);
    let fitted = format!(
        "r0 {:.2} MB/s, t0 {:.1} ms, fitted to reads of 1 to 64 frames. Eq. 4 is printed as B > r0 \
         R t0 / (r0 - s R), without the factor s that eq. 3 has; B = R T is meant, and used.",
        megabytes(cost.r0.0),
        cost.t0.as_secs_f64() * 1e3
    );
    report.notes.insert(0, fitted);
    report
}

fn by_cluster(model: &DiskModel) -> Table {
    let rows = CLUSTERS.map(|cluster| {
        let most = |part: u64| {
            // The paper does not say how far apart the files lay, so both cases are computed.
            let area = ByteCount(model.capacity().0 / part);
            let attempt = |streams| {
                let plan = RoundsPlan::spread(streams, area, ByteCount::kib(cluster), MJPEG);
                Ok::<_, std::convert::Infallible>(rounds(model, plan))
            };
            let Ok(found) = most_streams(12, RoundsOutcome::holds, attempt);
            found.most
        };
        [
            cell("cluster_kib", ">KiB at once", cluster),
            cell("spread", ">files all over the disk", most(1)),
            cell("near", ">files in a tenth of it", most(10)),
        ]
    });
    let title = "A file system that reads a fixed amount at once for each stream: most streams";
    Table::of("clusters", title, rows)
}

fn most_table(held: u32, by_equation: u64, cycles: &Table, clusters: &Table) -> Table {
    let near = clusters.cell("128", "near").cloned().unwrap_or(Cell::Missing);
    let small = cycles.rows.iter().filter(|row| row[1] == Cell::Count(1)).count();
    let (predicted, assumed) = ("predicted", "assumed: 128 KiB, a tenth of the disk");
    let rows = [
        ("raw, larger reads for more streams (PFS)", Some(23_u64), held.into(), predicted),
        ("the same by eq. 5, S < r0 / R", None, by_equation.into(), predicted),
        ("file system, 128 KiB at once (UFS)", Some(16), near, assumed),
        ("raw, with buffers of one frame", Some(2), small.into(), predicted),
    ];
    let cells = rows.map(|(disk, paper, ours, basis)| {
        [
            cell("disk", "disk", disk),
            cell("paper", ">paper", paper),
            cell("ours", ">ours", ours),
            cell("basis", "ours is", basis),
        ]
    });
    Table::of("streams", "Most streams of 540 KB/s", cells)
}

fn drawn(simulated: Vec<(f64, f64)>, by_equation: Vec<(f64, f64)>) -> Figure {
    let series = vec![
        Series::new("eq. 3", LineShape::Line, by_equation),
        Series::new("simulated", LineShape::Dots, simulated),
    ];
    texts::figure("cycle", ["streams", "seconds"], series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_three_against_sixteen() {
        let report = run(&mut |_| {});
        for row in &report.tables[0].rows {
            let [name, paper, ours, _] = &row[..] else { panic!("four cells") };
            assert!(*paper == Cell::Missing || paper == ours, "{name}: {paper}, {ours}");
        }
        assert_eq!(
            report.tables[0].cell("the same by eq. 5, S < r0 / R", "ours"),
            Some(&Cell::Count(23))
        );
    }
}
