//! One viewer: loads the manifest and playlists, fetches for its player, and keeps an account.
//!
//! ```text
//!  arrive ─▶ admission ──200──▶ playlists / moov ─▶ player runs ─▶ over
//!             │503                                  │ 503: repeated later
//!             ├─▶ refused, or again after Retry-After
//!             └─ error ─▶ failed
//! ```
//!
//! Each track has a lane: its own connection with at most one request in flight, as in players.
//! Media is counted and dropped as it arrives, unless it is saved. The [`manifest_loader`]
//! interprets responses before the player starts; [`requests`] sends requests and receives
//! responses. A viewer of RTSP has no lanes: [`push`].

mod failover;
mod manifest_loader;
mod push;
mod renditions;
mod requests;
mod speed;

pub(crate) use manifest_loader::{error_status, is_for_ever, refusal};
pub(crate) use requests::{
    LONGEST_PUT_OFF, MAX_PUT_OFF, MAX_REDIRECTS, SHORTEST_RETRY, wait_for_place,
};

use super::access_link::AccessLink;
use super::dash::Manifest;
use super::fetched::Fetched;
use super::hosts::Network;
use super::ldus::{Ldu, LduAccount};
use super::outcome::{RefusalReport, ViewerOutcome};
use super::pathways::Pathways;
use super::progressive::MoovFinder;
use super::renditions::OfferedRenditions;
use super::rtsp::{Reception, RtspViewer, SOCKETS};
use super::save::Saver;
use super::source::{FetchRequest, TrackSource};
use super::url::Url;
use super::{ClientError, PlayOptions, RequestError, View};
use failover::Attempts;
use player::{Action, Behaviour, Fetch, PlaybackState, Player, PlayerReport, Timeline};
use renditions::Ladder;
use requests::{Lane, LaneRequest, RequestPurpose};
use speed::SpeedChange;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// Number of sockets of a viewer: a lane for each of video and audio, or those of RTSP.
pub(crate) const LANES: usize = SOCKETS;

/// The resources of the run that a viewer uses.
#[derive(Debug)]
pub(crate) struct PlayContext {
    pub(crate) options: Arc<PlayOptions>,
    pub(crate) network: Network,
    pub(crate) scratch: Vec<u8>,
    /// The moment of the event that is handled: all of its effects have this one time.
    pub(crate) now: Moment,
    /// The files of the first viewer's media; the media of others is dropped.
    pub(crate) saver: Option<Saver>,
    /// LDUs that wait for the program that opened the title; `None`: nobody wants them.
    pub(crate) received: Option<VecDeque<Ldu>>,
    /// An error that ends the run.
    pub(crate) fatal: Option<ClientError>,
}

