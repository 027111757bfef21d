//! One playback: which LDU is sent when, which bytes are requested for it, and its time stamps.
//!
//! ```text
//!   title time   base ............. LDU decoded at t ......... stop
//!   clock        origin             origin + (t - base) / speed
//!                └ end of the start-up: by then the engine has in memory what is due first
//! ```
//!
//! Sans-IO: methods take deliveries and the time, and return LDUs, or packets of a transport
//! stream. A sender that is late by more than a second, because its player takes nothing or the
//! disk was late, goes on from there at the normal pace, as after a pause.

use super::multiplex::Multiplex;
use super::replay::{FrameChoice, ReplayOptions};
use super::session::TrackSetup;
use super::track_bytes::{Taken, TrackBytes};
use crate::sessions::PlayerSession;
use device::SharedBuffer;
use engine::{MediaRequest, ReadId, RequestId};
use media::{Packaging, PushedLdu, TransportCounters};
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
    /// Whether pictures begin at the requested position, for a decoder that has what comes before.
    pub(super) is_exact: bool,
    /// Seconds of media played in a second, in thousandths.
    pub(super) speed_milli: u32,
    /// Indexes of the tracks among those that were set up.
    pub(super) setups: Vec<usize>,
    pub(super) replay: ReplayOptions,
}

/// What is sent together: an LDU, or packets of a transport stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentUnit {
    /// The time stamp.
    pub(super) stamp: u32,
    /// When it is shown, in the title.
    pub(super) shown: MediaTime,
    /// Whether decoding may start with it.
    pub(super) sync: bool,
    /// Whether it is the first of its track in the playback.
    pub(super) is_first: bool,
    /// Whether it is the last of its track in the title, of those that are sent.
    pub(super) is_last: bool,
}

/// A playback of one or more tracks.
#[derive(Debug)]
pub(super) struct Playback {
    pub(super) session: Arc<PlayerSession>,
    pub(super) plan: Plan,
    source: PushSource,
    /// The earliest decode time: reordered pictures are decoded before `plan.first` is shown.
    base: MediaTime,
    origin: Instant,
    /// The latest decode time that was sent.
    sent: MediaTime,
    /// When the next sender reports are due.
    pub(super) report_at: Instant,
    /// The time since 1970 that reports give for `base`.
    unix_origin: Duration,
}

