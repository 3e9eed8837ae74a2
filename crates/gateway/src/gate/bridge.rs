//! Frames of two ports of a bridge of the kernel, which has everything that this process does not take, and all of it when
//! this process dies or hangs (`penstock_linux::bpf::bridge`).

use super::{Arrived, Gate};
use crate::account::Cause;
use crate::error::Error;
use crate::file::File;
use crate::held::{Held, Origin};
use crate::life::Standing;
use crate::report::{Frames, Past, Told};
use crate::surroundings::prompt;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use penstock_core::qdisc::Backlog;
use penstock_core::units::{Instant, Span};
use penstock_linux::bpf::bridge::{Bridge as Programs, Mac, Taking};
use penstock_linux::lead::Lead;
use penstock_linux::links::{self, Facts, LinkWatch, Listed};
use penstock_linux::port::{self, Port, Virtio};
use penstock_linux::segments::Segments;
use penstock_shaper::direction::Direction;
use penstock_shaper::pool::Pool;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Largest number of frames that do not become packets and are looked at in one turn.
const LOOKED_AT: usize = 64;
/// `errno` of a frame that is longer than its interface may send (EMSGSIZE).
const TOO_LONG: i32 = Errno::EMSGSIZE as i32;
/// Those of a frame whose interface is gone or down.
const AWAY: [i32; 3] = [Errno::ENXIO as i32, Errno::ENODEV as i32, Errno::ENETDOWN as i32];

/// Number of places, a power of two.
const PLACES: usize = 4096;
/// An address is forgotten after this time, as with the kernel's bridge by default.
const AGE: Span = Span::from_secs(300);

/// Two ports. In pairs, the WAN is first: its frames travel forward, and those of the LAN in reverse.
pub struct Bridge {
    ports: Ports,
    guard: Guard,
    segments: Segments,
    /// The direction of the frame that is taken apart.
    taken_apart: usize,
    neighbours: Neighbours,
}

struct Ports {
    both: [Port; 2],
    ready: Epoll,
    /// The port that is read first.
    turn: usize,
    /// Packets that wait to leave, by their direction.
    leaving: [Vec<Held>; 2],
    observe: bool,
    frames: Frames,
    /// What had been refused before the interface was there that refuses now.
    former: [u64; 2],
    lost: [u64; 2],
}

/// Who has the frames: this process while it gives signs of life and both ports forward, or else the kernel.
struct Guard {
    programs: Programs,
    watches: [LinkWatch; 2],
    names: [String; 2],
    /// The numbers of both ports and of their bridge from which frames are taken.
    attached: [u32; 3],
    patience: Span,
    alive: Instant,
    /// Why the kernel has all frames, if it has.
    resting: Option<String>,
    past: Past,
}

/// A packet that has come: its direction, and where in the frame it begins; `None` for a segment of one that is taken apart.
type Next = (usize, Lead, Option<usize>);

fn wrong(what: impl std::fmt::Display) -> Error {
    Error::Surroundings(format!("mode = \"bridge\": {what}"))
}

/// Finds both ports and their bridge, and checks that it is one behind which this process can stand.
fn found(all: &[Listed], names: &[String; 2]) -> Result<([Listed; 2], Listed), Error> {
    let [wan, lan] = names;
    let named = |name: &String| all.iter().find(|one| one.name == *name).cloned();
    let (Some(a), Some(b)) = (named(wan), named(lan)) else { return Err(wrong("an interface is gone")) };
    let master = a.facts.bridge.filter(|_| a.facts.bridge == b.facts.bridge);
    let bridge = master.and_then(|index| all.iter().find(|one| one.index == index)).cloned();
    let Some(bridge) = bridge else {
        return Err(wrong(format_args!(
            "{wan} and {lan} are not ports of one bridge of the kernel, which forwards when this process does not; make one: \
             ip link add br0 type bridge && ip link set {wan} master br0 && ip link set {lan} master br0 && ip link set br0 up"
        )));
    };
    let of_bridge = |one: &&Listed| one.facts.bridge == Some(bridge.index) && ![a.index, b.index].contains(&one.index);
    let (name, other) = (&bridge.name, all.iter().find(of_bridge).map(|other| &other.name));
    match other {
        Some(other) => Err(wrong(format_args!(
            "{name} has another port, {other}; only {wan} and {lan} can be there (ip link set {other} nomaster)"
        ))),
        None if bridge.filters_vlans => Err(wrong(format_args!(
            "{name} filters virtual LANs, and here tags pass as they are: ip link set {name} type bridge vlan_filtering 0"
        ))),
        None => Ok(([a, b], bridge)),
    }
}

