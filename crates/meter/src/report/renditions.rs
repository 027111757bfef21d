//! The renditions that players received, as text.

use tenuto_client::{PlayReport, Totals};
use units::BitRate;
use units::show::count;

/// The renditions that players received, as lines for readers; empty where the server names none.
pub fn renditions(report: &PlayReport) -> Vec<(&'static str, String)> {
    let Totals { switches_up, switches_down, below_best, .. } = report.totals;
    let Totals { mean_rendition_bits_per_s: Some(mean), share_of_best: Some(share), .. } =
        report.totals
    else {
        return Vec::new();
    };
    let below = match below_best {
        0 => "all pieces of the best rendition".to_owned(),
        more => count(more, "piece") + " below the best rendition",
    };
    // With one rendition there is nothing to switch to.
    let switches = match (switches_up, switches_down) {
        (0, 0) => String::new(),
        (up, down) => format!("; switched up {}, down {}", count(up, "time"), count(down, "time")),
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
            format!("{mean} on average, {:.1} % of the best{switches}; {below}", share * 100.0),
        ),
        ("of these", each.collect::<Vec<_>>().join(", ")),
    ]
}
