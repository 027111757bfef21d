//! One title for a program: opened, controlled, and received LDU by LDU, each with its times.
//!
//! ```text
//!   open ──admission, manifests──▶ OpenTitle ◀── pause, resume, seek, set_view
//!                                     │
//!                                     └─ receive ──▶ Ldu { track, times, bytes } ... End
//! ```
//!
//! After the client of Makaroff, Coutu & Liu (section 2): a program opens an object, starts and
//! stops it, sets its speed and skip, and takes what arrives. It drives the same sessions as
//! [`crate::play`] does for thousands of viewers: what is fetched and when is the player's
//! decision, by its buffer and its clock.
//!
//! LDUs are found in fragmented MP4 (HLS and DASH), in transport streams (HLS), and in what comes
//! over RTSP, at the pace of its server. Of MP4 files the media is fetched and played on the clock,
//! and no LDU is received.

use crate::hosts::Hosts;
use crate::ldus::Ldu;
use crate::outcome::ViewerOutcome;
use crate::run::{EVENTS, EventLoop};
use crate::session::SessionState;
use crate::tls::{Identity, Trust};
use crate::url::Url;
use crate::{Arrivals, ClientError, PlayOptions, RtspTransport, View};
use mio::{Events, Poll};
use player::{AbrRule, PlaybackState, PlayerOptions, PlayerReport, ViewerAction};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use units::Reason;

/// How a title is opened.
#[derive(Clone, Debug, Default)]
pub struct TitleOptions {
    /// The part of the title that is played, and the speed.
    pub view: View,
    /// The buffering.
    pub player: PlayerOptions,
    /// The rule for changes between the renditions.
    pub switching: AbrRule,
    /// How RTP comes from an address of RTSP.
    pub rtsp: RtspTransport,
    /// The certificates that are trusted behind an `https` address.
    pub trust: Trust,
    /// The client's certificate, for servers that require one.
    pub identity: Option<Identity>,
}

/// What [`OpenTitle::receive`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The next LDU that has arrived.
    Ldu(Ldu),
    /// Nothing arrived in the time that the program waits.
    Nothing,
    /// Play-out has reached the end of the title, or [`OpenTitle::stop`] was called.
    End,
}

/// A title that is being received.
#[derive(Debug)]
pub struct OpenTitle {
    /// The address without the parameters of the view.
    url: Url,
    poll: Poll,
    events: Events,
    event_loop: EventLoop,
}

impl OpenTitle {
    /// Asks the server behind `url` (an HLS playlist, a DASH manifest, or an address of RTSP) for
    /// admission, and waits until the tracks are known. A refusal is [`ClientError::Refused`].
    pub fn open(url: &str, options: TitleOptions) -> Result<Self, ClientError> {
        let TitleOptions { view, player, switching, rtsp, trust, identity } = options;
        let url = Url::parse(url)?;
        let options = PlayOptions {
            viewers: 1,
            arrivals: Arrivals::AllAtOnce,
            view,
            player,
            switching,
            rtsp,
            trust,
            identity,
            ..PlayOptions::default()
        };
        let poll = Poll::new().map_err(|error| no_sockets(&error))?;
        let registry = poll.registry().try_clone().map_err(|error| no_sockets(&error))?;
        let hosts = Hosts::new(options.trust.clone(), options.identity.clone());
        let address = url.clone().with_query(&view.query());
        let mut event_loop = EventLoop::new(&options, &[address], None, hosts, registry);
        event_loop.shared.received = Some(VecDeque::new());
        let mut title = Self { url, poll, events: Events::with_capacity(EVENTS), event_loop };
        title.load()?;
        Ok(title)
    }

    /// Number of tracks: the picture, and the sound where it is a track of its own. Sounds in the
    /// same transport stream as the picture have the numbers that follow.
    pub fn tracks(&self) -> usize {
        let session = &self.event_loop.sessions[0];
        let listed = session.timeline().map(|timeline| timeline.tracks.len());
        let push = session.push.as_ref().map(|push| push.tracks());
        listed.or(push).unwrap_or(0)
    }

    /// Play-out time of the title, at the speed of its view.
    pub fn duration(&self) -> Duration {
        let session = &self.event_loop.sessions[0];
        let listed = session.timeline().map(|timeline| timeline.duration());
        let push = session.push.as_ref().and_then(|push| push.duration());
        listed.or(push).unwrap_or_default()
    }

    /// Play-out time that has been shown, at the speed of its view; over RTSP the time in the title
    /// that is shown.
    pub fn position(&self) -> Duration {
        let session = &self.event_loop.sessions[0];
        let player = session.player.as_ref().map(player::Player::position);
        let push = session.push.as_ref().map(|push| push.position(self.event_loop.now()));
        player.or(push).unwrap_or_default()
    }

    /// How often the server had no room for the next piece, or for play-out after a pause, so that
    /// the client asked again later.
    pub fn put_off(&self) -> u32 {
        self.event_loop.sessions[0].put_off
    }

    /// The state of play-out.
    pub fn state(&self) -> PlaybackState {
        let session = &self.event_loop.sessions[0];
        let last = session.last.as_ref().map(|last| last.state);
        session.playback(self.event_loop.now()).or(last).unwrap_or(PlaybackState::Waiting)
    }

