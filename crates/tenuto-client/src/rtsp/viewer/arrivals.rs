//! What arrives at a viewer: packets, and the answers to its requests.

use super::super::receiver::RtpLdu;
use super::{Asked, PlayFrom, PushEvent, REPORTS, RtspStep, RtspTrack, RtspViewer, text};
use crate::hosts::Network;
use crate::ldus::PushedLdu;
use crate::session::{
    LONGEST_PUT_OFF, MAX_PUT_OFF, MAX_REDIRECTS, SHORTEST_RETRY, error_status, is_for_ever,
    refusal, wait_for_place,
};
use crate::{ClientError, RequestError};
use player::PlaybackState;
use rtsp_types::headers::{RANGE, RETRY_AFTER, RTP_INFO, SESSION};
use rtsp_types::{Message, ParseError, Response};
use std::io::{ErrorKind, Read};
use std::time::Duration;
use units::Moment;

/// The length of a message, and the response that it may be.
type Incoming = (usize, Option<Response<Vec<u8>>>);

impl RtspViewer {
    pub(super) fn serve_connection(
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

    pub(super) fn serve_socket(
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
    pub(super) fn read_input(
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
    pub(super) fn next_message(&self, input: &[u8]) -> Result<Option<Incoming>, ClientError> {
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

    pub(super) fn packet(
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
    pub(super) fn receive(
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
    pub(super) fn pace(&self) -> f64 {
        self.speed.map_or(1.0, f64::abs).max(SLOWEST)
    }

    pub(super) fn answered(
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
    pub(super) fn resumption_refused(
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
    pub(super) fn change_refused(&mut self, is_seek: bool) {
        let count = if is_seek { &mut self.refused_seeks } else { &mut self.refused_speeds };
        *count += 1;
        if !self.queue.iter().any(|asked| matches!(asked, Asked::Play(_))) {
            self.player.keep_stream();
        }
        self.ask_next();
    }
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

/// The longest response, a description included.
const LONGEST_RESPONSE: usize = 1 << 20;

/// The slowest speed that a length is divided by.
const SLOWEST: f64 = 0.01;

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
