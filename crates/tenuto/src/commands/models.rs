//! `disk models`: lists the built-in disk models, or describes one of them or a user's own.

use super::print_builtin;
use crate::args::disks::ModelsArgs;
use crate::args::shared::ReportArgs;
use crate::failure::{Code, Failure};
use crate::out::{Table, facts};
use disk::{Calibration, DiskModel, Flash, Mechanics, ReadGuarantee, Spinning};
use serde_json::{Value, json};
use std::time::Duration;
use units::{BitRate, ByteCount};

pub(crate) fn models(args: &ModelsArgs) -> Result<(), Failure> {
    if args.toml {
        let hint = "`tenuto disk models` lists the built-in models";
        return print_builtin("disk model", args.name.as_deref(), DiskModel::preset_text, hint);
    }
    let Some(name) = &args.name else {
        list(&args.report);
        return Ok(());
    };
    let model = device::disk_model(name).map_err(|error| Failure::of(&error).code(Code::Usage))?;
    args.report.show(&in_full_json(&model), || in_full(&model));
    Ok(())
}

fn list(report: &ReportArgs) {
    let models = DiskModel::presets();
    let object = json!({ "models": models.iter().map(json_of).collect::<Vec<_>>() });
    report.show(&object, || table(&models));
}

fn table(models: &[DiskModel]) -> String {
    let mut table =
        Table::new(&["model", ">size", ">outer", ">mean", ">inner", ">seek", ">turn", "what"]);
    for model in models {
        table.row(vec![
            model.name().to_owned(),
            model.capacity().to_string(),
            outer(model).to_string(),
            model.mean_rate().to_string(),
            model.slowest_rate().to_string(),
            millis_or_dash(model.mean_seek_time()),
            millis_or_dash(model.revolution()),
            model.title().to_owned(),
        ]);
    }
    table.show()
}

fn outer(model: &DiskModel) -> BitRate {
    model.zones().first().map_or(BitRate(0), |zone| zone.1)
}

fn json_of(model: &DiskModel) -> Value {
    let zone =
        |(offset, rate): &(ByteCount, BitRate)| json!({ "offset": offset.0, "bit_rate": rate.0 });
    json!({
        "name": model.name(),
        "title": model.title(),
        "sources": model.parameters().sources,
        "size": model.capacity().0,
        "rotational": model.rotational(),
        "mean_bit_rate": model.mean_rate().0,
        "mean_seek": model.mean_seek_time().as_secs_f64(),
        "revolution": model.revolution().as_secs_f64(),
        "zones": model.zones().iter().map(zone).collect::<Vec<_>>(),
    })
}

fn in_full_json(model: &DiskModel) -> Value {
    let mut all = json_of(model);
    let guarantee = |g: &ReadGuarantee| {
        json!({
            "read_size": g.read_size.0,
            "min_read": g.min_read,
            "usual_read": g.mean_read,
            "longest_read": g.longest_read.as_secs_f64(),
        })
    };
    let calibration = Calibration::from_model(model, SLOT, &READS);
    let guarantees: Vec<Value> = calibration.guarantees.iter().map(guarantee).collect();
    // Flash has no arm, and a seek time of zero would look like a measurement.
    let seeks: Vec<Value> = if model.rotational() {
        let seek =
            |part: &f64| json!({ "stroke": part, "time": model.seek_time(*part).as_secs_f64() });
        STROKES.iter().map(seek).collect()
    } else {
        Vec::new()
    };
    // The guarantees count reads in this time.
    all["slot"] = json!(SLOT.as_secs_f64());
    all["guarantees"] = json!(guarantees);
    all["seek"] = json!(seeks);
    all["mechanics"] = match &model.parameters().mechanics {
        Mechanics::Spinning(arm) => json!({
            "rpm": arm.rpm,
            "heads": arm.heads,
            "cylinders": model.cylinders(),
            "head_switch": arm.head_switch_ms / 1e3,
            "cylinder_switch": arm.cylinder_switch_ms / 1e3,
            "settle": arm.seek.settle_ms / 1e3,
            "overhead": arm.overhead_ms / 1e3,
            "read_ahead": arm.read_ahead,
            "write_back": arm.write_back,
            "bus_bit_rate": mb_s(arm.bus_mb_s).0,
        }),
        Mechanics::Flash(chips) => json!({
            "latency": chips.latency_ms / 1e3,
            "lanes": chips.lanes,
            "read_bit_rate": mb_s(chips.read_mb_s).0,
            "write_bit_rate": mb_s(chips.write_mb_s).0,
        }),
    };
    all
}

