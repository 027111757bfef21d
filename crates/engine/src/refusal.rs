//! Refusals: why a request does not fit, and when it would.
//!
//! ```text
//!   a shortfall ──▶ cause   alone on the disk, as the disk is now     fits ─▶ Sessions
//!                           alone on the disk, as it was calibrated   fits ─▶ SlowDisk
//!                           neither, but at another start of the slot ─▶ Sessions, if any
//!                           none of these                                       ─▶ Title
//!                           only beside the loss of a disk it does not     ─▶ Title, or DiskLost
//!                           nothing is booked, and the disk is busy        ─▶ Background
//!               ──▶ time    Sessions   the earliest start (`streams::look_ahead`); where none was
//!                                      found, the end of the next reservation in the way
//!                           SlowDisk   when the guard eases next
//!                           Title      never, where that is certain (`streams::alone`)
//! ```
//!
//! A refusal is true on an empty server, too: there nobody is named as the one who is in the way,
//! and no time is named at which the same request is refused again.

use super::bookings::evaluate::{Candidate, FailoverShortfall, Shortfall};
use super::departure::GiveWay;
use super::stream::Stream;
use super::streams::Rejected;
use super::{AdmitRequest, Engine, FillFor, Priority, Refusal, RefusalCause, Resource, RetryAfter};
use scheduler::{EASE_SLOTS, Shortage};
use std::time::Duration;
use units::Moment;

impl Engine {
    /// The refusal of a request of which no offer fits. The last offer is the smallest, so its
    /// start is the earliest that can be named.
    pub(super) fn refusal_of_all(
        &mut self,
        now: Moment,
        max_wait: Duration,
        mut rejected: Vec<Rejected>,
    ) -> Refusal {
        let last = rejected.pop().expect("a shortage is one of a candidate");
        let others: Vec<Candidate> = rejected.into_iter().map(|other| other.candidate).collect();
        let refusal = self.refusal(now, last.candidate, last.shortfall, max_wait, &others);
        for other in others {
            self.streams.bookings.put_demand(other.demand);
        }
        refusal
    }

    /// The refusal of a candidate, whose viewer waits for its start for at most `max_wait`.
    /// `others`: the other candidates of the request.
    pub(super) fn refusal(
        &mut self,
        now: Moment,
        mut candidate: Candidate,
        shortfall: Shortfall,
        max_wait: Duration,
        others: &[Candidate],
    ) -> Refusal {
        let resource = shortfall.shortage.resource;
        let mut cause = self.streams.cause(&candidate, resource);
        let (mut never, mut waiting_helps) = (false, false);
        if cause == RefusalCause::Title {
            let all = || [&candidate].into_iter().chain(others);
            let ever: Vec<_> = all().map(|each| self.streams.fits_ever(each, max_wait)).collect();
            never = ever.iter().all(|fits| *fits == Some(false));
            let mut fits_later_one =
                |each: &Candidate| self.streams.fits_ever(each, A_LONG_WAIT) == Some(true);
            waiting_helps = never && max_wait < A_LONG_WAIT && all().any(&mut fits_later_one);
            // It is this moment of the slot at which it does not fit alone.
            if ever.contains(&Some(true)) && self.streams.has_sessions() {
                cause = RefusalCause::Sessions;
            }
        }
        let retry = match cause {
            RefusalCause::Sessions | RefusalCause::Background => {
                match self.streams.earliest_start(&mut candidate) {
                    Some(retry) => retry,
                    None => self.next_release(now, &candidate, resource),
                }
            }
            RefusalCause::SlowDisk => RetryAfter::Estimated(self.config.slot * EASE_SLOTS),
            // Certain only if no candidate would ever fit.
            RefusalCause::Title if never => RetryAfter::Never,
            _ => RetryAfter::Unknown,
        };
        let detail = self.describe(now, shortfall);
        self.streams.bookings.put_demand(candidate.demand);
        Refusal { cause, resource: Some(resource), retry, waiting_helps, detail }
    }

    // The shortage in numbers.
    fn describe(&mut self, now: Moment, shortfall: Shortfall) -> String {
        let Shortage { resource, slot, missing } = shortfall.shortage;
        let when = slot.next().start(self.config.slot).since(now).as_secs_f64();
        let what = match resource {
            Resource::Disk => format!("{missing} reads too many for the disk"),
            // Policies differ in what is missing: reads, or bytes.
            Resource::Memory => "the buffers are full".to_owned(),
            Resource::Network => format!("{missing} bytes too many for the network"),
        };
        match shortfall.failover {
            None => format!("{what}, {when:.1} s from now"),
            Some(FailoverShortfall { lost, short }) => {
                self.streams.accounts.counters.refused_for_loss += 1;
                format!("if disk {lost} were lost: {what}, disk {short}, {when:.1} s from now")
            }
        }
    }

