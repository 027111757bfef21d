//! Channels: transport streams that an operator sends to an address, of one receiver or of a group.
//!
//! ```text
//!   admin API ─ Channel ─▶ worker ──Admit──▶ core         an engine session for each time through
//!                          Playback ──Request──▶ core ──Deliver──▶ Playback
//!   receivers ◀─ datagrams of 7 packets ── worker ◀── units at their times, null packets between
//! ```
//!
//! They are sent by the playbacks of RTSP, in a thread of their own, whether or not RTSP is on. No
//! receiver asks for anything: an operator names the address, and ends the session. Datagrams are
//! never sent elsewhere. Nothing is received.

use super::ChannelCounters;
use super::deliveries::PlaybackThread;
use super::playback::{Plan, Playback, SentUnit, Step};
use super::replay::ReplayOptions;
use super::session::{TrackSetup, TransportSetup, Wire};
use super::track_bytes::Taken;
use crate::client_thread::ClientService;
use crate::clients::ClientAddress;
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::messages::{
    AdmissionError, Caller, ChannelError, CoreHandle, Event, NewChannel, PlayRequest, RequestError,
    WorkerMessage,
};
use crate::sessions::PlayerSession;
use crate::shared::Shared;
use crate::telemetry::Protocol;
use crate::tls::ClientSockets;
use crossbeam_channel::{Receiver, Sender};
use device::sockets::ConnectionId;
use engine::{MaxWait, SessionId};
use media::rtp::{Packetizer, PayloadFormat};
use media::{ConstantRate, TransportCounters};
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

struct ChannelWorker {
    /// The number of this thread among those that the core sends to.
    number: usize,
    sockets: ClientSockets,
    messages: Receiver<WorkerMessage>,
    shared: Arc<Shared>,
    core: CoreHandle,
    /// From admission until play-out starts.
    startup: Duration,
    channels: HashMap<ConnectionId, Channel>,
    /// Channels so far.
    count: u64,
    next_check: Instant,
}

struct Channel {
    title: Arc<OpenTitle>,
    name: String,
    tracks: Vec<u16>,
    to: SocketAddr,
    repeats: bool,
    socket: UdpSocket,
    /// The only one.
    setup: Vec<TrackSetup>,
    /// The number of its first session, by which operators know it, once it has begun.
    number: Option<SessionId>,
    /// Until it has begun.
    answer: Option<Sender<Result<u64, ChannelError>>>,
    state: ChannelState,
    filled: Option<Filled>,
    /// Packets that do not fill a datagram yet, and the time stamp of the first of them.
    pending: Vec<u8>,
    stamp: u32,
    datagrams: VecDeque<Vec<u8>>,
    wake: Option<Instant>,
}

/// A stream that is filled up to a rate.
struct Filled {
    stream: ConstantRate,
    /// When its first packet was sent, once it was.
    origin: Option<Instant>,
    /// The time stamp of its first packet.
    first_stamp: u32,
}

enum ChannelState {
    /// Waits for the admission.
    Asking,
    /// Was not admitted again, and asks at this time.
    Resting(Instant),
    /// Admitted, and waiting for the engine to accept the first requests.
    Starting(Box<Playback>),
    Playing(Box<Playback>),
}

/// Sends channels until the server stops. The limit is the time from admission until play-out
/// starts.
pub(crate) fn serve(service: ClientService<Duration>) {
    let ClientService { number, sockets, messages, shared, core, limits: startup, .. } = service;
    let worker = ChannelWorker {
        number,
        sockets,
        messages,
        shared,
        core,
        startup,
        channels: HashMap::new(),
        count: 0,
        next_check: Instant::now(),
    };
    worker.run();
}

