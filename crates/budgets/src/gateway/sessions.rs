//! Who has a session with the gateway, and where nodes are.

use super::Grant;
use crate::endpoint::Id;
use crate::roster::Member;
use crate::tls::Peer;
use penstock_core::coop::NodeId;
use penstock_core::coop::gateway::Gateway;
use penstock_core::units::{Instant, Rate};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// A node that has a session.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) id: Id,
    pub(super) member: Member,
    pub(super) since: Instant,
    pub(super) claim: Option<u64>,
}

/// Who has a session, and where nodes are.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) present: BTreeMap<u32, Present>,
    /// The addresses of nodes that have a session or a budget.
    homes: BTreeMap<u32, IpAddr>,
    pub(super) peers: BTreeMap<Id, Peer>,
}

impl Sessions {
    /// Notes a session of a node; returns that which it had before.
    pub(super) fn begin(&mut self, id: Id, member: &Member, remote: Option<SocketAddr>, now: Instant) -> Option<Id> {
        let present = Present { id, member: member.clone(), since: now, claim: None };
        self.homes.extend(remote.map(|remote| (member.node, remote.ip().to_canonical())));
        let before = self.present.insert(member.node, present)?.id;
        self.peers.remove(&before);
        Some(before)
    }

    /// Notes that a session is gone; returns its node, unless that has another one.
    pub(super) fn end(&mut self, id: Id) -> Option<Member> {
        let Some(Peer::Node(member)) = self.peers.remove(&id) else { return None };
        self.present.get(&member.node).filter(|present| present.id == id)?;
        self.present.remove(&member.node);
        Some(member)
    }

    /// Forgets all nodes; returns their sessions.
    pub(super) fn clear(&mut self) -> Vec<Id> {
        self.homes.clear();
        self.peers.retain(|_, peer| !matches!(peer, Peer::Node(_)));
        std::mem::take(&mut self.present).into_values().map(|present| present.id).collect()
    }

    /// The budgets of all nodes that hold one.
    pub(super) fn grants(&mut self, machine: &mut Gateway) -> Vec<Grant> {
        let mut grants = Vec::with_capacity(self.homes.len());
        self.homes.retain(|node, address| {
            let budget = machine.granted_to(NodeId(*node)).map(Rate::from_bps);
            grants.extend(budget.map(|budget| Grant { node: *node, address: *address, budget }));
            budget.is_some() || self.present.contains_key(node)
        });
        grants
    }
}
