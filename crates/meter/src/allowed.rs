//! The directories in which somebody else may have this machine measure: a controller through an
//! agent, or a browser through the console.

use std::path::{Path, PathBuf};
use units::{Hinted, Reason};

/// Directories, resolved once at the start: a link that is changed later must not widen what is
/// allowed.
#[derive(Clone, Debug)]
pub(crate) struct AllowedDirectories(Vec<PathBuf>);

impl AllowedDirectories {
    /// These directories, which must be there.
    pub(crate) fn new(directories: &[PathBuf]) -> Result<Self, Reason> {
        let full = |path: &PathBuf| {
            path.canonicalize().map_err(|error| {
                let message = format!("{} cannot be allowed: {error}", path.display());
                Reason::new(message, "name a directory that is there")
            })
        };
        Ok(Self(directories.iter().map(full).collect::<Result<_, _>>()?))
    }

    /// The target after resolving links, if it is in one of them; `whose` names who may touch no
    /// other.
    pub(crate) fn inside(&self, target: &str, whose: &str) -> Result<String, Reason> {
        let full =
            Path::new(target).canonicalize().map_err(|error| error.reason().about(target))?;
        let inside = self.0.iter().any(|allowed| full.starts_with(allowed));
        let text = full.to_str().filter(|_| inside).map(str::to_owned);
        text.ok_or_else(|| {
            let allowed = match self.names() {
                names if names.is_empty() => "nothing".to_owned(),
                names => names.join(", "),
            };
            format!("{target} lies outside of what {whose} may touch: {allowed}").into()
        })
    }

    /// The directories as text.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|path| path.display().to_string()).collect()
    }
}
