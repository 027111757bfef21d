//! The crate table of ARCHITECTURE.md is the truth: it must list exactly the crates there are,
//! with exactly the crates of ours that each uses, and arrows only pointing down.
//!
//! ```text
//!   | layer | crate | what it is for | uses |
//!   | 1     | `disk` | ...           | units |
//! ```

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// A crate as the table or cargo has it: the crates of ours that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Compares the table with `cargo metadata`.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md"))
        .map_err(|error| format!("cannot read ARCHITECTURE.md: {error}"))?;
    let (layers, drawn) = table(&page);
    Ok(compare(&layers, &drawn, &from_cargo(root)?))
}

/// Rows of the one table whose cells are: a number, a crate in backquotes, words, crates.
fn table(page: &str) -> (BTreeMap<String, u32>, Uses) {
    let mut layers = BTreeMap::new();
    let mut uses = Uses::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, layer, name, _, used, _] = cells[..] else { continue };
        let Ok(layer) = layer.parse() else { continue };
        let name = name.trim_matches('`').to_owned();
        let words = used.split([',', ' ']).map(|word| word.trim_matches('`'));
        let crates = words.filter(|word| !word.is_empty() && *word != "-").map(str::to_owned);
        uses.insert(name.clone(), crates.collect());
        layers.insert(name, layer);
    }
    (layers, uses)
}

fn from_cargo(root: &Path) -> Result<Uses, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        // Offline, because the manifests of this workspace are enough.
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    let json: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut uses = Uses::new();
    for package in list(&json["packages"]) {
        let ours = list(&package["dependencies"])
            .iter()
            // `kind` is null for what is linked in; tests may use more.
            .filter(|dependency| dependency["path"].is_string() && dependency["kind"].is_null())
            .map(|dependency| text(&dependency["name"]))
            .collect();
        uses.insert(text(&package["name"]), ours);
    }
    Ok(uses)
}

fn compare(layers: &BTreeMap<String, u32>, drawn: &Uses, real: &Uses) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut say = |what: String| complaints.push(format!("ARCHITECTURE.md, crate table: {what}"));
    for name in drawn.keys().filter(|name| !real.contains_key(*name)) {
        say(format!("there is no crate `{name}`"));
    }
    for (name, uses) in real {
        let Some(listed) = drawn.get(name) else {
            say(format!("`{name}` is missing"));
            continue;
        };
        if listed != uses {
            let uses: Vec<&str> = uses.iter().map(String::as_str).collect();
            say(format!("`{name}` uses {}", uses.join(", ")));
        }
        for used in uses.iter().filter(|used| layers.get(*used) >= layers.get(name)) {
            say(format!("`{name}` uses `{used}`, which is not below it"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
| layer | crate | what | uses |
|---|---|---|---|
| 0 | `units` | quantities | - |
| 1 | `disk` | disks | units |
";

    fn uses(list: &[(&str, &[&str])]) -> Uses {
        list.iter()
            .map(|(name, used)| {
                ((*name).to_owned(), used.iter().map(|word| (*word).to_owned()).collect())
            })
            .collect()
    }

    #[test]
    fn a_true_table_passes_and_a_lie_is_named() {
        let (layers, drawn) = table(PAGE);
        let check = |real: &[(&str, &[&str])]| compare(&layers, &drawn, &uses(real));
        assert_eq!(check(&[("units", &[]), ("disk", &["units"])]), [""; 0]);
        let lies = [
            (check(&[("units", &[]), ("disk", &[])]), "`disk` uses "),
            (check(&[("disk", &["units"])]), "there is no crate `units`"),
            (check(&[("units", &[]), ("disk", &["units"]), ("new", &[])]), "`new` is missing"),
        ];
        for (complaints, found) in lies {
            assert!(complaints.iter().any(|line| line.ends_with(found)), "{complaints:?}");
        }
        let upwards = check(&[("units", &["disk"]), ("disk", &["units"])]);
        assert!(upwards.iter().any(|line| line.ends_with("is not below it")), "{upwards:?}");
    }
}
