//! Format version 1: what lies where on the device, byte for byte. The whole picture with its
//! reasons is `docs/concepts/format.md`; each file here holds the picture of its own part.
//!
//! Everything is little-endian and written out field by field. Nothing here does I/O or trusts
//! what it decodes: every number is checked against what it must fit in.

pub(crate) mod bytes;
pub(crate) mod checkpoint;
pub(crate) mod journal;
pub(crate) mod label;
pub(crate) mod layout;
pub(crate) mod record;
pub(crate) mod superblock;

/// The version of the format that this program reads and writes.
pub(crate) const VERSION: u32 = 1;

/// All metadata lies at multiples of this: no device that streams media has larger blocks.
pub(crate) const BLOCK: u64 = 4096;
