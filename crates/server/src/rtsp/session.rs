//! What a player has set up: its tracks, and where the packets of each go.

use super::playback::Playback;
use crate::library::OpenTitle;
use engine::SessionId;
use media::TransportCounters;
use media::rtp::{Packetizer, PayloadFormat};
use rtsp_message::headers::{Profile, StreamName, TransportSpec};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A player's RTSP session.
#[derive(Debug)]
pub(super) struct RtspSession {
    /// The value of its `Session` field.
    pub(super) id: String,
    pub(super) title: Arc<OpenTitle>,
    /// The title's name in its address.
    pub(super) name: String,
    pub(super) tracks: Vec<TrackSetup>,
    pub(super) state: SessionState,
    /// Where it goes on when it is played again without a range.
    pub(super) position: Duration,
    /// Whether its player has asked for replay as ONVIF has it.
    pub(super) is_replay: bool,
    /// The engine's session, which outlives a pause.
    pub(super) engine: Option<SessionId>,
    /// When the player was last heard of.
    pub(super) heard: Instant,
}

/// What a session is doing.
#[derive(Debug)]
pub(super) enum SessionState {
    /// Set up, or paused.
    Ready,
    /// Admitted, and waiting for the engine to accept the first requests.
    Starting(Box<Playback>),
    Playing(Box<Playback>),
}

/// A track that was set up.
#[derive(Debug)]
pub(super) struct TrackSetup {
    pub(super) track: u16,
    pub(super) is_video: bool,
    pub(super) format: PayloadFormat,
    pub(super) packetizer: Packetizer,
    /// The time stamp of the position at which the present or next playback starts.
    pub(super) timestamp: u32,
    pub(super) wire: Wire,
    /// Where it is a transport stream, which the track leads.
    pub(super) transport: Option<TransportSetup>,
}

/// A transport stream that was set up.
#[derive(Debug)]
pub(super) struct TransportSetup {
    pub(super) tracks: Vec<u16>,
    /// Whether its packets are sent without RTP.
    pub(super) is_raw: bool,
    pub(super) counters: TransportCounters,
}

/// Where the packets of a track go.
#[derive(Debug)]
pub(super) enum Wire {
    /// Into the connection, on these channels.
    Interleaved {
        rtp: u8,
        rtcp: u8,
    },
    Udp(UdpPair),
    /// To the address that an operator has named.
    Named,
}

/// Two sockets, for RTP and RTCP, that are connected to the player's ports.
#[derive(Debug)]
pub(super) struct UdpPair {
    pub(super) rtp: UdpSocket,
    pub(super) rtcp: UdpSocket,
    pub(super) ports: (u16, u16),
}

impl TrackSetup {
    pub(super) fn name(&self) -> StreamName {
        match self.transport {
            None => StreamName::Track(self.track),
            Some(_) => StreamName::Transport,
        }
    }

    /// Whether its packets have no RTP header, and no reports.
    pub(super) fn is_raw(&self) -> bool {
        self.transport.as_ref().is_some_and(|transport| transport.is_raw)
    }
}

impl RtspSession {
    /// Whether any track goes over UDP, where only silence shows that a player has gone.
    pub(super) fn has_udp(&self) -> bool {
        self.tracks.iter().any(|track| matches!(track.wire, Wire::Udp(_)))
    }

    pub(super) fn is_playing(&self) -> bool {
        matches!(self.state, SessionState::Playing(_))
    }

    /// The channels for a further track: those that it names, unless they are another's.
    pub(super) fn channels(&self, wanted: Option<(u8, u8)>) -> (u8, u8) {
        let taken = |channel: u8| {
            self.tracks.iter().any(|track| match track.wire {
                Wire::Interleaved { rtp, rtcp } => channel == rtp || channel == rtcp,
                Wire::Udp(_) | Wire::Named => false,
            })
        };
        if let Some((rtp, rtcp)) = wanted.filter(|(rtp, rtcp)| !taken(*rtp) && !taken(*rtcp)) {
            return (rtp, rtcp);
        }
        let free = (0..=254).step_by(2).find(|first| !taken(*first) && !taken(first + 1));
        // There are as many pairs of channels as there can be tracks set up.
        free.map_or((0, 1), |first| (first, first + 1))
    }
}

impl UdpPair {
    /// Binds an even port and the next one at `local`, and connects them to the ports of `peer`.
    pub(super) fn connect(local: IpAddr, peer: IpAddr, rtp: u16, rtcp: u16) -> io::Result<Self> {
        let mut last = io::Error::other("no pair of ports is free");
        for _ in 0..PAIRS_TRIED {
            match Self::bind(local) {
                Ok(pair) => {
                    pair.rtp.connect(SocketAddr::new(peer, rtp))?;
                    pair.rtcp.connect(SocketAddr::new(peer, rtcp))?;
                    pair.rtp.set_nonblocking(true)?;
                    pair.rtcp.set_nonblocking(true)?;
                    return Ok(pair);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn bind(local: IpAddr) -> io::Result<Self> {
        let first = UdpSocket::bind((local, 0))?;
        let port = first.local_addr()?.port();
        // RFC 3550, 11: RTP has the even port. The partner of the port that the kernel chose:
        let second = UdpSocket::bind((local, port ^ 1))?;
        let ports = (port & !1, port | 1);
        let (rtp, rtcp) = if port == ports.0 { (first, second) } else { (second, first) };
        Ok(Self { rtp, rtcp, ports })
    }

    /// Takes what has come from the player; whether anything has.
    pub(super) fn has_heard(&self) -> bool {
        let mut heard = false;
        let mut packet = [0; 2048];
        for socket in [&self.rtcp, &self.rtp] {
            // A flood of packets must not keep the thread.
            for _ in 0..PACKETS_AT_ONCE {
                if socket.recv(&mut packet).is_err() {
                    break;
                }
                heard = true;
            }
        }
        heard
    }
}

/// The transport of a reply.
pub(super) fn describe(
    wire: &Wire,
    (profile, spec): (Profile, TransportSpec),
    ssrc: u32,
) -> String {
    let (udp, tcp) = match profile {
        Profile::Rtp => ("RTP/AVP", "RTP/AVP/TCP"),
        Profile::TransportStreamInRtp => ("MP2T/RTP/UDP", "MP2T/RTP/TCP"),
        Profile::TransportStream => ("MP2T/UDP", "MP2T/TCP"),
    };
    match (wire, spec) {
        (Wire::Udp(UdpPair { ports: (own, _), .. }), TransportSpec::Udp { rtp, .. })
            if profile == Profile::TransportStream =>
        {
            format!("{udp};unicast;client_port={rtp};server_port={own}")
        }
        (Wire::Udp(pair), TransportSpec::Udp { rtp, rtcp }) => format!(
            "{udp};unicast;client_port={rtp}-{rtcp};server_port={}-{};ssrc={ssrc:08X}",
            pair.ports.0, pair.ports.1
        ),
        (Wire::Interleaved { rtp, rtcp }, _) => {
            format!("{tcp};unicast;interleaved={rtp}-{rtcp};ssrc={ssrc:08X}")
        }
        (Wire::Udp(_), TransportSpec::Interleaved { .. }) | (Wire::Named, _) => {
            unreachable!("made from this")
        }
    }
}

/// Attempts to find two ports side by side: each fails only where another program has one of them.
const PAIRS_TRIED: usize = 16;
/// Packets of a player that are taken at once. Players send a report every few seconds.
const PACKETS_AT_ONCE: usize = 16;
