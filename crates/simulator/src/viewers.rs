//! Viewers: what each will do, drawn when the world is made, and the state of its requests on a
//! link of its own speed.
//!
//! The choice of the next piece is the part of [`player`]; what is requested of the engine is the
//! part of the world.

use crate::scenario::Scenario;
use crate::titles::Title;
use engine::{Part, Priority, ReadId, RequestId, ResponsePlace, SessionId, TrackNumber};
use player::{Behaviour, Fetch, Player, TimedAction, ViewerAction};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, Moment};

/// What a viewer will do, whatever the engine answers.
#[derive(Clone, Debug)]
pub(crate) struct ViewerProfile {
    pub(crate) title: usize,
    /// Media time at which it starts.
    pub(crate) from: Duration,
    pub(crate) behaviour: Behaviour,
    /// The viewer starts three fetches before the end of what is offered, if the title is being
    /// recorded.
    pub(crate) live: bool,
    /// When it seeks or leaves; its open requests are cancelled then.
    pub(crate) cancels_at: Vec<Duration>,
    pub(crate) link: BitRate,
    /// Time between its admission and its first request.
    pub(crate) start_delay: Duration,
    /// The viewer makes no request after its admission.
    pub(crate) silent: bool,
    /// When its socket stops taking data, without being closed.
    pub(crate) socket_stalls_after: Option<Duration>,
    /// The viewer closes its session when it leaves.
    pub(crate) closes_session: bool,
    /// Number of fetches that one request of an interleaved file brings.
    pub(crate) fetches_per_request: usize,
    /// The viewer's network is fast enough and it does not stop reading: once admitted, it must not
    /// stall.
    pub(crate) well_behaved: bool,
    /// The longest postponement of its start that it prefers to a refusal.
    pub(crate) patience: Duration,
    /// Time after the start of play-out at which it replaces its session by a new one.
    pub(crate) replaces_after: Option<Duration>,
    /// The viewer has a connection for each request.
    pub(crate) reconnects: bool,
    /// Time after the start of play-out at which it closes its connection, if nothing is open.
    pub(crate) away_after: Option<Duration>,
    /// The viewer closes its connections when it leaves.
    pub(crate) hangs_up: bool,
    /// The viewer ends its session first when it leaves.
    pub(crate) ends_session: bool,
    /// The viewer asks for the next segment before it has read the one before.
    pub(crate) reads_ahead: bool,
    pub(crate) priority: Priority,
}

impl ViewerProfile {
    pub(crate) fn draw(scenario: &Scenario, titles: &[Title], rng: &mut fastrand::Rng) -> Self {
        let shares = &scenario.viewers;
        let title = popular_title(titles.len(), shares.zipf, rng);
        let length = titles[title].layout.duration;
        let mut happens = |share: f64| rng.f64() < share;
        // Drawn also where a share is zero, so that a share that becomes zero moves no other of
        // these decisions.
        let [resumes, seeks, pauses, quits] =
            [shares.resume, shares.seek, shares.pause, shares.quit].map(&mut happens);
        let [slow, silent, socket_stalls] =
            [shares.slow, shares.silent, shares.stalled_socket].map(&mut happens);
        let [closes_session, starts_late] = [shares.close, 0.1].map(happens);
        let from = resumes.then(|| part_of(length, rng));
        // What it would seek to may not be offered yet.
        let seeks = seeks && !titles[title].grows();
        let (steps, cancels_at) = steps(scenario, length, from, [seeks, pauses, quits], rng);
        let link = if slow {
            // Too slow for any offer of the title, so that play-out stalls. The 1,000 bit/s are for
            // tiny titles, whose mean rate may be a few bytes per second.
            BitRate(titles[title].lowest_rate().0.max(1) * rng.u64(40..95) / 100 + 1000)
        } else {
            // The largest fetch takes a quarter of a slot on this link, and at most half of the
            // time that it plays, so that the disk alone decides whether the viewer stalls.
            let plays = titles[title].fetch_start(1);
            titles[title].link_for((scenario.slot / 4).min(plays / 2))
        };
        // Up to half as long again as the reservation is held: some come too late.
        let start_delay = if starts_late {
            part_of(scenario.reservation_hold * 3 / 2, rng)
        } else {
            Duration::ZERO
        };
        let mut profile = Self {
            title,
            from: from.unwrap_or_default(),
            behaviour: Behaviour::new(steps),
            live: false,
            cancels_at,
            link,
            start_delay,
            silent,
            socket_stalls_after: socket_stalls.then(|| part_of(length, rng)),
            closes_session,
            // As players read a progressive file: a range for each fetch, a range for several, or
            // all the rest of the file in one request.
            fetches_per_request: [1, 8, usize::MAX][rng.usize(..3)],
            well_behaved: !(slow || silent || socket_stalls),
            // Drawn after all others, because they were added later: a seed without them keeps its
            // world.
            patience: if rng.f64() < shares.patient { shares.patience } else { Duration::ZERO },
            replaces_after: (rng.f64() < shares.replace).then(|| part_of(length, rng)),
            reconnects: rng.f64() < shares.reconnect,
            away_after: (rng.f64() < shares.away).then(|| part_of(length, rng)),
            hangs_up: rng.f64() < shares.hang_up,
            ends_session: rng.f64() < shares.end,
            priority: match (rng.f64() < shares.low, rng.f64() < shares.high) {
                (true, _) => Priority::Low,
                (false, true) => Priority::High,
                (false, false) => Priority::Normal,
            },
            reads_ahead: rng.f64() < shares.read_ahead,
        };
        if titles[title].grows() {
            profile.live = rng.bool();
        }
        profile
    }

