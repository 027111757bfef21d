//! One viewer: knocks at the door, reads playlists, fetches what its player wants, and takes notes.
//!
//! ```text
//!  arrive ─▶ Door ──200──▶ playlists / moov ─▶ player runs ─▶ over
//!             │503                               │ 503: put off, asked again
//!             ├─▶ refused, or again after Retry-After
//!             └─ error ─▶ failed
//! ```
//!
//! Each track has a lane: a connection of its own with at most one request under way, as players
//! do. Media is counted and dropped as it comes, unless it is to be saved.

use super::ViewerError;
use super::connection::{Connection, Hosts};
use super::fetched::Fetched;
use super::http::Head;
use super::outcome::{Outcome, RefusalReport};
use super::progressive::{Found, MoovFinder};
use super::save::Saver;
use super::source::{Listing, Request, TrackSource, looks_like_a_playlist, read_playlist};
use super::url::Url;
use super::{PlayError, PlayOptions};
use mio::{Registry, Token};
use player::{Action, Fetch, Player, PlayerReport, Timeline};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// Lanes of one viewer: video and audio.
pub(crate) const LANES: usize = 2;

/// What a viewer needs of the run it is part of.
pub(crate) struct Shared<'a> {
    pub(crate) options: &'a PlayOptions,
    pub(crate) registry: &'a Registry,
    pub(crate) hosts: Hosts,
    pub(crate) scratch: Vec<u8>,
    /// Only the first viewer's media is kept.
    pub(crate) saver: Option<Saver>,
    /// The run cannot go on.
    pub(crate) fatal: Option<PlayError>,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) number: u32,
    pub(crate) url: Url,
    pub(crate) arrived: Moment,
    pub(crate) state: State,
    pub(crate) attempts: u32,
    pub(crate) refusal: Option<RefusalReport>,
    pub(crate) error: Option<ViewerError>,
    pub(crate) answered: Option<Moment>,
    pub(crate) bytes: u64,
    pub(crate) put_off: u32,
    /// Stalls begun.
    pub(crate) stalls: u64,
    /// When it last knocked: the player's time counts from here.
    pub(crate) knocked: Moment,
    /// Pieces that came, in that order.
    pub(crate) fetched: Vec<Fetched>,
    /// Of what it plays, once that is known.
    pub(crate) timeline: Option<Arc<Timeline>>,
    lanes: Vec<Lane>,
    finder: MoovFinder,
    /// In the player's order once all media playlists are here.
    tracks: Vec<TrackSource>,
    /// Media playlists still to come.
    awaited: usize,
    pub(crate) player: Option<Player>,
    /// The player's account at its end; the player itself is dropped then.
    pub(crate) last: Option<PlayerReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not here yet.
    Absent,
    /// Asking to be let in, or reading what there is to play.
    AtTheDoor,
    /// Refused; will knock again.
    WaitingOutside(Moment),
    /// The player runs.
    Inside,
    /// Nothing will happen any more.
    Done(Outcome),
}

#[derive(Debug)]
struct Lane {
    connection: Connection,
    job: Option<Job>,
    /// Body of a small answer, or of a piece to be saved.
    body: Vec<u8>,
    /// Last time anything came, or the request was sent.
    heard: Moment,
    /// When the answer was first asked for, and when its first byte came.
    asked: Moment,
    first: Option<Moment>,
    /// Bytes of it so far.
    came: u64,
    /// A piece that was put off, to be asked for again.
    again: Option<(Moment, Job)>,
    /// The track's `init` has been fetched.
    has_init: bool,
}

#[derive(Clone, Debug)]
struct Job {
    what: What,
    request: Request,
    redirects: u8,
    /// How often it was put off.
    put_off: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The address itself; the answer is the admission.
    Door,
    /// A media playlist of this track.
    Playlist(usize),
    /// More of a progressive file's boxes.
    Boxes,
    /// A track's header, and the piece to fetch next.
    Init(Fetch),
    Piece(Fetch),
}

