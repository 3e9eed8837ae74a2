//! COBALT: CoDel whose count of signals decays slowly, and BLUE against flows which do not react to CoDel.
//!
//! Source: Morton 2016 and Høiland-Jørgensen, Täht, Morton 2018, §III-B ("Piece of CAKE"), in the form in which cake
//! runs in Linux (net/sched/sch_cake.c); Patil, thesis 2020, §2.3.2, Algorithm 3 for BLUE. CoDel acts on delay: after
//! congestion its count is not reset but goes down at the pace at which it went up. BLUE acts on overflow and idleness.
//!
//! ```text
//! over    sojourn > target and sojourn > 4 mtu_time                      mtu_time: a packet of mtu at the link's rate
//! due     count > 0 and now >= drop_next
//! over, not dropping:  dropping, drop_next = now + interval / sqrt(count); count = max(count, 1)
//! not over:            not dropping
//! due and dropping:    mark or drop; count += 1; drop_next += interval / sqrt(count)
//! due, not dropping:   while due: count -= 1; drop_next += interval / sqrt(count)
//! then                 drop with probability p, even if it could be marked
//! then                 count = 0: drop_next = now + interval
//!                      else if drop_next was past and nothing is dropped: drop_next = now
//! overflow             p += increment, once per freeze; dropping; drop_next = now; count = max(count, 1)
//! empty                p -= decrement, once per freeze; not dropping; if due: count -= 1, drop_next as above
//! ```
//!
//! 1 / sqrt(0) counts as 1, so that `interval` is also the time before the first signal. The last packet of a queue is
//! never dropped. target = max(target, 1.5 mtu_time); interval = max(interval + increase of target, 2 target).
//!
//! Patil's Algorithm 3 is `freeze = "100ms"`, `increment = 0.0025`, `decrement = 0.00025`. In it BLUE judges only
//! packets that CoDel passes, which gives every packet the fate that it has here; cake and this file also draw a random
//! number for the other packets. Cost: O(1) per packet; a square root per step of the count.
//!
//! With `compat = "linux"` the arithmetic is that of the kernel: see `cobalt/linux.rs`.
//!
//! DIFFERENCE: cake visits an empty queue again and again until p is 0, while another queue has packets. Here the
//! decrease of p while the queue was empty is caught up when the next packet arrives; not with `compat = "linux"`.
//! Pinned by `an_idle_queue_forgets_its_probability`.
//! DIFFERENCE: cake drops the head of a queue that is too long, here the arrival is dropped; `head_drop` does as cake
//! does, and is the default with `compat = "linux"`. Pinned by `a_full_queue_drops_its_head_as_cake_does`.

use super::{Aqm, Compat, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, FlowQueues, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) mod linux;

use linux::LinuxCobalt;

/// Parameters of COBALT. Defaults are those of cake in Linux.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Acceptable queueing delay (cake: 5ms). On a slow link the time of 1.5 packets of `mtu` takes its place.
    pub target: Span,
    /// Time before the first signal; about the largest round trip time (cake: 100ms).
    pub interval: Span,
    /// Largest packet, from which the least useful target follows (1514B).
    pub mtu: Bytes,
    /// Mark ECN-capable packets where CoDel would drop them (cake: always). BLUE drops all packets.
    pub ecn: bool,
    /// Least time between changes of BLUE's probability; null is the target, as in cake (Patil: 100ms).
    pub freeze: Option<Span>,
    /// What an overflow adds to BLUE's probability (cake: 1/256).
    pub increment: f64,
    /// What an empty queue takes from BLUE's probability (cake: 1/4096).
    pub decrement: f64,
    /// If the queue is full, drop from its head and not the arrival; null does so with compat = "linux". In flow queues
    /// `overflow` decides.
    pub head_drop: Option<bool>,
    /// "source", or "linux" for the arithmetic, the first signal and the idle time of Linux 6.18.
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            mtu: Bytes::new(1514),
            ecn: true,
            freeze: None,
            increment: 1.0 / 256.0,
            decrement: 1.0 / 4096.0,
            head_drop: None,
            compat: Compat::Source,
        }
    }
}

