//! AAC in LATM framing (ISO/IEC 14496-3, 1.7), as broadcasters send it: its access units and its
//! configuration, from which an ordinary AAC track is made.
//!
//! ```text
//! AudioSyncStream    0x2b7 11 bits | length 13 | AudioMuxElement
//! AudioMuxElement    same configuration? 1 | StreamMuxConfig, if not
//!                    per sub-frame: length in bytes (255 + 255 + ... + n) | access unit
//! StreamMuxConfig    version 1 | ... | sub-frames 6 | programs 4 | layers 3 | AudioSpecificConfig
//!                    | frame length type 3 | buffer fullness 8 | other data | checksum
//! ```
//! Access units need not begin at a byte. One program with one layer is read, and frames of
//! variable length: broadcasters use no others.

use super::error::BadStream;
use crate::boxes::write_box;
use crate::codec::{AAC_RATES, Bits, SampleEntry};
use crate::title::Edit;
use crate::{LduIndex, TrackDescription};
use std::collections::VecDeque;
use units::{MediaTime, Timescale};

/// Takes the LATM packets of a track and passes on their access units.
#[derive(Debug, Default)]
pub(super) struct LatmUnpacker {
    /// The lengths of packets that are announced and not complete.
    announced: VecDeque<u32>,
    /// The bytes of the first of them that have arrived.
    packet: Vec<u8>,
    config: Option<MuxConfig>,
    /// The packets before the first configuration, which is repeated in the stream and is theirs,
    /// too.
    unconfigured: Vec<Vec<u8>>,
    /// The number of access units in each packet.
    counts: Vec<u8>,
    /// The lengths of all access units.
    sizes: Vec<u32>,
    /// The number of packets that could not be read.
    pub(super) unreadable: u64,
    /// What is LDUs as it comes; `None`: they are made at the end.
    live: Option<LiveUnits>,
}

/// What the beginning of a stream tells of its tracks in LATM framing: enough to describe them
/// before the rest has come.
#[derive(Clone, Debug, Default)]
pub struct LatmTracks(pub(super) Vec<(usize, MuxConfig)>);

/// The access units of a track whose LDUs are known as they come.
#[derive(Debug, Default)]
struct LiveUnits {
    /// The times of the packets that are announced and not read.
    packets: VecDeque<PacketTimes>,
    /// The lengths and times of the units that were read and are no LDUs yet; no length: a packet
    /// without one.
    units: Vec<(Option<u32>, PacketTimes)>,
    bytes: Vec<u8>,
    /// The ticks of packets without a unit, in front of all units.
    owed: u32,
}

/// What a fragment says of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketTimes {
    pub(super) duration: u32,
    pub(super) composition_offset: i32,
    pub(super) sync: bool,
}

/// The part of a `StreamMuxConfig` that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MuxConfig {
    /// The `AudioSpecificConfig`.
    audio: AudioConfig,
    sub_frames: usize,
}

/// An `AudioSpecificConfig` and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AudioConfig {
    bytes: Vec<u8>,
    sample_rate: u32,
}

