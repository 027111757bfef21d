//! Who has a store, and lets others use it: a command by itself, or a server with its schedule.

use crate::{BackgroundIo, Store, StoreError, TitleId, TitleRecord, Unthrottled};
use media::Body;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use units::{BitRate, ParseQuantityError};

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

    /// Lets somebody write a title into the store, until the result is dropped.
    ///
    /// # Errors
    /// [`StoreError::Draining`]: the disk is to be taken out.
    fn begin_title(&self, _name: &str) -> Result<Box<dyn TitleLeave>, StoreError> {
        Ok(Box::new(()))
    }

    /// What reserves rates on the store's disk; `None` where nothing is scheduled.
    fn reservations(&self) -> Option<&dyn RateReservations> {
        None
    }
}

/// The leave of a store's owner to write a title, which counts as being written until it is
/// dropped.
pub trait TitleLeave: Send + Sync + fmt::Debug {
    /// The file that is to become the title waits for its user at this path of a mount: for the
    /// name that it is to have, or for its bytes. `None`: it waits no longer.
    fn waits(&self, path: Option<&str>);
}

/// The leave of an owner who does not count.
impl TitleLeave for () {
    fn waits(&self, _: Option<&str>) {}
}

/// Reserves rates for reads of titles' files.
pub trait RateReservations {
    /// Reserves a rate for reads of a title's file, from its beginning on. `replaces`: a
    /// reservation that is over if this one is accepted, and stays unchanged if not.
    ///
    /// # Errors
    /// [`ReserveError`] where nothing is reserved.
    fn reserve(
        &self,
        title: &TitleRecord,
        file: &Arc<Body>,
        rate: ReservedRate,
        replaces: Option<&dyn ReservedReader>,
    ) -> Result<Arc<dyn ReservedReader>, ReserveError>;
}

/// Reads of a title's file at a reserved rate; dropping it gives the reservation back. Threads may
/// share it: it has one position, to which reads near each other are put in order.
pub trait ReservedReader: fmt::Debug + Send + Sync {
    /// Passes a part of the file to `write`, in pieces and in order. A part elsewhere moves the
    /// reservation there, if it fits. Stored bytes are verified.
    ///
    /// # Errors
    /// [`ReservedReadError::NotServed`] if the part is to be read without the reservation; `write`
    /// may have got a beginning of it then. [`ReservedReadError::Write`] is that of `write`.
    fn read(
        &self,
        range: Range<u64>,
        write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), ReservedReadError>;

    /// The rate that was asked for.
    fn rate(&self) -> ReservedRate;

    /// Whether nothing is reserved any more: nothing was read for too long, or the server has ended
    /// the reservation.
    fn is_over(&self) -> bool;

    /// Gives the reservation back; reads are not served any more.
    fn give_back(&self);

    /// The number by which its owner knows it.
    fn number(&self) -> u64;
}

/// A rate at which a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedRate {
    /// As the title is played: the rate follows that of its media.
    Title,
    /// One rate everywhere in the file.
    Constant(BitRate),
}

impl FromStr for ReservedRate {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "title" => Ok(Self::Title),
            rate => rate.parse().map(Self::Constant),
        }
    }
}

/// `title`, or the rate in bit/s.
impl fmt::Display for ReservedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Title => f.write_str("title"),
            Self::Constant(rate) => write!(f, "{}", rate.0),
        }
    }
}

/// Why no rate is reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// Others have reserved what it needs, or the server is stopping; the reason.
    Refused(String),
    /// The file is none that is read by deadline; the reason.
    NotPossible(String),
}

/// Why a part of a file was not read at the reserved rate.
#[derive(Debug)]
pub enum ReservedReadError {
    /// The reservation does not serve it.
    NotServed,
    /// The receiver of the bytes failed.
    Write(StoreError),
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
