//! `cargo xtask check`: rules that no compiler knows.
//!
//! A rule is a function from a file, or from a crate's files, to complaints; each complaint says
//! what to do. Only files that git tracks or would add are read.

use crate::names::TypeNames;
use crate::{circles, crate_table, item_docs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Runs all checks and lists what is wrong.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let mut complaints = crate_table::check(root)?;
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let names = files(root)?;
    let list = std::fs::read_to_string(root.join(PAGE_LIST)).unwrap_or_default();
    complaints.extend(unlisted_pages(&names, &list));
    for name in names {
        // A link or a media file has no text to check.
        let Ok(text) = std::fs::read_to_string(root.join(&name)) else { continue };
        complaints.extend(of_file(&name, &text).into_iter().map(|what| format!("{name}: {what}")));
        if let Some((crate_name, below_src)) = production_file(&name) {
            let files = crates.entry(crate_name.to_owned()).or_default();
            files.push((below_src.to_owned(), text));
        }
    }
    let mut all_types = TypeNames::default();
    for (name, files) in &crates {
        let types = TypeNames::of_crate(files);
        let found = circles::check(files).into_iter().chain(types.complaints(1));
        complaints.extend(found.map(|what| format!("{name}: {what}")));
        all_types.add(name, types);
    }
    complaints.extend(all_types.complaints(MOST_TYPES_OF_ONE_NAME));
    let [problems, errors] = [PROBLEM_PAGE, ERROR_PAGE]
        .map(|page| std::fs::read_to_string(root.join(page)).unwrap_or_default());
    let server = crates.get("crates/server").into_iter().flatten();
    let server: Vec<&str> = server.map(|(_, text)| text.as_str()).collect();
    complaints.extend(undocumented_words(&server, &PROBLEMS, (PROBLEM_PAGE, &problems)));
    complaints.extend(undocumented_words(&server, &ERRORS, (ERROR_PAGE, &errors)));
    let [log, webhooks] =
        EVENT_PAGES.map(|page| std::fs::read_to_string(root.join(page)).unwrap_or_default());
    complaints.extend(undocumented_events(&server, &(log + &webhooks)));
    if complaints.is_empty() {
        println!("all repository checks pass");
        return Ok(());
    }
    Err(format!("repository checks failed:\n  {}", complaints.join("\n  ")))
}

/// The crate's folder and the path below its `src/`; `None` for tests, benches and other files.
fn production_file(name: &str) -> Option<(&str, &str)> {
    let (crate_folder, below_src) = name.split_once("/src/")?;
    let is_test = below_src.ends_with("tests.rs") || below_src.contains("tests/");
    (below_src.ends_with(".rs") && !is_test).then_some((crate_folder, below_src))
}