    /// Starts at a media time, whatever was drawn.
    pub(crate) fn start_at(&mut self, from: Duration) {
        let others = self.behaviour.steps().iter().copied();
        let mut steps: Vec<TimedAction> =
            others.filter(|step| !matches!(step.action, ViewerAction::Seek(_))).collect();
        if !from.is_zero() {
            steps.insert(0, TimedAction { at: Duration::ZERO, action: ViewerAction::Seek(from) });
        }
        (self.from, self.behaviour) = (from, Behaviour::new(steps));
    }
}

/// What a viewer does who starts at `from`, and when it cancels its requests.
fn steps(
    scenario: &Scenario,
    length: Duration,
    from: Option<Duration>,
    [seeks, pauses, quits]: [bool; 3],
    rng: &mut fastrand::Rng,
) -> (Vec<TimedAction>, Vec<Duration>) {
    let (mut steps, mut cancels_at) = (Vec::new(), Vec::new());
    let mut add = |at, action| steps.push(TimedAction { at, action });
    if let Some(from) = from {
        add(Duration::ZERO, ViewerAction::Seek(from));
    }
    for _ in 0..if seeks { rng.u32(1..=scenario.viewers.most_seeks) } else { 0 } {
        let seeks_at = part_of(length, rng);
        add(seeks_at, ViewerAction::Seek(part_of(length, rng)));
        // A browser aborts the requests of the old position. The player model does not, so the
        // world does it at the same time.
        cancels_at.push(seeks_at);
    }
    if pauses {
        let pauses_at = part_of(length, rng);
        add(pauses_at, ViewerAction::Pause);
        // Up to twice the time after which a silent session is ended: about half of the pauses
        // outlive their session.
        add(pauses_at + part_of(scenario.ended_after * 2, rng), ViewerAction::Resume);
    }
    if quits {
        let quits_at = part_of(length, rng);
        add(quits_at, ViewerAction::Stop);
        cancels_at.push(quits_at);
    }
    (steps, cancels_at)
}

/// Draws a title; some are more popular than others.
fn popular_title(titles: usize, exponent: f64, rng: &mut fastrand::Rng) -> usize {
    if exponent == 0.0 {
        return rng.usize(..titles).min(rng.usize(..titles));
    }
    let share = |rank: u32| f64::from(rank).powf(-exponent);
    let ranks = || 1..=u32::try_from(titles).expect("few titles");
    let mut left = rng.f64() * ranks().map(share).sum::<f64>();
    let chosen = ranks().position(|rank| {
        left -= share(rank);
        left < 0.0
    });
    chosen.unwrap_or(titles - 1)
}

