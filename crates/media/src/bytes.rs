//! Little-endian numbers and varints in a byte buffer, for the index region.
//!
//! Reading is for bytes that may be anything: every read says what was missing, and nothing is
//! allocated on the word of a count alone. MP4's big-endian boxes are read elsewhere.

/// The bytes ended, or a number did not fit where it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Appends numbers to a buffer.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A count that was in memory, so never beyond 32 bits for what the index holds.
    pub(crate) fn count(&mut self, value: usize) {
        self.u32(u32::try_from(value).expect("counts of an index fit 32 bits"));
    }

    /// Length (32 bits), then the bytes.
    pub(crate) fn blob(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits a byte, low ones first, the top bit says that more follow.
    pub(crate) fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.0.push(low_byte(value) | 0x80);
            value >>= 7;
        }
        self.0.push(low_byte(value));
    }

    /// A signed number as varint: 0, -1, 1, -2, ...
    pub(crate) fn zigzag(&mut self, value: i32) {
        self.varint(((value << 1) ^ (value >> 31)).cast_unsigned());
    }
}

fn low_byte(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

/// Takes numbers from the front of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self.take(N)?.try_into().expect("just that many were taken"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
    }

    /// A count of things that take at least `least` bytes each: more than could follow is
    /// malformed, so that memory for them may be reserved.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        if count > self.0.len() / least {
            return Err(Malformed);
        }
        Ok(count)
    }

    pub(crate) fn blob(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.count(1)?;
        self.take(count)
    }

    /// Only the shortest form is accepted: one value, one encoding.
    pub(crate) fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let shortest = byte != 0 || shift == 0;
                return u32::try_from(value).ok().filter(|_| shortest).ok_or(Malformed);
            }
        }
        Err(Malformed)
    }

    pub(crate) fn zigzag(&mut self) -> Result<i32, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back_and_have_one_form() {
        let edges = [0, 1, 127, 128, 16_383, 16_384, u32::MAX - 1, u32::MAX];
        for value in edges {
            let mut writer = Writer::default();
            writer.varint(value);
            writer.zigzag(value.cast_signed());
            let mut reader = Reader(&writer.0);
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.zigzag(), Ok(value.cast_signed()));
            assert!(reader.is_empty());
        }
        assert_eq!(Reader(&[0x80, 0x00]).varint(), Err(Malformed), "zero in two bytes");
        assert_eq!(Reader(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varint(), Err(Malformed), "35 bits");
        assert_eq!(Reader(&[0x80]).varint(), Err(Malformed), "cut short");
    }
}
