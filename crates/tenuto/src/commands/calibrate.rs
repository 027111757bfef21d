//! `calibrate`: measures a store, through its server if it has one, or a bare device or file, which
//! is opened exclusively.

use super::stores::mismatched;
use crate::access::{ask, measure};
use crate::args::disks::CalibrateArgs;
use crate::failure::Failure;
use crate::out::{self, Bar, Table, facts};
use device::{
    BlockDevice, CalibrateProgress, Description, DeviceError, FileDevice, OpenOptions, describe,
};
use server::control::{Reply, Request};
use server::wire;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use store::{Store, StoreError};
use units::show::count;
use units::{BitRate, ByteCount, align_down, show_duration};

pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    let (path, time, destroy) = (args.device.as_path(), args.time, args.overwrite.destroy);
    let model = args.write_model.as_deref();
    // Tested before the measurement, whose time would otherwise be lost.
    if let Some(file) = model.filter(|file| file.exists()) {
        let sentence = format!("{} would be overwritten", file.display());
        return Err(
            Failure::new(sentence).hint("name another file for the model, or remove that one")
        );
    }
    let about = describe(path)?;
    if let Some(user) = about.uses.first() {
        let failure = Failure::new(format!("{} is {user}", path.display()));
        return Err(
            failure.hint("release it first: the reads of other programs would be measured, too")
        );
    }
    let calibration = match Store::peek(path) {
        Ok(_) if destroy => {
            return Err(Failure::new(format!(
                "{} is a store, which calibrate does not overwrite",
                path.display()
            ))
            .hint(
                "leave out --destroy: writes go to a part of the store that `format` has reserved",
            ));
        }
        Ok(_) => of_store(path, time)?,
        Err(StoreError::NotAStore { .. }) => of_bare(path, &about, time, destroy)?,
        Err(error) => return Err(error.into()),
    };
    args.report.show(&calibration, || page(&calibration));
    model.map_or(Ok(()), |file| write_model(file, &calibration, about.size))
}

/// Writes the model that fits a calibration; its name is that of the file.
fn write_model(
    file: &Path,
    calibration: &wire::Calibration,
    capacity: ByteCount,
) -> Result<(), Failure> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let fitted = disk::Calibration::from(calibration).parameters(&name, capacity);
    let Some(parameters) = fitted else {
        return Err(Failure::new("the measurements are too few to fit a model to them")
            .hint("measure for a longer time: --time 2min"));
    };
    out::save(file, &parameters.to_toml())?;
    out::note(&format!("`tenuto disk models {}` shows the model in full", file.display()));
    Ok(())
}

fn of_store(path: &Path, time: Duration) -> Result<wire::Calibration, Failure> {
    let request = Request::Calibrate { seconds: time.as_secs_f64() };
    let Reply::Calibration(calibration) = ask(path, &request)? else { mismatched() };
    Ok(*calibration)
}

/// Measures a device or file that is no store. `destroy`: a part in the middle is written to.
fn of_bare(
    path: &Path,
    about: &Description,
    time: Duration,
    destroy: bool,
) -> Result<wire::Calibration, Failure> {
    if about.is_sparse() {
        let (has, size) = (about.allocated.unwrap_or_default(), about.size);
        let sentence = format!("{} is sparse: only {has} of {size} are allocated", path.display());
        return Err(Failure::new(sentence)
            .hint("write all of it first: reads of the other parts do not reach a disk"));
    }
    let device = FileDevice::open(
        path,
        OpenOptions { write: destroy, exclusive: true, ..OpenOptions::default() },
    )?;
    if !device.is_direct() {
        out::note("the file system refuses direct reads: the figures are those of the page cache");
    }
    let scratch = destroy.then(|| middle(device.geometry().size));
    let bar = Bar::new();
    let show = &mut |p: CalibrateProgress| bar.percent(p.stage, p.done);
    let measured = measure(&device, scratch, time, show);
    let calibration = measured.map_err(|error| match error {
        DeviceError::Unusable { reason, .. } => {
            DeviceError::Unusable { path: path.to_owned(), reason }
        }
        DeviceError::NotWritten { reason, .. } => {
            DeviceError::NotWritten { path: path.to_owned(), reason }
        }
        error => error,
    })?;
    Ok(wire::Calibration::from(&calibration))
}

/// The range that `--destroy` overwrites: as much as `format` would reserve, where it would.
fn middle(size: ByteCount) -> Range<u64> {
    let start = align_down(size.0 / 2, ByteCount::MIB.0);
    let length = align_down(size.0 / SCRATCH_PART, ByteCount::MIB.0).min(MOST_SCRATCH);
    start..start + length
}

