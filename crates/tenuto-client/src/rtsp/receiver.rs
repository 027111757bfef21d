//! The RTP packets of one track (RFC 3550): LDUs, losses, jitter, and the report about them.
//!
//! ```text
//!   packet ─▶ sequence number ─▶ lost, out of order
//!          ─▶ time stamp, marker ─▶ an LDU is complete ──▶ its media time
//!          ─▶ transit ─▶ jitter (RFC 3550, 6.4.1)
//! ```
//!
//! An LDU of video ends with a marked packet (or, if that is lost, with the next time stamp); each
//! packet of audio is one. Nothing of the payload is looked at.

use std::time::Duration;
use units::Moment;

/// What has arrived of a stream; sums over the tracks of a viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reception {
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    pub(crate) jitter: Duration,
}

/// The packets of one track.
#[derive(Clone, Debug)]
pub(crate) struct RtpReceiver {
    clock_hz: u32,
    is_video: bool,
    /// The source of the last packet.
    source: u32,
    /// The first sequence number and the highest one, with the rounds of 65,536 before it.
    first: Option<u64>,
    highest: u64,
    packets: u64,
    /// Packets expected and received at the last report.
    reported: (u64, u64),
    /// The mean deviation of the transit time, in ticks, and the last transit.
    jitter: f64,
    transit: Option<i64>,
    /// The time stamp that media time zero has, extended beyond 32 bits, and the last one.
    zero: Option<i64>,
    last_stamp: i64,
    /// Whether packets of an LDU have arrived whose last one has not.
    open: bool,
    /// The sender's last report: the middle of its time, and its arrival.
    sender: Option<(u32, Moment)>,
}

impl RtpReceiver {
    pub(crate) fn new(clock_hz: u32, is_video: bool) -> Self {
        Self {
            clock_hz,
            is_video,
            source: 0,
            first: None,
            highest: 0,
            packets: 0,
            reported: (0, 0),
            jitter: 0.0,
            transit: None,
            zero: None,
            last_stamp: 0,
            open: false,
            sender: None,
        }
    }

    /// Media time counts from the next LDU on.
    pub(crate) fn restart(&mut self) {
        (self.zero, self.open, self.transit) = (None, false, None);
    }