    // When the next reservation that is in the way ends, as far as that is known: when its title
    // has been played, or when it may be given to another.
    fn next_release(
        &mut self,
        now: Moment,
        candidate: &Candidate,
        resource: Resource,
    ) -> RetryAfter {
        let (disk, anywhere) = (candidate.disk(), resource == Resource::Network);
        let known = self.streams.bookings.disks[disk].next_release[usize::from(anywhere)];
        // Once for each slot: every session is looked at.
        let next = known.unwrap_or_else(|| {
            let who = GiveWay::for_shortfalls([(candidate.placement(), resource)]);
            let ends = self.sessions.iter().filter(|(id, session)| who.includes(**id, session));
            let ends = ends.flat_map(|(_, session)| {
                let played = session.streams.iter().filter_map(|id| {
                    let stream = self.streams.get(*id)?;
                    let last = stream.end.checked_sub(1)?;
                    let release = stream.release_clock().release_slot(&stream.curve(), last);
                    Some(release.next().start(self.config.slot))
                });
                let revocable = self.revocable_from(session);
                [played.max(), revocable].into_iter().flatten()
            });
            ends.filter(|end| *end > now).min()
        });
        self.streams.bookings.disks[disk].next_release[usize::from(anywhere)] = Some(next);
        match next.filter(|end| *end > now) {
            Some(end) => RetryAfter::Estimated(end.since(now)),
            None => RetryAfter::Unknown,
        }
    }

    /// The refusal of a request for a reason that has nothing to do with what is reserved.
    pub(super) fn precheck(&self, request: &AdmitRequest) -> Option<Refusal> {
        let refuse = |cause, resource, retry, detail: String| {
            Some(Refusal { cause, resource, retry, waiting_helps: false, detail })
        };
        let (server, unknown) = (RefusalCause::Server, RetryAfter::Unknown);
        if !self.admitting {
            return refuse(server, None, unknown, "the server is stopping".to_owned());
        }
        if self.streams.titles.is_withdrawn(request.layout.title) {
            return refuse(server, None, unknown, "the title is being removed".to_owned());
        }
        if self.streams.bookings.disk_index(request.layout.disk).is_none() {
            let detail = format!("the server has no disk {}", request.layout.disk.0);
            return refuse(server, None, unknown, detail);
        }
        let mut copies = std::iter::once(&request.layout).chain(&request.copies);
        if !copies.any(|layout| self.streams.bookings.is_live(layout)) {
            let detail = "all disks with a copy of the title are lost".to_owned();
            return refuse(RefusalCause::DiskLost, Some(Resource::Disk), unknown, detail);
        }
        if self.sessions.len() >= MAX_SESSIONS {
            // What is short is the memory of the sessions' own state, which no booking counts.
            let detail = format!("there are {MAX_SESSIONS} sessions, as many as there can be");
            return refuse(server, Some(Resource::Memory), unknown, detail);
        }
        None
    }

    /// The refusal of a fill beside as many of its kind as there may be. One of them has all its
    /// bytes in memory by the time that is named, and mostly much earlier: a file is due as it is
    /// played, and caches take it as fast as they get it.
    pub(super) fn refusal_of_fill(&self, now: Moment, fill: FillFor) -> Refusal {
        let fills = self.sessions.values().filter(|session| session.fill == Some(fill));
        let read_by = fills.map(|session| {
            let streams = session.streams.iter().map(|id| &self.streams[id]);
            let last = |stream: &Stream| stream.deadline(stream.end.saturating_sub(1));
            streams.map(last).max().unwrap_or(now)
        });
        let first = read_by.min().unwrap_or(now);
        Refusal {
            cause: RefusalCause::Fills,
            resource: None,
            retry: RetryAfter::Estimated(
                first.since(now).min(LONGEST_FILL_RETRY).max(self.config.slot),
            ),
            waiting_helps: false,
            detail: format!("there are {} fills, as many as there may be", self.fills.of(fill)),
        }
    }

    /// The refusal of a request that names tracks which this server can serve to nobody.
    pub(super) fn refusal_of_unusable(detail: String) -> Refusal {
        let retry = RetryAfter::Never;
        Refusal { cause: RefusalCause::Title, resource: None, retry, waiting_helps: false, detail }
    }

    /// Counts a refused request of this priority.
    pub(super) fn count_refusal(&mut self, priority: Priority, refusal: &Refusal) {
        let counters = &mut self.streams.accounts.counters;
        counters.refused.count(refusal);
        counters.refused_by_priority[priority as usize] += 1;
    }
}

/// Sessions of one engine. Each takes a few kilobytes beside its buffers.
const MAX_SESSIONS: usize = 100_000;

/// After this long one of several fills has mostly ended.
const LONGEST_FILL_RETRY: Duration = Duration::from_secs(5);

/// The wait for which it is tried whether it is the wait that a title lacks: what players bear.
const A_LONG_WAIT: Duration = Duration::from_secs(10);
