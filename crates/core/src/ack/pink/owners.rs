//! Which node a flow belongs to, and how many flows of each node send. The flows of a node share the budget to which a
//! discipline behind PINK holds the node.

use crate::packet::NodeId;

/// Nodes with this number or a higher one are not known, as in QRM.
const MAX_NODES: u32 = 1 << 20;
const NOBODY: u32 = NodeId::NOBODY.0;

/// The nodes of flows. Empty unless owners are told ([`Fact::Owner`](crate::fact::Fact::Owner)); 4 bytes per flow and
/// node.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners {
    owners: Vec<u32>,
    /// Number of sending flows of each node.
    sending: Vec<u32>,
}

impl Owners {
    /// Sets the node of a flow; `sends` says whether the flow already sends.
    pub fn set(&mut self, flow: usize, node: u32, sends: bool) {
        let node = if node < MAX_NODES { node } else { NOBODY };
        if sends {
            self.note(flow, false);
        }
        if flow >= self.owners.len() {
            self.owners.resize(flow + 1, NOBODY);
        }
        if node != NOBODY && node as usize >= self.sending.len() {
            self.sending.resize(node as usize + 1, 0);
        }
        self.owners[flow] = node;
        if sends {
            self.note(flow, true);
        }
    }

    /// Notes that the flow begins to send, or stops.
    pub fn note(&mut self, flow: usize, sends: bool) {
        if let Some(count) = self.owners.get(flow).and_then(|node| self.sending.get_mut(*node as usize)) {
            *count = if sends { *count + 1 } else { *count - 1 };
        }
    }

    /// Returns the number of sending flows of the flow's node, this flow included; at least 1.
    pub fn sharing(&self, flow: usize, sends: bool) -> u64 {
        let node = self.owners.get(flow).copied().unwrap_or(NOBODY);
        let count = self.sending.get(node as usize).map_or(0, |count| u64::from(*count) + u64::from(!sends));
        count.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_passes_to_a_node_beyond_all_leaves_its_own() {
        let mut owners = Owners::default();
        owners.set(0, 3, true);
        owners.set(1, 3, true);
        assert_eq!(owners.sharing(1, true), 2);
        owners.set(0, MAX_NODES, true);
        assert_eq!((owners.sharing(0, true), owners.sharing(1, true)), (1, 1));
        owners.set(0, 4, true);
        owners.note(0, false);
        assert_eq!((owners.sharing(0, false), owners.sharing(1, true)), (1, 1));
    }
}
