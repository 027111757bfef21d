//! One `moof`: its LDUs are appended to their tracks' indexes, and the runs of its `mdat` are
//! assigned to tracks.
//!
//! Decode times are those of `tfdt`. If a fragment starts later than the sum of the durations
//! before it (dropped frames, variable frame rate), or earlier (FFmpeg guesses the duration of a
//! fragment's last LDU), the duration of the last LDU is corrected, so that times never drift.

use super::error::{BadStream, malformed};
use super::form::{FormWatch, NewForm};
use super::latm::{LatmUnpacker, PacketTimes};
use super::parts::{self, PartCutter, TrackCut};
use crate::boxes::boxes;
use crate::subsamples::{SubsampleMap, SubsampleScanner};
use crate::{IndexPart, LduIndex, TrackDescription};
use mp4_atom::{Decode, FourCC, Tfdt, Tfhd, Trun, TrunEntry};
use std::collections::VecDeque;

/// A track of the stream during reading.
#[derive(Debug)]
pub(super) struct TrackState {
    /// The track's number in the stream.
    pub(super) id: u32,
    pub(super) defaults: Defaults,
    /// The kept track; `None` for a track that is skipped.
    pub(super) kept: Option<KeptTrack>,
}

/// A track that is passed to the sink.
#[derive(Debug)]
pub(super) struct KeptTrack {
    /// The track's number among the kept ones.
    pub(super) number: usize,
    pub(super) description: TrackDescription,
    /// The LDUs since the beginning of the present part.
    pub(super) index: LduIndex,
    /// The ticks before the present part.
    pub(super) before: u64,
    /// Whether the present part is not the first.
    pub(super) is_later_part: bool,
    /// The bytes that were passed on since the beginning of the present part.
    pub(super) passed: u64,
    /// Where the next part begins.
    pub(super) cut: Option<TrackCut>,
    /// Takes the LATM framing away, if the track has it.
    pub(super) latm: Option<LatmUnpacker>,
    /// Finds what of it may be encrypted, if it has NAL units.
    pub(super) scanner: Option<SubsampleScanner>,
    /// Sees whether its LDUs change their form, if they tell it.
    pub(super) watch: Option<FormWatch>,
}

/// The values of an LDU that the fragment does not override.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Defaults {
    pub(super) duration: u32,
    pub(super) size: u32,
    pub(super) flags: u32,
}

/// Contiguous bytes of the stream that belong to one track.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The number among the kept tracks; `None` if the bytes are skipped.
    pub(super) track: Option<usize>,
}

impl TrackState {
    pub(super) fn new(id: u32, number: usize, description: TrackDescription, latm: bool) -> Self {
        let watch = FormWatch::of(&description.sample_entry).filter(|_| !latm);
        let latm = latm.then(LatmUnpacker::default);
        let scanner = SubsampleScanner::of(&description.sample_entry);
        let kept = KeptTrack {
            number,
            description,
            index: LduIndex::default(),
            before: 0,
            is_later_part: false,
            passed: 0,
            cut: None,
            latm,
            scanner,
            watch,
        };
        Self { id, defaults: Defaults::default(), kept: Some(kept) }
    }

    pub(super) fn passed_over(id: u32) -> Self {
        Self { id, defaults: Defaults::default(), kept: None }
    }

    /// The unpacker of this track, if it is the kept track `number` and has LATM framing.
    pub(super) fn latm_of(&mut self, number: usize) -> Option<&mut LatmUnpacker> {
        self.kept.as_mut().filter(|kept| kept.number == number)?.latm.as_mut()
    }

    /// Takes the next bytes of the kept track `number`, if it is this one.
    pub(super) fn scan(&mut self, number: usize, bytes: &[u8]) {
        if let Some(kept) = self.kept.as_mut().filter(|kept| kept.number == number) {
            if let Some(scanner) = &mut kept.scanner {
                scanner.push(bytes, &kept.index);
            }
            if let Some(watch) = &mut kept.watch {
                watch.push(bytes, &kept.index);
                let channels = watch.channels();
                kept.description.channels = channels.unwrap_or(kept.description.channels);
            }
        }
    }

