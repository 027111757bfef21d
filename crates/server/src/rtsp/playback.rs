//! One playback: which LDU is sent when, which bytes are requested for it, and its time stamps.
//!
//! ```text
//!   title time   base ............. LDU decoded at t ......... stop
//!   clock        origin             origin + (t - base) / speed
//!                └ end of the start-up: by then the engine has in memory what is due first
//! ```
//!
//! Sans-IO: methods take deliveries and the time, and return LDUs. Memory is bounded by what the
//! engine delivers ahead (two pieces for each request) and one LDU that lies in several pieces.
//! A sender that is late by more than a second, because its player takes nothing or the disk was
//! late, goes on from there at the normal pace, as after a pause.

use super::session::TrackSetup;
use crate::engine::{MediaRequest, Part, ReadId, RequestId};
use crate::sessions::PlayerSession;
use device::SharedBuffer;
use media::{Packaging, PushedLdu};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{MediaTime, nanos};

/// What is to be played.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The position at which it starts: of pictures the key frame at or before the requested one.
    pub(super) first: MediaTime,
    pub(super) stop: Option<Duration>,
    /// Seconds of media played in a second, in thousandths.
    pub(super) speed_milli: u32,
    /// Indexes of the tracks among those that were set up.
    pub(super) setups: Vec<usize>,
}

/// A playback of one or more tracks.
#[derive(Debug)]
pub(super) struct Playback {
    pub(super) session: Arc<PlayerSession>,
    pub(super) plan: Plan,
    cursors: Vec<Cursor>,
    /// The earliest decode time: reordered pictures are decoded before `plan.first` is shown.
    base: MediaTime,
    origin: Instant,
    /// When the next sender reports are due.
    pub(super) report_at: Instant,
    /// The time since 1970 that reports give for `base`.
    unix_origin: Duration,
}

/// The position in one track.
#[derive(Debug)]
struct Cursor {
    setup: usize,
    track: u16,
    /// The next LDU, `None` at the end.
    next: Option<PushedLdu>,
    number: usize,
    /// One past the last LDU to be sent.
    count: usize,
    /// LDUs shown before this time are not sent: they cannot be decoded from the entry on.
    shown_from: MediaTime,
    /// The bytes that have not been requested.
    rest: Range<u64>,
    request: Option<RequestId>,
    coming: u64,
    accepted: bool,
    pieces: VecDeque<DeliveredPiece>,
    /// The beginning of an LDU that lies in several pieces.
    partial: Vec<u8>,
}

/// Delivered bytes.
#[derive(Debug)]
struct DeliveredPiece {
    request: RequestId,
    read: ReadId,
    buffer: SharedBuffer,
    range: Range<usize>,
}

/// A buffer that the engine may have back.
pub(super) type Taken = (RequestId, ReadId);

/// What a playback can do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The LDU of this cursor is due.
    Send(usize),
    /// Nothing is due before this time; `None`: the bytes of what is due are awaited.
    Wait(Option<Instant>),
    /// All tracks are at their ends.
    Ended,
}

impl Plan {
    /// A plan that starts where decoding can start, at or before `start`.
    pub(super) fn new(
        packaging: &Packaging,
        tracks: &[TrackSetup],
        start: Duration,
        stop: Option<Duration>,
        speed_milli: u32,
    ) -> Self {
        // At another speed, sound has no time stamps that it could be played by.
        let is_played = |track: &TrackSetup| speed_milli == 1000 || track.is_video;
        let setups: Vec<usize> =
            (0..tracks.len()).filter(|setup| is_played(&tracks[*setup])).collect();
        let start = MediaTime(i64::try_from(start.as_nanos()).unwrap_or(i64::MAX));
        let video = setups.iter().map(|setup| &tracks[*setup]).find(|track| track.is_video);
        let entry = video
            .and_then(|video| packaging.pushed(video.track, packaging.entry(video.track, start)?));
        let first = entry.map_or(start, |entry| entry.shown.max(MediaTime::ZERO));
        Self { first, stop, speed_milli, setups }
    }
}

