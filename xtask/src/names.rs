//! One meaning for each type name: within a crate a name belongs to one type.

use crate::source::production;
use std::collections::BTreeMap;

/// Complaints about one crate, whose source files are given by path below `src/` and text.
pub(crate) fn check(files: &[(String, String)]) -> Vec<String> {
    let mut homes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, text) in files {
        for line in production(text).lines() {
            if let Some(type_name) = declared(line) {
                homes.entry(type_name.to_owned()).or_default().push(name);
            }
        }
    }
    homes
        .into_iter()
        .filter(|(_, files)| files.len() > 1)
        .map(|(name, files)| {
            format!("`{name}` names {} types ({}): rename", files.len(), files.join(", "))
        })
        .collect()
}

/// The type that a line at the file's top level declares.
fn declared(line: &str) -> Option<&str> {
    let item = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = kinds.iter().find_map(|kind| item.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_two_types_is_found() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let files = [
            file("a.rs", "pub struct Row<T> { x: T }\nimpl Row {}\n"),
            file("b.rs", "pub(super) enum Row { A }\nstruct Rows;\n"),
            file("c.rs", "fn f() {}\n#[cfg(test)]\nmod tests {}\nstruct Rows;\n"),
        ];
        assert_eq!(check(&files), ["`Row` names 2 types (a.rs, b.rs): rename"]);
    }
}
