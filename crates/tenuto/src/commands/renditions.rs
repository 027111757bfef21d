//! `--switching`, and what is said of the renditions that viewers got.

use crate::cli::Args;
use crate::failure::Failure;
use meter::report::Block;
use meter::viewer::{PlayReport, Totals};
use player::Switching;
use serde_json::Value;
use units::BitRate;

/// As asked for.
pub(super) fn switching(args: &Args<'_>) -> Switching {
    let word = args.text("switching");
    let known = Switching::NAMES.into_iter().find(|(name, _)| *name == word);
    known.expect("the table offers those that there are").1
}

/// Refuses `--switching` where nobody plays.
pub(super) fn none_are_meant(args: &Args<'_>) -> Result<(), Failure> {
    match switching(args) {
        Switching::Never => Ok(()),
        _ => {
            Err(Failure::usage("--switching is for players, and the target is no title's address")
                .hint("leave it out, or give an http(s):// address as the target"))
        }
    }
}

/// The renditions that came; nothing where nobody said what they are.
pub(super) fn lines(report: &PlayReport) -> Vec<(&'static str, String)> {
    let Totals { switches_up, switches_down, below_best, .. } = report.totals;
    let Totals { mean_rendition_bits_per_s: Some(mean), share_of_best: Some(share), .. } =
        report.totals
    else {
        return Vec::new();
    };
    let below = match below_best {
        0 => "none smaller than it had to be".to_owned(),
        1 => "1 piece smaller than it had to be".to_owned(),
        more => format!("{more} pieces smaller than they had to be"),
    };
    let media: f64 = report.renditions.iter().map(|rendition| rendition.media_s).sum();
    let each = report.renditions.iter().map(|rendition| {
        let rate = BitRate(rendition.bits_per_s);
        format!("{rate} for {:.1} %", rendition.media_s / media.max(1e-9) * 100.0)
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate for people"
    )]
    let mean = BitRate(mean.round() as u64);
    vec![
        (
            "renditions",
            format!(
                "{mean} on average, {:.1} % of the best; {switches_up} times up, {switches_down} \
                 down; {below}",
                share * 100.0
            ),
        ),
        ("of these", each.collect::<Vec<_>>().join(", ")),
    ]
}

/// The same for a report; `play` is what a summary has under that name, if anything.
pub(super) fn block(play: &Value) -> Option<Block> {
    let report: PlayReport = serde_json::from_value(play.clone()).ok()?;
    let rows = lines(&report).into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    let rows: Vec<_> = rows.collect();
    let head = vec!["what players got".to_owned(), "found".to_owned()];
    (!rows.is_empty()).then_some(Block::Table { head, rows })
}
