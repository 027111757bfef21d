//! Runs with injected faults whose late frames are known: the meter's own streams, tally and blame,
//! in virtual time.
//!
//! ```text
//!   seed ─▶ Scenario ─┬─▶ ScenarioPort ─ streams::run ─ Attribution ─▶ late frames by cause ─┐
//!                     └─▶ truth: each stream on its own, frame by frame ─▶ the same ─────────┴─ equal
//! ```
//!
//! The storage serves all requests at once, each with a latency of its own: a frame's time then
//! depends on its own stream only, and the truth is a short loop without a queue, a clock or an
//! event. The machine's counters are written as the sampler would read them.

use super::Attribution;
use crate::blame::{Device, Processor, Resource, Stack, SystemSample, Watched};
use crate::log::OperationKind;
use crate::profiles;
use crate::streams::{self, StreamsOutcome, StreamsPlan};
use crate::target::{FileSet, IoCompletion, IoRequest, Layout, Port};
use device::DeviceError;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io;
use std::ops::Range;
use std::time::Duration;
use units::{ByteCount, Moment, index};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Injected {
    Nothing,
    Freeze,
    Hiccups,
    /// One file of many freezes.
    OneFile,
    SlowDecline,
    /// Some reads fail with EIO.
    ReadErrors,
    /// Writes fail with ENOSPC from a time on.
    FullDisk,
    /// The meter's process is stopped.
    StoppedMeter,
    /// Other programs take the processors for a part of each second.
    HoggedProcessor,
    /// The wall clock is set while the storage freezes.
    SteppedClock,
    /// The storage freezes, and the meter is stopped some seconds later.
    FreezeThenStop,
}

const ALL: [Injected; 11] = [
    Injected::Nothing,
    Injected::Freeze,
    Injected::Hiccups,
    Injected::OneFile,
    Injected::SlowDecline,
    Injected::ReadErrors,
    Injected::FullDisk,
    Injected::StoppedMeter,
    Injected::HoggedProcessor,
    Injected::SteppedClock,
    Injected::FreezeThenStop,
];

/// A run with its faults. Times are in nanoseconds from the start of the run.
struct FaultScenario {
    injected: Injected,
    plan: StreamsPlan,
    seed: u64,
    /// The mean latency of a request.
    latency: u64,
    /// The growth of the latency by the second, and when it begins.
    decline: (f64, u64),
    /// Times in which the storage does nothing, in order.
    frozen: Vec<Range<u64>>,
    /// The file that freezes; `None` for all.
    frozen_file: Option<u32>,
    /// Frames that cannot be read, by stream and number.
    unreadable: BTreeSet<(u32, u64)>,
    /// The time from which writes fail.
    full_from: u64,
    /// Times in which the meter does not run, in order.
    stopped: Vec<Range<u64>>,
    samples: Vec<SystemSample>,
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// A seed with a meter that is stopped for so long that its streams have not caught up at the end:
/// frames that never came are late because of it.
const STOPPED_NEAR_THE_END: u64 = 11_315;

/// Runs of the longer test.
const MANY: u64 = 22_000;

/// The length of a run in seconds.
const RUN: u64 = 16;

impl FaultScenario {
    fn drawn(seed: u64) -> Self {
        let mut chance = fastrand::Rng::with_seed(seed);
        let injected = ALL[usize::try_from(seed).unwrap() % ALL.len()];
        let mut profile = profiles::named("dvcpro50").unwrap();
        if injected == Injected::FullDisk {
            profile.read_percent = 0;
        }
        let streams = chance.u32(2..=12);
        let buffer = [2, 4, 8, 16][chance.usize(..4)];
        let slot = crate::target::slot(ByteCount(profile.bytes));
        // A file for each stream, longer than the run: the offset tells the frame.
        let size = ByteCount(slot * 25 * (RUN + 1) * u64::from(streams));
        let files = FileSet::of(Layout::FilePerStream, size, streams, slot);
        let plan =
            StreamsPlan::new(&profile, streams, buffer, Duration::from_secs(RUN), files).unwrap();
        let allowed = units::nanos(plan.allowed());
        let mut scenario = Self {
            injected,
            plan,
            seed,
            latency: chance.u64(MS..allowed / 2),
            decline: (0.0, 0),
            frozen: Vec::new(),
            frozen_file: None,
            unreadable: BTreeSet::new(),
            full_from: u64::MAX,
            stopped: Vec::new(),
            samples: vec![SystemSample { seconds: 1.0, ..SystemSample::default() }; 18],
        };
        scenario.inject(&mut chance);
        scenario.write_samples(&mut chance);
        scenario
    }

