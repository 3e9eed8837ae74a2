//! What is solved: a link, a discipline and classes of equal flows.

use penstock_core::ack::pink;
use penstock_core::aqm::{ared, codel, modified_codel, pi, pie, red};

/// How a flow's window moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Control {
    /// Reno: one packet per round trip, half of it at a loss (eq. 3.1).
    Reno,
    /// CUBIC: RFC 9438 with its C and the part that stays after a loss.
    Cubic {
        /// C in packets per cubic second.
        c: f64,
        /// Part of the window that stays after a loss.
        beta: f64,
    },
    /// A constant rate that hears nothing, in bytes per second.
    Constant(f64),
}

/// Flows that are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Number of flows.
    pub count: f64,
    /// How their windows move.
    pub control: Control,
    /// Round trip time without a queue, in seconds: above 0.
    pub base_rtt: f64,
    /// Size of a packet on the wire in bytes.
    pub packet: f64,
    /// Payload of a packet in bytes.
    pub payload: f64,
    /// Window at the start, in packets.
    pub initial_window: f64,
    /// Window in packets at which slow start ends without a loss; infinite if only a loss ends it.
    pub threshold: f64,
    /// Largest window in packets.
    pub most: f64,
    /// Flows begin in slow start.
    pub slow_start: bool,
    /// Packets are marked in place of being dropped.
    pub ecn: bool,
    /// When the flows begin, in seconds.
    pub start: f64,
    /// When they end, in seconds.
    pub stop: f64,
    /// Number that tells to which group of a scenario the flows belong.
    pub group: usize,
}

/// The discipline before the link.
#[derive(Debug, Clone, PartialEq)]
pub enum Discipline {
    /// A queue that drops what finds no room.
    Tail,
    /// RED.
    Red(red::Config),
    /// Adaptive RED.
    Ared(ared::Config),
    /// The PI controller.
    Pi(pi::Config),
    /// PIE.
    Pie(pie::Config),
    /// CoDel.
    Codel(codel::Config),
    /// Modified CoDel.
    ModifiedCodel(modified_codel::Config),
    /// PINK: windows of eq. (1) of document 000.
    Pink(pink::Config),
}

/// How losses reach the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Losses {
    /// Each loss is felt in the part that a flow has of the link, and each cuts: eq. (3.1) and (3.8) to the letter.
    Document,
    /// A window is cut at most once in a round trip (RFC 5681 §3.2); what drops packet by packet hits one flow at a time.
    #[default]
    Rounds,
}

/// A link with a discipline and flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Rate of the link in bytes per second.
    pub rate: f64,
    /// Room of the queue in bytes.
    pub room: f64,
    /// The discipline before the link.
    pub discipline: Discipline,
    /// The flows.
    pub classes: Vec<Class>,
    /// How losses reach the flows.
    pub losses: Losses,
    /// Seed of the choice of the flow that a single drop hits.
    pub seed: u64,
}

impl Model {
    /// Returns the model with every flow in a class of its own.
    #[must_use]
    pub fn by_flows(mut self) -> Self {
        let each = |class: &Class| {
            let one = Class { count: 1.0, ..class.clone() };
            std::iter::repeat_n(one, class.count as usize)
        };
        self.classes = self.classes.iter().flat_map(each).collect();
        self
    }

    /// Returns the mean size of the flows' packets in bytes.
    pub fn mean_packet(&self) -> f64 {
        let count: f64 = self.classes.iter().map(|class| class.count).sum();
        self.classes.iter().map(|class| class.count * class.packet).sum::<f64>() / count.max(1.0)
    }

    /// Returns a step that resolves the shortest round trip and the packets of the link, in seconds.
    pub fn step(&self) -> f64 {
        let shortest = self.classes.iter().map(|class| class.base_rtt).fold(f64::INFINITY, f64::min);
        (shortest / 50.0).clamp(1e-5, 1e-3)
    }

    /// Returns the longest delay in seconds.
    pub fn horizon(&self) -> f64 {
        let longest = self.classes.iter().map(|class| class.base_rtt).fold(0.0, f64::max);
        longest + self.room / self.rate + 0.1
    }
}

impl Class {
    /// Returns true if the flows send at time `t`.
    pub(crate) fn is_active(&self, t: f64) -> bool {
        t >= self.start && t < self.stop
    }

    /// Returns the round trip time with `queue` bytes before a link of `rate` bytes per second (eq. 3.4).
    pub(crate) fn rtt(&self, queue: f64, rate: f64) -> f64 {
        self.base_rtt + queue / rate
    }
}

impl Control {
    /// Returns the part of the window that stays after a loss.
    pub(crate) fn kept(&self) -> f64 {
        match self {
            Self::Reno => 0.5,
            Self::Cubic { beta, .. } => *beta,
            Self::Constant(_) => 1.0,
        }
    }

    /// Returns CUBIC's window `s` seconds after a loss at `top` packets: RFC 9438 eq. (1) and (2), at least the estimate
    /// of Reno's window of §4.3.
    pub(crate) fn cubic_window(c: f64, beta: f64, top: f64, s: f64, rtt: f64) -> f64 {
        let d = s - libm::cbrt(top * (1.0 - beta) / c);
        let reno = beta * top + 3.0 * (1.0 - beta) / (1.0 + beta) * s / rtt;
        (c * d * d * d + top).max(reno)
    }
}
