//! What netlink sockets of this crate share.

use netlink_sys::Socket;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lends the descriptor of a socket.
#[expect(unsafe_code, reason = "the socket has no safe function that lends its descriptor")]
pub(crate) fn descriptor(socket: &Socket) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open for as long as the socket, which outlives the result.
    unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) }
}
