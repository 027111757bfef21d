//! Reads fragmented MP4 or QuickTime as FFmpeg writes it to a pipe: a push parser without I/O that
//! keeps no payload.
//!
//! ```text
//! ftyp | moov | moof mdat | moof mdat | ... | mfra
//!        |      |    |
//!        |      |    +-- payload, passed on byte for byte as it arrives
//!        |      +------- the owner of each byte range; LDUs are appended to their index
//!        +-------------- tracks: description, edit list, defaults
//! ```
//!
//! It does not read files whose `moov` has samples, encrypted files, or fragments out of order:
//! with the options of `store` FFmpeg writes none of these. Tracks other than video and audio are
//! skipped. The input may be any bytes: every refusal has a reason, and memory is bounded by the
//! constants below and in `fragment`.

mod error;
mod form;
mod fragment;
mod header;
mod latm;
mod parts;

pub use error::{BadStream, FragmentError};
pub use latm::LatmTracks;

use crate::{IndexPart, LduIndex, TrackDescription};
use fragment::{KeptTrack, Run, TrackState};
use latm::{LatmUnpacker, MuxConfig};
use mp4_atom::FourCC;
use parts::PartCutter;
use std::collections::VecDeque;
use std::time::Duration;

/// Receives the output of a [`FragmentReader`].
pub trait FragmentSink {
    /// The error of the sink.
    type Error;

    /// Receives all tracks, once, before any payload.
    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), Self::Error>;

    /// Receives the next bytes of a track's data, in decode order, in pieces of any size.
    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Is told that the further bytes of a track are of the next part, all of whose tracks are
    /// described; only where the stream is [cut](FragmentReader::cut_into).
    fn cut(&mut self, track: usize, tracks: &[TrackDescription]) -> Result<(), Self::Error> {
        let _ = (track, tracks);
        Ok(())
    }
}

/// A push parser of a fragmented stream.
#[derive(Debug)]
pub struct FragmentReader {
    /// The number of bytes taken so far.
    at: u64,
    state: ParserState,
    tracks: Vec<TrackState>,
    /// The owners of the bytes of the next `mdat`s, in order of place.
    runs: VecDeque<Run>,
    /// The numbers of the tracks in LATM framing.
    latm: Vec<usize>,
    /// The forms of those of which the beginning of the stream has been read before.
    known: Vec<(usize, MuxConfig)>,
    /// What cuts the stream into parts.
    cutter: Option<PartCutter>,
    /// Whether a new form of pictures or sound is an error.
    ends_at_new_format: bool,
    /// Whether an error has occurred: nothing after it is valid.
    failed: bool,
}

/// The parser's state in the outermost list of boxes.
#[derive(Debug)]
enum ParserState {
    /// In a box header, of which these bytes have arrived.
    Header(Vec<u8>),
    /// In a box that is collected whole.
    Collect { kind: FourCC, start: u64, left: usize, payload: Vec<u8> },
    /// In a box that is skipped.
    Skip { left: u64 },
    /// In an `mdat`.
    Payload { left: u64 },
}

impl Default for FragmentReader {
    fn default() -> Self {
        Self::new()
    }
}

impl FragmentReader {
    /// A reader that expects the first byte of a stream.
    pub fn new() -> Self {
        let state = ParserState::Header(Vec::new());
        Self {
            at: 0,
            state,
            tracks: Vec::new(),
            runs: VecDeque::new(),
            latm: Vec::new(),
            known: Vec::new(),
            cutter: None,
            ends_at_new_format: false,
            failed: false,
        }
    }

    /// Cuts the stream into parts, each of which begins with a key frame: the first one after so
    /// much play-out time, or after a gap in the times.
    pub fn cut_into(self, length: Duration) -> Self {
        Self { cutter: Some(PartCutter::new(length)), ..self }
    }

    /// Ends with [`BadStream::NewFormat`] where pictures or sound change their form: one track has
    /// one header. [`FragmentReader::part`] has what is before.
    pub fn ending_at_new_format(self) -> Self {
        Self { ends_at_new_format: true, ..self }
    }

