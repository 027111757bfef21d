//! The tables of a segment: PAT and PMT (ISO/IEC 13818-1, 2.4.4), one packet each.

use super::block::BlockStream;
use super::{PACKET, StreamForm};
use crc_fast::{CrcAlgorithm, checksum};

/// The packet identifier of a rendition's stream: 0 leads, and has the clock.
pub(super) fn stream_pid(number: usize) -> u16 {
    FIRST_PID + u16::try_from(number).expect("two streams")
}

/// PAT and PMT for these streams, in packets with this continuity counter.
pub(super) fn tables(counter: u8, streams: &[BlockStream]) -> Vec<u8> {
    let mut programs = PROGRAM.to_be_bytes().to_vec();
    push_pid(&mut programs, PMT_PID);
    let mut list = Vec::new();
    push_pid(&mut list, stream_pid(0));
    push_length(&mut list, 0);
    for (number, stream) in streams.iter().enumerate() {
        let StreamForm { stream_type, descriptors, .. } = &*stream.form;
        list.push(*stream_type);
        push_pid(&mut list, stream_pid(number));
        push_length(&mut list, descriptors.len());
        list.extend_from_slice(descriptors);
    }
    let pat = section(PAT_ID, TRANSPORT_STREAM, &programs);
    let pmt = section(PMT_ID, PROGRAM, &list);
    [packet(PAT_PID, counter, &pat), packet(PMT_PID, counter, &pmt)].concat()
}

/// A section of the only version, which is valid now and is not continued.
fn section(table: u8, id: u16, content: &[u8]) -> Vec<u8> {
    let mut out = vec![table];
    // From behind the length to the end of the CRC. The two bits above are the syntax and a zero.
    let length = u16::try_from(5 + content.len() + 4).expect("a short table");
    out.extend_from_slice(&(0xb000 | length).to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0xc1, 0, 0]);
    out.extend_from_slice(content);
    let crc = u32::try_from(checksum(CrcAlgorithm::Crc32Mpeg2, &out)).expect("32 bits");
    out.extend_from_slice(&crc.to_be_bytes());
    out
}

fn packet(pid: u16, counter: u8, section: &[u8]) -> [u8; PACKET] {
    let mut out = [0xff; PACKET];
    let [high, low] = pid.to_be_bytes();
    // The section begins behind a pointer of zero, and stuffing fills the packet.
    out[..5].copy_from_slice(&[SYNC, 0x40 | high, low, 0x10 | counter & 0xf, 0]);
    out[5..5 + section.len()].copy_from_slice(section);
    out
}

fn push_pid(out: &mut Vec<u8>, pid: u16) {
    out.extend_from_slice(&(0xe000 | pid).to_be_bytes());
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    let length = u16::try_from(length).expect("some descriptors");
    out.extend_from_slice(&(0xf000 | length).to_be_bytes());
}

/// The first byte of each packet.
pub(super) const SYNC: u8 = 0x47;
const PAT_PID: u16 = 0;
const PMT_PID: u16 = 0x1000;
const FIRST_PID: u16 = 0x100;
const PAT_ID: u8 = 0;
const PMT_ID: u8 = 2;
const TRANSPORT_STREAM: u16 = 1;
const PROGRAM: u16 = 1;