/// Draws a time between zero and `time`.
fn part_of(time: Duration, rng: &mut fastrand::Rng) -> Duration {
    Duration::from_millis(rng.u64(..=u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

/// One viewer of the world. A row is one of the tracks of its player, or all of them where the
/// title is fetched as one interleaved file.
#[derive(Debug)]
pub(crate) struct Viewer {
    pub(crate) profile: ViewerProfile,
    pub(crate) session: Option<SessionId>,
    pub(crate) tracks: Vec<TrackNumber>,
    /// Number of fetches of each row that its session was admitted or extended to.
    pub(crate) granted: usize,
    pub(crate) player: Option<Player>,
    /// Open requests.
    pub(crate) requests: Vec<RequestId>,
    /// Fetches to be repeated at the next retry.
    pub(crate) to_retry: Vec<Fetch>,
    /// Events at which it asks again for what was not offered yet.
    pub(crate) polls: u32,
    /// The earliest wake-up that is scheduled for its player.
    pub(crate) wake_at: Moment,
    /// The first fetch after this time requests a new session.
    pub(crate) replaces_at: Moment,
    /// Attempts without success since the last one that succeeded.
    pub(crate) attempts: u32,
    /// Rows that may need data earlier than the engine guarantees: a request was refused, the
    /// viewer has sought within its buffer, or it was readmitted while it plays.
    pub(crate) rows_without_guarantee: BTreeSet<usize>,
    /// Rows without a request since the last seek.
    pub(crate) rows_after_seek: BTreeSet<usize>,
    pub(crate) stall: Option<Stall>,
    /// Number of rows of its player.
    pub(crate) rows: usize,
    pub(crate) socket_stalled: bool,
    /// The viewer has closed its connections since its last request.
    pub(crate) disconnected: bool,
    pub(crate) has_left: bool,
}

/// A stall that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    pub(crate) since: Moment,
    /// The engine's guarantee excludes the stall.
    pub(crate) guaranteed: bool,
}

impl Viewer {
    pub(crate) fn all_rows(&self) -> BTreeSet<usize> {
        (0..self.rows).collect()
    }

    /// Whether the engine's guarantee excludes a stall of this viewer now.
    pub(crate) fn is_guaranteed(&self) -> bool {
        self.profile.well_behaved && self.rows_without_guarantee.is_empty()
    }

    pub(crate) fn new(profile: ViewerProfile) -> Self {
        Self {
            profile,
            session: None,
            tracks: Vec::new(),
            granted: 0,
            player: None,
            requests: Vec::new(),
            to_retry: Vec::new(),
            polls: 0,
            wake_at: Moment::MAX,
            replaces_at: Moment::MAX,
            attempts: 0,
            rows_without_guarantee: BTreeSet::new(),
            rows_after_seek: BTreeSet::new(),
            stall: None,
            rows: 0,
            socket_stalled: false,
            disconnected: false,
            has_left: false,
        }
    }
}

/// The fetches of one row that a request brings.
#[derive(Debug)]
pub(crate) struct FetchRange {
    pub(crate) row: usize,
    /// Number of the first fetch.
    pub(crate) first: usize,
    /// Where each fetch ends, in bytes of the request.
    pub(crate) ends: Vec<u64>,
}

impl FetchRange {
    /// Whether it brings `fetch`.
    pub(crate) fn includes(&self, fetch: Fetch) -> bool {
        let pieces = self.first..self.first + self.ends.len();
        self.row == fetch.track && pieces.contains(&fetch.piece)
    }

    fn number(&self, number: usize) -> Fetch {
        Fetch { track: self.row, piece: self.first + number }
    }
}

/// What the engine is asked for at a time of a response, in order, and what it was asked for last.
#[derive(Debug)]
pub(crate) struct Windows {
    /// Not requested yet.
    rest: VecDeque<Vec<Part>>,
    /// Where the response ends in each track.
    ends: Arc<[(TrackNumber, u64)]>,
    /// The requests so far.
    pub(crate) requested: Vec<RequestId>,
    /// The engine has delivered all that it was asked for.
    pub(crate) delivered: bool,
}

impl Windows {
    /// Divides a response into windows of `bytes` bytes. `ends`: where its fetches end; a window
    /// ends with one of them where the response has `several` tracks, so that all of these are in
    /// the first.
    pub(crate) fn divide(parts: &[Part], bytes: u64, ends: &[u64], several: bool) -> Self {
        let mut track_ends = BTreeMap::new();
        for part in parts {
            let end = track_ends.entry(part.track).or_insert(0);
            *end = part.bytes.end.max(*end);
        }
        let (mut rest, mut window, mut place, mut cut) = (VecDeque::new(), Vec::new(), 0, bytes);
        for part in parts {
            let mut left = part.clone();
            while !left.bytes.is_empty() {
                let window_end = match several {
                    true => ends.iter().copied().find(|end| *end >= cut).unwrap_or(u64::MAX),
                    false => cut,
                };
                let end = left.bytes.end.min(left.bytes.start.saturating_add(window_end - place));
                place += end - left.bytes.start;
                window.push(Part { track: left.track, bytes: left.bytes.start..end });
                left.bytes.start = end;
                if place == window_end {
                    rest.push_back(std::mem::take(&mut window));
                    cut = place + bytes;
                }
            }
        }
        rest.extend((!window.is_empty()).then_some(window));
        let ends = track_ends.into_iter().collect();
        Self { rest, ends, requested: Vec::new(), delivered: true }
    }

    /// The next window and its place in the response.
    pub(crate) fn next(&mut self, request: RequestId) -> Option<(ResponsePlace, Vec<Part>)> {
        let parts = self.rest.pop_front()?;
        let before = self.requested.last().copied();
        self.requested.push(request);
        self.delivered = false;
        Some((ResponsePlace { before, ends: Arc::clone(&self.ends) }, parts))
    }

    /// Whether the engine was asked for the whole response.
    pub(crate) fn is_requested(&self) -> bool {
        self.rest.is_empty()
    }
}

/// A delivery that the socket has not taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsentBuffer {
    /// The request that it was delivered for.
    pub(crate) window: RequestId,
    pub(crate) read: ReadId,
    pub(crate) len: u32,
}

/// A request as a server's connection has it: what was delivered, and what the socket has taken.
#[derive(Debug)]
pub(crate) struct ViewerRequest {
    pub(crate) viewer: usize,
    pub(crate) windows: Windows,
    pub(crate) session: SessionId,
    pub(crate) fetches: FetchRange,
    /// Number of its fetches that the player has asked for.
    wanted: usize,
    /// Number of its fetches that the player has received.
    arrived: usize,
    /// Bytes that the socket has taken.
    sent: u64,
    /// Deliveries in the order of sending; the socket sends the first.
    pub(crate) unsent: VecDeque<UnsentBuffer>,
    pub(crate) sending: bool,
    /// The engine has ended the request.
    pub(crate) closed: bool,
    /// The player no longer waits for it; what was delivered is still sent.
    pub(crate) abandoned: bool,
    pub(crate) requested_at: Moment,
    pub(crate) last_sent: Moment,
    /// The latest deadline of all deliveries so far; `None` once one of them had no guarantee.
    pub(crate) guaranteed_by: Option<Moment>,
}

impl ViewerRequest {
    pub(crate) fn new(
        viewer: usize,
        session: SessionId,
        fetches: FetchRange,
        windows: Windows,
        now: Moment,
    ) -> Self {
        Self {
            viewer,
            session,
            fetches,
            windows,
            wanted: 0,
            arrived: 0,
            sent: 0,
            unsent: VecDeque::new(),
            sending: false,
            closed: false,
            abandoned: false,
            requested_at: now,
            last_sent: now,
            guaranteed_by: Some(Moment::ZERO),
        }
    }

    /// Whether this request brings `fetch` as its next; if so, the player now waits for it.
    pub(crate) fn extend_to(&mut self, fetch: Fetch) -> bool {
        // A request that was delivered completely counts too: its bytes are being sent.
        let is_next = !self.abandoned
            && fetch == self.fetches.number(self.wanted)
            && self.wanted < self.fetches.ends.len();
        self.wanted += usize::from(is_next);
        is_next
    }

    /// Length of the next delivery to send, if the socket is free and the player wants more.
    pub(crate) fn next_to_send(&self) -> Option<u32> {
        // A player that has enough does not read its socket. An abandoned request is read to its
        // end, because the buffers of the server are free only then.
        let wanted = self.wanted.checked_sub(1).map_or(0, |last| self.fetches.ends[last]);
        let wants_more = self.abandoned || self.sent < wanted;
        let buffer = self.unsent.front().filter(|_| wants_more && !self.sending)?;
        Some(buffer.len)
    }

    /// The socket has taken the first delivery.
    pub(crate) fn finish_sending(&mut self, now: Moment) -> UnsentBuffer {
        let buffer = self.unsent.pop_front().expect("a delivery was being sent");
        self.sending = false;
        self.sent += u64::from(buffer.len);
        self.last_sent = now;
        buffer
    }

    /// The next fetch that has arrived completely and was not reported to the player.
    pub(crate) fn next_arrival(&mut self) -> Option<Fetch> {
        let is_awaited = !self.abandoned && self.arrived < self.wanted;
        let has_arrived = is_awaited && self.fetches.ends[self.arrived] <= self.sent;
        has_arrived.then(|| {
            self.arrived += 1;
            self.fetches.number(self.arrived - 1)
        })
    }

    /// The fetch that the player waits for.
    pub(crate) fn awaited(&self) -> Option<Fetch> {
        let awaits = !self.abandoned && self.arrived < self.wanted;
        awaits.then(|| self.fetches.number(self.arrived))
    }

    /// Whether the engine is to be asked for the next window, as the server does: when it has
    /// delivered the one before, and the socket has little left.
    pub(crate) fn may_request(&self) -> bool {
        !self.closed && self.windows.delivered && self.unsent.len() <= SENDS_AHEAD
    }

    /// Requests that the engine has not completed, or of which the socket holds something.
    pub(crate) fn open_windows(&self) -> BTreeSet<RequestId> {
        let latest = self.windows.requested.last().filter(|_| !self.closed).copied();
        self.unsent.iter().map(|buffer| buffer.window).chain(latest).collect()
    }

    /// Whether the player was to read it later.
    pub(crate) fn is_unread(&self) -> bool {
        self.wanted == 0 && !self.abandoned
    }

    /// Whether nothing more can be delivered or sent.
    pub(crate) fn is_finished(&self) -> bool {
        self.closed && self.unsent.is_empty() && !self.sending
    }
}

/// The most deliveries in a socket with which the next window is requested, as in the server.
const SENDS_AHEAD: usize = 8;
