//! Viewers: what each will do, drawn when it comes; and its requests, byte by byte on a link of
//! its own speed.
//!
//! Which piece is fetched when is [`player`]'s business; what is asked of the engine, the world's.

use crate::scenario::Scenario;
use crate::titles::Title;
use player::{Behaviour, Fetch, Player, TimedAction, ViewerAction};
use server::engine::{ReadId, RequestId, SessionId, TrackNumber};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use units::{BitRate, Moment};

/// What a viewer will do, come what may.
#[derive(Clone, Debug)]
pub(crate) struct ViewerProfile {
    pub(crate) title: usize,
    /// Where it starts in the title.
    pub(crate) from: Duration,
    pub(crate) behaviour: Behaviour,
    /// When it seeks or leaves: requests under way are dropped.
    pub(crate) drops: Vec<Duration>,
    pub(crate) link: BitRate,
    /// Between being let in and asking for anything.
    pub(crate) hesitates: Duration,
    /// Never asks at all.
    pub(crate) silent: bool,
    /// When its socket dies, without a word.
    pub(crate) stuck: Option<Duration>,
    pub(crate) polite: bool,
    /// Fetches that one request of an interleaved file brings.
    pub(crate) fetches_per_request: usize,
    /// It does all that a good player does: if it is let in, it must not see a stall.
    pub(crate) steady: bool,
    /// How long it would rather wait than be refused.
    pub(crate) patience: Duration,
    /// When it asks for a new session in place of the one it has, after it began to play.
    pub(crate) replaces: Option<Duration>,
}

impl ViewerProfile {
    pub(crate) fn draw(scenario: &Scenario, titles: &[Title], chance: &mut fastrand::Rng) -> Self {
        let wanted = &scenario.viewers;
        let title = chance.usize(..titles.len()).min(chance.usize(..titles.len()));
        let length = titles[title].layout.duration;
        let mut happens = |share: f64| chance.f64() < share;
        let (resumes, seeks, pauses, quits) = (
            happens(wanted.resume),
            happens(wanted.seek),
            happens(wanted.pause),
            happens(wanted.quit),
        );
        let (slow, silent, stuck) =
            (happens(wanted.slow), happens(wanted.silent), happens(wanted.stuck));
        let (polite, hesitates) = (happens(wanted.polite), happens(0.1));
        let from = if resumes { part_of(length, chance) } else { Duration::ZERO };
        let mut steps = Vec::new();
        let mut drops = Vec::new();
        if resumes {
            steps.push(TimedAction { at: Duration::ZERO, act: ViewerAction::Seek(from) });
        }
        for _ in 0..if seeks { chance.u32(1..4) } else { 0 } {
            let at = part_of(length, chance);
            steps.push(TimedAction { at, act: ViewerAction::Seek(part_of(length, chance)) });
            drops.push(at);
        }
        if pauses {
            let at = part_of(length, chance);
            let until = at + part_of(scenario.ended_after * 2, chance);
            steps.push(TimedAction { at, act: ViewerAction::Pause });
            steps.push(TimedAction { at: until, act: ViewerAction::Resume });
        }
        if quits {
            let at = part_of(length, chance);
            steps.push(TimedAction { at, act: ViewerAction::Stop });
            drops.push(at);
        }
        let (least, _) = titles[title].rates();
        let link = if slow {
            BitRate(least.0.max(1) * chance.u64(40..95) / 100 + 1000)
        } else {
            titles[title].link_for(scenario.slot / 4)
        };
        let hesitates = if hesitates {
            part_of(scenario.reservation_hold * 3 / 2, chance)
        } else {
            Duration::ZERO
        };
        Self {
            title,
            from,
            behaviour: Behaviour::new(steps),
            drops,
            link,
            hesitates,
            silent,
            stuck: stuck.then(|| part_of(length, chance)),
            polite,
            fetches_per_request: [1, 8, usize::MAX][chance.usize(..3)],
            steady: !(slow || silent || stuck),
            patience: Duration::ZERO,
            replaces: None,
        }
        .with_added(scenario, length, chance)
    }

    /// What was added to the worlds later: drawn behind everything else, so that the rest is as it
    /// was before.
    fn with_added(
        mut self,
        scenario: &Scenario,
        length: Duration,
        chance: &mut fastrand::Rng,
    ) -> Self {
        let wanted = &scenario.viewers;
        if chance.f64() < wanted.patient {
            self.patience = wanted.patience;
        }
        self.replaces = (chance.f64() < wanted.replace).then(|| part_of(length, chance));
        self
    }
}