impl Channel {
    fn new(channel: NewChannel) -> Option<Self> {
        let NewChannel { title, name, tracks, socket, to, in_rtp, rate, repeats, answer } = channel;
        let format = PayloadFormat::transport_stream();
        let random = uuid::Uuid::new_v4().as_u64_pair();
        let low = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
        let sequence = u16::try_from(low(random.0 >> 32) >> 16).unwrap_or(0);
        let first_stamp = low(random.1);
        let setup = TrackSetup {
            track: *tracks.first()?,
            is_video: false,
            packetizer: Packetizer::new(&format, low(random.0), sequence),
            format,
            timestamp: first_stamp,
            wire: Wire::Named,
            transport: Some(TransportSetup {
                tracks: tracks.clone(),
                is_raw: !in_rtp,
                counters: TransportCounters::default(),
            }),
        };
        let filled =
            rate.map(|rate| Filled { stream: ConstantRate::new(rate), origin: None, first_stamp });
        Some(Self {
            title,
            name,
            tracks,
            to,
            repeats,
            socket,
            setup: vec![setup],
            number: None,
            answer: Some(answer),
            state: ChannelState::Asking,
            filled,
            pending: Vec::new(),
            stamp: 0,
            datagrams: VecDeque::new(),
            wake: None,
        })
    }

    fn playback(&mut self) -> Option<&mut Playback> {
        match &mut self.state {
            ChannelState::Starting(playback) | ChannelState::Playing(playback) => Some(playback),
            ChannelState::Asking | ChannelState::Resting(_) => None,
        }
    }

    /// Makes the datagrams that are due; true if all of the title has gone out.
    fn make(&mut self, now: Instant, given_back: &mut Vec<Taken>) -> bool {
        if self.filled.is_some() {
            return self.make_filled(now, given_back);
        }
        let ChannelState::Playing(playback) = &mut self.state else { return false };
        let (mut made, mut is_over) = (Vec::new(), false);
        self.wake = loop {
            if self.datagrams.len() + made.len() / DATAGRAM >= MOST_IN_TICK {
                break Some(now + TICK);
            }
            match playback.step(now) {
                Step::Wait(at) => break at,
                Step::Send(cursor) => {
                    let taken =
                        playback.send(cursor, &mut self.setup, |_, _, outgoing, packets| {
                            self.stamp = outgoing.stamp;
                            made.extend_from_slice(packets);
                        });
                    given_back.extend(taken);
                }
                Step::Ended => {
                    is_over = true;
                    break None;
                }
            }
        };
        self.pending = made;
        self.flush(1);
        is_over
    }

    /// As [`Self::make`], at a constant rate, which goes on from one time through to the next.
    fn make_filled(&mut self, now: Instant, given_back: &mut Vec<Taken>) -> bool {
        let Some(Filled { stream, origin: Some(origin), first_stamp }) = &mut self.filled else {
            return false;
        };
        let mut is_over = false;
        self.wake = loop {
            if self.datagrams.len() >= MOST_IN_TICK {
                break Some(now + TICK);
            }
            let due = *origin + stream.due();
            if due > now {
                break Some(due);
            }
            if now - due > MOST_LATE {
                *origin = now - stream.due();
            }
            if let ChannelState::Playing(playback) = &mut self.state {
                loop {
                    match playback.step(due) {
                        Step::Send(cursor) => {
                            let send = |_, _: &mut TrackSetup, _: SentUnit, packets: &[u8]| {
                                stream.push(packets);
                            };
                            given_back.extend(playback.send(cursor, &mut self.setup, send));
                        }
                        Step::Wait(_) => break,
                        Step::Ended => {
                            // Null packets complete the last datagram.
                            is_over = stream.is_idle() && self.pending.is_empty();
                            break;
                        }
                    }
                }
            }
            if is_over {
                break Some(now);
            }
            if self.pending.is_empty() {
                // Ticks of 90 kHz, of which 32 bits count.
                let ticks = stream.due().as_micros() * 9 / 100;
                let low = u32::try_from(ticks & u128::from(u32::MAX)).unwrap_or(0);
                self.stamp = first_stamp.wrapping_add(low);
            }
            stream.write(&mut self.pending);
            if self.pending.len() >= DATAGRAM {
                flush(
                    &mut self.pending,
                    DATAGRAM,
                    self.stamp,
                    &mut self.setup,
                    &mut self.datagrams,
                );
            }
        };
        is_over
    }

