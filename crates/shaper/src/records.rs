//! What is kept of each packet of a queue: the journal, the tap and the log, of which each is there if somebody wants it.

use crate::journal::{Entry, Journal};
use crate::log::LinkLog;
use crate::tap::{Fate, Tap};
use penstock_core::packet::{Ecn, Ern, FlowId, Packet};
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant};

/// A packet with the time of its arrival.
#[derive(Debug, Clone)]
pub struct Stamped<P> {
    /// The packet.
    pub packet: P,
    /// When it arrived.
    pub since: Instant,
    /// True if the discipline has set CE.
    pub marked: bool,
}

impl<P: Packet> Packet for Stamped<P> {
    type Tcp = P::Tcp;

    fn size(&self) -> Bytes {
        self.packet.size()
    }
    fn flow(&self) -> FlowId {
        self.packet.flow()
    }
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    fn mark_ce(&mut self) {
        self.packet.mark_ce();
        self.marked = true;
    }
    fn tcp(&mut self) -> Option<&mut P::Tcp> {
        self.packet.tcp()
    }
    fn is_syn(&self) -> bool {
        self.packet.is_syn()
    }
    fn explicit_rate(&self) -> Ern {
        self.packet.explicit_rate()
    }
}

impl<P: Packet> Stamped<P> {
    fn entry(&self, at: Instant, dropped: Option<DropReason>) -> Entry {
        Entry { at, waited: at.since(self.since), flow: self.flow(), size: self.size(), dropped }
    }
}

/// What is kept of each packet that leaves the queue.
#[derive(Debug)]
pub struct Records<P> {
    /// The fate of each packet.
    pub journal: Option<Journal>,
    /// Its headers as well.
    pub tap: Option<Tap<P>>,
    /// What happened on the link.
    pub log: Option<LinkLog>,
}

impl<P: Packet> Records<P> {
    /// A packet arrives at the queue.
    pub fn arrived(&mut self, packet: &P, now: Instant) {
        if let Some(log) = &mut self.log {
            log.arrived(packet.size(), now);
        }
    }

    /// A queue drops a packet.
    pub fn dropped(&mut self, packet: &Stamped<P>, reason: DropReason, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.add(packet.entry(now, Some(reason)));
        }
        if let Some(tap) = &mut self.tap {
            tap.add(&packet.packet, now, Fate::Dropped(reason));
        }
        if let Some(log) = &mut self.log {
            log.dropped(packet.size(), now);
        }
    }

    /// A packet leaves the queue for the wire; its last bit leaves at `end`.
    pub fn sent(&mut self, packet: &Stamped<P>, lost: bool, end: Instant, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.add(packet.entry(now, None));
        }
        if let Some(tap) = &mut self.tap {
            let arrives = if packet.marked { Fate::Marked } else { Fate::Sent };
            tap.add(&packet.packet, now, if lost { Fate::Lost } else { arrives });
        }
        if let Some(log) = &mut self.log {
            log.sent(packet.size(), packet.since, end, now);
        }
    }
}