fn part_of(time: Duration, chance: &mut fastrand::Rng) -> Duration {
    Duration::from_millis(chance.u64(..=u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

/// One viewer in the world.
#[derive(Debug)]
pub(crate) struct Viewer {
    pub(crate) profile: ViewerProfile,
    pub(crate) came: Moment,
    pub(crate) session: Option<SessionId>,
    pub(crate) tracks: Vec<TrackNumber>,
    pub(crate) player: Option<Player>,
    pub(crate) requests: Vec<RequestId>,
    /// Fetches to be tried again later.
    pub(crate) waiting: Vec<Fetch>,
    /// When it will be looked after next.
    pub(crate) wakes: Moment,
    /// From here on it asks for a new session with its next fetch.
    pub(crate) replaces_at: Moment,
    /// In vain so far.
    pub(crate) tries: u32,
    /// Rows of which it needs more, or sooner, than it was promised: something was refused to it;
    /// it skips within what it holds, which nobody else can see; it came back late while it plays.
    pub(crate) ahead: BTreeSet<usize>,
    /// Rows it has not asked for since it sought.
    pub(crate) sought: BTreeSet<usize>,
    /// Since when it stalls, and whether it was promised not to.
    pub(crate) stalls: Option<(Moment, bool)>,
    /// Rows of fetches that its player has.
    pub(crate) rows: usize,
    pub(crate) stuck: bool,
    pub(crate) gone: bool,
}

impl Viewer {
    pub(crate) fn all_rows(&self) -> BTreeSet<usize> {
        (0..self.rows).collect()
    }

    pub(crate) fn new(profile: ViewerProfile) -> Self {
        Self {
            profile,
            came: Moment::ZERO,
            session: None,
            tracks: Vec::new(),
            player: None,
            requests: Vec::new(),
            waiting: Vec::new(),
            wakes: Moment::MAX,
            replaces_at: Moment::MAX,
            tries: 0,
            ahead: BTreeSet::new(),
            sought: BTreeSet::new(),
            stalls: None,
            rows: 0,
            stuck: false,
            gone: false,
        }
    }
}

/// A request, as the shell of a server has it: what was handed over, and what the socket took.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) viewer: usize,
    pub(crate) session: SessionId,
    pub(crate) row: usize,
    pub(crate) first: usize,
    /// Where each of its fetches ends, in bytes of the request.
    ends: Vec<u64>,
    /// How many of them the player has asked for, and how many it has.
    allowed: usize,
    arrived: usize,
    taken: u64,
    /// Handed over, not yet taken: the socket works on the first.
    pub(crate) queue: VecDeque<(ReadId, u32)>,
    pub(crate) sending: bool,
    /// The engine is done with it.
    pub(crate) over: bool,
    /// The player does not count on it any more; what was handed over is still sent.
    pub(crate) abandoned: bool,
    pub(crate) asked: Moment,
    pub(crate) last_sent: Moment,
    /// By when all that was handed over so far was promised; `None` once there is no telling.
    pub(crate) promised: Option<Moment>,
}

impl Request {
    pub(crate) fn new(
        viewer: usize,
        session: SessionId,
        (row, first): (usize, usize),
        ends: Vec<u64>,
        now: Moment,
    ) -> Self {
        Self {
            viewer,
            session,
            row,
            first,
            ends,
            allowed: 1,
            arrived: 0,
            taken: 0,
            queue: VecDeque::new(),
            sending: false,
            over: false,
            abandoned: false,
            asked: now,
            last_sent: now,
            promised: Some(Moment::ZERO),
        }
    }

    /// The player now also wants `fetch`, if this request brings it as its next.
    pub(crate) fn goes_on_with(&mut self, fetch: Fetch) -> bool {
        // Also when all of it has been handed over: it is on its way then.
        let next = !self.abandoned
            && fetch.track == self.row
            && fetch.piece == self.first + self.allowed
            && self.allowed < self.ends.len();
        if next {
            self.allowed += 1;
        }
        next
    }

    /// The next delivery to send, if the socket is free and the player wants more.
    pub(crate) fn next_to_send(&self) -> Option<u32> {
        let wanted = self.abandoned || self.taken < self.ends[self.allowed - 1];
        let (_, len) = self.queue.front().filter(|_| wanted && !self.sending)?;
        Some(*len)
    }

    /// The socket has taken the first delivery.
    pub(crate) fn sent(&mut self, now: Moment) -> (ReadId, u32) {
        let (read, len) = self.queue.pop_front().expect("something was being sent");
        self.sending = false;
        self.taken += u64::from(len);
        self.last_sent = now;
        (read, len)
    }

    /// A fetch that is here now and was asked for; each once.
    pub(crate) fn next_arrival(&mut self) -> Option<Fetch> {
        let awaited = !self.abandoned && self.arrived < self.allowed;
        let here = awaited && self.ends[self.arrived] <= self.taken;
        here.then(|| {
            self.arrived += 1;
            Fetch { track: self.row, piece: self.first + self.arrived - 1 }
        })
    }

    /// The fetch that the player waits for.
    pub(crate) fn awaited(&self) -> Option<Fetch> {
        let piece = self.first + self.arrived;
        (!self.abandoned && self.arrived < self.allowed).then_some(Fetch { track: self.row, piece })
    }

    /// Whether nothing more can come of it.
    pub(crate) fn is_spent(&self) -> bool {
        self.over && self.queue.is_empty() && !self.sending
    }
}
