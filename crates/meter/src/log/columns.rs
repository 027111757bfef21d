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
                    let values = of(records);
                    // Most columns are constant over a block, and are then encoded only once.
                    let value = only(&values).map(|value| Value::Number(value.into()));
                    self.once(number, records.len(), value, |encode| {
                        encode.values::<Int32Type>(&values, None)
                    })
                }
                Holds::Int64(of, _) => {
                    let values = of(records);
                    let value = only(&values).map(Value::Number);
                    self.once(number, records.len(), value, |encode| {
                        encode.values::<Int64Type>(&values, None)
                    })
                }
                Holds::Time(of, _) => {
                    let values = of(records);
                    let value = only(&values).map(Value::Time);
                    self.once(number, records.len(), value, |encode| encode.times(&values))
                }
                Holds::Flag(of, _) => {
                    let values = of(records);
                    let value = only(&values).map(|flag| Value::Number(flag.into()));
                    self.once(number, records.len(), value, |encode| {
                        encode.values::<BoolType>(&values, None)
                    })
                }
                Holds::Word(of, _) => {
                    let values = of(records);
                    let value = only(&values).map(Value::Word);
                    self.once(number, records.len(), value, |encode| {
                        encode.values::<ByteArrayType>(&words(&values), None)
                    })
                }
            }?;
            group.append_column(&chunk.bytes, chunk.about)?;
        }
        Ok(())
    }

    /// Encodes a column, unless all its `rows` have the `value` of the last constant column.
    fn once(
        &mut self,
        number: usize,
        rows: usize,
        value: Option<Value>,
        encode: impl FnOnce(Encode<'_>) -> Result<Chunk, ParquetError>,
    ) -> Result<Chunk, ParquetError> {
        if let (Some(value), Some(alike)) = (value, &self.alike[number])
            && (alike.value, alike.rows) == (value, rows)
        {
            return Ok(alike.chunk.clone());
        }
        let chunk = encode(Encode { column: &self.columns[number], how: &self.properties })?;
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

impl Encode<'_> {
    /// Encodes values. `there` says for each row of an optional column whether it has a value.
    fn values<T: DataType>(
        self,
        values: &[T::T],
        there: Option<&[i16]>,
    ) -> Result<Chunk, ParquetError> {
        let mut memory = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut memory));
        let writer = get_column_writer(self.column.clone(), self.how.clone(), pages);
        let mut writer = get_typed_column_writer::<T>(writer);
        writer.write_batch(values, there, None)?;
        let about = writer.close()?;
        Ok(Chunk { bytes: memory.into_inner()?.into(), about })
    }

    fn times(self, times: &[u64]) -> Result<Chunk, ParquetError> {
        let there: Vec<i16> = times.iter().map(|time| i16::from(*time != NONE)).collect();
        let known = times.iter().filter(|time| **time != NONE);
        let known: Vec<i64> = known.copied().map(u64::cast_signed).collect();
        self.values::<Int64Type>(&known, Some(&there))
    }
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
            known.push((word, ByteArray::from(*word)));
            known.len() - 1
        });
        known[place].1.clone()
    };
    values.iter().map(shared).collect()
}