    /// Makes datagrams of the packets that wait, each of `least` bytes at least.
    fn flush(&mut self, least: usize) {
        flush(&mut self.pending, least, self.stamp, &mut self.setup, &mut self.datagrams);
    }

    /// Sends waiting datagrams, as many as a tick may have.
    fn send(&mut self, counters: &ChannelCounters) {
        for datagram in self.datagrams.drain(..self.datagrams.len().min(MOST_IN_TICK)) {
            // The error that nobody listens at a port is of an earlier datagram.
            let sent = match self.socket.send(&datagram) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.socket.send(&datagram)
                }
                sent => sent,
            };
            match sent {
                Ok(length) => {
                    counters.datagrams.fetch_add(1, Ordering::Relaxed);
                    counters.sent_bytes.fetch_add(length as u64, Ordering::Relaxed)
                }
                Err(_) => counters.dropped.fetch_add(1, Ordering::Relaxed),
            };
        }
    }
}

/// Moves packets into datagrams, each of at least `least` bytes.
fn flush(
    pending: &mut Vec<u8>,
    least: usize,
    stamp: u32,
    setup: &mut [TrackSetup],
    datagrams: &mut VecDeque<Vec<u8>>,
) {
    let Some(setup) = setup.first_mut().filter(|_| pending.len() >= least) else { return };
    let is_raw = setup.is_raw();
    setup.packetizer.packetise(pending, stamp, &mut |head, rest| {
        datagrams.push_back(if is_raw { rest.to_vec() } else { [head, rest].concat() });
    });
    pending.clear();
}

impl ChannelWorker {
    fn run(mut self) {
        let mut events = Vec::new();
        loop {
            if self.sockets.wait(self.pause(), &mut events).is_err() {
                thread::sleep(TICK);
            }
            events.clear();
            while let Ok(message) = self.messages.try_recv() {
                if matches!(message, WorkerMessage::Quit) {
                    return;
                }
                self.handle(message);
            }
            let now = Instant::now();
            let is_due = |channel: &Channel| channel.wake.is_some_and(|wake| wake <= now);
            let due = self.channels.iter().filter(|(_, channel)| is_due(channel));
            let due: Vec<ConnectionId> = due.map(|(id, _)| *id).collect();
            due.into_iter().for_each(|id| self.send_due(id));
            if now >= self.next_check {
                self.check(now);
                self.next_check = now + CHECK_INTERVAL;
            }
        }
    }

    /// How long the loop may wait: what is due within a tick is sent together.
    fn pause(&self) -> Duration {
        let wakes = self.channels.values().filter_map(|channel| channel.wake);
        let until = wakes
            .min()
            .map_or(CHECK_INTERVAL, |wake| wake.saturating_duration_since(Instant::now()));
        until.clamp(TICK, CHECK_INTERVAL)
    }

    fn handle(&mut self, message: WorkerMessage) {
        let Some(message) = self.handle_delivery(message) else { return };
        match message {
            WorkerMessage::Begin(channel) => self.begin(*channel),
            WorkerMessage::Admitted { connection, result, .. } => self.admitted(connection, result),
            WorkerMessage::HandOver => {
                // An operator who wants them from the next server asks it for them.
                let all: Vec<ConnectionId> = self.channels.keys().copied().collect();
                all.into_iter().for_each(|id| self.remove(id, "restart"));
                self.core.send(Event::Answered);
            }
            WorkerMessage::Accepted { .. }
            | WorkerMessage::Deliver { .. }
            | WorkerMessage::RequestFailed { .. }
            | WorkerMessage::Opened { .. }
            | WorkerMessage::Extended { .. }
            | WorkerMessage::Listed { .. }
            | WorkerMessage::BodyTaken { .. }
            | WorkerMessage::Authorized { .. }
            | WorkerMessage::Answered { .. }
            | WorkerMessage::Dismiss { .. }
            | WorkerMessage::Quit => {}
        }
    }

