//! The course of a model over time.

use crate::flows::{Phase, SLOTS, Seen};
use crate::history::History;
use crate::laws::{Law, Queue};
use crate::model::{Class, Control, Discipline, Losses, Model};
use crate::solver::{Solver, System};
use penstock_core::rng::{Rng, Streams};
use std::collections::VecDeque;

/// Numbers of the state behind those of the classes.
#[derive(Debug, Clone, Copy)]
struct Places {
    /// Bytes that wait.
    queue: usize,
    /// RED's average.
    average: usize,
    /// Bytes that were taken into the queue so far.
    taken: usize,
    /// Probability of a drop by the discipline.
    chance: usize,
    /// Probability that an arrival finds no room.
    overflow: usize,
}

impl Places {
    fn after(classes: usize) -> Self {
        let first = classes * SLOTS;
        Self { queue: first, average: first + 1, taken: first + 2, chance: first + 3, overflow: first + 4 }
    }

    fn dimension(self) -> usize {
        self.overflow + 1
    }
}

/// The equations with the state that changes at instants.
struct Equations {
    model: Model,
    law: Law,
    phases: Vec<Phase>,
    places: Places,
}

impl Equations {
    /// Returns what flows of `class` send at time `t`, in bytes per second.
    fn rate(&self, class: &Class, window: f64, queue: f64, t: f64) -> f64 {
        match class.control {
            _ if !class.is_active(t) => 0.0,
            Control::Constant(rate) => rate,
            _ => window * class.packet / class.rtt(queue, self.model.rate),
        }
    }

    /// Returns the probability of a drop by the discipline at a time that was found in the past.
    fn chance(&self, past: &History, time: &crate::history::PastTime) -> f64 {
        if self.law.is_function_of_average() {
            self.law.probability(past.value(time, self.places.average, 0.0))
        } else {
            past.value(time, self.places.chance, 0.0)
        }
    }

    /// Returns what a class observes: losses are those of its packets of a round trip ago (eq. 3.1).
    fn seen(&self, index: usize, t: f64, y: &[f64], past: &History) -> Seen {
        let (class, places) = (&self.model.classes[index], self.places);
        let rtt = class.rtt(y[places.queue].max(0.0), self.model.rate);
        let full = y[places.queue] > 0.0;
        if !class.is_active(t - rtt) {
            return Seen { rtt, losses: 0.0, full };
        }
        let time = past.find(t - rtt);
        let window = past.value(&time, index * SLOTS, class.initial_window);
        let queue = past.value(&time, places.queue, 0.0).max(0.0);
        let overflow = past.value(&time, places.overflow, 0.0);
        let p = 1.0 - (1.0 - self.chance(past, &time)) * (1.0 - overflow);
        Seen { rtt, losses: window / class.rtt(queue, self.model.rate) * p.clamp(0.0, 1.0), full }
    }

    /// Returns what arrives at the queue and what it takes of that by the discipline's judgement, in bytes per second.
    fn inflow(&self, t: f64, y: &[f64]) -> (f64, f64) {
        let chance = match self.law.is_function_of_average() {
            true => self.law.probability(y[self.places.average]),
            false => y[self.places.chance],
        };
        let (queue, marks) = (y[self.places.queue].max(0.0), self.law.marks());
        let all = self.model.classes.iter().enumerate().map(|(index, class)| {
            let rate = class.count * self.rate(class, y[index * SLOTS], queue, t);
            (rate, if class.ecn && marks { rate } else { rate * (1.0 - chance) })
        });
        all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

impl System for Equations {
    fn slopes(&self, t: f64, y: &[f64], past: &History, dy: &mut [f64]) {
        let places = self.places;
        for (index, class) in self.model.classes.iter().enumerate() {
            let slots = index * SLOTS..(index + 1) * SLOTS;
            if !class.is_active(t) {
                dy[slots].fill(0.0);
                continue;
            }
            let seen = self.seen(index, t, y, past);
            class.slopes(&self.phases[index], &y[slots.clone()], &seen, self.model.losses, &mut dy[slots]);
        }
        let (_, passed) = self.inflow(t, y);
        let full = y[places.queue] >= self.model.room;
        let taken = if full { passed.min(self.model.rate) } else { passed };
        // Eq. (3.3) and (3.9); an empty queue does not fall below nothing.
        let slope = taken - self.model.rate;
        dy[places.queue] = if y[places.queue] <= 0.0 { slope.max(0.0) } else { slope };
        let queue =
            Queue { bytes: y[places.queue].max(0.0), sojourn: 0.0, rate: self.model.rate, average: y[places.average] };
        dy[places.average] = self.law.average_slope(&queue);
        dy[places.taken] = taken;
        dy[places.chance] = 0.0;
        dy[places.overflow] = 0.0;
    }
}

/// A drop of one packet on its way to the sender.
#[derive(Debug, Clone, Copy)]
struct Hit {
    class: usize,
    at: f64,
}

/// The values at one time.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// Time in seconds.
    pub t: f64,
    /// Bytes that wait.
    pub queue: f64,
    /// How long what leaves now has waited, in seconds.
    pub sojourn: f64,
    /// RED's average.
    pub average: f64,
    /// Probability with which the discipline drops an arrival.
    pub probability: f64,
    /// Bytes per second that leave.
    pub output: f64,
    windows: &'a [f64],
}

impl Moment<'_> {
    /// Returns the window of a flow of the class with this index, in packets.
    pub fn window(&self, class: usize) -> f64 {
        self.windows[class * SLOTS]
    }
}