/// What is sent, and where it comes from.
#[derive(Debug)]
enum PushSource {
    /// LDUs of tracks, each in packets of its own.
    Tracks(Vec<Cursor>),
    /// One transport stream.
    Transport(Box<Multiplex>),
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
    is_video: bool,
    /// When the last LDU that was sent is shown.
    last_shown: Option<MediaTime>,
    /// Where pictures are left out, the last LDU at which decoding may start, and when it is shown.
    last_sync: Option<(usize, MediaTime)>,
    /// A picture that may be the last one from which others are decoded: only what follows tells.
    held: Option<(SentUnit, Vec<u8>)>,
    bytes: TrackBytes,
}

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
    /// A plan that starts where decoding can start, at or before `start`, or, where it `is_exact`,
    /// with the picture that is shown then; before the first picture it starts with the sound at
    /// `start`. A transport stream starts where decoding can.
    pub(super) fn new(
        packaging: &Packaging,
        tracks: &[TrackSetup],
        start: Duration,
        is_exact: bool,
        stop: Option<Duration>,
        speed_milli: u32,
        replay: ReplayOptions,
    ) -> Self {
        // At another speed, sound has no time stamps that it could be played by; where pictures are
        // left out, players wind.
        let has_sound = speed_milli == 1000 && replay.frames == FrameChoice::All;
        let is_played = |track: &TrackSetup| has_sound || track.is_video;
        let setups: Vec<usize> =
            (0..tracks.len()).filter(|setup| is_played(&tracks[*setup])).collect();
        let start = time(start);
        if let Some((setup, counters)) = transport_setup(tracks) {
            let push = packaging.transport_push(setup.track, start, counters);
            let first = push.map_or(start, |push| push.first());
            return Self { first, stop, is_exact: false, speed_milli, setups, replay };
        }
        let video = setups.iter().map(|setup| &tracks[*setup]).find(|track| track.is_video);
        let exact = video.filter(|_| is_exact);
        let exact = exact.and_then(|video| continuation(packaging, video.track, start));
        let entry = video
            .and_then(|video| packaging.pushed(video.track, packaging.entry(video.track, start)?));
        let first = exact.map(|(_, shown)| shown).or(entry.map(|entry| entry.shown));
        // Before the first picture there may be sound.
        let first = first.map_or(start, |first| first.min(start).max(MediaTime::ZERO));
        Self { first, stop, is_exact: exact.is_some(), speed_milli, setups, replay }
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
        let source = PushSource::new(packaging, tracks, &plan);
        let base = source.first_due().map_or(plan.first, |earliest| earliest.min(plan.first));
        let (sent, report_at) = (base, origin);
        Self { session, plan, source, base, origin, sent, report_at, unix_origin }
    }

    /// The requests for bytes that are due; `name` makes their numbers.
    pub(super) fn requests(&mut self, mut name: impl FnMut() -> RequestId) -> Vec<MediaRequest> {
        let session = self.session.id;
        let tracks = self.source.tracks_mut();
        tracks.into_iter().filter_map(|track| track.next_request(session, &mut name)).collect()
    }

    /// The engine has accepted a request.
    pub(super) fn accepted(&mut self, request: RequestId) {
        let mut tracks = self.source.tracks_mut().into_iter();
        if let Some(track) = tracks.find(|track| track.has_request(request)) {
            track.accept();
        }
    }

    /// Whether the first request of each track was accepted.
    pub(super) fn is_accepted(&self) -> bool {
        self.source.tracks().into_iter().all(TrackBytes::is_accepted)
    }

    /// The engine delivers bytes. Returns buffers that it may have back at once.
    pub(super) fn deliver(
        &mut self,
        request: RequestId,
        read: ReadId,
        buffer: SharedBuffer,
        range: Range<usize>,
    ) -> Vec<Taken> {
        let mut tracks = self.source.tracks_mut().into_iter();
        let Some(track) = tracks.find(|track| track.has_request(request)) else {
            return Vec::new();
        };
        track.deliver(request, read, buffer, range);
        self.source.gather()
    }

    /// Whether a request is one of this playback that is not over.
    pub(super) fn has_request(&self, request: RequestId) -> bool {
        self.source.tracks().into_iter().any(|track| track.has_request(request))
    }

    /// Requests that the engine has not completed, or whose buffers are held here.
    pub(super) fn open_requests(&self) -> Vec<RequestId> {
        let tracks = self.source.tracks().into_iter();
        let mut open: Vec<RequestId> = tracks.flat_map(TrackBytes::open_requests).collect();
        open.sort_unstable();
        open.dedup();
        open
    }

    /// What to do at `now`.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        let soonest = match &self.source {
            PushSource::Tracks(cursors) => {
                if cursors.iter().all(|cursor| cursor.next.is_none()) {
                    return Step::Ended;
                }
                let numbered = cursors.iter().enumerate().filter(|(_, cursor)| cursor.has_next());
                let due =
                    numbered.filter_map(|(i, cursor)| Some((cursor.next.as_ref()?.decoded, i)));
                due.min()
            }
            PushSource::Transport(multiplex) => match multiplex.due() {
                None => return Step::Ended,
                Some(at) => multiplex.has_next().then_some((at, 0)),
            },
        };
        let Some((at, cursor)) = soonest else { return Step::Wait(None) };
        self.sent = self.sent.max(at);
        if !self.plan.replay.is_paced {
            return Step::Send(cursor);
        }
        let due = self.origin + self.at_speed(at - self.base);
        if due > now {
            return Step::Wait(Some(due));
        }
        let late = now - due;
        if late > MOST_LATE {
            self.origin += late;
        }
        Step::Send(cursor)
    }

    /// Passes what a cursor sends next to `send`, with its track's set-up and the index of that,
    /// and its time stamp: an LDU, or packets of a transport stream. Returns buffers that the
    /// engine may have back.
    pub(super) fn send(
        &mut self,
        cursor: usize,
        tracks: &mut [TrackSetup],
        mut send: impl FnMut(usize, &mut TrackSetup, SentUnit, &[u8]),
    ) -> Vec<Taken> {
        let (first, speed, frames) =
            (self.plan.first, self.plan.speed_milli, self.plan.replay.frames);
        let packaging = &self.session.presentation.packaging;
        let from_first = |stamp: u32, setup: &TrackSetup| {
            stamp
                .wrapping_sub(stamp_at(first, setup.format.clock_rate, speed))
                .wrapping_add(setup.timestamp)
        };
        let cursors = match &mut self.source {
            PushSource::Tracks(cursors) => cursors,
            PushSource::Transport(multiplex) => {
                let (Some(at), Some(setup)) = (multiplex.due(), tracks.first_mut()) else {
                    return Vec::new();
                };
                let stamp = from_first(stamp_at(at, setup.format.clock_rate, speed), setup);
                let (sync, is_first, is_last) = (false, false, false);
                let outgoing = SentUnit { stamp, shown: at, sync, is_first, is_last };
                return multiplex.send(packaging, |packets| send(0, setup, outgoing, packets));
            }
        };
        let cursor = &mut cursors[cursor];
        let Some(next) = cursor.next.take() else { return Vec::new() };
        let setup = &mut tracks[cursor.setup];
        let stamp = from_first(stamp_of(&next, setup.format.clock_rate, speed), setup);
        let is_chosen = next.shown >= cursor.shown_from && cursor.is_chosen(&next, frames);
        let leaves_out = cursor.is_video && frames == FrameChoice::Predicted;
        let count = packaging.ldu_count(cursor.track);
        let outgoing = SentUnit {
            stamp,
            shown: next.shown,
            sync: next.sync,
            is_first: cursor.last_shown.is_none(),
            is_last: !leaves_out && cursor.is_last(&next, frames, count),
        };
        let is_held = leaves_out && cursor.is_near_end();
        let size = usize::try_from(next.bytes.end - next.bytes.start).unwrap_or(usize::MAX);
        let (i, mut is_sent, mut held) = (cursor.setup, false, cursor.held.take());
        let taken = cursor.bytes.take(size, |ldu| {
            is_sent = is_chosen && !(leaves_out && setup.format.is_discardable(ldu));
            if is_sent {
                if let Some((outgoing, before)) = held.take() {
                    send(i, setup, outgoing, &before);
                }
                match is_held {
                    true => held = Some((outgoing, ldu.to_vec())),
                    false => send(i, setup, outgoing, ldu),
                }
            }
        });
        if is_sent {
            cursor.last_shown = Some(next.shown);
        }
        cursor.number += 1;
        cursor.load(packaging);
        if cursor.next.is_none()
            && let Some((outgoing, ldu)) = held.take()
        {
            send(i, setup, SentUnit { is_last: cursor.number == count, ..outgoing }, &ldu);
        }
        cursor.held = held;
        let mut all = taken;
        all.extend(cursor.gather());
        all
    }

    /// The time stamp of a track at `now`, and the time that all tracks have then.
    pub(super) fn report(&self, now: Instant, setup: &TrackSetup) -> (u32, Duration) {
        let position = self.reached(now);
        // By the time of the media, not of the clock: a pause of the sender is none in the media.
        let played = self.at_speed(position - self.base);
        (self.stamp(position, setup), self.unix_origin + played)
    }

    /// The time stamp of a track at a position.
    fn stamp(&self, position: MediaTime, setup: &TrackSetup) -> u32 {
        let (rate, speed) = (setup.format.clock_rate, self.plan.speed_milli);
        stamp_at(position, rate, speed)
            .wrapping_sub(stamp_at(self.plan.first, rate, speed))
            .wrapping_add(setup.timestamp)
    }

    /// The title's time at `now`, from the earliest decode time on.
    fn reached(&self, now: Instant) -> MediaTime {
        if !self.plan.replay.is_paced {
            return self.sent;
        }
        let played = now.saturating_duration_since(self.origin);
        self.base + media_time(played, self.plan.speed_milli)
    }

    /// The position at `now`.
    pub(super) fn position(&self, now: Instant) -> Duration {
        self.reached(now).max(self.plan.first).since_start()
    }

    /// Moves the time stamps of the tracks behind everything that has been sent, so that the next
    /// playback continues them (RFC 2326, B).
    pub(super) fn continue_timestamps(&self, now: Instant, tracks: &mut [TrackSetup]) {
        // Pictures are sent before they are shown.
        let later = self.reached(now) + media_time(REORDERED, self.plan.speed_milli);
        for track in tracks {
            track.timestamp = self.stamp(later, track);
            if let (PushSource::Transport(multiplex), Some(transport)) =
                (&self.source, &mut track.transport)
            {
                transport.counters = multiplex.counters();
            }
        }
    }

    /// Media time as time at this speed.
    fn at_speed(&self, time: MediaTime) -> Duration {
        let micros = u64::try_from(time.0.max(0)).unwrap_or(0) / 1000;
        Duration::from_micros(micros.saturating_mul(1000) / u64::from(self.plan.speed_milli.max(1)))
    }
}

