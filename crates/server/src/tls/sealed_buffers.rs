//! The memory of records that the kernel is taking, and of frames before they are records, used
//! again from send to send.

use std::sync::Arc;

/// Free buffers of one thread, each for the records of one send.
#[derive(Debug, Default)]
pub(crate) struct SealedBuffers(Vec<Arc<[u8]>>);

impl SealedBuffers {
    /// A buffer that nobody else holds.
    pub(crate) fn take(&mut self) -> Arc<[u8]> {
        while let Some(mut buffer) = self.0.pop() {
            if Arc::get_mut(&mut buffer).is_some() {
                return buffer;
            }
        }
        vec![0; SEALED_BYTES].into()
    }

    /// Takes a buffer back. The socket loop has given it up when it reports the send.
    pub(crate) fn give_back(&mut self, buffer: Arc<[u8]>) {
        if self.0.len() < KEPT && buffer.len() == SEALED_BYTES {
            self.0.push(buffer);
        }
    }
}

/// Plain bytes of one send: four records of the largest size. More would save system calls, and
/// cost memory for each viewer who is being sent to.
pub(crate) const PLAIN_BYTES: usize = 64 * 1024;
/// Bytes of a buffer: the plain bytes, and what records and a key update add to them.
const SEALED_BYTES: usize = PLAIN_BYTES + 1024;
/// Free buffers that a thread keeps: 2 MiB.
const KEPT: usize = 32;
