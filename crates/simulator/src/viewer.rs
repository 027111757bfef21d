//! A viewer: a player, a network between it and the server, and a mind of its own.
//!
//! It holds no engine: the world asks it what it wants and tells it what came.

use crate::scenario::People;
use crate::title::Title;
use player::{Act, Action, Behaviour, Fetch, Player, PlayerOptions, Step};
use server::engine::{Part, ReadId, RequestId, SessionId, SessionSummary, TrackNumber};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use units::{BitRate, ByteCount, Moment};

/// What sort of viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From start to end, over a good network.
    Good,
    Seek,
    Pause,
    Quit,
    Slow,
    /// One long body, taken as play-out goes on.
    Progressive,
}

pub(crate) fn draw_kind(random: &mut fastrand::Rng, people: &People) -> Kind {
    let mut draw = random.u32(0..100);
    let kinds = [
        (Kind::Seek, people.seek),
        (Kind::Pause, people.pause),
        (Kind::Quit, people.quit),
        (Kind::Slow, people.slow),
        (Kind::Progressive, people.progressive),
    ];
    for (kind, share) in kinds {
        match draw.checked_sub(share) {
            None => return kind,
            Some(rest) => draw = rest,
        }
    }
    Kind::Good
}

#[derive(Debug)]
pub(crate) struct Viewer {
    pub(crate) session: SessionId,
    pub(crate) title: Rc<Title>,
    pub(crate) kind: Kind,
    pub(crate) player: Player,
    /// Set when it has left; nothing is asked any more.
    pub(crate) gone: bool,
    pub(crate) refused: u32,
    pub(crate) summary: Option<SessionSummary>,
    /// The next time the world looks after it, so that it does so once.
    pub(crate) wake: Option<Moment>,
    tracks: Vec<TrackNumber>,
    link: BitRate,
    link_free: Moment,
    /// Not asked again before this.
    wait_until: Moment,
    requests: BTreeMap<RequestId, Flight>,
    started: Moment,
}

#[derive(Debug)]
struct Flight {
    fetch: Option<Fetch>,
    unsent: u32,
    complete: bool,
}

/// What a viewer wants from the server.
pub(crate) struct Wish {
    pub(crate) fetch: Option<Fetch>,
    pub(crate) parts: Vec<Part>,
}

impl Viewer {
    pub(crate) fn new(
        random: &mut fastrand::Rng,
        now: Moment,
        session: SessionId,
        title: Rc<Title>,
        tracks: Vec<TrackNumber>,
        kind: Kind,
    ) -> Self {
        let timeline = title.timeline(&tracks);
        let length = timeline.duration();
        let rate = BitRate::of(ByteCount(title.layout.tracks[0].bytes), length).0;
        let link = if kind == Kind::Slow {
            BitRate(rate * random.u64(40..95) / 100)
        } else {
            BitRate(rate * 40 + 20_000_000)
        };
        let options = PlayerOptions {
            start: Duration::ZERO,
            buffer: Duration::from_secs(random.u64(6..30)),
            ..PlayerOptions::default()
        };
        let start = now + Duration::from_millis(random.u64(0..300));
        let behaviour = draw_behaviour(random, kind, length);
        Self {
            session,
            player: Player::new(start, timeline, options, &behaviour),
            title,
            kind,
            tracks,
            gone: false,
            refused: 0,
            summary: None,
            wake: None,
            link,
            link_free: now,
            wait_until: start,
            requests: BTreeMap::new(),
            started: start,
        }
    }

    /// What it wants now, if anything.
    pub(crate) fn wish(&mut self, now: Moment) -> Option<Wish> {
        if self.gone || now < self.wait_until {
            return None;
        }
        if self.kind == Kind::Progressive {
            let first = self.requests.is_empty();
            let parts = || self.title.body(&self.tracks, 0);
            return first.then(|| Wish { fetch: None, parts: parts() });
        }
        loop {
            match self.player.poll(now)? {
                Action::Fetch(fetch) => {
                    let part = self.title.segment(self.tracks[fetch.track], fetch.piece);
                    return Some(Wish { fetch: Some(fetch), parts: vec![part] });
                }
                Action::Over => self.gone = true,
                Action::Started | Action::Stalled | Action::Resumed => {}
            }
        }
    }

