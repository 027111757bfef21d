//! The operation that sends a title to an address, as a channel.

use super::bodies::SentTitle;
use super::call::{ApiCall, bad_body};
use super::problem::Problem;
use super::{AdminApi, json};
use crate::http::{Response, not_admitted, open_failed, request_failed};
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::messages::{AdmissionError, ChannelError, NewChannel, WorkerMessage};
use crate::wire;
use crossbeam_channel::bounded;
use media::ConstantRate;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use units::BitRate;

/// Where datagrams go, and whether in RTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Destination {
    address: SocketAddr,
    in_rtp: bool,
}

impl AdminApi {
    /// Begins a channel, and answers with its session when it has been admitted.
    pub(super) fn send(&self, call: &ApiCall) -> Result<Response, Problem> {
        let SentTitle { title: name, to, ttl, rate, repeats } = call.json()?;
        let Destination { address, in_rtp } = destination(&to)?;
        let rate = rate.map(BitRate);
        if let Some(rate) = rate.filter(|rate| !RATES.contains(&rate.0)) {
            let (least, most) = (BitRate(RATES.start), BitRate(RATES.end));
            return Err(bad_body(&format!("rate is {rate}; it is from {least} to {most}")));
        }
        let socket = socket(address, ttl)?;
        let title = self.title_to_send(&name)?;
        let tracks = title.whole.offers(DeliveryFormat::TransportStream).first().cloned();
        let tracks = tracks.unwrap_or_default();
        if let Some(rate) = rate {
            check_rate(&title, &tracks, rate)?;
        }
        let (answer, verdict) = bounded(1);
        let channel = NewChannel {
            title,
            name: name.clone(),
            tracks,
            socket,
            to: address,
            in_rtp,
            rate,
            repeats,
            answer,
        };
        let worker = self.workers.last().expect("the thread of channels");
        worker.send(WorkerMessage::Begin(Box::new(channel)));
        // A thread that has ended sends nothing.
        let verdict = verdict.recv().map_err(|_| Problem::busy("this server is stopping"))?;
        let session = verdict.map_err(|why| match why {
            ChannelError::TooMany => Problem::busy("as many titles are sent as can be at a time"),
            ChannelError::NotAdmitted(AdmissionError::Refused(refusal)) => {
                Problem::refused(&refusal)
            }
            ChannelError::NotAdmitted(why) => Problem::of_player(&not_admitted(&name, why)),
            ChannelError::NotServed(why) => Problem::of_player(&request_failed(&why)),
        })?;
        let mut response = json(201, &wire::StartedSession { session });
        response.head.add("Location", format_args!("/api/v1/sessions/{session}"));
        Ok(response)
    }

    /// The open title of this name, with its transport streams planned.
    fn title_to_send(&self, name: &str) -> Result<Arc<OpenTitle>, Problem> {
        if self.shared.content.is_encrypted(name) {
            let message = "this title is encrypted, which a transport stream over UDP cannot be";
            let hint = "take it out of the key file, or play it with HLS or DASH";
            return Err(Problem::new(403, "encrypted", message, hint));
        }
        let title = self.shared.content.open(name, &self.core);
        let title = title.map_err(|why| Problem::of_player(&open_failed(name, &why)))?;
        let packaging = &title.whole.packaging;
        packaging.transport_offers().map_err(|why| {
            let hint = "encode it again, or play it with HLS or DASH in fragmented MP4";
            Problem::new(422, "no-transport-stream", why.to_string(), hint)
        })?;
        packaging.plan_transport();
        Ok(title)
    }
}

/// Refuses a rate at which packets would come later than they are decoded.
fn check_rate(title: &OpenTitle, tracks: &[u16], rate: BitRate) -> Result<(), Problem> {
    let packaging = &title.whole.packaging;
    let lowest = tracks.first().and_then(|lead| packaging.lowest_constant_rate(*lead));
    let Some(lowest) = lowest.filter(|lowest| rate < *lowest) else { return Ok(()) };
    let most = ConstantRate::LONGEST_WAIT.as_millis();
    let message = format!(
        "at {rate} packets of this title would wait for more than {most} ms, or its clock for 40 ms"
    );
    let hint = format!("send it at {} bits per second or more, or without a rate", lowest.0);
    Err(Problem::new(422, "rate-too-low", message, &hint))
}

/// The address that `udp://ADDRESS:PORT` or `rtp://ADDRESS:PORT` names.
fn destination(text: &str) -> Result<Destination, Problem> {
    let form = || {
        let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
        bad_body(&format!("to is '{shown}'; it is udp://ADDRESS:PORT or rtp://ADDRESS:PORT"))
    };
    let (scheme, address) = text.split_once("://").ok_or_else(form)?;
    let in_rtp = match scheme {
        "udp" => false,
        "rtp" => true,
        _ => return Err(form()),
    };
    let address: SocketAddr = address.parse().map_err(|_| form())?;
    let ip = address.ip();
    if address.port() == 0 || ip.is_unspecified() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return Err(bad_body("to names no receiver and no group"));
    }
    Ok(Destination { address, in_rtp })
}

/// A socket that sends to this address.
fn socket(to: SocketAddr, ttl: Option<u8>) -> Result<UdpSocket, Problem> {
    let is_group = to.ip().is_multicast();
    if ttl.is_some_and(|ttl| ttl == 0 || !is_group || to.is_ipv6()) {
        return Err(bad_body("ttl is from 1 to 255, for a multicast group of IPv4"));
    }
    let open = || -> io::Result<UdpSocket> {
        let local: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((local, 0))?;
        if is_group && to.is_ipv4() {
            socket.set_multicast_ttl_v4(u32::from(ttl.unwrap_or(1)))?;
        }
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    open().map_err(|error| {
        let message = format!("nothing can be sent to {to}: {error}");
        Problem::new(
            422,
            "unreachable",
            message,
            "name an address that this machine has a route to",
        )
    })
}

/// Rates of streams in bits per second: from one sound to what a tick has room for.
const RATES: std::ops::Range<u64> = 64_000..150_000_001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_addresses_of_receivers_and_groups() {
        for (text, wanted) in [
            ("udp://239.1.1.1:5000", Some(("239.1.1.1:5000", false))),
            ("rtp://192.0.2.7:5004", Some(("192.0.2.7:5004", true))),
            ("udp://[ff15::1]:5000", Some(("[ff15::1]:5000", false))),
            ("udp://239.1.1.1", None),
            ("udp://239.1.1.1:0", None),
            ("udp://239.1.1.1:65536", None),
            ("udp://0.0.0.0:5000", None),
            ("udp://[::]:5000", None),
            ("udp://255.255.255.255:5000", None),
            ("udp://example.com:5000", None),
            ("udp://239.1.1.1:5000/x", None),
            ("udp://@239.1.1.1:5000", None),
            ("tcp://239.1.1.1:5000", None),
            ("239.1.1.1:5000", None),
            ("", None),
        ] {
            let found = destination(text).ok();
            let wanted = wanted
                .map(|(address, in_rtp)| Destination { address: address.parse().unwrap(), in_rtp });
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn a_ttl_is_for_groups_of_ipv4() {
        let is_valid = |to: &str, ttl| socket(to.parse().unwrap(), ttl).is_ok();
        assert!(is_valid("127.0.0.1:5000", None));
        for (to, ttl) in
            [("127.0.0.1:5000", Some(1)), ("239.1.1.1:5000", Some(0)), ("[ff15::1]:5000", Some(2))]
        {
            assert!(!is_valid(to, ttl), "{to} {ttl:?}");
        }
    }
}