impl AqmConfig for Config {
    type Aqm = Cobalt;

    fn validate(&self) -> Result<(), ConfigError> {
        if self.target == Span::ZERO {
            return Err(ConfigError::new("target", "must be above 0"));
        }
        if self.interval <= self.target {
            return Err(ConfigError::new("interval", format!("must be above target ({})", self.target)));
        }
        if self.freeze == Some(Span::ZERO) {
            return Err(ConfigError::new("freeze", "must be above 0; leave it out for the target"));
        }
        for (key, value) in [("increment", self.increment), ("decrement", self.decrement)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(ConfigError::new(key, "must be above 0 and at most 1"));
            }
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> Cobalt {
        Cobalt::new(self.clone(), link.rate)
    }

    /// cake's hash is set-associative with 8 ways: a flow gets a queue of its own while one of 8 is free.
    fn per_flow(queues: &mut FlowQueues) -> Self {
        queues.ways = 8;
        Self::default()
    }

    /// `cake_enqueue()` drops one packet at a time.
    fn per_flow_in_linux(queues: &mut FlowQueues) {
        queues.drop_batch = 1;
    }
}

impl Config {
    fn drops_head(&self) -> bool {
        self.head_drop.unwrap_or(self.compat == Compat::Linux)
    }
}

/// What follows from the parameters and the rate of the link.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Times {
    target: Span,
    interval: Span,
    /// The time of four packets on the link; only a longer delay counts as a standing queue.
    four_packets: Span,
    freeze: Span,
}

impl Times {
    /// Computes the times as `cake_set_rate()` does.
    fn of(config: &Config, rate: Rate) -> Self {
        let mtu_time = rate.time_for(config.mtu);
        let target = config.target.max((mtu_time * 3).div(2));
        let interval = (config.interval + target.saturating_sub(config.target)).max(target * 2);
        Self { target, interval, four_packets: mtu_time * 4, freeze: config.freeze.unwrap_or(target) }
    }
}

/// The state of COBALT for one queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Cobalt {
    config: Config,
    law: Law,
}

/// Whose arithmetic is used.
#[derive(Debug, Clone, PartialEq)]
enum Law {
    /// Floating point, with the roots that the sources write.
    Source(Source),
    /// The kernel's integers.
    Linux(LinuxCobalt),
}

/// The state in floating point.
#[derive(Debug, Clone, PartialEq)]
struct Source {
    times: Times,
    ecn: bool,
    increment: f64,
    decrement: f64,
    drop_next: Instant,
    count: u32,
    dropping: bool,
    p: f64,
    p_changed: Instant,
    /// The queue was found empty and no packet has arrived since.
    idle: bool,
}

/// CoDel's judgement of a packet.
struct Judged {
    /// The packet is to be marked or dropped.
    signal: bool,
    /// drop_next is in the past; seen before the dropping state is entered, but after a step of the count.
    is_past: bool,
}

impl Cobalt {
    /// Creates the state of an empty queue: not dropping, with p = 0.
    pub fn new(config: Config, rate: Rate) -> Self {
        let law = match config.compat {
            Compat::Source => Law::Source(Source::new(&config, rate)),
            Compat::Linux => Law::Linux(LinuxCobalt::new(&config, rate)),
        };
        Self { config, law }
    }

    /// Returns BLUE's drop probability p.
    pub fn probability(&self) -> f64 {
        match &self.law {
            Law::Source(source) => source.p,
            Law::Linux(linux) => linux.probability(),
        }
    }
}

impl Source {
    fn new(config: &Config, rate: Rate) -> Self {
        Self {
            times: Times::of(config, rate),
            ecn: config.ecn,
            increment: config.increment,
            decrement: config.decrement,
            drop_next: Instant::ZERO,
            count: 0,
            dropping: false,
            p: 0.0,
            p_changed: Instant::ZERO,
            idle: false,
        }
    }

    /// Returns the time of the next signal after one at `t`: t + interval / sqrt(count).
    fn after(&self, t: Instant) -> Instant {
        t + Span::from_secs_f64(self.times.interval.as_secs_f64() / f64::from(self.count.max(1)).sqrt())
    }