    /// Makes AAC of the tracks with these numbers, which are AAC in LATM framing: a packet's access
    /// units become LDUs, and its configuration the sample entry. The numbers count video and audio
    /// tracks from zero.
    pub fn unpacking_latm(self, tracks: Vec<usize>) -> Self {
        Self { latm: tracks, ..self }
    }

    /// What has come of the tracks in LATM framing, if each has told its form.
    pub fn latm_tracks(&self) -> Result<LatmTracks, BadStream> {
        let kept = self.tracks.iter().filter_map(|track| track.kept.as_ref());
        let in_latm = kept.filter_map(|kept| Some((kept.number, kept.latm.as_ref()?)));
        let known = in_latm
            .map(|(number, latm)| Ok((number, latm.config().ok_or(latm::NO_CONFIG)?.clone())));
        Ok(LatmTracks(known.collect::<Result<_, BadStream>>()?))
    }

    /// Makes AAC of tracks in LATM framing, as [`FragmentReader::unpacking_latm`], whose LDUs are
    /// known as they come: of a stream of which the beginning has been read before.
    pub fn unpacking_known_latm(self, tracks: LatmTracks) -> Self {
        let known = tracks.0;
        Self { latm: known.iter().map(|(number, _)| *number).collect(), known, ..self }
    }

    /// The number of packets that could not be read and are left out; they extend the LDU before
    /// them.
    pub fn unreadable(&self) -> u64 {
        let kept = self.tracks.iter().filter_map(|track| track.kept.as_ref());
        kept.filter_map(|kept| kept.latm.as_ref()).map(|latm| latm.unreadable).sum()
    }

    /// What changes in the middle of tracks so that not every player goes on there, in words for
    /// the user.
    pub fn changes(&self) -> Vec<String> {
        let kept = self.tracks.iter().filter_map(|track| track.kept.as_ref());
        kept.flat_map(KeptTrack::changes).collect()
    }

    /// Completes what the sink was told of a track by what has come of it so far: parameter sets
    /// that its header lacks, and gradual refresh; where it ends at another form, by what is before
    /// that. Where the stream is cut, what was before a part
    /// counts for it, too, because its pictures may refer to sets that came there.
    pub fn complete(&self, track: usize, description: &mut TrackDescription) {
        let of_one_form = self.ends_at_new_format;
        self.tracks.iter().for_each(|state| state.complete(track, of_one_form, description));
    }

    /// What a track has had in the present part since its LDU `from`: the LDUs of which all bytes
    /// are among the first `arrived` of its data there. Nothing of a track in LATM framing whose
    /// LDUs are known at the end.
    pub fn part(&self, track: usize, from: usize, arrived: u64) -> IndexPart {
        self.part_of(false, track, from, arrived)
    }

    /// What [`FragmentReader::part`] is of the part behind the present one.
    pub fn next_part(&self, track: usize, from: usize, arrived: u64) -> IndexPart {
        self.part_of(true, track, from, arrived)
    }

    fn part_of(&self, is_next: bool, track: usize, from: usize, arrived: u64) -> IndexPart {
        let cutter = self.cutter.as_ref();
        let mut tracks = self.tracks.iter();
        let found = tracks.find_map(|state| state.part(track, is_next, from, arrived, cutter));
        let is_known = self.known.iter().any(|(number, _)| *number == track);
        found.filter(|_| is_known || !self.latm.contains(&track)).unwrap_or_default()
    }

    /// Whether the present part is whole: all tracks have come by its end.
    pub fn has_whole_part(&self) -> bool {
        let mut kept = self.tracks.iter().filter_map(|track| track.kept.as_ref()).peekable();
        kept.peek().is_some() && kept.all(|kept| kept.cut.is_some_and(|cut| cut.is_told))
    }

    /// Forgets the present part, which is whole, and makes the next one the present one.
    pub fn forget_part(&mut self) {
        assert!(self.has_whole_part(), "tracks would lose LDUs");
        if let Some(cutter) = &mut self.cutter {
            cutter.go_on(&mut self.tracks);
            cutter.find(&mut self.tracks);
        }
    }

