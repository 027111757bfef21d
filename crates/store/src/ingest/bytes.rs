//! Ingest of a file without interpretation: one track of opaque bytes.

use super::{IngestJob, IngestReport};
use crate::{StoreError, TitleWriter};
use media::{LduIndex, TrackDescription, TrackKind};
use std::fs::File;
use std::io::Read;
use units::{ByteCount, Timescale};

pub(super) fn ingest(
    mut writer: TitleWriter<'_>,
    job: &mut IngestJob<'_>,
) -> Result<IngestReport, StoreError> {
    let failed = |source| StoreError::File { action: "read", path: job.file.to_owned(), source };
    let mut file = File::open(job.file).map_err(failed)?;
    writer.declare(&[ByteCount(job.size)])?;
    let mut piece = vec![0; PIECE];
    loop {
        let failed =
            |source| StoreError::File { action: "read", path: job.file.to_owned(), source };
        let got = file.read(&mut piece).map_err(failed)?;
        if got == 0 {
            break;
        }
        writer.write(0, &piece[..got])?;
        job.tell("copying", writer.written(0))?;
    }
    job.tell("sealing", writer.written(0))?;
    let title = writer.seal(vec![(description(), LduIndex::default())])?;
    Ok(IngestReport { title, left_out: Vec::new(), notes: Vec::new() })
}

/// A track without times, pictures or sound.
fn description() -> TrackDescription {
    TrackDescription {
        kind: TrackKind::File,
        timescale: Timescale(1),
        sample_entry: Vec::new(),
        codec: String::new(),
        language: "und".to_owned(),
        title: String::new(),
        width: 0,
        height: 0,
        matrix: IDENTITY,
        sample_rate: 0,
        channels: 0,
        edits: Vec::new(),
        default: true,
    }
}

/// The identity matrix of ISO/IEC 14496-12: 16.16, the last column 2.30.
const IDENTITY: [i32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

/// Bytes of one read from the source: large enough that the cost of calls does not matter.
const PIECE: usize = 1 << 20;
