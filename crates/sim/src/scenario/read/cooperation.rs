//! Reading of `[cooperation]`.

use super::{Check, Checker};
use crate::actors::cooperation::{ADVERTISE, LEASE};
use crate::scenario::{Cooperation, FlowSpec, Lie, LinkSpec, NodeSpec, paths};
use penstock_core::coop::policy::{Policy, Sharing};
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
}

impl Checker<'_> {
    pub(super) fn cooperation(&self, links: &[LinkSpec], flows: &[FlowSpec]) -> Check<Option<Cooperation>> {
        let Some(raw) = &self.keys.cooperation else { return Ok(None) };
        let at = |key: &str, message: &str| self.source.at(&["cooperation", key], message);
        let link = self.link_of("link", &raw.link, links)?;
        let policy = Policy { literal: raw.literal, ..Policy::of(raw.sharing.unwrap_or(Sharing::UnweightedFair)) };
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
        Ok(Some(Cooperation { link, policy, lease, advertise, silent_from: raw.silent_from, nodes }))
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
            nodes.push(NodeSpec { name: node.name.clone(), csi, lie: node.lie });
        }
        Ok(nodes)
    }
}
