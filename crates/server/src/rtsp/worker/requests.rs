//! The methods of RTSP 1.0.
//!
//! | state | methods |
//! |---|---|
//! | no session | OPTIONS, DESCRIBE, SETUP, GET_PARAMETER, SET_PARAMETER |
//! | ready | also PLAY, PAUSE, TEARDOWN |
//! | playing | as ready, without SETUP |
//!
//! Admission is asked at PLAY: only then are the tracks, the position and the speed known, and a
//! player that never plays reserves nothing.

use super::dismissal::goes_on;
use super::{AdoptedTicket, AllowedTitle, RtspConnection, RtspWorker, WaitingRequest};
use crate::access::{CheckedToken, Denied, Permit, TokenNeed};
use crate::clients::ClientAddress;
use crate::http::{Response, bearer_token, escape};
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::membership::permit_of;
use crate::messages::{Event, PlayRequest};
use crate::opener::Task;
use crate::playback_params::PlaybackParams;
use crate::presentation::Presentation;
use crate::rtsp::deliveries::PlaybackThread;
use crate::rtsp::offered::{OfferedStream, described, no_resource, stream_to_set_up};
use crate::rtsp::playback::Plan;
use crate::rtsp::replay::{self, ReplayOptions};
use crate::rtsp::session::{
    RtspSession, SessionState, TrackSetup, TransportSetup, UdpPair, Wire, describe,
};
use crate::sessions::TokenLookup;
use crate::telemetry::Protocol;
use device::sockets::ConnectionId;
use director::ticket::TicketError;
use engine::MaxWait;
use media::rtp::{MediaSection, Packetizer, session_description};
use media::{TrackKind, TransportCounters};
use rtsp_message::headers::{
    NptRange, Profile, StreamName, Target, TransportSpec, range, scale, seconds, target, transport,
};
use rtsp_message::names::{
    ACCEPT, ALLOW, AUTHORIZATION, CONTENT_BASE, CONTENT_TYPE, CSEQ, PUBLIC, RANGE, REQUIRE,
    RETRY_AFTER, RTP_INFO, SCALE, SEEK_STYLE, SESSION, TRANSPORT, UNSUPPORTED, WWW_AUTHENTICATE,
};
use rtsp_message::{
    HeaderName, Method, NOT_ENOUGH_BANDWIDTH, Request, RtspReply, sequence_number, value,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A request of a player.
type Asked = Request<Vec<u8>>;

/// What a request leads to, unless it is answered at once.
pub(super) enum Next {
    Reply(RtspReply),
    /// Let the opener do this, and handle the request again.
    Open(String),
    Build(Arc<OpenTitle>, PlaybackParams),
    PlanTransport(Arc<OpenTitle>, Arc<Presentation>),
    /// Let the operator's service decide on the player, and handle the request again.
    Authorize(String),
    Admit(Box<PlayRequest>, Plan),
}

impl From<RtspReply> for Next {
    fn from(reply: RtspReply) -> Self {
        Self::Reply(reply)
    }
}

impl RtspWorker {
    /// Handles a request. `opened`: its title, where that has just been opened for it.
    pub(super) fn handle(
        &mut self,
        id: ConnectionId,
        request: Box<Asked>,
        opened: Option<Arc<OpenTitle>>,
    ) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.goes_on |= goes_on(&request);
        }
        let next = match check(&request) {
            Some(reply) => reply.into(),
            None => self.decide(id, &request, opened).unwrap_or_else(Next::Reply),
        };
        let caller = self.caller(id);
        let task = match next {
            Next::Reply(reply) => return self.reply(id, &request, reply),
            Next::Admit(play, plan) => {
                let Some(connection) = self.connections.get_mut(&id) else { return };
                let client = ClientAddress::of(connection.peer.ip());
                connection.waiting = Some(WaitingRequest::Admission(request, plan));
                return self.core.send(Event::Admit { caller, client, request: play });
            }
            Next::Authorize(name) => return self.ask_first(id, request, &name),
            Next::Open(name) => Task::Open { caller, name },
            Next::Build(title, params) => Task::BuildPresentation { caller, title, params },
            Next::PlanTransport(title, presentation) => {
                Task::PlanTransport { caller, title, presentation }
            }
        };
        if self.opener.submit(task) {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.waiting = Some(WaitingRequest::Opener(request));
            }
        } else {
            let text = "too many requests wait for titles to be opened; try again later";
            self.reply(id, &request, RtspReply::error(503, text));
        }
    }

    fn decide(
        &mut self,
        id: ConnectionId,
        request: &Asked,
        opened: Option<Arc<OpenTitle>>,
    ) -> Result<Next, RtspReply> {
        match request.method() {
            Method::Options => Ok(RtspReply::new(200).field(PUBLIC, METHODS).into()),
            Method::Describe => {
                self.adopt(id, request)?;
                self.check_token(id, request)?;
                self.describe(id, request, opened)
            }
            Method::Setup => {
                self.adopt(id, request)?;
                self.check_token(id, request)?;
                self.set_up(id, request, opened)
            }
            Method::Play => self.play(id, request),
            Method::Pause => self.pause_playing(id, request),
            Method::Teardown => {
                self.named_session(id, request)?;
                self.end_session(id);
                Ok(RtspReply::new(200).into())
            }
            Method::GetParameter | Method::SetParameter => {
                if value(request, &SESSION).is_some() {
                    self.named_session(id, request)?;
                }
                // Without a body it only shows that the player is there.
                if request.body().iter().all(u8::is_ascii_whitespace) {
                    return Ok(RtspReply::new(200).into());
                }
                Err(RtspReply::error(451, "there are no parameters here; send no body"))
            }
            Method::Announce | Method::Record | Method::Redirect | Method::PlayNotify => {
                let text = "this server plays stored titles; it takes no media in over RTSP";
                Err(RtspReply::error(405, text).field(ALLOW, METHODS))
            }
            Method::Extension(_) => {
                let text = format!("this method does not exist here; use one of {METHODS}");
                Err(RtspReply::error(501, &text).field(PUBLIC, METHODS))
            }
        }
    }

    /// Takes the reservation that a director has asked for, where the address has its ticket: PLAY
    /// goes on in its place. The ticket stands for the access token that the director was shown.
    fn adopt(&mut self, id: ConnectionId, request: &Asked) -> Result<(), RtspReply> {
        let query = request.request_uri().into_iter().flat_map(|uri| uri.query_pairs());
        let Some((_, text)) = query.into_iter().find(|(name, _)| name == "ticket") else {
            return Ok(());
        };
        let name = named(request)?.title;
        let ended = || {
            let text =
                "the reservation of this ticket has ended or is in use; ask the director again";
            RtspReply::error(454, text)
        };
        let membership = self.shared.membership.as_ref().ok_or_else(|| {
            RtspReply::error(403, "this server is in no cluster, and takes no tickets")
        })?;
        let ticket = membership.rtsp_ticket(&text).map_err(|why| match why {
            TicketError::Expired { .. } => ended(),
            TicketError::Forged => RtspReply::error(403, &format!("{why}; ask the director")),
        })?;
        if ticket.title != name {
            return Err(RtspReply::error(403, "the ticket is of another title"));
        }
        let peer = self.connections.get(&id).map(|connection| connection.peer.ip());
        if peer.is_some_and(|peer| !permit_of(&ticket).is_for(peer)) {
            return Err(RtspReply::error(403, "the ticket is of a viewer at another address"));
        }
        // A player has the ticket in the address that it repeats, also when it has played.
        let has = |connection: &RtspConnection| {
            connection.adopted.as_ref().is_some_and(|it| it.ticket == ticket.session)
        };
        if self.connections.get(&id).is_some_and(has) {
            return Ok(());
        }
        let session = match self.shared.sessions.find(&ticket.session) {
            TokenLookup::Live(session) if !session.has_played() => session.id,
            _ => return Err(ended()),
        };
        if self.connections.values().any(has) {
            return Err(ended());
        }
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        // It was asked for when the director did.
        let (permit, claims, is_authorized) = (permit_of(&ticket), None, true);
        let of_token = permit.clone();
        connection.allowed = Some(AllowedTitle { name, of_token, permit, claims, is_authorized });
        connection.adopted = Some(AdoptedTicket { ticket: ticket.session, session: Some(session) });
        Ok(())
    }

    /// Checks the access token of a player, where the server needs one. Players set tracks up by
    /// addresses in the description, which have no token: the one that opened the description of a
    /// title stands for the connection.
    fn check_token(&mut self, id: ConnectionId, request: &Asked) -> Result<(), RtspReply> {
        let name = named(request)?.title;
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        if connection.allowed.as_ref().is_some_and(|allowed| allowed.name == name) {
            return Ok(());
        }
        let bearer = value(request, &AUTHORIZATION).and_then(bearer_token);
        let query = request.request_uri().into_iter().flat_map(|uri| uri.query_pairs());
        let query = query.into_iter().find(|(name, _)| name == "token");
        let token = bearer.or(query.as_ref().map(|(_, token)| &**token));
        let peer = connection.peer.ip();
        let (access, now) = (&self.shared.access, SystemTime::now());
        match access.check_token(TokenNeed::Title(&name), token, peer, now) {
            Ok(CheckedToken { permit, claims }) => {
                let (of_token, is_authorized) = (permit.clone(), false);
                connection.allowed =
                    Some(AllowedTitle { name, of_token, permit, claims, is_authorized });
                Ok(())
            }
            Err(why @ Denied::NotAllowed(_)) => Err(RtspReply::error(403, &why.to_string())),
            Err(why) => Err(RtspReply::error(401, &why.to_string())
                .field(WWW_AUTHENTICATE, "Bearer realm=\"tenuto\"")),
        }
    }

    /// The open title of this name, or what to do instead.
    fn title(
        &self,
        id: ConnectionId,
        name: &str,
        opened: Option<Arc<OpenTitle>>,
    ) -> Result<Result<Arc<OpenTitle>, Next>, RtspReply> {
        if self.shared.stopping.load(Ordering::Relaxed) {
            let client = self.connections.get(&id).map(|it| ClientAddress::of(it.peer.ip()));
            let priority = self.permit(id).priority;
            self.shared.refuse_at_stop(name, client, priority, None);
            let text = "this server is stopping and admits no new session; try again later";
            return Err(RtspReply::error(503, text));
        }
        if self.shared.content.is_encrypted(name) {
            let text = "this title is encrypted, which RTSP cannot be; play it with HLS or DASH";
            return Err(RtspReply::error(403, text));
        }
        if let Some(title) = opened {
            return Ok(Ok(title));
        }
        match self.shared.content.opened(name) {
            Ok(Some(title)) => Ok(Ok(title)),
            Ok(None) => Ok(Err(Next::Open(name.to_owned()))),
            Err(why) => {
                Err(reply_of_http(crate::http::not_opened(&self.shared, name, &why), false))
            }
        }
    }

    /// What the token that opened a title on this connection permits.
    fn permit(&self, id: ConnectionId) -> Permit {
        let allowed = self.connections.get(&id).and_then(|it| it.allowed.as_ref());
        allowed.map_or_else(Permit::default, |allowed| allowed.permit.clone())
    }

    fn describe(
        &self,
        id: ConnectionId,
        request: &Asked,
        opened: Option<Arc<OpenTitle>>,
    ) -> Result<Next, RtspReply> {
        let (named, permit) = (named(request)?, self.permit(id));
        if let Some(accepted) = value(request, &ACCEPT)
            && !accepts_sdp(accepted)
        {
            return Err(RtspReply::error(406, "descriptions are application/sdp; accept that"));
        }
        let title = match self.title(id, &named.title, opened)? {
            Ok(title) => title,
            Err(next) => return Ok(next),
        };
        let streams = described(&title, named.stream, &permit)?;
        if self.is_to_ask(id) {
            return Ok(Next::Authorize(named.title));
        }
        let controls: Vec<String> =
            streams.iter().map(|stream| stream.name().to_string()).collect();
        let sections: Vec<MediaSection<'_>> = streams
            .iter()
            .zip(&controls)
            .map(|(stream, control)| MediaSection {
                kind: stream.kind,
                format: &stream.format,
                control,
            })
            .collect();
        let local = self.limits.local;
        let address = format!("{} {local}", if local.is_ipv6() { "IP6" } else { "IP4" });
        let duration = title.whole.packaging.duration();
        let text = session_description(&named.title, title.key.0, &address, duration, &sections);
        let base = base(request, &named.title, self.sockets.is_secure());
        let reply = RtspReply::new(200).field(CONTENT_BASE, base);
        Ok(reply.field(CONTENT_TYPE, "application/sdp").body(text).into())
    }

    fn set_up(
        &mut self,
        id: ConnectionId,
        request: &Asked,
        opened: Option<Arc<OpenTitle>>,
    ) -> Result<Next, RtspReply> {
        let named = named(request)?;
        let spec = value(request, &TRANSPORT)
            .ok_or_else(|| RtspReply::error(400, "SETUP needs a Transport field"))?;
        let spec = transport(spec).ok_or_else(|| {
            let text = "use RTP/AVP;unicast;client_port=A-B or RTP/AVP/TCP;interleaved=A-B, or with \
                        MP2T/RTP or MP2T in place of RTP/AVP for a transport stream";
            RtspReply::error(461, text)
        })?;
        if self.sockets.is_secure() && matches!(spec, (_, TransportSpec::Udp { .. })) {
            let text = "packets over UDP would not be encrypted; use RTP/AVP/TCP;interleaved=A-B";
            return Err(RtspReply::error(461, text));
        }
        let is_new = value(request, &SESSION).is_none();
        if !is_new && !matches!(self.named_session(id, request)?.state, SessionState::Ready) {
            return Err(wrong_state("a session that plays keeps its transports; pause it first"));
        }
        let title = match self.title(id, &named.title, opened)? {
            Ok(title) => title,
            Err(next) => return Ok(next),
        };
        if is_new && self.session(id).is_some() {
            // A player that begins again on the same connection has given up what it had.
            self.end_session(id);
        }
        let stream = stream_to_set_up(&title, named.stream, spec.0, &self.permit(id))?;
        if self.is_to_ask(id) {
            return Ok(Next::Authorize(named.title));
        }
        // The name of the session is a secret of the player; packets show their numbers to all.
        let (secret, random) = (self.random()?, self.random()?);
        let local = self.limits.local;
        let Some(connection) = self.connections.get_mut(&id) else {
            return Err(RtspReply::new(500));
        };
        let peer = connection.peer.ip();
        let session = connection.session.get_or_insert_with(|| RtspSession {
            id: format!("{secret:032x}"),
            title: Arc::clone(&title),
            name: named.title.clone(),
            tracks: Vec::new(),
            state: SessionState::Ready,
            position: Duration::ZERO,
            is_replay: false,
            engine: None,
            heard: Instant::now(),
        });
        if session.title.key != title.key {
            return Err(wrong_state(
                "a session plays one title; begin another session for another",
            ));
        }
        session.is_replay |= wants_replay(request);
        let described = add_stream(session, stream, spec, (local, peer), random)?;
        Ok(RtspReply::new(200).field(TRANSPORT, described).into())
    }

    fn play(&mut self, id: ConnectionId, request: &Asked) -> Result<Next, RtspReply> {
        let speed = asked_speed(request)?;
        let wait = MaxWait { time: self.shared.settings().wait, ..MaxWait::default() };
        let permit = self.permit(id);
        let adopted = self.connections.get(&id).and_then(|it| it.adopted.as_ref()?.session);
        let session = self.named_session(id, request)?;
        if session.tracks.is_empty() {
            return Err(wrong_state("no track is set up"));
        }
        session.is_replay |= wants_replay(request);
        let epoch = session.title.created.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let mut replay = asked_replay(request, session, epoch.unwrap_or_default())?;
        let asked = asked_range(request, &mut replay)?;
        if let SessionState::Playing(_) = session.state
            && value(request, &RANGE).is_none()
            && value(request, &SCALE).is_none()
        {
            return Ok(played(session).into());
        }
        // Sound has one speed: it would have to be decoded for another. So has a transport stream,
        // whose clock and sound are of that speed.
        let speed = if session.tracks.iter().any(|track| track.is_video) { speed } else { 1000 };
        let params = PlaybackParams { speed_milli: speed, ..PlaybackParams::default() };
        let presentation: Arc<Presentation> = match session.title.cached_presentation(&params) {
            Some(Ok(presentation)) => presentation,
            Some(Err(why)) => return Err(RtspReply::error(457, &why.to_string())),
            None => return Ok(Next::Build(Arc::clone(&session.title), params)),
        };
        let duration = presentation.packaging.duration();
        let from = match &session.state {
            SessionState::Playing(playback) => playback.position(Instant::now()),
            _ => session.position,
        };
        let start = asked.start.unwrap_or(from);
        let stop = asked.stop.filter(|stop| *stop < duration);
        if start >= duration || stop.is_some_and(|stop| stop <= start) {
            let text = format!(
                "the title is {} s long; a range begins within that, and ends after its beginning",
                seconds(duration)
            );
            return Err(RtspReply::error(457, &text));
        }
        let transport = session.tracks.first().and_then(|setup| setup.transport.as_ref());
        if transport.is_some() && !presentation.packaging.is_transport_planned() {
            return Ok(Next::PlanTransport(Arc::clone(&session.title), presentation));
        }
        // A player that goes on here has what comes before (RFC 7826, 18.47), and so has one that
        // has paused (RFC 2326, 10.5).
        let is_exact = match asked.start {
            Some(_) => {
                value(request, &SEEK_STYLE).is_some_and(|it| it.eq_ignore_ascii_case(FIRST_PRIOR))
            }
            None => session.engine.is_some() && value(request, &SCALE).is_none(),
        };
        // What it has is shown meanwhile, so that it does not wait: its director asks another node.
        let max_wait = if is_exact && adopted.is_some() { MaxWait::default() } else { wait };
        let packaging = &presentation.packaging;
        let plan = Plan::new(packaging, &session.tracks, start, is_exact, stop, speed, replay);
        let (format, tracks) = match transport {
            Some(transport) => (DeliveryFormat::TransportStream, transport.tracks.clone()),
            None => {
                let played = plan.setups.iter().map(|setup| session.tracks[*setup].track);
                (DeliveryFormat::Segmented, played.collect())
            }
        };
        let (title, name) = (Arc::clone(&session.title), session.name.clone());
        let play = PlayRequest {
            tracks: Some(tracks),
            start: plan.first.since_start(),
            replaces: session.engine.or(adopted),
            permit,
            protocol: Protocol::Rtsp,
            ..PlayRequest::new(title, presentation, name, format, max_wait)
        };
        Ok(Next::Admit(Box::new(play), plan))
    }

    fn pause_playing(&mut self, id: ConnectionId, request: &Asked) -> Result<Next, RtspReply> {
        self.named_session(id, request)?;
        self.stop_playback(id);
        let session = self.named_session(id, request)?;
        let range = format!("npt={}-", seconds(session.position));
        Ok(RtspReply::new(200).field(RANGE, range).into())
    }

    /// The session that a request names, which must be the connection's.
    fn named_session(
        &mut self,
        id: ConnectionId,
        request: &Asked,
    ) -> Result<&mut RtspSession, RtspReply> {
        let given = value(request, &SESSION).and_then(|value| value.split(';').next());
        let named = request.request_uri().and_then(|uri| target(uri.path()));
        let session = self.session(id).filter(|session| given.map(str::trim) == Some(&session.id));
        let session = session.ok_or_else(|| {
            RtspReply::error(454, "this connection has no session of this name; begin with SETUP")
        })?;
        let is_alone = |stream: StreamName| match session.tracks.as_slice() {
            [setup] => setup.name() == stream,
            _ => false,
        };
        match (request.method(), named) {
            (Method::Setup | Method::GetParameter | Method::SetParameter, _) => {}
            (_, Some(Target { stream: Some(stream), .. })) if !is_alone(stream) => {
                return Err(RtspReply::error(
                    460,
                    "use the address of the title: all tracks at once",
                ));
            }
            (_, Some(_)) => {}
            (_, None) => return Err(no_resource()),
        }
        session.heard = Instant::now();
        Ok(session)
    }

    /// 128 random bits.
    fn random(&self) -> Result<u128, RtspReply> {
        let token = self.shared.sessions.new_token();
        let text = token.map_err(|error| RtspReply::error(500, &error.to_string()))?.to_string();
        Ok(u128::from_str_radix(&text, 16).unwrap_or_default())
    }
}