    fn is_due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// Changes the count by one step and sets the time of the next step.
    fn step(&mut self, count: u32) {
        self.count = count;
        self.drop_next = self.after(self.drop_next);
    }

    /// Enters or leaves the dropping state by the delay of a packet.
    fn watch(&mut self, sojourn: Span, now: Instant) {
        self.dropping = if sojourn > self.times.target && sojourn > self.times.four_packets {
            if !self.dropping {
                self.drop_next = self.after(now);
            }
            self.count = self.count.max(1);
            true
        } else {
            false
        };
    }

    /// Judges a packet by CoDel.
    fn judge(&mut self, sojourn: Span, now: Instant) -> Judged {
        let (due, was_past) = (self.is_due(now), now > self.drop_next);
        self.watch(sojourn, now);
        if !due {
            return Judged { signal: false, is_past: was_past };
        }
        let signal = self.dropping;
        if signal {
            self.step(self.count.saturating_add(1));
        } else {
            // Not congested: the count goes down at the pace at which it went up.
            while self.is_due(now) {
                self.step(self.count - 1);
            }
        }
        Judged { signal, is_past: now > self.drop_next }
    }

    /// Draws whether BLUE drops a packet.
    fn is_unlucky(&self, rng: &mut Rng) -> bool {
        self.p > 0.0 && rng.uniform() < self.p
    }

    fn is_thawed(&self, now: Instant) -> bool {
        now.since(self.p_changed) > self.times.freeze
    }

    /// Catches up the decrease of BLUE's probability for the time without packets.
    fn catch_up(&mut self, now: Instant) {
        if std::mem::replace(&mut self.idle, false) && self.p > 0.0 {
            let freeze = self.times.freeze.as_nanos();
            let missed = now.since(self.p_changed).as_nanos() / freeze;
            self.p = (self.p - missed as f64 * self.decrement).max(0.0);
            self.p_changed += Span::from_nanos(missed * freeze);
        }
    }

    /// Judges the head of the queue; `is_last` says that no packet waits behind it.
    fn judge_head(&mut self, packet: &Meta, sojourn: Span, is_last: bool, now: Instant, rng: &mut Rng) -> Verdict {
        let Judged { signal, is_past } = self.judge(sojourn, now);
        let mark = signal && self.ecn && packet.ecn.is_capable();
        let drop = (signal && !mark) | self.is_unlucky(rng);
        // cobalt_should_drop(): with count 0 the next signal is at least an interval away; a signal that was due but
        // not given is due from now on.
        if self.count == 0 {
            self.drop_next = now + self.times.interval;
        } else if is_past && !drop {
            self.drop_next = now;
        }
        match (drop, mark) {
            // The last packet of the queue is never dropped.
            (true, _) if !is_last => Verdict::Drop,
            (_, true) => Verdict::Mark,
            _ => Verdict::Pass,
        }
    }

    fn overflow(&mut self, now: Instant) {
        if self.is_thawed(now) {
            self.p = (self.p + self.increment).min(1.0);
            self.p_changed = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    fn empty(&mut self, now: Instant) {
        self.idle = true;
        if self.p > 0.0 && self.is_thawed(now) {
            self.p = (self.p - self.decrement).max(0.0);
            self.p_changed = now;
        }
        self.dropping = false;
        if self.is_due(now) {
            self.step(self.count - 1);
        }
    }
}

impl Aqm for Cobalt {
    /// Judges nothing, but catches up with the time without packets.
    #[inline]
    fn on_enqueue(&mut self, _: &Meta, _: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        if let Law::Source(source) = &mut self.law {
            source.catch_up(now);
        }
        Verdict::Pass
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        let is_last = backlog.packets == 0;
        match &mut self.law {
            Law::Source(source) => source.judge_head(packet, sojourn, is_last, now, rng),
            Law::Linux(linux) => linux.should_drop(packet, sojourn, is_last, now, rng),
        }
    }

    fn drops_head(&self) -> bool {
        self.config.drops_head()
    }

    fn on_overflow(&mut self, now: Instant) {
        match &mut self.law {
            Law::Source(source) => source.overflow(now),
            Law::Linux(linux) => linux.queue_full(now),
        }
    }

    fn on_empty(&mut self, now: Instant) {
        match &mut self.law {
            Law::Source(source) => source.empty(now),
            Law::Linux(linux) => linux.queue_empty(now),
        }
    }

    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        let Fact::Rate(rate) = *fact else { return };
        match &mut self.law {
            Law::Source(source) => source.times = Times::of(&self.config, rate),
            Law::Linux(linux) => linux.set_rate(&self.config, rate),
        }
    }
}

impl AckPath for Cobalt {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::qdisc::{DropReason, Enqueued, PacketObserver, Qdisc};
    use crate::queue::Fifo;
    use crate::rng::Streams;
    use crate::testing::Numbered;
    use crate::units::Limit;

