//! The transfers that msMeter 2.0.1 draws for the paper's edit profile with its own random number
//! generator, beside the published profile drawn from a uniform one.

use super::{Cell, Report, Table};
use meter::log::OperationKind;
use meter::profiles;
use meter::transfers::{Transfer, TransferDraw, TransferMix};
use units::ByteCount;

/// Transfers of each row.
const TRANSFERS: u32 = 200_000;
/// Files, and bytes of each: far more than a transfer, so that they make no difference.
const FILES: u32 = 4;
const EACH: ByteCount = ByteCount(100_000_000_000);

/// Profile, and its measured or requested values: writes and random transfers (in percent), mean
/// length (in MiB).
const ROWS: [(&str, [f64; 3]); 2] =
    [("ebu3362-edit", [50.0, 10.0, 5.0]), ("ebu3362-edit-msmeter-exact", [58.6, 11.7, 4.25])];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let mut table = Table::new(
        "draws",
        "200,000 transfers of each profile",
        &[
            ("profile", "profile"),
            ("written_wanted", ">writes wanted, %"),
            ("written", ">drawn"),
            ("random_wanted", ">random wanted, %"),
            ("random", ">drawn"),
            ("length_wanted", ">mean length wanted, MiB"),
            ("length", ">drawn"),
        ],
    );
    for (at, (name, wanted)) in (1u32..).zip(ROWS) {
        let drawn = drawn(name);
        let [written, random, length] = [0, 1, 2].map(|i| [wanted[i], drawn[i]]);
        let number = |figure: f64| Cell::Number(figure, 2);
        let cells = [written, random, length].map(|pair| pair.map(number));
        let [[a, b], [c, d], [e, f]] = cells;
        table.row([name.into(), a, b, c, d, e, f]);
        progress(f64::from(at) / 2.0);
    }
    Report {
        source: "The requirement for `ebu3362-edit-msmeter-exact`: 58.6 % writes and 11.7 % random ones, within \
                 half a percent, as the tool behind the figures of EBU TECH 3362 does when it is asked \
                 for 50 and 10",
        method: "The C library's `rand()`, of which the tool takes the lowest byte of each number, and \
                 the remainder when that is divided by 100. One client, seed 5."
            .to_owned(),
        tables: vec![table],
        notes: vec![
            "The tool transfers whole blocks only, so that its mean length is half a block shorter than the \
             4.25 MiB that its random numbers give."
                .to_owned(),
        ],
        figures: Vec::new(),
    }
}

/// Writes and random ones in percent, and the mean length in MiB.
fn drawn(name: &str) -> [f64; 3] {
    let profile = profiles::named(name).expect("a built-in profile");
    let mut draw = TransferDraw::new(&TransferMix::of(&profile, FILES, EACH), 1, 5);
    let all: Vec<Transfer> = (0..TRANSFERS).map(|_| draw.next(0)).collect();
    let mean =
        |of: &dyn Fn(&Transfer) -> f64| all.iter().map(of).sum::<f64>() / f64::from(TRANSFERS);
    let percent = |is: bool| if is { 100.0 } else { 0.0 };
    [
        mean(&|transfer| percent(transfer.kind == OperationKind::Write)),
        mean(&|transfer| percent(transfer.random)),
        #[expect(clippy::cast_precision_loss, reason = "lengths of a few MiB")]
        mean(&|transfer| transfer.length as f64 / f64::from(1 << 20)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requirement_is_met() {
        for (name, [writes, random, _]) in ROWS {
            let [drawn_writes, drawn_random, _] = drawn(name);
            assert!((drawn_writes - writes).abs() <= 0.5, "{name}: {drawn_writes}");
            assert!((drawn_random - random).abs() <= 0.5, "{name}: {drawn_random}");
        }
    }
}