/// Adds a stream to a session; its transport as the reply has it. `addresses`: where UDP sockets
/// are bound, and the peer of the connection.
fn add_stream(
    session: &mut RtspSession,
    stream: OfferedStream,
    (profile, spec): (Profile, TransportSpec),
    (local, peer): (IpAddr, IpAddr),
    random: u128,
) -> Result<String, RtspReply> {
    let OfferedStream { track, kind, format, multiplexed } = stream;
    let is_transport = !multiplexed.is_empty();
    session
        .tracks
        .retain(|other| other.track != track || other.transport.is_some() != is_transport);
    if session.tracks.iter().any(|other| is_transport || other.transport.is_some()) {
        return Err(wrong_state("a transport stream is the only stream of its session"));
    }
    if session.tracks.len() >= MOST_TRACKS {
        return Err(wrong_state("a session has at most 4 tracks; begin another session"));
    }
    let wire = match spec {
        TransportSpec::Interleaved { channels } => {
            let (rtp, rtcp) = session.channels(channels);
            Wire::Interleaved { rtp, rtcp }
        }
        // Never elsewhere than to the peer of the connection (`destination` is ignored).
        TransportSpec::Udp { rtp, rtcp } => {
            let pair = UdpPair::connect(local, peer, rtp, rtcp);
            Wire::Udp(pair.map_err(|error| {
                RtspReply::error(503, &format!("no UDP ports: {error}; use RTP/AVP/TCP"))
            })?)
        }
    };
    let (ssrc, timestamp) = (low_32(random), low_32(random >> 32));
    let sequence = u16::try_from(low_32(random >> 64) >> 16).unwrap_or(0);
    let packetizer = Packetizer::new(&format, ssrc, sequence);
    let described = describe(&wire, (profile, spec), ssrc);
    let is_video = kind == TrackKind::Video && !is_transport;
    let is_raw = profile == Profile::TransportStream;
    let counters = TransportCounters::default();
    let transport =
        is_transport.then_some(TransportSetup { tracks: multiplexed, is_raw, counters });
    // Streams of a session have unrelated time stamps; reports relate them.
    session.tracks.push(TrackSetup {
        track,
        is_video,
        format,
        packetizer,
        timestamp,
        wire,
        transport,
    });
    Ok(described)
}