    /// The numbers of dropped packets.
    #[derive(Default)]
    struct Gone(Vec<u64>);

    impl PacketObserver<Numbered> for Gone {
        fn dropped(&mut self, packet: Numbered, _: DropReason, _: Instant) {
            self.0.push(packet.number);
        }
        fn marked(&mut self, _: &Numbered, _: Instant) {}
    }

    const FULL: Backlog = Backlog { packets: 100, bytes: 150_000 };
    const FAST: Rate = Rate::from_bps(1_000_000_000);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn cobalt(config: Config) -> Cobalt {
        AqmConfig::validate(&config).unwrap();
        config.aqm(&LinkFacts { rate: FAST, limit: Limit::Packets(1000) })
    }

    fn state(cobalt: &mut Cobalt) -> &mut Source {
        match &mut cobalt.law {
            Law::Source(source) => source,
            Law::Linux(_) => panic!("not by the source"),
        }
    }

    /// A queue served every millisecond from `from` to `to`, whose head has waited `sojourn` ms; the times of drops.
    fn drops(cobalt: &mut Cobalt, sojourn: u64, from: u64, to: u64) -> Vec<u64> {
        let mut rng = Streams::new(1).get("cobalt");
        let packet = Meta { size: Bytes::new(1500), ecn: Ecn::NotEct, flow: FlowId(0) };
        let dropped =
            |ms: &u64| cobalt.on_dequeue(&packet, Span::from_millis(sojourn), FULL, at(*ms), &mut rng) == Verdict::Drop;
        (from..to).filter(dropped).collect()
    }

    /// Over target from 20 ms: drop_next = 120 ms. Its signal makes the count 2 and adds 100/sqrt(2): 190.7 ms, then
    /// 100/sqrt(3): 248.4, 298.4, 343.2, 383.99 ms; each is seen at the next whole millisecond.
    #[test]
    fn signals_come_at_the_interval_over_the_root_of_the_count() {
        let mut cobalt = cobalt(Config::default());
        assert!(drops(&mut cobalt, 1, 0, 20).is_empty());
        assert_eq!(drops(&mut cobalt, 10, 20, 400), [120, 191, 249, 299, 344, 384]);
        assert_eq!(state(&mut cobalt).count, 7);
    }

    /// Where CoDel forgets its count, this one counts back at the same pace. Count 4 at 249 ms with drop_next = 298.4
    /// ms; under target, it is 3 at 298.4 (356.2 ms next), 2 at 356.2 (426.9), 1 at 426.9 (526.9), 0 at 526.9.
    #[test]
    fn the_count_goes_down_as_it_went_up() {
        let mut cobalt = cobalt(Config::default());
        drops(&mut cobalt, 1, 0, 20);
        assert_eq!(drops(&mut cobalt, 10, 20, 250).len(), 3);
        let mut counts = Vec::new();
        for to in [298, 300, 356, 358, 426, 428, 526, 528] {
            drops(&mut cobalt, 1, to - 1, to);
            counts.push(state(&mut cobalt).count);
        }
        assert_eq!(counts, [4, 3, 3, 2, 2, 1, 1, 0]);
    }