/// The reason why a packet cannot be read.
enum Unreadable {
    /// The packet is damaged.
    Damaged,
    /// The packet needs a configuration, and none came before it.
    Unconfigured,
    /// The packet has a form that is not supported.
    Unsupported(&'static str),
}

impl MuxConfig {
    /// Describes a track as that of the access units.
    pub(super) fn describe(&self, description: &mut TrackDescription) {
        let sample_entry = sample_entry(&self.audio);
        let read = SampleEntry(&sample_entry);
        description.codec = read.codec();
        description.channels = read.channels().unwrap_or(description.channels);
        description.sample_rate = self.audio.sample_rate;
        description.sample_entry = sample_entry;
    }
}

impl LatmUnpacker {
    /// An unpacker of a track whose configuration is known, and whose LDUs are made as they come.
    pub(super) fn live(config: MuxConfig) -> Self {
        Self { config: Some(config), live: Some(LiveUnits::default()), ..Self::default() }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// The configuration, if one has come.
    pub(super) fn config(&self) -> Option<&MuxConfig> {
        self.config.as_ref()
    }

    /// Announces the next packet of a track whose LDUs are made as they come.
    pub(super) fn announce_at(&mut self, size: u32, times: PacketTimes) -> Result<(), BadStream> {
        self.live.as_mut().expect("asked before").packets.push_back(times);
        self.announce(size)
    }

    /// Appends the units that have been read to the index; returns their bytes.
    pub(super) fn take_units(&mut self, index: &mut LduIndex) -> Vec<u8> {
        let Some(live) = &mut self.live else { return Vec::new() };
        for (size, times) in live.units.drain(..) {
            match size {
                Some(size) => {
                    let duration = times.duration.saturating_add(std::mem::take(&mut live.owed));
                    index.push(size, duration, times.composition_offset, times.sync, false);
                }
                None if index.is_empty() => live.owed = live.owed.saturating_add(times.duration),
                None => {
                    let last = index.get(index.len() - 1).duration;
                    index.set_last_duration(last.saturating_add(times.duration));
                }
            }
        }
        std::mem::take(&mut live.bytes)
    }

    /// Announces the next packet.
    pub(super) fn announce(&mut self, size: u32) -> Result<(), BadStream> {
        if size > MAX_PACKET {
            return Err(BadStream::Latm("a packet is longer than LATM allows"));
        }
        self.announced.push_back(size);
        // A packet without bytes is complete at once, if none before it is under way.
        if size == 0 && self.announced.len() == 1 {
            self.take_packets(&mut |_| Ok::<(), BadStream>(()))?;
        }
        Ok(())
    }

    /// Takes the next bytes of announced packets.
    pub(super) fn push<E: From<BadStream>>(
        &mut self,
        mut bytes: &[u8],
        emit: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(&size) = self.announced.front() {
            let missing = (size as usize - self.packet.len()).min(bytes.len());
            self.packet.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.packet.len() < size as usize {
                break;
            }
            self.take_packets(emit)?;
        }
        Ok(())
    }

    /// Reads the first packet, which is complete, and empty ones after it.
    fn take_packets<E: From<BadStream>>(
        &mut self,
        emit: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            self.announced.pop_front();
            let packet = std::mem::take(&mut self.packet);
            let read = read_packet(&packet, &mut self.config);
            let unsupported = matches!(read, Err(Unreadable::Unsupported(_)));
            if self.config.is_none() && !unsupported {
                self.unconfigured.push(packet);
                if self.unconfigured.len() > MAX_UNCONFIGURED {
                    return Err(BadStream::Latm("its configuration comes too late").into());
                }
            } else {
                for packet in std::mem::take(&mut self.unconfigured) {
                    let read = read_packet(&packet, &mut self.config);
                    self.pass_on(read, emit)?;
                }
                self.pass_on(read, emit)?;
            }
            if self.announced.front() != Some(&0) {
                return Ok(());
            }
        }
    }

    /// Passes on the access units of the next packet.
    fn pass_on<E: From<BadStream>>(
        &mut self,
        read: Result<Vec<Vec<u8>>, Unreadable>,
        emit: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let units = match read {
            Ok(units) => units,
            Err(Unreadable::Unsupported(what)) => return Err(BadStream::Latm(what).into()),
            Err(Unreadable::Damaged | Unreadable::Unconfigured) => {
                self.unreadable += 1;
                Vec::new()
            }
        };
        if let Some(live) = &mut self.live {
            let times = live.packets.pop_front().expect("announced with its times");
            let count = u32::try_from(units.len()).expect("at most 64 a packet");
            if count == 0 {
                live.units.push((None, times));
            }
            for (number, unit) in (1..).zip(&units) {
                let rest = if number == count { times.duration % count } else { 0 };
                let times = PacketTimes { duration: times.duration / count + rest, ..times };
                let size = u32::try_from(unit.len()).expect("shorter than its packet");
                live.units.push((Some(size), times));
                live.bytes.extend_from_slice(unit);
            }
            return Ok(());
        }
        self.counts.push(u8::try_from(units.len()).expect("at most 64 a packet"));
        for unit in &units {
            self.sizes.push(u32::try_from(unit.len()).expect("shorter than its packet"));
            emit(unit)?;
        }
        Ok(())
    }

