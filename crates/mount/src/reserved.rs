//! Rates that are reserved for reads of files: for a title by its extended attribute, or for each
//! file that is opened.
//!
//! ```text
//!   setxattr ──▶ reservation of the title ──taken by──▶ the handle that reads first
//!                  │ its close: another handle may take it       │
//!                  └ the last close, removexattr: given back     ▼
//!   an option ─▶ reservation of the handle ──────────▶ reads by deadline, else best effort
//! ```
//!
//! What is reserved, and whether it fits, is decided by the owner of the store.

use media::Body;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{
    RateReservations, ReserveError, ReservedRate, ReservedReader, TitleId, TitleOwner, TitleRecord,
};
use units::locked;

/// The reservations of a mount.
#[derive(Debug, Default)]
pub(crate) struct TitleReservations {
    titles: Mutex<HashMap<TitleId, TitleReservation>>,
    /// Held while a reservation is made, so that each replaces the one before.
    changing: Mutex<()>,
}

#[derive(Debug)]
struct TitleReservation {
    reader: Arc<dyn ReservedReader>,
    /// A handle reads by it.
    is_taken: bool,
}

/// The reservation that a handle reads by.
#[derive(Debug, Default)]
pub(crate) struct HandleReservation(Mutex<HandleState>);

#[derive(Debug, Default)]
struct HandleState {
    reader: Option<Arc<dyn ReservedReader>>,
    /// Whether the reader is that of the title, and not the handle's own.
    is_of_title: bool,
    /// When one of its own is asked for again.
    again_at: Option<Instant>,
}

/// Whether a reservation of a title may be there before another is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfReserved {
    /// Either way.
    Replace,
    /// There must be none (`XATTR_CREATE`).
    Refuse,
    /// There must be one (`XATTR_REPLACE`).
    Require,
}

/// Why the rate of a title is not changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotChanged {
    /// There is a reservation, and there must be none.
    Exists,
    /// There is no reservation.
    None,
    /// The owner of the store does not make one.
    Reserve(ReserveError),
}

impl TitleReservations {
    /// The rate that is reserved for a title.
    pub(crate) fn rate(&self, id: TitleId) -> Option<ReservedRate> {
        let titles = locked(&self.titles);
        titles.get(&id).filter(|it| !it.reader.is_over()).map(|it| it.reader.rate())
    }

    /// Reserves a rate for a title, in the place of the one before.
    pub(crate) fn set(
        &self,
        by: &dyn RateReservations,
        title: &TitleRecord,
        file: &Arc<Body>,
        rate: ReservedRate,
        present: IfReserved,
    ) -> Result<(), NotChanged> {
        let _changing = locked(&self.changing);
        let before = {
            let mut titles = locked(&self.titles);
            titles.retain(|_, it| !it.reader.is_over());
            titles.get(&title.id).map(|it| Arc::clone(&it.reader))
        };
        match (present, &before) {
            (IfReserved::Refuse, Some(_)) => return Err(NotChanged::Exists),
            (IfReserved::Require, None) => return Err(NotChanged::None),
            _ => {}
        }
        let reader =
            by.reserve(title, file, rate, before.as_deref()).map_err(NotChanged::Reserve)?;
        // A handle that reads by the one before finds that it is over, and takes this one.
        before.iter().for_each(|before| before.give_back());
        locked(&self.titles).insert(title.id, TitleReservation { reader, is_taken: false });
        Ok(())
    }

    /// Gives the reservation of a title back; says whether there was one.
    pub(crate) fn give_back(&self, id: TitleId) -> bool {
        let _changing = locked(&self.changing);
        let Some(gone) = locked(&self.titles).remove(&id) else { return false };
        let was_there = !gone.reader.is_over();
        gone.reader.give_back();
        was_there
    }

    /// What a handle of a title reads by now, if anything. `rate`: what is reserved for each
    /// handle.
    pub(crate) fn of_handle(
        &self,
        handle: &HandleReservation,
        owner: &dyn TitleOwner,
        title: &TitleRecord,
        file: &Arc<Body>,
        rate: Option<ReservedRate>,
    ) -> Option<Arc<dyn ReservedReader>> {
        let by = owner.reservations()?;
        // Held while one is made: it is made once.
        let mut handle = locked(&handle.0);
        if handle.reader.as_ref().is_some_and(|reader| reader.is_over()) {
            (handle.reader, handle.is_of_title) = (None, false);
        }
        if !handle.is_of_title
            && let Some(of_title) = self.take(title.id)
        {
            (handle.reader, handle.is_of_title) = (Some(of_title), true);
        }
        if handle.reader.is_none()
            && let Some(rate) = rate
            && handle.again_at.is_none_or(|at| at <= Instant::now())
        {
            match by.reserve(title, file, rate, None) {
                Ok(reader) => handle.reader = Some(reader),
                Err(_) => handle.again_at = Some(Instant::now() + REST),
            }
        }
        handle.reader.clone()
    }

    /// The reservation of a title, if there is one that no handle reads by.
    fn take(&self, id: TitleId) -> Option<Arc<dyn ReservedReader>> {
        let mut titles = locked(&self.titles);
        let found = titles.get_mut(&id).filter(|it| !it.is_taken && !it.reader.is_over())?;
        found.is_taken = true;
        Some(Arc::clone(&found.reader))
    }

    /// A handle of a title is closed. `is_last`: no other handle of it is open.
    pub(crate) fn closed(&self, id: TitleId, handle: &HandleReservation, is_last: bool) {
        let HandleState { reader, is_of_title, .. } = std::mem::take(&mut *locked(&handle.0));
        if is_last {
            self.give_back(id);
        }
        match reader {
            Some(reader) if is_of_title => {
                let mut titles = locked(&self.titles);
                let same = titles.get_mut(&id).filter(|it| Arc::ptr_eq(&it.reader, &reader));
                same.into_iter().for_each(|it| it.is_taken = false);
            }
            Some(own) => own.give_back(),
            None => {}
        }
    }
}

/// The time after which a rate that was not reserved for an open file is asked for again: viewers
/// may have ended, and an evaluation takes time of all sessions.
const REST: Duration = Duration::from_secs(10);