fn files(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        // Also files that are not yet committed, so that a check before the commit sees them.
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        // A source archive without git: everything but what was built.
        return Ok(walk(root, root));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn walk(root: &Path, dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let skip = ["target", "node_modules", ".git"].iter().any(|name| path.ends_with(name));
        if path.is_dir() && !skip {
            names.extend(walk(root, &path));
        } else if path.is_file()
            && let Ok(name) = path.strip_prefix(root)
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names
}

/// What is wrong with one file.
fn of_file(name: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if name.ends_with(".rs") {
        complaints.extend(header(text));
        complaints.extend(unsafe_outside_device(name, text));
        complaints.extend(open_ends(text));
        complaints.extend(item_docs::check(text));
    }
    complaints.extend(machine_paths(text));
    complaints
}

/// A name in a third crate would have to be looked up each time.
const MOST_TYPES_OF_ONE_NAME: usize = 2;

/// The page that lists all pages of the documentation.
const PAGE_LIST: &str = "docs/README.md";

/// Pages below docs/ to which the list of pages has no link.
fn unlisted_pages(names: &[String], list: &str) -> Vec<String> {
    let pages = names.iter().filter(|name| name.ends_with(".md") && *name != PAGE_LIST);
    let below_docs = pages.filter_map(|name| name.strip_prefix("docs/"));
    below_docs
        .filter(|page| !list.contains(&format!("]({page})")))
        .map(|page| format!("{PAGE_LIST}: list the page {page}"))
        .collect()
}

/// The page with a table of the problems of the admin API.
const PROBLEM_PAGE: &str = "docs/reference/admin.md";

/// The page with a table of the errors of all other addresses.
const ERROR_PAGE: &str = "docs/reference/http.md";
/// How problems are made, and their status where it is no argument.
const PROBLEMS: [(&str, Option<&str>); 1] = [("Problem::new(", None)];
/// How other errors are made.
const ERRORS: [(&str, Option<&str>); 6] = [
    (" rejection(", None),
    ("Response::error(", None),
    ("Self::error(", None),
    ("::retry_later(", None),
    ("::of_any_address(", None),
    ("Response::unavailable(", Some("503")),
];

/// Errors that the server answers with, and that no row of their status names.
fn undocumented_words(
    files: &[&str],
    makers: &[(&str, Option<&str>)],
    (name, page): (&str, &str),
) -> Vec<String> {
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .filter(|(statuses, _)| statuses.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    let mut missing = Vec::new();
    let calls = files.iter().flat_map(|text| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        makers
            .iter()
            .flat_map(|(maker, status)| code.split(maker).skip(1).map(|call| (call, *status)))
    });
    for (call, known) in calls {
        // The arguments are a status and a word, where both are literals.
        let mut arguments =
            call.splitn(3, ',').map(|argument| argument.trim().trim_end_matches(')'));
        let Some(status) = known.or_else(|| arguments.next()) else { continue };
        let Some(word) = arguments.next().filter(|_| status.parse::<u16>().is_ok()) else {
            continue;
        };
        let Some(word) = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')) else {
            continue;
        };
        let names = format!("`{word}`");
        let is_there = |(statuses, what): &(&str, &str)| {
            statuses.split(", ").any(|one| one == status) && what.contains(&names)
        };
        if !rows.iter().any(is_there) {
            missing.push(format!("{name}: name {names} in the row of {status}"));
        }
    }
    missing
}

/// The pages with the events of a server's log.
const EVENT_PAGES: [&str; 2] = ["docs/reference/log.md", "docs/reference/webhooks.md"];

/// Events of the server's log that no row of a table begins with.
fn undocumented_events(files: &[&str], pages: &str) -> Vec<String> {
    let rows = pages.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let documented: BTreeSet<&str> = rows.flat_map(|names| names.split(['`', ','])).collect();
    let mut missing = BTreeSet::new();
    for text in files {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for opening in ["\"event\":", ".tell("] {
            let literals = code.split(opening).skip(1).map(str::trim_start);
            let literals = literals.filter_map(|rest| rest.strip_prefix('"')?.split('"').next());
            missing.extend(literals.filter(|name| !documented.contains(name)));
        }
    }
    missing.iter().map(|name| format!("{}: list the event `{name}`", EVENT_PAGES[0])).collect()
}

fn header(text: &str) -> Option<String> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    (!first.starts_with("//"))
        .then(|| "begin with a `//!` header: what it is for, what it leaves out".to_owned())
}

fn unsafe_outside_device(name: &str, text: &str) -> Option<String> {
    let allowed = name.starts_with("crates/device/");
    // Put together here so that this file does not trip over itself.
    let opens =
        ["{", "fn ", "impl ", "trait ", "extern "].map(|what| format!("unsaf\u{65} {what}"));
    let line = text.lines().position(|line| {
        let code = line.split("//").next().unwrap_or_default();
        opens.iter().any(|opening| code.contains(opening))
    })?;
    (!allowed).then(|| format!("line {}: `unsafe` lives in crates/device only", line + 1))
}

fn open_ends(text: &str) -> Vec<String> {
    // Put together here so that this file does not trip over itself.
    let words = ["TO\u{44}O", "FIX\u{4d}E", "XX\u{58}"];
    let macros = ["tod\u{6f}!(", "unimplemente\u{64}!("];
    let open = |line: &str| {
        macros.iter().any(|word| line.contains(word))
            || line.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| words.contains(&word))
    };
    lines_that(text, open, "finish it, or leave it out and say so")
}

