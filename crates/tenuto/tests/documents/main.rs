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
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use testkit::Need;

/// A page with commands.
struct Listed {
    /// The name of its test.
    name: &'static str,
    file: &'static str,
    /// The pages of one lane run one after the other.
    lane: usize,
}

macro_rules! pages {
    ($($name:ident: $lane:literal, $file:literal);+ $(;)?) => {
        const PAGES: &[Listed] =
            &[$(Listed { name: stringify!($name), file: $file, lane: $lane }),+];
        $(
            #[test]
            fn $name() {
                works(stringify!($name));
            }
        )+
    };
}

// A page waits most of its time, for what plays or is measured; so four run at the same time. The
// largest stores are in one lane, and each of the longest pages begins another.
pages! {
    readme: 0, "README.md";
    first_film: 0, "docs/guide/first-film.md";
    plan: 0, "docs/guide/plan.md";
    fleet: 0, "docs/guide/fleet.md";
    kubernetes: 0, "docs/guide/kubernetes.md";
    reproduce: 0, "docs/guide/reproduce.md";
    reference: 1, "docs/reference/cli.md";
    serve: 2, "docs/guide/serve.md";
    record: 3, "docs/guide/record.md";
    mount: 3, "docs/guide/mount.md";
    measure_players: 3, "docs/guide/measure-players.md";
    measure_storage: 3, "docs/guide/measure-storage.md";
    install: 3, "docs/guide/install.md";
    emulated_disk: 3, "docs/guide/emulated-disk.md";
    admission: 3, "docs/concepts/admission.md";
    disks: 3, "docs/concepts/disks.md";
    simulation: 3, "docs/concepts/simulation.md";
    codecs: 3, "docs/reference/codecs.md";
    admin: 3, "docs/reference/admin.md";
    configuration: 3, "docs/reference/configuration.md";
}

type PageResult = Result<(), String>;

/// The results of pages that run ahead of their tests; each is taken by the test.
static RESULTS: LazyLock<Mutex<HashMap<&'static str, Receiver<PageResult>>>> =
    LazyLock::new(|| Mutex::new(start_lanes()));

/// The test of a page.
fn works(name: &str) {
    testkit::needs!(Program("ffmpeg"), Program("ip"), Program("unshare"));
    if session::namespaces().is_none() {
        testkit::skip(Need::Mount, "no namespace for network and mounts (unshare)");
        return;
    }
    let ahead = RESULTS.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    let result = match ahead {
        Some(result) => result.recv().expect("its lane runs it"),
        None => PAGES.iter().find(|listed| listed.name == name).expect("it is listed").run(),
    };
    if let Err(what) = result {
        panic!("{what}");
    }
}

/// Starts all pages if all tests are to run. With arguments (the name of a page, an option) each
/// page runs in its test, because only the harness knows which of them will.
fn start_lanes() -> HashMap<&'static str, Receiver<PageResult>> {
    let mut results = HashMap::new();
    if std::env::args().count() > 1 {
        return results;
    }
    let mut lanes: HashMap<usize, Vec<_>> = HashMap::new();
    for listed in PAGES {
        let (sender, receiver) = channel();
        results.insert(listed.name, receiver);
        lanes.entry(listed.lane).or_default().push((listed, sender));
    }
    for lane in lanes.into_values() {
        std::thread::spawn(move || {
            for (listed, sender) in lane {
                // The receiver is gone if the test was skipped.
                let _ = sender.send(listed.run());
            }
        });
    }
    results
}

impl Listed {
    fn run(&self) -> PageResult {
        let is_reference = self.file == reference::FILE;
        let page = if is_reference { reference::page() } else { Page::read(self.file) };
        session::run(&page, self.name)
    }
}

#[test]
fn every_page_with_commands_is_run() {
    let mut files = vec![root().join("README.md")];
    markdown_below(&root().join("docs"), &mut files);
    for file in files {
        let name = file.strip_prefix(root()).expect("below the root").display().to_string();
        let has_commands = !Page::read(&name).steps.is_empty();
        let is_run = PAGES.iter().any(|listed| listed.file == name);
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