impl Playback {
    /// The playback of an admitted session. Its first sender reports are due at once.
    pub(super) fn new(
        session: Arc<PlayerSession>,
        plan: Plan,
        tracks: &[TrackSetup],
        origin: Instant,
        unix_origin: Duration,
    ) -> Self {
        let packaging = &session.presentation.packaging;
        let cursors = plan
            .setups
            .iter()
            .map(|setup| Cursor::new(packaging, *setup, tracks[*setup].track, &plan));
        let cursors: Vec<Cursor> = cursors.collect();
        let decoded = cursors.iter().filter_map(|cursor| Some(cursor.next.as_ref()?.decoded));
        let base = decoded.min().map_or(plan.first, |earliest| earliest.min(plan.first));
        Self { session, plan, cursors, base, origin, report_at: origin, unix_origin }
    }

    /// The requests for bytes that are due; `name` makes their numbers.
    pub(super) fn requests(&mut self, mut name: impl FnMut() -> RequestId) -> Vec<MediaRequest> {
        let session = self.session.id;
        let cursors = self.cursors.iter_mut().filter(|c| c.coming == 0 && !c.rest.is_empty());
        let made = cursors.map(|cursor| {
            let end = cursor.rest.end.min(cursor.rest.start + WINDOW_BYTES);
            let bytes = cursor.rest.start..end;
            let request = name();
            (cursor.rest.start, cursor.coming) = (end, bytes.end - bytes.start);
            cursor.request = Some(request);
            MediaRequest { request, session, parts: vec![Part { track: cursor.track, bytes }] }
        });
        made.collect()
    }

    /// The engine has accepted a request.
    pub(super) fn accepted(&mut self, request: RequestId) {
        if let Some(cursor) = self.cursors.iter_mut().find(|c| c.request == Some(request)) {
            cursor.accepted = true;
        }
    }

    /// Whether the first request of each track was accepted.
    pub(super) fn is_accepted(&self) -> bool {
        self.cursors.iter().all(|cursor| cursor.accepted)
    }

    /// The engine delivers bytes. Returns buffers that it may have back at once.
    pub(super) fn deliver(
        &mut self,
        request: RequestId,
        read: ReadId,
        buffer: SharedBuffer,
        range: Range<usize>,
    ) -> Vec<Taken> {
        let cursor = self.cursors.iter_mut().find(|c| c.request == Some(request));
        let Some(cursor) = cursor else { return Vec::new() };
        // A request whose bytes are all in memory is complete before it is accepted.
        cursor.accepted = true;
        cursor.coming = cursor.coming.saturating_sub(range.len() as u64);
        cursor.pieces.push_back(DeliveredPiece { request, read, buffer, range });
        cursor.gather()
    }

    /// Whether a request is one of this playback that is not over.
    pub(super) fn has_request(&self, request: RequestId) -> bool {
        self.cursors.iter().any(|cursor| cursor.request == Some(request))
    }

    /// Requests that the engine has not completed, or whose buffers are held here.
    pub(super) fn open_requests(&self) -> Vec<RequestId> {
        let of_pieces = self.cursors.iter().flat_map(|cursor| &cursor.pieces);
        let mut open: Vec<RequestId> = of_pieces.map(|piece| piece.request).collect();
        open.extend(self.cursors.iter().filter(|c| c.coming > 0).filter_map(|c| c.request));
        open.sort_unstable();
        open.dedup();
        open
    }

