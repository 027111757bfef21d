//! The columns of the file, and the conversion between records and rows.
//!
//! One table has the name, the type and both directions of the conversion of each column, so that
//! the reader matches the writer.

use super::{OperationKind, Record};

/// A column: its name and its values.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) holds: Holds,
}

/// The values of a column: how they are taken from a record and put back.
pub(super) enum Holds {
    Int32(fn(&[Record]) -> Vec<i32>, fn(&mut Record, i32)),
    Int64(fn(&[Record]) -> Vec<i64>, fn(&mut Record, i64)),
    /// A time, null where it is [`NONE`](super::NONE).
    Time(fn(&[Record]) -> Vec<u64>, fn(&mut Record, u64)),
    Flag(fn(&[Record]) -> Vec<bool>, fn(&mut Record, bool)),
    Word(fn(&[Record]) -> Vec<&'static str>, fn(&mut Record, &[u8]) -> bool),
}

/// A column of a field: its name in the file, and both directions of the conversion.
macro_rules! column {
    ($name:literal, $holds:ident, $record:ident.$field:ident => $value:expr, $put:expr) => {
        Column {
            name: $name,
            holds: Holds::$holds(
                |records| records.iter().map(|$record| $value).collect(),
                $put,
            ),
        }
    };
    ($name:literal, $holds:ident unsigned, $field:ident) => {
        column!($name, $holds, record.$field => record.$field.cast_signed(), |record, value| {
            record.$field = value.cast_unsigned();
        })
    };
    ($name:literal, $holds:ident, $field:ident) => {
        column!($name, $holds, record.$field => record.$field, |record, value| {
            record.$field = value;
        })
    };
}

/// All columns in the order of the file.
pub(super) const COLUMNS: &[Column] = &[
    column!("stream", Int32 unsigned, stream),
    column!("frame", Int64 unsigned, frame),
    column!("block", Int32 unsigned, block),
    column!("kind", Word, record.kind => record.kind.word(), set_kind),
    column!("random", Flag, random),
    column!("file", Int32 unsigned, file),
    column!("offset", Int64 unsigned, offset),
    column!("bytes", Int32 unsigned, bytes),
    column!("intended_ns", Int64 unsigned, intended),
    column!("start_ns", Time, start),
    column!("first_ns", Time, first),
    column!("end_ns", Time, end),
    column!("deadline_ns", Time, deadline),
    column!("open_ns", Int64 unsigned, open),
    column!("close_ns", Int64 unsigned, close),
    column!("meter_ns", Int64 unsigned, meter),
    column!("errno", Int32, errno),
];

fn set_kind(record: &mut Record, word: &[u8]) -> bool {
    let known = [OperationKind::Read, OperationKind::Write]
        .into_iter()
        .find(|kind| kind.word().as_bytes() == word);
    record.kind = known.unwrap_or_default();
    known.is_some()
}

/// The schema in Parquet's own notation.
pub(super) fn message() -> String {
    let field = |column: &Column| {
        let kind = match column.holds {
            Holds::Int32(..) => "REQUIRED INT32",
            Holds::Int64(..) => "REQUIRED INT64",
            Holds::Time(..) => "OPTIONAL INT64",
            Holds::Flag(..) => "REQUIRED BOOLEAN",
            Holds::Word(..) => "REQUIRED BYTE_ARRAY",
        };
        // Without the annotation readers show bytes instead of text.
        let is = if matches!(column.holds, Holds::Word(..)) { " (UTF8)" } else { "" };
        format!("{kind} {}{is};", column.name)
    };
    let fields: Vec<String> = COLUMNS.iter().map(field).collect();
    format!("message operation {{ {} }}", fields.join(" "))
}