    /// The index of the access units. A packet without one lengthens the unit before it; those
    /// before the first unit are returned as ticks.
    fn index(&self, packets: &LduIndex) -> (LduIndex, u64) {
        let (mut index, mut wait) = (LduIndex::default(), 0);
        let mut sizes = self.sizes.iter();
        for (packet, &count) in packets.iter().zip(&self.counts) {
            let count = u32::from(count);
            if count == 0 && index.is_empty() {
                wait += u64::from(packet.duration);
            } else if count == 0 {
                let last = index.get(index.len() - 1).duration;
                index.set_last_duration(last.saturating_add(packet.duration));
            }
            for (number, size) in (0..count).zip(sizes.by_ref()) {
                let share = packet.duration / count;
                let rest = if number + 1 == count { packet.duration % count } else { 0 };
                index.push(*size, share + rest, packet.composition_offset, packet.sync, false);
            }
        }
        (index, wait)
    }

    /// Ends the track: its description and its index.
    pub(super) fn finish(
        &self,
        packets: &LduIndex,
        mut description: TrackDescription,
    ) -> Result<(TrackDescription, LduIndex), BadStream> {
        let config = self.config.as_ref().ok_or(NO_CONFIG)?;
        let (index, wait) = self.index(packets);
        if wait > 0 {
            let edits = std::mem::take(&mut description.edits);
            description.edits = delayed(edits, wait, description.timescale);
        }
        config.describe(&mut description);
        Ok((description, index))
    }
}

/// The edit list for a track whose first `wait` ticks are missing.
fn delayed(mut edits: Vec<Edit>, wait: u64, timescale: Timescale) -> Vec<Edit> {
    let ticks = i64::try_from(wait).unwrap_or(i64::MAX);
    if edits.iter().all(|edit| edit.media_time.is_none()) {
        edits.push(Edit { duration: None, media_time: Some(0) });
    }
    let Some(first) = edits.iter_mut().find(|edit| edit.media_time.is_some()) else { return edits };
    let media_time = first.media_time.unwrap_or(0);
    first.media_time = Some((media_time - ticks).max(0));
    // What the edit list skipped anyway is not waited for.
    let wait = MediaTime::from_ticks((ticks - media_time).max(0), timescale);
    if let Some(duration) = &mut first.duration {
        duration.0 = (duration.0 - wait.0).max(1);
    }
    match edits.first_mut() {
        Some(Edit { duration: Some(pause), media_time: None }) => pause.0 += wait.0,
        _ => edits.insert(0, Edit { duration: Some(wait), media_time: None }),
    }
    edits
}

/// A track of which no packet could be read.
pub(super) const NO_CONFIG: BadStream = BadStream::Latm("it has no configuration");

/// The access units of a packet, which may have several frames.
fn read_packet(
    mut packet: &[u8],
    config: &mut Option<MuxConfig>,
) -> Result<Vec<Vec<u8>>, Unreadable> {
    let mut units = Vec::new();
    while !packet.is_empty() {
        let mut bits = Bits::new(packet);
        let sync = bits.take(11).ok_or(Unreadable::Damaged)?;
        let length = bits.take(13).ok_or(Unreadable::Damaged)? as usize;
        let frame =
            packet.get(3..3 + length).filter(|_| sync == SYNC).ok_or(Unreadable::Damaged)?;
        units.extend(read_frame(frame, config)?);
        packet = &packet[3 + length..];
        if units.len() > MAX_UNITS {
            return Err(Unreadable::Unsupported("a packet has too many frames"));
        }
    }
    Ok(units)
}

/// The access units of an `AudioMuxElement`.
fn read_frame(frame: &[u8], config: &mut Option<MuxConfig>) -> Result<Vec<Vec<u8>>, Unreadable> {
    let mut bits = Bits::new(frame);
    if bits.take(1).ok_or(Unreadable::Damaged)? == 0 {
        let new = read_mux_config(&mut bits)?;
        if config.as_ref().is_some_and(|config| config.audio != new.audio) {
            return Err(Unreadable::Unsupported("its configuration changes"));
        }
        *config = Some(new);
    }
    let sub_frames = config.as_ref().ok_or(Unreadable::Unconfigured)?.sub_frames;
    let unit = |bits: &mut Bits<'_>| {
        let mut length = 0;
        loop {
            let part = bits.take(8)?;
            length += part;
            if part < 255 {
                break;
            }
        }
        (0..length).map(|_| u8::try_from(bits.take(8)?).ok()).collect::<Option<Vec<u8>>>()
    };
    (0..sub_frames).map(|_| unit(&mut bits).ok_or(Unreadable::Damaged)).collect()
}

