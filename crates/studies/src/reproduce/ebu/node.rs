//! A storage node with clients behind a switch, as far as EBU TECH 3362 describes its two.
//!
//! ```text
//!   clients: ten machines, a link each ─┐
//!                                       ├─ switch ── the node's link ── memory: pages, read ahead,
//!   client k on machine k mod 10        ┘                               room for writes
//!                                                                         │
//!                                                                       RAID ── disks
//! ```
//!
//! - **Reads.** A cache hit costs network time only. Sequential reads cause read-ahead of as many
//!   bytes as the run has already, at most [`Build::read_ahead`]. (The first block of a run causes
//!   no read-ahead; servers that begin sooner lose more by random access.)
//! - **Writes.** A write is complete when it is in memory, or on the disks if there is no memory. A
//!   sequential run is written to the disks as soon as it fills a stripe, and its tail when the
//!   client moves elsewhere. With [`Landing::InPlace`] it is written to its place, and a partial
//!   stripe is read first. With [`Landing::Gathered`] whole stripes are written to free space:
//!   their pages move, and a sequential read of the file is no longer sequential on the disks.
//! - **Opening** a file takes three round trips (lookup, attributes, access: section 3.2), whose
//!   answers queue behind data. The simulated latency, as the paper defines it, has no other part.
//!
//! Not modelled: TCP, packets, flow control, processors, priorities among requests, the file
//! system's own blocks. The model runs in virtual time and is deterministic.

use super::array::{Array, Raid};
use super::memory::{PAGE, Pages, WriteBuffer};
use device::DeviceError;
use disk::DiskModel;
use meter::operations::{Handle, IoCompletion, IoRequest, OperationKind, Port};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, grown, index};

/// What a node is made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Build {
    pub(super) disk: DiskModel,
    pub(super) raid: Raid,
    /// Where writes land.
    pub(super) landing: Landing,
    /// Bytes that are read ahead of a run at most.
    pub(super) read_ahead: u64,
    /// Bytes of pages that stay in memory; 0: none.
    pub(super) cache: u64,
    /// Bytes of writes that are on their way at most; 0: each write waits for the disks.
    pub(super) write_room: u64,
    /// Between node and switch, each way.
    pub(super) link: BitRate,
    /// Between a client's machine and the switch, each way.
    pub(super) client_link: BitRate,
    /// From asking to the beginning of an answer, where nothing is to be fetched.
    pub(super) round_trip: Duration,
    /// Bytes of the largest request. A larger block is requested in parts, each as soon as the one
    /// before it is complete; `None`: all of it at once.
    pub(super) largest: Option<u64>,
}

/// Where writes land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landing {
    /// Where the file has its place.
    InPlace,
    /// Gathered; the file is put together again behind the scenes, at no cost.
    Gathered,
    /// Gathered, and that is all.
    Scattered,
}

/// Clients' machines.
const MACHINES: usize = 10;

pub(super) struct Node {
    build: Build,
    clock: Moment,
    array: Array,
    pages: Pages,
    room: WriteBuffer,
    /// Bytes of a file, in whole stripes.
    each: u64,
    files: u64,
    /// Where each page of all files is, one file after another; empty if none ever moves.
    places: Vec<u64>,
    /// Where the next gathered write goes.
    end: u64,
    /// What has been read ahead for each client.
    runs: Vec<Ahead>,
    /// The end of the run that each client writes, less than a stripe.
    waiting: Vec<Option<(u32, Range<u64>)>>,
    out: Line,
    into: Line,
    machines_out: Vec<Line>,
    machines_in: Vec<Line>,
    asked: u64,
    /// Reads whose bytes are on their way from the disks.
    fetching: BTreeMap<(Moment, u64), Answer>,
    /// Answers on their way to their clients, and writes: what arrives when.
    under_way: BTreeMap<(Moment, u64), Answer>,
}

/// A part of a client's block on its way.
#[derive(Clone, Copy, Debug)]
struct Answer {
    tag: u64,
    client: u32,
    bytes: u64,
    open: Duration,
    /// What remains of the block; nothing is left of the last part.
    rest: IoRequest,
}

/// One way of a link: when it is free.
#[derive(Clone, Copy, Debug)]
struct Line {
    rate: BitRate,
    free: Moment,
}

/// What has been read ahead for a client.
#[derive(Clone, Debug, Default)]
struct Ahead {
    file: u32,
    next: u64,
    /// Bytes of the run so far.
    run: u64,
    until: u64,
    /// Where each part ends, and when it is there.
    parts: VecDeque<(u64, Moment)>,
}

