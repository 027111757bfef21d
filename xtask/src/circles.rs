//! Import circles: no more than three files of a crate may depend on each other in a ring.
//!
//! ```text
//!   a.rs ──use crate::b──▶ b.rs ──▶ c.rs ──▶ d.rs
//!     ▲                                       │       four files that only make sense together
//!     └───────────────────────────────────────┘
//! ```
//!
//! Re-exports are followed to the file that defines the item. What a file takes from a module that
//! it lies in does not count: a module and its own submodules may share types.

use crate::source::{production, words};
use std::collections::{BTreeMap, BTreeSet};

/// The modules that lead to a file, without the crate: `["engine", "titles"]`.
type ModulePath = Vec<String>;

/// One file's imports and items.
#[derive(Debug, Default)]
struct Module {
    file: String,
    /// Names that the file imports or re-exports, with their full paths as written.
    imports: BTreeMap<String, Vec<String>>,
    /// Modules imported with `*`.
    globs: Vec<Vec<String>>,
    /// Every path that code mentions, re-exports left out.
    mentions: BTreeSet<Vec<String>>,
    items: BTreeSet<String>,
}

/// Complaints about one crate, whose source files are given by path below `src/` and text.
pub(crate) fn check(files: &[(String, String)]) -> Vec<String> {
    let modules: BTreeMap<ModulePath, Module> =
        files.iter().map(|(name, text)| (module_path(name), read(name, text))).collect();
    let index: BTreeMap<&ModulePath, usize> =
        modules.keys().enumerate().map(|(number, path)| (path, number)).collect();
    let edges: Vec<Vec<usize>> = modules
        .iter()
        .map(|(path, module)| {
            let targets = module.mentions.iter().filter_map(|to| resolve(&modules, path, to, 0));
            let foreign = targets.filter(|target| !path.starts_with(target));
            foreign.map(|target| index[&target]).collect()
        })
        .collect();
    let names: Vec<&str> = modules.values().map(|module| module.file.as_str()).collect();
    rings(&edges)
        .into_iter()
        .filter(|ring| ring.len() > LARGEST_RING)
        .map(|ring| {
            let files: Vec<&str> = ring.iter().map(|number| names[*number]).collect();
            format!("{} files import each other in a circle: {}", files.len(), files.join(", "))
        })
        .collect()
}

fn module_path(name: &str) -> ModulePath {
    let file = name.trim_end_matches(".rs");
    match file.strip_suffix("/mod").unwrap_or(file) {
        "lib" | "main" | "mod" => Vec::new(),
        module => module.split('/').map(str::to_owned).collect(),
    }
}

fn read(name: &str, text: &str) -> Module {
    let words = words(production(text));
    let tokens: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut module = Module { file: name.to_owned(), ..Module::default() };
    let mut at = 0;
    let mut public = false;
    while at < tokens.len() {
        match tokens[at] {
            "use" => {
                at = read_use(&tokens, at + 1, public, &mut module);
                public = false;
            }
            "crate" | "super" | "self" if tokens.get(at + 1) == Some(&"::") => {
                let (path, next) = read_path(&tokens, at);
                module.mentions.insert(path);
                at = next;
            }
            "struct" | "enum" | "trait" | "type" | "fn" | "const" | "static" => {
                module.items.extend(tokens.get(at + 1).map(|name| (*name).to_owned()));
                at += 1;
                public = false;
            }
            "pub" => {
                public = true;
                // `pub(crate)`: what stands in the brackets is no path of its own.
                if tokens.get(at + 1) == Some(&"(") {
                    at += tokens[at..].iter().position(|token| *token == ")").unwrap_or(0);
                }
                at += 1;
            }
            _ => {
                at += 1;
                public = false;
            }
        }
    }
    module
}

fn read_path(tokens: &[&str], mut at: usize) -> (Vec<String>, usize) {
    let mut path = vec![tokens[at].to_owned()];
    while tokens.get(at + 1) == Some(&"::")
        && let Some(word) = tokens.get(at + 2)
        && word.starts_with(|c: char| c.is_alphabetic() || c == '_')
    {
        path.push((*word).to_owned());
        at += 2;
    }
    (path, at + 1)
}

/// Reads the tree after `use` up to its semicolon; gives the place after it.
fn read_use(tokens: &[&str], mut at: usize, public: bool, module: &mut Module) -> usize {
    let mut path: Vec<String> = Vec::new();
    // How long the path was where each open bracket began.
    let mut open: Vec<usize> = Vec::new();
    while let Some(token) = tokens.get(at) {
        let after = tokens.get(at + 1).copied().unwrap_or(";");
        match *token {
            ";" => return at + 1,
            "::" => {}
            "{" => open.push(path.len()),
            "}" => {
                open.pop();
                path.truncate(open.last().copied().unwrap_or(0));
            }
            "," => path.truncate(open.last().copied().unwrap_or(0)),
            "*" => module.globs.push(path.clone()),
            word => {
                path.push(word.to_owned());
                if after != "::" {
                    let mut name = word;
                    if word == "self" {
                        path.pop();
                        name = path.last().map_or("self", String::as_str);
                    }
                    if after == "as" {
                        name = tokens.get(at + 2).copied().unwrap_or(name);
                        at += 2;
                    }
                    module.imports.insert(name.to_owned(), path.clone());
                    if !public {
                        module.mentions.insert(path.clone());
                    }
                }
            }
        }
        at += 1;
    }
    at
}

