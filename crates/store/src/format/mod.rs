//! Format version 1: the layout on the device, byte for byte. `docs/concepts/format.md` has the
//! whole picture with its reasons; each file here has the picture of its own part.
//!
//! Everything is little-endian and encoded field by field. Nothing here does I/O or trusts the
//! bytes that it decodes: every number is checked against its bounds.

pub(crate) mod bytes;
pub(crate) mod checkpoint;
pub(crate) mod journal;
pub(crate) mod label;
pub(crate) mod layout;
pub(crate) mod record;
pub(crate) mod superblock;

/// The version of the format that this program reads and writes.
pub(crate) const VERSION: u32 = 1;

/// The alignment of all metadata: no device for media has larger blocks.
pub(crate) const BLOCK: u64 = 4096;
