//! The columns of a row group, encoded in memory and then appended to the file.
//!
//! ```text
//!   values of a column ─┬─ all equal, as in a group before ─▶ that group's bytes again
//!                       └─ otherwise ─▶ encoded ─▶ bytes
//! ```
//!
//! In most runs half of the columns hold one value from beginning to end (no error, the first file
//! only, reads only); encoding them value by value would be half of the work.

use super::schema::{COLUMNS, Holds};
use super::{NONE, Record};
use bytes::Bytes;
use parquet::column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};
use std::fs::File;

/// The columns of one row group, encoded in memory.
pub(super) struct Columns {
    properties: WriterPropertiesPtr,
    columns: Vec<ColumnDescPtr>,
    /// The last constant column of each kind, which is encoded once.
    alike: Vec<Option<Alike>>,
}

/// An encoded column whose rows all have the same value.
struct Alike {
    value: Value,
    rows: usize,
    chunk: Chunk,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Number(i64),
    Time(u64),
    Word(&'static str),
}

/// The encoded part of a column in a row group.
#[derive(Clone)]
struct Chunk {
    bytes: Bytes,
    about: ColumnCloseResult,
}

impl Columns {
    pub(super) fn new(schema: &SchemaDescriptor, properties: WriterPropertiesPtr) -> Self {
        let alike = COLUMNS.iter().map(|_| None).collect();
        Self { properties, columns: schema.columns().to_vec(), alike }
    }

    /// Encodes all columns of `records`.
    pub(super) fn put(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, File>,
        records: &[Record],
    ) -> Result<(), ParquetError> {
        for (number, column) in COLUMNS.iter().enumerate() {
            let chunk = match column.holds {
                Holds::Int32(of, _) => {
                    let value = |value: i32| Value::Number(value.into());
                    self.once(number, &of(records), value, plain::<Int32Type>)
                }
                Holds::Int64(of, _) => {
                    self.once(number, &of(records), Value::Number, plain::<Int64Type>)
                }
                Holds::Time(of, _) => self.once(number, &of(records), Value::Time, times),
                Holds::Flag(of, _) => {
                    let value = |flag: bool| Value::Number(flag.into());
                    self.once(number, &of(records), value, plain::<BoolType>)
                }
                Holds::Word(of, _) => {
                    self.once(number, &of(records), Value::Word, |column, values| {
                        plain::<ByteArrayType>(column, &words(values))
                    })
                }
            }?;
            group.append_column(&chunk.bytes, chunk.about)?;
        }
        Ok(())
    }

    /// Encodes a column. Most columns are constant over a block, often with the value of the block
    /// before, and are then encoded only once.
    fn once<T: Copy + PartialEq>(
        &mut self,
        number: usize,
        values: &[T],
        value: impl Fn(T) -> Value,
        encode: impl FnOnce(Encode<'_>, &[T]) -> Result<Chunk, ParquetError>,
    ) -> Result<Chunk, ParquetError> {
        let (value, rows) = (only(values).map(value), values.len());
        if let (Some(value), Some(alike)) = (value, &self.alike[number])
            && (alike.value, alike.rows) == (value, rows)
        {
            return Ok(alike.chunk.clone());
        }
        let one = Encode { column: &self.columns[number], how: &self.properties };
        let chunk = encode(one, values)?;
        if let Some(value) = value {
            self.alike[number] = Some(Alike { value, rows, chunk: chunk.clone() });
        }
        Ok(chunk)
    }
}

/// The parameters for encoding a column.
struct Encode<'a> {
    column: &'a ColumnDescPtr,
    how: &'a WriterPropertiesPtr,
}

/// Encodes the values of a column without nulls.
fn plain<T: DataType>(column: Encode<'_>, values: &[T::T]) -> Result<Chunk, ParquetError> {
    optional::<T>(column, values, None)
}

/// Encodes values. `there` says for each row of an optional column whether it has a value.
fn optional<T: DataType>(
    Encode { column, how }: Encode<'_>,
    values: &[T::T],
    there: Option<&[i16]>,
) -> Result<Chunk, ParquetError> {
    let mut memory = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut memory));
    let untyped = get_column_writer(column.clone(), how.clone(), pages);
    let mut writer = get_typed_column_writer::<T>(untyped);
    writer.write_batch(values, there, None)?;
    let about = writer.close()?;
    Ok(Chunk { bytes: memory.into_inner()?.into(), about })
}

fn times(column: Encode<'_>, times: &[u64]) -> Result<Chunk, ParquetError> {
    let there: Vec<i16> = times.iter().map(|time| i16::from(*time != NONE)).collect();
    let known = times.iter().filter(|time| **time != NONE);
    let values: Vec<i64> = known.map(|time| time.cast_signed()).collect();
    optional::<Int64Type>(column, &values, Some(&there))
}

/// The common value, if all are equal.
fn only<T: Copy + PartialEq>(values: &[T]) -> Option<T> {
    let first = *values.first()?;
    values.iter().all(|value| *value == first).then_some(first)
}

/// A column of few distinct words.
fn words(values: &[&'static str]) -> Vec<ByteArray> {
    let mut known: Vec<(&str, ByteArray)> = Vec::new();
    let shared = |word: &&'static str| {
        let place = known.iter().position(|(one, _)| one == word).unwrap_or_else(|| {
            // Copies of a byte array share its memory; a group has thousands of rows.
            known.push((word, ByteArray::from(*word)));
            known.len() - 1
        });
        known[place].1.clone()
    };
    values.iter().map(shared).collect()
}
