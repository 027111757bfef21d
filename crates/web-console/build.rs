//! Lists the files of the console, so that the program contains them. Calls no other program:
//! `console/dist` is made by `make build`, and without it the program says so in the console's
//! place.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let variable = |name: &str| PathBuf::from(env::var_os(name).expect("set by cargo"));
    let bundle = variable("CARGO_MANIFEST_DIR").join("../../console/dist");
    println!("cargo:rerun-if-changed={}", bundle.display());
    let mut files = Vec::new();
    add_files(&bundle, "", &mut files);
    files.sort();
    // Apart, because the meter's agent has the reports and not the console.
    let script = files.iter().position(|(name, _)| name == REPORT).map(|at| files.remove(at).1);
    let script = script.map_or("None".to_owned(), |path| format!("Some(include_str!({path:?}))"));
    let mut table = String::from("&[\n");
    for (name, path) in files {
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),").expect("a string grows");
    }
    table.push_str("]\n");
    let write = |name: &str, text: &str| {
        fs::write(variable("OUT_DIR").join(name), text).expect("OUT_DIR is writable");
    };
    write("console_files.rs", &table);
    write("report_script.rs", &script);
}

/// The name of the reports' script in the bundle.
const REPORT: &str = "report.js";

/// Adds the files below a directory with their names from its top, except hidden ones.
fn add_files(directory: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            add_files(&path, &format!("{name}/"), files);
        } else {
            files.push((name, path.canonicalize().expect("it is there")));
        }
    }
}
