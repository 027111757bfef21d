//! The RTP packets of one track (RFC 3550): LDUs, losses, jitter, and the report about them.
//!
//! ```text
//!   packet ─▶ transit ─▶ jitter (RFC 3550, 6.4.1)
//!          ─▶ order ─▶ lost, dropped
//!               └─▶ time stamp, marker ─▶ an LDU is complete ──▶ its times, its bytes
//! ```
//!
//! An LDU ends with a marked packet (or, if that is lost, with the next time stamp); of some sounds
//! each packet is one. [`Assembler`] knows which, and has the bytes. The packets of a transport
//! stream are read as one, and its PES packets are the LDUs. [`PacketOrder`] puts packets in the
//! order of sending.

use super::assembler::Assembler;
use super::description::DescribedTrack;
use super::order::PacketOrder;
use crate::boxes::ticks;
use crate::ldus::FoundLdu;
use crate::transport::TransportReader;
use std::time::Duration;
use units::Moment;

/// What has arrived of a stream; sums over the tracks of a viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reception {
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    pub(crate) jitter: Duration,
}

/// An LDU that has arrived as RTP.
#[derive(Debug)]
pub(crate) struct RtpLdu {
    /// The number of its elementary stream in a transport stream, pictures first; else zero.
    pub(crate) stream: usize,
    /// Media time that play-out goes by, counted from the first LDU: of presentation, and in a
    /// transport stream of decoding.
    pub(crate) due: Duration,
    /// Presentation time, counted from the start of what is played.
    pub(crate) time: Duration,
    /// Decode time on the same clock, where there is one.
    pub(crate) decode: Option<Duration>,
    pub(crate) sync: bool,
    /// Whether no packet of it was lost.
    pub(crate) is_whole: bool,
    pub(crate) at: Moment,
    /// The bytes, where they are wanted.
    pub(crate) bytes: Vec<u8>,
}

/// The packets of one track.
#[derive(Clone, Debug)]
pub(crate) struct RtpReceiver {
    clock_hz: u32,
    payload_type: u8,
    assembler: Assembler,
    /// What the packets are of, if that is a transport stream, and its first decode time.
    transport: Option<TransportReader>,
    first_decode: Option<Duration>,
    /// The source of the last packet.
    source: u32,
    order: PacketOrder,
    /// Packets expected and passed on in order at the last report.
    reported: (u64, u64),
    /// The mean deviation of the transit time, in ticks, and the last transit.
    jitter: f64,
    transit: Option<i64>,
    /// The time stamp that media time zero has, extended beyond 32 bits, and the last one.
    zero: Option<i64>,
    last_stamp: i64,
    /// The time stamp of the start of what is played: as the server names it, and extended.
    origin: Option<u32>,
    start: i64,
    /// Whether packets of an LDU have arrived whose last one has not.
    open: bool,
    /// The sender's last report: the middle of its time, and its arrival.
    sender: Option<(u32, Moment)>,
}

impl RtpReceiver {
    /// The receiver of a track, with or without the bytes of LDUs, and with or without a window in
    /// which packets are put in order.
    pub(crate) fn new(track: &DescribedTrack, with_bytes: bool, with_window: bool) -> Self {
        let is_transport = track.encoding.eq_ignore_ascii_case("MP2T");
        let DescribedTrack { encoding, parameters, is_video, .. } = track;
        Self {
            clock_hz: track.clock_hz,
            payload_type: track.payload_type,
            assembler: Assembler::new(encoding, parameters, *is_video, with_bytes),
            transport: is_transport.then(|| TransportReader::new(with_bytes)),
            first_decode: None,
            source: 0,
            order: PacketOrder::new(with_window),
            reported: (0, 0),
            jitter: 0.0,
            transit: None,
            zero: None,
            last_stamp: 0,
            origin: None,
            start: 0,
            open: false,
            sender: None,
        }
    }

