//! Decisions on streams: [`bookings::evaluate`](crate::bookings::evaluate) with what it
//! needs to know of memory, and what an acceptance changes.
//!
//! ```text
//!   evaluate ── fits ─────────────────────────────────▶ Approval ─▶ book, or adopt
//!      │ memory is short
//!      └─ evaluate_without_readahead ── fits ─────────▶ Approval; some streams read again later
//!                                    └─ does not ─────▶ they keep what they hold; Shortfall
//! ```
//!
//! Where memory is short, reads far ahead of other streams are dropped first: their data stays in
//! the cache, and their reads are booked again.

use super::Streams;
use crate::bookings::Placement;
use crate::bookings::evaluate::{Accepted, Approval, Candidate, Shortfall, Terms, Unissued};
use crate::stream::StreamId;
use scheduler::{Demand, Shortage, Slack};
use units::Moment;

impl Streams {
    /// Whether a candidate fits on its disk and on the network; where losses must be survived, also
    /// after the loss of any one disk.
    pub(crate) fn evaluate(&mut self, candidate: &Candidate) -> Result<Approval, Shortfall> {
        if candidate.starts_from_memory() || candidate.gives_up.is_some() {
            return self.evaluate_with_feeds(candidate);
        }
        let terms = self.terms_for(candidate);
        self.evaluate_on(candidate.placement(), &candidate.demand, terms)
    }

    /// The terms of the configured policy for a candidate.
    pub(super) fn terms_for(&self, candidate: &Candidate) -> Terms {
        Terms { within_limit: candidate.is_new, ..self.bookings.terms() }
    }

    /// [`Streams::evaluate`] of streams that are booked by the caller.
    pub(crate) fn evaluate_demand(
        &mut self,
        placement: Placement,
        demand: &Demand,
    ) -> Result<Approval, Shortfall> {
        self.evaluate_on(placement, demand, self.bookings.terms())
    }

    fn evaluate_on(
        &mut self,
        placement: Placement,
        demand: &Demand,
        terms: Terms,
    ) -> Result<Approval, Shortfall> {
        let approval = self.evaluate_disks(placement, demand, terms)?;
        self.bookings.check_network(demand)?;
        Ok(approval)
    }

    /// Whether a demand fits on `disk` as long as no disk is lost. The network is not looked at.
    pub(super) fn evaluate_home(
        &mut self,
        disk: usize,
        demand: &Demand,
    ) -> Result<Approval, Shortfall> {
        let terms = Terms { survive_loss: false, ..self.bookings.terms() };
        self.evaluate_disks(Placement { disk, replica: None }, demand, terms)
    }

    /// Whether a demand fits on the disks, by the terms given, with all memory of the disk if need
    /// be.
    pub(super) fn evaluate_disks(
        &mut self,
        placement: Placement,
        demand: &Demand,
        terms: Terms,
    ) -> Result<Approval, Shortfall> {
        self.with_beginnings(placement.disk, |streams| {
            streams.evaluate_beside_beginnings(placement, demand, terms)
        })
    }

    /// [`Streams::evaluate_disks`] with the memory that streams may read into now.
    pub(super) fn evaluate_beside_beginnings(
        &mut self,
        placement: Placement,
        demand: &Demand,
        terms: Terms,
    ) -> Result<Approval, Shortfall> {
        let unissued = self.unissued(placement.disk, terms.survive_loss);
        self.bookings.evaluate(placement, demand, terms, &unissued)
    }

    /// Slots for which a refused demand cannot begin for certain, at least one. Dearer than the
    /// evaluation.
    pub(super) fn ruled_out(&mut self, candidate: &Candidate, refused: Shortage) -> u64 {
        let (disk, terms) = (candidate.disk(), self.terms_for(candidate));
        let unissued = self.unissued(disk, false);
        self.bookings.ruled_out(disk, &candidate.demand, refused, terms, &unissued)
    }

    // The reads of `disk`, or of all disks, that an evaluation takes for unread.
    fn unissued(&self, disk: usize, of_all: bool) -> Unissued {
        let of = |number: usize| {
            let looked_at = (of_all || number == disk) && self.bookings.refuses();
            // Only a disk that is read by plan has reads that are chosen and not in the device.
            if looked_at && self.bookings.plans(number) {
                self.droppable(number)
            } else {
                Vec::new()
            }
        };
        Unissued::new((0..self.bookings.disks.len()).map(of).collect())
    }