fn mac(listed: &Listed) -> Result<Mac, Error> {
    let address = listed.address.as_slice().try_into();
    address.map_err(|_| wrong(format!("{} is not an interface of Ethernet", listed.name)))
}

/// Returns why frames cannot be taken from these ports now; `None` if they can.
fn unready(names: &[String; 2], facts: [Facts; 2], bridge: u32) -> Option<String> {
    names.iter().zip(facts).find_map(|(name, facts)| match facts {
        Facts { gone: true, .. } => Some(format!("{name} is gone")),
        _ if facts.bridge != Some(bridge) => Some(format!("{name} has left its bridge")),
        _ => (!facts.forwards).then(|| format!("{name} does not forward (spanning tree, or no carrier)")),
    })
}

impl Bridge {
    /// Opens both ports if they are there; frames come with the first sign of life. Returns what happened as well.
    pub fn open(file: &File) -> Result<(Self, Vec<String>), Error> {
        let names = [file.interfaces.wan.clone(), file.interfaces.lan.clone().unwrap_or_default()];
        let watches = [LinkWatch::named(&names[0])?, LinkWatch::named(&names[1])?];
        let (observe, patience) = (file.keys.observe, file.keys.patience);
        let taking = Taking { patience: Duration::from_nanos(patience.as_nanos()), observe, wan: 0, own: [[0; 6]; 3] };
        let programs = Programs::load(&taking)?;
        let (attached, alive, resting, past) = ([0; 3], Instant::ZERO, None, Past::default());
        let mut guard = Guard { programs, watches, names, attached, patience, alive, resting, past };
        let (segments, neighbours) = Default::default();
        let ports = Ports::open(guard.watches.each_ref().map(LinkWatch::facts), &mut guard.programs, observe)?;
        let mut gate = Self { ports, guard, segments, taken_apart: 0, neighbours };
        gate.attach()?;
        let refused = prompt(file.keys.realtime)?;
        gate.look(Instant::ZERO);
        Ok((gate, refused.into_iter().collect()))
    }

    /// Takes frames from the ports that are there, if they are others than before. A port is ready before it is in a
    /// bridge, so that little passes until frames are taken.
    fn attach(&mut self) -> Result<(), Error> {
        let Guard { programs, watches, names, attached, .. } = &mut self.guard;
        let [facts, _] = watches.each_ref().map(LinkWatch::facts);
        for (at, watch) in watches.iter().enumerate() {
            if !watch.facts().gone && attached[at] != watch.index() {
                self.ports.begin(at, watch.index())?;
                programs.hide(&names[at])?;
                (attached[at], attached[2]) = (watch.index(), 0);
            }
        }
        let is_known = attached[2] != 0 && Some(attached[2]) == facts.bridge;
        if is_known || watches.iter().any(|watch| watch.facts().gone) {
            return Ok(());
        }
        let (listed, bridge) = found(&links::listed()?, names)?;
        programs.serve(listed[0].index, [mac(&listed[0])?, mac(&listed[1])?, mac(&bridge)?])?;
        attached[2] = bridge.index;
        Ok(())
    }

    fn bytes(&self, way: usize, at: Option<usize>) -> &[u8] {
        at.map_or_else(|| self.segments.packet(), |at| &self.ports.both[way].frame().bytes[at..])
    }

