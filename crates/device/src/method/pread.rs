//! Reads by `pread`, one after another: the plainest way, and the first paper's `read`.

use super::cached;
use super::one_by_one::OneRead;
use crate::file::OpenFile;
use crate::{Buffer, DeviceError};

/// See the head of this file.
pub(super) struct Pread;

impl OneRead for Pread {
    type Prepared = ();

    fn prepare(&mut self, _file: &OpenFile, _place: (u64, usize)) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(
        &mut self,
        file: &OpenFile,
        offset: u64,
        buffer: &mut Buffer,
        (): (),
    ) -> Result<(), DeviceError> {
        file.read(offset, buffer)
    }

    fn method(&self, file: &OpenFile) -> String {
        format!("pread, {}", cached(file))
    }
}