    fn begin(&mut self, channel: NewChannel) {
        let answer = channel.answer.clone();
        let made = if self.channels.len() < MOST_CHANNELS { Channel::new(channel) } else { None };
        let Some(channel) = made else {
            let _ = answer.send(Err(ChannelError::TooMany));
            return;
        };
        self.count += 1;
        let id = ConnectionId::named(self.count);
        self.channels.insert(id, channel);
        self.count_active();
        self.ask(id);
    }

    fn count_active(&self) {
        self.shared.channels.active.store(self.channels.len() as u64, Ordering::Relaxed);
    }

    /// Asks for admission, from the beginning of the title.
    fn ask(&mut self, id: ConnectionId) {
        let caller = Caller { worker: self.number, connection: id };
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.state = ChannelState::Asking;
        let title = Arc::clone(&channel.title);
        let presentation = Arc::clone(&title.whole);
        let name = channel.name.clone();
        let wait = MaxWait { time: self.shared.settings().wait, ..MaxWait::default() };
        let format = DeliveryFormat::TransportStream;
        let request = Box::new(PlayRequest {
            tracks: Some(channel.tracks.clone()),
            sent_to: Some(channel.to),
            listed_as: channel.number,
            protocol: Protocol::Channel,
            ..PlayRequest::new(title, presentation, name, format, wait)
        });
        let client = ClientAddress::of(channel.to.ip());
        self.core.send(Event::Admit { caller, client, request });
    }

    fn admitted(&mut self, id: ConnectionId, result: Result<Arc<PlayerSession>, AdmissionError>) {
        let Some(channel) = self.channels.get_mut(&id) else {
            if let Ok(session) = result {
                self.core.send(Event::End { session: session.id });
            }
            return;
        };
        let session = match result {
            Ok(session) => session,
            Err(why) => return self.not_admitted(id, why),
        };
        let packaging = &session.presentation.packaging;
        let plain = ReplayOptions::plain(Duration::ZERO);
        let plan = Plan::new(packaging, &channel.setup, Duration::ZERO, false, None, 1000, plain);
        let origin = session.admitted + session.wait + self.startup;
        self.core.send(Event::Connected { session: session.id });
        let playback = Playback::new(session, plan, &channel.setup, origin, Duration::ZERO);
        channel.state = ChannelState::Starting(Box::new(playback));
        self.request_bytes(id);
        self.start_if_accepted(id);
    }

    fn not_admitted(&mut self, id: ConnectionId, why: AdmissionError) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let is_for_ever = matches!(why, AdmissionError::Stopping | AdmissionError::TitleRemoved);
        if let Some(answer) = channel.answer.take() {
            let _ = answer.send(Err(ChannelError::NotAdmitted(why)));
        } else if !is_for_ever {
            self.shared.channels.not_admitted.fetch_add(1, Ordering::Relaxed);
            // It was admitted before, and repeats: there may be room again.
            channel.state = ChannelState::Resting(Instant::now() + REST);
            return;
        }
        self.remove(id, "not-admitted");
    }

    /// The end of the title: of the channel, too, unless it repeats.
    fn went_through(&mut self, id: ConnectionId, now: Instant) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if let ChannelState::Playing(playback) = &mut channel.state {
            playback.continue_timestamps(now, &mut channel.setup);
        }
        if channel.repeats {
            self.stop_playing(id);
            self.ask(id);
        } else {
            self.remove(id, "over");
        }
    }

    /// Ends the engine's session of a channel.
    fn stop_playing(&mut self, id: ConnectionId) {
        let Some(playback) = self.playback(id) else { return };
        let (session, open) = (playback.session.id, playback.open_requests());
        for request in open {
            self.core.send(Event::Cancel { request });
        }
        self.core.send(Event::End { session });
    }

    fn remove(&mut self, id: ConnectionId, why: &str) {
        self.stop_playing(id);
        let Some(channel) = self.channels.remove(&id) else { return };
        self.count_active();
        channel.number.into_iter().for_each(|number| self.shared.channels.forget(number));
        let (to, title) = (channel.to, channel.name);
        let session = channel.number.map(|number| number.0);
        self.shared.log.line(|| {
            json!({ "event": "channel-ended", "session": session, "title": title, "to": to.to_string(), "why": why })
        });
    }

    /// Ends channels that were ended, or whose sessions were, and asks again for those that rest.
    fn check(&mut self, now: Instant) {
        let (mut ended, mut rested) = (Vec::new(), Vec::new());
        for (id, channel) in &self.channels {
            if channel.number.is_some_and(|number| self.shared.channels.is_to_end(number)) {
                ended.push(*id);
                continue;
            }
            match &channel.state {
                ChannelState::Resting(until) if *until <= now => rested.push(*id),
                ChannelState::Starting(playback) | ChannelState::Playing(playback) => {
                    if !self.shared.sessions.is_live(&playback.session) {
                        ended.push(*id);
                    }
                }
                ChannelState::Resting(_) | ChannelState::Asking => {}
            }
        }
        ended.into_iter().for_each(|id| self.failed(id, RequestError::SessionEnded));
        rested.into_iter().for_each(|id| self.ask(id));
    }
}

