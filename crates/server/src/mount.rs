//! Opens a store to be served: its device, slowed down where that is configured, and the guarantee
//! by which its disk is scheduled.

use crate::calibration::{Audience, both, choose, measure, of_model, of_throttle};
use crate::disk_history_writer;
use crate::engine::DiskGuarantee;
use crate::error::ServerError;
use crate::{ServerConfig, engine::DiskNumber};
use device::{
    BlockDevice, CalibrateOptions, CalibrateProgress, DeviceError, DiskAccess, FileDevice,
    OpenOptions, PacedDisk, Throttled,
};
use disk::{Calibration, DiskModel};
use scheduler::{DiskHistory, DiskTimings};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};
use units::{BitRate, ByteCount, show_duration};

/// A store that this process owns, before anything is read from it on schedule.
#[derive(Debug)]
pub(crate) struct PreparedStore {
    pub(crate) store: Arc<Store>,
    pub(crate) guarantee: DiskGuarantee,
    /// The disk's times, for admission.
    pub(crate) timings: DiskTimings,
    /// What was observed of its disk when it was last used.
    pub(crate) history: Option<DiskHistory>,
    /// Notes for people, one line each.
    pub(crate) notes: Vec<String>,
}

/// Opens a store for this process alone and chooses its disk's guarantee. `memory`: the store's
/// share of the read buffers.
pub(crate) fn open(
    path: &Path,
    config: &ServerConfig,
    memory: ByteCount,
) -> Result<PreparedStore, ServerError> {
    let failed = |reason: String| ServerError::Store { path: path.to_owned(), reason };
    let options = OpenOptions { direct: true, write: true, exclusive: true };
    let device = match FileDevice::open(path, options) {
        Ok(device) => Arc::new(device),
        Err(DeviceError::InUse { .. }) => return Err(in_use(path)),
        Err(error) => return Err(failed(error.to_string())),
    };
    let (device, slowdown) = slow_down(device, config)?;
    let store = match Store::open_on(device) {
        Ok(store) => Arc::new(store),
        Err(StoreError::Owned { .. }) => return Err(in_use(path)),
        Err(error) => return Err(failed(error.to_string())),
    };
    if let Some(slow) = &slowdown.as_disk {
        // From here on reads are made on schedule.
        slow.set_pass_through(false);
    }
    let name = path.display();
    let mut notes = Vec::new();
    if let Some(note) = &slowdown.note {
        notes.push(format!("{name}: {note}"));
    }
    let audience = Audience { rate: typical_rate(&store), memory };
    let calibration = match slowdown.calibration {
        Some(calibration) => calibration,
        None => stored_or_measured(&store, config, &mut notes, path)?,
    };
    let guarantee = choose(&calibration, config.slot, config.read_size, audience);
    let guarantee = guarantee.filter(|guarantee| guarantee.min_read > 0).ok_or_else(|| {
        failed(format!(
            "its disk does not complete one read within a slot of {}; choose a longer slot or a \
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
    let timings = timings(config, store.device().geometry().size, &calibration, &guarantee);
    let history = disk_history_writer::read(&store, path, &mut notes);
    Ok(PreparedStore { store, guarantee, timings, history, notes })
}

/// Measures the disk of a served store again, between the reads of sessions. A slowed disk is not
/// measured: its calibration is computed from the configuration.
pub(crate) fn recalibrate(
    store: &Store,
    config: &ServerConfig,
    read_size: ByteCount,
    budget: Duration,
    turns: DiskAccess<'_>,
    progress: &mut dyn FnMut(CalibrateProgress),
) -> Result<Calibration, StoreError> {
    if let Some(calibration) = arithmetic(config, store.device().geometry().size) {
        return Ok(calibration);
    }
    // Sizes that are not in use are measured, too: the next start chooses among all of them.
    let largest = read_size.max(ByteCount::mib(4));
    let scratch = Some(store.scratch());
    let options =
        CalibrateOptions { slot: config.slot, budget, scratch, ..CalibrateOptions::default() };
    Ok(measure(store.device().as_ref(), options, largest, turns, progress)?)
}

/// Stores a calibration with the store. Returns the new guarantee and the disk's timings; `None` if
/// the disk guarantees no read.
pub(crate) fn adopt(
    store: &Store,
    config: &ServerConfig,
    read_size: ByteCount,
    calibration: &Calibration,
) -> Result<Option<(DiskGuarantee, DiskTimings)>, StoreError> {
    // A slowed disk's calibration follows from the configuration; a later start without it must not
    // find that with the store.
    if arithmetic(config, store.device().geometry().size).is_none() {
        store.set_calibration(calibration)?;
    }
    let audience = Audience { rate: typical_rate(store), memory: config.memory };
    let guarantee = choose(calibration, config.slot, Some(read_size), audience);
    let size = store.device().geometry().size;
    Ok(guarantee.map(|guarantee| {
        let timings = timings(config, size, calibration, &guarantee);
        (guarantee, timings)
    }))
}

/// The times of a store's disk: of the model that it is slowed down to, or of its calibration.
fn timings(
    config: &ServerConfig,
    size: ByteCount,
    calibration: &Calibration,
    guarantee: &DiskGuarantee,
) -> DiskTimings {
    let DiskGuarantee { read_size, queue_depth, .. } = *guarantee;
    match &config.as_disk {
        // Behind a throttle a read takes longer than the model's times.
        Some(model) if config.throttle.is_none() => {
            DiskTimings::of_model(&model.scaled_to(size), read_size, queue_depth)
        }
        _ => DiskTimings::of_calibration(calibration, read_size),
    }
}

/// The configured slowdown of a device.
struct Slowdown {
    as_disk: Option<Arc<PacedDisk>>,
    calibration: Option<Calibration>,
    note: Option<String>,
}

fn slow_down(
    device: Arc<dyn BlockDevice>,
    config: &ServerConfig,
) -> Result<(Arc<dyn BlockDevice>, Slowdown), ServerError> {
    let calibration = arithmetic(config, device.geometry().size);
    let (mut device, mut notes) = (device, Vec::new());
    if let Some(rate) = config.throttle {
        if rate.0 == 0 {
            return Err(ServerError::Config("--throttle must be more than zero".into()));
        }
        device = Arc::new(Throttled::new(device, rate));
        notes.push(format!("slowed down to {rate}"));
    }
    let mut as_disk = None;
    if let Some(model) = &config.as_disk {
        let slow = Arc::new(PacedDisk::new(Arc::clone(&device), model));
        // The store is opened at full speed; only its reads on schedule are slowed down.
        slow.set_pass_through(true);
        as_disk = Some(Arc::clone(&slow));
        device = slow;
        notes.push(format!("slowed down to a {}, seeks included", model.title()));
    }
    let note = (!notes.is_empty()).then(|| notes.join(", and "));
    Ok((device, Slowdown { as_disk, calibration, note }))
}

/// The calibration of a slowed device, by arithmetic; `None` for a device at its own speed.
fn arithmetic(config: &ServerConfig, size: ByteCount) -> Option<Calibration> {
    let model = config.as_disk.as_ref();
    let as_disk = model.map(|model| of_model(&model.scaled_to(size), config.slot));
    let throttle = config.throttle.map(|rate| of_throttle(rate, config.slot));
    match (as_disk, throttle) {
        (Some(modelled), Some(throttled)) => Some(both(&modelled, &throttled)),
        (modelled, throttled) => modelled.or(throttled),
    }
}

/// The calibration stored with the store, or that of a short measurement, which is then stored.
fn stored_or_measured(
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
        // Reads of blocks that were never written may not reach the disk.
        notes.push(format!(
            "{name}: is empty, so its disk could not be measured; it is treated as a hard disk until \
             `tenuto calibrate` has run"
        ));
        return Ok(hard_disk(config.slot));
    }
    let options =
        CalibrateOptions { slot: config.slot, budget: START_BUDGET, ..CalibrateOptions::default() };
    match measure(store.device().as_ref(), options, largest, DiskAccess::Exclusive, &mut |_| {}) {
        Ok(calibration) => {
            notes.push(format!("{name}: its disk had no calibration and was measured now"));
            if let Err(error) = store.set_calibration(&calibration) {
                notes.push(format!("{name}: the measurement could not be stored: {error}"));
            }
            Ok(calibration)
        }
        Err(error) => {
            notes.push(format!(
                "{name}: its disk could not be measured ({error}) and is treated as a hard disk"
            ));
            Ok(hard_disk(config.slot))
        }
    }
}

/// The calibration of a current hard disk, for disks that could not be measured.
fn hard_disk(slot: Duration) -> Calibration {
    let model = DiskModel::preset("hdd-20tb").expect("a built-in model");
    let mut calibration = of_model(&model, slot);
    calibration.method = format!("assumed: {}", calibration.method);
    calibration
}

/// The mean rate of the store's titles, by play-out time.
fn typical_rate(store: &Store) -> BitRate {
    let titles = store.titles();
    // Opaque files have no duration and no viewers.
    let media = titles.iter().filter(|title| !title.duration.is_zero());
    let (bytes, time) = media.fold((0, Duration::ZERO), |(bytes, time), title| {
        (bytes + title.bytes, time + title.duration)
    });
    if bytes == 0 { USUAL_RATE } else { BitRate::of(ByteCount(bytes), time) }
}

fn in_use(path: &Path) -> ServerError {
    ServerError::Store {
        path: path.to_owned(),
        reason:
            "it is in use by another process, probably another server; stop that server, or run \
                 commands on the store: they reach it through its control socket"
                .to_owned(),
    }
}

/// Number of the disk of a store, by the store's index.
pub(crate) fn disk_number(store: usize) -> DiskNumber {
    DiskNumber(u16::try_from(store).expect("checked at the start"))
}

/// Time for a measurement at the server's start; `tenuto calibrate` takes longer and is more exact.
const START_BUDGET: Duration = Duration::from_secs(3);
/// The rate assumed before there are titles: an HD film.
const USUAL_RATE: BitRate = BitRate(6_000_000);
