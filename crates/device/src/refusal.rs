//! The reasons why a file or device cannot be opened, with the remedies.

use crate::DeviceError;
use crate::describe::describe;
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub(crate) fn cannot_open(path: &Path, source: io::Error) -> DeviceError {
    if source.kind() == io::ErrorKind::ResourceBusy {
        let uses = describe(path).map_or(Vec::new(), |about| about.uses);
        if uses.is_empty() {
            let hint = "stop that one, or work through it";
            return DeviceError::in_use(path, "another process has it to itself", hint);
        }
        let by = uses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return DeviceError::Occupied { path: path.to_owned(), by };
    }
    let hint = match source.kind() {
        _ if Errno::from_io_error(&source) == Some(Errno::LOOP) => {
            Some("a part of the path is a symbolic link, which is not followed here")
        }
        io::ErrorKind::NotFound => Some("check the path, or make it with `tenuto format`"),
        io::ErrorKind::PermissionDenied => Some("run as a user who may enter its directories"),
        io::ErrorKind::ReadOnlyFilesystem => Some("it lies on a file system mounted read-only"),
        _ => None,
    };
    DeviceError::open(path, hint, source)
}

/// The error of a missing permission.
pub(crate) fn not_allowed(path: &Path, write: bool, source: io::Error) -> DeviceError {
    let hint = if Errno::from_io_error(&source) == Some(Errno::PERM) {
        Some(FORBIDDEN.to_owned())
    } else {
        missing_right(path, write)
    };
    DeviceError::Open { path: path.to_owned(), hint, source }
}

/// The missing permission and its holders, so that the user can become one of them.
fn missing_right(path: &Path, write: bool) -> Option<String> {
    let about = std::fs::metadata(path).ok()?;
    let (what, of_group) = if write { ("read and write", 0o060) } else { ("read", 0o040) };
    let mode = about.mode() & 0o777;
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let group = if mode & of_group == of_group {
        format!(" or in group {}", group_name(&groups, about.gid()))
    } else {
        String::new()
    };
    let user = about.uid();
    Some(format!("to {what} it, be user {user}{group} (mode {mode:03o}), or run with sudo"))
}

/// The group's name in `/etc/group`, or its number.
fn group_name(groups: &str, number: u32) -> String {
    let named = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then_some(name)
    });
    named.map_or(number.to_string(), |name| format!("'{name}'"))
}

/// The hint for a refusal that does not depend on the file's mode.
const FORBIDDEN: &str = "the machine's rules forbid it to everybody here (a container's list of \
                         devices, for example): allow it there, or use a file";
