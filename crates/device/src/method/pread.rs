//! `pread` and `pwrite`, one after another: the simplest method, and the `read` of the first paper.

use super::cached;
use super::serial::BlockingMethod;
use crate::open_file::OpenFile;
use crate::{DeviceError, Transfer};

/// Reads by `pread` and writes by `pwrite`.
pub(super) struct Pread;

impl BlockingMethod for Pread {
    type Prepared = ();

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
