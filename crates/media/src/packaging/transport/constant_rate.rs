//! A transport stream at a constant rate, for receivers that take their clock from it: packets at
//! equal distances, null packets between them, and each clock time (PCR) that of its place.
//!
//! ```text
//!   units      |a|b|c|              |d|
//!   packets    |a|b|c|0|0|0|0|0|0|0|d|0|0|...      0: null packet (ISO/IEC 13818-1, 2.4.3.3)
//!   PCR         t                   t + the time of the ten packets between
//! ```
//! A unit that comes while another goes out waits, and its clock time is later by that. So that the
//! clock is sent often enough all the same, packets with nothing else are put between. What has to
//! arrive by the time at which it is decoded may wait for [`ConstantRate::LONGEST_WAIT`] at most.

use super::schedule::DELAY;
use super::writer::wrapped;
use super::{CLOCK, PACKET};
use crate::packaging::Packaging;
use std::collections::VecDeque;
use std::time::Duration;
use units::BitRate;

/// A transport stream that is sent at a constant rate.
#[derive(Debug)]
pub struct ConstantRate {
    pace: Pace,
    /// Packets so far.
    sent: u64,
    /// Whole packets that wait for their places.
    waiting: VecDeque<u8>,
    clock: Option<RunningClock>,
}

/// The clock of a stream that is being sent.
#[derive(Clone, Copy, Debug)]
struct RunningClock {
    line: ClockLine,
    /// The place at which it was sent last.
    sent: u64,
    /// The identifier of its packets, and their last continuity counter.
    pid: u16,
    counter: u8,
}

/// A clock time and its place, from which those of all other places follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockLine {
    place: u64,
    time: u64,
}

/// A constant rate of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: BitRate,
    clock_distance: u64,
}

impl Packaging {
    /// The lowest constant rate at which no packet of the transport stream that this track leads
    /// waits longer than [`ConstantRate::LONGEST_WAIT`], and the clock is sent at least every
    /// 40 ms; `None` if the track has no form in a transport stream.
    pub fn lowest_constant_rate(&self, track: u16) -> Option<BitRate> {
        Some(self.rendition(track)?.lowest_rate)
    }
}

/// The lowest constant rate of packets that become due at these times, in nanoseconds, so many at a
/// time, and of the clock times between.
pub(super) fn lowest_rate(bursts: &[(i64, u64)]) -> BitRate {
    let without = rate_without_clock(bursts).0;
    // The room for others grows with the rate: of every second packet or more.
    let room = |rate: u64| rate - rate / Pace::new(BitRate(rate)).clock_distance();
    let (mut too_low, mut enough) =
        (LOWEST_RATE - 1, LOWEST_RATE.saturating_add(without.saturating_mul(2)));
    while enough - too_low > 1 {
        let middle = too_low + (enough - too_low) / 2;
        *(if room(middle) < without { &mut too_low } else { &mut enough }) = middle;
    }
    // A round number is easier to ask for.
    BitRate(enough.checked_next_multiple_of(1000).unwrap_or(enough))
}

/// The lowest rate for these packets alone. From the mean rate on, each further one is that of the
/// interval in which packets waited longest. A burst never becomes due before the one in front of
/// it.
fn rate_without_clock(bursts: &[(i64, u64)]) -> BitRate {
    let most = i128::from(u64::try_from(ConstantRate::LONGEST_WAIT.as_nanos()).unwrap_or(0));
    let mut rate = BitRate(1);
    for _ in 0..MOST_ROUNDS {
        let (mut start, mut packets) = (0, 0);
        let (mut longest, mut needed) = (most, 0);
        let mut latest = i64::MIN;
        for &(at, count) in bursts {
            latest = latest.max(at);
            let at = i128::from(latest);
            if packets == 0 || at >= start + nanoseconds(packets, rate) {
                (start, packets) = (at, 0);
            }
            packets = packets.saturating_add(count);
            let wait = start + nanoseconds(packets, rate) - at;
            if wait > longest {
                let bits = i128::from(packets) * PACKET_BITS.cast_signed() * 1_000_000_000;
                let time = at - start + most;
                (longest, needed) = (wait, (bits + time - 1) / time);
            }
        }
        if needed == 0 {
            break;
        }
        rate = BitRate(u64::try_from(needed).unwrap_or(u64::MAX).max(rate.0.saturating_add(1)));
    }
    rate
}

