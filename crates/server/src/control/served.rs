//! A served store as the owner of its control requests: background I/O takes permits from the
//! engine, and removal and calibration involve the core.

use super::StoreOwner;
use crate::background_io::EngineBackgroundIo;
use crate::library::{MountedStore, StoredCopy};
use crate::messages::{CoreHandle, Event};
use crate::shared::Shared;
use crate::{ServerConfig, mount, wire};
use crossbeam_channel::bounded;
use device::{CalibrateProgress, DiskAccess};
use disk::Calibration;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::{BackgroundIo, Store, StoreError, TitleRecord};
use units::ByteCount;

/// One store of a running server.
#[derive(Debug)]
pub(crate) struct ServedStore {
    /// Index of the store in the library.
    number: usize,
    shared: Arc<Shared>,
    core: CoreHandle,
    config: Arc<ServerConfig>,
    io: EngineBackgroundIo,
}

impl ServedStore {
    /// The store with this index in the library.
    pub(crate) fn new(
        number: usize,
        shared: Arc<Shared>,
        core: CoreHandle,
        config: Arc<ServerConfig>,
    ) -> Self {
        let io = EngineBackgroundIo::new(core.clone(), &shared.content.stores[number]);
        Self { number, shared, core, config, io }
    }

    /// The store's path, as the server was given it.
    pub(super) fn path(&self) -> &Path {
        &self.mounted().path
    }

    fn mounted(&self) -> &MountedStore {
        &self.shared.content.stores[self.number]
    }
}

impl StoreOwner for ServedStore {
    fn store(&self) -> &Store {
        &self.mounted().store
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        &self.io
    }

    /// Hides the title. The core frees its space when no session plays it any more.
    fn remove(&self, title: &str) -> Result<(TitleRecord, bool), StoreError> {
        // Hidden first, so that no new request finds the title after the core has counted its uses.
        let record = self.store().hide(title)?;
        let copy = StoredCopy { store: self.number, id: record.id };
        let (answer, in_use) = bounded(1);
        self.core.send(Event::Withdraw { copy, in_use: answer });
        // A core that has ended plays nothing.
        Ok((record, in_use.recv().unwrap_or(false)))
    }

    /// Every batch of reads waits for a permit, so that no session is disturbed. A measurement
    /// during sessions shows less than the disk can do: it is returned, but stored only if the
    /// store has no calibration, or a provisional one.
    fn calibrate(
        &self,
        budget: Duration,
        progress: &mut dyn FnMut(wire::Progress),
    ) -> Result<Calibration, StoreError> {
        let mounted = self.mounted();
        let store = &mounted.store;
        let active = || self.shared.snapshot().engine.active;
        let mut most_active = active();
        let acquire = |bytes: ByteCount| -> Box<dyn Any> { Box::new(self.io.acquire(bytes)) };
        let mut on_progress = |done: CalibrateProgress| {
            // A session that comes and goes while the disk is measured disturbs the measurement,
            // too.
            most_active = most_active.max(active());
            progress(wire::Progress::of_part(done.stage, done.done));
        };
        let mut calibration = mount::recalibrate(
            store,
            &self.config,
            mounted.read_size,
            budget,
            DiskAccess::Shared(&acquire),
            &mut on_progress,
        )?;
        if most_active > 0 {
            calibration.method.push_str(&format!("; during up to {most_active} sessions"));
        }
        let replaceable = store.calibration().is_none_or(|stored| stored.is_provisional());
        if most_active == 0 || replaceable {
            let adopted = mount::adopt(store, &self.config, mounted.read_size, &calibration)?;
            mounted.provisional.store(calibration.is_provisional(), Ordering::Relaxed);
            if let Some((guarantee, timings)) = adopted {
                let timings = Box::new(timings);
                self.core.send(Event::Guarantee { disk: mounted.disk, guarantee, timings });
            }
        } else {
            calibration.method.push_str("; not stored: measure again while no session is active");
        }
        Ok(calibration)
    }

    fn served_file(&self) -> Result<wire::ServedFile, wire::Failure> {
        let mounted = self.mounted();
        let path = mounted.path.display().to_string();
        Ok(wire::ServedFile { path, file: mounted.file.to_string() })
    }

    fn status(&self) -> Result<wire::ServerStatus, wire::Failure> {
        Ok(self.shared.status())
    }
}
