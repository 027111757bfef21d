//! Opens a store to be served: its device, slowed down where that is configured, and the guarantee
//! by which its disk is scheduled.

use crate::ServerConfig;
use crate::buffer_memory::usable_memory;
use crate::calibration::of_throttle;
use crate::calibration::{both, candidates, guarantee_of, measure, of_model, of_page_cache};
use crate::disk_history_writer;
use crate::read_size::{Audience, MOST_VIEWERS, ReadChoice, choose};
use crate::watched_device::WatchedDevice;
use device::{
    BlockDevice, CalibrateOptions, CalibrateProgress, DeviceError, DiskAccess, FileDevice,
    FileIdentity, OpenOptions, PacedDevice,
};
use disk::{Calibration, DiskModel, MeasuredPart};
use engine::{DiskGuarantee, DiskNumber};
use rustix::io::Errno;
use scheduler::{DiskHistory, DiskTimings, PolicyKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};
use units::show::count;
use units::{BitRate, ByteCount, Hinted, Reason, show_duration};

/// A store that this process owns, before anything is read from it on schedule.
#[derive(Debug)]
pub(crate) struct PreparedStore {
    pub(crate) path: PathBuf,
    pub(crate) store: Arc<Store>,
    /// The device beneath the store.
    pub(crate) device: Arc<WatchedDevice>,
    /// The file or block device that it is on.
    pub(crate) file: FileIdentity,
    pub(crate) guarantee: DiskGuarantee,
    /// Whether too little is stored on the disk to measure its guarantee.
    pub(crate) provisional: bool,
    /// The disk's times, for admission.
    pub(crate) timings: DiskTimings,
    /// What was observed of its disk when it was last used.
    pub(crate) history: Option<DiskHistory>,
    /// Notes for people, one line each.
    pub(crate) notes: Vec<String>,
}

/// Why a store is not served.
#[derive(Debug)]
pub(crate) enum NotOpened {
    /// The disk is not there or does not answer, or has lost the store. Other stores are served.
    Lost(Reason),
    /// Something to be put right before the start.
    Refused(Reason),
}

impl From<Reason> for NotOpened {
    fn from(reason: Reason) -> Self {
        Self::Refused(reason)
    }
}

impl NotOpened {
    /// The error of opening the store at `path`.
    pub(crate) fn of(path: &Path, error: &StoreError) -> Self {
        let mut reason = not_served(path, error.reason());
        if let StoreError::Damaged { .. } = error {
            let hint = "`tenuto check STORE --rebuild` lists the titles that can be recovered";
            reason.hint.get_or_insert(hint.to_owned());
        }
        let is_lost = match error {
            StoreError::Owned { .. } => return Self::Refused(in_use(path)),
            StoreError::Device(DeviceError::Open { source, .. }) => {
                Errno::from_io_error(source).is_some_and(|error| OF_A_LOST_DISK.contains(&error))
            }
            StoreError::Device(DeviceError::Io { .. })
            | StoreError::Damaged { .. }
            | StoreError::Shrunk { .. } => true,
            _ => false,
        };
        if is_lost { Self::Lost(reason) } else { Self::Refused(reason) }
    }
}

