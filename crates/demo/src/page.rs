//! The report of the demo: one page with a table and plots, each with a sentence of explanation.

use super::summary::{DemoRound, Results, rate};
use meter::report::{Block, LineShape, Page, Plot, Series, shares};
use std::fmt::Write as _;
use units::Reason;
use units::show::count;

/// The content of `report.html`.
pub(crate) fn page(results: &Results) -> Result<String, Reason> {
    let Results { with, evening, nginx, without, .. } = results;
    // The plots of the rounds are compared with each other.
    let mut captions = vec![WITH_ADMISSION, EVENING, WITHOUT_ADMISSION];
    let mut viewers = vec![
        viewers_plot(with, "With admission"),
        viewers_plot(evening, "A popular evening"),
        viewers_plot(without, "Without admission"),
    ];
    if let Some(nginx) = nginx {
        viewers.insert(2, viewers_plot(nginx, "The same evening with nginx"));
        captions.insert(2, NGINX);
    }
    let viewers = Plot::with_same_axis(viewers);
    let reads = Plot::with_same_axis(vec![
        reads_plot(with, "Reads with admission"),
        reads_plot(evening, "Reads of a popular evening"),
        reads_plot(without, "Reads without admission"),
    ]);
    let mut blocks = vec![
        Block::Text(format!("Footage: {}. Disk: {}.", results.origin, results.disk)),
        Block::Text(results.capacity.sentence()),
        Block::Table { head: results.head(), rows: results.rows() },
        Block::Heading("Viewers".to_owned()),
    ];
    for (plot, caption) in viewers.iter().zip(captions) {
        blocks.push(plot.block(caption)?);
    }
    blocks.extend([
        Block::Heading("Disk".to_owned()),
        reads[0].block(READS)?,
        reads[1].block(READS_EVENING)?,
        reads[2].block(&reads_without(results))?,
        Block::Heading("Start-up and stalls".to_owned()),
        distribution(
            "Start-up times",
            "seconds to the first picture",
            STARTUP,
            |round| round.report.viewers.iter().filter_map(|viewer| viewer.startup_ms).collect(),
            results,
        )?,
        distribution(
            "Time stalled",
            "seconds stalled",
            STALLED,
            |round| {
                let watched =
                    round.report.viewers.iter().filter(|viewer| viewer.startup_ms.is_some());
                watched.map(|viewer| viewer.stalled_ms).collect()
            },
            results,
        )?,
        Block::Heading("Commands".to_owned()),
        Block::Code(results.commands.join("\n")),
    ]);
    let title = "Tenuto: streams that do not stall".to_owned();
    Ok(Page { title, summary: summary(results), blocks }.html())
}

/// The result in sentences.
fn summary(results: &Results) -> String {
    let Results { with, evening, nginx, without, .. } = results;
    let totals = &with.report.totals;
    let mut summary = format!(
        "{} arrived at a disk with a predicted capacity of {}. With admission control {} were \
         admitted and had {}. Without it, {} of the same viewers had {} in all. When they choose \
         popular titles, {} of {} are admitted.",
        count(totals.arrived, "viewer"),
        results.capacity.viewers,
        totals.admitted,
        count(totals.stalls, "stall"),
        without.report.totals.viewers_with_stalls,
        count(without.report.totals.stalls, "stall"),
        evening.report.totals.admitted,
        evening.report.totals.arrived,
    );
    if let Some(nginx) = nginx {
        let totals = &nginx.report.totals;
        let _ = write!(
            summary,
            " With nginx on a disk of the same model, with the same memory, {} of {} viewers of \
             that evening stall.",
            totals.viewers_with_stalls, totals.arrived,
        );
    }
    summary
}

fn viewers_plot(round: &DemoRound, title: &str) -> Plot {
    let line = |name: &str, shape, count: fn(&tenuto_client::ViewerSample) -> u32| Series {
        name: name.to_owned(),
        shape,
        points: round.report.samples.iter().map(|s| (s.at_s, f64::from(count(s)))).collect(),
    };
    let lines = vec![
        line("playing", LineShape::Area, |sample| sample.playing),
        line("stalled", LineShape::Area, |sample| sample.stalled),
        line("waiting for the first picture", LineShape::Line, |sample| sample.waiting),
        line("refused", LineShape::Line, |sample| sample.refused),
        line("arrived", LineShape::Line, |sample| sample.arrived),
    ];
    Plot::new(title, "seconds", "viewers", lines)
}

