//! An end of the emulated link: a TUN interface that this process makes, or a port, which is an interface that is there.

use crate::carried::{BEFORE, Carried};
use nix::ifaddrs::getifaddrs;
use penstock_core::units::Instant;
use penstock_linux::error::Error;
use penstock_linux::lead::Lead;
use penstock_linux::links::{self, Listed};
use penstock_linux::netns::Namespace;
use penstock_linux::offloads;
use penstock_linux::port::{self, Port};
use penstock_linux::segments::Segments;
use penstock_linux::tun::{self, Tun};
use penstock_shaper::emissions::Emissions;
use penstock_shaper::pool::{LARGEST, Pool};
use penstock_shaper::report::Frames;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Largest number of frames that do not become packets and are looked at in one turn.
const LOOKED_AT: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interface {
    Tun(tun::Config),
    Port(String),
}

impl Interface {
    pub fn name(&self) -> &str {
        match self {
            Self::Tun(config) => &config.name,
            Self::Port(name) => name,
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tun(tun) => write!(f, "{} {}", tun.name, tun.address.address),
            Self::Port(name) => write!(f, "port {name}"),
        }
    }
}

/// What a look at an end found.
pub enum Read {
    /// A packet of so many bytes at the begin of a buffer, and what stood before it.
    Packet(Box<[u8]>, usize, Lead),
    Nothing,
    NoMemory,
}

pub struct End {
    pub index: u32,
    /// The largest packet that the interface sends, in bytes, as it was at the start.
    pub mtu: usize,
    kind: Kind,
}

enum Kind {
    /// A TUN interface, with the place for what does not fit into a buffer.
    Tun(Tun, Box<[u8]>),
    Port(Box<PortEnd>),
}

impl End {
    /// Opens an end in a namespace; the error says what is missing or in the way, and what to do about it.
    pub fn open(interface: &Interface, namespace: &Namespace) -> Result<Self, Error> {
        match interface {
            Interface::Tun(config) => {
                let tun = Tun::open(config, namespace)?;
                let (index, mtu) = (tun.index(), tun.mtu());
                Ok(Self { index, mtu, kind: Kind::Tun(tun, vec![0; LARGEST].into_boxed_slice()) })
            }
            Interface::Port(name) => namespace.run(|| open_port(name)),
        }
    }

    /// Reads the next packet; fails if the interface was removed.
    pub fn read(&mut self, pool: &mut Pool) -> io::Result<Read> {
        let Some(mut buffer) = pool.try_take() else { return Ok(Read::NoMemory) };
        let found = match &mut self.kind {
            Kind::Tun(tun, rest) => {
                tun.read(&mut buffer, rest)?.map(|len| (whole(&mut buffer, rest, len, pool), Lead::NONE))
            }
            Kind::Port(port) => port.read(&mut buffer, pool),
        };
        Ok(match found {
            Some((len, lead)) => Read::Packet(buffer, len, lead),
            None => {
                pool.give(buffer);
                Read::Nothing
            }
        })
    }

    /// Writes a packet which was due at this time, or keeps it for [`End::flush`].
    pub fn write(&mut self, due: Instant, packet: Carried, now: Instant, emissions: &mut Emissions, pool: &mut Pool) {
        match &mut self.kind {
            Kind::Tun(tun, _) => {
                emissions.lateness.record(now.since(due));
                emissions.refused += u64::from(tun.write(packet.bytes()).is_err());
                pool.give(packet.into_bytes());
            }
            Kind::Port(port) => {
                port.leaving.push((due, packet));
                if port.leaving.len() == port::BATCH {
                    port.flush(now, emissions, pool);
                }
            }
        }
    }

    pub fn flush(&mut self, now: Instant, emissions: &mut Emissions, pool: &mut Pool) {
        if let Kind::Port(port) = &mut self.kind {
            port.flush(now, emissions, pool);
        }
    }

    /// Returns what became of frames that were not packets; `None` for an end without frames.
    pub fn frames(&self) -> Option<Frames> {
        if let Kind::Port(port) = &self.kind { Some(port.frames) } else { None }
    }