fn page(calibration: &wire::Calibration) -> String {
    let time =
        |seconds: f64| show_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    let slot = time(calibration.slot);
    let rate = |zone: &wire::Zone| BitRate(zone.bit_rate).to_string();
    // A rotating disk is fastest at its start; the two ends show the range.
    let zones = match (calibration.zones.first(), calibration.zones.last()) {
        (Some(first), Some(last)) => {
            format!("{} at the start, {} at the end", rate(first), rate(last))
        }
        _ => "not measured".to_owned(),
    };
    let writing = calibration.writing.map_or_else(
        || "not measured: no part of the disk may be overwritten".to_owned(),
        |cost| {
            let (size, mean) = (ByteCount(cost.write_size), time(cost.mean));
            format!("each {size} takes {mean} from the reads, {} at worst", time(cost.slowest))
        },
    );
    // The line says what admission counts with, because it decides how many streams are admitted.
    let actuator = calibration.actuator.map_or_else(
        || "none was detected: admission counts the reads below".to_owned(),
        |actuator| {
            let visits = actuator.following.map_or_else(String::new, |following| {
                format!(", sequential reads of at most {} beside their transfer", time(following))
            });
            format!(
                "{} a revolution, seeks of {} to {}{visits}: admission counts disk time",
                time(actuator.revolution),
                time(actuator.shortest_seek),
                time(actuator.full_seek)
            )
        },
    );
    let outlier = |outlier: &wire::Outlier| {
        let (size, at) = (ByteCount(outlier.read_size), time(outlier.at));
        let delay = time(outlier.delay);
        format!("one delay of {delay} (reads of {size}, after {at}) did not recur: not counted\n")
    };
    let outliers: String = calibration.outliers.iter().map(outlier).collect();
    let facts = facts(&[
        ("measured on", measured(calibration)),
        ("reads by", calibration.method.clone()),
        ("at once", count(calibration.queue_depth, "read")),
        ("endless read", BitRate(calibration.r0).to_string()),
        ("before the first byte", time(calibration.t0)),
        ("one after another", zones),
        ("actuator", actuator),
        ("writes", writing),
    ]);
    let table = guarantees(&disk::Calibration::from(calibration));
    let longer = longer(&disk::Calibration::from(calibration));
    format!("{facts}{outliers}\nreads completed in every slot of {slot}:\n{table}{longer}")
}

/// The fewest reads in longer stretches of slots, as a table; empty if none was measured.
fn longer(calibration: &disk::Calibration) -> String {
    let longest = calibration.guarantees.iter().filter_map(|g| g.fewest().last());
    if longest.map(|(slots, _)| slots).max().is_none_or(|slots| slots < 2) {
        return String::new();
    }
    let mut table = Table::new(&[">slots", ">2", ">4", ">8", ">16", ">32", ">64", ">pace"]);
    for g in &calibration.guarantees {
        let mut row = vec![g.read_size.to_string()];
        let reads = |reads: &u32| if *reads == 0 { "-".to_owned() } else { reads.to_string() };
        row.extend(g.longer.iter().map(reads));
        let (each, once) = (show_duration(g.pace.each), show_duration(g.pace.once));
        row.push(format!("{each} each, {once} once"));
        table.row(row);
    }
    format!("\nfewest reads in more slots; n reads take n times each, and once:\n{}", table.show())
}

/// The guarantees of a calibration as a table.
pub(super) fn guarantees(calibration: &disk::Calibration) -> String {
    let mut table = Table::new(&[">read", ">guaranteed", ">usual", ">longest read", ">rate"]);
    for g in &calibration.guarantees {
        let bytes = ByteCount(g.read_size.0 * u64::from(g.min_read));
        table.row(vec![
            g.read_size.to_string(),
            g.min_read.to_string(),
            format!("{:.1}", g.mean_read),
            super::models::millis(g.longest_read),
            BitRate::of(bytes, calibration.slot).to_string(),
        ]);
    }
    table.show()
}

/// The part of the device that was measured, and whether the guarantees are provisional.
pub(super) fn measured(calibration: &wire::Calibration) -> String {
    let record = disk::Calibration::from(calibration);
    let Some(part) = record.measured else { return "nothing: computed".to_owned() };
    let disk::MeasuredPart { bytes, whole } = part;
    if part.is_enough() {
        return format!("{bytes} of {whole}");
    }
    format!(
        "{bytes} of {whole}: the guarantees are provisional, because a cache may have answered; \
         with {} written they are measured in full",
        disk::MeasuredPart::enough_of(whole)
    )
}

/// Bytes that are overwritten at most: enough for a few seconds of a concurrent writer.
const MOST_SCRATCH: u64 = 64 << 20;
const SCRATCH_PART: u64 = 16;
