//! Reads and writes on a real device, timed by the real clock.

use super::DiskAccess;
use super::procedure::{ReadTimer, RoundTimes, WriteBatch};
use crate::{BlockDevice, Completion, DeviceError, Pool, Queue};
use disk::TimedRead;
use std::any::Any;
use std::time::{Duration, Instant};
use units::{ByteCount, Reason};

/// Makes reads and writes on a real device and times them.
pub(super) struct DeviceTimer<'a> {
    device: &'a dyn BlockDevice,
    queue: Box<dyn Queue>,
    pool: Pool,
    turns: DiskAccess<'a>,
    start: Instant,
    done: Vec<Completion>,
}

impl<'a> DeviceTimer<'a> {
    pub(super) fn new(
        device: &'a dyn BlockDevice,
        queue: Box<dyn Queue>,
        pool: &Pool,
        turns: DiskAccess<'a>,
    ) -> Self {
        let (pool, start) = (pool.clone(), Instant::now());
        Self { device, queue, pool, turns, start, done: Vec::new() }
    }

    /// Restarts the clock.
    pub(super) fn restart(&mut self) {
        self.start = Instant::now();
    }

    fn turn(&self, bytes: u64) -> Result<Option<Box<dyn Any>>, DeviceError> {
        let DiskAccess::Shared { permit, .. } = self.turns else { return Ok(None) };
        permit(ByteCount(bytes)).map(Some).ok_or_else(|| {
            DeviceError::unusable("the device", "the calibration was ended before it was complete")
        })
    }

    /// The number of reads that one permit covers, of `left` remaining ones.
    fn at_once(&self, left: usize, size: u64) -> usize {
        match self.turns {
            DiskAccess::Exclusive => left,
            DiskAccess::Shared { turn, .. } => {
                let fit = usize::try_from((turn.0 / size.max(1)).max(1)).unwrap_or(usize::MAX);
                left.min(fit)
            }
        }
    }

    /// Reads all places without a pause.
    fn read(&mut self, places: &[u64], size: u64, depth: u32) -> Result<RoundTimes, DeviceError> {
        let size = usize::try_from(size).expect("reads fit in memory");
        let start = Instant::now();
        let mut round = RoundTimes::default();
        let (mut next, mut last_end) = (0, start);
        let mut asked = vec![start; places.len()];
        while next < places.len() || self.queue.in_flight() > 0 {
            while next < places.len() && self.queue.in_flight() < depth {
                // A server's pool may be in use; fewer reads at once still measure.
                let Some(buffer) = self.pool.take(size) else { break };
                asked[next] = Instant::now();
                self.queue.submit(next as u64, places[next], buffer)?;
                next += 1;
            }
            if self.queue.in_flight() == 0 {
                return Err(no_buffers(size));
            }
            self.queue.wait(PATIENCE, &mut self.done)?;
            let now = Instant::now();
            for completion in self.done.drain(..) {
                completion.result?;
                let index = usize::try_from(completion.tag).expect("an index");
                // A read that waited behind another one counts from that one's end, not from its
                // own start.
                let begun = asked[index].max(last_end);
                let alone = now.saturating_duration_since(begun);
                round.longest = round.longest.max(alone);
                round.ends.push(now - start);
                if index > 0 && places[index] == places[index - 1] + size as u64 {
                    round.following = round.following.max(alone);
                }
                // Completions of one wait share a moment: the driver reported them together.
                last_end = now;
            }
        }
        round.took = last_end - start;
        Ok(round)
    }
}

impl ReadTimer for DeviceTimer<'_> {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn round(&mut self, places: &[u64], size: u64, depth: u32) -> Result<RoundTimes, DeviceError> {
        let mut whole = RoundTimes::default();
        let mut rest = places;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.at_once(rest.len(), size));
            let turn = self.turn(now.len() as u64 * size)?;
            let part = self.read(now, size, depth)?;
            drop(turn);
            whole.ends.extend(part.ends.iter().map(|end| whole.took + *end));
            whole.took += part.took;
            whole.longest = whole.longest.max(part.longest);
            whole.following = whole.following.max(part.following);
            rest = later;
        }
        Ok(whole)
    }

    fn alone(&mut self, places: &[u64], size: u64) -> Result<Vec<TimedRead>, DeviceError> {
        let mut reads = Vec::with_capacity(places.len());
        let mut rest = places;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.at_once(rest.len(), size).min(ALONE_A_TURN));
            let turn = self.turn(now.len() as u64 * size)?;
            // Other users of the disk may have moved the arm since the last permit.
            let mut after = None;
            for place in now {
                let time = self.read(&[*place], size, 1)?.took;
                reads.push(TimedRead { offset: *place, size, time, after });
                after = Some((*place, *place + size));
            }
            drop(turn);
            rest = later;
        }
        Ok(reads)
    }

    fn round_with_writes(
        &mut self,
        places: &[u64],
        size: u64,
        depth: u32,
        writes: &WriteBatch,
    ) -> Result<RoundTimes, DeviceError> {
        // One permit for all: the measurement is of reads and writes that compete.
        let turn = self.turn((places.len() + writes.places.len()) as u64 * size)?;
        let device = self.device;
        let start = Instant::now();
        let round = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let from = noise(writes.size);
                writes.places.iter().try_for_each(|place| device.write_at(*place, &from))?;
                device.flush()
            });
            let round = self.read(places, size, depth);
            // Before the reads' result, so that an error of either is seen after both have ended.
            writer.join().expect("writing does not panic")?;
            round
        })?;
        drop(turn);
        Ok(RoundTimes { took: start.elapsed(), ..round })
    }
}

/// Incompressible bytes.
fn noise(size: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(usize::try_from(size / 8).expect("writes fit in memory")).flatten().collect()
}

fn no_buffers(size: usize) -> DeviceError {
    let size = ByteCount(size as u64);
    let reason = Reason::new(format!("no buffer of {size} is free"), "give it more memory");
    DeviceError::unusable("the buffer pool", reason)
}

/// The longest wait for the queue; longer stalls only repeat the wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// The number of single reads per permit, which take about as long as the bytes below.
const ALONE_A_TURN: usize = 4;
