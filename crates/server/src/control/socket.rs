//! The control socket of one store as a file: one living server holds it.
//!
//! ```text
//!   UUID.lock   locked while a server lives; never removed, so that there is one lock
//!   UUID.sock   mode 0600; replaced only by the server that has the lock
//! ```

use super::is_safe;
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use units::Reason;

/// A listening control socket, removed when it is dropped.
#[derive(Debug)]
pub(super) struct ControlSocket {
    path: PathBuf,
    /// The socket as a file: another one may have taken its path.
    made: Metadata,
    listener: UnixListener,
    // Released after the socket is removed.
    _lock: File,
}

/// Why there is no socket.
#[derive(Debug)]
pub(super) enum BindError {
    /// A living server has a socket of this name.
    Served,
    /// The kernel or the directory refused it.
    Io(io::Error),
}

impl From<io::Error> for BindError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl ControlSocket {
    /// Listens at `path`. The socket of a server that was killed is replaced, that of a living one
    /// is not.
    pub(super) fn bind(path: &Path) -> Result<Self, BindError> {
        let directory = path.parent().unwrap_or(path);
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if !is_safe(directory)? {
            let message = format!("{} belongs to another user, or is a link", directory.display());
            let why = Reason::new(message, "remove it");
            return Err(io::Error::new(ErrorKind::PermissionDenied, why).into());
        }
        let lock = lock(&path.with_extension("lock"))?;
        refuse_living(path)?;
        let listener = listen(path)?;
        let made = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), made, listener, _lock: lock })
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Ends the wait for the next client: it fails, now and later. Does not use the path, which may
    /// be gone or another server's.
    pub(super) fn close(&self) {
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        let same =
            |found: &Metadata| (found.dev(), found.ino()) == (self.made.dev(), self.made.ino());
        if found.as_ref().is_ok_and(same) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn lock(path: &Path) -> Result<File, BindError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(NO_FOLLOW).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BindError::Served),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Removes a socket on which no server listens. The lock alone does not tell: its file may have
/// been removed by a cleaner of temporary files.
fn refuse_living(path: &Path) -> Result<(), BindError> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let why = Reason::new(format!("{} is no socket", path.display()), "remove it");
        return Err(io::Error::new(ErrorKind::AlreadyExists, why).into());
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(BindError::Served),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        Err(error) => Err(error.into()),
    }
}

/// Binds a socket that has its mode from the start, whatever the umask.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // The kernel gives the file the mode of the descriptor, less the umask.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    // A umask can also take the user's own right away.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Clients that wait to be accepted.
const BACKLOG: i32 = 128;
#[expect(clippy::cast_possible_wrap, reason = "one bit of the flags of open")]
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;
    use units::Hinted;

    /// A directory of the test's own, of mode 0700.
    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("tenuto-socket-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        path
    }

    #[test]
    fn the_socket_of_a_living_server_is_never_taken() {
        let directory = directory("living");
        let path = directory.join("a.sock");
        let living = ControlSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert!(matches!(ControlSocket::bind(&path), Err(BindError::Served)), "by its lock");
        fs::remove_file(path.with_extension("lock")).unwrap();
        assert!(matches!(ControlSocket::bind(&path), Err(BindError::Served)), "by its answer");
        assert!(UnixStream::connect(&path).is_ok());
        drop(living);
        assert!(!path.exists());
        drop(ControlSocket::bind(&path).unwrap());
        let _ = fs::remove_dir_all(directory);
    }

    #[test]
    fn a_killed_servers_socket_is_replaced_and_anothers_is_left() {
        let directory = directory("killed");
        let path = directory.join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        let mine = ControlSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop(mine);
        assert!(UnixStream::connect(&path).is_ok(), "only its own socket is removed");
        drop(other);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "no socket").unwrap();
        let Err(BindError::Io(why)) = ControlSocket::bind(&path) else { panic!() };
        assert!(why.one_line().ends_with("is no socket; remove it"), "{why}");
        let _ = fs::remove_dir_all(directory);
    }

    #[test]
    fn a_wait_for_clients_ends_although_the_path_is_gone() {
        let directory = directory("gone");
        let socket = std::sync::Arc::new(ControlSocket::bind(&directory.join("a.sock")).unwrap());
        let (ended, end) = mpsc::channel();
        let waiting = std::sync::Arc::clone(&socket);
        std::thread::spawn(move || ended.send(waiting.listener().accept().is_err()));
        fs::remove_dir_all(&directory).unwrap();
        socket.close();
        assert_eq!(end.recv_timeout(Duration::from_secs(30)), Ok(true));
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let directory = directory("open");
        for mode in [0o777, 0o720, 0o702] {
            fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
            let Err(BindError::Io(why)) = ControlSocket::bind(&directory.join("a.sock")) else {
                panic!("mode {mode:o}")
            };
            assert!(why.one_line().contains("; run `chmod 700 /"), "{mode:o}: {why}");
        }
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        drop(ControlSocket::bind(&directory.join("a.sock")).unwrap());
        let _ = fs::remove_dir_all(directory);
    }
}
