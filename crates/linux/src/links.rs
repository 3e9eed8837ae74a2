//! What the kernel tells of an interface: its MTU, what passed it, how many packets it dropped because nobody read
//! them, and whether it is there. Netlink tells changes when they happen; only counters are asked for.

use crate::error::Error;
use crate::netlink;
use crate::netns::Namespace;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    BridgePortState, InfoBridge, InfoBridgePort, InfoData, InfoPortData, LinkAttribute, LinkFlags, LinkInfo,
    LinkLayerType, LinkMessage, Stats64,
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
/// Length of the header of Ethernet in bytes.
const ETHERNET: u64 = 14;

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
    /// True if there is something at its other end, as far as it knows.
    pub carrier: bool,
    /// True if the interface was removed, moved to another namespace, or has lost the name by which it is watched.
    pub gone: bool,
    /// True if its packets have a header of Ethernet.
    pub ethernet: bool,
    /// What it has received and sent since it exists.
    pub passed: [Passed; 2],
    /// The bridge of which it is a port, if it is one.
    pub bridge: Option<u32>,
    /// True if it is a port of a bridge and forwards: spanning tree may say otherwise.
    pub forwards: bool,
}

/// Packets, and their bytes without a header of Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// Number of packets; those that the interface counts as one are one.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Passed {
    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self { packets: of(self.packets, other.packets), bytes: of(self.bytes, other.bytes) }
    }
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
    known: Known,
}

/// An interface as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Known {
    index: u32,
    /// The name by which it is found, whatever its number; without one it is that of the number.
    name: Option<String>,
    facts: Facts,
    /// Its counters when it was first seen, and what earlier ones of this name had received and sent.
    first: [Passed; 2],
    earlier: [Passed; 2],
}

impl LinkWatch {
    /// Watches the interface with this index in a namespace.
    pub fn open(namespace: &Namespace, index: u32) -> Result<Self, Error> {
        namespace.run(|| Self::over(Known { index, ..Known::default() }))
    }

    /// Watches what has this name in the namespace of this thread, for which no right is needed. There need not be such
    /// an interface; one that comes, or comes back under another number, is it.
    pub fn named(name: &str) -> Result<Self, Error> {
        let facts = Facts { gone: true, ..Facts::default() };
        Self::over(Known { name: Some(name.to_owned()), facts, ..Known::default() })
    }

    fn over(known: Known) -> Result<Self, Error> {
        let socket = || {
            let socket = netlink::open(NETLINK_ROUTE)?;
            socket.add_membership(LINKS)?;
            socket.set_non_blocking(true).map(|()| socket)
        };
        let socket = socket().map_err(Error::io::<std::io::Error>("cannot watch the interface"))?;
        let mut watch = Self { socket, known };
        watch.refresh();
        Ok(watch)
    }

    /// Asks for the counters; [`LinkWatch::read`] gets the answer.
    pub fn ask(&self) {
        let mut message = LinkMessage::default();
        match &self.known.name {
            Some(name) => message.attributes.push(LinkAttribute::IfName(name.clone())),
            None => message.header.index = self.known.index,
        }
        let question = bytes(RouteNetlinkMessage::GetLink(message), NLM_F_REQUEST);
        let _ = self.socket.send(&question, libc::MSG_DONTWAIT);
    }

    /// Reads what the kernel has told of interfaces; returns whether that was anything.
    pub fn read(&mut self) -> bool {
        let mut bytes = Vec::with_capacity(32 * 1024);
        for number in 0..BATCH {
            bytes.clear();
            match self.socket.recv(&mut bytes, libc::MSG_DONTWAIT) {
                Ok(len) if len > 0 => self.known.learn(&bytes),
                // Nothing more, or a message was lost: the next counter is asked for soon.
                _ => return number > 0,
            }
        }
        true
    }

    /// Asks for the counters, and reads the answer, which the kernel gives at once.
    pub fn refresh(&mut self) {
        self.ask();
        self.read();
    }

    /// Returns the state of the interface as the kernel reported it last.
    pub fn facts(&self) -> Facts {
        self.known.facts
    }

    /// Returns the number that it has, or had last; 0 if it was never there.
    pub fn index(&self) -> u32 {
        self.known.index
    }

    /// Returns what was received and sent since it is watched, by all interfaces of this name.
    pub fn passed(&self) -> [Passed; 2] {
        self.known.passed()
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        netlink::descriptor(&self.socket)
    }
}

