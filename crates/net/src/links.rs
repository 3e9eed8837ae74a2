//! What the kernel tells of an interface: its MTU, how many packets it dropped because nobody read them, and whether it
//! is still there. Netlink tells changes when they happen; only the counter is asked for.

use crate::error::Error;
use crate::netlink;
use crate::netns::Namespace;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::os::fd::{AsFd, BorrowedFd};

/// The multicast group of changes of interfaces (RTNLGRP_LINK).
const LINKS: u32 = 1;
/// Largest number of messages that are read at a time.
const BATCH: usize = 16;

/// What is known of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Number of packets that the kernel dropped since the interface exists, because its queue was full.
    pub unread: u64,
    /// True if the interface is up.
    pub up: bool,
    /// True if the interface was removed, or moved to another namespace.
    pub gone: bool,
}

/// Watches one interface.
pub struct LinkWatch {
    socket: Socket,
    index: u32,
    facts: Facts,
}

impl LinkWatch {
    /// Watches the interface with this index in a namespace.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn open(namespace: &Namespace, index: u32) -> Result<Self, Error> {
        let socket = namespace.run(|| socket().map_err(Error::io("cannot watch the interface")))?;
        let mut watch = Self { socket, index, facts: Facts::default() };
        watch.refresh();
        Ok(watch)
    }

    /// Asks for the counters; [`LinkWatch::read`] gets the answer.
    pub fn ask(&self) {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        let payload = NetlinkPayload::from(RouteNetlinkMessage::GetLink(message));
        let mut packet = NetlinkMessage::new(NetlinkHeader::default(), payload);
        packet.header.flags = NLM_F_REQUEST;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        let _ = self.socket.send(&bytes, libc::MSG_DONTWAIT);
    }

    /// Reads what the kernel has told.
    pub fn read(&mut self) {
        let mut bytes = Vec::with_capacity(32 * 1024);
        for _ in 0..BATCH {
            bytes.clear();
            match self.socket.recv(&mut bytes, libc::MSG_DONTWAIT) {
                Ok(len) if len > 0 => learn(&mut self.facts, self.index, &bytes),
                // Nothing more, or a message was lost: the next counter is asked for soon.
                _ => break,
            }
        }
    }

    /// Asks for the counters, and reads the answer, which the kernel gives at once.
    pub fn refresh(&mut self) {
        self.ask();
        self.read();
    }

    /// Returns the state of the interface as the kernel reported it last.
    pub fn facts(&self) -> Facts {
        self.facts
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        netlink::descriptor(&self.socket)
    }
}

fn socket() -> std::io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.add_membership(LINKS)?;
    socket.set_non_blocking(true)?;
    Ok(socket)
}

/// Learns what a datagram tells of the interface; what cannot be read, or is about others, tells nothing.
fn learn(facts: &mut Facts, index: u32, mut bytes: &[u8]) {
    while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
        let len = (message.header.length as usize).next_multiple_of(4).max(16);
        match message.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) if link.header.index == index => {
                facts.gone = false;
                facts.up = link.header.flags.contains(LinkFlags::Up);
                learn_attributes(facts, &link.attributes);
            }
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) if link.header.index == index => {
                (facts.gone, facts.up) = (true, false);
                learn_attributes(facts, &link.attributes);
            }
            _ => {}
        }
        match bytes.get(len..) {
            Some(rest) if !rest.is_empty() => bytes = rest,
            _ => break,
        }
    }
}

fn learn_attributes(facts: &mut Facts, attributes: &[LinkAttribute]) {
    for attribute in attributes {
        match attribute {
            LinkAttribute::Mtu(mtu) => facts.mtu = *mtu,
            LinkAttribute::Stats64(stats) => facts.unread = stats.tx_dropped,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(message: RouteNetlinkMessage) -> Vec<u8> {
        let mut packet = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        bytes
    }

    fn link(index: u32, mtu: u32) -> LinkMessage {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.attributes.push(LinkAttribute::Mtu(mtu));
        link
    }

    #[test]
    fn only_the_own_interface_counts_and_the_last_word_holds() {
        let mut facts = Facts::default();
        let mut bytes = told(RouteNetlinkMessage::NewLink(link(7, 1500)));
        bytes.extend(told(RouteNetlinkMessage::NewLink(link(8, 9000))));
        bytes.extend(told(RouteNetlinkMessage::NewLink(link(7, 4000))));
        learn(&mut facts, 7, &bytes);
        assert_eq!(facts, Facts { mtu: 4000, up: true, ..Facts::default() });
        learn(&mut facts, 7, &told(RouteNetlinkMessage::DelLink(link(8, 1))));
        assert!(!facts.gone);
        learn(&mut facts, 7, &told(RouteNetlinkMessage::DelLink(link(7, 4000))));
        assert!(facts.gone && !facts.up);
    }

    #[test]
    fn garbage_tells_nothing() {
        let whole = told(RouteNetlinkMessage::NewLink(link(7, 1500)));
        for len in 0..whole.len() {
            let mut facts = Facts::default();
            learn(&mut facts, 7, &whole[..len]);
            assert_eq!(facts, Facts::default(), "{len}");
        }
        learn(&mut Facts::default(), 7, &[0; 100]);
        learn(&mut Facts::default(), 7, &[0xff; 100]);
    }

    /// The loopback interface is there in each namespace.
    #[test]
    fn the_kernel_answers_at_once() {
        let watch = LinkWatch::open(&Namespace::open(None).unwrap(), 1);
        // Entering a namespace takes rights that not everybody has.
        if let Ok(watch) = watch {
            assert_eq!(watch.facts().mtu, 65_536);
        }
    }
}
