//! Where a captured frame has its IP packet: through VLAN tags, PPP, PPPoE and labels of MPLS, in any order.
//!
//! Source: the link types of draft-ietf-opsawg-pcaplinktype; IEEE 802.1Q and 802.1ad; RFC 2516 §4 (PPPoE); RFC 1661 §2
//! and RFC 1662 §3.1 (PPP); RFC 3032 §2.1 (MPLS); RFC 4385 §3 (the word before Ethernet behind labels); RFC 1042 (SNAP).
//! A tunnel between two hosts (GRE, VXLAN, IP in IP) is not looked into: the link carries the outer packet.

use std::fmt;

/// Headers in front of an IP packet that are passed over at most.
const MOST_HEADERS: usize = 16;

/// The supported link types, with their numbers in captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkType {
    /// BSD loopback: four bytes of address family in the byte order of the capturing machine (0, 108).
    Loopback,
    /// Ethernet (1).
    Ethernet,
    /// PPP, with or without its address and control bytes (9, 50, 104 without Cisco's own protocols).
    Ppp,
    /// PPP with a byte before it, which is 0 for received packets (204).
    PppWithDirection,
    /// PPPoE without Ethernet (51).
    Pppoe,
    /// No link header: the IP header comes first (12, 14, 101, 228, 229).
    RawIp,
    /// Linux cooked capture (113).
    Cooked,
    /// Labels of MPLS without a link header (219).
    Mpls,
    /// Linux cooked capture, version 2 (276).
    Cooked2,
}

/// A link type whose frames cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnsupportedLinkType(pub u32);

/// Names of link types that captures have, and that are not read.
const NAMES: [(u32, &str); 40] = [
    (3, "AX.25"),
    (6, "token ring"),
    (7, "ARCNET"),
    (8, "SLIP"),
    (10, "FDDI"),
    (11, "ATM"),
    (15, "SLIP of BSD/OS"),
    (99, "Symantec firewall"),
    (100, "ATM"),
    (105, "IEEE 802.11"),
    (106, "ATM of Linux"),
    (107, "frame relay"),
    (114, "LocalTalk"),
    (117, "OpenBSD pflog"),
    (119, "IEEE 802.11 with Prism header"),
    (122, "IP over fibre channel"),
    (123, "SunATM"),
    (127, "IEEE 802.11 with radiotap header"),
    (129, "ARCNET of Linux"),
    (138, "IP over IEEE 1394"),
    (143, "DOCSIS"),
    (144, "IrDA"),
    (147, "user-defined"),
    (149, "user-defined"),
    (163, "IEEE 802.11 with AVS header"),
    (166, "PPP of pppd"),
    (187, "Bluetooth HCI"),
    (189, "USB of Linux"),
    (192, "per-packet information"),
    (195, "IEEE 802.15.4"),
    (201, "Bluetooth HCI"),
    (220, "USB of Linux"),
    (227, "CAN"),
    (230, "IEEE 802.15.4"),
    (239, "nflog"),
    (240, "netANALYZER"),
    (249, "USB of Windows"),
    (251, "Bluetooth LE"),
    (253, "netlink"),
    (256, "Bluetooth LE"),
];

impl fmt::Display for UnsupportedLinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((number, name)) => write!(f, "link type {number} ({name})"),
            None => write!(f, "link type {}", self.0),
        }
    }
}

/// Why a frame has no IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// Its link type cannot be read.
    LinkType(u32),
    /// It carries another protocol, of this EtherType.
    EtherType(u16),
    /// It carries another protocol of PPP.
    Ppp(u16),
    /// It carries another protocol of LLC: the length in place of an EtherType.
    Llc,
    /// Too little of it was captured.
    Cut,
    /// Its headers contradict themselves.
    Malformed,
}

/// EtherTypes that are often beside IP.
const ETHERTYPES: [(u16, &str); 10] = [
    (0x0806, "ARP"),
    (0x8035, "RARP"),
    (0x8863, "PPPoE discovery"),
    (0x888e, "EAPOL"),
    (0x88cc, "LLDP"),
    (0x88e5, "MACsec"),
    (0x88e7, "provider backbone bridge"),
    (0x88f7, "PTP"),
    (0x8809, "slow protocols"),
    (0x9000, "loopback"),
];

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LinkType(number) => UnsupportedLinkType(number).fmt(f),
            Self::EtherType(number) => match ETHERTYPES.iter().find(|(known, _)| *known == number) {
                Some((_, name)) => f.write_str(name),
                None => write!(f, "EtherType 0x{number:04x}"),
            },
            Self::Ppp(number) => write!(f, "PPP protocol 0x{number:04x}"),
            Self::Llc => f.write_str("LLC"),
            Self::Cut => f.write_str("cut before the end of the headers"),
            Self::Malformed => f.write_str("malformed"),
        }
    }
}

/// A header that comes next in a frame.
#[derive(Debug, Clone, Copy)]
enum Next {
    Ip,
    /// An EtherType.
    Type,
    /// The addresses of Ethernet.
    Ethernet,
    Ppp,
    Pppoe,
    Mpls,
}