/// One viewer with its player and its requests.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) number: u32,
    pub(crate) url: Url,
    pub(crate) arrived: Moment,
    /// What it does besides watching, by the time of its player.
    pub(crate) behaviour: Behaviour,
    pub(crate) state: SessionState,
    pub(crate) attempts: u32,
    pub(crate) refusal: Option<RefusalReport>,
    pub(crate) error: Option<ClientError>,
    pub(crate) answered: Option<Moment>,
    pub(crate) bytes: u64,
    pub(crate) put_off: u32,
    /// Changes of the place that media comes from, after a failure.
    pub(crate) failovers: u32,
    /// Changes of speed that the server has refused.
    pub(crate) refused_speeds: u32,
    /// Seeks that the server of a viewer of RTSP has refused.
    pub(crate) refused_seeks: u32,
    /// Stalls that have begun.
    pub(crate) stalls: u64,
    /// The moment of the last request for admission: the player's time counts from here.
    pub(crate) admission_asked: Moment,
    /// Fetched pieces in the order of their arrival.
    pub(crate) fetched: Vec<Fetched>,
    /// The account of the first track's LDUs.
    pub(crate) ldus: LduAccount,
    /// The timelines that it has played, the present one last, each with the number of pieces that
    /// were fetched before.
    pub(crate) timelines: Vec<(usize, Arc<Timeline>)>,
    /// The renditions, if the server declares them.
    pub(crate) offered: Option<OfferedRenditions>,
    /// The part of the title that it plays, and the speed; `None`: as the options have it.
    view: Option<View>,
    /// The change of speed that is under way.
    change: Option<SpeedChange>,
    lanes: Vec<Lane>,
    /// The places that have the title.
    pathways: Pathways,
    /// The place that media came from last.
    place: usize,
    /// Whether a steering manifest leads from there to the present place, of which no media has
    /// come yet.
    is_led: bool,
    /// The moment at which the steering manifest is fetched again.
    steer_at: Option<Moment>,
    finder: MoovFinder,
    /// The tracks in the player's order, once all media playlists have arrived.
    tracks: Vec<TrackSource>,
    /// Number of media playlists, or track indexes, that have not arrived.
    awaited: usize,
    /// The renditions of the first track.
    ladder: Option<Ladder>,
    /// The manifest, until the tracks are known.
    manifest: Option<Manifest>,
    pub(crate) player: Option<Player>,
    /// The viewer of RTSP, whose server sends at its own pace; it has a player of its own.
    pub(crate) push: Option<Box<RtspViewer>>,
    /// What arrived as RTP, at the end.
    pub(crate) reception: Option<Reception>,
    /// The player's account at its end; the player itself is dropped then.
    pub(crate) last: Option<PlayerReport>,
    /// The access to the network; `None` before the viewer arrives, and without a limit.
    link: Option<AccessLink>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// The viewer has not arrived yet.
    Absent,
    /// The viewer requests admission, or loads playlists.
    LoadingManifest,
    /// The viewer was refused and will try again at this moment.
    WaitingToRetry(Moment),
    /// The player runs.
    Playing,
    /// The viewer has left.
    Done(ViewerOutcome),
}

impl Session {
    pub(crate) fn new(
        number: u32,
        url: Url,
        arrived: Moment,
        behaviour: Behaviour,
        dead_band: Duration,
    ) -> Self {
        Self {
            number,
            url,
            arrived,
            behaviour,
            state: SessionState::Absent,
            attempts: 0,
            refusal: None,
            error: None,
            answered: None,
            bytes: 0,
            put_off: 0,
            failovers: 0,
            refused_speeds: 0,
            refused_seeks: 0,
            stalls: 0,
            admission_asked: arrived,
            fetched: Vec::new(),
            ldus: LduAccount::new(dead_band),
            timelines: Vec::new(),
            offered: None,
            view: None,
            change: None,
            lanes: Vec::new(),
            pathways: Pathways::default(),
            place: 0,
            is_led: false,
            steer_at: None,
            finder: MoovFinder::default(),
            tracks: Vec::new(),
            awaited: 0,
            ladder: None,
            manifest: None,
            player: None,
            push: None,
            reception: None,
            last: None,
            link: None,
        }
    }