    /// What to do at `now`.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        let mut soonest: Option<(Instant, usize)> = None;
        let mut is_over = true;
        for (i, cursor) in self.cursors.iter().enumerate() {
            let Some(next) = &cursor.next else { continue };
            is_over = false;
            let due = self.origin + self.at_speed(next.decoded - self.base);
            if cursor.has_next() && soonest.is_none_or(|(at, _)| due < at) {
                soonest = Some((due, i));
            }
        }
        match soonest {
            None if is_over => Step::Ended,
            None => Step::Wait(None),
            Some((due, _)) if due > now => Step::Wait(Some(due)),
            Some((due, i)) => {
                let late = now - due;
                if late > MOST_LATE {
                    self.origin += late;
                }
                Step::Send(i)
            }
        }
    }

    /// Passes the next LDU of a cursor to `send`, with its track's set-up and the index of
    /// that, and its time stamp. Returns buffers that the engine may have back.
    pub(super) fn send(
        &mut self,
        cursor: usize,
        tracks: &mut [TrackSetup],
        mut send: impl FnMut(usize, &mut TrackSetup, u32, &[u8]),
    ) -> Vec<Taken> {
        let (first, speed) = (self.plan.first, self.plan.speed_milli);
        let cursor = &mut self.cursors[cursor];
        let Some(next) = cursor.next.take() else { return Vec::new() };
        let setup = &mut tracks[cursor.setup];
        let stamp = stamp_of(&next, setup.format.clock_rate, speed)
            .wrapping_sub(stamp_at(first, setup.format.clock_rate, speed))
            .wrapping_add(setup.timestamp);
        let is_sent = next.shown >= cursor.shown_from;
        let size = usize::try_from(next.bytes.end - next.bytes.start).unwrap_or(usize::MAX);
        let i = cursor.setup;
        let taken = cursor.take(size, |ldu| {
            if is_sent {
                send(i, setup, stamp, ldu);
            }
        });
        cursor.number += 1;
        cursor.load(&self.session.presentation.packaging);
        let mut all = taken;
        all.extend(cursor.gather());
        all
    }

    /// The time stamp of a track at `now`, and the time that all tracks have then.
    pub(super) fn report(&self, now: Instant, setup: &TrackSetup) -> (u32, Duration) {
        let played = now.saturating_duration_since(self.origin);
        let position = self.base + media_time(played, self.plan.speed_milli);
        let rate = setup.format.clock_rate;
        let speed = self.plan.speed_milli;
        let stamp = stamp_at(position, rate, speed)
            .wrapping_sub(stamp_at(self.plan.first, rate, speed))
            .wrapping_add(setup.timestamp);
        // By the time of the media, not of the clock: a pause of the sender is none in the media.
        (stamp, self.unix_origin + played)
    }

    /// The position at `now`.
    pub(super) fn position(&self, now: Instant) -> Duration {
        let played = now.saturating_duration_since(self.origin);
        let position = self.base + media_time(played, self.plan.speed_milli);
        position.max(self.plan.first).since_start()
    }

    /// Moves the time stamps of the tracks behind everything that has been sent, so that the next
    /// playback continues them (RFC 2326, B).
    pub(super) fn continue_timestamps(&self, now: Instant, tracks: &mut [TrackSetup]) {
        // Pictures are sent before they are shown.
        let later = now + REORDERED;
        for track in tracks {
            let (stamp, _) = self.report(later, track);
            track.timestamp = stamp;
        }
    }

    /// Media time as time at this speed.
    fn at_speed(&self, time: MediaTime) -> Duration {
        let micros = u64::try_from(time.0.max(0)).unwrap_or(0) / 1000;
        Duration::from_micros(micros.saturating_mul(1000) / u64::from(self.plan.speed_milli.max(1)))
    }
}

