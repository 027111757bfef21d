//! The protocol of one RTSP viewer over its sockets.
//!
//! ```text
//!   RtspStep    Options ─▶ Describe ─▶ Setup(0) ─▶ Setup(1) ─▶ Play ─▶ Streaming ─▶ Over
//!                                                                   │    ▲
//!                                          the viewer's pause, seek └────┘ PAUSE, PLAY
//! ```
//!
//! A viewer whom a director has sent to a node asks the director again when it loses the node, also
//! before that has admitted it, or when the node ends the stream before its end, and goes on at
//! another ([`GoingOn`]).
//!
//! One request is in flight at a time. Packets come on the same connection (a `$`, a channel, a
//! length), or on a pair of UDP sockets for each track.

mod arrivals;
mod failover;
mod requests;
mod tracks;

use super::description::DescribedTrack;
use super::going_on::GoingOn;
use super::receiver::{Reception, RtpReceiver};
use crate::hosts::Network;
use crate::ldus::PushedLdu;
use crate::options::RtspTransport;
use crate::outcome::RefusalReport;
use crate::session::{LANES, SHORTEST_RETRY};
use crate::tls::explain_io;
use crate::url::Url;
use crate::wire::Wire;
use crate::{ClientError, PlayOptions, RequestError};
use failover::open_wire;
use mio::net::UdpSocket;
use player::{Behaviour, PlaybackState, PlayerReport, PushAction, PushPlayer, ViewerAction};
use rtsp_types::{HeaderName, Response};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use units::{Moment, Reason};

/// The most sockets of a viewer: its connection, and two for each of two tracks.
pub(crate) const SOCKETS: usize = 5;

/// What has happened to a viewer.
#[derive(Debug)]
pub(crate) enum PushEvent {
    /// The server has admitted it: it plays.
    Admitted,
    /// The server has no room for it.
    Refused(Box<RefusalReport>),
    /// The server has no room for it any more after a pause, however often it has asked.
    RefusedLater(Box<RefusalReport>),
    Failed(ClientError),
    /// An LDU of the first track is complete, so much later than its time.
    Ldu(Duration),
    /// An LDU has arrived whole, for a program that wants its bytes.
    Received(Box<PushedLdu>),
    /// The title has been played to its end, or the viewer has left.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RtspStep {
    Options,
    Describe,
    Setup(usize),
    Play,
    Streaming,
    /// The node is lost, and the director not asked yet.
    Away,
    Over,
}

/// A request, as far as its answer is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Setup(RtspStep),
    Pause,
    Play(PlayFrom),
    KeepAlive,
}

/// Where the stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlayFrom {
    /// Where the pause began.
    Pause,
    /// Where it is, at this speed in thousandths.
    Speed(i32),
    Time(Duration),
}

#[derive(Debug)]
struct RtspTrack {
    described: DescribedTrack,
    receiver: RtpReceiver,
    /// The sockets of RTP and RTCP; `None`: in the connection, on channels 2n and 2n + 1.
    sockets: Option<[UdpSocket; 2]>,
    /// Where the server's reports come from, and the viewer's go to.
    reports_to: Option<SocketAddr>,
    goodbye: bool,
}

/// A viewer of one title.
#[derive(Debug)]
pub(crate) struct RtspViewer {
    url: Url,
    /// The number of its first socket.
    token: usize,
    transport: RtspTransport,
    /// The parameters of `PLAY`.
    speed: Option<f64>,
    range: (Duration, Option<Duration>),
    wire: Option<Wire>,
    peer: IpAddr,
    input: Vec<u8>,
    out: Vec<u8>,
    sent: usize,
    sequence: u32,
    /// Redirects followed since the first server was asked.
    redirects: u8,
    going_on: GoingOn,
    step: RtspStep,
    /// The request that is not answered, and those that wait.
    asked: Option<Asked>,
    queue: VecDeque<Asked>,
    /// When anything arrived last.
    heard: Moment,
    reports_at: Moment,
    /// The address of the whole title, from the description.
    aggregate: String,
    tracks: Vec<RtspTrack>,
    session: Option<String>,
    /// Where in the title the stream begins, and the play-out time from there on, as the server
    /// named them; and that time of the first stream.
    begins: Duration,
    length: Option<Duration>,
    first_length: Option<Duration>,
    /// Whether somebody wants the bytes of LDUs.
    is_receiving: bool,
    /// The latest media time of the first track.
    latest: Duration,
    player: PushPlayer,
    pub(crate) bytes: u64,
    /// The moment at which a viewer whose resumption was refused asks again, and how often it was
    /// refused in a row.
    resume_at: Option<Moment>,
    resumptions: u8,
    /// Resumptions that the server has put off.
    pub(crate) put_off: u32,
    /// Changes of speed, and seeks, that the server has refused.
    pub(crate) refused_speeds: u32,
    pub(crate) refused_seeks: u32,
}