impl Session {
    pub(crate) fn new(number: u32, url: Url, arrived: Moment) -> Self {
        Self {
            number,
            url,
            arrived,
            state: State::Absent,
            attempts: 0,
            refusal: None,
            error: None,
            answered: None,
            bytes: 0,
            put_off: 0,
            stalls: 0,
            knocked: arrived,
            fetched: Vec::new(),
            timeline: None,
            lanes: Vec::new(),
            finder: MoovFinder::default(),
            tracks: Vec::new(),
            awaited: 0,
            player: None,
            last: None,
        }
    }

    /// Time has passed: arrive, knock again, ask again, let the player go on, lose patience.
    pub(crate) fn tick(&mut self, now: Moment, shared: &mut Shared<'_>) {
        match self.state {
            State::Absent => self.knock(now, shared),
            State::WaitingOutside(until) if until <= now => self.knock(now, shared),
            _ => {}
        }
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].again.as_ref().is_some_and(|(at, _)| *at <= now) {
                let (_, job) = self.lanes[lane].again.take().expect("seen above");
                self.ask(now, lane, job, shared);
            }
        }
        if let Some(lane) = self
            .lanes
            .iter()
            .find(|lane| lane.job.is_some() && lane.heard + shared.options.patience <= now)
        {
            let url = lane.job.as_ref().map_or(String::new(), |job| job.request.url.to_string());
            let seconds = shared.options.patience.as_secs();
            self.fail(now, ViewerError::Silent { url, seconds });
        }
        self.go_on(now, shared);
    }

    /// When `tick` must be called next; `None`: only the network can change anything.
    pub(crate) fn wake_at(&self, patience: Duration) -> Option<Moment> {
        let own = match self.state {
            State::Absent => Some(self.arrived),
            State::WaitingOutside(until) => Some(until),
            State::Done(_) => return None,
            State::AtTheDoor | State::Inside => None,
        };
        let lanes = self.lanes.iter().flat_map(|lane| {
            let silent = lane.job.as_ref().map(|_| lane.heard + patience);
            [silent, lane.again.as_ref().map(|(at, _)| *at)]
        });
        let player = self.player.as_ref().and_then(Player::wake_at);
        lanes.flatten().chain(own).chain(player).min()
    }

    /// A lane's socket can be read or written.
    pub(crate) fn ready(&mut self, now: Moment, lane_number: usize, shared: &mut Shared<'_>) {
        let Some(lane) = self.lanes.get_mut(lane_number) else { return };
        let Some(job) = lane.job.clone() else { return };
        let saved = shared.saver.is_some() && self.number == 0;
        let keep = saved || !matches!(job.what, What::Piece(_));
        let (body, heard, first) = (&mut lane.body, &mut lane.heard, &mut lane.first);
        let mut bytes = 0;
        let mut too_large = false;
        let answer = lane.connection.ready(
            shared.registry,
            &job.request,
            &mut shared.scratch,
            &mut |head, part| {
                *heard = now;
                first.get_or_insert(now);
                if head.status < 300 {
                    bytes += part.len() as u64;
                }
                if keep || head.status >= 300 {
                    let room = MAX_KEPT - body.len();
                    too_large |= part.len() > room;
                    body.extend_from_slice(&part[..part.len().min(room)]);
                }
            },
        );
        lane.came += bytes;
        let media = !matches!(job.what, What::Playlist(_)) && job.request.range.is_some();
        if media || matches!(job.what, What::Piece(_) | What::Init(_)) {
            self.bytes += bytes;
        }
        if too_large {
            let url = job.request.url.to_string();
            let reason = "the answer is too large; does the server serve byte ranges?".to_owned();
            return self.fail(now, ViewerError::NotAPlaylist { url, reason });
        }
        match answer {
            Ok(None) => {}
            Ok(Some(head)) => {
                lane.job = None;
                let body = std::mem::take(&mut lane.body);
                if let Err(error) = self.answer(now, lane_number, job, &head, &body, shared) {
                    self.fail(now, error);
                }
                self.go_on(now, shared);
            }
            Err(error) => self.fail(now, error),
        }
    }

    /// The run is over: the viewer leaves.
    pub(crate) fn leave(&mut self, now: Moment) {
        match self.state {
            State::Absent | State::Done(_) => return,
            // It was told to come again, and did not get to.
            State::WaitingOutside(_) => self.state = State::Done(Outcome::Refused),
            State::AtTheDoor => self.state = State::Done(Outcome::Unanswered),
            State::Inside => self.state = State::Done(Outcome::Admitted),
        }
        self.last = self.player.as_mut().map(|player| player.report(now)).or(self.last.take());
        self.close();
    }

    /// Whether it failed without a single piece of media, so that an error is all there is to say.
    pub(crate) fn has_seen_nothing(&self) -> bool {
        self.state == State::Done(Outcome::Failed)
            && self.last.as_ref().is_none_or(|last| last.pieces == 0)
    }

    fn knock(&mut self, now: Moment, shared: &mut Shared<'_>) {
        self.state = State::AtTheDoor;
        self.attempts += 1;
        self.knocked = now;
        let playlist = self.url.path().ends_with(".m3u8");
        let range = (!playlist).then(MoovFinder::start);
        let request = Request { url: self.url.clone(), range };
        self.ask(now, 0, Job { what: What::Door, request, redirects: 0, put_off: 0 }, shared);
    }

    fn ask(&mut self, now: Moment, lane_number: usize, job: Job, shared: &mut Shared<'_>) {
        while self.lanes.len() <= lane_number {
            let token = Token(self.number as usize * LANES + self.lanes.len());
            self.lanes.push(Lane {
                connection: Connection::new(token),
                job: None,
                body: Vec::new(),
                heard: now,
                asked: now,
                first: None,
                came: 0,
                again: None,
                has_init: false,
            });
        }
        let lane = &mut self.lanes[lane_number];
        lane.heard = now;
        if job.redirects == 0 && job.put_off == 0 {
            lane.asked = now;
        }
        (lane.first, lane.came) = (None, 0);
        lane.body.clear();
        let asked = lane.connection.ask(shared.registry, &mut shared.hosts, &job.request);
        lane.job = Some(job);
        if let Err(error) = asked {
            self.fail(now, error);
        }
    }

    fn answer(
        &mut self,
        now: Moment,
        lane: usize,
        mut job: Job,
        head: &Head,
        body: &[u8],
        shared: &mut Shared<'_>,
    ) -> Result<(), ViewerError> {
        let url = || job.request.url.to_string();
        match (head.status, &head.location) {
            (200 | 206, _) => self.good_answer(now, lane, job, head, body, shared),
            (301 | 302 | 303 | 307 | 308, Some(to)) if job.redirects < MAX_REDIRECTS => {
                job.request.url = job.request.url.join(to)?;
                job.redirects += 1;
                self.ask(now, lane, job, shared);
                Ok(())
            }
            (503, _) if job.what == What::Door => {
                self.refused(now, head, body, shared.options.retry);
                Ok(())
            }
            (503, _) if job.put_off < MAX_PUT_OFF => {
                self.put_off += 1;
                job.put_off += 1;
                let wait = Duration::from_secs(head.retry_after.unwrap_or(1));
                let wait = wait.clamp(SHORTEST_RETRY, LONGEST_PUT_OFF);
                self.lanes[lane].again = Some((now + wait, job));
                Ok(())
            }
            (404, _) => Err(ViewerError::NotFound { url: url() }),
            (status, _) => Err(ViewerError::Status { url: url(), status, body: beginning(body) }),
        }
    }

    fn good_answer(
        &mut self,
        now: Moment,
        lane: usize,
        job: Job,
        head: &Head,
        body: &[u8],
        shared: &mut Shared<'_>,
    ) -> Result<(), ViewerError> {
        let url = job.request.url.clone();
        match job.what {
            What::Door if looks_like_a_playlist(body) => {
                self.answered = Some(now);
                match read_playlist(&url, body)? {
                    Listing::Track(track) => self.start(vec![track], shared),
                    Listing::Tracks(tracks) => {
                        self.awaited = tracks.len().min(LANES);
                        for (track, url) in tracks.into_iter().enumerate().take(LANES) {
                            let request = Request { url, range: None };
                            let what = What::Playlist(track);
                            self.ask(
                                now,
                                track,
                                Job { what, request, redirects: 0, put_off: 0 },
                                shared,
                            );
                        }
                    }
                }
            }
            What::Door if job.request.range.is_none() => {
                read_playlist(&url, body)?;
            }
            What::Door | What::Boxes => {
                self.answered.get_or_insert(now);
                self.boxes(now, job, head, body, shared)?;
            }
            What::Playlist(number) => match read_playlist(&url, body)? {
                Listing::Track(track) => {
                    // The lanes ask at the same time; whoever is first waits for the other.
                    let at = self.tracks.len().min(number);
                    self.tracks.insert(at, track);
                    self.awaited -= 1;
                    if self.awaited == 0 {
                        let tracks = std::mem::take(&mut self.tracks);
                        self.start(tracks, shared);
                    }
                }
                Listing::Tracks(_) => {
                    let reason = "a variant leads to another list of variants".to_owned();
                    return Err(ViewerError::NotAPlaylist { url: url.to_string(), reason });
                }
            },
            What::Init(fetch) => {
                self.lanes[lane].has_init = true;
                self.save(fetch.track, None, body, shared);
                self.fetch(now, fetch, shared)?;
            }
            What::Piece(fetch) => {
                let Lane { asked, first, came: bytes, .. } = self.lanes[lane];
                let Fetch { track, piece } = fetch;
                self.fetched.push(Fetched { track, piece, asked, first, end: now, bytes });
                let offset = job.request.range.as_ref().map(|range| range.start);
                let progressive = self.tracks[fetch.track].init.is_none();
                self.save(fetch.track, offset.filter(|_| progressive), body, shared);
                if let Some(player) = &mut self.player {
                    player.arrived(now, fetch);
                }
            }
        }
        Ok(())
    }

    /// Part of a progressive file's boxes has come.
    fn boxes(
        &mut self,
        now: Moment,
        job: Job,
        head: &Head,
        body: &[u8],
        shared: &mut Shared<'_>,
    ) -> Result<(), ViewerError> {
        let url = job.request.url.clone();
        let error = |reason: &str| {
            let (url, reason) = (url.to_string(), reason.to_owned());
            ViewerError::NotMp4 { url, reason }
        };
        // A server without byte ranges sends the whole of a small file, which is as good.
        let whole = (0..body.len() as u64, Some(body.len() as u64));
        let (range, total) = head.range.clone().unwrap_or(whole);
        let total = total.ok_or_else(|| error("the server does not say how long it is"))?;
        self.open_saver(1, shared);
        self.save(0, Some(range.start), body, shared);
        match self.finder.look(range.start, body, total).map_err(error)? {
            Found::Need(range) => {
                let request = Request { url: job.request.url, range: Some(range) };
                self.ask(
                    now,
                    0,
                    Job { what: What::Boxes, request, redirects: 0, put_off: 0 },
                    shared,
                );
            }
            Found::Moov(moov) => {
                let track = self.finder.pieces(&job.request.url, &moov, total).map_err(error)?;
                self.start(vec![track], shared);
            }
        }
        Ok(())
    }

    /// Everything is known: the player starts. Its time counts from the knock that let it in.
    fn start(&mut self, tracks: Vec<TrackSource>, shared: &mut Shared<'_>) {
        let pace = shared.options.view.pace();
        let timelines = tracks.iter().map(|track| track.timeline.at_speed(pace)).collect();
        let timeline = Arc::new(Timeline { tracks: timelines });
        self.timeline = Some(Arc::clone(&timeline));
        self.open_saver(tracks.len(), shared);
        self.tracks = tracks;
        self.state = State::Inside;
        let options = shared.options;
        self.player = Some(Player::new(self.knocked, timeline, options.player, &options.behaviour));
    }

    /// Does what the player wants.
    fn go_on(&mut self, now: Moment, shared: &mut Shared<'_>) {
        while let Some(action) = self.player.as_mut().and_then(|player| player.poll(now)) {
            match action {
                Action::Fetch(fetch) => {
                    if let Err(error) = self.fetch(now, fetch, shared) {
                        self.fail(now, error);
                    }
                }
                Action::Stalled => self.stalls += 1,
                Action::Started | Action::Resumed => {}
                Action::Over => {
                    self.state = State::Done(Outcome::Admitted);
                    self.last = self.player.as_mut().map(|player| player.report(now));
                    self.close();
                }
            }
        }
    }

    fn fetch(
        &mut self,
        now: Moment,
        fetch: Fetch,
        shared: &mut Shared<'_>,
    ) -> Result<(), ViewerError> {
        let track = &self.tracks[fetch.track];
        let piece = &track.pieces[fetch.piece];
        // Two seconds of a progressive file may lie in what is already here.
        if piece.range.as_ref().is_some_and(std::ops::Range::is_empty) {
            if let Some(player) = &mut self.player {
                player.arrived(now, fetch);
            }
            return Ok(());
        }
        let has_init = self.lanes.get(fetch.track).is_some_and(|lane| lane.has_init);
        let (what, piece) = match &track.init {
            Some(init) if !has_init => (What::Init(fetch), init),
            _ => (What::Piece(fetch), piece),
        };
        let request = track.request(piece)?;
        self.ask(now, fetch.track, Job { what, request, redirects: 0, put_off: 0 }, shared);
        Ok(())
    }

    fn refused(&mut self, now: Moment, head: &Head, body: &[u8], retry: bool) {
        self.answered = Some(now);
        self.refusal = Some(refusal(head.retry_after, body));
        if retry {
            let wait = Duration::from_secs(head.retry_after.unwrap_or(5)).max(SHORTEST_RETRY);
            self.state = State::WaitingOutside(now + wait);
        } else {
            self.state = State::Done(Outcome::Refused);
            self.close();
        }
    }

    fn fail(&mut self, now: Moment, error: ViewerError) {
        if matches!(self.state, State::Done(_)) {
            return;
        }
        self.error = Some(error);
        self.state = State::Done(Outcome::Failed);
        self.last = self.player.as_mut().map(|player| player.report(now));
        self.close();
    }

    /// Lets go of everything that is not needed for the account.
    fn close(&mut self) {
        self.lanes = Vec::new();
        self.tracks = Vec::new();
        self.player = None;
    }

    fn open_saver(&self, tracks: usize, shared: &mut Shared<'_>) {
        if let Some(saver) = shared.saver.as_mut().filter(|_| self.number == 0) {
            shared.fatal = saver.open(tracks).err().or(shared.fatal.take());
        }
    }

    fn save(&self, track: usize, offset: Option<u64>, bytes: &[u8], shared: &mut Shared<'_>) {
        if let Some(saver) = shared.saver.as_mut().filter(|_| self.number == 0) {
            shared.fatal = saver.write(track, offset, bytes).err().or(shared.fatal.take());
        }
    }
}

/// What a refusal says: JSON with `resource` and `message` from Tenuto (or, when it is not about a
/// resource, `error`), a line of text from others.
fn refusal(retry_after_s: Option<u64>, body: &[u8]) -> RefusalReport {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_str());
    RefusalReport {
        resource: text(&["resource", "error"]).unwrap_or("unknown").to_owned(),
        retry_after_s,
        reason: text(&["message"]).map_or_else(|| beginning(body), str::to_owned),
        detail: text(&["detail"]).map(str::to_owned),
    }
}

/// The first line of an answer, for people.
pub(crate) fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Browsers stop at twenty; a server that sends on more than this often goes around in circles.
const MAX_REDIRECTS: u8 = 8;

/// The largest answer that is kept whole (`moov` boxes, pieces to save).
const MAX_KEPT: usize = 72 << 20;

/// hls.js tries a segment seven times; we are a little more patient.
const MAX_PUT_OFF: u8 = 10;

/// A player asks again sooner than a server in trouble would like.
const LONGEST_PUT_OFF: Duration = Duration::from_secs(10);

/// `Retry-After: 0` must not become a busy loop.
const SHORTEST_RETRY: Duration = Duration::from_millis(200);

/// Of an error page.
const SHOWN: usize = 200;