    /// Media time counts from the next LDU on, and presentation time from the stamp `origin`. The
    /// server names it, and the number of the first packet, or it does not.
    pub(crate) fn restart(&mut self, origin: Option<u32>, number: Option<u16>) {
        (self.zero, self.open, self.transit) = (None, false, None);
        (self.origin, self.first_decode) = (origin, None);
        self.order.restart(number);
        self.assembler.clear();
        if let Some(transport) = &mut self.transport {
            transport.begin();
        }
    }

    /// Takes a packet, and passes on the LDUs that it completes. `None`: not an RTP packet of the
    /// track.
    pub(crate) fn packet(
        &mut self,
        bytes: &[u8],
        now: Moment,
        sink: &mut dyn FnMut(RtpLdu),
    ) -> Option<()> {
        let head = RtpHead::read(bytes).filter(|head| head.payload_type == self.payload_type)?;
        self.source = head.source;
        self.note_transit(self.extended(head.stamp), now);
        if let Some(packet) = self.order.push(head.number, bytes, now) {
            self.in_order(&packet.bytes, packet.is_behind_loss, now, sink);
        }
        self.tick(now, sink);
        Some(())
    }

    /// Passes on what has waited long enough for packets that did not arrive.
    pub(crate) fn tick(&mut self, now: Moment, sink: &mut dyn FnMut(RtpLdu)) {
        while let Some(packet) = self.order.pop(now) {
            self.in_order(&packet.bytes, packet.is_behind_loss, now, sink);
        }
    }

    /// When `tick` must be called next.
    pub(crate) fn wake_at(&self) -> Option<Moment> {
        self.order.wake_at()
    }

    // Takes the next packet of those that are in order.
    fn in_order(
        &mut self,
        bytes: &[u8],
        is_missing: bool,
        now: Moment,
        sink: &mut dyn FnMut(RtpLdu),
    ) {
        let Some(RtpHead { stamp: named, payload, is_marked, .. }) = RtpHead::read(bytes) else {
            return;
        };
        let stamp = self.extended(named);
        if self.zero.is_none() {
            self.zero = Some(stamp);
            let ahead = self.origin.map_or(0, |origin| origin.wrapping_sub(named).cast_signed());
            // A stamp that has nothing to do with the packets is not that of the start.
            let is_near = ahead.unsigned_abs() / self.clock_hz.max(1) < FARTHEST_START;
            self.start = stamp + if is_near { i64::from(ahead) } else { 0 };
        }
        if self.transport.is_some() {
            self.read_transport(payload, now, sink);
        } else if self.assembler.is_marked() {
            if is_missing {
                self.assembler.packet_missing();
            }
            // The marked packet of the LDU before was lost.
            if self.open && stamp != self.last_stamp {
                self.complete(self.last_stamp, now, sink);
                // Those at the beginning of this one may be missing as well.
                if is_missing {
                    self.assembler.packet_missing();
                }
            }
            self.assembler.push(payload);
            self.open = !is_marked;
            if !self.open {
                self.complete(stamp, now, sink);
            }
        } else {
            self.assembler.push(payload);
            self.complete(stamp, now, sink);
        }
        self.last_stamp = stamp;
    }

    /// The sender has sent everything.
    pub(crate) fn finish(&mut self, now: Moment, sink: &mut dyn FnMut(RtpLdu)) {
        self.order.give_up();
        self.tick(now, sink);
        if let Some(mut transport) = self.transport.take() {
            transport.finish(&mut |found| sink(self.of_transport(found)));
            self.transport = Some(transport);
        }
    }

    fn read_transport(&mut self, payload: &[u8], now: Moment, sink: &mut dyn FnMut(RtpLdu)) {
        if let Some(mut transport) = self.transport.take() {
            transport.push(payload, now, &mut |found| sink(self.of_transport(found)));
            self.transport = Some(transport);
        }
    }

