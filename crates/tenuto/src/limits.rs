//! Resource limits of this process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit, as each viewer has a connection. A limit
/// that is still too low shows later, as an error with a hint.
pub(crate) fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Every process may raise its soft limit as far as the hard one.
    let _ = setrlimit(Resource::Nofile, limit);
}
