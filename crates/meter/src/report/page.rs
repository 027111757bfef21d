//! The HTML page: blocks from top to bottom, in one file.
//!
//! A plot is in the page twice: as a fixed picture, and as data in JSON, of which the script of the
//! page draws an interactive one in the picture's place. The script is that of the web console, so
//! that a plot looks and behaves the same in both. The picture is seen where no script runs, and of
//! a program that was built without the console the page has pictures only. The policy of the page
//! allows its own script and style by their digests, and no request to anywhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// One HTML page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title at the top and in the browser's tab.
    pub title: String,
    /// The paragraph under the title: the subject and the result.
    pub summary: String,
    /// The content from top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a page. All text is plain text; the page escapes it.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Preformatted lines.
    Code(String),
    /// The result in one sentence, in the colour of its kind.
    Verdict(VerdictKind, String),
    /// The main figures, side by side.
    KeyFigures(Vec<KeyFigure>),
    /// A table with a header. Columns in which all cells begin with a digit are aligned right.
    Table {
        /// The headings of the columns.
        head: Vec<String>,
        /// The rows.
        rows: Vec<Vec<String>>,
    },
    /// A plot with an explanation.
    Plot {
        /// The picture: the SVG text from `<svg` to `</svg>`.
        svg: String,
        /// The data, of which the script of the page draws the plot (console/src/plots/data.ts).
        data: Value,
        /// What the plot shows, and what a bad result looks like.
        explanation: String,
    },
}

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// What was asked of the storage was held.
    Held,
    /// The load was not held.
    NotHeld,
    /// The measurement does not tell.
    Unknown,
}

/// One main figure of a report.
#[derive(Clone, Debug)]
pub struct KeyFigure {
    /// The name of the figure in a word or two.
    pub name: String,
    /// The value, shown large.
    pub value: String,
    /// The meaning in a sentence or two.
    pub meaning: String,
}

impl Page {
    /// The page as HTML text.
    pub fn html(&self) -> String {
        let has_plots = self.blocks.iter().any(|block| matches!(block, Block::Plot { .. }));
        self.html_with(web_console::report_script().filter(|_| has_plots))
    }

    /// The page with this script for its plots, or with fixed pictures of them.
    fn html_with(&self, script: Option<&str>) -> String {
        let title = escape(&self.title);
        let summary = escape(&self.summary);
        let policy = policy(script);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n<main>\n<h1>{title}</h1>\n<p class=\"summary\">{summary}</p>\n"
        );
        for block in &self.blocks {
            block.write(&mut out, script.is_some());
        }
        out.push_str("</main>\n");
        if let Some(script) = script {
            let _ = writeln!(out, "<script>{script}</script>");
        }
        out.push_str("</html>\n");
        out
    }
}

impl Block {
    /// A table with these columns; a leading `>` of a heading, which text tables need, is left out.
    pub fn table(head: &[&str], rows: Vec<Vec<String>>) -> Self {
        let head = head.iter().map(|title| title.trim_start_matches('>').to_owned()).collect();
        Self::Table { head, rows }
    }

    /// A table with two columns.
    pub fn facts(head: [&str; 2], lines: Vec<(&str, String)>) -> Self {
        let row = |(label, value): (&str, String)| vec![label.to_owned(), value];
        Self::table(&head, lines.into_iter().map(row).collect())
    }

