//! `calibrate`. Models are in `models.rs`, devices in `disk_show.rs`.

use super::stores::strange;
use crate::access::ask;
use crate::cli::Args;
use crate::failure::Failure;
use crate::out::{self, Table, facts};
use server::control::{Reply, Request};
use server::wire;
use std::time::Duration;
use units::{BitRate, ByteCount, show_duration};

pub(crate) fn calibrate(args: &Args<'_>) -> Result<(), Failure> {
    let Reply::Calibration(calibration) = ask(&args.path("STORE"), &Request::Calibrate)? else {
        strange()
    };
    if args.has("json") {
        out::print_json(&calibration);
    } else {
        out::print(&calibration_page(&calibration));
    }
    Ok(())
}

fn calibration_page(calibration: &wire::Calibration) -> String {
    let time =
        |seconds: f64| show_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    let slot = time(calibration.slot);
    let mut table = Table::new(&[">read", ">guaranteed", ">usual", ">longest read", ">rate"]);
    for g in &calibration.guarantees {
        let bytes = ByteCount(g.read_size * u64::from(g.min_read));
        let slot = Duration::try_from_secs_f64(calibration.slot).unwrap_or_default();
        table.row(vec![
            ByteCount(g.read_size).to_string(),
            g.min_read.to_string(),
            format!("{:.1}", g.mean_read),
            time(g.longest_read),
            BitRate::of(bytes, slot).to_string(),
        ]);
    }
    let facts = facts(&[
        ("reads by", calibration.method.clone()),
        ("at once", format!("{} reads", calibration.queue_depth)),
        ("endless read", BitRate(calibration.r0).to_string()),
        ("before the first byte", time(calibration.t0)),
    ]);
    format!("{facts}\nreads completed in every slot of {slot}:\n{}", table.show())
}
