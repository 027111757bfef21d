//! The one binary codec of all formats: little-endian numbers, varints, and counted bytes.
//!
//! Decoding accepts any bytes: each step reports what is missing, and a count is compared with the
//! number of following bytes (or with the format's limit) before memory is reserved. Big-endian MP4
//! boxes are parsed in the media crate.

use std::fmt;

/// The error of bytes without the expected content, with the reason, such as "it ends too early".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// Appends values to a buffer.
#[derive(Clone, Debug, Default)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    /// The bytes written.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Number of bytes written so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes written so far.
    pub fn written(&self) -> &[u8] {
        &self.0
    }

    /// Asserts that the next field begins at this offset, as the format is drawn.
    ///
    /// # Panics
    /// Panics if it does not: then drawing and code differ.
    pub fn at(&mut self, offset: usize) -> &mut Self {
        assert_eq!(self.0.len(), offset, "a field lies where the format draws it");
        self
    }

    /// Replaces bytes that were written before, for lengths and checksums that are known later.
    pub fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends bytes without their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends a count in 16 bits. Panics above 65,535: the caller keeps the format's limits.
    pub fn count16(&mut self, count: usize) {
        self.u16(u16::try_from(count).expect("bounded by the format's limits"));
    }

    /// Appends a count in 32 bits. Panics above 2^32 - 1: the caller keeps the format's limits.
    pub fn count32(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("bounded by the format's limits"));
    }

    /// Appends the length of `text` in 16 bits, then its UTF-8 bytes.
    pub fn text16(&mut self, text: &str) {
        self.count16(text.len());
        self.bytes(text.as_bytes());
    }

    /// Appends the length of `bytes` in 32 bits, then the bytes.
    pub fn bytes32(&mut self, bytes: &[u8]) {
        self.count32(bytes.len());
        self.bytes(bytes);
    }

    /// Appends seven bits per byte, low ones first; the top bit is set if more follow (LEB128).
    pub fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.0.push(low_byte(value) | 0x80);
            value >>= 7;
        }
        self.0.push(low_byte(value));
    }

    /// Appends a signed number as a varint in the order 0, -1, 1, -2, ...
    pub fn zigzag(&mut self, value: i32) {
        self.varint(((value << 1) ^ (value >> 31)).cast_unsigned());
    }
}

fn low_byte(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

/// Takes values from the front of a byte slice.
#[derive(Clone, Debug)]
pub struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Number of bytes that are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Whether all bytes have been taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(front)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (front, rest) = self.0.split_first_chunk().ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(*front)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
    }

    /// Takes a count in 16 bits, at most `limit`; `too_many` is the error beyond it.
    pub fn count16(&mut self, limit: usize, too_many: &'static str) -> Result<usize, Malformed> {
        let count = usize::from(self.u16()?);
        if count > limit { Err(Malformed(too_many)) } else { Ok(count) }
    }

    /// Takes a count in 32 bits of items with at least `item_len` bytes each (not zero): refused if
    /// fewer bytes follow.
    pub fn count32(&mut self, item_len: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| TOO_SHORT)?;
        // Divided, because a product could overflow.
        if count > self.0.len() / item_len { Err(TOO_SHORT) } else { Ok(count) }
    }

    /// Takes a text with its length in 16 bits, at most `limit` bytes.
    pub fn text16(&mut self, limit: usize) -> Result<&'a str, Malformed> {
        let length = self.count16(limit, "a text that is too long")?;
        str::from_utf8(self.bytes(length)?).map_err(|_| Malformed("a text that is not UTF-8"))
    }

    /// Takes bytes with their length in 32 bits.
    pub fn bytes32(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.count32(1)?;
        self.bytes(count)
    }

    /// Takes a varint in its shortest form only: one value has one encoding.
    pub fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0u64;
        // 32 bits need five bytes; the fifth may hold bits beyond them, hence the conversion below.
        for shift in (0..35).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // A last byte of zero adds nothing, except to the number zero itself.
                let shortest = byte != 0 || shift == 0;
                return u32::try_from(value).ok().filter(|_| shortest).ok_or(BAD_VARINT);
            }
        }
        Err(BAD_VARINT)
    }

    /// Takes a signed number in the form of [`Encoder::zigzag`].
    pub fn zigzag(&mut self) -> Result<i32, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

const TOO_SHORT: Malformed = Malformed("it ends too early");
const BAD_VARINT: Malformed = Malformed("a number of variable length that is not in its one form");

/// Bytes as text: two hexadecimal digits for each byte.
pub fn to_hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).expect("half a byte");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Decodes the text of [`to_hex`]; `None` where it is not such text.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|half| u8::try_from(half).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_survive_encoding_and_have_one_form() {
        let edges = [0, 1, 127, 128, 16_383, 16_384, u32::MAX - 1, u32::MAX];
        for value in edges {
            let mut encoder = Encoder::default();
            encoder.varint(value);
            encoder.zigzag(value.cast_signed());
            let bytes = encoder.finish();
            let mut decoder = Decoder::new(&bytes);
            assert_eq!(decoder.varint(), Ok(value));
            assert_eq!(decoder.zigzag(), Ok(value.cast_signed()));
            assert!(decoder.is_empty());
        }
        let varint = |bytes: &[u8]| Decoder::new(bytes).varint();
        assert_eq!(varint(&[0x80, 0x00]), Err(BAD_VARINT), "zero in two bytes");
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x1f]), Err(BAD_VARINT), "35 bits");
        assert_eq!(varint(&[0x80]), Err(TOO_SHORT));
    }

    #[test]
    fn counts_are_checked_before_memory_is_reserved() {
        let mut encoder = Encoder::default();
        encoder.count32(3);
        encoder.bytes(&[0; 8]);
        let bytes = encoder.finish();
        assert_eq!(Decoder::new(&bytes).count32(2), Ok(3));
        assert_eq!(
            Decoder::new(&bytes).count32(3),
            Err(TOO_SHORT),
            "nine bytes needed, eight here"
        );
        assert_eq!(Decoder::new(&bytes).count16(2, "three"), Err(Malformed("three")));
        assert_eq!(Decoder::new(&[2, 0, 0xff, 0xff]).text16(9).unwrap_err().0.len(), 24);
    }
}
