//! One `moof`: LDUs join their tracks' indexes, and runs of the `mdat` find their owners.
//!
//! Decode times are those of `tfdt`. Where a fragment starts later than the durations before it
//! add up to (dropped frames, variable frame rate), or earlier (FFmpeg guesses the duration of
//! a fragment's last LDU), the last LDU's duration is set right, so that times never drift.

use super::error::{BadStream, malformed};
use crate::boxes::boxes;
use crate::{LduIndex, TrackDescription};
use mp4_atom::{Decode, FourCC, Tfdt, Tfhd, Trun, TrunEntry};
use std::collections::VecDeque;

/// A track of the stream while it is read.
#[derive(Debug)]
pub(super) struct TrackState {
    /// Its number in the stream.
    pub(super) id: u32,
    pub(super) defaults: Defaults,
    /// `None` for a track that is passed over.
    pub(super) kept: Option<Kept>,
}

/// A track that the sink gets.
#[derive(Debug)]
pub(super) struct Kept {
    /// Its number among those kept.
    number: usize,
    description: TrackDescription,
    index: LduIndex,
}

/// What an LDU is when nothing nearer says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Defaults {
    pub(super) duration: u32,
    pub(super) size: u32,
    pub(super) flags: u32,
}

/// Bytes of the stream, by place in it, that belong to one track.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The number among the tracks kept; `None`: nobody wants them.
    pub(super) track: Option<usize>,
}

impl TrackState {
    pub(super) fn new(id: u32, number: usize, description: TrackDescription) -> Self {
        let kept = Kept { number, description, index: LduIndex::default() };
        Self { id, defaults: Defaults::default(), kept: Some(kept) }
    }

    pub(super) fn passed_over(id: u32) -> Self {
        Self { id, defaults: Defaults::default(), kept: None }
    }

    pub(super) fn description(&self) -> Option<TrackDescription> {
        self.kept.as_ref().map(|kept| kept.description.clone())
    }

    /// The track as it came to be. A last LDU of unknown duration gets that of the one before.
    pub(super) fn finish(self) -> Option<(TrackDescription, LduIndex)> {
        let Kept { description, mut index, .. } = self.kept?;
        if let Some(before) = index.len().checked_sub(2)
            && index.get(before + 1).duration == 0
        {
            index.set_last_duration(index.get(before).duration);
        }
        Some((description, index))
    }
}

/// Reads the payload of the `moof` that starts at `start`; gives the runs in order of place.
pub(super) fn read(
    moof: &[u8],
    start: u64,
    tracks: &mut [TrackState],
) -> Result<VecDeque<Run>, BadStream> {
    let mut runs = Vec::new();
    // Where data goes on if a `traf` does not say where its own is.
    let mut data = start;
    let mut room = MAX_FRAGMENT_LDUS;
    for found in boxes(moof) {
        let found = found.map_err(malformed("moof"))?;
        if found.kind == FourCC::new(b"traf") {
            read_track(found.payload, start, &mut data, &mut room, tracks, &mut runs)?;
        }
    }
    in_order(runs, start)
}

/// By place; what is in order for each track must then be so as well, and nothing overlap.
fn in_order(mut runs: Vec<Run>, moof: u64) -> Result<VecDeque<Run>, BadStream> {
    runs.retain(|run| run.start < run.end);
    let decode_order: Vec<_> = runs.iter().map(|run| (run.track, run.start)).collect();
    runs.sort_by_key(|run| run.start);
    let overlap = runs.windows(2).any(|pair| pair[1].start < pair[0].end);
    let mut by_track = decode_order.clone();
    by_track.sort_unstable();
    let mut as_given = decode_order;
    as_given.sort_by_key(|&(track, _)| track);
    if overlap || by_track != as_given {
        return Err(BadStream::OutOfOrder { at: moof });
    }
    Ok(runs.into())
}