impl PushSource {
    fn new(packaging: &Packaging, tracks: &[TrackSetup], plan: &Plan) -> Self {
        let multiplex = transport_setup(tracks).and_then(|(setup, counters)| {
            Multiplex::new(packaging, setup.track, plan.first, plan.stop.map(time), counters)
        });
        if let Some(multiplex) = multiplex {
            return Self::Transport(Box::new(multiplex));
        }
        let cursor = |setup: &usize| Cursor::new(packaging, *setup, &tracks[*setup], plan);
        Self::Tracks(plan.setups.iter().map(cursor).collect())
    }

    fn tracks(&self) -> Vec<&TrackBytes> {
        match self {
            Self::Tracks(cursors) => cursors.iter().map(|cursor| &cursor.bytes).collect(),
            Self::Transport(multiplex) => multiplex.tracks().iter().collect(),
        }
    }

    fn tracks_mut(&mut self) -> Vec<&mut TrackBytes> {
        match self {
            Self::Tracks(cursors) => cursors.iter_mut().map(|cursor| &mut cursor.bytes).collect(),
            Self::Transport(multiplex) => multiplex.tracks_mut().iter_mut().collect(),
        }
    }

    /// Gives back pieces that hold only a part of what is sent next.
    fn gather(&mut self) -> Vec<Taken> {
        match self {
            Self::Tracks(cursors) => cursors.iter_mut().flat_map(Cursor::gather).collect(),
            Self::Transport(multiplex) => multiplex.gather(),
        }
    }