impl Cursor {
    fn new(packaging: &Packaging, setup: usize, track: u16, plan: &Plan) -> Self {
        let number = packaging.entry(track, plan.first).unwrap_or(0);
        let stop =
            plan.stop.map(|stop| MediaTime(i64::try_from(stop.as_nanos()).unwrap_or(i64::MAX)));
        let count = packaging.ldu_count(track);
        let is_behind = |ldu: usize| {
            let found = packaging.pushed(track, ldu);
            stop.is_some_and(|stop| found.is_some_and(|found| found.decoded >= stop))
        };
        // Decode times never decrease.
        let (mut low, mut high) = (number, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_behind(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let mut cursor = Self {
            setup,
            track,
            next: None,
            number,
            count: low,
            shown_from: MediaTime(i64::MIN),
            rest: 0..0,
            request: None,
            coming: 0,
            accepted: true,
            pieces: VecDeque::new(),
            partial: Vec::new(),
        };
        cursor.load(packaging);
        let last = low.checked_sub(1).and_then(|last| packaging.pushed(track, last));
        if let (Some(first), Some(last)) = (&cursor.next, last) {
            cursor.rest = first.bytes.start..last.bytes.end;
            cursor.accepted = cursor.rest.is_empty();
            if number > 0 {
                cursor.shown_from = first.shown;
            }
        }
        cursor
    }

    /// Looks up the LDU at which the cursor is.
    fn load(&mut self, packaging: &Packaging) {
        let more = self.number < self.count;
        self.next = more.then(|| packaging.pushed(self.track, self.number)).flatten();
    }

    fn next_size(&self) -> u64 {
        self.next.as_ref().map_or(0, |next| next.bytes.end - next.bytes.start)
    }

    /// Whether all bytes of the next LDU are here.
    fn has_next(&self) -> bool {
        let held: u64 = self.pieces.iter().map(|piece| piece.range.len() as u64).sum();
        self.partial.len() as u64 + held >= self.next_size()
    }

    /// Gives back pieces that hold only a part of the next LDU: the engine delivers no more while
    /// two are held.
    fn gather(&mut self) -> Vec<Taken> {
        if self.next.is_none() || self.has_next() {
            return Vec::new();
        }
        let pieces = self.pieces.drain(..);
        let taken = pieces.map(|piece| {
            self.partial.extend_from_slice(&piece.buffer[piece.range]);
            (piece.request, piece.read)
        });
        taken.collect()
    }

    /// Takes `size` bytes that are here.
    fn take(&mut self, size: usize, mut use_bytes: impl FnMut(&[u8])) -> Vec<Taken> {
        let mut taken = Vec::new();
        let in_one = self.pieces.front().is_some_and(|piece| piece.range.len() >= size);
        if self.partial.is_empty() && in_one {
            let piece = &mut self.pieces[0];
            let end = piece.range.start + size;
            use_bytes(&piece.buffer[piece.range.start..end]);
            piece.range.start = end;
        } else {
            while let Some(piece) = self.pieces.front_mut() {
                let wanted = (size - self.partial.len()).min(piece.range.len());
                let end = piece.range.start + wanted;
                self.partial.extend_from_slice(&piece.buffer[piece.range.start..end]);
                piece.range.start = end;
                if !piece.range.is_empty() {
                    break;
                }
                taken.extend(self.pieces.pop_front().map(|piece| (piece.request, piece.read)));
            }
            use_bytes(&self.partial);
            self.partial.clear();
        }
        if self.pieces.front().is_some_and(|piece| piece.range.is_empty()) {
            taken.extend(self.pieces.pop_front().map(|piece| (piece.request, piece.read)));
        }
        taken
    }
}

/// Ticks of `rate` until a time of the title, at a speed; the low 32 bits.
fn stamp_at(time: MediaTime, rate: u32, speed_milli: u32) -> u32 {
    low_bits(i128::from(time.0) * i128::from(rate) * 1000, 1_000_000_000, speed_milli)
}

/// As [`stamp_at`], of an LDU, from its own ticks.
fn stamp_of(ldu: &PushedLdu, rate: u32, speed_milli: u32) -> u32 {
    low_bits(i128::from(ldu.shown_ticks) * i128::from(rate) * 1000, ldu.scale.0, speed_milli)
}

/// The nearest whole number to `thousandths / (scale * speed_milli)`, its low 32 bits.
fn low_bits(thousandths: i128, scale: u32, speed_milli: u32) -> u32 {
    let divisor = (i128::from(scale) * i128::from(speed_milli)).max(1);
    let nearest = (thousandths + divisor / 2).div_euclid(divisor);
    u32::try_from(nearest.rem_euclid(1 << 32)).unwrap_or(0)
}

/// The media that is played in a time.
fn media_time(time: Duration, speed_milli: u32) -> MediaTime {
    let played = u128::from(nanos(time)) * u128::from(speed_milli) / 1000;
    MediaTime(i64::try_from(played).unwrap_or(i64::MAX))
}

/// Bytes of one request to the engine, as of an HTTP body: its cost is small beside them.
const WINDOW_BYTES: u64 = 4 * 1024 * 1024;
/// How late an LDU may be without a change of the pace. Receivers' buffers hold more.
const MOST_LATE: Duration = Duration::from_secs(1);
/// How long a picture may be sent before it is shown: more than any codec reorders.
const REORDERED: Duration = Duration::from_secs(1);
