//! Packets that the kernel's firewall hands to this process (NFQUEUE), and the verdicts about them.
//!
//! A rule `-j NFQUEUE --queue-num N` gives packets to queue N. The kernel keeps each of them until its verdict: accept, as
//! it is or with other bytes, or drop. Routing, connection tracking and offloads stay with the kernel, which also cuts
//! large packets of its offloads into segments with checksums before they come here (NFQA_CFG_F_GSO is not set).
//!
//! Two things make a queue fail open: `--queue-bypass` of the rule, with which packets pass if nobody has the queue, and
//! NFQA_CFG_F_FAIL_OPEN, with which they pass if the queue or the buffer of the socket is full.
//!
//! Own code and not the crate `nfq`: it allocates 73 kB for each packet, sends each verdict by a call of its own, and reads
//! messages with raw pointers. Here a packet is read into one buffer, verdicts of many packets leave together, and no line
//! is unsafe. Source: include/uapi/linux/netfilter/nfnetlink_queue.h and net/netfilter/nfnetlink_queue.c of Linux 6.18.

use crate::error::Error;
use crate::netlink::{self, Attributes};
use libc::{
    NF_ACCEPT, NF_DROP, NFNL_SUBSYS_QUEUE, NFQA_CAP_LEN, NFQA_CFG_CMD, NFQA_CFG_F_FAIL_OPEN, NFQA_CFG_FLAGS,
    NFQA_CFG_MASK, NFQA_CFG_PARAMS, NFQA_CFG_QUEUE_MAXLEN, NFQA_HWADDR, NFQA_PACKET_HDR, NFQA_PAYLOAD,
    NFQA_VERDICT_HDR, NFQNL_CFG_CMD_BIND, NFQNL_COPY_PACKET, NFQNL_MSG_CONFIG, NFQNL_MSG_PACKET, NFQNL_MSG_VERDICT,
    c_int,
};
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NLMSG_ERROR};
use netlink_sys::{Socket, protocols::NETLINK_NETFILTER};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use serde::Serialize;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The types of messages, with the subsystem in the upper byte.
const PACKET: u16 = (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET) as u16;
const VERDICT: u16 = (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_VERDICT) as u16;
const CONFIG: u16 = (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_CONFIG) as u16;

/// The header of a netlink message and that of netfilter.
const HEADER: usize = 16 + 4;
/// Largest message: an IP packet with its attributes.
const LARGEST: usize = 72 * 1024;
/// Verdicts are sent when so many wait, or when so many bytes do.
const BATCH: usize = 32;
const BATCH_BYTES: usize = 48 * 1024;
/// Buffer of the socket in bytes: as many packets as come while this process has no processor for 20 ms at 1 Gbit/s.
const BUFFER: usize = 4 << 20;
/// Where the kernel lists its queues.
const LISTING: &str = "/proc/net/netfilter/nfnetlink_queue";

/// Queues of the kernel, which belong to this value.
pub struct NfQueue {
    socket: Socket,
    input: Vec<u8>,
    output: Vec<u8>,
    verdicts: usize,
    sequence: u32,
    refused: u64,
}

/// A packet that waits for its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued<'a> {
    /// The queue and the number of the packet, for its verdict.
    pub ticket: Ticket,
    /// The packet, beginning with its IP header.
    pub bytes: &'a [u8],
    /// False if the kernel gave only its beginning, so that its bytes cannot be replaced.
    pub whole: bool,
    /// The address of the interface of Ethernet that has sent it, if it came by one.
    pub sender: Option<[u8; 6]>,
}

/// The name of a packet which waits in the kernel for its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Number of the queue.
    pub queue: u16,
    /// Number of the packet in the queue.
    pub id: u32,
}

/// A queue as the kernel lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Listed {
    /// Number of the queue.
    pub queue: u16,
    /// The netlink port of the process that has the queue.
    pub owner: u32,
    /// Number of packets without a verdict.
    pub waiting: u32,
    /// Number of packets dropped because the queue was full.
    pub dropped: u32,
    /// Number of packets dropped because the buffer of the socket was full.
    pub unread: u32,
    /// Number of packets that were given to the process.
    pub given: u32,
}

impl NfQueue {
    /// Opens a socket that has no queue yet.
    pub fn open() -> Result<Self, Error> {
        let opened = || -> io::Result<Socket> {
            let socket = netlink::open(NETLINK_NETFILTER)?;
            socket.set_no_enobufs(true).map(|()| socket)
        };
        let socket = opened().map_err(Error::io("cannot open a socket of netfilter"))?;
        // Without the right to more, the buffer stays small: then more packets pass when it is full.
        let _ = setsockopt(&netlink::descriptor(&socket), RcvBufForce, &BUFFER);
        Ok(Self::over(socket))
    }