    /// The same again, then over target at 360 ms with count 2: the next signal is due 100/sqrt(2) ms later, not 100.
    #[test]
    fn coming_back_it_goes_on_where_it_is() {
        let mut cobalt = cobalt(Config::default());
        drops(&mut cobalt, 1, 0, 20);
        drops(&mut cobalt, 10, 20, 250);
        drops(&mut cobalt, 1, 250, 360);
        assert_eq!(drops(&mut cobalt, 10, 360, 432), [431]);
    }

    #[test]
    fn marks_count_as_signals_and_the_last_packet_is_not_dropped() {
        let (mut cobalt, mut rng) = (cobalt(Config::default()), Streams::new(1).get("cobalt"));
        drops(&mut cobalt, 1, 0, 20);
        drops(&mut cobalt, 10, 20, 120);
        let ect = Meta { size: Bytes::new(1500), ecn: Ecn::Ect0, flow: FlowId(0) };
        let wait = Span::from_millis(10);
        assert_eq!(cobalt.on_dequeue(&ect, wait, FULL, at(120), &mut rng), Verdict::Mark);
        let last = Meta { ecn: Ecn::NotEct, ..ect };
        assert_eq!(cobalt.on_dequeue(&last, wait, Backlog::default(), at(191), &mut rng), Verdict::Pass);
        assert_eq!(state(&mut cobalt).count, 3);
    }

    /// Overflows every millisecond: p grows at 6, 12, 18 ms (more than 5 ms apart), and the first signal does not wait.
    #[test]
    fn overflow_raises_the_probability_once_per_freeze() {
        let mut cobalt = cobalt(Config::default());
        for ms in 0..20 {
            cobalt.on_overflow(at(ms));
        }
        assert_eq!(cobalt.probability(), 3.0 / 256.0);
        assert_eq!(
            (state(&mut cobalt).count, state(&mut cobalt).dropping, state(&mut cobalt).drop_next),
            (1, true, at(19))
        );
        for ms in 20..10_000 {
            cobalt.on_overflow(at(ms));
        }
        assert_eq!(cobalt.probability(), 1.0);
    }

    #[test]
    fn an_idle_queue_forgets_its_probability() {
        let (mut cobalt, mut rng) = (cobalt(Config::default()), Streams::new(1).get("cobalt"));
        let packet = Meta { size: Bytes::new(1500), ecn: Ecn::Ect0, flow: FlowId(0) };
        cobalt.on_overflow(at(10));
        cobalt.on_empty(at(20));
        assert_eq!(cobalt.probability(), 15.0 / 4096.0);
        // 32 ms are 6 freezes of 5 ms; the rest is kept.
        cobalt.on_enqueue(&packet, Backlog::default(), at(52), &mut rng);
        assert_eq!((cobalt.probability(), state(&mut cobalt).p_changed), (9.0 / 4096.0, at(50)));
        cobalt.on_enqueue(&packet, FULL, at(90), &mut rng);
        assert_eq!(cobalt.probability(), 9.0 / 4096.0, "a queue in use does not");
        cobalt.on_empty(at(100));
        cobalt.on_enqueue(&packet, Backlog::default(), at(10_000), &mut rng);
        assert_eq!(cobalt.probability(), 0.0);
    }

    /// p = 1/2, and packets that wait no time: half of them are dropped, ECN or not. Five standard deviations of 50.
    #[test]
    fn blue_drops_with_its_probability() {
        let (mut cobalt, mut rng) =
            (cobalt(Config { increment: 0.5, ..Config::default() }), Streams::new(1).get("cobalt"));
        cobalt.on_overflow(at(10));
        let packet = Meta { size: Bytes::new(1500), ecn: Ecn::Ect0, flow: FlowId(0) };
        let mut judge = |ms| cobalt.on_dequeue(&packet, Span::ZERO, FULL, at(ms), &mut rng);
        let dropped = (10_000..20_000).filter(|ms| judge(*ms) == Verdict::Drop).count();
        assert!((4750..=5250).contains(&dropped), "{dropped}");
    }

