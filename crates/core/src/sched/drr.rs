//! DRR: classes take turns of `quantum` bytes for each unit of weight; what a turn leaves over counts in the next.
//!
//! Source: Shreedhar and Varghese, "Efficient fair queuing using deficit round robin", 1996.
//!
//! ```text
//! a class begins:      to the end of the round, with nothing saved
//! its turn begins:     deficit += weight * quantum
//! head <= deficit:     it sends, deficit -= size
//! else:                its turn ends: to the end of the round, and it keeps the deficit
//! no packet left:      when its last one has been sent, it leaves the round and loses the deficit
//! ```
//!
//! With a quantum of at least the largest packet (the default) a class sends in each turn, and the cost is O(1). With a
//! smaller quantum one packet may need several turns. For two classes that stay backlogged, the normalized service
//! (bytes sent / weight) differs by at most quantum + 2 largest packets (Theorem 3 of the source, with the least weight
//! 1). The waiting time of a class grows with the sum of all quanta; schedulers with timestamps avoid that.
//! `tests/schedulers.rs` checks the bound, with arrivals at any time. State for each class: 16 bytes.
//!
//! A turn ends when its last packet has been sent, and not when that begins: a class which comes in between would wait for
//! one turn more than the bound allows.
//!
//! DIFFERENCE: in the kernel (`net/sched/sch_drr.c`) a class leaves the round when its last packet begins to be sent, and
//! one that gets another packet meanwhile begins anew behind all others. `compat = "linux"` does as the kernel. Pinned by
//! `in_linux_a_class_leaves_with_its_last_packet`.

use super::round::{Linked, NONE, Round};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::{Compat, ConfigError};
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of DRR.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Bytes per turn for a class of weight 1; the default is the largest packet.
    pub quantum: Option<Bytes>,
    /// When a class without packets leaves the round: when its last packet has been sent ("source"), or when that begins
    /// to be sent, as in Linux 6.18 ("linux").
    pub compat: Compat,
}

/// The most bytes of one turn: a turn of the largest weight must fit 32 bits, with room for a packet.
const MAX_TURN: u64 = 1 << 31;

impl SchedulerConfig for Config {
    type Scheduler = Drr;

    fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        setup.validate()?;
        let quantum = self.quantum.unwrap_or(setup.max_packet).get();
        let most = setup.weights.iter().max().map_or(1, |weight| u64::from(weight.get()));
        if quantum == 0 || quantum.saturating_mul(most) > MAX_TURN {
            let limit = MAX_TURN / most;
            return Err(ConfigError::new("quantum", format!("must be 1B to {limit}B with a largest weight of {most}")));
        }
        Ok(())
    }

    fn scheduler(&self, setup: &Setup<'_>) -> Drr {
        let quantum = self.quantum.unwrap_or(setup.max_packet).get().clamp(1, MAX_TURN);
        let classes = setup.weights.iter().map(|weight| Class::new(turn(*weight, quantum).unwrap_or(u32::MAX / 2)));
        Drr {
            quantum,
            max_packet: setup.max_packet,
            classes: classes.collect(),
            round: Round::default(),
            leaves_at_once: self.compat == Compat::Linux,
            leaving: NONE,
        }
    }
}

/// The bytes of one turn for a weight; `None` if they exceed [`MAX_TURN`].
fn turn(weight: Weight, quantum: u64) -> Option<u32> {
    let bytes = quantum * u64::from(weight.get());
    (bytes <= MAX_TURN).then_some(bytes as u32)
}

#[derive(Debug, Clone, PartialEq)]
struct Class {
    deficit: u32,
    turn: u32,
    /// Size of the packet at the head of the queue.
    head: u32,
    next: u32,
}

impl Class {
    fn new(turn: u32) -> Self {
        Self { deficit: 0, turn, head: 0, next: NONE }
    }
}

