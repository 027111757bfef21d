//! Paths of control sockets.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use units::Reason;
use uuid::Uuid;

/// The directory of this user's control sockets: `$XDG_RUNTIME_DIR/tenuto`, else
/// `/run/tenuto` for root, else `/tmp/tenuto-UID`.
pub fn socket_directory() -> PathBuf {
    directory(
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
        rustix::process::geteuid().as_raw(),
    )
}

/// The path of a store's control socket, whether or not the store is served.
pub fn socket_path(uuid: Uuid) -> PathBuf {
    socket_directory().join(format!("{uuid}.sock"))
}

/// Whether the directory is one whose sockets this user's commands may use: it exists and belongs
/// to this user, since in `/tmp` any user could create it. Fails if others may write to it, because
/// they could then put a socket of theirs in it.
pub(super) fn is_safe(directory: &Path) -> io::Result<bool> {
    // A link is not followed: another user's link could lead to a directory of this user.
    let found = match std::fs::symlink_metadata(directory) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    if found.mode() & WRITABLE_BY_OTHERS != 0 {
        let path = directory.display();
        let message = format!("other users may write to {path}");
        let why = Reason::new(message, format!("run `chmod 700 {path}`"));
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(true)
}

/// Mode bits: the group and others may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

fn directory(runtime: Option<PathBuf>, user: u32) -> PathBuf {
    match runtime {
        // The XDG specification has relative paths ignored.
        Some(runtime) if runtime.is_absolute() => runtime.join("tenuto"),
        _ if user == 0 => Path::new("/run/tenuto").to_owned(),
        _ => PathBuf::from(format!("/tmp/tenuto-{user}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_follows_user_and_environment() {
        assert_eq!(directory(Some("/run/user/7".into()), 7), Path::new("/run/user/7/tenuto"));
        assert_eq!(directory(None, 0), Path::new("/run/tenuto"));
        assert_eq!(directory(None, 7), Path::new("/tmp/tenuto-7"));
        assert_eq!(directory(Some("relative".into()), 7), Path::new("/tmp/tenuto-7"));
    }
}