fn read_track(
    traf: &[u8],
    moof: u64,
    data: &mut u64,
    room: &mut usize,
    tracks: &mut [TrackState],
    runs: &mut Vec<Run>,
) -> Result<(), BadStream> {
    let mut header = None;
    for found in boxes(traf) {
        let found = found.map_err(malformed("traf"))?;
        let whole = &mut &*found.whole;
        match found.kind.as_ref() {
            b"tfhd" => {
                let tfhd = Tfhd::decode(whole).map_err(malformed("tfhd"))?;
                header = Some(open_track(&tfhd, moof, data, tracks)?);
            }
            b"tfdt" => {
                let tfdt = Tfdt::decode(whole).map_err(malformed("tfdt"))?;
                let (track, ..) = header.as_mut().ok_or(BadStream::Malformed("traf"))?;
                set_time(track, tfdt.base_media_decode_time)?;
            }
            b"trun" => {
                let trun = Trun::decode(whole).map_err(malformed("trun"))?;
                let (track, defaults, base) =
                    header.as_mut().ok_or(BadStream::Malformed("traf"))?;
                if let Some(offset) = trun.data_offset {
                    let place = base.checked_add_signed(i64::from(offset));
                    *data = place.ok_or(BadStream::Malformed("trun"))?;
                }
                let run = read_run(&trun, *defaults, *data, room, track)?;
                *data = run.end;
                runs.push(run);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The track that a `tfhd` speaks of, its defaults, and the place its data offsets count from.
fn open_track<'a>(
    tfhd: &Tfhd,
    moof: u64,
    data: &mut u64,
    tracks: &'a mut [TrackState],
) -> Result<(&'a mut TrackState, Defaults, u64), BadStream> {
    let id = tfhd.track_id;
    let track = tracks.iter_mut().find(|track| track.id == id);
    let track = track.ok_or(BadStream::UnknownTrack { track: id })?;
    if let Some(count) = tfhd.sample_description_index.filter(|&entry| entry != 1) {
        return Err(BadStream::SampleEntries { track: id, count });
    }
    if let Some(base) = tfhd.base_data_offset {
        *data = base;
    } else if tfhd.default_base_is_moof {
        *data = moof;
    }
    let defaults = Defaults {
        duration: tfhd.default_sample_duration.unwrap_or(track.defaults.duration),
        size: tfhd.default_sample_size.unwrap_or(track.defaults.size),
        flags: tfhd.default_sample_flags.unwrap_or(track.defaults.flags),
    };
    Ok((track, defaults, *data))
}

/// The next LDU decodes at `ticks`: the last one lasts until then.
fn set_time(track: &mut TrackState, ticks: u64) -> Result<(), BadStream> {
    let id = track.id;
    let Some(index) = track.kept.as_mut().map(|kept| &mut kept.index) else { return Ok(()) };
    if ticks == index.duration_ticks() {
        return Ok(());
    }
    let Some(last) = index.len().checked_sub(1).map(|last| index.get(last)) else {
        return Err(BadStream::LateStart { track: id, ticks });
    };
    let duration =
        ticks.checked_sub(last.decode_time).ok_or(BadStream::TimesRunBack { track: id, ticks })?;
    let duration =
        u32::try_from(duration).map_err(|_| BadStream::PauseTooLong { track: id, ticks })?;
    index.set_last_duration(duration);
    Ok(())
}

fn read_run(
    trun: &Trun,
    defaults: Defaults,
    start: u64,
    room: &mut usize,
    track: &mut TrackState,
) -> Result<Run, BadStream> {
    let too_many = |limit, place| BadStream::TooManyLdus { limit, place };
    let count = trun.samples.len();
    *room = room.checked_sub(count).ok_or(too_many(MAX_FRAGMENT_LDUS, "in one fragment"))?;
    let have = track.kept.as_ref().map_or(0, |kept| kept.index.len());
    if have + count > MAX_LDUS {
        return Err(too_many(MAX_LDUS, "in one track"));
    }
    let mut end = start;
    for entry in &trun.samples {
        let size = entry.size.unwrap_or(defaults.size);
        end = end.checked_add(u64::from(size)).ok_or(BadStream::Malformed("trun"))?;
        if let Some(kept) = &mut track.kept {
            push_ldu(&entry, size, defaults, &mut kept.index)?;
        }
    }
    Ok(Run { start, end, track: track.kept.as_ref().map(|kept| kept.number) })
}

fn push_ldu(
    entry: &TrunEntry,
    size: u32,
    defaults: Defaults,
    index: &mut LduIndex,
) -> Result<(), BadStream> {
    let duration = entry.duration.unwrap_or(defaults.duration);
    let composition = i32::try_from(entry.cts.unwrap_or(0)).map_err(malformed("trun"))?;
    let flags = entry.flags.unwrap_or(defaults.flags);
    let droppable = flags >> DEPENDED_ON_SHIFT & 3 == NOT_DEPENDED_ON;
    index.push(size, duration, composition, flags & NON_SYNC == 0, droppable);
    Ok(())
}

/// Sample flags, ISO/IEC 14496-12, 8.8.3.1.
const NON_SYNC: u32 = 1 << 16;
const DEPENDED_ON_SHIFT: u32 = 22;
const NOT_DEPENDED_ON: u32 = 2;

/// FFmpeg is asked for fragments of a second: no codec has a million LDUs in one.
const MAX_FRAGMENT_LDUS: usize = 1 << 20;
/// 24 hours of 2.5 ms packets, 700 MB of index. Longer material is taken in as several titles.
const MAX_LDUS: usize = 1 << 25;
