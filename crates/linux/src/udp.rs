//! A UDP socket that never blocks, and what stands above it: a side of sessions, which has no socket of its own.

use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo, RcvBuf, RcvBufForce};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt};
use penstock_core::units::Instant;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd as _;

/// Largest datagram that is read.
const LARGEST: usize = 65_535;
/// Bytes of the system's memory for what a peer sends at once: two datagrams of a handshake.
const ROOM: usize = 2 * 2304;
/// Bounds of the memory for all peers: what Linux has for any socket, and what a flood may fill.
const LEAST_ROOM: usize = 212_992;
const MOST_ROOM: usize = 8 << 20;
/// Datagrams that are read before others get their turn.
const BATCH: usize = 64;
/// Places for peers and the addresses that they know, a power of two.
const PEERS: usize = 1024;

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
    /// The room for what the system tells beside a datagram.
    beside: Vec<u8>,
    known: Known,
}

/// Which address of this host its peers talk to. A host with several addresses answers from the one that was asked: the peer takes
/// an answer from no other. There is a place for each hash, and the newest peer has it; without a place the system chooses.
#[derive(Debug, Default)]
struct Known {
    hash: RandomState,
    places: Vec<Option<(SocketAddr, IpAddr)>>,
}

impl Known {
    fn place(&self, peer: SocketAddr) -> usize {
        self.hash.hash_one(peer) as usize % PEERS
    }

    fn note(&mut self, peer: SocketAddr, asked: IpAddr) {
        self.places.resize(PEERS, None);
        let place = self.place(peer);
        self.places[place] = Some((peer, asked));
    }

    fn asked_by(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.places.get(self.place(peer)).copied().flatten().filter(|(known, _)| *known == peer).map(|(_, asked)| asked)
    }
}

/// Returns the sender of a datagram, if it is one of IP.
fn sender(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|one| SocketAddrV4::from(*one).into());
    v4.or_else(|| storage.as_sockaddr_in6().map(|one| SocketAddrV6::from(*one).into()))
}

impl Socket {
    /// Binds a socket.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        if address.is_ipv4() {
            setsockopt(&socket, Ipv4PacketInfo, &true)?;
        } else {
            setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
        }
        let beside = nix::cmsg_space!(in_pktinfo, in6_pktinfo);
        Ok(Self { socket, buffer: vec![0; LARGEST], beside, known: Known::default() })
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

    /// Reads the next datagram; returns its length and its sender, and notes which address that has asked.
    fn read(&mut self) -> io::Result<(usize, Option<SocketAddr>)> {
        let mut into = [IoSliceMut::new(&mut self.buffer)];
        let (fd, beside) = (self.socket.as_raw_fd(), Some(&mut self.beside[..]));
        let read = recvmsg::<SockaddrStorage>(fd, &mut into, beside, MsgFlags::empty())?;
        let from = read.address.as_ref().and_then(sender);
        let asked = read.cmsgs()?.find_map(|one| match one {
            ControlMessageOwned::Ipv4PacketInfo(told) => {
                Some(IpAddr::from(Ipv4Addr::from_bits(u32::from_be(told.ipi_spec_dst.s_addr))))
            }
            ControlMessageOwned::Ipv6PacketInfo(told) => Some(Ipv6Addr::from(told.ipi6_addr.s6_addr).into()),
            _ => None,
        });
        let len = read.bytes;
        if let (Some(from), Some(asked)) = (from, asked) {
            self.known.note(from, asked);
        }
        Ok((len, from))
    }

    /// Sends a datagram from the address that the peer has asked. What cannot be sent is lost.
    fn answer(&self, to: SocketAddr, datagram: &[u8]) {
        let (fd, bytes, peer) = (self.socket.as_raw_fd(), [IoSlice::new(datagram)], SockaddrStorage::from(to));
        let send = |beside: &[ControlMessage<'_>]| sendmsg(fd, &bytes, beside, MsgFlags::empty(), Some(&peer));
        let _ = match self.known.asked_by(to) {
            Some(IpAddr::V4(asked)) => {
                let [ipi_spec_dst, ipi_addr] = [asked.to_bits(), 0].map(|bits: u32| in_addr { s_addr: bits.to_be() });
                send(&[ControlMessage::Ipv4PacketInfo(&in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr })])
            }
            Some(IpAddr::V6(asked)) => {
                let ipi6_addr = in6_addr { s6_addr: asked.octets() };
                send(&[ControlMessage::Ipv6PacketInfo(&in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 })])
            }
            None => send(&[]),
        };
    }

    /// Reads what has arrived, does what is due, and sends.
    pub fn turn(&mut self, side: &mut impl Side, now: &mut impl FnMut() -> Instant) {
        for _ in 0..BATCH {
            match self.read() {
                Ok((len, Some(from))) => side.receive(from, &self.buffer[..len], now()),
                Ok((_, None)) => {}
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
            self.answer(to, &datagram);
        }
    }
}