impl RtspViewer {
    /// Connects to the server.
    pub(crate) fn connect(
        url: Url,
        number: u32,
        behaviour: &Behaviour,
        options: &PlayOptions,
        is_receiving: bool,
        network: &mut Network,
    ) -> Result<Self, ClientError> {
        if options.view.skip.is_some() {
            let reason =
                Reason::new("RTSP has no skip", "leave out --skip, or give an HLS address");
            return Err(reason.into());
        }
        let now = network.now();
        let token = number as usize * LANES;
        let (wire, address) = open_wire(&url, token, network)?;
        let mut viewer = Self {
            aggregate: url.to_string(),
            token,
            transport: options.rtsp,
            speed: options.view.speed,
            range: (options.view.from.unwrap_or_default(), options.view.to),
            wire: Some(wire),
            peer: address.ip(),
            input: Vec::new(),
            out: Vec::new(),
            sent: 0,
            sequence: 0,
            redirects: 0,
            going_on: GoingOn::new(url.clone()),
            step: RtspStep::Options,
            asked: None,
            queue: VecDeque::new(),
            heard: now,
            reports_at: now + REPORTS,
            tracks: Vec::new(),
            session: None,
            begins: Duration::ZERO,
            length: None,
            first_length: None,
            is_receiving,
            latest: Duration::ZERO,
            player: PushPlayer::new(now, options.player, behaviour),
            bytes: 0,
            resume_at: None,
            resumptions: 0,
            put_off: 0,
            refused_speeds: 0,
            refused_seeks: 0,
            url,
        };
        viewer.ask(Asked::Setup(RtspStep::Options));
        Ok(viewer)
    }

    /// Handles a socket that is readable or writable.
    pub(crate) fn ready(
        &mut self,
        socket: usize,
        now: Moment,
        network: &mut Network,
        scratch: &mut [u8],
    ) -> Vec<PushEvent> {
        let mut events = Vec::new();
        let done = match socket {
            0 => self.serve_connection(now, network, scratch, &mut events),
            _ => self.serve_socket(socket - 1, now, scratch, &mut events),
        };
        self.conclude(done, now, network, &mut events);
        events
    }

    /// Handles the passage of time: the viewer's actions, reports, time limits.
    pub(crate) fn tick(
        &mut self,
        now: Moment,
        patience: Duration,
        network: &mut Network,
    ) -> Vec<PushEvent> {
        let mut events = Vec::new();
        let mut done = Ok(());
        for number in 0..self.tracks.len() {
            self.receive(number, &mut events, |track, sink| track.receiver.tick(now, sink));
        }
        if self.resume_at.is_some_and(|at| at <= now) {
            // Behind a change that the viewer has meanwhile asked for.
            match self.asked {
                Some(_) => self.resume_at = Some(now + SHORTEST_RETRY),
                None => {
                    self.resume_at = None;
                    self.heard = now;
                    self.ask(Asked::Play(PlayFrom::Pause));
                }
            }
        }
        if self.step == RtspStep::Streaming && self.reports_at <= now {
            self.reports_at = now + REPORTS;
            self.report(now);
            self.ask(Asked::KeepAlive);
        }
        if self.asks_at().is_some_and(|at| at <= now) {
            done = self.ask_director(network);
        }
        if self.silent_at(patience).is_some_and(|at| at <= now) {
            match self.is_complete() {
                true => self.player.complete(now),
                false => done = Err(self.failed(RequestError::Silent(patience.as_secs()))),
            }
        }
        self.conclude(done, now, network, &mut events);
        events
    }

    /// When `tick` must be called next.
    pub(crate) fn wake_at(&self, patience: Duration) -> Option<Moment> {
        let report = (self.step == RtspStep::Streaming).then_some(self.reports_at);
        let packets = self.tracks.iter().filter_map(|track| track.receiver.wake_at());
        let asks = [self.resume_at, self.asks_at()];
        let own = [self.player.wake_at(), report, self.silent_at(patience)];
        own.into_iter().chain(asks).flatten().chain(packets).min()
    }

    /// What the viewer does now.
    pub(crate) fn act(
        &mut self,
        action: ViewerAction,
        now: Moment,
        network: &mut Network,
    ) -> Vec<PushEvent> {
        let mut events = Vec::new();
        self.player.act(now, action);
        self.conclude(Ok(()), now, network, &mut events);
        events
    }

    /// Number of tracks that are received.
    pub(crate) fn tracks(&self) -> usize {
        self.tracks.len()
    }