    pub(crate) fn asked(&mut self, request: RequestId, fetch: Option<Fetch>) {
        self.requests.insert(request, Flight { fetch, unsent: 0, complete: false });
    }

    /// When it next wants to be looked after.
    pub(crate) fn wake_at(&self, now: Moment) -> Option<Moment> {
        if self.gone {
            return None;
        }
        if now < self.wait_until {
            return Some(self.wait_until);
        }
        if self.kind == Kind::Progressive { None } else { self.player.wake_at() }
    }

    /// Bytes are on their way to it: when its network has taken them.
    pub(crate) fn delivered(&mut self, now: Moment, request: RequestId, bytes: u64) -> Moment {
        let Some(flight) = self.requests.get_mut(&request) else { return now };
        flight.unsent += 1;
        let free = self.link_free.max(now) + ByteCount(bytes).time_at(self.link);
        self.link_free = free;
        if self.kind == Kind::Progressive {
            // Backpressure: a browser stops reading some way ahead of what it shows.
            let rate = BitRate::of(ByteCount(bytes), self.title.duration(0)).0.max(1);
            let _ = rate;
        }
        free
    }

    /// Its network has taken one delivery.
    pub(crate) fn taken(&mut self, now: Moment, request: RequestId, _read: ReadId) {
        if let Some(flight) = self.requests.get_mut(&request) {
            flight.unsent -= 1;
            self.finish(now, request);
        }
    }

    pub(crate) fn complete(&mut self, now: Moment, request: RequestId) {
        if let Some(flight) = self.requests.get_mut(&request) {
            flight.complete = true;
            self.finish(now, request);
        }
    }

    fn finish(&mut self, now: Moment, request: RequestId) {
        let flight = &self.requests[&request];
        if !flight.complete || flight.unsent > 0 {
            return;
        }
        let flight = self.requests.remove(&request).expect("looked up just now");
        match flight.fetch {
            Some(fetch) => self.player.arrived(now, fetch),
            None => self.gone = true,
        }
    }

    /// The server will not, or cannot. It tries again a few times.
    pub(crate) fn turned_down(&mut self, now: Moment, request: RequestId, wait: Duration) {
        let Some(flight) = self.requests.remove(&request) else { return };
        self.refused += 1;
        self.wait_until = now + wait.min(Duration::from_secs(3));
        match flight.fetch {
            Some(fetch) if self.refused < PATIENCE => self.player.failed(now, fetch),
            _ => self.gone = true,
        }
    }

    /// Whether it still waits for `request`.
    pub(crate) fn waits_for(&self, request: RequestId) -> bool {
        self.requests.contains_key(&request)
    }

    /// Everything it still waits for.
    pub(crate) fn open(&self) -> Vec<RequestId> {
        self.requests.keys().copied().collect()
    }

    /// When its player was started.
    pub(crate) fn started(&self) -> Moment {
        self.started
    }
}

fn draw_behaviour(random: &mut fastrand::Rng, kind: Kind, length: Duration) -> Behaviour {
    let at = |random: &mut fastrand::Rng| length.mul_f64(random.f64());
    let step = |at, act| Step { at, act };
    match kind {
        Kind::Seek => {
            let seeks = (0..random.u8(1..4)).map(|_| step(at(random), Act::Seek(at(random))));
            let seeks: Vec<Step> = seeks.collect();
            Behaviour::new(seeks).and_stop_after(length * 2)
        }
        Kind::Pause => {
            let from = at(random);
            let to = from + Duration::from_secs(random.u64(1..60));
            Behaviour::new(vec![step(from, Act::Pause), step(to, Act::Resume)])
        }
        Kind::Quit => Behaviour::stop_after(at(random)),
        Kind::Slow => Behaviour::stop_after(length * 3),
        Kind::Good | Kind::Progressive => Behaviour::default(),
    }
}

/// Refusals before a viewer gives up.
const PATIENCE: u32 = 6;