    /// Returns the number of packets that the kernel dropped because they were not read; `of_link` is that of the interface.
    pub fn unread(&mut self, of_link: u64) -> u64 {
        if let Kind::Port(port) = &mut self.kind { port.port.lost() } else { of_link }
    }

    /// Takes the error which an interface has left that went down, so that it is not told again.
    pub fn calm(&self) {
        if let Kind::Port(port) = &self.kind {
            port.port.calm();
        }
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tun(tun, _) => tun.as_fd(),
            Kind::Port(port) => port.port.as_fd(),
        }
    }
}

/// Checks that both ends send equally large packets, as those of a wire do; the error says what to do about it.
pub fn same_mtu([left, right]: &[Interface; 2], ends: &[End; 2]) -> Result<(), Error> {
    let [here, there] = ends.each_ref().map(|end| end.mtu);
    if here == there {
        return Ok(());
    }
    let (left, right) = (left.name(), right.name());
    Err(Error::Refused(format!(
        "the ports {left} and {right} have MTUs of {here} and {there} bytes; make them equal: ip link set {right} mtu {here}"
    )))
}

/// Makes a buffer whole that has the beginning of a packet whose end is in `rest`: the MTU was raised, and from now on all
/// buffers are as large as it takes. Returns the length of the packet.
fn whole(buffer: &mut Box<[u8]>, rest: &[u8], len: usize, pool: &mut Pool) -> usize {
    let begin = buffer.len();
    if len > begin {
        pool.grow(len);
        let mut whole = pool.take();
        whole[..begin].copy_from_slice(buffer);
        whole[begin..len].copy_from_slice(&rest[..len - begin]);
        *buffer = whole;
    }
    len
}

/// A port of the emulator. What comes to one port leaves by the other as it came, as on a wire.
///
/// The kernel forwards none of these frames a second time: the port is of no bridge and has no address, so the kernel's IP
/// discards what is for other hosts (PACKET_OTHERHOST in net/ipv4/ip_input.c and net/ipv6/ip6_input.c of Linux 6.18), and
/// what is for the port's own address of Ethernet is the kernel's alone and does not arrive here.
struct PortEnd {
    port: Port,
    address: [u8; 6],
    segments: Segments,
    frames: Frames,
    leaving: Vec<(Instant, Carried)>,
}

enum Place {
    Segment,
    Frame(usize),
}

/// Opens a port of the namespace of this thread.
fn open_port(name: &str) -> Result<End, Error> {
    let all = links::listed()?;
    let listed = fit(&all, name)?;
    let addresses = getifaddrs().map_err(Error::io("cannot list addresses"))?;
    let mut own = addresses.filter(|one| one.interface_name == name).filter_map(|one| ip(one.address?));
    if let Some(address) = own.find(|address| !is_link_local(address)) {
        return Err(Error::Refused(format!(
            "the kernel answers at the port {name}, which has the address {address}; a port is a wire between hosts: \
             ip addr flush dev {name}"
        )));
    }
    let merging = offloads::merging(name).map_err(Error::io("cannot ask for the offloads of an interface"))?;
    if !merging.is_empty() {
        let words: Vec<String> = merging.iter().map(|word| format!("{word} off")).collect();
        return Err(Error::Refused(format!(
            "the port {name} merges packets into one before they are queued; switch that off: ethtool -K {name} {}",
            words.join(" ")
        )));
    }
    let not_ethernet = |_| Error::Refused(format!("the port {name} is not an interface of Ethernet"));
    let address = listed.address.as_slice().try_into().map_err(not_ethernet)?;
    let port = Port::open(listed.facts.mtu)?;
    port.begin(listed.index)?;
    let (segments, frames, leaving) = (Segments::default(), Frames::default(), Vec::with_capacity(port::BATCH));
    let kind = Kind::Port(Box::new(PortEnd { port, address, segments, frames, leaving }));
    Ok(End { index: listed.index, mtu: listed.facts.mtu as usize, kind })
}

