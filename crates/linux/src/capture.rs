//! A socket that gets a copy of each packet that passes an interface.

use crate::error::Error;
use crate::links;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, socket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// The largest packet that an interface gives, merged ones included.
pub const LARGEST: usize = 65_535 + 64;

/// The copies of an interface.
#[derive(Debug)]
pub struct Capture {
    socket: OwnedFd,
    index: u32,
    buffer: Vec<u8>,
}

/// A packet without the header of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// What is behind the header of the link.
    pub bytes: &'a [u8],
    /// The protocol, as Ethernet numbers it.
    pub protocol: u16,
    /// Where it goes, as the kernel numbers it: 0 came to this host, 4 left it.
    pub way: u8,
}

impl Capture {
    /// Begins to copy what passes this interface of the current namespace. Fails without such an interface, or without the
    /// right to listen to it.
    pub fn open(interface: &str) -> Result<Self, Error> {
        let index = links::index(interface)?;
        let failed = Error::io::<nix::Error>("cannot listen to interfaces; run as root or with CAP_NET_RAW");
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // A socket of one interface needs an address of it, which those of PPP and tunnels do not have: this one has all.
        let socket = socket(AddressFamily::Packet, SockType::Datagram, flags, SockProtocol::EthAll).map_err(failed)?;
        Ok(Self { socket, index, buffer: vec![0; LARGEST] })
    }

    /// Waits for the next packet, for at most `wait`.
    pub fn next(&mut self, wait: Duration) -> Option<Packet<'_>> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO)).unwrap_or(0) == 0 {
            return None;
        }
        let (len, from) = recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut self.buffer).ok()?;
        let from = from.filter(|from| from.ifindex() == self.index as usize)?;
        Some(Packet { bytes: &self.buffer[..len], protocol: u16::from_be(from.protocol()), way: from.pkttype() })
    }
}