    /// Takes a packet of `payload_type`; returns the media times of the LDUs that it completes:
    /// none, one, or (if a marker was lost) two. `None`: not an RTP packet of the track.
    pub(crate) fn packet(
        &mut self,
        bytes: &[u8],
        payload_type: u8,
        now: Moment,
    ) -> Option<[Option<Duration>; 2]> {
        let &[first, second, high, low, t0, t1, t2, t3, s0, s1, s2, s3, ..] = bytes else {
            return None;
        };
        if first >> 6 != 2 || second & 0x7f != payload_type {
            return None;
        }
        self.source = u32::from_be_bytes([s0, s1, s2, s3]);
        self.count(u16::from_be_bytes([high, low]));
        let stamp = self.extended(u32::from_be_bytes([t0, t1, t2, t3]));
        self.note_transit(stamp, now);
        let zero = *self.zero.get_or_insert(stamp);
        let mut complete = [None; 2];
        if self.is_video {
            // The marked packet of the LDU before was lost.
            if self.open && stamp != self.last_stamp {
                complete[0] = Some(self.time(self.last_stamp, zero));
            }
            let marked = second & 0x80 != 0;
            complete[1] = marked.then(|| self.time(stamp, zero));
            self.open = !marked;
        } else {
            complete[1] = Some(self.time(stamp, zero));
        }
        self.last_stamp = stamp;
        Some(complete)
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
        let expected = self.expected();
        let (expected_before, packets_before) =
            std::mem::replace(&mut self.reported, (expected, self.packets));
        let due = expected.saturating_sub(expected_before);
        let missing = due.saturating_sub(self.packets - packets_before);
        let fraction = (missing * 256).checked_div(due).unwrap_or(0).min(255);
        let lost = u32::try_from(self.lost()).unwrap_or(u32::MAX).min(0x007f_ffff);
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
        let highest = self.highest as u32;
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
            packets: self.packets,
            lost: self.lost(),
            jitter: Duration::try_from_secs_f64(ticks).unwrap_or_default(),
        }
    }

    fn expected(&self) -> u64 {
        self.first.map_or(0, |first| self.highest - first + 1)
    }

    fn lost(&self) -> u64 {
        self.expected().saturating_sub(self.packets)
    }

    fn count(&mut self, number: u16) {
        self.packets += 1;
        if self.first.is_none() {
            // A packet that comes before the first must not wrap around.
            self.highest = u64::from(number) + 65_536;
            self.first = Some(self.highest);
            return;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the number in the packet is this part"
        )]
        let ahead = number.wrapping_sub(self.highest as u16).cast_signed();
        if ahead > 0 {
            self.highest += u64::from(ahead.unsigned_abs());
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

    // Media time of a stamp; those before zero, in a coding with B-frames, are at zero.
    fn time(&self, stamp: i64, zero: i64) -> Duration {
        let ticks = u64::try_from(stamp - zero).unwrap_or(0);
        crate::boxes::ticks(ticks, u64::from(self.clock_hz))
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

    /// The media times, in ms, of the LDUs that packets of number, stamp and marker complete.
    fn times(receiver: &mut RtpReceiver, packets: &[(u16, u32, bool)]) -> Vec<u128> {
        let complete = packets.iter().flat_map(|(number, stamp, marked)| {
            receiver.packet(&packet(*number, *stamp, *marked), 96, at(0)).unwrap()
        });
        complete.flatten().map(|time| time.as_millis()).collect()
    }

    #[test]
    fn an_ldu_of_video_ends_with_its_marker_or_with_the_next_one() {
        let mut receiver = RtpReceiver::new(90_000, true);
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
        receiver.restart();
        assert_eq!(times(&mut receiver, &[(5, 900_000, true), (6, 903_600, true)]), [0, 40]);
    }

    #[test]
    fn each_packet_of_audio_is_an_ldu() {
        let mut receiver = RtpReceiver::new(48_000, false);
        let packets = [(0, 0, true), (1, 1024, true), (2, 2048, false)];
        assert_eq!(times(&mut receiver, &packets), [0, 21, 42]);
    }

    #[test]
    fn jitter_is_the_smoothed_change_of_the_transit_time() {
        let mut receiver = RtpReceiver::new(90_000, true);
        // Sent every 40 ms; each second one arrives 16 ms later.
        for (number, arrival) in [(0, 0), (1, 56), (2, 80), (3, 136)] {
            let bytes = packet(number, 3600 * u32::from(number), true);
            receiver.packet(&bytes, 96, at(arrival)).unwrap();
        }
        // 16 ms (1 - (15/16)^3)
        let micros = receiver.reception().jitter.as_micros();
        assert!((2816..2818).contains(&micros), "{micros}");
    }

    #[test]
    fn the_report_says_what_is_lost_and_when_the_sender_reported() {
        let mut receiver = RtpReceiver::new(90_000, true);
        for number in [10, 11, 14, 15] {
            receiver.packet(&packet(number, 0, true), 96, at(0)).unwrap();
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
        receiver.packet(&packet(16, 0, true), 96, at(0)).unwrap();
        assert_eq!(receiver.report(7, at(1500))[12..16], [0, 0, 0, 2]);
    }

    #[test]
    fn a_goodbye_is_found_behind_a_report_and_other_bytes_are_ignored() {
        let mut receiver = RtpReceiver::new(90_000, true);
        let report = [&[0x80, 200, 0, 6][..], &[0; 24]].concat();
        assert!(receiver.control(&[&report[..], &[0x81, 203, 0, 1, 0, 0, 0, 9]].concat(), at(0)));
        for bytes in [&b""[..], b"\x81", &report[..20], b"GET / HTTP/1.1\r\n\r\n"] {
            assert!(!receiver.control(bytes, at(0)), "{bytes:?}");
        }
        for bytes in [&b""[..], b"\x80\x60\x00\x00", &[0; 40], &packet(0, 0, true)[..11]] {
            assert_eq!(receiver.packet(bytes, 96, at(0)), None, "{bytes:?}");
        }
        assert_eq!(receiver.packet(&packet(0, 0, true), 97, at(0)), None, "another format");
    }
}
