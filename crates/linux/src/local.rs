//! Sockets of this machine (AF_UNIX) at a path, which only the user of this process may use.

use crate::lock::Lock;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::sys::stat::{Mode, umask};
use std::fs::{DirBuilder, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
pub use std::os::unix::net::UnixStream as Stream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a process cannot listen at a path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process listens there.
    #[error("another program is in charge of the control socket {}; choose another name for this one", .0.display())]
    Taken(PathBuf),
    /// The system refuses.
    #[error("cannot listen at the control socket {}: {}", .0.display(), .1)]
    Io(PathBuf, #[source] io::Error),
}

/// A listening socket that never blocks. It is removed when this value is dropped.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    socket: UnixListener,
    /// Locked for as long as this process is in charge of the path.
    _lock: Lock,
}

impl Listener {
    /// Listens at `path` with mode 0600. Removes the socket of a process that died. Fails if another process is in charge of
    /// the path.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io(path.to_owned(), source);
        if let Some(directory) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(io)?;
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = Lock::take(Path::new(&name)).map_err(|why| match why {
            TryLockError::WouldBlock => Error::Taken(path.to_owned()),
            TryLockError::Error(e) => io(e),
        })?;
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io(e)),
            _ => {}
        }
        // The socket never exists with wider rights, not even for a moment.
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(path);
        umask(before);
        let socket = bound.map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        Ok(Self { path: path.to_owned(), socket, _lock: lock })
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts a client whose stream never blocks. Fails with `WouldBlock` if nobody waits.
    pub fn accept(&self) -> io::Result<Stream> {
        let (stream, _) = self.socket.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The lock is still held, so the path is this listener's.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The process at the other end of a socket, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peer {
    /// Its user; `None` if the kernel does not tell.
    pub uid: Option<u32>,
    /// Its number; `None` if the kernel does not tell.
    pub pid: Option<i32>,
}

impl Peer {
    /// Returns who is at the other end of a connection.
    pub fn of(stream: &Stream) -> Self {
        let known = getsockopt(stream, PeerCredentials).ok();
        Self { uid: known.map(|peer| peer.uid()), pid: known.map(|peer| peer.pid()) }
    }
}

/// Connects to the socket at `path`. Reading and writing wait for at most `patience`.
pub fn connect(path: &Path, patience: Duration) -> io::Result<Stream> {
    let stream = Stream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// True if a process listens at `path`.
pub fn listens(path: &Path) -> bool {
    Stream::connect(path).is_ok()
}
