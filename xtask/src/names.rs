//! One meaning for each type name: within a crate a name belongs to one type.

use crate::source::production;
use proc_macro2::TokenTree;
use std::collections::BTreeMap;

/// Complaints about one crate, whose source files are given by path below `src/` and text.
pub(crate) fn check(files: &[(String, String)]) -> Vec<String> {
    let mut homes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, text) in files {
        for pair in production(text).windows(2) {
            if let [TokenTree::Ident(kind), TokenTree::Ident(type_name)] = pair
                && KINDS.iter().any(|word| kind == word)
            {
                homes.entry(type_name.to_string()).or_default().push(name);
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

/// What declares a type.
const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

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
