//! The loop: viewers come and leave, nodes show digests, and a scenario happens.

use super::calendar::Calendar;
use super::checks::{FleetChecker, FleetEvent};
use super::nodes::{DiskViewer, FleetNodes};
use super::popularity::Popularity;
use super::{FleetScenario, FleetSetup};
use crate::admission::RandomSource;
use cluster::placement::{CopyOrder, PlacementPlan, plan};
use cluster::{
    AdmissionClass, ClusterChange, ClusterEvent, ClusterView, CopyPlace, CopyRecord, CopyState,
    Director, DirectorCounters, DirectorStep, NodeAnswer, NodeDigest, NodeId, NodeNumber,
    RefusalReason, StreamMove, StreamNeed, TitleDemand, TitleName, TitleNumber, TitleSize,
};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, float, index, rounded};

/// What was counted in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetRun {
    /// Viewers who came after the fleet had filled.
    pub offered: u64,
    /// Viewers among them who were refused.
    pub blocked: u64,
    /// Viewers among those refused because of what is kept for the loss of a node.
    pub headroom: u64,
    /// Viewers whose node was lost.
    pub lost: u64,
    /// Viewers among them who were not admitted again.
    pub not_again: u64,
    /// Viewers among those for whose title no copy was left.
    pub without_copy: u64,
    /// Copies at the beginning.
    pub copies: u64,
    /// The part of the copies that are more than two for each title.
    pub extra: f64,
    /// Copies that were ordered later.
    pub filled: u64,
    /// What the director did after the fleet had filled.
    pub director: DirectorCounters,
    /// Refusals with a time at which to come back.
    pub timed_refusals: u64,
    /// Viewers at the end.
    pub active: u64,
    /// Events of the whole run.
    pub events: u64,
}

impl FleetRun {
    /// The part of the viewers offered that was refused.
    pub fn blocked_part(&self) -> f64 {
        part(self.blocked, self.offered)
    }

    /// The part of the viewers of lost nodes that was not admitted again.
    pub fn not_again_part(&self) -> f64 {
        part(self.not_again, self.lost)
    }
}

/// The part that `some` are of `all`; 0 of none.
pub(super) fn part(some: u64, all: u64) -> f64 {
    float(some) / float(all.max(1))
}

/// Simulates one setup.
pub(super) fn run(setup: &FleetSetup) -> FleetRun {
    let mut world = World::new(setup);
    world.place_titles();
    world.fill();
    world.begin();
    while let Some((now, event)) = world.next() {
        world.run.events += 1;
        world.happen(now, event);
    }
    world.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorldEvent {
    Leave(u32),
    /// A second begins: the arrivals of the next one are drawn.
    Second,
    /// The viewer of this number among the arrivals of its second.
    Arrive(u32),
    Digest(NodeNumber),
    /// Nodes are lost.
    Lose,
    /// The leases of lost nodes have ended.
    Forget,
    /// Placement looks at what viewers ask for.
    Replan,
    /// The copy of this number is ready.
    Filled(u32),
}

/// A viewer who arrives: the title, and when the viewer will leave.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    title: u32,
    end: Moment,
}

struct World<'a> {
    setup: &'a FleetSetup,
    need: StreamNeed,
    popularity: Popularity,
    arrivals: RandomSource,
    choices: RandomSource,
    view: ClusterView,
    director: Director,
    nodes: FleetNodes,
    calendar: Calendar<WorldEvent>,
    /// The arrivals of this second and of the next, those of even seconds first.
    arriving: [Vec<Arriving>; 2],
    checker: FleetChecker,
    /// Numbers of viewers who have left, for new ones.
    free: Vec<u32>,
    numbers: u32,
    fills: Vec<(TitleNumber, CopyPlace)>,
    /// When each node has done its fills.
    filling_until: Vec<Moment>,
    /// Viewers who asked for each title since placement last looked.
    asked: Vec<u32>,
    run: FleetRun,
}

