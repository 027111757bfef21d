//! Cuts a stream into parts, each of which is a title of its own.
//!
//! ```text
//! video   K.......K.......K.......|K.......K..     the first key frame after the wanted length
//! sound   ........................|.............   the first packet that begins at its time
//! arrival        present part ◀── | ──▶ next part         each track is cut where it comes by
//! ```
//!
//! The track that leads (the first video, else the first track) decides on the time of a cut. A
//! part also begins with the first key frame after a gap in its times, and with what the other
//! tracks have between their gap and this key frame. Every LDU is in one part. A part begins at
//! time zero: a track whose first LDU begins later has a wait.
//!
//! Two parts are open until all tracks have come by, and there is no further cut in that time. A
//! track of which nothing comes is cut [`LATEST`] after the leading one.

use super::fragment::{KeptTrack, TrackState};
use crate::{Edit, TrackDescription, TrackKind};
use std::time::Duration;
use units::{MediaTime, nanos};

/// The rule by which a stream is cut, and its present state.
#[derive(Debug)]
pub(super) struct PartCutter {
    length: Duration,
    /// When the present part begins; `None` before the first LDU.
    begins: Option<MediaTime>,
    /// The present part; `None` in the first one, which is as the stream is.
    present: Option<PartStart>,
    /// The part behind the cut that some tracks have not come by.
    next: Option<PartStart>,
    /// The LDUs of the leading track that need no second look.
    seen: usize,
    /// The time of the leading track's last LDU before a gap that is in the present part.
    gap: Option<MediaTime>,
}

/// Where a part begins.
#[derive(Debug)]
struct PartStart {
    at: MediaTime,
    tracks: Vec<TrackDescription>,
}

/// Where a track is cut, counted from the beginning of the present part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackCut {
    pub(super) ldus: usize,
    pub(super) bytes: u64,
    /// Whether the sink has been told of it, behind all bytes before it.
    pub(super) is_told: bool,
}

impl PartCutter {
    pub(super) fn new(length: Duration) -> Self {
        let (begins, present, next) = (None, None, None);
        Self { length, begins, present, next, seen: 0, gap: None }
    }

    /// The descriptions of the tracks behind the cut, if there is one.
    pub(super) fn next_tracks(&self) -> &[TrackDescription] {
        self.next.as_ref().map_or(&[], |next| &next.tracks)
    }

    /// The time from the beginning of the present part, or of the next, to the decoding of one of
    /// the LDUs of a track, in ticks.
    pub(super) fn wait(&self, is_next: bool, kept: &KeptTrack, ldu: usize) -> u32 {
        let part = if is_next { &self.next } else { &self.present };
        let Some(part) = part.as_ref().filter(|_| ldu < kept.index.len()) else { return 0 };
        let offset = i64::from(kept.index.get(ldu).composition_offset);
        let hidden = part.tracks[kept.number].edits.iter().find_map(|edit| edit.media_time);
        let wait = ticks_of(shown_at(kept, ldu) - part.at, kept) - offset + hidden.unwrap_or(0);
        u32::try_from(wait.max(0)).unwrap_or(u32::MAX)
    }

    /// Finds where tracks are cut, in what of them is known and has not been passed on.
    pub(super) fn find(&mut self, tracks: &mut [TrackState]) {
        let mut all: Vec<&mut KeptTrack> =
            tracks.iter_mut().filter_map(|track| track.kept.as_mut()).collect();
        let leads = all.iter().position(|kept| is_video(kept)).unwrap_or(0);
        let Some(lead) = all.get(leads).filter(|lead| !lead.index.is_empty()) else { return };
        let begins = *self.begins.get_or_insert_with(|| shown_at(lead, 0));
        if self.next.is_none() {
            let Some(first) = self.next_cut(lead, begins) else { return };
            let offset = i64::from(lead.index.get(first).composition_offset);
            let hidden = MediaTime::from_ticks(offset.max(0), lead.description.timescale);
            let describe = |kept: &&mut KeptTrack| {
                let edits = match ticks_of(hidden, kept) {
                    ticks @ 1.. if is_video(kept) => {
                        vec![Edit { duration: None, media_time: Some(ticks) }]
                    }
                    _ => Vec::new(),
                };
                TrackDescription { edits, ..kept.description.clone() }
            };
            let (mut at, tracks) = (shown_at(lead, first), all.iter().map(describe).collect());
            all[leads].cut_at(first);
            if let Some(gap) = self.gap {
                at = cut_behind_gap(&mut all, leads, gap, at);
            }
            self.next = Some(PartStart { at, tracks });
        }
        let Some(at) = self.next.as_ref().map(|next| next.at) else { return };
        let lead = &all[leads];
        let is_late = shown_at(lead, lead.index.len() - 1) - at >= LATEST;
        for kept in all.iter_mut().filter(|kept| kept.cut.is_none()) {
            let known = kept.index.len();
            let is_first = |number: &usize| {
                let ldu = kept.index.get(*number);
                let begins = ldu.offset >= kept.passed && (!is_video(kept) || ldu.sync);
                begins && shown_at(kept, *number) >= at
            };
            match (kept.index.count_within(kept.passed)..known).find(is_first) {
                Some(first) => kept.cut_at(first),
                None if is_late => kept.cut_at(known),
                None => {}
            }
        }
    }

