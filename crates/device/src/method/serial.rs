//! A queue over a blocking method: `wait` makes the next transfer and returns it. The disk sees one
//! transfer at a time, in the order of submission. Transfers that have not begun can be cancelled.

use crate::open_file::OpenFile;
use crate::{Completion, DeviceError, Queue, Transfer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A blocking read and write method.
pub(super) trait BlockingMethod: Send {
    /// The state that is prepared for a transfer when it is submitted.
    type Prepared: Send + Default;

    /// Prepares a transfer that the file can do, when it is submitted.
    fn prepare(&mut self, _: &OpenFile, _: &Transfer) -> Result<Self::Prepared, DeviceError> {
        Ok(Self::Prepared::default())
    }

    /// Reads into or writes from the buffer, completely or not at all.
    fn transfer(
        &mut self,
        file: &OpenFile,
        transfer: &mut Transfer,
        prepared: Self::Prepared,
    ) -> Result<(), DeviceError>;

    /// The description for [`Queue::method`].
    fn method(&self, file: &OpenFile) -> String;
}

/// A queue that makes one blocking transfer at a time, in the order of submission.
pub(super) struct SerialQueue<B: BlockingMethod> {
    file: Arc<OpenFile>,
    way: B,
    waiting: VecDeque<(Transfer, Result<B::Prepared, DeviceError>)>,
}

impl<B: BlockingMethod> SerialQueue<B> {
    pub(super) fn new(file: &Arc<OpenFile>, way: B) -> Self {
        Self { file: Arc::clone(file), way, waiting: VecDeque::new() }
    }
}

impl<B: BlockingMethod> Queue for SerialQueue<B> {
    fn start(&mut self, transfer: Transfer) -> Result<(), DeviceError> {
        let checked = self.file.check(transfer.direction, transfer.place());
        // An error waits for its turn, so completions keep the order of submission.
        let prepared = checked.and_then(|()| self.way.prepare(&self.file, &transfer));
        self.waiting.push_back((transfer, prepared));
        Ok(())
    }

    fn wait(&mut self, _at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if let Some((mut transfer, prepared)) = self.waiting.pop_front() {
            let result = prepared
                .and_then(|prepared| self.way.transfer(&self.file, &mut transfer, prepared));
            done.push(transfer.ended(result));
        }
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), DeviceError> {
        for (transfer, prepared) in &mut self.waiting {
            let (direction, place) = (transfer.direction, transfer.place());
            *prepared = Err(DeviceError::cancelled(direction, &self.file.path, place));
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    fn method(&self) -> String {
        self.way.method(&self.file)
    }
}
