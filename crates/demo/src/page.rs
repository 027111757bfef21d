//! The demo's report: one page with a table and plots, each with a sentence on how to read it.

use super::summary::{Round, Story};
use meter::report::{Block, LineShape, Page, Plot, PlotError, Series, shares};

/// The content of `report.html`.
pub(crate) fn page(story: &Story) -> Result<String, PlotError> {
    let (with, without) = (&story.with, &story.without);
    let totals = &with.report.totals;
    let summary = format!(
        "{} viewers arrived at a disk with a predicted capacity of {}. With admission control {} were \
         accepted and had {} stalls. Without it, {} of the same viewers had {} stalls in all.",
        totals.arrived,
        story.capacity.viewers,
        totals.admitted,
        totals.stalls,
        without.report.totals.viewers_with_stalls,
        without.report.totals.stalls,
    );
    let rows = story.rows().into_iter().map(Vec::from).collect();
    let head = ["", "with admission", "without admission"].map(str::to_owned).to_vec();
    let blocks = vec![
        Block::Text(format!("Footage: {}. Disk: {}.", story.origin, story.disk)),
        Block::Text(story.capacity.sentence()),
        Block::Table { head, rows },
        Block::Heading("Viewers".to_owned()),
        viewers(with, "With admission", WITH_ADMISSION)?,
        viewers(without, "Without admission", WITHOUT_ADMISSION)?,
        Block::Heading("Disk".to_owned()),
        reads(with, "Reads with admission", READS)?,
        reads(without, "Reads without admission", READS_WITHOUT)?,
        Block::Heading("Start-up and stalls".to_owned()),
        distribution(
            "Start-up times",
            "seconds to the first picture",
            STARTUP,
            |round| round.report.viewers.iter().filter_map(|viewer| viewer.startup_ms).collect(),
            story,
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
            story,
        )?,
        Block::Heading("Commands".to_owned()),
        Block::Code(story.commands.join("\n")),
    ];
    let title = "Tenuto: streams that do not stall".to_owned();
    Ok(Page { title, summary, blocks }.html())
}

fn viewers(round: &Round, title: &str, explanation: &str) -> Result<Block, PlotError> {
    let line = |name: &str, shape, count: fn(&meter::viewer::ViewerSample) -> u32| Series {
        name: name.to_owned(),
        shape,
        points: round.report.samples.iter().map(|s| (s.at_s, f64::from(count(s)))).collect(),
    };
    let plot = Plot {
        title: title.to_owned(),
        x_label: "seconds".to_owned(),
        y_label: "viewers".to_owned(),
        series: vec![
            line("playing", LineShape::Area, |sample| sample.playing),
            line("stalled", LineShape::Area, |sample| sample.stalled),
            line("waiting for the first picture", LineShape::Line, |sample| sample.waiting),
            line("refused", LineShape::Line, |sample| sample.refused),
            line("arrived", LineShape::Line, |sample| sample.arrived),
        ],
    };
    Ok(Block::Plot { svg: plot.svg()?, explanation: explanation.to_owned() })
}

fn reads(round: &Round, title: &str, explanation: &str) -> Result<Block, PlotError> {
    let slots = round.watch.busy();
    let first = slots.first().map_or(0, |slot| slot.0);
    let at = |slot: u64| (slot - first) as f64;
    let plot = Plot {
        title: title.to_owned(),
        x_label: "slot".to_owned(),
        y_label: "reads completed".to_owned(),
        series: vec![
            Series {
                name: "reads".to_owned(),
                shape: LineShape::Area,
                points: slots.iter().map(|(slot, reads, _)| (at(*slot), *reads as f64)).collect(),
            },
            Series {
                name: "guaranteed (minRead)".to_owned(),
                shape: LineShape::Step,
                points: slots.iter().map(|(slot, _, min)| (at(*slot), *min as f64)).collect(),
            },
        ],
    };
    Ok(Block::Plot { svg: plot.svg()?, explanation: explanation.to_owned() })
}

fn distribution(
    title: &str,
    x_label: &str,
    explanation: &str,
    millis: impl Fn(&Round) -> Vec<f64>,
    story: &Story,
) -> Result<Block, PlotError> {
    let rounds = [&story.with, &story.without];
    let seconds = rounds.map(|round| -> Vec<f64> {
        millis(round).into_iter().map(|millis| millis / 1e3).collect()
    });
    let most = seconds.iter().flatten().copied().fold(0.0, f64::max);
    let mut points = seconds.map(shares);
    for points in points.iter_mut().filter(|points| !points.is_empty()) {
        // Both lines continue to the right edge, so that the last step is visible.
        points.push((most, 100.0));
    }
    let series = rounds.into_iter().zip(points).map(|(round, points)| Series {
        name: round.name.clone(),
        shape: LineShape::Step,
        points,
    });
    let plot = Plot {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: "% of viewers".to_owned(),
        series: series.collect(),
    };
    Ok(Block::Plot { svg: plot.svg()?, explanation: explanation.to_owned() })
}

const WITH_ADMISSION: &str = "Accepted viewers play without a stall. Once the disk is fully \
    booked, new viewers are refused, with the time at which a retry may succeed.";

const WITHOUT_ADMISSION: &str = "The same viewers, all accepted. As soon as their demand exceeds \
    what the disk delivers, playback stalls, also for viewers that came early.";

const READS: &str = "Reads that the disk completed in each slot, and the number that it \
    completes under the worst placement (minRead). By a count of reads the disk would be full at that \
    line. Admission counts the longest time that these reads can take, so it accepts more viewers, \
    and no read is late.";

const READS_WITHOUT: &str = "The disk is as fast as before; the demand is too high.";

const STARTUP: &str = "For each time, the share of viewers whose first picture was shown by then. \
    Further left is better.";

const STALLED: &str = "For each time, the share of viewers whose stalls took at most that long \
    in total. The ideal is a vertical line at zero.";

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_tells_the_story_and_needs_nothing_else() {
        let html = super::page(&super::super::summary::tests::story()).unwrap();
        for words in ["9 viewers arrived", "6 (disk 6)", "Start-up times", "tenuto serve a.store"] {
            assert!(html.contains(words), "{words} is missing");
        }
        assert_eq!(html.matches("<svg").count(), 6);
        for outside in ["src=", "href=", "@import", "<script"] {
            assert!(!html.contains(outside), "{outside} points outside the page");
        }
    }
}