impl Pace {
    /// Packets at this rate.
    pub(super) fn new(rate: BitRate) -> Self {
        let pace = Self { rate, clock_distance: 0 };
        let whole = pace.place_of(LONGEST_CLOCK_DISTANCE + 1) - 1;
        let distance = pace.place_of(CLOCK_DISTANCE).min(whole);
        // Of every packet a clock time would leave no room for others.
        Self { clock_distance: distance.max(2), rate }
    }

    /// The packets after which the clock is sent again.
    pub(super) fn clock_distance(self) -> u64 {
        self.clock_distance
    }

    /// The first place that is not before this time, in nanoseconds.
    pub(super) fn place_of(self, time: i128) -> u64 {
        let bits = time.max(0) * i128::from(self.rate.0.max(1));
        let packet = PACKET_BITS.cast_signed() * 1_000_000_000;
        u64::try_from((bits + packet - 1) / packet).unwrap_or(u64::MAX)
    }
}

impl ClockLine {
    /// The line through the clock time of a unit that is sent at `at` on the clock of the title.
    pub(super) fn of_unit(place: u64, at: i64) -> Self {
        Self { place, time: wrapped(at - DELAY) * 300 }
    }

    /// Writes the time of its place into a packet that has a clock time.
    pub(super) fn set_clock(self, packet: &mut [u8], place: u64, pace: Pace) {
        if !has_clock(packet) {
            return;
        }
        let since = u128::from(place - self.place) * PACKET_BITS * TICKS;
        let rate = u128::from(pace.rate.0.max(1));
        let ticks = (u128::from(self.time) + (since + rate / 2) / rate) % WRAP;
        let (base, extension) = (ticks / 300, ticks % 300);
        // 33 bits, six reserved ones, nine bits.
        let field = (base << 15 | 0x3f << 9 | extension).to_be_bytes();
        packet[6..12].copy_from_slice(&field[field.len() - 6..]);
    }
}

impl ConstantRate {
    /// The longest time for which a packet may wait: less than what everything is sent before it is
    /// decoded.
    pub const LONGEST_WAIT: Duration = Duration::from_millis(400);

    /// A stream of this rate.
    pub fn new(rate: BitRate) -> Self {
        Self { pace: Pace::new(rate), sent: 0, waiting: VecDeque::new(), clock: None }
    }

    /// Adds packets, which go out as soon as there is a place for them.
    pub fn push(&mut self, packets: &[u8]) {
        debug_assert!(packets.len().is_multiple_of(PACKET), "whole packets");
        self.waiting.extend(packets);
    }

