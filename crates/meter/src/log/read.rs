//! Reads a log back into records, one row group at a time.

use super::schema::{COLUMNS, Holds};
use super::{FILE, NONE, Record};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::path::{Path, PathBuf};
use units::Reason;

/// An open log that yields the records of one row group after the other.
pub struct LogReader {
    path: PathBuf,
    inner: SerializedFileReader<File>,
    group: usize,
}

/// Opens a log file, or the log in a run's directory.
pub fn read(path: &Path) -> Result<LogReader, Reason> {
    let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
    let failed = |reason: Reason| reason.about(path.display());
    let file = File::open(&path)
        .map_err(|error| failed(Reason::new(error.to_string(), "name a run's directory")))?;
    let inner = SerializedFileReader::new(file).map_err(|error| {
        let message = format!("no log of operations ({error})");
        failed(Reason::new(message, "was the run that made it killed?"))
    })?;
    let schema = inner.metadata().file_metadata().schema_descr();
    for (i, column) in COLUMNS.iter().enumerate() {
        // By position: the conversion of the columns goes by position too.
        let has = (i < schema.num_columns()).then(|| schema.column(i).name().to_owned());
        if has.as_deref() != Some(column.name) {
            let other =
                format!("column {} is not '{}': another version made it", i + 1, column.name);
            return Err(failed(other.into()));
        }
    }
    Ok(LogReader { path, inner, group: 0 })
}

impl LogReader {
    /// The value of a key in the file's metadata.
    pub fn about(&self, name: &str) -> Option<String> {
        let name = format!("tenuto.{name}");
        let entries = self.inner.metadata().file_metadata().key_value_metadata()?;
        entries.iter().find(|entry| entry.key == name)?.value.clone()
    }

    /// The number of records.
    pub fn records(&self) -> u64 {
        self.inner.metadata().file_metadata().num_rows().cast_unsigned()
    }

    fn next_group(&mut self) -> Result<Vec<Record>, ParquetError> {
        let group = self.inner.get_row_group(self.group)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(usize::MAX);
        if rows > MOST_ROWS {
            return Err(ParquetError::General(format!(
                "{rows} rows, more than any version writes"
            )));
        }
        // The library does not check these lengths and offsets itself.
        let invalid = |column: &ColumnChunkMetaData| {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            start < 0 || column.compressed_size() < 0
        };
        if group.metadata().columns().iter().any(invalid) {
            return Err(ParquetError::General("a column outside of the file".to_owned()));
        }
        let mut records = vec![Record::default(); rows];
        for (i, column) in COLUMNS.iter().enumerate() {
            let reader = group.get_column_reader(i)?;
            fill(&column.holds, reader, &mut records)?;
        }
        Ok(records)
    }
}

impl Iterator for LogReader {
    type Item = Result<Vec<Record>, Reason>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.group >= self.inner.num_row_groups() {
            return None;
        }
        let records = self.next_group().map_err(|error| {
            Reason::from(format!("row group {} cannot be read: {error}", self.group))
                .about(self.path.display())
        });
        self.group += 1;
        Some(records)
    }
}

/// The largest row group that is read: 64 times the size that is written.
const MOST_ROWS: usize = 1 << 20;

fn fill(holds: &Holds, reader: ColumnReader, records: &mut [Record]) -> Result<(), ParquetError> {
    let rows = records.len();
    match (holds, reader) {
        (Holds::Int32(_, put), ColumnReader::Int32ColumnReader(reader)) => {
            each(reader, records, *put)?;
        }
        (Holds::Int64(_, put), ColumnReader::Int64ColumnReader(reader)) => {
            each(reader, records, *put)?;
        }
        (Holds::Time(_, put), ColumnReader::Int64ColumnReader(reader)) => {
            let (values, there) = values(reader, rows)?;
            let mut values = values.into_iter();
            for (record, there) in records.iter_mut().zip(there) {
                // Missing values are not stored, so the next value belongs to the next row that has
                // one.
                let value = if there == 1 { values.next().map(i64::cast_unsigned) } else { None };
                put(record, value.unwrap_or(NONE));
            }
        }
        (Holds::Flag(_, put), ColumnReader::BoolColumnReader(reader)) => {
            each(reader, records, *put)?;
        }
        (Holds::Word(_, put), ColumnReader::ByteArrayColumnReader(reader)) => {
            let (values, _) = values(reader, rows)?;
            let mut known = true;
            for (record, value) in records.iter_mut().zip(values) {
                known &= put(record, value.data());
            }
            if !known {
                return Err(ParquetError::General("a word that no version wrote".to_owned()));
            }
        }
        _ => return Err(ParquetError::General("a column of another type".to_owned())),
    }
    Ok(())
}

/// Puts the values of a column without nulls into the records.
fn each<T: DataType>(
    reader: ColumnReaderImpl<T>,
    records: &mut [Record],
    put: fn(&mut Record, T::T),
) -> Result<(), ParquetError> {
    let (values, _) = values(reader, records.len())?;
    records.iter_mut().zip(values).for_each(|(record, value)| put(record, value));
    Ok(())
}

/// All values of a column of a row group, and for each row whether it has one.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<(Vec<T::T>, Vec<i16>), ParquetError> {
    let (mut values, mut there) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let (got, ..) = reader.read_records(rows, Some(&mut there), None, &mut values)?;
    if got != rows {
        return Err(ParquetError::General(format!("{got} rows of {rows}")));
    }
    Ok((values, there))
}
