//! Tells damage of stores in the log and to the webhook, and counts it.

use crate::damage::{DamagedPlace, FoundBy};
use crate::library::OpenTitle;
use crate::shared::Shared;
use serde_json::json;
use store::StoreError;

impl Shared {
    /// Counts a piece of damage in the store with this index, and tells it where `tells`.
    pub(crate) fn damage_found(
        &self,
        store: usize,
        by: FoundBy,
        (title, message): (Option<&str>, &str),
        tells: bool,
    ) {
        let opened = &self.content.stores[store];
        opened.damage.add(by);
        if tells {
            let store = opened.path.display().to_string();
            self.tell(
                "damage-found",
                || json!({ "store": store, "title": title, "message": message, "by": by.word() }),
            );
        }
    }

    /// A read for a viewer has found damage in the store with this index: counted and told once for
    /// each place, not for each viewer who comes to it.
    pub(crate) fn damage_played(&self, store: usize, title: &OpenTitle, place: DamagedPlace) {
        if !self.content.stores[store].damage.is_new(place) {
            return;
        }
        let DamagedPlace { track, start, .. } = place;
        let index = &title.whole.packaging.index().tracks[usize::from(track)];
        let damage = StoreError::of_damaged_data(title.name(), track, index, start).to_string();
        self.damage_found(store, FoundBy::Viewer, (Some(title.name()), &damage), true);
    }
}
