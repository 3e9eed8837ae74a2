//! What the kernel tells of an interface: its MTU, how many packets it dropped because nobody read them, and whether it
//! is still there. Netlink tells changes when they happen; only the counter is asked for.

use crate::error::Error;
use crate::netlink;
use crate::netns::Namespace;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    BridgePortState, InfoBridge, InfoBridgePort, InfoData, InfoPortData, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage,
};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};
use nix::errno::Errno;
use nix::net::if_::{if_nameindex, if_nametoindex};
use penstock_core::suggest::suggestion;
use std::os::fd::{AsFd, BorrowedFd};

/// The multicast group of changes of interfaces (RTNLGRP_LINK).
const LINKS: u32 = 1;
/// Largest number of messages that are read at a time.
const BATCH: usize = 16;

/// Returns the number of an interface of the current namespace. Fails if there is none of this name; the message has the
/// nearest one.
pub fn index(name: &str) -> Result<u32, Error> {
    if_nametoindex(name).map_err(|error| {
        if error != Errno::ENODEV {
            return Error::refused(format!("cannot ask for the interface {name:?}"), "")(error);
        }
        let known = if_nameindex().map(|all| all.iter().map(|one| one.name().to_string_lossy().into_owned()).collect());
        let known: Vec<String> = known.unwrap_or_default();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        Error::Refused(format!("there is no interface {name:?}{}; `ip link` lists them", suggestion(name, &known)))
    })
}

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
    /// The bridge of which it is a port, if it is one.
    pub bridge: Option<u32>,
    /// True if it is a port of a bridge and forwards: spanning tree may say otherwise.
    pub forwards: bool,
}

/// An interface as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its address; empty if it has none.
    pub address: Vec<u8>,
    /// True if it is a bridge that filters virtual LANs.
    pub filters_vlans: bool,
    /// What [`LinkWatch`] tells of it.
    pub facts: Facts,
}

/// Lists the interfaces of the namespace of this thread.
pub fn listed() -> Result<Vec<Listed>, Error> {
    dump().map_err(Error::io("cannot list the interfaces"))
}

fn dump() -> std::io::Result<Vec<Listed>> {
    let socket = netlink::open(NETLINK_ROUTE)?;
    let question = RouteNetlinkMessage::GetLink(LinkMessage::default());
    socket.send(&bytes(question, NLM_F_REQUEST | NLM_F_DUMP), 0)?;
    let (mut all, mut bytes) = (Vec::new(), Vec::with_capacity(64 * 1024));
    loop {
        bytes.clear();
        socket.recv(&mut bytes, 0)?;
        let mut over = false;
        each(&bytes, |message| match message {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => all.push(listed_in(&link)),
            _ => over = true,
        });
        if over || bytes.is_empty() {
            return Ok(all);
        }
    }
}

fn listed_in(link: &LinkMessage) -> Listed {
    let mut listed = Listed { index: link.header.index, ..Listed::default() };
    learn_link(&mut listed.facts, link);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => listed.name.clone_from(name),
            LinkAttribute::Address(address) => listed.address.clone_from(address),
            LinkAttribute::LinkInfo(info) => listed.filters_vlans = info.iter().any(filters_vlans),
            _ => {}
        }
    }
    listed
}

fn filters_vlans(info: &LinkInfo) -> bool {
    matches!(info, LinkInfo::Data(InfoData::Bridge(keys)) if keys.contains(&InfoBridge::VlanFiltering(true)))
}

/// The bytes of a message.
fn bytes(message: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
    let mut packet = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(message));
    packet.header.flags = flags;
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    bytes
}

/// Watches one interface.
pub struct LinkWatch {
    socket: Socket,
    index: u32,
    facts: Facts,
}

impl LinkWatch {
    /// Watches the interface with this index in a namespace.
    pub fn open(namespace: &Namespace, index: u32) -> Result<Self, Error> {
        namespace.run(|| Self::here(index))
    }

    /// Watches the interface with this index in the namespace of this thread, for which no right is needed.
    pub fn here(index: u32) -> Result<Self, Error> {
        let socket = || {
            let socket = netlink::open(NETLINK_ROUTE)?;
            socket.add_membership(LINKS)?;
            socket.set_non_blocking(true).map(|()| socket)
        };
        let socket = socket().map_err(Error::io::<std::io::Error>("cannot watch the interface"))?;
        let mut watch = Self { socket, index, facts: Facts::default() };
        watch.refresh();
        Ok(watch)
    }