impl LinkType {
    /// Returns the link type with this number in captures.
    ///
    /// # Errors
    /// Returns [`UnsupportedLinkType`], whose message has the name of the link type.
    pub fn from_number(number: u32) -> Result<Self, UnsupportedLinkType> {
        Ok(match number {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            9 | 50 | 104 => Self::Ppp,
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            51 => Self::Pppoe,
            113 => Self::Cooked,
            204 => Self::PppWithDirection,
            219 => Self::Mpls,
            276 => Self::Cooked2,
            _ => return Err(UnsupportedLinkType(number)),
        })
    }

    /// Returns where the IP header begins.
    ///
    /// # Errors
    /// Returns why there is none.
    pub fn ip_offset(self, frame: &[u8]) -> Result<usize, Unread> {
        let (mut at, mut next) = match self {
            Self::RawIp => (0, Next::Ip),
            Self::Loopback => (4, Next::Ip),
            Self::Ethernet => (0, Next::Ethernet),
            Self::Ppp => (0, Next::Ppp),
            Self::PppWithDirection => (1, Next::Ppp),
            Self::Pppoe => (0, Next::Pppoe),
            Self::Mpls => (0, Next::Mpls),
            Self::Cooked => (14, Next::Type),
            // The protocol is at the begin of this header. Of a tag the last two bytes are behind its end.
            Self::Cooked2 => match behind_type(be16(frame, 0)?)? {
                Next::Type => (22, Next::Type),
                next => (20, next),
            },
        };
        for _ in 0..MOST_HEADERS {
            (at, next) = match next {
                Next::Ip => return Ok(at),
                Next::Ethernet => (at + 12, Next::Type),
                Next::Type => typed(frame, at)?,
                Next::Ppp => ppp(frame, at)?,
                Next::Pppoe => (at + 6, Next::Ppp),
                Next::Mpls => labels(frame, at)?,
            };
        }
        Err(Unread::Malformed)
    }
}

fn be16(bytes: &[u8], at: usize) -> Result<u16, Unread> {
    let found = bytes.get(at..at + 2).and_then(|two| two.try_into().ok());
    found.map(u16::from_be_bytes).ok_or(Unread::Cut)
}

/// Returns what follows an EtherType at `at`, and where.
fn typed(frame: &[u8], at: usize) -> Result<(usize, Next), Unread> {
    match be16(frame, at)? {
        length @ 0..=1500 => snap(frame, at, length),
        ethertype => {
            let next = behind_type(ethertype)?;
            // The EtherType behind a tag has two more bytes of the tag before it.
            Ok((at + if let Next::Type = next { 4 } else { 2 }, next))
        }
    }
}

/// Returns what has this EtherType. A tag is followed by another EtherType.
fn behind_type(ethertype: u16) -> Result<Next, Unread> {
    match ethertype {
        0x0800 | 0x86dd => Ok(Next::Ip),
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => Ok(Next::Type),
        0x8864 => Ok(Next::Pppoe),
        0x8847 | 0x8848 => Ok(Next::Mpls),
        0x880b => Ok(Next::Ppp),
        _ => Err(Unread::EtherType(ethertype)),
    }
}

/// A frame of IEEE 802.3, whose EtherType may be in a SNAP header. Cooked captures have small numbers for frames without.
fn snap(frame: &[u8], at: usize, length: u16) -> Result<(usize, Next), Unread> {
    match frame.get(at + 2..at + 8) {
        Some([0xaa, 0xaa, 0x03, 0, 0, 0]) => Ok((at + 8, Next::Type)),
        None if length > 0 && frame.len() < at + 8 => Err(Unread::Cut),
        _ => Err(Unread::Llc),
    }
}

/// PPP, whose address and control bytes and the first byte of whose protocol may be left out.
fn ppp(frame: &[u8], mut at: usize) -> Result<(usize, Next), Unread> {
    if matches!(frame.get(at..at + 2), Some([0xff | 0x0f | 0x8f, 0x03 | 0x00])) {
        let hdlc = frame[at] != 0xff;
        at += 2;
        if hdlc {
            return Ok((at, Next::Type)); // Cisco's HDLC has an EtherType there
        }
    }
    let first = *frame.get(at).ok_or(Unread::Cut)?;
    let (protocol, length) = if first & 1 == 1 { (u16::from(first), 1) } else { (be16(frame, at)?, 2) };
    match protocol {
        0x0021 | 0x0057 => Ok((at + length, Next::Ip)),
        0x0281 | 0x0283 => Ok((at + length, Next::Mpls)),
        _ => Err(Unread::Ppp(protocol)),
    }
}

/// Passes over labels. What is below the last one shows its first four bits: IP, or the word before Ethernet.
fn labels(frame: &[u8], mut at: usize) -> Result<(usize, Next), Unread> {
    for _ in 0..MOST_HEADERS {
        let label = frame.get(at..at + 4).ok_or(Unread::Cut)?;
        at += 4;
        if label[2] & 1 == 1 {
            return match frame.get(at).ok_or(Unread::Cut)? >> 4 {
                4 | 6 => Ok((at, Next::Ip)),
                0 => Ok((at + 4, Next::Ethernet)),
                _ => Err(Unread::Malformed),
            };
        }
    }
    Err(Unread::Malformed)
}