    fn over(socket: Socket) -> Self {
        let (input, output) = (Vec::with_capacity(LARGEST), Vec::with_capacity(2 * BATCH_BYTES));
        Self { socket, input, output, verdicts: 0, sequence: 0, refused: 0 }
    }

    /// Takes charge of a queue, in which at most `most` packets wait for a verdict; further ones pass. Fails if another
    /// process has the queue, or without the right to it.
    pub fn bind(&mut self, queue: u16, most: u32) -> Result<(), Error> {
        if let Some(other) = listed().into_iter().find(|listed| listed.queue == queue) {
            let taken = format!("another program has the queue {queue} of netfilter (port {})", other.owner);
            return Err(Error::Refused(taken + "; end it, or choose another `queue`"));
        }
        let what = format!("cannot take charge of the queue {queue} of netfilter");
        let refused = Error::refused(what, "has this kernel NFQUEUE (`modprobe nfnetlink_queue`)?");
        self.configure(queue, &[(NFQA_CFG_CMD, &[NFQNL_CFG_CMD_BIND as u8, 0, 0, 0])]).map_err(&refused)?;
        let [a, b, c, d] = 0xffff_u32.to_be_bytes();
        self.configure(queue, &[(NFQA_CFG_PARAMS, &[a, b, c, d, NFQNL_COPY_PACKET as u8])]).map_err(&refused)?;
        self.configure(queue, &[(NFQA_CFG_QUEUE_MAXLEN, &most.to_be_bytes())]).map_err(&refused)?;
        let flag = NFQA_CFG_F_FAIL_OPEN.to_be_bytes();
        self.configure(queue, &[(NFQA_CFG_FLAGS, &flag), (NFQA_CFG_MASK, &flag)]).map_err(&refused)
    }

    /// Changes the largest number of packets that wait in a queue. Leaves with the verdicts, and is not acknowledged.
    pub fn set_most(&mut self, queue: u16, most: u32) {
        let most = (NFQA_CFG_QUEUE_MAXLEN, &most.to_be_bytes()[..]);
        write(&mut self.output, CONFIG, NLM_F_REQUEST, 0, queue, &[most]);
    }

    fn configure(&mut self, queue: u16, attributes: &[(c_int, &[u8])]) -> io::Result<()> {
        self.sequence += 1;
        let mut message = Vec::new();
        write(&mut message, CONFIG, NLM_F_REQUEST | NLM_F_ACK, self.sequence, queue, attributes);
        self.socket.send(&message, 0)?;
        loop {
            self.input.clear();
            self.socket.recv(&mut self.input, 0)?;
            if let Some((sequence, result)) = acknowledged(&self.input) {
                if sequence == self.sequence {
                    return result;
                }
            } else if let Some(Queued { ticket, .. }) = packet(&self.input) {
                // A rule of someone who died hands packets over before this process is ready for them.
                self.accept(ticket, None);
                self.flush();
            }
        }
    }

    /// Reads the next packet; `None` if none waits.
    pub fn read(&mut self) -> io::Result<Option<Queued<'_>>> {
        loop {
            self.input.clear();
            match self.socket.recv(&mut self.input, libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            if packet(&self.input).is_some() {
                return Ok(packet(&self.input));
            }
            // A verdict about a packet that is gone, as its interface is.
            self.refused += u64::from(acknowledged(&self.input).is_some_and(|(_, result)| result.is_err()));
        }
    }

    /// Lets a packet pass, with other bytes if some are given. The verdict leaves with the next [`NfQueue::flush`].
    pub fn accept(&mut self, ticket: Ticket, changed: Option<&[u8]>) {
        self.verdict(ticket, NF_ACCEPT, changed);
    }

    /// Drops a packet. The verdict leaves with the next [`NfQueue::flush`].
    pub fn drop(&mut self, ticket: Ticket) {
        self.verdict(ticket, NF_DROP, None);
    }

    fn verdict(&mut self, ticket: Ticket, verdict: c_int, changed: Option<&[u8]>) {
        let header = [verdict.to_be_bytes(), ticket.id.to_be_bytes()];
        let attributes = [(NFQA_VERDICT_HDR, header.as_flattened()), (NFQA_PAYLOAD, changed.unwrap_or_default())];
        let attributes = &attributes[..1 + usize::from(changed.is_some())];
        write(&mut self.output, VERDICT, NLM_F_REQUEST, 0, ticket.queue, attributes);
        self.verdicts += 1;
        if self.verdicts >= BATCH || self.output.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Sends the verdicts that wait.
    pub fn flush(&mut self) {
        if self.output.is_empty() {
            return;
        }
        // The kernel handles a message within the call, so that a socket is never too full for it.
        if self.socket.send(&self.output, 0).is_err() {
            self.refused += self.verdicts as u64;
        }
        self.output.clear();
        self.verdicts = 0;
    }

    /// Returns the number of verdicts that the kernel refused, for packets that were gone.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl AsFd for NfQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        netlink::descriptor(&self.socket)
    }
}

