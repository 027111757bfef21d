//! Reads fragmented MP4 or QuickTime as FFmpeg writes it on a pipe: a push parser that owns no
//! stream and keeps no payload.
//!
//! ```text
//! ftyp | moov | moof mdat | moof mdat | ... | mfra
//!        |      |    |
//!        |      |    +-- payload, passed on byte for byte as it comes
//!        |      +------- which bytes of it belong to which track; LDUs join their index
//!        +-------------- tracks: description, edit list, defaults
//! ```
//!
//! It does not read files whose `moov` has samples, encrypted ones, or fragments out of order:
//! FFmpeg writes none of these when asked as `store` asks it. Tracks that are neither pictures
//! nor sound are passed over. Bytes may be anything: every refusal is named, and memory is
//! bounded by the constants at the bottom and in `fragment`.

mod error;
mod fragment;
mod header;

pub use error::{BadStream, FragmentError};

use crate::{LduIndex, TrackDescription};
use fragment::{Run, TrackState};
use mp4_atom::FourCC;
use std::collections::VecDeque;

/// Takes what a [`FragmentReader`] finds.
pub trait FragmentSink {
    /// What can go wrong in taking it.
    type Error;

    /// All tracks, once, before any payload.
    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), Self::Error>;

    /// The next bytes of a track's data, in decode order, in pieces of any size.
    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// The push parser.
#[derive(Debug)]
pub struct FragmentReader {
    /// Bytes of the stream taken so far.
    at: u64,
    state: State,
    tracks: Vec<TrackState>,
    /// What of the `mdat`s to come belongs to whom, in order of place.
    runs: VecDeque<Run>,
    /// Set by the first error: nothing after it can be believed.
    failed: bool,
}

/// Where in the stream's outermost list of boxes the next byte lies.
#[derive(Debug)]
enum State {
    /// In a box header, of which these bytes came.
    Header(Vec<u8>),
    /// In a box that is read whole.
    Collect { kind: FourCC, start: u64, left: usize, payload: Vec<u8> },
    /// In a box of no interest.
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
    /// Ready for the first byte.
    pub fn new() -> Self {
        let state = State::Header(Vec::new());
        Self { at: 0, state, tracks: Vec::new(), runs: VecDeque::new(), failed: false }
    }

