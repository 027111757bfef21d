//! Reports as plain text for terminals.

/// A table whose columns are padded with blanks.
pub struct TextTable {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with these columns; a title that starts with `>` aligns its column to the right.
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// A table with these columns and rows.
    pub fn with_rows(head: &[&'static str], rows: Vec<Vec<String>>) -> Self {
        Self { head: head.to_vec(), rows }
    }

    /// Appends a row with a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// The table as lines of text.
    pub fn show(&self) -> String {
        let titles: Vec<&str> = self.head.iter().map(|h| h.trim_start_matches('>')).collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([titles[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let mut line = String::new();
            for (column, cell) in cells.into_iter().enumerate() {
                let width = widths[column];
                let right = self.head[column].starts_with('>');
                let cell =
                    if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                line += if column > 0 { "  " } else { "" };
                line += &cell;
            }
            line.trim_end().to_owned() + "\n"
        };
        let mut text = line(titles.clone());
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text
    }
}

/// Facts as text, one per line: `label  value`.
pub fn facts(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    lines.iter().map(|(label, value)| format!("{label:<width$}  {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn tables_are_aligned() {
        let mut table = TextTable::new(&["title", ">size"]);
        table.row(vec!["Nosferatu".into(), "1 GiB".into()]);
        table.row(vec!["Ü".into(), "12.5 GiB".into()]);
        expect![[r"
            title          size
            Nosferatu     1 GiB
            Ü          12.5 GiB
        "]]
        .assert_eq(&table.show());
    }
}