fn reads_plot(round: &DemoRound, title: &str) -> Plot {
    let slots = round.watch.busy();
    // Slots count from the start of the server; the plot begins with the round.
    let first = slots.first().map_or(0, |slot| slot.0);
    let at = |slot: u64| (slot - first) as f64;
    let made = slots.iter().map(|(slot, reads, _)| (at(*slot), *reads as f64)).collect();
    let guaranteed = slots.iter().map(|(slot, _, min)| (at(*slot), *min as f64)).collect();
    let series = vec![
        Series::new("reads", LineShape::Area, made),
        Series::new("guaranteed (minRead)", LineShape::Step, guaranteed),
    ];
    Plot::new(title, "slot", "reads completed", series)
}

fn distribution(
    title: &str,
    x_label: &str,
    explanation: &str,
    millis: impl Fn(&DemoRound) -> Vec<f64>,
    results: &Results,
) -> Result<Block, Reason> {
    let rounds = results.rounds();
    let seconds: Vec<Vec<f64>> = rounds
        .iter()
        .map(|round| millis(round).into_iter().map(|millis| millis / 1e3).collect())
        .collect();
    let most = seconds.iter().flatten().copied().fold(0.0, f64::max);
    let series = rounds.into_iter().zip(seconds).map(|(round, seconds)| {
        let mut points = shares(seconds);
        if !points.is_empty() {
            // All lines continue to the right edge, so that the last step is visible.
            points.push((most, 100.0));
        }
        Series { name: round.name.clone(), shape: LineShape::Step, points }
    });
    Plot::new(title, x_label, "% of viewers", series.collect()).block(explanation)
}

/// The caption of the disk without admission, with what was delivered.
fn reads_without(results: &Results) -> String {
    let [with, without] =
        [&results.with, &results.without].map(|round| rate(round.report.totals.bits_per_s));
    format!(
        "The same disk. The viewers demand more than it can read: it delivered {without} to them, \
         and {with} with admission."
    )
}

const WITH_ADMISSION: &str = "Admitted viewers play without a stall. Once the disk is fully \
    booked, new viewers are refused, with the time at which a retry may succeed.";

const EVENING: &str = "As many viewers, with admission, after the first have left: most choose the \
    popular titles (by Zipf's law), and each stays for a while. Viewers of one title share its \
    reads, and admission counts them once.";

const NGINX: &str = "The same viewers and titles with nginx, which admits everybody: HLS files on ext4, \
    on a disk of the same model, and as much memory for its page cache as Tenuto has for buffers. It \
    keeps popular titles in memory, and reads the others from a disk that knows no deadlines.";

const WITHOUT_ADMISSION: &str = "The same viewers, all admitted. As soon as their demand exceeds \
    what the disk delivers, playback stalls, also for viewers that came early.";

const READS: &str = "Reads that the disk completed in each slot, and the number that it \
    completes under the worst placement (minRead). By a count of reads the disk would be full at that \
    line. Admission counts the longest time that these reads can take, so it admits more viewers, \
    and no read is late.";

const READS_EVENING: &str = "The disk has less to do for more viewers, because they share reads.";

const STARTUP: &str = "For each time, the share of viewers whose first picture was shown by then. \
    Further left is better.";

const STALLED: &str = "For each time, the share of viewers whose stalls took at most that long \
    in total. The ideal is a vertical line at zero.";

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_has_all_results_and_loads_nothing() {
        let html = super::page(&super::super::summary::tests::results()).unwrap();
        for words in [
            "9 viewers arrived",
            "it delivered 0.0 Mb/s to them, and",
            "6 (disk 6)",
            "Start-up times",
            "tenuto serve a.store",
        ] {
            assert!(html.contains(words), "{words} is missing");
        }
        assert_eq!(html.matches("<svg").count(), 8);
        for outside in ["src=", "href=", "@import"] {
            assert!(!html.contains(outside), "{outside} points outside the page");
        }
    }
}
