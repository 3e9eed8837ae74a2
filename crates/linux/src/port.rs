//! A port: whole frames of an interface, read from a ring of AF_PACKET that the kernel fills, and sent in batches.
//!
//! The kernel's header of virtio (PACKET_VNET_HDR) stands before each frame. It tells whether a checksum is still to be made,
//! and of how many packets a frame was merged (GSO, GRO); a frame that is sent says the same. A frame that does not fit into a
//! slot of the ring, as merged ones do not, comes whole over the socket (PACKET_COPY_THRESH) when its slot has its turn.
//! Frames that leave are not seen (PACKET_IGNORE_OUTGOING).
//!
//! Own code: the crates for AF_PACKET know neither of the last three. Source: include/uapi/linux/if_packet.h,
//! net/packet/af_packet.c and include/linux/virtio_net.h of Linux 6.18.

use crate::error::Error;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, getsockopt, recv, socket, sockopt::SocketError};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Length of the header of virtio in bytes.
pub const VIRTIO: usize = 10;
/// Largest number of frames that one call sends.
pub const BATCH: usize = 32;
/// Memory of a ring: as many frames of Ethernet as come in 20 ms at 200,000 per second.
const RING: usize = 8 << 20;
const BLOCK: usize = 1 << 17;
/// The buffers of the socket: for merged frames that come, and for frames that leave.
const BUFFER: libc::c_int = 4 << 20;
/// Largest frame that comes whole.
const LARGEST: usize = VIRTIO + 32 + 65_535 + 40;
/// What a slot has besides the frame: the kernel's header, an address, and room for alignment.
const OVERHEAD: usize = 128;

/// What the header of virtio says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Virtio {
    /// Where the checksum begins and where in it it stands, if it is still to be made.
    pub pending: Option<(u16, u16)>,
    /// How the frame was merged; 0 if it was not.
    pub merged: u8,
    /// Bytes of payload in each of the packets that were merged.
    pub size: u16,
}

/// The checksum is still to be made (VIRTIO_NET_HDR_F_NEEDS_CSUM).
const PENDING: u8 = 1;

impl Virtio {
    /// Reads the header; its numbers are those of this machine.
    fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes.get(at..at + 2).map_or(0, |w| u16::from_ne_bytes([w[0], w[1]]));
        let [flags, merged] = [0, 1].map(|at| bytes.get(at).copied().unwrap_or_default());
        let pending = (flags & PENDING != 0).then(|| (word(6), word(8)));
        Self { pending, merged, size: word(4) }
    }

    /// Writes the header. `headers` is the length of all headers of a merged frame.
    pub fn write(&self, headers: u16) -> [u8; VIRTIO] {
        let mut bytes = [0; VIRTIO];
        let mut put = |at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        if self.merged != 0 {
            put(2, headers);
            put(4, self.size);
        }
        if let Some((start, offset)) = self.pending {
            put(6, start);
            put(8, offset);
            bytes[0] = PENDING;
        }
        bytes[1] = self.merged;
        bytes
    }
}

/// A frame that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The frame without its outer tag.
    pub bytes: &'a [u8],
    /// The outer tag of a virtual LAN: its protocol and its value.
    pub tag: Option<[u16; 2]>,
    /// What the kernel says of it.
    pub virtio: Virtio,
}

/// A frame in a slot, or in the buffer beside the ring.
#[derive(Debug, Clone, Copy)]
enum Place {
    Slot(usize, usize),
    Beside(usize),
}

/// Frames of one interface.
pub struct Port {
    socket: OwnedFd,
    ring: Ring,
    /// The slot that comes next, or that of `present`.
    next: usize,
    present: Option<(Place, Option<[u16; 2]>, Virtio)>,
    beside: Vec<u8>,
    /// Frames that were larger than anything that fits here.
    cut: u64,
    unread: u64,
}

