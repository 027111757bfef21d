//! Writes records into a Parquet file, one row group at a time.

use super::columns::Columns;
use super::schema::{COLUMNS, Holds, message};
use super::{Record, VERSION};
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Reason;

/// A log that is being written. Readable only after [`LogWriter::finish`].
pub(crate) struct LogWriter {
    path: PathBuf,
    inner: SerializedFileWriter<File>,
    columns: Columns,
    records: u64,
}

impl LogWriter {
    /// Creates a new file; an existing one is not touched.
    pub(crate) fn create(path: &Path) -> Result<Self, Reason> {
        let file = File::create_new(path).map_err(|error| failed(path, &error.to_string()))?;
        let schema = parse_message_type(&message()).expect("the column table gives a valid schema");
        let properties = Arc::new(properties());
        let inner = SerializedFileWriter::new(file, Arc::new(schema), properties.clone())
            .map_err(|error| failed(path, &error.to_string()))?;
        let columns = Columns::new(inner.schema_descr(), properties);
        Ok(Self { path: path.to_owned(), inner, columns, records: 0 })
    }

    /// Writes one row group.
    pub(crate) fn put(&mut self, records: &[Record]) -> Result<(), Reason> {
        if records.is_empty() {
            return Ok(());
        }
        self.group(records).map_err(|error| failed(&self.path, &error.to_string()))?;
        self.records += records.len() as u64;
        Ok(())
    }

    fn group(&mut self, records: &[Record]) -> Result<(), ParquetError> {
        let mut group = self.inner.next_row_group()?;
        self.columns.put(&mut group, records)?;
        group.close().map(drop)
    }

    /// The number of records written.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Completes the file. `about` has key and value pairs for its metadata.
    pub(crate) fn finish(mut self, about: &[(&str, String)]) -> Result<(), Reason> {
        for (name, text) in about {
            let entry = KeyValue::new(format!("tenuto.{name}"), text.clone());
            self.inner.append_key_value_metadata(entry);
        }
        self.inner.close().map(drop).map_err(|e| failed(&self.path, &e.to_string()))
    }
}

fn failed(path: &Path, reason: &str) -> Reason {
    format!("{}: the log cannot be written: {reason}", path.display()).into()
}

fn properties() -> WriterProperties {
    let version = KeyValue::new("tenuto.schema".to_owned(), VERSION.to_string());
    let builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(concat!("tenuto ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(vec![version]))
        .set_dictionary_enabled(false);
    // Delta encoding makes slowly growing numbers small.
    COLUMNS
        .iter()
        .fold(builder, |builder, column| {
            let path = ColumnPath::from(column.name);
            match column.holds {
                Holds::Int32(..) | Holds::Int64(..) | Holds::Time(..) => {
                    builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
                Holds::Word(..) => builder.set_column_dictionary_enabled(path, true),
                Holds::Flag(..) => builder,
            }
        })
        .build()
}