    fn inject(&mut self, chance: &mut fastrand::Rng) {
        let at = chance.u64(3 * SECOND..7 * SECOND);
        // From a tenth of the shortest buffer to most of what is left of the run.
        let long = at..at + chance.u64(10 * MS..5 * SECOND);
        match self.injected {
            Injected::Nothing => {}
            Injected::Freeze | Injected::SteppedClock => self.frozen.push(long),
            Injected::Hiccups => {
                let (period, stall) =
                    (chance.u64(500 * MS..2 * SECOND), chance.u64(20 * MS..450 * MS));
                let begins = (0..).map(|number| at + number * period);
                self.frozen =
                    begins.take_while(|at| *at < RUN * SECOND).map(|at| at..at + stall).collect();
            }
            Injected::OneFile => {
                self.frozen.push(long);
                self.frozen_file = Some(chance.u32(..self.plan.streams));
            }
            Injected::SlowDecline => self.decline = (chance.f64() * 0.2, at),
            Injected::ReadErrors => {
                for _ in 0..chance.u32(1..40) {
                    let frame = (chance.u32(..self.plan.streams), chance.u64(..self.plan.frames()));
                    self.unreadable.insert(frame);
                }
            }
            Injected::FullDisk => self.full_from = at + chance.u64(..5 * SECOND),
            Injected::StoppedMeter => self.stopped.push(long),
            Injected::HoggedProcessor => {
                let slice = chance.u64(60 * MS..450 * MS);
                let begins = (3..RUN - 1).map(|second| second * SECOND + at % SECOND);
                self.stopped = begins.map(|at| at..at + slice).collect();
            }
            Injected::FreezeThenStop => {
                self.frozen.push(at..at + chance.u64(100 * MS..2 * SECOND));
                let at = chance.u64(11 * SECOND..12 * SECOND);
                self.stopped.push(at..at + chance.u64(100 * MS..2 * SECOND));
            }
        }
    }

    /// Writes what the sampler would read: the delays of the meter's threads, processors that
    /// others use, a device that is busy where the storage is, and a clock that is set.
    fn write_samples(&mut self, chance: &mut fastrand::Rng) {
        // Others use the processors in a part of the runs, without delaying the meter.
        let others = if chance.bool() { 1.0 } else { 0.1 };
        let busy = if self.injected == Injected::HoggedProcessor { 1.0 } else { others };
        let device = chance.bool();
        for (second, sample) in (0..).zip(&mut self.samples) {
            sample.processors = vec![Processor { busy, ..Processor::default() }; 2];
            let now = second * SECOND..(second + 1) * SECOND;
            let full = self.frozen.iter().any(|part| part.start < now.end && now.start < part.end);
            let (share, queue) = if full { (1.0, 20.0) } else { (0.2, 0.3) };
            let (name, requests) = ("sda".to_owned(), 200);
            if device {
                let sda = Device { name, busy: share, queue, requests, ..Device::default() };
                sample.devices.push(sda);
            }
        }
        for part in &self.stopped {
            // The sampler is stopped, too. Afterwards it writes one sample for each second of the
            // stop.
            let (from, until) = (part.start / SECOND, part.end / SECOND);
            let slept = (part.end - part.start) as f64 / SECOND as f64;
            for second in from..until.max(from + 1) {
                let sample = &mut self.samples[usize::try_from(second).unwrap()];
                sample.overslept = sample.overslept.max(slept);
                if self.injected == Injected::HoggedProcessor {
                    sample.own_wait = slept;
                }
            }
        }
        if self.injected == Injected::SteppedClock {
            let second = usize::try_from(self.frozen[0].start / SECOND).unwrap();
            self.samples[second].clock_set = 1.5;
        }
    }

    fn watched(&self) -> Watched {
        let devices: Vec<String> =
            self.samples[0].devices.iter().map(|device| device.name.clone()).collect();
        let stack = Stack { devices, ..Stack::default() };
        Watched { stack, samples: self.samples.clone(), ..Watched::default() }
    }

    /// When the meter, which would do something at this time, does it.
    fn awake(&self, at: u64, stops: bool) -> u64 {
        let stopped = self.stopped.iter().filter(|_| stops).find(|part| part.contains(&at));
        stopped.map_or(at, |part| part.end)
    }