impl Port {
    /// Opens a port, to which no frame comes before [`Port::begin`]. `mtu` is that of the interface, in bytes.
    pub fn open(mtu: u32) -> Result<Self, Error> {
        let refused = Error::io("cannot open a port (run as root or with CAP_NET_RAW)");
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None);
        let socket = socket.map_err(|e| refused(e.into()))?;
        let slot = (mtu as usize + OVERHEAD).next_power_of_two().clamp(2048, BLOCK);
        let prepare = || -> io::Result<Ring> {
            let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
            for (name, value) in [
                (libc::PACKET_VERSION, version),
                (libc::PACKET_VNET_HDR, 1),
                (libc::PACKET_IGNORE_OUTGOING, 1),
                (libc::PACKET_COPY_THRESH, 1),
            ] {
                set(&socket, libc::SOL_PACKET, name, &value)?;
            }
            // Without the right to more, the buffers stay small.
            let _ = set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER);
            let _ = set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &BUFFER);
            let request = libc::tpacket_req {
                tp_block_size: BLOCK as u32,
                tp_block_nr: (RING / BLOCK) as u32,
                tp_frame_size: slot as u32,
                tp_frame_nr: (RING / slot) as u32,
            };
            set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
            Ring::map(&socket, slot)
        };
        let ring = prepare().map_err(&refused)?;
        Ok(Self { socket, ring, next: 0, present: None, beside: vec![0; LARGEST], cut: 0, unread: 0 })
    }

    /// Frames of this interface come from now on, whomever they are for.
    pub fn begin(&self, index: u32) -> Result<(), Error> {
        let index = index as libc::c_int;
        let everybodys = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        bind(&self.socket, index)
            .and_then(|()| set(&self.socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &everybodys))
            .map_err(Error::io("cannot read the frames of an interface"))
    }

    /// Goes to the next frame, which [`Port::frame`] returns; false if none has come.
    pub fn advance(&mut self) -> bool {
        loop {
            if self.present.take().is_some() {
                self.give_back();
            }
            let Some(header) = self.ring.header(self.next) else { return false };
            let tag = tag(header.tp_status, header.tp_vlan_tpid, header.tp_vlan_tci);
            let (at, len) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
            let place = if header.tp_status & libc::TP_STATUS_COPY != 0 {
                self.read_beside().map(|len| (Place::Beside(len), Virtio::read(&self.beside[..VIRTIO])))
            } else if header.tp_len > header.tp_snaplen || self.ring.slot(self.next).len() < at + len || at < VIRTIO {
                None
            } else {
                let slot = self.ring.slot(self.next);
                Some((Place::Slot(at, len), Virtio::read(&slot[at - VIRTIO..at])))
            };
            if let Some((place, virtio)) = place {
                self.present = Some((place, tag, virtio));
                return true;
            }
            self.cut += 1;
            self.give_back();
        }
    }

    /// Returns the frame to which [`Port::advance`] went; an empty one if it found none.
    pub fn frame(&self) -> Frame<'_> {
        let Some((place, tag, virtio)) = self.present else {
            return Frame { bytes: &[], tag: None, virtio: Virtio::default() };
        };
        let bytes = match place {
            Place::Slot(at, len) => &self.ring.slot(self.next)[at..at + len],
            Place::Beside(len) => &self.beside[VIRTIO..len],
        };
        Frame { bytes, tag, virtio }
    }

    /// Gives the slot back to the kernel.
    fn give_back(&mut self) {
        self.ring.give_back(self.next);
        self.next = (self.next + 1) % self.ring.slots();
    }

    /// Reads the frame that did not fit into its slot; returns its length, with the header of virtio.
    fn read_beside(&mut self) -> Option<usize> {
        // The length is told also if that is more than fits.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let len = recv(self.socket.as_raw_fd(), &mut self.beside, flags).ok()?;
        (VIRTIO..=self.beside.len()).contains(&len).then_some(len)
    }

    /// Sends frames of two parts, of which the first begins with the header of virtio; at most [`BATCH`] of them. Returns how
    /// many the interface refused, and why the last of them.
    pub fn send<'a>(&self, frames: impl Iterator<Item = [&'a [u8]; 2]>) -> (u64, Option<io::Error>) {
        send(&self.socket, frames)
    }

    /// Returns the number of frames that the kernel dropped since the begin because they were not read in time, and of those
    /// that were too large for anything here.
    pub fn lost(&mut self) -> u64 {
        self.unread += dropped(&self.socket);
        self.unread + self.cut
    }

    /// Takes the error which an interface has left that went down: until then the port is told to be readable.
    pub fn calm(&self) {
        let _ = getsockopt(&self.socket, SocketError);
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The tag that the kernel has taken out of a frame: its protocol, which old kernels do not tell, and its value.
fn tag(status: u32, protocol: u16, value: u16) -> Option<[u16; 2]> {
    let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let protocol = if known { protocol } else { libc::ETH_P_8021Q as u16 };
    (status & libc::TP_STATUS_VLAN_VALID != 0).then_some([protocol, value])
}

/// Memory that the kernel fills with frames, a slot for each.
struct Ring {
    memory: NonNull<u8>,
    slot: usize,
}

// SAFETY: the memory belongs to this value and the kernel, whichever thread has it.
#[expect(unsafe_code, reason = "a pointer says nothing of threads")]
unsafe impl Send for Ring {}

#[expect(unsafe_code, reason = "the memory belongs to the kernel and this process together")]
impl Ring {
    fn map(socket: &OwnedFd, slot: usize) -> io::Result<Self> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: new memory at a place of the kernel's choice.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), RING, access, flags, socket.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { memory, slot })
    }

    fn slots(&self) -> usize {
        RING / self.slot
    }

    /// The word of a slot that tells whose it is.
    fn owner(&self, index: usize) -> &AtomicU32 {
        let at = (index % self.slots()) * self.slot;
        // SAFETY: within the memory, at a multiple of the length of a slot, so it is aligned. The kernel and this process
        // change it as a whole.
        unsafe { &*self.memory.as_ptr().add(at).cast::<AtomicU32>() }
    }

    /// Returns the header of a slot; `None` if the slot is the kernel's.
    fn header(&self, index: usize) -> Option<libc::tpacket2_hdr> {
        let status = self.owner(index).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let at = (index % self.slots()) * self.slot;
        // SAFETY: a slot is longer than a header and aligned, any bits are valid, and the kernel does not write into a slot
        // that is not its own.
        Some(unsafe { self.memory.as_ptr().add(at).cast::<libc::tpacket2_hdr>().read() })
    }

    /// Returns a slot, which must be this process's: [`Ring::header`] has returned its header.
    fn slot(&self, index: usize) -> &[u8] {
        let at = (index % self.slots()) * self.slot;
        // SAFETY: within the memory, and the kernel does not write into it before it is given back, for which `&mut Port`
        // is needed.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(at), self.slot) }
    }

    fn give_back(&mut self, index: usize) {
        self.owner(index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

#[expect(unsafe_code, reason = "memory of a mapping is given back by its address")]
impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has it after this value.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), RING) };
    }
}