    fn advance(&mut self) -> Option<Next> {
        for _ in 0..LOOKED_AT {
            if let Some(lead) = self.segments.advance() {
                return Some((self.taken_apart, lead, None));
            }
            let way = self.ports.advance()?;
            let frame = self.ports.both[way].frame();
            let Some((lead, at)) = Lead::read(&frame) else {
                // The programs have taken what this does not read.
                self.ports.send_whole(way);
                continue;
            };
            if self.neighbours.stays(lead.addresses(), Direction::BOTH[way], self.guard.alive) {
                self.ports.frames.same_side[way] += 1;
            } else if frame.virtio.merged == 0 {
                return Some((way, lead, Some(at)));
            } else if self.segments.begin(lead, &frame.bytes[at..], &frame.virtio) {
                self.taken_apart = way;
                self.ports.frames.taken_apart[way] += 1;
            } else {
                self.ports.send_whole(way);
            }
        }
        None
    }
}

impl Gate for Bridge {
    fn read(&mut self) -> io::Result<Option<Arrived<'_>>> {
        let Some((way, lead, at)) = self.advance() else { return Ok(None) };
        let ([to, from], bytes) = (lead.addresses(), self.bytes(way, at));
        let direction = Direction::BOTH[way];
        let hardware = Some(if direction == Direction::Forward { to } else { from }.into());
        Ok(Some(Arrived { direction, origin: Origin::Frame(lead), hardware, bytes }))
    }

    /// Lets a packet leave that is not later than its due time by more than the patience: the kernel has forwarded newer ones
    /// since.
    fn accept(&mut self, direction: Direction, held: Held, late: Span, pool: &mut Pool) {
        self.ports.accept(direction.index(), held, is_too_late(late, self.guard.patience), pool);
    }

    fn flush(&mut self, pool: &mut Pool) {
        (0..2).for_each(|way| self.ports.send(way, pool));
    }

    /// If the last sign of life is too long ago, the kernel has forwarded since; what came before that is old.
    fn beat(&mut self, now: Instant) -> Vec<String> {
        let hung = self.guard.hung(now).map(|open| {
            self.segments.clear();
            self.ports.discard();
            format!("this process hung: the kernel forwarded for {} ms", open.as_nanos() / 1_000_000)
        });
        hung.into_iter().chain(self.guard.beat(now).err().map(|error| error.to_string())).collect()
    }

    fn look(&mut self, _: Instant) -> Option<String> {
        self.guard.watches.iter_mut().for_each(LinkWatch::refresh);
        let failed = self.attach().err().map(|error| error.to_string());
        let event = self.guard.look(failed);
        self.ports.both.iter().for_each(Port::calm);
        for (port, lost) in self.ports.both.iter_mut().zip(&mut self.ports.lost) {
            *lost = port.lost();
        }
        event
    }

    fn close(&mut self) -> Result<(), Error> {
        Ok(self.guard.programs.rest()?)
    }

    fn empty(&mut self, pool: &mut Pool) {
        while let Some((way, lead, at)) = self.advance() {
            if !self.ports.observe {
                self.ports.both[way ^ 1].send(std::iter::once([lead.bytes(), self.bytes(way, at)]));
            }
        }
        self.flush(pool);
    }

    fn standing(&self) -> Standing {
        let gone = self.guard.watches.iter().any(|watch| watch.facts().gone);
        match &self.guard.resting {
            None => Standing::Takes,
            Some(why) if gone => Standing::Waits(why.clone()),
            Some(why) => {
                let what = format!("packets pass ungoverned; the kernel has all frames: {why}");
                Standing::Open(Cause::Away, what)
            }
        }
    }

    fn past(&self) -> Past {
        self.guard.past
    }

    fn marks(&self) -> Vec<String> {
        self.ports.marks(&self.guard.names).collect()
    }

    fn told(&self) -> Told {
        let passed = self.guard.programs.passed().unwrap_or_default();
        let [a, b] = passed.hung;
        let opened = Backlog { packets: a.packets + b.packets, bytes: a.bytes + b.bytes };
        let (past, frames) = (Past { opened, ..self.guard.past }, Frames { passed, ..self.ports.frames });
        Told { past, unread: self.ports.lost, frames: Some(frames), ..Told::default() }
    }
}

