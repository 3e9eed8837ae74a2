//! The thin layer between the sides of sessions and a UDP socket.

use crate::agent::{Agent, Enrolment};
use crate::gateway::Role;
use penstock_core::units::Instant;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Largest datagram that is read.
const LARGEST: usize = 65_535;
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

macro_rules! side {
    ($($name:ident),*) => {$(
        impl Side for $name {
            fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
                Self::receive(self, from, datagram, now);
            }
            fn poll(&mut self, now: Instant) {
                Self::poll(self, now);
            }
            fn next_timeout(&self) -> Option<Instant> {
                Self::next_timeout(self)
            }
            fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
                Self::transmit(self)
            }
        }
    )*};
}
side!(Agent, Enrolment, Role);

/// A socket that never blocks, with its buffer.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    buffer: Vec<u8>,
}

impl Socket {
    /// Binds a socket.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, buffer: vec![0; LARGEST] })
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
