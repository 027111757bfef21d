//! The commands in README.md and docs/, run as they are printed.
//!
//! A page is a session in one fresh directory: every line of a block marked `sh`, and every line
//! after `$ ` of a block marked `console`, runs in the order of the page, so that steps build on
//! each other. A failing command fails the test. HTML comments in the page, which readers do not
//! see, say what the machine needs beforehand and what cannot run here; `page` describes them.
//! Commands that do not run are printed with their reasons. The pages of the command reference are
//! made from the program, so their notes are in `reference`.
//!
//! What the commands print is not compared with the page. Run one page again with
//! `cargo test -p tenuto --test documents NAME`.

mod page;
mod reference;
mod session;

use page::Page;
use std::path::{Path, PathBuf};

/// The pages with commands: the name of the test, and the file.
macro_rules! pages {
    ($($name:ident: $file:literal),+ $(,)?) => {
        const PAGES: &[&str] = &[$($file),+];
        $(
            #[test]
            fn $name() {
                session::run(&Page::read($file), stringify!($name));
            }
        )+
    };
}

pages! {
    readme: "README.md",
    install: "docs/guide/install.md",
    first_film: "docs/guide/first-film.md",
    serve: "docs/guide/serve.md",
    plan: "docs/guide/plan.md",
    measure_players: "docs/guide/measure-players.md",
    measure_storage: "docs/guide/measure-storage.md",
    reproduce: "docs/guide/reproduce.md",
    emulated_disk: "docs/guide/emulated-disk.md",
    admission: "docs/concepts/admission.md",
    disks: "docs/concepts/disks.md",
    simulation: "docs/concepts/simulation.md",
    codecs: "docs/reference/codecs.md",
}

/// The file of the reference, whose commands `reference` runs.
const REFERENCE: &str = "docs/reference/cli.md";

#[test]
fn every_page_with_commands_is_run() {
    let mut files = vec![root().join("README.md")];
    markdown_below(&root().join("docs"), &mut files);
    for file in files {
        let name = file.strip_prefix(root()).expect("below the root").display().to_string();
        let has_commands = !Page::read(&name).steps.is_empty();
        let is_run = PAGES.contains(&name.as_str()) || name == REFERENCE;
        assert!(is_run || !has_commands, "{name} has commands: add it to the list of pages");
        assert!(has_commands || !is_run, "{name} has no commands: take it off the list of pages");
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn markdown_below(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of documents") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            markdown_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}