/// Parses a `StreamMuxConfig`.
fn read_mux_config(bits: &mut Bits<'_>) -> Result<MuxConfig, Unreadable> {
    let take = |bits: &mut Bits<'_>, count| bits.take(count).ok_or(Unreadable::Damaged);
    let version = take(bits, 1)?;
    if version == 1 && take(bits, 1)? == 1 {
        // `audioMuxVersionA`: only zero is defined.
        return Err(Unreadable::Unsupported("its version is not known"));
    }
    if version == 1 {
        read_value(bits).ok_or(Unreadable::Damaged)?;
    }
    if take(bits, 1)? == 0 {
        // Without `allStreamsSameTimeFraming` the length of each sub-frame would be elsewhere.
        return Err(Unreadable::Unsupported("its streams differ in time"));
    }
    let sub_frames = take(bits, 6)? as usize + 1;
    let (programs, layers) = (take(bits, 4)? + 1, take(bits, 3)? + 1);
    if (programs, layers) != (1, 1) {
        return Err(Unreadable::Unsupported("it has several programs or layers"));
    }
    let length = match version {
        1 => Some(read_value(bits).ok_or(Unreadable::Damaged)? as usize),
        _ => None,
    };
    let audio = read_audio_config(bits, length)?;
    if take(bits, 3)? != 0 {
        return Err(Unreadable::Unsupported("its frames have a fixed length"));
    }
    // `latmBufferFullness`, then the length of other data: neither is needed.
    take(bits, 8)?;
    if take(bits, 1)? == 1 {
        if version == 1 {
            read_value(bits).ok_or(Unreadable::Damaged)?;
        } else {
            while take(bits, 9)? & 0x100 != 0 {}
        }
    }
    // A checksum of the configuration; the container has one of its own.
    if take(bits, 1)? == 1 {
        take(bits, 8)?;
    }
    Ok(MuxConfig { audio, sub_frames })
}

/// A number with its own length (`LatmGetValue`).
fn read_value(bits: &mut Bits<'_>) -> Option<u32> {
    let bytes = bits.take(2)? as usize + 1;
    bits.take(bytes * 8)
}

/// Reads an `AudioSpecificConfig` (1.6.2.1) of `length` bits, or of the length of its content.
fn read_audio_config(
    bits: &mut Bits<'_>,
    length: Option<usize>,
) -> Result<AudioConfig, Unreadable> {
    let start = bits.clone();
    let sample_rate = skip_audio_config(bits)?;
    let used = bits.at - start.at;
    let length = length.unwrap_or(used);
    if length < used || length > MAX_CONFIG_BITS {
        return Err(Unreadable::Damaged);
    }
    let mut copy = start;
    let mut bytes = Vec::new();
    for at in (0..length).step_by(8) {
        let count = (length - at).min(8);
        let byte = copy.take(count).ok_or(Unreadable::Damaged)? << (8 - count);
        bytes.push(u8::try_from(byte).expect("eight bits"));
    }
    *bits = copy;
    Ok(AudioConfig { bytes, sample_rate })
}