/// Returns the queues of the kernel in the namespace of this thread.
pub fn listed() -> Vec<Listed> {
    std::fs::read_to_string(LISTING).unwrap_or_default().lines().filter_map(listed_in).collect()
}

fn listed_in(line: &str) -> Option<Listed> {
    let numbers: Vec<u32> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let [queue, owner, waiting, _copy, _range, dropped, unread, given, ..] = numbers[..] else { return None };
    Some(Listed { queue: u16::try_from(queue).ok()?, owner, waiting, dropped, unread, given })
}

/// Appends a message to `out`.
fn write(out: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32, queue: u16, attributes: &[(c_int, &[u8])]) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice([kind, flags].map(u16::to_ne_bytes).as_flattened());
    out.extend_from_slice(&sequence.to_ne_bytes());
    out.extend_from_slice(&[0; 6]);
    out.extend_from_slice(&queue.to_be_bytes());
    for (kind, value) in attributes {
        let len = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        out.extend_from_slice([len, *kind as u16].map(u16::to_ne_bytes).as_flattened());
        out.extend_from_slice(&value[..usize::from(len) - 4]);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    let len = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&len.to_ne_bytes());
}

/// Returns the sequence number and the result of a message that acknowledges another one.
fn acknowledged(bytes: &[u8]) -> Option<(u32, io::Result<()>)> {
    let (kind, body) = message(bytes)?;
    let error = i32::from_ne_bytes(*body.first_chunk()?);
    let sequence = u32::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
    let result = if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error.wrapping_neg())) };
    (kind == NLMSG_ERROR).then_some((sequence, result))
}

/// Returns the type of a message and what follows its header.
fn message(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let len = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    Some((kind, bytes.get(16..len)?))
}

/// Reads a message with a packet; `None` for other messages.
fn packet(bytes: &[u8]) -> Option<Queued<'_>> {
    let (kind, body) = message(bytes)?;
    if kind != PACKET {
        return None;
    }
    let queue = u16::from_be_bytes(*body.get(2..)?.first_chunk()?);
    let (mut id, mut payload, mut whole, mut sender) = (None, &[][..], true, None);
    for (kind, value) in Attributes(bytes.get(HEADER..16 + body.len())?) {
        match kind {
            NFQA_PACKET_HDR => id = value.first_chunk().map(|id| u32::from_be_bytes(*id)),
            NFQA_HWADDR => sender = ethernet(value),
            NFQA_PAYLOAD => payload = value,
            NFQA_CAP_LEN => whole = false,
            _ => {}
        }
    }
    Some(Queued { ticket: Ticket { queue, id: id? }, bytes: payload, whole, sender })
}