    /// Evaluates once more a candidate that memory is short for, with reads far ahead of other
    /// streams dropped. If it does not fit then either, those streams keep them.
    pub(crate) fn evaluate_without_readahead(
        &mut self,
        now: Moment,
        candidate: &Candidate,
        shortfall: Shortfall,
    ) -> Result<Approval, Shortfall> {
        let disk = candidate.disk();
        // Read-ahead that is dropped wins memory only, and each attempt costs an evaluation or two.
        if !shortfall.lacks_memory() || !self.bookings.disks[disk].may_drop_readahead() {
            return Err(shortfall);
        }
        let fits = self.drop_readahead_until(now, disk, |streams| streams.evaluate(candidate).ok());
        self.bookings.disks[disk].searched_memory(fits.is_some());
        fits.ok_or(shortfall)
    }

    /// Drops reads far ahead on `disk`, first a little, then nearly all, until `fits` approves. If
    /// it never does, they are restored.
    pub(super) fn drop_readahead_until(
        &mut self,
        now: Moment,
        disk: usize,
        fits: impl Fn(&mut Self) -> Option<Approval>,
    ) -> Option<Approval> {
        // What is due in the coming slot stays: it could not be read again in time.
        for keep in [FEW_SLOTS, KEEP_SLOTS, 1] {
            let dropped = self.drop_readahead(disk, self.bookings.slot() + keep);
            if dropped.is_empty() {
                continue;
            }
            let reads = dropped.iter().map(|(_, reads)| u64::from(*reads)).sum();
            self.bookings.disks[disk].has_dropped(reads);
            if let Some(approval) = fits(self) {
                return Some(approval);
            }
            self.restore_readahead(now, &dropped);
        }
        None
    }

    /// Makes an approval's premise true, that its `unchosen` reads are unread, and follows its plan
    /// from now on.
    pub(crate) fn adopt(&mut self, approval: Approval) {
        let Approval { disk, plan, slack, unchosen } = approval;
        // Where reads are counted, nothing is chosen ahead of its slot and no plan is followed.
        if !self.bookings.plans(disk) {
            return;
        }
        self.unchoose_all(disk, &unchosen);
        // Policies that count reads guarantee slots and no slack in time (`accounts`).
        let slack = match slack {
            Slack::Time(slack) => Some(slack),
            _ => None,
        };
        let now = self.bookings.now();
        self.bookings.disks[disk].follow(now, plan, slack);
        if let Some(slack) = slack {
            self.lower_guaranteed_slack(disk, slack);
        }
    }

    /// Books an accepted candidate: its streams are queued for reading. Returns their ids, for
    /// their session.
    pub(crate) fn book(&mut self, accepted: Accepted) -> Vec<StreamId> {
        let Accepted { candidate, approval } = accepted;
        let disk = approval.disk;
        if candidate.is_new {
            self.recent.note(candidate.layout.title);
        }
        self.adopt(approval);
        if let Some(follower) = candidate.gives_up {
            self.give_up_interval(self.bookings.now(), follower);
        }
        let from_memory = candidate.starts_from_memory();
        if !from_memory {
            self.bookings.book_demand(disk, &candidate.demand);
        }
        self.bookings.put_demand(candidate.demand);
        candidate.sent.into_iter().for_each(|sent| self.bookings.put_demand(sent));
        let mut ids = Vec::with_capacity(candidate.streams.len());
        for mut stream in candidate.streams {
            let id = self.next_id();
            ids.push(id);
            if from_memory {
                stream.guaranteed_slack = self.bookings.slack_of_plan(&stream);
                let resident: Vec<_> = stream.held().collect();
                self.follow(self.bookings.now(), id, stream);
                resident.into_iter().for_each(|(read, piece)| self.pin_resident(id, piece, read));
            } else {
                self.bookings.insert_new(id, &mut stream);
                self.streams.insert(id, stream);
                self.note_opening(id);
            }
        }
        ids
    }
}

/// Read-ahead that is kept first when memory is short: what is due within 4 s of 500 ms slots.
pub(super) const KEEP_SLOTS: u64 = 8;

/// Read-ahead that is kept at first: what is due within 32 s. The less is dropped, the more of
/// their lead those who have it keep.
const FEW_SLOTS: u64 = 8 * KEEP_SLOTS;
