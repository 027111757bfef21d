//! Writing numbers down and reading them back: little-endian, bounded, never trusting.

/// Bytes that do not say what they should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) String);

impl From<&str> for Malformed {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Builds bytes.
#[derive(Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// A count of things that the caller keeps below 65,536.
    pub(crate) fn count(&mut self, count: usize) {
        self.u16(u16::try_from(count).expect("bounded by the format's limits"));
    }

    /// Length and bytes of a text that the caller keeps below 64 KiB.
    pub(crate) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes(text.as_bytes());
    }
}

/// Takes bytes apart.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self.bytes(N)?.try_into().expect("as many as asked for"))
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

    /// A count that is at most `limit`.
    pub(crate) fn count(&mut self, limit: usize, of: &str) -> Result<usize, Malformed> {
        let count = usize::from(self.u16()?);
        if count > limit {
            return Err(Malformed(format!("{count} {of} where {limit} are the most")));
        }
        Ok(count)
    }

    /// A text of at most `limit` bytes.
    pub(crate) fn text(&mut self, limit: usize) -> Result<&'a str, Malformed> {
        let length = self.count(limit, "bytes of text")?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| "a text that is not UTF-8".into())
    }
}