/// A complaint for each line that `is_wrong`.
fn lines_that(text: &str, is_wrong: impl Fn(&str) -> bool, what: &str) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| is_wrong(line));
    lines.map(|(number, _)| format!("line {}: {what}", number + 1)).collect()
}

fn machine_paths(text: &str) -> Vec<String> {
    // Somebody's home folder says nothing to a reader elsewhere. (Put together here so that this
    // file does not trip over itself.)
    let places = ["/ho\u{6d}e/", "/User\u{73}/", "/roo\u{74}/"];
    let leaks = |line: &str| {
        places.iter().any(|place| {
            line.match_indices(place).any(|(at, _)| {
                // Part of an address or of a longer path.
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| !c.is_alphanumeric() && !"._-~}/)*".contains(c))
            })
        })
    };
    lines_that(text, leaks, "a path of one machine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_listed_is_found() {
        let names = ["docs/README.md", "docs/guide/a.md", "docs/guide/b.md", "README.md"];
        let names = names.map(str::to_owned);
        let list = "- [A](guide/a.md): a page";
        assert_eq!(unlisted_pages(&names, list), ["docs/README.md: list the page guide/b.md"]);
    }

    #[test]
    fn a_problem_that_the_page_does_not_name_is_found() {
        let page =
            "| status | when |\n|---|---|\n| 400 | `bad-body` |\n| 411, 413 | `too-large` |\n";
        let source = r#"Problem::new(400, "bad-body", why) Problem::new(
            413,
            "too-large",
        ) Problem::new(status, code, x) Problem::new(400, "too-large", x)"#;
        let found = undocumented_words(&[source], &PROBLEMS, ("p.md", page));
        assert_eq!(found, ["p.md: name `too-large` in the row of 400"]);
        let source = r#"Response::unavailable("busy", x) Response::error(400, "bad-body", x)
            const A: B = rejection(400, "malformed", "x"); fn rejection(status: u16, code: C)"#;
        let mut found = undocumented_words(&[source], &ERRORS, ("p.md", page));
        found.sort_unstable();
        let [malformed, busy] = [("malformed", 400), ("busy", 503)]
            .map(|(word, status)| format!("p.md: name `{word}` in the row of {status}"));
        assert_eq!(found, [busy, malformed]);
    }

    #[test]
    fn an_event_that_no_page_lists_is_found() {
        let pages = "| `event` | when |\n|---|---|\n| `one`, `two` | now |\n";
        let source = r#"json!({ "event": "one" }) self.tell("two", x) self.tell(
            "three", x)
            #[cfg(test)] json!({ "event": "four" })"#;
        let found = undocumented_events(&[source], pages);
        assert_eq!(found, [format!("{}: list the event `three`", EVENT_PAGES[0])]);
    }

    #[test]
    fn each_rule_finds_what_it_is_for() {
        let good = "//! Fine.\nfn main() {}\n";
        assert_eq!(of_file("crates/x/src/main.rs", good), [""; 0]);
        for (name, text, found) in [
            ("crates/x/src/a.rs", "fn main() {}\n", "begin with"),
            ("crates/x/src/a.rs", "//! X\nunsaf\u{65} fn f() {}\n", "line 2: `unsafe`"),
            ("crates/x/src/a.rs", "//! X\n// TO\u{44}O: later\n", "line 2: finish"),
            ("docs/a.md", "see /ho\u{6d}e/ann/film.mkv", "line 1: a path of one machine"),
        ] {
            let complaints = of_file(name, text);
            assert!(complaints.len() == 1 && complaints[0].contains(found), "{complaints:?}");
        }
        assert_eq!(of_file("crates/device/src/a.rs", "//! X\nunsaf\u{65} fn f() {}\n"), [""; 0]);
        assert_eq!(of_file("docs/a.md", "https://example.org/ho\u{6d}e/x"), [""; 0]);
    }
}
