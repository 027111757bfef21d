//! How many streams a policy admits: viewers arrive, the disk reads, in books and
//! slots only.
//!
//! ```text
//!   each slot   by reads   minRead reads, then `arrivals` admission requests until one is refused
//!               by time    the requests first, then the sweeps of the plan
//!               in the end buffers whose time is up are released
//! ```
//!
//! The figure is that of a server that has filled up. A policy that charges more than a sweep takes
//! admits one more stream whenever the disk has got ahead by enough; on what was read ahead of
//! titles that end, more could be admitted for a while than the disk can transfer for. That is not
//! counted.
//!
//! What is read is decided by the dispatcher that the engine runs ([`Forecast`]), on a disk that
//! does what it guarantees and nothing more. There are no players, no seeks and no sharing of what
//! is in memory.

use crate::admission::{PolicyKind, Resource, Supply, Verdict};
use crate::books::DiskBooks;
use crate::budget::SEND_WINDOW;
use crate::demand::Demand;
use crate::disk_timings::DiskTimings;
use crate::dispatch::Forecast;
use crate::playout::{PlayoutClock, TrackPieces};
use crate::windows::WindowPlan;
use disk::Costs;
use std::time::Duration;
use units::{Moment, SlotIndex};

/// One disk, its viewers and one admission policy whose capacity is asked for.
#[derive(Clone, Copy, Debug)]
pub struct CapacitySim<'a> {
    /// The admission policy.
    pub policy: PolicyKind,
    /// Reads that the disk completes in any slot.
    pub min_read: u32,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Bytes of buffers.
    pub memory: u64,
    /// What else is known of the disk.
    pub timings: &'a DiskTimings,
    /// The scheduling period; not zero.
    pub slot: Duration,
    /// From admission until a stream's first piece is in memory.
    pub startup: Duration,
    /// The tracks of each viewer. After the last viewer the first comes again.
    pub viewers: &'a [Vec<TrackPieces<'a>>],
    /// Memory beside the schedule for each viewer: [`sending_reserve`](crate::sending_reserve).
    pub reserve: u64,
    /// Whether sockets are given one piece at a time where memory is short, as the engine does.
    pub narrows_sockets: bool,
    /// Admission requests in each slot.
    pub arrivals: u32,
    /// Slots without an admission after which the server is full.
    pub patience: u64,
    /// Slots after which the simulation ends even if more could be admitted.
    pub filling: u64,
}

/// What a server holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapacityResult {
    /// The most viewers at once; each may take several tracks.
    pub streams: u64,
    /// What was short when the last viewer was refused; `None` if none was.
    pub short_of: Option<Resource>,
    /// The most bytes of buffers in use, reserves included.
    pub memory: u64,
    /// Reads done after their slot: zero for a policy that guarantees.
    pub late: u64,
}

impl<'a> CapacitySim<'a> {
    /// A simulation in which viewers come at the pace at which a server fills: `most` streams, by
    /// transfer rate alone, come in half a minute, and the disk reads ahead meanwhile.
    #[must_use]
    pub fn filled_by(self, most: u64) -> Self {
        let slots = |time: Duration| time.as_nanos() / self.slot.as_nanos().max(1);
        let count = |slots: u128| u64::try_from(slots).unwrap_or(u64::MAX);
        let arrivals = (2 * u128::from(most)).div_ceil(slots(FILLING).max(1)).max(1);
        Self {
            arrivals: u32::try_from(arrivals).unwrap_or(u32::MAX),
            patience: count(slots(PATIENCE)),
            filling: count(slots(FILLING)),
            ..self
        }
    }

    /// Runs until the server is full, or the first viewer has seen all.
    pub fn run(&self) -> CapacityResult {
        let mut state = CapacityState::new(self);
        if self.viewers.iter().flatten().all(TrackPieces::is_empty) || self.slot.is_zero() {
            return state.result;
        }
        let by_time = self.policy.plans(self.timings);
        let mut last_admission = SlotIndex(0);
        for slot in (0..).map(SlotIndex) {
            let supply = self.supply(Moment::ZERO);
            // By count, a slot's batch is chosen at its start, before requests arrive. By time, an
            // accepted request replaces the plan, so requests come before the sweeps.
            if !by_time {
                state.disk.read_by_count(&supply);
            }
            if state.admit_arrivals(slot) {
                last_admission = slot;
            }
            if by_time {
                state.disk.read_by_plan(&supply);
            }
            let full = slot.0 - last_admission.0 >= self.patience || slot.0 >= self.filling;
            if full || state.disk.stream_ended {
                break;
            }
            state.disk.end_slot();
        }
        let Forecast { peak_memory, late, .. } = state.disk;
        CapacityResult { memory: peak_memory, late, ..state.result }
    }

    fn supply(&self, free_at: Moment) -> Supply<'a> {
        let Self { min_read, read_size, memory, timings, slot, .. } = *self;
        Supply { min_read, read_size, memory, slot, free_at, owed: 0, timings }
    }
}