    /// What the kept track `number`, if it is this one, has had in the present part since its LDU
    /// `from`, or in the next part: the LDUs of which all bytes have arrived. `cutter`: by which it
    /// is cut into parts.
    pub(super) fn part(
        &self,
        number: usize,
        is_next: bool,
        from: usize,
        arrived: u64,
        cutter: Option<&PartCutter>,
    ) -> Option<IndexPart> {
        let kept = self.kept.as_ref().filter(|kept| kept.number == number)?;
        let (first, end, arrived) = match (kept.cut, is_next) {
            (None, true) => return None,
            (None, false) => (0, usize::MAX, arrived),
            (Some(cut), false) => (0, cut.ldus, arrived),
            (Some(cut), true) => (cut.ldus, usize::MAX, cut.bytes.saturating_add(arrived)),
        };
        let map = kept.scanner.as_ref().map(SubsampleScanner::map);
        let seen = kept.index.count_within(arrived).min(map.map_or(usize::MAX, SubsampleMap::len));
        // LDUs of another form are of no part that began before them.
        let seen = seen.min(kept.of_one_form());
        let (seen, from) = (seen.min(end), first.saturating_add(from));
        // The time until a part that begins after a gap is none of this part's play-out time.
        let is_gap = |to: usize| to == end && to < kept.index.len() && parts::is_gap(kept, to);
        let last_duration = match from.checked_sub(1) {
            Some(last) if from > first && !is_gap(from) => kept.index.duration(last),
            Some(last) if from > first => kept.index.duration(last - 1),
            _ => cutter.map_or(0, |cutter| cutter.wait(is_next, kept, from)),
        };
        let mut ldus = match from < seen {
            true => kept.index.part(from..seen, map),
            false => LduIndex::default(),
        };
        if is_gap(seen) {
            ldus.set_last_duration(kept.index.duration(seen - 2));
        }
        Some(IndexPart { last_duration, ldus, checksums: Vec::new() })
    }

    /// The error that the LDUs of the track have another form from some place on, if they have.
    pub(super) fn new_format(&self) -> Option<BadStream> {
        let NewForm { before, after, .. } = self.kept.as_ref()?.new_form()?;
        Some(BadStream::NewFormat { before, after })
    }

    pub(super) fn description(&self) -> Option<TrackDescription> {
        self.kept.as_ref().map(|kept| kept.description.clone())
    }

    /// Completes a description of the kept track `number`, if it is this one. `of_one_form`: by
    /// what has come before another form.
    pub(super) fn complete(
        &self,
        number: usize,
        of_one_form: bool,
        description: &mut TrackDescription,
    ) {
        if let Some(kept) = self.kept.as_ref().filter(|kept| kept.number == number) {
            kept.complete(of_one_form, description);
        }
    }

    /// The finished track.
    pub(super) fn finish(self) -> Option<Result<(TrackDescription, LduIndex), BadStream>> {
        let kept = self.kept?;
        let mut description = kept.description.clone();
        kept.complete(false, &mut description);
        let KeptTrack { mut index, latm, scanner, .. } = kept;
        if let Some(map) = scanner.and_then(|scanner| scanner.finish(&index)) {
            index.set_subsamples(map);
        }
        index.end();
        match latm.filter(|latm| !latm.is_live()) {
            Some(latm) => Some(latm.finish(&index, description)),
            None => Some(Ok((description, index))),
        }
    }
}

impl KeptTrack {
    /// Completes a description of the track by what has come of it so far.
    fn complete(&self, of_one_form: bool, description: &mut TrackDescription) {
        description.channels = self.description.channels;
        if let Some(scanner) = &self.scanner {
            scanner.describe(of_one_form, description);
        }
    }

    /// The LDUs that are known to be of the form of the first one.
    fn of_one_form(&self) -> usize {
        let changed = self.scanner.as_ref().and_then(SubsampleScanner::changed);
        let pictures = changed.map_or(usize::MAX, |changed| changed.ldu);
        self.watch.as_ref().map_or(pictures, |watch| pictures.min(watch.certain()))
    }

