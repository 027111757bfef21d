//! One meaning for each type name: within a crate a name belongs to one type, in all crates
//! together to two at most.

use crate::source::production;
use proc_macro2::TokenTree;
use std::collections::BTreeMap;

/// Where each type name is declared.
#[derive(Default)]
pub(crate) struct TypeNames(BTreeMap<String, Vec<String>>);

impl TypeNames {
    /// The types of one crate, whose source files are given by path and text.
    pub(crate) fn of_crate(files: &[(String, String)]) -> Self {
        let mut all = Self::default();
        for (name, text) in files {
            for pair in production(text).windows(2) {
                if let [TokenTree::Ident(kind), TokenTree::Ident(type_name)] = pair
                    && KINDS.iter().any(|word| kind == word)
                {
                    all.0.entry(type_name.to_string()).or_default().push(name.clone());
                }
            }
        }
        all
    }

    /// Adds another crate's types.
    pub(crate) fn add(&mut self, crate_name: &str, types: Self) {
        for (name, files) in types.0 {
            let files = files.into_iter().map(|file| format!("{crate_name}/{file}"));
            self.0.entry(name).or_default().extend(files);
        }
    }

    /// Complaints about names of more than `most` types.
    pub(crate) fn complaints(&self, most: usize) -> Vec<String> {
        self.0
            .iter()
            .filter(|(_, files)| files.len() > most)
            .map(|(name, files)| {
                format!("`{name}` names {} types ({}): rename", files.len(), files.join(", "))
            })
            .collect()
    }
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
        let types = TypeNames::of_crate(&files);
        assert_eq!(types.complaints(1), ["`Row` names 2 types (a.rs, b.rs): rename"]);
        let mut tree = TypeNames::default();
        tree.add("x", types);
        assert_eq!(tree.complaints(2), [""; 0]);
        tree.add("y", TypeNames::of_crate(&files[1..2]));
        let found = "`Row` names 3 types (x/a.rs, x/b.rs, y/b.rs): rename";
        assert_eq!(tree.complaints(2), [found]);
    }
}
