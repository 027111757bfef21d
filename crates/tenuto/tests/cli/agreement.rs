//! One modelled disk, asked by three ways in virtual time: the number that `plan` computes, the
//! viewers that the server's engine admits and serves on time, and the streams that `meter
//! capacity` finds. Where they differ, docs/guide/plan.md says why.

use crate::program::TestDir;
use disk::{DiskModel, Head};
use engine::{
    Action, AdmissionDecision, AdmitRequest, DiskGuarantee, DiskNumber, Engine, EngineConfig,
    Layout, MaxWait, MediaRequest, Part, Priority, ReadId, ReadOutcome, RequestId, SessionId,
    TitleKey, TrackLayout,
};
use scheduler::{DiskTimings, Lead, PolicyKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment};

#[test]
fn the_engine_holds_what_is_planned_on_a_disk_with_an_arm() {
    // More: the platter comes after half a turn on average, and `plan` counts a whole one.
    let (rate, read) = (BitRate(5_000_000), 1 << 20);
    for model in ["hdd-20tb", "st318406lw"] {
        let planned = planned(model, rate, read);
        let served = Served::run(model, rate, read).admitted();
        let found = format!("{model}: {served} served, {planned} planned");
        assert!(served * 50 >= planned * 49, "{found}");
    }
}

#[test]
fn plan_the_engine_and_the_meter_agree_on_a_disk_without_an_arm() {
    let (model, rate, read) = ("ssd-sata", BitRate(20_000_000), 1 << 20);
    let planned = planned(model, rate, read);
    let served = Served::run(model, rate, read).admitted();
    near(model, read, [planned, served]);
    // `plan` has a disk that waits for each batch of reads before it gets the next, as it
    // guarantees; the meter keeps its queue full.
    let metered = metered(model, rate);
    assert!(planned <= metered && metered * 95 <= planned * 100, "{planned} and {metered}");
}

fn near(model: &str, read: u64, [one, other]: [u64; 2]) {
    let said = format!("{model}, reads of {}: {one} and {other}", ByteCount(read));
    assert!(one.abs_diff(other) * 50 <= one, "{said}");
}

