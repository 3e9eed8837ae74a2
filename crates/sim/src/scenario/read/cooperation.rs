//! Reading of `[cooperation]`.

use super::{Check, Checker};
use crate::actors::cooperation::{ADVERTISE, LEASE};
use crate::scenario::{Cooperation, FlowSpec, Lie, LinkSpec, NodeSpec, paths};
use penstock_core::config::ConfigError;
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::{CLASSES, MAX_WEIGHT};
use penstock_core::coop::{Floor, Floors, Share};
use penstock_core::units::Span;
use penstock_grammar::range::MAX_DURATION;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The keys of `[cooperation]`.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CooperationKeys {
    pub link: String,
    pub sharing: Option<Sharing>,
    #[serde(default)]
    pub literal: bool,
    pub lease: Option<Span>,
    pub advertise: Option<Span>,
    pub silent_from: Option<Span>,
    pub floors: Option<Floors>,
    #[serde(default)]
    pub nodes: Vec<NodeKeys>,
}

/// The keys of one node in `[cooperation]`.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeKeys {
    pub name: String,
    pub csi: Option<String>,
    pub lie: Option<Lie>,
    pub class: Option<u8>,
    pub weight: Option<u16>,
    pub floor: Option<Floor>,
}

impl NodeKeys {
    /// The share in the node's ticket; `None` if it has none.
    fn share(&self) -> Option<Share> {
        let given = self.class.is_some() || self.weight.is_some() || self.floor.is_some();
        let Share { class, weight, floor } = Share::default();
        given.then(|| Share {
            class: self.class.unwrap_or(class),
            weight: self.weight.unwrap_or(weight),
            floor: self.floor.unwrap_or(floor),
        })
    }
}

impl Checker<'_> {
    pub(super) fn cooperation(&self, links: &[LinkSpec], flows: &[FlowSpec]) -> Check<Option<Cooperation>> {
        let Some(raw) = &self.keys.cooperation else { return Ok(None) };
        let at = |key: &str, message: &str| self.source.at(&["cooperation", key], message);
        let link = self.link_of("link", &raw.link, links)?;
        let floors = raw.floors.unwrap_or_default();
        let sharing = raw.sharing.unwrap_or(Sharing::UnweightedFair);
        let policy = Policy { literal: raw.literal, floors, ..Policy::of(sharing) };
        policy.validate().map_err(|e| at(e.key, &e.to_string()))?;
        let (lease, advertise) = (raw.lease.unwrap_or(LEASE), raw.advertise.unwrap_or(ADVERTISE));
        self.within_span("lease", &["cooperation", "lease"], lease, Span::from_millis(100), Span::from_secs(3600))?;
        self.within_span("advertise", &["cooperation", "advertise"], advertise, Span::from_millis(10), lease)?;
        if let Some(silent) = raw.silent_from {
            self.within_span("silent_from", &["cooperation", "silent_from"], silent, Span::ZERO, MAX_DURATION)?;
        }
        let gateway = &links[link].a;
        for flow in flows {
            if flow.from != *gateway && paths::slowest(links, &flow.from, gateway).is_none() {
                return Err(at("link", &format!("no path from {:?} to the gateway at {gateway:?}", flow.from)));
            }
        }
        let nodes = self.special_nodes(raw, links, flows)?;
        self.floors(&policy, &links[link], &nodes, flows)?;
        Ok(Some(Cooperation { link, policy, lease, advertise, silent_from: raw.silent_from, nodes }))
    }

    /// Refuses floors that exceed the link's rate when all nodes are there.
    fn floors(&self, policy: &Policy, link: &LinkSpec, nodes: &[NodeSpec], flows: &[FlowSpec]) -> Check<()> {
        let known: BTreeSet<&str> = flows.iter().filter_map(|flow| flow.node.as_deref()).collect();
        let lone = flows.iter().filter(|flow| flow.node.is_none()).map(|flow| flow.count as usize).sum();
        let share = |name: &&str| nodes.iter().find(|node| node.name == **name).and_then(|node| node.share);
        let shares = known.iter().map(|name| share(name).unwrap_or_default());
        let all = shares.chain(std::iter::repeat_n(Share::default(), lone));
        let key = if policy.floors.is_empty() { "nodes" } else { "floors" };
        let own = nodes.iter().any(|node| node.share.is_some_and(|share| !share.floor.is_of_class()));
        if policy.literal && own {
            return Err(self.source.at(&["cooperation", "nodes"], "the literal form of DyBRA has no floors"));
        }
        let wrong = |e: ConfigError| self.source.at(&["cooperation", key], &format!("floors {}", e.message));
        policy.check_floors(link.link.rate, all).map_err(wrong)
    }

    fn link_of(&self, key: &str, name: &str, links: &[LinkSpec]) -> Check<usize> {
        let known: Vec<&str> = links.iter().map(|l| l.name.as_str()).collect();
        let found = known.iter().position(|known| *known == name);
        found.ok_or_else(|| self.source.unknown(&["cooperation", key], "link", name, &known))
    }

    fn special_nodes(&self, raw: &CooperationKeys, links: &[LinkSpec], flows: &[FlowSpec]) -> Check<Vec<NodeSpec>> {
        let known: BTreeSet<&str> = flows.iter().filter_map(|f| f.node.as_deref()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let mut nodes = Vec::new();
        for node in &raw.nodes {
            if !known.contains(&node.name.as_str()) {
                return Err(self.source.unknown(&["cooperation", "nodes"], "node", &node.name, &known));
            }
            let csi = node.csi.as_ref().map(|name| self.link_of("nodes", name, links)).transpose()?;
            let share = node.share();
            if share.is_some_and(|share| share.checked().is_none()) {
                let message = format!("class is 0 to {}, weight is 1 to {MAX_WEIGHT}", CLASSES - 1);
                return Err(self.source.at(&["cooperation", "nodes"], &message));
            }
            nodes.push(NodeSpec { name: node.name.clone(), csi, lie: node.lie, share });
        }
        Ok(nodes)
    }
}
