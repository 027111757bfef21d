//! A served store for work that reads titles beside the sessions, such as a mount: its reads and
//! writes take permits from the engine or have a reserved rate, and the space of a removed title is
//! kept for viewers.

use crate::background_io::EngineBackgroundIo;
use crate::library::{OpenError, OpenStore, StoredCopy};
use crate::messages::{CoreHandle, Event};
use crate::mount_reads::{MountReaders, ReaderRequest};
use crate::running_writes::{RunningWrites, WriteKind};
use crossbeam_channel::bounded;
use engine::SessionId;
use media::{Body, TitleKind};
use std::sync::Arc;
use store::{
    BackgroundIo, RateReservations, ReserveError, ReservedRate, ReservedReader, Store, StoreAccess,
    StoreError, TitleId, TitleLeave, TitleOwner, TitleRecord,
};

/// One store of a running server, without its sessions.
#[derive(Debug)]
pub(crate) struct EngineTitleOwner {
    store: Arc<Store>,
    /// Index of the store in the library.
    number: usize,
    core: CoreHandle,
    io: EngineBackgroundIo,
    writes: Arc<RunningWrites>,
    /// What reserves rates, for a mount.
    readers: Option<Arc<MountReaders>>,
}

impl EngineTitleOwner {
    /// The store with this index in the library.
    pub(crate) fn new(
        number: usize,
        opened: &OpenStore,
        core: CoreHandle,
        readers: Option<Arc<MountReaders>>,
    ) -> Self {
        let io = EngineBackgroundIo::new(core.clone(), opened);
        let (store, writes) = (Arc::clone(&opened.store), Arc::clone(&opened.writes));
        Self { store, number, core, io, writes, readers }
    }
}

impl StoreAccess for EngineTitleOwner {
    fn store(&self) -> &Store {
        &self.store
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        &self.io
    }
}

impl TitleOwner for EngineTitleOwner {
    fn free_hidden(&self, id: TitleId) {
        let copy = StoredCopy { store: self.number, id };
        // Nobody waits for the answer: the core frees the space when no session plays the title.
        let (answer, _) = bounded(1);
        self.core.send(Event::Withdraw { copy, in_use: answer });
    }

    fn begin_title(&self, name: &str) -> Result<Box<dyn TitleLeave>, StoreError> {
        Ok(Box::new(self.writes.begin(WriteKind::Ingest, name)?))
    }

    fn reservations(&self) -> Option<&dyn RateReservations> {
        self.readers.as_ref()?;
        Some(self)
    }
}

impl RateReservations for EngineTitleOwner {
    fn reserve(
        &self,
        title: &TitleRecord,
        file: &Arc<Body>,
        rate: ReservedRate,
        replaces: Option<&dyn ReservedReader>,
    ) -> Result<Arc<dyn ReservedReader>, ReserveError> {
        if title.kind != TitleKind::Media {
            return Err(ReserveError::NotPossible("only media titles have a rate".to_owned()));
        }
        let stopped = || ReserveError::Refused("the server has ended".to_owned());
        let readers = self.readers.as_ref().ok_or_else(stopped)?;
        let shared = readers.shared().ok_or_else(stopped)?;
        let open = shared.content.open(&title.name, &self.core).map_err(|why| match why {
            OpenError::DiskBusy => ReserveError::Refused("its disk is busy".to_owned()),
            OpenError::Failed(why) => ReserveError::NotPossible(why),
            _ => ReserveError::NotPossible("the title cannot be played".to_owned()),
        })?;
        if open.content != title.content().to_string() {
            let why = "another store's title is served under its name";
            return Err(ReserveError::NotPossible(why.to_owned()));
        }
        readers.reserve(ReaderRequest {
            title: open,
            name: title.name.clone(),
            file: Arc::clone(file),
            rate,
            replaces: replaces.map(|reader| SessionId(reader.number())),
        })
    }
}