    /// When the next packet is sent, counted from the first one.
    pub fn due(&self) -> Duration {
        let time = nanoseconds(self.sent, self.pace.rate);
        Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Whether the next packet is a null packet.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends the next packet.
    pub fn write(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some(clock) = self.clock.filter(|clock| self.is_clock_due(clock)) {
            out.extend_from_slice(&clock_packet(clock.pid, clock.counter));
        } else if self.waiting.is_empty() {
            out.extend_from_slice(&null_packet());
        } else {
            out.extend(self.waiting.drain(..PACKET));
        }
        self.set_clock(&mut out[start..]);
        self.sent += 1;
    }

    /// Whether the clock has to be sent again.
    fn is_clock_due(&self, clock: &RunningClock) -> bool {
        self.sent - clock.sent >= self.pace.clock_distance
    }

    /// Writes the time of its place into a packet with a clock time, and notes the counter of its
    /// stream.
    fn set_clock(&mut self, packet: &mut [u8]) {
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        if let Some(clock) = self.clock.as_mut().filter(|clock| clock.pid == pid) {
            clock.counter = packet[3] & 0xf;
        }
        if !has_clock(packet) {
            return;
        }
        let (sent, counter, is_discontinuous) = (self.sent, packet[3] & 0xf, packet[5] & 0x80 != 0);
        let line = match &self.clock {
            Some(clock) if !is_discontinuous => clock.line,
            _ => ClockLine { place: sent, time: clock_of(packet) },
        };
        self.clock = Some(RunningClock { line, sent, pid, counter });
        line.set_clock(packet, sent, self.pace);
    }
}

/// Whether a packet has a clock time.
fn has_clock(packet: &[u8]) -> bool {
    packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0
}

/// A packet with nothing.
pub(super) fn null_packet() -> [u8; PACKET] {
    let mut packet = [0xff; PACKET];
    packet[..NULL_HEAD.len()].copy_from_slice(&NULL_HEAD);
    packet
}

/// A packet with a clock time that is to be written, and nothing else: the counter stays.
pub(super) fn clock_packet(pid: u16, counter: u8) -> [u8; PACKET] {
    let mut packet = [0xff; PACKET];
    let [high, low] = pid.to_be_bytes();
    packet[..6].copy_from_slice(&[0x47, high, low, 0x20 | counter, 183, 0x10]);
    packet
}

/// The time of this many packets.
fn nanoseconds(packets: u64, rate: BitRate) -> i128 {
    let bits = i128::from(packets) * PACKET_BITS.cast_signed();
    bits * 1_000_000_000 / i128::from(rate.0.max(1))
}

/// The clock time in a packet that has one, in ticks of 27 MHz.
fn clock_of(packet: &[u8]) -> u64 {
    let field = packet[6..12].iter().fold(0u64, |field, byte| field << 8 | u64::from(*byte));
    (field >> 15) * 300 + (field & 0x1ff)
}

/// The head of a packet of the identifier 0x1fff.
const NULL_HEAD: [u8; 4] = [0x47, 0x1f, 0xff, 0x10];
const PACKET_BITS: u128 = PACKET as u128 * 8;
/// Nanoseconds after which the clock is sent again where packets are short enough, and at most:
/// receivers of DVB want it each 40 ms (ETSI TR 101 290, 5.2.2).
const CLOCK_DISTANCE: i128 = 35_000_000;
const LONGEST_CLOCK_DISTANCE: i128 = 40_000_000;
/// Bits per second of two packets in the longest distance: a clock time, and room for another one.
/// Below 37.6 kb/s a packet alone takes longer.
const LOWEST_RATE: u64 = PACKET as u64 * 8 * 2 * 1_000_000_000 / 40_000_000;
/// Rounds of the search for the lowest rate, which ends after a few.
const MOST_ROUNDS: u32 = 64;
/// Ticks of a clock time in a second.
const TICKS: u128 = CLOCK as u128 * 300;
/// Clock times begin again after 33 bits of 90 kHz.
const WRAP: u128 = 300 << 33;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with this clock time, of this number.
    fn packet(clock: Option<(u64, bool)>, number: u8) -> Vec<u8> {
        let mut packet = vec![0x47, 1, 0, if clock.is_some() { 0x30 } else { 0x10 }];
        if let Some((ticks, is_discontinuous)) = clock {
            packet.extend([7, if is_discontinuous { 0x90 } else { 0x10 }]);
            let field: u64 = ((ticks / 300) << 15) | (0x3f << 9) | (ticks % 300);
            packet.extend_from_slice(&field.to_be_bytes()[2..]);
        }
        packet.resize(PACKET, number);
        packet
    }

    #[test]
    fn the_lowest_rate_is_that_of_bursts_in_order_whatever_their_times() {
        let in_order = lowest_rate(&[(0, 10), (1_000_000_000, 900), (1_000_000_000, 40)]);
        assert_eq!(lowest_rate(&[(0, 10), (1_000_000_000, 900), (-9_000_000_000, 40)]), in_order);
        let most = [(i64::MIN, u64::MAX), (i64::MAX, u64::MAX), (0, u64::MAX)];
        assert!(lowest_rate(&most).0 > in_order.0);
    }