    /// The LDU of the leading track with which the next part begins.
    fn next_cut(&mut self, lead: &KeptTrack, begins: MediaTime) -> Option<usize> {
        let length = MediaTime(i64::try_from(nanos(self.length)).unwrap_or(i64::MAX));
        let (from, known) = (self.seen.max(1), lead.index.len());
        self.seen = known;
        (from..known).find(|&i| {
            if self.gap.is_none() && is_gap(lead, i) {
                self.gap = Some(shown_at(lead, i - 1));
            }
            let ldu = lead.index.get(i);
            let is_due = self.gap.is_some() || shown_at(lead, i) - begins >= length;
            // An open group's first pictures are decoded behind its key frame, and shown before.
            is_due && ldu.sync && ldu.offset >= lead.passed
        })
    }

    /// Makes the part behind the cut the present one, when all tracks have come by.
    pub(super) fn go_on(&mut self, tracks: &mut [TrackState]) {
        if let Some(next) = self.next.take() {
            self.begins = Some(next.at);
            self.present = Some(next);
        }
        (self.seen, self.gap) = (0, None);
        tracks.iter_mut().filter_map(|track| track.kept.as_mut()).for_each(KeptTrack::go_on);
    }
}

/// Cuts the tracks that do not lead where they go on after the gap in which the leading one is cut
/// for `at`, if that is shortly before; returns when the first of all goes on. Sound that begins
/// before its pictures would be the end of a part that ended long before.
fn cut_behind_gap(
    all: &mut [&mut KeptTrack],
    leads: usize,
    gap: MediaTime,
    at: MediaTime,
) -> MediaTime {
    let mut earliest = at;
    for (_, kept) in all.iter_mut().enumerate().filter(|(number, _)| *number != leads) {
        let goes_on = |ldu: &usize| {
            let time = shown_at(kept, *ldu);
            kept.index.get(*ldu).offset >= kept.passed
                && time > gap
                && (at - BEFORE..at).contains(&time)
                && is_gap(kept, *ldu)
        };
        let known = kept.index.count_within(kept.passed)..kept.index.len();
        if let Some(first) = known.into_iter().find(goes_on).filter(|_| !is_video(kept)) {
            earliest = earliest.min(shown_at(kept, first));
            kept.cut_at(first);
        }
    }
    earliest
}

impl KeptTrack {
    fn cut_at(&mut self, ldus: usize) {
        let before = ldus.checked_sub(1).map(|last| self.index.get(last));
        let bytes = before.map_or(0, |ldu| ldu.offset + u64::from(ldu.size));
        self.cut = Some(TrackCut { ldus, bytes, is_told: false });
    }

    /// Forgets what is before the cut.
    fn go_on(&mut self) {
        let Some(cut) = self.cut.take() else { return };
        let all = self.index.len();
        let ticks = match cut.ldus < all {
            true => self.index.get(cut.ldus).decode_time,
            false => self.index.duration_ticks(),
        };
        if let Some(scanner) = &mut self.scanner {
            scanner.forget(cut.ldus);
        }
        if let Some(watch) = &mut self.watch {
            watch.forget(cut.ldus);
        }
        // A track that is cut behind its last LDU has nothing whose duration could be corrected.
        self.index = self.index.part(cut.ldus..all, None);
        self.before += ticks;
        self.is_later_part = true;
        self.passed -= cut.bytes;
    }
}

/// When an LDU is shown, by the description of the whole stream.
fn shown_at(kept: &KeptTrack, ldu: usize) -> MediaTime {
    let ldu = kept.index.get(ldu);
    let edits = &kept.description.edits;
    let waits = edits.iter().take_while(|edit| edit.media_time.is_none());
    let wait = waits.filter_map(|edit| edit.duration).fold(MediaTime::ZERO, |sum, it| sum + it);
    let hidden = edits.iter().find_map(|edit| edit.media_time).unwrap_or(0);
    let offset = if is_video(kept) { i64::from(ldu.composition_offset) } else { 0 };
    let ticks = i64::try_from(kept.before + ldu.decode_time).unwrap_or(i64::MAX);
    wait + MediaTime::from_ticks(ticks.saturating_add(offset - hidden), kept.description.timescale)
}

/// Whether there is a gap before an LDU: its time is not that of the next picture of an input that
/// has few.
pub(super) fn is_gap(kept: &KeptTrack, ldu: usize) -> bool {
    let Some(usual) = ldu.checked_sub(2) else { return false };
    let lasts = kept.index.duration(ldu - 1);
    let time = MediaTime::from_ticks(lasts.into(), kept.description.timescale);
    time >= GAP && lasts / GAP_RATIO >= kept.index.duration(usual)
}

fn is_video(kept: &KeptTrack) -> bool {
    kept.description.kind == TrackKind::Video
}

/// The nearest number of ticks of a track.
fn ticks_of(time: MediaTime, kept: &KeptTrack) -> i64 {
    let ticks = i128::from(time.0) * i128::from(kept.description.timescale.0);
    i64::try_from((ticks + 500_000_000).div_euclid(1_000_000_000)).unwrap_or(i64::MAX)
}

/// How long after the leading track the others are cut at the latest: sound that is more behind is
/// not in time with its pictures, and of another track nothing may ever come.
const LATEST: MediaTime = MediaTime(10_000_000_000);

/// How long before the leading track another one may go on after a gap, to be in the same part.
const BEFORE: MediaTime = MediaTime(1_000_000_000);

/// A gap is so long, and so many times longer than what is usual.
const GAP: MediaTime = MediaTime(2_000_000_000);
const GAP_RATIO: u32 = 8;
