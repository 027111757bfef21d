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

use super::description::{DescribedTrack, read_description};
use super::going_on::GoingOn;
use super::receiver::{Reception, RtpLdu, RtpReceiver};
use crate::hosts::Network;
use crate::ldus::PushedLdu;
use crate::options::RtspTransport;
use crate::outcome::RefusalReport;
use crate::session::{
    LANES, LONGEST_PUT_OFF, MAX_PUT_OFF, MAX_REDIRECTS, SHORTEST_RETRY, error_status, is_for_ever,
    refusal, wait_for_place,
};
use crate::tls::explain_io;
use crate::url::Url;
use crate::wire::Wire;
use crate::{ClientError, PlayOptions, RequestError};
use mio::net::UdpSocket;
use mio::{Interest, Token};
use player::{Behaviour, PlaybackState, PlayerReport, PushAction, PushPlayer, ViewerAction};
use rtsp_types::headers::{CONTENT_BASE, LOCATION, RANGE, RETRY_AFTER, RTP_INFO, SESSION};
use rtsp_types::{HeaderName, Message, ParseError, Response};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
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

/// The length of a message, and the response that it may be.
type Incoming = (usize, Option<Response<Vec<u8>>>);

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

    fn serve_connection(
        &mut self,
        now: Moment,
        network: &mut Network,
        scratch: &mut [u8],
        events: &mut Vec<PushEvent>,
    ) -> Result<(), ClientError> {
        self.send(network)?;
        loop {
            let Some(wire) = &mut self.wire else { return Ok(()) };
            let Some(into) = network.readable(scratch) else { return Ok(()) };
            match wire.read(into) {
                Ok(0) if self.is_complete() => {
                    self.wire = None;
                    self.player.complete(now);
                    return Ok(());
                }
                Ok(0) => return Err(self.failed(RequestError::Lost("closed".to_owned()))),
                Ok(len) => {
                    self.heard = now;
                    network.has_read(len);
                    self.input.extend_from_slice(&scratch[..len]);
                    self.read_input(now, network, events)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    fn serve_socket(
        &mut self,
        socket: usize,
        now: Moment,
        scratch: &mut [u8],
        events: &mut Vec<PushEvent>,
    ) -> Result<(), ClientError> {
        let (track, is_control) = (socket / 2, socket % 2);
        loop {
            let sockets = self.tracks.get(track).and_then(|track| track.sockets.as_ref());
            let Some(sockets) = sockets else { return Ok(()) };
            match sockets[is_control].recv_from(scratch) {
                // Packets from elsewhere are not the server's.
                Ok((len, from)) if from.ip() == self.peer => {
                    if is_control == 1 {
                        self.tracks[track].reports_to = Some(from);
                    }
                    self.packet(track, is_control == 1, &scratch[..len], now, events);
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The server has no socket there yet, or none any more.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    // Takes packets and responses out of what has arrived on the connection.
    fn read_input(
        &mut self,
        now: Moment,
        network: &mut Network,
        events: &mut Vec<PushEvent>,
    ) -> Result<(), ClientError> {
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        let redirects = self.redirects;
        while let Some((length, response)) = self.next_message(&input[at..])? {
            let message = &input[at..at + length];
            match response {
                None if message[0] == b'$' => {
                    let (track, is_control) = (usize::from(message[1] / 2), message[1] % 2 == 1);
                    self.packet(track, is_control, &message[4..], now, events);
                }
                // A line end between messages, or a request of the server, which needs no answer.
                None => {}
                Some(response) => self.answered(&response, now, network, events)?,
            }
            // What else has come is of the server that is left.
            if self.redirects != redirects || self.step == RtspStep::Away {
                return Ok(());
            }
            at += length;
        }
        // What was not read stays in front of what arrives later.
        self.input = input;
        self.input.drain(..at);
        Ok(())
    }

    // The length of the first message, and the response that it may be.
    fn next_message(&self, input: &[u8]) -> Result<Option<Incoming>, ClientError> {
        match input {
            [] => return Ok(None),
            [b'$', _, high, low, ..] => {
                let length = 4 + usize::from(u16::from_be_bytes([*high, *low]));
                return Ok((input.len() >= length).then_some((length, None)));
            }
            [b'$', ..] => return Ok(None),
            [b'\r' | b'\n', ..] => return Ok(Some((1, None))),
            _ => {}
        }
        match Message::<Vec<u8>>::parse(input) {
            Ok((Message::Response(response), length)) => Ok(Some((length, Some(response)))),
            Ok((_, length)) => Ok(Some((length, None))),
            Err(ParseError::Incomplete(_)) if input.len() < LONGEST_RESPONSE => Ok(None),
            Err(_) => Err(self.failed(RequestError::NotRtsp)),
        }
    }

    fn packet(
        &mut self,
        number: usize,
        is_control: bool,
        bytes: &[u8],
        now: Moment,
        events: &mut Vec<PushEvent>,
    ) {
        self.heard = now;
        if !is_control {
            self.bytes += bytes.len() as u64;
            self.receive(number, events, |track, sink| {
                track.receiver.packet(bytes, now, sink);
            });
            return;
        }
        self.receive(number, events, |track, sink| {
            if track.receiver.control(bytes, now) && !track.goodbye {
                track.goodbye = true;
                track.receiver.finish(now, sink);
            }
        });
        if self.tracks.iter().all(|track| track.goodbye) && !self.is_dismissed() {
            self.player.complete(now);
        }
    }

    // Passes the LDUs that a track completes on to the player, and to whoever wants their bytes.
    fn receive(
        &mut self,
        number: usize,
        events: &mut Vec<PushEvent>,
        step: impl FnOnce(&mut RtspTrack, &mut dyn FnMut(RtpLdu)),
    ) {
        let (tracks, pace, begins) = (self.tracks.len(), self.pace(), self.begins);
        // Before the answer to PLAY a packet may be of the time before.
        let is_present = !matches!(self.asked, Some(Asked::Play(_)));
        let Self { player, latest, is_receiving, going_on, .. } = self;
        let Some(track) = self.tracks.get_mut(number) else { return };
        let mut sink = |mut ldu: RtpLdu| {
            let Some(due) = going_on.due(ldu.due) else { return };
            ldu.due = due;
            if number == 0 && ldu.stream == 0 && is_present {
                *latest = (*latest).max(ldu.due);
                if let Some(late) = player.arrived(ldu.at, ldu.due) {
                    events.push(PushEvent::Ldu(late));
                }
            }
            if *is_receiving && ldu.is_whole {
                let due = if is_present { player.ideal_moment(ldu.due) } else { None };
                let in_title = |time: Duration| begins + (going_on.offset + time).mul_f64(pace);
                events.push(PushEvent::Received(Box::new(PushedLdu {
                    // The sound in the same stream as the pictures is behind the tracks.
                    track: if ldu.stream == 0 { number } else { tracks + ldu.stream - 1 },
                    time: in_title(ldu.time),
                    decode: ldu.decode.map(in_title),
                    sync: ldu.sync,
                    at: ldu.at,
                    due,
                    bytes: ldu.bytes,
                })));
            }
        };
        step(track, &mut sink);
    }

    // Title time per play-out time: time stamps advance as the viewer's clock does, at any scale.
    fn pace(&self) -> f64 {
        self.speed.map_or(1.0, f64::abs).max(SLOWEST)
    }

    fn answered(
        &mut self,
        response: &Response<Vec<u8>>,
        now: Moment,
        network: &mut Network,
        events: &mut Vec<PushEvent>,
    ) -> Result<(), ClientError> {
        let Some(asked) = self.asked.take() else { return Ok(()) };
        let status = u16::from(response.status());
        let is_first_play = asked == Asked::Setup(RtspStep::Play);
        match status {
            200..=299 => {}
            // A server that knows no OPTIONS may know the rest; one that keeps sessions alive by
            // RTCP may not know the request.
            _ if matches!(asked, Asked::Setup(RtspStep::Options) | Asked::KeepAlive) => {}
            // No room (RFC 2326, 11.3.5), no such place, no such speed: the stream goes on.
            _ if matches!(asked, Asked::Play(PlayFrom::Speed(_) | PlayFrom::Time(_))) => {
                self.change_refused(matches!(asked, Asked::Play(PlayFrom::Time(_))));
                return Ok(());
            }
            // The viewer waits for room, as viewers of HTTP do for a segment.
            453 | 500..=599 if asked == Asked::Play(PlayFrom::Pause) => {
                let after = text(response, &RETRY_AFTER).and_then(|after| after.parse().ok());
                self.resumption_refused(after, response.body(), now, events);
                return Ok(());
            }
            301 | 302 | 305 | 307
                if matches!(asked, Asked::Setup(_)) && self.redirects < MAX_REDIRECTS =>
            {
                return self.redirected(response, network);
            }
            // RFC 2326, 11.3.5: not enough bandwidth.
            453 | 503 if matches!(asked, Asked::Setup(_)) => {
                let after = text(response, &RETRY_AFTER).and_then(|after| after.parse().ok());
                let wait = after.map(|after| wait_for_place(Duration::from_secs(after)));
                let goes_on = self.going_on.is_away && self.going_on.is_admitted;
                if goes_on && self.go_away(now, wait) {
                    self.put_off += 1;
                    return Ok(());
                }
                let refusal = Box::new(refusal(after, response.body()));
                if goes_on {
                    return Err(ClientError::Refused { url: self.url.to_string(), refusal });
                }
                self.leave();
                events.push(PushEvent::Refused(refusal));
                return Ok(());
            }
            _ => return Err(self.failed(error_status(status, response.body()))),
        }
        match asked {
            Asked::Setup(RtspStep::Options) => self.ask(Asked::Setup(RtspStep::Describe)),
            Asked::Setup(RtspStep::Describe) => self.described(response, network)?,
            Asked::Setup(RtspStep::Setup(track)) => {
                let session = text(response, &SESSION);
                let name = session.and_then(|session| session.split(';').next());
                self.session = name.map(|name| name.trim().to_owned()).or(self.session.take());
                let next = track + 1;
                self.ask(Asked::Setup(match next < self.tracks.len() {
                    true => RtspStep::Setup(next),
                    false => RtspStep::Play,
                }));
            }
            Asked::Setup(RtspStep::Play) | Asked::Play(_) => {
                if let Asked::Play(PlayFrom::Speed(milli)) = asked {
                    self.speed = Some(f64::from(milli) / 1e3);
                }
                let pace = self.pace();
                let range = text(response, &RANGE).and_then(read_range);
                (self.resume_at, self.resumptions) = (None, 0);
                let has_gone_on = is_first_play && self.going_on.is_away;
                if has_gone_on {
                    let from = range.map_or(self.going_on.from, |(from, _)| from);
                    let offset = from.saturating_sub(self.begins).div_f64(pace);
                    self.going_on.arrive(offset, self.latest);
                } else {
                    self.going_on.begin_anew();
                }
                if !has_gone_on || self.going_on.is_anew {
                    self.begins = range.map_or(self.begins, |(from, _)| from);
                    let length = range.and_then(|(from, to)| to?.checked_sub(from));
                    self.length = length.map(|length| length.div_f64(pace));
                    self.latest = Duration::ZERO;
                    self.player.stream_changed();
                }
                let info = text(response, &RTP_INFO).unwrap_or_default();
                self.tracks.iter_mut().for_each(|track| {
                    track.goodbye = false;
                    let (number, stamp) = first_packet(info, &track.described.control);
                    track.receiver.restart(stamp, number);
                });
                if is_first_play {
                    self.step = RtspStep::Streaming;
                    self.reports_at = now + REPORTS;
                }
                if is_first_play && !self.going_on.is_admitted {
                    self.going_on.is_admitted = true;
                    self.first_length = self.length;
                    events.push(PushEvent::Admitted);
                }
                // Meanwhile the viewer has paused.
                if has_gone_on && self.player.state(now) == PlaybackState::Paused {
                    self.ask(Asked::Pause);
                }
            }
            Asked::Setup(RtspStep::Streaming | RtspStep::Away | RtspStep::Over)
            | Asked::Pause
            | Asked::KeepAlive => {}
        }
        self.ask_next();
        Ok(())
    }

    // The viewer asks again after the time that the server names, or gives up.
    fn resumption_refused(
        &mut self,
        retry_after_s: Option<u64>,
        body: &[u8],
        now: Moment,
        events: &mut Vec<PushEvent>,
    ) {
        self.put_off += 1;
        self.resumptions += 1;
        if self.resumptions > MAX_PUT_OFF || is_for_ever(body) {
            events.push(PushEvent::RefusedLater(Box::new(refusal(retry_after_s, body))));
            return;
        }
        // A viewer who has paused again meanwhile resumes by itself.
        if !self.queue.contains(&Asked::Pause) {
            let wait = Duration::from_secs(retry_after_s.unwrap_or(1));
            self.resume_at = Some(now + wait.clamp(SHORTEST_RETRY, LONGEST_PUT_OFF));
        }
        self.ask_next();
    }

    // The stream goes on as before, unless the viewer has meanwhile asked for yet another.
    fn change_refused(&mut self, is_seek: bool) {
        let count = if is_seek { &mut self.refused_seeks } else { &mut self.refused_speeds };
        *count += 1;
        if !self.queue.iter().any(|asked| matches!(asked, Asked::Play(_))) {
            self.player.keep_stream();
        }
        self.ask_next();
    }

    // Goes on at the server that the answer names, such as the node of a director, from the
    // description on.
    fn redirected(
        &mut self,
        response: &Response<Vec<u8>>,
        network: &mut Network,
    ) -> Result<(), ClientError> {
        let location = text(response, &LOCATION).unwrap_or_default();
        let url = Url::parse(location)?;
        if !url.is_rtsp() {
            let status = u16::from(response.status());
            return Err(self.failed(error_status(status, response.body())));
        }
        let (wire, address) = open_wire(&url, self.token, network)?;
        self.redirects += 1;
        self.going_on.sent_to(&url);
        (self.wire, self.peer) = (Some(wire), address.ip());
        (self.out, self.sent) = (Vec::new(), 0);
        (self.aggregate, self.url) = (url.to_string(), url);
        self.session = None;
        self.tracks.clear();
        self.queue.clear();
        self.ask(Asked::Setup(RtspStep::Describe));
        Ok(())
    }

    // The node is lost, for this reason, or the next one is not reached. One to whom no director
    // has sent it has lost its server.
    fn lose(&mut self, now: Moment, error: ClientError) -> Result<(), ClientError> {
        let is_lost = match &error {
            ClientError::Connect { .. } => true,
            ClientError::Request { error, .. } => {
                matches!(error, RequestError::Lost(_) | RequestError::Silent(_))
                    // The node has ended the reservation that it was asked for.
                    || self.going_on.is_away && matches!(error, RequestError::Status { .. })
            }
            _ => false,
        };
        let is_over = self.step == RtspStep::Over || self.is_complete();
        let goes_on = is_lost && self.going_on.is_directed && !is_over;
        if goes_on && self.go_away(now, None) { Ok(()) } else { Err(error) }
    }

    // Leaves the node; the director is asked later. False: it was asked too often.
    fn go_away(&mut self, now: Moment, wait: Option<Duration>) -> bool {
        if !self.going_on.is_away {
            let shown = self.position(now);
            let is_played = match self.player.state(now) {
                PlaybackState::Playing | PlaybackState::Stalled => self.latest > Duration::ZERO,
                _ => false,
            };
            (self.going_on.from, self.going_on.is_anew) = match (self.asked, is_played) {
                _ if !self.going_on.is_admitted => (self.range.0, true),
                (Some(Asked::Play(PlayFrom::Time(to))), _) => (to, true),
                (_, true) => (self.begins + self.latest.mul_f64(self.pace()), false),
                (_, false) => (shown, true),
            };
        }
        self.going_on.received = self.reception();
        self.step = RtspStep::Away;
        (self.wire, self.asked, self.session) = (None, None, None);
        (self.resume_at, self.resumptions) = (None, 0);
        (self.input, self.out, self.sent) = (Vec::new(), Vec::new(), 0);
        self.tracks.clear();
        self.queue.clear();
        self.going_on.lose(now, wait)
    }

    // When the director is asked; not while the viewer pauses.
    fn asks_at(&self) -> Option<Moment> {
        let is_paused = self.player.state(self.heard) == PlaybackState::Paused;
        self.going_on.ask_at.filter(|_| !is_paused)
    }

    fn ask_director(&mut self, network: &mut Network) -> Result<(), ClientError> {
        self.going_on.ask_at = None;
        self.heard = network.now();
        let url = self.going_on.director();
        let (wire, address) = open_wire(&url, self.token, network)?;
        (self.wire, self.peer) = (Some(wire), address.ip());
        (self.aggregate, self.url, self.redirects) = (url.to_string(), url, 0);
        self.range.0 = self.going_on.from;
        self.ask(Asked::Setup(RtspStep::Describe));
        Ok(())
    }

    // What the viewer does while it has no node.
    fn act_away(&mut self, action: PushAction, now: Moment) {
        let from = match action {
            PushAction::Pause | PushAction::Ended => return,
            PushAction::Seek(to) => to,
            PushAction::Resume => self.position(now),
            PushAction::Speed(milli) => {
                let shown = self.position(now);
                self.speed = Some(f64::from(milli) / 1e3);
                shown
            }
        };
        (self.going_on.from, self.going_on.is_anew) = (from, true);
        // The stream that is being asked for begins elsewhere.
        if self.step != RtspStep::Away {
            self.going_on.ask_at = Some(now);
            self.step = RtspStep::Away;
            (self.wire, self.asked) = (None, None);
            self.tracks.clear();
        }
    }

    // Whether the node has ended the stream before its end.
    fn is_dismissed(&self) -> bool {
        let goodbye = !self.tracks.is_empty() && self.tracks.iter().all(|track| track.goodbye);
        let is_early = self.length.is_some_and(|length| self.latest + LAST_LDU < length);
        goodbye && is_early && self.going_on.is_directed && self.step == RtspStep::Streaming
    }

    fn described(
        &mut self,
        response: &Response<Vec<u8>>,
        network: &mut Network,
    ) -> Result<(), ClientError> {
        let base = match text(response, &CONTENT_BASE) {
            // The query of the address stays: it may be what opens the title.
            Some(base) => Url::parse(base)?.with_query(self.url.query()),
            None => self.url.clone(),
        };
        let description = String::from_utf8_lossy(response.body());
        let unclear = |reason| self.failed(RequestError::NotADescription(reason));
        let (aggregate, described) = read_description(&base, &description).map_err(unclear)?;
        self.aggregate = aggregate;
        for (number, described) in described.into_iter().enumerate() {
            let receiver = RtpReceiver::new(
                &described,
                self.is_receiving,
                self.transport == RtspTransport::Udp,
            );
            let sockets = match self.transport {
                RtspTransport::Tcp => None,
                RtspTransport::Udp => Some(self.open_sockets(number, network)?),
            };
            self.tracks.push(RtspTrack {
                described,
                receiver,
                sockets,
                reports_to: None,
                goodbye: false,
            });
        }
        self.ask(Asked::Setup(RtspStep::Setup(0)));
        Ok(())
    }

    // A pair of sockets with neighbouring ports (RFC 3550, 11).
    fn open_sockets(
        &self,
        track: usize,
        network: &mut Network,
    ) -> Result<[UdpSocket; 2], ClientError> {
        let failed = |error: io::Error| {
            let message = format!("cannot open a UDP socket: {error}");
            ClientError::from(Reason::new(message, "try fewer viewers, or --rtsp-transport tcp"))
        };
        let any: IpAddr = match self.peer {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut last = None;
        for _ in 0..TRIES {
            let rtp = UdpSocket::bind(SocketAddr::new(any, 0)).map_err(failed)?;
            let port = rtp.local_addr().map_err(failed)?.port();
            if port % 2 != 0 {
                continue;
            }
            match UdpSocket::bind(SocketAddr::new(any, port + 1)) {
                Ok(rtcp) => {
                    let mut sockets = [rtp, rtcp];
                    for (at, socket) in sockets.iter_mut().enumerate() {
                        let token = Token(self.token + 1 + 2 * track + at);
                        let registered =
                            network.registry.register(socket, token, Interest::READABLE);
                        registered.map_err(failed)?;
                    }
                    return Ok(sockets);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(failed(last.unwrap_or_else(|| io::Error::other("no two neighbouring ports are free"))))
    }

    // Makes a request now, or when the one in flight is answered.
    fn ask(&mut self, asked: Asked) {
        if self.asked.is_some() {
            self.queue.push_back(asked);
            return;
        }
        if let Asked::Setup(step) = asked {
            self.step = step;
        }
        self.asked = Some(asked);
        let aggregate = self.aggregate.clone();
        match asked {
            Asked::Setup(RtspStep::Options) => self.write_request("OPTIONS", &aggregate, &[]),
            Asked::Setup(RtspStep::Describe) => {
                let fields = [("Accept", "application/sdp".into()), ("Supported", GOES_ON.into())];
                // A director has a node reserve from there on.
                let from = format!("npt={}-", self.range.0.as_secs_f64());
                let from = self.going_on.is_away.then_some(("Range", from));
                let fields: Vec<_> = fields.into_iter().chain(from).collect();
                self.write_request("DESCRIBE", &aggregate, &fields);
            }
            Asked::Setup(RtspStep::Setup(number)) => {
                let (control, transport) = self.transport_of(number);
                self.write_request("SETUP", &control, &[("Transport", transport)]);
            }
            Asked::Setup(_) => {
                let until = self.range.1.map_or(String::new(), |to| to.as_secs_f64().to_string());
                let range = format!("npt={}-{until}", self.range.0.as_secs_f64());
                self.write_play(Some(range), self.speed);
            }
            Asked::Play(from) => {
                let (range, speed) = match from {
                    PlayFrom::Pause => (None, self.speed),
                    PlayFrom::Speed(milli) => {
                        (Some("npt=now-".to_owned()), Some(f64::from(milli) / 1e3))
                    }
                    PlayFrom::Time(from) => {
                        (Some(format!("npt={}-", from.as_secs_f64())), self.speed)
                    }
                };
                self.write_play(range, speed);
            }
            Asked::Pause => self.write_request("PAUSE", &aggregate, &[]),
            Asked::KeepAlive => self.write_request("GET_PARAMETER", &aggregate, &[]),
        }
    }

    fn ask_next(&mut self) {
        if self.asked.is_none()
            && let Some(next) = self.queue.pop_front()
        {
            self.ask(next);
        }
    }

    fn write_play(&mut self, range: Option<String>, speed: Option<f64>) {
        // Without the field the stream goes on as it did.
        let is_first = self.step != RtspStep::Streaming;
        let scale = speed.filter(|speed| !is_first || *speed != 1.0);
        let scale = scale.map(|speed| speed.to_string());
        // At another node only what has not come is missing: not from the key frame before.
        let goes_on = is_first && self.going_on.is_away && !self.going_on.is_anew;
        let style = goes_on.then(|| "First-Prior".to_owned());
        let fields = [("Range", range), ("Scale", scale), ("Seek-Style", style)];
        let fields: Vec<_> =
            fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let aggregate = self.aggregate.clone();
        self.write_request("PLAY", &aggregate, &fields);
    }

    fn transport_of(&self, number: usize) -> (String, String) {
        let track = &self.tracks[number];
        let transport = match &track.sockets {
            None => format!("RTP/AVP/TCP;unicast;interleaved={}-{}", 2 * number, 2 * number + 1),
            Some([rtp, _]) => {
                let port = rtp.local_addr().map_or(0, |address| address.port());
                format!("RTP/AVP;unicast;client_port={port}-{}", port + 1)
            }
        };
        (track.described.control.clone(), transport)
    }

    fn write_request(&mut self, method: &str, address: &str, fields: &[(&str, String)]) {
        self.sequence += 1;
        let session = self.session.iter().map(|session| ("Session", session.clone()));
        let fields: String = session
            .chain(fields.iter().cloned())
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let text = format!(
            "{method} {address} RTSP/1.0\r\nCSeq: {}\r\nUser-Agent: tenuto-play\r\n{fields}\r\n",
            self.sequence
        );
        if self.sent == self.out.len() {
            (self.sent, self.out) = (0, Vec::new());
        }
        self.out.extend_from_slice(text.as_bytes());
    }

    // A receiver report for each track.
    fn report(&mut self, now: Moment) {
        for number in 0..self.tracks.len() {
            let own = u32::try_from(self.token).unwrap_or(0) + 1;
            let report = self.tracks[number].receiver.report(own, now);
            match &self.tracks[number].sockets {
                Some([_, rtcp]) => {
                    // Whoever sends the sender reports takes these; a loss does no harm.
                    if let Some(to) = self.tracks[number].reports_to {
                        let _ = rtcp.send_to(&report, to);
                    }
                }
                None => {
                    let channel = u8::try_from(2 * number + 1).expect("two tracks");
                    let length = u16::try_from(report.len()).expect("a short report");
                    let [high, low] = length.to_be_bytes();
                    self.out.extend_from_slice(&[b'$', channel, high, low]);
                    self.out.extend_from_slice(&report);
                }
            }
        }
    }

    fn send(&mut self, network: &mut Network) -> Result<(), ClientError> {
        let Some(wire) = &mut self.wire else { return Ok(()) };
        let mut send = || -> io::Result<()> {
            network.opened.extend(wire.advance(&|| network.now())?);
            while self.sent < self.out.len() {
                match wire.write(&self.out[self.sent..]) {
                    Ok(len) => self.sent += len,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::WouldBlock | ErrorKind::NotConnected
                        ) =>
                    {
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            wire.flush()
        };
        send().map_err(|error| self.lost(&error))
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

/// A connection to the server of an address.
fn open_wire(
    url: &Url,
    token: usize,
    network: &mut Network,
) -> Result<(Wire, SocketAddr), ClientError> {
    let address = network.hosts.resolve(&url.host_and_port())?;
    let secure = network.hosts.secure(url)?;
    let now = network.now();
    let wire = Wire::open(address, secure, &network.registry, Token(token), now);
    let wire = wire.map_err(|error| ClientError::Connect {
        address: address.to_string(),
        reason: error.to_string(),
    })?;
    Ok((wire, address))
}

fn text<'a>(response: &'a Response<Vec<u8>>, name: &HeaderName) -> Option<&'a str> {
    response.header(name).map(rtsp_types::HeaderValue::as_str)
}

/// The range in an answer to `PLAY`, `npt=10-25.5`: its start, and its end if it has one.
fn read_range(range: &str) -> Option<(Duration, Option<Duration>)> {
    let (from, to) = range.strip_prefix("npt=")?.split_once('-')?;
    let seconds = |text: &str| Duration::try_from_secs_f64(text.trim().parse::<f64>().ok()?).ok();
    Some((seconds(from).unwrap_or_default(), seconds(to.split(';').next()?)))
}

/// The first packet's number, and the time stamp of the start, for the track of this address
/// (RFC 2326, 12.33): `url=rtsp://h/t/film/trackID=1;seq=5;rtptime=90000, url=...`.
fn first_packet(info: &str, control: &str) -> (Option<u16>, Option<u32>) {
    let path = |address: &str| address.split('?').next().unwrap_or_default().to_owned();
    let field = |track: &str, wanted| {
        let mut fields = track.split(';').filter_map(|field| field.trim().split_once('='));
        fields.find(|(name, _)| *name == wanted).map(|(_, value)| value.trim().to_owned())
    };
    let is_this =
        |track: &&str| field(track, "url").is_some_and(|own| path(control).ends_with(&path(&own)));
    let track = info.split(',').find(is_this).unwrap_or_default();
    let number = field(track, "seq").and_then(|number| number.parse().ok());
    (number, field(track, "rtptime").and_then(|stamp| stamp.parse().ok()))
}

/// The interval of receiver reports, and of requests that show that the viewer is there (RFC 3550,
/// 6.2).
const REPORTS: Duration = Duration::from_secs(5);

/// The last LDUs of a title may be this long.
const LAST_LDU: Duration = Duration::from_secs(1);

/// The longest response, a description included.
const LONGEST_RESPONSE: usize = 1 << 20;

/// The feature that a node of a director asks for before it lets a player go.
const GOES_ON: &str = "tenuto.goes-on";

/// The slowest speed that a length is divided by.
const SLOWEST: f64 = 0.01;

/// Attempts to find two neighbouring free ports.
const TRIES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_play_says_where_the_stream_begins() {
        let secs = Duration::from_secs_f64;
        assert_eq!(read_range("npt=10-25.5"), Some((secs(10.0), Some(secs(25.5)))));
        assert_eq!(read_range("npt=0.5-;time=x"), Some((secs(0.5), None)));
        assert_eq!(read_range("clock=20261126T180000.000Z-"), None);
        let info = "url=rtsp://h/t/film/trackID=1;seq=5;rtptime=90000, url=trackID=2;rtptime=7";
        for (control, wanted) in [
            ("rtsp://h/t/film/trackID=1?token=x", (Some(5), Some(90_000))),
            ("rtsp://h/t/film/trackID=2", (None, Some(7))),
            ("rtsp://h/t/film/trackID=3", (None, None)),
        ] {
            assert_eq!(first_packet(info, control), wanted, "{control}");
        }
        assert_eq!(first_packet("", "rtsp://h/"), (None, None));
    }
}
