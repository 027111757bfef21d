//! Lee and Srivastava's figure 4 and its text: how many motion-JPEG streams a raw disk (their PFS)
//! and a file system (their UFS) hold, with which service cycle and which buffer.

use super::lee::{FRAME, MJPEG, cost_of_cycles, stand_in};
use super::{Cell, Figure, Report, Table};
use device::SimulatedDisk;
use disk::DiskModel;
use meter::report::{LineShape, Plot, Series};
use meter::rounds::{RoundsOutcome, RoundsPlan, most_streams, run as run_rounds};
use meter::target::SimulatedPort;
use units::ByteCount;

/// The most that the paper's raw disk holds; the table ends there.
const MOST: u32 = 23;

/// What a file system reads at once for a stream, in KiB.
const CLUSTERS: [u64; 6] = [8, 56, 64, 128, 256, 512];

/// The largest buffer tried, in frames: two minutes of one stream.
const LONGEST: u64 = 3600;

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = stand_in();
    let cost = cost_of_cycles(&model, MOST.into());
    let mut cycles = Table::new(
        "cycles",
        "Streams of 540 KB/s on a raw disk: the shortest service cycle, and a stream's buffer",
        &[
            ("streams", ">streams"),
            ("frames", ">frames a read"),
            ("cycle_ms", ">cycle, ms"),
            ("cycle_eq3_ms", ">eq. 3"),
            ("buffer_kb", ">buffer, KB"),
            ("buffer_eq4_kb", ">eq. 4"),
        ],
    );
    let (mut simulated, mut by_equation) = (Vec::new(), Vec::new());
    let (mut frames, mut held) = (1, 0);
    for streams in 1..=MOST + 1 {
        let Some(enough) = fewest_frames(&model, streams, frames) else { break };
        (frames, held) = (enough, streams);
        let buffer = ByteCount(FRAME.0 * frames);
        let millis = buffer.time_at(MJPEG).as_secs_f64() * 1e3;
        // The unit is a frame: no read is smaller, whatever the equation says.
        let wanted = cost.buffer(streams, MJPEG).map(|bytes| bytes.max(FRAME));
        let equation = wanted.map_or(Cell::Missing, |bytes| {
            Cell::Number(bytes.time_at(MJPEG).as_secs_f64() * 1e3, 0)
        });
        if let Some(bytes) = wanted {
            by_equation.push((f64::from(streams), bytes.time_at(MJPEG).as_secs_f64()));
        }
        simulated.push((f64::from(streams), millis / 1e3));
        cycles.row([
            u64::from(streams).into(),
            frames.into(),
            Cell::Number(millis, 0),
            equation,
            (buffer.0 / 1000).into(),
            wanted.map(|bytes| bytes.0 / 1000).into(),
        ]);
        progress(f64::from(streams) / f64::from(MOST + 2));
    }
    let clusters = by_cluster(&model);
    let most = most_table(held, cost.streams(MJPEG), &cycles, &clusters);
    Report {
        source: "Lee and Srivastava, Experiences with Evaluating System QoS and Channel \
                 Performance on Media-On-Demand Systems, section 5.1 and figure 4",
        method: "Streams of 540 KB/s in frames of 18 KB on a simulated ST39183W, which stands in \
                 for the paper's unnamed disk, spread over it, each cycle one read a stream in \
                 SCAN order; the fewest frames a read with which at most one cycle in 100 is late. \
                 T = s r0 t0 / (r0 - s R) and B = R T with r0 and t0 fitted to reads on the same \
                 disk."
            .to_owned(),
        tables: vec![most, cycles, clusters],
        notes: vec![
            format!(
                "r0 {:.2} MB/s, t0 {:.1} ms, fitted to reads of 1 to 64 frames. Eq. 4 is printed \
                 as B > r0 R t0 / (r0 - s R), without the factor s that eq. 3 has; B = R T is \
                 meant, and used.",
                megabytes(cost.r0.0),
                cost.t0.as_secs_f64() * 1e3
            ),
            "UFS is not simulated. The second column of the last table is a file system that reads ahead \
             by a fixed amount for each stream: its cycle grows in proportion to the streams, its \
             buffer is constant, and it holds fewer: 16 where it reads 128 KiB at once from files \
             that lie near each other. The paper states neither the amount nor the places: both are \
             assumed."
                .to_owned(),
        ],
        figures: vec![drawn(simulated, by_equation)],
    }
}