    /// Where its LDUs have another form for the first time.
    fn new_form(&self) -> Option<NewForm> {
        let of_pictures = self.scanner.as_ref().and_then(SubsampleScanner::changed);
        let of_pictures = of_pictures.map(|changed| {
            let [before, after] =
                [changed.before, changed.after].map(|format| format!("pictures of {format}"));
            NewForm { ldu: changed.ldu, before, after }
        });
        of_pictures.or_else(|| self.watch.as_ref()?.changed().cloned())
    }

    /// What changes in its middle, in words.
    pub(super) fn changes(&self) -> Vec<String> {
        let number = self.number;
        let form = self.new_form().map(|NewForm { before, after, .. }| {
            format!("track {number} changes from {before} to {after}: not all players go on there")
        });
        let unrepeated = self.scanner.as_ref().map_or(0, |scanner| scanner.sets().unrepeated());
        let sets = (unrepeated > 0).then(|| {
            format!(
                "track {number} changes its parameter sets and does not repeat them at \
                 {unrepeated} of its key frames, with which no player can begin"
            )
        });
        let is_gradual = self.scanner.as_ref().is_some_and(SubsampleScanner::gradual_refresh);
        let gradual = is_gradual.then(|| {
            format!(
                "track {number} has key frames whose pictures are complete only after further \
                 ones (gradual refresh): it has no I-frames for winding"
            )
        });
        form.into_iter().chain(sets).chain(gradual).collect()
    }

    /// Makes LDUs of what has come of a track in LATM framing; returns their bytes.
    pub(super) fn take_units(&mut self) -> Vec<u8> {
        let latm = self.latm.as_mut();
        latm.map_or_else(Vec::new, |latm| latm.take_units(&mut self.index))
    }

    /// Whether it has LATM framing, and its LDUs are made as they come.
    pub(super) fn is_live_latm(&self) -> bool {
        self.latm.as_ref().is_some_and(LatmUnpacker::is_live)
    }
}