    /// The time at which the storage completes a request, or fails it.
    fn serve(&self, start: u64, kind: OperationKind, stream: u32, frame: u64) -> (u64, bool) {
        let number = u64::from(stream) << 32 | frame;
        let mut chance = fastrand::Rng::with_seed(self.seed ^ number.wrapping_mul(0x9e37_79b9));
        let (slope, from) = self.decline;
        let declined = start.saturating_sub(from) as f64 * slope;
        let slower = units::rounded(declined.min(1e12));
        let mut left = self.latency / 2 + chance.u64(..self.latency) + slower;
        let mut at = start;
        let frozen =
            self.frozen.iter().filter(|_| self.frozen_file.is_none_or(|file| file == stream));
        for part in frozen.filter(|part| part.end > start) {
            if at + left < part.start {
                break;
            }
            left -= part.start.saturating_sub(at);
            at = part.end;
        }
        let full = kind == OperationKind::Write && start >= self.full_from;
        (at + left, !full && !self.unreadable.contains(&(stream, frame)))
    }

    /// Which frames are late, by stream and number.
    fn late(&self, stops: bool) -> BTreeSet<(u32, u64)> {
        let (plan, mut late) = (&self.plan, BTreeSet::new());
        for stream in 0..plan.streams {
            let mut under_way = BinaryHeap::new();
            let mut start = 0;
            for frame in 0..plan.frames() {
                let intended = plan.intended(Moment::ZERO, stream, frame).0;
                // A full buffer has room again when the first of its requests is complete.
                let full = under_way.len() == index(plan.buffer);
                let room = if full { under_way.pop().map_or(0, |Reverse(end)| end) } else { 0 };
                start = self.awake(intended, stops).max(room).max(start);
                let kind = plan.ask(stream, frame).kind;
                let (end, ok) = self.serve(start, kind, stream, frame);
                let end = self.awake(end, stops);
                under_way.push(Reverse(end));
                if !ok || end > intended + units::nanos(plan.allowed()) {
                    late.insert((stream, frame));
                }
            }
        }
        late
    }
}

/// The storage and the machine of a scenario, in virtual time.
struct ScenarioPort<'a> {
    scenario: &'a FaultScenario,
    now: u64,
    begun: u64,
    /// Tags and results by the time of completion.
    under_way: BTreeMap<(u64, u64), (u64, bool)>,
}

impl Port for ScenarioPort<'_> {
    fn now(&self) -> Moment {
        Moment(self.now)
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        let frame = request.offset / self.scenario.plan.stride();
        let (end, ok) = self.scenario.serve(self.now, request.kind, request.file, frame);
        self.under_way.insert((end, self.begun), (request.tag, ok));
        self.begun += 1;
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let next = self.under_way.first_key_value().map(|((at, _), _)| *at);
        let wakes = next.map_or(until.0, |next| next.min(until.0)).max(self.now);
        self.now = self.scenario.awake(wakes, true);
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.now
        {
            let ((end, _), (tag, ok)) = entry.remove_entry();
            let error = || DeviceError::Io {
                action: "reading",
                path: "file".into(),
                offset: 0,
                length: 0,
                source: io::Error::from_raw_os_error(5),
            };
            let at = Moment(self.scenario.awake(end, true));
            done.push(IoCompletion::new(tag, at, ok.then_some(()).ok_or_else(error)));
        }
        Ok(())
    }

    fn method(&self) -> String {
        "a scenario".to_owned()
    }
}

/// What a run said, in the form of the truth.
#[derive(Debug, PartialEq, Eq)]
struct Blamed {
    storage: u64,
    meter: u64,
    agent_cpu: u64,
}

impl Blamed {
    fn late(&self) -> u64 {
        self.storage + self.meter + self.agent_cpu
    }

    fn is_near(&self, other: &Self) -> bool {
        let near = |a: u64, b: u64| a.abs_diff(b) <= 1;
        near(self.storage, other.storage)
            && near(self.meter, other.meter)
            && near(self.agent_cpu, other.agent_cpu)
    }
}

fn measured(scenario: &FaultScenario) -> (StreamsOutcome, Attribution) {
    let mut port = ScenarioPort { scenario, now: 0, begun: 0, under_way: BTreeMap::new() };
    let outcome = streams::run(&scenario.plan, &mut port, &mut Vec::new(), &mut |_| true).unwrap();
    let attribution = Attribution::of(&outcome, scenario.watched());
    (outcome, attribution)
}

