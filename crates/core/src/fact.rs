//! Facts about the world outside a queue: what its owner tells a discipline, and the discipline its AQM.
//!
//! Each fact is one variant of [`Fact`], and all facts are told by one method, which has no default implementation:
//! [`Qdisc::on_fact`](crate::qdisc::Qdisc::on_fact) or [`Aqm::on_fact`](crate::judge::Aqm::on_fact). A discipline that
//! wraps others passes on every fact in one line. One with a queue for each flow or node asks [`Fact::concerns`] whom to
//! tell. So a new fact concerns this file and the algorithms that use it.

use crate::allocation::Members;
use crate::packet::{FlowId, NodeId};
use crate::units::{Rate, Span};

/// What one end of a connection said of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Greeting {
    /// Sequence number of its SYN.
    pub isn: u32,
    /// Sequence number after what it is known to have sent.
    pub end: u32,
    /// Shift of the window scale option; `None` without the option.
    pub window_scale: Option<u8>,
    /// The MSS option in bytes.
    pub mss: Option<u16>,
}

/// The begin of a connection, for whoever did not see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The flow that has opened.
    pub flow: FlowId,
    /// True if the side that sends through the queue opened the connection.
    pub from_inside: bool,
    /// The end that opened the connection.
    pub opener: Greeting,
    /// The end that answered.
    pub other: Greeting,
    /// Time from SYN to SYN-ACK; `None` if it is not known.
    pub asked: Option<Span>,
    /// Time from SYN-ACK to its acknowledgment; `None` if it is not known.
    pub answered: Option<Span>,
}

impl Opening {
    /// Returns what both ends said, first that which sends through the queue.
    pub fn sides(&self) -> (&Greeting, &Greeting) {
        if self.from_inside { (&self.opener, &self.other) } else { (&self.other, &self.opener) }
    }

    /// Returns the same for an element that is shown what comes in so much later than who took the times: on the way back segments
    /// have a delay behind the queue. The answer to what went out comes so much later there, and what goes out so much sooner.
    #[must_use]
    pub fn shown_later(mut self, by: Span) -> Self {
        let (out, back) = if self.from_inside {
            (&mut self.asked, &mut self.answered)
        } else {
            (&mut self.answered, &mut self.asked)
        };
        *out = out.map(|out| out + by);
        *back = back.map(|back| back.saturating_sub(by).max(Span::from_nanos(1)));
        self
    }

    /// Returns the times from an outbound segment to its answer, and from an inbound one.
    pub fn halves(&self) -> (Option<Span>, Option<Span>) {
        if self.from_inside { (self.asked, self.answered) } else { (self.answered, self.asked) }
    }
}

/// Something that changed outside the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact {
    /// From now on the link has this rate.
    Rate(Rate),
    /// From now on packets for a station of a wireless link are lost with this probability. Afterwards `dequeue` may
    /// return a packet although it returned none before.
    Channel {
        /// The index of the station.
        station: u32,
        /// The probability with which a packet for the station is lost, 0 to 1.
        loss: f64,
    },
    /// A flow belongs to a node. Told before the first packet of the flow, and again when another flow takes over the
    /// index.
    Owner {
        /// The flow whose node is told.
        flow: FlowId,
        /// The node to which it belongs.
        node: NodeId,
    },
    /// A flow is in a class. Told before the first packet of the flow. Without this fact, disciplines with classes use
    /// the index of a flow as the index of its class.
    Class {
        /// The flow whose class is told.
        flow: FlowId,
        /// The index of its class.
        class: u32,
    },
    /// A gateway gave a node a budget, or took the budget away.
    Budget {
        /// The node whose budget changed.
        node: NodeId,
        /// The rate at which the node may send; `None` if the node has no budget any more.
        budget: Option<Rate>,
    },
    /// Nodes without a budget share this rate from now on. Without this fact they have none once a budget was told.
    Rest(Rate),
    /// From now on these flows keep to advice that they are given, and have their part beside those that a discipline knows;
    /// claims are in bits per second.
    Advised(Members),
    /// Another connection takes over the index of a flow, so what is known of it is void. Told before the first packet of
    /// the other connection; packets of the old one may still wait.
    FlowGone(FlowId),
    /// Whoever decides outside of the queue wants this share of arriving packets to be marked, or dropped if they are not
    /// ECN-capable, 0 to 1. Only an AQM that leaves the decision to others heeds it.
    Odds(f64),
    /// A flow whose SYN and first data were not shown is shown from now on. Told before the first segment that is shown.
    Opened(Opening),
    /// A node is gone, and another node may take over its index. None of its packets waits and none of its flows sends.
    Gone(NodeId),
}

/// Whom a [`Fact`] concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// All packets of the link.
    All,
    /// The packets of one flow.
    Flow(FlowId),
    /// The packets of one node.
    Node(NodeId),
}

impl Fact {
    /// Returns whom the fact concerns. A discipline with a queue for each of them tells it only there.
    pub fn concerns(&self) -> Whom {
        match *self {
            Self::Rate(_) | Self::Rest(_) | Self::Channel { .. } | Self::Advised(_) | Self::Odds(_) => Whom::All,
            Self::Class { flow, .. } | Self::FlowGone(flow) | Self::Opened(Opening { flow, .. }) => Whom::Flow(flow),
            Self::Owner { node, .. } | Self::Budget { node, .. } | Self::Gone(node) => Whom::Node(node),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes out takes 10 ms to the other host, which answers at once, and answers arrive 30 ms after they were taken.
    #[test]
    fn answers_that_are_shown_later_make_the_way_out_longer_and_the_way_back_shorter() {
        let (ms, greeting) = (Span::from_millis, Greeting { isn: 0, end: 1, window_scale: None, mss: None });
        let [asked, answered] = [10, 30].map(|time| Some(ms(time)));
        let opening = |from_inside| {
            let flow = FlowId(1);
            Opening { flow, from_inside, opener: greeting, other: greeting, asked, answered }
        };
        assert_eq!(opening(true).shown_later(ms(30)).halves(), (Some(ms(40)), Some(Span::from_nanos(1))));
        assert_eq!(opening(false).shown_later(ms(4)).halves(), (Some(ms(34)), Some(ms(6))));
        let unknown = Opening { answered: None, ..opening(true) };
        assert_eq!(unknown.shown_later(ms(30)).halves(), (Some(ms(40)), None));
    }
}