    fn of_transport(&mut self, found: FoundLdu) -> RtpLdu {
        let FoundLdu { stream, place, bytes, at } = found;
        let first = *self.first_decode.get_or_insert(place.decode);
        let decode = place.decode.saturating_sub(first);
        RtpLdu {
            stream,
            due: decode,
            time: place.presentation().saturating_sub(first),
            decode: Some(decode),
            sync: place.sync,
            is_whole: true,
            at,
            bytes,
        }
    }

    // Passes on the LDU, or LDUs, of this time stamp.
    fn complete(&mut self, stamp: i64, now: Moment, sink: &mut dyn FnMut(RtpLdu)) {
        let (zero, start, clock) = (self.zero.unwrap_or(stamp), self.start, self.clock_hz);
        // Stamps before zero, in a coding with B-frames, are at zero.
        let time =
            |stamp: i64, zero| ticks(u64::try_from(stamp - zero).unwrap_or(0), u64::from(clock));
        self.assembler.take(&mut |ldu| {
            let stamp = stamp + i64::from(ldu.behind);
            sink(RtpLdu {
                stream: 0,
                due: time(stamp, zero),
                time: time(stamp, start),
                decode: None,
                sync: ldu.sync,
                is_whole: ldu.is_whole,
                at: now,
                bytes: ldu.bytes,
            });
        });
    }

    /// Takes an RTCP packet; returns whether the sender says goodbye.
    pub(crate) fn control(&mut self, mut bytes: &[u8], now: Moment) -> bool {
        let mut goodbye = false;
        while let [first, kind, high, low, rest @ ..] = bytes {
            let length = 4 * usize::from(u16::from_be_bytes([*high, *low]));
            let Some(content) = rest.get(..length).filter(|_| first >> 6 == 2) else { break };
            match (kind, content) {
                // A sender report: its source, and its time in 64 bits, of which the middle counts.
                (200, [_, _, _, _, _, _, a, b, c, d, ..]) => {
                    self.sender = Some((u32::from_be_bytes([*a, *b, *c, *d]), now));
                }
                (203, _) => goodbye = true,
                _ => {}
            }
            bytes = &rest[length..];
        }
        goodbye
    }

    /// A receiver report with the name of this receiver (RFC 3550, 6.4.2 and 6.5).
    pub(crate) fn report(&mut self, own: u32, now: Moment) -> Vec<u8> {
        let packets = self.order.passed();
        let expected = packets + self.order.lost();
        let (expected_before, packets_before) =
            std::mem::replace(&mut self.reported, (expected, packets));
        let due = expected.saturating_sub(expected_before);
        let missing = due.saturating_sub(packets - packets_before);
        let fraction = (missing * 256).checked_div(due).unwrap_or(0).min(255);
        let lost = u32::try_from(self.order.lost()).unwrap_or(u32::MAX).min(0x007f_ffff);
        let (last, since) = self.sender.map_or((0, 0), |(middle, at)| {
            // In units of 1/65,536 s.
            let since = now.since(at).as_nanos() * 65_536 / 1_000_000_000;
            (middle, u32::try_from(since).unwrap_or(u32::MAX))
        });
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts from float to integer saturate"
        )]
        let jitter = self.jitter as u32;
        #[expect(clippy::cast_possible_truncation, reason = "the report has the lower 32 bits")]
        let highest = self.order.highest() as u32;
        let fraction = u32::try_from(fraction).expect("at most 255");
        let words =
            [0x81c9_0007, own, self.source, fraction << 24 | lost, highest, jitter, last, since];
        // A source description with a name: SDES, one chunk, CNAME of 6 bytes, the end of the list.
        let name = [0x81ca_0004, own, 0x0106_7465, 0x6e75_746f, 0];
        words.into_iter().chain(name).flat_map(u32::to_be_bytes).collect()
    }

    pub(crate) fn reception(&self) -> Reception {
        let ticks = self.jitter / f64::from(self.clock_hz);
        Reception {
            packets: self.order.passed(),
            lost: self.order.lost(),
            jitter: Duration::try_from_secs_f64(ticks).unwrap_or_default(),
        }
    }

    fn extended(&self, stamp: u32) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the stamp in the packet is this part"
        )]
        let ahead = stamp.wrapping_sub(self.last_stamp as u32).cast_signed();
        self.last_stamp + i64::from(ahead)
    }

    fn note_transit(&mut self, stamp: i64, now: Moment) {
        let ticks = u128::from(now.0) * u128::from(self.clock_hz) / 1_000_000_000;
        let transit = i64::try_from(ticks).unwrap_or(i64::MAX).wrapping_sub(stamp);
        if let Some(before) = self.transit.replace(transit) {
            #[expect(clippy::cast_precision_loss, reason = "a mean of small numbers")]
            let apart = transit.wrapping_sub(before).unsigned_abs() as f64;
            self.jitter += (apart - self.jitter) / 16.0;
        }
    }
}

