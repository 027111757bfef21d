//! The page: blocks from top to bottom.

use std::fmt::Write as _;

/// One HTML page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Shown on top and in the browser's tab.
    pub title: String,
    /// One paragraph under the title: what this is and what came out.
    pub summary: String,
    /// From top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a page. All text is plain text; the page escapes it.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Lines as typed or printed.
    Code(String),
    /// Rows of cells under a head. Cells that begin with a digit stand on the right.
    Table {
        /// Names of the columns.
        head: Vec<String>,
        /// Row by row.
        rows: Vec<Vec<String>>,
    },
    /// A picture as `Plot::svg` draws it, and how to read it.
    Plot {
        /// From `<svg` to `</svg>`.
        svg: String,
        /// What is seen, and what would be bad.
        explanation: String,
    },
}

impl Page {
    /// The whole page.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let summary = escape(&self.summary);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n<h1>{title}</h1>\n<p class=\"summary\">{summary}</p>\n"
        );
        for block in &self.blocks {
            block.write(&mut out);
        }
        out.push_str("</html>\n");
        out
    }
}

impl Block {
    fn write(&self, out: &mut String) {
        let written = match self {
            Self::Heading(text) => writeln!(out, "<h2>{}</h2>", escape(text)),
            Self::Text(text) => writeln!(out, "<p>{}</p>", escape(text)),
            Self::Code(text) => writeln!(out, "<pre>{}</pre>", escape(text)),
            Self::Table { head, rows } => {
                let head: String = head.iter().map(|cell| tag("th", cell)).collect();
                let rows: String = rows
                    .iter()
                    .map(|row| row.iter().map(|cell| tag("td", cell)).collect::<String>())
                    .map(|cells| format!("<tr>{cells}</tr>\n"))
                    .collect();
                writeln!(out, "<table>\n<tr>{head}</tr>\n{rows}</table>")
            }
            Self::Plot { svg, explanation } => writeln!(
                out,
                "<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>",
                escape(explanation)
            ),
        };
        written.expect("writing to a string cannot fail");
    }
}

fn tag(name: &str, text: &str) -> String {
    let number = text.starts_with(|first: char| first.is_ascii_digit());
    let class = if number { " class=\"number\"" } else { "" };
    format!("<{name}{class}>{}</{name}>", escape(text))
}

/// Text as HTML shows it unchanged.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Readable on paper and on a telephone.
const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
h1 { line-height: 1.2 } .summary { font-size: 1.1em }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { text-align: left; padding: .2rem .8rem; border-bottom: 1px solid #ccc }
.number { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 2rem 0 } svg { max-width: 100%; height: auto } figcaption { color: #555 }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto }
";

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_page_reads_from_top_to_bottom_and_escapes_what_it_is_given() {
        let page = Page {
            title: "Films & <b>more</b>".into(),
            summary: "What happened.".into(),
            blocks: vec![
                Block::Heading("Run".into()),
                Block::Code("tenuto play \"x\"".into()),
                Block::Table {
                    head: vec!["what".into(), "count".into()],
                    rows: vec![vec!["admitted".into(), "42".into()]],
                },
                Block::Plot { svg: "<svg></svg>\n".into(), explanation: "Up is <good>.".into() },
            ],
        };
        let html = page.html();
        let body = &html[html.find("<h1>").unwrap()..];
        expect![[r#"
            <h1>Films &amp; &lt;b&gt;more&lt;/b&gt;</h1>
            <p class="summary">What happened.</p>
            <h2>Run</h2>
            <pre>tenuto play &quot;x&quot;</pre>
            <table>
            <tr><th>what</th><th>count</th></tr>
            <tr><td>admitted</td><td class="number">42</td></tr>
            </table>
            <figure>
            <svg></svg>
            <figcaption>Up is &lt;good&gt;.</figcaption>
            </figure>
            </html>
        "#]]
        .assert_eq(body);
    }
}