/// Viewers of one title whose copies lie at different places of a disk that costs so much.
/// `places` has for each track the nanoseconds that the disk transfers for a piece of each copy; it
/// is empty where disk time is not counted: then there is one viewer. Where a transfer is too short
/// for reads to be sequential, none is, whatever the track says.
pub fn viewers_of_copies<'a>(
    tracks: &[TrackPieces<'a>],
    places: &'a [Vec<[u32; 1]>],
    costs: Option<&Costs>,
) -> Vec<Vec<TrackPieces<'a>>> {
    let shortest = costs.and_then(Costs::shortest_following);
    let long = |nanos: u32| shortest.is_some_and(|shortest| u64::from(nanos) >= shortest);
    let at = |curve: TrackPieces<'a>, transfer: &'a [u32; 1]| match long(transfer[0]) {
        true => TrackPieces { transfer, ..curve },
        false => TrackPieces { transfer, followed: &[], ..curve },
    };
    let copies = places.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let copy = |viewer: usize| {
        let of = |(number, curve): (usize, &TrackPieces<'a>)| {
            let places = places.get(number).map_or(&[][..], Vec::as_slice);
            places.get(viewer % places.len().max(1)).map_or(*curve, |transfer| at(*curve, transfer))
        };
        tracks.iter().enumerate().map(of).collect()
    };
    (0..copies).map(copy).collect()
}

struct CapacityState<'a> {
    sim: &'a CapacitySim<'a>,
    disk: Forecast<'a>,
    demand: Demand,
    // Bytes reserved for second pieces in the sockets of viewers.
    second_pieces: u64,
    // Viewers of one slot who are evaluated as one request: they ask at the same time, so that all
    // of them are admitted where their sum fits, and one evaluation is enough.
    together: u32,
    result: CapacityResult,
}

impl<'a> CapacityState<'a> {
    fn new(sim: &'a CapacitySim<'a>) -> Self {
        Self {
            sim,
            disk: Forecast::new(DiskBooks::default(), WindowPlan::default(), Moment::ZERO),
            demand: Demand::default(),
            second_pieces: 0,
            together: sim.arrivals,
            result: CapacityResult::default(),
        }
    }

    // Admits viewers until one is refused; says whether any was admitted.
    fn admit_arrivals(&mut self, slot: SlotIndex) -> bool {
        let sim = self.sim;
        let origin = slot.start(sim.slot);
        let timing = PlayoutClock {
            origin,
            startup: sim.startup,
            opens_after: Duration::ZERO,
            with_first_ms: 0,
            from_ms: 0,
            kept_from_ms: 0,
            kept_longer: 0,
            slot: sim.slot,
            early: 0,
        };
        let before = self.result.streams;
        let mut waiting = sim.arrivals;
        while waiting > 0 {
            let together = self.together.min(waiting);
            self.demand.begin(slot);
            for number in 0..together {
                for track in self.tracks(number) {
                    self.demand.add_track(timing.pieces(*track, 0));
                }
            }
            // An idle disk has been free for some time, but reading cannot begin in the past.
            let supply = sim.supply(self.disk.free_at().max(origin));
            let fits = match together {
                1 => self.fits(&supply),
                more => self.fits_with(&supply, sim.reserve * u64::from(more)),
            };
            match fits {
                Ok(plan) => {
                    self.admit(plan, timing, together);
                    waiting -= together;
                    self.together = (together * 2).min(sim.arrivals);
                }
                // Fewer of them may fit, or all with less in their sockets.
                Err(_) if together > 1 => self.together = together / 2,
                Err(resource) => {
                    // The next one waits in turn, so one refusal answers the rest.
                    self.result.short_of = Some(resource);
                    break;
                }
            }
        }
        self.result.streams > before
    }

    // Whether the demand of one viewer fits. Where memory is short, the sockets of the newcomer
    // are given one piece at a time, and then those of all. If it does not fit even so, theirs stay
    // as they are.
    fn fits(&mut self, supply: &Supply<'_>) -> Result<WindowPlan, Resource> {
        let fits = self.fits_beside(supply);
        let narrows = self.sim.narrows_sockets && self.second_pieces > 0;
        if !narrows || fits.as_ref().err() != Some(&Resource::Memory) {
            return fits;
        }
        let freed = std::mem::take(&mut self.second_pieces);
        self.disk.unreserve(freed);
        let fits = self.fits_beside(supply);
        if fits.is_err() {
            self.disk.reserve(freed);
            self.second_pieces = freed;
        }
        fits
    }

    fn fits_beside(&mut self, supply: &Supply<'_>) -> Result<WindowPlan, Resource> {
        let fits = self.fits_with(supply, self.sim.reserve);
        let is_short = fits.as_ref().err() == Some(&Resource::Memory);
        if self.sim.narrows_sockets && is_short {
            return self.fits_with(supply, self.sim.reserve / SEND_WINDOW);
        }
        fits
    }

    fn fits_with(&mut self, supply: &Supply<'_>, reserve: u64) -> Result<WindowPlan, Resource> {
        self.demand.reserve = reserve;
        match self.sim.policy.policy().verdict(self.disk.books(), supply, &self.demand) {
            Verdict::Admit { plan, .. } => Ok(plan),
            Verdict::Refuse(shortage) => Err(shortage.resource),
        }
    }

    // The tracks of the viewer with this number among those who come next.
    fn tracks(&self, number: u32) -> &'a [TrackPieces<'a>] {
        let viewer = usize::try_from(self.result.streams + u64::from(number)).unwrap_or(0);
        &self.sim.viewers[viewer % self.sim.viewers.len()]
    }

    fn admit(&mut self, plan: WindowPlan, timing: PlayoutClock, together: u32) {
        let Self { sim, disk, demand, .. } = self;
        disk.admit(plan, demand, sim.slot);
        self.second_pieces += demand.reserve - sim.reserve / SEND_WINDOW * u64::from(together);
        for number in 0..together {
            for track in self.tracks(number) {
                self.disk.add_stream(timing.pieces(*track, 0));
            }
        }
        self.result.streams += u64::from(together);
    }
}

/// The simulation ends when no viewer was admitted for this time: several pieces of video.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time in which viewers arrive: a fraction of a stream, so that read-ahead matters little.
const FILLING: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
