//! Opening a store to be served: its device with whatever stands before it, and what that is
//! trusted to do.

use crate::calibration::{Audience, both, choose, measure, of_model, of_pipe};
use crate::engine::DiskGuarantee;
use crate::keeper;
use crate::server::ServerError;
use crate::{ServerConfig, engine::DiskNumber};
use device::{
    AsDisk, BlockDevice, CalibrateOptions, CalibrateProgress, DeviceError, FileDevice, OpenOptions,
    Throttled, Turns,
};
use disk::{Calibration, DiskModel};
use scheduler::{Facts, Remembered};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};
use units::{BitRate, ByteCount, show_duration};

/// A store that is ours, before anything is read from it on schedule.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<Store>,
    pub(crate) guarantee: DiskGuarantee,
    /// What is known of its times.
    pub(crate) facts: Facts,
    /// What its disk was seen to do when it was used last.
    pub(crate) remembered: Option<Remembered>,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
}

/// The configured disk model, if there is one.
pub(crate) fn model(config: &ServerConfig) -> Result<Option<DiskModel>, ServerError> {
    let Some(name) = &config.as_disk else { return Ok(None) };
    let Some(model) = DiskModel::preset(name) else {
        let presets = DiskModel::presets();
        let all = presets.iter().map(DiskModel::name).collect::<Vec<_>>().join(", ");
        return Err(ServerError::Config(format!("there is no disk model '{name}'; known: {all}")));
    };
    Ok(Some(model))
}

/// Opens a store for this process alone and decides what to trust its disk with.
pub(crate) fn open(
    path: &Path,
    config: &ServerConfig,
    memory: ByteCount,
) -> Result<Opened, ServerError> {
    let failed = |reason: String| ServerError::Store { path: path.to_owned(), reason };
    let options = OpenOptions { direct: true, write: true, exclusive: true };
    let device = match FileDevice::open(path, options) {
        Ok(device) => Arc::new(device),
        Err(DeviceError::InUse { .. }) => return Err(owned(path)),
        Err(error) => return Err(failed(error.to_string())),
    };
    let (device, slow) = slowed(device, config)?;
    let store = match Store::open_on(device) {
        Ok(store) => Arc::new(store),
        Err(StoreError::Owned { .. }) => return Err(owned(path)),
        Err(error) => return Err(failed(error.to_string())),
    };
    if let Some(slow) = &slow.as_disk {
        slow.set_pass_through(false);
    }
    let name = path.display();
    let mut notes = Vec::new();
    if let Some(note) = &slow.note {
        notes.push(format!("{name}: {note}"));
    }
    let audience = Audience { rate: typical_rate(&store), memory };
    let calibration = match slow.calibration {
        Some(calibration) => calibration,
        None => kept_or_measured(&store, config, &mut notes, path)?,
    };
    let guarantee = choose(&calibration, config.slot, config.read_size, audience);
    let guarantee = guarantee.filter(|guarantee| guarantee.min_read > 0).ok_or_else(|| {
        failed(format!(
            "its disk does not complete one read within a slot of {}; take a longer slot, or a \
             smaller read size, or run `tenuto calibrate`",
            show_duration(config.slot)
        ))
    })?;
    notes.push(format!(
        "{name}: at least {} reads of {} in each slot of {}, {} at once ({})",
        guarantee.min_read,
        guarantee.read_size,
        show_duration(config.slot),
        guarantee.queue_depth,
        calibration.method
    ));
    let facts = facts(config, store.device().geometry().size, &calibration, &guarantee);
    let remembered = keeper::read(&store, path, &mut notes);
    Ok(Opened { store, guarantee, facts, remembered, notes })
}

/// Measures a served store's disk anew, by turns; what stands before it counts as configured, and
/// is not measured.
pub(crate) fn recalibrate(
    store: &Store,
    config: &ServerConfig,
    read_size: ByteCount,
    budget: Duration,
    turns: Turns<'_>,
    progress: &mut dyn FnMut(CalibrateProgress),
) -> Result<Calibration, StoreError> {
    if let Some(calibration) = arithmetic(config, store.device().geometry().size) {
        return Ok(calibration);
    }
    let largest = read_size.max(ByteCount::mib(4));
    let scratch = Some(store.scratch());
    let options =
        CalibrateOptions { slot: config.slot, budget, scratch, ..CalibrateOptions::default() };
    Ok(measure(store.device().as_ref(), options, largest, turns, progress)?)
}

/// Keeps a measurement with the store; the guarantee to serve by from now on, and the times.
pub(crate) fn adopt(
    store: &Store,
    config: &ServerConfig,
    read_size: ByteCount,
    calibration: &Calibration,
) -> Result<Option<(DiskGuarantee, Facts)>, StoreError> {
    if arithmetic(config, store.device().geometry().size).is_none() {
        store.set_calibration(calibration)?;
    }
    let audience = Audience { rate: typical_rate(store), memory: config.memory };
    let guarantee = choose(calibration, config.slot, Some(read_size), audience);
    let size = store.device().geometry().size;
    Ok(guarantee.map(|guarantee| {
        let facts = facts(config, size, calibration, &guarantee);
        (guarantee, facts)
    }))
}