/// Sums over a class from the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Bytes of the class that passed the queue, all its flows together.
    pub passed: f64,
    /// Packets of the class that were dropped.
    pub dropped: f64,
    /// Packets of the class that were marked.
    pub marked: f64,
}

/// A model with its state at a time, which the solver advances.
pub struct Run {
    equations: Equations,
    solver: Solver,
    step: f64,
    /// Arrival time of what leaves now.
    arrival: f64,
    hits: VecDeque<Hit>,
    rng: Rng,
    /// The sums of each class.
    pub totals: Vec<Totals>,
    /// Packets that found no room.
    pub overflowed: f64,
    /// Packets that the discipline dropped.
    pub dropped: f64,
    /// Packets that it marked.
    pub marked: f64,
    /// Most bytes that waited.
    pub most: f64,
}

impl Run {
    /// Begins at time 0 with an empty queue, for steps of `step` seconds.
    pub fn new(model: Model, step: f64) -> Self {
        let law = Law::new(&model.discipline, model.rate);
        let singly = law.drops_singly() && model.losses == Losses::Rounds;
        let mut model = if singly { model.by_flows() } else { model };
        cap(&mut model);
        let law = match law {
            Law::Sampled(controller) => Law::Sampled(controller.counting(model.mean_packet())),
            law => law,
        };
        let places = Places::after(model.classes.len());
        let mut y = vec![0.0; places.dimension()];
        for (index, class) in model.classes.iter().enumerate() {
            y[index * SLOTS] = class.initial_window.min(class.most);
            y[index * SLOTS + 1] = class.initial_window;
        }
        let begin = |class: &Class| Phase { slow_start: class.slow_start, felt: 0.0, cut: f64::NEG_INFINITY };
        let phases = model.classes.iter().map(begin).collect();
        let totals = vec![Totals::default(); model.classes.len()];
        let rng = Streams::new(model.seed).get("fluid/hits");
        let horizon = model.horizon();
        let equations = Equations { model, law, phases, places };
        let solver = Solver::new(&equations, y, step, horizon);
        Self {
            equations,
            solver,
            step,
            arrival: 0.0,
            hits: VecDeque::new(),
            rng,
            totals,
            overflowed: 0.0,
            dropped: 0.0,
            marked: 0.0,
            most: 0.0,
        }
    }

    /// Returns the classes as they are solved: with single drops, one for each flow.
    pub fn classes(&self) -> &[Class] {
        &self.equations.model.classes
    }

