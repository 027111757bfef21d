//! The lists of a summary as tables, for spreadsheets and databases: CSV and Parquet.
//!
//! ```text
//!   { "streams": 20, "service": { "p50": 0.001 },        tables/figures.csv, .parquet: one row
//!     "seconds": [ { "frames": 500 }, ... ],             tables/seconds.csv, .parquet
//!     "blame": { "seconds": [ ... ] } }                  tables/blame_seconds.csv, .parquet
//! ```
//!
//! A column is named by the names of `summary.json` that lead to it, with `_` between them. Lists
//! within a row are left out: a run or a group that has them has a directory of its own.

use crate::error::MeterError;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The subdirectory of the tables.
const TABLES: &str = "tables";

/// Writes every list of a summary, and all its single figures, as tables into `dir`.
pub(super) fn save_tables(dir: &Path, summary: &Value) -> Result<(), MeterError> {
    let dir = dir.join(TABLES);
    std::fs::create_dir_all(&dir).map_err(MeterError::cannot("make", &dir))?;
    for table in tables(summary) {
        let path = dir.join(format!("{}.csv", table.name));
        std::fs::write(&path, table.csv()).map_err(MeterError::cannot("write", &path))?;
        let path = dir.join(format!("{}.parquet", table.name));
        table.parquet(&path).map_err(MeterError::cannot("write", &path))?;
    }
    Ok(())
}

/// A list of a summary as a table.
struct SummaryTable {
    name: String,
    columns: Vec<SummaryColumn>,
    rows: usize,
}

/// A column of a table: a value for each row, null where the row has none.
struct SummaryColumn {
    name: String,
    values: Vec<Value>,
}

/// What all values of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Whole,
    Number,
    Flag,
    Text,
}

/// All tables of a summary; the first has its single figures.
fn tables(summary: &Value) -> Vec<SummaryTable> {
    let mut lists = Vec::new();
    find_lists("", summary, &mut lists);
    let figures = SummaryTable::of("figures".into(), std::slice::from_ref(summary));
    let tables = lists.into_iter().map(|(name, rows)| SummaryTable::of(name, rows));
    std::iter::once(figures).chain(tables).filter(|table| !table.columns.is_empty()).collect()
}

fn find_lists<'a>(name: &str, value: &'a Value, lists: &mut Vec<(String, &'a [Value])>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                find_lists(&joined(name, field), value, lists);
            }
        }
        Value::Array(rows) if rows.iter().any(Value::is_object) => {
            lists.push((name.to_owned(), rows));
        }
        _ => {}
    }
}

fn joined(name: &str, field: &str) -> String {
    if name.is_empty() { field.to_owned() } else { format!("{name}_{field}") }
}

/// The figures of a row by their names.
fn flatten<'a>(name: &str, value: &'a Value, figures: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                flatten(&joined(name, field), value, figures);
            }
        }
        Value::Array(_) => {}
        figure => figures.push((name.to_owned(), figure)),
    }
}

impl SummaryTable {
    fn of(name: String, rows: &[Value]) -> Self {
        let mut columns: Vec<SummaryColumn> = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let mut figures = Vec::new();
            flatten("", row, &mut figures);
            for (name, value) in figures {
                let at = columns.iter().position(|column| column.name == name);
                let at = at.unwrap_or_else(|| {
                    columns.push(SummaryColumn { name, values: Vec::new() });
                    columns.len() - 1
                });
                let values = &mut columns[at].values;
                values.resize(number, Value::Null);
                values.push(value.clone());
            }
        }
        for column in &mut columns {
            column.values.resize(rows.len(), Value::Null);
        }
        Self { name, columns, rows: rows.len() }
    }

    /// The table as CSV (RFC 4180), with `\n` between rows.
    fn csv(&self) -> String {
        let mut text = line(self.columns.iter().map(|column| column.name.clone()));
        for row in 0..self.rows {
            text += &line(self.columns.iter().map(|column| plain(&column.values[row])));
        }
        text
    }

    fn parquet(&self, path: &Path) -> Result<(), ParquetError> {
        let fields = self.columns.iter().map(|column| column.field().map(Arc::new));
        let fields = fields.collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("tenuto").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("tenuto ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file = File::create(path)?;
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for column in &self.columns {
            column.put(&mut group)?;
        }
        group.close()?;
        writer.close().map(drop)
    }
}