/// What is read of an RTP packet.
#[derive(Clone, Copy, Debug)]
struct RtpHead<'a> {
    payload_type: u8,
    is_marked: bool,
    number: u16,
    stamp: u32,
    source: u32,
    payload: &'a [u8],
}

impl<'a> RtpHead<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let &[first, second, high, low, t0, t1, t2, t3, s0, s1, s2, s3, ..] = bytes else {
            return None;
        };
        (first >> 6 == 2).then_some(())?;
        Some(Self {
            payload_type: second & 0x7f,
            is_marked: second & 0x80 != 0,
            number: u16::from_be_bytes([high, low]),
            stamp: u32::from_be_bytes([t0, t1, t2, t3]),
            source: u32::from_be_bytes([s0, s1, s2, s3]),
            payload: payload_of(bytes)?,
        })
    }
}

/// The payload of an RTP packet: behind its header, the sources and the extension, and without its
/// padding (RFC 3550, 5.1).
fn payload_of(bytes: &[u8]) -> Option<&[u8]> {
    let mut from = 12 + 4 * usize::from(bytes[0] & 0xf);
    if bytes[0] & 0x10 != 0 {
        let length = bytes.get(from + 2..from + 4)?;
        from += 4 + 4 * usize::from(u16::from_be_bytes([length[0], length[1]]));
    }
    let padding = if bytes[0] & 0x20 == 0 { 0 } else { usize::from(*bytes.last()?) };
    bytes.get(from..bytes.len().checked_sub(padding)?)
}