impl PlaybackThread for ChannelWorker {
    fn core(&self) -> &CoreHandle {
        &self.core
    }

    fn caller(&self, connection: ConnectionId) -> Caller {
        Caller { worker: self.number, connection }
    }

    fn playback(&mut self, id: ConnectionId) -> Option<&mut Playback> {
        self.channels.get_mut(&id)?.playback()
    }

    fn start_if_accepted(&mut self, id: ConnectionId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        match std::mem::replace(&mut channel.state, ChannelState::Asking) {
            ChannelState::Starting(playback) if playback.is_accepted() => {
                if let Some(answer) = channel.answer.take() {
                    let number = playback.session.id;
                    channel.number = Some(number);
                    self.shared.channels.begin(number);
                    let _ = answer.send(Ok(number.0));
                    let (to, title) = (channel.to, &channel.name);
                    self.shared.log.line(|| {
                        json!({ "event": "channel-begun", "session": number.0, "title": title, "to": to.to_string() })
                    });
                }
                if let Some(Filled { origin, .. }) = &mut channel.filled {
                    origin.get_or_insert_with(Instant::now);
                }
                channel.state = ChannelState::Playing(playback);
                self.send_due(id);
            }
            state => channel.state = state,
        }
    }

    fn send_due(&mut self, id: ConnectionId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let (now, mut given_back) = (Instant::now(), Vec::new());
        let is_over = channel.make(now, &mut given_back);
        channel.send(&self.shared.channels);
        if !channel.datagrams.is_empty() {
            channel.wake = Some(now + TICK);
        }
        self.give_back(given_back);
        self.request_bytes(id);
        if is_over {
            self.went_through(id, now);
        }
    }

    fn failed(&mut self, id: ConnectionId, why: RequestError) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let is_ended = matches!(why, RequestError::SessionEnded);
        if let Some(answer) = channel.answer.take() {
            let _ = answer.send(Err(ChannelError::NotServed(why)));
        } else if !is_ended {
            self.shared.channels.not_served.fetch_add(1, Ordering::Relaxed);
            if channel.repeats {
                self.stop_playing(id);
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.state = ChannelState::Resting(Instant::now() + REST);
                }
                return;
            }
        }
        self.remove(id, if is_ended { "ended" } else { "not-served" });
    }
}

/// Channels at a time: as many as a rack of modulators has inputs.
const MOST_CHANNELS: usize = 64;
/// Bytes of a full datagram: as many packets as fit into an Ethernet frame, by custom.
const DATAGRAM: usize = 7 * 188;
/// Datagrams in a tick: 160 Mb/s.
const MOST_IN_TICK: usize = 64;
/// The pace of datagrams: far below the delay that a receiver's buffer evens out.
const TICK: Duration = Duration::from_millis(4);
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How late a stream may be without a change of its pace.
const MOST_LATE: Duration = Duration::from_secs(1);
/// The time until a channel that was not admitted again asks once more.
const REST: Duration = Duration::from_secs(2);