fn planned(model: &str, rate: BitRate, read: u64) -> u64 {
    let plan = TestDir::new().json(&format!("plan --model {model} --rate {}", rate.0));
    let rows = plan["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["read_size"] == read).unwrap();
    row["admitted"]["time-domain"]["streams"].as_u64().unwrap()
}

/// Streams of this rate in reads of 1 MiB.
fn metered(model: &str, rate: BitRate) -> u64 {
    let dir = TestDir::new();
    dir.write(
        "stream.toml",
        format!(
            "name = \"stream\"\ntitle = \"{rate}\"\nbytes = 1_048_576\nfps = \"{}/1048576\"\n\
             pattern = \"sequential\"\nbits_per_s = {}\ndefinition = {{ kind = \"rate\" }}\n\
             source = \"a test\"\nstatus = \"house\"\n",
            rate.0 / 8,
            rate.0
        ),
    );
    // A read is late when the next one is due; the runs are long, so that what is behind at the
    // end of a run is little of it.
    let found = dir.json(&format!(
        "meter capacity --target sim:{model} --profile stream.toml --duration 5min \
         --buffer-frames 1 --confirm 1min"
    ));
    found["streams"].as_u64().unwrap()
}

/// The engine with viewers who come evenly, each with a title of constant rate at a place of its
/// own, and ask for each piece when they play it.
struct Served {
    engine: Engine,
    head: Head,
    now: Moment,
    events: BTreeMap<(Moment, u64), Event>,
    scheduled: u64,
    viewers: BTreeSet<SessionId>,
    last_admission: Moment,
    rate: BitRate,
    read: u64,
    came: u64,
}

enum Event {
    Arrivals,
    Read(ReadId),
    Ask(SessionId, u64),
    Sent(RequestId, ReadId),
}

impl Served {
    fn run(model: &str, rate: BitRate, read: u64) -> Self {
        let model = DiskModel::preset(model).unwrap();
        let depth = model.queue_depth(ByteCount(read));
        let guarantee = DiskGuarantee {
            min_read: model.guaranteed_reads(ByteCount(read), SLOT).max(1),
            read_size: ByteCount(read),
            longest_read: model.worst_read(ByteCount(read)),
            queue_depth: depth,
        };
        let mut engine = Engine::new(EngineConfig {
            slot: SLOT,
            policy: PolicyKind::TimeDomain,
            startup: SLOT * 2,
            buffers: ByteCount(1 << 44),
            network: None,
            reservation_hold: A_DAY,
            idle_timeout: A_DAY,
            session_timeout: A_DAY,
            survive_loss: false,
            fills: 0,
            disks: vec![guarantee],
        });
        let timings = DiskTimings::of_model(&model, ByteCount(read), depth);
        engine.set_timings(Moment::ZERO, DiskNumber(0), timings);
        let mut served = Self {
            engine,
            head: model.head(),
            now: Moment::ZERO,
            events: BTreeMap::new(),
            scheduled: 0,
            viewers: BTreeSet::new(),
            last_admission: Moment::ZERO,
            rate,
            read,
            came: 0,
        };
        served.schedule(Moment::ZERO, Event::Arrivals);
        while served.step() {}
        served
    }

    fn admitted(&self) -> u64 {
        let late = self.engine.status(self.now).counters.deadline_misses;
        assert_eq!(late, 0, "reads were late");
        self.viewers.len() as u64
    }

    fn schedule(&mut self, at: Moment, event: Event) {
        self.scheduled += 1;
        self.events.insert((at, self.scheduled), event);
    }

    /// False when nobody was admitted for as long as `plan` waits, or after a minute.
    fn step(&mut self) -> bool {
        while let Some(actions) = Some(self.engine.take_actions()).filter(|all| !all.is_empty()) {
            actions.into_iter().for_each(|action| self.execute(action));
        }
        let wakeup = self.engine.next_wakeup().max(self.now);
        match self.events.first_entry().filter(|first| first.key().0 <= wakeup) {
            Some(first) => {
                self.now = first.key().0;
                let event = first.remove();
                self.handle(event);
            }
            None => {
                self.now = wakeup;
                self.engine.tick(wakeup);
            }
        }
        self.now.since(self.last_admission) < PATIENCE && self.now < Moment::ZERO + FILLING
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrivals => {
                // As many as transfer alone would allow come in half of the time.
                let most = self.head.model().mean_rate().0 / self.rate.0;
                let slots = u64::try_from(FILLING.as_millis() / SLOT.as_millis()).unwrap();
                (0..(2 * most).div_ceil(slots)).for_each(|_| self.arrive());
                self.schedule(self.now + SLOT, Event::Arrivals);
            }
            Event::Read(read) => self.engine.read_done(self.now, read, ReadOutcome::Good),
            Event::Ask(session, piece) => {
                let bytes = piece * self.read..(piece + 1) * self.read;
                let request = RequestId(self.scheduled);
                let parts = vec![Part { track: 0, bytes }];
                self.engine.request(self.now, MediaRequest { request, session, parts });
            }
            Event::Sent(request, read) => self.engine.sent(self.now, request, read),
        }
    }

    fn arrive(&mut self) {
        let lasts = ByteCount(self.read).time_at(self.rate);
        let pieces = u64::try_from(LENGTH.as_nanos().div_ceil(lasts.as_nanos())).unwrap();
        let due = |piece: u64| {
            let at = lasts * u32::try_from(piece).unwrap();
            u32::try_from(at.as_millis()).unwrap()
        };
        let room = self.head.model().capacity().0 - pieces * self.read;
        let at = (u128::from(room) * u128::from(self.came.wrapping_mul(GOLDEN))) >> 64;
        let at = units::align_down(u64::try_from(at).unwrap(), 4096);
        self.came += 1;
        let track = TrackLayout {
            bytes: pieces * self.read,
            piece: u32::try_from(self.read).unwrap(),
            lead: Lead::default(),
            runs: std::iter::once(at..at + pieces * self.read).collect(),
            due: (0..pieces).map(due).collect(),
            stored: Vec::new(),
            key_frames_of: None,
            times: OnceLock::new(),
        };
        let layout = Arc::new(Layout {
            title: TitleKey(self.came),
            disk: DiskNumber(0),
            duration: LENGTH,
            tracks: vec![track],
        });
        let request = AdmitRequest {
            layout,
            copies: Vec::new(),
            offers: vec![vec![0]],
            start: Duration::ZERO,
            max_wait: MaxWait::default(),
            replaces: None,
            fill: None,
            priority: Priority::default(),
        };
        let decision = self.engine.admit(self.now, request);
        let AdmissionDecision::Admitted { session, .. } = decision else { return };
        self.viewers.insert(session);
        self.last_admission = self.now;
        let played = |piece| Duration::from_millis(due(piece).into()).max(SLOT * 2);
        for piece in (0..pieces).take_while(|piece| played(*piece) <= FILLING) {
            let played = played(piece);
            self.schedule(self.now + played, Event::Ask(session, piece));
        }
    }

    fn execute(&mut self, action: Action) {
        match action {
            Action::Read { read, device_offset, len, .. } => {
                let end = self.head.serve(self.now, device_offset, len.into(), false).finish;
                self.schedule(end, Event::Read(read));
            }
            Action::Deliver { request, read, .. } => {
                self.schedule(self.now, Event::Sent(request, read));
            }
            _ => {}
        }
    }
}

const SLOT: Duration = Duration::from_millis(500);
const A_DAY: Duration = Duration::from_secs(86_400);
/// As in `plan`.
const LENGTH: Duration = Duration::from_secs(2 * 3600);
const PATIENCE: Duration = Duration::from_secs(30);
const FILLING: Duration = Duration::from_secs(60);
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
