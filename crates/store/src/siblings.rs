//! A set of stores that a server has, and the changes that a store missed while it was away.
//!
//! ```text
//!   keep_siblings   each store keeps uuid and path of the others, its siblings
//!   a title is removed or renamed, no store of the set that is there has a copy left as it was,
//!   and a sibling is away ──▶ a MissedChange, in the same journal entry
//!   catch_up        the sibling is back: its copy is removed or renamed, the note is dropped
//! ```
//!
//! The note names the title by its name, its content and the time of the change: a title that was
//! taken in anew under the name is another one. A store that is left out of a
//! configuration on purpose is no sibling, and neither is a backup that no server has beside the
//! others: what they have is never removed for a change that they did not see.
//!
//! An open store is away while its disk is lost. Of the others a server knows; a command that has
//! one store alone looks for its siblings at their paths, and notes nothing where it cannot tell.

use crate::format::record::{MAX_PATH, MAX_SIBLINGS, Record};
use crate::open_store::StoreState;
use crate::{MissedChange, Sibling, Store, StoreError, TitleId, TitleRecord};
use device::DeviceError;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// What became of a change that a store missed.
#[derive(Debug)]
pub struct CatchUpStep {
    /// Index of the store.
    pub store: usize,
    /// The change.
    pub change: MissedChange,
    /// Whether it was made.
    pub result: Result<(), StoreError>,
}

impl Store {
    /// The other stores of the set.
    pub fn siblings(&self) -> Vec<Sibling> {
        self.state().catalogue.siblings().to_vec()
    }

    /// The changes that siblings missed, the oldest first.
    pub fn missed_changes(&self) -> Vec<MissedChange> {
        self.state().catalogue.missed().iter().cloned().collect()
    }

    /// Whether a title of another store, with this identity, was removed or renamed while that
    /// store was away.
    pub fn has_changed(&self, store: Uuid, title: &TitleRecord) -> bool {
        let state = self.state();
        let mut missed = state.catalogue.missed().iter();
        missed.any(|change| change.store == store && change.is_of(title))
    }

    /// The siblings that are away, and may have a copy of the title of this name. None where one
    /// that is there has a copy: the title stays, and a change of one copy is no change of others.
    pub(crate) fn missing_for(&self, name: &str) -> Vec<Uuid> {
        let (title, siblings) = {
            let state = self.state();
            let Some(title) = state.catalogue.title(name) else { return Vec::new() };
            (title.clone(), state.catalogue.siblings().to_vec())
        };
        let away = siblings.iter().filter(|sibling| self.misses(sibling, &title));
        let away: Vec<Uuid> = away.map(|sibling| sibling.uuid).collect();
        // Looked for only then: a command that has one store alone opens the others for it.
        if !away.is_empty() && siblings.iter().any(|sibling| self.has_copy_in(sibling, &title)) {
            return Vec::new();
        }
        away
    }

    /// Whether a sibling is away, and may have a copy of a title.
    fn misses(&self, sibling: &Sibling, title: &TitleRecord) -> bool {
        match self.open_beside(sibling) {
            Some(Some(store)) => store.is_suspended() && has_copy(&store, title),
            Some(None) => !sibling.has_none_as_young(title),
            None => place_of(sibling) == SiblingPlace::Nowhere && !sibling.has_none_as_young(title),
        }
    }

    /// Whether a sibling that is there has a copy of a title, or nobody can tell.
    fn has_copy_in(&self, sibling: &Sibling, title: &TitleRecord) -> bool {
        match self.open_beside(sibling) {
            Some(Some(store)) => !store.is_suspended() && has_copy(&store, title),
            Some(None) => false,
            None => match place_of(sibling) {
                SiblingPlace::Nowhere => false,
                SiblingPlace::Unknown => true,
                // Where another process has it, nobody can tell.
                SiblingPlace::AtItsPath => Store::open_read_only(Path::new(&sibling.path))
                    .map_or(true, |store| has_copy(&store, title)),
            },
        }
    }

    /// A sibling among the stores that a server has; the outer value is `None` for a command that
    /// has one store alone.
    fn open_beside(&self, sibling: &Sibling) -> Option<Option<Arc<Store>>> {
        let mut open = self.beside.get()?.iter().filter_map(Weak::upgrade);
        Some(open.find(|store| store.identity() == sibling.uuid))
    }

    /// The records by which the store notes that these siblings missed a change of a title. Those
    /// beyond a bound replace the oldest notes, and a catalogue that is full gets none.
    pub(crate) fn notes(
        &self,
        state: &StoreState,
        missing: &[Uuid],
        title: &TitleRecord,
        new_name: Option<&str>,
    ) -> Vec<Record> {
        let note = |store: &Uuid| MissedChange {
            store: *store,
            at: now(),
            content: title.content().to_string(),
            name: title.name.clone(),
            new_name: new_name.map(str::to_owned),
        };
        let notes: Vec<Record> = missing.iter().map(note).map(Record::Missed).collect();
        let (slot, missed) = (&self.layout().checkpoints[0], state.catalogue.missed());
        let added: u64 = notes.iter().map(Record::encoded_len).sum();
        let held: u64 = missed.iter().map(|it| Record::Missed(it.clone()).encoded_len()).sum();
        let most = (slot.end - slot.start) / SHARE_OF_NOTES;
        let mut over = (held + added).saturating_sub(most);
        let mut records = Vec::new();
        let mut oldest = missed.iter();
        while over > 0
            && let Some(old) = oldest.next()
        {
            over = over.saturating_sub(Record::Missed(old.clone()).encoded_len());
            records.push(Record::CaughtUp(old.store, 1));
        }
        if over > 0 || state.catalogue.checkpoint_bytes() + added > slot.end - slot.start {
            return Vec::new();
        }
        records.extend(notes);
        records
    }
}

