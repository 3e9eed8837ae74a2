//! Packets that the kernel's firewall hands over, and that wait in the kernel for their verdict. A guard lets them pass when
//! this process hangs, and a thread reads the rules back.

use super::{Arrived, Gate};
use crate::account::Cause;
use crate::error::Error;
use crate::file::{File, Keys};
use crate::guard;
use crate::held::{Held, Origin};
use crate::life::Standing;
use crate::report::{Past, Told};
use crate::rules::{Chains, Counted, ReadBack, Rules};
use crate::surroundings::prompt;
use crate::watch::{self, Answer, Watch};
use penstock_appliance::guard::Guard;
use penstock_core::units::{Instant, Limit, Span};
use penstock_linux::nfqueue::{self, Listed, NfQueue};
use penstock_shaper::direction::Direction;
use penstock_shaper::pool::Pool;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

const READ_BACK: Span = Span::from_secs(10);
/// The shortest time between two guards of which the first was gone.
const NEXT_GUARD: Span = Span::from_secs(1);
/// Packets that the kernel may hold beyond those that the discipline may: those that are not read yet.
const UNREAD: u64 = 1024;
const LONGEST: u64 = 60_000;

/// Returns how many packets of a direction the kernel may hold.
pub fn kernel_queue(limit: Limit) -> u32 {
    let packets = match limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes.get() / 64,
    };
    packets.saturating_add(UNREAD).min(LONGEST) as u32
}

pub struct Router {
    queue: NfQueue,
    rules: Rules,
    patience: Span,
    guard: Guard,
    watch: Watch,
    past: Past,
    /// What rules had counted when they were last read, and how many packets the kernel had given just before.
    counted: [(Counted, u32); 2],
    /// The last sign of life.
    alive: Instant,
    /// Since when the guard lets packets pass.
    open: Option<Instant>,
    missing: Option<String>,
    read_back: Instant,
    guarded: Instant,
}

fn queues(file: &File, chains: &Chains) -> Result<NfQueue, Error> {
    let mut queue = NfQueue::open()?;
    for direction in Direction::BOTH {
        let most = kernel_queue(file.settings.subscribers.room(file.settings.ways[direction.index()].limit));
        queue.bind(chains.queue_of(direction), most)?;
    }
    Ok(queue)
}

/// Starts the guard, gives this thread its priority, which the guard does not inherit, and writes the rules; returns
/// which priority it did not get. Nothing remains if that fails.
fn guarded(rules: &Rules, keys: &Keys) -> Result<(Guard, Option<String>), Error> {
    let guard = guard::start(&rules.chains, keys.patience)?;
    match prompt(keys.realtime).and_then(|refused| rules.install().map(|()| refused)) {
        Ok(refused) => Ok((guard, refused)),
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
        let left = rules.chains.remove()?.then(|| "rules that an earlier run left were removed".to_owned());
        let watch = Watch::start(rules.clone())?;
        let (guard, refused) = guarded(&rules, &file.keys)?;
        let (past, counted, alive, patience) = (Past::default(), Default::default(), Instant::ZERO, file.keys.patience);
        let (open, missing, read_back, guarded) = (None, None, Instant::ZERO, Instant::ZERO);
        let gate =
            Self { queue, rules, patience, guard, watch, past, counted, alive, open, missing, read_back, guarded };
        Ok((gate, left.into_iter().chain(refused).collect()))
    }

    fn wrong_rules(&self) -> Option<String> {
        self.missing.as_ref().map(|rule| format!("packets may pass ungoverned; the rules of the firewall: {rule}"))
    }

    fn learn(&mut self, answer: Answer, now: Instant) -> Option<String> {
        match answer {
            Answer::Read(read, listed) => self.compare(read, &listed, now),
            Answer::Closed => {
                if let Some(since) = self.open.take() {
                    self.past.open_s += now.since(since).as_secs_f64();
                    self.guard.arm();
                }
                self.missing = None;
                Some("the rules are back".into())
            }
            Answer::Failed(why) => {
                let event = format!("the rules of the firewall: {why}");
                (self.missing.replace(why.clone()) != Some(why)).then_some(event)
            }
        }
    }

    /// Compares what rules have counted with what the kernel has given, from before the last reading until after this one,
    /// so that no packet between two looks is taken for one that was not given.
    fn compare(&mut self, read: ReadBack, listed: &[Vec<Listed>; 2], now: Instant) -> Option<String> {
        for direction in Direction::BOTH {
            let at = direction.index();
            let number = self.rules.chains.queue_of(direction);
            let given = |listed: &[Listed]| listed.iter().find(|one| one.queue == number).map(|one| one.given);
            let [Some(before), Some(after)] = [given(&listed[0]), given(&listed[1])] else { continue };
            let ((old, before_that), new) = (self.counted[at], read.counted[at]);
            // A rule that was written anew counts from zero.
            let since = |old: u64, new: u64| new.checked_sub(old).unwrap_or(new);
            let handed = since(old.handed.packets, new.handed.packets);
            let got = u64::from(after.wrapping_sub(before_that));
            self.past.overflow_at_least += handed.saturating_sub(got);
            self.past.opened.packets += since(old.past.packets, new.past.packets);
            self.past.opened.bytes += since(old.past.bytes, new.past.bytes);
            self.counted[at] = (new, before);
        }
        // While the guard lets packets pass, rules are missing: that is wrong if they could not be put back.
        let stays = |since: Instant| self.missing.is_some() || now.since(since) >= READ_BACK;
        let rule = read.missing.filter(|_| self.open.is_none_or(stays))?;
        let event = format!("a rule of the firewall was missing: {rule}");
        self.missing = Some(rule);
        self.watch.ask(watch::renew);
        Some(event)
    }
}

