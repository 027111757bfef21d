//! A series of seconds as blocks that are nearly independent of each other.

/// The count of a second: a sum, and the number (or time) that it is a sum over.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) sum: f64,
    pub(super) of: f64,
}

/// The smallest number of blocks from which resampling is meaningful.
const FEWEST_BLOCKS: usize = 8;

/// Sums over blocks of consecutive seconds; the remainder joins the last block.
pub(super) fn blocks(series: &[Point]) -> Vec<Point> {
    let length = block_length(series);
    let count = (series.len() / length).max(1);
    let mut blocks = vec![Point::default(); count];
    for (at, point) in series.iter().enumerate() {
        let block = &mut blocks[(at / length).min(count - 1)];
        block.sum += point.sum;
        block.of += point.of;
    }
    blocks
}

/// The length of a block in seconds: four times the correlation time, estimated from neighbouring
/// seconds, and at least the cube root of the series' length, the order that theory requires.
fn block_length(series: &[Point]) -> usize {
    let seconds = f64::from(u32::try_from(series.len()).unwrap_or(u32::MAX));
    // Beyond 0.95 the estimate would ask for blocks longer than any run.
    let alike = alike(series).clamp(0.0, 0.95);
    let memory = (1.0 + alike) / (1.0 - alike);
    let wanted = (4.0 * memory).max(seconds.cbrt()).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "4 to 156")]
    let whole = wanted as usize;
    whole.clamp(1, (series.len() / FEWEST_BLOCKS).max(1))
}

/// The correlation of each second with the next.
fn alike(series: &[Point]) -> f64 {
    let all = total(series);
    if all.of == 0.0 {
        return 0.0;
    }
    let mean = all.sum / all.of;
    let rests: Vec<f64> = series.iter().map(|point| point.sum - mean * point.of).collect();
    let own: f64 = rests.iter().map(|rest| rest * rest).sum();
    let next: f64 = rests.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if own == 0.0 { 0.0 } else { next / own }
}

pub(super) fn total(points: &[Point]) -> Point {
    points.iter().fold(Point::default(), |all, point| Point {
        sum: all.sum + point.sum,
        of: all.of + point.of,
    })
}
