//! Packets that the kernel's firewall hands over, and that wait in the kernel for their verdict. A guard lets them pass when
//! this process hangs, and a thread reads the rules back.

use super::{Arrived, Told};
use crate::error::Error;
use crate::file::{File, Keys};
use crate::guard;
use crate::held::{Held, Origin};
use crate::report::Past;
use crate::rules::{Chains, Counted, ReadBack, Rules};
use crate::watch::{Answer, Watch};
use penstock_appliance::guard::Guard;
use penstock_core::units::{Instant, Limit, Span};
use penstock_linux::nfqueue::{self, Listed, NfQueue, Ticket};
use penstock_linux::scheduling;
use penstock_shaper::direction::Direction;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// How often the rules are read back.
const READ_BACK: Span = Span::from_secs(10);
/// Packets that the kernel may hold beyond those that the discipline may: those that are not read yet.
const UNREAD: u64 = 1024;
/// The kernel's queue is never longer.
const LONGEST: u64 = 60_000;

/// Returns how many packets of a direction the kernel may hold.
pub fn kernel_queue(limit: Limit) -> u32 {
    let packets = match limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes.get() / 64,
    };
    packets.saturating_add(UNREAD).min(LONGEST) as u32
}

/// The queues of netfilter and the rules that fill them.
pub struct Router {
    queue: NfQueue,
    rules: Rules,
    patience: Span,
    guard: Guard,
    watch: Watch,
    past: Past,
    /// What rules had counted when they were last read, and how many packets the kernel had given just before.
    counted: [Counted; 2],
    given: [u32; 2],
    /// Since when the guard lets packets pass.
    open: Option<Instant>,
    missing: Option<String>,
    read_back: Instant,
}

/// Takes charge of the queues of both directions.
fn queues(file: &File, chains: &Chains) -> Result<NfQueue, Error> {
    let mut queue = NfQueue::open()?;
    for direction in Direction::BOTH {
        let most = kernel_queue(file.subscribers.room(file.bottlenecks[direction.index()].limit));
        queue.bind(chains.queue_of(direction), most)?;
    }
    Ok(queue)
}

/// Starts the guard, gives this thread its priority, which the guard does not inherit, and writes the rules. Nothing
/// remains if that fails.
fn guarded(rules: &Rules, keys: &Keys) -> Result<Guard, Error> {
    let guard = guard::start(&rules.chains, keys.patience)?;
    match scheduling::prompt(keys.realtime).map_err(Error::System).and_then(|()| rules.install()) {
        Ok(()) => Ok(guard),
        Err(error) => {
            let _ = rules.chains.remove();
            guard.retire();
            Err(error)
        }
    }
}

impl Router {
    /// Takes charge of the queues, writes the rules and starts the guard; returns what happened as well.
    pub fn open(file: &File) -> Result<(Self, Vec<String>), Error> {
        let rules = Rules::of(file)?;
        let queue = queues(file, &rules.chains)?;
        let mut events = Vec::new();
        if rules.chains.remove()? {
            events.push("rules that an earlier run left were removed".into());
        }
        let watch = Watch::start(rules.clone())?;
        let guard = guarded(&rules, &file.keys)?;
        let router = Self {
            queue,
            rules,
            patience: file.keys.patience,
            guard,
            watch,
            past: Past::default(),
            counted: Default::default(),
            given: [0; 2],
            open: None,
            missing: None,
            read_back: Instant::ZERO,
        };
        Ok((router, events))
    }

    pub fn begin(&mut self) {
        self.guard.arm();
    }