/// The module in which `path`, as written in module `from`, ends; `None` outside the crate.
fn resolve(
    modules: &BTreeMap<ModulePath, Module>,
    from: &ModulePath,
    path: &[String],
    depth: usize,
) -> Option<ModulePath> {
    let mut here = from.clone();
    let mut words = path.iter().peekable();
    let mut relative = false;
    while let Some(word) = words.peek() {
        match word.as_str() {
            "crate" => here = ModulePath::new(),
            "super" => drop(here.pop()),
            "self" => {}
            _ => break,
        }
        relative = true;
        words.next();
    }
    if !relative {
        // Without a prefix: a submodule, or another crate.
        let mut child = here.clone();
        child.push(words.peek()?.to_string());
        modules.get(&child)?;
    }
    for word in words {
        let mut child = here.clone();
        child.push(word.clone());
        if modules.contains_key(&child) {
            here = child;
            continue;
        }
        let module = modules.get(&here)?;
        // Two modules may re-export each other, which would never end.
        if depth < DEEPEST_RE_EXPORT && !module.items.contains(word) {
            let named = module.imports.get(word).into_iter();
            let through_glob = module.globs.iter().filter(|glob| {
                resolve(modules, &here, glob, depth + 1)
                    .and_then(|target| modules.get(&target))
                    .is_some_and(|target| {
                        target.items.contains(word) || target.imports.contains_key(word)
                    })
            });
            let globs = through_glob.map(|glob| {
                let mut path = glob.clone();
                path.push(word.clone());
                path
            });
            for path in named.cloned().chain(globs.collect::<Vec<_>>()) {
                if let Some(target) = resolve(modules, &here, &path, depth + 1) {
                    return Some(target);
                }
            }
        }
        break;
    }
    modules.contains_key(&here).then_some(here)
}

/// Strongly connected components with more than one member (Kosaraju's two passes).
fn rings(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    fn visit(node: usize, edges: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
        if std::mem::replace(&mut seen[node], true) {
            return;
        }
        for next in &edges[node] {
            visit(*next, edges, seen, order);
        }
        order.push(node);
    }
    let mut order = Vec::new();
    let mut seen = vec![false; edges.len()];
    for node in 0..edges.len() {
        visit(node, edges, &mut seen, &mut order);
    }
    let mut reversed = vec![Vec::new(); edges.len()];
    for (node, targets) in edges.iter().enumerate() {
        for target in targets {
            reversed[*target].push(node);
        }
    }
    seen.fill(false);
    let mut rings = Vec::new();
    for node in order.into_iter().rev() {
        let mut ring = Vec::new();
        visit(node, &reversed, &mut seen, &mut ring);
        if ring.len() > 1 {
            ring.sort_unstable();
            rings.push(ring);
        }
    }
    rings
}

/// Files that may depend on each other in a ring: a pair and a helper are still read together.
const LARGEST_RING: usize = 3;

/// Re-exports of re-exports that are followed.
const DEEPEST_RE_EXPORT: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_ring_of_four_is_found_also_through_re_exports() {
        let mut list = vec![
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b/mod.rs", "mod inner; pub use inner::B;"),
            ("b/inner.rs", "use crate::{c::{self, C}}; pub struct B;"),
            ("c.rs", "pub struct C(super::d::D);"),
            ("d.rs", "pub struct D(crate::a::A); // crate::a"),
        ];
        let found = check(&files(&list));
        assert_eq!(
            found,
            ["4 files import each other in a circle: a.rs, b/inner.rs, c.rs, d.rs".to_owned()]
        );
        list[5].1 = "pub struct D; // crate::a::A";
        assert_eq!(check(&files(&list)), [""; 0]);
    }

    #[test]
    fn a_module_and_its_submodules_are_no_ring() {
        let list = [
            ("lib.rs", "mod a; pub struct Shared;"),
            ("a/mod.rs", "mod x; mod y; mod z; mod w; use x::X; pub struct A(X);"),
            ("a/x.rs", "use super::A; use super::y::Y; pub struct X;"),
            ("a/y.rs", "use super::A; use crate::Shared; use super::z::Z; pub struct Y;"),
            ("a/z.rs", "use super::A; use super::w::W; pub struct Z;"),
            ("a/w.rs", "use super::*; pub struct W(A);"),
        ];
        assert_eq!(check(&files(&list)), [""; 0]);
    }
}