    fn write(&self, out: &mut String, has_script: bool) {
        let written = match self {
            Self::Heading(text) => writeln!(out, "<h2>{}</h2>", escape(text)),
            Self::Text(text) => writeln!(out, "<p>{}</p>", escape(text)),
            Self::Code(text) => writeln!(out, "<pre>{}</pre>", escape(text)),
            Self::Verdict(kind, text) => {
                let class = match kind {
                    VerdictKind::Held => "held",
                    VerdictKind::NotHeld => "not-held",
                    VerdictKind::Unknown => "unknown",
                };
                writeln!(out, "<p class=\"verdict {class}\">{}</p>", escape(text))
            }
            Self::KeyFigures(findings) => {
                let all: String = findings.iter().map(KeyFigure::html).collect();
                writeln!(out, "<div class=\"findings\">\n{all}</div>")
            }
            Self::Table { head, rows } => {
                // A column of numbers is aligned right, with its title.
                let is_figures = |at: usize| {
                    let figure = |row: &Vec<String>| row.get(at).is_none_or(|cell| is_figure(cell));
                    !rows.is_empty() && rows.iter().all(figure)
                };
                let right: Vec<bool> = (0..head.len()).map(is_figures).collect();
                let line = |name: &str, cells: &[String]| {
                    let cells = cells.iter().zip(&right);
                    cells.map(|(cell, right)| tag(name, cell, *right)).collect::<String>()
                };
                let head = line("th", head);
                let rows: String =
                    rows.iter().map(|row| format!("<tr>{}</tr>\n", line("td", row))).collect();
                // The keyboard scrolls what has the focus.
                writeln!(
                    out,
                    "<div class=\"wide\" tabindex=\"0\"><table>\n<tr>{head}</tr>\n{rows}</table></div>"
                )
            }
            Self::Plot { svg, data, explanation } => {
                let data = if has_script { data_element(data) } else { String::new() };
                let picture = format!("<div class=\"wide\">{svg}</div>");
                let caption = escape(explanation);
                writeln!(
                    out,
                    "<figure>\n{data}{picture}<figcaption>{caption}</figcaption>\n</figure>"
                )
            }
        };
        written.expect("writing to a string cannot fail");
    }
}

impl KeyFigure {
    fn html(&self) -> String {
        let [name, value, meaning] =
            [&self.name, &self.value, &self.meaning].map(|text| escape(text));
        format!("<div><p>{name}</p><p class=\"value\">{value}</p><p>{meaning}</p></div>\n")
    }
}

/// Whether a cell is aligned right and kept on one line: not a sentence that begins with a number.
fn is_figure(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_digit());
    text == "-" || (begins && text.len() <= LONGEST_FIGURE)
}

/// The most bytes of a figure with its unit.
const LONGEST_FIGURE: usize = 24;

fn tag(name: &str, text: &str, right: bool) -> String {
    let class = if right { " class=\"number\"" } else { "" };
    format!("<{name}{class}>{}</{name}>", escape(text))
}

/// Data for the script of the page. A name within it cannot end the element: JSON has another way
/// to write a `<`.
fn data_element(data: &Value) -> String {
    let json = data.to_string().replace('<', "\\u003c");
    format!("<script type=\"application/json\">{json}</script>\n")
}

/// The content-security policy: this style and this script, and nothing else.
fn policy(script: Option<&str>) -> String {
    let digest = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let script = script.map_or("'none'".to_owned(), digest);
    let style = digest(STYLE);
    // Nothing of `default-src` is a picture, a font, or a request.
    format!(
        "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; \
         form-action 'none'"
    )
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The style sheet, for paper and telephones: what is wider than the page scrolls by itself, and a
/// fixed picture stays large enough to be read. Where the reader prefers a dark screen, it is shown
/// with inverted brightness and the same hues; on paper everything is light. The script brings the
/// styles of its plots.
const STYLE: &str = "
:root { color-scheme: light dark }
body { --ink: #222; --paper: #fff; --dim: #555; --line: #ccc; --box: #f4f4f4; --accent: #0072b2;
  --good: #00664b; --bad: #a33c00;
  font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--paper); overflow-wrap: break-word }
.verdict { font-size: 1.1em; font-weight: 600; padding: .5rem .9rem; border-left: 6px solid var(--dim);
  background: var(--box) }
.verdict.held { color: var(--good); border-color: var(--good) }
.verdict.not-held { color: var(--bad); border-color: var(--bad) }
h1 { line-height: 1.2; margin-bottom: .5rem } h2 { line-height: 1.3; margin-top: 2.5rem }
.summary { font-size: 1.1em; margin-top: 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem;
  border-bottom: 1px solid var(--line) }
th { vertical-align: bottom; border-bottom: 2px solid var(--dim) }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
figure { margin: 2rem 0 } .wide svg { max-width: 100%; height: auto; display: block }
figcaption { color: var(--dim); margin-top: .4rem }
pre { background: var(--box); padding: .6rem; overflow-x: auto }
.findings { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 1rem;
  margin: 1.5rem 0 }
