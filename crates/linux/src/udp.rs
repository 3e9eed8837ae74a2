//! A UDP socket that never blocks, and what stands above it: a side of sessions, which has no socket of its own.

use nix::sys::socket::{
    setsockopt,
    sockopt::{RcvBuf, RcvBufForce},
};
use penstock_core::units::Instant;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Largest datagram that is read.
const LARGEST: usize = 65_535;
/// Bytes of the system's memory for what a peer sends at once: two datagrams of a handshake.
const ROOM: usize = 2 * 2304;
/// Bounds of the memory for all peers: what Linux has for any socket, and what a flood may fill.
const LEAST_ROOM: usize = 212_992;
const MOST_ROOM: usize = 8 << 20;
/// Datagrams that are read before others get their turn.
const BATCH: usize = 64;

/// A side of sessions.
pub trait Side {
    /// Takes a datagram that has arrived.
    fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant);
    /// Does what is due.
    fn poll(&mut self, now: Instant);
    /// When [`Side::poll`] is to be called next.
    fn next_timeout(&self) -> Option<Instant>;
    /// The next datagram to send.
    fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)>;
}

/// Any port of any address of this host, in the family of `peer`.
pub fn any(peer: SocketAddr) -> SocketAddr {
    if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() }
}

/// A socket that never blocks, with its buffer.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    buffer: Vec<u8>,
}

impl Socket {
    /// Binds a socket.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, buffer: vec![0; LARGEST] })
    }

    /// Binds a socket of any port, over which only `to` can be reached.
    pub fn connect(to: SocketAddr) -> io::Result<Self> {
        let socket = Self::bind(any(to))?;
        socket.socket.connect(to)?;
        Ok(socket)
    }

    /// Reads the next datagram of the host to which this socket is connected; `None` if none has arrived.
    pub fn receive(&mut self) -> Option<&[u8]> {
        loop {
            match self.socket.recv(&mut self.buffer) {
                Ok(len) => return Some(&self.buffer[..len]),
                // A message of ICMP about an earlier datagram: it proves nothing, so it changes nothing.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends to the host to which this socket is connected. What cannot be sent is lost.
    pub fn send(&self, datagram: &[u8]) {
        let _ = self.socket.send(datagram);
    }

    /// Makes room for datagrams of this many peers that come at once, as when a gateway begins: what finds no room is lost, and
    /// each peer waits longer and longer before it sends again. Without privileges the system may make less.
    pub fn make_room(&self, peers: u32) {
        let bytes = (peers as usize * ROOM).clamp(LEAST_ROOM, MOST_ROOM);
        if setsockopt(&self.socket, RcvBufForce, &bytes).is_err() {
            let _ = setsockopt(&self.socket, RcvBuf, &bytes);
        }
    }

    /// The socket itself.
    pub fn udp(&self) -> &UdpSocket {
        &self.socket
    }

    /// Reads what has arrived, does what is due, and sends.
    pub fn turn(&mut self, side: &mut impl Side, now: &mut impl FnMut() -> Instant) {
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((len, from)) => side.receive(from, &self.buffer[..len], now()),
                // A message of ICMP about an earlier datagram: it proves nothing, so it changes nothing.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => break,
            }
        }
        if side.next_timeout().is_some_and(|at| at <= now()) {
            side.poll(now());
        }
        while let Some((to, datagram)) = side.transmit() {
            // What cannot be sent now is lost, and QUIC sends it again.
            let _ = self.socket.send_to(&datagram, to);
        }
    }
}
