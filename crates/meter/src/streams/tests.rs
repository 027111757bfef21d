//! Streams in virtual time, compared with arithmetic and with their log.

use super::plan::Ask;
use super::*;
use crate::log::{OperationKind, Record, Recount};
use crate::profiles::{self, Profile};
use crate::progress::RunProgress;
use crate::target::{FileSet, IoCompletion, IoRequest, Port, SimulatedPort, TickingPort};
use device::{Access, Fault, FaultRule, SimulatedDisk};
use disk::DiskModel;
use units::{BitRate, ByteCount, Hinted, Moment};

fn ssd() -> SimulatedDisk {
    SimulatedDisk::new(&DiskModel::preset("ssd-nvme").unwrap())
}

fn profile() -> Profile {
    profiles::named("xdcam422").unwrap()
}

fn plan(streams: u32, seconds: u64) -> StreamsPlan {
    let shape = FileSet::one(ByteCount(16 << 30));
    StreamsPlan::new(&profile(), streams, 8, Duration::from_secs(seconds), shape).unwrap()
}

/// The bytes of these frames of the first stream.
fn frames(plan: &StreamsPlan, frames: std::ops::Range<u64>) -> std::ops::Range<u64> {
    plan.ask(0, frames.start).offset..plan.ask(0, frames.end - 1).offset + plan.frame.0
}

fn ran(plan: &StreamsPlan, port: &mut dyn Port) -> (StreamsOutcome, Vec<Record>) {
    let mut log = Vec::new();
    let outcome = run(plan, port, &mut log, &mut |_| true).unwrap();
    let mut recount = Recount::default();
    log.iter().for_each(|record| recount.count(record));
    let said = (outcome.frames, outcome.late, outcome.late_by_meter, outcome.failed, outcome.never);
    let counted =
        (recount.frames, recount.late, recount.late_by_meter, recount.failed, recount.never);
    assert_eq!(said, counted, "the log says the same");
    (outcome, log)
}

#[test]
fn a_disk_that_keeps_up_has_no_late_frames() {
    let plan = plan(20, 60);
    let (outcome, log) = ran(&plan, &mut SimulatedPort::new(ssd()));
    assert_eq!((outcome.frames, outcome.late, outcome.rounds), (20 * 1500, 0, 1500));
    assert!(outcome.complete && outcome.valid());
    assert_eq!(outcome.issue.max(), Duration::ZERO, "in virtual time the meter is never late");
    // No drift: every frame is requested at its intended start.
    assert!(log.iter().all(|op| op.start == op.intended));
    assert_eq!(outcome.bytes(), ByteCount(250_000 * 30_000));
}

/// Completes immediately, but blocks the issuing thread once, and reports that or does not.
struct Keeping {
    now: Moment,
    under_way: Vec<u64>,
    from: Moment,
    asleep: Duration,
    says: bool,
    held: Moment,
}

impl Port for Keeping {
    fn now(&self) -> Moment {
        self.now
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        self.under_way.push(request.tag);
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        if self.now >= self.from && !self.under_way.is_empty() {
            self.now = self.now + std::mem::take(&mut self.asleep);
            self.held = self.now;
            self.from = Moment::MAX;
        }
        if self.under_way.is_empty() {
            self.now = until;
        }
        done.extend(self.under_way.drain(..).map(|tag| IoCompletion::new(tag, self.now, Ok(()))));
        Ok(())
    }

    fn held_until(&self) -> Moment {
        if self.says { self.held } else { Moment::ZERO }
    }

    fn method(&self) -> String {
        "at once".to_owned()
    }
}