/// The reply to a request that is refused whatever it asks.
fn check(request: &Asked) -> Option<RtspReply> {
    if let Some(reply) = RtspReply::to_unusable(request) {
        return Some(reply);
    }
    let options = value(request, &REQUIRE).unwrap_or_default().split(',').map(str::trim);
    let unknown = options.filter(|option| !matches!(*option, "" | replay::FEATURE));
    let unknown = unknown.collect::<Vec<_>>().join(", ");
    (!unknown.is_empty()).then(|| RtspReply::new(551).field(UNSUPPORTED, unknown))
}

/// Whether a request asks for replay as ONVIF has it.
fn wants_replay(request: &Asked) -> bool {
    let options = value(request, &REQUIRE).unwrap_or_default();
    options.split(',').any(|option| option.trim() == replay::FEATURE)
}

/// Whether the value of an `Accept` field has SDP (RFC 2326, 12.1, as RFC 9110, 12.5.1).
fn accepts_sdp(accepted: &str) -> bool {
    accepted.split(',').any(|range| {
        let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
        let is_excluded = parameters.split(';').any(|parameter| {
            let quality = parameter.trim().strip_prefix("q=");
            quality.is_some_and(|quality| quality.parse().is_ok_and(|it: f32| it == 0.0))
        });
        let kinds = ["application/sdp", "application/*", "*/*"];
        !is_excluded && kinds.iter().any(|it| it.eq_ignore_ascii_case(kind.trim()))
    })
}