impl Gate for Router {
    fn begin(&mut self) {
        self.guard.arm();
    }

    fn read(&mut self) -> io::Result<Option<Arrived<'_>>> {
        let down = self.rules.chains.queue_of(Direction::Forward);
        let Some(queued) = self.queue.read()? else { return Ok(None) };
        let direction = if queued.ticket.queue == down { Direction::Forward } else { Direction::Reverse };
        let origin = Origin::Verdict { ticket: queued.ticket, whole: queued.whole };
        // Downloads have that of the next router of the provider.
        let hardware = queued.sender.filter(|_| direction == Direction::Reverse).map(Into::into);
        Ok(Some(Arrived { direction, origin, hardware, bytes: queued.bytes }))
    }

    fn accept(&mut self, _: Direction, held: Held, _: Span, pool: &mut Pool) {
        if let Origin::Verdict { ticket, .. } = held.origin {
            self.queue.accept(ticket, held.changed());
        }
        pool.give(held.into_bytes());
    }

    fn pass(&mut self, origin: &Origin) {
        if let Origin::Verdict { ticket, .. } = origin {
            self.queue.accept(*ticket, None);
        }
    }

    fn dropped(&mut self, origin: &Origin) {
        if let Origin::Verdict { ticket, .. } = origin {
            self.queue.drop(*ticket);
        }
    }

    fn flush(&mut self, _: &mut Pool) {
        self.queue.flush();
    }

    fn beat(&mut self, now: Instant) -> Vec<String> {
        let mut events = Vec::new();
        if !self.guard.beat() && now >= self.guarded {
            self.guarded = now + NEXT_GUARD;
            match guard::start(&self.rules.chains, self.patience) {
                Ok(mut guard) => {
                    if self.open.is_none() {
                        guard.arm();
                    }
                    self.guard.replace(guard);
                    events.push("the guard was gone; there is a new one".into());
                }
                Err(error) => events.push(format!("the guard is gone: {error}")),
            }
        }
        if self.guard.has_acted() {
            self.past.times += 1;
            // The guard has waited for as long as the patience since the last sign of life, and no longer.
            self.open.get_or_insert((self.alive + self.patience).min(now));
            events.push("this process hung: the guard let packets pass".into());
            self.watch.ask(watch::close);
        }
        self.alive = now;
        while let Some(answer) = self.watch.next() {
            events.extend(self.learn(answer, now));
        }
        events
    }

    fn look(&mut self, now: Instant) -> Option<String> {
        if now >= self.read_back {
            self.read_back = now + READ_BACK;
            self.watch.ask(watch::read);
        }
        None
    }

    fn lengthen(&mut self, direction: Direction, limit: Limit) {
        self.queue.set_most(self.rules.chains.queue_of(direction), kernel_queue(limit));
    }

    fn close(&mut self) -> Result<(), Error> {
        self.watch.end();
        self.rules.chains.remove().map(drop)
    }

    fn empty(&mut self, _: &mut Pool) {
        while let Ok(Some(queued)) = self.queue.read() {
            let ticket = queued.ticket;
            self.queue.accept(ticket, None);
        }
        self.queue.flush();
    }

    fn retire(self: Box<Self>) {
        self.guard.retire();
    }

    fn doubt(&mut self) {
        self.read_back = Instant::ZERO;
    }

    fn standing(&self) -> Standing {
        let open = "packets pass ungoverned: this process hung, and its guard opened the rules";
        match (self.open, self.wrong_rules()) {
            (Some(_), _) => Standing::Open(Cause::Hung, open.into()),
            (None, Some(wrong)) => Standing::Wrong(wrong),
            (None, None) => Standing::Takes,
        }
    }

    fn past(&self) -> Past {
        self.past
    }

    fn marks(&self) -> Vec<String> {
        let overflow = self.past.overflow_at_least;
        let marks = [
            self.open.and_then(|_| self.wrong_rules()),
            (overflow > 0).then(|| format!("at least {overflow} packets passed because the queue was full")),
        ];
        marks.into_iter().flatten().collect()
    }

    fn told(&self) -> Told {
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
