//! Records into a Parquet file, a row group at a time.

use super::schema::{COLUMNS, Holds, message, times};
use super::{LogError, Record, VERSION};
use parquet::basic::Encoding;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log that is being written. Readable only after [`Writer::finish`].
pub struct Writer {
    path: PathBuf,
    inner: SerializedFileWriter<File>,
    records: u64,
}

impl Writer {
    /// A new file; what is there already is not touched.
    pub fn create(path: &Path) -> Result<Self, LogError> {
        let file = File::create_new(path).map_err(|error| failed(path, &error.to_string()))?;
        let schema = parse_message_type(&message()).expect("the table makes a schema");
        let inner = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties()))
            .map_err(|error| failed(path, &error.to_string()))?;
        Ok(Self { path: path.to_owned(), inner, records: 0 })
    }

    /// One more row group.
    pub fn put(&mut self, records: &[Record]) -> Result<(), LogError> {
        if records.is_empty() {
            return Ok(());
        }
        group(&mut self.inner, records).map_err(|e| failed(&self.path, &e.to_string()))?;
        self.records += records.len() as u64;
        Ok(())
    }

    /// So many are in it.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// `about` goes into the file's metadata: names and texts for whoever opens it.
    pub fn finish(mut self, about: &[(&str, String)]) -> Result<(), LogError> {
        for (name, text) in about {
            let entry = KeyValue::new(format!("tenuto.{name}"), text.clone());
            self.inner.append_key_value_metadata(entry);
        }
        self.inner.close().map(drop).map_err(|e| failed(&self.path, &e.to_string()))
    }
}

fn failed(path: &Path, reason: &str) -> LogError {
    let reason = format!("the log cannot be written: {reason}");
    LogError { path: path.to_owned(), reason }
}

fn properties() -> WriterProperties {
    let version = KeyValue::new("tenuto.schema".to_owned(), VERSION.to_string());
    let builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(concat!("tenuto ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(vec![version]))
        .set_dictionary_enabled(false);
    // Numbers that grow by little become few bytes.
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

fn group(file: &mut SerializedFileWriter<File>, records: &[Record]) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in COLUMNS {
        let mut writer = group.next_column()?.expect("as many columns as the table has");
        match column.holds {
            Holds::Int32(of, _) => {
                let values: Vec<i32> = records.iter().map(of).collect();
                writer.typed::<Int32Type>().write_batch(&values, None, None)?;
            }
            Holds::Int64(of, _) => {
                let values: Vec<i64> = records.iter().map(of).collect();
                writer.typed::<Int64Type>().write_batch(&values, None, None)?;
            }
            Holds::Time(of, _) => {
                let (values, there) = times(records, of);
                writer.typed::<Int64Type>().write_batch(&values, Some(&there), None)?;
            }
            Holds::Flag(of, _) => {
                let values: Vec<bool> = records.iter().map(of).collect();
                writer.typed::<BoolType>().write_batch(&values, None, None)?;
            }
            Holds::Word(of, _) => {
                let values = words(records, of);
                writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            }
        }
        writer.close()?;
    }
    group.close().map(drop)
}

/// A column of few words, which all rows share.
fn words(records: &[Record], of: fn(&Record) -> &'static str) -> Vec<ByteArray> {
    let mut known: Vec<(&str, ByteArray)> = Vec::new();
    let shared = |record| {
        let word = of(record);
        let place = known.iter().position(|(one, _)| *one == word).unwrap_or_else(|| {
            known.push((word, ByteArray::from(word)));
            known.len() - 1
        });
        known[place].1.clone()
    };
    records.iter().map(shared).collect()
}