    /// Takes the next bytes of the stream, in pieces of any size. After an error the reader is
    /// of no use; pushing more repeats that it failed.
    pub fn push<S: FragmentSink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        if self.failed {
            return Err(BadStream::AfterError.into());
        }
        let mut rest = bytes;
        let mut result = Ok(());
        while !rest.is_empty() && result.is_ok() {
            result = self.step(&mut rest, sink);
        }
        self.failed = result.is_err();
        result
    }

    /// The stream has ended: final descriptions and indexes. An error if it ended inside a box; a
    /// stream cut between two fragments looks whole, so ask its writer how it ended.
    pub fn finish<S: FragmentSink>(
        self,
        _sink: &mut S,
    ) -> Result<Vec<(TrackDescription, LduIndex)>, FragmentError<S::Error>> {
        if self.failed {
            return Err(BadStream::AfterError.into());
        }
        let between = match &self.state {
            State::Header(bytes) => bytes.is_empty(),
            // Some writers leave the last box open; what matters is that its payload came.
            State::Payload { left } => *left == 0 || *left > MAX_SANE_PAYLOAD,
            _ => false,
        };
        if !between || !self.runs.is_empty() {
            return Err(BadStream::CutShort { at: self.at }.into());
        }
        if self.tracks.is_empty() {
            return Err(BadStream::NoHeader.into());
        }
        Ok(self.tracks.into_iter().filter_map(TrackState::finish).collect())
    }

    /// Takes at least one byte of `rest`.
    fn step<S: FragmentSink>(
        &mut self,
        rest: &mut &[u8],
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        match &mut self.state {
            State::Header(have) => {
                let header = take(rest, header_missing(have), &mut self.at);
                have.extend_from_slice(header);
                if header_missing(have) == 0 {
                    let have = std::mem::take(have);
                    self.state = self.open_box(&have)?;
                    self.close_if_done(sink)?;
                }
                Ok(())
            }
            State::Collect { left, payload, .. } => {
                let bytes = take(rest, *left, &mut self.at);
                *left -= bytes.len();
                payload.extend_from_slice(bytes);
                self.close_if_done(sink)
            }
            State::Skip { left } => {
                let bytes = take(rest, usize::try_from(*left).unwrap_or(usize::MAX), &mut self.at);
                *left -= bytes.len() as u64;
                self.close_if_done(sink)
            }
            State::Payload { left } => {
                let start = self.at;
                let bytes = take(rest, usize::try_from(*left).unwrap_or(usize::MAX), &mut self.at);
                *left -= bytes.len() as u64;
                self.deliver(start, bytes, sink)?;
                self.close_if_done(sink)
            }
        }
    }

    /// What to do with the box whose header this is.
    fn open_box(&self, header: &[u8]) -> Result<State, BadStream> {
        let start = self.at - header.len() as u64;
        let short = u32::from_be_bytes(header[..4].try_into().expect("a whole header"));
        let kind = FourCC::from(*header[4..].first_chunk::<4>().expect("a whole header"));
        let size = match (short, header[8..].first_chunk()) {
            (1, Some(size)) => u64::from_be_bytes(*size),
            (0, _) if kind == MDAT => u64::MAX,
            _ => u64::from(short),
        };
        let left = size.checked_sub(header.len() as u64);
        let left = left.ok_or(BadStream::BoxSize { kind, at: start, size })?;
        if start == 0 && kind != FTYP {
            return Err(BadStream::NotFragmented);
        }
        let limit = match kind {
            MDAT => return Ok(State::Payload { left }),
            MOOV => MAX_MOOV,
            MOOF => MAX_MOOF,
            _ => return Ok(State::Skip { left }),
        };
        let left = usize::try_from(left).ok().filter(|&left| left <= limit);
        let left = left.ok_or(BadStream::BoxTooLarge { kind, at: start, size, limit })?;
        Ok(State::Collect { kind, start, left, payload: Vec::new() })
    }

    /// Acts on the current box if all of it has come.
    fn close_if_done<S: FragmentSink>(
        &mut self,
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        let done = match &self.state {
            State::Header(_) => false,
            State::Collect { left, .. } => *left == 0,
            State::Skip { left } | State::Payload { left } => *left == 0,
        };
        if !done {
            return Ok(());
        }
        let state = std::mem::replace(&mut self.state, State::Header(Vec::new()));
        let State::Collect { kind, start, payload, .. } = state else { return Ok(()) };
        if kind == MOOF {
            if self.tracks.is_empty() {
                return Err(BadStream::NoHeader.into());
            }
            if !self.runs.is_empty() {
                return Err(BadStream::PayloadMissing { at: start }.into());
            }
            self.runs = fragment::read(&payload, start, &mut self.tracks)?;
            return Ok(());
        }
        if !self.tracks.is_empty() {
            return Err(BadStream::SecondHeader { at: start }.into());
        }
        self.tracks = header::read(&payload)?;
        let kept: Vec<_> = self.tracks.iter().filter_map(TrackState::description).collect();
        sink.tracks(&kept).map_err(FragmentError::Sink)
    }

    /// Passes on what of an `mdat`'s bytes, which lie at `start`, belongs to tracks.
    fn deliver<S: FragmentSink>(
        &mut self,
        mut start: u64,
        mut bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), FragmentError<S::Error>> {
        while let Some(run) = self.runs.front_mut() {
            if run.start < start {
                return Err(BadStream::PayloadMissing { at: run.start }.into());
            }
            let gap = usize::try_from(run.start - start).unwrap_or(usize::MAX);
            let Some(here) = bytes.get(gap..).filter(|here| !here.is_empty()) else { break };
            let count = usize::try_from(run.end - run.start).unwrap_or(usize::MAX).min(here.len());
            if let Some(track) = run.track {
                sink.payload(track, &here[..count]).map_err(FragmentError::Sink)?;
            }
            run.start += count as u64;
            start += (gap + count) as u64;
            bytes = &here[count..];
            if run.start == run.end {
                self.runs.pop_front();
            }
        }
        Ok(())
    }
}

/// Up to `count` bytes off the front of `rest`.
fn take<'a>(rest: &mut &'a [u8], count: usize, at: &mut u64) -> &'a [u8] {
    let (front, back) = rest.split_at(count.min(rest.len()));
    *rest = back;
    *at += front.len() as u64;
    front
}

/// Bytes that a box header still lacks: 8 in all, or 16 with a large size.
fn header_missing(have: &[u8]) -> usize {
    let large = have.len() >= 8 && have[..4] == [0, 0, 0, 1];
    (if large { 16 } else { 8 }) - have.len()
}

const FTYP: FourCC = FourCC::new(b"ftyp");
const MOOV: FourCC = FourCC::new(b"moov");
const MOOF: FourCC = FourCC::new(b"moof");
const MDAT: FourCC = FourCC::new(b"mdat");

/// A `moov` without samples has a few KiB per track; cover pictures among the metadata make the
/// rest.
const MAX_MOOV: usize = 16 << 20;
/// At 16 bytes an LDU a million LDUs in one fragment; FFmpeg is asked for fragments of a second.
const MAX_MOOF: usize = 16 << 20;
/// An `mdat` that says it is longer runs to the end of the stream.
const MAX_SANE_PAYLOAD: u64 = 1 << 62;
