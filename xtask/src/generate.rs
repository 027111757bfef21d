//! `cargo xtask docs`: what is made from the table of commands, written where readers look for it.
//! That it is current is tested in `tenuto`, next to the table.

use std::path::Path;
use std::process::Command;

/// Writes `docs/reference/cli.md`. (Man pages and completions are made when Tenuto is installed.)
pub(crate) fn run(root: &Path) -> Result<(), String> {
    write(&root.join("docs/reference/cli.md"), &tenuto(root, &["man", "--markdown"])?)
}

fn tenuto(root: &Path, words: &[&str]) -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--package", "tenuto", "--"])
        .args(words)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "tenuto {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let say = |error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(path)).map_err(say)?;
    std::fs::write(path, text).map_err(say)?;
    println!("wrote {}", path.display());
    Ok(())
}
