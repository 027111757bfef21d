//! Disk models by name, or from a user's parameter file.

use disk::{DiskModel, Parameters};
use std::io::ErrorKind;
use units::Hinted;

/// The reason why there is no such disk model, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum DiskModelError {
    /// Neither a model nor a file has this name.
    #[error("there is no disk model '{0}', and no file of that name")]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(String, std::io::Error),
    /// The file is no valid description of a disk.
    #[error("{0}: {1}")]
    Parse(String, String),
}

impl Hinted for DiskModelError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown(_) => "`tenuto disk models` lists the built-in models".to_owned(),
            Self::Read(..) => return None,
            Self::Parse(..) => {
                "`tenuto disk models hdd-20tb --toml` prints a complete one".to_owned()
            }
        })
    }
}

/// The disk model with this name, or the one in the parameter file at this path.
///
/// # Errors
///
/// [`DiskModelError`] if there is neither, or the file does not describe a disk.
pub fn disk_model(name: &str) -> Result<DiskModel, DiskModelError> {
    if let Some(model) = DiskModel::preset(name) {
        return Ok(model);
    }
    let text = std::fs::read_to_string(name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => DiskModelError::Unknown(name.to_owned()),
        _ => DiskModelError::Read(name.to_owned(), error),
    })?;
    Parameters::parse(&text)
        .and_then(DiskModel::new)
        .map_err(|error| DiskModelError::Parse(name.to_owned(), error.to_string()))
}