/// Skips the known content of an `AudioSpecificConfig`; its sampling rate.
fn skip_audio_config(bits: &mut Bits<'_>) -> Result<u32, Unreadable> {
    let start = bits.at;
    let damaged = || Unreadable::Damaged;
    let mut object_type = read_object_type(bits).ok_or_else(damaged)?;
    let mut rate = read_rate(bits).ok_or_else(damaged)?;
    let channels = bits.take(4).ok_or_else(damaged)?;
    if matches!(object_type, SBR | PS) {
        rate = read_rate(bits).ok_or_else(damaged)?;
        object_type = read_object_type(bits).ok_or_else(damaged)?;
    }
    match object_type {
        AAC_MAIN..=AAC_LTP => {}
        17 | 19..=23 | 39 => {
            return Err(Unreadable::Unsupported("it is error-resilient or low-delay AAC"));
        }
        42 => return Err(Unreadable::Unsupported("it is xHE-AAC")),
        _ => return Err(Unreadable::Unsupported("it is not AAC")),
    }
    // GASpecificConfig (4.4.1): the length of a frame, and whether it depends on another coder.
    bits.take(1).ok_or_else(damaged)?;
    if bits.take(1).ok_or_else(damaged)? == 1 {
        bits.take(14).ok_or_else(damaged)?;
    }
    let extended = bits.take(1).ok_or_else(damaged)? == 1;
    if channels == 0 {
        skip_program_config(bits, start).ok_or_else(damaged)?;
    }
    if extended {
        bits.take(1).ok_or_else(damaged)?;
    }
    Ok(rate)
}

/// Skips a `program_config_element` (4.4.1.1), aligned to bytes from `start`.
fn skip_program_config(bits: &mut Bits<'_>, start: usize) -> Option<()> {
    bits.take(4 + 2 + 4)?;
    let mut count = |width| bits.take(width).map(|count| count as usize);
    let (front, side, back) = (count(4)?, count(4)?, count(4)?);
    let (low, data, coupling) = (count(2)?, count(3)?, count(4)?);
    for width in [4, 4, 3] {
        if bits.take(1)? == 1 {
            bits.take(width)?;
        }
    }
    for _ in 0..front + side + back + coupling {
        bits.take(5)?;
    }
    for _ in 0..low + data {
        bits.take(4)?;
    }
    bits.take((8 - (bits.at - start) % 8) % 8)?;
    for _ in 0..bits.take(8)? {
        bits.take(8)?;
    }
    Some(())
}

fn read_object_type(bits: &mut Bits<'_>) -> Option<u32> {
    match bits.take(5)? {
        31 => Some(32 + bits.take(6)?),
        object_type => Some(object_type),
    }
}

fn read_rate(bits: &mut Bits<'_>) -> Option<u32> {
    match bits.take(4)? {
        15 => bits.take(24),
        index => AAC_RATES.get(index as usize).copied(),
    }
}

/// The sample entry of the AAC track.
fn sample_entry(audio: &AudioConfig) -> Vec<u8> {
    let descriptor = |tag: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).expect("a short configuration");
        [&[tag, 0x80, 0x80, 0x80, length], content].concat()
    };
    // AAC, an audio stream; buffer size and bit rates are unknown.
    let mut decoder = vec![0x40, 0x15];
    decoder.extend([0; 11]);
    decoder.extend(descriptor(0x05, &audio.bytes));
    let mut stream = vec![0, 0, 0];
    stream.extend(descriptor(0x04, &decoder));
    stream.extend(descriptor(0x06, &[2]));
    let mut entry = Vec::new();
    write_box(&mut entry, b"mp4a", |out| {
        out.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 16, 0, 0, 0, 0]);
        // A rate that does not fit into 16.16 is written as zero.
        let rate = u16::try_from(audio.sample_rate).unwrap_or(0);
        out.extend((u32::from(rate) << 16).to_be_bytes());
        write_box(out, b"esds", |out| {
            out.extend([0; 4]);
            out.extend(descriptor(0x03, &stream));
        });
    });
    entry
}

const SYNC: u32 = 0x2b7;
const SBR: u32 = 5;
const PS: u32 = 29;
const AAC_MAIN: u32 = 1;
const AAC_LTP: u32 = 4;

/// The largest packet: FFmpeg makes one of each frame, which has at most 8 KiB.
const MAX_PACKET: u32 = 64 << 10;

/// The largest number of access units in a packet.
const MAX_UNITS: usize = 64;

/// The largest number of packets before the first configuration: 20 seconds, and 64 MiB at most.
const MAX_UNCONFIGURED: usize = 1000;

/// The longest configuration in bits: its descriptors have lengths below 128 bytes.
const MAX_CONFIG_BITS: usize = 64 * 8;

#[cfg(test)]
mod tests;
