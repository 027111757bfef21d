//! The outcome of a reproduced result: tables with the paper's figures beside ours, figures to
//! draw, and notes. It consists of values only; nothing is printed or written here.

use super::{Block, Page, Plot};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt;
use units::Reason;

/// The outcome of a reproduced result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The source: paper, and table or figure.
    pub source: String,
    /// The method of the reproduction, in one paragraph.
    pub method: String,
    /// The tables that compare the figures.
    pub tables: Vec<Table>,
    /// What a reader must know to compare.
    pub notes: Vec<String>,
    /// The figures to draw.
    pub figures: Vec<Figure>,
}

/// A table of rows under named columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name for programs, one word: `streams`.
    pub name: &'static str,
    /// The heading for readers.
    pub title: &'static str,
    /// (name for programs, heading for readers); a heading that starts with `>` is aligned right.
    pub columns: Vec<(&'static str, &'static str)>,
    /// Rows with one cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number with a fixed count of decimals.
    Number(f64, usize),
    /// No value: the paper or the reproduction has none.
    Missing,
}

/// A cell and the column that it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCell {
    column: (&'static str, &'static str),
    cell: Cell,
}

/// A cell of [`Table::add`]: the column's name for programs, its heading for readers (aligned right
/// if it starts with `>`), and the value.
pub fn cell(name: &'static str, heading: &'static str, value: impl Into<Cell>) -> NamedCell {
    NamedCell { column: (name, heading), cell: value.into() }
}

/// A plot drawn from numbers. Serialized as `{"name", "title", "x", "y", "series": [{"name",
/// "points": [[x, y]]}], "explanation"}`.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The name for files, one word: `rounds-raw`.
    pub name: &'static str,
    /// The numbers.
    #[serde(flatten)]
    pub plot: Plot,
    /// What the plot shows, and how to read it.
    pub explanation: String,
}

impl Report {
    /// The report as one HTML page with this title.
    pub fn page(&self, title: &str) -> Result<Page, Reason> {
        let mut blocks = Vec::new();
        for table in &self.tables {
            blocks.push(Block::Heading(table.title.to_owned()));
            blocks.push(Block::Table {
                head: table.titles().map(str::to_owned).collect(),
                rows: table.shown(),
            });
        }
        for figure in &self.figures {
            blocks.push(figure.plot.block(&figure.explanation)?);
        }
        blocks.extend(self.notes.iter().cloned().map(Block::Text));
        let summary = format!("{}. {}", self.source, self.method);
        Ok(Page { title: title.to_owned(), summary, blocks })
    }
}

impl Table {
    /// An empty table; the first row gives the columns.
    pub fn new(name: &'static str, title: &'static str) -> Self {
        Self { name, title, columns: Vec::new(), rows: Vec::new() }
    }

    /// A table of rows whose cells name their columns, the same ones in every row.
    pub fn of<Row: IntoIterator<Item = NamedCell>>(
        name: &'static str,
        title: &'static str,
        rows: impl IntoIterator<Item = Row>,
    ) -> Self {
        let mut table = Self::new(name, title);
        rows.into_iter().for_each(|row| table.add(row));
        table
    }

    /// Adds a row whose cells name their columns: those of the first row.
    pub fn add(&mut self, row: impl IntoIterator<Item = NamedCell>) {
        let (columns, cells): (Vec<_>, Vec<_>) =
            row.into_iter().map(|NamedCell { column, cell }| (column, cell)).unzip();
        if self.columns.is_empty() {
            self.columns.clone_from(&columns);
        }
        assert_eq!(columns, self.columns, "the rows of {} have the same columns", self.name);
        self.rows.push(cells);
    }

    /// The columns' headings without alignment marks.
    pub fn titles(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(_, title)| title.trim_start_matches('>'))
    }

    /// The rows as text.
    pub fn shown(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(|row| row.iter().map(Cell::to_string).collect()).collect()
    }

    /// The cell in the column `column` of the first row whose text starts with `row`.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        let place = self.columns.iter().position(|(name, _)| *name == column)?;
        let row = self.rows.iter().find(|cells| cells[0].to_string() == row)?;
        row.get(place)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number, decimals) => write!(f, "{number:.decimals$}"),
            Self::Missing => f.write_str("-"),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Cell {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

/// No value is [`Cell::Missing`].
impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, T::into)
    }
}

/// Serialized as `{"name", "title", "rows": [{column: value}]}`.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: Vec<JsonRow<'_>> =
            self.rows.iter().map(|cells| JsonRow(&self.columns, cells)).collect();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("title", self.title)?;
        map.serialize_entry("rows", &rows)?;
        map.end()
    }
}

struct JsonRow<'a>(&'a [(&'static str, &'static str)], &'a [Cell]);

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, _)| name).zip(self.1))
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Number(number, _) => serializer.serialize_f64(*number),
            Self::Missing => serializer.serialize_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_report_is_a_page_and_an_object() {
        let rows =
            [("bound", 70_u64.into()), ("rate", Cell::Number(68.38, 1)), ("none", Cell::Missing)];
        let rows = rows.map(|(by, ours)| [cell("by", "by", by), cell("ours", ">ours", ours)]);
        let table = Table::of("streams", "Streams", rows);
        assert_eq!(table.cell("rate", "ours").unwrap().to_string(), "68.4");
        let report = Report {
            source: "Somebody, table 1".to_owned(),
            method: "Counted.".into(),
            tables: vec![table],
            notes: vec!["Take care.".into()],
            figures: Vec::new(),
        };
        expect![[r#"
            {
              "source": "Somebody, table 1",
              "method": "Counted.",
              "tables": [
                {
                  "name": "streams",
                  "title": "Streams",
                  "rows": [
                    {
                      "by": "bound",
                      "ours": 70
                    },
                    {
                      "by": "rate",
                      "ours": 68.38
                    },
                    {
                      "by": "none",
                      "ours": null
                    }
                  ]
                }
              ],
              "notes": [
                "Take care."
              ],
              "figures": []
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&report).unwrap());
        let html = report.page("Again").unwrap().html();
        assert!(html.contains("<td class=\"number\">68.4</td>"), "{html}");
        assert!(html.contains("Somebody, table 1. Counted."), "{html}");
    }
}