/// The fields of ONVIF that a PLAY has.
fn asked_replay(
    request: &Asked,
    session: &RtspSession,
    epoch: Duration,
) -> Result<ReplayOptions, RtspReply> {
    let field = |name: &'static str| {
        HeaderName::from_static_str(name).ok().and_then(|name| value(request, &name))
    };
    let mut options = ReplayOptions::plain(epoch);
    if let Some(frames) = field("Frames") {
        let text = "Frames is all, predicted, intra, or intra/ and milliseconds";
        options.frames = replay::frames(frames).ok_or_else(|| RtspReply::error(400, text))?;
    }
    // A PLAY takes the place of what is played at once in any case.
    for (name, is_paced) in [("Immediate", None), ("Rate-Control", Some(&mut options.is_paced))] {
        let Some(text) = field(name) else { continue };
        let said = replay::yes_or_no(text);
        let said = said.ok_or_else(|| RtspReply::error(400, &format!("{name} is yes or no")))?;
        if let Some(is_paced) = is_paced {
            *is_paced = said;
        }
    }
    if !options.is_paced && session.has_udp() {
        let text = "Rate-Control: no needs packets in the connection; use RTP/AVP/TCP";
        return Err(RtspReply::error(461, text));
    }
    let number = value(request, &CSEQ).and_then(sequence_number).and_then(|it| it.parse().ok());
    let low = number.and_then(|number: u64| u8::try_from(number & 0xff).ok());
    options.number = low.filter(|_| session.is_replay);
    Ok(options)
}