    /// Handles the passage of time: arrival, retries, the player's decisions, time limits.
    pub(crate) fn tick(&mut self, shared: &mut PlayContext) {
        match self.state {
            SessionState::Absent => {
                let rate = shared.options.bandwidth;
                self.link = rate.map(|rate| AccessLink::new(rate, shared.now));
                self.ask_admission(shared);
            }
            SessionState::WaitingToRetry(until) if until <= shared.now => {
                self.ask_admission(shared);
            }
            _ => {}
        }
        if let Some(link) = self.link.as_mut()
            && link.wake_at().is_some_and(|at| at <= shared.now)
        {
            for connection in link.woken() {
                self.ready(connection, shared);
            }
        }
        if self.push.is_some() {
            return self.tick_push(shared);
        }
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].again.as_ref().is_some_and(|(at, _)| *at <= shared.now) {
                let (_, job) = self.lanes[lane].again.take().expect("seen above");
                self.send(lane, job, shared);
            }
        }
        let patience = shared.options.patience;
        let silent = |lane: &Lane| lane.job.is_some() && lane.heard + patience <= shared.now;
        if let Some(lane) = self.lanes.iter().position(silent)
            && let Some(job) = self.lanes[lane].job.take()
        {
            let error = job.request.url.failed(RequestError::Silent(patience.as_secs()));
            self.request_failed(lane, job, error, shared);
        }
        if self.steer_at.is_some_and(|at| at <= shared.now) {
            self.ask_steering(shared);
        }
        self.go_on(shared);
    }

    /// The moment at which `tick` must be called next; `None` if only the network can change
    /// anything.
    pub(crate) fn wake_at(&self, patience: Duration) -> Option<Moment> {
        let own = match self.state {
            SessionState::Absent => Some(self.arrived),
            SessionState::WaitingToRetry(until) => Some(until),
            SessionState::Done(_) => return None,
            SessionState::LoadingManifest | SessionState::Playing => None,
        };
        let lanes = self.lanes.iter().flat_map(|lane| {
            let silent = lane.job.as_ref().map(|_| lane.heard + patience);
            [silent, lane.again.as_ref().map(|(at, _)| *at)]
        });
        let player = self.player.as_ref().and_then(Player::wake_at);
        let push = self.push.as_ref().and_then(|push| push.wake_at(patience));
        let link = self.link.as_ref().and_then(AccessLink::wake_at);
        let own = own.into_iter().chain(self.steer_at).chain(link);
        lanes.flatten().chain(own).chain(player).chain(push).min()
    }

    /// Ends the session at the end of the run.
    pub(crate) fn leave(&mut self, now: Moment) {
        match self.state {
            SessionState::Absent | SessionState::Done(_) => return,
            // The server asked it to retry, and the run ended first.
            SessionState::WaitingToRetry(_) => {
                self.state = SessionState::Done(ViewerOutcome::Refused);
            }
            SessionState::LoadingManifest => {
                self.state = SessionState::Done(ViewerOutcome::Unanswered);
            }
            SessionState::Playing => self.state = SessionState::Done(ViewerOutcome::Admitted),
        }
        self.last = self.report(now).or(self.last.take());
        self.close();
    }

    /// Handles a socket that is readable or writable, as far as the viewer's access allows.
    pub(crate) fn ready(&mut self, connection: usize, shared: &mut PlayContext) {
        let room = self.link.as_mut().map(|link| link.room(shared.now));
        shared.network.room = room;
        match self.push.is_some() {
            true => self.ready_push(connection, shared),
            false => self.ready_lane(connection, shared),
        }
        if let (Some(link), Some(before), Some(after)) = (&mut self.link, room, shared.network.room)
        {
            link.take(before - after);
            if after == 0 {
                link.wait(connection);
            }
        }
        shared.network.room = None;
    }

    /// The player's measurements.
    pub(crate) fn report(&mut self, now: Moment) -> Option<PlayerReport> {
        let push = self.push.as_ref().map(|push| push.report_of_player(now));
        self.player.as_mut().map(|player| player.report(now)).or(push)
    }

    /// The state of play-out; `None` where nothing plays.
    pub(crate) fn playback(&self, now: Moment) -> Option<PlaybackState> {
        let push = self.push.as_ref().map(|push| push.state(now));
        self.player.as_ref().map(Player::state).or(push)
    }

    /// Whether it failed without a single piece of media, so that an error is all there is to
    /// report.
    pub(crate) fn has_seen_nothing(&self) -> bool {
        self.state == SessionState::Done(ViewerOutcome::Failed)
            && self.last.as_ref().is_none_or(|last| last.pieces == 0)
    }

    /// The timeline of what it plays, once it is known.
    pub(crate) fn timeline(&self) -> Option<&Arc<Timeline>> {
        self.timelines.last().map(|(_, timeline)| timeline)
    }

    /// The session's token on a Tenuto server, from the addresses of its media.
    pub(crate) fn token(&self) -> Option<String> {
        let track = self.tracks.first()?;
        let request = track.request(track.pieces.first()?).ok()?;
        let mut pairs = request.url.query().split('&');
        pairs.find_map(|pair| pair.strip_prefix("s=").map(str::to_owned))
    }

    fn ask_admission(&mut self, shared: &mut PlayContext) {
        self.state = SessionState::LoadingManifest;
        self.attempts += 1;
        // Each attempt anew: the wait that a refusal asked for is no start-up time.
        self.admission_asked = shared.now;
        if self.url.is_rtsp() {
            return self.connect_push(shared);
        }
        self.open(self.url.clone(), shared);
    }

    /// Requests the title at this address, which decides on admission.
    fn open(&mut self, url: Url, shared: &mut PlayContext) {
        // A range request for a playlist is answered in part by some servers.
        let range = (!is_listed(&url)).then(MoovFinder::start);
        self.ask(0, RequestPurpose::Admission, FetchRequest { url, range }, shared);
    }

    /// Carries out the player's decisions.
    pub(crate) fn go_on(&mut self, shared: &mut PlayContext) {
        while let Some(action) = self.player.as_mut().and_then(|player| player.poll(shared.now)) {
            match action {
                Action::Fetch(fetch) => {
                    if let Err(error) = self.fetch(fetch, shared) {
                        self.fail(shared.now, error);
                    }
                }
                Action::Speed(milli) => self.change_speed(milli, shared),
                Action::Stalled => self.stalls += 1,
                // The clock runs again, so that the due times of what is buffered are known.
                Action::Started | Action::Resumed => self.ldus.settle(self.player.as_ref()),
                Action::Ended => {
                    self.state = SessionState::Done(ViewerOutcome::Admitted);
                    self.last = self.player.as_mut().map(|player| player.report(shared.now));
                    self.close();
                }
            }
        }
    }

    /// Fetches a piece for the player, in the rendition of its choice.
    fn fetch(&mut self, fetch: Fetch, shared: &mut PlayContext) -> Result<(), ClientError> {
        match (&self.ladder, &self.player) {
            (Some(ladder), Some(player)) if fetch.track == 0 => {
                // The length in the playlist, at any playback speed.
                let piece = self.tracks[0].timeline.mean();
                let number = ladder.renditions.next(player.ahead(0), piece);
                self.fetch_in(fetch, number, Attempts::default(), shared)
            }
            _ => self.fetch_piece(fetch, Attempts::default(), shared),
        }
    }

    /// Fetches the segment in this rendition, once its segments are located.
    fn fetch_in(
        &mut self,
        fetch: Fetch,
        number: usize,
        attempts: Attempts,
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        if let Some(ladder) = &mut self.ladder {
            let track = &mut self.tracks[0];
            if let Some(request) = ladder.wanted(number, &track.timeline)? {
                self.ask(0, RequestPurpose::Rendition(fetch, number), request, shared);
                return Ok(());
            }
            ladder.change_to(number, track, &mut self.lanes[0].init);
        }
        self.fetch_piece(fetch, attempts, shared)
    }

    /// Fetches the segment of a located track, its header first.
    fn fetch_piece(
        &mut self,
        fetch: Fetch,
        attempts: Attempts,
        shared: &mut PlayContext,
    ) -> Result<(), ClientError> {
        let track = &self.tracks[fetch.track];
        let piece = &track.pieces[fetch.piece];
        // The first two seconds of a progressive file may already have been read with its front.
        if piece.range.as_ref().is_some_and(std::ops::Range::is_empty) {
            if let Some(player) = &mut self.player {
                player.arrived(shared.now, fetch);
            }
            return Ok(());
        }
        let has = self.lanes.get(fetch.track).and_then(|lane| lane.init);
        let (what, piece) = match track.init(fetch.piece) {
            Some((number, init)) if has != Some(number) => (RequestPurpose::Init(fetch), init),
            _ => (RequestPurpose::Piece(fetch), piece),
        };
        let (what, request) = if self.pathways.is_of_another(&track.base) {
            (RequestPurpose::Reload(fetch), FetchRequest::whole(track.base.clone()))
        } else {
            (what, track.request(piece)?)
        };
        self.send(fetch.track, LaneRequest::new(what, request, attempts), shared);
        Ok(())
    }

    fn fail(&mut self, now: Moment, error: ClientError) {
        if matches!(self.state, SessionState::Done(_)) {
            return;
        }
        self.error = Some(error);
        self.state = SessionState::Done(ViewerOutcome::Failed);
        self.last = self.report(now);
        self.close();
    }

    /// Drops everything that the account does not need.
    pub(crate) fn close(&mut self) {
        self.lanes = Vec::new();
        self.tracks = Vec::new();
        self.ladder = None;
        self.change = None;
        self.player = None;
        if let Some(mut push) = self.push.take() {
            push.leave();
            self.reception = Some(push.reception());
        }
    }
}

/// Whether an address is that of a playlist or a manifest.
fn is_listed(url: &Url) -> bool {
    [".m3u8", ".mpd"].iter().any(|end| url.path().ends_with(end))
}
