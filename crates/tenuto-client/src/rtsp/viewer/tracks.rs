//! The tracks of a description, and their sockets.

use super::super::description::read_description;
use super::super::receiver::RtpReceiver;
use super::{Asked, RtspStep, RtspTrack, RtspViewer, text};
use crate::hosts::Network;
use crate::options::RtspTransport;
use crate::url::Url;
use crate::{ClientError, RequestError};
use mio::net::UdpSocket;
use mio::{Interest, Token};
use rtsp_types::Response;
use rtsp_types::headers::CONTENT_BASE;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use units::Reason;

impl RtspViewer {
    pub(super) fn described(
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
    pub(super) fn open_sockets(
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
}

/// Attempts to find two neighbouring free ports.
const TRIES: usize = 64;
