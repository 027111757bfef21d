//! Which titles are copied to which of several stores, and which copies are removed, so that each
//! title is there as often as is wanted. Pure: from lists of titles to a list of steps.
//!
//! ```text
//!   too few copies      copy to the staying store with the largest part free; where parts are
//!                       about equal, to the one with the fewest sessions
//!   a leaving store     its titles are copied to others, then removed from it
//!   uneven space        titles go from the fullest store to the emptiest
//! ```
//!
//! A store to which nothing can be written keeps what it has, which is read to make copies, and
//! counts as no copy: its disk may be about to fail. So does one whose disk is drained, to be taken
//! out. Titles of one name with different content are
//! not copies of each other, and nothing is done to them. A copy that is more than wanted stays
//! where it is. The steps are in such an order that no title ever has fewer copies than before, or
//! than wanted; each fits at its turn.

use std::collections::BTreeMap;

/// A store, as far as a plan depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryStore {
    /// Bytes of its data region.
    pub size: u64,
    /// Free bytes of it.
    pub free: u64,
    /// Bytes of a chunk, the allocation unit.
    pub chunk: u64,
    /// Sessions that are read from it now.
    pub sessions: u64,
    /// Whether all titles are to leave it.
    pub leaves: bool,
    /// Whether nothing more is written to it, because a write failed.
    pub fails_writes: bool,
    /// Whether its disk is drained: it is to be taken out, and its server writes no title to it.
    pub is_drained: bool,
    /// The titles in it.
    pub titles: Vec<LibraryTitle>,
}

/// A title of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryTitle {
    /// The name, unique in its store.
    pub name: String,
    /// The digest of its content: titles of one name and content are copies.
    pub content: String,
    /// Bytes of all tracks.
    pub bytes: u64,
    /// Number of tracks.
    pub tracks: usize,
}

/// What is wanted of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryGoal {
    /// In how many staying stores to which titles are written each title is to be.
    pub copies: usize,
    /// Whether the used parts of the stores are to be about equal.
    pub balance: bool,
}

/// One step. Stores are named by their index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryStep {
    /// Copy a title.
    Copy {
        /// The title.
        title: LibraryTitle,
        /// The stores that have it.
        from: Vec<usize>,
        /// The store that gets it.
        to: usize,
    },
    /// Remove a copy, of which others are left.
    Remove {
        /// The title.
        title: LibraryTitle,
        /// The store that loses it.
        from: usize,
        /// The stores with the copies that are left, those that are copied by the steps before
        /// included: they are verified first.
        left_in: Vec<usize>,
    },
}

/// A title for which not all can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TitleLeft {
    /// There is room for this many copies only, or there are no more stores.
    TooFew {
        /// The title's name.
        title: String,
        /// Copies in staying stores when the plan is done.
        copies: usize,
    },
    /// The stores have different titles of this name.
    Unlike {
        /// The title's name.
        title: String,
    },
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryPlan {
    /// The steps in their order.
    pub steps: Vec<LibraryStep>,
    /// Titles for which not all can be done, by name.
    pub left: Vec<TitleLeft>,
    /// Number of different titles.
    pub titles: usize,
}

impl LibraryPlan {
    /// Whether there is nothing to do and nothing left.
    pub fn is_done(&self) -> bool {
        self.steps.is_empty() && self.left.is_empty()
    }

    /// Bytes of tracks that are copied.
    pub fn bytes(&self) -> u64 {
        let bytes = self.steps.iter().map(|step| match step {
            LibraryStep::Copy { title, .. } => title.bytes,
            LibraryStep::Remove { .. } => 0,
        });
        bytes.sum()
    }

    /// The plan by which the stores come to the goal.
    pub fn new(stores: &[LibraryStore], goal: LibraryGoal) -> Self {
        let mut planner = Planner::new(stores);
        planner.make_copies(goal.copies);
        planner.empty_leaving(goal.copies);
        if goal.balance {
            planner.balance();
        }
        let titles = planner.titles.len() + planner.unlike.len();
        let unlike = planner.unlike.iter().cloned().map(|title| TitleLeft::Unlike { title });
        let few = planner.titles.iter().filter_map(|held| {
            let copies = planner.staying(held).count();
            let title = held.title.name.clone();
            (copies < goal.copies).then_some(TitleLeft::TooFew { title, copies })
        });
        let mut left: Vec<TitleLeft> = unlike.chain(few).collect();
        left.sort_by(|a, b| a.title().cmp(b.title()));
        Self { steps: planner.steps, left, titles }
    }
}

impl TitleLeft {
    /// The title's name.
    pub fn title(&self) -> &str {
        match self {
            Self::TooFew { title, .. } | Self::Unlike { title } => title,
        }
    }
}

/// A title, and the stores that have it after the steps so far.
struct PlannedTitle {
    title: LibraryTitle,
    stores: Vec<usize>,
}

/// The stores after the steps so far.
struct Planner<'a> {
    stores: &'a [LibraryStore],
    free: Vec<u64>,
    /// The titles with one content, the largest first: what is left over is filled by small ones.
    titles: Vec<PlannedTitle>,
    unlike: Vec<String>,
    steps: Vec<LibraryStep>,
}