fn in_full(model: &DiskModel) -> String {
    let mut lines = vec![("size", model.capacity().to_string())];
    match &model.parameters().mechanics {
        Mechanics::Spinning(arm) => lines.extend(arm_facts(model, arm)),
        Mechanics::Flash(chips) => lines.extend(chip_facts(chips)),
    }
    let mut text = format!("{}: {}\n\n{}", model.name(), model.title(), facts(&lines));
    text += &guarantees(model);
    if model.rotational() {
        text += &seeks(model);
        text += &zones(model);
    }
    text += "\nsources of the figures\n";
    for source in &model.parameters().sources {
        let folded = units::show::wrapped(source, crate::cli::WIDTH - 2).replace('\n', "\n  ");
        text += &format!("  {folded}\n");
    }
    text
}

fn arm_facts(model: &DiskModel, arm: &Spinning) -> Vec<(&'static str, String)> {
    let ms = |ms: f64| format!("{ms} ms");
    vec![
        ("outer rate", outer(model).to_string()),
        ("mean rate", model.mean_rate().to_string()),
        ("inner rate", model.slowest_rate().to_string()),
        ("revolution", format!("{} ({} rpm)", millis(model.revolution()), arm.rpm)),
        (
            "mean seek",
            format!(
                "{}, settle of {} ms included",
                millis(model.mean_seek_time()),
                arm.seek.settle_ms
            ),
        ),
        ("full stroke", ms(arm.seek.full_ms)),
        ("tracks", format!("{} heads over {} cylinders", arm.heads, model.cylinders())),
        ("head switch", ms(arm.head_switch_ms)),
        ("cylinder switch", ms(arm.cylinder_switch_ms)),
        ("command", ms(arm.overhead_ms)),
        ("reads ahead", ByteCount(arm.read_ahead).to_string()),
        (
            "write cache",
            match arm.write_back {
                0 => "none: a write is complete when it is on the platter".to_owned(),
                bytes => ByteCount(bytes).to_string(),
            },
        ),
        ("interface", mb_s(arm.bus_mb_s).to_string()),
    ]
}

fn chip_facts(chips: &Flash) -> Vec<(&'static str, String)> {
    vec![
        ("reads at", mb_s(chips.read_mb_s).to_string()),
        ("writes at", mb_s(chips.write_mb_s).to_string()),
        ("latency", format!("{} ms", chips.latency_ms)),
        ("commands at once", chips.lanes.to_string()),
    ]
}

fn guarantees(model: &DiskModel) -> String {
    let table = super::calibrate::guarantees(&Calibration::from_model(model, SLOT, &READS));
    format!("\nreads completed in every slot of 500ms, wherever they lie\n{table}")
}

fn seeks(model: &DiskModel) -> String {
    let mut table = Table::new(&["part of the stroke", ">arm"]);
    for part in STROKES {
        let name = if part == 0.0 { "next cylinder".to_owned() } else { format!("{part}") };
        table.row(vec![name, millis(model.seek_time(part))]);
    }
    format!("\nseeks\n{}", table.show())
}

fn zones(model: &DiskModel) -> String {
    let mut table = Table::new(&[">zone from", ">rate"]);
    for (offset, rate) in model.zones() {
        table.row(vec![offset.to_string(), rate.to_string()]);
    }
    format!("\nzones\n{}", table.show())
}

/// Milliseconds to a hundredth, which tables compare: `24.89 ms`.
pub(super) fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn millis_or_dash(time: Duration) -> String {
    if time.is_zero() { "-".to_owned() } else { format!("{:.1} ms", time.as_secs_f64() * 1e3) }
}

fn mb_s(rate: f64) -> BitRate {
    // Parameter files have MB/s, as data sheets do.
    BitRate::of(ByteCount(1_000_000), Duration::from_secs_f64(1.0 / rate))
}

/// The default slot of a server.
const SLOT: Duration = Duration::from_millis(500);
/// Read sizes from that of a sound track to the largest of a server.
const READS: [ByteCount; 6] = [
    ByteCount::kib(64),
    ByteCount::kib(256),
    ByteCount::MIB,
    ByteCount::mib(4),
    ByteCount::mib(8),
    ByteCount::mib(16),
];
const STROKES: [f64; 10] = [0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.333, 0.5, 0.75, 1.0];