    /// Goes one step forward and returns what is then.
    pub fn step(&mut self) -> Moment<'_> {
        let step = self.step;
        self.solver.step(&mut self.equations, |equations, now, y, past| equations.settle(now, y, past, step));
        let queue = self.look();
        self.count(&queue);
        self.drop_singly(&queue);
        self.hit();
        let (places, y) = (self.equations.places, &self.solver.y);
        self.most = self.most.max(y[places.queue]);
        Moment {
            t: self.solver.now(),
            queue: y[places.queue],
            sojourn: queue.sojourn,
            average: y[places.average],
            probability: y[places.chance],
            output: self.output(),
            windows: y,
        }
    }

    fn output(&self) -> f64 {
        let (rate, y) = (self.equations.model.rate, &self.solver.y);
        if y[self.equations.places.queue] > 0.0 {
            return rate;
        }
        self.equations.inflow(self.solver.now(), y).1.min(rate)
    }

    /// Returns the queue as it is now, and catches up who leaves: what arrived when `taken` was what has left by now.
    fn look(&mut self) -> Queue {
        let (places, y, past) = (self.equations.places, &self.solver.y, &self.solver.past);
        let (now, left) = (self.solver.now(), y[places.taken] - y[places.queue]);
        let taken = |t: f64| past.value(&past.find(t), places.taken, 0.0);
        while self.arrival + self.step <= now && taken(self.arrival + self.step) <= left {
            self.arrival += self.step;
        }
        let (low, high) = (taken(self.arrival), taken(self.arrival + self.step));
        let part = if high > low { ((left - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        let sojourn = if y[places.queue] > 0.0 { (now - self.arrival - part * self.step).max(0.0) } else { 0.0 };
        Queue { bytes: y[places.queue], sojourn, rate: self.equations.model.rate, average: y[places.average] }
    }

    /// Adds the traffic of one step to the totals.
    fn count(&mut self, queue: &Queue) {
        let (equations, y, now) = (&self.equations, &self.solver.y, self.solver.now());
        let (chance, overflow) = (y[equations.places.chance], y[equations.places.overflow]);
        let marks = equations.law.marks();
        for (index, (class, totals)) in equations.model.classes.iter().zip(&mut self.totals).enumerate() {
            let bytes = class.count * equations.rate(class, y[index * SLOTS], queue.bytes, now) * self.step;
            let judged = bytes / class.packet * chance;
            let past_the_law = if class.ecn && marks { bytes } else { bytes * (1.0 - chance) };
            let lost = past_the_law * overflow / class.packet;
            totals.passed += past_the_law * (1.0 - overflow);
            if class.ecn && marks {
                totals.marked += judged;
                self.marked += judged;
            } else {
                totals.dropped += judged;
                self.dropped += judged;
            }
            totals.dropped += lost;
            self.overflowed += lost;
        }
    }

    /// Drops the packets whose instants have come: bytes leave the queue, and one flow will feel each.
    fn drop_singly(&mut self, queue: &Queue) {
        for _ in 0..self.equations.law.drops(self.solver.now(), queue) {
            let index = self.whose(queue);
            let (places, class) = (self.equations.places, &self.equations.model.classes[index]);
            let at = self.solver.now() + class.base_rtt;
            if class.ecn {
                self.totals[index].marked += 1.0;
                self.marked += 1.0;
            } else {
                self.totals[index].dropped += 1.0;
                self.totals[index].passed -= class.packet;
                self.dropped += 1.0;
                self.solver.y[places.queue] = (self.solver.y[places.queue] - class.packet).max(0.0);
            }
            self.hits.push_back(Hit { class: index, at });
        }
    }

    /// Draws the flow to which a packet of the queue belongs: each as likely as its part of the arrivals.
    fn whose(&mut self, queue: &Queue) -> usize {
        let (equations, y) = (&self.equations, &self.solver.y);
        let rate = |index: usize| {
            let class = &equations.model.classes[index];
            class.count * equations.rate(class, y[index * SLOTS], queue.bytes, self.arrival) / class.packet
        };
        let all: f64 = (0..equations.model.classes.len()).map(rate).sum();
        let mut at = self.rng.uniform() * all;
        for index in 0..equations.model.classes.len() {
            at -= rate(index);
            if at < 0.0 {
                return index;
            }
        }
        equations.model.classes.len() - 1
    }

    /// Lets the flows feel the drops that have reached them.
    fn hit(&mut self) {
        let now = self.solver.now();
        while let Some(hit) = self.hits.front().copied().filter(|hit| hit.at <= now) {
            self.hits.pop_front();
            let class = &self.equations.model.classes[hit.class];
            let phase = &mut self.equations.phases[hit.class];
            let rtt = class.rtt(self.solver.y[self.equations.places.queue], self.equations.model.rate);
            let y = &mut self.solver.y[hit.class * SLOTS..(hit.class + 1) * SLOTS];
            match self.equations.model.losses {
                Losses::Rounds if now - phase.cut < rtt => {}
                Losses::Rounds => {
                    phase.cut = now;
                    class.cut(phase, y);
                }
                Losses::Document => {
                    phase.slow_start = false;
                    y[0] = (y[0] - y[0] * (1.0 - class.control.kept()) / class.count).max(1.0);
                }
            }
        }
    }
}

impl Equations {
    /// Keeps the numbers within their bounds, and does what is done at intervals.
    fn settle(&mut self, now: f64, y: &mut [f64], past: &History, step: f64) {
        let places = self.places;
        y[places.queue] = y[places.queue].clamp(0.0, self.model.room);
        for index in 0..self.model.classes.len() {
            if !self.model.classes[index].is_active(now) {
                continue;
            }
            let seen = self.seen(index, now, y, past);
            let slots = index * SLOTS..(index + 1) * SLOTS;
            self.model.classes[index].settle(&mut self.phases[index], &mut y[slots], &seen, step);
        }
        let queue = Queue { bytes: y[places.queue], sojourn: 0.0, rate: self.model.rate, average: y[places.average] };
        self.law.sample(now, &queue);
        y[places.chance] = self.law.probability(y[places.average]);
        let (_, passed) = self.inflow(now, y);
        let full = y[places.queue] >= self.model.room && passed > self.model.rate;
        y[places.overflow] = if full { 1.0 - self.model.rate / passed } else { 0.0 };
    }
}

/// Bounds the windows as PINK does: eq. (1) of document 000, c BW RTT / n, for the flows that are there all the time.
fn cap(model: &mut Model) {
    let Discipline::Pink(config) = &model.discipline else { return };
    let is_tcp = |class: &Class| !matches!(class.control, Control::Constant(_));
    let flows: f64 = model.classes.iter().filter(|class| is_tcp(class)).map(|class| class.count).sum();
    let rate = config.rate.map_or(model.rate, |rate| rate.bytes_per_sec());
    let reserve = config.reserve.map_or(0.0, |rate| rate.bytes_per_sec());
    let share = config.c * (rate - reserve) / flows.max(1.0);
    for class in model.classes.iter_mut().filter(|class| is_tcp(class)) {
        class.most = class.most.min(share * class.base_rtt / class.payload);
    }
}