    /// When the first of it is due.
    fn first_due(&self) -> Option<MediaTime> {
        match self {
            Self::Tracks(cursors) => {
                cursors.iter().filter_map(|cursor| Some(cursor.next.as_ref()?.decoded)).min()
            }
            Self::Transport(multiplex) => multiplex.due(),
        }
    }
}

/// The LDU at which pictures go on at a position, for a decoder that has what comes before, and
/// when the first of them is shown: the last that is shown by then.
fn continuation(packaging: &Packaging, track: u16, from: MediaTime) -> Option<(usize, MediaTime)> {
    let entry = packaging.entry(track, from)?;
    let end = packaging.ldus_before(track, from + MediaTime(1)).max(entry + 1);
    let shown = |ldu: usize| packaging.pushed(track, ldu).map(|found| found.shown);
    let first = (entry..end).filter_map(shown).filter(|shown| *shown <= from).max()?;
    // Pictures are decoded before others that are shown earlier.
    let is_shown = |ldu: &usize| shown(*ldu).is_some_and(|shown| shown >= first);
    Some(((entry..end).find(is_shown)?, first))
}

/// The set-up of a transport stream, which is the only one of its session.
fn transport_setup(tracks: &[TrackSetup]) -> Option<(&TrackSetup, TransportCounters)> {
    let setup = tracks.first()?;
    Some((setup, setup.transport.as_ref()?.counters))
}

