//! A body of several ranges of another one (`multipart/byteranges`, RFC 9110, section 14.6).
//!
//! ```text
//!   --B  Content-Type, Content-Range: bytes 0-9/1000       generated
//!   bytes 0 to 9                                           slices of the whole body
//!   --B  Content-Type, Content-Range: bytes 500-509/1000   generated
//!   bytes 500 to 509
//!   --B--                                                  generated
//! ```

use media::{Body, Slice};
use std::ops::Range;
use uuid::Uuid;

/// A response body of several parts.
pub(crate) struct MultipartBody {
    /// The field value of the response's `Content-Type`.
    pub(crate) content_type: String,
    pub(crate) body: Body,
    /// The end of each part: the engine is asked for the bytes of one part at a time, because they
    /// are at different positions of a track.
    pub(crate) ends: Vec<u64>,
}

/// A body of these ranges of `whole`, whose content type is `kind`.
pub(crate) fn multipart(whole: &Body, ranges: &[Range<u64>], kind: &str) -> MultipartBody {
    let length = whole.len();
    // Random, so that no stored media can contain it.
    let boundary = Uuid::new_v4().simple();
    let (mut slices, mut ends, mut at) = (Vec::new(), Vec::with_capacity(ranges.len()), 0);
    for (number, range) in ranges.iter().enumerate() {
        let before = if number == 0 { "" } else { "\r\n" };
        let last = range.end - 1;
        let head = generated(format!(
            "{before}--{boundary}\r\nContent-Type: {kind}\r\n\
             Content-Range: bytes {}-{last}/{length}\r\n\r\n",
            range.start
        ));
        at += head.len() + (range.end - range.start);
        ends.push(at);
        slices.push(head);
        slices.extend(whole.range(range.clone()).slices().cloned());
    }
    slices.push(generated(format!("\r\n--{boundary}--\r\n")));
    MultipartBody {
        content_type: format!("multipart/byteranges; boundary={boundary}"),
        body: slices.into_iter().collect(),
        ends,
    }
}

fn generated(text: String) -> Slice {
    let range = 0..text.len();
    Slice::Generated { bytes: text.into_bytes().into(), range }
}
