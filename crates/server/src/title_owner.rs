//! A served store for work that reads titles beside the sessions, such as a mount: its reads and
//! writes take permits from the engine, and the space of a removed title is kept for viewers.

use crate::background_io::EngineBackgroundIo;
use crate::library::{OpenStore, StoredCopy};
use crate::messages::{CoreHandle, Event};
use crossbeam_channel::bounded;
use std::sync::Arc;
use store::{BackgroundIo, Store, StoreAccess, TitleId, TitleOwner};

/// One store of a running server, without its sessions.
#[derive(Debug)]
pub(crate) struct EngineTitleOwner {
    store: Arc<Store>,
    /// Index of the store in the library.
    number: usize,
    core: CoreHandle,
    io: EngineBackgroundIo,
}

impl EngineTitleOwner {
    /// The store with this index in the library.
    pub(crate) fn new(number: usize, opened: &OpenStore, core: CoreHandle) -> Self {
        let io = EngineBackgroundIo::new(core.clone(), opened);
        Self { store: Arc::clone(&opened.store), number, core, io }
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
}