#[test]
fn blocking_for_want_of_room_counts_as_lateness_of_the_storage() {
    for says in [true, false] {
        let from = Moment::ZERO + Duration::from_secs(2);
        let asleep = Duration::from_secs(1);
        let now = Moment::ZERO;
        let mut port = Keeping { now, under_way: Vec::new(), from, asleep, says, held: now };
        let (outcome, _) = ran(&plan(4, 5), &mut port);
        // In one second of four streams, all frames but those within a buffer of 320 ms.
        assert!((64..=72).contains(&outcome.late), "{}", outcome.late);
        let by_meter = if says { 0 } else { outcome.late };
        assert_eq!((outcome.late_by_meter, outcome.valid()), (by_meter, says));
    }
}

/// The largest deviation of a start from the first frame's start plus the format's frame times.
#[derive(Default)]
struct Drift {
    first: std::collections::BTreeMap<u32, u64>,
    most: u64,
    frames: u64,
}

impl RecordSink for Drift {
    fn keep(&mut self, record: &Record) {
        let first = *self.first.entry(record.stream).or_insert(record.start);
        let ideal = first + record.frame * 1_001_000_000_000 / 30_000;
        self.most = self.most.max(record.start.abs_diff(ideal));
        self.frames += 1;
    }
}

#[test]
fn an_hour_has_no_drift() {
    let mut profile = profile();
    profile.fps = Some("30000/1001".parse().unwrap());
    let shape = FileSet::one(ByteCount(16 << 30));
    let plan = StreamsPlan::new(&profile, 5, 8, Duration::from_secs(3600), shape).unwrap();
    let mut drift = Drift::default();
    run(&plan, &mut SimulatedPort::new(ssd()), &mut drift, &mut |_| true).unwrap();
    assert_eq!((drift.frames, drift.most), (5 * 107_893, 0));
}

#[test]
fn starts_share_a_clock_reading_only_where_submitting_takes_no_time() {
    let most_alike = |tick: u64| {
        let mut profile = profile();
        profile.fps = Some("1000000".parse().unwrap());
        let shape = FileSet::one(ByteCount(16 << 30));
        let plan = StreamsPlan::new(&profile, 100, 8, Duration::from_millis(1), shape).unwrap();
        let mut log = Vec::new();
        let mut port = TickingPort::new(Duration::from_nanos(tick));
        run(&plan, &mut port, &mut log, &mut |_| true).unwrap();
        let mut alike = std::collections::BTreeMap::new();
        for record in log.iter().filter(|record| record.start != crate::log::NONE) {
            *alike.entry(record.start).or_insert(0) += 1;
        }
        alike.into_values().max()
    };
    assert_eq!((most_alike(50), most_alike(2_000)), (Some(16), Some(1)));
}

#[test]
fn polling_starts_frames_in_time_and_reports_the_polling_time() {
    let ran_so = |spin, waking_late| {
        let mut plan = plan(10, 2);
        plan.spin = spin;
        let mut port = TickingPort::new(Duration::from_nanos(100)).waking_late(waking_late);
        let (outcome, _) = ran(&plan, &mut port);
        (outcome.issue.quantile(0.99), outcome.spun())
    };
    let (late, ms) = (Duration::from_micros(400), Duration::from_millis(1));
    let (watching, _) = ran_so(true, late);
    assert!(watching < Duration::from_micros(10), "{watching:?}");
    let (sleeping, spun) = ran_so(false, late);
    assert!(sleeping >= late && spun.is_zero(), "{sleeping:?}");
    // 0.1 ms for each of 500 frames, less where two are closer than that.
    let (_, spun) = ran_so(true, Duration::ZERO);
    assert!((40 * ms..51 * ms).contains(&spun), "{spun:?}");
}

