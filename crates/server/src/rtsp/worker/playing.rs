//! Sending: packets of the LDUs that are due, reports, and the end of streams.

use super::{RtspConnection, RtspWorker, TICK, UdpPacket};
use crate::messages::Event;
use crate::rtsp::RtspCounters;
use crate::rtsp::deliveries::PlaybackThread;
use crate::rtsp::playback::{Playback, SentUnit, Step};
use crate::rtsp::replay::{PacketTime, ReplayOptions};
use crate::rtsp::session::{RtspSession, SessionState, TrackSetup, Wire};
use crate::rtsp::track_bytes::Taken;
use device::sockets::ConnectionId;
use media::rtp::{SenderReport, goodbye};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Where packets are collected.
struct PacketSink<'a> {
    /// Bytes for the connection.
    bytes: Vec<u8>,
    packets: &'a mut VecDeque<UdpPacket>,
    count: u64,
}

impl PacketSink<'_> {
    /// Adds a packet in two parts.
    fn add(&mut self, setup: usize, track: &Wire, is_rtcp: bool, head: &[u8], rest: &[u8]) {
        self.count += 1;
        match track {
            Wire::Interleaved { rtp, rtcp } => {
                let length = u16::try_from(head.len() + rest.len()).unwrap_or(u16::MAX);
                self.bytes.extend_from_slice(&[b'$', if is_rtcp { *rtcp } else { *rtp }]);
                self.bytes.extend_from_slice(&length.to_be_bytes());
                self.bytes.extend_from_slice(head);
                self.bytes.extend_from_slice(rest);
            }
            Wire::Udp(_) | Wire::Named => {
                self.packets.push_back(UdpPacket { setup, is_rtcp, bytes: [head, rest].concat() });
            }
        }
    }
}

impl RtspWorker {
    /// Sends what is due, and notes when something is due next.
    pub(super) fn pump(&mut self, id: ConnectionId) {
        let taken = self.sockets.taken(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let now = Instant::now();
        let RtspConnection { session, packets, wake, queued, goodbye_at, .. } = connection;
        let Some(session) = session else { return };
        let SessionState::Playing(playback) = &mut session.state else { return };
        let mut out = PacketSink { bytes: Vec::new(), packets, count: 0 };
        let mut given_back = Vec::new();
        *wake = loop {
            if out.packets.len() >= PACKETS_IN_TICK {
                break Some(now + TICK);
            }
            // A peer that takes nothing holds no more than this; what it has taken wakes this.
            if *queued - taken + out.bytes.len() as u64 > MOST_QUEUED {
                break None;
            }
            if now >= playback.report_at {
                playback.report_at = now + REPORT_INTERVAL;
                for setup in &playback.plan.setups {
                    let track = &session.tracks[*setup];
                    if track.is_raw() {
                        continue;
                    }
                    let report = report(track, playback.report(now, track)).to_bytes();
                    out.add(*setup, &track.wire, true, &report, &[]);
                }
            }
            match playback.step(now) {
                Step::Wait(at) => break at,
                Step::Send(cursor) => {
                    given_back.extend(send_ldu(playback, cursor, &mut session.tracks, &mut out));
                }
                Step::Ended => {
                    // Packets over UDP may arrive after a report that was sent later.
                    let at = *goodbye_at.get_or_insert(now + GOODBYE_DELAY);
                    break Some(at);
                }
            }
        };
        let is_over = goodbye_at.is_some_and(|at| at <= now);
        let PacketSink { bytes, count, .. } = out;
        self.shared.rtsp.packets.fetch_add(count, Ordering::Relaxed);
        self.send_bytes(id, bytes);
        self.give_back(given_back);
        self.request_bytes(id);
        if let Some(connection) = self.connections.get_mut(&id) {
            send_udp(connection, &self.shared.rtsp);
            if !connection.packets.is_empty() {
                connection.wake = Some(now + TICK);
            }
        }
        if is_over {
            self.finish(id);
        }
    }

    /// Ends the streams: a last report with BYE for each, and the engine's session.
    pub(super) fn finish(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let RtspConnection { session: Some(session), packets, .. } = connection else { return };
        let mut out = PacketSink { bytes: Vec::new(), packets, count: 0 };
        let mut position = Duration::ZERO;
        if let SessionState::Playing(playback) = &session.state {
            let now = Instant::now();
            // Also those of which nothing is sent: a player may wait for the end of each.
            for (setup, track) in session.tracks.iter().enumerate() {
                if track.is_raw() {
                    continue;
                }
                let last = goodbye(&report(track, playback.report(now, track)));
                out.add(setup, &track.wire, true, &last, &[]);
            }
            position = playback.plan.stop.unwrap_or_default();
        }
        let bytes = out.bytes;
        while !connection.packets.is_empty() {
            send_udp(connection, &self.shared.rtsp);
        }
        self.send_bytes(id, bytes);
        self.stop_playback(id);
        self.end_engine_session(id);
        if let Some(session) = self.session(id) {
            session.position = position;
        }
    }

    /// Stops sending; the engine's session stays. Notes the position.
    pub(super) fn stop_playback(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.packets.clear();
        (connection.wake, connection.goodbye_at) = (None, None);
        let Some(session) = &mut connection.session else { return };
        let was = std::mem::replace(&mut session.state, SessionState::Ready);
        if let SessionState::Playing(playback) | SessionState::Starting(playback) = &was {
            let now = Instant::now();
            session.position = playback.position(now);
            playback.continue_timestamps(now, &mut session.tracks);
            for request in playback.open_requests() {
                self.core.send(Event::Cancel { request });
            }
        }
        self.playing.remove(&id);
        self.shared.rtsp.playing.store(self.playing.len() as u64, Ordering::Relaxed);
    }

    /// Ends the engine's session: its reservation is free.
    pub(super) fn end_engine_session(&mut self, id: ConnectionId) {
        let engine = self.session(id).and_then(|session| session.engine.take());
        if let Some(session) = engine {
            self.core.send(Event::End { session });
        }
    }

    /// Ends a connection's session.
    pub(super) fn end_session(&mut self, id: ConnectionId) {
        self.stop_playback(id);
        self.end_engine_session(id);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.session = None;
            // The next session on the connection is asked for as any other.
            if let Some(allowed) = &mut connection.allowed {
                (allowed.permit, allowed.is_authorized) = (allowed.of_token.clone(), false);
            }
        }
    }