    /// Asks for the counters; [`LinkWatch::read`] gets the answer.
    pub fn ask(&self) {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        let question = bytes(RouteNetlinkMessage::GetLink(message), NLM_F_REQUEST);
        let _ = self.socket.send(&question, libc::MSG_DONTWAIT);
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

/// Learns what a datagram tells of the interface; what cannot be read, or is about others, tells nothing.
fn learn(facts: &mut Facts, index: u32, bytes: &[u8]) {
    each(bytes, |message| match message {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) if is_about(&link, index) => {
            *facts = Facts { mtu: facts.mtu, unread: facts.unread, ..Facts::default() };
            learn_link(facts, &link);
        }
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) if is_about(&link, index) => {
            learn_link(facts, &link);
            (facts.gone, facts.up) = (true, false);
        }
        _ => {}
    });
}

/// Bridges tell of their ports as well, in messages that look the same: such a port has left its bridge, and is not gone.
fn is_about(link: &LinkMessage, index: u32) -> bool {
    link.header.index == index && link.header.interface_family != AddressFamily::Bridge
}

/// Reads the messages of a datagram, up to the first that cannot be read.
fn each(mut bytes: &[u8], mut read: impl FnMut(NetlinkPayload<RouteNetlinkMessage>)) {
    while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
        let len = (message.header.length as usize).next_multiple_of(4).max(16);
        read(message.payload);
        match bytes.get(len..) {
            Some(rest) if !rest.is_empty() => bytes = rest,
            _ => break,
        }
    }
}

fn learn_link(facts: &mut Facts, link: &LinkMessage) {
    facts.up = link.header.flags.contains(LinkFlags::Up);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::Mtu(mtu) => facts.mtu = *mtu,
            LinkAttribute::Stats64(stats) => facts.unread = stats.tx_dropped,
            LinkAttribute::LinkInfo(info) => {
                let ports = info.iter().filter_map(|info| match info {
                    LinkInfo::PortData(InfoPortData::BridgePort(port)) => Some(port),
                    _ => None,
                });
                let forwarding = InfoBridgePort::State(BridgePortState::Forwarding);
                facts.forwards = ports.flatten().any(|key| *key == forwarding);
            }
            LinkAttribute::Controller(index) => facts.bridge = Some(*index),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, mtu: u32) -> LinkMessage {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.attributes.push(LinkAttribute::Mtu(mtu));
        link
    }

    fn new(link: LinkMessage) -> Vec<u8> {
        bytes(RouteNetlinkMessage::NewLink(link), 0)
    }

    fn gone(index: u32) -> Vec<u8> {
        bytes(RouteNetlinkMessage::DelLink(link(index, 4000)), 0)
    }

    #[test]
    fn only_the_own_interface_counts_and_the_last_word_holds() {
        let mut facts = Facts::default();
        let mut bytes = new(link(7, 1500));
        bytes.extend(new(link(8, 9000)));
        bytes.extend(new(link(7, 4000)));
        learn(&mut facts, 7, &bytes);
        assert_eq!(facts, Facts { mtu: 4000, up: true, ..Facts::default() });
        learn(&mut facts, 7, &gone(8));
        assert!(!facts.gone);
        learn(&mut facts, 7, &gone(7));
        assert!(facts.gone && !facts.up);
    }

    #[test]
    fn a_bridge_tells_whether_it_filters_virtual_lans() {
        let filters = |keys: Vec<InfoBridge>| {
            let mut link = link(7, 1500);
            link.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Data(InfoData::Bridge(keys))]));
            listed_in(&link).filters_vlans
        };
        assert!(filters(vec![InfoBridge::AgeingTime(300), InfoBridge::VlanFiltering(true)]));
        assert!(!filters(vec![InfoBridge::VlanFiltering(false)]) && !listed_in(&link(7, 1500)).filters_vlans);
    }

    #[test]
    fn garbage_tells_nothing() {
        let whole = new(link(7, 1500));
        for len in 0..whole.len() {
            let mut facts = Facts::default();
            learn(&mut facts, 7, &whole[..len]);
            assert_eq!(facts, Facts::default(), "{len}");
        }
        learn(&mut Facts::default(), 7, &[0; 100]);
        learn(&mut Facts::default(), 7, &[0xff; 100]);
    }
}
