//! What the machine allows this process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// A connection for each viewer: takes as many open files as this process may have without asking
/// anybody. What is not granted shows later, as an error with a hint.
pub(crate) fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}