impl<'a> World<'a> {
    fn new(setup: &'a FleetSetup) -> Self {
        let need = StreamNeed { disk: setup.rate, network: setup.rate, memory: ByteCount::MIB };
        let nodes = index(setup.nodes);
        Self {
            setup,
            need,
            popularity: Popularity::zipf(setup.titles, setup.zipf),
            arrivals: RandomSource::new(setup.seed, 1),
            choices: RandomSource::new(setup.seed, 2),
            view: ClusterView::new(),
            director: Director::new(setup.policy.settings()),
            nodes: FleetNodes::new(setup, need),
            calendar: Calendar::until(setup.time),
            arriving: [Vec::new(), Vec::new()],
            checker: FleetChecker::new(setup),
            free: Vec::new(),
            numbers: 0,
            fills: Vec::new(),
            filling_until: vec![Moment::ZERO; nodes],
            asked: vec![0; index(setup.titles)],
            run: FleetRun::default(),
        }
    }

    fn change(&mut self, change: ClusterChange, now: Moment) {
        let revision = self.view.revision() + 1;
        self.view.apply(ClusterEvent { revision, change }, now);
    }

    /// Nodes and titles, and the copies that placement orders, at once.
    fn place_titles(&mut self) {
        let setup = self.setup;
        let streams = setup.load * float(setup.capacity());
        for title in 0..setup.titles {
            let viewers = self.popularity.parts()[index(title)] * streams;
            self.set_demand(TitleNumber(title), viewers, Moment::ZERO);
        }
        let lease = 3 * u32::try_from(setup.digests.as_secs()).unwrap_or(u32::MAX / 4) + 10;
        for node in 0..setup.nodes {
            let (disks, network, memory) = self.nodes.shares(NodeNumber(node));
            let digest = NodeDigest {
                address: String::new(),
                rack: Some((node / setup.rack.max(1)).to_string()),
                weight: setup.disks.into(),
                lease,
                disks: disks.collect(),
                network,
                memory,
                space: Vec::new(),
            };
            self.change(ClusterChange::Node(node_id(NodeNumber(node)), Some(digest)), Moment::ZERO);
        }
        for order in self.plan((0..setup.titles).map(TitleNumber).collect()) {
            if let CopyOrder::Fill(title, place) = order {
                self.set_copy(title, place, Some(CopyState::Ready), Moment::ZERO);
                self.run.copies += 1;
            }
        }
        let two = u64::from(setup.titles) * 2;
        self.run.extra = part(self.run.copies.saturating_sub(two), two);
    }

    /// The orders of a plan, whose numbers of copies are entered.
    fn plan(&mut self, titles: Vec<TitleNumber>) -> Vec<CopyOrder> {
        let (nodes, rules) = (&self.nodes, self.setup.policy.rules());
        let PlacementPlan { orders, copies } =
            plan(&self.view, &rules, titles, |node| !nodes.is_lost(node));
        for (title, copies) in copies {
            let demand = self.view.title(title).demand();
            self.view.expect(title, TitleDemand { copies, ..demand });
        }
        orders
    }

    fn set_demand(&mut self, title: TitleNumber, viewers: f64, now: Moment) {
        let rate = self.setup.rate;
        let size = TitleSize { rate, size: rate.bytes_in(LENGTH) };
        self.change(ClusterChange::Title(title_name(title), Some(size)), now);
        let demand = self.view.title(title).demand();
        self.view.expect(title, TitleDemand { viewers, ..demand });
    }

    /// Puts or removes one copy.
    fn set_copy(
        &mut self,
        title: TitleNumber,
        place: CopyPlace,
        state: Option<CopyState>,
        now: Moment,
    ) {
        let copies = self.view.copies(title).iter();
        let others = copies.filter(|copy| copy.place.node == place.node && copy.place != place);
        let record = |copy: &cluster::CopyView| CopyRecord {
            disk: copy.place.disk,
            state: copy.state,
            content: None,
        };
        let mut records: Vec<CopyRecord> = others.map(record).collect();
        records.extend(state.map(|state| CopyRecord { disk: place.disk, state, content: None }));
        let change = ClusterChange::Copies(title_name(title), node_id(place.node), records);
        self.change(change, now);
    }

    /// As many viewers as there are in the long run, all at once; nothing of it is counted.
    fn fill(&mut self) {
        let part = if self.setup.scenario == FleetScenario::Crowd { BEFORE_CROWD } else { 1.0 };
        let viewers = rounded(part * self.setup.load * float(self.setup.capacity()));
        for _ in 0..viewers {
            let arrival = self.draw(Moment::ZERO);
            self.arrive(arrival, Moment::ZERO);
            self.run.events += 1;
        }
        self.director = Director::new(self.setup.policy.settings());
        let FleetRun { copies, extra, events, .. } = self.run;
        self.run = FleetRun { copies, extra, events, ..FleetRun::default() };
    }

