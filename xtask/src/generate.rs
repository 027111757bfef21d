//! `cargo xtask docs`: what is made from the table of commands, written where readers look for it.
//! That it is current is tested in `tenuto`, next to the table.

use std::path::Path;
use std::process::Command;

/// Writes the reference of the command line, the schema of the configuration file and the OpenAPI
/// document. (Man pages
/// and completions are made when Tenuto is installed.)
pub(crate) fn run(root: &Path) -> Result<(), String> {
    write(root, "--markdown", "docs/reference/cli.md")?;
    write(root, "--config-schema", "docs/reference/serve.schema.json")?;
    write(root, "--openapi", "docs/reference/openapi.json")
}

/// Writes what `tenuto man` prints with this option.
fn write(root: &Path, option: &str, path: &str) -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        // By cargo, so that the page is made from the present source, not by an older program.
        .args(["run", "--quiet", "--package", "tenuto", "--", "man", option])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("tenuto man {option}: {error}"));
    }
    let path = root.join(path);
    std::fs::write(&path, output.stdout).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}
