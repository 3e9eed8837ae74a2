//! The node of each flow: the host on one side of the link, by its address, or the subscriber with a name to which it
//! belongs.
//!
//! The host on the left is the source of packets that travel forward and the destination of packets in reverse; so a
//! connection has the same node whatever the direction of its first packet, and both disciplines agree on it. The table of
//! connections numbers hosts (`penstock-conntrack`). A flow of an address that is no host
//! ([`HostKey::at`](penstock_core::wire::HostKey::at)) has no owner, and what is no IP packet belongs to one common node.

use crate::direction::Direction;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::wire::End;

/// The side whose hosts are the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The hosts on the left, where clients usually are.
    #[default]
    Left,
    /// The hosts on the right.
    Right,
    /// No hosts: each flow is a node of its own.
    None,
}

impl Side {
    /// Returns which end of a packet is on this side, if the packet travels in this direction; for [`Side::None`] that on
    /// the left, whose hosts then have quotas but are no nodes.
    pub fn end(self, direction: Direction) -> End {
        match (self, direction) {
            (Self::Left | Self::None, Direction::Forward) | (Self::Right, Direction::Reverse) => End::Source,
            (Self::Left | Self::None, Direction::Reverse) | (Self::Right, Direction::Forward) => End::Destination,
        }
    }
}

/// The node which owns a flow. Disciplines must be told of it before the first packet of the flow arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowOwner {
    /// Number of the flow.
    pub flow: FlowId,
    /// The node to which the flow belongs.
    pub node: NodeId,
    /// True if the number of the node was free or that of another host until now, so that what is known of it is void.
    pub fresh: bool,
}