impl Line {
    /// When so many bytes are over, the first of which are there at `ready`.
    fn send(&mut self, ready: Moment, bytes: u64) -> Moment {
        self.free = self.free.max(ready) + takes(self.rate, bytes);
        self.free
    }
}

fn takes(rate: BitRate, bytes: u64) -> Duration {
    // Eight bits per byte, 10^9 ns per second. In 128 bits, because 2.3 GB would overflow 64.
    let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate.0.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl Node {
    /// With files of so many bytes on it.
    pub(super) fn new(build: &Build, files: u32, each: ByteCount) -> Self {
        let line = |rate| Line { rate, free: Moment::ZERO };
        let array = Array::new(build.raid, &build.disk);
        let each = each.0.next_multiple_of(build.raid.stripe());
        let files = u64::from(files);
        // Gathered writes go to the free half, and start there again when it is full.
        assert!(files * each * 2 < array.capacity(), "room for files, and as much for what moves");
        // A stripe is whole pages, and so is a file.
        let places = match build.landing {
            Landing::Scattered => (0..files * each / PAGE).map(|page| page * PAGE).collect(),
            Landing::InPlace | Landing::Gathered => Vec::new(),
        };
        Self {
            clock: Moment::ZERO,
            array,
            pages: Pages::new(build.cache),
            room: WriteBuffer::new(build.write_room),
            each,
            files,
            places,
            end: files * each,
            runs: Vec::new(),
            waiting: Vec::new(),
            out: line(build.link),
            into: line(build.link),
            machines_out: vec![line(build.client_link); MACHINES],
            machines_in: vec![line(build.client_link); MACHINES],
            asked: 0,
            fetching: BTreeMap::new(),
            under_way: BTreeMap::new(),
            build: build.clone(),
        }
    }

    /// As after so much has been written to places of each file, in runs of a transfer.
    pub(super) fn age(&mut self, writes: u64, run: u64, seed: u64) {
        let mut chance = fastrand::Rng::with_seed(seed);
        for number in 0..writes {
            let file = u32::try_from(number % self.files).expect("a few files");
            let from = chance.u64(..self.each - run);
            self.land(self.clock, file, from..from + 1 + chance.u64(..run), false);
        }
    }

    /// All of a file is in memory.
    pub(super) fn warm(&mut self, file: u32) {
        self.pages.keep(file, 0, self.each);
    }

    /// Requests the next part of a block, after `delay`; `open` is what the block's opening took.
    fn ask(&mut self, client: u32, block: IoRequest, delay: Duration, open: Duration) {
        let len = self.build.largest.map_or(block.len, |largest| block.len.min(largest));
        let request = IoRequest { len, ..block };
        let rest = IoRequest { offset: block.offset + len, len: block.len - len, ..block };
        let answer = Answer { tag: block.tag, client, bytes: len, open, rest };
        match block.kind {
            OperationKind::Read => {
                let ready = self.read(client, &request) + delay;
                self.fetching.insert((ready, self.asked), answer);
            }
            OperationKind::Write => {
                let over = self.write(client, &request) + delay;
                self.under_way.insert((over, self.asked), answer);
            }
        }
        // Part of both keys: answers that are ready at the same moment stay in the order of their
        // requests.
        self.asked += 1;
    }

    /// When what is asked for is in memory.
    fn read(&mut self, client: u32, request: &IoRequest) -> Moment {
        let (file, from, end) = (request.file, request.offset, request.offset + request.len);
        let mut ahead = std::mem::take(grown(&mut self.runs, index(client)));
        // A client without a run has an entry of zeros, which must not look like one at offset
        // zero.
        let goes_on = ahead.file == file && ahead.next == from && ahead.run > 0;
        if !goes_on {
            ahead = Ahead { file, until: from, ..Ahead::default() };
        }
        let mut ready = self.clock;
        if !self.pages.holds(file, from, end) {
            let part = ahead.parts.iter().find(|(until, _)| *until >= end.min(ahead.until));
            if from < ahead.until {
                // Bytes that are being read ahead are ready when their part is.
                ready = part.map_or(ready, |(_, there)| *there);
            }
            let missing = from.max(ahead.until)..end;
            if !missing.is_empty() {
                ready = ready.max(self.fetch(file, missing));
            }
            ahead.until = ahead.until.max(end);
            let window = ahead.run.min(self.build.read_ahead);
            let wanted = (end + window).min(self.each);
            // A window at a time, when half of the last one is used up.
            if wanted > ahead.until && ahead.until - end < window.div_ceil(2) {
                let there = self.fetch(file, ahead.until..wanted);
                ahead.until = wanted;
                ahead.parts.push_back((wanted, there));
            }
            self.pages.keep(file, from, end);
        }
        while ahead.parts.front().is_some_and(|(until, _)| *until <= end) {
            ahead.parts.pop_front();
        }
        (ahead.next, ahead.run) = (end, ahead.run + request.len);
        self.runs[index(client)] = ahead;
        ready.max(self.clock + self.build.round_trip)
    }

    /// When it is over for the client.
    fn write(&mut self, client: u32, request: &IoRequest) -> Moment {
        let (file, from) = (request.file, request.offset);
        let here = self.machines_out[machine(client)].send(self.clock, request.len);
        // The one line begins as soon as the other does: packet by packet.
        let there = self.into.send(self.clock, request.len).max(here);
        self.pages.keep(file, from, from + request.len);
        if self.build.write_room == 0 {
            return self.land(there, file, from..from + request.len, true) + self.build.round_trip;
        }
        let mut room = self.clock;
        for (file, range) in self.joined(client, file, from..from + request.len) {
            let bytes = range.end - range.start;
            let gone = self.land(self.clock, file, range, true);
            room = room.max(self.room.take(self.clock, bytes, gone.max(there)));
        }
        there.max(room) + self.build.round_trip
    }

    /// What leaves memory now that this is there: whole stripes of a run, and the rest of one that
    /// is over.
    fn joined(&mut self, client: u32, file: u32, range: Range<u64>) -> Vec<(u32, Range<u64>)> {
        let mut leaves = Vec::new();
        let waiting = grown(&mut self.waiting, index(client));
        let mut waits = match waiting.take() {
            Some((same, before)) if same == file && before.end == range.start => {
                before.start..range.end
            }
            other => {
                // The client went elsewhere: the rest of its last run cannot become a whole stripe.
                leaves.extend(other);
                range
            }
        };
        let whole = waits.end / self.build.raid.stripe() * self.build.raid.stripe();
        if whole > waits.start {
            leaves.push((file, waits.start..whole));
            waits.start = whole;
        }
        if !waits.is_empty() {
            *waiting = Some((file, waits));
        }
        leaves
    }

    /// Puts a write on the disks, or only has it moved; when it is there.
    fn land(&mut self, now: Moment, file: u32, range: Range<u64>, timed: bool) -> Moment {
        let stripe = self.build.raid.stripe();
        let place = u64::from(file) * self.each;
        if self.build.landing == Landing::InPlace {
            let range = place + range.start..place + range.end;
            return if timed { self.array.write(now, range) } else { now };
        }
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        let bytes = (pages.end - pages.start) * PAGE;
        if self.end + bytes > self.array.capacity() {
            // What was there first has been freed by what was written since.
            self.end = self.files * self.each;
        }
        let to = self.end;
        self.end += bytes;
        if self.build.landing == Landing::Scattered {
            for (number, page) in (0u64..).zip(pages) {
                let page = self.page(file, page);
                self.places[page] = to + number * PAGE;
            }
        }
        // Stripes fill up whole, whoever's the pages are.
        let whole = to / stripe * stripe..(to + bytes) / stripe * stripe;
        if timed && !whole.is_empty() { self.array.write(now, whole) } else { now }
    }

    /// The number of a page of a file among those of all files.
    fn page(&self, file: u32, page: u64) -> usize {
        usize::try_from(u64::from(file) * (self.each / PAGE) + page).expect("checked when made")
    }

    /// When these bytes of a file are in memory.
    fn fetch(&mut self, file: u32, range: Range<u64>) -> Moment {
        let place = u64::from(file) * self.each;
        let mut done = self.clock;
        let mut run: Option<Range<u64>> = None;
        let mut at = range.start;
        while at < range.end {
            let page = at / PAGE;
            let end = ((page + 1) * PAGE).min(range.end);
            let moved = self.places.get(self.page(file, page));
            let to = moved.map_or(place + page * PAGE, |moved| *moved);
            let part = to + at % PAGE..to + at % PAGE + (end - at);
            run = Some(match run {
                Some(run) if run.end == part.start => run.start..part.end,
                // A page that was moved ends a contiguous read.
                Some(run) => {
                    done = done.max(self.array.read(self.clock, run));
                    part
                }
                None => part,
            });
            at = end;
        }
        run.map_or(done, |run| done.max(self.array.read(self.clock, run)))
    }

    /// When what is ready now has arrived at a client.
    fn sent(&mut self, client: u32, bytes: u64) -> Moment {
        let left = self.out.send(self.clock, bytes);
        let arrived = self.machines_in[machine(client)].send(self.clock, bytes);
        // The last piece goes over the one line after it has left the other.
        arrived.max(left + takes(self.build.client_link, bytes.min(PAGE)))
    }

    /// Three answers of negligible length, queued behind data.
    fn opened(&mut self, client: u32) -> Duration {
        let now = self.clock;
        let line = self.out.free.max(self.machines_in[machine(client)].free).since(now);
        self.build.round_trip * ROUND_TRIPS + line
    }
}

/// Round trips to open a file: lookup, attributes, access.
const ROUND_TRIPS: u32 = 3;

fn machine(client: u32) -> usize {
    usize::try_from(client).expect("32 bits fit") % MACHINES
}

impl Port for Node {
    fn now(&self) -> Moment {
        self.clock
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        let Handle::Own { client, open, .. } = request.handle else {
            unreachable!("transfers have handles of their own")
        };
        let open = if open { self.opened(client) } else { Duration::ZERO };
        self.ask(client, request, open, open);
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let first = |queue: &BTreeMap<(Moment, u64), Answer>| {
            queue.first_key_value().map_or(Moment::MAX, |((moment, _), _)| *moment)
        };
        // In order of time: an answer that is ready takes the link before a later completion is
        // reported.
        while first(&self.fetching) <= until.min(first(&self.under_way))
            && let Some(((ready, number), answer)) = self.fetching.pop_first()
        {
            self.clock = self.clock.max(ready);
            let over = self.sent(answer.client, answer.bytes);
            self.under_way.insert((over, number), answer);
        }
        let then = until.min(first(&self.under_way));
        // With nothing under way time stays where it is.
        if then != Moment::MAX {
            self.clock = self.clock.max(then);
        }
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.clock
        {
            let ((at, _), Answer { tag, client, open, rest, .. }) = entry.remove_entry();
            if rest.len > 0 {
                self.ask(client, rest, Duration::ZERO, open);
            } else {
                done.push(IoCompletion { open, ..IoCompletion::new(tag, at, Ok(())) });
            }
        }
        Ok(())
    }

    fn method(&self) -> String {
        "simulated node".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FILE, approach_1, approach_2, mix, row, step, total};
    use super::*;
    use meter::transfers::TransferMix;

    #[test]
    fn it_is_reading_ahead_that_random_access_loses() {
        let gained = |read_ahead| {
            let [runs, places] = [0, 100].map(|random_percent| {
                let mut node = Node::new(&Build { read_ahead, ..approach_2() }, 10, FILE);
                let blocks = vec![64 << 10];
                let mix = TransferMix { random_percent, blocks, ..mix("ebu3362-read", 10, true) };
                total(&step(&mut node, &mix, 10, Duration::from_secs(3)))
            });
            runs / places
        };
        let (with, without) = (gained(8 << 20), gained(0));
        assert!(with > 2.0 && with > without * 1.5, "{with:.2} times, without {without:.2}");
    }

    #[test]
    fn a_link_carries_what_it_carries() {
        for (gigabits, most) in [(1, 125.0), (10, 1250.0)] {
            let build = Build { link: BitRate(gigabits * 1_000_000_000), ..approach_1() };
            let mut node = Node::new(&build, 1, FILE);
            node.warm(0);
            let mix = mix("ebu3362-read", 1, false);
            let rate = total(&step(&mut node, &mix, 10, Duration::from_secs(2)));
            assert!(rate <= most && rate > most * 0.85, "{rate} MB/s of {most}");
        }
    }

    #[test]
    fn gathered_writes_move_pages_and_reading_in_order_takes_longer() {
        let build = |landing| Build { landing, cache: 0, ..approach_1() };
        let read = |landing| {
            let mut node = Node::new(&build(landing), 4, FILE);
            node.age(8_000, 1 << 20, 1);
            let mix = mix("ebu3362-read", 4, true);
            step(&mut node, &mix, 4, Duration::from_secs(3))
        };
        let (together, apart) = (read(Landing::Gathered), read(Landing::Scattered));
        assert!(total(&apart) < total(&together), "{} {}", total(&apart), total(&together));
        assert!(row(&apart, OperationKind::Read, false).transfers > 0);
    }
}