    #[test]
    fn clock_times_are_those_of_their_places_and_nothing_is_lost() {
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            let most = if seed % 2 == 0 { 200_000 } else { 30_000_000 };
            let rate = random.u64(LOWEST_RATE..most);
            let mut stream = ConstantRate::new(BitRate(rate));
            let (mut made, mut pushed, mut places) = (Vec::new(), Vec::new(), Vec::new());
            // Around the place at which clock times begin again.
            let start = (300 << 33) - 1_000_000;
            for number in 0..200u8 {
                for _ in 0..random.usize(0..4) {
                    let is_clock = pushed.is_empty() || random.u8(..3) == 0;
                    let next = packet(is_clock.then_some((start, false)), number);
                    stream.push(&next);
                    pushed.push(next);
                }
                stream.write(&mut made);
            }
            while !stream.is_idle() {
                stream.write(&mut made);
            }
            let sent = made.chunks(PACKET).enumerate();
            // Without null packets, and without those of a clock alone.
            let is_kept = |packet: &[u8]| packet[..4] != NULL_HEAD && packet[3] & 0x10 != 0;
            let clocks = made.chunks(PACKET).enumerate().filter(|(_, it)| it[3] & 0x20 != 0);
            places.extend(clocks.map(|(place, packet)| (place, clock_of(packet))));
            let mut kept = sent.filter(|(_, packet)| is_kept(packet));
            for wanted in &pushed {
                let (_, got) = kept.next().expect("nothing is lost");
                if wanted[3] & 0x20 == 0 {
                    assert_eq!(got, wanted);
                    continue;
                }
                assert_eq!((&got[..6], &got[12..]), (&wanted[..6], &wanted[12..]));
            }
            assert!(kept.next().is_none());
            for pair in places.windows(2) {
                let [(a, first), (b, second)] = [pair[0], pair[1]];
                let ticks = (second + (300 << 33) - first) % (300 << 33);
                let exact = (b - a) as f64 * 1504.0 * 27e6 / rate as f64;
                assert!((ticks as f64 - exact).abs() <= 1.0, "seed {seed}: {ticks}, not {exact}");
                assert!(exact <= 0.04 * 27e6, "seed {seed}: {exact} ticks without a clock");
            }
        }
    }

    /// The longest time for which packets wait at a rate that they have for themselves.
    fn longest_wait(bursts: &[(i64, u64)], rate: BitRate) -> i128 {
        let (mut free, mut longest) = (i128::MIN, 0);
        for &(at, packets) in bursts {
            let at = i128::from(at);
            free = free.max(at) + nanoseconds(packets, rate);
            longest = longest.max(free - at);
        }
        longest
    }

    #[test]
    fn no_lower_rate_than_the_lowest_holds_the_wait() {
        let most = i128::try_from(ConstantRate::LONGEST_WAIT.as_nanos()).unwrap();
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (gap, burst) = (random.i64(1..200_000_000), random.u64(1..500));
            let mut at = 0;
            let mut next = || {
                at += random.i64(0..gap);
                (at, random.u64(1..=burst))
            };
            let bursts: Vec<(i64, u64)> = (0..100).map(|_| next()).collect();
            let lowest = rate_without_clock(&bursts).0;
            // A round trip of nanoseconds may lose some of them.
            assert!(longest_wait(&bursts, BitRate(lowest)) <= most + 100, "seed {seed}");
            let lower = BitRate(lowest.saturating_sub(1).max(1));
            assert!(longest_wait(&bursts, lower) > most - 100, "seed {seed}");
            // Clock times take their part of any rate: the lowest with room is found one by one.
            let is_enough = |rate: u64| {
                let distance = Pace::new(BitRate(rate)).clock_distance();
                let clock = nanoseconds(distance, BitRate(rate));
                clock <= 40_000_000 && rate - rate / distance >= lowest
            };
            let with_clock = (lowest / 1000..).find(|rate| is_enough(rate * 1000));
            assert_eq!(Some(lowest_rate(&bursts).0), with_clock.map(|it| it * 1000), "seed {seed}");
        }
    }

    #[test]
    fn a_discontinuity_sets_the_clock() {
        let mut stream = ConstantRate::new(BitRate(1_504_000));
        let mut made = Vec::new();
        for clock in [(27_000_000, false), (0, false), (500, true), (0, false)] {
            stream.push(&packet(Some(clock), 1));
            stream.write(&mut made);
        }
        let clocks: Vec<u64> = made.chunks(PACKET).map(clock_of).collect();
        // A packet takes a millisecond.
        assert_eq!(clocks, [27_000_000, 27_027_000, 500, 27_500]);
        assert_eq!(stream.due(), Duration::from_millis(4));
    }
}
