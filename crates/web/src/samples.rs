//! Samples of a run as rows of numbers, which a page draws without looking at names.

use penstock_core::units::{Instant, Span};
use penstock_sim::live::{FlowNow, QueueNow};
use penstock_sim::{Broken, Simulation};

/// The columns of each queue in a row, after the time in seconds. Drops, marks and losses are counted since the row
/// before; the delay is the mean over the packets that left since then, NaN if none did.
pub const QUEUE_COLUMNS: [&str; 8] =
    ["queue_bytes", "delay_ms", "drops", "marks", "lost", "sent_bps", "rate_bps", "link_delay_ms"];

/// The columns of each flow in a row, after those of all queues. What there is not is NaN: the window of a flow without a
/// connection, a round trip before one was measured, the goodput of a flow that has not begun.
pub const FLOW_COLUMNS: [&str; 3] = ["cwnd_bytes", "srtt_ms", "goodput_bps"];

/// Samples of a run, taken at a constant interval.
#[derive(Debug)]
pub struct Samples {
    interval: Span,
    next: Instant,
    /// What was seen at the last sample.
    queues: Vec<QueueNow>,
    delivered: Vec<u64>,
    rows: Vec<f32>,
}

impl Samples {
    /// Creates samples of a run from now on.
    pub fn new(simulation: &Simulation, interval: Span) -> Self {
        let interval = interval.max(Span::from_micros(100));
        Self {
            interval,
            next: simulation.now() + interval,
            queues: simulation.queues_now().collect(),
            delivered: simulation.flows_now().map(|flow| flow.delivered).collect(),
            rows: Vec::new(),
        }
    }

    /// Returns the number of numbers in a row.
    pub fn width(&self) -> usize {
        1 + QUEUE_COLUMNS.len() * self.queues.len() + FLOW_COLUMNS.len() * self.delivered.len()
    }

    /// Returns the rows since the last [`Samples::clear`], one after another.
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// Forgets the rows.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// Advances the run as [`Simulation::advance`] does, and takes every sample at its time.
    ///
    /// # Errors
    /// Returns the errors of [`Simulation::advance`].
    pub fn advance(&mut self, simulation: &mut Simulation, by: Span) -> Result<bool, Broken> {
        let until = simulation.now() + by;
        while self.next <= until {
            let over = simulation.advance(self.next.since(simulation.now()))?;
            if simulation.now() == self.next {
                self.look(simulation);
                self.next += self.interval;
            }
            if over {
                return Ok(true);
            }
        }
        simulation.advance(until.since(simulation.now()))
    }

    fn look(&mut self, simulation: &Simulation) {
        let seconds = self.interval.as_secs_f64();
        self.rows.push(simulation.now().as_secs_f64() as f32);
        for (before, now) in self.queues.iter_mut().zip(simulation.queues_now()) {
            self.rows.extend(queue_columns(before, &now, seconds));
            *before = now;
        }
        for (before, now) in self.delivered.iter_mut().zip(simulation.flows_now()) {
            self.rows.extend(flow_columns(*before, &now, seconds));
            *before = now.delivered;
        }
    }
}

fn queue_columns(before: &QueueNow, now: &QueueNow, seconds: f64) -> [f32; QUEUE_COLUMNS.len()] {
    let delays = (now.delays_ns - before.delays_ns) as f64 / (now.left - before.left) as f64;
    [
        now.backlog.bytes as f32,
        (delays / 1e6) as f32,
        (now.dropped - before.dropped) as f32,
        (now.marked - before.marked) as f32,
        (now.lost - before.lost) as f32,
        ((now.sent_bits - before.sent_bits) / seconds) as f32,
        now.rate.as_bps() as f32,
        now.delay.as_millis_f64() as f32,
    ]
}

fn flow_columns(before: u64, now: &FlowNow, seconds: f64) -> [f32; FLOW_COLUMNS.len()] {
    let cwnd = now.tcp.map_or(f32::NAN, |tcp| tcp.cwnd as f32);
    let srtt = now.tcp.map(|tcp| tcp.srtt).filter(|srtt| *srtt > Span::ZERO);
    let goodput = (now.delivered - before) as f64 * 8.0 / seconds;
    [cwnd, srtt.map_or(f32::NAN, |srtt| srtt.as_millis_f64() as f32), if now.begun { goodput as f32 } else { f32::NAN }]
}