impl PortEnd {
    /// Goes to the next packet; returns what stands before it and where it is.
    fn advance(&mut self) -> Option<(Lead, Place)> {
        for _ in 0..LOOKED_AT {
            if let Some(lead) = self.segments.advance() {
                return Some((lead, Place::Segment));
            }
            if !self.port.advance() {
                return None;
            }
            let frame = self.port.frame();
            if frame.bytes.starts_with(&self.address) {
                self.frames.own += 1;
                continue;
            }
            match Lead::read(&frame).or_else(|| Lead::of_ethernet(&frame)) {
                Some((lead, at)) if frame.virtio.merged == 0 => return Some((lead, Place::Frame(at))),
                Some((lead, at)) if self.segments.begin(lead, &frame.bytes[at..], &frame.virtio) => {
                    self.frames.taken_apart += 1;
                }
                _ => self.frames.refused += 1,
            }
        }
        None
    }

    fn read(&mut self, buffer: &mut Box<[u8]>, pool: &mut Pool) -> Option<(usize, Lead)> {
        let (lead, place) = self.advance()?;
        let bytes = match place {
            Place::Segment => self.segments.packet(),
            Place::Frame(at) => &self.port.frame().bytes[at..],
        };
        let before: &[u8] = if lead.is_ip() { &[] } else { &BEFORE };
        let len = before.len() + bytes.len();
        if len > buffer.len() {
            pool.grow(len);
            *buffer = pool.take();
        }
        let (first, rest) = buffer[..len].split_at_mut(before.len());
        first.copy_from_slice(before);
        rest.copy_from_slice(bytes);
        Some((len, lead))
    }

    fn flush(&mut self, now: Instant, emissions: &mut Emissions, pool: &mut Pool) {
        if self.leaving.is_empty() {
            return;
        }
        let (refused, _) = self.port.send(self.leaving.iter().map(|(_, packet)| packet.frame()));
        emissions.refused += refused;
        for (due, packet) in self.leaving.drain(..) {
            emissions.lateness.record(now.since(due));
            pool.give(packet.into_bytes());
        }
    }
}

fn ip(address: nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|one| IpAddr::V4(one.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|one| IpAddr::V6(one.ip())))
}

/// Each kernel has such an address on each interface, and forwards nothing that is for it.
fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Finds an interface that can be a port.
fn fit<'a>(all: &'a [Listed], name: &str) -> Result<&'a Listed, Error> {
    let wrong = |what: String| Err(Error::Refused(what));
    let Some(listed) = all.iter().find(|one| one.name == name) else {
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return wrong(format!("there is no interface {name} in its namespace; there are: {}", names.join(", ")));
    };
    if let Some(master) = listed.facts.bridge {
        let master = all.iter().find(|one| one.index == master).map_or("another interface", |one| one.name.as_str());
        return wrong(format!(
            "{name} belongs to {master}, which forwards its frames as well: ip link set {name} nomaster"
        ));
    }
    if !listed.facts.up {
        return wrong(format!("{name} is down: ip link set {name} up"));
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_linux::links::Facts;

    #[test]
    fn a_port_is_there_is_up_and_has_no_master() {
        let listed = |index, name: &str, up, bridge| Listed {
            index,
            name: name.into(),
            facts: Facts { up, bridge, ..Facts::default() },
            ..Listed::default()
        };
        let all = [listed(1, "lo", true, None), listed(2, "w0", true, Some(3)), listed(3, "br0", false, None)];
        let why = |name: &str| fit(&all, name).unwrap_err().to_string();
        assert!(why("w1").contains("there are: lo, w0, br0"));
        assert!(why("w0").contains("belongs to br0") && why("w0").contains("ip link set w0 nomaster"));
        assert!(why("br0").contains("ip link set br0 up"));
        assert_eq!(fit(&all, "lo").unwrap().index, 1);
    }

    #[test]
    fn addresses_that_every_interface_has_are_no_hosts() {
        for (text, local) in [("fe80::1", true), ("169.254.1.1", true), ("10.0.0.1", false), ("2001:db8::1", false)] {
            assert_eq!(is_link_local(&text.parse().unwrap()), local, "{text}");
        }
    }
}