/// The start of what is played is no more seconds from the first packet.
const FARTHEST_START: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u16, stamp: u32, marked: bool) -> Vec<u8> {
        let kind = 96 | u8::from(marked) << 7;
        let (number, stamp) = (number.to_be_bytes(), stamp.to_be_bytes());
        [&[0x80, kind][..], &number, &stamp, &[0, 0, 0, 9], b"payload"].concat()
    }

    fn at(ms: u64) -> Moment {
        Moment::ZERO + Duration::from_millis(ms)
    }

    fn receiver(clock_hz: u32, encoding: &str) -> RtpReceiver {
        let track = DescribedTrack {
            control: String::new(),
            is_video: encoding != "L16",
            payload_type: 96,
            clock_hz,
            encoding: encoding.to_owned(),
            parameters: String::new(),
        };
        RtpReceiver::new(&track, true, false)
    }

    /// The media times, in ms, of the LDUs that packets of number, stamp and marker complete.
    fn times(receiver: &mut RtpReceiver, packets: &[(u16, u32, bool)]) -> Vec<u128> {
        described(receiver, packets, |ldu| ldu.due.as_millis())
    }

    /// A property of the LDUs that packets of number, stamp and marker complete.
    fn described<T>(
        receiver: &mut RtpReceiver,
        packets: &[(u16, u32, bool)],
        property: impl Fn(RtpLdu) -> T,
    ) -> Vec<T> {
        let mut found = Vec::new();
        for (number, stamp, marked) in packets {
            let bytes = packet(*number, *stamp, *marked);
            receiver.packet(&bytes, at(0), &mut |ldu| found.push(property(ldu))).unwrap();
        }
        found
    }

    #[test]
    fn an_ldu_of_video_ends_with_its_marker_or_with_the_next_one() {
        let mut receiver = receiver(90_000, "VP8");
        // Time stamps and sequence numbers wrap around.
        let from = u32::MAX - 3599;
        let packets = [
            (65_534, from, false),
            (65_535, from, true),
            (0, 0, true),
            // The marker of this one is lost.
            (1, 3600, false),
            (3, 7200, true),
            // Shown before the one that came earlier, as B-frames are.
            (4, 5400, true),
        ];
        assert_eq!(times(&mut receiver, &packets), [0, 40, 80, 120, 100]);
        let Reception { packets, lost, .. } = receiver.reception();
        assert_eq!((packets, lost), (6, 1));
        receiver.restart(None, None);
        assert_eq!(times(&mut receiver, &[(5, 900_000, true), (6, 903_600, true)]), [0, 40]);
    }

    #[test]
    fn each_packet_of_audio_is_an_ldu() {
        let mut receiver = receiver(48_000, "L16");
        let packets = [(0, 0, true), (1, 1024, true), (2, 2048, false)];
        assert_eq!(times(&mut receiver, &packets), [0, 21, 42]);
    }

    #[test]
    fn times_in_the_title_count_from_the_stamp_that_the_server_names() {
        let mut receiver = receiver(90_000, "VP8");
        let both = |ldu: RtpLdu| (ldu.due.as_millis(), ldu.time.as_millis());
        let packets = [(0, 3600, true), (1, 10_800, true), (2, 7200, true)];
        for (origin, wanted) in [
            (None, [(0, 0), (80, 80), (40, 40)]),
            // The first LDU is 40 ms behind the start; stamps wrap around.
            (Some(0), [(0, 40), (80, 120), (40, 80)]),
            (Some(u32::MAX - 8999), [(0, 140), (80, 220), (40, 180)]),
            // One that is far from all packets.
            (Some(1 << 30), [(0, 0), (80, 80), (40, 40)]),
        ] {
            receiver.restart(origin, None);
            assert_eq!(described(&mut receiver, &packets, both), wanted, "{origin:?}");
        }
    }

    #[test]
    fn an_ldu_of_which_packets_are_missing_is_not_whole() {
        let mut receiver = receiver(90_000, "VP8");
        let packets = [(0, 0, false), (1, 0, true), (2, 9, false), (4, 9, true), (5, 18, false)];
        let whole = |ldu: RtpLdu| (ldu.is_whole, String::from_utf8(ldu.bytes).unwrap());
        let two = "payloadpayload".to_owned();
        assert_eq!(described(&mut receiver, &packets, whole), [(true, two.clone()), (false, two)]);
        // With the marker the beginning of the next one may be lost.
        let packets = [(7, 27, true), (8, 36, true)];
        let found = described(&mut receiver, &packets, |ldu| ldu.is_whole);
        assert_eq!(found, [false, false, true]);
    }

    #[test]
    fn packets_out_of_order_and_twice_are_whole_ldus() {
        let mut receiver = receiver(90_000, "VP8");
        receiver.order = PacketOrder::new(true);
        let packets = [(0, 0, true), (2, 9, true), (1, 9, false), (1, 9, false), (4, 18, true)];
        let whole = |ldu: RtpLdu| (ldu.is_whole, ldu.bytes.len() / b"payload".len());
        assert_eq!(described(&mut receiver, &packets, whole), [(true, 1), (true, 2)]);
        let Reception { packets, lost, .. } = receiver.reception();
        assert_eq!((packets, lost), (3, 0), "number 3 is waited for");
        let mut late = Vec::new();
        let wake_at = receiver.wake_at().unwrap();
        receiver.tick(wake_at, &mut |ldu| late.push(whole(ldu)));
        assert_eq!((late, receiver.reception().lost), (vec![(false, 1)], 1));
        assert_eq!(receiver.wake_at(), None);
    }

    #[test]
    fn the_payload_is_behind_sources_and_extension_and_in_front_of_padding() {
        let mut receiver = receiver(90_000, "VP8");
        let head = |first: u8| [&[first, 0xe0, 0, 0][..], &[0; 8]].concat();
        for (first, behind, wanted) in [
            (0x80, &b"abc"[..], Some("abc")),
            (0x82, b"12345678abc", Some("abc")),
            (0x91, b"1234\xab\xac\0\x01extrabc\x01", Some("abc\x01")),
            (0xb0, b"\xab\xac\0\x01extrabc\0\x02", Some("abc")),
            (0x90, b"\xab\xac\0\x09", None),
            (0xa0, b"abc\x09", None),
        ] {
            let mut found = None;
            receiver.restart(None, None);
            let bytes = [&head(first), behind].concat();
            receiver.packet(&bytes, at(0), &mut |ldu| found = Some(ldu.bytes));
            assert_eq!(found.as_deref(), wanted.map(str::as_bytes), "{first:x}");
        }
    }

    #[test]
    fn jitter_is_the_smoothed_change_of_the_transit_time() {
        let mut receiver = receiver(90_000, "VP8");
        // Sent every 40 ms; each second one arrives 16 ms later.
        for (number, arrival) in [(0, 0), (1, 56), (2, 80), (3, 136)] {
            let bytes = packet(number, 3600 * u32::from(number), true);
            receiver.packet(&bytes, at(arrival), &mut |_| {}).unwrap();
        }
        // 16 ms (1 - (15/16)^3)
        let micros = receiver.reception().jitter.as_micros();
        assert!((2816..2818).contains(&micros), "{micros}");
    }

    #[test]
    fn the_report_says_what_is_lost_and_when_the_sender_reported() {
        let mut receiver = receiver(90_000, "VP8");
        for number in [10, 11, 14, 15] {
            receiver.packet(&packet(number, 0, true), at(0), &mut |_| {}).unwrap();
        }
        let sender = [&[0x80, 200, 0, 6, 0, 0, 0, 9][..], &[1, 2, 3, 4, 5, 6, 7, 8], &[0; 12]];
        assert!(!receiver.control(&sender.concat(), at(1000)));
        let report = receiver.report(7, at(1500));
        let word = |at: usize| u32::from_be_bytes(report[4 * at..4 * at + 4].try_into().unwrap());
        assert_eq!([word(0), word(1), word(2)], [0x81c9_0007, 7, 9]);
        // Two of six are lost: 85 of 256.
        assert_eq!([word(3), word(4)], [85 << 24 | 2, 65_536 + 15]);
        assert_eq!([word(6), word(7)], [0x0304_0506, 32_768]);
        assert_eq!((report.len(), report[9 * 4 + 4]), (52, 1), "a name follows");
        // Since then nothing was lost.
        receiver.packet(&packet(16, 0, true), at(0), &mut |_| {}).unwrap();
        assert_eq!(receiver.report(7, at(1500))[12..16], [0, 0, 0, 2]);
    }

    #[test]
    fn a_goodbye_is_found_behind_a_report_and_other_bytes_are_ignored() {
        let mut receiver = receiver(90_000, "VP8");
        let report = [&[0x80, 200, 0, 6][..], &[0; 24]].concat();
        assert!(receiver.control(&[&report[..], &[0x81, 203, 0, 1, 0, 0, 0, 9]].concat(), at(0)));
        for bytes in [&b""[..], b"\x81", &report[..20], b"GET / HTTP/1.1\r\n\r\n"] {
            assert!(!receiver.control(bytes, at(0)), "{bytes:?}");
        }
        for bytes in [&b""[..], b"\x80\x60\x00\x00", &[0; 40], &packet(0, 0, true)[..11]] {
            assert_eq!(receiver.packet(bytes, at(0), &mut |_| {}), None, "{bytes:?}");
        }
        let other = [&[0x80, 97][..], &packet(0, 0, true)[2..]].concat();
        assert_eq!(receiver.packet(&other, at(0), &mut |_| {}), None, "another format");
    }
}