    pub fn read(&mut self) -> io::Result<Option<Arrived<'_>>> {
        let down = self.rules.chains.queue_of(Direction::Forward);
        let Some(queued) = self.queue.read()? else { return Ok(None) };
        let direction = if queued.ticket.queue == down { Direction::Forward } else { Direction::Reverse };
        let origin = Origin::Verdict { ticket: queued.ticket, whole: queued.whole };
        // Downloads have that of the next router of the provider.
        let hardware = queued.sender.filter(|_| direction == Direction::Reverse).map(Into::into);
        Ok(Some(Arrived { direction, origin, hardware, bytes: queued.bytes }))
    }

    pub fn accept(&mut self, held: &Held) {
        if let Origin::Verdict { ticket, .. } = held.origin() {
            self.queue.accept(*ticket, held.changed());
        }
    }

    pub fn pass(&mut self, ticket: Ticket) {
        self.queue.accept(ticket, None);
    }

    pub fn dropped(&mut self, ticket: Ticket) {
        self.queue.drop(ticket);
    }

    pub fn flush(&mut self) {
        self.queue.flush();
    }

    /// Gives the guard a sign of life, and learns whether it has let packets pass.
    pub fn beat(&mut self, now: Instant) -> Vec<String> {
        let mut events = Vec::new();
        if !self.guard.beat() {
            match guard::start(&self.rules.chains, self.patience) {
                Ok(mut guard) => {
                    if self.open.is_none() {
                        guard.arm();
                    }
                    self.guard = guard;
                    events.push("the guard was gone; there is a new one".into());
                }
                Err(error) => events.push(format!("the guard is gone: {error}")),
            }
        }
        if self.guard.has_acted() {
            self.past.times += 1;
            self.open.get_or_insert(now);
            events.push("this process hung: the guard let packets pass".into());
            self.watch.close();
        }
        while let Some(answer) = self.watch.next() {
            events.extend(self.learn(answer, now));
        }
        events
    }

    fn learn(&mut self, answer: Answer, now: Instant) -> Option<String> {
        match answer {
            Answer::Read(read, listed) => self.compare(read, &listed),
            Answer::Closed => {
                if let Some(since) = self.open.take() {
                    self.past.open_s += now.since(since).as_secs_f64();
                    self.guard.arm();
                }
                self.missing = None;
                Some("the rules are back".into())
            }
            Answer::Failed(why) => {
                let is_new = self.missing.as_ref() != Some(&why);
                let event = is_new.then(|| format!("the rules of the firewall: {why}"));
                self.missing = Some(why);
                event
            }
        }
    }

    /// Compares what rules have counted with what the kernel has given, from before the last reading until after this one,
    /// so that no packet between two looks is taken for one that was not given.
    fn compare(&mut self, read: ReadBack, listed: &[Vec<Listed>; 2]) -> Option<String> {
        for direction in Direction::BOTH {
            let at = direction.index();
            let number = self.rules.chains.queue_of(direction);
            let given = |listed: &[Listed]| listed.iter().find(|one| one.queue == number).map(|one| one.given);
            let [Some(before), Some(after)] = [given(&listed[0]), given(&listed[1])] else { continue };
            let (old, new) = (self.counted[at], read.counted[at]);
            // A rule that was written anew counts from zero.
            let since = |old: u64, new: u64| new.checked_sub(old).unwrap_or(new);
            let handed = since(old.handed.packets, new.handed.packets);
            let got = u64::from(after.wrapping_sub(self.given[at]));
            self.past.overflow_at_least += handed.saturating_sub(got);
            self.past.opened.packets += since(old.past.packets, new.past.packets);
            self.past.opened.bytes += since(old.past.bytes, new.past.bytes);
            (self.counted[at], self.given[at]) = (new, before);
        }
        let rule = read.missing.filter(|_| self.open.is_none())?;
        let event = format!("a rule of the firewall was missing: {rule}");
        self.missing = Some(rule);
        self.watch.renew();
        Some(event)
    }

    pub fn look(&mut self, now: Instant) {
        if now >= self.read_back {
            self.read_back = now + READ_BACK;
            self.watch.read();
        }
    }

    /// Changes how many packets of a direction the kernel may hold.
    pub fn lengthen(&mut self, direction: Direction, limit: Limit) {
        self.queue.set_most(self.rules.chains.queue_of(direction), kernel_queue(limit));
    }

    /// Removes the rules.
    pub fn close(&mut self) -> Result<(), Error> {
        self.watch.end();
        self.rules.chains.remove().map(drop)
    }

    pub fn empty(&mut self) {
        while let Ok(Some(queued)) = self.queue.read() {
            let ticket = queued.ticket;
            self.queue.accept(ticket, None);
        }
        self.queue.flush();
    }

    pub fn retire(self) {
        self.guard.retire();
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub fn marks(&self) -> Vec<String> {
        let overflow = self.past.overflow_at_least;
        [
            self.open.map(|_| "packets pass ungoverned: this process hung, and its guard opened the rules".to_owned()),
            self.missing.as_ref().map(|rule| format!("packets may pass ungoverned; the rules of the firewall: {rule}")),
            (overflow > 0).then(|| format!("at least {overflow} packets passed because the queue was full")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    pub fn told(&self) -> Told {
        let numbers = Direction::BOTH.map(|d| self.rules.chains.queue_of(d));
        let queues: Vec<_> = nfqueue::listed().into_iter().filter(|one| numbers.contains(&one.queue)).collect();
        let lost = |number| queues.iter().find(|one| one.queue == number).map_or(0, |one| one.dropped + one.unread);
        Told {
            past: self.past,
            refused_verdicts: self.queue.refused(),
            unread: numbers.map(|number| lost(number).into()),
            kernel_queues: queues,
            frames: None,
        }
    }
}

impl AsFd for Router {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_may_hold_what_the_discipline_may_and_more() {
        assert_eq!(kernel_queue(Limit::Packets(1000)), 2024);
        assert_eq!(kernel_queue("125kB".parse().unwrap()), 125_000 / 64 + 1024);
        assert_eq!(kernel_queue(Limit::Packets(u64::MAX)), 60_000);
    }
}