/// Binds a socket to all protocols of an interface.
#[expect(unsafe_code, reason = "no safe wrapper among the dependencies makes the address of a socket of packets")]
fn bind(socket: &OwnedFd, index: libc::c_int) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain data for which zero is valid; the call reads it, with its length.
    let refused = unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let len = size_of::<libc::sockaddr_ll>() as u32;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) != 0
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[expect(unsafe_code, reason = "no safe wrapper among the dependencies has these options")]
fn set<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the call reads the value, with its length.
    let refused = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), size_of::<T>() as u32) != 0
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the frames that the kernel dropped since this was asked for the last time.
#[expect(unsafe_code, reason = "no safe wrapper among the dependencies has this option")]
fn dropped(socket: &OwnedFd) -> u64 {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as u32;
    let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: the call writes at most `len` bytes there.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut stats).cast(), &raw mut len) == 0 };
    if done { u64::from(stats.tp_drops) } else { 0 }
}

#[expect(unsafe_code, reason = "the wrapper of sendmmsg ties its buffers to the lifetime of what it sends")]
fn send<'a>(socket: &OwnedFd, frames: impl Iterator<Item = [&'a [u8]; 2]>) -> (u64, Option<io::Error>) {
    // SAFETY: both are plain data for which zero is valid.
    let (mut parts, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let mut count = 0;
    for (place, frame) in parts.iter_mut().zip(frames) {
        *place = frame.map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
        count += 1;
    }
    for (message, parts) in messages.iter_mut().zip(&mut parts).take(count) {
        (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (parts.as_mut_ptr(), 2);
    }
    let (mut done, mut refused, mut why) = (0, 0, None);
    while done < count {
        let rest = &mut messages[done..count];
        // SAFETY: as many messages as are told, whose parts are borrowed for `'a`; the kernel only reads them.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as u32, libc::MSG_DONTWAIT) };
        match usize::try_from(sent) {
            Ok(sent) if sent > 0 => done += sent,
            _ => {
                // The first of the rest is refused; those after it may not be.
                why = Some(io::Error::last_os_error());
                refused += 1;
                done += 1;
            }
        }
    }
    (refused, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// include/uapi/linux/virtio_net.h: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset.
    #[test]
    fn the_header_of_virtio_is_read_and_written() {
        let virtio = Virtio { pending: Some((34, 16)), merged: 1, size: 1448 };
        let bytes = virtio.write(66);
        let words = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        assert_eq!((bytes[0], bytes[1], [2, 4, 6, 8].map(words)), (1, 1, [66, 1448, 34, 16]));
        assert_eq!(Virtio::read(&bytes), virtio);
        assert_eq!(Virtio::default().write(66), [0; VIRTIO]);
        assert_eq!(Virtio::read(&[]), Virtio::default());
    }

    /// include/uapi/linux/if_packet.h: the bits 0x10 and 0x40 of the status say that value and protocol are valid.
    #[test]
    fn a_tag_is_one_of_802_1q_unless_the_kernel_knows_better() {
        assert_eq!(tag(0x01, 0x88a8, 7), None);
        assert_eq!(tag(0x41, 0x88a8, 7), None);
        assert_eq!(tag(0x11, 0x88a8, 7), Some([0x8100, 7]));
        assert_eq!(tag(0x51, 0x88a8, 7), Some([0x88a8, 7]));
        assert_eq!(tag(0x50, 0x8100, 0), Some([0x8100, 0]), "priority 0 of no VLAN");
    }

    #[test]
    fn what_was_too_large_is_lost_as_well() {
        let Ok(mut port) = Port::open(1500) else { return crate::testing::skip("no sockets for frames") };
        assert_eq!(port.lost(), 0);
        (port.unread, port.cut) = (3, 2);
        assert_eq!(port.lost(), 5);
    }

    /// A frame leaves in two parts as one. What is refused is counted, and those after it leave all the same.
    #[test]
    fn frames_leave_whole_and_those_that_are_refused_are_counted() {
        let (here, there) = std::os::unix::net::UnixDatagram::pair().unwrap();
        there.set_nonblocking(true).unwrap();
        let here = OwnedFd::from(here);
        let arrived = || {
            let mut buffer = [0; 64];
            std::iter::from_fn(|| there.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec())).collect::<Vec<_>>()
        };
        let (refused, why) = send(&here, [[b"a".as_slice(), b"bc"], [b"d", b""]].into_iter());
        assert!(refused == 0 && why.is_none(), "{refused} {why:?}");
        assert_eq!(arrived(), [b"abc".to_vec(), b"d".to_vec()]);
        let long = vec![0; 64 << 20];
        let frames = [[b"1".as_slice(), b"2"], [b"x", &long], [b"y", &long], [b"3", b"4"]];
        let (refused, why) = send(&here, frames.into_iter());
        assert_eq!((refused, why.unwrap().raw_os_error()), (2, Some(libc::EMSGSIZE)));
        assert_eq!(arrived(), [b"12".to_vec(), b"34".to_vec()]);
        assert_eq!(send(&here, std::iter::empty()).0, 0);
    }
}
