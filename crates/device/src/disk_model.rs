//! Disk models by name, or from a user's parameter file.

use disk::{DiskModel, Parameters};
use std::io::ErrorKind;
use units::Reason;

/// The disk model with this name, or the one in the parameter file at this path.
pub fn disk_model(name: &str) -> Result<DiskModel, Reason> {
    if let Some(model) = DiskModel::preset(name) {
        return Ok(model);
    }
    let text = std::fs::read_to_string(name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Reason::new(
            format!("there is no disk model '{name}', and no file of that name"),
            "`tenuto disk models` lists the built-in models",
        ),
        _ => format!("cannot read {name}: {error}").into(),
    })?;
    Parameters::parse(&text).and_then(DiskModel::new).map_err(|error| {
        let hint = "`tenuto disk models hdd-20tb --toml` prints a complete one";
        Reason::new(format!("{name}: {error}"), hint)
    })
}
