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
    let failed = StoreError::file("read", job.file);
    let mut file = File::open(job.file).map_err(&failed)?;
    writer.declare(&[ByteCount(job.size)])?;
    let mut piece = vec![0; PIECE];
    loop {
        let got = file.read(&mut piece).map_err(&failed)?;
        if got == 0 {
            break;
        }
        writer.write(0, &piece[..got])?;
        job.tell("copying", writer.written(0))?;
    }
    job.tell("sealing", writer.written(0))?;
    let track = TrackDescription::plain(TrackKind::File, Timescale(1));
    let title = writer.seal(vec![(track, LduIndex::default())])?;
    Ok(IngestReport { title, left_out: Vec::new(), notes: Vec::new() })
}

/// Bytes of one read from the source: large enough that the cost of calls does not matter.
const PIECE: usize = 1 << 20;
