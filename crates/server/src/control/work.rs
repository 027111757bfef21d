//! What each control request does. Work at the disk takes its turns from the engine.

use super::serve::Served;
use super::{Reply, Request};
use crate::core::Event;
use crate::library::{Place, Shelf};
use crate::pace::EnginePace;
use crate::{shelving, wire};
use crossbeam_channel::bounded;
use device::{CalibrateProgress, Turns};
use media::{TitleIndex, TitleKind};
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::{CheckOptions, IngestOptions, Pace, Progress, StoreError, TitleRecord};
use units::ByteCount;

/// Carries out requests of one client.
pub(super) struct Worker<'a> {
    pub(super) served: &'a Served,
    /// Set when nobody waits for the answer any more.
    pub(super) cancel: &'a AtomicBool,
}

impl Worker<'_> {
    /// The answer, or why not.
    pub(super) fn answer(
        &self,
        request: Request,
        tell: &mut dyn FnMut(wire::Progress),
    ) -> Result<Reply, wire::Failure> {
        match request {
            Request::Ls => {
                let titles = self.shelf().store.titles();
                Ok(Reply::Titles(titles.iter().map(wire::Title::from).collect()))
            }
            Request::Info { title: None } => {
                let store = &self.shelf().store;
                let calibration = store.calibration();
                Ok(Reply::Store(wire::StoreInfo::new(&store.info(), calibration.as_ref())))
            }
            Request::Info { title: Some(title) } => {
                let (record, index) = self.index(&title)?;
                Ok(Reply::Title(wire::TitleDetail::new(&record, &index)))
            }
            Request::Index { title } => {
                let (_, index) = self.index(&title)?;
                Ok(Reply::Index(wire::to_hex(&index.encode())))
            }
            Request::Ingest { files, as_file, title, allow_damaged, renditions } => {
                let kind = if as_file { TitleKind::File } else { TitleKind::Media };
                let options = IngestOptions { kind, name: title, allow_damaged, renditions };
                Ok(self.ingest(&files, &options, tell))
            }
            Request::Rm { title } => self.remove(&title),
            Request::Rename { old, new } => {
                self.shelf().store.rename(&old, &new).map_err(|error| failure(&error))?;
                Ok(Reply::Renamed)
            }
            Request::Export { title, out } => self.export(&title, &out, tell),
            Request::Check { scrub } => self.check(scrub, tell),
            Request::Calibrate { seconds } => self.calibrate(seconds, tell),
            Request::Status => Ok(Reply::Status(Box::new(self.served.shared.status()))),
        }
    }

    fn shelf(&self) -> &Shelf {
        &self.served.shared.titles.shelves[self.served.shelf]
    }

    fn pace(&self) -> EnginePace {
        let shelf = self.shelf();
        EnginePace::new(self.served.core.clone(), shelf.disk, shelf.read_size)
    }

    fn index(&self, name: &str) -> Result<(TitleRecord, Arc<TitleIndex>), wire::Failure> {
        let store = &self.shelf().store;
        let no_title = || StoreError::NoTitle { name: name.to_owned() };
        let record = store.title(name).ok_or_else(|| failure(&no_title()))?;
        let turn = self.pace().wait_turn(ByteCount(record.index_bytes.max(1)));
        let index = store.index(record.id).map_err(|error| failure(&error))?;
        drop(turn);
        Ok((record, index))
    }

    fn ingest(
        &self,
        files: &[PathBuf],
        options: &IngestOptions,
        tell: &mut dyn FnMut(wire::Progress),
    ) -> Reply {
        let mut tell = |progress: Progress| tell(progress.into());
        let store = &self.shelf().store;
        let outcomes = store::ingest(store, files, options, &self.pace(), &mut tell, self.cancel);
        Reply::Ingest(wire::IngestReport::from(outcomes.as_slice()))
    }

    /// Hides the title; the core gives its space back when nobody plays it any more.
    fn remove(&self, name: &str) -> Result<Reply, wire::Failure> {
        let record = self.shelf().store.hide(name).map_err(|error| failure(&error))?;
        let copy = Place { shelf: self.served.shelf, id: record.id };
        let (tell, told) = bounded(1);
        self.served.core.tell(Event::Withdraw { copy, in_use: tell });
        // A core that has ended plays nothing.
        let in_use = told.recv().unwrap_or(false);
        Ok(Reply::Removed { title: wire::Title::from(&record), in_use })
    }

    fn export(
        &self,
        name: &str,
        out: &Path,
        tell: &mut dyn FnMut(wire::Progress),
    ) -> Result<Reply, wire::Failure> {
        let mut tell = |progress: Progress| tell(progress.into());
        let store = &self.shelf().store;
        let report = store::export(store, name, out, &self.pace(), &mut tell, self.cancel);
        report.map(|report| Reply::Export((&report).into())).map_err(|error| failure(&error))
    }

    fn check(
        &self,
        scrub: bool,
        tell: &mut dyn FnMut(wire::Progress),
    ) -> Result<Reply, wire::Failure> {
        let mut tell = |progress: Progress| tell(progress.into());
        let (store, options) = (&self.shelf().store, CheckOptions { scrub });
        let report = store.check_paced(&options, &self.pace(), &mut tell, self.cancel);
        report.map(|report| Reply::Check((&report).into())).map_err(|error| failure(&error))
    }

    /// Each few reads wait for a turn as all best effort does, so that nobody who plays suffers. But
    /// what is measured beside viewers is less than the disk can do: it is told and not adopted,
    /// unless nothing better is known.
    fn calibrate(
        &self,
        seconds: f64,
        tell: &mut dyn FnMut(wire::Progress),
    ) -> Result<Reply, wire::Failure> {
        let shelf = self.shelf();
        let pace = self.pace();
        let playing = || self.served.shared.books().engine.active;
        let mut most = playing();
        let ask = |bytes: ByteCount| -> Box<dyn Any> { Box::new(pace.wait_turn(bytes)) };
        let mut told = |progress: CalibrateProgress| {
            most = most.max(playing());
            tell(wire::Progress::of_part(progress.stage, progress.done));
        };
        let budget = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let (store, config) = (&shelf.store, &self.served.config);
        let measured = shelving::recalibrate(
            store,
            config,
            shelf.read_size,
            budget,
            Turns::Asked(&ask),
            &mut told,
        );
        let mut calibration = measured.map_err(|error| failure(&error))?;
        if most > 0 {
            calibration.method.push_str(&format!("; beside up to {most} viewers"));
        }
        if most == 0 || store.calibration().is_none() {
            let adopted = shelving::adopt(store, config, shelf.read_size, &calibration);
            if let Some((guarantee, facts)) = adopted.map_err(|error| failure(&error))? {
                let facts = Box::new(facts);
                self.served.core.tell(Event::Guarantee { disk: shelf.disk, guarantee, facts });
            }
        } else {
            calibration.method.push_str("; not kept: measure again when nobody plays");
        }
        Ok(Reply::Calibration(Box::new((&calibration).into())))
    }
}

fn failure(error: &StoreError) -> wire::Failure {
    wire::Failure::from(error)
}