/// The part of the title that a PLAY asks for.
fn asked_range(request: &Asked, replay: &mut ReplayOptions) -> Result<NptRange, RtspReply> {
    let Some(text) = value(request, &RANGE) else {
        return Ok(NptRange { start: None, stop: None });
    };
    if let Some((start, stop)) = replay::clock_range(text) {
        replay.by_clock = true;
        // What was not recorded yet is passed over.
        let position = |time: Duration| time.saturating_sub(replay.epoch);
        return Ok(NptRange { start: start.map(position), stop: stop.map(position) });
    }
    let text_of_error = "ranges are in normal play time (npt=10-, npt=10-20, npt=now-) or in times of \
                         day (clock=20261126T180000Z-)";
    range(text).ok_or_else(|| RtspReply::error(457, text_of_error))
}

/// The speed that a PLAY asks for, in thousandths.
fn asked_speed(request: &Asked) -> Result<u32, RtspReply> {
    match value(request, &SCALE).map(scale) {
        None => Ok(1000),
        Some(None) => Err(RtspReply::error(400, "Scale is a number such as 1 or 2.5")),
        Some(Some(None)) => {
            let text = "Scale is more than zero over RTSP; HLS also plays backwards";
            Err(RtspReply::error(451, text))
        }
        Some(Some(Some(speed))) => Ok(speed),
    }
}

