//! Who has a session with the gateway, and where nodes are.

use super::Grant;
use crate::endpoint::Id;
use crate::roster::Member;
use crate::tls::Peer;
use penstock_core::coop::NodeId;
use penstock_core::coop::gateway::Gateway;
use penstock_core::units::{Instant, Rate, Span};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Who took a lease over from a session of its own address keeps it for this time: if the one before comes back, both
/// are there.
const KEPT: Span = Span::from_secs(10);
/// For how long it counts that somebody was refused.
const RECENT: Span = Span::from_secs(60);

/// Another host that asks for the lease of a node.
#[derive(Debug)]
struct Rival {
    /// Who was refused last; `None` if a session only replaced another one of its address.
    refused: Option<SocketAddr>,
    since: Instant,
    last: Instant,
}

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
    rivals: BTreeMap<u32, Rival>,
}

impl Sessions {
    /// Notes a session of a node; returns that which it had before.
    pub(super) fn begin(&mut self, id: Id, member: &Member, remote: Option<SocketAddr>, now: Instant) -> Option<Id> {
        let present = Present { id, member: member.clone(), since: now, claim: None };
        self.homes.extend(remote.map(|remote| (member.node, remote.ip().to_canonical())));
        self.rivals.remove(&member.node);
        let before = self.present.insert(member.node, present)?.id;
        self.rivals.insert(member.node, Rival { refused: None, since: now, last: now });
        self.peers.remove(&before);
        Some(before)
    }

    /// Whether a session of a node that holds a budget must not begin, because that belongs to another host: one at
    /// another address, or one at the same that has just taken it over. `Some(true)` if it is the first that is
    /// refused.
    pub(super) fn refuses(&mut self, member: &Member, from: SocketAddr, now: Instant) -> Option<bool> {
        let home = self.homes.get(&member.node).is_none_or(|home| *home == from.ip().to_canonical());
        self.rivals.retain(|_, rival| now < rival.last + RECENT);
        let before = self.rivals.get(&member.node);
        let beside = |other: SocketAddr| other.ip().to_canonical() == from.ip().to_canonical();
        let kept = before.filter(|rival| rival.refused.is_none_or(beside) && now < rival.last + KEPT);
        if home && kept.is_none() {
            return None;
        }
        let since = before.filter(|rival| rival.refused.is_some()).map(|rival| rival.since);
        let rival = Rival { refused: Some(from), since: since.unwrap_or(now), last: now };
        self.rivals.insert(member.node, rival);
        Some(since.is_none())
    }

    /// The present nodes that another host has asked for during more than a lease, and that host. Who has only moved is
    /// refused for no longer than the lease of its old address.
    pub(super) fn rivals(&self, lease: Span, now: Instant) -> impl Iterator<Item = (&Present, SocketAddr)> {
        let lasting =
            move |rival: &Rival| now < rival.last + RECENT && rival.last.since(rival.since) > lease.div(4) * 5;
        let both = move |(node, rival): (&u32, &Rival)| {
            let refused = rival.refused.filter(|_| lasting(rival))?;
            Some((self.present.get(node)?, refused))
        };
        self.rivals.iter().filter_map(both)
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
        self.rivals.clear();
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