impl SummaryColumn {
    fn kind(&self) -> ColumnKind {
        let all = |of: fn(&Value) -> bool| {
            self.values.iter().all(|value| value.is_null() || of(value))
                && self.values.iter().any(|value| !value.is_null())
        };
        match () {
            () if all(Value::is_i64) => ColumnKind::Whole,
            () if all(Value::is_number) => ColumnKind::Number,
            () if all(Value::is_boolean) => ColumnKind::Flag,
            () => ColumnKind::Text,
        }
    }

    fn field(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.kind() {
            ColumnKind::Whole => (PhysicalType::INT64, None),
            ColumnKind::Number => (PhysicalType::DOUBLE, None),
            ColumnKind::Flag => (PhysicalType::BOOLEAN, None),
            ColumnKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }

    fn put(&self, group: &mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError> {
        match self.kind() {
            ColumnKind::Whole => self.put_as::<Int64Type>(group, Value::as_i64),
            ColumnKind::Number => self.put_as::<DoubleType>(group, Value::as_f64),
            ColumnKind::Flag => self.put_as::<BoolType>(group, Value::as_bool),
            ColumnKind::Text => self.put_as::<ByteArrayType>(group, |value| {
                (!value.is_null()).then(|| ByteArray::from(plain(value).as_str()))
            }),
        }
    }

    fn put_as<T: DataType>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, File>,
        of: impl Fn(&Value) -> Option<T::T>,
    ) -> Result<(), ParquetError> {
        let cells: Vec<Option<T::T>> = self.values.iter().map(of).collect();
        let there: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        let values: Vec<T::T> = cells.into_iter().flatten().collect();
        let mut column = group.next_column()?.expect("the schema has these columns");
        column.typed::<T>().write_batch(&values, Some(&there), None)?;
        column.close()
    }
}

/// A row of CSV.
fn line(cells: impl Iterator<Item = String>) -> String {
    let quoted = cells.map(|cell| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

/// A figure as text; nothing for null.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::json;

    #[test]
    fn lists_become_tables_with_typed_columns() {
        let summary = json!({
            "streams": 2,
            "held": true,
            "scenario": { "target": "a, b", "agents": null },
            "late_by_second": [[1, 2]],
            "blame": { "seconds": [{ "busy": 0.5 }] },
            "runs": [
                { "streams": 1, "service": { "p50": 1, "name": "x" }, "each": [1] },
                { "streams": 4, "service": { "p50": 0.5 }, "confirmed": false },
            ],
        });
        let all = tables(&summary);
        let names: Vec<&str> = all.iter().map(|table| &*table.name).collect();
        assert_eq!(names, ["figures", "blame_seconds", "runs"]);
        assert_eq!(
            all[0].csv(),
            "held,scenario_agents,scenario_target,streams\ntrue,,\"a, b\",2\n"
        );
        assert_eq!(
            all[2].csv(),
            "service_name,service_p50,streams,confirmed\nx,1,1,\n,0.5,4,false\n"
        );
        let path = std::env::temp_dir().join(format!("meter-tables-{}", std::process::id()));
        all[2].parquet(&path).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| {
            let row = row.unwrap();
            row.get_column_iter().map(|(_, field)| field.clone()).collect::<Vec<_>>()
        });
        let first = [Field::Str("x".into()), Field::Double(1.0), Field::Long(1), Field::Null];
        let second = [Field::Null, Field::Double(0.5), Field::Long(4), Field::Bool(false)];
        assert_eq!(rows.collect::<Vec<_>>(), [first, second]);
        std::fs::remove_file(&path).unwrap();
    }
}
