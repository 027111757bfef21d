//! A disk in virtual time: a modelled disk with its own clock that never waits, so that years of
//! reads take seconds and equal requests always take equal times.
//!
//! It is the [`BlockDevice`] for code that reads and writes bytes (calibration, the meter). The
//! simulated disks of `simulator` and `studies` hold no bytes and share only [`disk::Head`] with
//! it.
//!
//! ```text
//!   ask(offset, len) ──▶ script of faults ──▶ model's head ──▶ done at that moment
//!                                                               │
//!   wait, read_at ◀── the clock is put there, bytes from memory ┘
//! ```
//!
//! A write-back cache, where the model has one, accepts writes immediately and is emptied while the
//! disk is idle or by a flush, in the model's time. Its content is never lost: there is no power
//! cut.
//!
//! Requests are served in the order of submission, without reordering in the drive. Time advances
//! only by waiting: a blocking read or write sets the clock to its end, [`Queue::wait`] to the next
//! completion or its time limit, [`SimulatedDisk::advance_to`] to any moment. To get the time of a
//! transfer without its bytes, call [`SimulatedDisk::ask`] or [`SimulatedDisk::ask_write`], which
//! touch no memory.
//!
//! Faults are scripted ([`FaultRule`](crate::FaultRule)). Their lost time is virtual and delays all
//! later requests, as in a drive that repeats reads of a sector. Written pages are kept in memory;
//! places that were never written read as zeros. All clones are one disk; threads that share it
//! share its clock, so that only a single thread always gives the same times.

use crate::block::ByteSpan;
use crate::faulty::{FaultRule, FaultScript, failed, spoil};
use crate::{
    Access, BlockDevice, Completion, DeviceError, DeviceKind, Direction, Fault, Geometry, Pool,
    Queue, Transfer,
};
use disk::{DiskModel, Head};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{ByteCount, Moment, locked, nanos};

/// A modelled disk in virtual time, with its own clock that never waits.
#[derive(Clone)]
pub struct SimulatedDisk {
    shared: Arc<SimulatedShared>,
}

struct SimulatedShared {
    model: DiskModel,
    geometry: Geometry,
    script: FaultScript,
    /// The disk's time, in nanoseconds: read more often than anything happens, so without a lock.
    clock: AtomicU64,
    state: Mutex<SimulatedState>,
}

struct SimulatedState {
    head: Head,
    /// The end of a fault that took time: no service begins before.
    held_until: Moment,
    pages: BTreeMap<u64, Box<[u8]>>,
}

/// The completion time of a request, and its fault.
struct SimulatedOutcome {
    done: Moment,
    fault: Option<Fault>,
}

impl SimulatedDisk {
    /// A disk of this model, all zeros, with the arm at its first byte at time zero.
    pub fn new(model: &DiskModel) -> Self {
        let geometry = Geometry {
            size: ByteCount(units::align_down(model.capacity().0, BLOCK)),
            block: 4096,
            rotational: model.rotational(),
            kind: DeviceKind::Memory,
        };
        let state =
            SimulatedState { head: model.head(), held_until: Moment::ZERO, pages: BTreeMap::new() };
        let (model, state) = (model.clone(), Mutex::new(state));
        Self {
            shared: Arc::new(SimulatedShared {
                model,
                geometry,
                script: FaultScript::default(),
                clock: AtomicU64::new(0),
                state,
            }),
        }
    }

    /// The model of its times.
    pub fn model(&self) -> &DiskModel {
        &self.shared.model
    }

    /// The disk's time.
    pub fn now(&self) -> Moment {
        Moment(self.shared.clock.load(Ordering::Relaxed))
    }

    /// Advances the clock to `moment`; a past moment changes nothing.
    pub fn advance_to(&self, moment: Moment) {
        self.shared.clock.fetch_max(moment.0, Ordering::Relaxed);
    }

    /// Adds a rule to the script of faults; it applies from the next request on.
    pub fn add(&self, rule: FaultRule) {
        self.shared.script.add(rule);
    }

    /// Submits a transfer of which only the time matters, and returns its completion time. The
    /// place need not be whole blocks; bytes of a write are not kept.
    pub fn ask(&self, direction: Direction, offset: u64, len: u64) -> Result<Moment, DeviceError> {
        let access = Access::from(direction);
        let place = ByteSpan::new(offset, usize::try_from(len).unwrap_or(usize::MAX));
        if offset.checked_add(len).is_none_or(|end| end > self.shared.geometry.size.0) {
            return Err(failed(NAME, access, place, libc::EINVAL));
        }
        let answer = self.begin(access, place);
        match (answer.fault, direction) {
            (Some(Fault::Errno(errno)), _) => Err(failed(NAME, access, place, errno)),
            (Some(Fault::Torn { .. }), Direction::Write) => {
                Err(failed(NAME, access, place, libc::EIO))
            }
            (Some(Fault::Short { kept }), Direction::Read) if kept < place.len => {
                Err(DeviceError::ends_early(direction, Path::new(NAME), place, kept))
            }
            _ => Ok(answer.done),
        }
    }