/// The fewest frames in a read with which so many streams are held, tried from `least` on.
fn fewest_frames(model: &DiskModel, streams: u32, least: u64) -> Option<u64> {
    let holds = |frames: u64| {
        let size = model.capacity();
        rounds(model, RoundsPlan::spread(streams, size, ByteCount(FRAME.0 * frames), MJPEG)).holds()
    };
    // More streams never need smaller reads: the search begins with the last result.
    let (mut frames, mut fails) = (least, least - 1);
    while !holds(frames) {
        (fails, frames) = (frames, frames * 2);
        if frames > LONGEST {
            return None;
        }
    }
    while frames - fails > 1 {
        let middle = fails + (frames - fails) / 2;
        if holds(middle) { frames = middle } else { fails = middle }
    }
    Some(frames)
}

fn by_cluster(model: &DiskModel) -> Table {
    let mut table = Table::new(
        "clusters",
        "A file system that reads a fixed amount at once for each stream: most streams",
        &[
            ("cluster_kib", ">KiB at once"),
            ("spread", ">files all over the disk"),
            ("near", ">files in a tenth of it"),
        ],
    );
    for cluster in CLUSTERS {
        let most = |part: u64| {
            let area = ByteCount(model.capacity().0 / part);
            let attempt = |streams| {
                let plan = RoundsPlan::spread(streams, area, ByteCount::kib(cluster), MJPEG);
                Ok::<_, std::convert::Infallible>(rounds(model, plan))
            };
            let Ok(found) = most_streams(12, RoundsOutcome::holds, attempt);
            Cell::from(u64::from(found.most))
        };
        table.row([cluster.into(), most(1), most(10)]);
    }
    table
}

const PREDICTED: &str = "predicted";

fn most_table(held: u32, by_equation: u64, cycles: &Table, clusters: &Table) -> Table {
    let mut table = Table::new(
        "streams",
        "Most streams of 540 KB/s",
        &[("disk", "disk"), ("paper", ">paper"), ("ours", ">ours"), ("basis", "ours is")],
    );
    let near = clusters.cell("128", "near").cloned().unwrap_or(Cell::Missing);
    let small = cycles.rows.iter().filter(|row| row[1] == Cell::Count(1)).count() as u64;
    table.row([
        "raw, larger reads for more streams (PFS)".into(),
        23.into(),
        u64::from(held).into(),
        PREDICTED.into(),
    ]);
    let equation = "the same by eq. 5, S < r0 / R";
    table.row([equation.into(), Cell::Missing, by_equation.into(), PREDICTED.into()]);
    let ufs = "file system, 128 KiB at once (UFS)";
    table.row([ufs.into(), 16.into(), near, "assumed: 128 KiB, a tenth of the disk".into()]);
    let one_frame = "raw, with buffers of one frame";
    table.row([one_frame.into(), 2.into(), small.into(), PREDICTED.into()]);
    table
}

fn rounds(model: &DiskModel, plan: RoundsPlan) -> RoundsOutcome {
    run_rounds(&plan, &mut SimulatedPort::new(SimulatedDisk::new(model)), &mut |_| true)
        .expect("a simulated disk without faults reads")
}

fn drawn(simulated: Vec<(f64, f64)>, by_equation: Vec<(f64, f64)>) -> Figure {
    let plot = Plot {
        title: "Length of the service cycle".to_owned(),
        x_label: "streams".to_owned(),
        y_label: "seconds".to_owned(),
        series: vec![
            Series { name: "eq. 3".to_owned(), shape: LineShape::Line, points: by_equation },
            Series { name: "simulated".to_owned(), shape: LineShape::Dots, points: simulated },
        ],
    };
    Figure {
        name: "cycle",
        plot,
        explanation: "A raw disk holds more streams with longer cycles, and needs a buffer for \
                      each as long as the cycle: the last streams cost the \
                      most buffer."
            .to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn megabytes(bits: u64) -> f64 {
    bits as f64 / 8e6
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
            Some(&23.into())
        );
    }
}