/// What the times of a store's reads are known from: the model it is slowed down to, or its
/// calibration.
fn facts(
    config: &ServerConfig,
    size: ByteCount,
    calibration: &Calibration,
    guarantee: &DiskGuarantee,
) -> Facts {
    let DiskGuarantee { read_size, queue_depth, .. } = *guarantee;
    match model(config).ok().flatten() {
        Some(model) if config.throttle.is_none() => {
            Facts::of_model(&model.scaled_to(size), read_size, queue_depth)
        }
        _ => Facts::of_calibration(calibration, read_size),
    }
}

/// A device with what the configuration puts before it.
struct Slow {
    as_disk: Option<Arc<AsDisk>>,
    calibration: Option<Calibration>,
    note: Option<String>,
}

fn slowed(
    device: Arc<dyn BlockDevice>,
    config: &ServerConfig,
) -> Result<(Arc<dyn BlockDevice>, Slow), ServerError> {
    let calibration = arithmetic(config, device.geometry().size);
    let (mut device, mut words) = (device, Vec::new());
    if let Some(rate) = config.throttle {
        if rate.0 == 0 {
            return Err(ServerError::Config("a throttle to nothing would never deliver".into()));
        }
        device = Arc::new(Throttled::new(device, rate));
        words.push(format!("slowed down to {rate}"));
    }
    let mut as_disk = None;
    if let Some(model) = model(config)? {
        let slow = Arc::new(AsDisk::new(Arc::clone(&device), &model));
        // Opening a store is not what is to be shown slowly.
        slow.set_pass_through(true);
        as_disk = Some(Arc::clone(&slow));
        device = slow;
        words.push(format!("slowed down to a {}, seeks included", model.title()));
    }
    let note = (!words.is_empty()).then(|| words.join(", and "));
    Ok((device, Slow { as_disk, calibration, note }))
}

/// What a slowed device does, by arithmetic; `None`: it is as fast as it is.
fn arithmetic(config: &ServerConfig, size: ByteCount) -> Option<Calibration> {
    let model = model(config).ok().flatten();
    let as_disk = model.map(|model| of_model(&model.scaled_to(size), config.slot));
    let throttle = config.throttle.map(|rate| of_pipe(rate, config.slot));
    match (as_disk, throttle) {
        (Some(one), Some(other)) => Some(both(&one, &other)),
        (one, other) => one.or(other),
    }
}

/// The record kept with the store, or a short measurement, which is then kept.
fn kept_or_measured(
    store: &Store,
    config: &ServerConfig,
    notes: &mut Vec<String>,
    path: &Path,
) -> Result<Calibration, ServerError> {
    if let Some(calibration) = store.calibration() {
        return Ok(calibration);
    }
    let name = path.display();
    let largest = config.read_size.unwrap_or(ByteCount::mib(4)).max(ByteCount::mib(4));
    if store.info().titles == 0 {
        // Reads of what was never written do not reach a disk.
        notes.push(format!(
            "{name}: holds nothing yet, so its disk could not be measured; taken for a hard disk \
             until `tenuto calibrate` has run"
        ));
        return Ok(hard_disk(config.slot));
    }
    let options =
        CalibrateOptions { slot: config.slot, budget: SHORT, ..CalibrateOptions::default() };
    match measure(store.device().as_ref(), options, largest, Turns::Alone, &mut |_| {}) {
        Ok(calibration) => {
            notes.push(format!("{name}: measured now, as it had not been before"));
            if let Err(error) = store.set_calibration(&calibration) {
                notes.push(format!("{name}: the measurement could not be kept: {error}"));
            }
            Ok(calibration)
        }
        Err(error) => {
            notes.push(format!("{name}: could not be measured ({error}); taken for a hard disk"));
            Ok(hard_disk(config.slot))
        }
    }
}

/// What every disk of these days does at least.
fn hard_disk(slot: Duration) -> Calibration {
    let model = DiskModel::preset("hdd-20tb").expect("comes with the program");
    let mut calibration = of_model(&model, slot);
    calibration.method = format!("assumed: {}", calibration.method);
    calibration
}

/// The mean rate of the store's titles, by play-out time.
fn typical_rate(store: &Store) -> BitRate {
    let titles = store.titles();
    let media = titles.iter().filter(|title| !title.duration.is_zero());
    let (bytes, time) = media.fold((0, Duration::ZERO), |(bytes, time), title| {
        (bytes + title.bytes, time + title.duration)
    });
    if bytes == 0 { USUAL_RATE } else { BitRate::of(ByteCount(bytes), time) }
}

fn owned(path: &Path) -> ServerError {
    ServerError::Store {
        path: path.to_owned(),
        reason: "it is in use by another process, probably another server; stop that one, or \
                 give its commands to it: they reach it through its control socket"
            .to_owned(),
    }
}

/// The disk's number: its place among the stores.
pub(crate) fn number(place: usize) -> DiskNumber {
    DiskNumber(u16::try_from(place).expect("checked at the start"))
}

/// A start should not take long; `tenuto calibrate` takes longer and knows better.
const SHORT: Duration = Duration::from_secs(3);
/// Before there are titles: an HD film.
const USUAL_RATE: BitRate = BitRate(6_000_000);