impl Ports {
    /// Opens ports for interfaces like these. No frame comes to them before they have one.
    fn open(like: [Facts; 2], programs: &mut Programs, observe: bool) -> Result<Self, Error> {
        let [wan, lan] = like.map(|facts| Port::open(facts.mtu));
        let both = [wan?, lan?];
        let waiting = Error::io("cannot wait for frames");
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(&waiting)?;
        for port in &both {
            programs.filter(port)?;
            ready.add(port, EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(&waiting)?;
        }
        let (leaving, frames) = Default::default();
        Ok(Self { both, ready, turn: 0, leaving, observe, frames, former: [0; 2], lost: [0; 2] })
    }

    /// Takes frames from an interface that has come. What its predecessor refused as it went is no fault of this one.
    fn begin(&mut self, at: usize, index: u32) -> Result<(), penstock_linux::error::Error> {
        self.former[at ^ 1] = self.frames.refused[at ^ 1];
        self.frames.too_long = false;
        self.both[at].begin(index)
    }

    /// Goes to the next frame of the ports, in turn; returns whose it is.
    fn advance(&mut self) -> Option<usize> {
        self.turn ^= 1;
        [self.turn, self.turn ^ 1].into_iter().find(|way| self.both[*way].advance())
    }

    /// Sends a frame at once, as it came: it cannot wait, because it is not one packet.
    fn send_whole(&mut self, way: usize) {
        self.frames.whole[way] += 1;
        if self.observe {
            return;
        }
        let frame = self.both[way].frame();
        let Some((mut lead, at)) = Lead::of_ethernet(&frame) else { return };
        let tag = lead.link_len() - at as u16;
        let pending = frame.virtio.pending.map(|(start, offset)| (start.saturating_add(tag), offset));
        let headers = pending.map_or(0, |(start, offset)| start.saturating_add(offset).saturating_add(2));
        lead.say(&Virtio { pending, ..frame.virtio }, headers);
        let (refused, _) = self.both[way ^ 1].send(std::iter::once([lead.bytes(), &frame.bytes[at..]]));
        self.frames.refused[way] += refused;
    }

    fn accept(&mut self, way: usize, held: Held, late: bool, pool: &mut Pool) {
        if late {
            self.frames.late[way] += 1;
            pool.give(held.into_bytes());
            return;
        }
        self.leaving[way].push(held);
        if self.leaving[way].len() == port::BATCH {
            self.send(way, pool);
        }
    }

    fn send(&mut self, way: usize, pool: &mut Pool) {
        let leaving = &mut self.leaving[way];
        if leaving.is_empty() {
            return;
        }
        let (refused, why) = self.both[way ^ 1].send(leaving.iter().map(Held::frame));
        let why = why.and_then(|why| why.raw_os_error()).unwrap_or_default();
        let counter = if AWAY.contains(&why) { &mut self.frames.away } else { &mut self.frames.refused };
        counter[way] += refused;
        self.frames.too_long |= why == TOO_LONG;
        leaving.drain(..).for_each(|held| pool.give(held.into_bytes()));
    }

    /// Drops what has come: it is late.
    fn discard(&mut self) {
        for (port, late) in self.both.iter_mut().zip(&mut self.frames.late) {
            while port.advance() {
                *late += 1;
            }
        }
    }

    fn marks(&self, [wan, lan]: &[String; 2]) -> impl Iterator<Item = String> {
        let whole: u64 = self.frames.whole.iter().sum();
        let refused = self.frames.refused.iter().sum::<u64>() - self.former.iter().sum::<u64>();
        let lost: u64 = self.lost.iter().sum();
        let cure = format!("; frames with two tags need room: ip link set {wan} mtu 1508; ip link set {lan} mtu 1508");
        let cure = if self.frames.too_long { cure.as_str() } else { "" };
        let off = format!("ethtool -K {wan} gro off lro off; ethtool -K {lan} gro off lro off");
        let marks = [
            (whole, format!("{whole} merged frames passed whole and unshaped; let interfaces merge nothing: {off}")),
            (refused, format!("{refused} packets were refused by the interface on the other side{cure}")),
            (lost, format!("{lost} frames were lost because this process was too slow")),
        ];
        marks.into_iter().filter_map(|(count, mark)| (count > 0).then_some(mark))
    }
}

impl Guard {
    /// Returns for how long the kernel has forwarded because there was no sign of life.
    fn hung(&mut self, now: Instant) -> Option<Span> {
        let open = now.since(self.alive).saturating_sub(self.patience);
        if self.alive == Instant::ZERO || open == Span::ZERO || self.resting.is_some() {
            return None;
        }
        self.past.times += 1;
        self.past.open_s += open.as_secs_f64();
        Some(open)
    }

