//! Who may use a file with a secret: its owner, and its group.
//!
//! A pod of Kubernetes has its secrets as files of root that its group reads; nothing else makes
//! them readable to a program that is not root.

use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;

/// Whether users may use the file who are neither its owner nor in its group.
#[must_use]
pub fn is_exposed(about: &Metadata) -> bool {
    about.permissions().mode() & OTHERS != 0
}

/// The rights of all others.
const OTHERS: u32 = 0o007;