    /// 1514 B at 1 Mbit/s take 12.112 ms: target 18.168 ms, interval 100 + 13.168 ms. At 100 kbit/s: 121.12 ms, target
    /// 181.68 ms, interval twice that.
    #[test]
    fn slow_links_get_a_larger_target() {
        let times = |bps| Times::of(&Config::default(), Rate::from_bps(bps));
        let us = Span::from_micros;
        assert_eq!((times(1_000_000).target, times(1_000_000).interval), (us(18_168), us(113_168)));
        assert_eq!((times(100_000).target, times(100_000).interval), (us(181_680), us(363_360)));
        assert_eq!(times(100_000).four_packets, us(484_480));
        let mut cobalt = cobalt(Config::default());
        cobalt.on_fact(&Fact::Rate(Rate::from_bps(1_000_000)), at(0));
        assert_eq!(state(&mut cobalt).times, times(1_000_000));
    }

    /// `cobalt_queue_empty()` of cake: when a drop is due at an empty queue, the count falls by one and the next drop is an
    /// interval divided by the root of the new count later.
    #[test]
    fn an_empty_queue_counts_down_by_one() {
        let mut cobalt = cobalt(Config::default());
        state(&mut cobalt).count = 5;
        state(&mut cobalt).drop_next = at(10);
        for (count, wait_ms) in [(4, 50.0), (3, 57.735), (2, 70.711), (1, 100.0)] {
            let due = state(&mut cobalt).drop_next;
            cobalt.on_empty(due);
            assert_eq!(state(&mut cobalt).count, count);
            let wait = state(&mut cobalt).drop_next.since(due).as_secs_f64() * 1e3;
            assert!((wait - wait_ms).abs() < 0.01, "{wait} ms with a count of {count}");
        }
    }

    /// Three packets of 1000 B fill the queue; of a fourth and a fifth, the first two of the queue make room. Each is an
    /// overflow, so BLUE has one increment, since both come at once.
    #[test]
    fn a_full_queue_drops_its_head_as_cake_does() {
        for (head_drop, compat, dropped, head) in [
            (None, Compat::Linux, [0, 1], 2),
            (Some(true), Compat::Source, [0, 1], 2),
            (None, Compat::Source, [3, 4], 0),
            (Some(false), Compat::Linux, [3, 4], 0),
        ] {
            let config = Config { head_drop, compat, ..Config::default() };
            let limit = Limit::Bytes(Bytes::new(3500));
            let mut queue = Fifo::<Numbered, Cobalt>::new(limit, config.aqm(&LinkFacts { rate: FAST, limit }));
            let (mut rng, mut drops) = (Streams::new(1).get("cobalt"), Gone::default());
            for number in 0..5 {
                let taken =
                    queue.enqueue(Numbered::new(number, FlowId(0), Bytes::new(1000)), at(10), &mut rng, &mut drops);
                let refused = dropped.contains(&number) && head == 0;
                assert_eq!(taken == Enqueued::Dropped(DropReason::Overflow), refused, "{number}");
            }
            assert_eq!(drops.0, dropped);
            assert_eq!(queue.aqm().probability(), 1.0 / 256.0);
            assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: 3000 });
            queue.stats().check(queue.backlog()).unwrap();
            assert_eq!(queue.dequeue(at(10), &mut rng, &mut drops).map(|packet| packet.number), Some(head));
        }
    }

    /// A packet larger than the queue cannot stay, whoever makes room.
    #[test]
    fn a_packet_larger_than_the_queue_is_dropped_itself() {
        let (config, limit) = (Config { head_drop: Some(true), ..Config::default() }, Limit::Bytes(Bytes::new(1500)));
        let mut queue = Fifo::<Numbered, Cobalt>::new(limit, config.aqm(&LinkFacts { rate: FAST, limit }));
        let (mut rng, mut drops) = (Streams::new(1).get("cobalt"), Gone::default());
        queue.enqueue(Numbered::new(0, FlowId(0), Bytes::new(1000)), at(1), &mut rng, &mut drops);
        let taken = queue.enqueue(Numbered::new(1, FlowId(0), Bytes::new(2000)), at(1), &mut rng, &mut drops);
        assert_eq!(taken, Enqueued::Dropped(DropReason::Overflow));
        assert_eq!((drops.0.len(), queue.backlog()), (2, Backlog::default()));
    }
}