/// Looks for a sibling at its path, for a command that has one store alone.
fn place_of(sibling: &Sibling) -> SiblingPlace {
    if sibling.path.is_empty() {
        return SiblingPlace::Unknown;
    }
    match Store::peek(Path::new(&sibling.path)) {
        Ok(found) if found.uuid == sibling.uuid => SiblingPlace::AtItsPath,
        Err(StoreError::Device(DeviceError::Open { source, .. }))
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            SiblingPlace::Unknown
        }
        // Nothing is there, it cannot be read, or it is another store.
        _ => SiblingPlace::Nowhere,
    }
}

/// Where a sibling is that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SiblingPlace {
    AtItsPath,
    Nowhere,
    Unknown,
}

fn has_copy(store: &Store, title: &TitleRecord) -> bool {
    store.title(&title.name).is_some_and(|copy| copy.content() == title.content())
}

/// Lets the open stores of a set know each other, from now on until they are closed, and keep who
/// belongs to the set. `is_whole`: no store of the set is away; otherwise those that are stay
/// known.
///
/// # Errors
/// Those of the first store that could not keep it; the others have.
pub fn keep_siblings(stores: &[(&Path, &Arc<Store>)], is_whole: bool) -> Result<(), StoreError> {
    let mut first = Ok(());
    for (_, store) in stores {
        let others = || stores.iter().filter(|(_, other)| other.identity() != store.identity());
        let present = others().map(|(path, other)| Sibling {
            uuid: other.identity(),
            path: kept_path(path),
            away_since: 0,
        });
        let mut siblings: Vec<Sibling> = present.collect();
        let before = store.siblings();
        if !is_whole {
            let is_here = |old: &Sibling| siblings.iter().any(|it| it.uuid == old.uuid);
            let away = before.iter().filter(|old| !is_here(old)).cloned();
            let away = away.map(|old| match old.away_since {
                0 => Sibling { away_since: now(), ..old },
                _ => old,
            });
            let away: Vec<Sibling> = away.collect();
            siblings.extend(away);
        }
        siblings.truncate(MAX_SIBLINGS);
        siblings.sort_by_key(|sibling| sibling.uuid);
        // A store that is in a set already stays in it: a process opens it once.
        let _ = store.beside.set(others().map(|(_, other)| Arc::downgrade(other)).collect());
        if siblings != before {
            first = first.and(store.change(|_| Ok(Record::Siblings(siblings)), |_| {}));
        }
    }
    first
}

fn kept_path(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_default();
    let text = absolute.to_str().filter(|text| text.len() <= MAX_PATH);
    text.unwrap_or_default().to_owned()
}

/// What a store of these is to change, because it missed it, by the notes of the others, in the
/// order in which it was done there.
pub fn missed_by(store: &Store, stores: &[&Store]) -> Vec<MissedChange> {
    let others = stores.iter().filter(|other| other.identity() != store.identity());
    let notes = others.clone().flat_map(|other| other.missed_changes());
    let mut missed: Vec<MissedChange> =
        notes.filter(|change| change.store == store.identity()).collect();
    missed.sort_by_key(|change| change.at);
    let mut renamed: BTreeMap<String, TitleRecord> = BTreeMap::new();
    missed.retain(|change| {
        let title = renamed.remove(&change.name).or_else(|| store.title(&change.name));
        let Some(title) = title.filter(|title| change.is_of(title)) else { return false };
        match &change.new_name {
            // Where it was taken in again under the name, this one is a copy of it.
            None => !others.clone().any(|other| has_copy(other, &title)),
            Some(new) => {
                renamed.insert(new.clone(), TitleRecord { name: new.clone(), ..title });
                true
            }
        }
    });
    missed
}

/// Makes the changes that these stores missed, and drops the notes of them. `free`: called with the
/// index of a store and a title that was taken out of its catalogue. Returns what there was to do;
/// where a store fails, its changes stay noted.
pub fn catch_up(stores: &[&Store], free: &dyn Fn(usize, TitleId)) -> Vec<CatchUpStep> {
    let mut all = Vec::new();
    for (number, store) in stores.iter().enumerate() {
        if store.refuse_if_stopped().is_err() || store.is_read_only() {
            continue;
        }
        let mut is_done = true;
        for change in missed_by(store, stores) {
            let result = match &change.new_name {
                None => store.hide_copy(&change.name).map(|hidden| free(number, hidden.id)),
                Some(new) => store.rename_copy(&change.name, new),
            };
            // A name that another title has is no reason to try again.
            is_done &= matches!(result, Ok(()) | Err(StoreError::Exists { .. }));
            all.push(CatchUpStep { store: number, change, result });
        }
        if is_done {
            for other in stores {
                // A note that stays is looked at again, and changes nothing then.
                let _ = other.forget_missed(store.identity());
            }
        }
    }
    all
}

impl Store {
    fn forget_missed(&self, store: Uuid) -> Result<(), StoreError> {
        let of_it = |state: &StoreState| {
            let missed = state.catalogue.missed().iter();
            u16::try_from(missed.filter(|change| change.store == store).count())
        };
        if of_it(&self.state()) == Ok(0) {
            return Ok(());
        }
        let count = |state: &StoreState| of_it(state).unwrap_or(u16::MAX);
        self.change(|state| Ok(Record::CaughtUp(store, count(state))), |_| {})
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The part of a checkpoint that notes of missed changes may take: one in so many.
const SHARE_OF_NOTES: u64 = 8;

#[cfg(test)]
mod tests;
