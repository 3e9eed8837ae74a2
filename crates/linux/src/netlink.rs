//! What netlink sockets of this crate share.

use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Opens a socket to the kernel.
pub(crate) fn open(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// The attributes of a message, up to the first that is not whole.
pub(crate) struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (i32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from(u16::from_ne_bytes(*self.0.first_chunk()?));
        let kind = u16::from_ne_bytes(*self.0.get(2..)?.first_chunk()?);
        let value = self.0.get(4..len)?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((i32::from(kind & 0x3fff), value))
    }
}

/// Lends the descriptor of a socket.
#[expect(unsafe_code, reason = "the socket has no safe function that lends its descriptor")]
pub(crate) fn descriptor(socket: &Socket) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open for as long as the socket, which outlives the result.
    unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) }
}

/// Makes a socket of this crate from another descriptor, behind which a test takes the place of the kernel.
#[cfg(test)]
#[expect(unsafe_code, reason = "the socket takes only raw descriptors")]
pub(crate) fn socket_over(descriptor: std::os::fd::OwnedFd) -> Socket {
    use std::os::fd::{FromRawFd, IntoRawFd};
    // SAFETY: the descriptor is open, and from here on it belongs to the socket alone.
    unsafe { Socket::from_raw_fd(descriptor.into_raw_fd()) }
}