    fn begin(&mut self) {
        let setup = self.setup;
        for node in 0..setup.nodes {
            let phase = float(node.into()) / float(setup.nodes.into());
            let at = Moment::ZERO + setup.digests.mul_f64(phase);
            self.calendar.push(at, WorldEvent::Digest(NodeNumber(node)));
        }
        self.draw_second(Moment::ZERO);
        self.calendar.push(Moment::ZERO, WorldEvent::Second);
        let middle = Moment::ZERO + setup.time / 2;
        match setup.scenario {
            FleetScenario::Steady | FleetScenario::Crowd => {}
            FleetScenario::Premiere => {
                self.calendar.push(self.quarter() + REPLANNED, WorldEvent::Replan);
            }
            FleetScenario::NodeLoss | FleetScenario::RackLoss => {
                self.calendar.push(middle, WorldEvent::Lose);
            }
        }
    }

    fn next(&mut self) -> Option<(Moment, WorldEvent)> {
        let nodes = &self.nodes;
        self.calendar.pop(|events| {
            nodes.touch(events.iter().filter_map(|(_, event)| match event {
                WorldEvent::Leave(viewer) => Some(*viewer),
                _ => None,
            }));
        })
    }

    fn quarter(&self) -> Moment {
        Moment::ZERO + self.setup.time / 4
    }

    fn happen(&mut self, now: Moment, event: WorldEvent) {
        match event {
            WorldEvent::Leave(viewer) => self.leave(viewer),
            WorldEvent::Second => {
                let next = now + Duration::from_secs(1);
                self.draw_second(next);
                self.touch_second(now);
                self.calendar.push(next, WorldEvent::Second);
            }
            WorldEvent::Arrive(number) => {
                self.arrive(self.arriving[parity(now)][index(number)], now);
            }
            WorldEvent::Digest(node) => self.digest(node, now),
            WorldEvent::Lose => self.lose(now),
            WorldEvent::Forget => {
                let nodes = (0..self.setup.nodes).map(NodeNumber);
                for node in nodes.filter(|node| self.nodes.is_lost(*node)).collect::<Vec<_>>() {
                    self.change(ClusterChange::Node(node_id(node), None), now);
                }
            }
            WorldEvent::Replan => self.replan(now),
            WorldEvent::Filled(number) => {
                let (title, place) = self.fills[index(number)];
                self.set_copy(title, place, Some(CopyState::Ready), now);
            }
        }
    }

    /// Viewers per second.
    fn arrival_rate(&self, now: Moment) -> f64 {
        let viewers = self.setup.load * float(self.setup.capacity());
        let steady = viewers / self.setup.hold.as_secs_f64();
        if self.setup.scenario != FleetScenario::Crowd {
            return steady;
        }
        match now {
            now if now < self.quarter() => BEFORE_CROWD * steady,
            now if now < self.quarter() + CROWD => {
                steady + (1.0 - BEFORE_CROWD) * viewers / CROWD.as_secs_f64()
            }
            _ => steady,
        }
    }

    /// Draws the arrivals of the second that begins at `start`. Arrivals have no memory, so that
    /// those of each second may be drawn anew.
    fn draw_second(&mut self, start: Moment) {
        let mean = 1.0 / self.arrival_rate(start);
        let mut since = self.arrivals.exponential(mean);
        let mut arriving = std::mem::take(&mut self.arriving[parity(start)]);
        arriving.clear();
        while since < 1.0 {
            // Rounded up, the last one would be in the next second.
            let at = start + Duration::from_nanos(rounded(since * 1e9).min(999_999_999));
            let number = u32::try_from(arriving.len()).expect("arrivals have 32 bits");
            self.calendar.push(at, WorldEvent::Arrive(number));
            arriving.push(self.draw(at));
            since += self.arrivals.exponential(mean);
        }
        self.arriving[parity(start)] = arriving;
    }

    /// Reads what the arrivals of a second will need, as for those who leave: these reads wait for
    /// memory together.
    fn touch_second(&self, start: Moment) {
        let arriving = self.arriving[parity(start)].iter();
        let copies = arriving.filter_map(|a| self.view.ready_copies(TitleNumber(a.title)).first());
        std::hint::black_box(copies.fold(0, |sum, copy| sum ^ copy.place.node.0));
    }