/// The title and the track that a request names.
fn named(request: &Asked) -> Result<Target, RtspReply> {
    request.request_uri().and_then(|uri| target(uri.path())).ok_or_else(no_resource)
}

/// The reply with the words of an HTTP response: the same refusal has the same text. `refused`:
/// admission control refuses it.
pub(super) fn reply_of_http(response: Response, refused: bool) -> RtspReply {
    let status = match response.head.status() {
        429 => NOT_ENOUGH_BANDWIDTH,
        _ if refused => NOT_ENOUGH_BANDWIDTH,
        410 => 454,
        other => other,
    };
    let mut reply = RtspReply::new(status).field(CONTENT_TYPE, "application/json");
    if let Some(after) = response.head.value("Retry-After") {
        reply = reply.field(RETRY_AFTER, after);
    }
    reply.body(response.body)
}

fn wrong_state(text: &str) -> RtspReply {
    RtspReply::error(455, text)
}

/// The address of a title, as the base of its tracks' addresses.
fn base(request: &Asked, title: &str, is_secure: bool) -> String {
    let authority = request.request_uri().map_or("", |uri| uri.authority());
    let scheme = if is_secure { "rtsps" } else { "rtsp" };
    format!("{scheme}://{authority}/t/{}/", escape(title))
}

/// The reply to a further PLAY: what is played.
fn played(session: &RtspSession) -> RtspReply {
    let SessionState::Playing(playback) = &session.state else { return RtspReply::new(500) };
    let plan = &playback.plan;
    let duration = playback.session.presentation.packaging.duration();
    let (first, stop) = (plan.first.since_start(), plan.stop.unwrap_or(duration));
    let range = match plan.replay {
        ReplayOptions { by_clock: true, epoch, .. } => {
            format!("clock={}-{}", replay::clock(epoch + first), replay::clock(epoch + stop))
        }
        _ => format!("npt={}-{}", seconds(first), seconds(stop)),
    };
    let mut reply = RtspReply::new(200).field(RANGE, range);
    if plan.is_exact {
        reply = reply.field(SEEK_STYLE, FIRST_PRIOR);
    }
    reply.field(SCALE, format!("{}.{:03}", plan.speed_milli / 1000, plan.speed_milli % 1000))
}

/// The reply to PLAY: what is played, and where each stream begins.
pub(super) fn playing(request: &Asked, session: &RtspSession, is_secure: bool) -> RtspReply {
    let SessionState::Playing(playback) = &session.state else { return RtspReply::new(500) };
    let base = base(request, &session.name, is_secure);
    let info: Vec<String> = playback
        .plan
        .setups
        .iter()
        .map(|setup| {
            let track = &session.tracks[*setup];
            let (sequence, stamp) = (track.packetizer.next_sequence(), track.timestamp);
            format!("url={base}{};seq={sequence};rtptime={stamp}", track.name())
        })
        .collect();
    played(session).field(RTP_INFO, info.join(","))
}

fn low_32(bits: u128) -> u32 {
    u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(0)
}

/// The style of a seek that begins with the picture of the position, not with a key frame.
const FIRST_PRIOR: &str = "First-Prior";
const METHODS: &str =
    "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER";
/// Tracks of a session: pictures, sound, and another two; each over UDP has two sockets.
const MOST_TRACKS: usize = 4;