impl Known {
    /// Learns what a datagram tells of the interface; what cannot be read, or is about others, tells nothing.
    fn learn(&mut self, bytes: &[u8]) {
        each(bytes, |message| match message {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) if self.is_it(&link) => self.see(&link),
            // The number has another name now.
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))
                if self.name.is_some() && is_about(&link, self.index) =>
            {
                self.lose();
            }
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) if is_about(&link, self.index) => {
                self.see(&link);
                self.lose();
            }
            // Nobody has the name that was asked for.
            NetlinkPayload::Error(_) if self.name.is_some() => self.lose(),
            _ => {}
        });
    }

    fn is_it(&self, link: &LinkMessage) -> bool {
        let Some(own) = &self.name else { return is_about(link, self.index) };
        let named = |one: &LinkAttribute| matches!(one, LinkAttribute::IfName(name) if name == own);
        is_about(link, link.header.index) && link.attributes.iter().any(named)
    }

    fn see(&mut self, link: &LinkMessage) {
        let Facts { mtu, unread, passed, .. } = self.facts;
        let (is_new, earlier) = (link.header.index != self.index, self.passed());
        self.facts = Facts { mtu, unread, passed, ..Facts::default() };
        learn_link(&mut self.facts, link);
        if is_new {
            (self.index, self.earlier, self.first) = (link.header.index, earlier, self.facts.passed);
        } else {
            // An end of a cable forgets what it received when the other end is removed.
            self.facts.passed = [0, 1].map(|at| self.facts.passed[at].with(passed[at], u64::max));
        }
    }

    fn lose(&mut self) {
        (self.facts.gone, self.facts.up) = (true, false);
    }

    fn passed(&self) -> [Passed; 2] {
        let since_first = |at: usize| self.facts.passed[at].with(self.first[at], u64::saturating_sub);
        [0, 1].map(|at| self.earlier[at].with(since_first(at), |earlier, since| earlier + since))
    }
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

fn passed(stats: &Stats64, ethernet: bool) -> [Passed; 2] {
    let header = if ethernet { ETHERNET } else { 0 };
    let of = |bytes: u64, packets: u64| Passed { packets, bytes: bytes.saturating_sub(header * packets) };
    [of(stats.rx_bytes, stats.rx_packets), of(stats.tx_bytes, stats.tx_packets)]
}

fn learn_link(facts: &mut Facts, link: &LinkMessage) {
    facts.up = link.header.flags.contains(LinkFlags::Up);
    facts.carrier = link.header.flags.contains(LinkFlags::LowerUp);
    facts.ethernet = matches!(link.header.link_layer_type, LinkLayerType::Ether | LinkLayerType::Loopback);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::Mtu(mtu) => facts.mtu = *mtu,
            LinkAttribute::Stats64(stats) => {
                (facts.unread, facts.passed) = (stats.tx_dropped, passed(stats, facts.ethernet));
            }
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

    fn numbered(index: u32) -> Known {
        Known { index, ..Known::default() }
    }

    #[test]
    fn only_the_own_interface_counts_and_the_last_word_holds() {
        let mut known = numbered(7);
        let mut bytes = new(link(7, 1500));
        bytes.extend(new(link(8, 9000)));
        bytes.extend(new(link(7, 4000)));
        known.learn(&bytes);
        assert_eq!(known.facts, Facts { mtu: 4000, up: true, ethernet: false, ..Facts::default() });
        known.learn(&gone(8));
        assert!(!known.facts.gone);
        known.learn(&gone(7));
        assert!(known.facts.gone && !known.facts.up);
    }

    /// A link of Ethernet with this name that has received so many packets of 114 bytes with that header, and sent one.
    fn named(index: u32, name: &str, received: u64) -> LinkMessage {
        let mut link = link(index, 1500);
        link.header.link_layer_type = LinkLayerType::Ether;
        let mut stats = Stats64::default();
        (stats.rx_packets, stats.rx_bytes, stats.tx_packets, stats.tx_bytes) = (received, 114 * received, 1, 54);
        link.attributes.extend([LinkAttribute::IfName(name.into()), LinkAttribute::Stats64(stats)]);
        link
    }

    #[test]
    fn a_name_is_found_again_whatever_its_number_and_all_that_passed_is_told() {
        let mut known = Known { name: Some("w0".into()), ..Known::default() };
        let bytes = |known: &Known| known.passed().map(|passed| passed.bytes);
        known.learn(&new(named(7, "w0", 5)));
        assert_eq!((known.index, bytes(&known)), (7, [0, 0]), "what passed before nobody watched it");
        known.learn(&new(named(7, "w0", 9)));
        assert_eq!(bytes(&known), [400, 0]);
        known.learn(&new(named(7, "x0", 10)));
        assert!(known.facts.gone, "it has another name");
        known.learn(&new(named(7, "w0", 11)));
        assert_eq!((known.facts.gone, bytes(&known)), (false, [600, 0]));
        known.learn(&super::bytes(RouteNetlinkMessage::DelLink(named(7, "w0", 12)), 0));
        assert_eq!((known.facts.gone, bytes(&known)), (true, [700, 0]));
        known.learn(&super::bytes(RouteNetlinkMessage::DelLink(named(7, "w0", 0)), 0));
        assert_eq!(bytes(&known), [700, 0], "what has passed has passed");
        known.learn(&[new(named(8, "l0", 3)), new(named(9, "w0", 0))].concat());
        assert_eq!((known.index, known.facts.gone, bytes(&known)), (9, false, [700, 0]));
        known.learn(&new(named(9, "w0", 2)));
        assert_eq!(bytes(&known), [900, 0]);
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
            let mut known = numbered(7);
            known.learn(&whole[..len]);
            assert_eq!(known, numbered(7), "{len}");
        }
        numbered(7).learn(&[0; 100]);
        numbered(7).learn(&[0xff; 100]);
    }
}