    fn beat(&mut self, now: Instant) -> Result<(), penstock_linux::bpf::Error> {
        self.alive = now;
        if self.resting.is_none() { self.programs.beat() } else { self.programs.rest() }
    }

    /// Leaves all frames to the kernel if a port does not forward, or frames cannot be taken from it, as `failed` says.
    /// Returns what is new about that.
    fn look(&mut self, failed: Option<String>) -> Option<String> {
        let why = unready(&self.names, self.watches.each_ref().map(LinkWatch::facts), self.attached[2]).or(failed);
        let event = (why != self.resting).then(|| match &why {
            Some(why) => format!("the kernel has all frames: {why}"),
            None => "both ports forward: frames are governed".into(),
        });
        self.resting = why;
        // It is told again with each sign of life.
        let _ = match self.resting {
            Some(_) => self.programs.rest(),
            None if event.is_some() => self.programs.beat(),
            None => Ok(()),
        };
        event
    }
}

impl AsFd for Bridge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ports.ready.0.as_fd()
    }
}

#[derive(Debug, Clone, Copy)]
struct Known {
    address: [u8; 6],
    /// The direction of frames from there.
    direction: Direction,
    seen: Instant,
}

/// On which side of a bridge an address was seen last, so that a frame between two hosts of one side stays there, as with the
/// kernel's bridge. A table of fixed size; an address that lost its place is unknown, and its frames go to the other side.
#[derive(Debug)]
struct Neighbours(Vec<Option<Known>>);

impl Default for Neighbours {
    fn default() -> Self {
        Self(vec![None; PLACES])
    }
}

