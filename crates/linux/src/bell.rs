//! A bell between two threads: one rings, and the other one, which waits with `ppoll`, wakes up.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The end that hears; its descriptor is readable after a ring.
#[derive(Debug)]
pub struct Bell(UnixStream);

/// The end that rings.
#[derive(Debug)]
pub struct Ringer(UnixStream);

/// Creates a bell. Neither end ever blocks.
///
/// # Errors
/// Returns the error of the system.
pub fn bell() -> io::Result<(Bell, Ringer)> {
    let (bell, ringer) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    ringer.set_nonblocking(true)?;
    Ok((Bell(bell), Ringer(ringer)))
}

impl Bell {
    /// Forgets all rings so far.
    pub fn silence(&self) {
        let mut bytes = [0; 64];
        while (&self.0).read(&mut bytes).is_ok_and(|len| len > 0) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Ringer {
    /// Rings; returns false if nobody hears it any more.
    pub fn ring(&self) -> bool {
        // A bell that is full rings already.
        (&self.0).write(&[1]).map_or_else(|e| e.kind() == io::ErrorKind::WouldBlock, |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_heard_until_the_bell_is_gone() {
        let (bell, ringer) = bell().unwrap();
        assert!((0..100_000).all(|_| ringer.ring()), "a full bell");
        assert!((&bell.0).read(&mut [0]).is_ok());
        bell.silence();
        assert_eq!((&bell.0).read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(bell);
        assert!(!ringer.ring());
    }
}