#[test]
fn the_late_frames_of_a_freeze_are_counted_exactly() {
    let disk = ssd();
    let plan = plan(10, 20);
    // Frame 100 of the first stream, at about 4 s, takes two more seconds; all others wait for it.
    let fault = Fault::Stall(Duration::from_secs(2));
    disk.add(FaultRule { access: Access::Read, area: frames(&plan, 100..101), times: 1, fault });
    let (outcome, _) = ran(&plan, &mut SimulatedPort::new(disk));
    // 2 s less the buffer of 8 frames (0.32 s), at 25 frames a second: 42 of each stream.
    let each = outcome.late / 10;
    assert!((41..=43).contains(&each), "{each} frames of each stream");
    let outage = outcome.longest_outage();
    assert!(outage > Duration::from_millis(1600) && outage < Duration::from_secs(2), "{outage:?}");
    assert_eq!((outcome.late_by_meter, outcome.failed, outcome.never), (0, 0, 0));
    // The response time includes the freeze, the service time only that of the reads in it.
    assert!(outcome.response.quantile(0.95) > outcome.service().quantile(0.5) * 10);
    let worst = outcome.streams.iter().max_by_key(|stream| stream.late).unwrap();
    assert!(worst.consecutive_drift > outage && worst.accumulated_drift >= worst.consecutive_drift);
}

#[test]
fn a_failed_read_is_a_missing_frame() {
    let disk = ssd();
    let (plan, fault) = (plan(4, 10), Fault::Errno(5));
    disk.add(FaultRule { access: Access::Read, area: frames(&plan, 50..53), times: 3, fault });
    let (outcome, _) = ran(&plan, &mut SimulatedPort::new(disk));
    assert_eq!((outcome.failed, outcome.late, outcome.frames), (3, 3, 1000));
    // Three pictures of 40 ms in a row were missing.
    let stats = outcome.streams[0];
    assert_eq!(stats.longest_outage, Duration::from_millis(120));
    assert_eq!(stats.accumulated_drift, Duration::from_millis(120));
}

#[test]
fn frames_that_never_came_are_among_the_responses() {
    let disk = ssd();
    let plan = plan(4, 10);
    // The disk stops at half of the run and does not come back.
    let fault = Fault::Stall(Duration::from_secs(100));
    disk.add(FaultRule { access: Access::Read, area: frames(&plan, 125..126), times: 1, fault });
    let (outcome, _) = ran(&plan, &mut SimulatedPort::new(disk));
    assert!(outcome.never > 400, "{}", outcome.never);
    assert_eq!(outcome.response.count(), outcome.frames);
    // Half of the frames waited until the end, the first of them for five seconds.
    let response = |share| outcome.response.quantile(share).as_secs_f64();
    assert!(response(0.99) > 4.5 && response(0.75) > 2.0, "{} {}", response(0.99), response(0.75));
}

#[test]
fn a_run_in_which_the_storage_failed_beyond_doubt_is_valid() {
    let outcome = |late, late_by_meter| {
        StreamsOutcome { frames: 500, late, late_by_meter, ..StreamsOutcome::default() }.valid()
    };
    // One frame of 500 is more than one in a thousand.
    assert!(!outcome(1, 1) && !outcome(10, 1));
    assert!(outcome(95, 1) && outcome(11, 1) && outcome(5, 0));
}

#[test]
fn streams_of_several_processes_begin_as_those_of_one() {
    let phases = |plan: &StreamsPlan| (0..plan.streams).map(|s| plan.phase(s)).collect::<Vec<_>>();
    let (together, first, second) = (plan(6, 1), plan(2, 1).after(0), plan(4, 1).after(2));
    assert_eq!([phases(&first), phases(&second)].concat(), phases(&together));
}

/// Groups of 12 frames, one in 480 ms; the first of them is shown 8 frames after its request.
#[test]
fn a_group_of_pictures_is_one_read_with_the_deadline_of_its_first_frame() {
    let profile = Profile { read_frames: 12, ..profile() };
    let shape = FileSet::one(ByteCount(16 << 30));
    let plan = StreamsPlan::new(&profile, 5, 8, Duration::from_secs(48), shape).unwrap();
    assert_eq!((plan.frame, plan.buffer), (ByteCount(3_000_000), 1));
    assert_eq!(plan.rate(), BitRate(250_000_000));
    let (outcome, log) = ran(&plan, &mut SimulatedPort::new(ssd()));
    assert_eq!((outcome.frames, outcome.late), (5 * 100, 0));
    let first: Vec<&Record> = log.iter().filter(|read| read.stream == 0).collect();
    assert!(first.iter().all(|read| read.deadline - read.intended == 320_000_000));
    assert_eq!(first[1].intended - first[0].intended, 480_000_000);
    assert_eq!(first[1].offset - first[0].offset, plan.stride());
    let deep = StreamsPlan::new(&profile, 5, 30, Duration::from_secs(48), shape).unwrap();
    assert_eq!((deep.buffer, deep.allowed()), (3, Duration::from_millis(1200)));
}