    pub(super) fn session(&mut self, id: ConnectionId) -> Option<&mut RtspSession> {
        self.connections.get_mut(&id)?.session.as_mut()
    }
}

/// Makes the packets of the LDU of a cursor; returns the buffers that the engine may have back.
fn send_ldu(
    playback: &mut Playback,
    cursor: usize,
    tracks: &mut [TrackSetup],
    out: &mut PacketSink<'_>,
) -> Vec<Taken> {
    let replay = playback.plan.replay;
    playback.send(cursor, tracks, |setup, track, outgoing, ldu| {
        let is_raw = track.is_raw();
        // The time of a transport stream is in the stream.
        let time = packet_time(&replay, &outgoing).filter(|_| track.transport.is_none());
        let TrackSetup { packetizer, wire, .. } = track;
        packetizer.packetise(ldu, outgoing.stamp, &mut |head, rest| {
            // The head of a packet of a transport stream is that of RTP.
            let head = if is_raw { &[] } else { head };
            match time {
                Some(time) => out.add(setup, wire, false, &time.extend(head), rest),
                None => out.add(setup, wire, false, head, rest),
            }
        });
    })
}

/// What the header extension says of what is sent, if the player wants one.
fn packet_time(replay: &ReplayOptions, outgoing: &SentUnit) -> Option<PacketTime> {
    Some(PacketTime {
        clock: replay.epoch + outgoing.shown.since_start(),
        is_clean: outgoing.sync,
        is_last: outgoing.is_last,
        is_discontinuous: outgoing.is_first,
        number: replay.number?,
    })
}

fn report(track: &TrackSetup, (timestamp, clock): (u32, Duration)) -> SenderReport {
    let (packets, payload_bytes) = track.packetizer.counts();
    SenderReport { ssrc: track.packetizer.ssrc(), clock, timestamp, packets, payload_bytes }
}

/// Sends waiting packets over UDP, as many as a tick may have.
fn send_udp(connection: &mut RtspConnection, counters: &RtspCounters) {
    let Some(session) = &connection.session else { return };
    for packet in connection.packets.drain(..connection.packets.len().min(PACKETS_IN_TICK)) {
        let Some(Wire::Udp(pair)) = session.tracks.get(packet.setup).map(|track| &track.wire)
        else {
            continue;
        };
        let socket = if packet.is_rtcp { &pair.rtcp } else { &pair.rtp };
        // The error that nobody listens at a port is of an earlier packet: this one is tried again.
        let sent = match socket.send(&packet.bytes) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                socket.send(&packet.bytes)
            }
            sent => sent,
        };
        match sent {
            Ok(length) => counters.sent_bytes.fetch_add(length as u64, Ordering::Relaxed),
            Err(_) => counters.dropped_packets.fetch_add(1, Ordering::Relaxed),
        };
    }
}

/// Bytes that may wait for the peer of a connection: a second of 4 Mb/s.
const MOST_QUEUED: u64 = 512 * 1024;
/// Packets over UDP in a tick: fewer than a receiver's socket holds by default, which counts each
/// as twice its size. A key frame takes several ticks.
const PACKETS_IN_TICK: usize = 32;
/// As RFC 3550, 6.2, recommends at least for sessions of two.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Time for the last packets to arrive before the end of the stream does.
const GOODBYE_DELAY: Duration = Duration::from_millis(250);