/// Reads a hardware address (`struct nfqnl_msg_packet_hw`); `None` if it has not the length of one of Ethernet.
fn ethernet(value: &[u8]) -> Option<[u8; 6]> {
    let length = u16::from_be_bytes(*value.first_chunk()?);
    value.get(4..)?.first_chunk().copied().filter(|_| length == 6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    /// A message as the kernel writes it, by hand: a packet of 21 bytes with number 258 in queue 7010.
    fn message_by_hand() -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [16u32 + 4 + 12 + 16 + 28, 0x0300, 0, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend([2, 0, 0x1b, 0x62]);
        for (len, kind) in [(11u16, 1u16), (16, 9), (25, 10)] {
            bytes.extend(len.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            match kind {
                1 => bytes.extend([0, 0, 1, 2, 8, 0, 2, 0]),
                9 => bytes.extend([0, 6, 0, 0, 2, 0, 0, 0, 0, 9, 0, 0]),
                _ => bytes.extend([0x45; 24]),
            }
        }
        bytes
    }

    #[test]
    fn a_packet_of_the_kernel_is_read() {
        let bytes = message_by_hand();
        let queued = packet(&bytes).unwrap();
        assert_eq!(queued.ticket, Ticket { queue: 7010, id: 258 });
        assert!(queued.bytes == [0x45; 21] && queued.whole, "the padding is no part of it");
        assert_eq!(queued.sender, Some([2, 0, 0, 0, 0, 9]));
        for len in 0..bytes.len() {
            assert!(packet(&bytes[..len]).is_none(), "{len}");
        }
    }

    #[test]
    fn a_hardware_address_of_another_kind_is_none() {
        assert_eq!(ethernet(&[0, 6, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0]), Some([1, 2, 3, 4, 5, 6]));
        for other in [&[0, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8][..], &[0, 6, 0, 0, 1, 2, 3], &[0], &[]] {
            assert_eq!(ethernet(other), None);
        }
    }

    #[test]
    fn damaged_messages_never_panic() {
        let bytes = message_by_hand();
        for at in 0..bytes.len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = (packet(&damaged), acknowledged(&damaged).is_some());
            }
        }
    }

    #[test]
    fn a_verdict_has_the_bytes_of_the_kernels_header() {
        let mut out = Vec::new();
        let attributes: [(_, &[u8]); 2] = [(NFQA_VERDICT_HDR, &[0, 0, 0, 1, 0, 0, 1, 2]), (NFQA_PAYLOAD, &[9; 5])];
        write(&mut out, VERDICT, NLM_F_REQUEST, 0, 7010, &attributes);
        let (header, kinds) = (44u32.to_ne_bytes(), [0x0301u16, 1].map(u16::to_ne_bytes).concat());
        let [verdict, payload] = [[12u16, 2], [9, 10]].map(|attribute| attribute.map(u16::to_ne_bytes).concat());
        let mut expected =
            [&header[..], &kinds, &[0; 8], &[0, 0, 0x1b, 0x62], &verdict, &[0, 0, 0, 1, 0, 0, 1, 2]].concat();
        expected.extend([&payload[..], &[9, 9, 9, 9, 9, 0, 0, 0]].concat());
        assert_eq!(out, expected);
    }

    #[test]
    fn the_listing_of_the_kernel_is_read() {
        let line = " 7010 3094712345    12 2 65531     3     4     5678  1";
        let listed = Listed { queue: 7010, owner: 3_094_712_345, waiting: 12, dropped: 3, unread: 4, given: 5678 };
        assert_eq!(listed_in(line), Some(listed));
        assert_eq!((listed_in(""), listed_in("7010 1 2")), (None, None));
    }

    /// Queues of a kernel that is this test, at the other end of a pair of sockets.
    fn with_kernel() -> (NfQueue, UnixDatagram) {
        let (mine, kernel) = UnixDatagram::pair().unwrap();
        kernel.set_nonblocking(true).unwrap();
        (NfQueue::over(netlink::socket_over(mine.into())), kernel)
    }

    const TICKET: Ticket = Ticket { queue: 7010, id: 258 };

    /// NLMSG_ERROR with ENOENT: a verdict about a packet that is gone. It is counted, and what comes behind it is read.
    #[test]
    fn a_refused_verdict_is_counted_and_no_packet() {
        let (mut queue, kernel) = with_kernel();
        let mut refusal = [36, 2, 0, 0].map(u32::to_ne_bytes).concat();
        refusal.extend((-libc::ENOENT).to_ne_bytes());
        refusal.extend([0; 16]);
        kernel.send(&refusal).unwrap();
        kernel.send(&message_by_hand()).unwrap();
        assert_eq!(queue.read().unwrap().map(|queued| queued.ticket), Some(TICKET));
        assert!(queue.read().unwrap().is_none());
        assert_eq!(queue.refused(), 1);
    }

    /// A descriptor that is no socket fails with ENOTSOCK, which is not the same as that nothing waits.
    #[test]
    fn a_socket_that_fails_is_an_error() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut queue = NfQueue::over(netlink::socket_over(file.into()));
        assert_eq!(queue.read().unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    }

    /// A verdict has 32 bytes: the header of 20, and an attribute of 12.
    #[test]
    fn verdicts_leave_when_a_batch_waits_and_are_lost_without_a_kernel() {
        let (mut queue, kernel) = with_kernel();
        let mut buffer = [0; 2048];
        let silent = |kernel: &UnixDatagram| kernel.recv(&mut [0; 1]).unwrap_err().kind() == io::ErrorKind::WouldBlock;
        queue.flush();
        assert!(silent(&kernel), "nothing waits");
        (1..BATCH).for_each(|_| queue.accept(TICKET, None));
        assert!(silent(&kernel), "one less than a batch");
        queue.drop(TICKET);
        assert_eq!(kernel.recv(&mut buffer).unwrap(), 32 * BATCH);
        drop(kernel);
        (0..2).for_each(|_| queue.accept(TICKET, None));
        queue.flush();
        assert_eq!(queue.refused(), 2);
    }
}