impl Cursor {
    fn new(packaging: &Packaging, setup: usize, of: &TrackSetup, plan: &Plan) -> Self {
        let (track, is_video) = (of.track, of.is_video);
        let exact = (is_video && plan.is_exact).then(|| continuation(packaging, track, plan.first));
        let exact = exact.flatten().map(|(number, _)| number);
        let number = exact.or_else(|| packaging.entry(track, plan.first)).unwrap_or(0);
        let count = plan.stop.map_or_else(
            || packaging.ldu_count(track),
            |stop| packaging.ldus_until(track, time(stop)).max(number),
        );
        let at = |ldu: usize| packaging.pushed(track, ldu);
        let (next, last) = (at(number), count.checked_sub(1).and_then(at));
        let is_empty = number >= count;
        let bytes = match (&next, last) {
            (Some(first), Some(last)) if !is_empty => first.bytes.start..last.bytes.end,
            _ => 0..0,
        };
        let shown_from = match &next {
            Some(_) if exact.is_some() => plan.first,
            Some(first) if number > 0 && !is_empty => first.shown,
            _ => MediaTime(i64::MIN),
        };
        let bytes = TrackBytes::new(track, bytes);
        let last = packaging.ldu_count(track).checked_sub(1).and_then(at);
        let end = last.map_or(MediaTime::ZERO, |last| last.decoded.max(last.shown));
        let leaves_out = is_video && plan.replay.frames != FrameChoice::All;
        let last_sync = leaves_out.then(|| packaging.entry(track, end)).flatten();
        let last_sync = last_sync.and_then(|ldu| Some((ldu, at(ldu)?.shown)));
        let mut cursor = Self {
            setup,
            track,
            next: None,
            number,
            count,
            shown_from,
            is_video,
            last_shown: None,
            last_sync,
            held: None,
            bytes,
        };
        cursor.load(packaging);
        cursor
    }

    /// Whether an LDU is among those that the player has chosen.
    fn is_chosen(&self, ldu: &PushedLdu, frames: FrameChoice) -> bool {
        match frames {
            FrameChoice::Intra(distance) if self.is_video => {
                let is_far = |last: MediaTime| ldu.shown >= last + time(distance);
                ldu.sync && self.last_shown.is_none_or(is_far)
            }
            // Which pictures others are decoded from, their bytes tell.
            _ => true,
        }
    }

    /// Whether no later LDU of the title, which has `count` of this track, is chosen after this
    /// one, at which the cursor is.
    fn is_last(&self, ldu: &PushedLdu, frames: FrameChoice, count: usize) -> bool {
        match (frames, self.last_sync) {
            (FrameChoice::Intra(distance), Some((number, shown))) if self.is_video => {
                self.number >= number || shown < ldu.shown + time(distance)
            }
            _ => self.number + 1 == count,
        }
    }

    /// Whether the cursor is in the last group of pictures of the title.
    fn is_near_end(&self) -> bool {
        self.last_sync.is_none_or(|(number, _)| self.number >= number)
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
        self.next.is_some() && self.bytes.has(self.next_size())
    }

    /// Gives back pieces that hold only a part of the next LDU.
    fn gather(&mut self) -> Vec<Taken> {
        if self.next.is_none() {
            return Vec::new();
        }
        self.bytes.gather(self.next_size())
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

/// A position as the packaging has it.
fn time(position: Duration) -> MediaTime {
    MediaTime(i64::try_from(position.as_nanos()).unwrap_or(i64::MAX))
}

/// The media that is played in a time.
fn media_time(time: Duration, speed_milli: u32) -> MediaTime {
    let played = u128::from(nanos(time)) * u128::from(speed_milli) / 1000;
    MediaTime(i64::try_from(played).unwrap_or(i64::MAX))
}

/// How late an LDU may be without a change of the pace. Receivers' buffers hold more.
const MOST_LATE: Duration = Duration::from_secs(1);
/// How long a picture may be sent before it is shown: more than any codec reorders.
const REORDERED: Duration = Duration::from_secs(1);
