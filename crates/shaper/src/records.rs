//! What is kept of each packet of a queue: the journal, the tap and the log, of which each is there if somebody wants it.

use crate::journal::{Entry, Journal};
use crate::log::{Event, LinkLog};
use crate::tap::{Fate, Tap};
use penstock_core::packet::{Carrier, Packet};
use penstock_core::qdisc::DropReason;
use penstock_core::units::Instant;

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

impl<P: Packet> Carrier for Stamped<P> {
    type Packet = P;

    fn carried(&self) -> &P {
        &self.packet
    }
    fn carried_mut(&mut self) -> &mut P {
        &mut self.packet
    }
    fn note_mark(&mut self) {
        self.marked = true;
    }
}

impl<P: Packet> Stamped<P> {
    fn entry(&self, at: Instant, dropped: Option<DropReason>) -> Entry {
        Entry { at, waited: at.since(self.since), flow: self.flow(), size: self.size(), dropped }
    }
}

/// What is kept of packets, as far as somebody wants it.
#[derive(Debug)]
pub struct Records<P> {
    /// The fate of each packet, in 40 bytes.
    pub journal: Option<Journal>,
    /// Its headers as well, in 160 bytes.
    pub tap: Option<Tap<P>>,
    /// What happened on the link: up to three events of 40 bytes for each packet.
    pub log: Option<LinkLog>,
}

impl<P: Packet> Records<P> {
    /// A packet arrives at the queue.
    pub fn arrived(&mut self, packet: &P, now: Instant) {
        if let Some(log) = &mut self.log {
            log.events.push((now, Event::Arrived(packet.size())));
        }
    }

    /// A queue drops a packet.
    pub fn dropped(&mut self, packet: &Stamped<P>, reason: DropReason, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.push(packet.entry(now, Some(reason)));
        }
        if let Some(tap) = &mut self.tap {
            tap.add(&packet.packet, now, Fate::Dropped(reason));
        }
        if let Some(log) = &mut self.log {
            log.events.push((now, Event::Dropped(packet.size())));
        }
    }

    /// A packet leaves the queue for the wire; its last bit leaves at `end`.
    pub fn sent(&mut self, packet: &Stamped<P>, lost: bool, end: Instant, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.push(packet.entry(now, None));
        }
        if let Some(tap) = &mut self.tap {
            let arrives = if packet.marked { Fate::Marked } else { Fate::Sent };
            tap.add(&packet.packet, now, if lost { Fate::Lost } else { arrives });
        }
        if let Some(log) = &mut self.log {
            log.events.push((now, Event::Sent(packet.size(), packet.since, end)));
        }
    }
}
