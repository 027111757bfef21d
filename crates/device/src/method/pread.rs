//! `pread` and `pwrite`, one after another: the plainest way, and the first paper's `read`.

use super::cached;
use super::one_by_one::Blocking;
use crate::file::OpenFile;
use crate::{DeviceError, Transfer};

/// See the head of this file.
pub(super) struct Pread;

impl Blocking for Pread {
    type Prepared = ();

    fn prepare(&mut self, _file: &OpenFile, _transfer: &Transfer) -> Result<(), DeviceError> {
        Ok(())
    }

    fn transfer(
        &mut self,
        file: &OpenFile,
        transfer: &mut Transfer,
        (): (),
    ) -> Result<(), DeviceError> {
        file.transfer(transfer)
    }

    fn method(&self, file: &OpenFile) -> String {
        format!("pread, {}", cached(file))
    }
}