    /// [`FragmentReader::push`] up to the end of the present part, if that is among the bytes:
    /// takes what it has read from `bytes`.
    pub fn push_part<S: FragmentSink>(
        &mut self,
        bytes: &mut &[u8],
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        if self.failed {
            return Err(BadStream::AfterError.into());
        }
        // A cut in what is known already.
        let mut result = self.tell_cuts(sink);
        while !bytes.is_empty() && result.is_ok() && !self.has_whole_part() {
            result = self.step(bytes, sink);
        }
        // State and position are unknown after an error, so that no byte may be taken any more.
        self.failed = result.is_err();
        result
    }

    /// Takes the next bytes of the stream, in pieces of any size. After an error the reader is
    /// unusable, and every further push fails.
    pub fn push<S: FragmentSink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        let mut rest = bytes;
        loop {
            self.push_part(&mut rest, sink)?;
            if rest.is_empty() {
                return Ok(());
            }
            self.forget_part();
        }
    }

    /// Ends the stream and returns final descriptions and indexes. Fails if the stream ended inside
    /// a box; a stream cut between two fragments looks complete, so that its writer must be asked
    /// how it ended.
    pub fn finish<S: FragmentSink>(
        self,
        _sink: &mut S,
    ) -> Result<Vec<(TrackDescription, LduIndex)>, FragmentError<S::Error>> {
        if self.failed {
            return Err(BadStream::AfterError.into());
        }
        let between = match &self.state {
            ParserState::Header(bytes) => bytes.is_empty(),
            // Some writers leave the size of the last box open; only its payload matters.
            ParserState::Payload { left } => *left == 0 || *left > MAX_SANE_PAYLOAD,
            _ => false,
        };
        if !between || !self.runs.is_empty() {
            return Err(BadStream::CutShort { at: self.at }.into());
        }
        if self.tracks.is_empty() {
            return Err(BadStream::NoHeader.into());
        }
        let finished = self.tracks.into_iter().filter_map(TrackState::finish);
        Ok(finished.collect::<Result<_, BadStream>>()?)
    }

    /// Parses at least one byte of `rest`.
    fn step<S: FragmentSink>(
        &mut self,
        rest: &mut &[u8],
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        match &mut self.state {
            ParserState::Header(have) => {
                let header = take(rest, header_missing(have), &mut self.at);
                have.extend_from_slice(header);
                if header_missing(have) == 0 {
                    let have = std::mem::take(have);
                    // A box without payload is complete with its header, hence the check right
                    // after.
                    self.state = self.open_box(&have)?;
                    self.close_if_done(sink)?;
                }
                Ok(())
            }
            ParserState::Collect { left, payload, .. } => {
                let bytes = take(rest, *left, &mut self.at);
                *left -= bytes.len();
                payload.extend_from_slice(bytes);
                self.close_if_done(sink)
            }
            ParserState::Skip { left } => {
                let bytes = take(rest, usize::try_from(*left).unwrap_or(usize::MAX), &mut self.at);
                *left -= bytes.len() as u64;
                self.close_if_done(sink)
            }
            ParserState::Payload { left } => {
                let start = self.at;
                let bytes = take(rest, usize::try_from(*left).unwrap_or(usize::MAX), &mut self.at);
                *left -= bytes.len() as u64;
                self.deliver(start, bytes, sink)?;
                self.close_if_done(sink)
            }
        }
    }

    /// The state for a box with this header.
    fn open_box(&self, header: &[u8]) -> Result<ParserState, BadStream> {
        let start = self.at - header.len() as u64;
        let short = u32::from_be_bytes(header[..4].try_into().expect("a whole header"));
        let kind = FourCC::from(*header[4..].first_chunk::<4>().expect("a whole header"));
        let size = match (short, header[8..].first_chunk()) {
            (1, Some(size)) => u64::from_be_bytes(*size),
            // Size zero: up to the end of the stream. It is accepted only for payload, which is not
            // held.
            (0, _) if kind == MDAT => u64::MAX,
            _ => u64::from(short),
        };
        let payload = size.checked_sub(header.len() as u64);
        let left = payload.ok_or(BadStream::BoxSize { kind, at: start, size })?;
        if start == 0 && kind != FTYP {
            return Err(BadStream::NotFragmented);
        }
        // Only boxes that are parsed are held in memory; all others pass through.
        let limit = match kind {
            MDAT => return Ok(ParserState::Payload { left }),
            MOOV => MAX_MOOV,
            MOOF => MAX_MOOF,
            _ => return Ok(ParserState::Skip { left }),
        };
        let held = usize::try_from(left).ok().filter(|&left| left <= limit);
        let left = held.ok_or(BadStream::BoxTooLarge { kind, at: start, size, limit })?;
        // The declared size is not reserved: its bytes may never arrive.
        Ok(ParserState::Collect { kind, start, left, payload: Vec::new() })
    }

    /// Handles the current box if it is complete.
    fn close_if_done<S: FragmentSink>(
        &mut self,
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        let done = match &self.state {
            ParserState::Header(_) => false,
            ParserState::Collect { left, .. } => *left == 0,
            ParserState::Skip { left } | ParserState::Payload { left } => *left == 0,
        };
        if !done {
            return Ok(());
        }
        let state = std::mem::replace(&mut self.state, ParserState::Header(Vec::new()));
        let ParserState::Collect { kind, start, payload, .. } = state else { return Ok(()) };
        // A `moov` or a `moof`: only these two are collected.
        if kind == MOOF {
            if self.tracks.is_empty() {
                return Err(BadStream::NoHeader.into());
            }
            if !self.runs.is_empty() {
                return Err(BadStream::PayloadMissing { at: start }.into());
            }
            self.runs = fragment::read(&payload, start, &mut self.tracks)?;
            if let Some(cutter) = &mut self.cutter {
                cutter.find(&mut self.tracks);
            }
            return self.tell_cuts(sink);
        }
        if !self.tracks.is_empty() {
            return Err(BadStream::SecondHeader { at: start }.into());
        }
        self.tracks = header::read(&payload, &self.latm)?;
        for kept in self.tracks.iter_mut().filter_map(|track| track.kept.as_mut()) {
            if let Some((_, config)) = self.known.iter().find(|(number, _)| *number == kept.number)
            {
                config.describe(&mut kept.description);
                kept.latm = Some(LatmUnpacker::live(config.clone()));
            }
        }
        let kept: Vec<_> = self.tracks.iter().filter_map(TrackState::description).collect();
        sink.tracks(&kept).map_err(FragmentError::Sink)
    }

    /// Passes the bytes of an `mdat` at `start` to the sink, as far as they belong to kept tracks.
    fn deliver<S: FragmentSink>(
        &mut self,
        mut start: u64,
        mut bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        while let Some(run) = self.runs.front_mut() {
            // The stream is already past the run's place.
            if run.start < start {
                return Err(BadStream::PayloadMissing { at: run.start }.into());
            }
            let gap = usize::try_from(run.start - start).unwrap_or(usize::MAX);
            // Bytes in the gap belong to no run and are dropped.
            let Some(here) = bytes.get(gap..).filter(|here| !here.is_empty()) else { break };
            let mut count =
                usize::try_from(run.end - run.start).unwrap_or(usize::MAX).min(here.len());
            if let Some(track) = run.track {
                let mut kept = self.tracks.iter_mut().filter_map(|state| state.kept.as_mut());
                if let Some(kept) = kept.find(|kept| kept.number == track && !kept.is_live_latm()) {
                    if let Some(cut) = kept.cut.filter(|cut| !cut.is_told) {
                        let before = cut.bytes.saturating_sub(kept.passed);
                        count = count.min(usize::try_from(before).unwrap_or(usize::MAX));
                    }
                    kept.passed += count as u64;
                }
                self.tracks.iter_mut().for_each(|state| state.scan(track, &here[..count]));
                let mut emit =
                    |bytes: &[u8]| sink.payload(track, bytes).map_err(FragmentError::Sink);
                match self.tracks.iter_mut().find_map(|state| state.latm_of(track)) {
                    Some(latm) => latm.push(&here[..count], &mut emit)?,
                    None => emit(&here[..count])?,
                }
                if self.ends_at_new_format
                    && let Some(error) = self.tracks.iter().find_map(TrackState::new_format)
                {
                    return Err(error.into());
                }
            }
            run.start += count as u64;
            start += (gap + count) as u64;
            bytes = &here[count..];
            if run.start == run.end {
                let ended = run.track;
                self.runs.pop_front();
                if let Some(track) = ended {
                    self.pass_units(track, sink)?;
                }
            }
            self.tell_cuts(sink)?;
        }
        Ok(())
    }

    /// Passes on what has come of a track in LATM framing whose LDUs are made as they come. They
    /// are in the index first, because a part may begin with one of them.
    fn pass_units<S: FragmentSink>(
        &mut self,
        track: usize,
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        let is_it = |kept: &&mut KeptTrack| kept.number == track && kept.is_live_latm();
        let mut all = self.tracks.iter_mut().filter_map(|state| state.kept.as_mut());
        let Some(kept) = all.find(is_it) else { return Ok(()) };
        let bytes = kept.take_units();
        if let Some(cutter) = &mut self.cutter {
            cutter.find(&mut self.tracks);
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let mut all = self.tracks.iter_mut().filter_map(|state| state.kept.as_mut());
            let kept = all.find(is_it).expect("found before");
            let before = match kept.cut.filter(|cut| !cut.is_told) {
                Some(cut) => usize::try_from(cut.bytes.saturating_sub(kept.passed)),
                None => Ok(rest.len()),
            };
            let (now, later) = rest.split_at(before.unwrap_or(usize::MAX).min(rest.len()));
            kept.passed += now.len() as u64;
            sink.payload(track, now).map_err(FragmentError::Sink)?;
            rest = later;
            self.tell_cuts(sink)?;
        }
        Ok(())
    }

    /// Tells the sink of the cuts that tracks have come to.
    fn tell_cuts<S: FragmentSink>(&mut self, sink: &mut S) -> Result<(), FragmentError<S::Error>> {
        let Some(cutter) = &self.cutter else { return Ok(()) };
        for kept in self.tracks.iter_mut().filter_map(|track| track.kept.as_mut()) {
            let Some(cut) = kept.cut.as_mut().filter(|cut| !cut.is_told) else { continue };
            if kept.passed == cut.bytes {
                cut.is_told = true;
                sink.cut(kept.number, cutter.next_tracks()).map_err(FragmentError::Sink)?;
            }
        }
        Ok(())
    }
}