    /// Play-out time of what was asked for first, as the server named it.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.first_length
    }

    /// The time in the title that is shown.
    pub(crate) fn position(&self, now: Moment) -> Duration {
        self.begins + self.player.shown(now).mul_f64(self.pace())
    }

    pub(crate) fn state(&self, now: Moment) -> PlaybackState {
        self.player.state(now)
    }

    pub(crate) fn report_of_player(&self, now: Moment) -> PlayerReport {
        self.player.report(now)
    }

    /// Stalls that have ended.
    pub(crate) fn stalls(&self) -> u64 {
        self.player.stalls().count
    }

    /// The packets of all tracks, from all nodes; the jitter is that of the first track now.
    pub(crate) fn reception(&self) -> Reception {
        let add = |sum: Reception, track: Reception| Reception {
            packets: sum.packets + track.packets,
            lost: sum.lost + track.lost,
            ..sum
        };
        let mut tracks = self.tracks.iter().map(|track| track.receiver.reception());
        let first = tracks.next().unwrap_or_default();
        add(tracks.fold(first, add), self.going_on.received)
    }

    /// Nodes at which it has gone on after it had lost one.
    pub(crate) fn failovers(&self) -> u32 {
        self.going_on.failovers
    }

    /// Ends the session at the server, without waiting for its answer.
    pub(crate) fn leave(&mut self) {
        if self.session.is_some() && self.step != RtspStep::Over {
            let aggregate = self.aggregate.clone();
            // A request in flight stays without an answer as well.
            self.write_request("TEARDOWN", &aggregate, &[]);
            if let Some(wire) = &mut self.wire {
                let _ = wire.write(&self.out[self.sent..]);
            }
        }
        self.step = RtspStep::Over;
        self.wire = None;
        self.tracks.iter_mut().for_each(|track| track.sockets = None);
    }

    // Sends what is to be sent, and carries out what the player decides.
    fn conclude(
        &mut self,
        done: Result<(), ClientError>,
        now: Moment,
        network: &mut Network,
        events: &mut Vec<PushEvent>,
    ) {
        let done = done.and_then(|()| match self.is_dismissed() {
            true => Err(self.failed(RequestError::Lost("ended by the server".to_owned()))),
            false => self.send(network),
        });
        if let Err(error) = done.or_else(|error| self.lose(now, error)) {
            if self.step != RtspStep::Over {
                self.leave();
                events.push(PushEvent::Failed(error));
            }
            return;
        }
        while let Some(action) = self.player.poll(now) {
            if self.going_on.is_away && action != PushAction::Ended {
                self.act_away(action, now);
                continue;
            }
            match action {
                PushAction::Pause => {
                    self.resume_at = None;
                    self.ask(Asked::Pause);
                }
                PushAction::Resume => self.ask(Asked::Play(PlayFrom::Pause)),
                PushAction::Seek(to) => self.ask(Asked::Play(PlayFrom::Time(to))),
                PushAction::Speed(milli) => self.ask(Asked::Play(PlayFrom::Speed(milli))),
                PushAction::Ended => {
                    self.leave();
                    events.push(PushEvent::Ended);
                    return;
                }
            }
        }
        if let Err(error) = self.send(network) {
            self.leave();
            events.push(PushEvent::Failed(error));
        }
    }

    // Whether all of the title has arrived, as far as the server said how long it is.
    fn is_complete(&self) -> bool {
        let goodbye = !self.tracks.is_empty() && self.tracks.iter().all(|track| track.goodbye);
        goodbye && !self.is_dismissed()
            || self.length.is_some_and(|length| self.latest + LAST_LDU >= length)
    }

    fn silent_at(&self, patience: Duration) -> Option<Moment> {
        let waits = match self.step {
            RtspStep::Over | RtspStep::Away => return None,
            // While the viewer pauses nothing is expected.
            RtspStep::Streaming => {
                self.player.state(self.heard) != PlaybackState::Paused && self.resume_at.is_none()
            }
            _ => true,
        };
        let patience = if self.is_complete() { patience.min(REPORTS) } else { patience };
        (waits || self.asked.is_some()).then(|| self.heard + patience)
    }

    fn failed(&self, error: RequestError) -> ClientError {
        self.url.failed(error)
    }

    fn lost(&self, error: &io::Error) -> ClientError {
        self.failed(match explain_io(error) {
            Some(reason) => RequestError::Tls(reason),
            None => RequestError::Lost(error.to_string()),
        })
    }
}

fn text<'a>(response: &'a Response<Vec<u8>>, name: &HeaderName) -> Option<&'a str> {
    response.header(name).map(rtsp_types::HeaderValue::as_str)
}

/// The interval of receiver reports, and of requests that show that the viewer is there (RFC 3550,
/// 6.2).
const REPORTS: Duration = Duration::from_secs(5);

/// The last LDUs of a title may be this long.
const LAST_LDU: Duration = Duration::from_secs(1);