#[test]
fn too_many_streams_are_late_and_the_run_ends() {
    let shape = FileSet::one(ByteCount(8 << 30));
    let plan = StreamsPlan::new(&profile(), 400, 8, Duration::from_secs(10), shape).unwrap();
    let disk = SimulatedDisk::new(&DiskModel::preset("st39183w").unwrap());
    let (outcome, _) = ran(&plan, &mut SimulatedPort::new(disk));
    assert_eq!(outcome.frames, 400 * 250);
    assert!(outcome.never > 50_000 && outcome.late_rounds > 200, "{}", outcome.never);
    let demand = plan.rate();
    assert!(outcome.rate() < units::BitRate(demand.0 / 4), "{} of {demand}", outcome.rate());
}

#[test]
fn a_stopped_run_keeps_its_results_until_then() {
    let mut judged = 0;
    let mut go_on = |progress: RunProgress| {
        judged = progress.judged;
        progress.judged < 100
    };
    let mut port = SimulatedPort::new(ssd());
    let outcome = run(&plan(10, 60), &mut port, &mut Vec::new(), &mut go_on).unwrap();
    assert!(!outcome.complete);
    assert_eq!((outcome.frames, outcome.late), (judged, 0));
}

/// Oversleeps once, as the meter does on a busy machine.
struct Oversleeps {
    inner: SimulatedPort,
    disk: SimulatedDisk,
    once: Option<(Moment, Duration)>,
}

impl Port for Oversleeps {
    fn now(&self) -> Moment {
        self.inner.now()
    }
    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        self.inner.begin(request)
    }
    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        if let Some((_, time)) = self.once.take_if(|(from, _)| *from <= self.inner.now()) {
            self.disk.advance_to(self.disk.now() + time);
        }
        let before = self.inner.now();
        self.inner.wait(until.max(before), done)
    }
    fn method(&self) -> String {
        self.inner.method()
    }
}

#[test]
fn lateness_of_the_meter_does_not_count_against_the_storage() {
    let disk = ssd();
    let once = Some((Moment::from_secs(5), Duration::from_secs(1)));
    let mut port = Oversleeps { inner: SimulatedPort::new(disk.clone()), disk, once };
    let (outcome, _) = ran(&plan(10, 20), &mut port);
    assert!(outcome.late > 100, "{} late", outcome.late);
    assert_eq!(outcome.late_by_storage(), 0);
    assert!(!outcome.valid());
    assert!(outcome.issue.max() > Duration::from_millis(950), "{:?}", outcome.issue.max());
}

#[test]
fn frames_that_never_came_because_the_meter_stopped_do_not_count_against_the_storage() {
    // It stops within the run, and goes on after its end: what was due meanwhile never came.
    let disk = ssd();
    let once = Some((Moment::from_secs(19), Duration::from_secs(3)));
    let mut port = Oversleeps { inner: SimulatedPort::new(disk.clone()), disk, once };
    let (outcome, _) = ran(&plan(10, 20), &mut port);
    assert!(outcome.never > 100, "{} never came", outcome.never);
    assert_eq!(outcome.late_by_storage(), 0, "of {} late", outcome.late);
    assert!(!outcome.valid());
}

