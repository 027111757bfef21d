//! One engine at its limit: arrivals, a disk that serves one command after another, best-effort
//! work, and the account of every read.

mod paced;
mod titles;

use disk::{DiskModel, Head, ReadPace};
use engine::{
    Action, AdmissionDecision, AdmitRequest, DiskGuarantee, DiskNumber, Engine, EngineConfig,
    MaxWait, MediaRequest, Part, PermitId, Priority, ReadId, ReadOutcome, RequestId,
    ScheduleChange, SessionId, TitleKey, TrackNumber,
};
use paced::PacedDisk;
use scheduler::{DiskTimings, PolicyKind};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use titles::{Film, Shape};
use units::{ByteCount, Moment};

/// The options of a run.
#[derive(Clone, Debug)]
pub(crate) struct Brim {
    seed: u64,
    /// A disk model, or the pace of a disk that works in bursts.
    disk: DiskKind,
    buffers: ByteCount,
    read: u32,
    depth: u32,
    slot: Duration,
    startup: Duration,
    shape: Shape,
    /// Every wait for the platter takes a whole revolution, or every read is as late as the pace
    /// allows.
    worst_rotation: bool,
    /// Pieces of best-effort work that are asked for at once.
    offered: u32,
    /// Viewers who come at once.
    group: u32,
    arrivals: u32,
    /// Viewers ask for no piece, so that newcomers may take their places. Otherwise they ask for
    /// each at its deadline.
    silent: bool,
}

#[derive(Clone, Debug)]
enum DiskKind {
    Model(&'static str),
    Paced(ReadPace),
}

/// The disk of a run.
enum Disk {
    Model(Box<Head>),
    Paced(PacedDisk),
}

/// What came of a run, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) reads: u64,
    pub(crate) work: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// Reads that were not in memory by their deadline.
    pub(crate) late: u64,
    /// Longest lateness.
    pub(crate) latest: Duration,
    /// Sessions with a guaranteed slack.
    pub(crate) certificates: u64,
    /// Sessions with a read that had less than the guaranteed slack.
    pub(crate) broken: u64,
    /// Largest shortfall of slack.
    pub(crate) shortfall: Duration,
    /// Violations that the engine counts itself.
    pub(crate) violations: u64,
}

impl Outcome {
    pub(crate) fn is_kept(&self) -> bool {
        (self.late, self.broken, self.violations) == (0, 0, 0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.work += other.work;
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.late += other.late;
        self.latest = self.latest.max(other.latest);
        self.certificates += other.certificates;
        self.broken += other.broken;
        self.shortfall = self.shortfall.max(other.shortfall);
        self.violations += other.violations;
    }
}

impl Brim {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ SALT);
        let slot = Duration::from_millis([250, 500, 500, 1000][rng.usize(..4)]);
        Self {
            seed,
            disk: DiskKind::Model(
                ["atlas-iv", "st39183w", "st318406lw", "hdd-20tb"][rng.usize(..4)],
            ),
            buffers: ByteCount(1 << 44),
            read: 1 << rng.u32(20..=24),
            depth: [1, 2, 2, 4, 8][rng.usize(..5)],
            slot,
            startup: slot * rng.u32(3..12),
            shape: Shape::ALL[rng.usize(..Shape::ALL.len())],
            worst_rotation: rng.bool(),
            offered: rng.u32(..3),
            group: [1, 1, 1, 20][rng.usize(..4)],
            arrivals: rng.u32(20..120),
            silent: rng.bool(),
        }
    }

    /// A disk that works in bursts, and memory for some seconds.
    pub(crate) fn draw_paced(seed: u64) -> Self {
        let drawn = Self::draw(seed);
        let mut rng = fastrand::Rng::with_seed(seed ^ PACED_SALT);
        let once = drawn.slot.mul_f64(rng.f64());
        let each = drawn.slot / rng.u32(10..60);
        let read = 1 << rng.u32(18..=20);
        let buffers = ByteCount(u64::from(read) * rng.u64(40..600));
        Self { disk: DiskKind::Paced(ReadPace { once, each }), read, buffers, ..drawn }
    }

    pub(crate) fn run(&self) -> Outcome {
        let mut run = Run::new(self);
        while run.step() {}
        run.outcome
    }
}

#[derive(Clone, Debug)]
enum Event {
    Arrivals,
    Read(ReadId),
    Work(PermitId),
    /// A viewer asks for pieces.
    Ask(SessionId, TrackNumber, Range<usize>),
    /// A socket has taken a buffer.
    Sent(RequestId, ReadId),
    Leave(SessionId),
    /// The deadline of a read.
    Check(SessionId, TrackNumber, usize),
}