impl Linked for Class {
    #[inline]
    fn next(&self) -> u32 {
        self.next
    }
    #[inline]
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// The DRR scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Drr {
    quantum: u64,
    max_packet: Bytes,
    classes: Vec<Class>,
    round: Round,
    /// A class leaves the round when its last packet begins to be sent.
    leaves_at_once: bool,
    /// The class whose last packet is on the link. It was at the front, and is there again if it gets a packet before that
    /// has been sent. [`NONE`] if no packet on the link was the last of its class.
    leaving: u32,
}

impl Drr {
    /// Moves the class at the front to the end of the round and adds its quantum for the next turn.
    // Inlining would cost each packet registers that only the end of a turn needs.
    #[inline(never)]
    fn rotate(&mut self, class: usize) {
        let state = &mut self.classes[class];
        state.deficit += state.turn;
        self.round.rotate(&mut self.classes);
    }
}

impl Scheduler for Drr {
    fn classes(&self) -> usize {
        self.classes.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline]
    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
        if idle {
            let state = &mut self.classes[class as usize];
            state.head = size.get() as u32;
            if self.leaving == class {
                self.leaving = NONE;
                self.round.push_front(&mut self.classes, class as usize);
                return;
            }
            state.deficit = state.turn;
            self.round.push(&mut self.classes, class as usize);
        }
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        self.leaving = NONE;
        loop {
            let class = self.round.first()?;
            let Class { deficit, head, .. } = self.classes[class];
            if head <= deficit {
                return Some(class as u32);
            }
            // The turn is over. If a turn has fewer bytes than the packet, the deficit grows from turn to turn.
            self.rotate(class);
        }
    }

    #[inline]
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        let state = &mut self.classes[class as usize];
        state.deficit -= size.get() as u32;
        match head {
            Some(head) => state.head = head.get() as u32,
            None => {
                self.round.pop(&self.classes);
                self.leaving = if self.leaves_at_once { NONE } else { class };
            }
        }
    }

    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        let known = self.classes.len();
        let state = self.classes.get_mut(class as usize).ok_or_else(|| no_class(class, known))?;
        let most = MAX_TURN / self.quantum;
        let too_large = || ConfigError::new("weight", format!("{weight} must be at most {most} with this quantum"));
        state.turn = turn(weight, self.quantum).ok_or_else(too_large)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Scheduled};
    use super::*;

    fn drr(quantum: u64, weights: &[u32]) -> Scheduled<(), Drr> {
        let weights: Vec<Weight> = weights.iter().map(|w| Weight::new(*w).unwrap()).collect();
        let setup = Setup { weights: &weights, max_packet: Bytes::new(1500) };
        let config = Config { quantum: Some(Bytes::new(quantum)), ..Config::default() };
        config.validate(&setup).unwrap();
        Scheduled::new(config.scheduler(&setup), Limits::default())
    }

    /// Classes 0 and 1 have two packets of a whole turn each. Class 2 begins while the first packet is on the link, before
    /// the turn of class 0 ends.
    #[test]
    fn a_turn_ends_when_its_last_packet_has_been_sent() {
        let mut queues = drr(1000, &[1, 1, 1]);
        offer(&mut queues, 0, &[1000; 2]);
        offer(&mut queues, 1, &[1000; 2]);
        let mut served = vec![queues.dequeue().unwrap().class];
        offer(&mut queues, 2, &[1000]);
        served.extend(serve(&mut queues));
        assert_eq!(served, [0, 1, 2, 0, 1]);
    }

    /// A turn has 1000 B. Class 0 gets a packet while its only one of 400 B is on the link: it still has 600 B of its turn.
    /// In drr_dequeue() it is in no list then, and begins anew behind class 1.
    #[test]
    fn in_linux_a_class_leaves_with_its_last_packet() {
        for (compat, order) in [(Compat::Source, [0, 0, 1, 0, 1]), (Compat::Linux, [0, 1, 0, 1, 0])] {
            let setup = Setup { weights: &[Weight::ONE; 3], max_packet: Bytes::new(1500) };
            let config = Config { quantum: Some(Bytes::new(1000)), compat };
            let mut queues = Scheduled::new(config.scheduler(&setup), Limits::default());
            offer(&mut queues, 0, &[400]);
            offer(&mut queues, 1, &[1000; 2]);
            let mut served = vec![queues.dequeue().unwrap().class];
            offer(&mut queues, 0, &[600, 600]);
            served.extend(serve(&mut queues));
            assert_eq!(served, order, "{compat:?}");
        }
    }

    fn offer(queues: &mut Scheduled<(), Drr>, class: u32, sizes: &[u64]) {
        sizes.iter().for_each(|size| queues.enqueue(class, Bytes::new(*size), ()).unwrap());
    }

    fn serve(queues: &mut Scheduled<(), Drr>) -> Vec<u32> {
        std::iter::from_fn(|| queues.dequeue()).map(|served| served.class).collect()
    }

    /// The example of the source, Figures 2 and 3: the quantum is 500, and the first queue has packets of 200, 750 and
    /// 20. It sends 200; the remaining 300 are too few for 750. With the next turn the deficit is 800, and it sends 750
    /// and 20.
    #[test]
    fn deficits_carry_over_as_in_figure_2_and_3() {
        let mut queues = drr(500, &[1, 1]);
        offer(&mut queues, 0, &[200, 750, 20]);
        offer(&mut queues, 1, &[500, 500]);
        assert_eq!(serve(&mut queues), [0, 1, 0, 0, 1]);
    }

    /// Quantum 300: a packet of 1500 needs five turns; in each of the four turns before, the second class sends a
    /// packet of 300.
    #[test]
    fn a_packet_of_many_quanta_waits_for_them() {
        let mut queues = drr(300, &[1, 1]);
        offer(&mut queues, 0, &[1500]);
        offer(&mut queues, 1, &[300; 6]);
        assert_eq!(serve(&mut queues), [1, 1, 1, 1, 0, 1, 1]);
    }

    #[test]
    fn a_turn_is_as_long_as_the_weight() {
        let mut queues = drr(1000, &[1, 3]);
        offer(&mut queues, 0, &[1000; 2]);
        offer(&mut queues, 1, &[1000; 6]);
        assert_eq!(serve(&mut queues), [0, 1, 1, 1, 0, 1, 1, 1]);
    }

    /// The rest of a turn is lost with the last packet: class 0 has 900 bytes left and may not save them.
    #[test]
    fn a_class_that_empties_saves_nothing() {
        let mut queues = drr(1000, &[1, 1]);
        offer(&mut queues, 0, &[100]);
        assert_eq!(serve(&mut queues), [0]);
        offer(&mut queues, 0, &[600, 600]);
        offer(&mut queues, 1, &[600, 600]);
        assert_eq!(serve(&mut queues), [0, 1, 0, 1]);
    }

    #[test]
    fn a_new_weight_counts_from_the_next_turn() {
        let mut queues = drr(1000, &[1, 1]);
        offer(&mut queues, 0, &[1000; 4]);
        offer(&mut queues, 1, &[1000; 4]);
        queues.scheduler_mut().set_weight(0, Weight::new(2).unwrap()).unwrap();
        assert_eq!(serve(&mut queues), [0, 1, 0, 0, 1, 0, 1, 1]);
    }

    #[test]
    fn quanta_that_cannot_be_are_refused() {
        let weights = [Weight::ONE, Weight::MAX];
        let setup = Setup { weights: &weights, max_packet: Bytes::new(1500) };
        let validate =
            |quantum| Config { quantum, ..Config::default() }.validate(&setup).map_err(|error| error.to_string());
        assert!(validate(Some(Bytes::ZERO)).unwrap_err().contains("1B to 2048B"));
        assert!(validate(Some(Bytes::new(2049))).is_err());
        validate(None).unwrap();
        let mut drr = Config::default().scheduler(&setup);
        assert!(drr.set_weight(2, Weight::ONE).unwrap_err().to_string().contains("less than 2"));
    }
}