#[test]
fn a_mixed_profile_is_drawn_in_its_proportions() {
    let mut mixed = profile();
    (mixed.read_percent, mixed.random_percent) = (70, 20);
    let shape = FileSet::one(ByteCount(16 << 30));
    let plan = StreamsPlan::new(&mixed, 10, 8, Duration::from_secs(400), shape).unwrap();
    let all = || (0..10).flat_map(|stream| (0..10_000).map(move |frame| (stream, frame)));
    let share = |of: fn(&Ask) -> bool| {
        all().filter(|(stream, frame)| of(&plan.ask(*stream, *frame))).count()
    };
    let written = share(|access| access.kind == OperationKind::Write);
    let random = share(|access| access.random);
    let both = share(|access| access.random && access.kind == OperationKind::Write);
    // Five standard deviations of 100,000 draws are 700 or less.
    assert!(written.abs_diff(30_000) < 700 && random.abs_diff(20_000) < 700, "{written} {random}");
    assert!(both.abs_diff(6_000) < 400, "{both}: the one says nothing of the other");
    for (stream, frame) in all() {
        let access = plan.ask(stream, frame);
        let part = (16 << 30) / 10 / plan.stride() * plan.stride();
        let inside = u64::from(stream) * part..(u64::from(stream) + 1) * part;
        assert!(inside.contains(&access.offset), "{access:?} of stream {stream}");
    }
}

#[test]
fn an_impossible_plan_is_refused() {
    let time = Duration::from_secs(1);
    let shape = FileSet::one(ByteCount::mib(1));
    let refused = |name: &str| {
        let profile = profiles::named(name).unwrap();
        StreamsPlan::new(&profile, 10, 8, time, shape).unwrap_err().one_line()
    };
    assert!(refused("ebu3362-edit").contains("no fps"));
    assert!(refused("ebu3362-edit").contains("meter transfers"));
    assert!(refused("xdcam422").contains("too small for 10 streams"));
}

#[test]
fn outcomes_of_two_machines_are_those_of_both_and_survive_the_wire() {
    let part = |frames: u64, late: u64, by_meter: u64| {
        let mut outcome = StreamsOutcome { complete: true, ..StreamsOutcome::default() };
        for frame in 0..frames {
            let (late, by_meter) = (frame < late, frame < by_meter);
            let response = frame * 1_000_000;
            let judged = FrameVerdict { late, by_meter, response, ..FrameVerdict::default() };
            outcome.count_frame(usize::try_from(frame / 25).unwrap(), &judged);
            outcome.raise_round(usize::try_from(frame).unwrap(), response);
            let (kind, bytes) = (OperationKind::Read, ByteCount(100));
            let operation = CompletedOperation { kind, bytes, service: 5_000, response: 9_000 };
            outcome.count_operation(usize::try_from(frame / 25).unwrap(), operation);
        }
        outcome
    };
    let wired = |outcome: StreamsOutcome| -> StreamsOutcome {
        serde_json::from_value(serde_json::to_value(outcome).unwrap()).unwrap()
    };
    let mut both = wired(part(50, 0, 0));
    both.add(wired(part(75, 3, 0)));
    assert_eq!((both.frames, both.late, both.bytes()), (125, 3, ByteCount(12_500)));
    let seconds: Vec<_> =
        both.seconds.iter().map(|second| (second.frames, second.bytes())).collect();
    assert_eq!(seconds, [(50, 5_000), (50, 5_000), (25, 2_500)]);
    assert_eq!((both.response.count(), both.round_times.len()), (125, 75));
    assert_eq!(both.heat, {
        let (mut one, other) = (part(50, 0, 0).heat, part(75, 0, 0).heat);
        one.add(&other);
        one
    });
    assert!(both.valid());
    // Of 1,100 frames one is the machine's: few in all, and too many of the 100 that it judged.
    let mut spoilt = part(1000, 0, 0);
    spoilt.add(part(100, 1, 1));
    assert!(!spoilt.valid());
}