/// An admitted viewer.
struct Viewer {
    film: Film,
    origin: Moment,
    /// The least time between the end of a read and the end of its due slot.
    least: Duration,
    short: bool,
    /// The viewer never played, and its place was given to another.
    released: bool,
}

struct Run<'a> {
    brim: &'a Brim,
    rng: fastrand::Rng,
    engine: Engine,
    disk: Disk,
    now: Moment,
    events: BTreeMap<(Moment, bool, u64), Event>,
    scheduled: u64,
    left: u32,
    titles: u64,
    requests: u64,
    viewers: BTreeMap<SessionId, Viewer>,
    by_title: BTreeMap<TitleKey, SessionId>,
    /// The pieces of reads that are in the device.
    reading: BTreeMap<ReadId, (TitleKey, TrackNumber, usize)>,
    /// When each piece came into memory.
    arrived: BTreeMap<(TitleKey, TrackNumber, usize), Moment>,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    fn new(brim: &'a Brim) -> Self {
        let read_size = ByteCount(brim.read.into());
        let (disk, longest_read, min_read, timings) = match brim.disk {
            DiskKind::Model(name) => {
                let model = DiskModel::preset(name).expect("a built-in model");
                let longest_read = model.worst_read(read_size);
                let reads = brim.slot.as_nanos() / longest_read.as_nanos();
                let timings = DiskTimings::of_model(&model, read_size, brim.depth);
                let min_read = u32::try_from(reads).expect("few reads").max(1);
                (Disk::Model(Box::new(model.head())), longest_read, min_read, timings)
            }
            DiskKind::Paced(pace) => {
                let disk = PacedDisk::new(pace, brim.read);
                let record = disk.calibration(brim.slot);
                let timings = DiskTimings::of_calibration(&record, read_size);
                let reads = record.guarantees[0];
                (Disk::Paced(disk), reads.longest_read, reads.min_read, timings)
            }
        };
        let guarantee =
            DiskGuarantee { min_read, read_size, longest_read, queue_depth: brim.depth };
        let mut engine = Engine::new(EngineConfig {
            slot: brim.slot,
            policy: PolicyKind::TimeDomain,
            startup: brim.startup,
            buffers: brim.buffers,
            network: None,
            reservation_hold: A_DAY,
            idle_timeout: A_DAY,
            session_timeout: A_DAY,
            survive_loss: false,
            fills: 0,
            disks: vec![guarantee],
        });
        engine.set_timings(Moment::ZERO, DiskNumber(0), timings);
        let mut run = Self {
            brim,
            rng: fastrand::Rng::with_seed(brim.seed),
            engine,
            disk,
            now: Moment::ZERO,
            events: BTreeMap::new(),
            scheduled: 0,
            left: brim.arrivals,
            titles: 0,
            requests: 0,
            viewers: BTreeMap::new(),
            by_title: BTreeMap::new(),
            reading: BTreeMap::new(),
            arrived: BTreeMap::new(),
            outcome: Outcome::default(),
        };
        run.schedule(Moment::ZERO + brim.slot, Event::Arrivals);
        (0..brim.offered).for_each(|_| run.offer_work());
        run
    }

    fn schedule(&mut self, at: Moment, event: Event) {
        self.scheduled += 1;
        // What arrives exactly at its deadline is in time.
        let is_check = matches!(event, Event::Check(..));
        self.events.insert((at, is_check, self.scheduled), event);
    }

    /// One event or tick; false when all viewers have left.
    fn step(&mut self) -> bool {
        while let Some(actions) = Some(self.engine.take_actions()).filter(|all| !all.is_empty()) {
            actions.into_iter().for_each(|action| self.execute(action));
        }
        if self.left == 0 && self.viewers.is_empty() {
            return false;
        }
        let wakeup = self.engine.next_wakeup().max(self.now);
        let first = self.events.first_key_value().map(|(key, _)| *key);
        match first.filter(|(at, is_check, _)| (*at, *is_check) <= (wakeup, false)) {
            Some(key) => {
                self.now = key.0;
                let event = self.events.remove(&key).expect("it is the first");
                self.handle(event);
            }
            None => {
                self.now = wakeup;
                self.engine.tick(wakeup);
                // A check of this moment comes after the tick.
                if let Some(key) = first.filter(|key| key.0 == wakeup) {
                    let event = self.events.remove(&key).expect("it is the first");
                    self.handle(event);
                }
            }
        }
        true
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrivals => self.arrivals(),
            Event::Read(read) => {
                let piece = self.reading.remove(&read).expect("it was issued");
                self.arrived.insert(piece, self.now);
                self.outcome.reads += 1;
                self.account(piece);
                self.engine.read_done(self.now, read, ReadOutcome::Good);
            }
            Event::Work(permit) => {
                self.outcome.work += 1;
                self.engine.best_effort_done(self.now, permit);
                self.offer_work();
            }
            Event::Ask(session, track, pieces) => self.ask(session, track, &pieces),
            Event::Sent(request, read) => self.engine.sent(self.now, request, read),
            Event::Leave(session) => self.engine.close(self.now, session),
            Event::Check(session, track, piece) => {
                let Some(viewer) = self.viewers.get(&session) else { return };
                if viewer.released {
                    return;
                }
                if !self.arrived.contains_key(&(viewer.film.layout.title, track, piece)) {
                    self.outcome.late += 1;
                }
            }
        }
    }

    fn arrivals(&mut self) {
        for _ in 0..self.brim.group.min(self.left) {
            self.left -= 1;
            self.arrive();
        }
        if self.left > 0 {
            let mean = self.brim.slot.mul_f64(0.6) * self.brim.group;
            let pause = mean.mul_f64(-(1.0 - self.rng.f64()).ln());
            self.schedule(self.now + pause, Event::Arrivals);
        }
    }

    fn arrive(&mut self) {
        self.titles += 1;
        let capacity = self.capacity();
        let title = TitleKey(self.titles);
        let film = Film::draw(self.brim, title, capacity, self.now, &mut self.rng);
        let tracks: Vec<TrackNumber> = film.tracks().collect();
        let request = AdmitRequest {
            layout: film.layout.clone(),
            copies: Vec::new(),
            offers: vec![tracks.clone()],
            start: Duration::ZERO,
            max_wait: MaxWait::default(),
            replaces: None,
            fill: None,
            priority: Priority::default(),
        };
        let AdmissionDecision::Admitted { session, .. } = self.engine.admit(self.now, request)
        else {
            self.outcome.refused += 1;
            return;
        };
        self.outcome.admitted += 1;
        let origin = self.now;
        for track in tracks {
            for piece in 0..film.pieces(track) {
                let deadline = self.deadline(&film, origin, track, piece);
                self.schedule(deadline, Event::Check(session, track, piece));
            }
            if !self.brim.silent {
                self.schedule_requests(&film, origin, session, track);
            }
        }
        let end = film.layout.duration.max(self.brim.startup) + self.brim.slot * 6;
        self.schedule(origin + end, Event::Leave(session));
        self.by_title.insert(title, session);
        let viewer = Viewer { film, origin, least: Duration::MAX, short: false, released: false };
        self.viewers.insert(session, viewer);
    }

    /// The viewer asks for pieces at their deadline, in one request for all with one deadline.
    fn schedule_requests(
        &mut self,
        film: &Film,
        origin: Moment,
        session: SessionId,
        track: TrackNumber,
    ) {
        let (slot, startup) = (self.brim.slot, self.brim.startup);
        let asked = |piece| film.needed(track, piece).saturating_sub(slot).max(startup);
        let (mut first, pieces) = (0, film.pieces(track));
        while first < pieces {
            let at = asked(first);
            let end = (first..pieces).find(|piece| asked(*piece) > at).unwrap_or(pieces);
            self.schedule(origin + at, Event::Ask(session, track, first..end));
            first = end;
        }
    }

    /// A read is due one slot before its first byte is played, and not before the start-up is over.
    fn deadline(&self, film: &Film, origin: Moment, track: TrackNumber, piece: usize) -> Moment {
        let before = film.needed(track, piece).saturating_sub(self.brim.slot);
        origin + before.max(self.brim.startup)
    }

    /// Notes the slack of a read that has ended: the rest of the last slot that ends by the
    /// deadline.
    fn account(&mut self, (title, track, piece): (TitleKey, TrackNumber, usize)) {
        let Some(session) = self.by_title.get(&title).copied() else { return };
        let Some(viewer) = self.viewers.get(&session) else { return };
        let deadline = self.deadline(&viewer.film, viewer.origin, track, piece);
        let slot = u64::try_from(self.brim.slot.as_nanos()).expect("a short slot");
        let due = Moment(deadline.0 / slot * slot);
        let now = self.now;
        if viewer.released {
            return;
        }
        self.outcome.latest = self.outcome.latest.max(now.since(deadline));
        let viewer = self.viewers.get_mut(&session).expect("found above");
        viewer.least = viewer.least.min(due.since(now));
        viewer.short |= now > due;
    }

    /// The viewer asks for pieces.
    fn ask(&mut self, session: SessionId, track: TrackNumber, pieces: &Range<usize>) {
        let Some(viewer) = self.viewers.get(&session) else { return };
        self.requests += 1;
        let bytes = viewer.film.bytes(track, pieces);
        let parts = vec![Part { track, bytes }];
        let request = MediaRequest { request: RequestId(self.requests), session, parts };
        self.engine.request(self.now, request);
    }

    fn offer_work(&mut self) {
        let bytes = ByteCount(self.brim.read.into());
        self.engine.request_best_effort(self.now, DiskNumber(0), bytes);
    }

    /// The device takes a command behind all others; returns its end.
    fn serve(&mut self, offset: u64, len: u32) -> Moment {
        match &mut self.disk {
            Disk::Model(head) => {
                let turn = if self.brim.worst_rotation { 1.0 } else { self.rng.f64() };
                head.serve_turned(self.now, offset, len.into(), turn).finish
            }
            Disk::Paced(disk) => {
                let late = self.brim.worst_rotation || self.rng.u8(..64) == 0;
                disk.serve(self.now, len, late)
            }
        }
    }

    fn capacity(&self) -> u64 {
        match &self.disk {
            Disk::Model(head) => head.model().capacity().0,
            Disk::Paced(_) => 1 << 40,
        }
    }

    fn execute(&mut self, action: Action) {
        match action {
            Action::Read { read, device_offset, len, title, track, start, .. } => {
                let number = usize::try_from(start / u64::from(self.piece_size(title, track)));
                self.reading.insert(read, (title, track, number.expect("few pieces")));
                let finish = self.serve(device_offset, len);
                self.schedule(finish, Event::Read(read));
            }
            Action::Granted { permit } => {
                let len = self.rng.u32(1..=self.brim.read / 4096) * 4096;
                let places = (self.capacity() - u64::from(len)) / 4096;
                // The ends of the disk, where the way is longest, more often than by chance.
                let place = [0, places, self.rng.u64(..places)][self.rng.usize(..3)];
                let finish = self.serve(place * 4096, len);
                self.schedule(finish, Event::Work(permit));
            }
            Action::Deliver { request, read, .. } => {
                self.schedule(self.now, Event::Sent(request, read));
            }
            Action::Ended { session, summary } => {
                let viewer = self.viewers.remove(&session).expect("it was admitted");
                self.by_title.remove(&viewer.film.layout.title);
                self.outcome.violations +=
                    summary.violations_by_scheduler + summary.violations_by_disk;
                self.outcome.violations += summary.deadline_misses;
                let Some(guaranteed) = summary.guaranteed_slack else { return };
                self.outcome.certificates += 1;
                if viewer.short || viewer.least < guaranteed {
                    self.outcome.broken += 1;
                    let shortfall = guaranteed.saturating_sub(viewer.least);
                    self.outcome.shortfall = self.outcome.shortfall.max(shortfall);
                }
            }
            Action::Rescheduled { session, change: ScheduleChange::Released { .. } }
                if self.brim.silent =>
            {
                self.viewers.get_mut(&session).expect("it was admitted").released = true;
            }
            Action::Rescheduled { .. } | Action::Refused { .. } | Action::Declined { .. } => {
                panic!("a viewer who asks in time is served as admitted: {action:?}")
            }
            Action::Failed { .. } | Action::DiskLost { .. } => panic!("no read fails: {action:?}"),
            Action::Complete { .. }
            | Action::Forget { .. }
            | Action::DiskBack { .. }
            | Action::TitleIdle { .. } => {}
        }
    }

    fn piece_size(&self, title: TitleKey, track: TrackNumber) -> u32 {
        let viewer = &self.viewers[&self.by_title[&title]];
        viewer.film.layout.tracks[usize::from(track)].piece
    }
}

/// Longer than any run.
const A_DAY: Duration = Duration::from_secs(86_400);

/// Separates the random stream that draws a pace.
const PACED_SALT: u64 = 0x0b21_9ace;

/// Separates the random stream that draws a run from the one that runs it.
const SALT: u64 = 0x0b21_3b21;
