//! Who has a store, and lets others use it: a command by itself, or a server with its schedule.

use crate::{BackgroundIo, Store, TitleId, Unthrottled};
use std::fmt;
use std::sync::Arc;

/// A store together with the permission to use its disk.
pub trait StoreAccess {
    /// The store.
    fn store(&self) -> &Store;

    /// Schedules reads and writes of the disk.
    fn background_io(&self) -> &dyn BackgroundIo;
}

/// The owner of a store, for work that goes on beside others: it may read a title that is removed.
pub trait TitleOwner: StoreAccess + fmt::Debug + Send + Sync {
    /// Frees the space of a hidden title as soon as nobody else reads it.
    fn free_hidden(&self, id: TitleId);
}

impl StoreAccess for (&Store, &dyn BackgroundIo) {
    fn store(&self) -> &Store {
        self.0
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        self.1
    }
}

impl StoreAccess for Arc<dyn TitleOwner> {
    fn store(&self) -> &Store {
        self.as_ref().store()
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        self.as_ref().background_io()
    }
}

/// The owner of a store that nobody else uses.
#[derive(Debug)]
pub struct SoleOwner(pub Store);

impl StoreAccess for SoleOwner {
    fn store(&self) -> &Store {
        &self.0
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        &Unthrottled
    }
}

impl TitleOwner for SoleOwner {
    fn free_hidden(&self, id: TitleId) {
        self.0.release(id);
    }
}
