//! The requests and receiver reports of a viewer, as they are written.

use super::{Asked, PlayFrom, RtspStep, RtspViewer};
use crate::ClientError;
use crate::hosts::Network;
use std::io::{self, ErrorKind, Write};
use units::Moment;

impl RtspViewer {
    // Makes a request now, or when the one in flight is answered.
    pub(super) fn ask(&mut self, asked: Asked) {
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

    pub(super) fn ask_next(&mut self) {
        if self.asked.is_none()
            && let Some(next) = self.queue.pop_front()
        {
            self.ask(next);
        }
    }

    pub(super) fn write_play(&mut self, range: Option<String>, speed: Option<f64>) {
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

    pub(super) fn transport_of(&self, number: usize) -> (String, String) {
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

    pub(super) fn write_request(&mut self, method: &str, address: &str, fields: &[(&str, String)]) {
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
    pub(super) fn report(&mut self, now: Moment) {
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

    pub(super) fn send(&mut self, network: &mut Network) -> Result<(), ClientError> {
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
}

/// The feature that a node of a director asks for before it lets a player go.
const GOES_ON: &str = "tenuto.goes-on";
