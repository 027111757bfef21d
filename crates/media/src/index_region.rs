//! The index region's bytes.

use crate::TitleIndex;

/// Why bytes are no index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// Not an index region at all.
    #[error("no index region: the magic is missing")]
    NotAnIndex,
}

/// CRC-32C (Castagnoli), the one kept for each [`crate::CHECKSUM_SPAN`] of data.
pub fn checksum(bytes: &[u8]) -> u32 {
    u32::try_from(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes))
        .expect("a 32-bit checksum")
}

impl TitleIndex {
    /// The index region of this title.
    pub fn encode(&self) -> Vec<u8> {
        todo!()
    }
    /// Reads an index region.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexError> {
        let _ = bytes;
        todo!()
    }
}
