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

macro_rules! int32 {
    ($field:ident) => {
        Column {
            name: stringify!($field),
            holds: Holds::Int32(
                |records| records.iter().map(|record| record.$field.cast_signed()).collect(),
                |record, value| record.$field = value.cast_unsigned(),
            ),
        }
    };
}

macro_rules! int64 {
    ($name:literal, $field:ident) => {
        Column {
            name: $name,
            holds: Holds::Int64(
                |records| records.iter().map(|record| record.$field.cast_signed()).collect(),
                |record, value| record.$field = value.cast_unsigned(),
            ),
        }
    };
}

macro_rules! time {
    ($name:literal, $field:ident) => {
        Column {
            name: $name,
            holds: Holds::Time(
                |records| records.iter().map(|record| record.$field).collect(),
                |record, value| record.$field = value,
            ),
        }
    };
}

/// All columns in the order of the file.
pub(super) const COLUMNS: &[Column] = &[
    int32!(stream),
    int64!("frame", frame),
    int32!(block),
    Column {
        name: "kind",
        holds: Holds::Word(
            |records| records.iter().map(|record| record.kind.word()).collect(),
            set_kind,
        ),
    },
    Column {
        name: "random",
        holds: Holds::Flag(
            |records| records.iter().map(|record| record.random).collect(),
            |record, value| record.random = value,
        ),
    },
    int32!(file),
    int64!("offset", offset),
    int32!(bytes),
    int64!("intended_ns", intended),
    time!("start_ns", start),
    time!("first_ns", first),
    time!("end_ns", end),
    time!("deadline_ns", deadline),
    int64!("open_ns", open),
    int64!("close_ns", close),
    int64!("meter_ns", meter),
    Column {
        name: "errno",
        holds: Holds::Int32(
            |records| records.iter().map(|record| record.errno).collect(),
            |record, value| record.errno = value,
        ),
    },
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
        let is = if matches!(column.holds, Holds::Word(..)) { " (UTF8)" } else { "" };
        format!("{kind} {}{is};", column.name)
    };
    let fields: Vec<String> = COLUMNS.iter().map(field).collect();
    format!("message operation {{ {} }}", fields.join(" "))
}