    /// Serves a request within the disk (a flush has no place) that is submitted now.
    fn begin(&self, access: Access, place: ByteSpan) -> SimulatedOutcome {
        let fault = self.shared.script.next(access, place);
        let mut state = locked(&self.shared.state);
        let SimulatedState { head, held_until, .. } = &mut *state;
        let now = self.now();
        if let Some(Fault::Errno(_)) = fault {
            // The model's head does not move for a request that the controller refuses.
            return SimulatedOutcome { done: now, fault };
        }
        let asked = now.max(*held_until);
        let mut done = match access {
            Access::Flush => head.flush(asked),
            _ => head.serve(asked, place.offset, place.len as u64, access == Access::Write).finish,
        };
        if let Some(Fault::Stall(time)) = fault {
            done = done + time;
            // A drive that tries a sector again serves nobody else meanwhile.
            *held_until = done;
        }
        SimulatedOutcome { done, fault }
    }

    fn check(&self, direction: Direction, place: ByteSpan) -> Result<(), DeviceError> {
        self.shared.geometry.check(direction, Path::new(NAME), place)
    }

    /// Performs a read with this fault.
    fn read(&self, fault: Option<Fault>, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        if let Some(Fault::Errno(errno)) = fault {
            return Err(failed(NAME, Access::Read, ByteSpan::new(offset, into.len()), errno));
        }
        locked(&self.shared.state).read(offset, into);
        spoil(fault, Path::new(NAME), offset, into)
    }

    /// Performs a write with this fault.
    fn write(&self, fault: Option<Fault>, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        let (kept, errno) = match fault {
            Some(Fault::Errno(errno)) => (0, errno),
            Some(Fault::Torn { kept }) => (kept.min(from.len()), libc::EIO),
            _ => (from.len(), 0),
        };
        locked(&self.shared.state).write(offset, &from[..kept]);
        if errno == 0 {
            Ok(())
        } else {
            Err(failed(NAME, Access::Write, ByteSpan::new(offset, from.len()), errno))
        }
    }
}

impl SimulatedState {
    fn read(&self, offset: u64, into: &mut [u8]) {
        let pages = (offset / BLOCK..).zip(into.chunks_mut(PAGE));
        for (number, part) in pages {
            match self.pages.get(&number) {
                Some(page) => part.copy_from_slice(page),
                None => part.fill(0),
            }
        }
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        for (number, part) in (offset / BLOCK..).zip(from.chunks(PAGE)) {
            let page = self.pages.entry(number).or_insert_with(|| vec![0; PAGE].into());
            page[..part.len()].copy_from_slice(part);
        }
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimulatedDisk({} at {:?})", self.shared.model.name(), self.now())
    }
}

impl BlockDevice for SimulatedDisk {
    fn geometry(&self) -> Geometry {
        self.shared.geometry.clone()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let place = ByteSpan::new(offset, into.len());
        self.check(Direction::Read, place)?;
        let answer = self.begin(Access::Read, place);
        self.advance_to(answer.done);
        self.read(answer.fault, offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        let place = ByteSpan::new(offset, from.len());
        self.check(Direction::Write, place)?;
        let answer = self.begin(Access::Write, place);
        self.advance_to(answer.done);
        self.write(answer.fault, offset, from)
    }

    /// Takes the time that the model's write-back cache needs to empty itself, if it has one.
    fn flush(&self) -> Result<(), DeviceError> {
        let answer = self.begin(Access::Flush, ByteSpan::NONE);
        self.advance_to(answer.done);
        match answer.fault {
            Some(Fault::Errno(errno)) => Err(failed(NAME, Access::Flush, ByteSpan::NONE, errno)),
            _ => Ok(()),
        }
    }

    fn queue(&self, _depth: u32, _pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        Ok(Box::new(SimulatedQueue { disk: self.clone(), asked: 0, under_way: BTreeMap::new() }))
    }
}

/// Transfers in flight, by completion time and order of submission.
struct SimulatedQueue {
    disk: SimulatedDisk,
    asked: u64,
    under_way: BTreeMap<(Moment, u64), Completion>,
}

impl Queue for SimulatedQueue {
    /// The bytes are transferred now, and time advances later.
    fn start(&mut self, mut transfer: Transfer) -> Result<(), DeviceError> {
        let (disk, place) = (&self.disk, transfer.place());
        let mut done = disk.now();
        let result = disk.check(transfer.direction, place).and_then(|()| {
            let answer = disk.begin(transfer.direction.into(), place);
            done = answer.done;
            match transfer.direction {
                Direction::Read => disk.read(answer.fault, place.offset, &mut transfer.buffer),
                Direction::Write => disk.write(answer.fault, place.offset, &transfer.buffer),
            }
        });
        // The number makes the key unique and keeps the order of transfers that end together.
        self.under_way.insert((done, self.asked), transfer.ended(result));
        self.asked += 1;
        Ok(())
    }

    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let Some(((next, _), _)) = self.under_way.first_key_value() else { return Ok(()) };
        let patience = nanos(at_most.max(POLL));
        let limit = Moment(self.disk.now().0.saturating_add(patience));
        // Only to the first end: the caller may submit more before the next one.
        self.disk.advance_to(limit.min(*next));
        let now = self.disk.now();
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= now
        {
            done.push(entry.remove());
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        u32::try_from(self.under_way.len()).unwrap_or(u32::MAX)
    }