    /// The measurements of play-out so far: start-up, stalls, drift.
    pub fn report(&mut self) -> PlayerReport {
        let now = self.event_loop.now();
        let session = &mut self.event_loop.sessions[0];
        session.report(now).or_else(|| session.last.clone()).unwrap_or_default()
    }

    /// Waits at most `patience` for the next LDU, and fetches meanwhile what the buffer lacks.
    ///
    /// A program that does not call this for longer than its buffer lasts stalls play-out: nothing
    /// is fetched between the calls, and what a server of RTSP sends waits in sockets.
    pub fn receive(&mut self, patience: Duration) -> Result<Received, ClientError> {
        let until = Instant::now() + patience;
        loop {
            let received = self.event_loop.shared.received.as_mut();
            if let Some(ldu) = received.and_then(VecDeque::pop_front) {
                return Ok(Received::Ldu(ldu));
            }
            if let SessionState::Done(outcome) = self.event_loop.sessions[0].state {
                return match self.event_loop.sessions[0].error.clone() {
                    Some(error) => Err(error),
                    None if outcome == ViewerOutcome::Refused => Err(self.refused()),
                    None => Ok(Received::End),
                };
            }
            let left = until.saturating_duration_since(Instant::now());
            self.advance(left)?;
            let received = self.event_loop.shared.received.as_ref();
            if left.is_zero() && received.is_some_and(VecDeque::is_empty) {
                return Ok(Received::Nothing);
            }
        }
    }

    /// Pauses play-out; the buffer fills meanwhile, and a server of RTSP sends nothing.
    pub fn pause(&mut self) {
        self.act(ViewerAction::Pause);
    }

    /// Resumes play-out after a pause. A server of RTSP without room is asked again when it says;
    /// after ten refusals in a row [`OpenTitle::receive`] returns [`ClientError::Refused`].
    pub fn resume(&mut self) {
        self.act(ViewerAction::Resume);
    }

    /// Seeks to this play-out time. LDUs that have arrived are received all the same, and those of
    /// the new position follow, unless they were in the buffer. Over RTSP `to` is a time in the
    /// title, and a refused seek leaves play-out as it was.
    pub fn seek(&mut self, to: Duration) {
        self.act(ViewerAction::Seek(to));
    }

    /// Ends play-out, and closes the connections.
    pub fn stop(&mut self) {
        self.act(ViewerAction::Stop);
    }

    /// Opens the title again with another start, end, speed, direction or skip. On a Tenuto server
    /// the new session replaces the old one, which goes on if the new one is refused; on others the
    /// title is opened anew.
    pub fn set_view(&mut self, view: View) -> Result<(), ClientError> {
        let replaced = self.event_loop.sessions[0].token();
        let replaces = replaced.map_or(String::new(), |token| format!("s={token}"));
        let options = TitleOptions {
            view,
            player: self.event_loop.shared.options.player,
            switching: self.event_loop.shared.options.switching,
            rtsp: self.event_loop.shared.options.rtsp,
            trust: self.event_loop.shared.options.trust.clone(),
            identity: self.event_loop.shared.options.identity.clone(),
        };
        let url = self.url.clone();
        let mut new = Self::open(&url.clone().with_query(&replaces).to_string(), options)?;
        new.url = url;
        *self = new;
        Ok(())
    }

    // Until the player runs, or the server has refused or failed.
    fn load(&mut self) -> Result<(), ClientError> {
        loop {
            let session = &self.event_loop.sessions[0];
            match session.state {
                SessionState::Playing => return Ok(()),
                SessionState::Done(ViewerOutcome::Refused) => {
                    return Err(self.refused());
                }
                SessionState::Done(_) => {
                    return session.error.clone().map_or(Ok(()), Err);
                }
                SessionState::Absent
                | SessionState::LoadingManifest
                | SessionState::WaitingToRetry(_) => self.advance(LONGEST_WAIT)?,
            }
        }
    }

    fn refused(&self) -> ClientError {
        let session = &self.event_loop.sessions[0];
        let refusal = Box::new(session.refusal.clone().unwrap_or_default());
        ClientError::Refused { url: session.url.to_string(), refusal }
    }

    fn act(&mut self, action: ViewerAction) {
        let now = self.event_loop.now();
        self.event_loop.shared.now = now;
        let EventLoop { sessions, shared, .. } = &mut self.event_loop;
        match &mut sessions[0].player {
            Some(player) => {
                player.act(now, action);
                sessions[0].go_on(shared);
            }
            None => sessions[0].act_push(action, shared),
        }
        self.event_loop.touched(0);
    }

    // Handles timers and sockets, and waits for them if nothing is due.
    fn advance(&mut self, patience: Duration) -> Result<(), ClientError> {
        self.event_loop.tick(&mut |_| {});
        let wait = self.event_loop.patience().min(patience);
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                return Err(no_sockets(&error));
            }
            _ => {}
        }
        for event in &self.events {
            self.event_loop.ready(event.token().0);
        }
        Ok(())
    }
}

fn no_sockets(error: &std::io::Error) -> ClientError {
    Reason::new(format!("cannot watch sockets: {error}"), "raise the limit with `ulimit -n`").into()
}

/// The longest wait for sockets while a title is opened.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