/// Takes up to `count` bytes from the front of `rest`.
fn take<'a>(rest: &mut &'a [u8], count: usize, at: &mut u64) -> &'a [u8] {
    let (front, back) = rest.split_at(count.min(rest.len()));
    *rest = back;
    *at += front.len() as u64;
    front
}

/// The number of bytes that a box header lacks: it has 8, or 16 with a large size.
fn header_missing(have: &[u8]) -> usize {
    let large = have.len() >= 8 && have[..4] == [0, 0, 0, 1];
    (if large { 16 } else { 8 }) - have.len()
}

const FTYP: FourCC = FourCC::new(b"ftyp");
const MOOV: FourCC = FourCC::new(b"moov");
const MOOF: FourCC = FourCC::new(b"moof");
const MDAT: FourCC = FourCC::new(b"mdat");

/// The largest `moov`: without samples it has a few KiB per track; cover pictures in the metadata
/// make up the rest.
const MAX_MOOV: usize = 16 << 20;
/// The largest `moof`: with 16 bytes per LDU a million LDUs; FFmpeg makes fragments of a second.
const MAX_MOOF: usize = 16 << 20;
/// The largest `mdat` with a known end; a longer one runs to the end of the stream.
const MAX_SANE_PAYLOAD: u64 = 1 << 62;
