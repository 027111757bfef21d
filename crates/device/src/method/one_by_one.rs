//! A queue over a blocking way of reading: `wait` makes the next read and returns it. The disk sees
//! one read at a time, in the order of submission. Reads that have not begun can be called off.

use crate::file::OpenFile;
use crate::{Buffer, Completion, DeviceError, Queue};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A blocking way of reading.
pub(super) trait OneRead: Send {
    /// What is made of a read when it is submitted.
    type Prepared: Send;

    /// Called when a read that lies within the device is submitted.
    fn prepare(
        &mut self,
        file: &OpenFile,
        place: (u64, usize),
    ) -> Result<Self::Prepared, DeviceError>;

    /// Fills the buffer, wholly or not at all.
    fn read(
        &mut self,
        file: &OpenFile,
        offset: u64,
        buffer: &mut Buffer,
        prepared: Self::Prepared,
    ) -> Result<(), DeviceError>;

    /// For [`Queue::method`].
    fn method(&self, file: &OpenFile) -> String;
}

/// See the head of this file.
pub(super) struct OneByOne<R: OneRead> {
    file: Arc<OpenFile>,
    reader: R,
    waiting: VecDeque<Waiting<R::Prepared>>,
}

struct Waiting<P> {
    tag: u64,
    offset: u64,
    buffer: Buffer,
    prepared: Result<P, DeviceError>,
}

impl<R: OneRead> OneByOne<R> {
    pub(super) fn new(file: &Arc<OpenFile>, reader: R) -> Self {
        Self { file: Arc::clone(file), reader, waiting: VecDeque::new() }
    }
}

impl<R: OneRead> Queue for OneByOne<R> {
    fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        let (file, place) = (&self.file, (offset, buffer.len()));
        let prepared = file
            .geometry
            .check("reading", &file.path, place)
            .and_then(|()| self.reader.prepare(file, place));
        self.waiting.push_back(Waiting { tag, offset, buffer, prepared });
        Ok(())
    }

    fn wait(&mut self, _at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if let Some(Waiting { tag, offset, mut buffer, prepared }) = self.waiting.pop_front() {
            let result = prepared
                .and_then(|prepared| self.reader.read(&self.file, offset, &mut buffer, prepared));
            done.push(Completion { tag, buffer, result });
        }
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), DeviceError> {
        for waiting in &mut self.waiting {
            let place = (waiting.offset, waiting.buffer.len());
            waiting.prepared = Err(DeviceError::cancelled(&self.file.path, place));
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    fn method(&self) -> String {
        self.reader.method(&self.file)
    }
}