    /// Who arrives at a time.
    fn draw(&mut self, at: Moment) -> Arriving {
        let premiere = self.setup.scenario == FleetScenario::Premiere && at >= self.quarter();
        let title = if premiere && self.arrivals.happens(PREMIERE) {
            self.setup.titles - 1
        } else {
            self.popularity.draw(&mut self.arrivals)
        };
        let stays = self.arrivals.exponential(self.setup.hold.as_secs_f64());
        Arriving { title, end: at + Duration::from_secs_f64(stays) }
    }

    fn arrive(&mut self, arrival: Arriving, now: Moment) {
        let Arriving { title, end } = arrival;
        if self.setup.scenario == FleetScenario::Premiere && now >= self.quarter() {
            self.asked[index(title)] += 1;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.numbers += 1;
            self.numbers - 1
        });
        let viewer = DiskViewer { viewer: number, title, end };
        self.run.offered += 1;
        match self.admit(viewer, AdmissionClass::New, now) {
            Ok(place) => {
                self.checker.see(FleetEvent::Began(number, place));
                self.calendar.push(end, WorldEvent::Leave(number));
            }
            Err(reason) => {
                self.free.push(number);
                self.run.blocked += 1;
                self.run.headroom += u64::from(reason == RefusalReason::Headroom);
            }
        }
    }

    /// Drives an attempt to its end, as a director does over the network.
    fn admit(
        &mut self,
        viewer: DiskViewer,
        class: AdmissionClass,
        now: Moment,
    ) -> Result<CopyPlace, RefusalReason> {
        let title = TitleNumber(viewer.title);
        let mut attempt = self.director.begin(title, self.need, class, self.choices.seed());
        let result = loop {
            let answer = match attempt.step(&self.view, now) {
                DirectorStep::Ask(place) => self.nodes.reserve(place, class, now),
                DirectorStep::Move(stream) => self.make_room(&stream, now),
                DirectorStep::Admitted(admitted) => break Ok(admitted.place),
                DirectorStep::Refused(refusal) => {
                    self.run.timed_refusals += u64::from(refusal.retry_after.is_some());
                    break Err(refusal.reason);
                }
            };
            attempt.answered(&mut self.view, answer, now);
        };
        self.director.end(&attempt);
        if let Ok(place) = result {
            self.nodes.enter(place, viewer);
        }
        result
    }

    /// Moves a viewer: reserves the new stream before the old one ends.
    fn make_room(&mut self, stream: &StreamMove, now: Moment) -> NodeAnswer {
        if self.nodes.is_lost(stream.from.node) {
            return NodeAnswer::Unreachable;
        }
        let Some(number) = self.nodes.viewer_of(stream.from, stream.title.0) else {
            return NodeAnswer::Refused(None);
        };
        let answer = self.nodes.reserve(stream.to, AdmissionClass::Again, now);
        if answer == NodeAnswer::Accepted {
            let viewer = self.nodes.leave(number).expect("a viewer on the disk");
            self.nodes.enter(stream.to, viewer);
            self.checker.see(FleetEvent::Moved(number, stream.to));
        }
        answer
    }

    fn leave(&mut self, viewer: u32) {
        self.free.push(viewer);
        if self.nodes.leave(viewer).is_some() {
            self.checker.see(FleetEvent::Left(viewer));
        }
    }

    fn digest(&mut self, node: NodeNumber, now: Moment) {
        if self.nodes.is_lost(node) {
            return;
        }
        // Its view differs from the node only where something has happened there.
        let changed = self.nodes.take_changed(node);
        let (disks, network, memory) = self.nodes.shares(node);
        let disks = changed.then_some(disks).into_iter().flatten();
        self.view.refresh(node, disks, network, memory, now);
        self.calendar.push(now + self.setup.digests, WorldEvent::Digest(node));
    }

    fn lose(&mut self, now: Moment) {
        let mut viewers = Vec::new();
        for node in self.losses() {
            viewers.extend(self.nodes.lose(node));
            self.checker.see(FleetEvent::NodeLost(node));
        }
        // All ask again in the same moment, in any order.
        for number in (1..viewers.len()).rev() {
            viewers.swap(number, self.choices.below(number + 1));
        }
        for viewer in viewers {
            self.run.lost += 1;
            match self.admit(viewer, AdmissionClass::Again, now) {
                Ok(place) => self.checker.see(FleetEvent::Moved(viewer.viewer, place)),
                Err(_) => {
                    self.run.not_again += 1;
                    let copies = self.view.copies(TitleNumber(viewer.title));
                    let left = copies.iter().any(|copy| !self.nodes.is_lost(copy.place.node));
                    self.run.without_copy += u64::from(!left);
                    self.nodes.give_up(viewer.viewer);
                    self.checker.see(FleetEvent::GaveUp(viewer.viewer));
                }
            }
        }
        let lease = self.view.nodes().map(|(_, node)| node.alive_until()).max();
        self.calendar.push(lease.unwrap_or(now).max(now), WorldEvent::Forget);
    }

    /// The nodes that are lost.
    fn losses(&mut self) -> Vec<NodeNumber> {
        let nodes = self.setup.nodes;
        if self.setup.scenario == FleetScenario::RackLoss {
            let rack = self.setup.rack.max(1);
            let drawn = self.choices.below(index(nodes.div_ceil(rack)));
            let first = u32::try_from(drawn).expect("racks have 32 bits") * rack;
            return (first..(first + rack).min(nodes)).map(NodeNumber).collect();
        }
        let mut left: Vec<u32> = (0..nodes).collect();
        let count = index(nodes / 100).max(1).min(left.len());
        let mut draw = |_| NodeNumber(left.swap_remove(self.choices.below(left.len())));
        (0..count).map(&mut draw).collect()
    }

    /// More copies of titles that are asked for more often than expected.
    fn replan(&mut self, now: Moment) {
        let stays = self.setup.hold.as_secs_f64() / REPLANNED.as_secs_f64();
        let mut risen = Vec::new();
        for title in 0..self.setup.titles {
            let asked = f64::from(std::mem::take(&mut self.asked[index(title)]));
            let known = self.view.title(TitleNumber(title)).demand().viewers;
            // Beyond what chance would make of the number that was known.
            if (asked - 4.0 * asked.sqrt()) * stays > 1.15 * known {
                risen.push((TitleNumber(title), asked * stays));
            }
        }
        for (title, viewers) in &risen {
            self.set_demand(*title, *viewers, now);
        }
        let titles = risen.iter().map(|(title, _)| *title).collect();
        for order in self.plan(titles) {
            match order {
                CopyOrder::Fill(title, place) => self.order_fill(title, place, now),
                CopyOrder::Evict(title, place) => self.set_copy(title, place, None, now),
            }
        }
        self.calendar.push(now + REPLANNED, WorldEvent::Replan);
    }

    fn order_fill(&mut self, title: TitleNumber, place: CopyPlace, now: Moment) {
        self.run.filled += 1;
        self.set_copy(title, place, Some(CopyState::Filling), now);
        let takes = self.setup.rate.bytes_in(LENGTH).time_at(FILL_RATE);
        let until = &mut self.filling_until[index(place.node.0)];
        *until = (*until).max(now) + takes;
        let number = u32::try_from(self.fills.len()).expect("fills have 32 bits");
        self.calendar.push(*until, WorldEvent::Filled(number));
        self.fills.push((title, place));
    }

    fn finish(mut self) -> FleetRun {
        self.run.active = self.nodes.viewers();
        self.checker.finish(self.run.active);
        self.run.director = *self.director.counters();
        self.run
    }
}

/// 0 in even seconds and 1 in odd ones.
fn parity(now: Moment) -> usize {
    usize::from(!(now.0 / 1_000_000_000).is_multiple_of(2))
}

fn node_id(node: NodeNumber) -> NodeId {
    NodeId::new(format!("node-{}", node.0)).expect("letters and digits")
}

fn title_name(title: TitleNumber) -> TitleName {
    TitleName::new(format!("title {}", title.0)).expect("letters and digits")
}

/// Length of a title, which its size follows from.
const LENGTH: Duration = Duration::from_secs(2 * 3600);
/// The rate at which a node fills copies, one after the other: that of a Netflix appliance.
const FILL_RATE: BitRate = BitRate(1_200_000_000);
/// The part of the load before a crowd comes.
const BEFORE_CROWD: f64 = 0.5;
/// The time in which a crowd comes.
const CROWD: Duration = Duration::from_secs(60);
/// The part of the viewers who want the title of a premiere.
const PREMIERE: f64 = 0.02;
/// The interval in which placement looks at what viewers ask for.
const REPLANNED: Duration = Duration::from_secs(300);