impl<'a> Planner<'a> {
    fn new(stores: &'a [LibraryStore]) -> Self {
        let mut names: BTreeMap<&str, Vec<(usize, &LibraryTitle)>> = BTreeMap::new();
        for (number, store) in stores.iter().enumerate() {
            for title in &store.titles {
                names.entry(&title.name).or_default().push((number, title));
            }
        }
        let (mut titles, mut unlike) = (Vec::new(), Vec::new());
        for (name, copies) in names {
            let (_, first) = copies[0];
            if copies.iter().any(|(_, copy)| copy.content != first.content) {
                unlike.push(name.to_owned());
            } else {
                let stores = copies.iter().map(|(store, _)| *store).collect();
                titles.push(PlannedTitle { title: first.clone(), stores });
            }
        }
        titles.sort_by_key(|held| std::cmp::Reverse(held.title.bytes));
        let free = stores.iter().map(|store| store.free).collect();
        Self { stores, free, titles, unlike, steps: Vec::new() }
    }

    fn staying<'b>(&'b self, held: &'b PlannedTitle) -> impl Iterator<Item = usize> + 'b {
        held.stores.iter().copied().filter(|store| self.keeps(*store))
    }

    /// Whether what is in the store stays there, on a disk that is well as far as is known.
    fn keeps(&self, store: usize) -> bool {
        let store = &self.stores[store];
        !store.leaves && !store.fails_writes && !store.is_drained
    }

    fn make_copies(&mut self, copies: usize) {
        for number in 0..self.titles.len() {
            while self.staying(&self.titles[number]).count() < copies {
                let Some(to) = self.best_store(&self.titles[number]) else { break };
                self.copy(number, to);
            }
        }
    }

    /// Removes from leaving stores what is often enough in others.
    fn empty_leaving(&mut self, copies: usize) {
        for number in 0..self.titles.len() {
            let held = &self.titles[number];
            if self.staying(held).count() < copies.max(1) {
                continue;
            }
            let leaving = held.stores.iter().copied().filter(|store| {
                let store = &self.stores[*store];
                // A removal is a write.
                store.leaves && !store.fails_writes
            });
            for from in leaving.collect::<Vec<_>>() {
                self.remove(number, from);
            }
        }
    }

    /// Moves titles from the store with the smallest part free to that with the largest, as long as
    /// both come nearer to each other.
    fn balance(&mut self) {
        let staying: Vec<usize> =
            (0..self.stores.len()).filter(|store| self.keeps(*store)).collect();
        loop {
            let part = |store: &usize| self.part_free(*store);
            let by_part = |a: &&usize, b: &&usize| part(a).total_cmp(&part(b));
            let Some(&full) = staying.iter().min_by(by_part) else { break };
            let Some(&empty) = staying.iter().max_by(by_part) else { break };
            if self.part_free(empty) - self.part_free(full) <= EVEN {
                break;
            }
            // The largest title that does not make the emptier store the fuller one.
            let fits = |held: &PlannedTitle| {
                let takes = self.space(&held.title, empty);
                let movable = held.stores.contains(&full) && !held.stores.contains(&empty);
                let after = |store: usize, free: u64| share(free, self.stores[store].size);
                movable
                    && takes <= self.free[empty]
                    && after(empty, self.free[empty] - takes)
                        >= after(full, self.free[full] + held.title.bytes)
            };
            let Some(number) = self.titles.iter().position(fits) else { break };
            self.copy(number, empty);
            self.remove(number, full);
        }
    }

    /// The staying store without the title that has the most room for it.
    fn best_store(&self, held: &PlannedTitle) -> Option<usize> {
        let without = (0..self.stores.len()).filter(|store| {
            self.keeps(*store)
                && !held.stores.contains(store)
                && self.space(&held.title, *store) <= self.free[*store]
        });
        let most = without.clone().map(|store| self.part_free(store)).max_by(f64::total_cmp)?;
        let about_equal = without.filter(|store| self.part_free(*store) >= most - EVEN);
        about_equal.min_by(|a, b| {
            let sessions = |store: &usize| self.stores[*store].sessions;
            let by_part = self.part_free(*b).total_cmp(&self.part_free(*a));
            sessions(a).cmp(&sessions(b)).then(by_part)
        })
    }

    fn copy(&mut self, number: usize, to: usize) {
        let title = self.titles[number].title.clone();
        self.free[to] -= self.space(&title, to);
        let from = self.titles[number].stores.clone();
        self.titles[number].stores.push(to);
        self.steps.push(LibraryStep::Copy { title, from, to });
    }

    fn remove(&mut self, number: usize, from: usize) {
        let title = self.titles[number].title.clone();
        self.free[from] = (self.free[from] + title.bytes).min(self.stores[from].size);
        self.titles[number].stores.retain(|store| *store != from);
        let left_in = self.staying(&self.titles[number]).collect();
        self.steps.push(LibraryStep::Remove { title, from, left_in });
    }

    fn part_free(&self, store: usize) -> f64 {
        share(self.free[store], self.stores[store].size)
    }

    /// The most bytes that a title takes in a store, with its index of half a percent of the data.
    /// A removal frees at least the bytes of its tracks.
    fn space(&self, title: &LibraryTitle, store: usize) -> u64 {
        let chunk = self.stores[store].chunk.max(1);
        let index = (title.bytes / 200).next_multiple_of(chunk) + chunk;
        title.bytes.next_multiple_of(chunk) + title.tracks as u64 * chunk + index
    }
}

/// Parts of stores that differ by no more are about equal.
const EVEN: f64 = 0.05;

#[expect(clippy::cast_precision_loss, reason = "a share of a store")]
fn share(bytes: u64, size: u64) -> f64 {
    if size == 0 { 0.0 } else { bytes as f64 / size as f64 }
}

#[cfg(test)]
mod tests;