/// Opens a store for this process alone and chooses its disk's guarantee. `memory`: the store's
/// share of the read buffers. `sessions_wait`: a disk is not measured while they do.
pub(crate) fn open(
    path: &Path,
    config: &ServerConfig,
    memory: ByteCount,
    sessions_wait: bool,
) -> Result<PreparedStore, NotOpened> {
    let failed = |reason| not_served(path, reason);
    let options = OpenOptions {
        direct: !config.buffered,
        write: true,
        exclusive: true,
        ..OpenOptions::default()
    };
    let device = match FileDevice::open(path, options) {
        Ok(device) => Arc::new(device),
        Err(DeviceError::InUse { .. }) => return Err(in_use(path).into()),
        Err(error) => return Err(NotOpened::of(path, &error.into())),
    };
    let file = device.identity().map_err(|error| failed(error.reason()))?;
    let (device, slowdown) = slow_down(device, config)?;
    let device = Arc::new(WatchedDevice::new(device));
    let store = match Store::open_on(Arc::clone(&device) as Arc<dyn BlockDevice>) {
        Ok(store) => Arc::new(store),
        Err(error) => return Err(NotOpened::of(path, &error)),
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
    let calibration = match slowdown.calibration {
        Some(calibration) => calibration,
        None => stored_or_measured(&store, config, &mut notes, path, sessions_wait)?,
    }
    .in_slots(config.slot);
    let size = store.device().geometry().size;
    let of_size = |guarantee: &DiskGuarantee| timings(config, size, &calibration, guarantee);
    let audience = audience(&store, config, memory);
    // Eight reads of the largest size must fit into the memory.
    let fits = |c: &ReadChoice| c.guarantee.read_size.0 * 8 <= memory.0;
    let chosen = match config.read_size {
        Some(size) => guarantee_of(&calibration, size),
        None => choose(candidates(&calibration, None, of_size).filter(fits), size, audience),
    };
    let guarantee = chosen.ok_or_else(|| {
        let slot = show_duration(config.slot);
        failed(Reason::new(
            format!("its disk does not complete one read within a slot of {slot}"),
            "choose a longer slot or a smaller read size, or run `tenuto calibrate`",
        ))
    })?;
    notes.push(format!(
        "{name}: at least {} of {} in each slot of {}, {} at once ({})",
        count(guarantee.min_read, "read"),
        guarantee.read_size,
        show_duration(config.slot),
        guarantee.queue_depth,
        calibration.method
    ));
    let timings = of_size(&guarantee);
    let history = disk_history_writer::read(&store, path, &mut notes);
    let provisional = calibration.is_provisional();
    let path = path.to_owned();
    Ok(PreparedStore { path, store, device, file, guarantee, provisional, timings, history, notes })
}

fn audience(store: &Store, config: &ServerConfig, memory: ByteCount) -> Audience {
    let rate = typical_rate(store);
    let by_network = config.network.map_or(MOST_VIEWERS, |network| network.0 / rate.0.max(1));
    let policy = match config.policy {
        // It admits everybody with any size.
        PolicyKind::None => PolicyKind::TimeDomain,
        policy => policy,
    };
    Audience {
        rate,
        memory: usable_memory(memory, ByteCount::MIB),
        most: by_network.clamp(1, MOST_VIEWERS),
        policy,
        slot: config.slot,
        startup: config.startup.max(config.slot * 2),
    }
}

/// Why a store cannot be served beside those opened before it: one of them has its identity, so
/// that commands could not tell them apart.
pub(crate) fn refuse_copy(of: &PreparedStore, opened: &[PreparedStore]) -> Result<(), Reason> {
    let uuid = of.store.info().uuid;
    match opened.iter().find(|other| other.store.info().uuid == uuid) {
        Some(other) => Err(not_served(&of.path, copy_of(&other.path.display().to_string()))),
        None => Ok(()),
    }
}

/// Why a store is refused beside another one with its identity.
pub(crate) fn copy_of(other: &str) -> Reason {
    Reason::new(
        format!("it has the identity of {other}, which is served, and one is a copy of the other"),
        "run `tenuto relabel STORE --new-identity` on the copy",
    )
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
        CalibrateOptions { slot: config.slot, budget, scratch, ..CalibrateOptions::default() }
            .with_long_run();
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
    let size = store.device().geometry().size;
    let calibration = calibration.clone().in_slots(config.slot);
    Ok(guarantee_of(&calibration, read_size).map(|guarantee| {
        let timings = timings(config, size, &calibration, &guarantee);
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
    as_disk: Option<Arc<PacedDevice>>,
    calibration: Option<Calibration>,
    note: Option<String>,
}

fn slow_down(
    device: Arc<dyn BlockDevice>,
    config: &ServerConfig,
) -> Result<(Arc<dyn BlockDevice>, Slowdown), Reason> {
    let calibration = arithmetic(config, device.geometry().size);
    let (mut device, mut notes) = (device, Vec::new());
    if let Some(rate) = config.throttle {
        if rate.0 == 0 {
            return Err("--throttle must be more than zero".into());
        }
        device = Arc::new(PacedDevice::throttled(device, rate));
        notes.push(format!("slowed down to {rate}"));
    }
    let mut as_disk = None;
    if let Some(model) = &config.as_disk {
        let slow = Arc::new(PacedDevice::as_disk(Arc::clone(&device), model));
        // The store is opened at full speed; only its reads on schedule are slowed down.
        slow.set_pass_through(true);
        as_disk = Some(Arc::clone(&slow));
        device = slow;
        notes.push(format!("slowed down to a {}, seeks included", model.title()));
    }
    let note = (!notes.is_empty()).then(|| notes.join(", and "));
    Ok((device, Slowdown { as_disk, calibration, note }))
}

/// The calibration of a slowed device, or of one behind the page cache, by arithmetic; `None` for a
/// device at its own speed.
fn arithmetic(config: &ServerConfig, size: ByteCount) -> Option<Calibration> {
    if config.buffered {
        return Some(of_page_cache(config.slot));
    }
    let model = config.as_disk.as_ref();
    let as_disk = model.map(|model| of_model(&model.scaled_to(size), config.slot));
    let throttle = config.throttle.map(|rate| of_throttle(rate, config.slot));
    match (as_disk, throttle) {
        (Some(modelled), Some(throttled)) => Some(both(&modelled, &throttled)),
        (modelled, throttled) => modelled.or(throttled),
    }
}

/// The calibration stored with the store, or that of a short measurement, which is then stored. A
/// provisional calibration is replaced when more is stored than it was measured on. While sessions
/// wait, what the server before had goes on: only a calibration that admits nobody is replaced.
fn stored_or_measured(
    store: &Store,
    config: &ServerConfig,
    notes: &mut Vec<String>,
    path: &Path,
    sessions_wait: bool,
) -> Result<Calibration, Reason> {
    let name = path.display();
    let size = store.device().geometry().size;
    let stored = store.calibration();
    if let Some(calibration) = &stored
        && !(calibration.is_provisional()
            && (!sessions_wait && worth_measuring_again(store, calibration)
                || stood_still(calibration, config)))
    {
        notes.extend(provisional_note(path, calibration));
        return Ok(calibration.clone());
    }
    if store.info().titles == 0 {
        // Reads of blocks that were never written may not reach the disk.
        notes.push(format!(
            "{name}: is empty, so its disk could not be measured; it is treated as a hard disk until \
             `tenuto calibrate` has run"
        ));
        return Ok(hard_disk(config.slot, size));
    }
    if sessions_wait && stored.is_none() {
        notes.push(format!(
            "{name}: its disk has not been measured; it is treated as a hard disk until it is, when \
             nobody has played for some minutes"
        ));
        return Ok(hard_disk(config.slot, size));
    }
    match measured_at_start(store, config) {
        Ok((calibration, measurements)) => {
            let why = match &stored {
                None => "its disk had no calibration and was measured now",
                Some(stored) if stood_still(stored, config) => {
                    "by its provisional calibration no read completes within a slot, so its disk \
                     was measured again"
                }
                Some(_) => {
                    "its calibration was provisional and more is stored now, so its disk was \
                     measured again"
                }
            };
            notes.push(format!("{name}: {why}"));
            if measurements > 1 {
                notes.push(format!(
                    "{name}: its disk stood still for a slot in {} of {measurements} measurements; \
                     the last one counts",
                    measurements - 1
                ));
            }
            notes.extend(provisional_note(path, &calibration));
            if let Err(error) = store.set_calibration(&calibration) {
                notes.push(format!(
                    "{name}: the measurement could not be stored: {}",
                    error.one_line()
                ));
            }
            Ok(calibration)
        }
        Err(error) => {
            let (instead, calibration) = match stored {
                Some(stored) => ("keeps its provisional calibration", stored),
                None => ("is treated as a hard disk", hard_disk(config.slot, size)),
            };
            let error = error.one_line();
            notes.push(format!("{name}: its disk could not be measured ({error}) and {instead}"));
            Ok(calibration)
        }
    }
}

/// The calibration of a short measurement, and the number of measurements made.
fn measured_at_start(
    store: &Store,
    config: &ServerConfig,
) -> Result<(Calibration, usize), DeviceError> {
    let largest = config.read_size.unwrap_or(ByteCount::mib(4)).max(ByteCount::mib(4));
    let options =
        CalibrateOptions { slot: config.slot, budget: START_BUDGET, ..CalibrateOptions::default() };
    let device = store.device().as_ref();
    measured_until(config, || {
        measure(device, options.clone(), largest, DiskAccess::Exclusive, &mut |_| {})
    })
}

/// Measures again, up to [`START_MEASUREMENTS`] times in all, while the disk stands still for a
/// slot: on a busy machine it may, and that passes.
fn measured_until<E>(
    config: &ServerConfig,
    mut measure: impl FnMut() -> Result<Calibration, E>,
) -> Result<(Calibration, usize), E> {
    let mut measurements = 1;
    loop {
        let calibration = measure()?;
        if !stood_still(&calibration, config) || measurements == START_MEASUREMENTS {
            return Ok((calibration, measurements));
        }
        measurements += 1;
    }
}

/// Whether no read that was measured, of those that the server may make, completes within a slot.
/// Sizes for which too little was written are not measured.
fn stood_still(calibration: &Calibration, config: &ServerConfig) -> bool {
    let calibration = calibration.clone().in_slots(config.slot);
    let measured = match config.read_size {
        Some(size) => calibration.guarantee_for(size).into_iter().collect(),
        None => calibration.guarantees,
    };
    !measured.is_empty() && measured.iter().all(|guarantee| guarantee.min_read == 0)
}

/// Whether a served store's disk is to be measured again at a quiet time: more is stored than its
/// provisional calibration was measured on, or the calibration is older than configured. `now`:
/// Unix seconds.
pub(crate) fn is_due(store: &Store, config: &ServerConfig, now: u64) -> bool {
    if arithmetic(config, store.device().geometry().size).is_some() || store.info().titles == 0 {
        return false;
    }
    let Some(calibration) = store.calibration() else { return true };
    let age = Duration::from_secs(now.saturating_sub(calibration.measured_at));
    let is_old = config.recalibrate_after.is_some_and(|after| age >= after);
    is_old || calibration.is_provisional() && worth_measuring_again(store, &calibration)
}

/// Whether a measurement could now read enough, or at least twice as much as the provisional one.
fn worth_measuring_again(store: &Store, provisional: &Calibration) -> bool {
    let whole = store.device().geometry().size;
    // Where the file system does not tell what was written, nothing is gained by another try.
    let written = store.device().written(0..whole.0).unwrap_or_default();
    // Counted as the measurement counted it: pieces in which its longest read fits.
    let longest = provisional.guarantees.last().map_or(0, |longest| longest.read_size.0);
    let pieces = written.iter().map(|range| range.end - range.start);
    let bytes = ByteCount(pieces.filter(|piece| *piece >= longest).sum());
    let before = provisional.measured.map_or(0, |part| part.bytes.0);
    MeasuredPart { bytes, whole }.is_enough() || bytes.0 >= before.saturating_mul(2)
}

/// Says that a calibration is provisional, and what ends it.
fn provisional_note(path: &Path, calibration: &Calibration) -> Option<String> {
    let part = calibration.measured.filter(|part| !part.is_enough())?;
    Some(format!(
        "{}: its guarantee is provisional: only {} of {} could be read in whole reads when the disk \
         was measured, and a cache may have answered; it is measured again at a start with more stored, fully \
         from {} on",
        path.display(),
        part.bytes,
        part.whole,
        MeasuredPart::enough_of(part.whole)
    ))
}

/// The calibration of a current hard disk, for disks of `size` that could not be measured.
fn hard_disk(slot: Duration, size: ByteCount) -> Calibration {
    let model = DiskModel::preset("hdd-20tb").expect("a built-in model");
    let mut calibration = of_model(&model, slot);
    calibration.method = format!("assumed: {}", calibration.method);
    // Nothing was measured, so that this is provisional, too.
    calibration.measured = Some(MeasuredPart { bytes: ByteCount::ZERO, whole: size });
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

/// Why a store cannot be served, with its path before the reason.
pub(crate) fn not_served(path: &Path, reason: Reason) -> Reason {
    reason.about(format!("{} cannot be served", path.display()))
}

fn in_use(path: &Path) -> Reason {
    let hint =
        "stop that server, or run commands on the store: they reach it through its control socket";
    not_served(path, Reason::new("it is in use by another process, probably another server", hint))
}

/// Number of the disk of a store, by the store's index.
pub(crate) fn disk_number(store: usize) -> DiskNumber {
    DiskNumber(u16::try_from(store).expect("checked at the start"))
}

/// What opening a device ends with that was taken out, or that does not answer.
const OF_A_LOST_DISK: [Errno; 5] =
    [Errno::NOENT, Errno::IO, Errno::NODEV, Errno::NXIO, Errno::NOMEDIUM];

/// Time for a measurement at the server's start; `tenuto calibrate` takes longer and is more exact.
const START_BUDGET: Duration = Duration::from_secs(3);
/// The most measurements at a start, of a disk that stands still for a slot in each.
const START_MEASUREMENTS: usize = 3;
/// The rate assumed before there are titles: an HD film.
const USUAL_RATE: BitRate = BitRate(6_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_stands_still_is_measured_again() {
        let slow = of_throttle(BitRate(1_000), Duration::from_millis(500));
        let fast = of_throttle(BitRate(800_000_000), Duration::from_millis(500));
        let config = ServerConfig { slot: Duration::from_millis(500), ..ServerConfig::default() };
        let mib = |size| ServerConfig { read_size: Some(ByteCount::mib(size)), ..config.clone() };
        let mut odd = fast.clone();
        odd.guarantees.retain(|guarantee| guarantee.read_size == ByteCount::MIB);
        // Measured in this order; the number of measurements; whether the one that is kept says so.
        for (case, config, measured, number, still) in [
            ("at once", &config, vec![&fast], 1, false),
            ("third time", &config, vec![&slow, &slow, &fast], 3, false),
            ("never", &config, vec![&slow, &slow, &slow, &fast], 3, true),
            ("the size asked for", &mib(1), vec![&slow, &odd], 2, false),
            ("a smaller size", &mib(0), vec![&odd], 1, false),
            ("a size that was not measured", &mib(4), vec![&odd], 1, false),
        ] {
            let mut next = measured.into_iter();
            let kept = measured_until(config, || next.next().cloned().ok_or("measured too often"));
            let (calibration, times) = kept.expect(case);
            assert_eq!((times, stood_still(&calibration, config)), (number, still), "{case}");
        }
    }
}