fn place([a, b, c, d, e, f]: [u8; 6]) -> usize {
    // Fibonacci hashing: the upper bits of a product with 2^64 over the golden ratio.
    (u64::from_be_bytes([0, 0, a, b, c, d, e, f]).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % PLACES
}

impl Neighbours {
    /// Learns from whom a frame is, and returns whether it is for somebody on the same side.
    fn stays(&mut self, [to, from]: [[u8; 6]; 2], direction: Direction, now: Instant) -> bool {
        self.0[place(from)] = Some(Known { address: from, direction, seen: now });
        self.0[place(to)]
            .is_some_and(|known| known.address == to && known.direction == direction && now.since(known.seen) < AGE)
    }
}

/// What is late by just the patience still leaves.
fn is_too_late(late: Span, patience: Span) -> bool {
    late > patience
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voice::Voice;
    use penstock_core::packet::{FlowId, NodeId};
    use penstock_core::wire::RealPacket;

    fn listed(index: u32, name: &str, bridge: Option<u32>) -> Listed {
        let facts = Facts { bridge, forwards: true, ..Facts::default() };
        Listed { index, name: name.into(), address: vec![2, 0, 0, 0, 0, index as u8], facts, ..Listed::default() }
    }

    /// Other ports, and ports of no bridge, are in the test with real ones.
    #[test]
    fn a_bridge_has_these_two_ports_and_filters_no_tags() {
        let names = ["w0".into(), "l0".into()];
        let mut all = [listed(1, "w0", Some(3)), listed(2, "l0", Some(3)), listed(3, "br0", None)];
        let ([wan, _], bridge) = found(&all, &names).unwrap();
        assert_eq!((wan.index, bridge.name.as_str(), mac(&bridge).unwrap()), (1, "br0", [2, 0, 0, 0, 0, 3]));
        all[2].filters_vlans = true;
        assert!(found(&all, &names).unwrap_err().to_string().contains("vlan_filtering 0"));
    }

    #[test]
    fn a_port_that_does_not_forward_is_left_to_the_kernel() {
        let names = ["w0".into(), "l0".into()];
        let good = Facts { bridge: Some(3), forwards: true, ..Facts::default() };
        assert_eq!(unready(&names, [good, good], 3), None);
        let unready = |facts| unready(&names, [good, facts], 3).unwrap();
        assert!(unready(Facts { forwards: false, ..good }).contains("l0 does not forward"));
        assert!(unready(Facts { bridge: None, ..good }).contains("has left its bridge"));
        assert!(unready(Facts { gone: true, ..good }).contains("is gone"));
    }

    #[test]
    fn a_packet_may_be_late_by_the_patience() {
        let patience = Span::from_millis(80);
        assert!(!is_too_late(Span::ZERO, patience) && !is_too_late(patience, patience));
        assert!(is_too_late(patience + Span::from_nanos(1), patience));
    }

    /// Ports of no interface lose what they are given, which tells when they are given it.
    #[test]
    fn packets_leave_in_batches_and_late_ones_do_not() {
        let (Ok(wan), Ok(lan)) = (Port::open(1500), Port::open(1500)) else {
            return penstock_linux::testing::skip("no sockets for frames");
        };
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        let (leaving, frames) = Default::default();
        let mut ports =
            Ports { both: [wan, lan], ready, turn: 0, leaving, observe: false, frames, former: [0; 2], lost: [0; 2] };
        let mut pool = Pool::new(1500);
        let voice = Voice { direction: Direction::Reverse, came: Instant::ZERO, caller: NodeId::NOBODY };
        let mut accept = |late| {
            let held = Held::new(RealPacket::new([0x45; 40], FlowId(0)), Origin::Frame(Lead::NONE), voice);
            ports.accept(1, held, late, &mut pool);
            (ports.frames.late[1], ports.leaving[1].len(), ports.frames.away[1])
        };
        assert_eq!(accept(true), (1, 0, 0));
        (1..port::BATCH).for_each(|kept| assert_eq!(accept(false), (1, kept, 0)));
        assert_eq!(accept(false), (1, 0, port::BATCH as u64));
        ports.observe = true;
        ports.send_whole(0);
        assert_eq!(ports.frames.whole, [1, 0], "what is not one packet is counted, and the kernel has it");
        ports.frames = Frames { refused: [0, 2], ..Frames::default() };
        let names = ["wan0", "lan0"].map(str::to_owned);
        let marks = |ports: &Ports| ports.marks(&names).collect::<Vec<_>>();
        assert!(marks(&ports)[0].starts_with("2 packets were refused"), "{:?}", marks(&ports));
        ports.begin(0, 1).unwrap();
        assert_eq!((marks(&ports), ports.frames.refused), (vec![], [0, 2]), "another interface refused them");
        ports.frames.refused[1] += 1;
        assert!(marks(&ports)[0].starts_with("1 packets were refused"), "{:?}", marks(&ports));
    }

    fn host(n: u8) -> [u8; 6] {
        [2, 0, 0, 0, 0, n]
    }

    #[test]
    fn only_frames_between_two_of_one_side_stay() {
        let mut known = Neighbours::default();
        let mut stays =
            |to, from, direction, s| known.stays([host(to), host(from)], direction, Instant::ZERO + Span::from_secs(s));
        let [down, up] = Direction::BOTH;
        assert!(!stays(1, 2, up, 0), "nobody knows 1");
        assert!(stays(2, 3, up, 1), "2 is on this side");
        assert!(!stays(2, 1, down, 1) && !stays(1, 2, up, 2), "they are on different sides");
        assert!(!stays(3, 2, up, 302), "3 was not seen for long");
        assert!(!stays(1, 2, down, 303), "2 has moved, and 1 was not seen for long");
        assert!(stays(2, 1, down, 304), "2 is on the other side now");
    }
}
