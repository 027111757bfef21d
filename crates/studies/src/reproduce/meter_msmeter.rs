//! The transfers that msMeter 2.0.1 draws for the paper's edit profile with its own random number
//! generator, beside the published profile drawn from a uniform one.

use super::{Cell, Report, Table, texts};
use meter::operations::OperationKind;
use meter::profiles;
use meter::report::cell;
use meter::transfers::{DrawnTransfer, TransferDraw, TransferMix};
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
    let rows = (1_u32..).zip(ROWS).map(|(number, (name, wanted))| {
        let drawn = drawn(name);
        progress(f64::from(number) / 2.0);
        let [written, random, length] = drawn.map(|value| Cell::Number(value, 2));
        let [written_wanted, random_wanted, length_wanted] =
            wanted.map(|value| Cell::Number(value, 2));
        [
            cell("profile", "profile", name),
            cell("written_wanted", ">writes wanted, %", written_wanted),
            cell("written", ">drawn", written),
            cell("random_wanted", ">random wanted, %", random_wanted),
            cell("random", ">drawn", random),
            cell("length_wanted", ">mean length wanted, MiB", length_wanted),
            cell("length", ">drawn", length),
        ]
    });
    let table = Table::of("draws", "200,000 transfers of each profile", rows);
    texts::report("meter-msmeter", vec![table], Vec::new())
}

/// Writes and random ones in percent, and the mean length in MiB.
fn drawn(name: &str) -> [f64; 3] {
    let profile = profiles::named(name).expect("a built-in profile");
    let mut draw = TransferDraw::new(&TransferMix::of(&profile, FILES, EACH), 1, 5);
    let all: Vec<DrawnTransfer> = (0..TRANSFERS).map(|_| draw.next(0)).collect();
    let mean =
        |of: &dyn Fn(&DrawnTransfer) -> f64| all.iter().map(of).sum::<f64>() / f64::from(TRANSFERS);
    let percent = |is: bool| if is { 100.0 } else { 0.0 };
    [
        mean(&|transfer| percent(transfer.kind == OperationKind::Write)),
        mean(&|transfer| percent(transfer.random)),
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
