//! What disks can do: `disk models`, `calibrate`.

use super::stores::strange;
use crate::access::ask;
use crate::cli::Args;
use crate::failure::Failure;
use crate::out::{self, Table, facts};
use disk::DiskModel;
use serde_json::{Value, json};
use server::control::{Reply, Request};
use server::wire;
use std::time::Duration;
use units::{BitRate, ByteCount, show_duration};

pub(crate) fn models(args: &Args<'_>) -> Result<(), Failure> {
    let models = DiskModel::presets();
    if args.has("json") {
        out::print_json(&json!({ "models": models.iter().map(model_json).collect::<Vec<_>>() }));
        return Ok(());
    }
    let mut table = Table::new(&["model", ">size", ">outer", ">mean", ">inner", "what"]);
    for model in models {
        let outer = model.zones().first().map_or(BitRate(0), |zone| zone.1);
        table.row(vec![
            model.name().to_owned(),
            model.capacity().to_string(),
            outer.to_string(),
            model.mean_rate().to_string(),
            model.slowest_rate().to_string(),
            model.title().to_owned(),
        ]);
    }
    out::print(&table.show());
    Ok(())
}

fn model_json(model: &DiskModel) -> Value {
    let zones: Vec<Value> = model
        .zones()
        .iter()
        .map(|(offset, rate)| json!({ "offset": offset.0, "bit_rate": rate.0 }))
        .collect();
    json!({
        "name": model.name(),
        "title": model.title(),
        "size": model.capacity().0,
        "rotational": model.rotational(),
        "mean_bit_rate": model.mean_rate().0,
        "zones": zones,
    })
}

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
