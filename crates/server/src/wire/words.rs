//! The closed sets of words in the JSON of the admin API, for its schemas.
//!
//! Fields are strings, so that a client takes words that it does not know yet.

use engine::{CutShort, Priority, RefusalCause};
use scheduler::Resource;

/// The priorities of viewers.
pub(super) fn priorities() -> [&'static str; 3] {
    Priority::ALL.map(Priority::word)
}

/// What may be short.
pub(crate) fn resources() -> [&'static str; 3] {
    [Resource::Disk, Resource::Memory, Resource::Network].map(Resource::word)
}

/// What may be short, or nothing.
pub(crate) fn resources_or_none() -> Vec<Option<&'static str>> {
    or_none(resources())
}

/// The causes of refusals.
pub(crate) fn causes() -> [&'static str; 8] {
    RefusalCause::ALL.map(RefusalCause::word)
}

/// The causes of refusals, or none.
pub(super) fn causes_or_none() -> Vec<Option<&'static str>> {
    or_none(causes())
}

/// The causes of refusals and of ends, or none.
pub(super) fn reasons_or_none() -> Vec<Option<&'static str>> {
    let ends = [CutShort::DiskLost, CutShort::Priority, CutShort::Overload].map(CutShort::word);
    let new = ends.into_iter().filter(|word| !causes().contains(word));
    or_none(causes().into_iter().chain(new))
}

/// The stages of an ingest over the API.
pub(super) fn stages() -> Vec<&'static str> {
    std::iter::once(super::RECEIVING).chain(store::INGEST_STAGES).collect()
}

fn or_none(words: impl IntoIterator<Item = &'static str>) -> Vec<Option<&'static str>> {
    words.into_iter().map(Some).chain([None]).collect()
}
