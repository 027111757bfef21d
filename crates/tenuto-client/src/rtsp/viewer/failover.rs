//! A viewer that changes its server: it was redirected, or has lost the node that a director sent
//! it to.

use super::{Asked, LAST_LDU, PlayFrom, RtspStep, RtspViewer, text};
use crate::hosts::Network;
use crate::session::error_status;
use crate::url::Url;
use crate::wire::Wire;
use crate::{ClientError, RequestError};
use mio::Token;
use player::{PlaybackState, PushAction};
use rtsp_types::Response;
use rtsp_types::headers::LOCATION;
use std::net::SocketAddr;
use std::time::Duration;
use units::Moment;

impl RtspViewer {
    // Goes on at the server that the answer names, such as the node of a director, from the
    // description on.
    pub(super) fn redirected(
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
    pub(super) fn lose(&mut self, now: Moment, error: ClientError) -> Result<(), ClientError> {
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
    pub(super) fn go_away(&mut self, now: Moment, wait: Option<Duration>) -> bool {
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
    pub(super) fn asks_at(&self) -> Option<Moment> {
        let is_paused = self.player.state(self.heard) == PlaybackState::Paused;
        self.going_on.ask_at.filter(|_| !is_paused)
    }

    pub(super) fn ask_director(&mut self, network: &mut Network) -> Result<(), ClientError> {
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
    pub(super) fn act_away(&mut self, action: PushAction, now: Moment) {
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
    pub(super) fn is_dismissed(&self) -> bool {
        let goodbye = !self.tracks.is_empty() && self.tracks.iter().all(|track| track.goodbye);
        let is_early = self.length.is_some_and(|length| self.latest + LAST_LDU < length);
        goodbye && is_early && self.going_on.is_directed && self.step == RtspStep::Streaming
    }
}

/// A connection to the server of an address.
pub(super) fn open_wire(
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