/// Whether the sentence about what broke first names the fault.
fn names_the_fault(scenario: &FaultScenario, truth: &Blamed, attribution: &Attribution) -> bool {
    let (first, has_device) = (&attribution.first, !scenario.samples[0].devices.is_empty());
    if truth.late() == 0 {
        return first.sentence.starts_with("nothing broke");
    }
    if truth.storage == 0 {
        return match scenario.injected {
            Injected::HoggedProcessor => first.resource == Resource::Processors,
            // Another program may use the processors while the meter is stopped.
            _ => {
                let others = scenario.samples[0].processors_busy() > 0.9;
                first.resource == if others { Resource::Processors } else { Resource::Nothing }
            }
        };
    }
    if matches!(scenario.injected, Injected::ReadErrors | Injected::FullDisk) {
        return first.sentence.contains(" failed: reading");
    }
    let frozen = has_device && !scenario.frozen.is_empty();
    first.resource == if frozen { Resource::Device } else { Resource::Nothing }
}

/// Runs these scenarios and compares them with the truth.
#[expect(clippy::print_stdout, reason = "with --nocapture, the counts")]
fn compare(seeds: impl ExactSizeIterator<Item = u64>) {
    let count = seeds.len() as u64;
    let mut wrong: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut late_by_fault: BTreeMap<Injected, u64> = BTreeMap::new();
    for seed in seeds {
        let scenario = FaultScenario::drawn(seed);
        let (late, by_storage) = (scenario.late(true), scenario.late(false));
        let storage = late.intersection(&by_storage).count() as u64;
        // Whoever takes the meter's processor, it had none.
        let truth = Blamed { storage, meter: 0, agent_cpu: late.len() as u64 - storage };
        let (outcome, attribution) = measured(&scenario);
        let super::Faults { storage, meter, agent_cpu } = attribution.faults;
        let said = Blamed { storage, meter, agent_cpu };
        *late_by_fault.entry(scenario.injected).or_default() += truth.late();
        let mut check = |what, right: bool, said: String| {
            if !right {
                let fault = scenario.injected;
                wrong
                    .entry(what)
                    .or_default()
                    .push(format!("seed {seed}, {fault:?}: {said}, {truth:?}"));
            }
        };
        check("late", outcome.late.abs_diff(truth.late()) <= 1, outcome.late.to_string());
        check("blame", said.is_near(&truth), format!("{said:?}"));
        let named = names_the_fault(&scenario, &truth, &attribution);
        check("first", named, attribution.first.sentence.clone());
        // A run that shows less about the storage than about the machine is not valid.
        let own = truth.late() - truth.storage;
        let valid = own * 1000 <= outcome.frames || truth.storage >= 10 * own;
        check("valid", outcome.valid() == valid, outcome.valid().to_string());
    }
    println!("late frames by fault, in {count} runs: {late_by_fault:?}");
    for (what, wrong) in &wrong {
        println!("{what}: {} wrong\n  {}", wrong.len(), wrong.join("\n  "));
    }
    let wrong = |what| wrong.get(what).map_or(0, Vec::len) as u64;
    assert_eq!(wrong("late"), 0, "late frames within one of the truth");
    assert_eq!(wrong("blame"), 0, "the cause of late frames within one of the truth");
    assert!(wrong("first") * 100 <= count, "what broke first is right in 99 of 100 runs");
    assert!(wrong("valid") * 100 <= count, "the verdict on the run is right in 99 of 100 runs");
    let none = |fault: &&Injected| late_by_fault[*fault] == 0;
    assert_eq!(ALL.iter().filter(none).collect::<Vec<_>>(), [&Injected::Nothing]);
}

/// `cargo test -p meter --lib injected -- --nocapture` prints what was counted.
#[test]
fn late_frames_and_their_causes_are_those_injected() {
    let once_wrong = [STOPPED_NEAR_THE_END];
    let seeds: Vec<u64> = (0..500).chain(once_wrong).collect();
    compare(seeds.into_iter());
}

/// `cargo test --release -p meter --lib -- --ignored --nocapture injected`
#[test]
#[ignore = "takes minutes without optimisation"]
fn late_frames_of_many_runs_and_their_causes_are_those_injected() {
    compare((0..MANY).collect::<Vec<u64>>().into_iter());
}