/// Parses the payload of the `moof` that starts at `start`; returns the runs in order of place.
pub(super) fn read(
    moof: &[u8],
    start: u64,
    tracks: &mut [TrackState],
) -> Result<VecDeque<Run>, BadStream> {
    let mut runs = Vec::new();
    // The place of a run whose `traf` has no data offset.
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

/// Sorts runs by place; then those of each track must be in order, and none may overlap.
fn in_order(mut runs: Vec<Run>, moof: u64) -> Result<VecDeque<Run>, BadStream> {
    // An empty run may have the place of another one, and there is nothing to pass on.
    runs.retain(|run| run.start < run.end);
    let decode_order: Vec<_> = runs.iter().map(|run| (run.track, run.start)).collect();
    runs.sort_by_key(|run| run.start);
    let overlap = runs.windows(2).any(|pair| pair[1].start < pair[0].end);
    let mut by_track = decode_order.clone();
    by_track.sort_unstable();
    let mut as_given = decode_order;
    // A stable sort keeps the order within each track as given; it must be the order by place.
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
                // The `tfhd`, which names the track, must come first.
                let (track, ..) = header.as_mut().ok_or(BadStream::Malformed("traf"))?;
                set_time(track, tfdt.base_media_decode_time)?;
            }
            b"trun" => {
                let trun = Trun::decode(whole).map_err(malformed("trun"))?;
                let (track, defaults, base) =
                    header.as_mut().ok_or(BadStream::Malformed("traf"))?;
                if let Some(offset) = trun.data_offset {
                    // The offset counts from the base of the `traf`, not from the end of the run
                    // before.
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

/// The track of a `tfhd`, its defaults, and the base of its data offsets.
fn open_track<'a>(
    tfhd: &Tfhd,
    moof: u64,
    data: &mut u64,
    tracks: &'a mut [TrackState],
) -> Result<(&'a mut TrackState, Defaults, u64), BadStream> {
    let id = tfhd.track_id;
    let found = tracks.iter_mut().find(|track| track.id == id);
    let track = found.ok_or(BadStream::UnknownTrack { track: id })?;
    if let Some(count) = tfhd.sample_description_index.filter(|&entry| entry != 1) {
        return Err(BadStream::SampleEntries { track: id, count });
    }
    // Without either form the base is the end of the data of the `traf` before (ISO/IEC 14496-12,
    // 8.8.7).
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

/// Sets the decode time of the next LDU: the last one lasts until then.
fn set_time(track: &mut TrackState, ticks: u64) -> Result<(), BadStream> {
    let id = track.id;
    let Some(kept) = track.kept.as_mut() else { return Ok(()) };
    let index = &mut kept.index;
    let before = &mut kept.before;
    // The usual case: no gap, and no guessed duration to correct.
    if ticks == *before + index.duration_ticks() {
        return Ok(());
    }
    // Without an LDU before there is no duration that could bridge the gap.
    let Some(last) = index.len().checked_sub(1).map(|last| index.get(last)) else {
        if !kept.is_later_part {
            return Err(BadStream::LateStart { track: id, ticks });
        }
        // The first LDU of a later part: the part begins when it does.
        *before = ticks;
        return Ok(());
    };
    let lasts = ticks
        .checked_sub(*before + last.decode_time)
        .ok_or(BadStream::TimesRunBack { track: id, ticks })?;
    let duration =
        u32::try_from(lasts).map_err(|_| BadStream::PauseTooLong { track: id, ticks })?;
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
    // Checked before the index grows: a `trun` that inherits everything names a million LDUs in a
    // few bytes.
    *room = room.checked_sub(count).ok_or(too_many(MAX_FRAGMENT_LDUS, "in one fragment"))?;
    // A title may have many fragments, so that the limit per fragment is not enough.
    let have = track.kept.as_ref().map_or(0, |kept| kept.index.len());
    if have + count > MAX_LDUS {
        return Err(too_many(MAX_LDUS, "in one track"));
    }
    let mut end = start;
    for entry in &trun.samples {
        let size = entry.size.unwrap_or(defaults.size);
        end = end.checked_add(u64::from(size)).ok_or(BadStream::Malformed("trun"))?;
        if let Some(kept) = &mut track.kept {
            let (times, droppable) = times(&entry, defaults)?;
            if let Some(latm) = kept.latm.as_mut().filter(|latm| latm.is_live()) {
                latm.announce_at(size, times)?;
                continue;
            }
            let PacketTimes { duration, composition_offset, sync } = times;
            kept.index.push(size, duration, composition_offset, sync, droppable);
            if let Some(latm) = &mut kept.latm {
                latm.announce(size)?;
            }
        }
    }
    Ok(Run { start, end, track: track.kept.as_ref().map(|kept| kept.number) })
}

/// What a fragment says of an LDU, and whether none is decoded from it.
fn times(entry: &TrunEntry, defaults: Defaults) -> Result<(PacketTimes, bool), BadStream> {
    let composition = i32::try_from(entry.cts.unwrap_or(0)).map_err(malformed("trun"))?;
    let flags = entry.flags.unwrap_or(defaults.flags);
    let times = PacketTimes {
        duration: entry.duration.unwrap_or(defaults.duration),
        composition_offset: composition,
        sync: flags & NON_SYNC == 0,
    };
    Ok((times, flags >> DEPENDED_ON_SHIFT & 3 == NOT_DEPENDED_ON))
}

/// The non-sync bit of sample flags, ISO/IEC 14496-12, 8.8.3.1.
const NON_SYNC: u32 = 1 << 16;
const DEPENDED_ON_SHIFT: u32 = 22;
const NOT_DEPENDED_ON: u32 = 2;

/// The largest number of LDUs in a fragment: FFmpeg makes fragments of a second, in which no codec
/// has a million.
const MAX_FRAGMENT_LDUS: usize = 1 << 20;
/// The largest number of LDUs in a track: 24 hours of 2.5 ms packets, 700 MB of index. Longer
/// material must be ingested as several titles.
const MAX_LDUS: usize = 1 << 25;
