//! Facts about the world outside a queue: what its owner tells a discipline, and the discipline its AQM.
//!
//! Each fact is one variant of [`Fact`], and all are told by one method ([`Qdisc::on_fact`](crate::qdisc::Qdisc::on_fact),
//! [`Aqm::on_fact`](crate::judge::Aqm::on_fact)), which has no default. A discipline that wraps others passes on every fact
//! in one line, and a new fact concerns this file and the algorithms that use it.

use crate::packet::{FlowId, NodeId};
use crate::units::Rate;

/// Something that changed outside the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact {
    /// The rate of the link is this from now on.
    Rate(Rate),
    /// A station of a wireless link loses packets with this probability from now on. Afterwards `dequeue` may give a
    /// packet though it had none to give before.
    Channel {
        /// The index of the station.
        station: u32,
        /// The probability with which a packet for it is lost, 0 to 1.
        loss: f64,
    },
    /// A flow belongs to a node. Told before the first packet of the flow, and again when the index of the flow becomes
    /// another flow's.
    Owner {
        /// The flow.
        flow: FlowId,
        /// The node to which it belongs.
        node: NodeId,
    },
    /// A flow is in a class. Told before the first packet of the flow. Disciplines with classes otherwise take the index
    /// of a flow for its class.
    Class {
        /// The flow.
        flow: FlowId,
        /// The index of its class.
        class: u32,
    },
    /// A gateway gave a node a budget, or took it away.
    Budget {
        /// The node.
        node: NodeId,
        /// The rate it may send at; `None` when it has no budget any more.
        budget: Option<Rate>,
    },
    /// A node is gone, and its index becomes another's. None of its packets waits and none of its flows sends.
    Gone(NodeId),
}