    fn method(&self) -> String {
        format!("simulated {}", self.disk.model().name())
    }
}

/// The time of a look without waiting, so that a polling caller makes progress.
const POLL: Duration = Duration::from_micros(1);

/// The name in error messages.
const NAME: &str = "(simulated)";

/// The block size, which is the largest, and the page in which written bytes are kept.
const PAGE: usize = 4096;
const BLOCK: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> SimulatedDisk {
        SimulatedDisk::new(&DiskModel::preset("st39183w").unwrap())
    }

    fn rule(area: std::ops::Range<u64>, fault: Fault) -> FaultRule {
        FaultRule { access: Access::Read, area, times: 1, fault }
    }

    #[test]
    fn a_year_of_reads_takes_the_models_time_and_no_real_time() {
        let (disk, mut done) = (disk(), Moment::ZERO);
        let day = Duration::from_secs(86_400);
        for number in 0..365u64 {
            disk.advance_to(Moment::ZERO + day * u32::try_from(number).unwrap());
            done = disk.ask(Direction::Read, number * (20 << 20), 1 << 20).unwrap();
            disk.advance_to(done);
        }
        assert_eq!(disk.now(), done);
        assert!(done.since(Moment::ZERO) > day * 364 && done.since(Moment::ZERO) < day * 365);
    }

    #[test]
    fn bytes_and_times_do_not_depend_on_the_interface() {
        let (by_queue, by_call, by_ask) = (disk(), disk(), disk());
        let pool = Pool::new(ByteCount::mib(8), ByteCount::MIB);
        let mut queue = by_queue.queue(1, &pool).unwrap();
        for place in [7 << 20, 0, 1 << 30, (1 << 30) + (1 << 20)] {
            queue.submit(place, place, pool.take(1 << 20).unwrap()).unwrap();
            let mut done = Vec::new();
            queue.wait(Duration::from_nanos(1), &mut done).unwrap();
            assert!(done.is_empty(), "no disk is that fast");
            queue.wait(Duration::MAX, &mut done).unwrap();
            assert_eq!((done.len(), done[0].tag, queue.in_flight()), (1, place, 0));
            let mut bytes = vec![0; 1 << 20];
            by_call.read_at(place, &mut bytes).unwrap();
            by_ask.advance_to(by_ask.ask(Direction::Read, place, 1 << 20).unwrap());
            assert_eq!(by_queue.now(), by_call.now());
            assert_eq!(by_queue.now(), by_ask.now());
        }
    }

    #[test]
    fn faults_cost_virtual_time() {
        let (well, ill) = (disk(), disk());
        let (second, mut page) = (Duration::from_secs(1), vec![0; 4096]);
        ill.add(rule(0..1, Fault::Stall(second)));
        ill.add(rule(4096..4097, Fault::BitRot { at: 4099, bits: 0x81 }));
        ill.add(rule(8192..8193, Fault::Errno(libc::EIO)));
        let both = [&well, &ill].map(|disk| disk.ask(Direction::Read, 0, 4096).unwrap());
        assert_eq!(both[1], both[0] + second);
        let both = [&well, &ill].map(|disk| disk.ask(Direction::Read, 1 << 30, 4096).unwrap());
        assert!(both[1] > both[0], "what waits behind a stall is late too");
        ill.read_at(4096, &mut page).unwrap();
        assert_eq!(page[3], 0x81);
        let said = ill.read_at(8192, &mut page).unwrap_err().to_string();
        assert!(said.contains("reading 4096 bytes at 8192 of (simulated)"), "{said}");
        ill.read_at(8192, &mut page).unwrap();
        assert!(ill.ask(Direction::Read, ill.geometry().size.0, 1).is_err(), "beyond the end");
    }

    #[test]
    fn a_latency_tail_has_the_scripted_weight() {
        let disk = disk();
        let longer = Duration::from_secs(1);
        disk.add(FaultRule {
            times: u32::MAX,
            ..rule(0..u64::MAX, Fault::Tail { one_in: 10, longer })
        });
        let took = (0..1000u64).map(|number| {
            let before = disk.now();
            disk.advance_to(disk.ask(Direction::Read, number << 20, 4096).unwrap());
            disk.now().since(before) > longer
        });
        assert_eq!(took.filter(|slow| *slow).count(), 100);
    }

    #[test]
    fn a_torn_write_leaves_the_bytes_that_had_arrived() {
        let disk = disk();
        let torn = FaultRule {
            access: Access::Write,
            area: 0..1 << 20,
            times: 1,
            fault: Fault::Torn { kept: 6000 },
        };
        disk.add(torn);
        assert!(disk.write_at(0, &[7; 8192]).is_err());
        let mut read = vec![1; 8192];
        disk.read_at(0, &mut read).unwrap();
        assert!(read[..6000].iter().all(|byte| *byte == 7));
        assert!(read[6000..].iter().all(|byte| *byte == 0));
    }
}