.findings div { border: 1px solid var(--line); border-top: 4px solid var(--accent); padding: .6rem .9rem }
.findings p { margin: 0; color: var(--dim); font-size: .95em }
.findings .value { color: var(--ink); font-size: 1.6rem; font-weight: 600; line-height: 1.3 }
@media (max-width: 45rem) { .wide svg { max-width: none; width: 44rem } }
@media screen and (prefers-color-scheme: dark) {
  body { --ink: #e6e6e6; --paper: #161616; --dim: #a8a8a8; --line: #444; --box: #262626;
    --accent: #56b4e9; --good: #4dd2a5; --bad: #ff9d66 }
  .wide svg { filter: invert(.91) hue-rotate(180deg) } }
@media print { :root { color-scheme: light } body { max-width: none; margin: 0; font-size: 11pt }
  figure, tr, .findings div { break-inside: avoid } h2 { break-after: avoid } }
";

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_page_has_its_blocks_in_order_and_escapes_their_text() {
        let page = Page {
            title: "Films & <b>more</b>".into(),
            summary: "What happened.".into(),
            blocks: vec![
                Block::Verdict(VerdictKind::NotHeld, "9 of 10 < late.".into()),
                Block::Heading("Run".into()),
                Block::Code("tenuto play \"x\"".into()),
                Block::KeyFigures(vec![KeyFigure {
                    name: "holds".into(),
                    value: "> 3".into(),
                    meaning: "Sure.".into(),
                }]),
                Block::Table {
                    head: vec!["what".into(), "count".into()],
                    rows: vec![
                        vec!["admitted".into(), "42".into()],
                        vec!["refused".into(), "-".into()],
                    ],
                },
                plot("a </script><b>"),
            ],
        };
        let html = page.html_with(None);
        assert!(html.contains("prefers-color-scheme: dark"), "{html}");
        let body = &html[html.find("<h1>").unwrap()..];
        expect![[r#"
            <h1>Films &amp; &lt;b&gt;more&lt;/b&gt;</h1>
            <p class="summary">What happened.</p>
            <p class="verdict not-held">9 of 10 &lt; late.</p>
            <h2>Run</h2>
            <pre>tenuto play &quot;x&quot;</pre>
            <div class="findings">
            <div><p>holds</p><p class="value">&gt; 3</p><p>Sure.</p></div>
            </div>
            <div class="wide" tabindex="0"><table>
            <tr><th>what</th><th class="number">count</th></tr>
            <tr><td>admitted</td><td class="number">42</td></tr>
            <tr><td>refused</td><td class="number">-</td></tr>
            </table></div>
            <figure>
            <div class="wide"><svg></svg>
            </div><figcaption>Up is &lt;good&gt;.</figcaption>
            </figure>
            </main>
            </html>
        "#]]
        .assert_eq(body);
    }

    fn plot(name: &str) -> Block {
        let data = serde_json::json!({ "kind": "lines", "title": name });
        Block::Plot { svg: "<svg></svg>\n".into(), data, explanation: "Up is <good>.".into() }
    }

    #[test]
    fn the_data_of_a_plot_cannot_end_its_element_and_the_policy_names_the_only_script() {
        let page = Page { blocks: vec![plot("a </script><b>")], ..Page::default() };
        let html = page.html_with(Some("draw()"));
        let body = &html[html.find("<figure>").unwrap()..];
        expect![[r#"
            <figure>
            <script type="application/json">{"kind":"lines","title":"a \u003c/script>\u003cb>"}</script>
            <div class="wide"><svg></svg>
            </div><figcaption>Up is &lt;good&gt;.</figcaption>
            </figure>
            </main>
            <script>draw()</script>
            </html>
        "#]]
        .assert_eq(body);
        // printf 'draw()' | openssl dgst -sha256 -binary | base64
        let digest = "script-src 'sha256-jm3FkV4tNIdBUr8jRVVl5n9PUixlaxTWD0pdpFiSH5A=';";
        assert!(html.contains(digest), "{html}");
        let without = page.html_with(None);
        assert!(without.contains("script-src 'none'") && !without.contains("<script"), "{without}");
    }
}
